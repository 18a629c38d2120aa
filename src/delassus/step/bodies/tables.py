"""Scenes of free bodies as tables: bodies, shapes, pairs of shapes, contact slots.

A loop over bodies or pairs is traced once and reads what differs from a table, by an index. Shapes of one kind are a
class, and so are pairs of shapes that touch by the same entries of the table of pairs: each class has a loop of its own.
The world is the body after all others.

A class of pairs has slots for pairs whose bounding boxes are near, and slots for contacts of these. Candidates are
numbered as in `Scene.candidate_shapes`.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy
from numpy.typing import NDArray

from delassus.geometry.candidates import Shape
from delassus.geometry.collisions import Collision
from delassus.geometry.pairs.registry import PairEntry
from delassus.model.links import links_of
from delassus.model.parts import WORLD
from delassus.step.scene import Scene
from delassus.step.scheme.free_rotation import PrincipalAxes, principal_axes

Array = NDArray[numpy.float64]

PARTNERS: Final = 4
"""Pairs of a class that may be near, for each body."""

POINTS: Final = 4
"""Contacts of a pair, or of a shape on the ground, on average at most."""


class BodyTable(NamedTuple):
    """Free bodies: their masses [kg], centres of mass (bodies, 3) [m], I⁻¹ about these (bodies, 3, 3) in the bodies'
    axes, principal axes, and the numbers of those that are symmetric tops and of the others."""

    mass: Array
    com: Array
    inverse_inertia: Array
    axes: tuple[PrincipalAxes, ...]
    symmetric: tuple[int, ...]
    skew: tuple[int, ...]

    @property
    def count(self) -> int:
        """The number of bodies, without the world."""
        return len(self.mass)


class ShapeTable(NamedTuple):
    """Shapes on bodies: the body of each, its placement there, its lengths; a mesh has its vertices in `constant`.

    A shape is inside of a box of halves `core` (shapes, 3) that is `radius` thicker: no more than spheres and capsules
    take of the world's axes. `constant` is the size of all shapes where they have the same one, else None.
    """

    body: Array
    R: Array
    p: Array
    core: Array
    radius: Array
    size: Array
    constant: Any


class GroundClass(NamedTuple):
    """Shapes of one kind that may touch the ground: the first candidate (shapes,) of each, points of a shape, slots."""

    example: Shape
    shapes: ShapeTable
    candidate: Array
    points: int
    slots: int


class PairClass(NamedTuple):
    """Pairs of shapes of two kinds.

    Attributes:
        ways: Entries of the table of pairs, and whether the shapes change places.
        first: The first shape of each pair.
        second: The second one.
        candidates: Of each way (pairs,) the first candidate.
        points: Of each way, the number of candidates.
        pair_slots: Pairs that may be near.
        slots: Contacts.
    """

    ways: tuple[tuple[PairEntry, bool], ...]
    first: ShapeTable
    second: ShapeTable
    candidates: tuple[Array, ...]
    points: tuple[int, ...]
    pair_slots: int
    slots: int

    @property
    def count(self) -> int:
        """The number of pairs."""
        return len(self.first.body)


class Tables(NamedTuple):
    """A scene of free bodies."""

    bodies: BodyTable
    ground: tuple[GroundClass, ...]
    pairs: tuple[PairClass, ...]

    @property
    def slots(self) -> int:
        """Contacts that are solved for."""
        return sum(some.slots for some in (*self.ground, *self.pairs))


def tables_of(scene: Scene) -> Tables:
    """The tables of a scene whose bodies are all free."""
    return _tables(scene.mechanism.model, scene.shapes, scene.collisions, scene.max_contacts)


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
    count = len(inertias)
    starts = numpy.cumsum([0, *(shape.count for shape in shapes), *(c.count for c in collisions)])
    ground = _ground_classes(links, shapes, starts, count, max_contacts)
    pairs = _pair_classes(links, collisions, starts[len(shapes) :], count, max_contacts)
    return Tables(bodies, ground, pairs)


def _ground_classes(
    links: Any, shapes: tuple[Shape, ...], starts: Any, bodies: int, most: int | None
) -> tuple[GroundClass, ...]:
    members: dict[Hashable, list[int]] = {}
    for k, shape in enumerate(shapes):
        members.setdefault((shape.kind.name, shape.vertices, shape.on_field), []).append(k)
    classes = []
    for numbers in members.values():
        example = shapes[numbers[0]]
        points = example.count
        total = points * len(numbers)
        slots = min(total, POINTS * len(numbers) if most is None else most)
        table = _shape_table(links, [shapes[k] for k in numbers], bodies)
        classes.append(GroundClass(example, table, starts[numbers].astype(float), points, slots))
    return tuple(classes)


def _pair_classes(
    links: Any, collisions: tuple[Collision, ...], starts: Any, bodies: int, most: int | None
) -> tuple[PairClass, ...]:
    meetings: dict[Hashable, list[int]] = {}
    for k, collision in enumerate(collisions):
        meetings.setdefault(frozenset((collision.shape, collision.other)), []).append(k)
    members: dict[Hashable, list[tuple[Shape, Shape, list[int]]]] = {}
    for numbers in meetings.values():
        first, second = collisions[numbers[0]].shape, collisions[numbers[0]].other
        ways = tuple((collisions[k].entry, collisions[k].shape is not first) for k in numbers)
        kinds = (first.kind.name, first.vertices, second.kind.name, second.vertices)
        members.setdefault((*kinds, ways), []).append((first, second, numbers))
    classes = []
    for pairs in members.values():
        example = [collisions[k] for k in pairs[0][2]]
        ways = tuple((c.pair, c.shape is not pairs[0][0]) for c in example)
        points = tuple(c.count for c in example)
        near = min(len(pairs), PARTNERS * bodies if most is None else max(most, PARTNERS * bodies))
        slots = min(near * sum(points), near * POINTS if most is None else most)
        candidates = tuple(
            starts[[numbers[w] for _, _, numbers in pairs]].astype(float) for w in range(len(ways))
        )
        tables = [_shape_table(links, [pair[k] for pair in pairs], bodies) for k in range(2)]
        classes.append(PairClass(ways, tables[0], tables[1], candidates, points, near, slots))
    return tuple(classes)


def _shape_table(links: Any, shapes: list[Shape], bodies: int) -> ShapeTable:
    body, rotations, places, cores, radii = [], [], [], [], []
    for shape in shapes:
        link, placement = links.place(shape.geometry.joint, shape.geometry.placement)
        body.append(float(bodies if link == WORLD else link))
        core, radius, center = _bound(shape)
        rotations.append(numpy.array(placement.R))
        places.append(numpy.array(placement.p))
        cores.append(core + numpy.abs(center))
        radii.append(radius)
    same = all(shape.size == shapes[0].size for shape in shapes)
    constant = shapes[0].size if same or shapes[0].vertices else None
    size = numpy.zeros((len(shapes), 0)) if shapes[0].vertices else numpy.array([shape.size for shape in shapes], float)
    return ShapeTable(*(numpy.array(x) for x in (body, rotations, places, cores, radii)), size, constant)


def _bound(shape: Shape) -> tuple[Array, float, Array]:
    """Halves (3,) of a box around a shape's core, the thickness around that, and where its centre is."""
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
