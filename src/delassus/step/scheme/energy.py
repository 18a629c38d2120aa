"""Corrects velocities of articulated robots to the momentum and kinetic energy that the forces of a step imply.

A step solves M (v⁺ - v) = f with M and the velocity products of its beginning, where f are all impulses of the step. At
the end q⁺ the mass matrix differs, so energy and momentum of v⁺ have an error that grows with speed. Their correct
values follow from quantities at q, where energy and work balance exactly:

    T* = T(q, v) + ½ f·(v + v⁺) = T(q, v⁺) + ½ h c·(v + v⁺),      P*, L* = momentum of v at q + f of the free base.

For a floating robot, v⁺ is the sum of the locked motion, in which the robot moves as one body with its momentum, and of
a joint motion without momentum; their energies add (König). P* and L* (about the center of mass) determine the locked
motion. The joint motion is scaled by s so that the energy is T*. Neither opens closed loops. If the joint motion has
too little energy to compensate, the robot is rotated about its center of mass, as a free body is (see
`free_rotation.energy_turn`). For robots fixed to the world, all velocities are scaled by one factor.

Cost: about that of the mass matrix, no factorization.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.flow.branch import cond
from delassus.dynamics.forces.rnea import newton_euler
from delassus.dynamics.kinematics.kinematics import world_poses
from delassus.dynamics.mass.crba import mass_matrix
from delassus.dynamics.mass.tree_momentum import TreeMomentum, tree_momenta
from delassus.dynamics.tree.poses import Pair, RotationStep, ShiftStep
from delassus.linalg.products import mirror
from delassus.model.links import links_of
from delassus.model.model import Model
from delassus.spatial.quaternions import quaternion_conjugate, quaternion_multiply, quaternion_rotate
from delassus.spatial.rotations import inverse_symmetric
from delassus.step.scheme.components import Component
from delassus.step.scheme.free_rotation import energy_turn

FASTEST: Final = 1.21
"""Largest energy added to the joint motion in a step, as a fraction of its energy."""

_SLOWEST: Final = 0.81
"""Smallest scale factor of the joint motion's energy, unless a rotation of the robot cannot compensate the rest."""

_NEGLIGIBLE: Final = 1e-14
"""Fraction of the kinetic energy below which the joint motion is not scaled."""


class LockedBody(NamedTuple):
    """A component as one rigid body, in the axes of its first root.

    Attributes:
        mass: [kg].
        center: (3,) the center of mass [m].
        inverse: (3, 3) the inverse of the inertia about the center [1/(kg·m²)].
        P: (3,) momentum [kg·m/s].
        L: (3,) angular momentum about the center [kg·m²/s].
    """

    mass: Any
    center: Any
    inverse: Any
    P: Any
    L: Any


class Allowance(NamedTuple):
    """Energy and momentum of a component that the impulses of a step imply.

    Attributes:
        T: Kinetic energy [J].
        P: Momentum (3,) [kg·m/s] of a floating component, in world axes.
        L: Its angular momentum (3,) [kg·m²/s] about the center of mass.
        angle: Largest rotation of the component as a whole [rad]: zero if it touches other bodies.
        grounded: Whether it touches the world, so that its momentum is not conserved.
        flies: Whether it has no contact, and no joint is at a limit.
    """

    T: Any
    P: Any = None
    L: Any = None
    angle: Any = 0.0
    grounded: Any = False
    flies: Any = False


def gravity_forces(model: Model, q: Any, M: Any, parts: Sequence[Component]) -> Any:
    """Generalized gravity forces (nv,); those of floating robots are computed from the first columns of M (nv, nv)."""
    tree, still = links_of(model), np.zeros(model.nv)
    force = -newton_euler(model, q, still, still)
    poses = None
    for part in parts:
        for root in part.roots if part.floating or part.rigid else ():
            poses = world_poses(tree, q) if poses is None else poses
            j, down = tree.links[root].v, poses[root][0].T @ np.array(tree.gravity)
            for k in _tree_dofs(model, root):
                force[k] = M[k, j : j + 3] @ down
    return force


class Kick(NamedTuple):
    """Velocities before and after a step, and the impulses of the step.

    Attributes:
        before: (nv,) at the beginning.
        after: (nv,) at the end, in the axes of the beginning.
        products: (nv,) the impulse h c of velocity products.
        kicked: (nv,) with forces only, without contacts.
        impulse: (nv,) all impulses except velocity products; None where they equal M (after - before) + products up to
            rounding.
        external: (nv,) impulses that change the momentum of a component; None for all. Internal forces do not change
            it, even if a loop is slightly open and the forces at its two ends have a lever arm.
    """

    before: Any
    after: Any
    products: Any
    kicked: Any
    impulse: Any = None
    external: Any = None


def allowance_of(
    model: Model, q: Any, M: Any, kick: Kick, part: Component, excess: Any, flies: Any = False, middle: Any = None
) -> Allowance:
    """T*, P* and L* of a component, with the mass matrix M (nv, nv) at q; contacts may not add the energy `excess` [J].

    In flight, T* is the kinetic energy T(q, v') after the kick, where v' is the velocity `kicked`. If `middle`, a
    configuration (nq,), is given, the impulses are those in the axes there.
    """
    dofs, v_end = list(part.dofs), np.where(flies, kick.kicked, kick.after)
    velocity_sum, impulse = (kick.before + kick.after)[dofs], kick.impulse
    external = impulse if kick.external is None else kick.external
    bases = [links_of(model).links[root].v + k for root in part.roots for k in range(6)] if part.floating else []
    if kick.impulse is None:
        T, momentum = _kinetic_energy(M, v_end, dofs, bases)
        momentum = {k: p + np.where(flies, 0.0, kick.products[k]) for k, p in momentum.items()}
    else:
        T, momentum = _kinetic_energy(M, kick.before, dofs, bases)
        momentum = momentum if middle is not None else {k: p + external[k] for k, p in momentum.items()}
    if middle is not None:
        T = T + 0.5 * (impulse[dofs] @ velocity_sum) - excess
    else:  # from the velocity at the end: no cancellation if the inertia is constant
        T, _ = _kinetic_energy(M, v_end, dofs, bases)
        T = T + np.where(flies, 0.0, 0.5 * (kick.products[dofs] @ velocity_sum) - excess)
    T = np.maximum(T, 0.0)
    if not part.floating:
        return Allowance(T, flies=flies)
    poses = world_poses(links_of(model), q)
    R = poses[part.roots[0]][0]
    body = _lock_component(poses, part, _trees_in(model, part, M, momentum))
    P, L, spin = R @ body.P, R @ body.L, body.inverse @ body.L
    if middle is not None:
        poses = world_poses(links_of(model), middle)
        R = poses[part.roots[0]][0]
        kicked = _lock_component(poses, part, _trees_in(model, part, mass_matrix(model, middle), external))
        P, L = P + R @ kicked.P, L + R @ kicked.L
    return Allowance(T, P, L, np.sqrt(spin @ spin), flies=flies)


def _kinetic_energy(M: Any, v: Any, dofs: Sequence[int], bases: Sequence[int]) -> tuple[Any, dict[int, Any]]:
    """½ vᵀ M v over some velocities, and the momentum M v of free bases, by index: v_b·(½ M_bb v_b + M_bj v_j) + T_j.

    The joint energy T_j uses the lower triangle of M.
    """
    joints = [k for k in dofs if k not in bases]
    energy, momentum = np.array(0.0), {}
    for k in bases:
        base_momentum, joint_momentum = M[k, bases] @ v[bases], M[k, joints] @ v[joints]
        energy = energy + v[k] * (0.5 * base_momentum + joint_momentum)
        momentum[k] = base_momentum + joint_momentum
    for n, k in enumerate(joints):
        energy = energy + v[k] * (0.5 * M[k, k] * v[k] + M[k, joints[:n]] @ v[joints[:n]])
    return energy, momentum


def contact_excess(parts: Sequence[Component], impulse: Any, velocity_sum: Any) -> list[Any]:
    """The energy [J] to remove from each component, since contacts have added it.

    `impulse` (nv,) are the generalized contact impulses, and `velocity_sum` (nv,) is the sum of the velocities before
    and after; the work is half of their product. The total work of contacts may not be positive. Its positive part is
    divided among the components whose energy grows, in proportion to the growth.
    """
    works = [0.5 * (impulse[list(part.dofs)] @ velocity_sum[list(part.dofs)]) for part in parts]
    gain = sum(np.maximum(work, 0.0) for work in works)
    fraction = _ratio(np.maximum(sum(works), 0.0), gain)
    return [fraction * np.maximum(work, 0.0) for work in works]


def restore(model: Model, q: Any, v: Any, part: Component, target: Allowance) -> tuple[Any, Any]:
    """Configuration (nq,) and velocity (nv,) at the end of a step, corrected to the allowed energy and momentum."""
    tree, dofs = links_of(model), list(part.dofs)
    trees = tree_momenta(model, q, v)
    T = sum(trees[root].energy for root in part.roots)
    uniform_scale = np.where(T > 0.0, np.sqrt(np.clip(_ratio(target.T, T), 0.0, FASTEST)), 1.0)
    if not part.floating:
        v = np.array(v)
        v[dofs] = uniform_scale * v[dofs]
        return q, v
    poses = world_poses(tree, q)
    frame = poses[part.roots[0]]
    body = _lock_component(poses, part, [trees[root] for root in part.roots])
    P, L, spin = frame[0].T @ target.P, frame[0].T @ target.L, body.inverse @ body.L
    inner = T - 0.5 * (body.P @ body.P) / body.mass - 0.5 * (spin @ body.L)
    inner = np.where(inner > _NEGLIGIBLE * T, inner, 0.0)
    available = target.T - 0.5 * (P @ P) / body.mass  # the energy of rotation and joint motion
    ratio = _ratio(available - 0.5 * (L @ (body.inverse @ L)), inner)
    needs_turn = (ratio < _SLOWEST) | (ratio > FASTEST) | (inner <= 0.0)

    roots = {root: _Root.of(frame, poses[root], body.center) for root in part.roots}
    starts = [tree.links[root].q for root in part.roots]

    def turn(P: Any, L: Any, *bases: Any) -> Any:
        target_energy = available - np.where(ratio < _SLOWEST, _SLOWEST, np.minimum(ratio, FASTEST)) * inner
        rotation = energy_turn(L, body.inverse @ L, lambda x: body.inverse @ x, target_energy, target.angle)
        inverse = quaternion_conjugate(rotation)
        rotated = [root.rotate(base, rotation) for root, base in zip(roots.values(), bases, strict=True)]
        return quaternion_rotate(inverse, P), quaternion_rotate(inverse, L), *rotated

    unchanged = (P, L, *(q[i : i + 7] for i in starts))
    P, L, *bases = cond(needs_turn & (target.angle > 0.0), turn, unchanged, *unchanged)
    omega = body.inverse @ L
    rotational = 0.5 * (omega @ L)
    # If the rotational energy exceeds the available energy, and no rotation may reduce it (the component is in contact
    # with other bodies), the angular velocity is scaled down.
    omega = np.sqrt(np.clip(_ratio(available, rotational), 0.0, 1.0)) * omega
    s = np.sqrt(np.clip(_ratio(available - rotational, inner), 0.0, FASTEST))
    drift, turn_rate = P / body.mass - s * (body.P / body.mass), omega - s * spin
    drift, turn_rate = np.where(target.grounded, 0.0, drift), np.where(target.grounded, 0.0, turn_rate)
    s = np.where(target.grounded, uniform_scale, s)
    free: set[int] = set()
    q, v = np.array(q), np.array(v)
    for (root, root_pose), i, base in zip(roots.items(), starts, bases, strict=True):
        j = tree.links[root].v
        q[i : i + 7] = base
        v[j : j + 6] = root_pose.motion(drift, turn_rate) + s * v[j : j + 6]
        free.update(range(j, j + 6))
    joints = [k for k in dofs if k not in free]
    v[joints] = s * v[joints]
    return q, v


def _ratio(a: Any, b: Any) -> Any:
    """a / b, or 0 where b is not positive."""
    return np.where(b > 0.0, a / np.where(b > 0.0, b, 1.0), 0.0)


class _Root(NamedTuple):
    """A root in a component: the rotation (3, 3) from the component's axes to the root's, and the vector (3,) from the
    center of mass to the root's origin in the component's axes."""

    R: Any
    arm: Any

    @classmethod
    def of(cls, frame: Pair, pose: Pair, center: Any) -> _Root:
        if pose is frame:
            return cls(None, -center)
        return cls(pose[0].T @ frame[0], frame[0].T @ (pose[1] - frame[1]) - center)

    def axes(self, x: Any) -> Any:
        """A vector (3,) in the axes of the root."""
        return x if self.R is None else self.R @ x

    def motion(self, velocity: Any, spin: Any) -> Any:
        """The velocity (6,) of the root if the component moves as one body, with this velocity of its center of mass
        and this angular velocity."""
        return np.concatenate([self.axes(velocity + np.cross(spin, self.arm)), self.axes(spin)])

    def rotate(self, q: Any, rotation: Any) -> Any:
        """Coordinates (7,) after a rotation of the component about its center of mass, a quaternion in its axes."""
        rotation = np.concatenate([self.axes(rotation[:3]), rotation[3:]])
        arm = self.axes(self.arm)
        position = q[:3] + quaternion_rotate(q[3:], quaternion_rotate(rotation, arm) - arm)
        return np.concatenate([position, quaternion_multiply(q[3:], rotation)])


def _trees_in(model: Model, part: Component, M: Any, momentum: Any) -> list[TreeMomentum]:
    """The trees of a component; M (nv, nv) is the mass matrix, and `momentum` is M v, by velocity index."""
    result = []
    for root in part.roots:
        j = links_of(model).links[root].v
        # the block of a free joint in M is [m 1, -h×; h×, I] about the link's origin
        body = M[j, j], np.stack([M[j + 5, j + 1], M[j + 3, j + 2], M[j + 4, j]]), M[j + 3 : j + 6, j + 3 : j + 6]
        pair = np.stack([momentum[j + k] for k in range(3)]), np.stack([momentum[j + 3 + k] for k in range(3)])
        result.append(TreeMomentum(None, body, pair))
    return result


def _lock_component(poses: list[Pair], part: Component, trees: Sequence[TreeMomentum]) -> LockedBody:
    """A component as one rigid body, from its trees."""
    R, p = poses[part.roots[0]]
    mass, first, I, P, L = np.array(0.0), np.zeros(3), np.zeros((3, 3)), np.zeros(3), np.zeros(3)
    for root, tree in zip(part.roots, trees, strict=True):
        body, momentum = tree.inertia, tree.momentum
        if root != part.roots[0]:
            to_first_root = RotationStep(R.T @ poses[root][0]), ShiftStep(R.T @ (poses[root][1] - p))
            for step in to_first_root:
                body, momentum = step.rigid_to_parent(*body), step.force_to_parent(*momentum)
        mass, first, I, P, L = mass + body[0], first + body[1], I + body[2], P + momentum[0], L + momentum[1]
    c = first / mass
    central = mirror(I - (c @ first) * np.eye(3) + np.outer(c, first))
    return LockedBody(mass, c, inverse_symmetric(central), P, L - np.cross(c, P))


def _tree_dofs(model: Model, root: int) -> list[int]:
    """Velocities of a tree."""
    links, members = links_of(model).links, {root}
    for i, link in enumerate(links):
        if link.parent in members:
            members.add(i)
    return sorted({v for i in members for v in links[i].dofs})
