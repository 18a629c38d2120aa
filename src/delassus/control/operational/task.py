"""Tasks: quantities with ẋ = J v, ẍ = J a + J̇ v that a controller regulates.

A task defines its number of rows, their Jacobian and J̇ v, and, if a pose can achieve it, its error relative to a
target. Any object with this interface is a task; this file has those for frames, the center of mass, momentum and
joints.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, Final

import numpy

import delassus.numpy as np
from delassus.common.checks import elements, positive_number
from delassus.common.deprecated import OldName
from delassus.common.names import find_by_pattern
from delassus.common.types import Traced
from delassus.dynamics.kinematics.jacobians import frame_jacobian
from delassus.dynamics.kinematics.kinematics import frame_bias, frame_in_world
from delassus.dynamics.kinematics.manifold import difference
from delassus.dynamics.mass.centroid import center_of_mass, center_of_mass_jacobian, total_mass
from delassus.dynamics.mass.centroidal_map import centroidal_momentum_matrix, centroidal_momentum_matrix_rate
from delassus.errors import BadArgument, short
from delassus.model.links import links_of
from delassus.model.model import Model
from delassus.model.parts import Joint
from delassus.spatial.quaternions import quaternion_to_rotation
from delassus.spatial.rotations import rotation_log

ROWS: Final = ("x", "y", "z", "rx", "ry", "rz")
SOME: Final = {"all": ROWS, "position": ROWS[:3], "rotation": ROWS[3:]}
_ALIGNED: Final = "LOCAL_WORLD_ALIGNED"


class TaskError(BadArgument):
    """Invalid task."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """Base class of tasks.

    Attributes:
        priority: Tasks with a smaller number come first; those with the same number are weighted against each other.
        weight: Weight of the squared residuals.

    >>> isinstance(dl.control.FrameTask("tool"), dl.control.Task)
    True
    """

    priority: int = 0
    weight: float = 1.0

    def __post_init__(self) -> None:
        positive_number("the weight of a task", self.weight)
        if not isinstance(self.priority, Integral):
            raise TaskError(
                f"the priority of a task is {self.priority!r}; it must be an integer, such as 0.",
                code="not-a-whole-number",
            )

    def count(self, model: Model) -> int:
        """Number of rows."""
        raise NotImplementedError

    def jacobian(self, model: Model, q: Traced) -> Traced:
        """J (count, nv)."""
        raise NotImplementedError

    def bias(self, model: Model, q: Traced, v: Traced) -> Traced:
        """J̇ v (count,)."""
        raise NotImplementedError

    def targets(self, model: Model) -> int:
        """Number of values of its target; zero if a pose cannot achieve the task."""
        return 0

    def error(self, model: Model, q: Traced, target: Traced) -> Traced:
        """Error (count,) [m, rad] of a pose relative to a target (targets,); its rate is J v where it is zero."""
        raise NotImplementedError

    def turns(self, model: Model) -> tuple[bool, ...]:
        """Whether each row is an angle."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class _RowTask(Task):
    """A task with selected rows along and about the axes of the world."""

    rows: Any = ROWS

    def __post_init__(self) -> None:
        super().__post_init__()
        requested, valid = self.rows, self._row_names()
        if isinstance(requested, str):
            rows = tuple(row for row in SOME.get(requested, requested.split()) if row in valid or requested not in SOME)
        else:
            rows = tuple(ROWS[row] if _is_number(row) else row for row in elements(requested))
        if (
            not all(isinstance(row, str) for row in rows)
            or not rows
            or len(set(rows)) < len(rows)
            or not set(rows) <= set(valid)
        ):
            raise TaskError(
                f"the rows are {short(repr(requested))}; they must be among {', '.join(valid)}, each once, or their "
                "numbers, or 'position', 'rotation' or 'all'.",
                code="unknown-row",
            )
        object.__setattr__(self, "rows", rows)

    def _row_names(self) -> tuple[str, ...]:
        return ROWS

    @property
    def places(self) -> list[int]:
        """The indices of the rows among x, y, z, rx, ry and rz."""
        return [ROWS.index(row) for row in self.rows]

    def count(self, model: Model) -> int:
        """Number of rows."""
        return len(self.rows)

    def turns(self, model: Model) -> tuple[bool, ...]:
        """Whether each row is an angle."""
        return tuple(place >= 3 for place in self.places)


@dataclass(frozen=True)
class FrameTask(_RowTask):
    """The pose of a frame, given by name, in the world's axes: its origin (x, y, z) and rotation (rx, ry, rz).

    `rows` selects some of these, as in "x y rz", "position", or "rotation". A target is a position x y z [m], followed
    by a quaternion x y z w if a row is an angle.

    >>> dl.control.FrameTask("tool", rows="position").count(dl.load("arm7"))
    3
    """

    frame: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "frame", getattr(self.frame, "name", self.frame))

    def jacobian(self, model: Model, q: Traced) -> Traced:
        """J (count, nv)."""
        return frame_jacobian(model, q, frame=self.frame, reference=_ALIGNED)[self.places]

    def bias(self, model: Model, q: Traced, v: Traced) -> Traced:
        """J̇ v (count,)."""
        return frame_bias(model, q, v, frame=self.frame, reference=_ALIGNED)[self.places]

    def targets(self, model: Model) -> int:
        """3 for a position, 7 for a pose."""
        return 7 if any(self.turns(model)) else 3

    def error(self, model: Model, q: Traced, target: Traced) -> Traced:
        """p - p*, and the rotation vector from the target to the frame, in the world's axes."""
        R, p = frame_in_world(model, q, self.frame)
        position_error = p - target[:3]
        if any(self.turns(model)):
            quaternion = target[3:] / np.sqrt(target[3:] @ target[3:])
            position_error = np.concatenate([position_error, rotation_log(R @ quaternion_to_rotation(quaternion).T)])
        return position_error[self.places]


@dataclass(frozen=True)
class CenterOfMassTask(_RowTask):
    """The center of mass, along the world's axes; a target is a position x y z [m].

    >>> dl.control.CenterOfMassTask(rows="x y").count(dl.load("quadruped"))
    2
    """

    rows: Any = field(default=ROWS[:3], kw_only=True)

    def _row_names(self) -> tuple[str, ...]:
        return ROWS[:3]

    def jacobian(self, model: Model, q: Traced) -> Traced:
        """J (count, nv)."""
        return center_of_mass_jacobian(model, q)[self.places]

    def bias(self, model: Model, q: Traced, v: Traced) -> Traced:
        """J̇ v (count,)."""
        rate = centroidal_momentum_matrix_rate(model, q, v) @ v
        return rate[self.places] / total_mass(model, links_of(model))

    def targets(self, model: Model) -> int:
        """The size of a target: a position, 3."""
        return 3

    def error(self, model: Model, q: Traced, target: Traced) -> Traced:
        """The error p - p* (count,) [m] of the center of mass."""
        return (center_of_mass(model, q) - target)[self.places]


@dataclass(frozen=True)
class MomentumTask(_RowTask):
    """Momentum about the center of mass, linear (x, y, z) [kg·m/s] and angular (rx, ry, rz) [kg·m²/s], world axes.

    Its "velocity" is the momentum, its "acceleration" the force that changes it. It has no pose error.

    >>> dl.control.MomentumTask().count(dl.load("quadruped"))
    6
    """

    def jacobian(self, model: Model, q: Traced) -> Traced:
        """A (count, nv)."""
        return centroidal_momentum_matrix(model, q)[self.places]

    def bias(self, model: Model, q: Traced, v: Traced) -> Traced:
        """Ȧ v (count,)."""
        return (centroidal_momentum_matrix_rate(model, q, v) @ v)[self.places]


@dataclass(frozen=True)
class PostureTask(Task):
    """Joint positions, by name or pattern, by default all except a free base; a target is a configuration (nq,).

    >>> dl.control.PostureTask().count(dl.load("quadruped"))
    12
    """

    joints: str | tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "joints", elements(self.joints))
        for joint in self.joints:
            if not isinstance(joint, str):
                raise TaskError(f"joints are {short(repr(joint))}; they must be names or patterns.", code="wrong-type")

    def selected_joints(self, model: Model) -> list[Joint]:
        """The joints, in the order of the patterns."""
        independent = [joint for joint in model.joints if joint.mimic is None]
        if not self.joints:
            return [joint for joint in independent if joint.kind.nv < 6]
        joints: list[Joint] = []
        for pattern in self.joints:
            matches = find_by_pattern("joint", pattern, independent, code="unknown-joint")
            joints += [joint for joint in matches if joint not in joints]
        return joints

    chosen = OldName("selected_joints")

    def velocities(self, model: Model) -> list[int]:
        """The indices of the velocities."""
        spans = [model.v_slice(joint.name) for joint in self.selected_joints(model)]
        return [v for span in spans for v in range(span.start, span.stop)]

    def count(self, model: Model) -> int:
        """Number of velocities of the joints."""
        return len(self.velocities(model))

    def jacobian(self, model: Model, q: Traced) -> Traced:
        """Rows of the identity (count, nv)."""
        return np.array(numpy.eye(model.nv)[self.velocities(model)])

    def bias(self, model: Model, q: Traced, v: Traced) -> Traced:
        """The velocity product J̇ v (count,), which is zero."""
        return np.zeros(self.count(model))

    def targets(self, model: Model) -> int:
        """The size of a target: a configuration, nq."""
        return model.nq

    def error(self, model: Model, q: Traced, target: Traced) -> Traced:
        """The tangent vector from the target to the pose."""
        return difference(model, target, q)[self.velocities(model)]

    def turns(self, model: Model) -> tuple[bool, ...]:
        """Whether each row is an angle."""
        angles = numpy.zeros(model.nv, bool)
        for link in links_of(model).links:
            angles[list(link.dofs)] = [direction >= 3 for direction in link.motion.directions]
        return tuple(bool(angles[v]) for v in self.velocities(model))


def _is_number(row: Any) -> bool:
    """Whether a row is given by its index."""
    return isinstance(row, (int, numpy.integer)) and not isinstance(row, bool) and bool(0 <= row < len(ROWS))
