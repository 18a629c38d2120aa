"""The quantities in which tasks and limits are expressed: the state, forces, and torques in terms of x = (a, f)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy

import delassus.numpy as np
from delassus.constrained.rows.jacobian import constraint_bias, constraint_jacobian
from delassus.constraints.mechanism.rows import compliance_of
from delassus.control.reactive.supported import SupportedRobot
from delassus.dynamics.forces.passive import passive_forces
from delassus.dynamics.forces.rnea import rnea
from delassus.dynamics.mass.crba import crba


class Situation(NamedTuple):
    """A robot in a state: M a + c = B u + Jᵀ f, and J a + C f = `held` for supports and constraints, C = diag(`gives`).

    Attributes:
        control: The robot, its supports and limits.
        q, v: (nq,) and (nv,).
        M: (nv, nv) mass matrix.
        c: (nv,) bias forces, including springs and dampers.
        J: (nf, nv) of supports and constraints; zeros for inactive supports.
        held: (nf,) target accelerations [m/s², rad/s²].
        gives: (nf,) compliances of constraints [1/kg, 1/(kg·m²)].
        reference: (references,) the reference.
        places: Slices of its parts.
    """

    control: SupportedRobot
    q: Any
    v: Any
    M: Any
    c: Any
    J: Any
    held: Any
    gives: Any
    reference: Any
    places: Mapping[str, slice]

    @classmethod
    def of(cls, control: SupportedRobot, places: Mapping[str, slice], q: Any, v: Any, reference: Any) -> Situation:
        """Evaluate at a state."""
        model, mechanism = control.model, control.actuated.mechanism
        c = rnea(model, q, v, np.zeros(model.nv)) - passive_forces(model, q, v)
        J, targets = [np.zeros((0, model.nv))], [np.zeros(0)]
        for support in control.supports:
            rows, support_target = support.motion(model, q, v)
            active = np.where(reference[places[f"{support.frame}.active"]][0] > 0.5, 1.0, 0.0)
            J.append(active * rows)
            targets.append(active * support_target)
        if mechanism.m:
            time = reference[places["time"]][0] if control.moves else None
            J.append(constraint_jacobian(mechanism, q, time=time))
            targets.append(-constraint_bias(mechanism, q, v, time=time))
        compliance = numpy.concatenate([numpy.zeros(control.nf - mechanism.m), compliance_of(mechanism)])
        return cls(
            control, q, v, crba(model, q), c, np.concatenate(J), np.concatenate(targets), compliance, reference, places
        )

    def reference_part(self, name: str) -> Any:
        """A part of the reference by name."""
        return self.reference[self.places[name]]

    @property
    def motion(self) -> Any:
        """[M, -Jᵀ] (nv, n): generalized forces of the actuators minus c, per x."""
        return np.concatenate([self.M, -self.J.T], 1)

    @property
    def torque(self) -> tuple[Any, Any]:
        """U (nu, n) and u₀ (nu,): forces of the actuators are U x + u₀."""
        take = self.control.inverse_actuation
        return np.array(take) @ self.motion, np.array(take) @ self.c
