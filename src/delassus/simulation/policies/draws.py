"""`Draws`: random numbers of one environment in one control period."""

from __future__ import annotations

from typing import Any

from delassus.compiler import random


class Draws:
    """Random numbers that follow from an item's seed, its stream and its control period.

    Each call has a place of its own, counted while the kernel is traced, so that all numbers of a period are
    independent, and the same in any batch and on any number of threads.

    >>> @dl.kernel("(),()->(2)")
    ... def draw(model, seed, period):
    ...     return dl.learning.Draws(seed, 0.0, period).uniform(0.0, 1.0, 2)
    >>> draw(dl.load("pendulum"), 0.0, 0.0).shape
    (2,)
    """

    def __init__(self, seed: Any, stream: Any, period: Any, place: Any = 0.0) -> None:
        self._counters, self._place = (seed, stream, period), place

    def _next_place(self) -> Any:
        self._place = self._place + 1.0
        return self._place

    def uniform(self, low: Any = 0.0, high: Any = 1.0, shape: int | tuple[int, ...] = ()) -> Any:
        """Numbers between `low` and `high`."""
        return low + (high - low) * random.uniform(*self._counters, self._next_place(), shape=shape)

    def normal(self, deviation: Any = 1.0, shape: int | tuple[int, ...] = ()) -> Any:
        """Numbers with mean 0 and a standard deviation."""
        return deviation * random.normal(*self._counters, self._next_place(), shape=shape)

    def chance(self, probability: Any) -> Any:
        """Whether something happens that has a probability."""
        return random.uniform(*self._counters, self._next_place()) < probability
