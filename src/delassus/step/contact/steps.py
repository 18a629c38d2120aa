"""Calls the kernel of a contact law, and builds the result."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from delassus.common.checks import POSITIVE, numbers_in_range
from delassus.constrained.rows.counts import as_integer
from delassus.constrained.solvers.status import Status
from delassus.contact.problems.checks import ContactProblemError
from delassus.contact.solvers.laws import Ccp, Lcp, Ncp
from delassus.contact.solvers.options import SolverOptions
from delassus.dynamics.forces.aba import aba
from delassus.step.contact.arguments import ContactArguments, solver_inputs
from delassus.step.contact.options import RestThresholds
from delassus.step.contact.origins import Origin, copy_arrays
from delassus.step.contact.result import ContactForces, ContactStep, InContact
from delassus.step.contact.rigid import advance_freely, contact_step
from delassus.step.contact.shape_contacts import ShapeContacts
from delassus.step.contact.shape_rows import shape_contact_step
from delassus.step.contact.soft import PointSoftness, soft_step
from delassus.step.laws.inputs import RowRelaxation
from delassus.step.laws.law import Law, Relaxed, Soft
from delassus.step.laws.relaxation import Relaxation
from delassus.step.laws.relaxed import relaxed_forces
from delassus.step.laws.rigid_forces import rigid_forces
from delassus.step.laws.softness import Softness
from delassus.step.laws.weights import row_weights

LARGEST_PYRAMIDS: Final = 48
"""Largest number of variables of friction pyramids for which a step is compiled."""


def rigid(arguments: ContactArguments, law: Ncp | Ccp | Lcp, solver: SolverOptions) -> ContactStep:
    """A step with rigid contact."""
    pyramid: dict[str, Any] = {}
    if isinstance(law, Lcp):
        if arguments.scene.torsional:
            raise ContactProblemError(
                "law 'lcp' has neither torsional nor rolling friction; use 'ncp' or 'ccp'.", code="not-supported"
            )
        if (law.faces + 2) * arguments.scene.points > LARGEST_PYRAMIDS:
            raise ContactProblemError(
                f"law 'lcp' with {arguments.scene.points} points and {law.faces} faces would take minutes to compile: "
                "pass 'ncp', or call contact_problem(…).solve('lcp').",
                code="not-supported",
            )
        pyramid = {"faces": law.faces, "pyramid": law.pyramid}
    inputs, scene = arguments.inputs, arguments.scene
    step: Any = shape_contact_step if scene.slots else contact_step
    results = step(
        arguments.scene,
        *arguments.state,
        arguments.step,
        surroundings=inputs,
        solver=solver_inputs(arguments.scene, law, solver),
        parameters=arguments.parameters,
        law=law.name,
        method=solver.method,
        **pyramid,
    )
    *result, share = results[:9]
    places = ShapeContacts.of(scene, *results[9:]) if scene.slots else None
    lowered = None if inputs.contact.restitution is None else share
    origin = Origin(
        "rigid",
        arguments.scene,
        copy_arrays((*arguments.state, arguments.step)),
        inputs,
        lowered,
        parameters=arguments.parameters,
    )
    return _step(arguments, law, result, origin, share, places)


def accelerations(
    arguments: ContactArguments, law: Ncp | Ccp, solver: SolverOptions, rest: RestThresholds
) -> ContactForces:
    """Accelerations and forces with rigid contact."""
    arguments.refuse_impacts("{} needs a time_step: without one, contacts are rigid and have no impacts.")
    result = rigid_forces(
        arguments.scene,
        *arguments.state,
        surroundings=arguments.without_stabilization,
        solver=solver_inputs(arguments.scene, law, solver),
        parameters=arguments.parameters,
        rest_gap=rest.rest_gap,
        rest_speed=rest.rest_speed,
        law=law.name,
        method=solver.method,
    )
    return forces_of(arguments, law, result, Origin("accelerations without a step of time", arguments.scene))


def soft(arguments: ContactArguments, law: Soft, solver: SolverOptions) -> ContactStep:
    """A step with soft contact."""
    arguments.refuse_impacts("the soft law has no {}: set stiffness and damping by its softness instead.")
    default = Softness() if law.softness is None else law.softness
    own = [default if each.softness is None else each.softness for each in arguments.contacts]
    softness = PointSoftness()
    if own:
        softness = PointSoftness(
            *(arguments.per_point([getattr(each, name) for each in own]) for name in PointSoftness._fields)
        )
    result = soft_step(
        arguments.scene,
        *arguments.state,
        arguments.step,
        surroundings=arguments.inputs,
        solver=solver_inputs(arguments.scene, law, solver),
        softness=softness,
        parameters=arguments.parameters,
        method=solver.method,
    )
    return _step(arguments, law, result, Origin("the soft model", arguments.scene))


def step_relaxed(arguments: ContactArguments, law: Relaxed, solver: SolverOptions) -> InContact:
    """A step with relaxed contact, or accelerations and forces without a step."""
    relaxation = row_relaxation(arguments, law)
    h = np.zeros(()) if arguments.step is None else arguments.step
    result = relaxed_forces(
        arguments.scene,
        *arguments.state,
        h,
        surroundings=arguments.without_stabilization,
        relaxation=relaxation,
        parameters=arguments.parameters,
        solver=solver_inputs(arguments.scene, law, solver),
        cone=law.cone,
        method=solver.method,
    )
    origin = Origin(
        "relaxed",
        arguments.scene,
        copy_arrays((*arguments.state, h)),
        arguments.without_stabilization,
        relaxation=relaxation,
        parameters=arguments.parameters,
    )
    if law.cone != "elliptic":
        origin = Origin("the relaxed model with pyramids", arguments.scene)
    if arguments.step is None:
        return forces_of(arguments, law, result, origin)
    a, force, moving, residual, gap, outcome, status = result
    rows = h[..., None]
    q, v = _integrate_accelerations(arguments, a)
    return _step(arguments, law, (q, v, rows * force, rows * moving, rows * residual, gap, outcome, status), origin)


def row_relaxation(arguments: ContactArguments, law: Relaxed) -> RowRelaxation:
    """Weights, solref and solimp of all rows; a contact with a relaxation has its own."""
    arguments.refuse_impacts("the relaxed law has no {}: set solref and solimp by its relaxation instead.")
    usual = Relaxation() if law.relaxation is None else law.relaxation
    scene, rows = arguments.scene, [usual] * arguments.scene.m
    weight = row_weights(scene).copy()
    points = [contact for contact in arguments.contacts for _ in contact.corners]
    for contact, own in zip(points, scene.layout.friction, strict=True):
        for row in own:
            rows[row] = usual if contact.relaxation is None else contact.relaxation
            weight[row] = weight[row] if rows[row].weight is None else rows[row].weight
    return RowRelaxation(
        weight,
        np.array([x.solref for x in rows]),
        np.array([x.solimp for x in rows]),
        numbers_in_range("impratio", law.impratio, POSITIVE),
    )


def free(arguments: ContactArguments, law: Law, solver: SolverOptions) -> InContact:
    """The step, or the accelerations, of a robot without rows."""
    solver_inputs(arguments.scene, law, solver)  # raises for invalid options
    a = aba(arguments.scene.mechanism, *arguments.state, parameters=arguments.parameters)
    motion = (a,) if arguments.step is None else _integrate_accelerations(arguments, a)
    batch = motion[-1].shape[:-1]
    empty = np.zeros((*batch, 0))
    status = np.where(np.isfinite(motion[-1]).all(-1), int(Status.CONVERGED), int(Status.NOT_FINITE))
    result = (*motion, empty, empty, empty, empty, np.zeros(batch), status)
    return (forces_of if arguments.step is None else _step)(
        arguments, law, result, Origin("a robot that nothing touches", arguments.scene)
    )


def _integrate_accelerations(arguments: ContactArguments, a: Any) -> tuple[Any, Any]:
    """Configurations and velocities after the step, with accelerations (…, nv) in the axes of the bodies."""
    q, v, _ = arguments.state
    result: tuple[Any, Any] = advance_freely(
        arguments.scene.model, q, v, a, arguments.step, parameters=arguments.parameters
    )
    return result


def forces_of(arguments: ContactArguments, law: Law, result: Any, origin: Origin) -> ContactForces:
    """Pack the result of a kernel that returns accelerations and forces."""
    a, force, moving, *rest = result
    return ContactForces(
        **outcome_of(arguments, law, origin, *rest), acceleration=a, force=force, row_acceleration=moving
    )


def outcome_of(
    arguments: ContactArguments, law: Law, origin: Origin, residual: Any, gap: Any, outcome: Any, status: Any
) -> dict[str, Any]:
    """Fields that all results share: the robot, the law, and the status."""
    return {
        "scene": arguments.scene,
        "law": law.name,
        "gap": gap,
        "residuals": residual,
        "iterations": as_integer(outcome),
        "status": as_integer(status),
        "origin": origin,
    }


def _step(
    arguments: ContactArguments,
    law: Law,
    result: Any,
    origin: Origin,
    restitution_share: Any = None,
    contacts: ShapeContacts | None = None,
) -> ContactStep:
    q, velocity, impulse, moving, *rest = result
    return ContactStep(
        **outcome_of(arguments, law, origin, *rest),
        q=q,
        velocity=velocity,
        impulse=impulse,
        row_velocity=moving,
        pyramid=(law.faces, law.pyramid) if isinstance(law, Lcp) else None,
        restitution_share=np.ones(np.shape(rest[-1])) if restitution_share is None else restitution_share,
        contacts=contacts,
    )
