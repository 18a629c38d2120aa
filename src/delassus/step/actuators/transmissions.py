"""Transmissions of actuators: a length l(q) and its moment arms r, l̇ = r·v. A force f acts as r f.

    joint           l = gear · q; for a spherical joint gear · φ, φ its rotation vector; for a free joint no length
    tendon          gear times the length of the tendon
    site            a wrench in the site's axes, without a length
    site, reference gear times position and rotation vector of the site relative to the reference, in its axes
    body            adhesion, which has no force here: neither length nor moment arms
    slider-crank    l = a·d - √((a·d)² + rod² - d·d), d from the slider to the crank pin, a the slider's axis

as defined by MuJoCo. O(n) for each.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy

import delassus.numpy as np
from delassus.dynamics.forces.spatial_tendons import moving_dofs, world_jacobian
from delassus.dynamics.forces.tendons import rate_of, tendon_line, tendon_named
from delassus.dynamics.kinematics.jacobians import frame_jacobian
from delassus.dynamics.kinematics.kinematics import frame_in_world
from delassus.model.joints import Free
from delassus.model.model import Model
from delassus.model.transmission import Actuator
from delassus.spatial.quaternions import quaternion_log, quaternion_to_rotation
from delassus.spatial.rotations import rotation_log


class Transmission(NamedTuple):
    """The transmission of an actuator, in a state.

    Attributes:
        length: l [m, rad].
        rate: l̇.
        moment_arms: r (nv,).
        dofs: The indices of nonzero elements of r.
        is_constant: Whether r is the same in every state.
    """

    length: Any
    rate: Any
    moment_arms: Any
    dofs: list[int]
    is_constant: bool


def transmission(model: Model, actuator: Actuator, q: Any, v: Any) -> Transmission:
    """The transmission of an actuator at q, with its rate at v."""
    gear = actuator.force_gear[0]
    constant = False
    if actuator.drives == "body":
        return Transmission(np.array(0.0), np.array(0.0), numpy.zeros(model.nv), [], True)
    if actuator.drives == "tendon":
        tendon = tendon_named(model, actuator.target)
        assert tendon is not None
        length, arms, dofs = tendon_line(model, tendon, q)
        length, arms, constant = gear * length, gear * arms, bool(tendon.terms)
    elif actuator.drives == "site":
        length, arms = _at_site(model, actuator, q)
        dofs = sorted(moving_dofs(model, actuator.target))
        if actuator.reference:
            dofs = sorted(moving_dofs(model, actuator.target) ^ moving_dofs(model, actuator.reference))
    elif actuator.drives == "slider-crank":
        length, arms = _slider_crank(model, actuator, q)
        dofs = sorted(moving_dofs(model, actuator.target) ^ moving_dofs(model, actuator.reference))
    else:
        length, arms, constant = _at_joint(model, actuator, q)
        velocities = model.v_slice(actuator.target)
        dofs = list(range(velocities.start, velocities.stop))
    return Transmission(length, rate_of(arms, dofs, v), arms, dofs, constant)


def _at_joint(model: Model, actuator: Actuator, q: Any) -> tuple[Any, Any, bool]:
    """Length, moment arms, and whether these are constant."""
    joint, k = model.joint(actuator.target), model.joint_index(actuator.target)
    coordinates = q[model.q_starts[k] : model.q_starts[k] + joint.kind.nq]
    start = model.v_starts[k]
    if joint.kind.nv == 1:
        arms = numpy.zeros(model.nv)
        arms[start] = actuator.force_gear[0]
        return actuator.force_gear[0] * coordinates[0], arms, True
    in_parent, arms = actuator.drives == "joint-in-parent", np.zeros(model.nv)
    R = quaternion_to_rotation(coordinates[-4:])
    first, second = numpy.array(actuator.force_gear), numpy.array(actuator.torque_gear)
    if isinstance(joint.kind, Free):  # linear velocities are in the body's axes here, in the world's in MuJoCo
        gear = np.concatenate([R.T @ first, R.T @ second if in_parent else np.array(second)])
        length = np.array(0.0)
    else:
        gear = R.T @ first if in_parent else np.array(first)
        length = gear @ quaternion_log(coordinates[-4:])
    for i in range(joint.kind.nv):
        arms[start + i] = gear[i]
    return length, arms, False


def _at_site(model: Model, actuator: Actuator, q: Any) -> tuple[Any, Any]:
    """Length and moment arms: the gear is a wrench in the axes of the site, or of its reference."""
    wrench = numpy.array((*actuator.force_gear, *actuator.torque_gear))
    if not actuator.reference:
        return np.array(0.0), wrench @ frame_jacobian.function(model, q, frame=actuator.target)
    (R, p), (R0, p0) = (frame_in_world(model, q, name) for name in (actuator.target, actuator.reference))
    J = world_jacobian(model, q, actuator.target) - world_jacobian(model, q, actuator.reference)
    common = moving_dofs(model, actuator.target) & moving_dofs(model, actuator.reference)
    length, arms = np.array(0.0), np.zeros(model.nv)
    if any(actuator.force_gear):
        length = length + wrench[:3] @ (R0.T @ (p - p0))
        arms = arms + (R0 @ wrench[:3]) @ J[:3]
    if any(actuator.torque_gear):
        length = length + wrench[3:] @ rotation_log(R0.T @ R)
        arms = arms + (R0 @ wrench[3:]) @ J[3:]
    arms = np.array(arms)
    for k in common:  # no relative motion of both sites
        arms[k] = 0.0
    return length, arms


def _slider_crank(model: Model, actuator: Actuator, q: Any) -> tuple[Any, Any]:
    """Length and moment arms; if the rod is too short, the length is the position of the crank pin along the axis."""
    (_, pin), (R, slider) = (frame_in_world(model, q, name) for name in (actuator.target, actuator.reference))
    axis, d = R[:, 2], pin - slider
    along = axis @ d
    square = along * along + actuator.rod * actuator.rod - d @ d
    reaches = square > 0.0
    root = np.sqrt(np.where(reaches, square, 1.0))
    factor = np.where(reaches, 1.0 - along / root, 1.0)
    by_d = factor * axis + np.where(reaches, 1.0 / root, 0.0) * d
    by_axis = factor * d
    J, J0 = (world_jacobian(model, q, name) for name in (actuator.target, actuator.reference))
    arms = by_d @ (J[:3] - J0[:3]) + np.cross(axis, by_axis) @ J0[3:]
    gear = actuator.force_gear[0]
    return gear * (along - np.where(reaches, root, 0.0)), gear * arms
