"""Which shapes of a scene may touch each other: those that a user names, and those that the model's file lets touch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from delassus.errors import warn
from delassus.geometry.candidates import Shape
from delassus.geometry.classes import PairClass, arrange_pairs
from delassus.geometry.collisions import Collision, collisions_of
from delassus.model.contact_rules import touching_pairs
from delassus.model.joints import Free
from delassus.model.model import Model
from delassus.model.parts import WORLD, Geometry
from delassus.simulation.checks import SimulationError
from delassus.simulation.options import ContactSelection
from delassus.simulation.shapes import colliding, shape_of

MOST_PAIRS: Final = 30_000
"""Pairs of shapes that may touch in a scene."""

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
    """The pairs of a selection: those of `colliding` and of the model's file, without those of moving bodies if
    `self_collision` is off."""
    pairs = colliding(model, contacts.colliding, contacts.hull_error)
    for key, pair in _pairs_of_file(model, contacts.self_collision, contacts.hull_error).items():
        pairs.setdefault(key, pair)
    free = sum(isinstance(joint.kind, Free) for joint in model.joints)
    return Meeting(*arrange_pairs(pairs.values(), _PAIRS + _PAIRS_OF_BODY * max(free - 1, 0)))


def _pairs_of_file(
    model: Model, moving: bool, hull_error: float | None
) -> dict[frozenset[Geometry], tuple[Shape, Shape]]:
    """Pairs that the model's file lets touch: of the world with moving bodies, and of `moving` ones with each other.

    Planes are the ground. Pairs that are not in the table are told of.
    """
    shapes: dict[Geometry, Shape] = {}
    found, absent = {}, Counter[tuple[str, str]]()
    for one, two in touching_pairs(model):
        if "plane" in (one.shape, two.shape) or not (moving or WORLD in (one.joint, two.joint)):
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
