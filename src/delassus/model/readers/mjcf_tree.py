"""Joints, bodies and frames of a compiled MuJoCo model.

MuJoCo moves a body by its joints in a row, each about an anchor or along an axis that is given in the body's frame,
by q - qpos0. Here every joint but the last of a row carries a body without mass. A joint's frame is at its anchor,
with the body's axes, and turned or shifted back by qpos0, so that q is the same number in both. A free body is placed
by its coordinates alone.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delassus.model.editing import joint_placement
from delassus.model.joints import Free, JointKind, Prismatic, Revolute, Spherical
from delassus.model.parts import WORLD, Frame, Joint
from delassus.model.placement import HERE, ZERO, Inertia, Placement, vector
from delassus.model.readers.mjcf_names import MjcfNames
from delassus.spatial.quaternions import quaternion_to_rotation

FREE, BALL, SLIDE, HINGE = range(4)  # mjtJoint


@dataclass(frozen=True)
class MjcfTree:
    """The tree of a file; `bodies[b]` is the joint that carries MuJoCo's body b, and the body's frame on it."""

    joints: tuple[Joint, ...]
    base_inertia: Inertia
    bodies: tuple[tuple[int, Placement], ...]

    def placed(self, body: int, pos: ArrayLike = ZERO, quat: ArrayLike = (1.0, 0.0, 0.0, 0.0)) -> tuple[int, Placement]:
        """A frame that MuJoCo gives on a body: the joint that carries it, and its placement there."""
        joint, at = self.bodies[body]
        return joint, at * placement(pos, quat)


def placement(pos: ArrayLike, quat: ArrayLike) -> Placement:
    """A placement from MuJoCo's position [m] and quaternion (w, x, y, z)."""
    return Placement.of(quaternion_to_rotation(our_quaternion(quat)) + 0.0, np.asarray(pos, float) + 0.0)


def our_quaternion(quat: ArrayLike) -> NDArray[np.float64]:
    """A quaternion (w, x, y, z) as (x, y, z, w)."""
    return np.roll(np.asarray(quat, float), -1)


def read_tree(m: Any, names: MjcfNames, left_out: Collection[str] = ()) -> MjcfTree:
    """The tree of an `MjModel`, without some fields of its joints."""
    bodies: list[tuple[int, Placement]] = [(WORLD, HERE)]
    joints: list[dict[str, Any]] = []
    base, compensated = Inertia(), dict[int, Inertia]()
    for b in range(1, m.nbody):
        parent, at = bodies[m.body_parentid[b]]
        at = at * placement(m.body_pos[b], m.body_quat[b])
        anchor = np.zeros(3)  # of the joint before: a slide has none and keeps it, so nothing is shifted
        for j in range(m.body_jntadr[b], m.body_jntadr[b] + m.body_jntnum[b]):
            kind = joint_kind(m, j)
            anchor = m.jnt_pos[j] + 0.0 if isinstance(kind, Revolute | Spherical) else anchor
            start = HERE if isinstance(kind, Free) else at * Placement.of(p=anchor) * _back(m, j, kind)
            fields = {"name": names.joints[j], "kind": kind, "parent": parent, "placement": start, "inertia": Inertia()}
            found = _coefficients(m, j, kind)
            joints.append(fields | {key: values for key, values in found.items() if key not in left_out})
            parent, at = len(joints) - 1, Placement.of(p=0.0 - anchor)
        bodies.append((parent, at))
        body_inertia = Inertia.of(m.body_mass[b], ZERO, np.diag(m.body_inertia[b]))
        body_inertia = body_inertia.transform(at * placement(m.body_ipos[b], m.body_iquat[b]))
        if parent != WORLD and m.body_gravcomp[b] * body_inertia.mass:
            share = Inertia.of(m.body_gravcomp[b] * body_inertia.mass, body_inertia.com)
            compensated[parent] = compensated.get(parent, Inertia()) + share
        if parent == WORLD:
            base = base + body_inertia
        else:
            joints[parent]["inertia"] = joints[parent]["inertia"] + body_inertia
    for k, share in compensated.items():
        joints[k]["gravity_compensation"] = (share.mass, *share.com)
    return MjcfTree(tuple(Joint(**fields) for fields in joints), base, tuple(bodies))


def frames(m: Any, tree: MjcfTree, names: MjcfNames) -> list[Frame]:
    """The frames of all bodies, joints and sites, in this order."""
    links = [Frame(names.bodies[b], *tree.placed(b), "link") for b in range(m.nbody)]
    joints = [Frame(names.joint_frames[j], j, HERE, "joint") for j in range(m.njnt)]
    sites = [
        Frame(names.sites[s], *tree.placed(m.site_bodyid[s], m.site_pos[s], m.site_quat[s])) for s in range(m.nsite)
    ]
    return [*links, *joints, *sites]


def joint_kind(m: Any, j: int) -> JointKind:
    """The kind of MuJoCo's joint j."""
    kind, axis = m.jnt_type[j], vector(m.jnt_axis[j] + 0.0)
    if kind == HINGE:
        return Revolute(axis, continuous=not m.jnt_limited[j])
    if kind == SLIDE:
        return Prismatic(axis)
    return Free() if kind == FREE else Spherical()


def _back(m: Any, j: int, kind: JointKind) -> Placement:
    """The motion by -qpos0, which MuJoCo subtracts from the coordinate of a hinge or slide."""
    if not isinstance(kind, Revolute | Prismatic):
        return HERE
    reference = float(m.qpos0[m.jnt_qposadr[j]])
    return joint_placement(Joint("", kind), [-reference]) if reference != 0.0 else HERE


def _coefficients(m: Any, j: int, kind: JointKind) -> dict[str, Any]:
    """Limits, armature, damping, friction and spring of a joint; what is zero is left out."""
    q, v = m.jnt_qposadr[j], slice(m.jnt_dofadr[j], m.jnt_dofadr[j] + kind.nv)
    fields: dict[str, Any] = {}
    if isinstance(kind, Spherical) and m.jnt_limited[j]:
        fields["angle_limit"] = float(m.jnt_range[j].max() - m.jnt_margin[j])
    if isinstance(kind, Revolute | Prismatic):
        lower, upper = m.jnt_range[j].tolist() if m.jnt_limited[j] else (-np.inf, np.inf)
        margin = float(m.jnt_margin[j])  # MuJoCo's limit pushes to this distance from the end of the range
        fields |= {"lower": (lower + margin,), "upper": (upper - margin,)}
        if m.jnt_actfrclimited[j]:
            fields["actuator_force_range"] = tuple(m.jnt_actfrcrange[j].tolist())
        most = _effort(m, j)
        if np.isfinite(most):
            fields["effort_limit"] = (most,)
    armature, damping = (
        values[v] + _reflected(m, j, added)
        for values, added in ((m.dof_armature, m.actuator_armature), (m.dof_damping, m.actuator_damping))
    )
    for name, values in (("armature", armature), ("damping", damping), ("friction", m.dof_frictionloss[v])):
        if np.any(values):
            fields[name] = tuple(np.asarray(values, float).tolist())
    if m.jnt_stiffness[j] != 0.0:
        rest_position = np.asarray(m.qpos_spring[q : q + kind.nq], float).copy()
        if isinstance(kind, Free | Spherical):
            rest_position[-4:] = our_quaternion(rest_position[-4:])
        fields |= {"stiffness": (float(m.jnt_stiffness[j]),) * kind.nv, "rest": tuple(rest_position.tolist())}
    return fields


def _effort(m: Any, j: int) -> float:
    """The largest force of a joint's actuators: by its own limit, and by the limits of all of its actuators."""
    most = float(abs(m.jnt_actfrcrange[j]).max()) if m.jnt_actfrclimited[j] else np.inf
    driving = np.flatnonzero((m.actuator_trntype <= 1) & (m.actuator_trnid[:, 0] == j)).tolist()
    if not driving:
        return most
    return min(most, float(sum(abs(m.actuator_gear[i, 0]) * _largest_force(m, i) for i in driving)))


def _largest_force(m: Any, i: int) -> float:
    """The largest force of an actuator: by its range, or, of a motor, by that of its control."""
    most = float(abs(m.actuator_forcerange[i]).max()) if m.actuator_forcelimited[i] else np.inf
    control = m.actuator_ctrladr[i]
    is_motor = m.actuator_gaintype[i] == m.actuator_biastype[i] == m.actuator_dyntype[i] == 0
    if is_motor and m.actuator_ctrllimited[control]:
        most = min(most, float(abs(m.actuator_gainprm[i, 0] * m.actuator_ctrlrange[control]).max()))
    return most


def _reflected(m: Any, j: int, values: Any) -> float:
    """What the actuators of a joint with one coordinate add to it, times their gear ratios squared."""
    if m.jnt_type[j] not in (SLIDE, HINGE):
        return 0.0
    driven = (m.actuator_trntype <= 1) & (m.actuator_trnid[:, 0] == j)  # mjTRN_JOINT, mjTRN_JOINTINPARENT
    return float(np.sum(values[driven] * m.actuator_gear[driven, 0] ** 2))
