"""Nonlinear least squares on the configuration manifold by the Levenberg–Marquardt method, for traced functions.

    (J D⁻¹ Jᵀ + μ) y = s,      δ = -D⁻¹ Jᵀ y,      q ← q ⊕ δ

s(q) are the errors relative to their sizes, J their derivative with respect to velocities, and D a metric of steps. The
damping μ allows steps at any rank and limits them to where the errors are nearly linear. A step that increases |s| is
rejected and repeated with more damping, shorter and closer to steepest descent; steps that achieve the predicted
decrease lower the damping (Nielsen). Iterations end when all errors are below the tolerance, or at a local minimum.

O(m² n + m³) operations and one derivative per iteration.

References: D. Marquardt, An algorithm for least-squares estimation of nonlinear parameters (1963); H. B. Nielsen,
Damping parameter in Marquardt's method (1999).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import while_loop
from delassus.constrained.solvers.status import Status
from delassus.linalg.ldl import ldl

_FIRST_DAMPING: Final = 1e-3
_LEAST_DAMPING: Final = 1e-10
_MOST_DAMPING: Final = 1e10
"""μ relative to the largest diagonal element of J D⁻¹ Jᵀ: the initial value; the minimum, small enough to cost no
iterations; and the maximum, for which steps are so short that only rounding prevents a decrease.
"""

_FLAT: Final = 1e-6
"""Slope of |s| along steepest descent, relative to its largest possible value, below which |s| is within 1e-12 of a
local minimum.
"""


class LeastSquares(NamedTuple):
    """A least-squares problem, and limits on its steps.

    Attributes:
        error: e (m,) of a configuration q (nq,).
        derivative: ∂e/∂v (m, nv) there.
        sizes: (m,) scales of the errors; the problem is solved when all |e|/sizes are below the tolerance.
        weights: (m,) weights of squared errors, or None for equal weights.
        inverse: D⁻¹ (nv,) inverse metric of steps; zero for locked velocities.
        move: Maps a step (nv,) to a configuration.
        open_ways: Maps q and the steepest descent -D⁻¹ Jᵀ s (nv,) to a mask (nv,) of free directions; None if all are
            free.
        aside: A step (nv,) away from a start that is a stationary point; None to stay there.
    """

    error: Callable[[Any], Any]
    derivative: Callable[[Any], Any]
    sizes: Any
    weights: Any
    inverse: Any
    move: Callable[[Any, Any], Any]
    open_ways: Callable[[Any, Any], Any] | None = None
    aside: Any = None

    def shares(self, e: Any) -> Any:
        """Scaled errors (m,), or the rows (m, nv) of their derivative."""
        sizes = self.sizes if e.ndim == 1 else self.sizes[:, None]
        if self.weights is None:
            return e / sizes
        return e * self.weights / sizes if e.ndim == 1 else e * (self.weights / self.sizes)[:, None]

    def largest(self, e: Any) -> Any:
        """The largest error relative to its size."""
        return np.max(np.abs(e) / self.sizes)


class Descent(NamedTuple):
    """State of the iteration: q (nq,), the errors e there, the damping and its factor of increase, the slope of the sum
    of squares, and the number of steps.
    """

    q: Any
    e: Any
    damping: Any
    growth: Any
    slope: Any
    count: Any


def descend(problem: LeastSquares, start: Any, tolerance: Any, iterations: int) -> tuple[Descent, Any]:
    """Minimize from a configuration (nq,); returns the final state and the value of a `Status`."""

    def goes_on(now: Descent) -> Any:
        return (problem.largest(now.e) > tolerance) & (now.slope > _FLAT) & (now.damping <= _MOST_DAMPING)

    first = Descent(start, problem.error(start), np.array(_FIRST_DAMPING), np.array(2.0), np.array(1.0), np.array(0.0))
    last: Descent = while_loop(goes_on, lambda now: _step(problem, now), first, iterations)
    bottom = (last.slope <= _FLAT) | (last.damping > _MOST_DAMPING)
    status = np.where(bottom, float(Status.LEAST_SQUARES), float(Status.ITERATIONS))
    status = np.where(problem.largest(last.e) <= tolerance, float(Status.CONVERGED), status)
    status = np.where(np.isfinite(np.sum(last.q) + np.sum(last.e)), status, float(Status.NOT_FINITE))
    return last, status


def _step(problem: LeastSquares, now: Descent) -> Descent:
    """One step, accepted if it decreases the errors."""
    q, e, damping, growth, _, count = now
    inverse, shares = problem.inverse, problem.shares(e)
    J = problem.shares(problem.derivative(q))
    gradient = J.T @ shares
    free = inverse if problem.open_ways is None else inverse * problem.open_ways(q, -inverse * gradient)
    G = (J * free) @ J.T
    scale = np.max(np.diagonal(G if problem.open_ways is None else (J * inverse) @ J.T))
    mu = np.where(scale > 0.0, damping * scale, 1.0)
    y = ldl(G + mu * np.eye(len(shares))).solve(shares)
    squares = shares @ shares
    slope = np.sqrt(np.where(scale > 0.0, gradient @ (free * gradient) / (scale * squares), 0.0))
    motion, ridge = -free * (J.T @ y), None
    if problem.aside is not None:
        # A start at a stationary point may be a ridge, such as links in line: step off it.
        ridge = (slope <= _FLAT) & (count < 0.5)
        motion = np.where(ridge, problem.aside, motion)
    trial = problem.move(q, motion)
    e_trial = problem.error(trial)
    after = np.sum(problem.shares(e_trial) ** 2)
    gain = (squares - after) / (squares - mu * mu * (y @ y))  # s + J δ = μ y
    smaller_damping = np.maximum(damping * np.maximum(1 / 3, 1.0 - (2.0 * gain - 1.0) ** 3), _LEAST_DAMPING)
    better = after < squares
    accepted, new_damping = better, np.where(better, smaller_damping, damping * growth)
    if ridge is not None:
        accepted, new_damping = better | ridge, np.where(ridge, damping, new_damping)
        slope = np.where(ridge, 1.0, slope)
    return Descent(
        np.where(accepted, trial, q),
        np.where(accepted, e_trial, e),
        new_damping,
        np.where(accepted, 2.0, 2.0 * growth),
        slope,
        count + 1.0,
    )
