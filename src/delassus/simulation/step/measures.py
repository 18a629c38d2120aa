"""What is told of states after they were simulated: energy, and how far loops are open."""

from __future__ import annotations

from typing import Any

import numpy

from delassus.compiler.host.kernel import Floats, kernel
from delassus.constrained.rows.references import constraint_error
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.dynamics.forces.passive import spring_energy
from delassus.dynamics.mass.energy import kinetic_energy, potential_energy
from delassus.model.model import Model


@kernel("(nq),(nv)->()")
def energy(model: Model, q: Any, v: Any) -> Floats:
    """Kinetic and potential energy, and that of springs in the joints [J]."""
    return kinetic_energy(model, q, v) + potential_energy(model, q) + spring_energy(model, q)


def drift(mechanism: Mechanism, q: Any, time: Any) -> Any:
    """(times, …) the largest error of a constraint [m, rad], of configurations (times, …, nq) at times (times,)."""
    if not mechanism.m:
        return numpy.zeros(q.shape[:-1])
    moments = numpy.reshape(time, (-1, *(1,) * (q.ndim - 2)))
    return numpy.abs(constraint_error(mechanism, q, time=moments)).max(-1)
