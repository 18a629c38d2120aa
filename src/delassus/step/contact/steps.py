"""From what a call asks for to its result: which kernel is called, for each law of contact."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from delassus.common.checks import POSITIVE, numbers_in_range
from delassus.constrained.rows.counts import whole
from delassus.constrained.solvers.status import Status
from delassus.contact.cones.pyramid import face_angles
from delassus.contact.problems.checks import ContactProblemError
from delassus.dynamics.forces.aba import aba
from delassus.errors import expect
from delassus.step.contact.asked import Asked, resting
from delassus.step.contact.origins import Origin
from delassus.step.contact.result import ContactForces, ContactStep, InContact
from delassus.step.contact.rigid import advance_freely, contact_step
from delassus.step.contact.soft import soft_step
from delassus.step.laws.inputs import structured
from delassus.step.laws.relaxation import Relaxation
from delassus.step.laws.relaxed import relaxed_forces
from delassus.step.laws.rigid_forces import rigid_forces
from delassus.step.laws.softness import Softness
from delassus.step.laws.weights import row_weights

LARGEST_PYRAMIDS: Final = 48
"""Variables of friction pyramids up to which a step is compiled."""


class Relaxed(NamedTuple):
    """How rows are relaxed: those of contacts that do not say it themselves, and all others."""

    relaxation: Relaxation | None
    impratio: Any
    cone: str


def rigid(asked: Asked, law: str, faces: int, pyramid: str) -> ContactStep:
    """A step with rigid contact; the last two are for the model "lcp"."""
    options: dict[str, Any] = {"law": law}
    if law == "lcp":
        face_angles(faces, pyramid)
        if asked.scene.torsional:
            raise ContactProblemError(
                "model 'lcp' has no torsional and rolling friction; take 'ncp' or 'ccp'.", code="not-supported"
            )
        if (faces + 2) * asked.scene.points > LARGEST_PYRAMIDS:
            raise ContactProblemError(
                f"model 'lcp' with {asked.scene.points} points and {faces} faces would take minutes to compile: "
                "take 'ncp', or contact_problem(…).solve('lcp').",
                code="not-supported",
            )
        options |= {"faces": int(faces), "pyramid": pyramid}
    given = asked.solver | asked.numbers | asked.rest | options
    *found, share = contact_step(asked.scene, *asked.state, asked.step, **structured(given))
    numbers = asked.numbers | asked.rest
    if "restitution" in numbers:
        numbers |= {"restitution_share": share}
    origin = Origin.of("rigid", asked.scene, (*asked.state, asked.step), numbers)
    return _step(asked, law, found, origin, (int(faces), pyramid) if law == "lcp" else None, share)


def accelerations(asked: Asked, law: str, rest_gap: float, rest_speed: float) -> ContactForces:
    """Accelerations and forces with rigid contact."""
    unknown = [name for name in ("restitution", "compliance") if name in asked.numbers]
    if unknown:
        raise ContactProblemError(
            f"{unknown[0]} needs a time_step: without it, contacts are rigid and do not strike.",
            code="conflicting-arguments",
        )
    rest = {name: value for name, value in asked.rest.items() if name != "stabilization"}
    found = rigid_forces(
        asked.scene,
        *asked.state,
        **structured(asked.solver | asked.numbers | rest),
        law=law,
        rest_gap=resting("rest_gap", rest_gap),
        rest_speed=resting("rest_speed", rest_speed),
    )
    return forces_of(asked, law, found, Origin("accelerations without a step of time", asked.scene))


def soft(asked: Asked, softness: Softness | None) -> ContactStep:
    """A step with soft contact."""
    unknown = [name for name in ("restitution", "compliance") if name in asked.numbers]
    if unknown:
        raise ContactProblemError(
            f"the soft model has no {unknown[0]}: its stiffness and damping say how contacts give way.",
            code="conflicting-arguments",
        )
    softness = Softness() if softness is None else softness
    expect("the softness", softness, Softness, "Softness(stiffness=1e4)")
    own = [softness if contact.softness is None else contact.softness for contact in asked.contacts]
    springs: dict[str, Any] = {}
    if own:
        springs = {name: asked.per_point([getattr(x, name) for x in own]) for name in vars(softness)}
    given = structured(asked.solver | _cones(asked) | springs | asked.rest)
    found = soft_step(asked.scene, *asked.state, asked.step, **given)
    return _step(asked, "soft", found, Origin("the soft model", asked.scene))


def relaxed(asked: Asked, how: Relaxed) -> InContact:
    """A step with relaxed contact, or accelerations and forces without a step."""
    numbers = relaxed_numbers(asked, how)
    h = np.zeros(()) if asked.step is None else asked.step
    found = relaxed_forces(asked.scene, *asked.state, h, **structured(asked.solver | numbers), cone=how.cone)
    origin = Origin.of("relaxed", asked.scene, (*asked.state, h), numbers)
    if how.cone != "elliptic":
        origin = Origin("the relaxed model with pyramids", asked.scene)
    if asked.step is None:
        return forces_of(asked, "relaxed", found, origin)
    a, force, moving, residual, gap, made, status = found
    rows = h[..., None]
    q, v = _moved(asked, a)
    return _step(asked, "relaxed", (q, v, rows * force, rows * moving, rows * residual, gap, made, status), origin)


def relaxed_numbers(asked: Asked, how: Relaxed) -> dict[str, Any]:
    """Weights, references and impedances of all rows, and what else the kernels of the relaxed model take."""
    usual = Relaxation() if how.relaxation is None else how.relaxation
    expect("the relaxation", usual, Relaxation, "Relaxation(solref=(0.02, 1.0))")
    impratio = numbers_in_range("impratio", how.impratio, POSITIVE)
    scene, rows = asked.scene, [usual] * asked.scene.m
    weight = row_weights(scene).copy()
    points = [contact for contact in asked.contacts for _ in contact.corners]
    for contact, own in zip(points, scene.layout.friction, strict=True):
        for row in own:
            rows[row] = usual if contact.relaxation is None else contact.relaxation
            weight[row] = weight[row] if rows[row].weight is None else rows[row].weight
    unknown = [name for name in ("restitution", "compliance") if name in asked.numbers]
    if unknown:
        raise ContactProblemError(
            f"the relaxed model has no {unknown[0]}: its solref and solimp say how rows give way.",
            code="conflicting-arguments",
        )
    found = {
        "weight": weight,
        "reference": np.array([x.solref for x in rows]),
        "impedance": np.array([x.solimp for x in rows]),
        "impratio": impratio,
    }
    rest = {name: value for name, value in asked.rest.items() if name != "stabilization"}
    return found | _cones(asked) | rest


def free(asked: Asked, law: str) -> InContact:
    """The step, or the accelerations, of a robot that nothing touches."""
    a = aba(asked.scene.mechanism, *asked.state, parameters=asked.rest.get("parameters"))
    motion = (a,) if asked.step is None else _moved(asked, a)
    batch = motion[-1].shape[:-1]
    empty = np.zeros((*batch, 0))
    status = np.where(np.isfinite(motion[-1]).all(-1), int(Status.CONVERGED), int(Status.NOT_FINITE))
    found = (*motion, empty, empty, empty, empty, np.zeros(batch), status)
    return (forces_of if asked.step is None else _step)(
        asked, law, found, Origin("a robot that nothing touches", asked.scene)
    )


def _moved(asked: Asked, a: Any) -> tuple[Any, Any]:
    """Configurations and velocities after the step, with accelerations (…, nv) in the axes of the bodies."""
    q, v, _ = asked.state
    found: tuple[Any, Any] = advance_freely(
        asked.scene.model, q, v, a, asked.step, parameters=asked.rest.get("parameters")
    )
    return found


def forces_of(asked: Asked, law: str, found: Any, origin: Origin) -> ContactForces:
    """The result of a kernel that gives accelerations and forces."""
    a, force, moving, residual, gap, made, status = found
    return ContactForces(
        scene=asked.scene,
        model=law,
        gap=gap,
        residuals=residual,
        iterations=whole(made),
        status=whole(status),
        origin=origin,
        acceleration=a,
        force=force,
        row_acceleration=moving,
    )


def _step(
    asked: Asked,
    law: str,
    found: Any,
    origin: Origin,
    pyramid: tuple[int, str] | None = None,
    restitution_share: Any = None,
) -> ContactStep:
    q, velocity, impulse, moving, residual, gap, made, status = found
    return ContactStep(
        scene=asked.scene,
        model=law,
        gap=gap,
        residuals=residual,
        iterations=whole(made),
        status=whole(status),
        origin=origin,
        q=q,
        velocity=velocity,
        impulse=impulse,
        row_velocity=moving,
        pyramid=pyramid,
        restitution_share=np.ones(np.shape(status)) if restitution_share is None else restitution_share,
    )


def _cones(asked: Asked) -> dict[str, Any]:
    """What of the numbers is friction, or where planes are."""
    names = ("friction", "torsional", "rolling", "normal", "height")
    return {name: asked.numbers[name] for name in names if name in asked.numbers}
