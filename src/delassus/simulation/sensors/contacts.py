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
def touch(readout: Readout, sensor: Sensor) -> Any:
    """The sum of the normal forces on a shape or body [N]."""
    scene, rows = readout.scene, readout.scene.contact_rows
    signs = np.take(candidate_signs(scene, sensor.target), readout.contact)
    normal = np.stack([readout.force[rows * k + 2] for k in range(scene.slots)])
    return np.stack([np.sum(np.abs(signs) * normal)])


def _tallied(current: Readout, sensor: Sensor, index: int) -> Any:
    """One of the values that the step accumulates for a tracked shape."""
    return current.tally[TALLIES * current.scene.tracked.index(sensor.target) + index][None]


@register_sensor("touchmean", "tracked", 1)
def mean_touch(readout: Readout, sensor: Sensor) -> Any:
    """The mean of `touch` over the steps of the last control period [N]."""
    return _tallied(readout, sensor, 0)


@register_sensor("touchpeak", "tracked", 1)
def peak_touch(readout: Readout, sensor: Sensor) -> Any:
    """The largest `touch` in a step of the last control period [N]."""
    return _tallied(readout, sensor, 1)


@register_sensor("airtime", "tracked", 1)
def air_time(readout: Readout, sensor: Sensor) -> Any:
    """Time [s] since the last contact of the shape, or since the start."""
    return _tallied(readout, sensor, 2)


@register_sensor("force", "shape", 3)
def contact_force(readout: Readout, sensor: Sensor) -> Any:
    """The force of all contacts on a shape or body, in the world's axes [N]."""
    signs = candidate_signs(readout.scene, sensor.target)
    total = np.zeros(3)
    for force, sign, _ in _slot_forces(readout, signs):
        total = total + sign * force
    return total


@register_sensor("jointforce", "frame", 3, "acceleration")
def joint_force(readout: Readout, sensor: Sensor) -> Any:
    """Force of the parent on the frame's body and its subtree, in the frame's axes [N].

    MuJoCo's `force`. Forces of closed loops and external wrenches are not included.
    """
    return _joint_wrench(readout, sensor.target)[0]


@register_sensor("jointtorque", "frame", 3, "acceleration")
def joint_torque(readout: Readout, sensor: Sensor) -> Any:
    """The moment of `jointforce` about the frame's origin, in its axes [N·m]: MuJoCo's `torque`."""
    return _joint_wrench(readout, sensor.target)[1]


def _joint_wrench(current: Readout, name: str) -> tuple[Any, Any]:
    """f = Σ (m a - m g) - Σ contact forces over the subtree of the frame's body, and the moment about the frame."""
    tree, frame = links_of(current.model), current.model.frame(name)
    R, p = frame_in_world(current.model, current.q, name)
    if frame.joint == WORLD:
        return np.zeros(3), np.zeros(3)
    i, _ = tree.place(frame.joint, frame.placement)
    (R_i, p_i), (f, n) = world_poses(tree, current.q)[i], link_forces(tree, current.q, current.v, current.a)[i]
    force = R_i @ f
    moment = R_i @ n + np.cross(p_i - p, force)
    inside = {j for j in range(len(current.model.joints)) if i in tree.path(tree.place(j, HERE)[0])}
    signs = [
        float(shape.geometry.joint in inside) - float(other is not None and other.geometry.joint in inside)
        for shape, other, _ in current.scene.candidate_shapes
    ]
    for push, sign, point in _slot_forces(current, numpy.array(signs), points=True):
        force = force - sign * push
        moment = moment - sign * np.cross(point - p, push)
    return R.T @ force, R.T @ moment


def _slot_forces(current: Readout, signs: numpy.ndarray[Any, Any], points: bool = False) -> list[tuple[Any, Any, Any]]:
    """For each slot the force in the world [N], the sign, and the point [m]; the sign is zero for other candidates.

    If all contacts are with a plane, its normal is used. Else, or if `points` is true, contacts are computed again.
    """
    scene, rows = current.scene, current.scene.contact_rows
    if not scene.slots or not signs.any():
        return []
    slot_signs = np.take(signs, current.contact)
    is_level = scene.field is None and not signs[scene.ground_candidates :].any()
    forces = [current.force[rows * k : rows * k + 3] for k in range(scene.slots)]
    if is_level and not points:
        axes = contact_axes(current.ground.normal)
        return [(axes @ force, slot_signs[k], None) for k, force in enumerate(forces)]
    kinematics = compute_kinematics(scene, current.q)
    moving = link_movement(scene, kinematics, current.v, current.time_step)
    candidates, slots = find_candidates(scene, kinematics, current.ground, moving), []
    for k, force in enumerate(forces):
        here = np.where(candidates.number == current.contact[k], 1.0, 0.0)
        is_near = np.sum(here) > 0.0
        normal = (
            current.ground.normal if is_level else np.where(is_near, here @ candidates.normal, current.ground.normal)
        )
        slots.append((contact_axes(normal) @ force, np.where(is_near, slot_signs[k], 0.0), here @ candidates.point))
    return slots


@register_sensor("heightscan", "frame", None)
def height_scan(readout: Readout, sensor: Sensor) -> Any:
    """The vertical distances [m] of the frame's origin from the ground at points around it."""
    R, p = frame_in_world(readout.model, readout.q, sensor.target)
    heading = np.arctan2(R[1, 0], R[0, 0])
    c, s = np.cos(heading), np.sin(heading)
    surface, heights = ground_surface(readout.scene, readout.ground), []
    for x, y in sensor.points:
        gap, normal = surface(np.stack([p[0] + c * x - s * y, p[1] + s * x + c * y, p[2]]))[:2]
        heights.append(gap / normal[2])
    return np.stack(heights)
