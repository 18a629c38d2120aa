"""The contact problem of a robot in a state: σ = (G + R) λ + g, λ the impulses of a step of time h.

Without impulses the robot would go on with v_f = v + h aba(q, v, tau), its rows with J v_f. What g has beyond that says
what rows must not fall below:

    contacts, limits    J v⁺ + gap/h ≥ 0: a gap may close, and not more. Of a penetration, a part may be given back,
                        `stabilization` of it; none by default, so that nobody is thrown out of the ground.
    contacts that strike    J v⁺ + e J v ≥ 0, if there is restitution e, the step would penetrate, and the approach is
                        faster than what gravity gives in two steps: the others would never come to rest.
    compliant contacts  J v⁺ + gap/h + C/h² λ ≥ 0: a spring of stiffness 1/C at the end of the step.
    constraints         J v⁺ = the velocity of the reference, less `stabilization` of the error; those with gains or an
                        acceleration of their own pull by these, J v⁺ = J v + h a*.
    dry friction        J v⁺: it brakes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

import delassus.numpy as np
from delassus.constrained.delassus.delassus_methods import lower_delassus
from delassus.constrained.elimination.elimination import free_tree
from delassus.constrained.rows.jacobian import constraint_jacobian, link_values
from delassus.constraints.basis.constraint import Constraint
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.constraints.mechanism.rows import Rows, compliance_of, right_hand_side, row_values, rows_in
from delassus.contact.robots.scene import Scene
from delassus.dynamics.forces.aba import aba
from delassus.dynamics.mass.factor import udu_solve
from delassus.dynamics.tree.poses import mirrored
from delassus.model.links import links_of


class Assembled(NamedTuple):
    """G (m, m), g (m,) and R (m,) or None of a step; gaps (points,), the free velocity (nv,), and M⁻¹ Jᵀ x (nv,)."""

    G: Any
    g: Any
    compliance: Any
    gap: Any
    free: Any
    response: Callable[[Any], Any]


class Numbers(NamedTuple):
    """Numbers of a state that say how points touch: (points,) each, one for stabilization; None for none."""

    restitution: Any = None
    compliance: Any = None
    stabilization: Any = None
    normal: Any = None
    height: Any = None


def assembled(scene: Scene, q: Any, v: Any, tau: Any, h: Any, numbers: Numbers, time: Any = None) -> Assembled:
    """The problem of a step of time h."""
    mechanism = scene.on_planes(numbers.normal, numbers.height)
    motions = LinkMotions.of(mechanism.model, q, v, time)
    rows = rows_in(mechanism, motions)
    free = v + h * aba(mechanism.model, q, v, tau)
    before, after = (row_values(rows, _moving(motions, x), x) for x in (v, free))
    gap = gaps(scene, mechanism, motions)
    g = demanded(scene, mechanism, rows, motions, h, numbers, before, after, gap)
    G = mirrored(lower_delassus(mechanism, q, "auto", time))
    return Assembled(G, g, compliances(scene, mechanism, numbers, h), gap, free, responding(mechanism, q, time))


def demanded(
    scene: Scene,
    mechanism: Mechanism,
    rows: Rows,
    motions: LinkMotions,
    h: Any,
    numbers: Numbers,
    before: Any,
    after: Any,
    gap: Any,
) -> Any:
    """What rows (m,) with these velocities before and after a step have beyond what they must not fall below."""
    g = np.array(after)
    for k, row in enumerate(scene.normals):
        bias = _closing(gap[k], h, numbers.stabilization)
        if numbers.compliance is not None:
            bias = np.where(numbers.compliance[k] > 0.0, gap[k] / h, bias)
        if numbers.restitution is not None:
            e = numbers.restitution[k]
            pull = np.array(mechanism.model.gravity)
            fast = before[row] < -2.0 * h * np.sqrt(np.sum(pull * pull))
            strikes = (e > 0.0) & fast & (gap[k] + h * after[row] <= 0.0)
            bias = np.where(strikes, e * before[row], bias)
        g[row] = g[row] + bias
    for row, stop in zip(scene.stop_rows, scene.stops, strict=True):
        g[row] = g[row] + _closing(stop.gap(motions), h, numbers.stabilization)
    if scene.mechanism.m:
        asked = _asked(scene, mechanism, rows, motions, before, h, numbers.stabilization)
        g[scene.bilateral] = g[scene.bilateral] - asked
    return g


def gaps(scene: Scene, mechanism: Mechanism, motions: LinkMotions) -> Any:
    """The gaps (points,) [m]."""
    spots: Any = mechanism.constraints[: scene.points]
    return np.stack([spot.gap(motions) for spot in spots]) if spots else np.zeros(0)


def responding(mechanism: Mechanism, q: Any, time: Any) -> Callable[[Any], Any]:
    """How velocities (nv,) answer to impulses (m,) of the rows: M⁻¹ Jᵀ x."""
    if links_of(mechanism.model).mimics:
        J = constraint_jacobian.function(mechanism, q, time=time)
        return lambda x: udu_solve.function(mechanism.model, q, J.T @ x)
    body, rows = free_tree(mechanism, q, time=time)

    def response(x: Any) -> Any:
        push = np.zeros(mechanism.nv)
        for i, (_, own) in body.pushes(rows, x).items():
            push[body.joints[i].at] = own
        return body.accelerations(push, range(len(body.tree.links)))[1]

    return response


def _moving(motions: LinkMotions, v: Any) -> Any:
    """The velocities of the links at velocities v (nv,) of the joints."""
    return motions.velocity if v is motions.v else LinkMotions.of(motions.model, motions.q, v).velocity


def _closing(gap: Any, h: Any, stabilization: Any) -> Any:
    """The speed at which a gap closes in a step, or that at which a penetration is given back, negative."""
    given_back = 0.0 if stabilization is None else stabilization * gap / h
    return np.where(gap > 0.0, gap / h, given_back)


def _asked(
    scene: Scene, mechanism: Mechanism, rows: Rows, motions: LinkMotions, before: Any, h: Any, stabilization: Any
) -> Any:
    """The velocities that constraints ask for."""
    asked = np.zeros(scene.mechanism.m)
    start = scene.bilateral.start
    places = list(zip(scene.mechanism.constraints, scene.mechanism.row_ranges(), strict=True))
    if any(pulls(constraint) for constraint, _ in places):
        k = right_hand_side(mechanism, rows, motions)
        wanted = k - link_values(rows, motions, np.zeros(mechanism.nv))
    for constraint, at in places:
        if pulls(constraint):
            own = slice(start + at.start, start + at.stop)
            asked[at] = before[own] + h * wanted[own]
            continue
        moving = constraint.reference_velocity(motions)
        if moving is not None:
            asked[at] = moving
        if stabilization is not None and constraint.has_reference:
            asked[at] = asked[at] - stabilization / h * constraint.position_error(motions)
    return asked


def pulls(constraint: Constraint) -> bool:
    """Whether a constraint says itself how it is to be met."""
    return any(numpy.any(getattr(constraint, name)) for name in ("acceleration", "position_gain", "velocity_gain"))


def compliances(scene: Scene, mechanism: Mechanism, numbers: Numbers, h: Any) -> Any:
    """R (m,), or None where all is rigid: C/h² of contacts, and what constraints have."""
    fixed = compliance_of(mechanism)
    if numbers.compliance is None:
        return np.array(fixed) if numpy.any(fixed) else None
    R = np.array(fixed) + np.zeros(scene.m)
    for k, row in enumerate(scene.normals):
        R[row] = numbers.compliance[k] / (h * h)
    return R
