"""The world of a model's file: its planes and the shapes that are fixed to the world.

An MJCF file describes a world, a URDF file only a robot (`Model.describes_world`):

    ground=Ground(…)                      this ground, whatever the file has
    a height field fixed to the world     the first one with the world's axes is the ground
    a plane fixed to the world            the first level plane is the ground, else the first plane
    no plane, MJCF                        no ground: only shapes of the file can be touched
    no plane, URDF                        level ground at height zero

Planes are infinite, as in MuJoCo: the half-lengths in a file are for drawing only. A height field and level planes are
one ground, with the larger height everywhere, and a plane if that is level. Without a level plane, a height field
continues level beyond its edges, where MuJoCo has none.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from delassus.errors import expect, warn
from delassus.model.joints import Free
from delassus.model.model import Model
from delassus.model.parts import HEIGHT_FIELD, Geometry
from delassus.simulation.checks import SimulationError
from delassus.simulation.ground import Ground
from delassus.step.selection.options import ContactSelection
from delassus.step.selection.world_shapes import ground_plane, ground_shapes, static_shapes

_SHOWN: Final = 5


def has_floor(model: Model) -> bool:
    """Whether there is a ground by default: that of the file, or the level ground of a URDF."""
    return not model.describes_world or bool(ground_shapes(model))


def ground_of(model: Model, **options: Any) -> Ground:
    """The ground of a model's file, with changed `options` of `Ground`, such as friction=0.5.

    A robot from URDF stands on level ground at height zero. An MJCF file without a ground raises an error.

    >>> dl.simulation.ground_of(dl.load("quadruped"), friction=0.5).friction
    array(0.5)
    """
    shapes = ground_shapes(model)
    if not shapes:
        if model.describes_world:
            raise SimulationError(
                f"the file of {model.name!r} describes a world without a plane, so it has no ground. Pass Ground() for "
                "level ground at height 0.",
                code="nothing-to-do",
            )
        return Ground(**options)
    if shapes[0].shape == HEIGHT_FIELD:
        field = _height_field(*shapes)
        flat = {"height": float(field["heights"][0, 0])} if np.ptp(field["heights"]) == 0.0 else None
        return Ground(**{**(flat or field), **options})
    normal, height = ground_plane(shapes[0])
    return Ground(**{"normal": normal, "height": height, **options})


def _height_field(field: Geometry, *planes: Geometry) -> dict[str, Any]:
    """The heights of a height field above level planes, with a border as high as these, their spacing and origin."""
    x, y, z = field.placement.p
    heights = z + np.array(field.heights)
    spacing = np.array(field.size) / (np.array(heights.shape) - 1)
    origin = np.array([x, y]) - 0.5 * np.array(field.size)
    if planes:
        level = max(plane.placement.p[2] for plane in planes)
        heights, origin = np.pad(np.maximum(heights, level), 1, constant_values=level), origin - spacing
    return {"heights": heights, "spacing": tuple(spacing.tolist()), "origin": tuple(origin.tolist())}


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
        floors = ground_shapes(model)
        others = [g for g in others if g not in floors]
    planes = [g.name for g in others if g.shape == "plane"] if not ground_given else []
    fields = [g.name for g in others if g.shape == HEIGHT_FIELD] if not ground_given else []
    shapes = [g.name for g in others if g.shape not in ("plane", HEIGHT_FIELD)]
    if fields:
        warn(
            f"nothing can touch {len(fields)} height fields: {_listed(fields)}. The ground is the first one with the "
            "world's axes: turn the field in the file, or join several in ground=Ground(heights=…)."
        )
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
