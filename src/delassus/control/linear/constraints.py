"""Constraints of a robot at a linearization point: their residuals and derivatives."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import delassus.numpy as dnp
from delassus.compiler import jacobian, jvp
from delassus.compiler.host.kernel import kernel
from delassus.constrained.delassus.scales import row_sizes
from delassus.constrained.rows.jacobian import constraint_jacobian
from delassus.constrained.rows.references import constraint_error, velocities_asked
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.constraints.mechanism.rows import compliance_of
from delassus.dynamics.kinematics.manifold import coordinate_rates
from delassus.errors import BadArgument

Floats = NDArray[np.float64]

CLOSED: Final = 1e-3
"""Largest accepted constraint violation of states, relative to reference sizes, and to the velocities that cancel."""


class LinearizationError(BadArgument):
    """The dynamics cannot be linearized at this state."""


def check_constraints(mechanism: Mechanism, q: Floats, v: Floats, inputs: dict[str, Any]) -> None:
    """Raise an error for states that violate the constraints."""
    if not mechanism.m or not q.size:
        return
    rigid = compliance_of(mechanism) == 0.0  # compliant rows may have any error
    position_error, velocity_error, velocity_scale = (x * rigid for x in constraint_errors(mechanism, q, v, **inputs))
    if np.max(np.abs(position_error) / row_sizes(mechanism)) > CLOSED:
        raise LinearizationError(
            f"a configuration violates the constraints by {np.max(np.abs(position_error)):.3g} m or rad; dl.assemble "
            "closes them.",
            code="constraints-violated",
        )
    if np.any(np.abs(velocity_error) > CLOSED * np.max(velocity_scale, -1, keepdims=True)):
        raise LinearizationError(
            f"a velocity violates the constraints by {np.max(np.abs(velocity_error)):.3g} m/s or rad/s; dl.project "
            "computes one that satisfies them.",
            code="constraints-violated",
        )


@kernel("(nq),(nv)->(m),(m),(m)", inputs={"time": "()"})
def constraint_errors(mechanism: Mechanism, q: Any, v: Any, *, time: Any = None) -> tuple[Any, Any, Any]:
    """Position errors of rows (m,), J v minus reference velocities (m,), and the magnitudes that cancel in it (m,)."""
    J, targets = constraint_jacobian(mechanism, q, time=time), velocities_asked(mechanism, q, time)
    meeting = dnp.abs(J) @ dnp.abs(v) + dnp.abs(targets)
    return constraint_error(mechanism, q, time=time), J @ v - targets, meeting


@kernel("(nq),(nv)->(m,nv),(m,nv)", inputs={"time": "()"})
def constraint_rates(mechanism: Mechanism, q: Any, v: Any, *, time: Any = None) -> tuple[Any, Any]:
    """∂(J v)/∂q (m, nv) along tangent vectors, and J̇ (m, nv)."""

    def rows(step: Any) -> Any:
        displaced = q + coordinate_rates(mechanism.model, q, step)
        return constraint_jacobian(mechanism, displaced, time=time)

    zero = dnp.zeros(mechanism.nv)
    return jacobian(lambda step: rows(step) @ v)(zero), jvp(rows, (zero,), (v,))[1]
