"""Position errors of rows relative to their references, and reference velocities."""

from __future__ import annotations

from typing import Any

import delassus.numpy as np
from delassus.common.types import Traced
from delassus.compiler.differentiation.derivatives import jacobian
from delassus.compiler.host.kernel import Floats, kernel
from delassus.constrained.rows.jacobian import constraint_jacobian
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.dynamics.kinematics.manifold import rates_per_velocity


@kernel("(nq)->(m)", inputs={"time": "()"})
def constraint_error(mechanism: Mechanism, q: Traced, *, time: Traced = None) -> Floats:
    """e (m,) [m, rad]: the position error of every row relative to its reference.

    Near e = 0 its rate is J v minus the velocity of the reference, except for a `Point` or `Weld` with rows left out,
    whose axes turn (see `Constraint.holonomic`). Rows without a reference, such as those of `Point("foot")`, have zero
    error. `time` [s] (input at run time) is required if references move.

    >>> loop = dl.Mechanism(dl.load("four_bar"))
    >>> bool(np.abs(dl.constrained.constraint_error(loop, loop.model.posture("home"))).max() < 1e-9)
    True
    """
    return errors_of(mechanism, _resting(mechanism, q, time))


def errors_of(mechanism: Mechanism, motions: LinkMotions) -> Any:
    """e (m,) at a state."""
    e = np.zeros(mechanism.m)
    for constraint, at in zip(mechanism.constraints, mechanism.row_ranges(), strict=True):
        if constraint.has_reference:
            e[at] = constraint.position_error(motions)
    return e


def error_derivative(mechanism: Mechanism, q: Any, time: Any = None) -> Any:
    """∂e/∂δ (m, nv) for q ⊕ δ, exact at any q.

    Rows without a reference have their row of J, which keeps them constant; rows on velocities only are zero.
    """
    by_coordinates = jacobian(lambda q: constraint_error(mechanism, q, time=time))(q)
    derivative = by_coordinates @ rates_per_velocity(mechanism.model, q)
    J = constraint_jacobian(mechanism, q, time=time)
    for constraint, at in zip(mechanism.constraints, mechanism.row_ranges(), strict=True):
        if not constraint.has_reference and constraint.holds_positions:
            derivative[at] = J[at]
    return derivative


def velocities_asked(mechanism: Mechanism, q: Any, time: Any = None) -> Any:
    """w (m,) [m/s, rad/s]: the velocities J v that follow the references; zero for references at rest."""
    motions = _resting(mechanism, q, time)
    w = np.zeros(mechanism.m)
    for constraint, at in zip(mechanism.constraints, mechanism.row_ranges(), strict=True):
        moving = constraint.reference_velocity(motions)
        if moving is not None:
            w[at] = moving
    return w


def _resting(mechanism: Mechanism, q: Any, time: Any) -> LinkMotions:
    """The links at a configuration; neither errors nor references depend on velocities."""
    return LinkMotions.of(mechanism.model, q, np.zeros(mechanism.nv), time)
