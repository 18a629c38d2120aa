"""Dense solution of the KKT system by singular values: the reference for all other methods.

    [M  Jᵀ] [ a]   [tau - c]
    [J  -C] [-λ] = [  -γ   ]

is solved in the least-squares sense: of all accelerations that satisfy the constraints as well as possible, the one
nearest to the free motion in the metric of M, and the smallest forces that produce it. Rows are weighted as in all
methods (see `proximal`), so the result is independent of units. With M = L Lᵀ and A = L⁻¹ Jᵀ E^-½, the weighted
Delassus matrix is G = Aᵀ A, and its eigenvalues are the squared singular values of A: λ = -G⁺ (J a_free + γ) has twice
as many digits as if computed from G. O((n + m)³) operations in plain NumPy; not compiled.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

import delassus.numpy as dnp
from delassus.compiler.host.kernel import kernel
from delassus.compiler.tracing.record import refuse_inside
from delassus.constrained.delassus.proximal import Proximal, proximal_rows
from delassus.constrained.rows.inputs import read_proximal
from delassus.constrained.rows.jacobian import constraint_bias, constraint_jacobian
from delassus.constraints.mechanism.mechanism import Mechanism, refuse_unilateral
from delassus.constraints.mechanism.rows import compliance_of
from delassus.dynamics.forces.rnea import bias_torques
from delassus.dynamics.mass.crba import mass_matrix
from delassus.dynamics.tree.check import check_inertias
from delassus.linalg.least_squares import gram_pseudo_inverse

Floats = NDArray[np.float64]


class DenseSystem(NamedTuple):
    """M (nv, nv), tau - c (nv,), J (m, nv), γ (m,) and the compliance C (m,)."""

    M: Floats
    tau: Floats
    J: Floats
    gamma: Floats
    compliance: Floats
    weight: Floats | float = 1.0
    """E^-½ (m,): weights of residuals in least squares."""


@kernel("(nq),(nv),(nv)->(nv,nv),(nv),(m,nv),(m)", inputs={"time": "()"})
def dense_system(
    mechanism: Mechanism, q: Any, v: Any, tau: Any, *, time: Any = None
) -> tuple[Floats, Floats, Floats, Floats]:
    """M (nv, nv), tau - c (nv,), J (m, nv) and γ (m,) of M a + c = tau + Jᵀ λ, J a + γ = 0."""
    check_inertias(mechanism.model)
    refuse_unilateral(mechanism, "constrained dynamics")
    c = bias_torques(mechanism.model, q, v)
    J = constraint_jacobian(mechanism, q, time=time)
    gamma = constraint_bias(mechanism, q, v, time=time)
    return mass_matrix(mechanism.model, q), dnp.array(tau) - c, J, gamma


def kkt(
    mechanism: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    proximal: Proximal = None,
    time: ArrayLike | None = None,
    parameters: ArrayLike | None = None,
) -> tuple[Floats, Floats]:
    """Accelerations (…, nv) [rad/s², m/s²] and the smallest forces (…, m) [N, N·m], of one state or a batch.

    Args:
        mechanism: The robot and its constraints.
        q: Configuration (…, nq) [rad, m].
        v: Velocity (…, nv) [rad/s, m/s].
        tau: Generalized forces (…, nv) [N·m, N].
        proximal: ε [1/kg, 1/(kg·m²)], one value or one per row: weights of the norm of forces and residuals that are
            not unique. By default the mobility of the rows, as for the other methods; one value gives the Euclidean
            norm.
        time: (…) [s] time of moving references, required if there are any.
        parameters: (…, nparameters) values for a model with parameters.

    >>> loop = dl.Mechanism(dl.load("four_bar"))
    >>> q, v, tau = loop.model.posture("home"), np.zeros(3), np.zeros(3)
    >>> a, force = dl.kkt(loop, q, v, tau)[:2]
    >>> bool(np.allclose(a, dl.constrained_dynamics(loop, q, v, tau).acceleration))
    True
    """
    refuse_inside("kkt", "call constrained_dynamics or prox_ltl there")
    refuse_unilateral(mechanism, "constrained dynamics")
    inputs: dict[str, Any] = {name: x for name, x in (("time", time), ("parameters", parameters)) if x is not None}
    M, h, J, gamma = dense_system(mechanism, q, v, tau, **inputs)
    epsilon = proximal_rows(mechanism, proximal if proximal is None else read_proximal(mechanism, proximal))
    weight = 1.0 / np.sqrt(epsilon)
    return solve_dense(DenseSystem(M, h, J, gamma, compliance_of(mechanism), weight))


def solve_dense(system: DenseSystem) -> tuple[Floats, Floats]:
    """a (…, nv) and λ (…, m) of a dense system, or of a batch of them."""
    M, h, J, gamma, C, weight = system
    J, gamma, C = J * np.reshape(weight, (-1, 1)), gamma * weight, C * weight**2
    # LAPACK raises an error for the whole batch if one state contains NaN, so such states are replaced.
    finite = np.asarray(np.isfinite(M).all((-2, -1)) & np.isfinite(J).all((-2, -1)))[..., None]
    M, J = np.where(finite[..., None], M, np.eye(M.shape[-1])), np.where(finite[..., None], J, 0.0)
    h = np.where(finite, h, np.nan)
    L = np.linalg.cholesky(M)
    A, free = np.linalg.solve(L, J.mT), np.linalg.solve(L, h[..., None])[..., 0]
    b = np.matvec(A.mT, free) + gamma
    force = -np.matvec(_pseudo_inverse(A, C), b)
    return np.linalg.solve(L.mT, (free + np.matvec(A, force))[..., None])[..., 0], weight * force


def _pseudo_inverse(A: Floats, C: Floats) -> Floats:
    """(Aᵀ A + C)⁺ (m, m)."""
    if np.any(C):
        # Aᵀ A + C is Bᵀ B for A above √C.
        A = np.concatenate([A, np.broadcast_to(np.diag(np.sqrt(C)), (*A.shape[:-2], len(C), len(C)))], axis=-2)
    return gram_pseudo_inverse(A)
