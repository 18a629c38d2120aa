"""Tasks: what a robot is to do, each as squares of errors of accelerations, forces or torques, linear in x = (a, f).

A task names what it follows (positions, velocities, …): these are parts of the controller's reference, numbers at run
time, and so is a weight that its own is multiplied with. A position is followed by an acceleration

    a* + stiffness (x* - x) + damping (v* - v)
"""

from __future__ import annotations

import fnmatch
import math
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy

import delassus.numpy as np
from delassus.control.reactive.situation import Situation
from delassus.control.reactive.supports import ReactiveError
from delassus.dynamics.kinematics.jacobians import frame_jacobian
from delassus.dynamics.kinematics.kinematics import frame_bias, frame_in_world
from delassus.dynamics.kinematics.manifold import difference
from delassus.dynamics.mass.centroid import center_of_mass, center_of_mass_jacobian, centroidal_momentum
from delassus.dynamics.mass.centroidal_map import centroidal_momentum_matrix, centroidal_momentum_matrix_rate
from delassus.model.joints import Free
from delassus.model.model import Model, UnknownName
from delassus.spatial.quaternions import quaternion_from_rotation, quaternion_to_rotation
from delassus.spatial.rotations import rotation_log

Weights: TypeAlias = "float | tuple[float, ...] | tuple[tuple[float, ...], ...]"
Fields: TypeAlias = "dict[str, Any]"


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
        object.__setattr__(self, "weight", _frozen(self.name, self.weight))
        object.__setattr__(self, "name", self.name or self._usual_name)
        damping = 2.0 * math.sqrt(self.stiffness) if self.damping is None else self.damping
        if not (math.isfinite(damping) and 0.0 <= self.stiffness < math.inf):
            raise ReactiveError(
                f"the task {self.name!r} has stiffness {self.stiffness!r} and damping {self.damping!r}."
            )
        object.__setattr__(self, "damping", float(damping))

    @property
    def _usual_name(self) -> str:
        return type(self).__name__.removeprefix("Follow").lower()

    def rest(self, model: Model, q: Any, sizes: dict[str, int]) -> Fields:
        """What it follows, with the values that keep the robot where it is in a configuration q (nq,)."""
        raise NotImplementedError

    def terms(self, s: Situation) -> list[Term]:
        """Its squares."""
        raise NotImplementedError

    def _follows(self, s: Situation, error: Any, velocity: Any, wanted: Any, acceleration: Any) -> Any:
        return acceleration + self.stiffness * error + float(self.damping or 0.0) * (wanted - velocity)


@dataclass(frozen=True)
class FollowPosture(Task):
    """The joints' own positions: `configuration` (nq,), `velocity` and `acceleration` (nv,).

    Attributes:
        joints: Names or patterns; a free base is never among them.
    """

    joints: Any = "*"

    def numbers(self, model: Model) -> list[int]:
        """The velocities that it is about."""
        patterns = (self.joints,) if isinstance(self.joints, str) else tuple(self.joints)
        found: list[int] = []
        for joint, start in zip(model.joints, model.v_starts, strict=True):
            own = joint.mimic is None and not isinstance(joint.kind, Free)
            if own and any(fnmatch.fnmatchcase(joint.name, pattern) for pattern in patterns):
                found += range(start, start + joint.kind.nv)
        if not found:
            raise UnknownName("joint", str(self.joints), [joint.name for joint in model.joints])
        return found

    def rest(self, model: Model, q: Any, sizes: dict[str, int]) -> Fields:
        """That configuration."""
        return {"configuration": q, "velocity": np.zeros(model.nv), "acceleration": np.zeros(model.nv)}

    def terms(self, s: Situation) -> list[Term]:
        """One row for each velocity."""
        model, own = s.control.model, self.numbers(s.control.model)
        error = difference(model, s.q, s.given(f"{self.name}.configuration"))
        wanted = self._follows(s, error, s.v, s.given(f"{self.name}.velocity"), s.given(f"{self.name}.acceleration"))
        return [Term(np.array(numpy.eye(model.nv)[own]), None, wanted[own], self.weight)]


@dataclass(frozen=True)
class FollowFrame(Task):
    """A frame: its `position` (3,), `rotation` (4,) as a quaternion, `velocity` and `acceleration` (6,) in world axes.

    Attributes:
        frame: Its name.
        rows: Those that count, of x, y, z and the turns about them: "position", "rotation", "all", or numbers.
    """

    frame: str = ""
    rows: Any = "all"

    @property
    def _usual_name(self) -> str:
        return self.frame

    @property
    def numbers(self) -> list[int]:
        """The rows that count."""
        known = {"all": range(6), "position": range(3), "rotation": range(3, 6)}
        rows = known.get(self.rows, self.rows) if isinstance(self.rows, str) else self.rows
        if isinstance(rows, str) or not all(k in range(6) for k in rows):
            raise ReactiveError(
                f"rows of the task {self.name!r} are {self.rows!r}; they are 'all', 'position' or "
                "'rotation', or numbers from 0 to 5."
            )
        return list(rows)

    def rest(self, model: Model, q: Any, sizes: dict[str, int]) -> Fields:
        """Where it is."""
        R, p = frame_in_world(model, q, self.frame)
        return {
            "position": p,
            "rotation": quaternion_from_rotation(R),
            "velocity": np.zeros(6),
            "acceleration": np.zeros(6),
        }

    def terms(self, s: Situation) -> list[Term]:
        """Some of six rows."""
        model, world, own = s.control.model, "LOCAL_WORLD_ALIGNED", self.numbers
        J = frame_jacobian(model, s.q, frame=self.frame, reference=world)
        bias = frame_bias(model, s.q, s.v, frame=self.frame, reference=world)
        R, p = frame_in_world(model, s.q, self.frame)
        asked = quaternion_to_rotation(s.given(f"{self.name}.rotation"))
        turn = rotation_log(asked @ R.T)  # in world axes
        error = np.concatenate([s.given(f"{self.name}.position") - p, turn])
        wanted = self._follows(
            s, error, J @ s.v, s.given(f"{self.name}.velocity"), s.given(f"{self.name}.acceleration")
        )
        return [Term(J[own], None, (wanted - bias)[own], self.weight)]


@dataclass(frozen=True)
class FollowCenterOfMass(Task):
    """The centre of mass: its `position`, `velocity` and `acceleration` (3,) in the world."""

    @property
    def _usual_name(self) -> str:
        return "com"

    def rest(self, model: Model, q: Any, sizes: dict[str, int]) -> Fields:
        """Where it is."""
        return {"position": center_of_mass.function(model, q), "velocity": np.zeros(3), "acceleration": np.zeros(3)}

    def terms(self, s: Situation) -> list[Term]:
        """Three rows."""
        model = s.control.model
        J = center_of_mass_jacobian(model, s.q)
        bias = (centroidal_momentum_matrix_rate(model, s.q, s.v) @ s.v)[:3] / model.mass
        error = s.given(f"{self.name}.position") - center_of_mass(model, s.q)
        wanted = self._follows(
            s, error, J @ s.v, s.given(f"{self.name}.velocity"), s.given(f"{self.name}.acceleration")
        )
        return [Term(J, None, wanted - bias, self.weight)]


@dataclass(frozen=True)
class FollowMomentum(Task):
    """Linear and angular momentum about the centre of mass: `momentum` and `rate` (6,); damping takes errors back."""

    damping: float | None = 0.0

    def rest(self, model: Model, q: Any, sizes: dict[str, int]) -> Fields:
        """None."""
        return {"momentum": np.zeros(6), "rate": np.zeros(6)}

    def terms(self, s: Situation) -> list[Term]:
        """Six rows."""
        model = s.control.model
        A = centroidal_momentum_matrix(model, s.q)
        error = s.given(f"{self.name}.momentum") - centroidal_momentum(model, s.q, s.v)
        wanted = s.given(f"{self.name}.rate") + float(self.damping or 0.0) * error
        return [Term(A, None, wanted - centroidal_momentum_matrix_rate(model, s.q, s.v) @ s.v, self.weight)]


@dataclass(frozen=True)
class FollowForce(Task):
    """The force of a support: `force` (3 or 6,) [N, N·m].

    Attributes:
        support: The frame of the support.
    """

    support: str = ""

    @property
    def _usual_name(self) -> str:
        return f"{self.support} force"

    def rest(self, model: Model, q: Any, sizes: dict[str, int]) -> Fields:
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

    It follows `acceleration` (nv,), `force` (nf,) and `torque` (nu,).

    Attributes:
        acceleration: Q₁: a number, one for each velocity, or (nv, nv), positive semidefinite.
        force: Q₂, of all supports and constraints.
        torque: Q₃, of all actuators.
    """

    acceleration: Any = 0.0
    force: Any = 0.0
    torque: Any = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("acceleration", "force", "torque"):
            object.__setattr__(self, name, _frozen(f"{self.name}.{name}", getattr(self, name)))

    def rest(self, model: Model, q: Any, sizes: dict[str, int]) -> Fields:
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
    found = numpy.asarray(weight, float)
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
