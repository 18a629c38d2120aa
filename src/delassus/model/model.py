"""The model of a robot: joints, bodies, frames and shapes, as frozen data that is compared by content."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delassus.common.names import UnknownName, found_by_pattern
from delassus.compiler.graph.digest import UNREAD, content_digest, exact, is_frozen
from delassus.errors import BadArgument, expect
from delassus.model.checks import check_inertia, check_numbers, check_parts, check_placements
from delassus.model.coordinates import Coordinates
from delassus.model.joints import JointKind
from delassus.model.placement import HERE, MASSLESS, Inertia, Placement, Vector, vector
from delassus.model.transmission import Actuator, Tendon

if TYPE_CHECKING:
    from delassus.model.parametric import ParametricModel

WORLD = -1


@dataclass(frozen=True)
class Mimic:
    """A joint that follows another: its coordinate is `ratio` times that of the joint `source`, plus `offset`."""

    source: int
    ratio: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class Joint:
    """A joint and the body it carries, with everything that is rigidly attached to that body.

    `parent` is the index of the joint whose body carries this one, -1 for the world. `placement` is the joint's frame
    in the parent's; the body's frame is the joint's frame after the motion, and `inertia` is given there. Limits have
    one number per coordinate (`lower`, `upper`; infinite without limit) or per velocity (`velocity_limit`,
    `effort_limit`); so have rotor inertia `armature` [kg·m² or kg], viscous `damping` [N·m·s/rad or N·s/m], dry
    `friction` [N·m or N], and a spring of `stiffness` [N·m/rad or N/m] at rest at `rest`. An empty tuple means none.
    """

    name: str
    kind: JointKind
    parent: int = WORLD
    placement: Placement = HERE
    inertia: Inertia = MASSLESS
    lower: tuple[float, ...] = ()
    upper: tuple[float, ...] = ()
    velocity_limit: tuple[float, ...] = ()
    effort_limit: tuple[float, ...] = ()
    armature: tuple[float, ...] = ()
    damping: tuple[float, ...] = ()
    friction: tuple[float, ...] = ()
    stiffness: tuple[float, ...] = ()
    rest: tuple[float, ...] = ()
    mimic: Mimic | None = None


@dataclass(frozen=True)
class Frame:
    """A named frame on the body of a joint (-1: on the world); `role` is "link", "joint" or "frame"."""

    name: str
    joint: int
    placement: Placement = HERE
    role: str = "frame"


WORLD_FRAME = Frame("world", WORLD, HERE, "link")
"""A frame of every model, whether it lists it or not; no other frame has its name."""


def is_world(joint: int, placement: Placement) -> bool:
    """Whether a frame may be called "world": it is fixed to the world, at its origin and with its axes."""
    return joint == WORLD and placement == HERE


@dataclass(frozen=True)
class Geometry:
    """A shape on a body: `shape` names it, `size` are its lengths [m] (a box's sides, a sphere's radius, a cylinder's
    or capsule's radius and length, an ellipsoid's half-axes, a plane's half-lengths, a mesh's scale), `mesh` is the
    file of a mesh, `role` is "visual" or "collision"; `friction` are coefficients: sliding, torsional [m], rolling [m],
    empty if the file says nothing. `condim` is how many of them count: 1 for none, 3 for sliding, 4 for torsional
    friction too, 6 for all. Of two shapes that touch, the one with the larger `priority` decides.
    """

    name: str
    joint: int
    placement: Placement
    shape: str
    size: tuple[float, ...]
    role: str
    mesh: str = ""
    color: tuple[float, ...] = ()
    friction: tuple[float, ...] = ()
    condim: int = 3
    priority: int = 0


@dataclass(frozen=True)
class Posture:
    """A configuration q (nq,) that a model's file names."""

    name: str
    q: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Model(Coordinates):
    """A robot. Parents come before their children. Equal if their content is, whatever made them.

    `base_inertia` is what is fixed to the world; it counts once the model is attached to another one. `constraints`,
    `actuators`, `tendons` and `postures` are what the model's file says of them.
    """

    name: str = field(metadata=UNREAD)
    joints: tuple[Joint, ...]
    frame_list: tuple[Frame, ...] = ()
    gravity: Vector = (0.0, 0.0, -9.81)
    geometries: tuple[Geometry, ...] = field(default=(), metadata=UNREAD)
    constraints: tuple[Any, ...] = ()
    base_inertia: Inertia = MASSLESS
    actuators: tuple[Actuator, ...] = ()
    tendons: tuple[Tendon, ...] = ()
    postures: tuple[Posture, ...] = field(default=(), metadata=UNREAD)
    warnings: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        check_parts(self, joints=Joint, frame_list=Frame, geometries=Geometry, postures=Posture)
        for i, joint in enumerate(self.joints):
            if not WORLD <= joint.parent < i:
                raise BadArgument(
                    f"joint {joint.name!r} (number {i}) hangs on number {joint.parent}: a parent comes before its "
                    f"children, so it is between -1 (the world) and {i - 1}.",
                    code="not-a-tree",
                )
            self._check_mimic(joint)
            check_numbers(joint)
        placed: tuple[Frame | Geometry, ...] = (*self.frame_list, *self.geometries)
        for item in placed:
            if not WORLD <= item.joint < len(self.joints):
                raise BadArgument(
                    f"{item.name!r} is on joint number {item.joint}, which the model does not have: it has "
                    f"{len(self.joints)}, and -1 is the world.",
                    code="not-a-tree",
                )
        for frame in self.frame_list:
            if frame.name == WORLD_FRAME.name and not is_world(frame.joint, frame.placement):
                raise BadArgument(
                    f"a frame {frame.name!r} is elsewhere: on joint number {frame.joint}, at "
                    f"{frame.placement.translation} m; in every model {frame.name!r} is the world itself, so give this "
                    "frame another name.",
                    code="duplicate-name",
                )
        if not all(map(math.isfinite, self.gravity)):
            raise BadArgument(f"gravity is {self.gravity} m/s²; it must be finite.", code="not-finite")
        for posture in self.postures:
            if not all(map(math.isfinite, posture.q)):
                raise BadArgument(f"the posture {posture.name!r} is {posture.q}; it must be finite.", code="not-finite")
        check_inertia("what is fixed to the world", self.base_inertia)
        check_placements((*self.joints, *placed))
        for what, names in (("joint", [j.name for j in self.joints]), ("frame", [f.name for f in self.frame_list])):
            repeated = sorted(name for name, count in Counter(names).items() if count > 1)
            if repeated:
                raise BadArgument(f"the model has more than one {what} named {repeated[0]!r}.", code="duplicate-name")

    def _check_mimic(self, joint: Joint) -> None:
        if joint.mimic is None:
            return
        if not 0 <= joint.mimic.source < len(self.joints):
            raise BadArgument(
                f"joint {joint.name!r} mimics number {joint.mimic.source}, which the model does not have.",
                code="bad-mimicry",
            )
        source = self.joints[joint.mimic.source]
        if source.mimic is not None:
            raise BadArgument(
                f"joint {joint.name!r} mimics {source.name!r}, which mimics another one itself.", code="bad-mimicry"
            )
        if not (math.isfinite(joint.mimic.ratio) and math.isfinite(joint.mimic.offset)):
            raise BadArgument(
                f"joint {joint.name!r} mimics {source.name!r} with numbers that are not finite: ratio "
                f"{joint.mimic.ratio:g}, offset {joint.mimic.offset:g}.",
                code="bad-mimicry",
            )
        if joint.kind.nv != 1 or source.kind.nv != 1:
            raise BadArgument(
                f"joint {joint.name!r} has {joint.kind.nv} degrees of freedom and mimics {source.name!r}, which has "
                f"{source.kind.nv}; both need exactly 1.",
                code="bad-mimicry",
            )

    # --- content ------------------------------------------------------------------------------------------------

    @cached_property
    def _identity(self) -> Any:
        """The digest of the content; the content itself where it has a kind of joint that is not of this package."""
        content = tuple(getattr(self, part.name) for part in fields(Model) if part.compare)
        digest = content_digest(content)
        if digest is None and not is_frozen(content):
            raise BadArgument(
                f"the model {self.name!r} holds something whose content cannot be compared.", code="wrong-type"
            )
        return digest or exact(content)

    @property
    def digest(self) -> str:
        """SHA-256 of the content, the same in every process; models with kinds of joints of a user's have none."""
        return self._identity if isinstance(self._identity, str) else ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and bool(self._identity == other._identity)

    def __hash__(self) -> int:
        return hash(self._identity)

    def __repr__(self) -> str:
        return f"<Model {self.name!r}: {len(self.joints)} joints, nq {self.nq}, nv {self.nv}, {self.mass:.4g} kg>"

    # --- counts -------------------------------------------------------------------------------------------------

    @property
    def njoints(self) -> int:
        """Number of joints, and of bodies."""
        return len(self.joints)

    @property
    def ninertial(self) -> int:
        """Number of inertial parameters, ten for each body."""
        return 10 * len(self.joints)

    @property
    def nframes(self) -> int:
        """Number of named frames."""
        return len(self.frame_list)

    @property
    def mass(self) -> float:
        """The mass [kg] of all bodies that joints carry; `base_inertia.mass` is that of what is fixed to the world."""
        return sum(joint.inertia.mass for joint in self.joints)

    # --- names --------------------------------------------------------------------------------------------------

    @cached_property
    def _frame_index(self) -> dict[str, int]:
        return {frame.name: k for k, frame in enumerate(self.frame_list)}

    @cached_property
    def _joint_index(self) -> dict[str, int]:
        return {joint.name: k for k, joint in enumerate(self.joints)}

    def frame(self, name: str | Frame) -> Frame:
        """A frame by its name; "world" is one of every model."""
        key = name.name if isinstance(name, Frame) else name
        if isinstance(key, str) and key == WORLD_FRAME.name and key not in self._frame_index:
            return WORLD_FRAME
        return self.frame_list[self.frame_index(name)]

    def frame_index(self, name: str | Frame) -> int:
        """The position of a frame in `frame_list`, which need not have the world's."""
        key = name.name if isinstance(name, Frame) else str(name)
        if key not in self._frame_index:
            if key == WORLD_FRAME.name:
                raise BadArgument(
                    f"the model does not list its frame {key!r}, which has no number: take its name.",
                    code="unknown-frame",
                )
            raise UnknownName("frame", key, [*self._frame_index, WORLD_FRAME.name], code="unknown-frame")
        return self._frame_index[key]

    def frames(self, pattern: str = "*") -> tuple[Frame, ...]:
        """The frames whose names match a pattern such as "*_foot", in the model's order; none is an error.

        The frame "world" is among them if the model lists it, as those from MJCF do, or if it is asked for by name.
        """
        expect("the pattern", pattern, str, '"*_foot"')
        if pattern == WORLD_FRAME.name:
            return (self.frame(pattern),)
        return tuple(found_by_pattern("frame that matches", pattern, self.frame_list, code="unknown-frame"))

    def joint(self, name: str) -> Joint:
        """A joint by its name."""
        return self.joints[self.joint_index(name)]

    def joint_index(self, name: str) -> int:
        """The position of a joint in `joints`."""
        expect("the name of a joint", name, str, f"{self.joints[0].name!r}" if self.joints else '"elbow"')
        if name not in self._joint_index:
            raise UnknownName("joint", name, list(self._joint_index), code="unknown-joint")
        return self._joint_index[name]

    def body_index(self, name: str) -> int:
        """The joint that carries a body, by the joint's name, or by that of the link whose frame is the body's."""
        expect("the name of a body", name, str, f"{self.joints[0].name!r}" if self.joints else '"trunk"')
        if name in self._joint_index:
            return self._joint_index[name]
        links = {frame.name: frame for frame in self.frame_list if frame.role == "link"}
        if name not in links:
            raise UnknownName("joint or link", name, [*self._joint_index, *links], code="unknown-joint")
        link = links[name]
        if link.joint == WORLD:
            raise BadArgument(
                f"the link {name!r} is fixed to the world: its inertia has no part in the dynamics.",
                code="bad-parameter",
            )
        if link.placement != HERE:
            joint = self.joints[link.joint].name
            raise BadArgument(
                f"the link {name!r} is a part of the body of joint {joint!r}, whose frame is another one: give "
                f"the name {joint!r}, which is that of the whole body.",
                code="bad-parameter",
            )
        return link.joint

    def posture(self, name: str) -> NDArray[np.float64]:
        """A configuration (nq,) by the name that the model's file gives it."""
        expect("the name of a posture", name, str, '"home"')
        found = [posture for posture in self.postures if posture.name == name]
        if not found:
            raise UnknownName("posture", name, [posture.name for posture in self.postures], code="unknown-posture")
        return np.array(found[0].q)

    # --- editing: each gives a new model ------------------------------------------------------------------------

    def attach(self, other: Model, frame: str | Frame, placement: Placement = HERE, prefix: str = "") -> Model:
        """Another model, fixed with its world to a frame of this one: a hand on a wrist.

        Its joints, frames, constraints, actuators and tendons come after this one's, their names after `prefix`.
        Postures are lost, since they lack the new coordinates. Its frame "world", if it has one or its constraints
        mention it, is called hand_world after a prefix "hand_", or, without a prefix, after the other model.
        """
        from delassus.model.editing import attach

        expect("what is attached", other, Model, 'delassus.load("hand.urdf")')
        _expect_placement(placement)
        expect("the prefix", prefix, str, '"left_"')
        return attach(self, other, self.frame(frame), placement, prefix)

    def lock(self, *joints: str, q: ArrayLike | None = None) -> Model:
        """The model with some joints fixed where they are in the configuration q (nq,), or in the neutral one.

        What they carry becomes a part of what carries them; their frames stay. Joints that mimic a locked one are
        locked as well. Their actuators go, and so do tendons over them, and postures, which have other coordinates.
        """
        from delassus.model.editing import lock

        return lock(
            self, {self.joint_index(name) for name in joints}, self.neutral() if q is None else np.asarray(q, float)
        )

    def with_frame(self, name: str, on: str | Frame, placement: Placement = HERE) -> Model:
        """The model with one more frame, placed on another one."""
        expect("the name of a frame", name, str, '"tool"')
        _expect_placement(placement)
        base = self.frame(on)
        return replace(self, frame_list=(*self.frame_list, Frame(name, base.joint, base.placement * placement)))

    def with_gravity(self, gravity: ArrayLike) -> Model:
        """The model where gravity is another acceleration (3,) [m/s²], in the world's axes."""
        g = np.asarray(gravity, float)
        if g.shape != (3,):
            raise BadArgument(
                f"gravity has shape {g.shape}; it is three numbers [m/s²], such as (0.0, 0.0, -9.81).",
                code="wrong-shape",
            )
        return replace(self, gravity=vector(g))

    def with_inertia(self, body: str, inertia: Inertia) -> Model:
        """The model with another inertia of a body, which is all that is fixed to it; named as in `body_index`."""
        expect("the inertia", inertia, Inertia, "Inertia(mass=1.0)")
        i = self.body_index(body)
        joints = (*self.joints[:i], replace(self.joints[i], inertia=inertia), *self.joints[i + 1 :])
        return replace(self, joints=joints)

    def parametric(self, *names: str) -> ParametricModel:
        """The model with some constants as parameters, which every kernel takes as an input, per item of a batch.

        Names are "gravity", "inertia:trunk", "placement:hip", "frame:foot", "armature:knee", patterns such as
        "inertia:*_knee", and kinds alone for all there are; see `delassus.model.parametric`.
        """
        from delassus.model.parametric import ParametricModel

        return ParametricModel(self, names)


def _expect_placement(placement: Placement) -> None:
    expect("the placement", placement, Placement, "Placement.from_xyz_rpy(xyz=(0, 0, 0.1))")
