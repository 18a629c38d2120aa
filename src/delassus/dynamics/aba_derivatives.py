"""Derivatives of forward dynamics: how accelerations change with configuration, velocity and torques.

Since tau = rnea(q, v, a) holds along any change, ∂a/∂x = -M⁻¹ ∂tau/∂x at the acceleration that tau gives, for x = q or
v, and ∂a/∂tau = M⁻¹. A column of ∂tau/∂x is zero outside the path to its joint and what the joint carries; the products
leave these zeros out, and are the same code for every row of M⁻¹ = U⁻ᵀ D⁻¹ U⁻¹ (see `factor_tree`), so they are a loop.
O(n² d) operations for depth d. The accuracy is that of solving with M: errors grow with its condition.
"""

from typing import Any

import delassus.numpy as np
from delassus.compiler import map
from delassus.compiler.kernel import kernel
from delassus.dynamics.check import check_inertias
from delassus.dynamics.crba import mass_matrix
from delassus.dynamics.factor import ancestors, factor_tree, substitute
from delassus.dynamics.rnea import bias_torques
from delassus.dynamics.rnea_derivatives import torque_derivatives
from delassus.model.model import Model


@kernel("(nq),(nv),(nv)->(nv,nv),(nv,nv),(nv,nv)")
def aba_derivatives(model: Model, q: Any, v: Any, tau: Any) -> Any:
    """Derivatives (nv, nv) of `aba`: ∂a/∂q along tangent vectors, ∂a/∂v, and ∂a/∂tau, the inverse mass matrix.

    Args:
        model: The robot.
        q: Configuration (nq,) [rad, m].
        v: Velocity (nv,) [rad/s, m/s].
        tau: Generalised forces (nv,) [N·m, N].
    """
    check_inertias(model)
    above = ancestors(model)
    U, D = factor_tree(above, mass_matrix(model, q))
    D_inv = 1.0 / D
    a = substitute(above, U, D, tau - bias_torques(model, q, v))
    by_q, by_v, _ = torque_derivatives(model, q, v, a)

    def row(unit: Any) -> tuple[Any, Any, Any]:
        """A row of each derivative, from a column of U⁻¹: first that of M⁻¹."""
        x = outward(above, U, unit * D_inv)
        return -x @ by_q, -x @ by_v, x

    of_q, of_v, inverse = map(row, inverse_factor(above, U).T)
    return of_q, of_v, np.tril(inverse) + np.tril(inverse, -1).T


def outward(above: list[list[int]], U: Any, b: Any) -> Any:
    """U⁻ᵀ b, as `forward`, for the body of a loop.

    Sums begin with what is known for the longest time, so that one does not wait for the other.
    """
    x = np.array(b)
    for k in range(len(above)):
        for i in reversed(above[k]):
            x[k] = x[k] - U[i, k] * x[i]
    return x


def inverse_factor(above: list[list[int]], U: Any) -> Any:
    """U⁻¹, which has the sparsity of U."""
    X = np.array(np.eye(len(above)))
    for k in reversed(range(len(above))):
        for i in above[k]:
            X[i] = X[i] - U[i, k] * X[k]
    return X
