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


def warn_of_scenery(model: Model, ground_given: bool) -> None:
    """Say which shapes of a model's world robots will pass through: only the ground is touched."""
    fixed = [g for g in model.geometries if g.role == "collision" and g.joint == WORLD]
    others = [g.name for g in fixed if g.shape != "plane"]
    if others:
        warn(
            f"shapes that are fixed to the world are not touched: {', '.join(others[:5])}"
            f"{', …' if len(others) > 5 else ''}. Robots touch the ground; give hills and steps as Ground(heights=…)."
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
