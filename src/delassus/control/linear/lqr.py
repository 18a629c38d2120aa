"""The linear-quadratic regulator at a state, in independent coordinates.

u = u₀ - K x,      minimize Σ (xᵀ Q x + uᵀ R u), or its integral.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import delassus.numpy as dnp
from delassus.common.checks import real_array
from delassus.common.types import ArrayLike, Traced
from delassus.control.linear.constraints import LinearizationError
from delassus.control.linear.linearization import Linearization
from delassus.control.linear.riccati import continuous_riccati, discrete_riccati

Floats = NDArray[np.float64]

_RESIDUAL: Final = 1e-2
"""Largest accepted residual of Riccati's equation."""

_REACHED: Final = 1e-10
"""Modes are uncontrollable if actuators move them by less than this, relative to A and B."""

_LASTING: Final = 1e-6
"""Modes are undamped if their decay rate is below this, relative to A: the accuracy of double eigenvalues."""


@dataclass(frozen=True, eq=False)
class Regulator:
    """The optimal linear feedback at a state.

    Attributes:
        linear: The linear model.
        gain: K (nu, 2p): forces of the actuators per x.
        cost: X (2p, 2p): the cost from x onward is xᵀ X x.
        modes: (2p,) eigenvalues of the closed loop: inside the unit circle for time steps, in the left half-plane for
            rates.
        residual: The largest residual of Riccati's equation, relative to the largest element of X.

    >>> cart = dl.control.ActuatedMechanism(dl.load("cart_pole"), "cart*")
    >>> dl.control.lqr(dl.control.linearize(cart, np.zeros(2))).gain.shape
    (1, 4)
    """

    linear: Linearization
    gain: Floats
    cost: Floats
    modes: NDArray[np.complex128]
    residual: float

    def torque(self, q: Traced, v: Traced) -> Traced:
        """Forces of the actuators (…, nu) at states (…, nq) and (…, nv) nearby; those of the linearization point for
        NaN.

        Inside kernels, and so as the control of a simulation, it takes one state.
        """
        x = self.linear.coordinates(q, v)
        finite = dnp.isfinite(dnp.sum(x, -1, keepdims=True))
        return self.linear.torque - dnp.where(finite, x, 0.0) @ self.gain.T


def lqr(linear: Linearization, state_cost: ArrayLike = 1.0, torque_cost: ArrayLike = 1.0) -> Regulator:
    """The optimal feedback for a linear model of one state.

    Args:
        linear: A result of `linearize`, in time steps or rates.
        state_cost: Q (2p, 2p), its diagonal (2p,), or one value: costs of the freedoms, then of their velocities.
        torque_cost: R (nu, nu), its diagonal (nu,), or one value, positive.

    Raises:
        LinearizationError: If no feedback is stabilizing, since actuators do not control an unstable mode.

    >>> cart = dl.control.ActuatedMechanism(dl.load("cart_pole"), "cart*")
    >>> dl.control.lqr(dl.control.linearize(cart, np.zeros(2))).torque([0.05, 0.02], [0.0, 0.1]).shape
    (1,)
    """
    if not isinstance(linear, Linearization):
        raise LinearizationError(
            f"the linear model has the type {type(linear).__name__}; it must be a Linearization, such as "
            "lqr(linearize(robot, q)).",
            code="wrong-type",
        )
    A, B = linear.A, linear.B
    if A.ndim != 2:
        raise LinearizationError(
            f"the linear model has the batch axes {A.shape[:-2]}; pass the model of one state.", code="wrong-shape"
        )
    n, nu = B.shape
    Q, R = _matrix("state_cost", state_cost, n), _matrix("torque_cost", torque_cost, nu)
    if np.min(np.linalg.eigvalsh(R), initial=1.0) <= 0.0:
        raise LinearizationError(
            "torque_cost is not positive definite: every torque must have a cost.", code="not-semidefinite"
        )
    if np.min(np.linalg.eigvalsh(Q), initial=0.0) < -1e-12 * np.max(np.abs(Q)):
        raise LinearizationError(
            "state_cost is negative along some direction: it must be positive semidefinite.", code="not-semidefinite"
        )
    unreachable = _describe_unreachable_modes(linear)
    if unreachable:
        raise LinearizationError(
            "no feedback is stabilizing: the actuators do not control "
            f"{' and '.join(unreachable[:4])}{f' and {len(unreachable) - 4} more' if len(unreachable) > 4 else ''}.",
            code="not-stabilizable",
        )
    # Scaling all costs does not change the feedback.
    scale = float(np.sqrt(np.max(np.abs(R), initial=0.0)) * np.sqrt(np.max(np.abs(Q), initial=0.0))) or 1.0
    with np.errstate(all="ignore"):
        try:
            K, X, modes, residual = _feedback(linear, Q / scale, R / scale)
        except np.linalg.LinAlgError:
            K, X, modes, residual = np.zeros((nu, n)), np.zeros((n, n)), np.full(n, np.nan + 0j), np.inf
    stable = np.all(np.abs(modes) < 1.0) if linear.time_step is not None else np.all(modes.real < 0.0)
    if not (stable and residual <= _RESIDUAL):
        q, r = np.max(np.abs(Q)), np.max(np.abs(R), initial=0.0)
        raise LinearizationError(
            f"no stabilizing feedback was found for a state_cost up to {q:.3g} and a torque_cost up to {r:.3g}: an "
            "undamped mode has no cost or is hardly controllable, or the costs differ too much. Use costs that are "
            "positive for all freedoms, within ten powers of ten of each other.",
            code="not-stabilizable",
        )
    return Regulator(linear, K, scale * X, modes, residual)


def _feedback(linear: Linearization, Q: Floats, R: Floats) -> tuple[Floats, Floats, NDArray[np.complex128], float]:
    """K (nu, n), X (n, n), the modes of the closed loop (n,), and the residual of Riccati's equation."""
    A, B, discrete = linear.A, linear.B, linear.time_step is not None
    X = discrete_riccati(A, B, Q, R) if discrete else continuous_riccati(A, B, Q, R)
    step = (R + B.T @ X @ B, B.T @ X @ A) if discrete else (R, B.T @ X)
    K = np.asarray(np.linalg.solve(*step), float)
    residual = A.T @ X @ A - (A.T @ X @ B) @ K + Q - X if discrete else A.T @ X + X @ A - X @ B @ K + Q
    modes = np.asarray(np.linalg.eigvals(A - B @ K), complex)
    return K, X, modes, float(np.max(np.abs(residual)) / np.max(np.abs(X)))


def _describe_unreachable_modes(linear: Linearization) -> list[str]:
    """Describe the undamped modes that no actuator controls.

    By Hautus' test: [A - λ, B] is rank deficient at their eigenvalues λ.
    """
    A, B = linear.A, linear.B
    size = float(np.linalg.norm(A, 2))
    strength = float(np.linalg.norm(B, 2)) if B.size else 0.0
    reach = B * (size / strength) if strength > 0.0 else B
    modes, vectors = np.linalg.eig(A)
    discrete = linear.time_step is not None
    lasting = np.abs(modes) >= 1.0 - _LASTING if discrete else modes.real >= -_LASTING * size
    model = linear.robot.mechanism.plain.model
    names = [joint.name for joint in model.independent for _ in range(joint.kind.nv)]
    descriptions = []
    for mode, vector in zip(modes[lasting], vectors.T[lasting], strict=True):
        if mode.imag < 0.0:  # one of a pair
            continue
        smallest = np.linalg.svd(np.hstack([A - mode * np.eye(len(A)), reach]), compute_uv=False)[-1]
        if smallest <= _REACHED * size:
            motion = np.abs(linear.basis @ (vector[: linear.freedoms] + vector[linear.freedoms :]))
            real, imaginary = (x if abs(x) > _LASTING * size else 0.0 for x in (mode.real, mode.imag))
            number = f"{real:.3g} ± {imaginary:.3g}i" if imaginary else f"{real:.3g}"
            descriptions.append(
                f"the mode with the eigenvalue {number}, which moves {names[int(np.argmax(motion))]!r} most"
            )
    return list(dict.fromkeys(descriptions))


def _matrix(name: str, value: Any, n: int) -> Floats:
    values = real_array(name, value, "one number, or an array")
    if values.ndim < 2:
        values = np.diag(np.broadcast_to(values, n)) if values.shape in ((), (n,)) else values
    if values.shape != (n, n):
        raise LinearizationError(
            f"{name} has shape {np.shape(value)}; it must be ({n}, {n}), ({n},) or one value.", code="wrong-shape"
        )
    if not np.all(np.isfinite(values)):
        raise LinearizationError(f"{name} has elements that are not finite numbers.", code="not-finite")
    return 0.5 * (values + values.T)
