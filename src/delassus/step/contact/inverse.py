"""`contact_inverse_dynamics`: contact forces that explain a motion, and the torques that the motors must add."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import real_array
from delassus.common.options import Shortcuts
from delassus.contact.problems.checks import ContactProblemError
from delassus.errors import short
from delassus.model.links import links_of
from delassus.model.model import Model
from delassus.step.contact.arguments import ContactArguments, solver_inputs
from delassus.step.contact.explain import explain_relaxed, explain_rigid, explain_yielding
from delassus.step.contact.options import ContactInverseOptions
from delassus.step.contact.origins import Origin
from delassus.step.contact.result import InContact
from delassus.step.contact.steps import outcome_of, row_relaxation
from delassus.step.laws.law import EXPLAINED, Law, Relaxed
from delassus.step.selection.options import ShapeSelection

Array = NDArray[np.float64]

_INVERSE: Final = Shortcuts(
    "contact_inverse_dynamics",
    "mechanism q v a contacts time_step",
    renamed={"model": "law"},
    code="unknown-law",
    law=EXPLAINED,
    options=ContactInverseOptions(),
)


@dataclass(frozen=True, eq=False)
class ContactExplanation(InContact):
    """Contact forces for a given motion, of one state or a batch, and the remaining torques.

    Attributes:
        torque: (…, nv) tau = M a + c - Jᵀ f [N·m, N], of motors, springs and dampers together.
        force: (…, m) of all rows [N, N·m]: of a contact t1, t2, n, on its first body.
        unexplained: (…, nv) what is left to do for velocities without a motor [N·m, N].

    >>> joint = dl.Joint("base", dl.model.Translation(), inertia=dl.Inertia.of(1.0))
    >>> ball = dl.Model("ball", (joint,), frame_list=(dl.model.Frame("center", 0),))
    >>> zero = np.zeros(3)
    >>> dl.contact_inverse_dynamics(ball, zero, zero, zero, contacts=[dl.Contact("center")], time_step=1e-2).force
    array([0., 0., 0.])
    """

    torque: Array
    force: Array
    unexplained: Array


def contact_inverse_dynamics(
    mechanism: Any,
    q: Any,
    v: Any,
    a: Any,
    *,
    contacts: Any = (),
    time_step: Any = None,
    law: str | Law = "ncp",
    options: ContactInverseOptions | None = None,
    **shortcuts: Any,
) -> ContactExplanation:
    """Contact forces for given accelerations, and the remaining torques, of one state or a batch.

    The motion alone does not determine the forces of rigid contacts. They are chosen such that the generalized forces
    at velocities without a motor are smallest; this choice may not be unique. The forces of compliant rows, by
    `yielding` or in the law "relaxed", follow from the motion.

    Args:
        mechanism: The robot with its constraints, or a model.
        q: Configurations (…, nq) [rad, m].
        v: Velocities (…, nv) [rad/s, m/s] before the step.
        a: Accelerations (…, nv) [rad/s², m/s²]: the velocity after the step is v + h a, of free and planar joints in
            their axes then.
        contacts: Where it may touch: some `Contact`.
        time_step: (…) h [s]; the law "relaxed" needs none.
        law: "ncp", "ccp", "relaxed" or `Relaxed(…)`, as for `contact_dynamics`.
        options: A `ContactInverseOptions`: contact, planes, rows, stabilization, solver, explanation, time, parameters.
        **shortcuts: Fields of these objects by their names: those of `contact_dynamics`, restitution, start and rests
            left out, and yielding, passive, tau, rest_speed (explanation).

    >>> joint = dl.Joint("base", dl.model.Translation(), inertia=dl.Inertia.of(1.0))
    >>> ball = dl.Model("ball", (joint,), frame_list=(dl.model.Frame("center", 0),))
    >>> zero = np.zeros(3)
    >>> at_rest = dl.contact_inverse_dynamics(ball, zero, zero, zero, contacts=[dl.Contact("center")], time_step=1e-2)
    """
    named = _INVERSE.resolve_renamed(shortcuts, "law", law, "ncp")
    chosen, options = _INVERSE.fill(shortcuts, law=named, options=options)
    if time_step is None and not isinstance(chosen, Relaxed):
        raise ContactProblemError(
            "time_step is missing: it decides which rigid contacts are active.", code="missing-argument"
        )
    if isinstance(contacts, ShapeSelection):
        raise ContactProblemError(
            "contact_inverse_dynamics explains a motion by contact points, not by shapes: pass points such as "
            "contacts=[Contact('foot')].",
            code="not-supported",
        )
    arguments = ContactArguments.of(mechanism, (q, v, a), contacts, time_step, chosen, options)
    solver = solver_inputs(arguments.scene, chosen, options.solver)
    if arguments.inputs.contact.restitution is not None:
        raise ContactProblemError(
            "impacts have no inverse dynamics: omit restitution of the contacts.", code="not-supported"
        )
    if solver.start is not None:
        raise ContactProblemError(
            "start has no effect, since forces are computed without iterations: omit it.", code="not-supported"
        )
    if not arguments.scene.m:
        raise ContactProblemError("there are no contacts, constraints or limits: use rnea.", code="nothing-to-do")
    how = options.explanation
    where = _passive(arguments, how.passive)
    if isinstance(chosen, Relaxed):
        result = explain_relaxed(
            arguments.scene,
            *arguments.state,
            np.zeros(()) if arguments.step is None else arguments.step,
            surroundings=arguments.without_stabilization,
            relaxation=row_relaxation(arguments, chosen),
            parameters=arguments.parameters,
            cone=chosen.cone,
        )
        return _explanation(arguments, chosen, where, how.tau, *result)
    if how.yielding is not None:
        result = explain_yielding(
            arguments.scene,
            *arguments.state,
            arguments.step,
            surroundings=arguments.inputs,
            parameters=arguments.parameters,
            yielding=_yielding(arguments, how.yielding),
            law=chosen.name,
        )
        return _explanation(arguments, chosen, where, how.tau, *result)
    torque, force, residual, gap, outcome, status = explain_rigid(
        arguments.scene,
        *arguments.state,
        arguments.step,
        surroundings=arguments.inputs,
        parameters=arguments.parameters,
        solver=solver,
        method=options.solver.method,
        passive=where,
        tau=how.tau,
        rest_speed=how.rest_speed,
    )
    return _explanation(arguments, chosen, where, how.tau, torque, force, gap, status, residual, outcome)


def _yielding(arguments: ContactArguments, yielding: Any) -> Array:
    """R (…, m) of all rows."""
    R, m = real_array("yielding", yielding), arguments.scene.m
    if np.any(R <= 0.0) or (R.ndim and R.shape[-1] not in (1, m)):
        raise ContactProblemError(
            f"yielding is {short(repr(yielding))}; it must be positive, one number or one for each of {m} rows.",
            code="out-of-range",
        )
    return np.broadcast_to(R, (*R.shape[:-1], m))


def _passive(arguments: ContactArguments, passive: Any) -> Array:
    """1 or 0 (nv,)."""
    robot: Model = arguments.scene.model
    if passive is None:
        result = np.zeros(robot.nv)
        for link in links_of(robot).links:
            if link.motion.is_free:
                result[list(link.dofs)] = 1.0
        return result
    given = real_array("passive", passive)
    if given.shape != (robot.nv,):
        raise ContactProblemError(
            f"passive has shape {given.shape}; it must have one number for each of {robot.nv} velocities.",
            code="wrong-shape",
        )
    return np.where(given != 0.0, 1.0, 0.0)


def _explanation(
    arguments: ContactArguments,
    law: Law,
    passive: Array,
    tau: Any,
    torque: Array,
    force: Array,
    gap: Array,
    status: Any,
    residual: Array | None = None,
    outcome: Any = None,
) -> ContactExplanation:
    residual = np.zeros_like(force) if residual is None else residual
    outcome = np.zeros(np.shape(status)) if outcome is None else outcome
    return ContactExplanation(
        **outcome_of(arguments, law, Origin("inverse dynamics", arguments.scene), residual, gap, outcome, status),
        torque=torque,
        force=force,
        unexplained=passive * (torque if tau is None else torque - np.asarray(tau)),
    )
