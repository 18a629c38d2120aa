"""Free flight of a rigid body over a time step, exact in momentum and energy.

Forces and impulses act as a kick at the beginning of the step, v' = v + M⁻¹ (h f + Jᵀ λ). Then the body flies freely:
its center of mass moves along a straight line, and `free_rotation` computes its rotation. The kick therefore contains
no gyroscopic forces.
"""

from __future__ import annotations

from typing import Any

import numpy

import delassus.numpy as np
from delassus.dynamics.tree.recursion import bias_force, momentum
from delassus.dynamics.tree.sums import total
from delassus.model.links import Link
from delassus.model.traced import TracedInertia
from delassus.spatial.quaternions import quaternion_conjugate, quaternion_exp, quaternion_multiply, quaternion_rotate
from delassus.spatial.rotations import inverse_symmetric
from delassus.step.scheme.free_rotation import PrincipalAxes, principal_axes, rotate_freely


def fly(link: Link, q: Any, v: Any, h: Any, shift: Any = None) -> tuple[Any, Any, Any]:
    """Coordinates (7,) and velocity (6,) of a free body after a time h [s], and the number of substeps of its rotation.

    q (7,) and v (6,) are those of the body. A displacement (6,) [m, rad] is applied at the beginning, without a
    velocity.
    """
    return fly_body(np.array(link.inertia.com), principal_axes(_rotational(link)), q, v, h, shift)


def fly_body(c: Any, axes: PrincipalAxes, q: Any, v: Any, h: Any, shift: Any = None) -> tuple[Any, Any, Any]:
    """As `fly`, for a body with its center of mass at c (3,) [m] and these principal axes there, plain or traced."""
    position, turn, spin = q[:3], q[3:], v[3:]
    velocity, step = v[:3] + np.cross(spin, c), h * v[:3] + h * np.cross(spin, c)
    start = turn
    if shift is not None:
        step = step + shift[:3] + np.cross(shift[3:], c)
        start = quaternion_multiply(turn, quaternion_exp(shift[3:]))
    end, spin_end, substeps = rotate_freely(axes, start, spin, h)
    center = quaternion_rotate(turn, c + step)
    in_end = quaternion_rotate(quaternion_multiply(quaternion_conjugate(end), turn), velocity)
    q_end = np.concatenate([position + center - quaternion_rotate(end, c), end])
    return q_end, np.concatenate([in_end - np.cross(spin_end, c), spin_end]), substeps


def kick_acceleration(link: Link, v: Any, a: Any) -> Any:
    """I⁻¹ f (6,) for the force f that gives a free body the acceleration a (6,) at the velocity v (6,)."""
    f, n = total(momentum(link, a[:3], a[3:]), bias_force(link, v[:3], v[3:]))
    c = np.array(link.inertia.com)
    alpha = inverse_symmetric(np.array(link.inertia.rotational)) @ (n - np.cross(c, f))
    return np.concatenate([f / link.inertia.mass - np.cross(alpha, c), alpha])


def _rotational(link: Link) -> Any:
    """The rotational inertia (3, 3) about the center of mass: plain, or traced if it is an input at run time."""
    I = link.inertia.rotational
    return np.array(I) if isinstance(link.inertia, TracedInertia) else numpy.array(I)
