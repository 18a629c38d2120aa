"""Which shapes of a scene may touch each other, and whose friction counts.

Those touch that a user names, and those that the model's file lets touch.

Numbers that the ground is given count for all contacts. Others are those of the model's file, by MuJoCo's rule: of two
shapes the one with the larger priority decides; of equals, each coefficient is the larger one, and `condim` too. Where
the file has a plane, it stands for the ground. A pair that the file lists has its own numbers. A contact of condim 1
has no friction, whatever the ground is given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from delassus.errors import warn
from delassus.geometry.candidates import Shape
from delassus.geometry.classes import PairClass, arrange_pairs
from delassus.geometry.collisions import Collision, collisions_of
from delassus.geometry.filters import touching_pairs
from delassus.model.joints import Free
from delassus.model.model import Model
from delassus.model.parts import WORLD, ContactPair, Geometry
from delassus.simulation.checks import SimulationError
from delassus.simulation.ground import Ground
from delassus.simulation.options import ContactSelection
from delassus.simulation.scenery import ground_plane
from delassus.simulation.shapes import colliding, shape_of
from delassus.step.scene import CONTACTS

MOST_PAIRS: Final = 30_000
"""Pairs of shapes that may touch in a scene."""

_PAIRS: Final = 12
"""Pairs of two kinds of shapes that are looked at in a state, of one robot."""

_PAIRS_OF_BODY: Final = 4
"""Pairs more for each further free body."""

_FEW_BODIES: Final = 13
"""Moving bodies of a quadruped, which touch at 8 points at most."""

_SOME_BODIES: Final = 20
"""Moving bodies that touch at 12 points at most."""

_SLOTS_OF_BODY: Final = 4
"""Contacts for each free body of a scene."""

_MOST_SLOTS: Final = 32
"""Contacts by default: what a step solves for grows with their square."""


class Meeting(NamedTuple):
    """Pairs of shapes that may touch, as straight-line code and in classes."""

    collisions: tuple[Collision, ...] = ()
    classes: tuple[PairClass, ...] = ()

    @property
    def geometries(self) -> frozenset[Geometry]:
        """All shapes that may touch another one."""
        pairs = [(c.shape, c.other) for c in self.collisions] + [p for one in self.classes for p in one.pairs]
        return frozenset(shape.geometry for pair in pairs for shape in pair)


def meeting_shapes(model: Model, contacts: ContactSelection) -> Meeting:
    """The pairs of a selection: those of `colliding` and of the model's file, without those of moving bodies if
    `self_collision` is off."""
    pairs = colliding(model, contacts.colliding, contacts.hull_error)
    for key, pair in _pairs_of_file(model, contacts.self_collision, contacts.hull_error).items():
        pairs.setdefault(key, pair)
    return Meeting(*arrange_pairs(pairs.values(), _PAIRS + _PAIRS_OF_BODY * max(_count_free(model) - 1, 0)))


def count_slots(model: Model, meeting: Meeting) -> int:
    """How many contacts a state has by default.

    A robot that lies on the ground touches it, and itself, with 5 (quadrupeds) to 9 pairs of bodies (humanoids) in all
    but one of a thousand steps, most of them with one or two points. Without pairs of moving bodies, 8 are enough.
    """
    moving = {g.joint for g in meeting.geometries if g.joint != WORLD}
    slots = CONTACTS if len(moving) <= _FEW_BODIES else 12 if len(moving) <= _SOME_BODIES else 16
    return max(slots, min(_SLOTS_OF_BODY * _count_free(model) * bool(moving), _MOST_SLOTS))


def _count_free(model: Model) -> int:
    return sum(isinstance(joint.kind, Free) for joint in model.joints)


def _pairs_of_file(
    model: Model, moving: bool, hull_error: float | None
) -> dict[frozenset[Geometry], tuple[Shape, Shape]]:
    """Pairs that the model's file lets touch: of the world with moving bodies, and of `moving` ones with each other.

    One plane is the ground (`ground_plane`). Pairs that are not in the table are told of.
    """
    shapes: dict[Geometry, Shape] = {}
    found, absent = {}, Counter[tuple[str, str]]()
    floor = ground_plane(model)
    for one, two in touching_pairs(model):
        if floor in (one, two) or one.shape == two.shape == "plane" or not (moving or WORLD in (one.joint, two.joint)):
            continue
        for g in (one, two):
            shapes[g] = shapes.get(g) or shape_of(g, hull_error=hull_error)
        if collisions_of(shapes[one], shapes[two]):
            found[frozenset((one, two))] = shapes[one], shapes[two]
        else:
            first, second = sorted((one.shape, two.shape))
            absent[first, second] += 1
        if len(found) > MOST_PAIRS:
            raise SimulationError(
                f"the model has {len(model.geometries)} shapes, and lets more than {MOST_PAIRS} pairs of them touch. "
                "Give self_collision=False, and name the pairs that matter by colliding=; or exclude pairs in the "
                "model's file.",
                code="out-of-range",
            )
    if absent:
        warn(_sentence(absent.items()))
    return found


def _sentence(absent: Iterable[tuple[tuple[str, str], int]]) -> str:
    kinds = ", ".join(f"{one} with {two} ({count})" for (one, two), count in absent)
    return f"pairs of shapes pass through each other that the model lets touch: {kinds}. Cover one of them with balls."


# --- friction ---------------------------------------------------------------------------------------------------------

Own = tuple[float | None, float | None, float | None]
"""Sliding, torsional [m] and rolling [m] friction of a candidate; None where the ground's counts."""


class Friction(NamedTuple):
    """The number of rows of contacts, and what candidates have of their own; empty if nothing."""

    rows: int
    own: tuple[Own, ...]


def friction_of(model: Model, ground: Ground, shapes: tuple[Shape, ...], meeting: Meeting) -> Friction:
    """The friction of all candidates, in their order."""
    plane = ground_plane(model)
    floor = () if plane is None else (plane,)
    pairs = [(shape.count, (shape.geometry, *floor)) for shape in shapes]
    pairs += [(c.count, (c.shape.geometry, c.other.geometry)) for c in meeting.collisions]
    pairs += [(one.points, (a.geometry, b.geometry)) for one in meeting.classes for a, b in one.pairs]
    listed = {frozenset((p.first, p.second)): _pair_coefficients(p) for p in model.contact_rules.pairs}
    own: list[Own] = []
    for count, met in pairs:
        said = listed.get(frozenset(g.name for g in met)) or combined(*met)
        own += [_effective_coefficients(ground, said)] * count
    given = [x is not None and bool(np.any(x)) for x in (ground.friction, ground.torsional, ground.rolling)]
    acts = [any(given[k] if friction[k] is None else friction[k] for friction in own) for k in range(3)]
    rows = 6 if acts[2] else 4 if acts[1] else 3
    counted = {3: 1, 4: 2, 6: 3}[rows]
    differs = any(x is not None for friction in own for x in friction[:counted])
    return Friction(rows, tuple(own) if differs else ())


def _effective_coefficients(ground: Ground, said: FrictionCoefficients | None) -> Own:
    """What counts of what shapes say."""
    if said is None:
        return None, None, None
    if said.condim == 1:
        return 0.0, 0.0, 0.0
    given = (ground.friction, ground.torsional, ground.rolling)
    sliding, torsional, rolling = (own if x is None else None for x, own in zip(given, said[:3], strict=True))
    return sliding, torsional, rolling


class FrictionCoefficients(NamedTuple):
    """Coefficients of shapes that touch, zero where they do not count."""

    sliding: float
    torsional: float
    rolling: float
    condim: int


def _pair_coefficients(pair: ContactPair) -> FrictionCoefficients:
    """What a file says of a pair that it lists."""
    return _coefficients_of_condim(pair.friction, pair.condim)


def _coefficients_of_condim(friction: Sequence[float], condim: int) -> FrictionCoefficients:
    sliding, torsional, rolling = friction
    return FrictionCoefficients(
        sliding if condim > 1 else 0.0, torsional if condim > 3 else 0.0, rolling if condim > 4 else 0.0, condim
    )


def combined(*shapes: Geometry) -> FrictionCoefficients | None:
    """What shapes that touch say of their friction; None if none of them says anything."""
    said = [g for g in shapes if g.friction]
    if not said:
        return None
    deciding = [g for g in said if g.priority == max(g.priority for g in said)]
    condim = max(g.condim for g in deciding)
    return _coefficients_of_condim([max(g.friction[k] for g in deciding) for k in range(3)], condim)
