"""Progress of a solver: the best impulses so far, their error, and the number of iterations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import UNBOUNDED, while_loop
from delassus.contact.systems.protocol import ContactSystem

FOREVER = UNBOUNDED
"""Upper bound of loops whose number of iterations is known at run time."""


class Budget(NamedTuple):
    """Stopping criteria: an error, relative to the velocity scale, and a maximum number of iterations.

    `warm` states that the initial impulses may be close to the solution.
    """

    tolerance: Any
    iterations: Any
    warm: bool = False


class Best(NamedTuple):
    """Impulses and velocities (m,), the error of them, and the number of iterations made so far."""

    impulse: Any
    velocity: Any
    error: Any
    count: Any

    @classmethod
    def of(cls, problem: ContactSystem, impulse: Any, count: Any = 0.0) -> Best:
        """Create from initial impulses."""
        velocity = problem.velocity(impulse)
        return cls(impulse, velocity, problem.error(impulse, velocity), np.array(count))

    def or_better(self, other: Best) -> Best:
        """The better of two, with the count of `other`, the later one."""
        better = other.error < self.error
        return other.where(better, self)

    def where(self, condition: Any, other: Best) -> Best:
        """This one where a condition holds, else the other, with the count of this one."""
        impulse, velocity, error = (np.where(condition, a, b) for a, b in zip(self[:3], other[:3], strict=True))
        return Best(impulse, velocity, error, self.count)

    def open(self, budget: Budget) -> Any:
        """Whether the problem is neither solved nor out of iterations."""
        return (self.error > budget.tolerance) & (self.count < budget.iterations)


class SolverResult(NamedTuple):
    """The best impulses, and whether the rows are infeasible."""

    best: Best
    contradictory: Any


def initial_best(problem: ContactSystem, start: Any) -> Best:
    """Zero impulses, or the start where it is better."""
    none = Best.of(problem, np.zeros(problem.layout.m))
    if start is None:
        return none
    warm = Best.of(problem, problem.project(start))
    return none.or_better(warm)


def iterate(step: Callable[[Any, Any], tuple[Any, Best]], held: Any, best: Best, budget: Budget) -> Best:
    """Iterate `held, best = step(held, best)` until convergence or the iteration limit."""
    last: Best
    _, last = while_loop(lambda carry: carry[1].open(budget), lambda carry: step(*carry), (held, best), FOREVER)
    return last
