"""Tasks for joints, frames, the center of mass, momentum, support forces and nominal values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy

import delassus.numpy as np
from delassus.common.checks import elements
from delassus.common.names import UnknownName
from delassus.common.types import Traced
from delassus.control.operational.task import CenterOfMassTask, FrameTask, MomentumTask, PostureTask
from delassus.control.reactive.situation import Situation
from delassus.control.reactive.supports import ReactiveError
from delassus.control.reactive.task import Fields, Follow, Sizes, Task, Term, Weighted, frozen_weight
from delassus.dynamics.kinematics.kinematics import frame_in_world
from delassus.dynamics.mass.centroid import center_of_mass
from delassus.errors import short
from delassus.model.joints import Free
from delassus.model.model import Model
from delassus.spatial.quaternions import quaternion_from_rotation


@dataclass(frozen=True)
class FollowPosture(Follow):
    """Joint positions: `configuration` (nq,), `velocity` and `acceleration` (nv,).

    Attributes:
        joints: Names or patterns; a free base is never included.

    >>> dl.control.FollowPosture(stiffness=20.0).joints
    ('*',)
    """

    joints: Any = "*"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "joints", elements(self.joints))

    def quantity(self, model: Model) -> PostureTask:
        """The positions of its joints."""
        parts = [
            joint.name for joint in PostureTask(self.joints).selected_joints(model) if not isinstance(joint.kind, Free)
        ]
        if not parts:
            raise UnknownName(
                "joint", ", ".join(self.joints), [joint.name for joint in model.joints], code="unknown-joint"
            )
        return PostureTask(tuple(parts))

    def numbers(self, model: Model) -> list[int]:
        """The velocities of its joints."""
        return self.quantity(model).velocities(model)

    def rest(self, model: Model, q: Traced, sizes: Sizes) -> Fields:
        """The configuration q as the target, at rest."""
        return {"configuration": q, "velocity": np.zeros(model.nv), "acceleration": np.zeros(model.nv)}

    def target(self, s: Situation) -> Traced:
        """The target configuration (nq,)."""
        return s.reference_part(f"{self.name}.configuration")


@dataclass(frozen=True)
class FollowFrame(Follow):
    """A frame: its `position` (3,), `rotation` (4,) as a quaternion, `velocity` and `acceleration` (6,) in world axes.

    Attributes:
        frame: The frame or its name; by default the name of the task.
        rows: Selected rows of x, y, z and the rotations rx, ry, rz: "position", "rotation", "all", names as in "x y
            rz", or indices from 0 to 5.

    >>> dl.control.FollowFrame(frame="trunk", rows="rotation").rows
    ('rx', 'ry', 'rz')
    """

    frame: Any = ""
    rows: Any = "all"

    def __post_init__(self) -> None:
        object.__setattr__(self, "frame", _name_of(self.frame) or self.name)
        super().__post_init__()
        object.__setattr__(self, "rows", FrameTask(self.frame, rows=self.rows).rows)

    @property
    def _default_name(self) -> str:
        return str(self.frame)

    def quantity(self, model: Model) -> FrameTask:
        """The pose of the frame."""
        return FrameTask(self.frame, rows=self.rows)

    def numbers(self, model: Model) -> list[int]:
        """The selected rows."""
        return self.quantity(model).places

    def rest(self, model: Model, q: Traced, sizes: Sizes) -> Fields:
        """The current pose, at rest."""
        R, p = frame_in_world(model, q, self.frame)
        return {
            "position": p,
            "rotation": quaternion_from_rotation(R),
            "velocity": np.zeros(6),
            "acceleration": np.zeros(6),
        }

    def target(self, s: Situation) -> Traced:
        """Position and quaternion."""
        return np.concatenate([s.reference_part(f"{self.name}.position"), s.reference_part(f"{self.name}.rotation")])


@dataclass(frozen=True)
class FollowCenterOfMass(Follow):
    """The center of mass: its `position`, `velocity` and `acceleration` (3,) in the world.

    >>> dl.control.FollowCenterOfMass(weight=10.0, stiffness=100.0).damping
    20.0
    """

    @property
    def _default_name(self) -> str:
        return "com"

    def quantity(self, model: Model) -> CenterOfMassTask:
        """The center of mass."""
        return CenterOfMassTask()

    def rest(self, model: Model, q: Traced, sizes: Sizes) -> Fields:
        """The current position, at rest."""
        return {"position": center_of_mass.function(model, q), "velocity": np.zeros(3), "acceleration": np.zeros(3)}

    def target(self, s: Situation) -> Traced:
        """The target position (3,) [m]."""
        return s.reference_part(f"{self.name}.position")


@dataclass(frozen=True)
class FollowMomentum(Follow):
    """Linear and angular momentum about the center of mass: `momentum` and `rate` (6,); damping reduces errors.

    >>> dl.control.FollowMomentum(weight=0.1).weight
    0.1
    """

    damping: float | None = 0.0

    def quantity(self, model: Model) -> MomentumTask:
        """The momentum about the center of mass."""
        return MomentumTask()

    @property
    def _rates(self) -> tuple[str, str]:
        return "momentum", "rate"

    def rest(self, model: Model, q: Traced, sizes: Sizes) -> Fields:
        """Zero as the target of each quantity."""
        return {"momentum": np.zeros(6), "rate": np.zeros(6)}


@dataclass(frozen=True)
class FollowForce(Task):
    """The force of a support: `force` (3 or 6,) [N, N·m].

    Attributes:
        support: The frame of the support.

    >>> dl.control.FollowForce(support="left_foot").support
    'left_foot'
    """

    support: Any = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "support", getattr(self.support, "name", self.support))
        super().__post_init__()

    @property
    def _default_name(self) -> str:
        return f"{self.support} force"

    def weights(self, model: Model, sizes: Sizes) -> Weighted:
        """One weight for all rows."""
        return [(self.name, self.weight, sizes[self.support])]

    def rest(self, model: Model, q: Traced, sizes: Sizes) -> Fields:
        """Zero as the target of each quantity."""
        if self.support not in sizes:
            raise UnknownName(
                "support", self.support, [name for name in sizes if name not in ("nf", "nu")], code="unknown-name"
            )
        return {"force": np.zeros(sizes[self.support])}

    def terms(self, s: Situation) -> list[Term]:
        """One row for each of the support's."""
        rows = s.control.force_slices[self.support]
        return [
            Term(None, np.array(numpy.eye(s.control.nf)[rows]), s.reference_part(f"{self.name}.force"), self.weight)
        ]


@dataclass(frozen=True)
class Nominal(Task):
    """Accelerations, forces and torques close to nominal ones, with weights that may be full matrices.

        ½ ‖a - a*‖²_Q₁ + ½ ‖f - f*‖²_Q₂ + ½ ‖u - u*‖²_Q₃

    It follows `acceleration` (nv,), `force` (nf,) and `torque` (nu,), which are also its weights: it has no `weight`,
    stiffness or damping.

    Attributes:
        acceleration: Q₁: one value, one for each velocity, or (nv, nv), positive semidefinite.
        force: Q₂, for all supports and constraints.
        torque: Q₃, for all actuators.

    >>> dl.control.Nominal(force=1e-4).force
    0.0001
    """

    acceleration: Any = 0.0
    force: Any = 0.0
    torque: Any = 0.0

    def __post_init__(self) -> None:
        if not numpy.array_equal(self.weight, 1.0) or self.stiffness or self.damping:
            raise ReactiveError(
                "a Nominal has no weight, stiffness or damping of its own: its weights are acceleration=, force= and "
                "torque=.",
                code="conflicting-arguments",
            )
        super().__post_init__()
        for name in ("acceleration", "force", "torque"):
            object.__setattr__(self, name, frozen_weight(f"{self.name}.{name}", getattr(self, name)))

    def weights(self, model: Model, sizes: Sizes) -> Weighted:
        """Up to three weights."""
        rows = {"acceleration": model.nv, "force": sizes["nf"], "torque": sizes["nu"]}
        return [(f"{self.name}.{name}", getattr(self, name), count) for name, count in rows.items()]

    def rest(self, model: Model, q: Traced, sizes: Sizes) -> Fields:
        """Zero as the target of each quantity."""
        return {
            "acceleration": np.zeros(model.nv),
            "force": np.zeros(sizes["nf"]),
            "torque": np.zeros(sizes["nu"]),
        }

    def terms(self, s: Situation) -> list[Term]:
        """Up to three terms."""
        control, terms = s.control, []
        if numpy.any(self.acceleration):
            terms.append(
                Term(
                    np.array(numpy.eye(control.nv)),
                    None,
                    s.reference_part(f"{self.name}.acceleration"),
                    self.acceleration,
                )
            )
        if numpy.any(self.force) and control.nf:
            terms.append(
                Term(None, np.array(numpy.eye(control.nf)), s.reference_part(f"{self.name}.force"), self.force)
            )
        if numpy.any(self.torque) and control.nu:
            U, u0 = s.torque
            target = s.reference_part(f"{self.name}.torque") - u0
            terms.append(Term(U[:, : control.nv], U[:, control.nv :], target, self.torque))
        return terms


def _name_of(frame: Any) -> str:
    """The name of a frame, or the name itself."""
    name = getattr(frame, "name", frame)
    if not isinstance(name, str):
        raise ReactiveError(
            f"the frame of a task is {short(repr(frame))}; it must be a frame or its name.", code="wrong-type"
        )
    return name
