"""`contact_kinematics`: gaps, axes and Jacobians of the contacts of a robot."""

from __future__ import annotations

from typing import Any, NamedTuple

from delassus.contact.problems.checks import ContactProblemError
from delassus.step.points.geometry import contact_geometry
from delassus.step.points.parameters import plane_arrays, scene_for


class ContactKinematics(NamedTuple):
    """Contact points of one configuration or a batch.

    Attributes:
        gap: (…, points) distances [m], negative where bodies penetrate.
        jacobian: (…, rows, nv): the velocities of the rows t1, t2, n of each point are J v.
        axes: (…, points, 3, 3) t1, t2 and n as columns, in the world.
        place: (…, points, 3) where bodies touch, or would along the normal, in the world [m].

    >>> joint = dl.Joint("base", dl.model.Translation(), inertia=dl.Inertia.of(1.0))
    >>> ball = dl.Model("ball", (joint,), frame_list=(dl.model.Frame("center", 0),))
    >>> dl.contact.contact_kinematics(ball, [0.0, 0.0, 0.5], contacts=[dl.Contact("center", radius=0.1)]).jacobian.shape
    (3, 3)
    """

    gap: Any
    jacobian: Any
    axes: Any
    place: Any


def contact_kinematics(
    mechanism: Any, q: Any, *, contacts: Any, normal: Any = None, height: Any = None, parameters: Any = None
) -> ContactKinematics:
    """Gaps, Jacobians, directions and places of contacts in configurations q (…, nq); planes as in a step of time.

    >>> joint = dl.Joint("base", dl.model.Translation(), inertia=dl.Inertia.of(1.0))
    >>> ball = dl.Model("ball", (joint,), frame_list=(dl.model.Frame("center", 0),))
    >>> dl.contact.contact_kinematics(ball, [0.0, 0.0, 0.5], contacts=[dl.Contact("center", radius=0.1)]).gap
    array([0.4])
    """
    scene, _ = scene_for(mechanism, contacts, False, False)
    if not scene.points:
        raise ContactProblemError(
            "there are no contacts: pass at least one, such as contacts=[Contact('foot')].", code="nothing-to-do"
        )
    normal, height = plane_arrays(scene, normal, height)
    gap, J, axes, place = contact_geometry(scene, q, normal=normal, height=height, parameters=parameters)
    return ContactKinematics(gap, J[..., : scene.bilateral.start, :], axes, place)
