"""What is compiled of a simulation: robot, shapes that may touch, kind of ground, and how many rows there are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.contact.cones.kinds import Cone, Free, Friction, Interval, NonNegative
from delassus.contact.cones.layout import Layout
from delassus.contact.robots.limits import JointLimit, dry_joints, limits_of
from delassus.model.of_model import OfModel
from delassus.model.transmission import Actuator
from delassus.simulation.actuators.activation import count_activations
from delassus.simulation.actuators.checks import driven_velocities
from delassus.simulation.geometry.candidates import Shape
from delassus.simulation.geometry.collisions import Collision
from delassus.simulation.geometry.fields import Field


@dataclass(frozen=True)
class World(OfModel):
    """A robot on the ground.

    Rows come in this order: contacts (t1, t2, n of each slot, and moments about n, t1, t2 where there is torsional or
    rolling friction), constraints of the mechanism, limits of joints, dry friction of joints.

    Attributes:
        mechanism: The robot and what closes its loops.
        shapes: Those that may touch the ground.
        field: The grid of a height field, or None for a plane.
        actuators: What the controls drive; without any, the joints themselves.
        max_contacts: How many contacts a state has at most.
        max_limits: How many joints are at their limits at most.
        joint_friction: Whether joints have their dry friction.
        substeps: Steps of time in a control period.
        bounces: Whether strikes throw back.
        collisions: Shapes that may touch each other.
        usual: Numbers of the only candidates that are solved for, without joint limits; None for all that may touch.
            What is left out is watched, and a step in which it would matter is made again with the whole world.
        contact_rows: Of each contact: 3, 4 with torsional friction, 6 with rolling friction.
        own_friction: Of each candidate the coefficients (sliding, torsional, rolling) that its shapes have, None where
            the ground's counts; empty if it does everywhere.
    """

    mechanism: Mechanism
    shapes: tuple[Shape, ...]
    field: Field | None
    actuators: tuple[Actuator, ...]
    max_contacts: int
    max_limits: int
    joint_friction: bool
    substeps: int
    bounces: bool = False
    collisions: tuple[Collision, ...] = ()
    usual: tuple[int, ...] | None = None
    contact_rows: int = 3
    own_friction: tuple[tuple[float | None, float | None, float | None], ...] = ()

    @property
    def model(self) -> Any:  # type: ignore[override]
        """The robot."""
        return self.mechanism.model

    @cached_property
    def on_ground(self) -> int:
        """How many places may touch the ground; they are the first of the candidates."""
        return sum(shape.count for shape in self.shapes)

    @cached_property
    def candidates(self) -> int:
        """How many places may touch."""
        return self.on_ground + sum(collision.count for collision in self.collisions)

    @property
    def slots(self) -> int:
        """How many contacts are solved for."""
        return self.all_slots if self.usual is None else len(self.usual)

    @property
    def all_slots(self) -> int:
        """How many contacts a state keeps."""
        return min(self.candidates, self.max_contacts)

    @cached_property
    def stops(self) -> tuple[JointLimit, ...]:
        """The limits of joints."""
        return limits_of(self.model) if self.max_limits else ()

    @property
    def ends(self) -> int:
        """How many of the limits are solved for."""
        return min(len(self.stops), self.max_limits) if self.usual is None else 0

    @cached_property
    def dry(self) -> tuple[tuple[int, float], ...]:
        """The velocities with dry friction, and how much [N·m, N]."""
        if not self.joint_friction:
            return ()
        rows, bounds = dry_joints(self.model)
        places = [self.model.v_slice(row.joint).start + k for row in rows for k in row.rows]
        return tuple(zip(places, bounds, strict=True))

    @cached_property
    def layout(self) -> Layout:
        """The cones of all rows."""
        cones: list[Cone] = [Friction(self.contact_rows)] * self.slots
        for kind, count in ((Free, self.mechanism.m), (NonNegative, self.ends), (Interval, len(self.dry))):
            cones += [kind(count)] if count else []
        return Layout(tuple(cones))

    @property
    def m(self) -> int:
        """The number of rows."""
        return self.layout.m

    @cached_property
    def whole(self) -> World:
        """The same with all that may touch, and joint limits."""
        return self if self.usual is None else replace(self, usual=None)

    @cached_property
    def own_rows(self) -> tuple[int, ...]:
        """Where the rows that are solved for are among those of the whole world."""
        contacts, after = self.in_contact, self.contact_rows * self.all_slots
        constraints, ends = self.mechanism.m, self.whole.ends
        return (
            *range(contacts),
            *range(after, after + constraints),
            *range(after + constraints, after + constraints + self.ends),
            *range(after + constraints + ends, self.whole.m),
        )

    @property
    def fixed(self) -> bool:
        """Whether it is known which candidate has which slot: each has its own, or the usual ones have them."""
        return self.usual is not None or self.slots == self.candidates

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """The candidates (all_slots,) that have the slots where they are known: the usual ones first."""
        first = range(self.all_slots) if self.usual is None else self.usual
        return (*first, *(k for k in range(self.candidates) if k not in first))[: self.all_slots]

    @property
    def in_contact(self) -> int:
        """The number of rows of contacts; they are the first."""
        return self.contact_rows * self.slots

    @property
    def normals(self) -> range:
        """The rows of contacts along their normals."""
        return range(2, self.in_contact, self.contact_rows)

    @cached_property
    def pushing(self) -> list[int]:
        """The rows that push and do not pull: normals of contacts, limits of joints."""
        start = self.in_contact + self.mechanism.m
        return [*self.normals, *range(start, start + self.ends)]

    @property
    def nu(self) -> int:
        """The number of controls."""
        return len(self.actuators) or len(driven_velocities(self.model))

    @cached_property
    def na(self) -> int:
        """The number of activations: of actuators that have a state."""
        return count_activations(self.actuators)

    @property
    def rows(self) -> int:
        """Elements of arrays of rows, one at least: impulses, then activations."""
        return max(self.whole.m + self.na, 1)

    @property
    def places(self) -> int:
        """Elements of arrays of contacts, one at least."""
        return max(self.all_slots, 1)

    @property
    def controls(self) -> int:
        """Elements of arrays of controls, one at least."""
        return max(self.nu, 1)

    @property
    def field_rows(self) -> int:
        """Of the height field's grid."""
        return 1 if self.field is None else self.field.rows

    @property
    def field_columns(self) -> int:
        """Of the height field's grid."""
        return 1 if self.field is None else self.field.columns

    @cached_property
    def owners(self) -> tuple[int, ...]:
        """The shape of each candidate on the ground, by its number."""
        return tuple(k for k, shape in enumerate(self.shapes) for _ in range(shape.count))

    @cached_property
    def meetings(self) -> tuple[tuple[Shape, Shape | None, str], ...]:
        """Of each candidate its shape, what it touches, None for the ground, and a name."""
        found: list[tuple[Shape, Shape | None, str]] = []
        for shape in self.shapes:
            found += [(shape, None, shape.geometry.name)] * shape.count
        for collision in self.collisions:
            found += [(collision.shape, collision.other, collision.name)] * collision.count
        return tuple(found)
