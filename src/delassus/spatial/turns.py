"""Rotations as a few rotations about coordinate axes: a cheap way to transform vectors and inertias.

Any rotation matrix is R = Rz(α) Rx(β) Rz(γ). Turning a vector about one axis takes 6 operations and turning a
matrix 16 to 23, where a product with a full 3×3 matrix takes 15 and 75 to 90. Besides, a revolute joint about z
merges with the last turn, Rz(γ) Rz(q) = Rz(γ + q), and turns by multiples of a quarter vanish from a compiled kernel.
"""

import math
from typing import Any, Final, TypeAlias

import numpy
from numpy.typing import NDArray

import delassus.numpy as np

Turn: TypeAlias = tuple[int, Any, Any]
"""Axis (0, 1, 2) and the cosine and sine of the angle."""


_ROUNDING: Final = 1e-15
"""Sines below this are taken for 0: a few roundings of the matrix that they are read off."""


def zxz(R: NDArray[numpy.float64]) -> tuple[Turn, Turn, Turn]:
    """The turns (Rz(α), Rx(β), Rz(γ)) whose product is a constant rotation R; γ = 0 where β is 0 or π.

    Near these two, R hardly says what α is, and only α ± γ matters. So γ is what is left once α is turned back: the
    first row of Rz(α)ᵀ R = Rx(β) Rz(γ). Read off the last row of R, as α is off the last column, it would not fit α:
    their sum would have an error of 1e-16/sin β.

    Cosines and sines are read off the matrix, so those of a rotation by quarters are exactly 0 and ±1.
    """
    sin_beta = math.hypot(R[0, 2], R[1, 2])
    if sin_beta < _ROUNDING:
        return _turn(2, R[0, 0], R[1, 0]), (0, math.copysign(1.0, R[2, 2]), 0.0), (2, 1.0, 0.0)
    _, ca, sa = alpha = _turn(2, -R[1, 2], R[0, 2])
    cos_gamma = _zero_with(R[2, 1], ca * R[0, 0] + sa * R[1, 0])
    sin_gamma = _zero_with(R[2, 0], -ca * R[0, 1] - sa * R[1, 1])
    return alpha, _turn(0, R[2, 2], sin_beta), _turn(2, cos_gamma, sin_gamma)


def _zero_with(multiple: float, x: float) -> float:
    """x, or 0 if a multiple of it is exactly 0 and x no more than rounding."""
    return 0.0 if multiple == 0.0 and abs(x) < _ROUNDING else x


def _turn(axis: int, c: float, s: float) -> Turn:
    """The turn whose cosine and sine are c and s but for a factor."""
    length = math.hypot(c, s)
    return axis, float(c / length) + 0.0, float(s / length) + 0.0


def turn_about_z(angle: Any, first: Turn) -> Turn:
    """Rz(angle) after a constant turn `first` about z, as one turn.

    The sum of both angles is rounded once: an error of at most 5e-16 within a turn, and beyond it of half the rounding
    unit of the angle itself.
    """
    _, c, s = first
    if 0.0 in (c, s):  # a quarter turn: cosine and sine change places and signs, at no cost
        cos, sin = np.cos(angle), np.sin(angle)
        return 2, c * cos - s * sin, s * cos + c * sin
    total = angle + math.atan2(s, c)
    return 2, np.cos(total), np.sin(total)


def turn(t: Turn, x: Any) -> Any:
    """A vector (3,), turned."""
    k, c, s = t
    i, j = (k + 1) % 3, (k + 2) % 3
    y = np.array(x)
    y[i] = c * x[i] - s * x[j]
    y[j] = s * x[i] + c * x[j]
    return y


def turn_back(t: Turn, x: Any) -> Any:
    """A vector (3,), turned the other way."""
    k, c, s = t
    return turn((k, c, -s), x)


def turn_matrix(t: Turn, A: Any) -> Any:
    """R A Rᵀ for a matrix A (3, 3).

    In the plane of the turn, [a b; d e] becomes [a - s y, c y - d; c y - b, e + s y] with y = s(a - e) + c(b + d).
    """
    k, c, s = t
    i, j = (k + 1) % 3, (k + 2) % 3
    B = np.array(A)
    y = s * (A[i, i] - A[j, j]) + c * (A[i, j] + A[j, i])
    B[i, i] = A[i, i] - s * y
    B[j, j] = A[j, j] + s * y
    B[i, j] = c * y - A[j, i]
    B[j, i] = c * y - A[i, j]
    B[i, k], B[j, k] = c * A[i, k] - s * A[j, k], s * A[i, k] + c * A[j, k]
    B[k, i], B[k, j] = c * A[k, i] - s * A[k, j], s * A[k, i] + c * A[k, j]
    return B
