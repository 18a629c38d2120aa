"""The system of a step, formed (see `system`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import delassus.numpy as np
from delassus.compiler.host.kernel import kernel
from delassus.constrained.rows.jacobian import jacobian_in
from delassus.contact.cones.parameters import ContactParameters
from delassus.dynamics.forces.rnea import newton_euler
from delassus.step.compliant.acting import Acting, Servo
from delassus.step.compliant.inputs import FORM_INPUTS, RowSprings, Scheme
from delassus.step.compliant.response import Driven, kicked_motions, respond, response_matrix, turning_of
from delassus.step.compliant.system import System
from delassus.step.compliant.values import Numbers, Recovery, State, Values, correction, dynamics
from delassus.step.laws.inputs import ContactPlanes
from delassus.step.scene import Scene
from delassus.step.scheme.blend import Blend
from delassus.step.scheme.components import Component, components, undriven


def formed(
    state: State,
    v: Any,
    acting: Acting,
    blend: Blend,
    values: Values,
    straight: bool = True,
    parts: Sequence[Component] = (),
) -> System:
    """The system of a step in the form of velocities, in the axes of its beginning if it is `straight`."""
    motions = kicked_motions(state.motions, parts)
    W = response_matrix(motions, acting)
    bias = newton_euler(motions.model, motions.q, motions.v, turning_of(motions) if straight else np.zeros(len(v)))
    c = W @ v + blend.h * (acting.push - bias)
    return System(W, c, jacobian_in(state.rows, motions), values.compliance, values.value, values.coupling)


@kernel("(nq),(nv),(nv),()->(nv,nv),(nv),(m,nv),(m),(m),(m,m)", inputs=FORM_INPUTS, result=System)
def system_of_step(
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
    planes: ContactPlanes,
    time: Any = None,
    elastic: tuple[int, ...] = (),
    driven: tuple[int, ...] = (),
    coupled: tuple[tuple[int, int], ...] = (),
    stabilized: bool = False,
    phase: str = "dynamics",
    form: str = "velocity",
) -> System:
    """W, c, J, R, b, and what R has besides its diagonal, of a phase of the step."""
    restitution, blend = contact.restitution, Blend(time_step, *scheme)
    numbers = Numbers(springs.compliance, springs.damping, restitution, springs.compliance_matrix, coupled)
    mechanism = scene.on_planes(*planes)
    state = State.of(scene, mechanism, q, v, time)
    acting = Acting.of(mechanism, q, v, tau, blend, servo, springs.geometric, time)
    parts = undriven(components(scene.mechanism, q), driven)
    freely = None
    if restitution is not None:
        given = Driven(driven, driven_velocity)
        response = respond(state.motions, state.rows, v, acting, blend.h, given, straight=True, parts=parts)
        freely = state.moving(response.free)
    values = dynamics(state, blend, elastic, numbers, Recovery(0.0 if stabilized else 1.0), freely)
    system = formed(state, v, acting, blend, values, parts=parts).driven(driven, driven_velocity)
    system = system._replace(coupling=values.coupled_with(np.zeros((scene.m, scene.m))))
    if phase == "correction":
        b = correction(state, blend, elastic, numbers)
        return system._replace(c=np.zeros(scene.nv), b=b)
    return system.seen(form, v, blend.h)
