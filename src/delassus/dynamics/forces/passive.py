"""Passive forces: springs and dampers of joints and tendons, gravity compensation, and the medium.

    f = -K δ(q) - D v - Σ r (k δ_t(q) + d r·v) - Σ m Jᵀ g + Σ Jᵀ f_m(v)

δ leads from the rest position of the joints to q, r are the moment arms of a tendon (see `tendons`), m compensated
masses, and f_m forces of a medium on bodies (see `fluid`).

The equation of motion M a + c = tau + Jᵀ λ of `rnea`, `aba` and constrained dynamics does not include passive forces:
add them to tau. `aba(model, q, v, tau + f)` agrees with MuJoCo for `qfrc_applied = tau`. Simulation, control and
linearization include them. Joint friction is not a passive force: it is a constraint, not a function of the state.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

import delassus.numpy as np
from delassus.common.types import Traced
from delassus.compiler.host.kernel import Floats, kernel
from delassus.compiler.tracing.array import contains_traced
from delassus.dynamics.forces.compensation import compensation_energy, compensation_forces, is_compensated
from delassus.dynamics.forces.fluid import fluid_forces
from delassus.dynamics.forces.tendons import TendonState, tendon_states
from delassus.model.model import Model
from delassus.model.parts import Joint
from delassus.model.traced import array_of, has_nonzero


@kernel("(nq),(nv)->(nv)")
def passive_forces(model: Model, q: Traced, v: Traced) -> Floats:
    """-k δ(q) - d v (nv,) [N·m, N]: springs of stiffness k, stretched by δ, and viscous damping d. O(n).

    δ is the displacement of a joint from its rest position to q: the difference of coordinates; for rotations the
    shortest rotation vector; for free and planar joints the displacement of the origin, in the body's axes, and the
    rotation. Forces of tendons act on joints with their moment arms. A medium adds its drag and lift.

    >>> dl.dynamics.passive_forces(dl.load("pendulum"), [0.3], [0.0]).shape
    (1,)
    """
    total = joint_forces(model, q, v)
    for tendon in tendon_states(model, q, v):
        total = tendon.add_force(total, tendon.force)
    if is_compensated(model):
        total = total + compensation_forces(model, q)
    return total + fluid_forces(model, q, v) if model.medium.is_felt else total


def joint_forces(model: Model, q: Any, v: Any) -> Any:
    """The forces (nv,) of springs and dampers of joints."""
    total = np.zeros(model.nv)
    for joint, i, j in zip(model.joints, model.q_starts, model.v_starts, strict=True):
        if not (any(joint.stiffness) or has_nonzero(joint.damping)):
            continue
        ratio = joint.mimic.ratio if joint.mimic else 1.0
        joint_slice = slice(j, j + joint.kind.nv)
        force = np.zeros(joint.kind.nv)
        if any(joint.stiffness):
            force = force - numpy.array(joint.stiffness) * _stretch(joint, _coordinates(joint, q, i))
        if has_nonzero(joint.damping):
            force = force - array_of(joint.damping) * (ratio * v[joint_slice])
        total[joint_slice] = total[joint_slice] + ratio * force
    return total


@kernel("(nq)->()")
def spring_energy(model: Model, q: Traced) -> Floats:
    """½ Σ k δ(q)² [J]: the energy of springs of joints and tendons, minus the potential energy of compensated masses.

    >>> float(dl.dynamics.spring_energy(dl.load("pendulum"), [0.3]))
    0.0
    """
    total = np.array(0.0)
    for joint, i in zip(model.joints, model.q_starts, strict=True):
        if any(joint.stiffness):
            stretch = _stretch(joint, _coordinates(joint, q, i))
            total = total + 0.5 * (numpy.array(joint.stiffness) @ (stretch * stretch))
    for tendon in tendon_states(model, q, np.zeros(model.nv)):
        total = total + 0.5 * tendon.stiffness * tendon.stretch * tendon.stretch
    return total + compensation_energy(model, q) if is_compensated(model) else total


class PassiveElements(NamedTuple):
    """Springs and dampers of a state, with the values that an implicit time step needs.

    Attributes:
        force: f (nv,) of `passive_forces` [N·m, N].
        stiffness: (nv,) stiffness of joints, for each velocity [N·m/rad, N/m].
        damping: (nv,) damping of joints, for each velocity [N·m·s/rad, N·s/m].
        tendons: Tendons with a spring or a damper, which couple joints.
    """

    force: Any
    stiffness: NDArray[numpy.float64]
    damping: NDArray[numpy.float64]
    tendons: list[TendonState]

    @classmethod
    def of(cls, model: Model, q: Any, v: Any) -> PassiveElements:
        """The passive elements of a model in a state."""
        force = passive_forces.function(model, q, v)
        return cls(force, *joint_gains(model), tendon_states(model, q, v))

    def stiffness_times(self, v: Any) -> Any:
        """K v (nv,): minus the rate of the spring forces of joints and tendons."""
        product = self.stiffness * v
        for tendon in self.tendons:
            product = tendon.add_force(product, tendon.stiffness * tendon.rate_at(v))
        return product


def joint_gains(model: Model) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64]]:
    """Stiffness and damping (nv,) of joints; those of mimic joints are added to the joints that they follow."""
    stiffness, damping = numpy.zeros(model.nv), numpy.zeros(model.nv)  # type: Any, Any
    if any(contains_traced(joint.damping) for joint in model.joints):
        damping = np.zeros(model.nv)
    for joint, start in zip(model.joints, model.v_starts, strict=True):
        ratio = joint.mimic.ratio if joint.mimic else 1.0
        at = slice(start, start + joint.kind.nv)
        for total, values in ((stiffness, joint.stiffness), (damping, joint.damping)):
            if has_nonzero(values):
                total[at] = total[at] + ratio * ratio * array_of(values)
    return stiffness, damping


def _coordinates(joint: Joint, q: Any, start: int) -> Any:
    coordinates = q[start : start + joint.kind.nq]
    return joint.mimic.ratio * coordinates + joint.mimic.offset if joint.mimic else coordinates


def _stretch(joint: Joint, q: Any) -> Any:
    """The displacement δ (nv,) of a joint from its rest position to q (nq,)."""
    rest_position = numpy.array(joint.rest or joint.kind.neutral)
    stretches = [
        motion.stretch(rest_position[i : i + motion.nq], q[i : i + motion.nq]) for motion, i, _ in joint.kind.parts
    ]
    return np.concatenate(stretches)
