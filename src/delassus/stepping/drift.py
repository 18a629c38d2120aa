"""How fast states leave the constraints."""

from __future__ import annotations

from typing import Any

from delassus.compiler.host.kernel import Floats, kernel
from delassus.constrained.rows.inputs import TIME
from delassus.constrained.rows.jacobian import constraint_jacobian
from delassus.constrained.rows.references import velocities_asked
from delassus.constraints.mechanism.mechanism import Mechanism


@kernel("(nq),(nv)->(m)", inputs={"time": TIME})
def velocity_error(mechanism: Mechanism, q: Any, v: Any, *, time: Any = None) -> Floats:
    """J v - w (m,) [m/s, rad/s]: the velocity of each row against that of its reference."""
    return constraint_jacobian(mechanism, q, time=time) @ v - velocities_asked(mechanism, q, time)
