"""Derivatives of `integrate` and `difference` along tangent vectors, as Pinocchio's dIntegrate and dDifference.

`integrate(q ⊕ δ, v) ≈ integrate(q, v) ⊕ (∂/∂q δ)`, where ⊕ is `integrate` itself, and likewise for the others. The
matrices are (nv, nv) with one diagonal block for each joint. For the displacement exp(v) of a joint, ∂/∂q is the
adjoint of exp(-v), and ∂/∂v is the right Jacobian J of exp. For v = log(q₀⁻¹ q₁), ∂v/∂q₁ is J(v)⁻¹ and ∂v/∂q₀ is
-J(-v)⁻¹. Blocks of spherical and planar motions are submatrices of those of SE(3). Reference: J. Solà, J. Deray,
D. Atchuthan, A micro Lie theory for state estimation in robotics (2018).
"""

from collections.abc import Callable
from typing import Any

import delassus.numpy as np
from delassus.common.types import Traced
from delassus.compiler.host.kernel import Floats, kernel
from delassus.dynamics.kinematics.manifold import difference, parts
from delassus.model.model import Model
from delassus.spatial.motions import adjoint
from delassus.spatial.placements import placement_exp, placement_right_jacobian, placement_right_jacobian_inverse


@kernel("(nq),(nv)->(nv,nv),(nv,nv)")
def integrate_derivatives(model: Model, q: Traced, v: Traced) -> tuple[Floats, Floats]:
    """Derivatives (nv, nv) of `integrate`: by q and by v, all along tangent vectors.

    Args:
        model: The robot.
        q: Configuration (nq,) [rad, m].
        v: Tangent vector (nv,): a velocity times a duration.

    >>> by_q, by_v = dl.derivatives.integrate_derivatives(dl.load("pendulum"), [0.3], [0.1])
    >>> by_q, by_v
    (array([[1.]]), array([[1.]]))
    """
    return _blocks(model, v, _adjoint_after_twist), _blocks(model, v, placement_right_jacobian)


@kernel("(nq),(nq)->(nv,nv),(nv,nv)")
def difference_derivatives(model: Model, q0: Traced, q1: Traced) -> tuple[Floats, Floats]:
    """Derivatives (nv, nv) of `difference`: by q0 and by q1, along tangent vectors.

    Args:
        model: The robot.
        q0: Configuration (nq,) [rad, m] from which the difference leads.
        q1: Configuration (nq,) [rad, m] to which it leads.

    >>> dl.derivatives.difference_derivatives(dl.load("pendulum"), [0.3], [0.5])[1]
    array([[1.]])
    """
    v = difference(model, q0, q1)
    by_first = _blocks(model, v, lambda twist: -placement_right_jacobian_inverse(-twist))
    return by_first, _blocks(model, v, placement_right_jacobian_inverse)


def rates_along(model: Model, displacement: Any, v: Any) -> Any:
    """The rate J(δ)⁻¹ v (nv,) of a displacement δ (nv,) if q ⊕ δ moves with the velocity v (nv,).

    It is the differential equation of a motion in the chart q ⊕ ·, which Runge–Kutta–Munthe-Kaas methods integrate.
    """
    return _blocks(model, displacement, placement_right_jacobian_inverse) @ v


def _adjoint_after_twist(twist: Any) -> Any:
    """The adjoint (6, 6) of exp(-twist): it transforms motions to the frame displaced along the twist."""
    return adjoint(*placement_exp(-twist))


def _blocks(model: Model, v: Any, of_twist: Callable[[Any], Any]) -> Any:
    """A block-diagonal matrix (nv, nv): for each joint, the rows and columns of `of_twist` in its directions.

    For Euclidean coordinates exp is the identity, and so are adjoint and Jacobian, up to the sign.
    """
    A = np.zeros((model.nv, model.nv))
    straight = of_twist(np.zeros(6))
    for motion, _, start in parts(model):
        directions = list(motion.directions)
        curved = not motion.is_euclidean
        twist = np.zeros(6)
        if curved:
            for k, direction in enumerate(directions):
                twist[direction] = v[start + k]
        full = of_twist(twist) if curved else straight
        for i, row in enumerate(directions):
            for k, column in enumerate(directions):
                A[start + i, start + k] = full[row, column]
    return A
