"""Stage 4 of a step: assembles the system of its impulses.

With M̂ = M + diag(h d + h² k) for damping d and stiffness k of joints and servos, plus (h d + h² k) r rᵀ for tendons
with moment arms r:

    v_f = v + h M̂⁻¹ (τ - c)                       the velocity without impulses; c at the middle of the step
    S = J M̂⁻¹ Jᵀ                                  the response of the motions
    g = J v_f + b                                  row velocities without impulses, minus their lower bounds

A gap may close but not become negative: b = gap/h. Where a free body rolls, J is that of the middle of the step. A
contact that approaches faster than 2·g·h is an impact and separates with its rebound velocity (see
`impacts.detection`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.constrained.elimination.tree_factor import TreeFactor, eliminate_rows_of, tree_factor
from delassus.dynamics.forces.rnea import newton_euler
from delassus.dynamics.mass.crba import mass_matrix
from delassus.dynamics.mass.factor import forward, substitute
from delassus.linalg.products import mirror
from delassus.step.actuators.forces import Forces
from delassus.step.impacts.detection import SLOW, fall_speed, rebound_at_start
from delassus.step.primal.soft_rows import RowState, soft_rows
from delassus.step.scene import ARTICULATED, Scene
from delassus.step.scheme.components import Component, components
from delassus.step.scheme.energy import gravity_forces
from delassus.step.scheme.manifold_step import turning, without_flight
from delassus.step.stages.collide import Contacts, warm_start
from delassus.step.stages.kinematics import Kinematics
from delassus.step.stages.rolling import rolling_velocity
from delassus.step.stages.rows import ConstraintRows, constraint_rows
from delassus.step.stages.types import StepInputs, StepState

FAR: Final = 10.0
"""Closing velocities gap/h are clipped to this multiple of the velocity scale; such contacts stay open."""


class StepSystem(NamedTuple):
    """The system of a step, whose unknowns are the impulses; a `Response` computed with the factors of M̂.

    Attributes:
        rows: J, and the motions of bodies with contacts.
        factor: Factors of M̂.
        S: (motions, motions) the response of the motions; None if the articulated-body recursion solves the step.
        g: (m,) row velocities without impulses, minus their lower bounds.
        rebound: (m,) the part of g due to restitution.
        before: (m,) row velocities at the impact.
        after: (m,) row velocities without impulses.
        scale: () the velocity scale [m/s], to which tolerances are relative.
        free_velocity: (nv,) v_f.
        start: (m,) the warm start.
        forces: Forces of actuators, springs and dampers.
        inertia: (nv, nv) M.
        weight: (nv,) gravity forces.
        products: (nv,) velocity products c.
        kick: (nv,) the velocity change due to all forces except velocity products.
        parts: Independently moving parts.
        soft: The compliance of rows under MuJoCo's contact law; None for rigid rows.
        spin: (nv,) the part of v_f due to velocity products of free bodies, which `integrate_velocity` includes; None
            under the rigid law, where v_f does not contain it.
    """

    rows: ConstraintRows
    factor: TreeFactor
    S: Any
    g: Any
    rebound: Any
    before: Any
    after: Any
    scale: Any
    free_velocity: Any
    start: Any
    forces: Forces
    inertia: Any
    weight: Any
    products: Any
    kick: Any
    parts: tuple[Component, ...]
    soft: Any = None
    spin: Any = None

    def solve(self, force: Any) -> Any:
        """M̂⁻¹ f (nv,)."""
        return _solve(self.factor, force)

    def respond(self, impulse: Any) -> Any:
        """M̂⁻¹ Jᵀ λ (nv,) for row impulses (m,)."""
        return _respond(self.factor, self.rows, impulse, self.S is not None)

    def velocities(self, v: Any) -> Any:
        """J v (m,) for velocities (nv,)."""
        return self.rows.velocities(v)

    def delassus(self, count: int | None = None) -> Any:
        """G (count, count) of the first `count` rows; None for all rows."""
        S = self.S
        if S is None:
            factor = self.factor
            S = mirror(eliminate_rows_of(factor.above, factor.U, factor.D, self.rows.J)[1])
        return self.rows.delassus(S, count)

    def delassus_among(self, rows: Sequence[int], single: Sequence[int]) -> tuple[Any, list[Any]]:
        """G (rows, rows) restricted to `rows`, and the diagonal entries of G for the rows `single`, without forming all
        of G."""
        factor, every, sharing = self.factor, sorted({*rows, *single}), self.rows.sharing
        J = self.rows.J if sharing is None else sharing.P @ self.rows.J
        Y = eliminate_rows_of(factor.above, factor.U, factor.D, J[every])[0]
        some = Y[[every.index(row) for row in rows]]
        own = [np.sum(y * y * factor.D) for y in (Y[every.index(row)] for row in single)]
        return (some * factor.D) @ some.T, own

    def delassus_times(self, impulse: Any) -> Any:
        """G λ (m,) for impulses (m,), without forming G."""
        if self.S is None:
            return self.velocities(self.respond(impulse))
        motion = self.S @ self.rows.motion_impulses(impulse)
        return motion if self.rows.sharing is None else self.rows.sharing.P @ motion

    def delassus_of(self, rows: Sequence[int]) -> Any:
        """G of rows that are motions themselves, such as those of loops."""
        motions = [row + len(self.S) - len(self.g) for row in rows]
        return self.S[motions][:, motions]


def _solve(factor: TreeFactor, force: Any) -> Any:
    return substitute(factor.above, factor.U, factor.D, force)


def _respond(factor: TreeFactor, rows: ConstraintRows, impulse: Any, by_rows: bool) -> Any:
    if not by_rows:
        return _solve(factor, rows.joint_impulses(impulse))
    return forward(factor.above, factor.U, factor.Y.T @ rows.motion_impulses(impulse))


def assemble(
    scene: Scene, state: StepState, kinematics: Kinematics, contacts: Contacts, forces: Forces, inputs: StepInputs
) -> StepSystem:
    """Assemble the system of a step."""
    model, h, q, v = scene.model, inputs.time_step, state.q, state.v
    rows = constraint_rows(scene, state, kinematics, contacts, h)
    by_rows = scene.method != ARTICULATED and not scene.is_soft
    J = rows.J if by_rows else np.zeros((0, scene.nv))
    factor = tree_factor(model, q, J, added=forces.added, rank_ones=forces.rank_ones)
    start = warm_start(scene, contacts.candidate, state) if scene.m else state.impulse
    if scene.mechanism.m:
        start[scene.bilateral] = np.where(rows.mobile, start[scene.bilateral], 0.0)
    parts, M = components(scene.mechanism, q), mass_matrix(model, q)

    def accelerating_forces(v: Any) -> Any:
        """Forces (nv,) of motors, gravity and velocity products, without the velocity products of free bodies, which
        `integrate_velocity` includes."""
        moving = without_flight(parts, v)
        return forces.force - newton_euler(model, q, moving, turning(model, moving), None)

    if scene.is_soft:
        weight = gravity_forces(model, q, M, parts)
        acting = accelerating_forces(v)
        spin = forces.force - newton_euler(model, q, v, turning(model, v), None) - acting
        spin = h * _solve(factor, spin) if any(part.rigid for part in parts) else np.zeros(scene.nv)
        free = v + h * _solve(factor, acting) + spin
        before, after = rows.velocities(v), rows.velocities(free)
        now = RowState(q, v, state.time + h, contacts.candidate, contacts.gap, rows.stop_gap, rows.target, before)
        soft = soft_rows(scene, now, h)
        scale = np.maximum(_largest_speed(scene, after), _largest_speed(scene, before)) if scene.m else np.array(0.0)
        scale = scale + fall_speed(model, h) + 1e-12
        none, kick = np.zeros(scene.m), h * _solve(factor, forces.force + weight)
        products = forces.force + weight - acting
        g = after - soft.target
        return StepSystem(
            rows,
            factor,
            None,
            g,
            none,
            before,
            after,
            scale,
            free,
            start,
            forces,
            M,
            weight,
            products,
            kick,
            parts,
            soft,
            spin,
        )

    # Velocity products are evaluated at the predicted middle of the step. The prediction uses the previous impulses, so
    # bodies at rest have none.
    weight = gravity_forces(model, q, M, parts)
    force = forces.force + weight
    kick = h * _solve(factor, force)
    change, response, persists = kick, None, np.array(True)
    if scene.m:
        response = _respond(factor, rows, start, by_rows)
        # The impulses of an impact do not predict those of the next step: with them, contacts would separate.
        unilateral = scene.unilateral_rows
        apart = np.where(start[unilateral] > 0.0, rows.velocities(v + change + response)[unilateral], 0.0)
        persists = np.all(apart <= SLOW * fall_speed(model, h)) if unilateral else persists
        change = change + np.where(persists, response, 0.0)

    acting = accelerating_forces(v + 0.5 * change)
    free = v + h * _solve(factor, acting)
    rebounds = scene.bounces and scene.m > 0
    if rebounds:  # a second estimate of the middle: bouncing bodies would accumulate the error of the first
        bounces = inputs.contact.restitution > 0.0
        middle = 0.5 * (v + free + np.where(persists, response, 0.0))
        acting = np.where(bounces, accelerating_forces(middle), acting)
        free = np.where(bounces, v + h * _solve(factor, acting), free)
    before, after = rows.velocities(v), rows.velocities(free)
    if rebounds:
        # Restitution applies to the velocities after the rotation of the bodies in this step, but before gravity and
        # motors act. With the initial velocities, an impact would gain or lose a fraction h ω of its energy.
        before = np.where(bounces, after - rows.velocities(kick), before)
    lead = rolling_velocity(scene, kinematics, contacts, q, v + change, inputs.ground, h)
    lead = np.where(persists, lead, 0.0)
    g, rebound, scale = _row_velocities(scene, rows, contacts, before, after, start, lead, inputs)
    S = mirror(factor.delassus) if by_rows else None
    return StepSystem(
        rows, factor, S, g, rebound, before, after, scale, free, start, forces, M, weight, force - acting, kick, parts
    )


def _row_velocities(
    scene: Scene,
    rows: ConstraintRows,
    contacts: Contacts,
    before: Any,
    after: Any,
    start: Any,
    lead: Any,
    inputs: StepInputs,
) -> tuple[Any, Any, Any]:
    """g (m,), its part due to restitution (m,), and the scale () of velocities.

    The equation of a lasting contact constrains its mean velocity over the step, which differs from the initial one by
    `lead` (contact rows,). If a contact is an impact, `lead` is not added, since the impact would gain energy.
    """
    if not scene.m:
        return after, after, np.array(1.0)
    h, slots, fall = inputs.time_step, scene.slots, fall_speed(scene.model, inputs.time_step)
    scale = np.maximum(_largest_speed(scene, after), _largest_speed(scene, before)) + fall + 1e-12
    far = FAR * scale
    g, rebound = np.array(after), np.zeros(scene.m)
    if slots:
        normals, ends = slice(2, scene.contact_end, scene.contact_rows), slice(scene.contact_end)
        meets = (start[normals] <= 0.0) & (before[normals] < -SLOW * fall)
        meets = meets & (contacts.gap + h * after[normals] <= 0.0)
        g[ends] = after[ends] + np.where(np.any(meets), 0.0, lead)
    for k in range(slots):
        gap, n = contacts.gap[k], scene.normals[k]
        closing = np.minimum(np.maximum(gap, 0.0) / h, far)
        if scene.bounces:
            restitution = inputs.contact.restitution
            leaves, separates = rebound_at_start(closing, before[n], after[n], restitution)
            impact = (before[n] < -SLOW * fall) & (gap + h * g[n] <= 0.0) & (restitution > 0.0) & separates
            rebound[n] = np.where(impact, np.minimum(-leaves, closing), 0.0)
            closing = np.where(impact, rebound[n], closing)
        g[n] = g[n] + closing
    if scene.mechanism.m:
        g[scene.bilateral] = after[scene.bilateral] - rows.target
    if scene.stop_rows:
        stops = slice(scene.bilateral.stop, scene.bilateral.stop + len(scene.stop_rows))
        g[stops] = after[stops] + np.minimum(np.maximum(rows.stop_gap, 0.0) / h, far)
    return g, rebound, scale


def _largest_speed(scene: Scene, velocity: Any) -> Any:
    """The largest row speed () of velocities (m,), without the rotations of contacts, which do not close gaps."""
    if scene.contact_rows == 3:
        return np.max(np.abs(velocity))
    turns = {n + 1 + k for n in scene.normals for k in range(scene.contact_rows - 3)}
    return np.max(np.abs(velocity[[row for row in range(scene.m) if row not in turns]]))
