"""Which collision shapes of a model may touch the ground."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterable

from delassus.errors import warn
from delassus.model.model import WORLD, Geometry, Model, UnknownName
from delassus.model.readers.meshes import hull_points
from delassus.simulation.checks import SimulationError, names
from delassus.simulation.geometry.candidates import Shape
from delassus.simulation.geometry.collisions import SURFACES, Collision, collisions_of


def shapes_of(model: Model, patterns: str | Iterable[str]) -> tuple[Shape, ...]:
    """Collision shapes on moving bodies whose names match a pattern; planes of the model are ground, and left out."""
    every = [g for g in model.geometries if g.role == "collision" and g.joint != WORLD and g.shape != "plane"]
    chosen: list[Geometry] = []
    for pattern in names("touching", patterns):
        found = [g for g in every if fnmatch.fnmatchcase(g.name, pattern)]
        if not found and pattern != "*":
            raise UnknownName("collision shape that matches", pattern, [g.name for g in every])
        chosen += [g for g in found if g not in chosen]
    return tuple(_shape(g) for g in every if g in chosen)


def colliding(model: Model, pairs: Iterable[tuple[str, str]]) -> tuple[Collision, ...]:
    """Ways in which shapes touch each other, by pairs of names or patterns; shapes of one body do not."""
    every = [g for g in model.geometries if g.role == "collision" and g.shape != "plane"]
    found: dict[Collision, None] = {}
    if not isinstance(pairs, Iterable) or getattr(pairs, "ndim", 1) == 0:
        raise SimulationError(f"colliding= is {pairs!r}; it has pairs of names or patterns, such as ('*_hand', 'box').")
    for pair in pairs:
        patterns = () if isinstance(pair, str) else names("a pair of colliding=", pair)
        if len(patterns) != 2:
            raise SimulationError(
                f"colliding= has {pair!r}; it has pairs of names or patterns, such as ('*_hand', 'box')."
            )
        one, two = ([g for g in every if fnmatch.fnmatchcase(g.name, pattern)] for pattern in patterns)
        for chosen, pattern in ((one, patterns[0]), (two, patterns[1])):
            if not chosen:
                raise UnknownName("collision shape that matches", pattern, [g.name for g in every])
        met = {frozenset((a, b)): (a, b) for a in one for b in two if a.joint != b.joint}
        for a, b in met.values():
            ways = collisions_of(_shape(a), _shape(b))
            if not ways:
                raise SimulationError(
                    f"{a.name!r} and {b.name!r} cannot touch each other, a {a.shape} and a {b.shape}: there are balls "
                    f"against {', '.join(SURFACES)}, capsules against capsules, and boxes against boxes. Cover "
                    "one of them with balls."
                )
            found |= dict.fromkeys(ways)
    return tuple(found)


def warn_of_scenery(model: Model, ground_given: bool, touched: frozenset[Geometry]) -> None:
    """Say which shapes of a model's world robots will pass through."""
    fixed = [g for g in model.geometries if g.role == "collision" and g.joint == WORLD]
    others = [g.name for g in fixed if g.shape != "plane" and g not in touched]
    if others:
        warn(
            f"shapes that are fixed to the world are not touched: {', '.join(others[:5])}"
            f"{', …' if len(others) > 5 else ''}. Name what touches them by colliding=, or give Ground(heights=…)."
        )
    for g in fixed:
        height, normal = g.placement.p[2], g.placement.R[:, 2]
        if g.shape == "plane" and not ground_given and (abs(height) > 1e-9 or normal[2] < 1.0 - 1e-12):
            warn(
                f"the plane {g.name!r} of the model is not the ground, which is at height 0: give ground="
                f"Ground(normal={tuple(normal.round(6).tolist())}, height={float(normal @ g.placement.p):.6g})."
            )


def _shape(geometry: Geometry) -> Shape:
    if geometry.shape == "mesh":
        return Shape(geometry, hull_points(geometry))
    sizes = geometry.size[:1] if geometry.shape == "capsule" else geometry.size
    if not all(math.isfinite(x) and x > 0.0 for x in sizes):
        raise SimulationError(
            f"the shape {geometry.name!r} is a {geometry.shape} of size {geometry.size} m; lengths are positive. "
            "Correct it, or leave it out by touching=."
        )
    return Shape(geometry)
