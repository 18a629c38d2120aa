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
from delassus.step.contact.soft import PointSoftness, soft_step
from delassus.step.laws.inputs import RowRelaxation
from delassus.step.laws.law import Law, Relaxed, Soft
from delassus.step.laws.relaxation import Relaxation
from delassus.step.laws.relaxed import relaxed_forces
from delassus.step.laws.rigid_forces import rigid_forces
from delassus.step.laws.softness import Softness
from delassus.step.laws.weights import row_weights

LARGEST_PYRAMIDS: Final = 48
"""Variables of friction pyramids up to which a step is compiled."""


def rigid(asked: ContactArguments, law: Ncp | Ccp | Lcp, solver: SolverOptions) -> ContactStep:
    """A step with rigid contact."""
    pyramid: dict[str, Any] = {}
    if isinstance(law, Lcp):
        if asked.scene.torsional:
            raise ContactProblemError(
                "law 'lcp' has neither torsional nor rolling friction; use 'ncp' or 'ccp'.", code="not-supported"
            )
        if (law.faces + 2) * asked.scene.points > LARGEST_PYRAMIDS:
            raise ContactProblemError(
                f"law 'lcp' with {asked.scene.points} points and {law.faces} faces would take minutes to compile: "
                "take 'ncp', or contact_problem(…).solve('lcp').",
                code="not-supported",
            )
        pyramid = {"faces": law.faces, "pyramid": law.pyramid}
    inputs = asked.inputs
    *found, share = contact_step(
        asked.scene,
        *asked.state,
        asked.step,
        surroundings=inputs,
        solver=solver_inputs(asked.scene, law, solver),
        parameters=asked.parameters,
        law=law.name,
        method=solver.method,
        **pyramid,
    )
    lowered = None if inputs.contact.restitution is None else share
    origin = Origin(
        "rigid", asked.scene, copy_arrays((*asked.state, asked.step)), inputs, lowered, parameters=asked.parameters
    )
    return _step(asked, law, found, origin, share)


def accelerations(
    asked: ContactArguments, law: Ncp | Ccp, solver: SolverOptions, rest: RestThresholds
) -> ContactForces:
    """Accelerations and forces with rigid contact."""
    asked.refuse_impacts("{} needs a time_step: without it, contacts are rigid and do not strike.")
    found = rigid_forces(
        asked.scene,
        *asked.state,
        surroundings=asked.without_stabilization,
        solver=solver_inputs(asked.scene, law, solver),
        parameters=asked.parameters,
        rest_gap=rest.rest_gap,
        rest_speed=rest.rest_speed,
        law=law.name,
        method=solver.method,
    )
    return forces_of(asked, law, found, Origin("accelerations without a step of time", asked.scene))


def soft(asked: ContactArguments, law: Soft, solver: SolverOptions) -> ContactStep:
    """A step with soft contact."""
    asked.refuse_impacts("the soft law has no {}: its stiffness and damping say how contacts give way.")
    default = Softness() if law.softness is None else law.softness
    own = [default if each.softness is None else each.softness for each in asked.contacts]
    softness = PointSoftness()
    if own:
        softness = PointSoftness(
            *(asked.per_point([getattr(each, name) for each in own]) for name in PointSoftness._fields)
        )
    found = soft_step(
        asked.scene,
        *asked.state,
        asked.step,
        surroundings=asked.inputs,
        solver=solver_inputs(asked.scene, law, solver),
        softness=softness,
        parameters=asked.parameters,
        method=solver.method,
    )
    return _step(asked, law, found, Origin("the soft model", asked.scene))


def step_relaxed(asked: ContactArguments, law: Relaxed, solver: SolverOptions) -> InContact:
    """A step with relaxed contact, or accelerations and forces without a step."""
    relaxation = row_relaxation(asked, law)
    h = np.zeros(()) if asked.step is None else asked.step
    found = relaxed_forces(
        asked.scene,
        *asked.state,
        h,
        surroundings=asked.without_stabilization,
        relaxation=relaxation,
        parameters=asked.parameters,
        solver=solver_inputs(asked.scene, law, solver),
        cone=law.cone,
        method=solver.method,
    )
    origin = Origin(
        "relaxed",
        asked.scene,
        copy_arrays((*asked.state, h)),
        asked.without_stabilization,
        relaxation=relaxation,
        parameters=asked.parameters,
    )
    if law.cone != "elliptic":
        origin = Origin("the relaxed model with pyramids", asked.scene)
    if asked.step is None:
        return forces_of(asked, law, found, origin)
    a, force, moving, residual, gap, made, status = found
    rows = h[..., None]
    q, v = _integrate_accelerations(asked, a)
    return _step(asked, law, (q, v, rows * force, rows * moving, rows * residual, gap, made, status), origin)


def row_relaxation(asked: ContactArguments, law: Relaxed) -> RowRelaxation:
    """Weights, references and impedances of all rows; those of contacts that have them are their own."""
    asked.refuse_impacts("the relaxed law has no {}: its solref and solimp say how rows give way.")
    usual = Relaxation() if law.relaxation is None else law.relaxation
    scene, rows = asked.scene, [usual] * asked.scene.m
    weight = row_weights(scene).copy()
    points = [contact for contact in asked.contacts for _ in contact.corners]
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


def free(asked: ContactArguments, law: Law, solver: SolverOptions) -> InContact:
    """The step, or the accelerations, of a robot that nothing touches."""
    solver_inputs(asked.scene, law, solver)  # refuses bad options all the same
    a = aba(asked.scene.mechanism, *asked.state, parameters=asked.parameters)
    motion = (a,) if asked.step is None else _integrate_accelerations(asked, a)
    batch = motion[-1].shape[:-1]
    empty = np.zeros((*batch, 0))
    status = np.where(np.isfinite(motion[-1]).all(-1), int(Status.CONVERGED), int(Status.NOT_FINITE))
    found = (*motion, empty, empty, empty, empty, np.zeros(batch), status)
    return (forces_of if asked.step is None else _step)(
        asked, law, found, Origin("a robot that nothing touches", asked.scene)
    )


def _integrate_accelerations(asked: ContactArguments, a: Any) -> tuple[Any, Any]:
    """Configurations and velocities after the step, with accelerations (…, nv) in the axes of the bodies."""
    q, v, _ = asked.state
    found: tuple[Any, Any] = advance_freely(asked.scene.model, q, v, a, asked.step, parameters=asked.parameters)
    return found


def forces_of(asked: ContactArguments, law: Law, found: Any, origin: Origin) -> ContactForces:
    """The result of a kernel that gives accelerations and forces."""
    a, force, moving, *rest = found
    return ContactForces(**outcome_of(asked, law, origin, *rest), acceleration=a, force=force, row_acceleration=moving)


def outcome_of(
    asked: ContactArguments, law: Law, origin: Origin, residual: Any, gap: Any, made: Any, status: Any
) -> dict[str, Any]:
    """Fields that all results share: the robot, the law, and the status."""
    return {
        "scene": asked.scene,
        "law": law.name,
        "gap": gap,
        "residuals": residual,
        "iterations": as_integer(made),
        "status": as_integer(status),
        "origin": origin,
    }


def _step(asked: ContactArguments, law: Law, found: Any, origin: Origin, restitution_share: Any = None) -> ContactStep:
    q, velocity, impulse, moving, *rest = found
    return ContactStep(
        **outcome_of(asked, law, origin, *rest),
        q=q,
        velocity=velocity,
        impulse=impulse,
        row_velocity=moving,
        pyramid=(law.faces, law.pyramid) if isinstance(law, Lcp) else None,
        restitution_share=np.ones(np.shape(rest[-1])) if restitution_share is None else restitution_share,
    )
