"""Sensors of motion: frames, joints, actuators, subtrees."""

from __future__ import annotations

from typing import Any

import delassus.numpy as np
from delassus.dynamics.kinematics.kinematics import frame_acceleration, frame_in_world, frame_velocity, world_poses
from delassus.dynamics.tree.poses import poses_of
from delassus.dynamics.tree.recursion import joint_motions, link_velocities, momentum
from delassus.model.links import links_of
from delassus.simulation.sensors.readout import Readout, Sensor, register_sensor
from delassus.spatial.quaternions import quaternion_from_rotation
from delassus.step.actuators.force_law import clipped_force
from delassus.step.actuators.transmissions import transmission

_WORLD_AXES = "LOCAL_WORLD_ALIGNED"


@register_sensor("framepos", "frame", 3)
def frame_position(now: Readout, sensor: Sensor) -> Any:
    """The origin in the world [m]."""
    return frame_in_world(now.model, now.q, sensor.target)[1]


@register_sensor("framequat", "frame", 4)
def frame_orientation(now: Readout, sensor: Sensor) -> Any:
    """The unit quaternion (x, y, z, w) of the axes in the world, w not negative."""
    return quaternion_from_rotation(frame_in_world(now.model, now.q, sensor.target)[0])


def _velocity(now: Readout, sensor: Sensor, reference: str) -> Any:
    return frame_velocity.function(now.model, now.q, now.v, frame=sensor.target, reference=reference)


@register_sensor("framelinvel", "frame", 3)
def frame_linear_velocity(now: Readout, sensor: Sensor) -> Any:
    """Of the origin, in the world's axes [m/s]."""
    return _velocity(now, sensor, _WORLD_AXES)[:3]


@register_sensor("frameangvel", "frame", 3)
def frame_angular_velocity(now: Readout, sensor: Sensor) -> Any:
    """In the world's axes [rad/s]."""
    return _velocity(now, sensor, _WORLD_AXES)[3:]


@register_sensor("velocimeter", "frame", 3)
def velocimeter(now: Readout, sensor: Sensor) -> Any:
    """Of the origin, in the frame's axes [m/s]."""
    return _velocity(now, sensor, "LOCAL")[:3]


@register_sensor("gyro", "frame", 3)
def gyro(now: Readout, sensor: Sensor) -> Any:
    """Angular velocity in the frame's axes [rad/s]."""
    return _velocity(now, sensor, "LOCAL")[3:]


def _acceleration(now: Readout, sensor: Sensor, reference: str) -> Any:
    return frame_acceleration.function(
        now.model, now.q, now.v, now.a, frame=sensor.target, reference=reference, classical=True
    )


@register_sensor("framelinacc", "frame", 3, "acceleration")
def frame_linear_acceleration(now: Readout, sensor: Sensor) -> Any:
    """Of the origin as a point of the body, less gravity, in the world's axes [m/s²]: what MuJoCo gives."""
    return _acceleration(now, sensor, _WORLD_AXES)[:3] - np.array(now.model.gravity)


@register_sensor("frameangacc", "frame", 3, "acceleration")
def frame_angular_acceleration(now: Readout, sensor: Sensor) -> Any:
    """In the world's axes [rad/s²]."""
    return _acceleration(now, sensor, _WORLD_AXES)[3:]


@register_sensor("accelerometer", "frame", 3, "acceleration")
def accelerometer(now: Readout, sensor: Sensor) -> Any:
    """The acceleration of the origin less gravity, in the frame's axes [m/s²]: 9.81 upwards at rest."""
    R, _ = frame_in_world(now.model, now.q, sensor.target)
    return R.T @ frame_linear_acceleration(now, sensor)


@register_sensor("jointpos", "joint", 1)
def joint_position(now: Readout, sensor: Sensor) -> Any:
    """[rad, m]."""
    return now.q[now.model.q_slice(sensor.target)]


@register_sensor("jointvel", "joint", 1)
def joint_velocity(now: Readout, sensor: Sensor) -> Any:
    """[rad/s, m/s]."""
    return now.v[now.model.v_slice(sensor.target)]


def _actuator(now: Readout, sensor: Sensor) -> tuple[Any, int, Any, Any]:
    """An actuator, its number, the length of what it drives, and its rate."""
    k = next(k for k, one in enumerate(now.scene.actuators) if one.name == sensor.target)
    line = transmission(now.model, now.scene.actuators[k], now.q, now.v)
    return now.scene.actuators[k], k, np.array(line.length), np.array(line.rate)


@register_sensor("actuatorpos", "actuator", 1)
def actuator_length(now: Readout, sensor: Sensor) -> Any:
    """The length of what it drives, times its gear [rad, m]."""
    return np.stack([_actuator(now, sensor)[2]])


@register_sensor("actuatorvel", "actuator", 1)
def actuator_rate(now: Readout, sensor: Sensor) -> Any:
    """[rad/s, m/s]."""
    return np.stack([_actuator(now, sensor)[3]])


@register_sensor("actuatorfrc", "actuator", 1, "control")
def actuator_force(now: Readout, sensor: Sensor) -> Any:
    """Within its limits, of the control that is given [N·m, N]."""
    actuator, k, length, rate = _actuator(now, sensor)
    control = now.control[k]
    if actuator.control_range:
        control = np.clip(control, *actuator.control_range)
    return np.stack([clipped_force(actuator, control, length, rate)])


def _subtree(now: Readout, sensor: Sensor) -> tuple[Any, Any, Any, Any]:
    """Mass, first moment, linear momentum and angular momentum about the world's origin of all that a body carries."""
    tree = links_of(now.model)
    root, poses, world = tree.bodies[now.model.body_index(sensor.target)][0], poses_of(tree, now.q), None
    world = world_poses(tree, now.q)
    velocity, _ = link_velocities(tree, poses, joint_motions(tree, now.v))
    mass, zero = np.array(0.0), np.zeros(3)
    first, linear, angular = zero, zero, zero
    for i, link in enumerate(tree.links):
        if root not in tree.path(i):
            continue
        (R, p), (h_lin, h_ang) = world[i], momentum(link, *velocity[i])
        mass = mass + link.inertia.mass
        first = first + link.inertia.mass * p + R @ np.array(link.inertia.first_moment)
        linear, angular = linear + R @ h_lin, angular + R @ h_ang + np.cross(p, R @ h_lin)
    return mass, first, linear, angular


@register_sensor("subtreecom", "body", 3)
def subtree_center(now: Readout, sensor: Sensor) -> Any:
    """The centre of mass of a body and all that it carries, in the world [m]."""
    mass, first, _, _ = _subtree(now, sensor)
    return first / mass


@register_sensor("subtreelinvel", "body", 3)
def subtree_velocity(now: Readout, sensor: Sensor) -> Any:
    """Of that centre, in the world [m/s]; times the mass it is the momentum."""
    mass, _, linear, _ = _subtree(now, sensor)
    return linear / mass


@register_sensor("subtreeangmom", "body", 3)
def subtree_angular_momentum(now: Readout, sensor: Sensor) -> Any:
    """About that centre, in the world's axes [kg·m²/s]."""
    mass, first, linear, angular = _subtree(now, sensor)
    return angular - np.cross(first / mass, linear)
