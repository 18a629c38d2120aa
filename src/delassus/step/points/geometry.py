"""Contact points of a robot: gaps, axes and Jacobians."""

from __future__ import annotations

from typing import Any

import delassus.numpy as np
from delassus.compiler.host.kernel import Floats, kernel
from delassus.constrained.rows.jacobian import constraint_jacobian
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.step.scene import Scene


@kernel("(nq)->(points),(m,nv),(points,3,3),(points,3)", inputs={"normal": "(points,3)", "height": "(points)"})
def contact_geometry(
    scene: Scene, q: Any, *, normal: Any = None, height: Any = None
) -> tuple[Floats, Floats, Floats, Floats]:
    """Gaps (points,), the Jacobian (m, nv) of all rows, axes (points, 3, 3) and contact points (points, 3) in the
    world."""
    mechanism = scene.on_planes(normal, height)
    motions = LinkMotions.of(mechanism.model, q, np.zeros(scene.nv))
    points: Any = mechanism.constraints[: scene.points]
    placed = [point.in_world(motions) for point in points]
    J = constraint_jacobian.function(mechanism, q)
    return gaps(scene, mechanism, motions), J, np.stack([R for R, _ in placed]), np.stack([p for _, p in placed])


def gaps(scene: Scene, mechanism: Mechanism, motions: LinkMotions) -> Any:
    """The gaps (points,) [m]; the mechanism is that of the scene with its planes."""
    points: Any = mechanism.constraints[: scene.points]
    return np.stack([point.gap(motions) for point in points]) if points else np.zeros(0)
