"""How the points of rolling bodies on the ground move over a step, beyond J v: see `stages.rolling`.

Balls whose centre is that of their mass, with equal moments of inertia, roll without it: their lowest point stays below
their centre.
"""

from __future__ import annotations

from typing import Any

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import map as map_items
from delassus.geometry.surfaces import Surface
from delassus.step.bodies.collide import Slots, ground_touches
from delassus.step.bodies.motion import Poses, fly_bodies, poses_of, world_velocities
from delassus.step.bodies.rows import ContactRows
from delassus.step.bodies.tables import GroundClass, Tables
from delassus.step.stages.rolling import touching_lead


def rolling_velocity(
    tables: Tables, q: Any, poses: Poses, slots: Slots, rows: ContactRows, velocity: Any, surface: Surface, h: Any
) -> Any:
    """(slots, 3) along the axes of the contacts [m/s], of bodies with velocities (bodies + 1, 6)."""
    total = len(slots.gap)
    if not any(_needs_lead(tables, some) for some in tables.ground):
        return numpy.zeros((total, 3))
    flight = fly_bodies(tables.bodies, q, poses, velocity, None, h)
    later = poses_of(tables.bodies, flight.q)
    then = world_velocities(tables.bodies, later, flight.v)
    parts, start = [], 0
    for some in tables.ground:
        own = slice(start, start + some.slots)
        start += some.slots
        if not _needs_lead(tables, some):
            parts.append(numpy.zeros((some.slots, 3)))
            continue

        def lead(entry: Any, axes: Any, some: GroundClass = some) -> Any:
            shape = np.floor((entry + 0.5) / float(some.points))
            body, point = np.take(some.shapes.body, shape), entry - float(some.points) * shape
            ends = []
            for at, w in ((poses, velocity), (later, then)):
                touches = ground_touches(some, at, surface, shape)
                where, normal = (np.take(np.stack([t[k] for t in touches]), point, axis=0) for k in (1, 2))
                twist, origin = np.take(w, body, axis=0), np.take(at.p, body, axis=0)
                linear = twist[:3] + np.cross(twist[3:], origin - np.take(at.com, body, axis=0))
                ends.append((where - origin, linear, twist[3:], normal))
            rolls = np.take(numpy.array([float(x) for x in some.example.rolls]), point)
            return axes.T @ np.where(rolls > 0.5, touching_lead(ends[0], ends[1], some.example.on_field), 0.0)

        parts.append(map_items(lead, slots.entry[own], rows.axes[own]))
    parts.append(numpy.zeros((total - start, 3)))
    return np.concatenate(parts)


def _needs_lead(tables: Tables, some: GroundClass) -> bool:
    """Whether points of a class move on their bodies as these roll."""
    if not any(some.example.rolls):
        return False
    if some.example.kind.name != "sphere" or some.example.on_field:
        return True
    bodies, own = tables.bodies, some.shapes.body.astype(int)
    centred = numpy.array_equal(some.shapes.p, bodies.com[own])
    round_ = all(numpy.ptp(bodies.axes[k].inverse) == 0.0 for k in own)
    return not (centred and round_)
