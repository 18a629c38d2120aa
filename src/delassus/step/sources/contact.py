"""`Contact`: a contact of a robot frame with the world or another frame, and its friction."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import FINITE, FRICTIONS, RESTITUTIONS, Range, elements, number_in_range, real_array
from delassus.common.options import Options, accept_groups
from delassus.common.types import ArrayLike
from delassus.constraints.basis.constraint import ConstraintError, frozen_numbers
from delassus.constraints.basis.frame_constraint import WORLD_FRAME
from delassus.contact.cones.parameters import ContactParameters
from delassus.contact.cones.tangents import contact_axes
from delassus.model.parts import Frame
from delassus.model.placement import ZERO, Vector, vector

UP: Final[Vector] = (0.0, 0.0, 1.0)


_LENGTHS: Final = Range(0.0, math.inf, "zero or more, and finite", open_above=True)
_RANGES: Final = {
    "radius": _LENGTHS,
    "height": FINITE,
    "friction": FRICTIONS,
    "torsional": FRICTIONS,
    "rolling": FRICTIONS,
    "restitution": RESTITUTIONS,
    "compliance": _LENGTHS,
}
"""Where the numbers of a contact lie."""


@dataclass(frozen=True, eq=False)
class ContactPoints(Options):
    """The points of a frame that touch; None for the defaults of `Contact`.

    Attributes:
        corners: The points in the frame [m], such as the corners of a foot.
        radius: Of balls around the points [m].

    >>> dl.contact.ContactPoints(radius=0.02).radius
    0.02
    """

    corners: Any = None
    radius: Any = None


@dataclass(frozen=True, eq=False)
class ContactPlane(Options):
    """The plane in the world that points touch; None for the defaults of `Contact`.

    Attributes:
        normal: Its direction, of any length.
        height: Its distance from the origin [m].
        tangent: A direction that t1 is nearest to.

    >>> dl.contact.ContactPlane(height=0.1).height
    0.1
    """

    normal: Any = None
    height: Any = None
    tangent: Any = None


@accept_groups(
    "frame against * relaxation softness name",
    points=ContactPoints(),
    plane=ContactPlane(),
    material=ContactParameters(),
)
@dataclass(frozen=True)
class Contact:
    """A point of a robot, or several of one body, that may touch a plane: the ground, or the face of another body.

    Against "world" the plane is the one of all points x with normal · x = height; against another frame it is that
    frame's x-y plane, whose normal is its z axis and which moves with its body. The normal points to the first body:
    the gap is the distance along it, positive as long as there is air between. A contact has the rows t1, t2, n; those
    of a plane in the world turn with the normal without a jump (see `contact_axes`), those of a frame are its x, y, z.

    Attributes:
        frame: The frame of the robot that carries the points: a name or a `Frame`.
        against: "world", or the frame whose x-y plane is touched.
        corners: The points in the frame [m], such as the corners of a foot; by default its origin.
        radius: Of balls around the points [m].
        normal, height: The plane in the world: its direction, of any length, and its distance from the origin [m].
        tangent: A direction that t1 is nearest to, for those who need certain axes.
        friction: Coefficient of Coulomb friction, zero or more; infinity sticks.
        torsional: Coefficient [m] of friction against turning about the normal; None leaves that row out.
        rolling: Coefficient [m] of friction against rolling, in addition to torsional; None leaves both rows out.
        restitution: The share e of the approach speed that a strike throws back with, from 0 to 1.
        compliance: How far the surface gives way, per unit of normal force [m/N].
        relaxation: How the contact gives way in the model "relaxed", a `Relaxation`; None for that of the call.
        softness: How it does in the model "soft", a `Softness`; None for that of the call.
        name: What the contact is called; the frame's name if empty.

    >>> dl.Contact("foot", friction=0.7, radius=0.02).friction
    0.7
    """

    frame: Any
    against: Any = WORLD_FRAME
    _: KW_ONLY
    corners: Any = (ZERO,)
    radius: float = 0.0
    normal: Any = UP
    height: float = 0.0
    tangent: Any = None
    friction: float = 0.7
    torsional: float | None = None
    rolling: float | None = None
    restitution: float = 0.0
    compliance: float = 0.0
    relaxation: Any = None
    softness: Any = None
    name: str = ""

    def __post_init__(self) -> None:
        for field in ("frame", "against"):
            value = getattr(self, field)
            if isinstance(value, Frame):
                object.__setattr__(self, field, value.name)
            elif not isinstance(value, str):
                raise ConstraintError(
                    f"the frame of a contact is {value!r}; it must be the name of a frame.", code="wrong-type"
                )
        if not isinstance(self.name, str):
            raise ConstraintError(
                f"the name of a contact is {self.name!r}; it must be a str, such as 'left foot'.", code="wrong-type"
            )
        object.__setattr__(self, "corners", self._points())
        for field in ("normal", "tangent"):
            if getattr(self, field) is not None:
                object.__setattr__(self, field, self._direction(field))
        if self.against != WORLD_FRAME and (self.normal != UP or self.height or self.tangent is not None):
            raise ConstraintError(
                f"the contact {self.label!r} touches the x-y plane of the frame {self.against!r}; normal, height and "
                "tangent describe a plane of the world. Omit them, and place the frame instead.",
                code="conflicting-arguments",
            )
        self._check_numbers()
        if self.tangent is not None:
            self.axes()

    @classmethod
    def foot(cls, frame: str, length: float, width: float, *, center: ArrayLike = ZERO, **options: Any) -> Contact:
        """A flat foot: the four corners of a rectangle across z, along x and y of a frame, about a center there [m]."""
        x, y, z = vector(center)
        corners = [(x + sx * length / 2, y + sy * width / 2, z) for sx in (1, -1) for sy in (1, -1)]
        return cls(frame, corners=corners, **options)

    @property
    def label(self) -> str:
        """The name, or the frames'."""
        return self.name or (self.frame if self.against == WORLD_FRAME else f"{self.frame}-{self.against}")

    @property
    def rows(self) -> int:
        """Those of one point: 3, with torsional friction 4, with rolling friction as well 6."""
        return 3 if self.torsional is None else 4 if self.rolling is None else 6

    @cached_property
    def shape(self) -> Contact:
        """The contact as it is compiled, without parameters that may differ between states."""
        spin = None if self.torsional is None else 0.0
        roll = None if self.rolling is None else 0.0
        same = replace(self, friction=0.0, torsional=spin, rolling=roll, restitution=0.0, compliance=0.0)
        return replace(same, relaxation=None, softness=None)

    def axes(self) -> NDArray[np.float64]:
        """t1, t2 and the normal as columns (3, 3), of a plane in the world."""
        n = np.array(self.normal)
        if self.tangent is None:
            return np.asarray(contact_axes(n))
        first = np.array(self.tangent) - n * (n @ np.array(self.tangent))
        if np.linalg.norm(first) < 1e-6:
            raise ConstraintError(
                f"the tangent {self.tangent} of {self.label!r} is along its normal {self.normal}.",
                code="zero-direction",
            )
        first /= np.linalg.norm(first)
        return np.stack([first, np.cross(n, first), n], axis=1)

    def _points(self) -> tuple[Vector, ...]:
        form = "a list of points (x, y, z) in the frame"
        if isinstance(self.corners, str) or not isinstance(self.corners, Iterable):
            raise ConstraintError(
                f"the corners of {self.label!r} are {self.corners!r}; they must be {form}.", code="not-a-number"
            )
        points = real_array(f"corners of {self.label!r}", elements(self.corners), form)
        if points.ndim != 2 or points.shape[1] != 3 or not len(points) or not np.all(np.isfinite(points)):
            raise ConstraintError(
                f"the corners of {self.label!r} have shape {points.shape}; they must be {form}, finite.",
                code="wrong-shape",
            )
        return tuple(vector(point) for point in points)

    def _direction(self, field: str) -> Vector:
        numbers = np.asarray(
            frozen_numbers(f"{field} of {self.label!r}", getattr(self, field), "a direction (x, y, z)")
        )
        if numbers.shape != (3,) or not np.linalg.norm(numbers) > 0.0:
            raise ConstraintError(
                f"{field} of {self.label!r} is {getattr(self, field)!r}; it must be a direction (x, y, z) of "
                "any length "
                "but zero.",
                code="zero-direction",
            )
        return vector(numbers / np.linalg.norm(numbers))

    def _check_numbers(self) -> None:
        if self.rolling is not None and self.torsional is None:
            raise ConstraintError(
                f"the contact {self.label!r} has rolling friction without torsional friction: also pass torsional=0.0.",
                code="conflicting-arguments",
            )
        for field in _RANGES:
            value = getattr(self, field)
            if value is None and field in ("torsional", "rolling"):
                continue
            object.__setattr__(self, field, number_in_range(f"{field} of {self.label!r}", value, _RANGES[field]))


def contacts_of(contacts: Any) -> tuple[Contact, ...]:
    """Contacts from one, or a list of them."""
    given = (contacts,) if isinstance(contacts, Contact | Frame | str) else contacts
    if not isinstance(given, Iterable) or getattr(given, "ndim", 1) == 0:
        raise ConstraintError(
            f"the contacts are {contacts!r}; they must be one Contact or a list of them.", code="wrong-type"
        )
    result = []
    for contact in given:
        if not isinstance(contact, Contact):
            raise ConstraintError(
                f"{contact!r} is not a Contact; pass one with its friction, such as Contact({_named(contact)}, "
                "friction=0.7).",
                code="wrong-type",
            )
        result.append(contact)
    return tuple(result)


def _named(value: Any) -> str:
    return repr(value.name if isinstance(value, Frame) else value if isinstance(value, str) else "foot")
