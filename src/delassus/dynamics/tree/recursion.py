"""Sweeps over the tree that several algorithms use."""

from typing import Any, Final

import delassus.numpy as np
from delassus.dynamics.tree.poses import Pair, Pose, fixed_pose, velocities
from delassus.model.links import Link, Links

FORCES: Final = {"forces": "(njoints,6)"}
"""The optional input of algorithms with external forces: one on each body, in the body's frame, linear first."""


def external_forces(tree: Links, forces: Any) -> list[tuple[int, Pair]]:
    """The link that each of the forces (njoints, 6) on bodies acts on, with force and moment in the link's frame."""
    if forces is None:
        return []
    bodies = enumerate(tree.bodies)
    return [(i, fixed_pose(body).force_to_parent(forces[j, :3], forces[j, 3:])) for j, (i, body) in bodies]


def joint_motions(tree: Links, x: Any) -> list[Pair]:
    """S x for every joint: its motion in the link's frame, from velocities (or accelerations) x."""
    pairs = []
    for link in tree.links:
        S_lin, S_ang = link.subspace
        joint_velocity = velocities(link, x)
        pairs.append((S_lin @ joint_velocity, S_ang @ joint_velocity))
    return pairs


def link_velocities(tree: Links, poses: list[Pose], v_J: list[Pair]) -> tuple[list[Pair], list[Pair]]:
    """Velocities v of the links, and velocity-product accelerations v × v_J, from the motions v_J of their joints."""
    velocity: list[Pair] = []
    product: list[Pair] = []
    for link, pose, (lin_J, ang_J) in zip(tree.links, poses, v_J, strict=True):
        if link.parent < 0:  # v = v_J, and v × v is zero
            velocity.append((lin_J, ang_J))
            product.append((np.zeros(3), np.zeros(3)))
            continue
        lin, ang = pose.motion_to_child(*velocity[link.parent])
        # (v + v_J) × v_J = v × v_J: the parent's velocity alone has fewer terms
        product.append((np.cross(ang, lin_J) + np.cross(lin, ang_J), np.cross(ang, ang_J)))
        velocity.append((lin + lin_J, ang + ang_J))
    return velocity, product


def momentum(link: Link, lin: Any, ang: Any) -> Pair:
    """The spatial momentum (or the force I a) of a link: m (lin + ang × c) and Ī ang + m c × lin."""
    mass = link.inertia.mass
    first = np.array(link.inertia.first_moment)
    return mass * lin - np.cross(first, ang), link.inertia.about_origin @ ang + np.cross(first, lin)


def bias_force(link: Link, lin: Any, ang: Any) -> Pair:
    """v ×* (I v): the force that keeps a link at its velocity; m w + ω × (ω × m c) and ω × Ī ω + m c × w, w = ω × u."""
    first, gyroscopic = np.array(link.inertia.first_moment), np.cross(ang, lin)
    f = link.inertia.mass * gyroscopic + np.cross(ang, np.cross(ang, first))
    return f, np.cross(ang, link.inertia.about_origin @ ang) + np.cross(first, gyroscopic)
