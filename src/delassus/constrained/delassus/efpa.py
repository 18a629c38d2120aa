"""The extended-force-propagator algorithm: J M⁻¹ Jᵀ from the accelerations that unit forces on the rows cause.

Inward, the unit force K_r of each row is propagated from its links to the base and has the component u_r at every
joint; outward, the joints respond with accelerations,

    K_π = X (K - W u),  u = Sᵀ K;      a_i = X a_π + S (D⁻¹ u_r - Wᵀ X a_π),

with W = A S D⁻¹ of the articulated-body recursion. Let z be the outermost link on the path of row s that also moves by
a force on row r. The response of s to r is G_sr = K_s(z) · a_r(z). O(n + m d + m²) operations for depth d. Choose it
for few rows, or for rows that are far apart; `pv_osim` needs no outward sweep.

Reference: P. Wensing, R. Featherstone, D. Orin, A reduced-order recursive algorithm for the computation of the
operational-space inertia matrix (2012).
"""

from __future__ import annotations

from typing import Any

import delassus.numpy as np
from delassus.constrained.elimination.articulated_tree import ArticulatedTree
from delassus.constrained.elimination.row_forces import Piece
from delassus.dynamics.tree.poses import Pair
from delassus.dynamics.tree.sweep import ZERO, propagate_acceleration
from delassus.model.parts import WORLD


def efpa(body: ArticulatedTree, pieces: list[Piece], m: int) -> Any:
    """The lower triangle of J A⁻¹ Jᵀ (m, m), A the matrix that was factored by the elimination of the tree."""
    tree = body.tree
    path_forces: list[dict[int, Pair]] = []  # by piece: its force on each link of its path
    u: list[dict[int, Any]] = [{} for _ in range(m)]  # by row: its force at each joint
    for piece in pieces:
        force, driven, path = piece.force, piece.driven, {}
        for i in reversed(tree.path(piece.link)):
            path[i] = force
            joint_force, force = body.inward(i, *force, driven)
            u[piece.row][i] = u[piece.row][i] + joint_force if i in u[piece.row] else joint_force
            driven = None
        path_forces.append(path)
    responses = [_accelerations(body, joint_forces) for joint_forces in u]
    G = np.zeros((m, m))
    for piece, path in zip(pieces, path_forces, strict=True):
        for r in range(piece.row + 1):
            joint, motion = responses[r]
            z = next((i for i in path if i in motion), None)  # from the piece inward
            if z is None:
                continue
            coupling = path[z][0] @ motion[z][0] + path[z][1] @ motion[z][1]
            if z == piece.link and piece.driven is not None:
                coupling = coupling + piece.driven @ joint[z]
            G[piece.row, r] = G[piece.row, r] + coupling
    return G


def _accelerations(body: ArticulatedTree, u: dict[int, Any]) -> tuple[dict[int, Any], dict[int, Pair]]:
    """Accelerations of joints and links from forces u at joints, by link; u must include all ancestors."""
    joint: dict[int, Any] = {}
    motion: dict[int, Pair] = {WORLD: ZERO}
    for i in sorted(u):
        free = body.joints[i]
        a = propagate_acceleration(body.poses[i], motion[free.link.parent])
        carrier_part = free.W[:3].T @ a[0] + free.W[3:].T @ a[1]
        joint[i] = free.push(u[i]) - carrier_part
        motion[i] = free.accelerate(a, joint[i])
    del motion[WORLD]
    return joint, motion
