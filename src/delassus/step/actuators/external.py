"""External forces: wrenches on named frames."""

from __future__ import annotations

from typing import Any

import delassus.numpy as np
from delassus.dynamics.kinematics.jacobians import frame_jacobian
from delassus.model.model import Model
from delassus.step.actuators.forces import Forces


def push_frames(model: Model, frames: tuple[str, ...], q: Any, wrench: Any, forces: Forces) -> Forces:
    """The forces of a step with wrenches (frames, 6) at the origins of frames: τ + Σ Jᵀ w.

    A wrench is force [N], then torque [N·m], in the world's axes. It is that of the step's beginning: explicit.
    """
    force = forces.force
    for k, frame in enumerate(frames):
        J = frame_jacobian.function(model, q, frame=frame, reference="LOCAL_WORLD_ALIGNED")
        force = force + np.array(wrench[k]) @ J
    return forces._replace(force=force)
