"""The end of a step: where its velocity leads, penetrations taken back, loops closed, energy and momentum kept.

    q⁺ = q ⊕ (h v⁺ + δ)                            δ takes penetrations back, without any velocity
    q⁺, v⁺ projected                               where loops are closed
    v⁺ restored                                    to the energy and momentum of articulated robots, see `scheme.energy`

While a robot flies, it moves with the mean of the velocities that velocity products change, which is of second order;
gravity and motors act at once, as the step begins. In contact, J v⁺ is what contacts count on.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.branch import cond
from delassus.compiler.tracing.flow.control import while_loop
from delassus.linalg.lu import solve_without_pivots
from delassus.model.links import links_of
from delassus.step.scene import Scene
from delassus.step.scheme.components import Component, turning_dofs
from delassus.step.scheme.energy import Allowance, Kick, allowance_of, contact_excess, restore
from delassus.step.scheme.flying import integrate_velocity
from delassus.step.stages.closing import closed, loop_factors
from delassus.step.stages.problem import Moved, Problem
from delassus.step.stages.rows import SLOP

_GIVEN_BACK: Final = 0.2
"""The share of a penetration that a step takes back."""

_SLOWLY: Final = 1.0
"""How fast a contact is taken out of the ground at most [m/s]: joints are turned, and δ is that of a small motion."""

_LEAN: Final = 1e-2
"""Added to how a contact gives way along its normal, as a share of how it does along its tangents: joints that hardly
move it out of the ground, or not at all, would be moved far."""

_REDUNDANT: Final = 1e-9
"""Added to how rows of loops give way, as a share of it: some may be redundant."""


class Pace(NamedTuple):
    """The largest angle [rad] that a joint turns by in a step, and the most substeps that the flight of a free body
    would need."""

    angle: Any
    substeps: Any


def arrive(scene: Scene, problem: Problem, last: Moved, v: Any, impulse: Any, h: Any) -> tuple[Any, Any, Pace]:
    """Configuration (nq,) and velocity (nv,) at the end of a step, and how fast it was.

    v (nv,) and impulse (m,) are those that solve the contact problem.
    """
    shift = _given_back(scene, problem, v, h)
    kicked = _kicked(scene, problem, last, impulse)
    allowances = _allowances(scene, problem, last, Kick(last.v, v, impulse, h * problem.products, kicked), shift, h)
    for part, allowance in allowances:
        dofs = list(part.dofs)
        shift[dofs] = shift[dofs] + np.where(allowance.flies, 0.5 * h, 0.0) * (kicked - v)[dofs]
    turning = turning_dofs(scene.model, problem.parts)
    angle = h * np.max(np.abs(v[turning])) if turning else np.array(0.0)
    q, v, substeps = integrate_velocity(scene.model, problem.parts, last.q, v, h, h * v + shift)
    if scene.mechanism.m:
        q, v = closed(scene, problem, q, v, last.time + h)
    for part, allowance in allowances:
        q, v = restore(scene.model, q, v, part, allowance)
    return q, v, Pace(angle, substeps)


def _kicked(scene: Scene, problem: Problem, last: Moved, impulse: Any) -> Any:
    """The velocity (nv,) that forces and dry friction would give without velocity products, loops kept closed."""
    change, loops = problem.kick, _loop_rows(scene)
    if scene.dry:
        dry = np.zeros(scene.m)
        dry[-len(scene.dry) :] = impulse[-len(scene.dry) :]
        change = change + problem.response(dry)
    if scene.mechanism.m:
        holding = np.zeros(scene.m)
        holding[loops] = -loop_factors(scene, problem.S).solve(problem.rows.velocities(change)[loops])
        change = change + problem.response(holding)
    return last.v + change


def _loop_rows(scene: Scene) -> slice:
    """The rows of closed loops."""
    return slice(scene.contact_end, scene.contact_end + scene.mechanism.m)


def _allowances(
    scene: Scene, problem: Problem, last: Moved, kick: Kick, shift: Any, h: Any
) -> list[tuple[Component, Allowance]]:
    """The momentum and energy that each articulated part may have after a step, whose `kick` has impulses of rows (m,).

    Contacts add no energy, nor does the shift (nv,) that takes penetrations back: what it lifts is paid for.
    """
    if all(part.rigid or part.driven for part in problem.parts):
        return []
    v, contacts, rubbing = kick.after, np.array(kick.impulse), np.array(kick.impulse)
    rubbing[_loop_rows(scene)] = 0.0
    contacts[_loop_rows(scene)] = 0.0
    contacts[scene.m - len(scene.dry) :] = 0.0

    def joint_impulses(impulse: Any) -> Any:
        return problem.rows.J.T @ problem.rows.motions(impulse) if scene.m else np.zeros(scene.nv)

    by_contacts, by_friction = joint_impulses(contacts), joint_impulses(rubbing)
    every = h * problem.force - problem.driven.added * (v - last.v) + joint_impulses(kick.impulse)
    kick = kick._replace(impulse=every)
    weight, result = problem.force - problem.driven.force, []
    excess = contact_excess(problem.parts, by_friction, last.v + v)
    for part, gained in zip(problem.parts, excess, strict=True):
        if part.rigid or part.driven:
            continue
        lifted = -(weight[list(part.dofs)] @ shift[list(part.dofs)])
        flies = np.all(by_contacts[list(part.dofs)] == 0.0)
        allowance = allowance_of(
            scene.model, last.q, problem.inertia, kick, part, gained + np.maximum(lifted, 0.0), flies
        )
        grounded = _is_grounded(scene, problem, part, contacts)
        result.append((part, allowance._replace(angle=h * allowance.angle, grounded=grounded)))
    return result


def _is_grounded(scene: Scene, problem: Problem, part: Component, impulse: Any) -> Any:
    """Whether a part is pushed by the scene itself in the contacts that are solved for."""
    tree, number = links_of(scene.model), problem.rows.touching.number
    inside = [float(_root(tree, scene, k) in part.roots) for k in range(scene.ground_candidates)]
    if not scene.slots or not any(inside):
        return np.array(False)
    pushed = impulse[2 : scene.contact_end : scene.contact_rows] > 0.0
    if not scene.collisions and all(inside):
        return np.any(pushed)
    ground = numpy.array([*inside, *[0.0] * (scene.candidates - scene.ground_candidates)])
    return np.any(pushed & (np.take(ground, number) > 0.5))


def _root(tree: Any, scene: Scene, candidate: int) -> int:
    """The link on the scene that carries a candidate for contact with the ground."""
    geometry = scene.shapes[scene.owners[candidate]].geometry
    link = tree.place(geometry.joint, geometry.placement)[0]
    return tree.path(link)[0] if link >= 0 else link


def _given_back(scene: Scene, problem: Problem, v: Any, h: Any) -> Any:
    """δ (nv,): the motion that takes a share of penetrations back and closes no gap; zero where nothing penetrates."""
    pushing = scene.unilateral_rows
    if not pushing:
        return np.zeros(scene.nv)
    gap = np.concatenate([problem.rows.touching.gap, problem.rows.stop_gap])

    def corrected(v: Any) -> Any:
        ahead = gap + h * problem.rows.velocities(v)[pushing]
        most = np.concatenate([np.full(scene.slots, _SLOWLY * h), np.full(scene.limit_slots, np.inf)])
        wanted = np.where(gap < -SLOP, np.minimum(-_GIVEN_BACK * gap, most), -np.maximum(ahead, 0.0))
        all_rows = problem.rows.response(problem.S)
        G, held = _beside_loops(scene, all_rows, pushing)
        own = np.array([G[k, k] for k in range(len(pushing))])
        for k, n in enumerate(scene.normals):
            own[k] = own[k] + _LEAN * np.maximum(all_rows[n - 2, n - 2], all_rows[n - 1, n - 1])
        own = np.where(own > 0.0, own, 1.0)

        def sweep(carry: Any) -> Any:
            push, made = np.array(carry[0]), carry[1]
            for k in range(len(pushing)):
                push[k] = np.maximum((wanted[k] - G[k] @ push + G[k, k] * push[k]) / own[k], 0.0)
            return push, made + 1.0

        push, _ = while_loop(lambda carry: carry[1] < 10.0, sweep, (np.zeros(len(pushing)), np.array(0.0)), 10)
        whole = np.zeros(scene.m)
        for k, row in enumerate(pushing):
            whole[row] = push[k]
        whole[scene.contact_end : scene.contact_end + scene.mechanism.m] = held @ push
        return problem.response(whole)

    return cond(np.min(gap) < -SLOP, corrected, np.zeros(scene.nv), v)


def _beside_loops(scene: Scene, G: Any, rows: list[int]) -> tuple[Any, Any]:
    """How some rows respond to each other while loops stay closed, and what those need per impulse of each row."""
    loops = list(range(scene.contact_end, scene.contact_end + scene.mechanism.m))
    if not loops:
        return G[rows][:, rows], np.zeros((0, len(rows)))
    own = np.array([G[k, k] for k in loops])
    across = G[loops][:, rows]
    held = -solve_without_pivots(G[loops][:, loops] + np.diag(np.where(own > 0.0, _REDUNDANT * own, 1.0)), across)
    return G[rows][:, rows] + across.T @ held, held
