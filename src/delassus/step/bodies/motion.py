"""Poses and velocities of free bodies: in the world about their centres of mass while impulses act, and their flight.

In the world a kick is Δv = f/m, Δω = I⁻¹ (r × f), whatever the axes of the body's joint are. The world itself is the
body after all others, which no impulse moves.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import map as map_items
from delassus.spatial.quaternions import quaternion_to_rotation
from delassus.step.bodies.tables import BodyTable
from delassus.step.scheme.free_rotation import PrincipalAxes
from delassus.step.scheme.rigid_flight import fly_body


class Poses(NamedTuple):
    """Of all bodies and the world: rotations (bodies + 1, 3, 3), origins and centres of mass (bodies + 1, 3) [m],
    inverse inertias about these (bodies + 1, 3, 3) in the world's axes, inverse masses (bodies + 1,)."""

    R: Any
    p: Any
    com: Any
    inverse_inertia: Any
    inverse_mass: Any


class Flight(NamedTuple):
    """Configurations (bodies, 7), velocities (bodies, 6) after a step, and the most substeps that a body needs."""

    q: Any
    v: Any
    substeps: Any


def poses_of(bodies: BodyTable, q: Any) -> Poses:
    """From configurations (bodies, 7)."""

    def pose(q: Any, com: Any, inverse: Any) -> tuple[Any, ...]:
        R = quaternion_to_rotation(q[3:])
        return R, q[:3], q[:3] + R @ com, R @ inverse @ R.T

    R, p, com, inertia = map_items(pose, q, bodies.com, bodies.inverse_inertia)
    none, zero = numpy.zeros((1, 3, 3)), numpy.zeros((1, 3))
    return Poses(
        np.concatenate([R, numpy.eye(3)[None]]),
        np.concatenate([p, zero]),
        np.concatenate([com, zero]),
        np.concatenate([inertia, none]),
        numpy.append(1.0 / bodies.mass, 0.0),
    )


def world_velocities(bodies: BodyTable, poses: Poses, v: Any) -> Any:
    """(bodies + 1, 6) velocities of centres of mass and spins in the world, from those (bodies, 6) of the joints."""

    def turned(R: Any, com: Any, v: Any) -> Any:
        return np.concatenate([R @ (v[:3] + np.cross(v[3:], com)), R @ v[3:]])

    return np.concatenate([map_items(turned, poses.R[:-1], bodies.com, v), numpy.zeros((1, 6))])


def fly_bodies(bodies: BodyTable, q: Any, poses: Poses, velocity: Any, shift: Any, h: Any) -> Flight:
    """The free flight of all bodies, exact in momentum and energy, for a time h [s].

    Args:
        bodies: What they are.
        q: (bodies, 7) where they start.
        poses: The same as poses.
        velocity: (bodies + 1, 6) in the world, about centres of mass.
        shift: (bodies + 1, 6) a small motion before the flight [m, rad], in the world; None for none.
        h: [s].
    """
    ends: list[Any] = [None] * bodies.count
    speeds: list[Any] = [None] * bodies.count
    substeps = np.array(1.0)
    for symmetric, numbers in ((True, bodies.symmetric), (False, bodies.skew)):
        if not numbers:
            continue

        def flown(
            q: Any, R: Any, com: Any, inverse: Any, turn: Any, w: Any, d: Any = None, symmetric: bool = symmetric
        ) -> Any:
            spin = R.T @ w[3:]
            v = np.concatenate([R.T @ w[:3] - np.cross(spin, com), spin])
            moved = None
            if d is not None:
                turned = R.T @ d[3:]
                moved = np.concatenate([R.T @ d[:3] - np.cross(turned, com), turned])
            return fly_body(com, PrincipalAxes(inverse, turn, symmetric), q, v, h, moved)

        own = list(numbers)
        tables = [bodies.com[own], *(numpy.array([getattr(bodies.axes[k], x) for k in own]) for x in ("inverse", "turn"))]
        extra = [] if shift is None else [shift[own]]
        q_end, v_end, needed = map_items(flown, q[own], poses.R[own], *tables, velocity[own], *extra)
        for n, k in enumerate(own):
            ends[k], speeds[k] = q_end[n], v_end[n]
        substeps = np.maximum(substeps, np.max(needed))
    return Flight(np.stack(ends), np.stack(speeds), substeps)
