"""`ShapeSelection` and `ContactSelection`: the shapes of a robot that may touch, and the number of contact rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from delassus.common.checks import boolean, check_integer, positive_number
from delassus.common.options import Options
from delassus.errors import BadArgument, short
from delassus.step.sources.contact import Contact


@dataclass(frozen=True, eq=False)
class ShapeSelection(Options):
    """Which shapes may touch the ground and each other.

    Attributes:
        touching: Names or patterns of the collision shapes that may touch the ground, and points by name: a `Contact`
            such as Contact("left_foot", corners=…), with the ground's normal and restitution.
        colliding: Pairs of names or patterns of collision shapes that may touch each other: of one robot, of several,
            or of the world. Their contacts have the friction and restitution of the ground.
        self_collision: Whether moving bodies may touch each other by the rules of the model's file, in addition to
            `colliding`. Contacts with shapes that are fixed to the world always follow these rules.
        max_contacts: Number of contact slots; if there are more contacts, the nearest are solved. None for the default:
            8, up to 16 if many bodies of a robot may touch each other, and more in scenes of many free bodies.
        hull_error: The Hausdorff distance [m] to which the hulls of meshes are simplified, with at most 64 vertices
            each; by default 5 mm or 1 % of a mesh's diagonal, whichever is smaller.

    >>> dl.contact.ShapeSelection(touching="*_foot").touching
    '*_foot'
    """

    touching: str | Contact | Iterable[str | Contact] = "*"
    colliding: Iterable[tuple[str, str]] = ()
    self_collision: bool = True
    max_contacts: int | None = None
    hull_error: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "self_collision", boolean("self_collision", self.self_collision))
        if self.max_contacts is not None:
            object.__setattr__(self, "max_contacts", check_integer("max_contacts", self.max_contacts, 0))
        if self.hull_error is not None:
            object.__setattr__(self, "hull_error", positive_number("hull_error [m]", self.hull_error))


@dataclass(frozen=True, eq=False)
class ContactSelection(ShapeSelection):
    """The shapes that may touch in a simulation, the number of joint limits of a state, and recorded contacts.

    Attributes:
        touching, colliding, self_collision, max_contacts, hull_error: As in `ShapeSelection`.
        max_limits: Largest number of joints that are at their limits at once; 0 disables joint limits.
        joint_friction: Whether joints have friction.
        tracked: Names or patterns of shapes, or names of bodies, whose contacts are accumulated in each control
            period: mean and peak force and air time, for the sensors "touchmean", "touchpeak" and "airtime" of states.

    >>> dl.simulation.ContactSelection(touching="*_foot").touching
    '*_foot'
    """

    max_limits: int = 4
    joint_friction: bool = True
    tracked: str | Iterable[str] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "joint_friction", boolean("joint_friction", self.joint_friction))
        object.__setattr__(self, "max_limits", check_integer("max_limits", self.max_limits, 0))
        names = (self.tracked,) if isinstance(self.tracked, str) else self.tracked
        tracked = tuple(names) if np.iterable(names) else (names,)
        if not all(isinstance(name, str) for name in tracked):
            raise BadArgument(
                f"tracked is {short(repr(self.tracked))}; it must contain names of shapes or bodies.", code="wrong-type"
            )
        object.__setattr__(self, "tracked", tracked)
