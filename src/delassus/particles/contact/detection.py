"""Contact detection: particles with obstacles, bricks with obstacles, bricks with bricks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from delassus.contact.cones.tangents import contact_axes
from delassus.particles.contact.bricks import Touches, bricks_on, bricks_on_bricks
from delassus.particles.description.particles import Particles

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


def find_touches(particles: Particles, x: Array, v: Array, orientations: Array, h: float) -> list[Touches]:
    """All contacts that may close within a step, in groups by the number of nodes."""
    n = particles.n
    if not particles.obstacles and particles.bricks is None:
        return []
    fall = h * h * float(np.linalg.norm(particles.gravity))
    # Forces from elements may accelerate a particle to the highest velocity before the end of the step.
    fastest = float(np.linalg.norm(v[:n], axis=1).max(initial=0.0))
    groups = []
    for k, obstacle in enumerate(particles.obstacles):
        if n:
            gap, normal = obstacle.gap_and_normal(x[:n])
            gap = gap - particles.radius
            candidates = np.flatnonzero(
                (gap < h * (np.linalg.norm(v[:n], axis=1) + fastest) + 2.0 * fall) & ~particles.is_prescribed
            )
            frame = np.asarray(contact_axes(normal[candidates]))
            key = candidates + k * np.int64(n)
            groups.append(Touches(candidates[:, None], frame.mT[:, :, None, :], gap[candidates], key, x[candidates]))
        if particles.bricks is not None:
            groups.append(bricks_on(particles.bricks, n, obstacle, k, x, v, orientations, h, fall))
    if particles.bricks is not None and particles.b > 1:
        groups.append(bricks_on_bricks(particles.bricks, n, x, v, orientations, h, fall))
    return [touches for touches in groups if len(touches.gap)]


def find_missing_touches(
    particles: Particles, x: Array, v: Array, mean: Array, orientations: Array, h: float, groups: list[Touches]
) -> list[Touches]:
    """Contacts that are not in `groups` and that a step with the velocities `mean` (nodes, 3) would penetrate.

    `find_touches` considers the velocities before the step and gravity; other forces may cause larger motions.
    """
    n, b = particles.n, particles.b
    if not particles.obstacles and not b:
        return []
    fall = 2.0 * h * float(np.linalg.norm(particles.gravity))
    speed, fast = np.linalg.norm(v, axis=1), np.linalg.norm(mean, axis=1)
    farther = fast[:n] > speed[:n] + speed[:n].max(initial=0.0) + fall
    is_fast = fast[n : n + b] + fast[n + b :] * (0.0 if particles.bricks is None else particles.bricks.reach) > fall
    if not ((particles.obstacles and farther.any()) or is_fast.any()):
        return []
    keys_before = np.concatenate([np.zeros(0, np.int64), *(t.key for t in groups)])
    missing = []
    for touches in find_touches(particles, x, mean, orientations, h):
        rate = np.einsum("caj,caj->c", touches.rows[:, 2], mean[touches.nodes])
        through = np.maximum(touches.gap, 0.0) + h * rate < -1e-9 * h * np.abs(rate)
        missing.append(touches.at(np.flatnonzero(through & ~np.isin(touches.key, keys_before))))
    return [touches for touches in missing if len(touches.gap)]
