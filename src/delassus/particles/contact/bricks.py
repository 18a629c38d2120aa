"""Contacts as arrays, each with rows t1, t2, n on one to four nodes; contacts of bricks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from delassus.contact.cones.tangents import contact_axes
from delassus.geometry.batched import box_pairs, distances_from
from delassus.particles.description.bodies import Bricks, rotations

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

_CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)


class Touches(NamedTuple):
    """Contacts that act on the same number of nodes.

    Attributes:
        nodes: (c, k) nodes of each contact.
        rows: (c, 3, k, 3) Jacobian: relative velocity t1, t2, n of the first side per velocity of the nodes.
        gap: (c,) signed distances [m].
        key: (c,) an integer that identifies the contact between steps.
        points: (c, 3) contact points [m].
    """

    nodes: Ints
    rows: Array
    gap: Array
    key: Ints
    points: Array

    def at(self, indices: Ints) -> Touches:
        """Select contacts by index."""
        return Touches(*[x[indices] for x in self])  # type: ignore[arg-type]


def bricks_on(
    bricks: Bricks, n: int, obstacle: Any, k: int, x: Array, v: Array, orientations: Array, h: float, fall: float
) -> Touches:
    """Contacts of bricks with an obstacle: nearest points to a ball, box contacts with a box, otherwise corners."""
    b, centers = len(bricks), x[n:]
    R = np.asarray(rotations(None, orientations))
    if hasattr(obstacle, "as_box"):
        center, turn, half = obstacle.as_box()
        reach = _reach(bricks, v[n:], h, fall)
        candidates = np.flatnonzero(
            np.linalg.norm(centers - center, axis=1) < bricks.reach + np.linalg.norm(half) + reach
        )
        pairs = np.stack([candidates, np.full(len(candidates), b)], 1)
        all_centers, turns, halves = (
            np.concatenate(x) for x in ((centers, [center]), (R, [turn]), (bricks.half, [half]))
        )
        pair, points, normal, gap, corner = box_contacts(all_centers, turns, halves, pairs, reach)
        body = pairs[pair, 0]
    elif hasattr(obstacle, "as_ball"):
        body, corner = np.arange(b), np.zeros(b, np.int64)
        middle, radius = obstacle.as_ball()
        distance, outward = distances_from("box", R, centers, 2.0 * bricks.half, middle)
        points, gap, normal = middle - distance[:, None] * outward, distance - radius, -outward
    else:
        body, corner = np.repeat(np.arange(b), 8), np.tile(np.arange(8), b)
        points = centers[body] + np.einsum("bij,bcj->bci", R, _CORNERS * bricks.half[:, None, :]).reshape(-1, 3)
        gap, normal = obstacle.gap_and_normal(points)
    arm = points - centers[body]
    towards = -np.einsum("ij,ij->i", normal, v[n + body] + np.cross(v[n + b + body], arm))
    candidates = np.flatnonzero(gap < 2.0 * (h * np.maximum(towards, 0.0) + fall))
    body, arm, normal = body[candidates], arm[candidates], normal[candidates]
    nodes = np.stack([n + body, n + b + body], 1)
    key = 64 * body + corner[candidates] + (k + 1) * np.int64(1 << 40)
    return Touches(
        nodes, _arm_rows(np.asarray(contact_axes(normal)), arm, 1.0), gap[candidates], key, points[candidates]
    )


def bricks_on_bricks(bricks: Bricks, n: int, x: Array, v: Array, orientations: Array, h: float, fall: float) -> Touches:
    """Contacts between bricks: on the face of one, clipped by a face of the other."""
    b, centers = len(bricks), x[n:]
    reach = _reach(bricks, v[n:], h, fall)
    pairs = _near_pairs(centers, bricks.reach, reach)
    R = np.asarray(rotations(None, orientations))
    pair, points, normal, gap, corner = box_contacts(centers, R, bricks.half, pairs, reach)
    i, j = pairs[pair].T
    frame = np.asarray(contact_axes(normal))
    rows = np.concatenate([_arm_rows(frame, points - centers[i], 1.0), _arm_rows(frame, points - centers[j], -1.0)], 2)
    nodes = np.stack([n + i, n + b + i, n + j, n + b + j], 1)
    key = (i * np.int64(b) + j) * 64 + corner + (np.int64(1) << 60)
    return Touches(nodes, rows, gap, key, points)


def _reach(bricks: Bricks, v: Array, h: float, fall: float) -> float:
    """Search distance for contacts in a step [m], for velocities (2 b, 3)."""
    b = len(bricks)
    speed = np.linalg.norm(v[:b], axis=1) + np.linalg.norm(v[b:], axis=1) * bricks.reach
    return 2.0 * (h * float(speed.max(initial=0.0)) + fall)


def box_contacts(
    centers: Array, R: Array, half: Array, pairs: Ints, reach: float
) -> tuple[Ints, Array, Array, Array, Ints]:
    """For pairs (p, 2) of boxes: each contact's pair, point (3,), normal towards the first, gap, and index in the
    pair.
    """
    i, j = pairs.T
    gap, point, normal = box_pairs(None, R[i], centers[i], 2.0 * half[i], R[j], centers[j], 2.0 * half[j])
    pair_index, point_index = np.nonzero(gap < reach)
    return pair_index, point[pair_index, point_index], normal[pair_index], gap[pair_index, point_index], point_index


def _arm_rows(frame: Array, arm: Array, sign: float) -> Array:
    """(c, 3, 2, 3) rows of a body's linear and angular velocity for points at `arm` (c, 3) from its center, along a
    frame.
    """
    rows = sign * frame.mT
    return np.stack([rows, np.cross(arm[:, None, :], rows)], 2)


def _near_pairs(centers: Array, radius: Array, reach: float) -> NDArray[np.int64]:
    """(pairs, 2) of bounding balls closer than `reach` [m], the smaller index first."""
    pairs = cKDTree(centers).query_pairs(2.0 * float(radius.max()) + reach, output_type="ndarray")
    if not len(pairs):
        return np.zeros((0, 2), np.int64)
    i, j = pairs.T
    distance = np.linalg.norm(centers[i] - centers[j], axis=1)
    close_pairs = pairs[distance < radius[i] + radius[j] + reach]
    return np.asarray(close_pairs[np.lexsort((close_pairs[:, 1], close_pairs[:, 0]))], np.int64)
