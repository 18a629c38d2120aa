"""What touches what: contacts as arrays, each with three rows t1, t2, n on one to four nodes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from delassus.contact.cones.tangents import contact_axes
from delassus.particles.contact.boxes import box_contacts
from delassus.particles.contact.neighbours import near_pairs
from delassus.particles.description.bodies import Bricks, rotations
from delassus.particles.description.particles import Particles

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

_CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)


class Touches(NamedTuple):
    """Contacts that act on as many nodes each.

    Attributes:
        nodes: (c, k) the nodes that they act on.
        rows: (c, 3, k, 3) how fast t1, t2, n of the first side move away from the second by the nodes' velocities.
        gap: (c,) [m].
        key: (c,) a number that names the contact.
        points: (c, 3) where they are [m].
    """

    nodes: Ints
    rows: Array
    gap: Array
    key: Ints
    points: Array

    def at(self, chosen: Ints) -> Touches:
        """Some of them, by their places."""
        return Touches(*[x[chosen] for x in self])  # type: ignore[arg-type]


def find_touches(particles: Particles, x: Array, v: Array, orientations: Array, h: float) -> list[Touches]:
    """All that may touch within a step; groups by the number of nodes."""
    n = particles.n
    if not particles.obstacles and particles.bricks is None:
        return []
    fall = h * h * float(np.linalg.norm(particles.gravity))
    # What pulls at a particle may be as fast as the fastest before the step is over.
    fastest = float(np.linalg.norm(v[:n], axis=1).max(initial=0.0))
    found = []
    for k, obstacle in enumerate(particles.obstacles):
        if n:
            gap, normal = obstacle.touched(x[:n])
            gap = gap - particles.radius
            near = np.flatnonzero((gap < h * (np.linalg.norm(v[:n], axis=1) + fastest) + 2.0 * fall) & ~particles.held)
            frame = np.asarray(contact_axes(normal[near]))
            key = near + k * np.int64(n)
            found.append(Touches(near[:, None], frame.mT[:, :, None, :], gap[near], key, x[near]))
        if particles.bricks is not None:
            found.append(_bricks_on(particles.bricks, n, obstacle, k, x, v, orientations, h, fall))
    if particles.bricks is not None and particles.b > 1:
        found.append(_bricks_on_bricks(particles.bricks, n, x, v, orientations, h, fall))
    return [touches for touches in found if len(touches.gap)]


def missed_touches(
    particles: Particles, x: Array, v: Array, mean: Array, orientations: Array, h: float, groups: list[Touches]
) -> list[Touches]:
    """Contacts that are not among `groups` and that a step with the velocities `mean` (nodes, 3) goes through.

    `find_touches` looks as far as velocities before the step and gravity reach; other forces may reach farther.
    """
    n, b = particles.n, particles.b
    fall = 2.0 * h * float(np.linalg.norm(particles.gravity))
    speed, fast = np.linalg.norm(v, axis=1), np.linalg.norm(mean, axis=1)
    farther = fast[:n] > speed[:n] + speed[:n].max(initial=0.0) + fall
    moved = fast[n : n + b] + fast[n + b :] * (0.0 if particles.bricks is None else particles.bricks.reach) > fall
    if not ((particles.obstacles and farther.any()) or moved.any()):
        return []
    known = np.concatenate([np.zeros(0, np.int64), *(t.key for t in groups)])
    found = []
    for touches in find_touches(particles, x, mean, orientations, h):
        rate = np.einsum("caj,caj->c", touches.rows[:, 2], mean[touches.nodes])
        through = np.maximum(touches.gap, 0.0) + h * rate < -1e-9 * h * np.abs(rate)
        found.append(touches.at(np.flatnonzero(through & ~np.isin(touches.key, known))))
    return [touches for touches in found if len(touches.gap)]


def _arm_rows(frame: Array, arm: Array, sign: float) -> Array:
    """(c, 3, 2, 3) rows of a body's linear and angular velocity at `arm` (c, 3) from its centre, along a frame."""
    rows = sign * frame.mT
    return np.stack([rows, np.cross(arm[:, None, :], rows)], 2)


def _bricks_on(
    bricks: Bricks, n: int, obstacle: Any, k: int, x: Array, v: Array, orientations: Array, h: float, fall: float
) -> Touches:
    """The corners of bricks on an obstacle."""
    b = len(bricks)
    R = np.asarray(rotations(None, orientations))
    arm = np.einsum("bij,bcj->bci", R, _CORNERS * bricks.half[:, None, :]).reshape(-1, 3)
    body = np.repeat(np.arange(b), 8)
    points = x[n + body] + arm
    gap, normal = obstacle.touched(points)
    speed = v[n + body] + np.cross(v[n + b + body], arm)
    towards = -np.einsum("ij,ij->i", normal, speed)
    near = np.flatnonzero(gap < 2.0 * (h * np.maximum(towards, 0.0) + fall))
    frame = np.asarray(contact_axes(normal[near]))
    nodes = np.stack([n + body[near], n + b + body[near]], 1)
    key = near + (k + 1) * np.int64(1 << 40)
    return Touches(nodes, _arm_rows(frame, arm[near], 1.0), gap[near], key, points[near])


def _bricks_on_bricks(
    bricks: Bricks, n: int, x: Array, v: Array, orientations: Array, h: float, fall: float
) -> Touches:
    """Points where bricks meet: on the face of one, clipped by that of the other."""
    b = len(bricks)
    speed = np.linalg.norm(v[n : n + b], axis=1) + np.linalg.norm(v[n + b :], axis=1) * bricks.reach
    reach = 2.0 * (h * float(speed.max(initial=0.0)) + fall)
    centers, half = x[n:], bricks.half
    pairs = near_pairs(centers, bricks.reach, reach)
    R = np.asarray(rotations(None, orientations))
    which, points, normal, gap, corner = box_contacts(centers, R, half, pairs, reach)
    i, j = pairs[which].T
    frame = np.asarray(contact_axes(normal))
    rows = np.concatenate([_arm_rows(frame, points - centers[i], 1.0), _arm_rows(frame, points - centers[j], -1.0)], 2)
    nodes = np.stack([n + i, n + b + i, n + j, n + b + j], 1)
    key = (i * np.int64(b) + j) * 64 + corner + (np.int64(1) << 60)
    return Touches(nodes, rows, gap, key, points)
