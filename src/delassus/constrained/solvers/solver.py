"""The interface of a proximal solver, and the loop that composes a solve from its parts.

A solver prepares a problem once (`factor`, which includes the first iteration), iterates from one state to the next,
and finishes with the accelerations of all joints. A state is a tuple of traced arrays that begins with `force`,
`before` and `residual`, which is what loops carry and test.

A new solver is a file that defines a `Solver`, and a line in `choice`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.common.checks import check_integer, iteration_count
from delassus.compiler.tracing.trace import computing_in
from delassus.constrained.delassus.proximal import proximal_rows
from delassus.constrained.rows.inputs import ConstraintInputs
from delassus.constrained.rows.problem import Problem
from delassus.constrained.rows.weights import Weighted
from delassus.constraints.mechanism.mechanism import Mechanism, refuse_unilateral
from delassus.dynamics.forces.aba import aba
from delassus.model.links import links_of


class State(NamedTuple):
    """Forces λ (m,) after an iteration and before it, and the residual J a + γ + C λ (m,) of its accelerations."""

    force: Any
    before: Any
    residual: Any


class PrimalState(NamedTuple):
    """As `State`, with intermediate values (nv,) that determine the accelerations."""

    force: Any
    before: Any
    residual: Any
    work: Any


@dataclass(frozen=True)
class Solver:
    """The parts of a solver, and its capabilities.

    Attributes:
        name: Name for users.
        factor: Maps a problem with weights and initial forces to factors and the first state.
        iterate: Maps factors and a state to the next state.
        shifted: Maps factors and r (m,) to those of rows with the target J a + γ + C λ = r instead of zero. If r is the
            least-squares residual of infeasible rows, these become feasible. Later residuals are relative to r.
        finish: Maps factors and a state to the accelerations of all joints, and the forces.
        penalties: Whether it divides by ε, which loses digits for small ε.
        in_joint_space: The solver with the same iterates for mimic joints, where there is no recursion over the tree;
            None if this solver supports them.
    """

    name: str
    factor: Callable[[Weighted, Any], tuple[Any, Any]]
    iterate: Callable[[Any, Any], Any]
    shifted: Callable[[Any, Any], Any]
    finish: Callable[[Any, Any], tuple[Any, Any]]
    penalties: bool
    in_joint_space: Solver | None = None

    def on(self, mechanism: Mechanism) -> Solver:
        """The solver used for a mechanism: itself, or the one in joint space."""
        return self.in_joint_space if self.in_joint_space and links_of(mechanism.model).mimics else self


_SHARES: Final = {("float64", False): 1e-6, ("float64", True): 1e-6, ("float32", False): 1e-6, ("float32", True): 3e-4}
"""ε relative to the rows' mobility, by precision, without and with penalties."""
_MOST_UNROLLED: Final = 10_000


def share_of(solver: Solver) -> float:
    """Default ε relative to the rows' mobility."""
    return _SHARES[computing_in().name, solver.penalties]


def solve(
    solver: Solver, mechanism: Mechanism, state: tuple[Any, Any, Any], iterations: int, rows: ConstraintInputs
) -> tuple[Any, Any]:
    """Accelerations (nv,) and forces (m,) after a fixed number of unrolled iterations, at a state (q, v, tau)."""
    _check_unrolled(iterations)
    refuse_unilateral(mechanism, "constrained dynamics")
    if not mechanism.m:
        return aba(mechanism.model, *state), np.zeros(0)
    solver = solver.on(mechanism)
    epsilon = proximal_rows(mechanism, rows.proximal, share_of(solver))
    problem = Problem.of(mechanism, *state, rows.mask, rows.time, rows.targets)
    factors, iterate = solver.factor(Weighted.of(problem, epsilon), rows.force)
    for _ in range(iterations - 1):
        iterate = solver.iterate(factors, iterate)
    return solver.finish(factors, iterate)


def _check_unrolled(iterations: Any) -> None:
    """Raise an error unless this number of iterations can be unrolled."""
    iteration_count("iterations", iterations)
    remedy = " They are compiled one after the other; constrained_dynamics iterates to a tolerance."
    check_integer("iterations", iterations, 1, _MOST_UNROLLED, code="iterations-out-of-range", remedy=remedy)
