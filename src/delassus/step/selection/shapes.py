"""Selection of collision shapes of a model, and of named points, that may touch the ground."""

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
from delassus.model.parts import HEIGHT_FIELD, WORLD, Geometry
from delassus.model.placement import Placement
from delassus.step.selection.errors import SimulationError
from delassus.step.selection.world_shapes import ground_shapes
from delassus.step.sources.contact import Contact

_RADIUS: Final = 1e-9
"""Radius [m] of points without one. On edges of height fields, a sphere has a normal and a point has none."""

_OF_GROUND: Final = ("against", "normal", "height", "tangent", "restitution", "compliance", "relaxation", "softness")
"""Fields of a contact that a simulation takes from its ground or does not support."""


def shapes_of(
    model: Model,
    touching: str | Contact | Iterable[str | Contact],
    field: Field | None = None,
    hull_error: float | None = None,
) -> tuple[Shape, ...]:
    """Collision shapes on moving bodies whose names match a pattern, and points of contacts.

    Planes of the model are excluded, since they are ground.

    The pattern "*" selects all shapes that may touch the ground by the rules of the model's file. Other patterns
    select matching shapes regardless of these rules.
    """
    candidates = [
        g
        for g in model.geometries
        if g.role == "collision" and g.joint != WORLD and g.shape not in ("plane", HEIGHT_FIELD)
    ]
    selected: list[Geometry] = []
    patterns, contacts = split_touching(touching)
    for pattern in name_patterns("touching", patterns):
        matches = named_shapes(model, pattern, candidates)
        if not matches and pattern != "*":
            names = [g.name for g in candidates]
            raise UnknownName("collision shape that matches", pattern, names, code="unknown-shape")
        matches = _on_ground(model, matches) if pattern == "*" else matches
        selected += [g for g in matches if g not in selected]
    shapes = tuple(shape_of(g, field is not None, hull_error) for g in candidates if g in selected)
    shapes += point_shapes(model, contacts, field is not None)
    if field is not None:
        for shape in shapes:
            _check_reach(shape, field)
    return shapes


def _on_ground(model: Model, shapes: list[Geometry]) -> list[Geometry]:
    """The shapes that may touch the ground of the file; without a ground, those that may touch any other shape."""
    floors = ground_shapes(model)
    if not floors:
        return [g for g in shapes if model.contact_rules.enabled and (g.contype or g.conaffinity)]
    partners = {g for pair in touching_pairs(model) if any(g in floors for g in pair) for g in pair}
    return [g for g in shapes if g in partners]


def _check_reach(shape: Shape, field: Field) -> None:
    """Raise an error if a shape spans so many cells of a height field that a step would take seconds."""
    geometry, points = shape.geometry, shape.kind.outline(shape.size)
    middle = 0.5 * (points.min(0) + points.max(0))
    radius = float(np.linalg.norm(points - middle, axis=1).max())
    spacing = min(field.spacing)
    if radius > MOST_SPACINGS * spacing:
        raise SimulationError(
            f"the {geometry.shape} {geometry.name!r} has a radius of {radius:g} m; it must be at most "
            f"{MOST_SPACINGS:g} times the spacing of the ground's heights, {spacing:g} m. "
            f"Use a spacing of {radius / MOST_SPACINGS:.2g} m or more, or replace the shape by smaller ones.",
            code="out-of-range",
        )


def colliding(
    model: Model, pairs: Iterable[tuple[str, str]], hull_error: float | None = None
) -> dict[frozenset[Geometry], tuple[Shape, Shape]]:
    """Pairs of shapes that may touch each other, from pairs of names or patterns. Shapes of one body do not touch.

    Patterns do not match planes, since these are mostly the ground. A plane is selected by its full name.
    """
    candidates = [g for g in model.geometries if g.role == "collision" and g.shape != HEIGHT_FIELD]
    collisions: dict[frozenset[Geometry], tuple[Shape, Shape]] = {}
    if not isinstance(pairs, Iterable) or getattr(pairs, "ndim", 1) == 0:
        raise SimulationError(
            f"colliding= is {pairs!r}; it must be a sequence of pairs of names or patterns, such as ('*_hand', 'box').",
            code="wrong-type",
        )
    for pair in pairs:
        patterns = () if isinstance(pair, str) else name_patterns("a pair of colliding=", pair)
        if len(patterns) != 2:
            raise SimulationError(
                f"colliding= contains {pair!r}; it must contain pairs of names or patterns, such as ('*_hand', 'box').",
                code="wrong-type",
            )
        one, two = (named_shapes(model, pattern, candidates) for pattern in patterns)
        for matches, pattern in ((one, patterns[0]), (two, patterns[1])):
            if not matches:
                raise UnknownName(
                    "collision shape that matches", pattern, [g.name for g in candidates], code="unknown-shape"
                )
        pairs_of_shapes = {frozenset((a, b)): (a, b) for a in one for b in two if a.joint != b.joint}
        for key, (a, b) in pairs_of_shapes.items():
            shapes = shape_of(a, hull_error=hull_error), shape_of(b, hull_error=hull_error)
            if not collisions_of(*shapes):
                raise SimulationError(
                    f"{a.name!r} and {b.name!r} cannot touch each other: contacts of a {a.shape} with a {b.shape} are "
                    f"not supported. Supported pairs are {describe_pairs()}. Replace one of the shapes by spheres.",
                    code="not-supported",
                )
            collisions.setdefault(key, shapes)
    return collisions


def named_shapes(model: Model, pattern: str, shapes: list[Geometry]) -> list[Geometry]:
    """The shapes that match a name or pattern. The name of a frame, link or joint selects all shapes of its body.

    Planes, which are mostly the ground, must be named in full.
    """
    matches = [g for g in shapes if (g.name == pattern if g.shape == "plane" else matching(pattern, [g]))]
    if matches:
        return matches
    joints = {frame.joint for frame in model.frame_list if frame.name == pattern}
    joints |= {k for k, joint in enumerate(model.joints) if joint.name == pattern}
    return [g for g in shapes if g.joint in joints and g.shape != "plane"]


def shape_of(geometry: Geometry, on_field: bool = False, hull_error: float | None = None) -> Shape:
    """The `Shape` of a collision geometry: lengths are checked, and hulls are simplified to an error [m]."""
    kind = SHAPES.get(geometry.shape)
    if kind is None:
        raise SimulationError(
            f"the shape {geometry.name!r} is a {geometry.shape}; supported are {', '.join(SHAPES)}. Exclude it by "
            "touching=.",
            code="not-supported",
        )
    if geometry.shape == "mesh":
        hull = mesh_hull(geometry, hull_error)
        return Shape(geometry, tuple(map(tuple, hull.points.tolist())), on_field, hull_error=hull.error)
    lengths = kind.positive_lengths(geometry.size)
    if not all(math.isfinite(x) and x > 0.0 for x in lengths):
        raise SimulationError(
            f"the shape {geometry.name!r} is a {geometry.shape} of size {geometry.size} m; lengths must be positive. "
            "Correct it, or exclude it by touching=.",
            code="out-of-range",
        )
    if len(geometry.size) < kind.lengths:
        raise SimulationError(
            f"the shape {geometry.name!r} is a {geometry.shape} of size {geometry.size} m; it must have "
            f"{kind.lengths} lengths.",
            code="wrong-shape",
        )
    return Shape(geometry, on_field=on_field)


# --- points by name ---------------------------------------------------------------------------------------------------


def split_touching(touching: Any) -> tuple[Any, tuple[Contact, ...]]:
    """Split `touching=` into names of shapes and contacts."""
    if isinstance(touching, Contact):
        return (), (touching,)
    if isinstance(touching, str) or not isinstance(touching, Iterable):
        return touching, ()
    entries = tuple(touching)
    points = tuple(entry for entry in entries if isinstance(entry, Contact))
    return tuple(entry for entry in entries if not isinstance(entry, Contact)), points


def point_shapes(model: Model, contacts: Iterable[Contact], on_field: bool = False) -> tuple[Shape, ...]:
    """Balls around the points of contacts, with their radius. Names are the contact's label, numbered for several."""
    shapes = []
    for contact in contacts:
        _check_ground(contact)
        frame = model.frame(contact.frame)
        if frame.joint == WORLD:
            raise SimulationError(
                f"the contact {contact.label!r} is on the frame {frame.name!r}, which is fixed to the world; choose a "
                "frame of a moving body.",
                code="immovable",
            )
        size = max(contact.radius, _RADIUS)
        coefficients = (contact.friction, contact.torsional or 0.0, contact.rolling or 0.0)
        for k, corner in enumerate(contact.corners):
            name = contact.label if len(contact.corners) == 1 else f"{contact.label}_{k}"
            placement = frame.placement * Placement.of(p=corner)
            ball = Geometry(name, frame.joint, placement, "sphere", (size,), "collision", friction=coefficients)
            shapes.append(Shape(replace(ball, condim=contact.rows), on_field=on_field))
    return tuple(shapes)


def _check_ground(contact: Contact) -> None:
    plain = Contact(contact.frame)
    for field in _OF_GROUND:
        if getattr(contact, field) != getattr(plain, field):
            raise SimulationError(
                f"the contact {contact.label!r} has {field} = {getattr(contact, field)!r}; simulations do not support "
                "this, as named points have the ground of the simulation and rigid contact laws. Pass "
                "ground=Ground(…), or use contact_dynamics.",
                code="not-supported",
            )
