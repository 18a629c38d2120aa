"""The linear-quadratic regulator: the feedback of least cost about a state, in the robot's own freedoms.

u = u₀ - K x,      minimise Σ (xᵀ Q x + uᵀ R u), or its integral.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import delassus.numpy as dnp
from delassus.control.linear.constraints import LinearizationError
from delassus.control.linear.linearization import Linearization
from delassus.control.linear.riccati import continuous_riccati, discrete_riccati
from delassus.errors import short

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Regulator:
    """The best feedback about a state.

    Attributes:
        linear: The linear model that it is for.
        gain: K (nu, 2p): forces of the actuators per x.
        cost: X (2p, 2p): what is left to pay from x on is xᵀ X x.
        modes: (2p,) eigenvalues of the closed loop: inside the unit circle for steps, left of zero for rates.
        residual: The largest element of what is left of Riccati's equation, as a share of the largest of X.
    """

    linear: Linearization
    gain: Floats
    cost: Floats
    modes: NDArray[np.complex128]
    residual: float

    def torque(self, q: Any, v: Any) -> Any:
        """Forces of the actuators (…, nu) in states (…, nq) and (…, nv) nearby; those of rest where a state is none.

        Inside kernels, and so in the forces of a simulation, it is for one state.
        """
        x = self.linear.coordinates(q, v)
        finite = dnp.isfinite(dnp.sum(x, -1, keepdims=True))
        return self.linear.torque - dnp.where(finite, x, 0.0) @ self.gain.T


def lqr(linear: Linearization, state_cost: Any = 1.0, torque_cost: Any = 1.0) -> Regulator:
    """The feedback of least cost for a linear model of one state.

    Args:
        linear: That of `linearize`, in steps of time or in rates.
        state_cost: Q (2p, 2p), its diagonal (2p,), or one number: the cost of freedoms, and then of their velocities.
        torque_cost: R (nu, nu), its diagonal (nu,), or one number, positive.

    Raises:
        LinearizationError: If no feedback is stable, since actuators do not reach what falls.
    """
    A, B = linear.A, linear.B
    if A.ndim != 2:
        raise LinearizationError(f"the linear model is of a batch {A.shape[:-2]}; a regulator is made for one state.")
    n, nu = B.shape
    Q, R = _matrix("state_cost", state_cost, n), _matrix("torque_cost", torque_cost, nu)
    if np.min(np.linalg.eigvalsh(R), initial=1.0) <= 0.0:
        raise LinearizationError("torque_cost is not positive definite: torques have to cost something.")
    if np.min(np.linalg.eigvalsh(Q), initial=0.0) < -1e-12 * np.max(np.abs(Q)):
        raise LinearizationError("state_cost is negative along some direction: it has to be zero or more.")
    discrete = linear.time_step is not None
    X = discrete_riccati(A, B, Q, R) if discrete else continuous_riccati(A, B, Q, R)
    modes = np.full(n, np.nan + 0j)
    K: Floats = np.zeros((nu, n))
    if np.all(np.isfinite(X)):
        step = (R + B.T @ X @ B, B.T @ X @ A) if discrete else (R, B.T @ X)
        K = np.asarray(np.linalg.solve(*step), float)
        modes = np.linalg.eigvals(A - B @ K)
    stable = np.all(np.abs(modes) < 1.0) if discrete else np.all(modes.real < 0.0)
    if not stable:
        raise LinearizationError(_unstable(linear))
    left = A.T @ X @ A - (A.T @ X @ B) @ K + Q - X if discrete else A.T @ X + X @ A - X @ B @ K + Q
    return Regulator(linear, K, X, modes, float(np.max(np.abs(left)) / np.max(np.abs(X))))


def _unstable(linear: Linearization) -> str:
    """Why no feedback is stable: a mode that no actuator reaches, if there is one."""
    modes, vectors = np.linalg.eig(linear.A.T)
    reached = np.max(np.abs(vectors.conj().T @ linear.B), -1, initial=0.0) / (
        np.max(np.abs(linear.B), initial=0.0) or 1.0
    )
    growing = np.abs(modes) >= 1.0 - 1e-9 if linear.time_step is not None else modes.real >= -1e-9
    lost = growing & (reached < 1e-9)
    if np.any(lost):
        at = complex(modes[np.argmax(lost)])
        return f"no feedback is stable: the actuators do not reach the mode with the eigenvalue {at:.3g}."
    return (
        "no feedback is stable, or it was not found: a mode that does not die out costs nothing, or is hardly reached."
    )


def _matrix(name: str, given: Any, n: int) -> Floats:
    try:
        values = np.asarray(given, float)
    except (TypeError, ValueError, OverflowError):
        raise LinearizationError(f"{name} is {short(repr(given))}; it is one number, or an array.") from None
    if values.ndim < 2:
        values = np.diag(np.broadcast_to(values, n)) if values.shape in ((), (n,)) else values
    if values.shape != (n, n):
        raise LinearizationError(f"{name} has shape {np.shape(given)}; it is ({n}, {n}), ({n},) or one number.")
    if not np.all(np.isfinite(values)):
        raise LinearizationError(f"{name} has elements that are not finite numbers.")
    return 0.5 * (values + values.T)
