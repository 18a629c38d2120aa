"""Selects the scenes that are stepped by loops over bodies, pairs and contacts."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy

from delassus.model.links import links_of
from delassus.step.bodies.tables import tables_of
from delassus.step.scene import Scene

SWEEPS: Final = "sweeps"
"""The name of the method."""

FEWEST: Final = 7
"""Number of free bodies from which loops are used: straight-line code would take longer to compile and to run."""

MOST_SLOTS: Final = 600
"""Largest number of contacts for which Newton's method is compiled: its compile time grows with the length of
arrays."""


def choose_loops(scene: Scene) -> Scene:
    """The scene with slots for loops over bodies if it consists of many free bodies; otherwise unchanged."""
    few = len(scene.model.joints) < FEWEST
    return scene if few or reason_against_loops(scene) is not None else with_loops(scene)


def with_loops(scene: Scene) -> Scene:
    """The scene of free bodies with steps by loops."""
    slots = tables_of(scene).slots
    return replace(scene, many_bodies=slots, method=SWEEPS if slots <= MOST_SLOTS else "auto")


def reason_against_loops(scene: Scene) -> str | None:
    """Why loops cannot step a scene; None if they can: everything that moves is a free body, and contacts have three
    rows."""
    joints, links = scene.model.joints, links_of(scene.model).links
    for k, link in enumerate(links):
        placed = not numpy.array_equal(link.placement.R, numpy.eye(3)) or numpy.any(link.placement.p)
        if not link.motion.is_free or link.parent >= 0 or (link.q, link.v) != (7 * k, 6 * k) or placed:
            return "not all of its bodies are free ones of the world"
    if any(any(x) for joint in joints for x in (joint.damping, joint.friction, joint.stiffness, joint.armature)):
        return "a free joint has damping, friction, a spring or rotor inertia"
    if scene.mechanism.constraints or scene.one_sided or scene.contacts or scene.joint_limits:
        return "it has constraints"
    if scene.actuators:
        return "it has actuators"
    if not scene.candidates:
        return "nothing may touch"
    if scene.contact_rows != 3:
        return "contacts have torsional or rolling friction"
    return None
