"""Types of joints: their numbers of coordinates and the elementary motions that compose them.

Coordinates `q` and velocities `v` follow Pinocchio, except that an unbounded angle is one coordinate. Revolute,
continuous, prismatic and helical joints have one coordinate, universal and cylindrical ones two. A planar joint has (x,
y, angle) and its velocity (vx, vy, ω) in the moving body's axes; a spherical joint has a unit quaternion (x, y, z, w)
and its angular velocity in body axes; a free joint has (translation, quaternion) and (linear, angular) velocity, both
in body axes.

Axes are normalized; they must not be zero.

Universal and cylindrical joints are two elementary joints in series. Every elementary joint moves along or about the z
axis of its own frame, so algorithms need to support only the motions of `motions`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import real_array
from delassus.errors import BadArgument, short
from delassus.model.motions.free import FREE
from delassus.model.motions.helical import HELICAL
from delassus.model.motions.motion import JointMotion
from delassus.model.motions.planar import PLANAR
from delassus.model.motions.prismatic import PRISMATIC
from delassus.model.motions.revolute import REVOLUTE
from delassus.model.motions.spherical import SPHERICAL
from delassus.model.motions.translation import TRANSLATION
from delassus.model.placement import Vector, vector

Element: TypeAlias = tuple[JointMotion, Vector, float]
"""An elementary joint: its motion, its axis in the joint's frame, its pitch [m/rad]."""

X: Vector = (1.0, 0.0, 0.0)
Y: Vector = (0.0, 1.0, 0.0)
Z: Vector = (0.0, 0.0, 1.0)


class JointKind:
    """A joint type, a frozen dataclass defined by its elements; `directions` are its fields that are axes.

    >>> isinstance(dl.model.Revolute(), dl.model.JointKind)
    True
    """

    label: ClassVar[str]
    directions: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for name in self.directions:
            object.__setattr__(self, name, direction(getattr(self, name)))

    @property
    def elements(self) -> tuple[Element, ...]:
        """The elementary joints, from the parent outwards."""
        raise TypeError(f"{type(self).__name__} has no elements.")

    @property
    def parts(self) -> tuple[tuple[JointMotion, int, int], ...]:
        """The motions of the elements, with their offsets in the joint's coordinates and velocities."""
        parts_list, q, v = [], 0, 0
        for motion, _, _ in self.elements:
            parts_list.append((motion, q, v))
            q, v = q + motion.nq, v + motion.nv
        return tuple(parts_list)

    @property
    def neutral(self) -> tuple[float, ...]:
        """The coordinates (nq,) of zero displacement: zero, and (0, 0, 0, 1) for a quaternion."""
        return tuple(chain.from_iterable(motion.neutral for motion, _, _ in self.elements))

    @property
    def nq(self) -> int:
        """Number of configuration variables."""
        return sum(motion.nq for motion, _, _ in self.elements)

    @property
    def nv(self) -> int:
        """Number of velocity variables."""
        return sum(motion.nv for motion, _, _ in self.elements)


@dataclass(frozen=True)
class Revolute(JointKind):
    """Rotation about an axis; `continuous` joints have no limits.

    >>> dl.model.Revolute((0.0, 1.0, 0.0)).nv
    1
    """

    axis: Vector = Z
    continuous: bool = False
    label = "revolute"
    directions = ("axis",)

    @property
    def elements(self) -> tuple[Element, ...]:
        """The elementary motion of the joint, with axis and pitch."""
        return ((REVOLUTE, self.axis, 0.0),)


@dataclass(frozen=True)
class Prismatic(JointKind):
    """Translation along an axis.

    >>> dl.model.Prismatic((1.0, 0.0, 0.0)).nv
    1
    """

    axis: Vector = Z
    label = "prismatic"
    directions = ("axis",)

    @property
    def elements(self) -> tuple[Element, ...]:
        """The elementary motion of the joint, with axis and pitch."""
        return ((PRISMATIC, self.axis, 0.0),)


@dataclass(frozen=True)
class Helical(JointKind):
    """Rotation about an axis with a translation of `pitch` [m/rad] along it.

    >>> dl.model.Helical(pitch=0.01).pitch
    0.01
    """

    axis: Vector = Z
    pitch: float = 0.0
    label = "helical"
    directions = ("axis",)

    def __post_init__(self) -> None:
        super().__post_init__()
        pitch = real_array("the pitch", self.pitch, "one number [m/rad]")
        if pitch.ndim or not math.isfinite(pitch):
            raise BadArgument(f"the pitch is {short(repr(self.pitch))} m/rad; it must be finite.", code="not-finite")

    @property
    def elements(self) -> tuple[Element, ...]:
        """The elementary motion of the joint, with axis and pitch."""
        return ((HELICAL, self.axis, self.pitch),)


@dataclass(frozen=True)
class Universal(JointKind):
    """Rotation about a first axis, then about a second one that moves with the first.

    >>> dl.model.Universal().nv
    2
    """

    first: Vector = X
    second: Vector = Y
    label = "universal"
    directions = ("first", "second")

    @property
    def elements(self) -> tuple[Element, ...]:
        """Two revolute elements."""
        return ((REVOLUTE, self.first, 0.0), (REVOLUTE, self.second, 0.0))


@dataclass(frozen=True)
class Cylindrical(JointKind):
    """Translation along and rotation about an axis.

    >>> dl.Model("bolt", (dl.Joint("bolt", dl.Cylindrical(), inertia=dl.Inertia.of(1.0, rotational=np.eye(3))),)).nv
    2
    """

    axis: Vector = Z
    label = "cylindrical"
    directions = ("axis",)

    @property
    def elements(self) -> tuple[Element, ...]:
        """A prismatic and a revolute element."""
        return ((PRISMATIC, self.axis, 0.0), (REVOLUTE, self.axis, 0.0))


@dataclass(frozen=True)
class Translation(JointKind):
    """Translation along x, y and z of the joint's frame.

    >>> dl.model.Translation().nv
    3
    """

    label = "translation"

    @property
    def elements(self) -> tuple[Element, ...]:
        """The elementary motion of the joint, with axis and pitch."""
        return ((TRANSLATION, Z, 0.0),)


@dataclass(frozen=True)
class Planar(JointKind):
    """Motion in the plane perpendicular to `normal` and rotation about it; x and y are the axes of
    `rotation_to_axis(normal)`.

    >>> dl.model.Planar().nv
    3
    """

    normal: Vector = Z
    label = "planar"
    directions = ("normal",)

    @property
    def elements(self) -> tuple[Element, ...]:
        """The elementary motion of the joint, with axis and pitch."""
        return ((PLANAR, self.normal, 0.0),)


@dataclass(frozen=True)
class Spherical(JointKind):
    """Rotation about a point.

    >>> dl.model.Spherical().nq, dl.model.Spherical().nv
    (4, 3)
    """

    label = "spherical"

    @property
    def elements(self) -> tuple[Element, ...]:
        """The elementary motion of the joint, with axis and pitch."""
        return ((SPHERICAL, Z, 0.0),)


@dataclass(frozen=True)
class Free(JointKind):
    """A joint with all six degrees of freedom: a floating base.

    >>> body = dl.Inertia.of(1.0, rotational=np.eye(3))
    >>> robot = dl.Model("body", (dl.Joint("base", dl.model.Free(), inertia=body),))
    >>> robot.nq, robot.nv
    (7, 6)
    """

    label = "free"

    @property
    def elements(self) -> tuple[Element, ...]:
        """The elementary motion of the joint, with axis and pitch."""
        return ((FREE, Z, 0.0),)


def direction(axis: Vector) -> Vector:
    """Normalize an axis; one of unit length, up to rounding, is returned unchanged."""
    axis = vector(axis)
    length = math.hypot(*axis)
    if not (0.0 < length < math.inf):
        raise BadArgument(f"the axis {tuple(axis)} has no direction: its length is {length:g}.", code="zero-direction")
    if length < 1e-290:  # the length would be inaccurate
        largest = max(map(abs, axis))
        return direction(vector([x / largest for x in axis]))
    return vector(axis) if abs(length - 1.0) < 4e-15 else vector([x / length for x in axis])


def rotation_to_axis(axis: Vector) -> NDArray[np.float64]:
    """A rotation whose third column is a unit axis; an exact signed permutation for ±x, ±y, ±z."""
    a = np.array(axis)
    k = int(np.argmax(abs(a)))
    first = np.zeros(3)
    first[(k + 1) % 3] = 1.0
    first -= a * (a @ first)
    first /= np.linalg.norm(first)
    return np.stack([first, np.cross(a, first), a], axis=1) + 0.0
