"""Projection of configuration and velocity onto the constraints, which removes drift.

Errors of position and velocity grow when accelerations are integrated, and Baumgarte's gains reduce them only at the
cost of stiffness. A projection after each step removes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.common.checks import iteration_count, one_of
from delassus.common.types import Traced
from delassus.compiler.host.inputs import Bundle, Input
from delassus.compiler.host.kernel import kernel
from delassus.compiler.tracing.flow.control import while_loop
from delassus.constrained.delassus.scales import row_mobilities, row_sizes
from delassus.constrained.projection.least_motion import LeastMotion
from delassus.constrained.projection.svd_projection import project_by_svd
from delassus.constrained.rows.inputs import TIME, tolerance_input
from delassus.constrained.rows.jacobian import constraint_jacobian
from delassus.constrained.rows.locked import locked_coordinates, locked_velocities
from delassus.constrained.rows.references import constraint_error, error_derivative, velocities_asked
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.dynamics.kinematics.manifold import difference, integrate
from delassus.dynamics.tree.check import check_inertias

METHODS: Final = ("mass", "svd")

_PROXIMAL_ITERATIONS: Final = 20
"""Maximum number of iterations per correction; two or three are typical."""

_SLOW: Final = 0.5
"""A correction that leaves a larger fraction of the error is extrapolated; where J loses rank, a quarter remains."""


class Projection(NamedTuple):
    """Configurations (…, nq) [rad, m] and velocities (…, nv) [rad/s, m/s] that satisfy the constraints."""

    q: Any
    v: Any


class ProjectionGoal(NamedTuple):
    """Time, tolerance and initial configuration of a projection.

    Attributes:
        time: (…) [s] time of moving references, required if there are any.
        tolerance: (…) largest errors, relative to the robot's length or a radian, and to the velocities that cancel in
            the rows; "svd" ignores it.
        linearization: Configurations q₀ (…, nq) [rad, m] at which the constraints are linearized instead of q:
            e(q₀) + J(q₀) (q' ⊖ q₀) = 0, with q' nearest to q: the last configuration that satisfied them, or a
            desired one; its effect on q' is of second order. "svd" also projects velocities by J(q₀); "mass" iterates
            from q' to the tolerance, and projects velocities at the result.

    >>> dl.constrained.ProjectionGoal(tolerance=1e-10).tolerance
    1e-10
    """

    time: Any = None
    tolerance: Any = 1e-12
    linearization: Any = None


USUAL: Final = ProjectionGoal()


@kernel(
    "(nq),(nv)->(nq),(nv)",
    inputs={
        "goal": Bundle(ProjectionGoal, time=TIME, tolerance=tolerance_input(1e-12), linearization=Input("(nq)")),
    },
    result=Projection,
)
def project(
    mechanism: Mechanism,
    q: Traced,
    v: Traced,
    *,
    locked: Iterable[str] = (),
    method: str = "mass",
    iterations: int = 10,
    goal: ProjectionGoal = USUAL,
) -> Projection:
    """The nearest configuration and velocity that satisfy the constraints, of one state or a batch.

    "mass" measures distances with the mass matrix. The result is independent of units, and heavy parts move least. If
    references rest, kinetic energy decreases by no more than necessary and never increases. It iterates to the
    tolerance. "svd" is one step by singular values in the Euclidean metric of q and v, as in textbooks: its result
    depends on the unit of length, and errors of second order remain. Choose it for comparisons, or for a mechanism
    without inertias.

    Args:
        mechanism: The robot and its constraints.
        q: Configurations (…, nq) [rad, m] near the constraints; use `assemble` from afar.
        v: Velocities (…, nv) [rad/s, m/s].
        locked: Joints whose coordinates and velocities do not change, by name or pattern, such as "crank*"; the others
            adapt.
        method: "mass" or "svd".
        iterations: Maximum number of corrections of the configuration; "svd" makes one.
        goal: Time, tolerance and linearization of the constraints; its fields are also keywords: time, tolerance,
            linearization.

    >>> loop = dl.Mechanism(dl.load("four_bar"))
    >>> q, v = dl.project(loop, loop.model.posture("home") + 1e-3, np.zeros(3))
    >>> bool(np.abs(dl.constrained.constraint_error(loop, q)).max() < 1e-11)
    True
    """
    time, tolerance, linearization = goal
    one_of("method", method, METHODS, code="unknown-method")
    iteration_count("iterations", iterations)
    locked_dofs = locked_velocities(mechanism.model, locked)
    if not mechanism.m:
        return Projection(q, v)
    if method == "svd":
        result = project_by_svd(mechanism, q, v, locked_dofs, time, linearization)
    else:
        start = (
            q
            if linearization is None
            else _project_linearized(mechanism, linearization, q, locked_dofs, time, tolerance)
        )
        result = project_by_mass(mechanism, start, v, locked_dofs, time, tolerance, iterations)[:2]
    return Projection(_keep_locked(mechanism, locked_dofs, result[0], q), result[1])


def project_by_mass(
    mechanism: Mechanism,
    q: Any,
    v: Any,
    locked: tuple[int, ...] = (),
    time: Any = None,
    tolerance: Any = 1e-12,
    iterations: int = 10,
) -> tuple[Any, Any, Any]:
    """Configuration (nq,) and velocity (nv,) nearest in the metric of M; `locked` are indices of velocities.

    The third result is the remaining error, relative to the robot's length or to a radian.

    Positions by Gauss–Newton on the joints' manifolds, q ← q ⊕ δ with the smallest δ such that J δ = -e; at each q, the
    smallest change of v that gives the rows their reference velocities. Both use the same factors (`least_motion`). A
    state within the tolerance costs one factorization, as a step of constrained dynamics does; the drift of a step
    usually costs two. Iterations end when the errors stop decreasing, and return the best iterate.

    Near poses where J loses rank, the proximal ε exceeds the mobility of a row, and a correction removes only a
    fraction 1 - r of the error, r the ratio of successive errors. The next correction is then extrapolated by 1/(1 -
    r); one more may be needed for its curvature error.
    """
    check_inertias(mechanism.model)
    sizes, unit = numpy.array(row_sizes(mechanism)), numpy.sqrt(row_mobilities(mechanism))
    holonomic = _rows_are_rates(mechanism)

    def correct(carry: Any) -> Any:
        trial, best, least, _, lengthened = carry
        e = constraint_error(mechanism, trial, time=time)
        J = constraint_jacobian(mechanism, trial, time=time)
        target = velocities_asked(mechanism, trial, time)
        velocity_error = J @ v - target
        at_velocities = at_positions = LeastMotion.of(mechanism, trial, J, locked)
        if not holonomic:
            at_positions = LeastMotion.of(mechanism, trial, error_derivative(mechanism, trial, time), locked)
        size = np.max(np.abs(e) / sizes)
        drift = np.where(size > tolerance, e, 0.0)
        # Solve each to a tenth of the tolerance: the cost is small.
        to_q = at_positions.solve(drift, 0.1 * tolerance * sizes, _PROXIMAL_ITERATIONS).change
        moving = np.max((np.abs(J) @ np.abs(v) + np.abs(target)) / unit) * unit
        to_v = at_velocities.solve(velocity_error, 0.1 * tolerance * moving, _PROXIMAL_ITERATIONS).change
        better = size < least
        waits = ~better & lengthened
        ratio = np.where(better, size / least, 0.0)
        longer = np.where(ratio > _SLOW, 1.0 / (1.0 - ratio), 1.0)
        result = (np.where(better, trial, best[0]), np.where(better, v + to_v, best[1]))
        further = integrate(mechanism.model, trial, longer * to_q)
        return further, result, np.where(better, size, least), np.where(better | waits, size, 0.0), ratio > _SLOW

    # A state with NaN does not improve: its velocity stays NaN.
    nothing = (q, np.full(mechanism.nv, np.nan))
    start = (q, nothing, np.array(np.inf), np.array(np.inf), np.array(False))
    _, best, least, _, _ = while_loop(lambda carry: carry[3] > tolerance, correct, start, iterations + 1)
    return best[0], best[1], least


def _rows_are_rates(mechanism: Mechanism) -> bool:
    """Whether J is the derivative of e. It is not if rows are left out, or constrain only velocities: corrections of
    position then need factors of their own.
    """
    return all(c.holds_positions and (c.holonomic or not c.has_reference) for c in mechanism.constraints)


def _project_linearized(
    mechanism: Mechanism, q0: Any, q: Any, locked: tuple[int, ...], time: Any, tolerance: Any
) -> Any:
    """The configuration (nq,) nearest to q, by M(q₀), that satisfies the constraints linearized at q₀.

    q₀ ⊕ (d + δ) with d = q ⊖ q₀ and the smallest δ such that e(q₀) + J (d + δ) = 0.
    """
    check_inertias(mechanism.model)
    derivative = constraint_jacobian if _rows_are_rates(mechanism) else error_derivative
    F = derivative(mechanism, q0, time=time)
    d = difference(mechanism.model, q0, q)
    error = constraint_error(mechanism, q0, time=time) + F @ d
    sizes = numpy.array(row_sizes(mechanism))
    change = LeastMotion.of(mechanism, q0, F, locked).solve(error, 0.1 * tolerance * sizes, _PROXIMAL_ITERATIONS).change
    return integrate(mechanism.model, q0, d + change)


def _keep_locked(mechanism: Mechanism, locked: tuple[int, ...], result: Any, q: Any) -> Any:
    """A configuration (nq,) with the coordinates of locked joints unchanged; integration would round them."""
    coordinates = locked_coordinates(mechanism.model, locked)
    return np.stack([q[k] if k in coordinates else result[k] for k in range(mechanism.nq)]) if coordinates else result
