"""Integration of velocities on the manifold that conserves the momentum of a free body.

Velocities of free and planar joints are in the axes of the moving body. During a step they are expressed in the axes at
its beginning: v⁺ = v + h a with the acceleration a = v̇ + ω × v. The origin moves along a straight line, p + h R v⁺.
Finally, the velocity is transformed to the axes at the end. Integrating v̇ in rotating axes instead would add the
fraction h ω²/2 of a body's momentum per second.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import delassus.numpy as np
from delassus.dynamics.kinematics.manifold import integrate
from delassus.dynamics.kinematics.manifold import parts as elements
from delassus.model.links import Link, links_of
from delassus.model.model import Model
from delassus.step.scheme.components import Component
from delassus.step.scheme.rigid_flight import fly


def turning(model: Model, v: Any) -> Any:
    """-ω × v (nv,) for joints with velocities in moving axes: v̇ if the velocity in the world is constant."""
    rates = np.zeros(model.nv)
    for motion, _, j in elements(model):
        if motion.body_axes:
            joint_rates = motion.turning_rates(v[j : j + motion.nv])
            rates[j : j + len(joint_rates)] = joint_rates
    return rates


def without_flight(parts: Iterable[Component], v: Any) -> Any:
    """Velocities (nv,) with those of free bodies set to zero, for the velocity products of a kick."""
    result = np.array(v)
    for part in parts:
        if part.rigid:
            result[list(part.dofs)] = 0.0
    return result


def integrate_velocity(
    model: Model, parts: Iterable[Component], q: Any, v: Any, h: Any, displacement: Any = None
) -> tuple[Any, Any, Any]:
    """Configuration (nq,) and velocity (nv,) after a step h [s] with the velocity v (nv,) in the axes of its beginning.

    The displacement (nv,) [m, rad] is h v by default. Free bodies are first displaced by its difference from h v, then
    fly as rigid bodies. The third result is the largest number of substeps that a body requires, see `rotate_freely`.
    """
    step = h * v if displacement is None else displacement
    q_end, v_end = np.array(integrate(model, q, step)), np.array(v)
    for motion, i, j in elements(model):
        if motion.body_axes:
            at = slice(j, j + motion.nv)
            position, velocity = motion.step_straight(q[i : i + motion.nq], v[at], step[at])
            q_end[i : i + len(position)], v_end[j : j + len(velocity)] = position, velocity
    substeps = np.array(1.0)
    for link, at, dofs in free_bodies(model, parts):
        shift = None if displacement is None else displacement[dofs] - h * v[dofs]
        q_end[at], v_end[dofs], body_substeps = fly(link, q[at], v[dofs], h, shift)
        substeps = np.maximum(substeps, body_substeps)
    return q_end, v_end, substeps


def fly_all(
    model: Model, parts: Iterable[Component], start: tuple[Any, Any], h: Any, others: tuple[Any, Any], shift: Any = None
) -> tuple[Any, Any]:
    """Configuration (nq,) and velocity (nv,) of `others`, with the free bodies replaced by their flight from `start`
    over h [s]."""
    q, v = np.array(others[0]), np.array(others[1])
    for link, i, j in free_bodies(model, parts):
        q[i], v[j], _ = fly(link, start[0][i], start[1][j], h, None if shift is None else shift[j])
    return q, v


def free_bodies(model: Model, parts: Iterable[Component]) -> Iterator[tuple[Link, slice, slice]]:
    """Free bodies, and the indices of their coordinates and velocities."""
    links = links_of(model).links
    for link in (links[part.roots[0]] for part in parts if part.rigid):
        yield link, slice(link.q, link.q + 7), slice(link.v, link.v + 6)


def velocity_at_start(model: Model, parts: Sequence[Component], q: Any, v_end: Any, h: Any) -> Any:
    """Velocities (nv,) in the axes at the beginning of a step, from those in the axes at its end: inverts
    `integrate_velocity`.

    A flight over -h inverts a flight over h, up to the small rotations that conserve energy. Two corrections by
    fixed-point iteration remove this difference.
    """
    target = v_end
    v_start = integrate_velocity(model, parts, q, target, -h)[1]
    for _ in range(2 if any(part.rigid for part in parts) else 0):
        target = target + v_end - integrate_velocity(model, parts, q, v_start, h)[1]
        v_start = integrate_velocity(model, parts, q, target, -h)[1]
    return v_start
