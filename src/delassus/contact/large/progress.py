"""The best impulses of each problem of a batch, with their error and number of iterations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delassus.contact.large.rows import Array, Rows


@dataclass(frozen=True)
class Budget:
    """Stopping criteria: an error, relative to the velocity scale, and a maximum number of iterations."""

    tolerance: float
    iterations: int


@dataclass
class Best:
    """Impulses (B, m), their errors (B,), and the numbers of iterations (B,), which solvers change in place."""

    impulse: Array
    error: Array
    count: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Rows, impulse: Array, count: Any = 0) -> Best:
        """Create from initial impulses."""
        error = rows.error(impulse, rows.velocity(impulse))
        return cls(impulse, error, np.broadcast_to(np.asarray(count), error.shape).copy())

    def __getitem__(self, problems: Any) -> Best:
        return Best(self.impulse[problems], self.error[problems], self.count[problems])

    def open(self, budget: Budget) -> NDArray[np.int64]:
        """Indices of problems that are neither solved nor out of iterations."""
        return np.flatnonzero((self.error > budget.tolerance) & (self.count < budget.iterations))

    def is_open(self, budget: Budget, problems: Any) -> NDArray[np.bool_]:
        """(…) whether `problems` are among the open ones."""
        return np.asarray((self.error[problems] > budget.tolerance) & (self.count[problems] < budget.iterations))

    def keep(self, problems: Any, impulse: Array, error: Array) -> None:
        """Store impulses of `problems` where they are better than the best so far."""
        better = error < self.error[problems]
        at = np.asarray(problems)[better]
        self.impulse[at], self.error[at] = impulse[better], error[better]

    def replace_problems(self, problems: Any, other: Best) -> None:
        """Store the results of another solver for `problems`."""
        self.count[problems] = other.count
        self.keep(problems, other.impulse, other.error)
