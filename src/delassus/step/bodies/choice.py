"""Selects the scenes that are stepped by loops over bodies, pairs and contacts."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from delassus.model.joints import Free
from delassus.model.parts import WORLD
from delassus.step.bodies.robots import SceneParts, scene_parts
from delassus.step.bodies.tables import tables_of
from delassus.step.scene import ParametricScene, Scene

SWEEPS: Final = "sweeps"
"""The name of the method."""

FEWEST: Final = 7
"""Number of free bodies, without robots, from which loops are used: straight-line code would take longer to compile and
to run."""

MOST_SLOTS: Final = 600
"""Largest number of contacts for which Newton's method is compiled: its compile time grows with the length of
arrays."""


FEWEST_BESIDE_ROBOTS: Final = 3
"""Number of free bodies, next to robots, from which loops are used: contacts of robots with bodies make straight-line
code longer."""


def choose_loops(scene: Scene) -> Scene:
    """The scene with slots for loops over bodies if it has many free bodies; otherwise unchanged."""
    return scene if not has_many_bodies(scene) or reason_against_loops(scene) is not None else with_loops(scene)


def has_many_bodies(scene: Scene) -> bool:
    """Whether a scene has shapes that may touch, and so many free bodies that loops are faster than straight-line
    code."""
    free = sum(isinstance(joint.kind, Free) and joint.parent == WORLD for joint in scene.model.joints)
    if free < FEWEST_BESIDE_ROBOTS or not scene.candidates or scene.contacts:
        return False
    parts = scene_parts(scene)
    return len(parts.bodies) >= (FEWEST if parts.robots is None else FEWEST_BESIDE_ROBOTS)


def with_loops(scene: Scene) -> Scene:
    """The scene with slots for loops over free bodies; if any joint limit has a row, all have one."""
    scene = replace(scene, max_limits=None if scene.max_limits else scene.max_limits)
    slots = tables_of(scene).slots
    rescued = slots <= MOST_SLOTS and scene_parts(scene).robots is None
    return replace(scene, many_bodies=slots, method=SWEEPS if rescued else "auto")


def reason_against_loops(scene: Scene) -> str | None:
    """The reason why loops cannot step a scene, or None.

    Loops need free bodies and contacts with three rows.
    """
    if isinstance(scene, ParametricScene):
        return "it has parameters"
    parts = scene_parts(scene)
    if not parts.bodies:
        return "it has no free body, or all of them have damping, springs or rotor inertia"
    if scene.contacts:
        return "it has named contact points"
    if not scene.candidates:
        return "nothing may touch"
    if scene.contact_rows != 3:
        return "contacts have torsional or rolling friction"
    if scene.model.medium.is_felt:
        return "a gas or liquid acts on its bodies"
    return None if parts.robots is None else _reason_against_robots(scene, parts)


def _reason_against_robots(scene: Scene, parts: SceneParts) -> str | None:
    joints = {joint.name for joint in parts.robots.model.joints} if parts.robots is not None else set()
    if any(actuator.drives == "body" for actuator in scene.actuators):
        return "it has adhesive bodies"
    frames = {frame.name: frame.joint for frame in scene.model.frame_list}
    for actuator in scene.actuators:
        if actuator.drives in ("joint", "joint-in-parent") and actuator.target not in joints:
            return "an actuator drives a free body"
        if actuator.drives == "site":
            at = frames.get(actuator.target, WORLD)
            if at != WORLD and scene.model.joints[at].name not in joints:
                return "an actuator drives a free body"
    return None
