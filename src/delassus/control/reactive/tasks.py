"""Tasks: what a robot is to do, each as squares of errors of accelerations, forces or torques, linear in x = (a, f).

A task names what it follows (positions, velocities, …): these are parts of the controller's reference, numbers at run
time, and so is a weight that its own is multiplied with. A position is followed by an acceleration

    a* + stiffness (x* - x) + damping (v* - v)
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy

import delassus.numpy as np
from delassus.control.operational.task import CenterOfMassTask, FrameTask, MomentumTask, PostureTask
from delassus.control.operational.task import Task as Quantity
from delassus.control.reactive.situation import Situation
from delassus.control.reactive.supports import ReactiveError
from delassus.dynamics.kinematics.kinematics import frame_in_world
from delassus.dynamics.mass.centroid import center_of_mass
from delassus.model.joints import Free
from delassus.model.model import Model, UnknownName
from delassus.spatial.quaternions import quaternion_from_rotation

Weights: TypeAlias = "float | tuple[float, ...] | tuple[tuple[float, ...], ...]"
Fields: TypeAlias = "dict[str, Any]"
Sizes: TypeAlias = "dict[str, int]"
Weighted: TypeAlias = "list[tuple[str, Weights, int]]"


class Term(NamedTuple):
    """½ ‖J_a a + J_f f - target‖² with a weight: a number, one for each row, or a matrix."""

    on_a: Any
    on_f: Any
    target: Any
    weight: Any


@dataclass(frozen=True)
class Task:
    """What all tasks have.

    Attributes:
        name: By which the reference calls it.
        weight: Of its squared errors.
        stiffness: [1/s²].
        damping: [1/s]; by default critical, 2 √stiffness.
    """

    name: str = ""
    weight: Any = 1.0
    stiffness: float = 0.0
    damping: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or self._usual_name)
        object.__setattr__(self, "weight", _frozen(self.name, self.weight))
        damping = self.damping
        if not 0.0 <= _number(self.stiffness) < math.inf or not (damping is None or 0.0 <= _number(damping) < math.inf):
            raise ReactiveError(
                f"the task {self.name!r} has stiffness {self.stiffness!r} and damping {damping!r}; both are finite and "
                "not negative."
            )
        object.__setattr__(self, "damping", 2.0 * math.sqrt(self.stiffness) if damping is None else float(damping))

    @property
    def _usual_name(self) -> str:
        return type(self).__name__.removeprefix("Follow").lower()

    def rest(self, model: Model, q: Any, sizes: Sizes) -> Fields:
        """What it follows, with the values that keep the robot where it is in a configuration q (nq,)."""
        raise NotImplementedError

    def terms(self, s: Situation) -> list[Term]:
        """Its squares."""
        raise NotImplementedError

    def weights(self, model: Model, sizes: Sizes) -> Weighted:
        """Its weights: what each is called, itself, and how many rows it is for."""
        raise NotImplementedError


@dataclass(frozen=True)
class _Follow(Task):
    """A task that follows a quantity of the robot, whose Jacobian, bias and error it takes from there."""

    def quantity(self, model: Model) -> Quantity:
        """Which."""
        raise NotImplementedError

    def numbers(self, model: Model) -> list[int]:
        """Which numbers of the references of velocity and acceleration belong to its rows."""
        return list(range(self.quantity(model).count(model)))

    def target(self, s: Situation) -> Any:
        """Where it is to be, as the quantity's error needs it; None if it has no position."""
        return None

    @property
    def _rates(self) -> tuple[str, str]:
        return "velocity", "acceleration"

    def terms(self, s: Situation) -> list[Term]:
        """A row for each of the quantity's."""
        model, (velocity, acceleration) = s.control.model, self._rates
        quantity, own, target = self.quantity(model), self.numbers(model), self.target(s)
        J = quantity.jacobian(model, s.q)
        wanted = s.given(f"{self.name}.{acceleration}")[own]
        wanted = wanted + float(self.damping or 0.0) * (s.given(f"{self.name}.{velocity}")[own] - J @ s.v)
        if target is not None:
            wanted = wanted - self.stiffness * quantity.error(model, s.q, target)
        return [Term(J, None, wanted - quantity.bias(model, s.q, s.v), self.weight)]

    def weights(self, model: Model, sizes: Sizes) -> Weighted:
        """One, for all rows."""
        return [(self.name, self.weight, self.quantity(model).count(model))]


@dataclass(frozen=True)
class FollowPosture(_Follow):
    """The joints' own positions: `configuration` (nq,), `velocity` and `acceleration` (nv,).

    Attributes:
        joints: Names or patterns; a free base is never among them.
    """

    joints: Any = "*"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "joints", (self.joints,) if isinstance(self.joints, str) else tuple(self.joints))

    def quantity(self, model: Model) -> PostureTask:
        """Its joints, by name."""
        found = [joint.name for joint in PostureTask(self.joints).chosen(model) if not isinstance(joint.kind, Free)]
        if not found:
            raise UnknownName("joint", ", ".join(self.joints), [joint.name for joint in model.joints])
        return PostureTask(tuple(found))

    def numbers(self, model: Model) -> list[int]:
        """The velocities that it is about."""
        return self.quantity(model).velocities(model)

    def rest(self, model: Model, q: Any, sizes: Sizes) -> Fields:
        """That configuration."""
        return {"configuration": q, "velocity": np.zeros(model.nv), "acceleration": np.zeros(model.nv)}

    def target(self, s: Situation) -> Any:
        """The configuration."""
        return s.given(f"{self.name}.configuration")


@dataclass(frozen=True)
class FollowFrame(_Follow):
    """A frame: its `position` (3,), `rotation` (4,) as a quaternion, `velocity` and `acceleration` (6,) in world axes.

    Attributes:
        frame: It, or its name; by default it is called as the task is.
        rows: Those that count, of x, y, z and the turns rx, ry, rz about them: "position", "rotation", "all", some as
            in "x y rz", or their numbers from 0 to 5.
    """

    frame: Any = ""
    rows: Any = "all"

    def __post_init__(self) -> None:
        object.__setattr__(self, "frame", getattr(self.frame, "name", self.frame) or self.name)
        super().__post_init__()
        object.__setattr__(self, "rows", FrameTask(self.frame, rows=self.rows).rows)

    @property
    def _usual_name(self) -> str:
        return str(self.frame)

    def quantity(self, model: Model) -> FrameTask:
        """The frame."""
        return FrameTask(self.frame, rows=self.rows)

    def numbers(self, model: Model) -> list[int]:
        """The rows that count."""
        return self.quantity(model).places

    def rest(self, model: Model, q: Any, sizes: Sizes) -> Fields:
        """Where it is."""
        R, p = frame_in_world(model, q, self.frame)
        return {
            "position": p,
            "rotation": quaternion_from_rotation(R),
            "velocity": np.zeros(6),
            "acceleration": np.zeros(6),
        }

    def target(self, s: Situation) -> Any:
        """Position and quaternion."""
        return np.concatenate([s.given(f"{self.name}.position"), s.given(f"{self.name}.rotation")])


@dataclass(frozen=True)
class FollowCenterOfMass(_Follow):
    """The centre of mass: its `position`, `velocity` and `acceleration` (3,) in the world."""

    @property
    def _usual_name(self) -> str:
        return "com"

    def quantity(self, model: Model) -> CenterOfMassTask:
        """The centre of mass."""
        return CenterOfMassTask()

    def rest(self, model: Model, q: Any, sizes: Sizes) -> Fields:
        """Where it is."""
        return {"position": center_of_mass.function(model, q), "velocity": np.zeros(3), "acceleration": np.zeros(3)}

    def target(self, s: Situation) -> Any:
        """Its position."""
        return s.given(f"{self.name}.position")


@dataclass(frozen=True)
class FollowMomentum(_Follow):
    """Linear and angular momentum about the centre of mass: `momentum` and `rate` (6,); damping takes errors back."""

    damping: float | None = 0.0

    def quantity(self, model: Model) -> MomentumTask:
        """The momentum."""
        return MomentumTask()

    @property
    def _rates(self) -> tuple[str, str]:
        return "momentum", "rate"

    def rest(self, model: Model, q: Any, sizes: Sizes) -> Fields:
        """None."""
        return {"momentum": np.zeros(6), "rate": np.zeros(6)}


@dataclass(frozen=True)
class FollowForce(Task):
    """The force of a support: `force` (3 or 6,) [N, N·m].

    Attributes:
        support: The frame of the support.
    """

    support: Any = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "support", getattr(self.support, "name", self.support))
        super().__post_init__()

    @property
    def _usual_name(self) -> str:
        return f"{self.support} force"

    def weights(self, model: Model, sizes: Sizes) -> Weighted:
        """One, for all rows."""
        return [(self.name, self.weight, sizes[self.support])]

    def rest(self, model: Model, q: Any, sizes: Sizes) -> Fields:
        """None."""
        if self.support not in sizes:
            raise UnknownName("support", self.support, [name for name in sizes if name not in ("nf", "nu")])
        return {"force": np.zeros(sizes[self.support])}

    def terms(self, s: Situation) -> list[Term]:
        """A row for each of the support's."""
        own = s.control.force_slices[self.support]
        return [Term(None, np.array(numpy.eye(s.control.nf)[own]), s.given(f"{self.name}.force"), self.weight)]


@dataclass(frozen=True)
class Nominal(Task):
    """Accelerations, forces and torques as near to nominal ones as can be, by weights that may be full matrices.

        ½ ‖a - a*‖²_Q₁ + ½ ‖f - f*‖²_Q₂ + ½ ‖u - u*‖²_Q₃

    It follows `acceleration` (nv,), `force` (nf,) and `torque` (nu,). Its weights are these three: it has no `weight`,
    stiffness or damping.

    Attributes:
        acceleration: Q₁: a number, one for each velocity, or (nv, nv), positive semidefinite.
        force: Q₂, of all supports and constraints.
        torque: Q₃, of all actuators.
    """

    acceleration: Any = 0.0
    force: Any = 0.0
    torque: Any = 0.0

    def __post_init__(self) -> None:
        if not numpy.array_equal(self.weight, 1.0) or self.stiffness or self.damping:
            raise ReactiveError(
                "a Nominal has no weight, stiffness or damping of its own: its weights are acceleration=, force= and "
                "torque=."
            )
        super().__post_init__()
        for name in ("acceleration", "force", "torque"):
            object.__setattr__(self, name, _frozen(f"{self.name}.{name}", getattr(self, name)))

    def weights(self, model: Model, sizes: Sizes) -> Weighted:
        """Three of them."""
        rows = {"acceleration": model.nv, "force": sizes["nf"], "torque": sizes["nu"]}
        return [(f"{self.name}.{name}", getattr(self, name), count) for name, count in rows.items()]

    def rest(self, model: Model, q: Any, sizes: Sizes) -> Fields:
        """None."""
        return {
            "acceleration": np.zeros(model.nv),
            "force": np.zeros(sizes["nf"]),
            "torque": np.zeros(sizes["nu"]),
        }

    def terms(self, s: Situation) -> list[Term]:
        """Up to three of them."""
        control, found = s.control, []
        if numpy.any(self.acceleration):
            found.append(
                Term(np.array(numpy.eye(control.nv)), None, s.given(f"{self.name}.acceleration"), self.acceleration)
            )
        if numpy.any(self.force) and control.nf:
            found.append(Term(None, np.array(numpy.eye(control.nf)), s.given(f"{self.name}.force"), self.force))
        if numpy.any(self.torque) and control.nu:
            U, u0 = s.torque
            target = s.given(f"{self.name}.torque") - u0
            found.append(Term(U[:, : control.nv], U[:, control.nv :], target, self.torque))
        return found


def _frozen(name: str, weight: Any) -> Weights:
    """A weight that can be hashed: a number, a tuple of them, or rows of a symmetric matrix; none is negative."""
    try:
        found = numpy.asarray(weight, float)
    except (TypeError, ValueError):
        found = numpy.array(numpy.nan)
    if found.ndim > 2 or not numpy.isfinite(found).all():
        raise ReactiveError(f"the weight of {name!r} is {weight!r}; it is a finite number, some, or a matrix.")
    if found.ndim == 2:
        if found.shape[0] != found.shape[1] or not numpy.allclose(found, found.T):
            raise ReactiveError(f"the weight of {name!r} has shape {found.shape}; a matrix is symmetric.")
        least = float(numpy.linalg.eigvalsh(found).min())
        if least < -1e-12 * numpy.abs(found).max():
            raise ReactiveError(f"the weight of {name!r} has the eigenvalue {least:.3g}; none is negative.")
        return tuple(map(tuple, found.tolist()))
    if (found < 0.0).any():
        raise ReactiveError(f"the weight of {name!r} is {weight!r}; it is not negative.")
    return float(found) if found.ndim == 0 else tuple(found.tolist())


def _number(value: Any) -> float:
    """A number, NaN if it is none."""
    return float(value) if isinstance(value, numbers.Real) else math.nan
