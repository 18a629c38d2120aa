"""External forces: wrenches on named frames, and forces on joints."""

from __future__ import annotations

from typing import Any, NamedTuple

import delassus.numpy as np
from delassus.dynamics.kinematics.jacobians import frame_jacobian
from delassus.model.model import Model
from delassus.step.actuators.forces import Forces


def push_frames(model: Model, frames: tuple[str, ...], q: Any, wrench: Any, forces: Forces) -> Forces:
    """Add wrenches (frames, 6) at the origins of frames to the forces of a step: τ + Σ Jᵀ w.

    A wrench is force [N], then torque [N·m], in the world's axes. It is explicit: evaluated at the start of the step.
    """
    force = forces.force
    for k, frame in enumerate(frames):
        J = frame_jacobian.function(model, q, frame=frame, reference="LOCAL_WORLD_ALIGNED")
        force = force + np.array(wrench[k]) @ J
    return forces._replace(force=force)


class JointForces(NamedTuple):
    """Additional forces on joints, with stiffness and damping for their implicit terms.

    Attributes:
        force: (nv,) at the beginning of the step [N·m, N].
        stiffness: (nv,) -∂force/∂q of each joint, zero or more [N·m/rad, N/m].
        damping: (nv,) -∂force/∂v of each joint, zero or more [N·m·s/rad, N·s/m].
    """

    force: Any
    stiffness: Any
    damping: Any


def add_joint_forces(forces: Forces, joint: JointForces, v: Any, h: Any) -> Forces:
    """Add forces on joints to the forces of a step, implicit like springs and dampers of the model."""
    return forces._replace(
        force=forces.force + joint.force - h * joint.stiffness * v,
        added=forces.added + h * joint.damping + h * h * joint.stiffness,
    )
