"""`Normalizer`: running mean and variance of observations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Normalizer:
    """Mean and variance (observations,) of all that was seen, and how many samples that was."""

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

    def update(self, samples: Any) -> Normalizer:
        """With further samples (…, observations), by the formula of Chan, Golub and LeVeque for joined samples."""
        x = np.asarray(samples, float).reshape(-1, len(self.mean))
        n, m = self.count, len(x)
        mean, variance = x.mean(0), x.var(0)
        difference, total = mean - self.mean, n + m
        joined = (n * self.variance + m * variance + difference**2 * (n * m / total)) / total
        return Normalizer(self.mean + difference * (m / total), joined, total)
