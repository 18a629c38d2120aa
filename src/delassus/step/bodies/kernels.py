"""The kernels of a simulation of many free bodies, and the choice between them and those of `stages`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import delassus.numpy as np
from delassus.compiler.host.kernel import Floats, Kernel, kernel
from delassus.compiler.tracing.flow.control import map as map_items
from delassus.step.bodies.collide import ground_touches, pair_touches, place_shape, stack_touches
from delassus.step.bodies.motion import numbers_to, poses_of
from delassus.step.bodies.step import step_bodies
from delassus.step.bodies.tables import GroundClass, PairClass, tables_of
from delassus.step.scene import Scene
from delassus.step.stages.collide import ground_surface
from delassus.step.stages.kernels import GROUND, candidate_geometry, simulate, simulate_by, simulate_with
from delassus.step.stages.types import GroundShape

simulate_bodies: Final = simulate_by(step_bodies)
"""As `simulate`, by loops over bodies, pairs and contacts."""


@kernel("(nq)->(candidates),(candidates,3),(candidates,3)", inputs={"ground": GROUND})
def body_candidates(scene: Scene, q: Any, *, ground: GroundShape) -> tuple[Floats, Floats, Floats]:
    """As `candidate_geometry`, by loops over shapes and pairs."""
    tables = tables_of(scene)
    poses = poses_of(tables.bodies, q.reshape(-1, 7), numbers_to(tables.bodies.n + 1))
    surface = ground_surface(scene, ground._replace(normal=np.array(ground.normal)))

    def placed(k: Any) -> tuple[Any, Any, Any]:
        return *place_shape(tables.shapes, poses, k), np.take(tables.shapes.size, k, axis=0)

    parts: list[tuple[Any, ...]] = []
    for own in tables.ground:

        def on_ground(n: Any, own: GroundClass = own) -> tuple[Any, Any, Any]:
            return stack_touches(ground_touches(own, *placed(np.take(own.shapes, n)), surface))

        parts.append(map_items(on_ground, numbers_to(len(own.shapes))))
    for some in tables.pairs:

        def of_pair(n: Any, some: PairClass = some) -> tuple[Any, Any, Any]:
            first, second = (placed(np.take(numbers, n)) for numbers in (some.first, some.second))
            return stack_touches(pair_touches(some, first, second))

        parts.append(map_items(of_pair, numbers_to(some.n)))
    order = tables.rank.astype(int)
    gap = np.concatenate([part[0].reshape(-1) for part in parts])[order]
    point, normal = (np.concatenate([part[k].reshape(-1, 3) for part in parts])[order] for k in (1, 2))
    return gap, point, normal


def period_kernel(scene: Scene, policy: Callable[[Any, Any, Any], Any] | None = None) -> Kernel[..., Any]:
    """The kernel of a control period, with a traced function of time, q and v in place of the controls if given."""
    if scene.many_bodies is None:
        return simulate if policy is None else simulate_with(policy)
    return simulate_bodies if policy is None else simulate_with(policy, step_bodies)


def geometry_kernel(scene: Scene) -> Kernel[..., Any]:
    """The kernel of all candidates."""
    return candidate_geometry if scene.many_bodies is None else body_candidates
