"""Placements: rigid displacements, the group SE(3), as a rotation matrix R (3, 3) and a translation p (3,) [m].

(R, p) takes a point x of the child's frame to R x + p in the parent's. A twist (6,) is a displacement per unit of time,
linear part v [m] first, rotation vector w [rad] last; moving along it for one unit of time gives `placement_exp`.
"""

from typing import Any

import delassus.numpy as np
from delassus.spatial.rotations import (
    Coefficients,
    coefficients,
    combination,
    inverse_coefficient,
    rotation_log,
    skew,
)


def compose(R_a: Any, p_a: Any, R_b: Any, p_b: Any) -> tuple[Any, Any]:
    """The placement a b: of b's child in a's parent."""
    return R_a @ R_b, p_a + R_a @ p_b


def inverse(R: Any, p: Any) -> tuple[Any, Any]:
    """The placement of the parent in the child."""
    return R.T, -(R.T @ p)


def placement_exp(twist: Any) -> tuple[Any, Any]:
    """The placement (R, p) that a twist (6,) leads to in one unit of time."""
    v, w = twist[:3], twist[3:]
    c = coefficients(w @ w)
    cross_product = np.cross(w, v)
    return combination(w, 1.0, c.c1, c.c2), v + c.c2 * cross_product + c.c3 * np.cross(w, cross_product)


def placement_log(R: Any, p: Any) -> Any:
    """The twist (6,) with the shortest rotation that leads to (R, p) in one unit of time."""
    w = rotation_log(R)
    cross_product = np.cross(w, p)
    v = p - 0.5 * cross_product + inverse_coefficient(coefficients(w @ w)) * np.cross(w, cross_product)
    return np.concatenate([v, w])


def placement_right_jacobian(twist: Any) -> Any:
    """J (6, 6) with exp(twist + δ) = exp(twist) exp(J δ) to first order.

    J = [Jr  Q; 0  Jr], where Q is the derivative of Jr(w) = 1 - c₂ W + c₃ W² along v: with 2 cₖ' = k cₖ₊₂ - cₖ₊₁
    for the derivatives in θ², and (w·v) for half the growth of θ².
    """
    v, w = twist[:3], twist[3:]
    c = coefficients(w @ w)
    return _triangular(
        combination(w, 1.0, -c.c2, c.c3),
        _derivative(w, v, -c.c2, c.c3, c.c3 - 2.0 * c.c4, 3.0 * c.c5 - c.c4),
    )


def placement_right_jacobian_inverse(twist: Any) -> Any:
    """J⁻¹ (6, 6), the derivative of the logarithm at exp(twist); infinite where θ is a multiple of 2π, except 0.

    J⁻¹ = [Jr⁻¹  B; 0  Jr⁻¹], where B is the derivative of Jr(w)⁻¹ = 1 + W/2 + e W² along v.
    """
    v, w = twist[:3], twist[3:]
    c = coefficients(w @ w)
    e = inverse_coefficient(c)
    return _triangular(combination(w, 1.0, 0.5, e), _derivative(w, v, 0.5, e, 0.0, 2.0 * _growth(c, e)))


def _growth(c: Coefficients, e: Any) -> Any:
    """The derivative in θ² of e = (c₃ - 2 c₄)/(2 c₂)."""
    return (2.5 * c.c5 - 0.5 * c.c4 - 4.0 * c.c6) / (2.0 * c.c2) + e * e


def _derivative(w: Any, v: Any, b: Any, c: Any, db: Any, dc: Any) -> Any:
    """The derivative of b W + c W² along v (3, 3), where b and c grow by (w·v) db and (w·v) dc."""
    rate = w @ v
    mixed = np.outer(w, v)  # W V + V W = v wᵀ + w vᵀ - 2 (w·v) 1
    turned = b * skew(v) + c * (mixed + mixed.T - 2.0 * rate * np.eye(3))
    return turned + combination(w, 0.0, rate * db, rate * dc)


def _triangular(diagonal: Any, corner: Any) -> Any:
    """The matrix [D  C; 0  D] (6, 6)."""
    return np.block([[diagonal, corner], [np.zeros((3, 3)), diagonal]])
