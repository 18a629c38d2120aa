"""Motions of all links in the frame of their tree's root link.

In one common frame, the velocity of a link is that of its parent plus that of its joint, and quantities of two links
need no transformation. The world's frame would have the same advantage. In the base's, the motion subspace of the root
is constant (for a free base, the identity), so products with it cost nothing.
"""

from dataclasses import dataclass
from typing import Any

import delassus.numpy as np
from delassus.dynamics.tree.poses import poses_of, velocities
from delassus.dynamics.tree.recursion import external_forces
from delassus.model.links import Links
from delassus.spatial.motions import force_to_parent, motion_cross


@dataclass(frozen=True)
class Moving:
    """A link in the base's frame.

    Attributes:
        R: Rotation (3, 3) of the link.
        p: Origin (3,) of the link [m].
        S: Motion subspace (6, n) of its joint.
        v: Velocity (6,) of the link.
        a: Acceleration (6,) of the link.
        v_parent: Velocity (6,) of its parent.
        a_parent: Acceleration (6,) of its parent.
    """

    R: Any
    p: Any
    S: Any
    v: Any
    a: Any
    v_parent: Any
    a_parent: Any


def moving_links(tree: Links, q: Any, v: Any, a: Any, *, falling: bool) -> list[Moving]:
    """Every link in its base's frame; if `falling`, gravity is included as an acceleration -g of the world."""
    world = np.concatenate([-np.array(tree.gravity) if falling else np.zeros(3), np.zeros(3)])
    moving: list[Moving] = []
    for link, pose in zip(tree.links, poses_of(tree, q), strict=True):
        if link.parent < 0:
            R, p, v_parent = np.array(np.eye(3)), np.zeros(3), np.zeros(6)
            a_parent = np.concatenate(pose.motion_to_child(world[:3], world[3:]))
        else:
            parent = moving[link.parent]
            R, p = pose.compose(parent.R, parent.p)
            v_parent, a_parent = parent.v, parent.a
        S_lin, S_ang = link.subspace
        ang = R @ S_ang
        lin = R @ S_lin + np.stack([np.cross(p, ang[:, k]) for k in range(link.motion.nv)], axis=1)
        S = np.concatenate([lin, ang])
        v_J, a_J = S @ velocities(link, v), S @ velocities(link, a)
        moving.append(Moving(R, p, S, v_parent + v_J, a_parent + a_J + motion_cross(v_parent, v_J), v_parent, a_parent))
    return moving


def external_in_base(tree: Links, moving: list[Moving], forces: Any) -> list[tuple[int, Any]]:
    """External forces on bodies, as in `external_forces`: the link, and the force (6,) on it in the base's frame."""
    return [
        (i, force_to_parent(moving[i].R, moving[i].p, np.concatenate([f, n])))
        for i, (f, n) in external_forces(tree, forces)
    ]
