"""Displacements of ground contact points of rolling bodies over a step, beyond J v (see `stages.rolling`).

Spheres with their center of mass at the center and equal moments of inertia do not need them: their lowest point stays
below the center.
"""

from __future__ import annotations

from typing import Any

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import scan_first
from delassus.geometry.surfaces import Surface
from delassus.step.bodies.collide import Slots, ground_touches, place_shape
from delassus.step.bodies.motion import Poses, fly_bodies, poses_of, world_velocities
from delassus.step.bodies.tables import GroundClass, Tables
from delassus.step.stages.rolling import touching_lead


def rolling_velocity(
    tables: Tables, q: Any, poses: Poses, numbers: Any, slots: Slots, velocity: Any, surface: Surface, h: Any
) -> Any:
    """(slots, 3) in the world [m/s], for body velocities (bodies + 1, 6); None if no shape needs it."""
    rolling = [own for own in tables.ground if _needs_lead(tables, own)]
    if not rolling:
        return None
    flight = fly_bodies(tables.bodies, q, poses, velocity, None, h)
    later = poses_of(tables.bodies, flight.q, numbers)
    then = world_velocities(tables.bodies, later, flight.v, numbers)
    ends = [(poses, velocity), (later, then)]

    def lead(k: Any, candidate: Any) -> tuple[Any, Any]:
        total = np.zeros(3)
        for own in rolling:
            item, point = _place_in_class(own, candidate)
            value = _lead(tables, own, ends, item, point, surface)
            total = total + np.where(item > -0.5, value, 0.0)
        return k + 1.0, total

    return scan_first(slots.count, lead, np.array(0.0), slots.candidate)[1]


def _place_in_class(own: GroundClass, candidate: Any) -> tuple[Any, Any]:
    """The shape of a candidate in a class and its point; -1 if the candidate is not in the class."""
    starts = own.candidate.astype(int)
    shape, point = (numpy.full(starts.max() + own.points + 1, x) for x in (-1.0, 0.0))
    for k, start in enumerate(starts):
        shape[start : start + own.points], point[start : start + own.points] = k, numpy.arange(own.points)
    return np.take(shape, candidate), np.take(point, candidate)


def _lead(tables: Tables, own: GroundClass, ends: Any, item: Any, point: Any, surface: Surface) -> Any:
    """(3,) the displacement velocity of a point of a shape of a class."""
    k = np.take(own.shapes, item)
    body = np.take(tables.shapes.body, k)
    points = []
    for at, w in ends:
        touches = ground_touches(own, tables.shapes, k, *place_shape(tables.shapes, at, k), surface)
        where, normal = (np.take(np.stack([touch[j] for touch in touches]), point, axis=0) for j in (1, 2))
        twist, origin = np.take(w, body, axis=0), np.take(at.p, body, axis=0)
        linear = twist[:3] + np.cross(twist[3:], origin - np.take(at.com, body, axis=0))
        points.append((where - origin, linear, twist[3:], normal))
    rolls = np.take(numpy.array([float(x) for x in own.example.rolls]), point)
    return np.where(rolls > 0.5, touching_lead(points[0], points[1], own.example.on_field), 0.0)


def _needs_lead(tables: Tables, own: GroundClass) -> bool:
    """Whether contact points of a class move on their bodies while these roll."""
    if not any(own.example.rolls):
        return False
    if own.example.kind.name != "sphere" or own.example.on_field:
        return True
    shapes, bodies = own.shapes.astype(int), tables.bodies
    carriers = tables.shapes.body[shapes].astype(int)
    centred = numpy.array_equal(tables.shapes.p[shapes], bodies.com[carriers])
    return not (centred and all(numpy.ptp(bodies.axes[k].inverse) == 0.0 for k in carriers))
