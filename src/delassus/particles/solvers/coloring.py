"""Graph coloring: elements of one color share no node, so they can be processed together in any order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def colors(nodes: NDArray[np.int64], count: int) -> list[NDArray[np.int64]]:
    """The indices of the elements of each color, for elements with nodes (e, k) among `count`.

    In rounds, an element takes the color of the round if its random number is the smallest among the remaining elements
    at each of its nodes. Random numbers make a chain take a few rounds instead of one for each link.
    """
    uncolored = np.arange(len(nodes))
    rank = np.random.default_rng(0).permutation(len(nodes))
    color_groups = []
    while len(uncolored):
        members, waiting = [], uncolored
        while len(waiting):
            least = np.full(count, len(nodes), np.int64)
            np.minimum.at(least, nodes[waiting].reshape(-1), np.repeat(rank[waiting], nodes.shape[1]))
            wins = (least[nodes[waiting]] == rank[waiting][:, None]).all(1)
            members.append(waiting[wins])
            is_used = np.zeros(count, bool)
            is_used[nodes[waiting[wins]].reshape(-1)] = True
            waiting = waiting[~wins]
            waiting = waiting[~is_used[nodes[waiting]].any(1)]
        color = np.sort(np.concatenate(members))
        color_groups.append(color)
        uncolored = np.setdiff1d(uncolored, color, assume_unique=True)
    return color_groups
