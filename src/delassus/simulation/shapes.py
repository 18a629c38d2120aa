"""Which collision shapes of a model may touch the ground, and each other."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from delassus.common.names import UnknownName, matching, name_patterns
from delassus.errors import warn
from delassus.geometry.candidates import Shape
from delassus.geometry.classes import PairClass, arrange_pairs
from delassus.geometry.collisions import Collision, collisions_of
from delassus.geometry.fields import MOST_SPACINGS, Field
from delassus.geometry.filters import touching_pairs
from delassus.geometry.hulls.meshes import mesh_hull
from delassus.geometry.pairs.registry import describe_pairs
from delassus.geometry.shapes.registry import SHAPES
from delassus.model.joints import Free
from delassus.model.model import Model
from delassus.model.parts import WORLD, Geometry
from delassus.simulation.checks import SimulationError
from delassus.simulation.ground import Ground
from delassus.simulation.options import ContactSelection

MOST_PAIRS: Final = 30_000
"""Pairs of shapes that may touch in a scene."""

_PAIRS: Final = 12
"""Pairs of two kinds of shapes that are looked at in a state, of one robot."""

_PAIRS_OF_BODY: Final = 4
"""Pairs more for each further free body."""

_FEW_BODIES: Final = 13
"""Moving bodies of a quadruped, which touch at 8 points at most."""

_SOME_BODIES: Final = 20
"""Moving bodies that touch at 12 points at most."""

_SLOTS_OF_BODY: Final = 4
"""Contacts for each free body of a scene."""

_MOST_SLOTS: Final = 32
"""Contacts by default: what a step solves for grows with their square."""

_ENTERED: Final = 0.05
"""Of a shape's smallest length: ridges of a height field that enter it less are not worth a warning."""


def shapes_of(model: Model, patterns: str | Iterable[str], field: Field | None = None) -> tuple[Shape, ...]:
    """Collision shapes on moving bodies whose names match a pattern; planes of the model are ground, and left out.

    The pattern "*" stands for all shapes that the model's file lets touch the ground; others are taken at their word.
    """
    every = [g for g in model.geometries if g.role == "collision" and g.joint != WORLD and g.shape != "plane"]
    chosen: list[Geometry] = []
    for pattern in name_patterns("touching", patterns):
        found = matching(pattern, every)
        if not found and pattern != "*":
            raise UnknownName("collision shape that matches", pattern, [g.name for g in every], code="unknown-shape")
        found = _on_ground(model, found) if pattern == "*" else found
        chosen += [g for g in found if g not in chosen]
    shapes = tuple(shape_of(g, field is not None) for g in every if g in chosen)
    if field is not None:
        for shape in shapes:
            _check_reach(shape, field)
    return shapes


def _on_ground(model: Model, shapes: list[Geometry]) -> list[Geometry]:
    """The shapes that may touch a plane of the model's world; without a plane, those that may touch anything."""
    if not any(g.shape == "plane" and g.joint == WORLD and g.role == "collision" for g in model.geometries):
        return [g for g in shapes if model.contact_rules.enabled and (g.contype or g.conaffinity)]
    met = {g for pair in touching_pairs(model) for g in pair if any(h.shape == "plane" for h in pair)}
    return [g for g in shapes if g in met]


def _check_reach(shape: Shape, field: Field) -> None:
    """Refuse balls that are so much larger than the spacing of a height field that a step would take seconds."""
    geometry, largest = shape.geometry, shape.kind.ball_radius(shape.size)
    if largest > MOST_SPACINGS * field.spacing:
        raise SimulationError(
            f"the {geometry.shape} {geometry.name!r} has a radius of {largest:g} m, and the ground's heights a spacing "
            f"of {field.spacing:g} m: a ball meets all cells below it, and spans at most {MOST_SPACINGS:g} spacings. "
            f"Give heights with a spacing of {largest / MOST_SPACINGS:.2g} m or more, or cover it with smaller balls.",
            code="out-of-range",
        )


def colliding(model: Model, pairs: Iterable[tuple[str, str]]) -> dict[frozenset[Geometry], tuple[Shape, Shape]]:
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
        one, two = ([g for g in every if _matches(g, pattern)] for pattern in patterns)
        for chosen, pattern in ((one, patterns[0]), (two, patterns[1])):
            if not chosen:
                raise UnknownName(
                    "collision shape that matches", pattern, [g.name for g in every], code="unknown-shape"
                )
        met = {frozenset((a, b)): (a, b) for a in one for b in two if a.joint != b.joint}
        for key, (a, b) in met.items():
            shapes = shape_of(a), shape_of(b)
            if not collisions_of(*shapes):
                raise SimulationError(
                    f"{a.name!r} and {b.name!r} cannot touch each other, a {a.shape} and a {b.shape}. There are these "
                    f"pairs: {describe_pairs()}. Cover one of them with balls.",
                    code="not-supported",
                )
            found.setdefault(key, shapes)
    return found


def _matches(geometry: Geometry, pattern: str) -> bool:
    """Whether a shape is meant by a pattern; planes have to be named in full."""
    return geometry.name == pattern if geometry.shape == "plane" else bool(matching(pattern, [geometry]))


def warn_of_ridges(shapes: Iterable[Shape], ground: Ground) -> None:
    """Say which shapes the ridges of a height field may enter between the places that they touch with."""
    if ground.field is None:
        return
    spacing, entered = ground.field.spacing, []
    for shape in shapes:
        lengths = shape.kind.flat_lengths(shape.size)
        if not lengths or max(lengths) <= spacing * (1.0 + 1e-9):
            continue
        depth = highest_ridge(ground.heights, spacing, max(lengths))
        if depth > _ENTERED * min(lengths):
            entered.append((depth, shape.geometry))
    if entered:
        depth, worst = max(entered, key=lambda pair: pair[0])
        others = f" (and {len(entered) - 1} other shapes)" if len(entered) > 1 else ""
        warn(
            f"the {worst.shape} {worst.name!r}{others} is larger than the spacing of the ground's heights, "
            f"{spacing:g} m, and touches them with its ends or corners alone: a ridge between them may be "
            f"{depth:.2g} m inside of it. Cover its lower side with balls, which touch all of the ground, or leave it "
            "out by touching=."
        )


def highest_ridge(heights: NDArray[np.float64], spacing: float, length: float) -> float:
    """How high [m] heights rise above a straight line between two points of the grid that are at most `length` apart.

    Lines are along rows and columns, and around their middle; cost: log₂(length/spacing) passes over the heights.
    """
    highest, half = 0.0, max(int(0.5 * length / spacing + 1e-9), 1)
    for k in sorted({min(2**power, half) for power in range(half.bit_length() + 1)}):
        share = min(0.5 * length / (k * spacing), 1.0)  # of a line that ends within the cells beside its middle
        for z in (heights, heights.T):
            if len(z) > 2 * k:
                rise = z[k:-k] - 0.5 * (z[: -2 * k] + z[2 * k :])
                highest = max(highest, share * float(rise.max()))
    return highest


def shape_of(geometry: Geometry, on_field: bool = False) -> Shape:
    """A collision shape as it is compiled, with lengths that make a body."""
    kind = SHAPES.get(geometry.shape)
    if kind is None:
        raise SimulationError(
            f"the shape {geometry.name!r} is a {geometry.shape}; there are: {', '.join(SHAPES)}. Leave it out by "
            "touching=.",
            code="not-supported",
        )
    if geometry.shape == "mesh":
        hull = mesh_hull(geometry)
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


# --- shapes among themselves ------------------------------------------------------------------------------------------


class Meeting(NamedTuple):
    """Pairs of shapes that may touch, as straight-line code and in classes."""

    collisions: tuple[Collision, ...] = ()
    classes: tuple[PairClass, ...] = ()

    @property
    def geometries(self) -> frozenset[Geometry]:
        """All shapes that may touch another one."""
        pairs = [(c.shape, c.other) for c in self.collisions] + [p for one in self.classes for p in one.pairs]
        return frozenset(shape.geometry for pair in pairs for shape in pair)


def count_slots(model: Model, meeting: Meeting) -> int:
    """How many contacts a state has by default.

    A robot that lies on the ground touches it, and itself, with 5 (quadrupeds) to 9 pairs of bodies (humanoids) in all
    but one of a thousand steps, most of them with one or two points. Without pairs of moving bodies, 8 are enough.
    """
    moving = {g.joint for g in meeting.geometries if g.joint != WORLD}
    slots = 8 if len(moving) <= _FEW_BODIES else 12 if len(moving) <= _SOME_BODIES else 16
    return max(slots, min(_SLOTS_OF_BODY * _count_free(model) * bool(moving), _MOST_SLOTS))


def _count_free(model: Model) -> int:
    return sum(isinstance(joint.kind, Free) for joint in model.joints)


def meeting_shapes(model: Model, contacts: ContactSelection) -> Meeting:
    """The pairs of a selection: those of `colliding` and of the model's file, without those of moving bodies if
    `self_collision` is off."""
    pairs = colliding(model, contacts.colliding)
    for key, pair in _pairs_of_file(model, contacts.self_collision).items():
        pairs.setdefault(key, pair)
    return Meeting(*arrange_pairs(pairs.values(), _PAIRS + _PAIRS_OF_BODY * max(_count_free(model) - 1, 0)))


def _pairs_of_file(model: Model, moving: bool) -> dict[frozenset[Geometry], tuple[Shape, Shape]]:
    """Pairs that the model's file lets touch: of the world with moving bodies, and of `moving` ones with each other.

    Planes are the ground. Pairs that are not in the table are told of.
    """
    shapes: dict[Geometry, Shape] = {}
    found, absent = {}, Counter[tuple[str, str]]()
    for one, two in touching_pairs(model):
        if "plane" in (one.shape, two.shape) or not (moving or WORLD in (one.joint, two.joint)):
            continue
        for g in (one, two):
            shapes[g] = shapes.get(g) or shape_of(g)
        if collisions_of(shapes[one], shapes[two]):
            found[frozenset((one, two))] = shapes[one], shapes[two]
        else:
            first, second = sorted((one.shape, two.shape))
            absent[first, second] += 1
        if len(found) > MOST_PAIRS:
            raise SimulationError(
                f"the model has {len(model.geometries)} shapes, and lets more than {MOST_PAIRS} pairs of them touch. "
                "Give self_collision=False, and name the pairs that matter by colliding=; or exclude pairs in the "
                "model's file.",
                code="out-of-range",
            )
    if absent:
        warn(_sentence(absent.items()))
    return found


def _sentence(absent: Iterable[tuple[tuple[str, str], int]]) -> str:
    kinds = ", ".join(f"{one} with {two} ({count})" for (one, two), count in absent)
    return f"pairs of shapes pass through each other that the model lets touch: {kinds}. Cover one of them with balls."
