"""`Normalizer`: running mean and variance of observations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Normalizer:
    """Mean and variance (observations,) of all that was seen, and how many samples that was.

    >>> dl.learning.Normalizer.new(2).update([np.array([[0.0, 1.0], [2.0, 3.0]])]).mean
    array([1., 2.])
    """

    mean: Array
    variance: Array
    count: float

    @classmethod
    def new(cls, observations: int) -> Normalizer:
        """Of nothing seen: mean 0 and variance 1."""
        return cls(np.zeros(observations), np.ones(observations), 0.0)

    @property
    def scale(self) -> Array:
        """What differences from the mean are multiplied by."""
        return 1.0 / np.sqrt(self.variance + 1e-4)

    def update(self, samples: Iterable[Any]) -> Normalizer:
        """With further arrays of samples (n, observations), by the formula of Chan, Golub and LeVeque."""
        m, sums, squares = 0, np.zeros_like(self.mean), np.zeros_like(self.mean)
        for block in samples:  # one that fits into a core's cache, if a block is a period
            x = block - self.mean
            m, sums, squares = m + len(x), sums + x.sum(0), squares + np.einsum("ij,ij->j", x, x)
        n, total, difference = self.count, self.count + m, sums / m
        variance = squares / m - difference**2
        joined = (n * self.variance + m * variance + difference**2 * (n * m / total)) / total
        return Normalizer(self.mean + difference * (m / total), joined, total)
