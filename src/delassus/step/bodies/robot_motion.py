"""Robots beside free bodies, at the end of a step: as `stages.integrate` and `stages.close_loops`, from sums over
contacts that loops have formed."""

from __future__ import annotations

from typing import Any, NamedTuple

import delassus.numpy as np
from delassus.step.bodies.robot_dynamics import Robots
from delassus.step.scheme.components import turning_dofs
from delassus.step.scheme.energy import Kick
from delassus.step.scheme.manifold_step import integrate_velocity
from delassus.step.scheme.restoration import Allowances, PartContact, is_articulated, part_allowances
from delassus.step.stages.close_loops import close_loops


class RobotImpulses(NamedTuple):
    """Impulses on robots in a step.

    Attributes:
        pushing: (nv,) generalized impulses of contacts, joint limits and one-sided constraints.
        friction: (nv,) those of joint friction.
        grounded: (links,) the impulses that the world exerts on each link [N·s].
        between: () the sum of normal impulses of all contacts of robots [N·s].
        body_work: (bodies + 1,) the work [J] of contacts of robots on free bodies.
    """

    pushing: Any
    friction: Any
    grounded: Any
    between: Any
    body_work: Any


class RobotMotion(NamedTuple):
    """The end of a step: configuration (nq,), velocity (nv,), the largest rotation of a joint [rad], and the largest
    number of substeps of a free part."""

    q: Any
    v: Any
    angle: Any
    substeps: Any


def move_robots(robots: Robots, v: Any, products: Any, impulses: RobotImpulses, shift: Any) -> RobotMotion:
    """Robots after a step.

    Args:
        robots: The robots at its beginning.
        v: (nv,) the velocity after all impulses.
        products: (nv,) h c, the impulse of velocity products.
        impulses: Those of the step.
        shift: (nv,) the displacement that corrects penetrations.
    """
    scene, state, h, parts = robots.scene, robots.state, robots.time_step, robots.parts
    kicked = state.v + robots.kick + robots.W @ impulses.friction
    kick = Kick(state.v, v, products, kicked)
    allowances = _allowances(robots, kick, impulses, shift)
    for part, allowance in allowances:
        dofs = list(part.dofs)
        shift = np.array(shift)
        shift[dofs] = shift[dofs] + np.where(allowance.flies, 0.5 * h, 0.0) * (kicked - v)[dofs]
    turning = turning_dofs(scene.model, parts)
    angle = h * np.max(np.abs(v[turning])) if turning else np.array(0.0)
    q, v, substeps = integrate_velocity(scene.model, parts, state.q, v, h, h * v + shift)
    q, v = close_loops(scene, robots, q, v, allowances, state.time + h)  # type: ignore[arg-type]
    return RobotMotion(q, v, angle, substeps)


def _allowances(robots: Robots, kick: Kick, impulses: RobotImpulses, shift: Any) -> Allowances:
    """The allowed momentum and energy of each articulated part, see `stages.integrate`.

    Contacts may not add energy to all bodies and robots together; parts of robots that gain share the excess.
    """
    parts, weight = robots.parts, robots.weight
    articulated = [part for part in parts if is_articulated(part)]
    if not articulated:
        return []
    rubbing, around = impulses.pushing + impulses.friction, kick.before + kick.after
    work = [0.5 * (rubbing[list(part.dofs)] @ around[list(part.dofs)]) for part in parts]
    gained = sum(np.maximum(one, 0.0) for one in work) + np.sum(np.maximum(impulses.body_work, 0.0))
    total = np.maximum(sum(work) + np.sum(impulses.body_work), 0.0)
    share = np.where(gained > 0.0, total / np.where(gained > 0.0, gained, 1.0), 0.0)
    tree, touched = robots.kinematics.tree, []
    for part in articulated:
        dofs = list(part.dofs)
        lifted = -(weight[dofs] @ shift[dofs])
        gain = share * np.maximum(work[parts.index(part)], 0.0) + np.maximum(lifted, 0.0)
        links = [k for k in range(len(tree.links)) if tree.path(k)[0] in part.roots]
        grounded = np.any(impulses.grounded[links] > 0.0)
        alone = ~grounded & (impulses.between <= 0.0)
        touched.append(PartContact(gain, grounded, alone, np.all(impulses.pushing[dofs] == 0.0)))
    state = robots.state
    return part_allowances(robots.scene.model, state.q, robots.inertia, kick, parts, touched, robots.time_step)
