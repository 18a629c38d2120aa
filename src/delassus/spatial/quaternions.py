"""Unit quaternions as rotations: arrays (x, y, z, w), the real part w last.

q and -q are the same rotation. `quaternion_exp` and `quaternion_log` convert between quaternions and rotation vectors.
The direction of a rotation vector is the axis, its length θ is the angle [rad]. Near θ = 0, where the axis is
undefined, power series in θ² are used. Series and closed form are both evaluated, each at arguments in its own range;
so the discarded one has finite values and derivatives.
"""

from math import factorial
from typing import Any, Final

import delassus.numpy as np

_SERIES_BELOW: Final = 0.25
"""θ² below which sin(θ/2) and cos(θ/2) are power series; the truncation error is below 1e-17."""

_SIN_HALF: Final = tuple((-1) ** k / (2 * 4**k * factorial(2 * k + 1)) for k in range(6))
_COS_HALF: Final = tuple((-1) ** k / (4**k * factorial(2 * k)) for k in range(7))

_ARCTAN_BELOW: Final = 0.01
"""tan²(θ/2) below which the arctangent is a power series; the truncation error is below 1e-17."""

_ARCTAN: Final = tuple(2.0 * (-1) ** k / (2 * k + 1) for k in range(8))


def quaternion_multiply(a: Any, b: Any) -> Any:
    """The quaternion a b (4,): first the rotation b, then a."""
    vector = a[3] * b[:3] + b[3] * a[:3] + np.cross(a[:3], b[:3])
    return np.concatenate([vector, np.array([a[3] * b[3] - a[:3] @ b[:3]])])


def quaternion_conjugate(q: Any) -> Any:
    """The inverse rotation (4,)."""
    return np.concatenate([-q[:3], q[3:]])


def quaternion_rotate(q: Any, v: Any) -> Any:
    """Rotate a vector v (3,) by a unit quaternion q (4,)."""
    twice = 2.0 * np.cross(q[:3], v)
    return v + q[3] * twice + np.cross(q[:3], twice)


def quaternion_to_rotation(q: Any) -> Any:
    """The rotation matrix (3, 3) of a unit quaternion (4,)."""
    x, y, z, w = q[0], q[1], q[2], q[3]
    return np.array(
        [
            [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
            [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
            [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
        ]
    )


def quaternion_from_rotation(R: Any) -> Any:
    """The unit quaternion (4,) with w >= 0 of a rotation matrix (3, 3).

    R determines the products of all pairs of components. The four products with one component are normalized. That
    component is at least 1/2 in size, which avoids cancellation. The result has unit length even if R has drifted.
    """
    a, b, c = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    d, e, f = R[2, 1] + R[1, 2], R[0, 2] + R[2, 0], R[1, 0] + R[0, 1]
    xx, yy, zz = R[0, 0], R[1, 1], R[2, 2]
    of_x = np.array([1.0 + xx - yy - zz, f, e, a])
    of_y = np.array([f, 1.0 - xx + yy - zz, d, b])
    of_z = np.array([e, d, 1.0 - xx - yy + zz, c])
    of_w = np.array([a, b, c, 1.0 + xx + yy + zz])
    row = np.where(zz < 0.0, np.where(xx > yy, of_x, of_y), np.where(xx < -yy, of_z, of_w))
    return quaternion_normalize(np.where(row[3] < 0.0, -row, row))


def quaternion_normalize(q: Any) -> Any:
    """q / |q| (4,); NaN for q = 0."""
    return q / np.sqrt(q @ q)


def half_angle(theta2: Any) -> tuple[Any, Any]:
    """sin(θ/2) / θ and cos(θ/2) as smooth functions of θ² [rad²]."""
    near = theta2 < _SERIES_BELOW
    small, theta = np.where(near, theta2, 0.0), np.sqrt(np.where(near, 1.0, theta2))
    sine = np.where(near, power_series(_SIN_HALF, small), np.sin(0.5 * theta) / theta)
    cosine = np.where(near, power_series(_COS_HALF, small), np.cos(0.5 * theta))
    return sine, cosine


def power_series(coefficients: tuple[float, ...], x: Any) -> Any:
    """c₀ + c₁ x + c₂ x² + …"""
    total: Any = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        total = total * x + coefficient
    return total


def quaternion_exp(w: Any) -> Any:
    """The unit quaternion (4,) of a rotation vector (3,) [rad]."""
    sine, cosine = half_angle(w @ w)
    return np.concatenate([sine * w, np.array([cosine])])


def quaternion_log(q: Any) -> Any:
    """The shortest rotation vector (3,) [rad] of a quaternion q ≠ 0 of any length; its own length is at most π."""
    q = np.where(q[3] < 0.0, -q, q)
    size2 = q[:3] @ q[:3]
    near = size2 < _ARCTAN_BELOW * q[3] * q[3]
    real, size = np.where(near, q[3], 1.0), np.sqrt(np.where(near, 1.0, size2))
    by_series = power_series(_ARCTAN, np.where(near, size2, 0.0) / (real * real)) / real
    return np.where(near, by_series, 2.0 * np.arctan2(size, q[3]) / size) * q[:3]
