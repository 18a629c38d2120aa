"""Iterations to a tolerance in a compiled loop; each state of a batch iterates until it converges.

An iteration adds -E⁻¹ r to λ, r its residual. For feasible rows r vanishes. For infeasible ones a component of r
remains, along which λ drifts. So iterations end when neither the generalized forces Jᵀ λ nor r change any more, as
predicted from the rate of convergence. If r is not zero then, the drift is subtracted from λ, and iterations continue
with the feasible rows whose target is r, to the smallest forces.
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
"""ε relative to the rows' mobility, by precision, without and with penalties."""

_SLOW: Final = 0.7
"""An iteration whose change exceeds this fraction of the previous one converges too slowly."""


def iterate_to_tolerance(
    solver: Solver, equations: Equations, force: Any, tolerance: Any, iterations: int
) -> tuple[Any, ...]:
    """Accelerations (nv,), forces (m,), residuals of the rows (m,), the number of iterations, and whether they
    converged.

    Infeasible rows make another round, from zero forces, with their residual as target: they are feasible then, and
    forces do not drift. If the residual was not accurate enough, there is a last round.
    """
    weighted, loop = equations.weighted, _Loop(solver, equations, tolerance, iterations)
    factors, first = solver.factor(weighted, force)
    none = np.zeros(weighted.problem.rows.m)

    def play(last: _Round) -> _Round:
        state, target, count, rounds, _, _ = last
        again = rounds > 0.5
        r = np.where(again, state.residual, 0.0)
        target = target + r
        # Change of keep λ⁻ + ρ k between the rounds, as joints respond to it: another k acts as another λ⁻.
        start = state._replace(force=np.where(again, 0.0, state.force), before=state.before - r / weighted.epsilon)
        state, iterations_made, settled = loop.run(solver.shifted(factors, target), start, count)
        has_residual = _share(state.residual, loop.scale) > np.where(again, 64.0 * digits, tolerance)
        # A round begins only if it can be expected to converge.
        further = settled & has_residual & (rounds < 1.5) & (count + 2.0 * iterations_made <= float(iterations))
        return _Round(state, target, count + iterations_made, rounds + 1.0, settled, further)

    digits = 2.0 ** -computing_in().digits
    starts = np.isfinite(np.sum(first.force)) if iterations > 1 else np.array(False)
    start = _Round(first, none, np.array(1.0), np.array(0.0), np.array(False), starts)
    last: _Round = while_loop(lambda now: now.goes_on, play, start, 3)
    return *solver.finish(solver.shifted(factors, last.asked), last.state), last.asked, last.count, last.settled


class _Round(NamedTuple):
    """A state of a solver, the target residual (m,), the numbers of iterations and rounds, whether iterations
    converged, and whether there is another round.
    """

    state: Any
    asked: Any
    count: Any
    rounds: Any
    settled: Any
    goes_on: Any


class _Iteration(NamedTuple):
    """A state of a solver, the number of iterations, whether there is another one, whether they converged, and the
    change of the state in the last one.
    """

    state: Any
    count: Any
    goes_on: Any
    settled: Any
    change: Any


@dataclass(frozen=True)
class _Loop:
    """The iterations of a method, and their stopping criterion."""

    solver: Solver
    equations: Equations
    tolerance: Any
    iterations: int

    @property
    def scale(self) -> Any:
        """Scales of the rows' residuals (m,)."""
        return self.equations.expected_scale()

    @property
    def force_tolerance(self) -> Any:
        """The change of forces that counts as zero: the tolerance, or the accuracy that penalties leave."""
        if not self.solver.penalties:
            return self.tolerance
        return np.maximum(self.tolerance, 16.0 * 2.0 ** -computing_in().digits / SHARES[computing_in().name, True])

    def run(self, factors: Any, state: Any, count: Any) -> tuple[Any, Any, Any]:
        """The last state, the number of iterations, and whether they converged."""

        def step(last: _Iteration) -> _Iteration:
            count_before = last.count
            state = self.solver.iterate(factors, last.state)
            change = self.change(state, last.state.residual)
            rate = change / last.change
            # The remaining changes form a geometric series; the margin is for light joints, which respond more.
            settled = (change <= 1.0) & (100.0 * rate * change <= 1.0 - rate)
            slow = (count_before > 1.5) & (rate > _SLOW)
            further = ~settled & ~slow & (count + count_before + 1.0 < float(self.iterations))
            return _Iteration(state, count_before + 1.0, further, settled, change)

        going = count < float(self.iterations)
        start = _Iteration(state, np.array(0.0), going, np.array(False), np.array(1.0 / self.tolerance))
        last: _Iteration = while_loop(lambda now: now.goes_on, step, start, self.iterations)
        return last.state, last.count, last.settled

    def change(self, state: Any, residual: Any) -> Any:
        """The change of Jᵀ λ in an iteration, and of the residual unless rows are met, relative to the tolerances.

        The residual is the target of the next round, and its direction decides whether rows are infeasible, so it must
        be more accurate than the tolerance: nearly to rounding.
        """
        J, is_met = self.equations.J, np.all(np.abs(state.residual) <= self.tolerance * self.scale)
        forces = _share(J.T @ (state.force - state.before), self.equations.force_scale(state.force))
        rows = _share(state.residual - residual, self.scale)
        closer = 1e3 if self.solver.penalties else 1e5
        return np.maximum(forces / self.force_tolerance, np.where(is_met, 0.0, closer * rows / self.tolerance))


def _share(x: Any, scale: Any) -> Any:
    """The largest ratio of values to their scales; zero where a scale is zero."""
    return np.max(np.where(scale > 0.0, np.abs(x) / np.where(scale > 0.0, scale, 1.0), 0.0))
