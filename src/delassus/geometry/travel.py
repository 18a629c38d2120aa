"""How far the points of links may move in a step, from the velocities it begins with: what a broad phase looks ahead.

A joint with the velocity q̇ moves a point at the distance r from its origin by |S_lin q̇| + |S_ang q̇| r at most, so that
with the largest such distance ℓ among the shapes that a joint carries

    s_i = s_parent + h (|S_lin q̇| + |S_ang q̇| ℓ)

bounds the way of all points of link i, and s_i + s_j - 2 s_k the way on which two links approach each other, k being
the last link that carries both. Cost: some operations for each joint.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy
from numpy.typing import NDArray

import delassus.numpy as np
from delassus.geometry.bounds import bounding_capsule
from delassus.geometry.candidates import Shape
from delassus.model.links import Links
from delassus.model.parts import WORLD


def link_travel(tree: Links, shapes: Iterable[Shape], v: Any, time_step: Any) -> Any:
    """s (links + 1,) [m] of velocities v (nv,) that last for a time [s]; the world comes last, and does not move."""
    lengths = subtree_lengths(tree, shapes)
    travel: list[Any] = []
    for link, length in zip(tree.links, lengths, strict=True):
        own = link.ratio * v[link.v : link.v + link.motion.nv]
        S_lin, S_ang = link.subspace
        way = sum(weight * _norm(S @ own) for S, weight in ((S_lin, 1.0), (S_ang, length)) if S.any())
        before = travel[link.parent] if link.parent != WORLD else 0.0
        travel.append(before + time_step * way)
    return np.stack([np.array(s) for s in (*travel, 0.0)])


def _norm(x: Any) -> Any:
    return np.sqrt(np.sum(x * x))


def subtree_lengths(tree: Links, shapes: Iterable[Shape]) -> NDArray[numpy.float64]:
    """ℓ (links,) [m]; what slides is taken as it is at zero."""
    lengths = numpy.zeros(len(tree.links))
    for shape in shapes:
        i, at = tree.place(shape.geometry.joint, shape.geometry.placement)
        if i != WORLD:
            center, half, radius = bounding_capsule(shape)
            reach = numpy.linalg.norm(at.p + at.R @ center) + numpy.linalg.norm(half) + radius
            lengths[i] = max(lengths[i], reach)
    for i in reversed(range(len(tree.links))):
        link = tree.links[i]
        if link.parent != WORLD:
            lengths[link.parent] = max(lengths[link.parent], numpy.linalg.norm(link.placement.p) + lengths[i])
    return lengths


def common_carrier(tree: Links, one: int, two: int) -> int:
    """The last link that carries two links, or the world."""
    shared = set(tree.path(one)) & set(tree.path(two))
    return max(shared, default=WORLD)
