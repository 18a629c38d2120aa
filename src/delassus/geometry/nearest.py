"""Indices of the k smallest of n values, without a full sort.

A sorting network takes n (log₂ n)²/4 comparisons, however few of its results are used. Here, the values are divided
into groups of about √n, each with its minimum. In each of k rounds, the smallest minimum is removed, and the next
minimum of its group is computed:

    n - 1 + k (n/g + g) comparisons,        g = √n

The rounds are a loop, so the size of the code does not depend on k. Nothing is written to the groups: the successor of
the value x at index i is the smallest pair (y, j) after (x, i) in lexicographic order. Equal values keep the order of
their indices.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import scan

FAR: Final = 1e30
"""Larger values, and NaN, count as this one: they come last, in the order of their indices."""

_COMPARISON: Final = 8
"""Operations of a comparison in a sorting network of values with their indices."""

_ROUND: Final = 9
"""Operations of a round for each member of a group; there are six more for each group."""


class Nearest(NamedTuple):
    """The indices (k,) of the k smallest values, and the smallest of the other values ()."""

    places: Any
    next: Any


class _Least(NamedTuple):
    """The smallest remaining value of each group and its index; infinite if the group is empty."""

    number: Any
    place: Any


def nearest(values: Any, k: int, by_value: bool = False) -> Nearest:
    """The k smallest of values (n,), sorted by index, or with `by_value` by value. Among equal values, smaller indices
    come first. If k ≥ n, the next value is ∞.

    Cost: a sort for few values, else about 3 n + 15 k √n operations; k ≥ 1.
    """
    n = len(values)
    if k >= n and not by_value:
        return Nearest(np.array(numpy.arange(float(n))), np.array(numpy.inf))
    if k >= n:
        return Nearest(np.argsort(values), np.array(numpy.inf))
    if sorting_operations(n) <= _selection_operations(n, k):
        order = np.argsort(values)
        places, following = order[:k], np.take(values, order[k])
    else:
        places, following = _select(values, k)
    return Nearest(places if by_value else np.sort(places), following)


def sorting_operations(n: int) -> float:
    """Operations of `argsort` on this number of values."""
    return _COMPARISON * n * math.log2(max(n, 2)) ** 2 / 4.0


def _selection_operations(n: int, k: int) -> float:
    size = _group_size(n)
    return 5.0 * n + k * (_ROUND * size + 6.0 * n / size)


def _group_size(n: int) -> int:
    """The group size that minimizes the cost of a round."""
    return max(round(math.sqrt(6.0 * n / _ROUND)), 2)


def _select(values: Any, k: int) -> Nearest:
    n, size = len(values), _group_size(len(values))
    groups = -(-n // size)
    finite = np.where(values < FAR, values, FAR)  # NaN is not smaller
    table = np.concatenate([finite, np.full(groups * size - n, numpy.inf)]).reshape(groups, size)
    places = numpy.arange(float(groups * size)).reshape(groups, size)
    first = _least(table, places)
    group_indices, offsets = numpy.arange(float(groups)), numpy.arange(float(size))

    def remove_smallest(remaining: _Least, _: Any) -> tuple[_Least, Any]:
        x, i = _least(remaining.number, remaining.place)
        group = np.floor(i / size)
        members, at = np.take(table, group, axis=0), group * size + offsets
        is_later = (members > x) | ((members == x) & (at > i))
        successor = _least(np.where(is_later, members, numpy.inf), at)
        is_group = group_indices == group
        return _Least(*(np.where(is_group, new, old) for new, old in zip(successor, remaining, strict=True))), i

    remaining, removed = scan(remove_smallest, first, length=k)
    return Nearest(removed, np.min(remaining.number))


def _least(values: Any, indices: Any) -> _Least:
    """The first minimum along the last axis and its index, by a tournament of neighbors."""
    while values.shape[-1] > 1:
        paired = values.shape[-1] // 2 * 2
        (a, b), (i, j) = ((x[..., 0:paired:2], x[..., 1:paired:2]) for x in (values, indices))
        is_second = b < a
        unpaired = values[..., paired:], indices[..., paired:]
        values = np.concatenate([np.where(is_second, b, a), unpaired[0]], -1)
        indices = np.concatenate([np.where(is_second, j, i), unpaired[1]], -1)
    return _Least(values[..., 0], indices[..., 0])


def index_of_smallest(x: Any) -> Any:
    """The index of the first minimum of x (n,), by comparison of pairs.

    It takes half the operations of `argmin`, which checks for NaN.
    """
    ranked = [(x[k], float(k)) for k in range(len(x))]
    while len(ranked) > 1:
        pairs = list(zip(ranked[::2], ranked[1::2], strict=False))
        smaller = [(np.where(b < a, b, a), np.where(b < a, j, i)) for (a, i), (b, j) in pairs]
        ranked = smaller + ranked[2 * len(pairs) :]
    return ranked[0][1]
