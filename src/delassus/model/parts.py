"""The parts of a model as frozen data: joints with their bodies, frames, shapes, postures."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Final

from delassus.model.joints import JointKind
from delassus.model.placement import HERE, MASSLESS, Inertia, Placement

WORLD = -1
"""The parent of joints and frames that are fixed to the world.

>>> dl.load("pendulum").joints[0].parent == dl.model.WORLD
True
"""


@dataclass(frozen=True)
class Mimic:
    """A joint that follows another: its coordinate is `ratio` times that of the joint `source`, plus `offset`.

    >>> dl.model.Mimic(source=0, ratio=-1.0).ratio
    -1.0
    """

    source: int
    ratio: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class Joint:
    """A joint and the body that it carries, including everything fixed to that body.

    `parent` is the index of the joint whose body carries this one, -1 for the world. `placement` is the joint's frame
    in the parent's; the body's frame is the joint's frame after the motion, and `inertia` is given there. Limits have
    one value per coordinate (`lower`, `upper`; infinite without limit) or per velocity (`velocity_limit`,
    `effort_limit`); so do the rotor inertia `armature` [kg·m² or kg], viscous `damping` [N·m·s/rad or N·s/m], Coulomb
    `friction` [N·m or N], and a spring of `stiffness` [N·m/rad or N/m] with the rest position `rest`. An empty tuple
    means none. The sum of the forces of all actuators of a joint with one velocity stays within `actuator_force_range`
    (lower, upper). `angle_limit` [rad] is the largest rotation of a spherical joint from its reference.
    `gravity_compensation` is a mass [kg] and its position on the body, x, y, z [m]: a passive force carries its weight.

    >>> dl.load("pendulum").joints[0].kind.nv
    1
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
    actuator_force_range: tuple[float, ...] = ()
    gravity_compensation: tuple[float, ...] = ()
    angle_limit: float = math.inf


@dataclass(frozen=True)
class Frame:
    """A named frame on the body of a joint (-1: on the world); `role` is "link", "joint" or "frame".

    >>> dl.load("pendulum").frame("world").joint == dl.model.WORLD
    True
    """

    name: str
    joint: int
    placement: Placement = HERE
    role: str = "frame"


WORLD_FRAME = Frame("world", WORLD, HERE, "link")
"""A frame of every model, listed or not; no other frame has its name."""


def is_world(joint: int, placement: Placement) -> bool:
    """Whether a frame may be called "world": it is fixed to the world, at its origin and with its axes."""
    return joint == WORLD and placement == HERE


HEIGHT_FIELD: Final = "height field"
"""The shape of a height field `Geometry`."""


@dataclass(frozen=True)
class Geometry:
    """A shape on a body. `shape` is its type and `size` its lengths [m]: a box's sides, a sphere's radius, a cylinder's
    or capsule's radius and length, an ellipsoid's half-axes, a plane's half-lengths, a mesh's scale, the lengths of a
    height field along x and y. `mesh` is the file of a mesh, and `vertices` (n, 3) [m] are those of its hull if there
    is no file. `role` is "visual" or "collision".

    `friction` has the coefficients of sliding, torsional [m] and rolling [m] friction, empty if the file has none.
    `condim` is the number of rows of its contacts: 1 without friction, 3 with sliding, 4 with torsional, 6 with rolling
    friction. `heights` (rows, columns) [m] are those of a height field, with rows along x. In a contact, the parameters
    of the shape with the larger `priority` are used. Two shapes collide if `contype` of one and `conaffinity` of the
    other have a common bit (see `geometry.filters`): by default a shape collides with the ground, and with other shapes
    only if a simulation requests it. For MuJoCo's contact law, `solref` and `solimp` are the softness parameters (see
    `Impedance`; empty for the default), `solmix` is the weight of the shape when parameters are mixed, contacts are
    active below a gap equal to the sum of both `margin`s [m], and `center` [m] is the center of mass of the shape's
    body in its joint's frame, if a file has several bodies on one joint.
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
    contype: int = 1
    conaffinity: int = 0
    margin: float = 0.0
    solref: tuple[float, ...] = ()
    solimp: tuple[float, ...] = ()
    solmix: float = 1.0
    center: tuple[float, ...] = ()
    vertices: tuple[tuple[float, ...], ...] = ()
    heights: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True)
class Posture:
    """A configuration q (nq,) named in a model's file; a keyframe may also have velocities v (nv,), activations,
    controls, and a time [s]. Empty fields are zero.

    >>> dl.load("quadruped").posture("home").shape
    (19,)
    """

    name: str
    q: tuple[float, ...]
    v: tuple[float, ...] = ()
    activation: tuple[float, ...] = ()
    control: tuple[float, ...] = ()
    time: float = 0.0


@dataclass(frozen=True)
class ContactPair:
    """Two shapes, by name, listed as a contact pair in a file.

    `friction` (3,) and `condim` as in `Geometry`; contacts are active below a gap of `margin` - `gap` [m].
    """

    first: str
    second: str
    friction: tuple[float, ...] = ()
    condim: int = 3
    margin: float = 0.0
    gap: float = 0.0
    solref: tuple[float, ...] = ()
    solimp: tuple[float, ...] = ()
    solreffriction: tuple[float, ...] = ()


@dataclass(frozen=True)
class ContactRules:
    """Contact rules of a file besides its shapes.

    Attributes:
        enabled: Whether there are contacts at all.
        filter_parents: Whether contacts between a body and its parent are excluded.
        world_is_parent: Whether this includes bodies on the world: in URDF the base is an ordinary link.
        excluded: Pairs of names of shapes without contact.
        pairs: Contact pairs independent of the filters.
    """

    enabled: bool = True
    filter_parents: bool = True
    world_is_parent: bool = False
    excluded: tuple[tuple[str, str], ...] = ()
    pairs: tuple[ContactPair, ...] = ()

    def with_prefix(self, prefix: str) -> ContactRules:
        """The rules of a model whose shapes have names with a prefix."""
        excluded = tuple((prefix + one, prefix + two) for one, two in self.excluded)
        pairs = tuple(replace(p, first=prefix + p.first, second=prefix + p.second) for p in self.pairs)
        return replace(self, excluded=excluded, pairs=pairs)

    def merge(self, other: ContactRules) -> ContactRules:
        """The rules of two models in one."""
        return replace(self, excluded=self.excluded + other.excluded, pairs=self.pairs + other.pairs)


@dataclass(frozen=True)
class FileSensor:
    """A sensor of a model's file.

    Attributes:
        name: Its name; by default type and target.
        kind: Type, by MuJoCo's name.
        target: The frame, joint, tendon, actuator or body that it measures.
        reference: The frame relative to which, and in whose axes, it measures; "" for the world.
        numbers: Of a magnetometer, the magnetic flux (3,) in the world.
        cutoff: The largest magnitude of its readings; zero for no limit.
    """

    name: str
    kind: str
    target: str
    reference: str = ""
    numbers: tuple[float, ...] = ()
    cutoff: float = 0.0


# --- the medium -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ImmersedShape:
    """A shape with fluid forces: a box with the inertia of a body, or an ellipsoid.

    Attributes:
        joint: The joint that carries it.
        placement: Of its center and axes, in the joint's frame.
        lengths: Sides of a box, half-axes of an ellipsoid (3,) [m].
        coefficients: Of an ellipsoid, empty for a box: blunt drag, slender drag, angular drag, Kutta lift, Magnus lift.
        added_mass: Of an ellipsoid: volume of the medium that it accelerates along each axis (3,) [m³].
        added_inertia: Likewise about each axis (3,) [m⁵].
    """

    joint: int
    placement: Placement
    lengths: tuple[float, ...]
    coefficients: tuple[float, ...] = ()
    added_mass: tuple[float, ...] = (0.0, 0.0, 0.0)
    added_inertia: tuple[float, ...] = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Medium:
    """A gas or a liquid around a robot.

    Attributes:
        density: [kg/m³].
        viscosity: [Pa·s].
        wind: Its velocity (3,) in the world [m/s].
        shapes: What it acts on.
    """

    density: float = 0.0
    viscosity: float = 0.0
    wind: tuple[float, ...] = (0.0, 0.0, 0.0)
    shapes: tuple[ImmersedShape, ...] = ()

    @property
    def is_felt(self) -> bool:
        """Whether it acts on any shape."""
        return bool(self.shapes) and (self.density > 0.0 or self.viscosity > 0.0)


NO_MEDIUM: Final = Medium()
"""The medium of models without one."""


# --- how soft rows are ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Impedance:
    """Reference and impedance of a row.

    Attributes:
        solref: (time constant [s], damping ratio), or, both negative, -(stiffness, damping).
        solimp: (d₀, d_width, width [m, rad], midpoint, power).
        centers: Of a constraint on bodies, their centres of mass (3,) [m] in their joints' frames, empty for those of
            all that a joint carries: where the row is weighed.
    """

    solref: tuple[float, ...] = (0.02, 1.0)
    solimp: tuple[float, ...] = (0.9, 0.95, 0.001, 0.5, 2.0)
    centers: tuple[tuple[float, ...], ...] = ()


NamedImpedances = tuple[tuple[str, Impedance], ...]


@dataclass(frozen=True)
class Impedances:
    """Impedances of all rows except contacts, by the names of joints, tendons and constraints; defaults are not listed.

    Attributes:
        joint_limits: Of limits of joints.
        joint_friction: Of dry friction in joints.
        tendon_friction: Of dry friction of tendons.
        tendon_limits: Of limits of tendons.
        constraints: Of equality constraints.
        impratio: Ratio of the impedances of friction and of normals of contacts.
    """

    joint_limits: NamedImpedances = ()
    joint_friction: NamedImpedances = ()
    tendon_friction: NamedImpedances = ()
    tendon_limits: NamedImpedances = ()
    constraints: NamedImpedances = ()
    impratio: float = 1.0

    def with_prefix(self, prefix: str) -> Impedances:
        """Those of a model whose parts have names with a prefix."""
        named: dict[str, Any] = {field: _prefixed(prefix, getattr(self, field)) for field in _NAMED}
        return replace(self, **named)

    def merge(self, other: Impedances) -> Impedances:
        """Those of two models in one; the first one's impratio counts."""
        named: dict[str, Any] = {field: getattr(self, field) + getattr(other, field) for field in _NAMED}
        return replace(self, **named)


_NAMED: Final = ("joint_limits", "joint_friction", "tendon_friction", "tendon_limits", "constraints")


def _prefixed(prefix: str, named: NamedImpedances) -> NamedImpedances:
    return tuple((prefix + name, impedance) for name, impedance in named)
