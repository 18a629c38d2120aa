"""Iterations to a tolerance in a compiled loop; each state of a batch makes as many as it needs.

An iteration adds -E⁻¹ r to λ, r its residual. Where rows are independent r vanishes; where they contradict each other a
part of it stays, which moves nothing, and λ drifts along it. So iterations end when neither the generalized forces Jᵀ λ
nor r change any more, seen ahead by the rate at which their changes become smaller. If r is not zero then, the drift is
taken off λ and iterations go on with rows that ask for r, which agree, to the smallest forces.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import while_loop
from delassus.compiler.tracing.trace import computing_in
from delassus.constrained.solvers.equations import Equations
from delassus.constrained.solvers.solver import Solver

SHARES: Final = {("float64", False): 1e-7, ("float64", True): 3e-5, ("float32", False): 1e-6, ("float32", True): 3e-4}
"""ε as a share of the rows' mobility, by precision, without and with penalties."""

_SLOW: Final = 0.7
"""An iteration whose change is more than this share of the one before makes too little progress."""


def iterate_to_tolerance(
    solver: Solver, equations: Equations, force: Any, tolerance: Any, iterations: int
) -> tuple[Any, ...]:
    """Accelerations (nv,), forces (m,), what they leave of the rows (m,), how many iterations, and if these settled.

    Rows that contradict each other make another round, from zero, in which they ask for what they left: they agree
    then, and forces do not drift. If that had not all its digits, there is something left again, and a last round.
    """
    weighted, loop = equations.weighted, _Loop(solver, equations, tolerance, iterations)
    factors, first = solver.factor(weighted, force)
    none = np.zeros(weighted.problem.rows.m)

    def play(last: _Round) -> _Round:
        state, asked, count, rounds, _, _ = last
        again = rounds > 0.5
        r = np.where(again, state.residual, 0.0)
        asked = asked + r
        # What joints feel of keep λ⁻ + ρ k, from the last iteration to the next: another k is another λ⁻.
        start = state._replace(force=np.where(again, 0.0, state.force), before=state.before - r / weighted.epsilon)
        state, made, settled = loop.run(solver.shifted(factors, asked), start, count)
        left = _share(state.residual, loop.scale) > np.where(again, 64.0 * digits, tolerance)
        # A round is worth beginning if it can be expected to end.
        further = settled & left & (rounds < 1.5) & (count + 2.0 * made <= float(iterations))
        return _Round(state, asked, count + made, rounds + 1.0, settled, further)

    digits = 2.0 ** -computing_in().digits
    begins = np.isfinite(np.sum(first.force)) if iterations > 1 else np.array(False)
    start = _Round(first, none, np.array(1.0), np.array(0.0), np.array(False), begins)
    last: _Round = while_loop(lambda now: now.goes_on, play, start, 3)
    return *solver.finish(solver.shifted(factors, last.asked), last.state), last.asked, last.count, last.settled


class _Round(NamedTuple):
    """A state of a solver, what rows ask for less (m,), iterations and rounds made, whether they have settled, and
    whether there is another round."""

    state: Any
    asked: Any
    count: Any
    rounds: Any
    settled: Any
    goes_on: Any


class _Iteration(NamedTuple):
    """A state of a solver, iterations made, whether there is another one, whether they have settled, and by how much
    the last one has changed the state."""

    state: Any
    count: Any
    goes_on: Any
    settled: Any
    change: Any


@dataclass(frozen=True)
class _Loop:
    """The iterations of a method, and when they end."""

    solver: Solver
    equations: Equations
    tolerance: Any
    iterations: int

    @property
    def scale(self) -> Any:
        """What the rows' residuals are compared with (m,)."""
        return self.equations.expected_scale()

    @property
    def force_tolerance(self) -> Any:
        """The change of forces that counts as none: the tolerance, or what penalties leave of the digits."""
        if not self.solver.penalties:
            return self.tolerance
        return np.maximum(self.tolerance, 16.0 * 2.0 ** -computing_in().digits / SHARES[computing_in().name, True])

    def run(self, factors: Any, state: Any, count: Any) -> tuple[Any, Any, Any]:
        """The last state, the number of iterations made, and whether they have settled."""

        def step(last: _Iteration) -> _Iteration:
            made = last.count
            state = self.solver.iterate(factors, last.state)
            change = self.change(state, last.state.residual)
            rate = change / last.change
            # What is still to come is a geometric series: a small part of what may be, since light joints feel it more.
            settled = (change <= 1.0) & (100.0 * rate * change <= 1.0 - rate)
            slow = (made > 1.5) & (rate > _SLOW)
            further = ~settled & ~slow & (count + made + 1.0 < float(self.iterations))
            return _Iteration(state, made + 1.0, further, settled, change)

        going = count < float(self.iterations)
        start = _Iteration(state, np.array(0.0), going, np.array(False), np.array(1.0 / self.tolerance))
        last: _Iteration = while_loop(lambda now: now.goes_on, step, start, self.iterations)
        return last.state, last.count, last.settled

    def change(self, state: Any, residual: Any) -> Any:
        """By how much an iteration has changed Jᵀ λ, and the residual unless rows are met, in units of what may be.

        What rows leave is what they ask for next, and its direction tells whether they contradict each other, so it
        has to be known better than to the tolerance: about as well as rounding lets it.
        """
        J, met = self.equations.J, np.all(np.abs(state.residual) <= self.tolerance * self.scale)
        forces = _share(J.T @ (state.force - state.before), self.equations.force_scale(state.force))
        rows = _share(state.residual - residual, self.scale)
        closer = 1e3 if self.solver.penalties else 1e5
        return np.maximum(forces / self.force_tolerance, np.where(met, 0.0, closer * rows / self.tolerance))


def _share(x: Any, scale: Any) -> Any:
    """The largest of some numbers, each as a share of its scale; what has no scale is zero."""
    return np.max(np.where(scale > 0.0, np.abs(x) / np.where(scale > 0.0, scale, 1.0), 0.0))
