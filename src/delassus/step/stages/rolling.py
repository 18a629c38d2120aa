"""Displacements of contact points of rolling bodies over a step, beyond J v.

A free body with velocity v touches the ground at r from its origin at the beginning of a step, and at r⁺ at its end:
another point of its surface is then the lowest, and its rotation axis may differ. The row of a lasting contact
constrains the mean velocity of the touching point over the step, which is J v plus half the change of this velocity.
Without this term, rolling has an error of h ω. Rows of corners, and of bodies on joints, constrain J v.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import delassus.numpy as np
from delassus.dynamics.tree.poses import Pair, link_pose
from delassus.geometry.candidates import touches
from delassus.spatial.quaternions import quaternion_exp, quaternion_to_rotation
from delassus.step.scene import Scene
from delassus.step.scheme.components import components
from delassus.step.scheme.rigid_flight import fly
from delassus.step.stages.collide import Contacts, ground_surface
from delassus.step.stages.kinematics import Kinematics
from delassus.step.stages.types import GroundShape

_NEAR: Final = 1e-2
"""Largest displacement of the touching point in half a step: the square of its ratio to the distance from the body's
origin."""

_SAME_FACE: Final = 1.0 - 1e-12
"""Cosine of the angle below which two normals belong to the same face of a height field."""


def rolling_velocity(
    scene: Scene, kinematics: Kinematics, contacts: Contacts, q: Any, v: Any, ground: GroundShape, time_step: Any
) -> Any:
    """The mean velocity of the touching points over a step minus J v (contact rows,) [m/s, rad/s]."""
    slots, count = scene.slots, scene.contact_rows
    if not slots:
        return np.zeros(0)
    leads = _candidate_leads(scene, kinematics, q, v, ground, time_step)
    leads = (
        leads[list(scene.slot_candidates[:slots])]
        if scene.has_fixed_slots
        else (np.take(leads, contacts.candidate, axis=0))
    )
    if scene.pair_classes:  # their candidates come after those that have a lead
        leads = np.where((contacts.candidate < float(scene.fixed_candidates))[:, None], leads, 0.0)
    along = [contacts.axes[k].T @ leads[k] for k in range(slots)]
    if count > 3:  # the angular velocity does not depend on the contact point
        along = [np.concatenate([lead, np.zeros(count - 3)]) for lead in along]
    return np.concatenate(along)


def _candidate_leads(scene: Scene, kinematics: Kinematics, q: Any, v: Any, ground: GroundShape, time_step: Any) -> Any:
    """Half the change of velocity of each candidate's touching point over the step (fixed candidates, 3) [m/s]."""
    tree, poses, surface = kinematics.tree, kinematics.poses, ground_surface(scene, ground)
    later: list[Pair] = list(poses)
    twists: dict[int, tuple[Pair, Pair]] = {}
    rigid = {part.roots[0] for part in components(scene.mechanism, q) if part.rigid}
    for i, link in enumerate(tree.links):
        if link.motion.is_free:
            (R, p), own = poses[i], v[link.v : link.v + 6]
            if i in rigid:
                q_end, v_end, _ = fly(link, q[link.q : link.q + 7], own, time_step)
                later[i] = link_pose(link, list(q_end)).compose(np.eye(3), np.zeros(3))
            else:
                turn = quaternion_to_rotation(quaternion_exp(time_step * own[3:]))
                later[i], v_end = (R @ turn, p + time_step * (R @ own[:3])), own
            R_end = later[i][0] if i in rigid else R
            twists[i] = (R @ own[:3], R @ own[3:]), (R_end @ v_end[:3], R_end @ v_end[3:])
    leads = []
    for shape in scene.shapes:
        i = tree.place(shape.geometry.joint, shape.geometry.placement)[0]
        if i not in twists or not any(shape.rolls):
            leads += [np.zeros(3)] * shape.count
            continue
        now, then = (touches(shape, tree, at, surface) for at in (poses, later))
        for k in range(shape.count):
            ends = [
                (touch[k].point - at[i][1], *twist, touch[k].normal)
                for touch, at, twist in zip((now, then), (poses, later), twists[i], strict=True)
            ]
            lead = touching_lead(ends[0], ends[1], scene.field is not None)
            leads.append(lead if shape.rolls[k] else np.zeros(3))
    leads += [np.zeros(3)] * (scene.fixed_candidates - scene.ground_candidates)
    return np.stack(leads) if leads else np.zeros((1, 3))


End: TypeAlias = tuple[Any, Any, Any, Any]
"""A touching point at an end of a step: its position relative to the body's origin, its velocity and the angular
velocity of the body in the world, and the ground normal there (3,)."""


def touching_lead(now: End, then: End, on_field: bool) -> Any:
    """Half the change of velocity (3,) of a touching point over a step [m/s]."""
    (arm, v_now, w_now, normal), (arm_then, v_then, w_then, normal_then) = now, then
    shift = 0.5 * (arm_then - arm)
    small = shift @ shift < _NEAR * (arm @ arm)  # else the point moves fast around a rim that is nearly flat
    if on_field:  # between faces the point jumps, which is no motion of the body
        small = small & (normal_then @ normal > _SAME_FACE)
    lead = 0.5 * (v_then - v_now + np.cross(w_then, arm_then) - np.cross(w_now, arm))
    return np.where(small, lead, 0.0)
