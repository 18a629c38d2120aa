"""The contact problem of a robot in a step of time: σ = (G + R) λ + g, λ the impulses of the step.

It is that of the compliant scheme with α = β = 1 (see `scheme`), rigid but for contacts with a compliance, and without
springs and dampers of joints: W = M. Without impulses the robot would go on with v_f, in the axes of the beginning of
the step (see `flying`), its rows with J v_f. What g has beyond that says what rows must not fall below:

    contacts, limits    J v⁺ + gap/h ≥ 0: a gap may close, and not more. Of a penetration, a part may be given back,
                        `stabilization` of it; none by default, so that nobody is thrown out of the ground.
    contacts that strike    J v⁺ ≥ what is left of their approach after restitution (see `strikes`), or a share of it,
                        where friction would make it add energy (see `dissipation`).
    compliant contacts  J v⁺ + gap/h + C/h² λ ≥ 0: a spring of stiffness 1/C at the end of the step.
    constraints         J v⁺ = the velocity of the reference, less `stabilization` of the error; those with gains or an
                        acceleration of their own pull by these, J v⁺ = J v + h a*.
    dry friction        J v⁺: it brakes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.host.kernel import Floats, kernel
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.constraints.mechanism.rows import compliance_of
from delassus.model.model import Model
from delassus.step.compliant.acting import Acting
from delassus.step.compliant.response import Response, respond
from delassus.step.compliant.values import Numbers, Recovery, State, Values, dynamics
from delassus.step.scene import Scene
from delassus.step.scheme.blend import Blend
from delassus.step.scheme.components import Component, components
from delassus.step.scheme.flying import free_bodies, integrate_velocity, turning
from delassus.step.scheme.rigid_flight import kick_acceleration


class PointNumbers(NamedTuple):
    """Numbers of a state that say how points touch: (points,) each, one for stabilization; None for none."""

    restitution: Any = None
    compliance: Any = None
    stabilization: Any = None
    normal: Any = None
    height: Any = None


class StepProblem(NamedTuple):
    """Rows of a step in a state: how velocities answer, G (m, m), R (m,) or None, J v_f (m,), b (m,) and strikes, and
    the velocities u (m,) of rows as contacts strike, None where none has restitution."""

    state: State
    response: Response
    G: Any
    compliance: Any
    freely: Any
    values: Values
    impact_velocity: Any

    def bias(self, share: Any = None) -> Any:
        """b (m,), with a share of what restitution asks for; None for all of it."""
        full, plastic = self.values.value, self.values.plastic
        return full if share is None else plastic + share * (full - plastic)

    def after(self, impulse: Any) -> Any:
        """v⁺ (nv,) in the axes of the beginning."""
        return self.response.free + self.response.apply(impulse)


def assemble_step(scene: Scene, q: Any, v: Any, tau: Any, h: Any, numbers: PointNumbers, time: Any) -> StepProblem:
    """The rows of a step of time h, not solved."""
    state = State.of(scene, scene.on_planes(numbers.normal, numbers.height), q, v, time)
    parts = components(scene.mechanism, q)
    response = respond(state.motions, state.rows, v, Acting(None, None, tau), h, straight=True, parts=parts)
    freely = state.moving(response.free)
    values = row_values_of(state, h, numbers, freely)
    rigid = numbers.compliance is None and not numpy.any(compliance_of(state.mechanism))
    struck = None if values.strikes is None else 0.5 * (state.moving(_coast(state, v, h, parts)) + freely)
    R = None if rigid else values.compliance
    return StepProblem(state, response, response.delassus(), R, freely, values, struck)


def _coast(state: State, v: Any, h: Any, parts: Sequence[Component]) -> Any:
    """v_c (nv,) after the step without any force, v - h M⁻¹ c: no energy is gained on the way there.

    From there on, forces and impulses change the velocity by v⁺ - v_c, and impulses add λᵀ ½ J (v_c + v⁺), that is
    λᵀ (u + ½ G λ) with u = ½ J (v_c + v_f).
    """
    model = state.mechanism.model.with_gravity((0.0, 0.0, 0.0))
    motions = LinkMotions.of(model, state.place.q, v, state.place.time)
    nothing = Acting(None, None, np.zeros(model.nv))
    return respond(motions, state.rows, v, nothing, h, straight=True, parts=parts).free


def row_values_of(state: State, h: Any, numbers: PointNumbers, freely: Any = None) -> Values:
    """R and b of the rows of a step; `freely` (m,) is J v_f, None where nothing strikes."""
    scene, C = state.scene, None
    if numbers.compliance is not None:
        C = np.zeros(scene.m)
        C[list(scene.normals)] = numbers.compliance
    share = 0.0 if numbers.stabilization is None else numbers.stabilization
    given = Numbers(C, None, numbers.restitution)
    return dynamics(state, Blend(h), (), given, Recovery(share, share), freely, at_start=True)


@kernel("(nq),(nv),(nv),()->(nq),(nv)")
def advance_freely(model: Model, q: Any, v: Any, a: Any, time_step: Any) -> tuple[Floats, Floats]:
    """q⁺ (nq,) and v⁺ (nv,) after a step with accelerations v̇ (nv,) in the axes of the bodies."""
    mechanism, after = Mechanism(model, ()), v + time_step * (a - turning(model, v))
    for link, _, j in free_bodies(model, components(mechanism, q)):
        after[j] = v[j] + time_step * kick_acceleration(link, v[j], a[j])
    return reach(mechanism, q, after, time_step)


def reach(mechanism: Mechanism, q: Any, after: Any, h: Any) -> tuple[Any, Any]:
    """q⁺ (nq,) and v⁺ (nv,) in the axes there, of velocities (nv,) in the axes of the beginning of a step."""
    return integrate_velocity(mechanism.model, components(mechanism, q), q, after, h)[:2]


def seen_from_start(mechanism: Mechanism, q: Any, v_end: Any, h: Any) -> Any:
    """Velocities (nv,) in the axes of the beginning of a step, from those in the axes of its end: undoes `reach`.

    A flight backwards undoes one forwards but for the little turns that keep its energy: two corrections remove these.
    """
    model, parts, aim = mechanism.model, components(mechanism, q), v_end
    start = integrate_velocity(model, parts, q, aim, -h)[1]
    for _ in range(2 if any(part.rigid for part in parts) else 0):
        aim = aim + v_end - integrate_velocity(model, parts, q, start, h)[1]
        start = integrate_velocity(model, parts, q, aim, -h)[1]
    return start
