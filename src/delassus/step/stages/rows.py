"""All rows of a step: contacts, bilateral constraints, joint limits, joint friction.

All contacts of a body are functions of its six velocities (see `body_motions`). With J (motions, nv) the Jacobian of
these velocities, the Jacobian of all rows is P J, and their Delassus matrix is P S Pᵀ with S = J M̂⁻¹ Jᵀ. Each row that
does not belong to such a body is a motion of its own.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import map
from delassus.constrained.rows.jacobian import constraint_jacobian
from delassus.constrained.rows.references import velocities_asked
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.dynamics.forces.tendons import tendon_line
from delassus.geometry.nearest import nearest
from delassus.step.scene import Scene
from delassus.step.stages.body_motions import BodyMotions, shared_motions
from delassus.step.stages.collide import Contacts, candidate_links
from delassus.step.stages.kinematics import Kinematics
from delassus.step.stages.types import StepState

_LONGEST: Final = 600
"""Largest number of entries of the contact Jacobian for which the code is unrolled; for more, it loops over slots."""

_IMMOBILE: Final = 1e-9
"""Constraint rows smaller than this, relative to the largest row, are treated as zero."""


class ConstraintRows(NamedTuple):
    """The rows of a state.

    Attributes:
        J: (motions, nv) the Jacobian of the motions.
        sharing: P (m, motions) and the bodies with contacts; None if each row is a motion.
        stop_gap: (stops,) gaps of unilateral constraints and joint limits [rad, m].
        target: (bilateral,) target velocities of constraints.
        mobile: (bilateral,) whether the row of a constraint is not zero.
        overflow: Whether more joint limits are active than there are slots.
    """

    J: Any
    sharing: BodyMotions | None
    stop_gap: Any
    target: Any
    mobile: Any
    overflow: Any

    def velocities(self, v: Any) -> Any:
        """Row velocities (m,) for velocities (nv,)."""
        return self.J @ v if self.sharing is None else self.sharing.P @ (self.J @ v)

    def motion_impulses(self, impulse: Any) -> Any:
        """Impulses (motions,) on the motions for row impulses (m,)."""
        return impulse if self.sharing is None else self.sharing.P.T @ impulse

    def joint_impulses(self, impulse: Any) -> Any:
        """Generalized impulses Jᵀ λ (nv,) for row impulses (m,)."""
        return self.J.T @ self.motion_impulses(impulse) if len(self.J) else np.zeros(self.J.shape[1])

    def delassus(self, S: Any, count: int | None = None) -> Any:
        """G (count, count) of the first `count` rows (None for all), from the response S (motions, motions).

        Rows that are motions themselves, such as those of joint friction, come last in both.
        """
        if self.sharing is None:
            return S[:count, :count]
        P = self.sharing.P[:count]
        motions = len(S) - len(self.sharing.P) + len(P)
        return P[:, :motions] @ S[:motions, :motions] @ P[:, :motions].T


def constraint_rows(
    scene: Scene, state: StepState, kinematics: Kinematics, contacts: Contacts, time_step: Any
) -> ConstraintRows:
    """The rows of a state; constraints that move in time are evaluated at the end of the step."""
    q, v, time = state.q, state.v, state.time + time_step
    J, sharing = contact_rows(scene, kinematics, contacts)
    one_sided, stop_gap = _one_sided_rows(scene, q, time)
    limits, limit_gap, overflow = _limit_rows(scene, q, v, time_step)
    if scene.limit_slots:
        stop_gap = np.concatenate([stop_gap, limit_gap])
    loops, target, mobile = np.zeros((0, scene.nv)), np.zeros(0), np.zeros(0)
    if scene.mechanism.m:
        held = Mechanism(scene.model, scene.bilateral_constraints, model_constraints=False)
        loops = constraint_jacobian.function(held if scene.as_in_mujoco else scene.mechanism, q, time=time)
        target = velocities_asked(scene.mechanism, q, time)
        # Out-of-plane rows of a planar linkage are zero up to rounding: their impulses would be huge.
        sizes = np.max(np.abs(loops), axis=1)
        mobile = sizes > _IMMOBILE * np.max(sizes)
        loops, target = np.where(mobile[:, None], loops, 0.0), np.where(mobile, target, 0.0)
    friction = np.zeros((len(scene.friction_dofs), scene.nv))
    for k, i in enumerate(scene.friction_dofs):
        friction[k, i] = 1.0
    arms = [np.array(tendon_line(scene.model, tendon, q).moment_arms) for tendon in scene.friction_tendons]
    rows = np.concatenate([J, loops, one_sided, limits, friction, *(own[None] for own in arms)])
    sharing = sharing and sharing.with_others(len(rows) - len(J))
    return ConstraintRows(rows, sharing, stop_gap, target, mobile, overflow)


def contact_rows(scene: Scene, kinematics: Kinematics, contacts: Contacts) -> tuple[Any, BodyMotions | None]:
    """The Jacobian J (motions, nv) of contacts, and the map from motions to rows."""
    slots, count, reach = scene.slots, scene.contact_rows, kinematics.reach
    if not slots or reach is None:
        return np.zeros((0, scene.nv)), None
    every = candidate_links(scene, kinematics.tree)
    fixed = scene.has_fixed_slots

    def row_block(k: int, point: Any, axes: Any, count: int) -> Any:
        """Rows (count, nv) of a slot at a point (3,), along axes (3, 3)."""
        bodies = [
            (link[k], frozenset({link[k]}) if fixed else frozenset(links))
            for link, links in zip((contacts.body, contacts.other), every, strict=True)
        ]
        block = reach.rows(*bodies[0], point, axes, count)
        return block - reach.rows(*bodies[1], point, axes, count) if scene.has_pairs else block

    if not fixed and slots * count * scene.nv > _LONGEST:

        def rows_of_slot(point: Any, axes: Any, *links: Any) -> Any:
            one, *others = (reach.rows(x, frozenset(y), point, axes, count) for x, y in zip(links, every, strict=False))
            return one - others[0] if others else one

        links = (contacts.body, contacts.other) if scene.has_pairs else (contacts.body,)
        J = map(rows_of_slot, *(np.stack(list(x)) for x in (contacts.point, contacts.axes, *links)))
        return J.reshape(slots * count, scene.nv), None
    if not fixed:
        return np.concatenate([row_block(k, contacts.point[k], contacts.axes[k], count) for k in range(slots)]), None
    pairs = list(zip(contacts.body, contacts.other, strict=True))
    J, sharing = shared_motions(pairs, contacts.point, contacts.axes, contacts.common_axes, count, row_block)
    return np.concatenate(J), sharing


def _one_sided_rows(scene: Scene, q: Any, time: Any) -> tuple[Any, Any]:
    """Rows (one_sided, nv) of one-sided constraints, and their gaps."""
    if not scene.one_sided:
        return np.zeros((0, scene.nv)), np.zeros(0)
    rows = Mechanism(scene.model, scene.one_sided, model_constraints=False)
    motions = LinkMotions.of(scene.model, q, np.zeros(scene.nv), time)
    gap = np.stack([np.array(row.gap(motions)) for row in scene.one_sided])
    return constraint_jacobian.function(rows, q, time=time), gap


def _limit_rows(scene: Scene, q: Any, v: Any, time_step: Any) -> tuple[Any, Any, Any]:
    """Rows (limits, nv) of the joint limits that are nearest at the end of the step, their gaps, and overflow."""
    J = np.zeros((scene.limit_slots, scene.nv))
    if not scene.limit_slots:
        return J, np.zeros(0), np.array(False)
    motions = LinkMotions.of(scene.model, q, np.zeros(scene.nv))
    rows = [limit.joints(motions)[0] for limit in scene.joint_limits]
    gap = np.stack([np.array(limit.gap(motions)) for limit in scene.joint_limits])
    factor = np.stack([np.array(row.factor) for row in rows])
    dofs = numpy.array([float(row.v) for row in rows])
    if scene.limit_slots == len(rows):
        for k, row in enumerate(rows):
            J[k, row.v] = factor[k]
        return J, gap, np.array(False)
    predicted = gap + time_step * factor * v[[row.v for row in rows]]
    chosen, following = nearest(predicted, scene.limit_slots)
    overflow = following < 0.0
    factor, gap, dof = np.take(factor, chosen), np.take(gap, chosen), np.take(dofs, chosen)
    for i in sorted({row.v for row in rows}):
        J[:, i] = np.where(dof == float(i), factor, 0.0)
    return J, gap, overflow
