"""`reflections`: velocities after a simultaneous impact of several contacts (see `reflection_rounds`)."""

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
    """The result of an impact, of one state or a batch.

    Attributes:
        v: (…, nv) velocities after the impact [rad/s, m/s].
        impulse: (…, points) normal impulses [N·s].
        rounds: (…) numbers of reflections.
        status: (…) values of `Status`.

    >>> joint = dl.Joint("base", dl.model.Translation(), inertia=dl.Inertia.of(2.0))
    >>> ball = dl.Model("ball", (joint,), frame_list=(dl.model.Frame("center", 0),))
    >>> contact = dl.Contact("center", friction=0.0)
    >>> dl.stepping.reflections(ball, np.zeros(3), [0.0, 0.0, -1.0], contacts=[contact]).impulse
    array([4.])
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
    """Velocities after an impact of the contacts where `touching` (points,) is nonzero; by default all contacts."""
    check_inertias(scene.model)
    mechanism = scene.row_mechanism
    motions = LinkMotions.of(mechanism.model, q, v)
    u = row_values(rows_in(mechanism, motions), motions.velocity, v)
    normals, bilateral = list(scene.normals), list(range(scene.m)[scene.bilateral])
    G, constraint_response = constrained_response(mirror(lower_delassus(mechanism, q, "auto")), normals, bilateral)
    on = np.ones(len(normals)) > 0.0 if touching is None else touching != 0.0
    e = 1.0 if restitution is None else restitution
    result = reflect(G, u[normals], on, e, rounds)
    impulses = np.zeros(scene.m)
    impulses[normals] = result.impulse
    if constraint_response is not None:
        impulses[bilateral] = constraint_response @ result.impulse
    reflected = v + responding(mechanism, q, None)(impulses)
    status = np.where(result.settled, float(Status.CONVERGED), float(Status.ITERATIONS))
    status = np.where(np.isfinite(np.sum(reflected)), status, float(Status.NOT_FINITE))
    return Reflections(reflected, result.impulse, result.rounds, status)


def reflections(
    mechanism: Any, q: Any, v: Any, *, contacts: Any, restitution: Any = None, touching: Any = None, rounds: int = MOST
) -> Reflections:
    """Velocities after a simultaneous impact of several contacts without friction, of one state or a batch.

    Args:
        mechanism: The robot with its constraints, which remain satisfied, or a model.
        q: Configurations (…, nq) [rad, m].
        v: Velocities (…, nv) [rad/s, m/s] before the impact.
        contacts: The contacts that touch, a list of `Contact`. Their gaps are not checked.
        restitution: (…, points) from 0 (plastic) to 1 (lossless). The default is that of the contacts; if no
            contact has a coefficient, the impact is lossless.
        touching: (…, points) nonzero for points that touch; all by default.
        rounds: Largest number of reflections.

    >>> joint = dl.Joint("base", dl.model.Translation(), inertia=dl.Inertia.of(1.0))
    >>> ball = dl.Model("ball", (joint,), frame_list=(dl.model.Frame("center", 0),))
    >>> contact = dl.Contact("center", friction=0.0)
    >>> dl.stepping.reflections(ball, np.zeros(3), [0.0, 0.0, -1.0], contacts=[contact]).v
    array([0., 0., 1.])
    """
    scene, parameters = scene_for(mechanism, contacts_of(contacts), False, False)
    if not scene.points:
        raise ContactProblemError("contacts is empty: at least one contact must touch.", code="nothing-to-do")
    check_integer("rounds", rounds, 1, MOST)
    e = contact_parameters(parameters, ContactParameters(restitution=restitution)).restitution
    on = None if touching is None else real_array("touching", touching)
    return reflections_kernel(scene, q, v, rounds=float(rounds), restitution=e, touching=on)
