"""Poses and velocities of free bodies about their centers of mass, and their free flight.

In world axes, an impulse f at r changes velocities by Δv = f/m, Δω = I⁻¹ (r × f), independent of the axes of the body's
joint. The world is the last body, which no impulse moves.

Loops read tables by index. If they iterated over several arrays, elements of these would first be copied side by side.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import map as map_items
from delassus.compiler.tracing.flow.control import scan
from delassus.spatial.quaternions import quaternion_to_rotation
from delassus.spatial.rotations import inverse_symmetric
from delassus.step.bodies.tables import BodyTable
from delassus.step.scheme.free_rotation import PrincipalAxes
from delassus.step.scheme.rigid_flight import fly_body


class Poses(NamedTuple):
    """Poses of all bodies and the world: rotations (bodies + 1, 3, 3), origins and centers of mass (bodies + 1, 3) [m],
    and inverse inertias about these (bodies + 1, 3, 3) in world axes."""

    R: Any
    p: Any
    com: Any
    inverse_inertia: Any


class Masses(NamedTuple):
    """Masses (bodies + 1,) [kg], and inertias (bodies + 1, 3, 3) about the centers of mass in world axes [kg·m²]; the
    entries of the world are 1."""

    mass: Any
    inertia: Any


class Flight(NamedTuple):
    """Configurations (bodies, 7) and velocities (bodies, 6) after a step, and the largest number of substeps that a
    body needs."""

    q: Any
    v: Any
    substeps: Any


def numbers_to(count: int) -> Any:
    """0, 1, … (count,) as an array over which loops iterate."""
    return scan(lambda k, _: (k + 1.0, k), np.array(0.0), length=count)[1]


def poses_of(bodies: BodyTable, q: Any, numbers: Any) -> Poses:
    """Poses for configurations (bodies, 7); `numbers` (bodies + 1,) are the indices of the bodies."""

    def pose(k: Any) -> tuple[Any, ...]:
        own, moves = np.take(q, k, axis=0), k < float(bodies.n)
        R = np.where(moves, quaternion_to_rotation(own[3:]), numpy.eye(3))
        p = np.where(moves, own[:3], 0.0)
        com = np.where(moves, p + R @ np.take(bodies.com, k, axis=0), 0.0)
        inverse = np.take(bodies.inverse_inertia, k, axis=0)
        return R, p, com, np.where(moves, R @ inverse @ R.T, 0.0)

    return Poses(*map_items(pose, numbers))


def masses_of(bodies: BodyTable, poses: Poses) -> Masses:
    """Masses and inertias in the world."""

    def inertia(k: Any) -> Any:
        inverse = np.where(k < float(bodies.n), np.take(poses.inverse_inertia, k, axis=0), numpy.eye(3))
        return inverse_symmetric(inverse)

    return Masses(numpy.append(bodies.mass, 1.0), map_items(inertia, numbers_to(bodies.n + 1)))


def world_velocities(bodies: BodyTable, poses: Poses, v: Any, numbers: Any) -> Any:
    """Velocities (bodies + 1, 6) of centers of mass and angular velocities, in world axes, from joint velocities
    (bodies, 6)."""

    def turned(k: Any) -> Any:
        R, own = np.take(poses.R, k, axis=0), np.take(v, k, axis=0)
        linear = own[:3] + np.cross(own[3:], np.take(bodies.com, k, axis=0))
        return np.where(k < float(bodies.n), np.concatenate([R @ linear, R @ own[3:]]), 0.0)

    return map_items(turned, numbers)


def fly_bodies(bodies: BodyTable, q: Any, poses: Poses, velocity: Any, shift: Any, h: Any) -> Flight:
    """The free flight of all bodies, exact in momentum and energy, for a time h [s].

    Args:
        bodies: The bodies.
        q: (bodies, 7) initial configurations.
        poses: The poses of these configurations.
        velocity: (bodies + 1, 6) in the world, about centers of mass.
        shift: (bodies + 1, 6) a small displacement before the flight [m, rad], in the world; None for none.
        h: [s].
    """
    ends: list[Any] = [None] * bodies.n
    speeds: list[Any] = [None] * bodies.n
    substeps = np.array(1.0)
    for symmetric, own in ((True, bodies.symmetric), (False, bodies.skew)):
        if not own:
            continue
        chosen = numpy.array(own, float)
        axes = [numpy.array([getattr(bodies.axes[k], name) for k in own]) for name in ("inverse", "turn")]

        def flown(
            n: Any, symmetric: bool = symmetric, chosen: Any = chosen, axes: list[Any] = axes
        ) -> tuple[Any, Any, Any]:
            k = np.take(chosen, n)
            R, w, com = (np.take(x, k, axis=0) for x in (poses.R, velocity, bodies.com))
            spin = R.T @ w[3:]
            v = np.concatenate([R.T @ w[:3] - np.cross(spin, com), spin])
            moved = None
            if shift is not None:
                d = np.take(shift, k, axis=0)
                turned = R.T @ d[3:]
                moved = np.concatenate([R.T @ d[:3] - np.cross(turned, com), turned])
            principal = PrincipalAxes(np.take(axes[0], n, axis=0), np.take(axes[1], n, axis=0), symmetric)
            return fly_body(com, principal, np.take(q, k, axis=0), v, h, moved)

        q_end, v_end, needed = map_items(flown, numbers_to(len(own)))
        for n, k in enumerate(own):
            ends[k], speeds[k] = q_end[n], v_end[n]
        substeps = np.maximum(substeps, np.max(needed))
    return Flight(np.stack(ends), np.stack(speeds), substeps)
