"""Rows of contacts of shapes in a step, from the collision stage of a simulation.

`stages.collide` detects the contacts of a state: gaps, points, axes, and the two bodies. If there are more candidates
than contact slots, it selects the nearest. Each slot then has rows like a named point (`ContactSlot`), and the step is
that of `rigid`.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.host.inputs import Bundle
from delassus.compiler.host.kernel import kernel
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.contact.solvers.options import SolverInputs
from delassus.step.compliant.kinematics import RowKinematics
from delassus.step.compliant.types import StepOptions
from delassus.step.contact.rigid import assemble_rows, solve_step
from delassus.step.laws.inputs import CONTACT, NOTHING, SOLVER, ContactInputs, ContactPlanes, surroundings
from delassus.step.points.slot_friction import contact_coefficients
from delassus.step.scene import Scene
from delassus.step.sources.contact_slot import ContactSlot
from delassus.step.stages.collide import Contacts, collide
from delassus.step.stages.kinematics import Kinematics, compute_kinematics
from delassus.step.stages.rows import contact_rows
from delassus.step.stages.types import GroundShape

_UP: Final = (0.0, 0.0, 1.0)
_OPTIONS: Final = StepOptions()


class ShapeStep(NamedTuple):
    """The results of `contact_step`, and the contacts of the slots: candidates (slots,), points and normals (slots, 3)
    in the world, and whether more candidates touch than there are slots."""

    q: Any
    v: Any
    impulse: Any
    row_velocity: Any
    residual: Any
    gap: Any
    iterations: Any
    status: Any
    restitution_share: Any
    candidate: Any
    point: Any
    normal: Any
    overflow: Any


class ShapeProblem(NamedTuple):
    """Results of `assemble_contacts`, and the coefficients of friction (slots,) of the contacts."""

    G: Any
    g: Any
    compliance: Any
    friction: Any
    torsional: Any
    rolling: Any


@kernel(
    "(nq),(nv),(nv),()->(nq),(nv),(m),(m),(m),(points),(),(),(),(slots),(slots,3),(slots,3),()",
    inputs={
        "surroundings": surroundings(CONTACT),
        "solver": SOLVER,
        "options": Bundle(StepOptions, "law", "method", "faces", "pyramid"),
    },
    result=ShapeStep,
)
def shape_contact_step(
    scene: Scene,
    q: Any,
    v: Any,
    tau: Any,
    time_step: Any,
    *,
    surroundings: ContactInputs = NOTHING,
    solver: SolverInputs,
    options: StepOptions = _OPTIONS,
) -> ShapeStep:
    """`contact_step` with contacts of shapes."""
    contacts, kinematics = shape_kinematics(scene, (q, v, time_step), surroundings)
    surroundings = _with_friction(scene, contacts, surroundings)
    results = solve_step(kinematics, (q, v, tau, time_step), surroundings, solver, options)
    normal = np.stack([axes[:, 2] for axes in contacts.axes])
    overflow = np.where(contacts.overflow, 1.0, 0.0)
    return ShapeStep._make((*results, contacts.candidate, contacts.point, normal, overflow))


@kernel(
    "(nq),(nv),(nv),()->(m,m),(m),(m),(slots),(slots),(slots)",
    inputs={"surroundings": surroundings(CONTACT), "restitution_share": "()"},
    result=ShapeProblem,
)
def assemble_shape_contacts(
    scene: Scene,
    q: Any,
    v: Any,
    tau: Any,
    time_step: Any,
    *,
    surroundings: ContactInputs = NOTHING,
    restitution_share: Any = None,
) -> ShapeProblem:
    """`assemble_contacts` with contacts of shapes."""
    contacts, kinematics = shape_kinematics(scene, (q, v, time_step), surroundings)
    G, g, compliance, _, _ = assemble_rows(kinematics, (q, v, tau, time_step), surroundings, restitution_share)
    friction, torsional, rolling, *_ = _with_friction(scene, contacts, surroundings).contact
    none = np.zeros(scene.slots)
    return ShapeProblem(
        G, g, compliance, friction, none if torsional is None else torsional, none if rolling is None else rolling
    )


def shape_kinematics(
    scene: Scene, state: tuple[Any, Any, Any], surroundings: ContactInputs
) -> tuple[Contacts, RowKinematics]:
    """The contacts of a state and the rows of all sources; `state` is q, v and h."""
    q, v, time_step = state
    kinematics = compute_kinematics(scene, q)
    contacts = collide(scene, kinematics, _ground(surroundings.planes), v, time_step)
    mechanism = _slot_mechanism(scene, kinematics, contacts)
    return contacts, RowKinematics.of(scene, mechanism, q, v, surroundings.time)


def _ground(planes: ContactPlanes) -> GroundShape:
    """The ground: the plane of all slots."""
    normal, height = planes
    return GroundShape(np.array(_UP) if normal is None else normal[0], np.array(0.0) if height is None else height[0])


def _slot_mechanism(scene: Scene, kinematics: Kinematics, contacts: Contacts) -> Mechanism:
    """The robot with the contacts of the slots, and all other rows, as constraints."""
    J, sharing = contact_rows(scene, kinematics, contacts)
    J, count = J if sharing is None else sharing.P @ J, scene.contact_rows
    slots = [
        ContactSlot(name=f"contact {k + 1}", J=J[count * k : count * (k + 1)], distance=contacts.gap[k])
        for k in range(scene.slots)
    ]
    return Mechanism(scene.model, (*slots, *scene.row_mechanism.constraints), model_constraints=False)


def _with_friction(scene: Scene, contacts: Contacts, surroundings: ContactInputs) -> ContactInputs:
    """Inputs with the friction coefficients of the shapes in the slots, if these override those of the ground."""
    contact, none = surroundings.contact, np.zeros(scene.slots)
    ground = tuple(none if x is None else x for x in contact[:3])
    own = contact_coefficients(scene, contacts.candidate, (ground[0], ground[1], ground[2]))
    changed = contact.replace(friction=own.friction, torsional=own.torsional, rolling=own.rolling)
    return surroundings._replace(contact=changed)
