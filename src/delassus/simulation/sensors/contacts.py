"""Sensors of contact, and of the ground around a robot."""

from __future__ import annotations

from typing import Any

import numpy

import delassus.numpy as np
from delassus.contact.cones.tangents import contact_axes
from delassus.dynamics.forces.rnea import link_forces
from delassus.dynamics.kinematics.kinematics import frame_in_world, world_poses
from delassus.model.links import links_of
from delassus.model.parts import WORLD
from delassus.model.placement import HERE
from delassus.simulation.sensors.readout import Readout, Sensor, register_sensor
from delassus.step.points.statistics import candidate_signs
from delassus.step.scene import TALLIES
from delassus.step.stages.collide import find_candidates, ground_surface, link_movement
from delassus.step.stages.kinematics import compute_kinematics


@register_sensor("touch", "shape", 1)
def touch(now: Readout, sensor: Sensor) -> Any:
    """The sum of the normal forces on a shape or body [N]."""
    scene, rows = now.scene, now.scene.contact_rows
    signs = np.take(candidate_signs(scene, sensor.target), now.contact)
    normal = np.stack([now.force[rows * k + 2] for k in range(scene.slots)])
    return np.stack([np.sum(np.abs(signs) * normal)])


def _tallied(now: Readout, sensor: Sensor, index: int) -> Any:
    """One of the values that the step accumulates for a tracked shape."""
    return now.tally[TALLIES * now.scene.tracked.index(sensor.target) + index][None]


@register_sensor("touchmean", "tracked", 1)
def mean_touch(now: Readout, sensor: Sensor) -> Any:
    """The mean of `touch` over the steps of the last control period [N]."""
    return _tallied(now, sensor, 0)


@register_sensor("touchpeak", "tracked", 1)
def peak_touch(now: Readout, sensor: Sensor) -> Any:
    """The largest `touch` in a step of the last control period [N]."""
    return _tallied(now, sensor, 1)


@register_sensor("airtime", "tracked", 1)
def air_time(now: Readout, sensor: Sensor) -> Any:
    """Time since the shape last touched, or since the start [s]."""
    return _tallied(now, sensor, 2)


@register_sensor("force", "shape", 3)
def contact_force(now: Readout, sensor: Sensor) -> Any:
    """The force of all contacts on a shape or body, in the world's axes [N]."""
    signs = candidate_signs(now.scene, sensor.target)
    total = np.zeros(3)
    for force, sign, _ in _slot_forces(now, signs):
        total = total + sign * force
    return total


@register_sensor("jointforce", "frame", 3, "acceleration")
def joint_force(now: Readout, sensor: Sensor) -> Any:
    """Force of the parent on the frame's body and its subtree, in the frame's axes [N].

    MuJoCo's `force`. Forces of closed loops and external wrenches are not included.
    """
    return _joint_wrench(now, sensor.target)[0]


@register_sensor("jointtorque", "frame", 3, "acceleration")
def joint_torque(now: Readout, sensor: Sensor) -> Any:
    """The moment of `jointforce` about the frame's origin, in its axes [N·m]: MuJoCo's `torque`."""
    return _joint_wrench(now, sensor.target)[1]


def _joint_wrench(now: Readout, name: str) -> tuple[Any, Any]:
    """f = Σ (m a - m g) - Σ contact forces over all that the frame's body carries, and the moment about the frame."""
    tree, frame = links_of(now.model), now.model.frame(name)
    R, p = frame_in_world(now.model, now.q, name)
    if frame.joint == WORLD:
        return np.zeros(3), np.zeros(3)
    i, _ = tree.place(frame.joint, frame.placement)
    (R_i, p_i), (f, n) = world_poses(tree, now.q)[i], link_forces(tree, now.q, now.v, now.a)[i]
    force = R_i @ f
    moment = R_i @ n + np.cross(p_i - p, force)
    inside = {j for j in range(len(now.model.joints)) if i in tree.path(tree.place(j, HERE)[0])}
    signs = [
        float(shape.geometry.joint in inside) - float(other is not None and other.geometry.joint in inside)
        for shape, other, _ in now.scene.candidate_shapes
    ]
    for push, sign, point in _slot_forces(now, numpy.array(signs), points=True):
        force = force - sign * push
        moment = moment - sign * np.cross(point - p, push)
    return R.T @ force, R.T @ moment


def _slot_forces(now: Readout, signs: numpy.ndarray[Any, Any], points: bool = False) -> list[tuple[Any, Any, Any]]:
    """Of each slot, force in the world [N], sign, and point [m]; the sign is zero where a candidate has none.

    Where all that counts is a plane below, its normal is that of all; else contacts are looked for again, as they are
    for their `points`.
    """
    scene, rows = now.scene, now.scene.contact_rows
    if not scene.slots or not signs.any():
        return []
    slot_signs = np.take(signs, now.contact)
    is_level = scene.field is None and not signs[scene.ground_candidates :].any()
    forces = [now.force[rows * k : rows * k + 3] for k in range(scene.slots)]
    if is_level and not points:
        axes = contact_axes(now.ground.normal)
        return [(axes @ force, slot_signs[k], None) for k, force in enumerate(forces)]
    kinematics = compute_kinematics(scene, now.q)
    moving = link_movement(scene, kinematics, now.v, now.time_step)
    candidates, slots = find_candidates(scene, kinematics, now.ground, moving), []
    for k, force in enumerate(forces):
        here = np.where(candidates.number == now.contact[k], 1.0, 0.0)
        is_near = np.sum(here) > 0.0
        normal = now.ground.normal if is_level else np.where(is_near, here @ candidates.normal, now.ground.normal)
        slots.append((contact_axes(normal) @ force, np.where(is_near, slot_signs[k], 0.0), here @ candidates.point))
    return slots


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
