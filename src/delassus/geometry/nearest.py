"""The k smallest of n numbers, by their places, without sorting all of them.

A sorting network takes n (log₂ n)²/4 comparisons, whatever is used of its result. Here the numbers are cut into groups
of about √n. Each group knows its smallest number; k times, the smallest of these is taken out, and its group, gathered
by its place, finds its next one:

    n - 1 + k (n/g + g) comparisons,        g = √n

The k rounds are a loop, so that the code does not grow with k. Nothing is written into the groups: the successor of the
number x at place i is the smallest pair (y, j) beyond (x, i) in lexicographic order, which also keeps equal numbers in
the order of their places.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import scan

FAR: Final = 1e30
"""Larger numbers, and NaN, count as this one: they come last, in the order of their places."""

_COMPARISON: Final = 8
"""Operations of a comparison in a sorting network of numbers with their places."""

_ROUND: Final = 9
"""Operations of a round for each member of a group; for each group there are six."""


class Nearest(NamedTuple):
    """The places (k,) of the k smallest numbers in ascending order of places, and the smallest of all others ()."""

    places: Any
    next: Any


class _Least(NamedTuple):
    """Numbers and their places, of each group the smallest one that is left; infinite if none is."""

    number: Any
    place: Any


def nearest(numbers: Any, k: int) -> Nearest:
    """The k smallest of numbers (n,), of equal ones the first; all of them where k ≥ n, and then the next is ∞.

    Cost: by sorting for few numbers, else about 3 n + 15 k √n operations; k ≥ 1.
    """
    n = len(numbers)
    if k >= n:
        return Nearest(np.array(numpy.arange(float(n))), np.array(numpy.inf))
    if sorting_operations(n) <= _selection_operations(n, k):
        order = np.argsort(numbers)
        return Nearest(np.sort(order[:k]), np.take(numbers, order[k]))
    return _select(numbers, k)


def sorting_operations(n: int) -> float:
    """The number of operations of `argsort` on so many values."""
    return _COMPARISON * n * math.log2(max(n, 2)) ** 2 / 4.0


def _selection_operations(n: int, k: int) -> float:
    size = _group_size(n)
    return 5.0 * n + k * (_ROUND * size + 6.0 * n / size)


def _group_size(n: int) -> int:
    """That makes a round cheapest."""
    return max(round(math.sqrt(6.0 * n / _ROUND)), 2)


def _select(numbers: Any, k: int) -> Nearest:
    n, size = len(numbers), _group_size(len(numbers))
    groups = -(-n // size)
    finite = np.where(numbers < FAR, numbers, FAR)  # NaN is not smaller
    table = np.concatenate([finite, np.full(groups * size - n, numpy.inf)]).reshape(groups, size)
    places = numpy.arange(float(groups * size)).reshape(groups, size)
    first = _least(table, places)
    group_numbers, within = numpy.arange(float(groups)), numpy.arange(float(size))

    def move_out_of_ground(left: _Least, _: Any) -> tuple[_Least, Any]:
        x, i = _least(left.number, left.place)
        group = np.floor(i / size)
        members, at = np.take(table, group, axis=0), group * size + within
        beyond = (members > x) | ((members == x) & (at > i))
        following = _least(np.where(beyond, members, numpy.inf), at)
        emptied = group_numbers == group
        return _Least(*(np.where(emptied, new, old) for new, old in zip(following, left, strict=True))), i

    left, taken = scan(move_out_of_ground, first, length=k)
    return Nearest(np.sort(taken), np.min(left.number))


def _least(numbers: Any, places: Any) -> _Least:
    """The smallest of the last axis, of equal ones the first: a tournament of neighbors."""
    while numbers.shape[-1] > 1:
        paired = numbers.shape[-1] // 2 * 2
        (a, b), (i, j) = ((x[..., 0:paired:2], x[..., 1:paired:2]) for x in (numbers, places))
        later = b < a
        rest = numbers[..., paired:], places[..., paired:]
        numbers = np.concatenate([np.where(later, b, a), rest[0]], -1)
        places = np.concatenate([np.where(later, j, i), rest[1]], -1)
    return _Least(numbers[..., 0], places[..., 0])
