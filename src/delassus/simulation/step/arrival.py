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
from delassus.contact.solvers.elimination import solve_without_pivots
from delassus.model.links import links_of
from delassus.simulation.step.closing import closed, loop_factors
from delassus.simulation.step.problem import Moved, Problem
from delassus.simulation.step.rows import SLOP
from delassus.simulation.step.world import World
from delassus.stepping.scheme.components import Component, turning_dofs
from delassus.stepping.scheme.energy import Allowance, Kick, allowance_of, contact_excess, restore
from delassus.stepping.scheme.flying import integrate_velocity

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


def arrive(world: World, problem: Problem, last: Moved, v: Any, impulse: Any, h: Any) -> tuple[Any, Any, Pace]:
    """Configuration (nq,) and velocity (nv,) at the end of a step, and how fast it was.

    v (nv,) and impulse (m,) are those that solve the contact problem.
    """
    shift = _given_back(world, problem, v, h)
    kicked = _kicked(world, problem, last, impulse)
    allowances = _allowances(world, problem, last, Kick(last.v, v, h * problem.products, kicked), impulse, shift, h)
    for part, allowance in allowances:
        dofs = list(part.dofs)
        shift[dofs] = shift[dofs] + np.where(allowance.flies, 0.5 * h, 0.0) * (kicked - v)[dofs]
    turning = turning_dofs(world.model, problem.parts)
    angle = h * np.max(np.abs(v[turning])) if turning else np.array(0.0)
    q, v, substeps = integrate_velocity(world.model, problem.parts, last.q, v, h, h * v + shift)
    if world.mechanism.m:
        q, v = closed(world, problem, q, v, last.time + h)
    for part, allowance in allowances:
        q, v = restore(world.model, q, v, part, allowance)
    return q, v, Pace(angle, substeps)


def _kicked(world: World, problem: Problem, last: Moved, impulse: Any) -> Any:
    """The velocity (nv,) that forces and dry friction would give without velocity products, loops kept closed."""
    change, loops = problem.kick, _loop_rows(world)
    if world.dry:
        dry = np.zeros(world.m)
        dry[-len(world.dry) :] = impulse[-len(world.dry) :]
        change = change + problem.response(dry)
    if world.mechanism.m:
        holding = np.zeros(world.m)
        holding[loops] = -loop_factors(world, problem.S).solve(problem.rows.velocities(change)[loops])
        change = change + problem.response(holding)
    return last.v + change


def _loop_rows(world: World) -> slice:
    """The rows of closed loops."""
    return slice(world.in_contact, world.in_contact + world.mechanism.m)


def _allowances(
    world: World, problem: Problem, last: Moved, kick: Kick, impulse: Any, shift: Any, h: Any
) -> list[tuple[Component, Allowance]]:
    """The momentum and energy that each articulated part may have after a step with impulses of rows (m,).

    Contacts add no energy, nor does the shift (nv,) that takes penetrations back: what it lifts is paid for.
    """
    if all(part.rigid or part.driven for part in problem.parts):
        return []
    contacts, rubbing = np.array(impulse), np.array(impulse)
    rubbing[_loop_rows(world)] = 0.0
    contacts[_loop_rows(world)] = 0.0
    contacts[world.m - len(world.dry) :] = 0.0

    def joint_impulses(impulse: Any) -> Any:
        return problem.rows.J.T @ problem.rows.motions(impulse) if world.m else np.zeros(world.nv)

    by_contacts, by_friction = joint_impulses(contacts), joint_impulses(rubbing)
    excess, result = contact_excess(problem.parts, by_friction, kick.before + kick.after), []
    for part, gained in zip(problem.parts, excess, strict=True):
        if part.rigid or part.driven:
            continue
        lifted = -(problem.weight[list(part.dofs)] @ shift[list(part.dofs)])
        flies = np.all(by_contacts[list(part.dofs)] == 0.0)
        allowance = allowance_of(
            world.model, last.q, problem.inertia, kick, part, gained + np.maximum(lifted, 0.0), flies
        )
        grounded = _is_grounded(world, problem, part, contacts)
        result.append((part, allowance._replace(angle=h * allowance.angle, grounded=grounded)))
    return result


def _is_grounded(world: World, problem: Problem, part: Component, impulse: Any) -> Any:
    """Whether a part is pushed by the world itself in the contacts that are solved for."""
    tree, number = links_of(world.model), problem.rows.touching.number
    inside = [float(_root(tree, world, k) in part.roots) for k in range(world.on_ground)]
    if not world.slots or not any(inside):
        return np.array(False)
    pushed = impulse[2 : world.in_contact : world.contact_rows] > 0.0
    if not world.collisions and all(inside):
        return np.any(pushed)
    ground = numpy.array([*inside, *[0.0] * (world.candidates - world.on_ground)])
    return np.any(pushed & (np.take(ground, number) > 0.5))


def _root(tree: Any, world: World, candidate: int) -> int:
    """The link on the world that carries a candidate for contact with the ground."""
    geometry = world.shapes[world.owners[candidate]].geometry
    link = tree.place(geometry.joint, geometry.placement)[0]
    return tree.path(link)[0] if link >= 0 else link


def _given_back(world: World, problem: Problem, v: Any, h: Any) -> Any:
    """δ (nv,): the motion that takes a share of penetrations back and closes no gap; zero where nothing penetrates."""
    pushing = world.pushing
    if not pushing:
        return np.zeros(world.nv)
    gap = np.concatenate([problem.rows.touching.gap, problem.rows.stop_gap])

    def corrected(v: Any) -> Any:
        ahead = gap + h * problem.rows.velocities(v)[pushing]
        most = np.concatenate([np.full(world.slots, _SLOWLY * h), np.full(world.ends, np.inf)])
        wanted = np.where(gap < -SLOP, np.minimum(-_GIVEN_BACK * gap, most), -np.maximum(ahead, 0.0))
        all_rows = problem.rows.response(problem.S)
        G, held = _beside_loops(world, all_rows, pushing)
        own = np.array([G[k, k] for k in range(len(pushing))])
        for k, n in enumerate(world.normals):
            own[k] = own[k] + _LEAN * np.maximum(all_rows[n - 2, n - 2], all_rows[n - 1, n - 1])
        own = np.where(own > 0.0, own, 1.0)

        def sweep(carry: Any) -> Any:
            push, made = np.array(carry[0]), carry[1]
            for k in range(len(pushing)):
                push[k] = np.maximum((wanted[k] - G[k] @ push + G[k, k] * push[k]) / own[k], 0.0)
            return push, made + 1.0

        push, _ = while_loop(lambda carry: carry[1] < 10.0, sweep, (np.zeros(len(pushing)), np.array(0.0)), 10)
        whole = np.zeros(world.m)
        for k, row in enumerate(pushing):
            whole[row] = push[k]
        whole[world.in_contact : world.in_contact + world.mechanism.m] = held @ push
        return problem.response(whole)

    return cond(np.min(gap) < -SLOP, corrected, np.zeros(world.nv), v)


def _beside_loops(world: World, G: Any, rows: list[int]) -> tuple[Any, Any]:
    """How some rows respond to each other while loops stay closed, and what those need per impulse of each row."""
    loops = list(range(world.in_contact, world.in_contact + world.mechanism.m))
    if not loops:
        return G[rows][:, rows], np.zeros((0, len(rows)))
    own = np.array([G[k, k] for k in loops])
    across = G[loops][:, rows]
    held = -solve_without_pivots(G[loops][:, loops] + np.diag(np.where(own > 0.0, _REDUNDANT * own, 1.0)), across)
    return G[rows][:, rows] + across.T @ held, held
