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
"""The ranges of the parameters of a contact."""


@dataclass(frozen=True, eq=False)
class ContactPoints(Options):
    """The points of a frame that touch; None for the defaults of `Contact`.

    Attributes:
        corners: The points in the frame [m], such as the corners of a foot.
        radius: Radius of balls around the points [m].

    >>> dl.contact.ContactPoints(radius=0.02).radius
    0.02
    """

    corners: Any = None
    radius: Any = None


@dataclass(frozen=True, eq=False)
class ContactPlane(Options):
    """The plane in the world that points touch; None for the defaults of `Contact`.

    Attributes:
        normal: Normal direction, of any length.
        height: Distance from the origin along the normal [m].
        tangent: Direction whose projection onto the plane is t1.

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
    """One or several points of a body that may touch a plane: the ground, or a face of another body.

    Against "world", the plane has the equation normal · x = height. Against another frame, it is the x-y plane of that
    frame and moves with its body; the normal is the z axis. The normal points to the first body, and the gap is the
    distance along it, positive if the contact is open. A contact has the rows t1, t2, n. For a plane in the world, t1
    and t2 are continuous functions of the normal (see `contact_axes`); for a frame, the rows are its x, y, z axes.

    Attributes:
        frame: The frame of the robot that carries the points: a name or a `Frame`.
        against: "world", or the frame whose x-y plane is the contact plane.
        corners: The points in the frame [m], such as the corners of a foot; by default its origin.
        radius: Radius of balls around the points [m].
        normal, height: The plane in the world: its normal, of any length, and its distance from the origin [m].
        tangent: Direction whose projection onto the plane is t1; by default computed from the normal.
        friction: Coefficient of Coulomb friction, at least 0; with infinity, contacts do not slide.
        torsional: Coefficient [m] of friction against rotation about the normal; None omits this row.
        rolling: Coefficient [m] of friction against rolling, in addition to torsional; None omits these two rows.
        restitution: Coefficient of restitution e, the ratio of normal speeds after and before an impact, from 0 to 1.
        compliance: Displacement of the surface per unit of normal force [m/N].
        relaxation: Compliance under the law "relaxed", a `Relaxation`; None for that of the call.
        softness: Stiffness and damping under the law "soft", a `Softness`; None for that of the call.
        name: Name of the contact; by default that of the frame.

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
        """A flat foot: the four corners of a rectangle [m] in the x-y plane of a frame, about a center in the frame."""
        x, y, z = vector(center)
        corners = [(x + sx * length / 2, y + sy * width / 2, z) for sx in (1, -1) for sy in (1, -1)]
        return cls(frame, corners=corners, **options)

    @property
    def label(self) -> str:
        """The name of the contact, or of its frames if it has none."""
        return self.name or (self.frame if self.against == WORLD_FRAME else f"{self.frame}-{self.against}")

    @property
    def rows(self) -> int:
        """The number of rows of a point: 3, with torsional friction 4, with rolling friction as well 6."""
        return 3 if self.torsional is None else 4 if self.rolling is None else 6

    @cached_property
    def shape(self) -> Contact:
        """The part of the contact that is compiled, without parameters that may differ between states."""
        spin = None if self.torsional is None else 0.0
        roll = None if self.rolling is None else 0.0
        same = replace(self, friction=0.0, torsional=spin, rolling=roll, restitution=0.0, compliance=0.0)
        return replace(same, relaxation=None, softness=None)

    def axes(self) -> NDArray[np.float64]:
        """t1, t2 and the normal of a plane in the world, as columns (3, 3)."""
        n = np.array(self.normal)
        if self.tangent is None:
            return np.asarray(contact_axes(n))
        first = np.array(self.tangent) - n * (n @ np.array(self.tangent))
        if np.linalg.norm(first) < 1e-6:
            raise ConstraintError(
                f"the tangent {self.tangent} of {self.label!r} is parallel to its normal {self.normal}; pass another "
                "direction.",
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
                f"{field} of {self.label!r} is {getattr(self, field)!r}; it must be a direction (x, y, z) with "
                "nonzero "
                "length.",
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
    """A tuple of contacts, from one contact or a list of them."""
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
