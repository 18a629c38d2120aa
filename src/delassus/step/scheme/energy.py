"""Corrects velocities of articulated robots to the momentum and kinetic energy that the forces of a step imply.

A step solves M (v⁺ - v) = f with M and the velocity products of its beginning, where f are all impulses of the step. At
the end q⁺ the mass matrix differs, so energy and momentum of v⁺ have an error that grows with speed. Their correct
values follow from quantities at q, where energy and work balance exactly:

    T* = T(q, v) + ½ f·(v + v⁺) = T(q, v⁺) + ½ h c·(v + v⁺),      P*, L* = momentum of v at q + f of the free base.

For a floating robot, v⁺ is the sum of the locked motion, in which the robot moves as one body with its momentum, and of
a joint motion without momentum; their energies add (König). The locked motion is set by P* and L* (about the center of
mass). The joint motion is scaled by s so that the energy is T*. Neither opens closed loops. If the joint motion has too
little energy to compensate, the robot is rotated about its center of mass, as a free body is (see
`free_rotation.energy_turn`). Velocities of robots fixed to the world are scaled as a whole.

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
"""Smallest scale factor, unless rotating the robot as a whole is not enough."""

_LITTLE: Final = 1e-14
"""Fraction of the kinetic energy below which the joint motion is not scaled."""


class LockedBody(NamedTuple):
    """A component as one rigid body, in the axes of its first root: mass, center (3,), inverse inertia about it (3, 3),
    momentum (3,) and angular momentum about the center (3,)."""

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
        flies: Whether it touches nothing, and no joint is at a limit.
    """

    T: Any
    P: Any = None
    L: Any = None
    angle: Any = 0.0
    grounded: Any = False
    flies: Any = False


def gravity_forces(model: Model, q: Any, M: Any, parts: Sequence[Component]) -> Any:
    """Generalized gravity forces (nv,); for floating robots, they follow from the first columns of M if M is given."""
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
    dofs, own = list(part.dofs), np.where(flies, kick.kicked, kick.after)
    around, push = (kick.before + kick.after)[dofs], kick.impulse
    external = push if kick.external is None else kick.external
    bases = [links_of(model).links[root].v + k for root in part.roots for k in range(6)] if part.floating else []
    if kick.impulse is None:
        T, momentum = _kinetic_energy(M, own, dofs, bases)
        momentum = {k: p + np.where(flies, 0.0, kick.products[k]) for k, p in momentum.items()}
    else:
        T, momentum = _kinetic_energy(M, kick.before, dofs, bases)
        momentum = momentum if middle is not None else {k: p + external[k] for k, p in momentum.items()}
    if middle is not None:
        T = T + 0.5 * (push[dofs] @ around) - excess
    else:  # from the end: without cancellation where the inertia does not change
        T, _ = _kinetic_energy(M, own, dofs, bases)
        T = T + np.where(flies, 0.0, 0.5 * (kick.products[dofs] @ around) - excess)
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
        locked, carried = M[k, bases] @ v[bases], M[k, joints] @ v[joints]
        energy, momentum[k] = energy + v[k] * (0.5 * locked + carried), locked + carried
    for n, k in enumerate(joints):
        energy = energy + v[k] * (0.5 * M[k, k] * v[k] + M[k, joints[:n]] @ v[joints[:n]])
    return energy, momentum


def contact_excess(parts: Sequence[Component], push: Any, velocity: Any) -> list[Any]:
    """The energy [J] that contacts have added to each component, which they may not.

    `push` (nv,) are the generalized contact impulses, and `velocity` (nv,) the sum of the velocities before and after;
    the work is half of their product. The total over all components may not grow; components that gain share the
    excess.
    """
    work = [0.5 * (push[list(part.dofs)] @ velocity[list(part.dofs)]) for part in parts]
    gained = sum(np.maximum(one, 0.0) for one in work)
    share = _ratio(np.maximum(sum(work), 0.0), gained)
    return [share * np.maximum(one, 0.0) for one in work]


def restore(model: Model, q: Any, v: Any, part: Component, target: Allowance) -> tuple[Any, Any]:
    """Configuration (nq,) and velocity (nv,) at the end of a step, corrected to the allowed energy and momentum."""
    tree, dofs = links_of(model), list(part.dofs)
    trees = tree_momenta(model, q, v)
    T = sum(trees[root].energy for root in part.roots)
    even = np.where(T > 0.0, np.sqrt(np.clip(_ratio(target.T, T), 0.0, FASTEST)), 1.0)
    if not part.floating:
        v = np.array(v)
        v[dofs] = even * v[dofs]
        return q, v
    poses = world_poses(tree, q)
    frame = poses[part.roots[0]]
    now = _lock_component(poses, part, [trees[root] for root in part.roots])
    P, L, spin = frame[0].T @ target.P, frame[0].T @ target.L, now.inverse @ now.L
    inner = T - 0.5 * (now.P @ now.P) / now.mass - 0.5 * (spin @ now.L)
    inner = np.where(inner > _LITTLE * T, inner, 0.0)
    left = target.T - 0.5 * (P @ P) / now.mass  # for turning as a whole, and for the joints
    share = _ratio(left - 0.5 * (L @ (now.inverse @ L)), inner)
    off = (share < _SLOWEST) | (share > FASTEST) | (inner <= 0.0)

    roots = {root: _Root.of(frame, poses[root], now.center) for root in part.roots}
    places = [tree.links[root].q for root in part.roots]

    def turn(P: Any, L: Any, *bases: Any) -> Any:
        wanted = left - np.where(share < _SLOWEST, _SLOWEST, np.minimum(share, FASTEST)) * inner
        by = energy_turn(L, now.inverse @ L, lambda x: now.inverse @ x, wanted, target.angle)
        back = quaternion_conjugate(by)
        turned = [root.rotate(base, by) for root, base in zip(roots.values(), bases, strict=True)]
        return quaternion_rotate(back, P), quaternion_rotate(back, L), *turned

    start = (P, L, *(q[i : i + 7] for i in places))
    P, L, *bases = cond(off & (target.angle > 0.0), turn, start, *start)
    omega = now.inverse @ L
    turning = 0.5 * (omega @ L)
    # Where the rotation has more energy than is left and no turn brings it down, as between two bodies, it slows down.
    omega = np.sqrt(np.clip(_ratio(left, turning), 0.0, 1.0)) * omega
    s = np.sqrt(np.clip(_ratio(left - turning, inner), 0.0, FASTEST))
    drift, turn_rate = P / now.mass - s * (now.P / now.mass), omega - s * spin
    drift, turn_rate = np.where(target.grounded, 0.0, drift), np.where(target.grounded, 0.0, turn_rate)
    s = np.where(target.grounded, even, s)
    free: set[int] = set()
    q, v = np.array(q), np.array(v)
    for (root, own), i, base in zip(roots.items(), places, bases, strict=True):
        j = tree.links[root].v
        q[i : i + 7] = base
        v[j : j + 6] = own.motion(drift, turn_rate) + s * v[j : j + 6]
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
        """The velocity (6,) of the root when the component moves as one body with this velocity of its center of
        mass."""
        return np.concatenate([self.axes(velocity + np.cross(spin, self.arm)), self.axes(spin)])

    def rotate(self, q: Any, by: Any) -> Any:
        """Coordinates (7,) after the component has turned about its center of mass, by a quaternion in its axes."""
        by = np.concatenate([self.axes(by[:3]), by[3:]])
        arm = self.axes(self.arm)
        place = q[:3] + quaternion_rotate(q[3:], quaternion_rotate(by, arm) - arm)
        return np.concatenate([place, quaternion_multiply(q[3:], by)])


def _trees_in(model: Model, part: Component, M: Any, momentum: Any) -> list[TreeMomentum]:
    """The trees of a component; M (nv, nv) is the mass matrix, and `momentum` is M v, by velocity index."""
    result = []
    for root in part.roots:
        j = links_of(model).links[root].v
        # of a free joint, M has [m 1, -h×; h×, I] about the link's origin
        body = M[j, j], np.stack([M[j + 5, j + 1], M[j + 3, j + 2], M[j + 4, j]]), M[j + 3 : j + 6, j + 3 : j + 6]
        push = np.stack([momentum[j + k] for k in range(3)]), np.stack([momentum[j + 3 + k] for k in range(3)])
        result.append(TreeMomentum(None, body, push))
    return result


def _lock_component(poses: list[Pair], part: Component, trees: Sequence[TreeMomentum]) -> LockedBody:
    """A component as one rigid body, from its trees."""
    R, p = poses[part.roots[0]]
    mass, first, I, P, L = np.array(0.0), np.zeros(3), np.zeros((3, 3)), np.zeros(3), np.zeros(3)
    for root, tree in zip(part.roots, trees, strict=True):
        body, push = tree.inertia, tree.momentum
        if root != part.roots[0]:
            across = RotationStep(R.T @ poses[root][0]), ShiftStep(R.T @ (poses[root][1] - p))
            for step in across:
                body, push = step.rigid_to_parent(*body), step.force_to_parent(*push)
        mass, first, I, P, L = mass + body[0], first + body[1], I + body[2], P + push[0], L + push[1]
    c = first / mass
    central = mirror(I - (c @ first) * np.eye(3) + np.outer(c, first))
    return LockedBody(mass, c, inverse_symmetric(central), P, L - np.cross(c, P))


def _tree_dofs(model: Model, root: int) -> list[int]:
    """Velocities of a tree."""
    links, inside = links_of(model).links, {root}
    for i, link in enumerate(links):
        if link.parent in inside:
            inside.add(i)
    return sorted({v for i in inside for v in links[i].dofs})
