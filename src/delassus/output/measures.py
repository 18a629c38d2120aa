"""Quantities computed from recorded states: energy, and position and velocity errors of constraints."""

from __future__ import annotations

from typing import Any

from delassus.compiler.host.kernel import Floats, kernel
from delassus.constrained.rows.inputs import TIME
from delassus.constrained.rows.jacobian import constraint_jacobian
from delassus.constrained.rows.references import velocities_asked
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.dynamics.forces.passive import spring_energy
from delassus.dynamics.mass.energy import kinetic_energy, potential_energy
from delassus.model.model import Model


@kernel("(nq),(nv)->()")
def mechanical_energy(model: Model, q: Any, v: Any) -> Floats:
    """Kinetic, gravitational and elastic energy of joints and tendons [J]."""
    return kinetic_energy(model, q, v) + potential_energy(model, q) + spring_energy(model, q)


@kernel("(nq),(nv)->(m)", inputs={"time": TIME})
def velocity_error(mechanism: Mechanism, q: Any, v: Any, *, time: Any = None) -> Floats:
    """J v - w (m,) [m/s, rad/s]: the velocity of each row minus that of its reference."""
    return constraint_jacobian(mechanism, q, time=time) @ v - velocities_asked(mechanism, q, time)
