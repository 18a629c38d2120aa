"""Derivatives of the velocity and the acceleration of a frame.

Derivatives with respect to q are along tangent vectors, as in `rnea_derivatives`. Let s be a column of the motion
subspace of a joint j on the path to the frame, π its parent and l the link of the frame, all in one frame. If joint j
moves by s δ, its subtree moves with it. Relative to the moving subtree, velocity and acceleration change by

    ∂v/∂q = V = v_π × s,    ∂a/∂q = a_π × s + V × (v_l - v_π),    ∂a/∂v = s × (v_l - v_j - v_π),    ∂v/∂v = ∂a/∂a = s

These are the derivatives in the frame itself (LOCAL). In the world, the motion x of the frame also rotates: s × x is
added (WORLD), or ω_s × both halves of x if only the axes are those of the world (LOCAL_WORLD_ALIGNED). Cost: O(d)
columns for depth d.
"""

from dataclasses import dataclass
from typing import Any

import delassus.numpy as np
from delassus.common.types import Traced
from delassus.compiler.host.kernel import Floats, kernel
from delassus.dynamics.kinematics.kinematics import check_reference
from delassus.dynamics.tree.base_frame import moving_links
from delassus.dynamics.tree.poses import fixed_pose, poses_of
from delassus.model.links import links_of
from delassus.model.model import Model
from delassus.model.parts import WORLD
from delassus.spatial.motions import motion_cross, motion_to_child, motion_to_parent


@kernel("(nq),(nv)->(6,nv),(6,nv)")
def frame_velocity_derivatives(
    model: Model, q: Traced, v: Traced, *, frame: str, reference: str = "LOCAL"
) -> tuple[Floats, Floats]:
    """Derivatives (6, nv) of `frame_velocity` with respect to q, along tangent vectors, and to v: the Jacobian.

    Args:
        model: The robot.
        q: Configuration (nq,) [rad, m].
        v: Velocity (nv,) [rad/s, m/s].
        frame: The frame's name.
        reference: "LOCAL", "WORLD" or "LOCAL_WORLD_ALIGNED" (see `kinematics`).

    >>> robot, q, v = dl.load("double_pendulum"), np.zeros(2), np.ones(2)
    >>> by_q, J = dl.derivatives.frame_velocity_derivatives(robot, q, v, frame="tip")
    >>> by_q.shape, J.shape
    ((6, 2), (6, 2))
    """
    d = _derivatives(model, q, v, np.zeros(model.nv), frame, reference)
    return d.v_by_q, d.jacobian


@kernel("(nq),(nv),(nv)->(6,nv),(6,nv),(6,nv)")
def frame_acceleration_derivatives(
    model: Model, q: Traced, v: Traced, a: Traced, *, frame: str, reference: str = "LOCAL", classical: bool = False
) -> tuple[Floats, Floats, Floats]:
    """Derivatives (6, nv) of `frame_acceleration`: by q, along tangent vectors, by v, and by a (the Jacobian).

    Args:
        model: The robot.
        q: Configuration (nq,) [rad, m].
        v: Velocity (nv,) [rad/s, m/s].
        a: Acceleration (nv,) [rad/s², m/s²].
        frame: The frame's name.
        reference: "LOCAL", "WORLD" or "LOCAL_WORLD_ALIGNED" (see `kinematics`).
        classical: Whether the linear part is the acceleration of a point (see `frame_acceleration`).

    >>> arm, q = dl.load("double_pendulum"), np.zeros(2)
    >>> dl.derivatives.frame_acceleration_derivatives(arm, q, q, q, frame="tip")[0].shape
    (6, 2)
    """
    d = _derivatives(model, q, v, a, frame, reference)
    if not classical:
        return d.a_by_q, d.a_by_v, d.jacobian
    return _of_point(d.v, d.a_by_q, d.v_by_q), _of_point(d.v, d.a_by_v, d.jacobian), d.jacobian


@dataclass(frozen=True)
class _Derivatives:
    """The frame's velocity v (6,) and the derivatives (6, nv), in the chosen reference."""

    v: Any
    v_by_q: Any
    jacobian: Any
    a_by_q: Any
    a_by_v: Any


def _derivatives(model: Model, q: Any, v: Any, a: Any, name: str, reference: str) -> _Derivatives:
    check_reference(reference)
    tree = links_of(model)
    place = model.frame(name)
    at, placement = tree.place(place.joint, place.placement)
    v_by_q, jacobian, a_by_q, a_by_v = (np.zeros((6, model.nv)) for _ in range(4))
    if at == WORLD:
        return _Derivatives(np.zeros(6), v_by_q, jacobian, a_by_q, a_by_v)
    moving, path = moving_links(tree, q, v, a, falling=False), tree.path(at)
    R, p = fixed_pose(placement).compose(moving[at].R, moving[at].p)
    R_base, p_base = poses_of(tree, q)[path[0]].compose(np.array(np.eye(3)), np.zeros(3))

    def to_reference(x: Any) -> Any:
        """Transform a motion from the base's frame to the reference."""
        if reference == "WORLD":
            return motion_to_parent(R_base, p_base, x)
        local = motion_to_child(R, p, x)
        if reference == "LOCAL":
            return local
        turn = R_base @ R
        return np.concatenate([turn @ local[:3], turn @ local[3:]])

    def apparent_change(change: Any, s: Any, x: Any) -> Any:
        """The change of a motion x (6,) in the reference, while s moves the frame; inputs are in the base's frame."""
        if reference == "LOCAL":
            return to_reference(change)
        if reference == "WORLD":
            return to_reference(change + motion_cross(s, x))
        turning, at_target = R_base @ s[3:], to_reference(x)
        return to_reference(change) + np.concatenate(
            [np.cross(turning, at_target[:3]), np.cross(turning, at_target[3:])]
        )

    target = moving[at]
    for j in path:
        link, m = tree.links[j], moving[j]
        for k in range(link.motion.nv):
            s, column = m.S[:, k], link.v + k
            V = motion_cross(m.v_parent, s)
            A_q = motion_cross(m.a_parent, s) + motion_cross(V, target.v - m.v_parent)
            A_v = motion_cross(s, target.v - m.v - m.v_parent)
            for total, change in (
                (v_by_q, apparent_change(V, s, target.v)),
                (jacobian, to_reference(s)),
                (a_by_q, apparent_change(A_q, s, target.a)),
                (a_by_v, to_reference(A_v)),
            ):
                total[:, column] = total[:, column] + (change if link.ratio == 1.0 else link.ratio * change)
    return _Derivatives(to_reference(target.v), v_by_q, jacobian, a_by_q, a_by_v)


def _of_point(v: Any, a_by: Any, v_by: Any) -> Any:
    """Derivatives (6, n) of a classical acceleration, a_lin + ω × v and α, from those of a spatial one."""
    lin = [a_by[:3, k] + np.cross(v_by[3:, k], v[:3]) + np.cross(v[3:], v_by[:3, k]) for k in range(a_by.shape[1])]
    return np.concatenate([np.stack(lin, axis=1), a_by[3:]])
