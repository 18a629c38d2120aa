"""Placements: rigid displacements, the group SE(3), as a rotation matrix R (3, 3) and a translation p (3,) [m].

(R, p) maps a point x of the child's frame to R x + p in the parent's. A twist (6,) is a constant velocity times a
duration: linear part v [m] first, rotation vector w [rad] last. `placement_exp` is the displacement along it.
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
    """The product a b: the placement of b's child in a's parent."""
    return R_a @ R_b, p_a + R_a @ p_b


def inverse(R: Any, p: Any) -> tuple[Any, Any]:
    """The placement of the parent in the child."""
    return R.T, -(R.T @ p)


def placement_exp(twist: Any) -> tuple[Any, Any]:
    """exp(twist): the placement (R, p) after a displacement along a twist (6,)."""
    v, w = twist[:3], twist[3:]
    c = coefficients(w @ w)
    cross_product = np.cross(w, v)
    return combination(w, 1.0, c.c1, c.c2), v + c.c2 * cross_product + c.c3 * np.cross(w, cross_product)


def placement_log(R: Any, p: Any) -> Any:
    """The logarithm of (R, p): the twist (6,) with the shortest rotation whose exponential is (R, p)."""
    w = rotation_log(R)
    cross_product = np.cross(w, p)
    v = p - 0.5 * cross_product + inverse_coefficient(coefficients(w @ w)) * np.cross(w, cross_product)
    return np.concatenate([v, w])


def placement_right_jacobian(twist: Any) -> Any:
    """J (6, 6) with exp(twist + δ) = exp(twist) exp(J δ) to first order.

    J = [Jr  Q; 0  Jr], where Q is the derivative of Jr(w) = 1 - c₂ W + c₃ W² along v. The derivatives of the
    coefficients with respect to θ² are cₖ' with 2 cₖ' = k cₖ₊₂ - cₖ₊₁; the derivative of θ²/2 along v is w·v.
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
    return _triangular(
        combination(w, 1.0, 0.5, e), _derivative(w, v, 0.5, e, 0.0, 2.0 * _inverse_coefficient_rate(c, e))
    )


def _inverse_coefficient_rate(c: Coefficients, e: Any) -> Any:
    """The derivative of e = (c₃ - 2 c₄)/(2 c₂) with respect to θ²."""
    return (2.5 * c.c5 - 0.5 * c.c4 - 4.0 * c.c6) / (2.0 * c.c2) + e * e


def _derivative(w: Any, v: Any, b: Any, c: Any, db: Any, dc: Any) -> Any:
    """The derivative (3, 3) of b W + c W² along v, where those of b and c are (w·v) db and (w·v) dc."""
    rate = w @ v
    mixed = np.outer(w, v)  # W V + V W = v wᵀ + w vᵀ - 2 (w·v) 1
    product_rule = b * skew(v) + c * (mixed + mixed.T - 2.0 * rate * np.eye(3))
    return product_rule + combination(w, 0.0, rate * db, rate * dc)


def _triangular(diagonal: Any, corner: Any) -> Any:
    """The matrix [D  C; 0  D] (6, 6)."""
    return np.block([[diagonal, corner], [np.zeros((3, 3)), diagonal]])
