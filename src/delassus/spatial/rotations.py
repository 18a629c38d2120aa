"""Rotation matrices and rotation vectors: the exponential of so(3), its inverse and their Jacobians.

The direction of a rotation vector w is the axis, its length θ is the angle [rad]. With W = w×, Rodrigues' formula is

    exp(w) = 1 + c₁ W + c₂ W²,    Jr(w) = 1 - c₂ W + c₃ W²,    cₖ = 1/k! - θ²/(k+2)! + θ⁴/(k+4)! - …

where c₀ = cos θ, c₁ = sin θ / θ, c₂ = (1 - cos θ)/θ² and so on by cₖ = 1/k! - θ² cₖ₊₂. Jr is the right Jacobian:
exp(w + δ) = exp(w) exp(Jr(w) δ) to first order in δ.
"""

from math import factorial
from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.spatial.quaternions import half_angle, power_series, quaternion_from_rotation, quaternion_log

_SERIES_BELOW: Final = 4.0
"""θ² below which c₅ and c₆ are power series; the truncation error is below 1e-17 of the sum."""

_C5: Final = tuple((-1) ** k / factorial(2 * k + 5) for k in range(10))
_C6: Final = tuple((-1) ** k / factorial(2 * k + 6) for k in range(10))


class Coefficients(NamedTuple):
    """The coefficients cₖ for one angle; see the module's docstring."""

    c1: Any
    c2: Any
    c3: Any
    c4: Any
    c5: Any
    c6: Any


def coefficients(theta2: Any) -> Coefficients:
    """c₁ … c₆ as smooth functions of θ² [rad²].

    The upward recursion cₖ₊₂ = (1/k! - cₖ)/θ² loses digits where θ is small. There, c₅ and c₆ are power series, and
    the recursion runs downwards.
    """
    sine, cosine = half_angle(theta2)
    c1, c2 = 2.0 * sine * cosine, 2.0 * sine * sine
    near = theta2 < _SERIES_BELOW
    small, large = np.where(near, theta2, 0.0), np.where(near, 1.0, theta2)
    c5, c6 = power_series(_C5, small), power_series(_C6, small)
    c3 = np.where(near, 1 / 6 - small * c5, (1.0 - c1) / large)
    c4 = np.where(near, 1 / 24 - small * c6, (0.5 - c2) / large)
    c5 = np.where(near, c5, (1 / 6 - c3) / large)
    c6 = np.where(near, c6, (1 / 24 - c4) / large)
    return Coefficients(c1, c2, c3, c4, c5, c6)


def skew(w: Any) -> Any:
    """The matrix w× (3, 3) of the cross product with a vector (3,)."""
    return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])


def rotation_exp(w: Any) -> Any:
    """The rotation matrix (3, 3) of a rotation vector (3,) [rad]."""
    c = coefficients(w @ w)
    return combination(w, 1.0, c.c1, c.c2)


def rotation_log(R: Any) -> Any:
    """The shortest rotation vector (3,) [rad] of a rotation matrix (3, 3), of length π at most.

    At θ = π the sign of the axis is undefined. Just below π, the result is as accurate as R.
    """
    return quaternion_log(quaternion_from_rotation(R))


def rotation_right_jacobian(w: Any) -> Any:
    """Jr(w) (3, 3): exp(w + δ) = exp(w) exp(Jr(w) δ) to first order."""
    c = coefficients(w @ w)
    return combination(w, 1.0, -c.c2, c.c3)


def rotation_right_jacobian_inverse(w: Any) -> Any:
    """Jr(w)⁻¹ (3, 3), the derivative of the logarithm; infinite where θ is a multiple of 2π, except 0."""
    return combination(w, 1.0, 0.5, inverse_coefficient(coefficients(w @ w)))


def inverse_coefficient(c: Coefficients) -> Any:
    """e with Jr(w)⁻¹ = 1 + W/2 + e W²: (1 - θ/2 cot θ/2)/θ², in a form without cancellation near θ = 0."""
    return (c.c3 - 2.0 * c.c4) / (2.0 * c.c2)


def combination(w: Any, a: Any, b: Any, c: Any) -> Any:
    """a 1 + b W + c W² (3, 3) with W = w×."""
    x, y, z = w[0], w[1], w[2]
    cx, cy, cz = c * x, c * y, c * z
    bx, by, bz = b * x, b * y, b * z
    xx, yy, zz, xy, yz, zx = cx * x, cy * y, cz * z, cx * y, cy * z, cz * x
    return np.array(
        [
            [a - (yy + zz), xy - bz, zx + by],
            [xy + bz, a - (zz + xx), yz - bx],
            [zx - by, yz + bx, a - (xx + yy)],
        ]
    )


def inverse_symmetric(A: Any) -> Any:
    """The inverse (3, 3) of a symmetric matrix, by its adjugate."""
    a, b, c = np.cross(A[1], A[2]), np.cross(A[2], A[0]), np.cross(A[0], A[1])
    return np.stack([a, np.stack([a[1], b[1], b[2]]), np.stack([a[2], b[2], c[2]])]) / (A[0] @ a)
