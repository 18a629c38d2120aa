"""Scenes of free bodies as tables: bodies, shapes, pairs of shapes, contact slots.

A loop over bodies or pairs is traced once and reads their data from a table by index. Shapes of one type are a class,
and so are pairs of shapes with the same entries in the table of pairs; each class has its own loop. The world is the
last body.

A class of pairs has slots for pairs with near bounding boxes, and slots for their contacts. Candidates are numbered as
in `Scene.candidate_shapes`.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy
from numpy.typing import NDArray

from delassus.geometry.candidates import Shape
from delassus.geometry.collisions import Collision, collisions_of
from delassus.geometry.pairs.registry import PairEntry
from delassus.model.links import links_of
from delassus.model.parts import WORLD
from delassus.step.scene import Scene
from delassus.step.scheme.free_rotation import PrincipalAxes, principal_axes

Array = NDArray[numpy.float64]

PARTNERS: Final = 4
"""Pairs of a class that may touch, for each body."""

NEIGHBOURS: Final = {True: 6, False: 10}
"""Pairs of a class whose bounds may overlap, for each body: at most 12 touching neighbors for spheres, and 26 in a
dense lattice for other shapes."""

_MARGIN: Final = 1e-2
"""Gaps below this fraction of the smallest shape's size are contacts, whether or not they may close in the step."""

POINTS: Final = 4
"""Largest average number of contacts of a pair, or of a shape on the ground."""


class BodyTable(NamedTuple):
    """Free bodies: masses [kg], centers of mass (bodies, 3) [m], I⁻¹ about these (bodies, 3, 3) in body axes, principal
    axes, and the indices of symmetric tops and of the others."""

    mass: Array
    com: Array
    inverse_inertia: Array
    axes: tuple[PrincipalAxes, ...]
    symmetric: tuple[int, ...]
    skew: tuple[int, ...]

    @property
    def n(self) -> int:
        """The number of bodies, without the world."""
        return len(self.mass)


class ShapeTable(NamedTuple):
    """Shapes on bodies: the body of each, its placement there, its lengths (shapes, 3) except those of a mesh.

    A shape is contained in a box of half sizes `core` (shapes, 3) rounded by `radius`, which for spheres and capsules
    is as tight as their extent along the world's axes.
    """

    body: Array
    R: Array
    p: Array
    core: Array
    radius: Array
    size: Array

    @property
    def n(self) -> int:
        """The number of shapes."""
        return len(self.body)


class GroundClass(NamedTuple):
    """Shapes of one type that may touch the ground.

    Attributes:
        example: One of them.
        shapes: Their indices.
        constant: The common size, None if sizes differ.
        candidate: The first candidate of each.
        points: Points of a shape.
        slots: Contacts.
    """

    example: Shape
    shapes: Array
    constant: Any
    candidate: Array
    points: int
    slots: int


class PairClass(NamedTuple):
    """Pairs of shapes of two types.

    Attributes:
        ways: Entries of the table of pairs, and whether the shapes are swapped.
        first: The index of the first shape of each pair.
        second: The index of the second shape of each pair.
        constants: Sizes of all first and all second shapes, None where they differ; and their number of lengths.
        candidates: For each entry, the first candidate of each pair (pairs,).
        points: For each entry, the number of candidates.
        pair_slots: Pairs that may be near, an odd number.
        slots: Contacts.
    """

    ways: tuple[tuple[PairEntry, bool], ...]
    first: Array
    second: Array
    constants: tuple[tuple[Any, int], tuple[Any, int]]
    candidates: tuple[Array, ...]
    points: tuple[int, ...]
    pair_slots: int
    slots: int

    @property
    def n(self) -> int:
        """The number of pairs."""
        return len(self.first)


class Tables(NamedTuple):
    """A scene of free bodies.

    Attributes:
        bodies: The moving bodies.
        shapes: All shapes.
        extent: (bodies + 1,) the largest distance [m] of a point of a body from its center of mass.
        margin: Gaps [m] below which shapes are near at any velocity.
        ground: Classes of shapes on the ground.
        pairs: Classes of pairs.
        rank: (candidates,) their order in the slots: class by class.
        slots: Contacts that are solved for.
    """

    bodies: BodyTable
    shapes: ShapeTable
    extent: Array
    margin: float
    ground: tuple[GroundClass, ...]
    pairs: tuple[PairClass, ...]
    rank: Array
    slots: int


def tables_of(scene: Scene) -> Tables:
    """The tables of a scene whose bodies are all free."""
    ways = (way for one in scene.pair_classes for pair in one.pairs for way in collisions_of(*pair))
    return _tables(scene.mechanism.model, scene.shapes, (*scene.collisions, *ways), scene.max_contacts)


@lru_cache(maxsize=16)
def _tables(
    model: Any, shapes: tuple[Shape, ...], collisions: tuple[Collision, ...], max_contacts: int | None
) -> Tables:
    links = links_of(model)
    inertias = [link.inertia for link in links.links]
    rotational = [numpy.array(inertia.rotational) for inertia in inertias]
    axes = tuple(principal_axes(I) for I in rotational)
    bodies = BodyTable(
        numpy.array([inertia.mass for inertia in inertias]),
        numpy.array([inertia.com for inertia in inertias]),
        numpy.array([numpy.linalg.inv(I) for I in rotational]),
        axes,
        tuple(k for k, own in enumerate(axes) if own.symmetric),
        tuple(k for k, own in enumerate(axes) if not own.symmetric),
    )
    starts = numpy.cumsum([0, *(shape.count for shape in shapes), *(c.count for c in collisions)])
    every = list(dict.fromkeys([*shapes, *(shape for c in collisions for shape in (c.shape, c.other))]))
    number = {shape: k for k, shape in enumerate(every)}
    table = _shape_table(links, every, bodies.n)
    ground = _ground_classes(shapes, number, starts, max_contacts)
    pairs = _pair_classes(collisions, number, starts[len(shapes) :], bodies.n, max_contacts)
    extent, margin = _extents(bodies, table)
    order = [own.candidate[:, None] + numpy.arange(own.points) for own in ground]
    order += [
        numpy.concatenate([c[:, None] + numpy.arange(n) for c, n in zip(some.candidates, some.points, strict=True)], 1)
        for some in pairs
    ]
    rank = numpy.zeros(starts[-1])
    rank[numpy.concatenate([x.ravel() for x in order]).astype(int)] = numpy.arange(float(len(rank)))
    slots = sum(own.slots for own in ground) + sum(some.slots for some in pairs)
    slots = slots if max_contacts is None else min(slots, max_contacts)
    return Tables(bodies, table, extent, margin, ground, pairs, rank, slots)


def _extents(bodies: BodyTable, shapes: ShapeTable) -> tuple[Array, float]:
    """Distances (bodies + 1,) of the farthest points from the centers of mass, and the margin of near shapes."""
    extent, sizes = numpy.zeros(bodies.n + 1), numpy.linalg.norm(shapes.core, axis=1) + shapes.radius
    moving = shapes.body < bodies.n
    for body, p, size in zip(shapes.body[moving].astype(int), shapes.p[moving], sizes[moving], strict=True):
        extent[body] = max(extent[body], float(numpy.linalg.norm(p - bodies.com[body]) + size))
    return extent, _MARGIN * float(sizes[moving].min())


def _common(shapes: list[Shape]) -> Any:
    """The size of all shapes, None if they differ."""
    return shapes[0].size if all(shape.size == shapes[0].size for shape in shapes) else None


def _ground_classes(
    shapes: tuple[Shape, ...], number: dict[Shape, int], starts: Any, most: int | None
) -> tuple[GroundClass, ...]:
    members: dict[Hashable, list[int]] = {}
    for k, shape in enumerate(shapes):
        members.setdefault((shape.kind.name, shape.vertices, shape.on_field), []).append(k)
    classes = []
    for own in members.values():
        example, points = shapes[own[0]], shapes[own[0]].count
        slots = min(points * len(own), POINTS * len(own) if most is None else most)
        numbers = numpy.array([float(number[shapes[k]]) for k in own])
        constant = _common([shapes[k] for k in own])
        classes.append(GroundClass(example, numbers, constant, starts[own].astype(float), points, slots))
    return tuple(classes)


def _pair_classes(
    collisions: tuple[Collision, ...], number: dict[Shape, int], starts: Any, bodies: int, most: int | None
) -> tuple[PairClass, ...]:
    meetings: dict[Hashable, list[int]] = {}
    for k, collision in enumerate(collisions):
        meetings.setdefault(frozenset((number[collision.shape], number[collision.other])), []).append(k)
    members: dict[Hashable, list[tuple[Shape, Shape, list[int]]]] = {}
    for own in meetings.values():
        first, second = collisions[own[0]].shape, collisions[own[0]].other
        ways = tuple((collisions[k].entry, collisions[k].shape is not first) for k in own)
        kinds = (first.kind.name, first.vertices, second.kind.name, second.vertices)
        members.setdefault((*kinds, ways), []).append((first, second, own))
    classes = []
    for pairs in members.values():
        example = [collisions[k] for k in pairs[0][2]]
        entries = tuple((c.pair, c.shape is not pairs[0][0]) for c in example)
        points = tuple(c.count for c in example)
        each = NEIGHBOURS[all(shape.kind.name == "sphere" for pair in pairs for shape in pair[:2])] * bodies
        near = min(len(pairs), each if most is None else max(most, each)) | 1
        touching = min(near, PARTNERS * bodies)
        slots = min(near * sum(points), touching * min(POINTS, sum(points)) if most is None else most)
        candidates = tuple(starts[[own[w] for _, _, own in pairs]].astype(float) for w in range(len(entries)))
        one, two = [first for first, _, _ in pairs], [second for _, second, _ in pairs]
        numbers = [numpy.array([float(number[shape]) for shape in side]) for side in (one, two)]
        constants = (_common(one), one[0].kind.lengths), (_common(two), two[0].kind.lengths)
        classes.append(PairClass(entries, numbers[0], numbers[1], constants, candidates, points, near, slots))
    return tuple(classes)


def _shape_table(links: Any, shapes: list[Shape], bodies: int) -> ShapeTable:
    rows: list[tuple[Any, ...]] = []
    for shape in shapes:
        link, placement = links.place(shape.geometry.joint, shape.geometry.placement)
        core, radius, center = _bound(shape)
        size = numpy.zeros(3)
        if not shape.vertices:
            size[: len(shape.size)] = shape.size
        body = float(bodies if link == WORLD else link)
        rows.append((body, placement.R, placement.p, core + numpy.abs(center), radius, size))
    return ShapeTable(*(numpy.array(column, float) for column in zip(*rows, strict=True)))


def _bound(shape: Shape) -> tuple[Array, float, Array]:
    """Half sizes (3,) of a box around a shape's core, the rounding radius, and the center."""
    name, size = shape.kind.name, shape.geometry.size
    none = numpy.zeros(3)
    if name == "plane":
        return none, numpy.inf, none
    if name == "sphere":
        return none, float(size[0]), none
    if name == "capsule":
        return numpy.array([0.0, 0.0, 0.5 * size[1]]), float(size[0]), none
    points = shape.kind.outline(shape.size)
    low, high = points.min(0), points.max(0)
    return 0.5 * (high - low), 0.0, 0.5 * (high + low)
