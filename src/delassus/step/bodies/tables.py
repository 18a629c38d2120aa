"""Scenes as tables: bodies, shapes, pairs of shapes, contact slots.

A loop over bodies or pairs is traced once and reads their data from a table by index. Shapes of one type are a class,
and so are pairs of shapes with the same entries in the table of pairs; each class has its own loop. Free bodies come
first, then the world, then the links of robots. Contacts of robots have classes and slots of their own, since their
rows are longer.

A class of pairs has slots for pairs with near bounding boxes, and slots for their contacts. Candidates are numbered as
in `Scene.candidate_shapes`.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy
from numpy.typing import NDArray

import delassus.numpy as np
from delassus.geometry.candidates import Shape
from delassus.geometry.collisions import Collision, collisions_of
from delassus.geometry.hulls.tables import Hull, TableRow, as_hull
from delassus.geometry.pairs.registry import PairEntry
from delassus.model.links import links_of
from delassus.model.parts import WORLD
from delassus.step.bodies.robots import SceneParts, scene_parts
from delassus.step.scene import Scene
from delassus.step.scheme.free_rotation import PrincipalAxes, principal_axes

Array = NDArray[numpy.float64]

PARTNERS: Final = 4
"""Pairs of a class that may touch, for each body."""

NEIGHBOURS: Final = {True: 6, False: 10}
"""Pairs of a class whose bounds may overlap, for each body: at most 12 touching neighbors for spheres, and 26 in a
dense lattice for other shapes."""

ROBOT_CONTACTS: Final = 64
"""Largest default number of contacts of robots."""

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
    is as tight as their extent along the world's axes. Hulls are tables of vertices, face normals and faces, padded to
    as many rows as the largest one.
    """

    body: Array
    R: Array
    p: Array
    core: Array
    radius: Array
    size: Array
    hulls: tuple[Array, ...] = ()

    @property
    def n(self) -> int:
        """The number of shapes."""
        return len(self.body)

    def size_data(self, k: Any, lengths: int) -> Any:
        """What `size_of` needs of the k-th shape, which has this number of lengths; k is traced."""
        return np.take(self.size, k, axis=0) if lengths else k

    def size_of(self, data: Any, constant: Any, lengths: int) -> Any:
        """The size of a shape of a class: the constant one of the class, else its lengths, else its hull."""
        if constant is not None:
            return constant
        if lengths:
            return data[:lengths]
        vertices, normals, quads = self.hulls
        return Hull(np.take(vertices, data, axis=0), TableRow(normals, data), TableRow(quads, data))


class GroundClass(NamedTuple):
    """Shapes of one type that may touch the ground.

    Attributes:
        example: One of them.
        shapes: Their indices.
        constant: The common size, None if sizes differ.
        candidate: The first candidate of each.
        points: Points of a shape.
        slots: Contacts.
        on_robot: Whether they are on links of robots.
    """

    example: Shape
    shapes: Array
    constant: Any
    candidate: Array
    points: int
    slots: int
    on_robot: bool = False


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
        on_robot: Whether one shape or both are on links of robots.
    """

    ways: tuple[tuple[PairEntry, bool], ...]
    first: Array
    second: Array
    constants: tuple[tuple[Any, int], tuple[Any, int]]
    candidates: tuple[Array, ...]
    points: tuple[int, ...]
    pair_slots: int
    slots: int
    on_robot: bool = False

    @property
    def n(self) -> int:
        """The number of pairs."""
        return len(self.first)


class Tables(NamedTuple):
    """A scene.

    Attributes:
        bodies: The moving bodies.
        shapes: All shapes.
        extent: (bodies + 1 + links,) the largest distance [m] of a point of a body from its center of mass, and of a
            point of a link from its origin.
        margin: Gaps [m] below which shapes are near at any velocity.
        ground: Classes of shapes on the ground.
        pairs: Classes of pairs.
        rank: (candidates,) their order in the slots: class by class.
        slots: Contacts that are solved for, those of robots last.
        robot_slots: How many of these are those of robots.
    """

    bodies: BodyTable
    shapes: ShapeTable
    extent: Array
    margin: float
    ground: tuple[GroundClass, ...]
    pairs: tuple[PairClass, ...]
    rank: Array
    slots: int
    robot_slots: int = 0

    def of_bodies(self) -> Tables:
        """The same with contacts of free bodies only."""
        return self._contacts(False, self.slots - self.robot_slots)

    def of_robots(self) -> Tables:
        """The same with contacts of robots only."""
        return self._contacts(True, self.robot_slots)

    def _contacts(self, on_robot: bool, slots: int) -> Tables:
        ground = tuple(one for one in self.ground if one.on_robot == on_robot)
        pairs = tuple(one for one in self.pairs if one.on_robot == on_robot)
        return self._replace(ground=ground, pairs=pairs, slots=slots, robot_slots=0)


def tables_of(scene: Scene) -> Tables:
    """The tables of a scene."""
    ways = (way for one in scene.pair_classes for pair in one.pairs for way in collisions_of(*pair))
    return _tables(
        scene.mechanism.model, scene_parts(scene), scene.shapes, (*scene.collisions, *ways), scene.max_contacts
    )


@lru_cache(maxsize=16)
def _tables(
    model: Any,
    parts: SceneParts,
    shapes: tuple[Shape, ...],
    collisions: tuple[Collision, ...],
    max_contacts: int | None,
) -> Tables:
    links = links_of(model)
    inertias = [links.links[k].inertia for k in parts.bodies]
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
    table = _shape_table(links, every, parts)
    ground = _ground_classes(shapes, number, table.body > bodies.n, starts, max_contacts)
    pairs = _pair_classes(collisions, number, table.body, starts[len(shapes) :], bodies.n, max_contacts)
    extent, margin = _extents(bodies, table, len(parts.links))
    order = [own.candidate[:, None] + numpy.arange(own.points) for own in ground]
    order += [
        numpy.concatenate([c[:, None] + numpy.arange(n) for c, n in zip(some.candidates, some.points, strict=True)], 1)
        for some in pairs
    ]
    rank = numpy.zeros(starts[-1])
    rank[numpy.concatenate([x.ravel() for x in order]).astype(int)] = numpy.arange(float(len(rank)))
    counts = [
        sum(one.slots for one in ground if one.on_robot == on_robot)
        + sum(some.slots for some in pairs if some.on_robot == on_robot)
        for on_robot in (False, True)
    ]
    most = [counts[0], min(counts[1], ROBOT_CONTACTS)] if max_contacts is None else [max_contacts] * 2
    free, own = (min(count, bound) for count, bound in zip(counts, most, strict=True))
    return Tables(bodies, table, extent, margin, ground, pairs, rank, free + own, own)


def _extents(bodies: BodyTable, shapes: ShapeTable, links: int) -> tuple[Array, float]:
    """Distances (bodies + 1 + links,) of the farthest points from the centers of mass or origins, and the margin of
    near shapes."""
    extent, sizes = numpy.zeros(bodies.n + 1 + links), numpy.linalg.norm(shapes.core, axis=1) + shapes.radius
    centers = numpy.concatenate([bodies.com, numpy.zeros((1 + links, 3))])
    moving = shapes.body != bodies.n
    for body, p, size in zip(shapes.body[moving].astype(int), shapes.p[moving], sizes[moving], strict=True):
        extent[body] = max(extent[body], float(numpy.linalg.norm(p - centers[body]) + size))
    return extent, _MARGIN * float(sizes[moving].min())


def _common(shapes: list[Shape]) -> Any:
    """The size of all shapes, None if they differ."""
    return shapes[0].size if all(shape.size == shapes[0].size for shape in shapes) else None


def _ground_classes(
    shapes: tuple[Shape, ...], number: dict[Shape, int], on_robot: Any, starts: Any, most: int | None
) -> tuple[GroundClass, ...]:
    """Classes of shapes on the ground, those of robots last; `on_robot` (shapes,) says of all which these are."""
    members: dict[tuple[Any, ...], list[int]] = {}
    for k, shape in enumerate(shapes):
        robot = bool(on_robot[number[shape]])
        # On a height field, the code depends on the vertices of a hull.
        vertices = shape.vertices if shape.on_field or not robot else ()
        members.setdefault((robot, shape.kind.name, shape.on_field, vertices), []).append(k)
    classes = []
    for key, own in sorted(members.items(), key=lambda item: item[0][0]):
        example, points = shapes[own[0]], shapes[own[0]].count
        slots = min(points * len(own), POINTS * len(own) if most is None else most)
        numbers = numpy.array([float(number[shapes[k]]) for k in own])
        constant = _common([shapes[k] for k in own])
        classes.append(GroundClass(example, numbers, constant, starts[own].astype(float), points, slots, key[0]))
    return tuple(classes)


def _pair_classes(
    collisions: tuple[Collision, ...], number: dict[Shape, int], body: Any, starts: Any, bodies: int, most: int | None
) -> tuple[PairClass, ...]:
    """Classes of pairs, those of robots last; `body` (shapes,) has the body of each shape."""
    meetings: dict[Hashable, list[int]] = {}
    for k, collision in enumerate(collisions):
        meetings.setdefault(frozenset((number[collision.shape], number[collision.other])), []).append(k)
    members: dict[tuple[Any, ...], list[tuple[Shape, Shape, list[int]]]] = {}
    for own in meetings.values():
        first, second = collisions[own[0]].shape, collisions[own[0]].other
        ways = tuple((collisions[k].entry, collisions[k].shape is not first) for k in own)
        robot = bool(max(body[number[first]], body[number[second]]) > bodies)
        kinds = [(shape.kind.name, () if robot else shape.vertices) for shape in (first, second)]
        members.setdefault((robot, *kinds, ways), []).append((first, second, own))
    classes = []
    for key, pairs in sorted(members.items(), key=lambda item: item[0][0]):
        example = [collisions[k] for k in pairs[0][2]]
        entries = tuple((c.pair, c.shape is not pairs[0][0]) for c in example)
        points = tuple(c.count for c in example)
        count = len({body[number[shape]] for pair in pairs for shape in pair[:2]}) if key[0] else bodies
        each = NEIGHBOURS[all(shape.kind.name == "sphere" for pair in pairs for shape in pair[:2])] * count
        near = min(len(pairs), each if most is None else max(most, each)) | 1
        touching = min(near, PARTNERS * count)
        slots = min(near * sum(points), touching * min(POINTS, sum(points)) if most is None else most)
        candidates = tuple(starts[[own[w] for _, _, own in pairs]].astype(float) for w in range(len(entries)))
        one, two = [first for first, _, _ in pairs], [second for _, second, _ in pairs]
        numbers = [numpy.array([float(number[shape]) for shape in side]) for side in (one, two)]
        constants = (_common(one), one[0].kind.lengths), (_common(two), two[0].kind.lengths)
        table = (numbers[0], numbers[1], constants, candidates, points, near, slots)
        classes.append(PairClass(entries, *table, on_robot=key[0]))
    return tuple(classes)


def _shape_table(links: Any, shapes: list[Shape], parts: SceneParts) -> ShapeTable:
    number = parts.number
    rows: list[tuple[Any, ...]] = []
    for shape in shapes:
        link, placement = links.place(shape.geometry.joint, shape.geometry.placement)
        core, radius, center = _bound(shape)
        size = numpy.zeros(3)
        if not shape.vertices:
            size[: len(shape.size)] = shape.size
        body = float(len(parts.bodies) if link == WORLD else number[link])
        rows.append((body, placement.R, placement.p, core + numpy.abs(center), radius, size))
    columns: list[Any] = [numpy.array(column, float) for column in zip(*rows, strict=True)]
    return ShapeTable(*columns)._replace(hulls=_hull_tables(shapes))


def _hull_tables(shapes: list[Shape]) -> tuple[Array, ...]:
    """Vertices (shapes, n, 3), normals (shapes, f, 3) and faces (shapes, f, 4, 3) of the hulls among shapes."""
    hulls = [as_hull(shape.size) if shape.vertices else None for shape in shapes]
    if not any(hulls):
        return ()
    return tuple(_pad([hull and hull[part] for hull in hulls]) for part in range(3))


def _pad(arrays: list[Any]) -> Array:
    """Arrays (n, …) stacked, padded with copies of their last row; absent arrays become zeros."""
    some = [x for x in arrays if x is not None]
    table = numpy.zeros((len(arrays), max(map(len, some)), *some[0].shape[1:]))
    for k, x in enumerate(arrays):
        if x is not None:
            table[k], table[k, : len(x)] = x[-1], x
    return table


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
