"""Joints in the articulated-body recursion: the articulated inertia that passes through a joint.

With the motion subspace S of a joint and the articulated inertia A of its link,

    U = A S,   D = Sᵀ A S + rotor inertias,   W = U D⁻¹,   A - U D⁻¹ Uᵀ is felt by the parent.

Terms that resist the joint's acceleration are added to D: rotors, penalties of rows on its velocities, and in a time
step h, damping and gains of servos, h k_d + h² k_p. The recursion over the tree is in `sweep`.

If the joint's directions are axes of the link and nothing is added to D, then SᵀW = 1, and the inertia that the parent
feels vanishes along these directions. These ones and zeros are constants of the kernel instead of computed results, so
they are exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import delassus.numpy as np
from delassus.dynamics.tree.poses import Blocks, Pair
from delassus.dynamics.tree.sums import at
from delassus.linalg.ldl import Ldl, ldl
from delassus.linalg.products import mirror
from delassus.model.links import Link


@dataclass(frozen=True)
class FreeJoint:
    """A joint in the recursion: U (6, n), W = U D⁻¹ (6, n), D as `whole` (n, n), and its factors.

    `plain` says that SᵀW = 1 exactly.
    """

    link: Link
    U: Any
    W: Any
    whole: Any
    D: Ldl
    plain: bool

    @property
    def at(self) -> slice:
        """The velocities of the joint among those of the robot."""
        return at(self.link)

    def with_stiffness(self, stiffness: Any) -> FreeJoint:
        """The joint with a stiffness (n, n) on its acceleration; the inertia that it transmits is unchanged."""
        return replace(self, D=ldl(self.whole + stiffness))

    def force(self, tau: Any, p: Pair) -> Any:
        """u = τ - Sᵀ p (n,): the joint's force, from generalized forces τ (nv,) and the bias force p of its link."""
        S_lin, S_ang = self.link.subspace
        return tau[self.at] - S_lin.T @ p[0] - S_ang.T @ p[1]

    def push(self, u: Any) -> Any:
        """D⁻¹ u (n,): the joint's acceleration from its force alone."""
        return self.D.solve(u)

    def answer(self, push: Any, a: Pair) -> Any:
        """q̈ = D⁻¹ u - Wᵀ a (n,): the joint's acceleration, where a is that of its link for q̈ = 0."""
        return push - self.W[:3].T @ a[0] - self.W[3:].T @ a[1]

    def accelerate(self, a: Pair, joint_acceleration: Any) -> Pair:
        """a + S q̈: the acceleration of the link, where a is that for q̈ = 0, and q̈ (n,) `joint_acceleration`."""
        S_lin, S_ang = self.link.subspace
        return a[0] + S_lin @ joint_acceleration, a[1] + S_ang @ joint_acceleration

    def propagate_inertia(self, A: Blocks) -> Blocks:
        """A - U D⁻¹ Uᵀ: the inertia felt through the free joint."""
        M, H, I = A
        U, W = self.U, self.W
        M, H, I = (
            mirror(M - W[:3] @ U[:3].T),
            np.array(H - W[:3] @ U[3:].T),
            mirror(I - W[3:] @ U[3:].T),
        )
        for d in self.link.motion.directions if self.plain else ():
            if d < 3:
                M[d, :] = M[:, d] = H[d, :] = 0.0
            else:
                I[d - 3, :] = I[:, d - 3] = H[:, d - 3] = 0.0
        return M, H, I

    def carry(self, f: Any, n: Any, driven: Any = None) -> tuple[Any, Any, Any]:
        """Transmit a force (f, n) on the link through its joint: u = Sᵀf + driven (n,), and f - W u on the parent."""
        S_lin, S_ang = self.link.subspace
        u = S_lin.T @ f + S_ang.T @ n
        u = u if driven is None else u + driven
        f, n = np.array(f - self.W[:3] @ u), np.array(n - self.W[3:] @ u)
        for d in self.link.motion.directions if self.plain and driven is None else ():
            if d < 3:
                f[d] = 0.0
            else:
                n[d - 3] = 0.0
        return u, f, n


def is_plain(link: Link) -> bool:
    """Whether a joint's directions are axes of its link and it has no rotor: then SᵀW = 1."""
    return link.motion.along_axes and not link.has_rotor


def free_joint(link: Link, A: Blocks, added: Any = None) -> FreeJoint:
    """The joint of a link with the articulated inertia A; `added` (n,) is added to the diagonal of D."""
    S_lin, S_ang = link.subspace
    M, H, I = A
    U = np.concatenate([M @ S_lin + H @ S_ang, H.T @ S_lin + I @ S_ang])
    D = S_lin.T @ U[:3] + S_ang.T @ U[3:] + np.array(np.diag(link.armature))
    if added is not None:
        D = D + np.diag(added)
    plain = is_plain(link) and added is None
    factors = ldl(D)
    directions = list(link.motion.directions)
    W = np.zeros(U.shape)
    for row in range(6):
        if plain and row in directions:
            W[row, directions.index(row)] = 1.0
        else:
            W[row] = factors.solve(U[row])
    return FreeJoint(link, U, W, D, factors, plain)


def prescribed_joint(link: Link, A: Blocks) -> FreeJoint:
    """A joint with prescribed acceleration: no force accelerates it, so D⁻¹ = 0, and it transmits the full inertia."""
    joint = free_joint(link, A)
    n = link.motion.nv
    return replace(joint, W=np.zeros((6, n)), D=Ldl(np.array(np.eye(n)), np.zeros(n)), plain=False)
