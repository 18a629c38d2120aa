"""The torque-free rotation of a rigid body over a time h, which conserves angular momentum and kinetic energy exactly.

With the angular momentum L in principal axes a, b, c and the inverse moments of inertia i, T = ½ Σ i L² splits into

    T = ½ i_a |L|² + ½ (i_c - i_a) L_c²  +  ½ (i_b - i_a) L_b²,

a symmetric top and a rotation about b. Each is integrated in closed form: half a rotation, the top, half a rotation
(Strang splitting, second order), in N substeps. These rotations preserve L in the world. The energy error of the
splitting is removed by rotating the body along the gradient of T on the sphere |L| = const. Spheres and symmetric tops
take one exact substep. The axes a and b are those with the closest 1/I, so the error is that of a nearly symmetric
body.

Reference: E. Hairer, Ch. Lubich, G. Wanner, Geometric Numerical Integration (2006), chapter VII.5; for symmetric tops,
E. Celledoni, N. Säfström, Efficient time-symmetric simulation of torqued rigid bodies using Jacobi elliptic functions
(2006). Cost: about 60 operations for a sphere, 110 for a symmetric top, 400 per substep for others.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import while_loop
from delassus.spatial.quaternions import (
    quaternion_conjugate,
    quaternion_exp,
    quaternion_from_rotation,
    quaternion_multiply,
    quaternion_normalize,
    quaternion_rotate,
)

SUBSTEPS: Final = 32
"""Largest number of substeps."""

_ANGLE: Final = 0.5
"""Largest angle [rad] by which the axes of an asymmetric body rotate in a substep."""

_SYMMETRIC: Final = 1e-12
"""Relative difference below which moments of inertia count as equal."""

_SWEEPS: Final = 5
"""Sweeps of Jacobi's method for inertias that are inputs at run time: enough for full precision of any matrix."""


class PrincipalAxes(NamedTuple):
    """Inverse moments of inertia about the axes a, b, c [1/(kg·m²)], and these axes in the body's as a quaternion."""

    inverse: Any
    turn: Any
    symmetric: bool
    """Whether a and b are known, at compile time, to have the same moment."""


def principal_axes(I: Any) -> PrincipalAxes:
    """Principal axes of a rotational inertia I (3, 3) [kg·m²], plain or traced."""
    if isinstance(I, numpy.ndarray):
        moments, axes = _plain_axes(I)
        inverse = 1.0 / moments
        symmetric = bool(abs(inverse[1] - inverse[0]) <= _SYMMETRIC * inverse.max())
        if symmetric:
            inverse[:2] = inverse[:2].mean()
            if abs(inverse[2] - inverse[0]) <= _SYMMETRIC * inverse.max():
                inverse[:] = inverse[0]
        return PrincipalAxes(inverse, quaternion_from_rotation(axes), symmetric)
    return _traced_axes(I)


def rotate_freely(axes: PrincipalAxes, turn: Any, omega: Any, h: Any) -> tuple[Any, Any, Any]:
    """Orientation (4,) and angular velocity (3,) [rad/s] after a time h [s], in body axes; h may be negative.

    The third result is the number of substeps that accuracy requires; at most `SUBSTEPS` are made.
    """
    principal = quaternion_multiply(turn, axes.turn)
    L = quaternion_rotate(quaternion_conjugate(axes.turn), omega) / axes.inverse
    if axes.symmetric:
        principal, L = _rotate_top(principal, L, h, axes.inverse[0], axes.inverse[2])
        substeps = np.array(1.0)
    else:
        principal, L, substeps = _rotate_split(axes.inverse, principal, L, h)
    orientation = quaternion_multiply(principal, quaternion_conjugate(axes.turn))
    return quaternion_normalize(orientation), quaternion_rotate(axes.turn, axes.inverse * L), substeps


def _rotate_split(inverse: Any, turn: Any, L: Any, h: Any) -> tuple[Any, Any, Any]:
    """Rotate any body in principal axes by a splitting; also returns the number of substeps."""
    i_a, i_b, i_c = (inverse[k] for k in range(3))
    size, T = np.sqrt(L @ L), 0.5 * (L @ (inverse * L))
    scale = np.abs(h) * size
    skewness, spin = scale * np.abs(i_b - i_a), scale * np.abs(i_c - i_a)
    required = np.ceil(np.sqrt(skewness * np.maximum(skewness, spin)) / _ANGLE)
    required = np.maximum(np.maximum(required, np.ceil(skewness / _ANGLE)), 1.0)
    count = np.minimum(required, float(SUBSTEPS))
    k = h / count

    def substep(carry: Any) -> Any:
        turn, L, n = carry
        turn, L = _rotate_about_b(turn, L, 0.5 * k * (i_b - i_a))
        turn, L = _rotate_top(turn, L, k, i_a, i_c)
        turn, L = _rotate_about_b(turn, L, 0.5 * k * (i_b - i_a))
        for _ in range(2):
            correction = energy_turn(L, inverse * L, lambda x: inverse * x, T)
            turn, L = quaternion_multiply(turn, correction), quaternion_rotate(quaternion_conjugate(correction), L)
        return turn, L, n + 1.0

    turn, L, _ = while_loop(lambda carry: carry[2] < count, substep, (turn, L, np.array(0.0)), SUBSTEPS)
    return turn, L, required


def _rotate_top(turn: Any, L: Any, k: Any, i_a: Any, i_c: Any) -> tuple[Any, Any]:
    """Rotate a symmetric top over a time k: about its axis c, then about L."""
    half = 0.5 * k * (i_c - i_a) * L[2]
    c, s = np.cos(half), np.sin(half)
    rotation = quaternion_multiply(quaternion_exp(k * i_a * L), np.stack([0.0, 0.0, s, c]))
    c, s = c * c - s * s, 2.0 * s * c
    return quaternion_multiply(turn, rotation), np.stack([c * L[0] + s * L[1], c * L[1] - s * L[0], L[2]])


def _rotate_about_b(turn: Any, L: Any, per_momentum: Any) -> tuple[Any, Any]:
    """Rotate about the axis b by the angle `per_momentum` times L_b."""
    half = 0.5 * per_momentum * L[1]
    c, s = np.cos(half), np.sin(half)
    turn = quaternion_multiply(turn, np.stack([0.0, s, 0.0, c]))
    c, s = c * c - s * s, 2.0 * s * c
    return turn, np.stack([c * L[0] - s * L[2], L[1], c * L[2] + s * L[0]])


def energy_turn(L: Any, omega: Any, velocity_of: Any, T: Any, max_angle: Any = math.inf) -> Any:
    """The rotation (4,) after which a body with the same angular momentum has the kinetic energy T, or the nearest
    possible.

    L (3,) and ω = I⁻¹ L (3,) are in body axes, and `velocity_of` computes I⁻¹ x. The body rotates about L × u, where u
    is along the gradient of ½ L·I⁻¹L on the sphere |L| = const. After a rotation by φ, its energy is m + d cos 2φ + B
    sin 2φ, so t = tan φ solves (e + d) t² - 2 B t + e - d = 0 with e = T - m. The smaller root is used, or the extremum
    of the energy if T is beyond it; `max_angle` [rad] limits the angle.
    """
    square = np.maximum(L @ L, np.finfo(float).tiny)
    gradient = omega - (L @ omega) / square * L
    slope = gradient @ gradient
    flat = slope <= 1e-28 * (omega @ omega)
    u = np.sqrt(square / np.where(flat, 1.0, slope)) * gradient
    A, B, C = 0.5 * (L @ omega), 0.5 * (u @ omega), 0.5 * (u @ velocity_of(u))
    d, radius = 0.5 * (A - C), np.sqrt(0.25 * (A - C) * (A - C) + B * B)
    e = np.clip(T - 0.5 * (A + C), -radius, radius)
    below = B + np.sqrt(np.maximum((radius - e) * (radius + e), 0.0))  # B is not negative
    t = np.where(flat | (below <= 0.0), 0.0, (e - d) / np.where(below > 0.0, below, 1.0))
    t = np.clip(t, -max_angle, max_angle)
    c = 1.0 / np.sqrt(1.0 + t * t)
    half = np.sqrt(0.5 * (1.0 + c))
    return np.concatenate([(-0.5 * t * c / (half * square)) * np.cross(L, u), np.array([half])])


def _plain_axes(I: Any) -> tuple[Any, Any]:
    """Principal moments, and axes as columns: a right-handed triple whose first two have the closest 1/I."""
    if numpy.count_nonzero(I - numpy.diag(numpy.diag(I))):
        moments, axes = numpy.linalg.eigh(I)
    else:
        moments, axes = numpy.diag(I).copy(), numpy.eye(3)
    inverse = 1.0 / moments
    gaps = [abs(inverse[(k + 1) % 3] - inverse[(k + 2) % 3]) for k in range(3)]
    c = int(numpy.argmin(gaps))
    order = [(c + 1) % 3, (c + 2) % 3, c]  # a cyclic order keeps the triple right-handed
    moments, axes = moments[order], axes[:, order]
    if numpy.linalg.det(axes) < 0.0:
        axes = axes * numpy.array([1.0, 1.0, -1.0])
    return moments, axes


def _traced_axes(I: Any) -> PrincipalAxes:
    """Principal moments and axes by Jacobi's method, traced."""
    A, V = np.array(I), np.array(numpy.eye(3)) + 0.0 * I
    for p, q in [(0, 1), (0, 2), (1, 2)] * _SWEEPS:
        off_diagonal, d = A[p, q], A[q, q] - A[p, p]
        is_zero = off_diagonal == 0.0
        t = 2.0 * off_diagonal / np.where(is_zero, 1.0, np.abs(d) + np.sqrt(d * d + 4.0 * off_diagonal * off_diagonal))
        t = np.where(is_zero, 0.0, np.where(d < 0.0, -t, t))
        c = 1.0 / np.sqrt(1.0 + t * t)
        J = np.array(numpy.eye(3)) + 0.0 * I
        J[p, p], J[q, q], J[p, q], J[q, p] = c, c, t * c, -t * c
        A, V = J.T @ A @ J, V @ J
    inverse = np.stack([1.0 / A[k, k] for k in range(3)])
    ab, bc, ca = np.abs(inverse[0] - inverse[1]), np.abs(inverse[1] - inverse[2]), np.abs(inverse[2] - inverse[0])
    first, second = (ab <= bc) & (ab <= ca), bc <= ca

    def ordered(x: Any, y: Any, z: Any) -> Any:
        """A cyclic order whose last moment differs most from the others."""
        return [np.where(first, a, np.where(second, b, c)) for a, b, c in ((x, y, z), (y, z, x), (z, x, y))]

    axes = np.stack(ordered(*(V[:, k] for k in range(3))), axis=1)
    return PrincipalAxes(np.stack(ordered(*inverse)), quaternion_from_rotation(axes), False)
