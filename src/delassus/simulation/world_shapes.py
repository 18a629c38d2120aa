"""The world of a model's file: its planes and the shapes that are fixed to the world.

An MJCF file describes a world, a URDF file only a robot (`Model.describes_world`):

    ground=Ground(…)               this ground, whatever the file has
    a plane fixed to the world     the first level plane is the ground, else the first plane
    no plane, MJCF                 no ground: only shapes of the file can be touched
    no plane, URDF                 level ground at height zero

Planes are infinite, as in MuJoCo: the half-lengths in a file are for drawing only.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from delassus.errors import expect, warn
from delassus.model.joints import Free
from delassus.model.model import Model
from delassus.model.parts import WORLD, Geometry
from delassus.simulation.checks import SimulationError
from delassus.simulation.ground import Ground
from delassus.simulation.options import ContactSelection

_LEVEL: Final = 1e-12
"""A plane is level if 1 - n_z of its normal n is smaller."""

_SHOWN: Final = 5


def static_shapes(model: Model) -> list[Geometry]:
    """The collision shapes that are fixed to the world, including planes."""
    return [g for g in model.geometries if g.role == "collision" and g.joint == WORLD]


def ground_plane(model: Model) -> Geometry | None:
    """The plane of a model's file that is the ground: the first level plane, else the first plane, else None."""
    planes = [g for g in static_shapes(model) if g.shape == "plane"]
    level = [g for g in planes if g.placement.R[2, 2] >= 1.0 - _LEVEL]
    return next(iter(level or planes), None)


def has_floor(model: Model) -> bool:
    """Whether there is a ground by default: a plane of the file, or the level ground of a URDF."""
    return not model.describes_world or ground_plane(model) is not None


def ground_of(model: Model, **options: Any) -> Ground:
    """The ground of a model's file, with changed `options` of `Ground`, such as friction=0.5.

    A robot from URDF stands on level ground at height zero. An MJCF file without a plane raises an error.
    """
    plane = ground_plane(model)
    if plane is None:
        if model.describes_world:
            raise SimulationError(
                f"the file of {model.name!r} describes a world without a plane, so it has no ground. Pass Ground() for "
                "level ground at height 0.",
                code="nothing-to-do",
            )
        return Ground(**options)
    normal = plane.placement.R[:, 2]
    level = normal[2] >= 1.0 - _LEVEL
    normal = np.array([0.0, 0.0, 1.0]) if level else normal
    height = float(normal @ plane.placement.p) + 0.0
    return Ground(**{"normal": normal, "height": height, **options})


def choose_ground(model: Model, ground: Ground | None, contacts: ContactSelection) -> tuple[Ground, ContactSelection]:
    """The ground of a simulation, and the contact selection; without a ground, `touching` is empty."""
    if ground is not None:
        expect("the ground", ground, Ground, "Ground(friction=0.7)")
        return ground, contacts
    if has_floor(model):
        return ground_of(model), contacts
    if contacts.touching not in ("*", (), []):
        raise SimulationError(
            f"touching= is {contacts.touching!r}, but the file of {model.name!r} has no ground. Pass ground=Ground(), "
            "or omit touching=.",
            code="conflicting-arguments",
        )
    unchanged = (contacts.touching, contacts.colliding) == ("*", ContactSelection().colliding)
    if contacts.max_contacts != 0 and unchanged:
        _warn_of_absent_floor(model)
    return Ground(), contacts.replace(touching=())


def _warn_of_absent_floor(model: Model) -> None:
    """Warn that free bodies of a file without a ground fall forever."""
    free = [joint.name for joint in model.joints if isinstance(joint.kind, Free)]
    solid = any(g.role == "collision" for g in model.geometries)
    if free and solid and any(model.gravity):
        warn(
            f"the file of {model.name!r} has no plane, so there is no ground and free bodies fall: {_listed(free)}. "
            "Pass ground=dl.Ground() for level ground at height 0, or load a scene file with a floor."
        )


def warn_of_untouchable_shapes(model: Model, ground_given: bool, touched: frozenset[Geometry]) -> None:
    """Warn of shapes of a model's world through which robots will pass."""
    others = [g for g in static_shapes(model) if g not in touched]
    if not ground_given:
        others = [g for g in others if g is not ground_plane(model)]
    planes = [g.name for g in others if g.shape == "plane"] if not ground_given else []
    shapes = [g.name for g in others if g.shape != "plane"]
    if planes:
        warn(
            f"nothing can touch {len(planes)} planes other than the ground: {_listed(planes)}. Name the shapes that "
            f"may touch them in colliding=, such as colliding=[('*', {planes[0]!r})]."
        )
    if shapes:
        warn(
            f"nothing can touch {len(shapes)} shapes that are fixed to the world: {_listed(shapes)}. Name the shapes "
            "that may touch them in colliding=, or pass Ground(heights=…)."
        )


def _listed(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
