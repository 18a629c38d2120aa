"""Sensors of contact, and of the ground around a robot."""

from __future__ import annotations

from typing import Any

import numpy

import delassus.numpy as np
from delassus.contact.cones.tangents import contact_axes
from delassus.dynamics.kinematics.kinematics import frame_in_world
from delassus.model.parts import WORLD
from delassus.simulation.sensors.readout import Readout, Sensor, register_sensor
from delassus.step.scene import Scene
from delassus.step.stages.collide import find_candidates, ground_surface
from delassus.step.stages.kinematics import compute_kinematics

GROUND = "ground"


def candidate_signs(scene: Scene, target: str) -> numpy.ndarray[Any, Any]:
    """(candidates,) 1 where a candidate is a contact of a shape or body, -1 where it is one against it, else 0.

    "one|other" are the contacts of one shape or body with another, or with "ground".
    """
    one, _, other = target.partition("|")
    signs = []
    for shape, partner, _ in scene.candidate_shapes:
        first, second = names_of(scene, shape), names_of(scene, partner)
        forward = one in first and (not other or other in second)
        backward = one in second and (not other or other in first)
        signs.append(float(forward) - float(backward))
    return numpy.array(signs)


def names_of(scene: Scene, shape: Any) -> set[str]:
    """By which names contacts of a shape are found: its own, and those of its body."""
    if shape is None:
        return {GROUND}
    joint = shape.geometry.joint
    if joint == WORLD:
        return {shape.geometry.name}
    model = scene.model
    links = {frame.name for frame in model.frame_list if frame.role == "link" and frame.joint == joint}
    return {shape.geometry.name, model.joints[joint].name, *links}


@register_sensor("touch", "shape", 1)
def touch(now: Readout, sensor: Sensor) -> Any:
    """The sum of the normal forces on a shape or body [N]."""
    scene, rows = now.scene, now.scene.contact_rows
    signs = np.take(candidate_signs(scene, sensor.target), now.contact)
    normal = np.stack([now.force[rows * k + 2] for k in range(scene.slots)])
    return np.stack([np.sum(np.abs(signs) * normal)])


@register_sensor("force", "shape", 3)
def contact_force(now: Readout, sensor: Sensor) -> Any:
    """The force of all contacts on a shape or body, in the world's axes [N]."""
    scene, rows = now.scene, now.scene.contact_rows
    signs = np.take(candidate_signs(scene, sensor.target), now.contact)
    common = contact_axes(now.ground.normal) if scene.field is None and not scene.collisions else None
    normals = None
    if common is None:
        found = find_candidates(scene, compute_kinematics(scene, now.q), now.ground)
        normals = np.take(found.normal, now.contact, axis=0)
    total = np.zeros(3)
    for k in range(scene.slots):
        axes = common if normals is None else contact_axes(normals[k])
        total = total + signs[k] * (axes @ now.force[rows * k : rows * k + 3])
    return total


@register_sensor("heightscan", "frame", None)
def height_scan(now: Readout, sensor: Sensor) -> Any:
    """How high the frame's origin is above the ground at points around it, straight up [m]."""
    R, p = frame_in_world(now.model, now.q, sensor.target)
    heading = np.arctan2(R[1, 0], R[0, 0])
    c, s = np.cos(heading), np.sin(heading)
    surface, heights = ground_surface(now.scene, now.ground), []
    for x, y in sensor.points:
        gap, normal = surface(np.stack([p[0] + c * x - s * y, p[1] + s * x + c * y, p[2]]))[:2]
        heights.append(gap / normal[2])
    return np.stack(heights)
