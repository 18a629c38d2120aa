"""Pairs of shapes of a model that may touch, by MuJoCo's filters.

Two shapes may touch if the contype of one and the conaffinity of the other have a bit in common, and they are not

    on one body                 fixed children are part of the body that carries them
    on a body and its parent    unless the file turns that filter off; in MuJoCo, the world is nobody's parent
    excluded by name

Pairs that the file lists touch whatever these filters say, with coefficients of their own.
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
    """All pairs of collision shapes that may touch by the filters, or because the file lists them, in order.

    Cost: a row of arrays for each shape.
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
        meets = ((contype[k] & conaffinity[later]) | (contype[later] & conaffinity[k])) != 0
        meets &= (body[later] != body[k]) & (parent[later] != body[k]) & (body[later] != parent[k])
        partners = set((np.flatnonzero(meets) + k + 1).tolist()) - excluded.get(k, set())
        partners |= {j for j in listed.get(k, ()) if j > k and (one.joint, shapes[j].joint) != (WORLD, WORLD)}
        yield from ((one, shapes[j]) for j in sorted(partners))


def _partners(numbers: dict[str, int], pairs: Iterable[tuple[str, str]]) -> dict[int, set[int]]:
    """Of each shape those that pairs of names say; names that no collision shape has are passed over."""
    partners: dict[int, set[int]] = {}
    for one, two in pairs:
        if one in numbers and two in numbers:
            partners.setdefault(numbers[one], set()).add(numbers[two])
            partners.setdefault(numbers[two], set()).add(numbers[one])
    return partners


def _parents(model: Model) -> NDArray[np.int64]:
    """Of the body on each joint the joint of its parent, the world's last.

    A body that moves by several joints in a row has its frame on the last of them: the others are passed over.
    """
    bodies = {frame.joint for frame in model.frame_list if frame.role == "link"}
    parents = []
    for joint in model.joints:
        above = joint.parent
        while bodies and above != WORLD and above not in bodies:
            above = model.joints[above].parent
        parents.append(above)
    return np.array([*parents, _NOBODY])
