"""The step of the compliant scheme, compiled: one system for springs, dampers, constraints, contacts and impacts.

    W v⁺ = c + Jᵀ λ,      J v⁺ + R λ + b = 0  (or complementary),      q⁺ = q ⊕ h ((1-β) v + β v⁺),

W = M + h α D + h² α β K and c = W v + h (τ - bias + f - α h K v) as in `acting`, R and b as in `scheme`. Springs and
dampers of joints, and servos, are in W at no cost; rows are in its Schur complement. Its parts inline into other
kernels.

Reference: M. Tournier, Compliant reference (2014).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.host.kernel import kernel
from delassus.constrained.projection.project import project
from delassus.constrained.solvers.status import Status
from delassus.constraints.basis.some_rows import SomeRows
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.contact.cones.parameters import ContactParameters
from delassus.contact.solvers.sequential_impulses import RowsOnVelocities
from delassus.dynamics.kinematics.manifold import integrate
from delassus.model.model import Model
from delassus.step.compliant.acting import Acting, Servo
from delassus.step.compliant.blows import struck
from delassus.step.compliant.forming import formed
from delassus.step.compliant.inputs import FORMED, INPUTS, RowSprings, Scheme
from delassus.step.compliant.response import Driven, Response, respond
from delassus.step.compliant.settling import settle
from delassus.step.compliant.solve import Cones, Solved, agreeing, judged, solve_rows
from delassus.step.compliant.system import solve_system
from delassus.step.compliant.values import Numbers, Recovery, State, Values, correction, dynamics
from delassus.step.impacts.dissipation import solve_without_gain
from delassus.step.impacts.strikes import mean_velocity
from delassus.step.laws.inputs import ContactPlanes, SolverInputs
from delassus.step.scene import Scene
from delassus.step.scheme.blend import Blend
from delassus.step.scheme.components import components, undriven
from delassus.step.scheme.flying import fly_all, integrate_velocity, without_flight

_FAR: Final = 100.0
"""Gaps count as at most so many times the largest error in the correction phase."""


class Advanced(NamedTuple):
    """A step: q⁺, v⁺, impulses (m,), what rows leave (m,), gaps as it begins, iterations, the number of a `Status`, the
    share of restitution that added no energy, and the velocity (nv,) that solves the system of the step."""

    q: Any
    v: Any
    impulse: Any
    residual: Any
    gap: Any
    iterations: Any
    status: Any
    restitution_share: Any
    system_velocity: Any


@kernel("(nq),(nv),(nv),()->(nq),(nv),(m),(m),(points),(),(),(),(nv)", inputs=INPUTS, result=Advanced)
def compliant_kernel(
    scene: Scene,
    q: Any,
    v: Any,
    tau: Any,
    time_step: Any,
    *,
    scheme: Scheme,
    springs: RowSprings,
    servo: Servo,
    driven_velocity: Any = None,
    contact: ContactParameters,
    solver: SolverInputs,
    planes: ContactPlanes,
    time: Any = None,
    elastic: tuple[int, ...] = (),
    driven: tuple[int, ...] = (),
    coupled: tuple[tuple[int, int], ...] = (),
    stabilization: str = "none",
    midpoint: bool = False,
    impacts: str = "newton",
    method: str = "auto",
) -> Advanced:
    """A step of the compliant scheme, without checks; with `outputs=` it can be specialized whatever rows there are.

    Args:
        scene: What `compliant_step` has compiled: `step.scene`.
        q: Configurations (…, nq) [rad, m].
        v: Velocities (…, nv) [rad/s, m/s].
        tau: Generalised forces (…, nv) [N·m, N].
        time_step: (…) h [s].
        scheme: α and β (…).
        springs: Of all rows of the scene, contacts first; normals of contacts have their compliance.
        servo: Stiffness (…, nv), damping (…, nv) and target (…, nq).
        driven_velocity: (…, nv) of driven joints.
        contact: Friction, torsional and rolling friction, restitution.
        solver: Where it starts, and where it ends.
        planes: What contacts touch.
        time: (…) [s].
        elastic: The elastic rows, by their numbers.
        driven: The driven velocities, by their numbers.
        coupled: The first row, and the one after the last, of constraints with a matrix.
        stabilization, midpoint, impacts, method: As for `compliant_step`.
    """
    restitution, blend, given = contact.restitution, Blend(time_step, *scheme), Driven(driven, driven_velocity)
    numbers = Numbers(springs.compliance, springs.damping, restitution, springs.compliance_matrix, coupled)
    mechanism, later = scene.on_planes(*planes), None if time is None else time + time_step
    acting = Acting.of(mechanism, q, v, tau, blend, servo, springs.geometric, time)
    cones = Cones(contact.friction, contact.torsional, contact.rolling, *solver)
    bounds = np.array(scene.friction_bounds) * blend.h if scene.friction_bounds else None
    straight = not midpoint  # the middle sees axes turn
    parts = undriven(components(scene.mechanism, q), driven)

    def made(state: State, v: Any) -> VelocityStep:
        """The step from velocities v (nv,), with the inertias and rows of a state."""
        response = respond(state.motions, state.rows, v, acting, blend.h, given, straight, parts)
        if not scene.m:
            return VelocityStep(response, response.free, None, None, None, np.array(1.0))
        G, freely, free = response.delassus(), state.moving(response.free), response.free
        recovery = Recovery(0.0 if stabilization in ("pre", "post") else 1.0)
        reflects = impacts == "reflections" and restitution is not None
        blow = None
        if reflects:
            bare = response
            if acting.added is not None or acting.more is not None:
                pushed = Acting(None, None, acting.push)
                bare = respond(state.motions, state.rows, v, pushed, blend.h, given, straight, parts)
            blow = struck(state, bare, G if bare is response else bare.delassus(), blend, freely, restitution)
            free, jump = free + blow.change, state.moving(blow.change)
            state, freely = state._replace(rate=state.rate + jump), freely + jump
        values = dynamics(state, blend, elastic, numbers, recovery, None if reflects else freely)
        A = values.coupled_with(G)
        known = state.known(elastic, blend.h, free)

        def solve(b: Any) -> Solved:
            if method not in FORMED:
                return solve_rows(scene, A, freely + b, values.compliance, known, cones, bounds, method)
            rows = agreeing(scene, A, freely + b, values.compliance, known)
            asked = values._replace(value=rows.g - freely, compliance=rows.R)
            system = formed(state, v, acting, blend, asked, straight, parts).driven(given.dofs, given.velocity)
            if blow is not None:
                system = system._replace(c=system.c + system.W @ blow.change)
            layout = RowsOnVelocities(scene.layout.cones, scene.nv)
            found = Solved(*solve_system(layout, system, cones, bounds, method)[1:])
            contradict = np.array(False) if rows.contradict is None else rows.contradict
            return judged(scene, A, freely + b, values.compliance, cones, bounds, found, contradict)

        share = np.array(1.0)
        if values.strikes is None:
            solved = solve(values.value)
        else:
            u = state.rate + (values.strikes.share + blend.beta - 0.5) * (freely - state.rate)  # as contacts strike
            nothing = Solved(np.zeros(scene.m), np.zeros(scene.m), np.array(0.0), np.array(0.0))
            impact, plastic = values.strikes.any, values.plastic
            solved, share = solve_without_gain(
                lambda b, _: solve(b), lambda x: G @ x, u, impact, values.value, plastic, nothing
            )
        after = free + response.apply(solved.impulse)
        if blow is not None:
            values = values._replace(strikes=blow.strikes)
            status = np.where(blow.status != float(Status.CONVERGED), blow.status, solved.status)
            solved = solved._replace(impulse=solved.impulse + blow.impulse, status=status)
        return VelocityStep(response, after, A, values, solved, share)

    def correcting(state: State, response: Response, G: Any, R: Any) -> tuple[Any, Any]:
        """u (nv,) of the correction phase, and how it ended: W u = Jᵀ μ, J u + R μ + b = 0, without friction."""
        b = correction(state, blend, elastic, numbers)
        pushing = [*scene.normals, *scene.stop_rows]
        if pushing:  # rows that are farther off than anything is to be moved would make the tolerance theirs
            violated = np.array(b)
            violated[pushing] = np.minimum(b[pushing], 0.0)
            b[pushing] = np.minimum(b[pushing], _FAR * np.max(np.abs(violated)))
        nothing = None if bounds is None else 0.0 * bounds
        known = state.known(elastic, blend.h, state.place.v, b)
        solved = solve_rows(scene, G, b, R, known, cones.frictionless, nothing)
        return response.apply(solved.impulse), solved.status

    def reaching(q: Any, after: Any, way: Any) -> tuple[Any, Any]:
        """Where velocities (nv,) lead, and the velocity after in the axes that there are then."""
        if not straight:
            return integrate(mechanism.model, q, blend.h * way), after
        reached, seen, _ = integrate_velocity(mechanism.model, parts, q, after, blend.h, blend.h * way)
        for k in driven:
            seen[k] = driven_velocity[k]
        return reached, seen

    def shifted(q: Any, v: Any, u: Any) -> tuple[Any, Any]:
        """Configuration and velocity after a displacement h u (nv,) that takes no time."""
        if not straight:
            return integrate(mechanism.model, q, blend.h * u), v
        reached, seen, _ = integrate_velocity(mechanism.model, (), q, v, 0.0, blend.h * u)
        return reached, seen

    state = State.of(scene, mechanism, q, v, time)
    step, before = made(state, v), v
    if midpoint:
        middle = 0.5 * (v + step.after)
        halfway = integrate(mechanism.model, q, 0.5 * blend.h * middle)
        halfway, before = fly_all(mechanism.model, parts, (q, v), 0.5 * blend.h, (halfway, v))
        state = state.seen_from(halfway, without_flight(parts, middle), before)
        step = made(state, before)
    after, way, corrected = step.after, blend.velocity(before, step.after), float(Status.CONVERGED)
    if step.values is not None and step.values.strikes is not None:
        way = mean_velocity(step.values.strikes, blend, before, step.response.free - before, after)
    if step.values is not None and stabilization == "pre":
        u, corrected = correcting(state, step.response, step.G, step.values.compliance)
        way = way + u
    reached, end = reaching(q, after, way)
    if midpoint:  # free bodies fly to the middle, are kicked there, and fly on
        shift = blend.h * (way - 0.5 * (before + after))
        reached, end = fly_all(mechanism.model, parts, (halfway, after), 0.5 * blend.h, (reached, end), shift)
    after = end
    if step.values is not None and stabilization == "post":
        there = State.of(scene, mechanism, reached, after, later)
        again = respond(there.motions, there.rows, after, acting, blend.h, given)
        A = step.values.coupled_with(again.delassus())
        u, corrected = correcting(there, again, A, step.values.compliance)
        reached, after = shifted(reached, after, u)
    if stabilization == "project":
        rigid = _rigid(scene, elastic)
        if rigid.m:
            reached, after = project(rigid, reached, after, locked=_joints_of(rigid.model, driven), time=later)
    impulse, ends = None if step.solved is None else step.solved.impulse, (reached, after)
    soft = numbers.compliance is not None  # contacts give back what they have stored
    velocities = (v, step.response.free, step.after)
    reached, after = settle(state, parts, velocities, acting, impulse, blend.h, ends, soft)
    for deciding in (*scheme, restitution):
        if deciding is not None and not isinstance(deciding, float):  # what is compared or not used would be lost
            after = np.where(np.isfinite(np.sum(deciding)), after, np.nan)
    return _pack_result(scene, (reached, after), step, corrected, state.gap)


class VelocityStep(NamedTuple):
    """A step of velocities: how they answer, the velocity after (nv,), J W⁻¹ Jᵀ (with what R has besides its diagonal),
    R and b, the impulses, and the share of restitution that added no energy."""

    response: Response
    after: Any
    G: Any
    values: Values | None
    solved: Solved | None
    share: Any


def _rigid(scene: Scene, elastic: tuple[int, ...]) -> Mechanism:
    """The robot with its kinematic rows alone."""
    own, start, kept = scene.mechanism, scene.bilateral.start, []
    for constraint, at in zip(own.constraints, own.row_ranges(), strict=True):
        count = at.stop - at.start
        rigid = tuple(k for k in range(count) if start + at.start + k not in elastic)
        kept += [SomeRows.within(constraint, rigid, count)] if rigid else []
    return Mechanism(own.model, tuple(kept), model_constraints=False)


def _joints_of(model: Model, dofs: tuple[int, ...]) -> tuple[str, ...]:
    """The joints all of whose velocities are among some, by their numbers."""
    joints = zip(model.joints, model.v_starts, strict=True)
    return tuple(joint.name for joint, j in joints if dofs and set(range(j, j + joint.kind.nv)) <= set(dofs))


def _pack_result(scene: Scene, state: tuple[Any, Any], step: VelocityStep, corrected: Any, gap: Any) -> Advanced:
    """A step to a configuration and a velocity."""
    (q, v), solved = state, step.solved
    finite = np.isfinite(np.sum(q) + np.sum(v))
    if solved is None:
        status = np.where(finite, float(Status.CONVERGED), float(Status.NOT_FINITE))
        none = np.zeros(0)
        return Advanced(q, v, none, none, np.zeros(scene.points), np.array(0.0), status, step.share, step.after)
    status = np.where(solved.status != float(Status.CONVERGED), solved.status, corrected)
    status = np.where(finite, status, float(Status.NOT_FINITE))
    return Advanced(q, v, solved.impulse, solved.residual, gap, solved.count, status, step.share, step.after)
