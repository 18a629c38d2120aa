"""The kernels of a simulation of many free bodies, and the choice between them and those of `stages`."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import numpy

import delassus.numpy as np
from delassus.compiler.host.kernel import Floats, Kernel, kernel
from delassus.compiler.tracing.flow.control import map as map_items
from delassus.step.bodies.collide import ground_touches, pair_touches, place_shape, stack_touches
from delassus.step.bodies.motion import numbers_to
from delassus.step.bodies.robot_step import scene_poses, step_with_robots
from delassus.step.bodies.robots import scene_parts
from delassus.step.bodies.step import step_bodies
from delassus.step.bodies.tables import tables_of
from delassus.step.period.kernels import (
    GROUND,
    candidate_geometry,
    simulate,
    simulate_by,
)
from delassus.step.scene import Scene
from delassus.step.stages.collide import ground_surface
from delassus.step.stages.pipeline import Step, take_activated_step
from delassus.step.stages.types import GroundShape

simulate_bodies: Final = simulate_by(step_bodies)
"""As `simulate`, by loops over bodies, pairs and contacts."""

simulate_robots: Final = simulate_by(step_with_robots)
"""The same, with robots among the bodies."""


PART: Final = 4000
"""Candidates of one call, since the inputs and outputs of a state are held in the kernel's frame."""


@lru_cache(maxsize=64)
def candidate_part(number: int, items: int, points: int) -> Kernel[..., Any]:
    """A kernel of the candidates of `items` shapes or pairs of one class, the first of them being the `start`-th.

    Classes are those of shapes on the ground, and then those of pairs; each shape or pair has so many points.
    """

    @kernel(f"(nq),()->({items * points}),({items * points},3),({items * points},3)", inputs={"ground": GROUND})
    def body_candidates(scene: Scene, q: Any, start: Any, *, ground: GroundShape) -> tuple[Floats, Floats, Floats]:
        tables = tables_of(scene)
        poses, shapes = scene_poses(scene, q), tables.shapes
        surface = ground_surface(scene, ground._replace(normal=np.array(ground.normal)))

        def touches(n: Any) -> tuple[Any, Any, Any]:
            n = start + n
            if number < len(tables.ground):
                own = tables.ground[number]
                k = np.take(own.shapes, n)
                return stack_touches(ground_touches(own, shapes, k, *place_shape(shapes, poses, k), surface))
            some, both = tables.pairs[number - len(tables.ground)], []
            for numbers, (_, lengths) in zip((some.first, some.second), some.constants, strict=True):
                k = np.take(numbers, n)
                both.append((*place_shape(shapes, poses, k), shapes.size_data(k, lengths)))
            return stack_touches(pair_touches(some, shapes, *both))

        gap, point, normal = map_items(touches, numbers_to(items))
        return gap.reshape(-1), point.reshape(-1, 3), normal.reshape(-1, 3)

    return body_candidates


def body_candidates(scene: Scene, q: Any, *, ground: GroundShape) -> tuple[Floats, Floats, Floats]:
    """As `candidate_geometry`, by loops over shapes and pairs, a few thousand of a class per call."""
    tables = tables_of(scene)
    sizes = [(len(own.shapes), own.points) for own in tables.ground] + [
        (own.n, sum(own.points)) for own in tables.pairs
    ]
    parts: list[tuple[Floats, ...]] = []
    for number, (count, points) in enumerate(sizes):
        items = min(count, max(PART // points, 1))
        # The last call begins early enough to have as many items as the others.
        for start in range(0, count, items):
            begin = min(start, count - items)
            found = candidate_part(number, items, points)(scene, q, float(begin), ground=ground)
            skip = (start - begin) * points
            parts.append((found[0][..., skip:], found[1][..., skip:, :], found[2][..., skip:, :]))
    order = tables.rank.astype(int)
    gap = numpy.concatenate([part[0] for part in parts], -1)[..., order]
    point, normal = (numpy.concatenate([part[k] for part in parts], -2)[..., order, :] for k in (1, 2))
    return gap, point, normal


def period_step(scene: Scene) -> Step:
    """The function that makes the time steps of a scene."""
    if scene.many_bodies is None:
        return take_activated_step
    return step_bodies if scene_parts(scene).robots is None else step_with_robots


def period_kernel(scene: Scene) -> Kernel[..., Any]:
    """The kernel of a control period."""
    step = period_step(scene)
    return simulate if step is take_activated_step else simulate_bodies if step is step_bodies else simulate_robots


def geometry_kernel(scene: Scene) -> Callable[..., tuple[Floats, Floats, Floats]]:
    """The function of all candidates: gaps (…, candidates), points and normals (…, candidates, 3), of scene and q."""
    return candidate_geometry if scene.many_bodies is None else body_candidates
