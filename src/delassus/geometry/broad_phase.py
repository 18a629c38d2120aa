"""The broad phase of classes of pairs: lower bounds of gaps, from capsules around bodies, then from bounds of shapes.

    bodies      gaps of the capsules around all shapes of two bodies, once for all classes
    shapes      the larger of the gaps of the capsules and of the boxes around two shapes, in blocks of pairs of the
                same two bodies; blocks of bodies that stay apart during the step are skipped

In a step of time h, two bodies with the relative motion (v, ω) about the center of one of them, of radius r, approach
by at most h (|v| + |ω| r). A bound from the joint speeds between them is several times as large: for a quadruped with
fast legs, it passes fifty pairs of shapes in a vector of eight states, of which five are near.

Cost: 100 operations for each pair of bodies, 170 for each pair of shapes of near bodies.
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
from delassus.geometry.bounds import (
    BoundingCapsule,
    around,
    bounding_box,
    bounding_capsule,
    box_distance,
    segment_distance,
    transform_capsule,
)
from delassus.geometry.candidates import Shape
from delassus.geometry.classes import PairClass
from delassus.geometry.nearest import FAR
from delassus.model.links import Links
from delassus.model.parts import WORLD
from delassus.model.placement import HERE

Array = NDArray[numpy.float64]

NEAR: Final = 0.01
"""Pairs [m] that are farther apart than this, after twice the way on which they may approach, are not looked at."""

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

    Of pairs of bodies (n,): the gaps [m] of the capsules around them, and those below which shapes count as near.
    """

    R: Any
    p: Any
    center: Any
    half: Any
    box: Any
    body_gaps: Any
    reach: Any


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
    """

    shapes: tuple[Shape, ...]
    bodies: tuple[tuple[int, BoundingCapsule], ...]
    body_pairs: Array
    blocks: tuple[NDArray[numpy.int64], ...]
    block_bodies: tuple[Array, ...]


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
    blocks, block_bodies = [], []
    for one in classes:
        groups: dict[int, list[int]] = {}
        for k, pair in enumerate(one.pairs):
            i, j = sorted(number[owner[shape]] for shape in pair)
            groups.setdefault(met.setdefault((i, j), len(met)), []).append(k)
        size = min(BLOCK, max(map(len, groups.values())))
        rows = [(g, ks[at : at + size]) for g, ks in groups.items() for at in range(0, len(ks), size)]
        table = numpy.full((len(rows), size), -1)
        for row, (_, ks) in zip(table, rows, strict=True):
            row[: len(ks)] = ks
        blocks.append(table)
        block_bodies.append(numpy.array([float(g) for g, _ in rows]))
    return PairTables(shapes, bodies, numpy.array(list(met), float), tuple(blocks), tuple(block_bodies))


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
    pairs = tables.body_pairs.astype(int)
    radii = numpy.array([c.radius for c in capsules])
    extents = radii + numpy.array([float(numpy.linalg.norm(c.half)) for c in capsules])
    links = numpy.array([number(link) for link, _ in joints])[pairs]

    def approach(twist: Any, place: Any, extent: Any) -> Any:
        """The largest speed [m/s] of points around a place, of a body with a motion about the center of all motions."""
        at_place = twist[:3] + np.cross(twist[3:], place - moving.center)  # type: ignore[union-attr]
        return np.sqrt(at_place @ at_place) + np.sqrt(twist[3:] @ twist[3:]) * extent

    def body_gap(pair: Any, radius: Any, link: Any, extent: Any) -> tuple[Any, Any]:
        gap = _capsule_gap(center, half, pair[0], pair[1], radius)
        if moving is None or moving.twists is None:
            return gap, np.array(NEAR + 2.0 * (0.0 if moving is None else moving.margin))
        twist = np.take(moving.twists, link[0], axis=0) - np.take(moving.twists, link[1], axis=0)
        speeds = [approach(twist, np.take(center, pair[k], axis=0), extent[k]) for k in range(2)]
        return gap, NEAR + 2.0 * moving.time_step * np.minimum(*speeds)

    gaps, reach = map_stacks(body_gap, tables.body_pairs, radii[pairs].sum(1), links, extents[pairs])
    return WorldShapes(R_shapes, p_shapes, centers, halves, boxes, gaps, reach)


def pair_bounds(tables: PairTables, number: int, one: PairClass, placed: WorldShapes) -> Any:
    """Lower bounds (blocks, size) of the gaps of all pairs of a class, minus the gap below which they are near.

    Pairs of bodies that are not near have the bound 5e29 m; padding has a larger one.
    """
    blocks, boxed = tables.blocks[number], _are_boxed(one)
    halves = numpy.stack([bounding_box(shape).half for shape in tables.shapes])
    index = {shape: float(k) for k, shape in enumerate(tables.shapes)}
    radius = {shape: bounding_capsule(shape).radius for shape in tables.shapes}
    first, second = (numpy.array([index[pair[k]] for pair in one.pairs])[blocks] for k in range(2))
    radii = numpy.array([sum(radius[shape] for shape in pair) for pair in one.pairs])[blocks]
    radii = numpy.where(blocks < 0, -FAR, radii)

    def block_gaps(bodies: Any, i: Any, j: Any, radius: Any) -> Any:
        def gaps(i: Any, j: Any, radius: Any) -> Any:
            bounds = []
            for k in range(blocks.shape[1]):
                bound = _capsule_gap(placed.center, placed.half, i[k], j[k], radius[k])
                if boxed:
                    boxes = [[np.take(x, n, axis=0) for x in (placed.R, placed.box, halves)] for n in (i[k], j[k])]
                    bound = np.maximum(bound, box_distance(*boxes[0], *boxes[1]))
                bounds.append(bound)
            return np.stack(bounds) - np.take(placed.reach, bodies)

        near = np.take(placed.body_gaps, bodies) < np.take(placed.reach, bodies)
        return cond(near, gaps, np.full(blocks.shape[1], 0.5 * FAR), i, j, radius)

    return map_stacks(block_gaps, tables.block_bodies[number], first, second, radii)


def _are_boxed(one: PairClass) -> bool:
    """Whether bounding boxes of a class are tighter than capsules; spheres and capsules are their own bounding
    capsules."""
    return any(shape.kind.name not in ("sphere", "capsule") for shape in one.pairs[0])


def _ends(capsules: Sequence[BoundingCapsule]) -> tuple[Array, Array]:
    return numpy.stack([c.center for c in capsules]), numpy.stack([c.half for c in capsules])


def _capsule_gap(center: Any, half: Any, i: Any, j: Any, radius: Any) -> Any:
    """The gap of two capsules given by index; `radius` is the sum of their radii."""
    (p1, d1), (p2, d2) = ([np.take(x, k, axis=0) for x in (center, half)] for k in (i, j))
    return segment_distance(p1, d1, p2, d2) - radius
