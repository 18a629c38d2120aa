"""Graph coloring: elements of one color share no node, so they can be processed together in any order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def colors(nodes: NDArray[np.int64], count: int) -> list[NDArray[np.int64]]:
    """The indices of the elements of each color, for elements with nodes (e, k) among `count`.

    In rounds, an element takes the color of the round if its random number is the smallest among the remaining elements
    at each of its nodes. Random numbers make a chain take a few rounds instead of one for each link.
    """
    left = np.arange(len(nodes))
    rank = np.random.default_rng(0).permutation(len(nodes))
    found = []
    while len(left):
        taken, rest = [], left
        while len(rest):
            least = np.full(count, len(nodes), np.int64)
            np.minimum.at(least, nodes[rest].reshape(-1), np.repeat(rank[rest], nodes.shape[1]))
            wins = (least[nodes[rest]] == rank[rest][:, None]).all(1)
            taken.append(rest[wins])
            used = np.zeros(count, bool)
            used[nodes[rest[wins]].reshape(-1)] = True
            rest = rest[~wins]
            rest = rest[~used[nodes[rest]].any(1)]
        chosen = np.sort(np.concatenate(taken))
        found.append(chosen)
        left = np.setdiff1d(left, chosen, assume_unique=True)
    return found
