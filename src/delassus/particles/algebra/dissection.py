"""Nested dissection by coordinates: an elimination order with sparse factors.

A domain is cut in the middle of its longest side. The nodes of one half that are connected to the other are its
separator. They are eliminated after both halves, which are then decoupled. All domains of a level are cut at once.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

LEAF: Final = 40
"""Domains with at most this number of nodes are not cut."""


class Dissection(NamedTuple):
    """The tree of parts, children before parents.

    Attributes:
        order: (n,) the nodes, part by part.
        starts: (parts + 1,) offsets of the parts in `order`.
        parent: (parts,) the index of each part's parent; -1 for roots.
    """

    order: Ints
    starts: Ints
    parent: Ints


def dissect(points: NDArray[np.float64], first: Ints, second: Ints, leaf: int = LEAF) -> Dissection:
    """Dissect nodes at points (n, 3) with edges between `first` and `second` (edges,)."""
    n = len(points)
    if n == 0:
        none = np.zeros(0, np.int64)
        return Dissection(none, np.zeros(1, np.int64), none)
    domain, owner = np.ones(n, np.int64), np.zeros(n, np.int64)
    active = np.arange(n)
    edges = first != second
    a, b = first[edges], second[edges]
    while len(active):
        size, half = _halves(points, active, domain)
        owner[active[size <= leaf]] = domain[active[size <= leaf]]
        side = np.full(n, -1, np.int8)
        side[active[size > leaf]] = half[size > leaf]
        inside = (domain[a] == domain[b]) & (side[a] >= 0) & (side[b] >= 0)
        a, b = a[inside], b[inside]
        is_cut = side[a] != side[b]
        separator = _separator(n, a[is_cut], b[is_cut], side, domain)
        owner[separator] = domain[separator]
        remaining = (side >= 0) & ~separator
        active = np.flatnonzero(remaining)
        domain[active] = 2 * domain[active] + side[active]
        side[separator] = -1
    return _tree(points, owner)


def _halves(points: NDArray[np.float64], active: Ints, domain: Ints) -> tuple[Ints, NDArray[np.int8]]:
    """The size of each active node's domain, and the half in which it lies along the longest extent."""
    _, group, size = np.unique(domain[active], return_inverse=True, return_counts=True)
    order = np.argsort(group, kind="stable")
    starts = np.concatenate([[0], np.cumsum(size)[:-1]])
    x = points[active]
    extent = np.maximum.reduceat(x[order], starts) - np.minimum.reduceat(x[order], starts)
    coordinate = np.take_along_axis(x, np.argmax(extent, 1)[group][:, None], 1)[:, 0]
    order = np.lexsort((coordinate, group))
    rank = np.empty(len(active), np.int64)
    rank[order] = np.arange(len(active)) - starts[group[order]]
    return size[group], (2 * rank >= size[group]).astype(np.int8)


def _separator(n: int, a: Ints, b: Ints, side: NDArray[np.int8], domain: Ints) -> NDArray[np.bool_]:
    """(n,) the nodes of one half that are connected to the other; in each domain, of the half where they are fewer."""
    touching = np.zeros(n, bool)
    touching[a], touching[b] = True, True
    nodes = np.flatnonzero(touching)
    if not len(nodes):
        return touching
    names, group = np.unique(domain[nodes], return_inverse=True)
    left_count = np.bincount(group, side[nodes] == 0, len(names))
    right = np.bincount(group, side[nodes] == 1, len(names))
    smaller_side = np.where(left_count <= right, 0, 1)[group]
    touching[nodes[side[nodes] != smaller_side]] = False
    return touching


def _tree(points: NDArray[np.float64], owner: Ints) -> Dissection:
    """Parts in post-order, the nodes of a part along its longest extent."""
    names, group, size = np.unique(owner, return_inverse=True, return_counts=True)
    index_of = {int(name): k for k, name in enumerate(names)}
    above = np.full(len(names), -1, np.int64)
    for k, name in enumerate(names.tolist()):
        up = name >> 1
        while up and up not in index_of:
            up >>= 1
        above[k] = index_of.get(up, -1)
    # The key of a part is its path of halves from the root, padded to the same depth, so that sorting gives
    # post-order.
    depth = max(int(name).bit_length() for name in names.tolist())
    paths = [((int(name) + 1) << (depth - int(name).bit_length()), -int(name).bit_length()) for name in names.tolist()]
    ranked = sorted(range(len(names)), key=lambda k: paths[k])
    position = np.empty(len(names), np.int64)
    position[ranked] = np.arange(len(names))
    by_group = np.argsort(group, kind="stable")
    starts = np.concatenate([[0], np.cumsum(size)[:-1]])
    extent = np.maximum.reduceat(points[by_group], starts) - np.minimum.reduceat(points[by_group], starts)
    coordinate = np.take_along_axis(points, np.argmax(extent, 1)[group][:, None], 1)[:, 0]
    order = np.lexsort((coordinate, position[group]))
    parent = np.full(len(names), -1, np.int64)
    has = above >= 0
    parent[position[has]] = position[above[has]]
    return Dissection(order, np.concatenate([[0], np.cumsum(size[ranked])]), parent)
