"""`reflections`: velocities of a robot after an impact of several contacts at once (see `reflection_rounds`)."""

from __future__ import annotations

from typing import Any, NamedTuple

import delassus.numpy as np
from delassus.common.checks import check_integer, real_array
from delassus.compiler.host.inputs import Input
from delassus.compiler.host.kernel import kernel
from delassus.constrained.delassus.delassus_methods import lower_delassus
from delassus.constrained.solvers.status import Status
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.mechanism.rows import row_values, rows_in
from delassus.contact.cones.parameters import ContactParameters
from delassus.contact.problems.checks import ContactProblemError
from delassus.dynamics.tree.check import check_inertias
from delassus.linalg.products import mirror
from delassus.step.impacts.reflection_rounds import MOST, constrained_response, reflect
from delassus.step.points.parameters import contact_parameters, scene_for
from delassus.step.points.response import responding
from delassus.step.scene import Scene
from delassus.step.sources.contact import contacts_of


class Reflections(NamedTuple):
    """After an impact, of one state or a batch.

    Attributes:
        v: (…, nv) velocities [rad/s, m/s].
        impulse: (…, points) of the normals [N·s].
        rounds: (…) of reflections.
        status: (…) numbers of `Status`.
    """

    v: Any
    impulse: Any
    rounds: Any
    status: Any


@kernel(
    "(nq),(nv)->(nv),(points),(),()",
    inputs={"restitution": "(points)", "touching": "(points)", "rounds": Input("()", float(MOST))},
    result=Reflections,
)
def reflections_kernel(
    scene: Scene, q: Any, v: Any, *, restitution: Any = None, touching: Any = None, rounds: Any = float(MOST)
) -> Reflections:
    """After an impact of the contacts that touch (points,), not zero for each of them; by default all."""
    check_inertias(scene.model)
    mechanism = scene.row_mechanism
    motions = LinkMotions.of(mechanism.model, q, v)
    u = row_values(rows_in(mechanism, motions), motions.velocity, v)
    normals, ties = list(scene.normals), list(range(scene.m)[scene.bilateral])
    G, answer = constrained_response(mirror(lower_delassus(mechanism, q, "auto")), normals, ties)
    on = np.ones(len(normals)) > 0.0 if touching is None else touching != 0.0
    e = 1.0 if restitution is None else restitution
    found = reflect(G, u[normals], on, e, rounds)
    impulses = np.zeros(scene.m)
    impulses[normals] = found.impulse
    if answer is not None:
        impulses[ties] = answer @ found.impulse
    after = v + responding(mechanism, q, None)(impulses)
    status = np.where(found.settled, float(Status.CONVERGED), float(Status.ITERATIONS))
    status = np.where(np.isfinite(np.sum(after)), status, float(Status.NOT_FINITE))
    return Reflections(after, found.impulse, found.rounds, status)


def reflections(
    mechanism: Any, q: Any, v: Any, *, contacts: Any, restitution: Any = None, touching: Any = None, rounds: int = MOST
) -> Reflections:
    """Velocities after an impact of several contacts at once, without friction, of one state or a batch.

    Args:
        mechanism: The robot with its constraints, which go on holding, or a model.
        q: Configurations (…, nq) [rad, m].
        v: Velocities (…, nv) [rad/s, m/s] before the impact.
        contacts: Which contacts touch: some `Contact`. Their gaps are not asked.
        restitution: (…, points) from 0, plastic, to 1, without loss, instead of the contacts' own. By default these;
            if no contact has any, the impact is without loss.
        touching: (…, points) not zero for points that touch, where some of the contacts do not.
        rounds: Reflections at most.
    """
    scene, given = scene_for(mechanism, contacts_of(contacts), False, False)
    if not scene.points:
        raise ContactProblemError("contacts is empty: nothing strikes.", code="nothing-to-do")
    check_integer("rounds", rounds, 1, MOST)
    own = contact_parameters(given, ContactParameters(restitution=restitution)).restitution
    on = None if touching is None else real_array("touching", touching)
    return reflections_kernel(scene, q, v, rounds=float(rounds), restitution=own, touching=on)
