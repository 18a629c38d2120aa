"""The world that a model's file describes: its planes and the shapes that are fixed to the world.

MJCF describes a world, URDF a robot alone (`Model.describes_world`):

    ground=Ground(…)                        that ground, whatever the file has
    a plane fixed to the world              the ground is the first level plane, else the first plane
    no plane, a file that describes a world  no ground: nothing but shapes of the file can be touched
    no plane, a robot alone                 level ground at height zero

Planes have no end, as in MuJoCo: the half-lengths of a file are for drawings.
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
"""Planes whose normal is so near to (0, 0, 1) are level."""

_SHOWN: Final = 5


def static_shapes(model: Model) -> list[Geometry]:
    """The collision shapes that are fixed to the world, planes among them."""
    return [g for g in model.geometries if g.role == "collision" and g.joint == WORLD]


def ground_plane(model: Model) -> Geometry | None:
    """The plane of a model's file that is its ground: the first level one, else the first one; None without a plane."""
    planes = [g for g in static_shapes(model) if g.shape == "plane"]
    level = [g for g in planes if g.placement.R[2, 2] >= 1.0 - _LEVEL]
    return next(iter(level or planes), None)


def has_floor(model: Model) -> bool:
    """Whether there is a ground where none is given: a plane of the file, or level ground below a robot alone."""
    return not model.describes_world or ground_plane(model) is not None


def ground_of(model: Model, **options: Any) -> Ground:
    """The ground of a model's file as a `Ground`, with other `options` of it, such as friction=0.5.

    A file without a plane that describes a world has none, which is an error; a robot alone stands on level ground at
    height zero.
    """
    plane = ground_plane(model)
    if plane is None:
        if model.describes_world:
            raise SimulationError(
                f"the file of {model.name!r} describes a world without a plane, so there is no ground in it: give "
                "Ground() for level ground at height 0.",
                code="nothing-to-do",
            )
        return Ground(**options)
    normal = plane.placement.R[:, 2]
    level = normal[2] >= 1.0 - _LEVEL
    normal = np.array([0.0, 0.0, 1.0]) if level else normal
    height = float(normal @ plane.placement.p) + 0.0
    return Ground(**{"normal": normal, "height": height, **options})


def choose_ground(model: Model, ground: Ground | None, contacts: ContactSelection) -> tuple[Ground, ContactSelection]:
    """The ground of a simulation, and what may touch: nothing touches a ground that is not there."""
    if ground is not None:
        expect("the ground", ground, Ground, "Ground(friction=0.7)")
        return ground, contacts
    if has_floor(model):
        return ground_of(model), contacts
    if contacts.touching not in ("*", (), []):
        raise SimulationError(
            f"touching= is {contacts.touching!r}, and the file of {model.name!r} has no floor to touch: give "
            "ground=Ground(), or leave touching= out.",
            code="conflicting-arguments",
        )
    unchanged = (contacts.touching, contacts.colliding) == ("*", ContactSelection().colliding)
    if contacts.max_contacts != 0 and unchanged:
        _warn_of_absent_floor(model)
    return Ground(), contacts.replace(touching=())


def _warn_of_absent_floor(model: Model) -> None:
    """Say that robots of a file without a floor fall for ever."""
    free = [joint.name for joint in model.joints if isinstance(joint.kind, Free)]
    solid = any(g.role == "collision" for g in model.geometries)
    if free and solid and any(model.gravity):
        warn(
            f"the file of {model.name!r} has no floor, so there is none, and what moves freely falls: {_listed(free)}. "
            "Give ground=dl.Ground() for level ground at height 0, or load the scene that has a floor."
        )


def warn_of_scenery(model: Model, ground_given: bool, touched: frozenset[Geometry]) -> None:
    """Say which shapes of a model's world robots will pass through."""
    others = [g for g in static_shapes(model) if g not in touched]
    if not ground_given:
        others = [g for g in others if g is not ground_plane(model)]
    planes = [g.name for g in others if g.shape == "plane"] if not ground_given else []
    shapes = [g.name for g in others if g.shape != "plane"]
    if planes:
        warn(
            f"{len(planes)} planes besides the ground are not touched: {_listed(planes)}. Name what touches them by "
            f"colliding=, such as colliding=[('*', {planes[0]!r})]."
        )
    if shapes:
        warn(
            f"{len(shapes)} shapes that are fixed to the world are not touched: {_listed(shapes)}. Name what touches "
            "them by colliding=, or give Ground(heights=…)."
        )


def _listed(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
