"""Pairs of shapes of a model that may touch, by MuJoCo's filters.

Two shapes may touch if the contype of one and the conaffinity of the other have a common bit, and they are not

    on the same body            bodies that are fixed to each other count as one
    on a body and its parent    unless the file disables this filter; in MuJoCo, the world does not count as a parent
    excluded by name

Pairs that the file lists may touch regardless of these filters and have their own coefficients.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from delassus.model.model import Model
from delassus.model.parts import WORLD, Geometry

_NOBODY: Final = -2
"""The parent of bodies without a parent."""


def touching_pairs(model: Model) -> Iterator[tuple[Geometry, Geometry]]:
    """All pairs of collision shapes that pass the filters or are listed in the file, in order.

    Cost: O(n²) for n shapes, as array operations with one row for each shape.
    """
    rules = model.contact_rules
    shapes = [g for g in model.geometries if g.role == "collision"]
    if not rules.enabled or not shapes:
        return
    names = {g.name: k for k, g in enumerate(shapes)}
    listed, excluded = _partners(names, [(p.first, p.second) for p in rules.pairs]), _partners(names, rules.excluded)
    contype, conaffinity, body = (
        np.array([getattr(g, field) for g in shapes]) for field in ("contype", "conaffinity", "joint")
    )
    parent = _parents(model)[body] if rules.filter_parents else np.full(len(shapes), _NOBODY)
    if not rules.world_is_parent:
        parent[parent == WORLD] = _NOBODY
    for k, one in enumerate(shapes):
        later = slice(k + 1, None)
        may_touch = ((contype[k] & conaffinity[later]) | (contype[later] & conaffinity[k])) != 0
        may_touch &= (body[later] != body[k]) & (parent[later] != body[k]) & (body[later] != parent[k])
        partners = set((np.flatnonzero(may_touch) + k + 1).tolist()) - excluded.get(k, set())
        partners |= {j for j in listed.get(k, ()) if j > k and (one.joint, shapes[j].joint) != (WORLD, WORLD)}
        yield from ((one, shapes[j]) for j in sorted(partners))


def _partners(indices: dict[str, int], pairs: Iterable[tuple[str, str]]) -> dict[int, set[int]]:
    """For each shape, its partners in pairs of names; names without a collision shape are ignored."""
    partners: dict[int, set[int]] = {}
    for one, two in pairs:
        if one in indices and two in indices:
            partners.setdefault(indices[one], set()).add(indices[two])
            partners.setdefault(indices[two], set()).add(indices[one])
    return partners


def _parents(model: Model) -> NDArray[np.int64]:
    """For the body on each joint, the joint of its parent; the world comes last.

    The frame of a body with several joints in series is on the last of them; the others are skipped.
    """
    bodies = {frame.joint for frame in model.frame_list if frame.role == "link"}
    parents = []
    for joint in model.joints:
        parent = joint.parent
        while bodies and parent != WORLD and parent not in bodies:
            parent = model.joints[parent].parent
        parents.append(parent)
    return np.array([*parents, _NOBODY])
