"""The broad phase of classes of pairs: lower bounds of gaps, from capsules around bodies, then from bounds of shapes.

    bodies      gaps of the capsules around all shapes of two bodies, once for all classes; pairs of bodies whose
                bounding spheres stay apart are skipped
    shapes      the larger of the gaps of the capsules and of the boxes around two shapes, in blocks of pairs of the
                same two bodies; blocks of bodies that stay apart during the step are skipped

Each bound is a gap along some direction, less twice what the bodies may approach along it in the step (see `approach`):
velocities change in a step. A bound from the joint speeds between them is many times as large: for a quadruped with
fast legs, it passes fifty pairs of shapes in a vector of eight states, of which one is near.

Cost: 15 operations for each pair of bodies, 170 for each whose spheres are near, 290 for each pair of shapes of near
bodies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy
from numpy.typing import NDArray

import delassus.numpy as np
from delassus.compiler.tracing.flow.branch import cond
from delassus.compiler.tracing.flow.control import map as map_stacks
from delassus.dynamics.tree.poses import Pair
from delassus.geometry.approach import Approach, displacement
from delassus.geometry.bounds import (
    BoundingCapsule,
    around,
    bounding_box,
    bounding_capsule,
    box_distance,
    box_excess,
    segment_offset,
    transform_capsule,
)
from delassus.geometry.candidates import Shape
from delassus.geometry.classes import PairClass
from delassus.geometry.nearest import FAR
from delassus.geometry.shapes.distances import norm
from delassus.model.links import Links
from delassus.model.parts import WORLD
from delassus.model.placement import HERE

Array = NDArray[numpy.float64]

NEAR: Final = 1e-3
"""Pairs [m] that are farther apart than this, after twice the way by which they may approach, are not looked at."""

CHANGE: Final = 1.0
"""By how much velocities between bodies [m/s] may change in a step; impacts that change them by more than twice that
may let shapes penetrate until the next step, which corrects it."""

BLOCK: Final = 6
"""Pairs of the same two bodies in a block, at most."""


class Movement(NamedTuple):
    """The motion of links in a step of time [s]: twists (links + 1, 6) about a center (3,), the world's last; None if
    they are at rest. `margin` [m] is an additional approach distance."""

    twists: Any
    center: Any
    time_step: Any
    margin: float = 0.0


class WorldShapes(NamedTuple):
    """Shapes in the world: rotations (n, 3, 3), centers (n, 3), bounding capsules center ± half, (n, 3) each, and
    centers of bounding boxes (n, 3).

    Of pairs of bodies: how much [m] the gaps of the capsules around them exceed those of near bodies (n,), and twice
    the motions (n, 6) of the first relative to the second in the step, about a center (3,); None if nothing moves.
    Shapes that stand still are near below a gap `margin`.
    """

    R: Any
    p: Any
    center: Any
    half: Any
    box: Any
    body_excess: Any
    motions: Any
    origin: Any
    margin: Any

    def approach(self, capsule: tuple[Any, Any, Any], bodies: Any, sign: Any) -> Approach:
        """How a shape within a capsule, its center (3,), half axis (3,) and radius, may approach another one: those of
        a pair of bodies by its number, with the sign -1 if the shape is of the second one."""
        center, half, radius = capsule
        if self.motions is None:
            return Approach(None, None, half, radius, self.margin)
        motion = sign * np.take(self.motions, bodies, axis=0)
        return Approach(displacement(motion, center - self.origin), motion[3:], half, radius, self.margin)


@dataclass(frozen=True, eq=False)
class PairTables:
    """Constants of classes of pairs, known when a kernel is traced.

    Attributes:
        shapes: All shapes, without repetition.
        bodies: The joint of each body, and the capsule around its shapes in that joint's axes. Each shape that is fixed
            to the world is a body of its own.
        body_pairs: (n, 2) indices of the pairs of bodies.
        blocks: For each class, indices of its pairs in blocks (blocks, size); -1 is padding.
        block_bodies: For each class, the pair of bodies (blocks,) of each block.
        pair_bodies: For each class, the pair of bodies (pairs,) of each pair.
        signs: For each class, 1 for pairs (pairs,) whose shapes are in the order of that pair of bodies, else -1.
    """

    shapes: tuple[Shape, ...]
    bodies: tuple[tuple[int, BoundingCapsule], ...]
    body_pairs: Array
    blocks: tuple[NDArray[numpy.int64], ...]
    block_bodies: tuple[Array, ...]
    pair_bodies: tuple[Array, ...]
    signs: tuple[Array, ...]


@lru_cache(maxsize=16)
def pair_tables(classes: tuple[PairClass, ...]) -> PairTables:
    """The tables of the classes of a scene."""
    shapes = tuple(dict.fromkeys(shape for one in classes for pair in one.pairs for shape in pair))
    owner: dict[Shape, Any] = {s: (s.geometry.joint, k * (s.geometry.joint == WORLD)) for k, s in enumerate(shapes)}
    members: dict[Any, list[Shape]] = {}
    for shape in shapes:
        members.setdefault(owner[shape], []).append(shape)
    number = {key: k for k, key in enumerate(members)}
    bodies = tuple((key[0], _capsule_of(some)) for key, some in members.items())
    met: dict[tuple[int, int], int] = {}
    blocks, block_bodies, pair_bodies, signs = [], [], [], []
    for one in classes:
        groups: dict[int, list[int]] = {}
        met_by, sign = numpy.zeros(len(one.pairs)), numpy.ones(len(one.pairs))
        for k, pair in enumerate(one.pairs):
            i, j = (number[owner[shape]] for shape in pair)
            sign[k] = 1.0 if i <= j else -1.0
            met_by[k] = met.setdefault((min(i, j), max(i, j)), len(met))
            groups.setdefault(int(met_by[k]), []).append(k)
        size = min(BLOCK, max(map(len, groups.values())))
        rows = [(g, ks[at : at + size]) for g, ks in groups.items() for at in range(0, len(ks), size)]
        table = numpy.full((len(rows), size), -1)
        for row, (_, ks) in zip(table, rows, strict=True):
            row[: len(ks)] = ks
        blocks.append(table)
        block_bodies.append(numpy.array([float(g) for g, _ in rows]))
        pair_bodies.append(met_by)
        signs.append(sign)
    columns = (tuple(some) for some in (blocks, block_bodies, pair_bodies, signs))
    return PairTables(shapes, bodies, numpy.array(list(met), float), *columns)


def _capsule_of(shapes: Sequence[Shape]) -> BoundingCapsule:
    """The capsule around shapes of one body, in the axes of its joint."""
    return around(
        [transform_capsule(bounding_capsule(s), s.geometry.placement.R, s.geometry.placement.p) for s in shapes]
    )


def place_shapes(tables: PairTables, tree: Links, world: list[Pair], moving: Movement | None = None) -> WorldShapes:
    """Poses of shapes for given link poses, and the pairs of bodies that are near during the step; None for links at
    rest."""
    R_links = np.stack([*(R for R, _ in world), numpy.eye(3)])
    p_links = np.stack([*(p for _, p in world), numpy.zeros(3)])

    def pose(link: Any) -> tuple[Any, Any]:
        return np.take(R_links, link, axis=0), np.take(p_links, link, axis=0)

    def number(link: int) -> float:
        return float(len(tree.links) if link == WORLD else link)

    def place_shape(link: Any, R: Any, p: Any, center: Any, half: Any, box: Any) -> tuple[Any, ...]:
        R_link, p_link = pose(link)
        R_world, p_world = R_link @ R, p_link + R_link @ p
        return R_world, p_world, p_world + R_world @ center, R_world @ half, p_world + R_world @ box

    def place_body(link: Any, center: Any, half: Any) -> tuple[Any, Any]:
        R, p = pose(link)
        return p + R @ center, R @ half

    at = [tree.place(s.geometry.joint, s.geometry.placement) for s in tables.shapes]
    capsules = [bounding_capsule(shape) for shape in tables.shapes]
    columns = [numpy.array([number(link) for link, _ in at]), numpy.stack([x.R for _, x in at])]
    columns += [numpy.stack([x.p for _, x in at]), *_ends(capsules)]
    columns.append(numpy.stack([bounding_box(shape).center for shape in tables.shapes]))
    R_shapes, p_shapes, centers, halves, boxes = map_stacks(place_shape, *columns)
    joints = [tree.place(joint, HERE) for joint, _ in tables.bodies]
    capsules = [transform_capsule(c, x.R, x.p) for (_, c), (_, x) in zip(tables.bodies, joints, strict=True)]
    center, half = map_stacks(place_body, numpy.array([number(link) for link, _ in joints]), *_ends(capsules))
    radii = numpy.array([c.radius for c in capsules])
    still = moving is None or moving.twists is None
    change = 0.0 if still else CHANGE * moving.time_step  # type: ignore[union-attr]
    margin = NEAR + 2.0 * (change + (0.0 if moving is None else moving.margin))
    numbers = numpy.array([number(link) for link, _ in joints])
    outer = numpy.array([norm(c.half) + c.radius for c in capsules]) + 0.5 * margin
    if moving is not None and moving.twists is not None:
        outer = outer + _travel(moving, numbers, center, outer)

    def body_excess(pair: Any) -> tuple[Any, Any]:
        """The gap of two bodies less that below which they are near, by the smaller of their own extents."""
        ends = [[np.take(x, pair[k], axis=0) for x in (center, half)] for k in range(2)]
        radius = [np.take(radii, pair[k]) for k in range(2)]
        n, gap = _direction(segment_offset(*ends[0], *ends[1]))
        gap = gap - (radius[0] + radius[1])
        if moving is None or moving.twists is None:
            return np.array(gap - margin), np.zeros(6)
        link = [np.take(numbers, pair[k]) for k in range(2)]
        twist = np.take(moving.twists, link[0], axis=0) - np.take(moving.twists, link[1], axis=0)
        motion, reaches = 2.0 * moving.time_step * twist, []
        for k in range(2):
            way = displacement(motion, ends[k][0] - moving.center)
            reaches.append(Approach(way, motion[3:], ends[k][1], radius[k], margin).reach(n))
        return gap - np.minimum(*reaches), motion

    def excess(pair: Any) -> tuple[Any, Any]:
        """As `body_excess`; far if the spheres around both stay apart."""
        (c1, r1), (c2, r2) = ([np.take(x, pair[k], axis=0) for x in (center, outer)] for k in range(2))
        between, reach = c1 - c2, r1 + r2
        far = np.array(0.5 * FAR), np.zeros(6)
        return cond(between @ between < reach * reach, body_excess, far, pair)

    excesses, motions = map_stacks(excess, tables.body_pairs)
    origin = None if still else moving.center  # type: ignore[union-attr]
    return WorldShapes(R_shapes, p_shapes, centers, halves, boxes, excesses, None if still else motions, origin, margin)


def _travel(moving: Movement, links: Array, centers: Any, radii: Any) -> Any:
    """Twice the largest way (n,) [m] of points of spheres on links (n,) in the step."""

    def way(link: Any, center: Any, radius: Any) -> Any:
        twist = np.take(moving.twists, link, axis=0)
        speed = norm(displacement(twist, center - moving.center)) + norm(twist[3:]) * radius
        return 2.0 * moving.time_step * speed

    return map_stacks(way, links, centers, radii)


def pair_bounds(tables: PairTables, number: int, one: PairClass, placed: WorldShapes) -> Any:
    """Lower bounds (blocks, size) of the gaps of all pairs of a class, minus the gap below which they are near.

    Pairs of bodies that are not near have the bound 5e29 m; padding has a larger one.
    """
    blocks, boxed = tables.blocks[number], _are_boxed(one)
    halves = numpy.stack([bounding_box(shape).half for shape in tables.shapes])
    index = {shape: float(k) for k, shape in enumerate(tables.shapes)}
    radius = {shape: bounding_capsule(shape).radius for shape in tables.shapes}
    first, second = (numpy.array([index[pair[k]] for pair in one.pairs])[blocks] for k in range(2))
    radii = numpy.array([[radius[shape] for shape in pair] for pair in one.pairs])[blocks]
    radii = numpy.where(blocks[..., None] < 0, -FAR, radii)

    def block_excess(bodies: Any, i: Any, j: Any, radius: Any, sign: Any) -> Any:
        def excess(i: Any, j: Any, radius: Any, sign: Any) -> Any:
            bounds = []
            for k in range(blocks.shape[1]):
                bound = _capsule_excess(placed, (i[k], j[k]), radius[k], bodies, sign[k])
                if boxed:
                    boxes = [tuple(np.take(x, n, axis=0) for x in (placed.R, placed.box, halves)) for n in (i[k], j[k])]
                    bound = np.maximum(bound, _box_excess(placed, boxes, bodies, sign[k]))
                bounds.append(bound)
            return np.stack(bounds)

        near = np.take(placed.body_excess, bodies) < 0.0
        return cond(near, excess, np.full(blocks.shape[1], 0.5 * FAR), i, j, radius, sign)

    return map_stacks(block_excess, tables.block_bodies[number], first, second, radii, tables.signs[number][blocks])


def _capsule_excess(placed: WorldShapes, shapes: tuple[Any, Any], radii: Any, bodies: Any, sign: Any) -> Any:
    """The gap of the capsules around two shapes less that below which they are near."""
    one, two = ([np.take(x, k, axis=0) for x in (placed.center, placed.half)] for k in shapes)
    n, distance = _direction(segment_offset(*one, *two))
    approach = placed.approach((*one, radii[0]), bodies, sign)
    return distance - (radii[0] + radii[1]) - approach.reach(n)


def _box_excess(placed: WorldShapes, boxes: list[tuple[Any, ...]], bodies: Any, sign: Any) -> Any:
    """The gap of the boxes around two shapes less that below which they are near."""
    if placed.motions is None:
        return box_distance(*boxes[0], *boxes[1]) - placed.margin
    motion = sign * np.take(placed.motions, bodies, axis=0)
    ways = tuple(displacement(motion, box[1] - placed.origin) for box in boxes)
    return box_excess(boxes[0], boxes[1], ways, motion[3:], placed.margin)


def _direction(offset: Any) -> tuple[Any, Any]:
    """The unit vector (3,) of an offset and its length; zero where that is zero."""
    length = norm(offset)
    return offset / np.where(length > 0.0, length, 1.0), length


def _are_boxed(one: PairClass) -> bool:
    """Whether bounding boxes of a class are tighter than capsules; spheres and capsules are their own bounding
    capsules."""
    return any(shape.kind.name not in ("sphere", "capsule") for shape in one.pairs[0])


def _ends(capsules: Sequence[BoundingCapsule]) -> tuple[Array, Array]:
    return numpy.stack([c.center for c in capsules]), numpy.stack([c.half for c in capsules])
