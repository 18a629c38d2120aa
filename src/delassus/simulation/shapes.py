"""Which collision shapes of a model, and which points by name, may touch the ground."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

import numpy as np

from delassus.common.names import UnknownName, matching, name_patterns
from delassus.geometry.candidates import Shape
from delassus.geometry.collisions import collisions_of
from delassus.geometry.fields import MOST_SPACINGS, Field
from delassus.geometry.filters import touching_pairs
from delassus.geometry.hulls.meshes import mesh_hull
from delassus.geometry.pairs.registry import describe_pairs
from delassus.geometry.shapes.registry import SHAPES
from delassus.model.model import Model
from delassus.model.parts import WORLD, Geometry
from delassus.model.placement import Placement
from delassus.simulation.checks import SimulationError
from delassus.simulation.scenery import ground_plane
from delassus.step.sources.contact import Contact

_RADIUS: Final = 1e-9
"""Radius [m] of points without one: a ball has a normal on edges of height fields, a point has none."""

_OF_GROUND: Final = ("against", "normal", "height", "tangent", "restitution", "compliance", "relaxation", "softness")
"""Fields of a contact that a simulation has for all of them, in its ground, or not at all."""


def shapes_of(
    model: Model,
    touching: str | Contact | Iterable[str | Contact],
    field: Field | None = None,
    hull_error: float | None = None,
) -> tuple[Shape, ...]:
    """Collision shapes on moving bodies whose names match a pattern, and points of contacts.

    Planes of the model are ground, and left out.

    The pattern "*" stands for all shapes that the model's file lets touch the ground; others are taken at their word.
    """
    every = [g for g in model.geometries if g.role == "collision" and g.joint != WORLD and g.shape != "plane"]
    chosen: list[Geometry] = []
    patterns, contacts = split_touching(touching)
    for pattern in name_patterns("touching", patterns):
        found = named_shapes(model, pattern, every)
        if not found and pattern != "*":
            raise UnknownName("collision shape that matches", pattern, [g.name for g in every], code="unknown-shape")
        found = _on_ground(model, found) if pattern == "*" else found
        chosen += [g for g in found if g not in chosen]
    shapes = tuple(shape_of(g, field is not None, hull_error) for g in every if g in chosen)
    shapes += point_shapes(model, contacts, field is not None)
    if field is not None:
        for shape in shapes:
            _check_reach(shape, field)
    return shapes


def _on_ground(model: Model, shapes: list[Geometry]) -> list[Geometry]:
    """The shapes that may touch the plane that is the ground; without a plane, those that may touch anything."""
    floor = ground_plane(model)
    if floor is None:
        return [g for g in shapes if model.contact_rules.enabled and (g.contype or g.conaffinity)]
    met = {g for pair in touching_pairs(model) if floor in pair for g in pair}
    return [g for g in shapes if g in met]


def _check_reach(shape: Shape, field: Field) -> None:
    """Refuse shapes that are so much larger than the spacing of a height field that a step would take seconds."""
    geometry, points = shape.geometry, shape.kind.outline(shape.size)
    middle = 0.5 * (points.min(0) + points.max(0))
    radius = float(np.linalg.norm(points - middle, axis=1).max())
    if radius > MOST_SPACINGS * field.spacing:
        raise SimulationError(
            f"the {geometry.shape} {geometry.name!r} has a radius of {radius:g} m, and the ground's heights a spacing "
            f"of {field.spacing:g} m: a shape meets all cells below it, and spans at most {MOST_SPACINGS:g} spacings. "
            f"Give heights with a spacing of {radius / MOST_SPACINGS:.2g} m or more, or cover it with smaller shapes.",
            code="out-of-range",
        )


def colliding(
    model: Model, pairs: Iterable[tuple[str, str]], hull_error: float | None = None
) -> dict[frozenset[Geometry], tuple[Shape, Shape]]:
    """Shapes that touch each other, by pairs of names or patterns; shapes of one body do not.

    Patterns match no planes, which are mostly the ground: a plane is named in full.
    """
    every = [g for g in model.geometries if g.role == "collision"]
    found: dict[frozenset[Geometry], tuple[Shape, Shape]] = {}
    if not isinstance(pairs, Iterable) or getattr(pairs, "ndim", 1) == 0:
        raise SimulationError(
            f"colliding= is {pairs!r}; it has pairs of names or patterns, such as ('*_hand', 'box').", code="wrong-type"
        )
    for pair in pairs:
        patterns = () if isinstance(pair, str) else name_patterns("a pair of colliding=", pair)
        if len(patterns) != 2:
            raise SimulationError(
                f"colliding= has {pair!r}; it has pairs of names or patterns, such as ('*_hand', 'box').",
                code="wrong-type",
            )
        one, two = (named_shapes(model, pattern, every) for pattern in patterns)
        for chosen, pattern in ((one, patterns[0]), (two, patterns[1])):
            if not chosen:
                raise UnknownName(
                    "collision shape that matches", pattern, [g.name for g in every], code="unknown-shape"
                )
        met = {frozenset((a, b)): (a, b) for a in one for b in two if a.joint != b.joint}
        for key, (a, b) in met.items():
            shapes = shape_of(a, hull_error=hull_error), shape_of(b, hull_error=hull_error)
            if not collisions_of(*shapes):
                raise SimulationError(
                    f"{a.name!r} and {b.name!r} cannot touch each other, a {a.shape} and a {b.shape}. There are these "
                    f"pairs: {describe_pairs()}. Cover one of them with balls.",
                    code="not-supported",
                )
            found.setdefault(key, shapes)
    return found


def named_shapes(model: Model, pattern: str, shapes: list[Geometry]) -> list[Geometry]:
    """The shapes of a name or pattern; by the name of a frame, link or joint, those of the body that it is on.

    Planes, which are mostly the ground, have to be named in full.
    """
    found = [g for g in shapes if (g.name == pattern if g.shape == "plane" else matching(pattern, [g]))]
    if found:
        return found
    joints = {frame.joint for frame in model.frame_list if frame.name == pattern}
    joints |= {k for k, joint in enumerate(model.joints) if joint.name == pattern}
    return [g for g in shapes if g.joint in joints and g.shape != "plane"]


def shape_of(geometry: Geometry, on_field: bool = False, hull_error: float | None = None) -> Shape:
    """A collision shape as it is compiled, with lengths that make a body; hulls are simplified to an error [m]."""
    kind = SHAPES.get(geometry.shape)
    if kind is None:
        raise SimulationError(
            f"the shape {geometry.name!r} is a {geometry.shape}; there are: {', '.join(SHAPES)}. Leave it out by "
            "touching=.",
            code="not-supported",
        )
    if geometry.shape == "mesh":
        hull = mesh_hull(geometry, hull_error)
        return Shape(geometry, tuple(map(tuple, hull.points.tolist())), on_field, hull_error=hull.error)
    lengths = kind.positive_lengths(geometry.size)
    if not all(math.isfinite(x) and x > 0.0 for x in lengths):
        raise SimulationError(
            f"the shape {geometry.name!r} is a {geometry.shape} of size {geometry.size} m; lengths are positive. "
            "Correct it, or leave it out by touching=.",
            code="out-of-range",
        )
    if len(geometry.size) < kind.lengths:
        raise SimulationError(
            f"the shape {geometry.name!r} is a {geometry.shape} of size {geometry.size} m; it has {kind.lengths} "
            "lengths.",
            code="wrong-shape",
        )
    return Shape(geometry, on_field=on_field)


# --- points by name ---------------------------------------------------------------------------------------------------


def split_touching(touching: Any) -> tuple[Any, tuple[Contact, ...]]:
    """What names shapes in `touching=`, and the contacts in it."""
    if isinstance(touching, Contact):
        return (), (touching,)
    if isinstance(touching, str) or not isinstance(touching, Iterable):
        return touching, ()
    several = tuple(touching)
    points = tuple(one for one in several if isinstance(one, Contact))
    return tuple(one for one in several if not isinstance(one, Contact)), points


def point_shapes(model: Model, contacts: Iterable[Contact], on_field: bool = False) -> tuple[Shape, ...]:
    """Balls of the contacts' radius around their points: a single one has the contact's label, several are numbered."""
    shapes = []
    for contact in contacts:
        _check_ground(contact)
        frame = model.frame(contact.frame)
        if frame.joint == WORLD:
            raise SimulationError(
                f"the contact {contact.label!r} is on the frame {frame.name!r}, which is fixed to the world: it cannot "
                "touch the ground.",
                code="immovable",
            )
        size = max(contact.radius, _RADIUS)
        coefficients = (contact.friction, contact.torsional or 0.0, contact.rolling or 0.0)
        for k, corner in enumerate(contact.corners):
            name = contact.label if len(contact.corners) == 1 else f"{contact.label}_{k}"
            place = frame.placement * Placement.of(p=corner)
            ball = Geometry(name, frame.joint, place, "sphere", (size,), "collision", friction=coefficients)
            shapes.append(Shape(replace(ball, condim=contact.rows), on_field=on_field))
    return tuple(shapes)


def _check_ground(contact: Contact) -> None:
    plain = Contact(contact.frame)
    for field in _OF_GROUND:
        if getattr(contact, field) != getattr(plain, field):
            raise SimulationError(
                f"the contact {contact.label!r} has {field} = {getattr(contact, field)!r}; points of a simulation "
                "touch its ground, by the laws of Signorini and Coulomb. Give ground=Ground(…), or contact_dynamics.",
                code="not-supported",
            )
