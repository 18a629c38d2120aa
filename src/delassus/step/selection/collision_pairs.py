"""Selection of pairs of shapes that may touch each other, and the friction of their contacts.

Pairs of shapes may touch if the user names them or the model's file allows it.

Coefficients of `Ground` apply to all contacts. If `Ground` does not define a coefficient, it is that of the model's
file, by MuJoCo's rule: of the shape with the larger priority; for equal priorities, the larger coefficients and the
larger `condim`. A plane or height field of the file represents the ground. The coefficients of a `<pair>` of the file
replace those of its shapes. A contact of condim 1 has no friction, even if `Ground` has a coefficient.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from delassus.errors import warn
from delassus.geometry.candidates import Shape
from delassus.geometry.classes import PairClass, arrange_pairs
from delassus.geometry.collisions import Collision, collisions_of
from delassus.geometry.filters import touching_pairs
from delassus.model.joints import Free
from delassus.model.model import Model
from delassus.model.parts import HEIGHT_FIELD, WORLD, ContactPair, Geometry
from delassus.step.scene import CONTACTS
from delassus.step.selection.errors import SimulationError
from delassus.step.selection.options import ShapeSelection
from delassus.step.selection.shapes import colliding, shape_of
from delassus.step.selection.world_shapes import ground_shapes

MOST_PAIRS: Final = 30_000
"""Largest number of pairs of shapes that may touch in a scene."""

_PAIRS: Final = 12
"""Largest number of pairs of a class in the narrow phase of a state, for one robot."""

_PAIRS_OF_BODY: Final = 4
"""Additional such pairs for each further free body."""

_FEW_BODIES: Final = 13
"""Robots with at most this number of moving bodies, that of a quadruped, get 8 contact slots."""

_SOME_BODIES: Final = 20
"""Robots with at most this number of moving bodies get 12 contact slots."""

_SLOTS_OF_BODY: Final = 4
"""Contact slots for each free body of a scene."""

_MOST_SLOTS: Final = 32
"""Largest default number of contact slots: the cost of a step grows with its square."""


FRICTION: Final = 0.7
"""Default coefficient of sliding friction, if neither the ground nor the shape has one."""


class CollisionPairs(NamedTuple):
    """Pairs of shapes that may touch: those in straight-line code, and those in classes."""

    collisions: tuple[Collision, ...] = ()
    classes: tuple[PairClass, ...] = ()

    @property
    def geometries(self) -> frozenset[Geometry]:
        """All shapes that may touch another one."""
        pairs = [(c.shape, c.other) for c in self.collisions] + [p for one in self.classes for p in one.pairs]
        return frozenset(shape.geometry for pair in pairs for shape in pair)


def select_collision_pairs(model: Model, contacts: ShapeSelection) -> CollisionPairs:
    """The pairs of `colliding` and of the model's file; the latter without pairs of moving bodies if `self_collision`
    is off."""
    pairs = colliding(model, contacts.colliding, contacts.hull_error)
    for key, pair in _pairs_of_file(model, contacts.self_collision, contacts.hull_error).items():
        pairs.setdefault(key, pair)
    return CollisionPairs(*arrange_pairs(pairs.values(), _PAIRS + _PAIRS_OF_BODY * max(_count_free(model) - 1, 0)))


def count_slots(model: Model, collision_pairs: CollisionPairs) -> int:
    """Default number of contact slots.

    In all but one of a thousand steps, a robot that lies on the ground has 5 (quadrupeds) to 9 (humanoids) touching
    pairs of bodies, most of them with one or two points. Without pairs of moving bodies, 8 slots are enough.
    """
    moving = {g.joint for g in collision_pairs.geometries if g.joint != WORLD}
    slots = CONTACTS if len(moving) <= _FEW_BODIES else 12 if len(moving) <= _SOME_BODIES else 16
    return max(slots, min(_SLOTS_OF_BODY * _count_free(model) * bool(moving), _MOST_SLOTS))


def _count_free(model: Model) -> int:
    return sum(isinstance(joint.kind, Free) for joint in model.joints)


def _pairs_of_file(
    model: Model, moving: bool, hull_error: float | None
) -> dict[frozenset[Geometry], tuple[Shape, Shape]]:
    """Pairs that may touch by the model's file: of the world with moving bodies and, if `moving`, of moving bodies.

    Omits the ground (`ground_shapes`). Warns of pairs for which there is no contact function.
    """
    shapes: dict[Geometry, Shape] = {}
    pairs, unsupported = {}, Counter[tuple[str, str]]()
    floors = ground_shapes(model)
    for one, two in touching_pairs(model):
        if (
            HEIGHT_FIELD in (one.shape, two.shape)
            or one.shape == two.shape == "plane"
            or one in floors
            or two in floors
        ):
            continue
        if not (moving or WORLD in (one.joint, two.joint)):
            continue
        for g in (one, two):
            shapes[g] = shapes.get(g) or shape_of(g, hull_error=hull_error)
        if collisions_of(shapes[one], shapes[two]):
            pairs[frozenset((one, two))] = shapes[one], shapes[two]
        else:
            first, second = sorted((one.shape, two.shape))
            unsupported[first, second] += 1
        if len(pairs) > MOST_PAIRS:
            raise SimulationError(
                f"more than {MOST_PAIRS} pairs of the model's {len(model.geometries)} shapes may touch; there must be "
                f"at most {MOST_PAIRS}. Pass self_collision=False and name the pairs that matter in colliding=, or "
                "exclude pairs in the model's file.",
                code="out-of-range",
            )
    if unsupported:
        warn(_describe_unsupported(unsupported.items()))
    return pairs


def _describe_unsupported(counts: Iterable[tuple[tuple[str, str], int]]) -> str:
    types = ", ".join(f"{one} with {two} ({count})" for (one, two), count in counts)
    return (
        f"the model lets these pairs of shapes touch, but they are not supported and pass through each other: {types}. "
        "Replace one shape of each pair by spheres."
    )


# --- friction ---------------------------------------------------------------------------------------------------------

Own = tuple[float | None, float | None, float | None]
"""Sliding, torsional [m] and rolling [m] friction of a candidate; None for the coefficient of the ground."""


Coefficients = tuple[Any, Any, Any]
"""Sliding, torsional [m] and rolling [m] friction (…) of a ground; None for the coefficient of the model's file."""


class Friction(NamedTuple):
    """The number of rows of a contact, and the coefficients of all candidates.

    Attributes:
        rows: 3, 4 with torsional and 6 with rolling friction.
        own: Coefficients of each candidate; empty if all have those of the ground.
    """

    rows: int
    own: tuple[Own, ...]


def friction_of(
    model: Model, ground: Coefficients, shapes: tuple[Shape, ...], collision_pairs: CollisionPairs
) -> Friction:
    """The friction of all candidates, in their order; coefficients of the ground override those of the file."""
    pairs = [(shape.count, (shape.geometry, *ground_shapes(model)[:1])) for shape in shapes]
    pairs += [(c.count, (c.shape.geometry, c.other.geometry)) for c in collision_pairs.collisions]
    pairs += [(one.points, (a.geometry, b.geometry)) for one in collision_pairs.classes for a, b in one.pairs]
    listed = {frozenset((p.first, p.second)): _pair_coefficients(p) for p in model.contact_rules.pairs}
    coefficients: list[Own] = []
    for count, geometries in pairs:
        in_file = listed.get(frozenset(g.name for g in geometries)) or combined(*geometries)
        coefficients += [_effective_coefficients(ground, in_file)] * count
    of_ground = [x is not None and bool(np.any(x)) for x in ground]
    is_nonzero = [any(of_ground[k] if c[k] is None else c[k] for c in coefficients) for k in range(3)]
    rows = 6 if is_nonzero[2] else 4 if is_nonzero[1] else 3
    effective = {3: 1, 4: 2, 6: 3}[rows]
    differs = any(x is not None for c in coefficients for x in c[:effective])
    return Friction(rows, tuple(coefficients) if differs else ())


def _effective_coefficients(ground: Coefficients, in_file: FrictionCoefficients | None) -> Own:
    """The coefficients of a file that the ground does not override."""
    if in_file is None:
        return None, None, None
    if in_file.condim == 1:
        return 0.0, 0.0, 0.0
    sliding, torsional, rolling = (c if x is None else None for x, c in zip(ground, in_file[:3], strict=True))
    return sliding, torsional, rolling


class FrictionCoefficients(NamedTuple):
    """Coefficients of two shapes that touch, zero if `condim` omits them."""

    sliding: float
    torsional: float
    rolling: float
    condim: int


def _pair_coefficients(pair: ContactPair) -> FrictionCoefficients:
    """The coefficients of a `<pair>` of a file."""
    return _coefficients_of_condim(pair.friction, pair.condim)


def _coefficients_of_condim(friction: Sequence[float], condim: int) -> FrictionCoefficients:
    sliding, torsional, rolling = friction
    return FrictionCoefficients(
        sliding if condim > 1 else 0.0, torsional if condim > 3 else 0.0, rolling if condim > 4 else 0.0, condim
    )


def combined(*shapes: Geometry) -> FrictionCoefficients | None:
    """The combined coefficients of shapes that touch; None if no shape has any."""
    rated = [g for g in shapes if g.friction]
    if not rated:
        return None
    deciding = [g for g in rated if g.priority == max(g.priority for g in rated)]
    condim = max(g.condim for g in deciding)
    return _coefficients_of_condim([max(g.friction[k] for g in deciding) for k in range(3)], condim)
