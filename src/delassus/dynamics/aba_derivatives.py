"""Derivatives of forward dynamics: how accelerations change with configuration, velocity and torques.

Since tau = rnea(q, v, a) holds along any change, ∂a/∂x = -M⁻¹ ∂tau/∂x at the acceleration that tau gives, for x = q or
v, and ∂a/∂tau = M⁻¹. M = U D Uᵀ by its sparse factors. A column of ∂tau/∂x is zero outside the path to its joint and
what the joint carries, and U⁻¹ keeps it so: this half of the solution is written out, and makes use of the zeros. The
other half, U⁻ᵀ, fills the columns; it is the same code for all of them, and a loop. O(n² d) operations for depth d.
"""

from typing import Any

import delassus.numpy as np
from delassus.compiler import map
from delassus.compiler.kernel import kernel
from delassus.dynamics.check import check_inertias
from delassus.dynamics.crba import mass_matrix
from delassus.dynamics.factor import ancestors, factor, substitute
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
    above, n = ancestors(model), model.nv
    U, D = factor(above, mass_matrix(model, q))
    D_inv = 1.0 / D
    below = [[k for k in range(n) if i in above[k]] for i in range(n)]
    a = substitute(above, U, D, tau - bias_torques(model, q, v))
    by_q, by_v, _ = torque_derivatives(model, q, v, a)

    def solve(*columns: Any) -> tuple[Any, ...]:
        """x with U D Uᵀ x = b for several columns, so that an element of U is fetched once for all of them.

        Sums begin with what is known for the longest time, so that one does not wait for the other.
        """
        *torques, unit = columns
        xs = [np.array(column) for column in torques]
        for i in reversed(range(n)):
            for k in reversed(below[i]):
                for x in xs:
                    x[i] = x[i] - U[i, k] * x[k]
        xs = [x * scale for x, scale in zip((*xs, unit), (-D_inv, -D_inv, D_inv), strict=True)]
        for k in range(n):
            for i in reversed(above[k]):
                for x in xs:
                    x[k] = x[k] - U[i, k] * x[i]
        return tuple(xs)

    by_q, by_v, inverse = map(solve, by_q.T, by_v.T, _inverse(above, U).T)
    return by_q.T, by_v.T, np.tril(inverse) + np.tril(inverse, -1).T


def _inverse(above: list[list[int]], U: Any) -> Any:
    """U⁻¹, which has the sparsity of U."""
    X = np.array(np.eye(len(above)))
    for k in reversed(range(len(above))):
        for i in above[k]:
            X[i] = X[i] - U[i, k] * X[k]
    return X
