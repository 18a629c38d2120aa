"""Whose friction counts where a shape touches the ground or another shape.

Numbers that the ground is given count for all contacts. Others are those of the model's file, by MuJoCo's rule: of two
shapes the one with the larger priority decides; of equals, each coefficient is the larger one, and `condim` too. Where
the file has a plane, it stands for the ground. A pair that the file lists has its own numbers. A contact of condim 1
has no friction, whatever the ground is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from delassus.geometry.candidates import Shape
from delassus.model.model import Model
from delassus.model.parts import WORLD, ContactPair, Geometry
from delassus.simulation.ground import Ground
from delassus.simulation.meeting import Meeting

Own = tuple[float | None, float | None, float | None]
"""Sliding, torsional [m] and rolling [m] friction of a candidate; None where the ground's counts."""


class Friction(NamedTuple):
    """The number of rows of contacts, and what candidates have of their own; empty if nothing."""

    rows: int
    own: tuple[Own, ...]


def friction_of(model: Model, ground: Ground, shapes: tuple[Shape, ...], meeting: Meeting) -> Friction:
    """The friction of all candidates, in their order."""
    flat = [g for g in model.geometries if g.role == "collision" and g.joint == WORLD and g.shape == "plane"]
    pairs = [(shape.count, (shape.geometry, *flat[:1])) for shape in shapes]
    pairs += [(c.count, (c.shape.geometry, c.other.geometry)) for c in meeting.collisions]
    pairs += [(one.points, (a.geometry, b.geometry)) for one in meeting.classes for a, b in one.pairs]
    listed = {frozenset((p.first, p.second)): _said_by_pair(p) for p in model.contact_rules.pairs}
    own: list[Own] = []
    for count, met in pairs:
        said = listed.get(frozenset(g.name for g in met)) or combined(*met)
        own += [_own(ground, said)] * count
    given = [x is not None and bool(np.any(x)) for x in (ground.friction, ground.torsional, ground.rolling)]
    acts = [any(given[k] if friction[k] is None else friction[k] for friction in own) for k in range(3)]
    rows = 6 if acts[2] else 4 if acts[1] else 3
    counted = {3: 1, 4: 2, 6: 3}[rows]
    differs = any(x is not None for friction in own for x in friction[:counted])
    return Friction(rows, tuple(own) if differs else ())


def _own(ground: Ground, said: Said | None) -> Own:
    """What counts of what shapes say."""
    if said is None:
        return None, None, None
    if said.condim == 1:
        return 0.0, 0.0, 0.0
    given = (ground.friction, ground.torsional, ground.rolling)
    sliding, torsional, rolling = (own if x is None else None for x, own in zip(given, said[:3], strict=True))
    return sliding, torsional, rolling


class Said(NamedTuple):
    """Coefficients of shapes that touch, zero where they do not count."""

    sliding: float
    torsional: float
    rolling: float
    condim: int


def _said_by_pair(pair: ContactPair) -> Said:
    """What a file says of a pair that it lists."""
    return _counted(pair.friction, pair.condim)


def _counted(friction: Sequence[float], condim: int) -> Said:
    sliding, torsional, rolling = friction
    return Said(
        sliding if condim > 1 else 0.0, torsional if condim > 3 else 0.0, rolling if condim > 4 else 0.0, condim
    )


def combined(*shapes: Geometry) -> Said | None:
    """What shapes that touch say of their friction; None if none of them says anything."""
    said = [g for g in shapes if g.friction]
    if not said:
        return None
    deciding = [g for g in said if g.priority == max(g.priority for g in said)]
    condim = max(g.condim for g in deciding)
    return _counted([max(g.friction[k] for g in deciding) for k in range(3)], condim)
