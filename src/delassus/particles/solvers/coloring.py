"""Graph coloring: elements of one color share no node, so they can be processed together in any order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def colors(nodes: NDArray[np.int64], count: int) -> list[NDArray[np.int64]]:
    """The numbers of the elements of each color, of elements with nodes (e, k) among `count`.

    In rounds, an element takes the round's color if it has the least number among all that are left at each of its
    nodes. Numbers are drawn, so that a chain takes a few rounds, not as many as it has links.
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
