"""Projection of configuration and velocity onto the constraints, which removes drift.

Integration of accelerations lets the errors of position and velocity grow, and Baumgarte's gains only trade them for
stiffness. A projection after each step removes them.
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
"""In each correction, at most; two or three are usual."""

_SLOW: Final = 0.5
"""A correction that leaves a larger share of the error is too short; where J loses rank, a quarter is left."""


class Projection(NamedTuple):
    """Configurations (…, nq) [rad, m] and velocities (…, nv) [rad/s, m/s] that meet the constraints."""

    q: Any
    v: Any


class ProjectionGoal(NamedTuple):
    """Time, tolerance and initial configuration of a projection.

    Attributes:
        time: (…) [s] what references move with, needed where they do.
        tolerance: (…) what errors may remain, as a share of the robot's length or of a radian, and of the velocities
            that cancel in the rows; "svd" does not look.
        linearization: Configurations q₀ (…, nq) [rad, m] in which the constraints are linearized, instead of q itself:
            e(q₀) + J(q₀) (q' ⊖ q₀) = 0, and of all such q' the one nearest to q. It may be the last configuration
            that met them, or a desired one; q' depends on it by terms of second order. "svd" projects velocities by
            J(q₀), too; "mass" goes on from q' to the tolerance, and projects velocities where it ends.

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
    """The configuration and velocity nearest to some that meet the constraints, of one state or a batch.

    "mass" measures distances by the mass matrix: nothing depends on units, heavy parts move least, and velocities lose
    no more kinetic energy than they have to and gain none, as long as references rest. It is iterated to the tolerance.
    "svd" is one step by singular values in the plain (Euclidean) metric of q and v, as in textbooks: its result depends
    on whether lengths are in meters or millimeters, and errors of second order are left. Choose it to compare with, or
    for a mechanism without inertias.

    Args:
        mechanism: The robot and its constraints.
        q: Configurations (…, nq) [rad, m], not far from meeting the constraints: `assemble` leads there from afar.
        v: Velocities (…, nv) [rad/s, m/s].
        locked: Joints whose coordinates and velocities stay as they are, by name or pattern, such as "crank*": the
            others follow them.
        method: "mass" or "svd".
        iterations: How often the configuration is corrected at most; "svd" does it once.
        goal: When, how well and near which configuration constraints are met; its fields are keywords, too: time,
            tolerance, linearization.

    >>> loop = dl.Mechanism(dl.load("four_bar"))
    >>> q, v = dl.project(loop, loop.model.posture("home") + 1e-3, np.zeros(3))
    >>> bool(np.abs(dl.constrained.constraint_error(loop, q)).max() < 1e-11)
    True
    """
    time, tolerance, linearization = goal
    one_of("method", method, METHODS, code="unknown-method")
    iteration_count("iterations", iterations)
    held = locked_velocities(mechanism.model, locked)
    if not mechanism.m:
        return Projection(q, v)
    if method == "svd":
        result = project_by_svd(mechanism, q, v, held, time, linearization)
    else:
        start = q if linearization is None else _project_linearized(mechanism, linearization, q, held, time, tolerance)
        result = project_by_mass(mechanism, start, v, held, time, tolerance, iterations)[:2]
    return Projection(_keep_locked(mechanism, held, result[0], q), result[1])


def project_by_mass(
    mechanism: Mechanism,
    q: Any,
    v: Any,
    locked: tuple[int, ...] = (),
    time: Any = None,
    tolerance: Any = 1e-12,
    iterations: int = 10,
) -> tuple[Any, Any, Any]:
    """Configuration (nq,) and velocity (nv,) of least distance in the metric of M; `locked` velocities by numbers.

    The third is how far the configuration is off after all, as a share of the robot's length or of a radian.

    Positions by Gauss and Newton on the joints' manifolds, q ← q ⊕ δ with the least motion δ that J δ = -e; at each q,
    the least change of v so that J v is the velocity of the references. Both need the same factors (`least_motion`):
    a state that is within the tolerance costs one factorization, as a step of constrained dynamics does, and drift of a
    step usually two. It ends when errors no longer become smaller, with the best that was found.

    Near poses where J loses rank, the proximal ε outweighs what a row yields, and a correction takes only a share 1 - r
    of the error off, r the ratio of two errors in a row. The next correction is then 1/(1 - r) times as long, and one
    more may take off what that adds by curvature.
    """
    check_inertias(mechanism.model)
    sizes, unit = numpy.array(row_sizes(mechanism)), numpy.sqrt(row_mobilities(mechanism))
    holonomic = _rows_are_rates(mechanism)

    def correct(carry: Any) -> Any:
        trial, best, least, _, lengthened = carry
        e = constraint_error(mechanism, trial, time=time)
        J = constraint_jacobian(mechanism, trial, time=time)
        asked = velocities_asked(mechanism, trial, time)
        off = J @ v - asked
        at_velocities = at_positions = LeastMotion.of(mechanism, trial, J, locked)
        if not holonomic:
            at_positions = LeastMotion.of(mechanism, trial, error_derivative(mechanism, trial, time), locked)
        size = np.max(np.abs(e) / sizes)
        drift = np.where(size > tolerance, e, 0.0)
        # Each to a tenth of what may remain: corrections are not the place to be sparing.
        to_q = at_positions.solve(drift, 0.1 * tolerance * sizes, _PROXIMAL_ITERATIONS).change
        moving = np.max((np.abs(J) @ np.abs(v) + np.abs(asked)) / unit) * unit
        to_v = at_velocities.solve(off, 0.1 * tolerance * moving, _PROXIMAL_ITERATIONS).change
        better = size < least
        waits = ~better & lengthened
        ratio = np.where(better, size / least, 0.0)
        longer = np.where(ratio > _SLOW, 1.0 / (1.0 - ratio), 1.0)
        result = (np.where(better, trial, best[0]), np.where(better, v + to_v, best[1]))
        further = integrate(mechanism.model, trial, longer * to_q)
        return further, result, np.where(better, size, least), np.where(better | waits, size, 0.0), ratio > _SLOW

    # What is not a number is no better than what there was: its velocity stays none.
    nothing = (q, np.full(mechanism.nv, np.nan))
    start = (q, nothing, np.array(np.inf), np.array(np.inf), np.array(False))
    _, best, least, _, _ = while_loop(lambda carry: carry[3] > tolerance, correct, start, iterations + 1)
    return best[0], best[1], least


def _rows_are_rates(mechanism: Mechanism) -> bool:
    """Whether J is the derivative of e. It is not where rows are left out, or are on velocities alone: corrections of
    position then need factors of their own.
    """
    return all(c.holds_positions and (c.holonomic or not c.has_reference) for c in mechanism.constraints)


def _project_linearized(
    mechanism: Mechanism, q0: Any, q: Any, locked: tuple[int, ...], time: Any, tolerance: Any
) -> Any:
    """The configuration (nq,) nearest to q, by M(q₀), that meets the constraints as they are linearized in q₀.

    q₀ ⊕ (d + δ) with d = q ⊖ q₀ and the least δ that e(q₀) + J (d + δ) = 0.
    """
    check_inertias(mechanism.model)
    derivative = constraint_jacobian if _rows_are_rates(mechanism) else error_derivative
    F = derivative(mechanism, q0, time=time)
    d = difference(mechanism.model, q0, q)
    off = constraint_error(mechanism, q0, time=time) + F @ d
    sizes = numpy.array(row_sizes(mechanism))
    change = LeastMotion.of(mechanism, q0, F, locked).solve(off, 0.1 * tolerance * sizes, _PROXIMAL_ITERATIONS).change
    return integrate(mechanism.model, q0, d + change)


def _keep_locked(mechanism: Mechanism, locked: tuple[int, ...], result: Any, q: Any) -> Any:
    """A configuration (nq,) with the coordinates of locked joints as they were: integration would round them."""
    kept = locked_coordinates(mechanism.model, locked)
    return np.stack([q[k] if k in kept else result[k] for k in range(mechanism.nq)]) if kept else result
