"""Sensors of motion: frames, joints, actuators, subtrees."""

from __future__ import annotations

from typing import Any

import delassus.numpy as np
from delassus.dynamics.forces.passive import passive_forces, spring_energy
from delassus.dynamics.forces.tendons import rate_of, tendon_line, tendon_named
from delassus.dynamics.kinematics.kinematics import frame_acceleration, frame_in_world, frame_velocity, world_poses
from delassus.dynamics.mass.energy import kinetic_energy, potential_energy
from delassus.dynamics.tree.poses import poses_of
from delassus.dynamics.tree.recursion import joint_motions, link_velocities, momentum
from delassus.model.links import links_of
from delassus.simulation.sensors.readout import Readout, Sensor, register_sensor
from delassus.spatial.quaternions import quaternion_from_rotation
from delassus.step.actuators.drive import drive
from delassus.step.actuators.force_law import clip_force
from delassus.step.actuators.transmissions import transmission

_WORLD_AXES = "LOCAL_WORLD_ALIGNED"
_MAGNETIC_FLUX = (0.0, -0.5, 0.0)


def _pose(current: Readout, sensor: Sensor) -> tuple[Any, Any]:
    """Rotation and origin of the frame in the world, or in its reference."""
    R, p = frame_in_world(current.model, current.q, sensor.target)
    if not sensor.reference:
        return R, p
    R0, p0 = frame_in_world(current.model, current.q, sensor.reference)
    return R0.T @ R, R0.T @ (p - p0)


@register_sensor("framepos", "frame", 3)
def frame_position(readout: Readout, sensor: Sensor) -> Any:
    """The origin in the world, or in the reference [m]."""
    return _pose(readout, sensor)[1]


@register_sensor("framequat", "frame", 4)
def frame_orientation(readout: Readout, sensor: Sensor) -> Any:
    """The unit quaternion (x, y, z, w) of the axes in the world, or in the reference, w not negative."""
    return quaternion_from_rotation(_pose(readout, sensor)[0])


@register_sensor("framexaxis", "frame", 3)
def frame_x_axis(readout: Readout, sensor: Sensor) -> Any:
    """The x axis in the world, or in the reference."""
    return _pose(readout, sensor)[0][:, 0]


@register_sensor("frameyaxis", "frame", 3)
def frame_y_axis(readout: Readout, sensor: Sensor) -> Any:
    """The y axis in the world, or in the reference."""
    return _pose(readout, sensor)[0][:, 1]


@register_sensor("framezaxis", "frame", 3)
def frame_z_axis(readout: Readout, sensor: Sensor) -> Any:
    """The z axis in the world, or in the reference."""
    return _pose(readout, sensor)[0][:, 2]


@register_sensor("magnetometer", "frame", 3)
def magnetometer(readout: Readout, sensor: Sensor) -> Any:
    """The magnetic flux of the world in the frame's axes; MuJoCo's default unless the sensor has `numbers`."""
    flux = sensor.numbers or _MAGNETIC_FLUX
    return frame_in_world(readout.model, readout.q, sensor.target)[0].T @ np.array(flux)


def _velocity(current: Readout, sensor: Sensor, reference: str) -> Any:
    return frame_velocity.function(current.model, current.q, current.v, frame=sensor.target, reference=reference)


def _relative_velocity(current: Readout, sensor: Sensor) -> tuple[Any, Any]:
    """v and ω of a frame; with a reference v - v₀ - ω₀ × (p - p₀) and ω - ω₀ in its axes."""
    motion = _velocity(current, sensor, _WORLD_AXES)
    if not sensor.reference:
        return motion[:3], motion[3:]
    base = frame_velocity.function(current.model, current.q, current.v, frame=sensor.reference, reference=_WORLD_AXES)
    p = frame_in_world(current.model, current.q, sensor.target)[1]
    R0, p0 = frame_in_world(current.model, current.q, sensor.reference)
    return R0.T @ (motion[:3] - base[:3] - np.cross(base[3:], p - p0)), R0.T @ (motion[3:] - base[3:])


@register_sensor("framelinvel", "frame", 3)
def frame_linear_velocity(readout: Readout, sensor: Sensor) -> Any:
    """Velocity of the origin in world axes, or relative to the reference and in its axes [m/s]."""
    return _relative_velocity(readout, sensor)[0]


@register_sensor("frameangvel", "frame", 3)
def frame_angular_velocity(readout: Readout, sensor: Sensor) -> Any:
    """Angular velocity in world axes, or relative to the reference and in its axes [rad/s]."""
    return _relative_velocity(readout, sensor)[1]


@register_sensor("velocimeter", "frame", 3)
def velocimeter(readout: Readout, sensor: Sensor) -> Any:
    """Velocity of the origin in the frame's axes [m/s]."""
    return _velocity(readout, sensor, "LOCAL")[:3]


@register_sensor("gyro", "frame", 3)
def gyro(readout: Readout, sensor: Sensor) -> Any:
    """Angular velocity in the frame's axes [rad/s]."""
    return _velocity(readout, sensor, "LOCAL")[3:]


def _acceleration(current: Readout, sensor: Sensor, reference: str) -> Any:
    return frame_acceleration.function(
        current.model, current.q, current.v, current.a, frame=sensor.target, reference=reference, classical=True
    )


@register_sensor("framelinacc", "frame", 3, "acceleration")
def frame_linear_acceleration(readout: Readout, sensor: Sensor) -> Any:
    """Acceleration of the origin as a point of the body, minus gravity, in world axes [m/s²], as in MuJoCo."""
    return _acceleration(readout, sensor, _WORLD_AXES)[:3] - np.array(readout.model.gravity)


@register_sensor("frameangacc", "frame", 3, "acceleration")
def frame_angular_acceleration(readout: Readout, sensor: Sensor) -> Any:
    """Angular acceleration in world axes [rad/s²]."""
    return _acceleration(readout, sensor, _WORLD_AXES)[3:]


@register_sensor("accelerometer", "frame", 3, "acceleration")
def accelerometer(readout: Readout, sensor: Sensor) -> Any:
    """Acceleration of the origin minus gravity, in the frame's axes [m/s²]: 9.81 upwards at rest."""
    R, _ = frame_in_world(readout.model, readout.q, sensor.target)
    return R.T @ frame_linear_acceleration(readout, sensor)


@register_sensor("jointpos", "joint", 1)
def joint_position(readout: Readout, sensor: Sensor) -> Any:
    """The coordinate of a joint [rad, m]."""
    return readout.q[readout.model.q_slice(sensor.target)]


@register_sensor("jointvel", "joint", 1)
def joint_velocity(readout: Readout, sensor: Sensor) -> Any:
    """The velocity of a joint [rad/s, m/s]."""
    return readout.v[readout.model.v_slice(sensor.target)]


def _actuator(current: Readout, sensor: Sensor) -> tuple[Any, int, Any, Any]:
    """An actuator, its index, and the length of its transmission with its rate."""
    k = next(k for k, one in enumerate(current.scene.actuators) if one.name == sensor.target)
    line = transmission(current.model, current.scene.actuators[k], current.q, current.v)
    return current.scene.actuators[k], k, np.array(line.length), np.array(line.rate)


@register_sensor("actuatorpos", "actuator", 1)
def actuator_length(readout: Readout, sensor: Sensor) -> Any:
    """The length of the transmission of an actuator, including its gear [rad, m]."""
    return np.stack([_actuator(readout, sensor)[2]])


@register_sensor("actuatorvel", "actuator", 1)
def actuator_rate(readout: Readout, sensor: Sensor) -> Any:
    """The rate of `actuator_length` [rad/s, m/s]."""
    return np.stack([_actuator(readout, sensor)[3]])


@register_sensor("actuatorfrc", "actuator", 1, "control")
def actuator_force(readout: Readout, sensor: Sensor) -> Any:
    """The force of an actuator for the given control, within its limits [N·m, N]."""
    actuator, k, length, rate = _actuator(readout, sensor)
    control = readout.control[k]
    if actuator.control_range:
        control = np.clip(control, *actuator.control_range)
    return np.stack([clip_force(actuator, control, length, rate)])


@register_sensor("jointactfrc", "joint", 1, "control")
def joint_actuation(readout: Readout, sensor: Sensor) -> Any:
    """The force of all actuators on a joint, within their limits and its own [N·m, N]."""
    control = np.stack(
        [
            np.clip(readout.control[k], *one.control_range) if one.control_range else readout.control[k]
            for k, one in enumerate(readout.scene.actuators)
        ]
    )
    forces = drive(readout.model, readout.scene.actuators, readout.q, readout.v, control, 0.0).force
    return (forces - passive_forces.function(readout.model, readout.q, readout.v))[readout.model.v_slice(sensor.target)]


def _tendon(current: Readout, sensor: Sensor) -> tuple[Any, Any]:
    """The length of a tendon, and its rate."""
    tendon = tendon_named(current.model, sensor.target)
    assert tendon is not None
    line = tendon_line(current.model, tendon, current.q)
    return np.array(line.length), np.array(rate_of(line.moment_arms, line.dofs, current.v))


@register_sensor("tendonpos", "tendon", 1)
def tendon_length(readout: Readout, sensor: Sensor) -> Any:
    """The length of a tendon [m]; for a tendon over joints, in their units."""
    return np.stack([_tendon(readout, sensor)[0]])


@register_sensor("tendonvel", "tendon", 1)
def tendon_rate(readout: Readout, sensor: Sensor) -> Any:
    """The rate of the length of a tendon [m/s]."""
    return np.stack([_tendon(readout, sensor)[1]])


@register_sensor("e_potential", "", 1)
def potential(readout: Readout, sensor: Sensor) -> Any:
    """The potential energy of gravity and springs [J]."""
    return np.stack(
        [potential_energy.function(readout.model, readout.q) + spring_energy.function(readout.model, readout.q)]
    )


@register_sensor("e_kinetic", "", 1)
def kinetic(readout: Readout, sensor: Sensor) -> Any:
    """The kinetic energy [J] of the robot."""
    return np.stack([np.array(kinetic_energy.function(readout.model, readout.q, readout.v))])


@register_sensor("clock", "", 1)
def clock(readout: Readout, sensor: Sensor) -> Any:
    """The time of the environment [s]."""
    return np.stack([np.array(readout.time)])


def _subtree(current: Readout, sensor: Sensor) -> tuple[Any, Any, Any, Any]:
    """Mass, first moment, linear momentum and angular momentum about the world's origin of a body and its subtree."""
    tree = links_of(current.model)
    root, poses, world = tree.bodies[current.model.body_index(sensor.target)][0], poses_of(tree, current.q), None
    world = world_poses(tree, current.q)
    velocity, _ = link_velocities(tree, poses, joint_motions(tree, current.v))
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
def subtree_center(readout: Readout, sensor: Sensor) -> Any:
    """The center of mass of a body and its subtree, in the world [m]."""
    mass, first, _, _ = _subtree(readout, sensor)
    return first / mass


@register_sensor("subtreelinvel", "body", 3)
def subtree_velocity(readout: Readout, sensor: Sensor) -> Any:
    """The velocity of the center of mass of a subtree, in the world [m/s]: momentum divided by mass."""
    mass, _, linear, _ = _subtree(readout, sensor)
    return linear / mass


@register_sensor("subtreeangmom", "body", 3)
def subtree_angular_momentum(readout: Readout, sensor: Sensor) -> Any:
    """The angular momentum of a subtree about its center of mass, in the world's axes [kg·m²/s]."""
    mass, first, linear, angular = _subtree(readout, sensor)
    return angular - np.cross(first / mass, linear)
