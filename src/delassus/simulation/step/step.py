"""One control period of a robot on the ground: `substeps` steps of time in one kernel.

A step h from (q, v), with M̂ = M + diag(h d + h² k) for damping d and stiffness k of joints and servos:

    v_f = v + h M̂⁻¹ (τ - c)                       what the velocity would be without contacts, c at the middle
    G = J M̂⁻¹ Jᵀ,   g = J v_f + what rows are held to
    λ, σ = G λ + g                                 the contact problem, started from the impulses of the step before
    v⁺ = v_f + M̂⁻¹ Jᵀ λ
    q⁺ = q ⊕ (h v⁺ + δ)                            δ takes penetrations back, without any velocity
    q⁺, v⁺ projected                               where loops are closed

A gap may close and not more: J v⁺ + gap/h ≥ 0. A contact that would be passed faster than gravity accelerates in two
steps strikes: it leaves with e times the velocity that it came with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.host.kernel import Floats, Kernel, kernel
from delassus.compiler.tracing.flow.branch import cond
from delassus.compiler.tracing.flow.control import while_loop
from delassus.constrained.elimination.tree_factor import tree_factor
from delassus.constrained.projection.project import project
from delassus.dynamics.forces.rnea import newton_euler
from delassus.dynamics.kinematics.kinematics import world_poses
from delassus.dynamics.mass.factor import forward, substitute
from delassus.dynamics.tree.check import check_inertias
from delassus.dynamics.tree.poses import mirrored
from delassus.model.links import links_of
from delassus.simulation.actuation.actuators import drive
from delassus.simulation.step.contacts import GroundNumbers, all_touches, warm_start
from delassus.simulation.step.marks import Mark
from delassus.simulation.step.rows import StepRows, step_rows
from delassus.simulation.step.solve import solved
from delassus.simulation.step.world import World
from delassus.stepping.scheme.flying import moved, turning

TOLERANCE: Final = 1e-8
"""The residual to which contacts are solved, as a share of the velocities that they have without impulses."""

_SLOP: Final = 1e-9
"""Penetrations [m, rad] beyond are taken back."""

_GIVEN_BACK: Final = 0.2
"""The share of a penetration that a step takes back."""

_FAR: Final = 10.0
"""Gaps that close at more than so many times the velocities of a step count as closing at that: they stay open."""

GROUND_INPUTS: Final = {"friction": "()", "restitution": "()", "normal": "(3)", "height": "()"}


class Given(NamedTuple):
    """What is the same in all steps of a control period."""

    control: Any
    h: Any
    ground: GroundNumbers
    friction: Any
    restitution: Any


class Problem(NamedTuple):
    """The contact problem of a step: J, G, g, its scale of velocities, the free velocity, and how to respond."""

    rows: StepRows
    G: Any
    g: Any
    scale: Any
    free: Any
    response: Callable[[Any], Any]
    clipped: Any


def problem_of(world: World, q: Any, v: Any, given: Given, time: Any) -> Problem:
    """The contact problem of a step of time."""
    model, h = world.model, given.h
    poses = world_poses(links_of(model), q)
    rows = step_rows(world, q, v, poses, given.ground, h, time)
    driven = drive(model, world.actuators, q, v, given.control, h)
    factor = tree_factor(model, q, rows.J, added=driven.added)

    def solve(force: Any) -> Any:
        return substitute(factor.above, factor.U, factor.D, force)

    # Gyroscopic forces at the middle of the step: those of its beginning would spin bodies up. Only they decide where
    # the middle is, since others are mostly held by contacts; what rests has none.
    weightless = model.with_gravity((0.0, 0.0, 0.0))
    middle = v - 0.5 * h * solve(newton_euler(weightless, q, v, turning(model, v), None))
    free = v + h * solve(driven.force - newton_euler(model, q, middle, turning(model, middle), None))
    g, scale = _demanded(world, rows, rows.J @ v, rows.J @ free, given)

    def response(impulse: Any) -> Any:
        return forward(factor.above, factor.U, factor.Y.T @ impulse)  # M̂⁻¹ Jᵀ λ

    return Problem(rows, mirrored(factor.delassus), g, scale, free, response, driven.clipped)


def _demanded(world: World, rows: StepRows, before: Any, after: Any, given: Given) -> tuple[Any, Any]:
    """What rows (m,) have beyond what they must not fall below, and the scale of their velocities."""
    if not world.m:
        return after, np.array(1.0)
    h, loops, slots = given.h, world.mechanism.m, world.slots
    pull = h * float(numpy.linalg.norm(world.model.gravity))
    scale = np.maximum(np.max(np.abs(after)), np.max(np.abs(before))) + pull + 1e-12
    far = _FAR * scale
    g = np.array(after)
    for k in range(slots):
        gap, n = rows.touching.gap[k], 3 * k + 2
        closing = np.minimum(np.maximum(gap, 0.0) / h, far)
        strikes = (before[n] < -2.0 * pull) & (gap + h * after[n] <= 0.0) & (given.restitution > 0.0)
        g[n] = after[n] + np.where(strikes, given.restitution * before[n], closing)
    at = slice(3 * slots, 3 * slots + loops)
    if loops:
        g[at] = after[at] - rows.asked
    ends = slice(at.stop, at.stop + world.ends)
    if world.ends:
        g[ends] = after[ends] + np.minimum(np.maximum(rows.stop_gap, 0.0) / h, far)
    return g, scale


class Moved(NamedTuple):
    """A state after a step, with the impulses (m,) and candidates (slots,) of the contacts, and how the solve ended."""

    q: Any
    v: Any
    impulse: Any
    contact: Any
    time: Any
    residual: Any
    iterations: Any
    many: Any
    unsolved: Any
    clipped: Any


def one_step(world: World, last: Moved, given: Given) -> Moved:
    """A step of time."""
    h, time = given.h, last.time + given.h
    problem = problem_of(world, last.q, last.v, given, time)
    rows, contact = problem.rows, problem.rows.touching
    v, impulse = problem.free, np.zeros(world.m)
    residual, count, unsolved = np.array(0.0), np.array(0.0), np.array(0.0)
    if world.m:
        dry = np.array([bound for _, bound in world.dry]) * h if world.dry else None
        # The solver's tolerance is a share of all free velocities, those of wide gaps among them.
        tolerance = TOLERANCE * problem.scale / np.maximum(np.max(np.abs(problem.g)), problem.scale)
        numbers: dict[str, Any] = {}
        if world.slots:
            numbers["friction"] = given.friction + np.zeros(world.slots)
        if dry is not None:
            numbers |= {"lower": -dry, "upper": dry}
        start = warm_start(world, contact.number, last.contact, last.impulse)
        impulse, residual, count, done = solved(world.layout, problem.G, problem.g, numbers, start, tolerance)
        unsolved = np.where(done, 0.0, 1.0)
        v = problem.free + problem.response(impulse)
    q, v = moved(world.model, last.q, v, h * v + _given_back(world, problem, v, h))
    if world.mechanism.m:
        q, v = project(world.mechanism, q, v, time=time)
    return Moved(
        q,
        v,
        impulse,
        contact.number,
        time,
        residual,
        last.iterations + count,
        np.where(contact.more | rows.more_stops, 1.0, last.many),
        np.maximum(last.unsolved, unsolved),
        last.clipped + problem.clipped,
    )


def _given_back(world: World, problem: Problem, v: Any, h: Any) -> Any:
    """δ (nv,): the motion that takes a share of penetrations back and closes no gap; zero where nothing penetrates."""
    start = 3 * world.slots + world.mechanism.m
    pushing = [*range(2, 3 * world.slots, 3), *range(start, start + world.ends)]
    if not pushing:
        return np.zeros(world.nv)
    gap = np.concatenate([problem.rows.touching.gap, problem.rows.stop_gap])

    def corrected(v: Any) -> Any:
        ahead = gap + h * (problem.rows.J[pushing] @ v)
        wanted = np.where(gap < -_SLOP, -_GIVEN_BACK * gap, -np.maximum(ahead, 0.0))
        G = problem.G[pushing][:, pushing]

        def sweep(carry: Any) -> Any:
            push, made = np.array(carry[0]), carry[1]
            for k in range(len(pushing)):
                own = np.where(G[k, k] > 0.0, G[k, k], 1.0)
                push[k] = np.maximum(push[k] + (wanted[k] - G[k] @ push) / own, 0.0)
            return push, made + 1.0

        push, _ = while_loop(lambda carry: carry[1] < 10.0, sweep, (np.zeros(len(pushing)), np.array(0.0)), 10)
        whole = np.zeros(world.m)
        for k, row in enumerate(pushing):
            whole[row] = push[k]
        return problem.response(whole)

    return cond(np.min(gap) < -_SLOP, corrected, np.zeros(world.nv), v)


def period(
    world: World,
    q: Any,
    v: Any,
    impulse: Any,
    contact: Any,
    time: Any,
    alive: Any,
    control: Any,
    given: Given,
) -> tuple[Any, ...]:
    """All steps of a control period; an item that is not alive, or whose numbers are none, keeps its state."""
    check_inertias(world.model)
    zero, padding = np.array(0.0), (impulse[world.m :], contact[world.slots :])
    control = control[: world.nu]
    first = Moved(q, v, impulse[: world.m], contact[: world.slots], time, zero, zero, zero, zero, zero)
    usable = (alive > 0.5) & ~np.any(np.isnan(control)) if world.nu else alive > 0.5
    given = given._replace(control=np.where(usable, control, 0.0))
    if world.substeps == 1:
        last = one_step(world, first, given)
    else:
        carry = while_loop(
            lambda carry: carry[1] < float(world.substeps),
            lambda carry: (tuple(one_step(world, Moved(*carry[0]), given)), carry[1] + 1.0),
            (tuple(first), zero),
            world.substeps,
        )
        last = Moved(*carry[0])
    good = usable & np.isfinite(np.sum(last.q) + np.sum(last.v) + np.sum(last.impulse))
    q, v, impulse, contact = (np.where(good, new, old) for new, old in zip(last[:4], first[:4], strict=True))
    impulse, contact = (np.concatenate(pair) for pair in zip((impulse, contact), padding, strict=True))
    mark = (
        np.where(good, 0.0, float(Mark.FROZEN))
        + float(Mark.MANY_CONTACTS) * last.many
        + float(Mark.UNSOLVED) * last.unsolved
        + np.where(last.clipped > 0.0, float(Mark.CLIPPED), 0.0)
    )
    mark = np.where(good, mark, float(Mark.FROZEN))
    return q, v, impulse, contact, last.residual, last.iterations, mark


SIGNATURE: Final = "(nq),(nv),(rows),(places),(),(),{control}()->(nq),(nv),(rows),(places),(),(),()"
"""Without rows, contacts or controls their arrays have one element, which means nothing: kernels need some."""
SHARED: Final = {"heights": "(field_rows,field_columns)"}


@kernel(SIGNATURE.format(control="(controls),"), inputs=GROUND_INPUTS, shared=SHARED)
def simulate(
    world: World,
    q: Any,
    v: Any,
    impulse: Any,
    contact: Any,
    time: Any,
    alive: Any,
    control: Any,
    time_step: Any,
    *,
    friction: Any = 0.7,
    restitution: Any = 0.0,
    normal: Any = (0.0, 0.0, 1.0),
    height: Any = 0.0,
    heights: Any = None,
) -> tuple[Floats, ...]:
    """q, v, impulses and contacts after a period; residual [m/s], iterations, `Mark`."""
    given = Given(control, time_step, GroundNumbers(np.array(normal), height, heights), friction, restitution)
    return period(world, q, v, impulse, contact, time, alive, control, given)


def simulate_with(policy: Callable[[Any, Any, Any], Any]) -> Kernel[..., Any]:
    """The same kernel with a traced function of time, q and v in place of the controls."""

    @kernel(SIGNATURE.format(control=""), inputs=GROUND_INPUTS, shared=SHARED)
    def simulate_policy(
        world: World,
        q: Any,
        v: Any,
        impulse: Any,
        contact: Any,
        time: Any,
        alive: Any,
        time_step: Any,
        *,
        friction: Any = 0.7,
        restitution: Any = 0.0,
        normal: Any = (0.0, 0.0, 1.0),
        height: Any = 0.0,
        heights: Any = None,
    ) -> tuple[Floats, ...]:
        """As `simulate`."""
        given = Given(None, time_step, GroundNumbers(np.array(normal), height, heights), friction, restitution)
        control = np.array(policy(time, q, v))
        return period(world, q, v, impulse, contact, time, alive, control, given)

    return simulate_policy


@kernel("(nq),(nv),(controls),(),()->(m,m),(m)", inputs=GROUND_INPUTS, shared=SHARED)
def assemble_step(
    world: World,
    q: Any,
    v: Any,
    control: Any,
    time: Any,
    time_step: Any,
    *,
    friction: Any = 0.7,
    restitution: Any = 0.0,
    normal: Any = (0.0, 0.0, 1.0),
    height: Any = 0.0,
    heights: Any = None,
) -> tuple[Floats, Floats]:
    """G (m, m) and g (m,) of the contact problem of the next step."""
    ground = GroundNumbers(np.array(normal), height, heights)
    given = Given(control[: world.nu], time_step, ground, friction, restitution)
    problem = problem_of(world, q, v, given, time + time_step)
    return problem.G, problem.g


@kernel("(nq)->(candidates),(candidates,3),(candidates,3)", inputs={"normal": "(3)", "height": "()"}, shared=SHARED)
def candidate_geometry(
    world: World, q: Any, *, normal: Any = (0.0, 0.0, 1.0), height: Any = 0.0, heights: Any = None
) -> tuple[Floats, Floats, Floats]:
    """Gaps (candidates,) [m], points and normals (candidates, 3) in the world."""
    tree = links_of(world.model)
    return all_touches(world, tree, world_poses(tree, q), GroundNumbers(np.array(normal), height, heights))
