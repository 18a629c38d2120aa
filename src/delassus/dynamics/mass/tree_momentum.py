"""Momentum and kinetic energy of trees of bodies in one inward sweep, without the velocities of links.

Let Y_i be the composite inertia of the subtree of joint i, F_i = Y_i S_i v_i its momentum by the motion of joint i
alone, and G_i its momentum by the motion of all descendant joints. Then

    T = Σ v_i · S_iᵀ (½ F_i + G_i),      G_π += X (F_i + G_i),

which is ½ vᵀ M v from one triangle of M. At the root F + G is the momentum of the tree, about the root's origin. The
cost is O(n), for revolute joints less than that of the link velocities alone. If composite inertias are not needed,
`kinetic_energy` is as fast. Reference: R. Featherstone, Rigid Body Dynamics Algorithms (2008), chapter 6.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import delassus.numpy as np
from delassus.dynamics.mass.crba import composite_force, rigid_inertia
from delassus.dynamics.tree.poses import Pair, poses_of
from delassus.dynamics.tree.recursion import joint_motions
from delassus.dynamics.tree.sums import total
from delassus.model.links import links_of
from delassus.model.model import Model


class TreeMomentum(NamedTuple):
    """Energy, inertia and momentum of a tree, about the origin of its root and in the root's axes.

    Attributes:
        energy: Kinetic energy [J], rotors included.
        inertia: Mass [kg], first moment (3,) [kg·m] and rotational inertia (3, 3) [kg·m²] as one rigid body.
        momentum: Linear (3,) [kg·m/s] and angular (3,) [kg·m²/s].
    """

    energy: Any
    inertia: tuple[Any, Any, Any]
    momentum: Pair


def tree_momenta(model: Model, q: Any, v: Any) -> dict[int, TreeMomentum]:
    """Momentum and kinetic energy of each tree, by the index of its root link."""
    tree = links_of(model)
    links, poses, v_J = tree.links, poses_of(tree, q), joint_motions(tree, v)
    inertia = [rigid_inertia(link) for link in links]
    outer: list[Pair] = [(np.zeros(3), np.zeros(3)) for _ in links]
    energy: list[Any] = [np.array(0.0) for _ in links]
    result = {}
    for i, link in reversed(list(enumerate(links))):
        (lin, ang), (f, n) = v_J[i], outer[i]
        F = composite_force(*inertia[i], lin, ang)
        T = energy[i] + lin @ (0.5 * F[0] + f) + ang @ (0.5 * F[1] + n)
        if link.has_rotor:
            rates = link.ratio * v[link.v : link.v + link.motion.nv]
            T = T + 0.5 * (np.array(link.armature) @ (rates * rates))
        momentum = total(F, outer[i])
        if link.parent < 0:
            result[i] = TreeMomentum(T, inertia[i], momentum)
            continue
        p = link.parent
        energy[p] = energy[p] + T
        outer[p] = total(outer[p], poses[i].force_to_parent(*momentum))
        inertia[p] = total(inertia[p], poses[i].rigid_to_parent(*inertia[i]))
    return result
