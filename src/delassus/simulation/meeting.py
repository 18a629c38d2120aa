"""Which shapes of a scene may touch each other: those that a user names, and those that the model's file lets touch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from delassus.errors import warn
from delassus.geometry.candidates import Shape
from delassus.geometry.classes import PairClass, arrange_pairs
from delassus.geometry.collisions import Collision, collisions_of
from delassus.geometry.shapes.registry import SHAPES
from delassus.model.contact_rules import touching_pairs
from delassus.model.joints import Free
from delassus.model.model import Model
from delassus.model.parts import Geometry
from delassus.simulation.checks import SimulationError
from delassus.simulation.options import ContactSelection
from delassus.simulation.shapes import colliding, shape_of

MOST_PLACES: Final = 200_000
"""Places of pairs that a scene may have."""

_PAIRS: Final = 12
"""Pairs of two kinds of shapes that are looked at in a state, of one robot."""

_PAIRS_OF_BODY: Final = 4
"""Pairs more for each further free body."""


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
    """The pairs of a selection: those of `colliding`, and unless `self_collision` is off those of the model's file."""
    pairs = colliding(model, contacts.colliding)
    if contacts.self_collision:
        pairs |= {key: pair for key, pair in _pairs_of_file(model).items() if key not in pairs}
    free = sum(isinstance(joint.kind, Free) for joint in model.joints)
    meeting = Meeting(*arrange_pairs(pairs.values(), _PAIRS + _PAIRS_OF_BODY * max(free - 1, 0)))
    places = sum(c.count for c in meeting.collisions) + sum(one.count for one in meeting.classes)
    if places > MOST_PLACES:
        raise SimulationError(
            f"{len(pairs)} pairs of shapes may touch each other, at {places} places; there may be {MOST_PLACES}. Give "
            "self_collision=False and name the pairs that matter by colliding=, or use fewer shapes.",
            code="out-of-range",
        )
    return meeting


def _pairs_of_file(model: Model) -> dict[frozenset[Geometry], tuple[Shape, Shape]]:
    """Pairs that the model's file lets touch. Planes are the ground; pairs that are not in the table are told of."""
    shapes: dict[Geometry, Shape] = {}
    found, absent = {}, Counter[tuple[str, str]]()
    for one, two in touching_pairs(model):
        if "plane" in (one.shape, two.shape) or one.shape not in SHAPES or two.shape not in SHAPES:
            continue
        pair = tuple(shapes.setdefault(g, shape_of(g)) if g not in shapes else shapes[g] for g in (one, two))
        if collisions_of(*pair):
            found[frozenset((one, two))] = pair[0], pair[1]
        else:
            first, second = sorted((one.shape, two.shape))
            absent[first, second] += 1
    if absent:
        warn(_sentence(absent.items()))
    return found


def _sentence(absent: Iterable[tuple[tuple[str, str], int]]) -> str:
    kinds = ", ".join(f"{one} with {two} ({count})" for (one, two), count in absent)
    return f"pairs of shapes pass through each other that the model lets touch: {kinds}. Cover one of them with balls."
