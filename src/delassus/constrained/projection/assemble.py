"""Assembly: a configuration that meets the constraints, from one that does not.

Least squares of the errors of position e(q), by Levenberg and Marquardt on the joints' manifolds, with lengths as
shares of the robot's own (`row_sizes`), so that they can be added to angles:

    (J D⁻¹ Jᵀ + μ) y = e,      δ = -D⁻¹ Jᵀ y,      q ← q ⊕ δ,      D = diag M(q₀),

with J the exact derivative of e; the constraints' own Jacobian is that only where e = 0. A step is the shortest in the
metric of D that makes the errors as small as it does: every δᵢ² Dᵢ is an energy times a time squared, so that no step
depends on whether a joint counts in metres or millimetres, and heavy parts move less than light ones. The diagonal is
enough for this; all of M, as in `project`, is not worth its factors here. Joints that are locked have D⁻¹ = 0.

The damping μ makes steps possible whatever the rank, so that redundant rows and singular configurations do no harm. It
says how far the errors can be trusted to be linear: a step that makes |e| larger is taken back and tried again with
more of it, shorter and nearer to steepest descent; steps that keep what they promise lower it (Nielsen). It ends when
all errors are below the tolerance, or when there is no way down any more: then q is an answer of least squares.

O(m² n + m³) operations and one derivative of e an iteration. Steps lead down into the nearest valley only: from afar
there is no guarantee to find a closure that exists. Near one, four iterations are usual; where there is none, the last
digits of the least-squares answer come slowly, since μ has to stand for the curvature of e: 50 to 100.

References: D. Marquardt, An algorithm for least-squares estimation of nonlinear parameters (1963); H. B. Nielsen,
Damping parameter in Marquardt's method (1999).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.common.checks import iteration_count
from delassus.common.types import Objects, Traced
from delassus.compiler.host.kernel import kernel
from delassus.compiler.tracing.flow.control import while_loop
from delassus.constrained.delassus.scales import row_sizes
from delassus.constrained.rows.counts import whole
from delassus.constrained.rows.inputs import TIME, tolerance_input
from delassus.constrained.rows.jacobian import constraint_jacobian
from delassus.constrained.rows.locked import locked_velocities
from delassus.constrained.rows.references import constraint_error, error_derivative
from delassus.constrained.rows.told import Told
from delassus.constrained.solvers.status import Status, described, statuses_of
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.dynamics.kinematics.manifold import integrate, normalize
from delassus.dynamics.mass.crba import mass_matrix
from delassus.dynamics.tree.check import check_inertias
from delassus.linalg.ldl import ldl

_FIRST_DAMPING: Final = 1e-3
_LEAST_DAMPING: Final = 1e-10
_MOST_DAMPING: Final = 1e10
"""μ as a share of the largest diagonal element of J D⁻¹ Jᵀ: at first; at least, where it costs no iterations; and at
most, where steps are so short that rounding alone keeps them from leading down."""

_FLAT: Final = 1e-6
"""The slope of |e| along the steepest way, as a share of the largest it could have: below it, |e| is within 1e-12 of
the least there is around."""


class _Arrays(NamedTuple):
    q: Any
    error: Any
    iterations: Any
    status: Any


class Assembly(Told, _Arrays):
    """Configurations of a mechanism, one or a batch, and how well they meet its constraints.

    Attributes:
        q: (…, nq) [rad, m].
        error: (…, m) errors of position [m, rad].
        iterations: (…) how many were made.
        status: (…) numbers of `Status`.
        mechanism: What was assembled.
    """

    mechanism: Mechanism

    @classmethod
    def of_call(cls, values: tuple[Any, ...], mechanism: Mechanism, _: Any) -> Assembly:
        """That of a call of `assemble`."""
        q, error, iterations, status = values
        return cls(q, error, whole(iterations), whole(status)).telling(mechanism=mechanism)

    @property
    def statuses(self) -> Status | Objects:
        """The status of one configuration, or an array of them."""
        return statuses_of(self.status)

    def describe(self) -> str:
        """How it ended, in a sentence or two: of the worst configuration, where there are several."""
        return described(self.mechanism, self.status, self.error, "configuration", "error", "m or rad")


@kernel("(nq)->(nq),(m),(),()", inputs={"time": TIME, "tolerance": tolerance_input(1e-10)}, result=Assembly)
def assemble(
    mechanism: Mechanism,
    q0: Traced,
    *,
    locked: Iterable[str] = (),
    iterations: int = 100,
    time: Traced = None,
    tolerance: Traced = 1e-10,
) -> Assembly:
    """A configuration near q0 that meets the constraints, or the best in the least-squares sense; one or a batch.

    Rows without a reference are held, to first order, where they are.

    Args:
        mechanism: The robot and its constraints.
        q0: Configurations (…, nq) [rad, m] to start from.
        locked: Joints that must not move, by name or pattern, such as "arm*".
        iterations: How many are made at most.
        time: (…) [s] what references move with, needed where they do.
        tolerance: The error that may remain, as a share of the robot's length, or of a radian.
    """
    iteration_count("iterations", iterations)
    held = locked_velocities(mechanism.model, locked)
    model, start = mechanism.model, normalize(mechanism.model, q0)
    if not mechanism.m:
        status = np.where(np.isfinite(np.sum(start)), float(Status.CONVERGED), float(Status.NOT_FINITE))
        return Assembly(start, np.zeros(0), np.array(0.0), status)
    check_inertias(model)
    sizes = numpy.array(row_sizes(mechanism))
    inverse = 1.0 / np.diagonal(mass_matrix(model, start))
    inverse[list(held)] = 0.0

    def error(q: Any) -> Any:
        return constraint_error(mechanism, q, time=time)

    def size(e: Any) -> Any:
        return np.max(np.abs(e) / sizes)

    def goes_on(now: _Descent) -> Any:
        return (size(now.e) > tolerance) & (now.slope > _FLAT) & (now.damping <= _MOST_DAMPING)

    def step(now: _Descent) -> _Descent:
        q, e, damping, growth, _, count = now
        J = error_derivative(mechanism, q, time) / sizes[:, None]
        G = (J * inverse) @ J.T
        scale = np.max(np.diagonal(G))
        mu = np.where(scale > 0.0, damping * scale, 1.0)
        shares = e / sizes
        y = ldl(G + mu * np.eye(mechanism.m)).solve(shares)
        squares, pull = shares @ shares, J.T @ shares
        slope = np.sqrt(np.where(scale > 0.0, pull @ (inverse * pull) / (scale * squares), 0.0))
        # A start from which no way leads down may be a ridge, such as links that are all in line: step off it.
        ridge = (slope <= _FLAT) & (count < 0.5)
        trial = integrate(model, q, np.where(ridge, aside, -inverse * (J.T @ y)))
        e_trial = error(trial)
        after = np.sum((e_trial / sizes) ** 2)
        gain = (squares - after) / (squares - mu * mu * (y @ y))  # e + J δ = μ y
        lowered = np.maximum(damping * np.maximum(1 / 3, 1.0 - (2.0 * gain - 1.0) ** 3), _LEAST_DAMPING)
        better = after < squares
        taken = better | ridge
        return _Descent(
            np.where(taken, trial, q),
            np.where(taken, e_trial, e),
            np.where(ridge, damping, np.where(better, lowered, damping * growth)),
            np.where(taken, 2.0, 2.0 * growth),
            np.where(ridge, 1.0, slope),
            count + 1.0,
        )

    e_0 = error(start)
    J_0 = constraint_jacobian(mechanism, start, time=time) / sizes[:, None]
    aside = _step_aside(mechanism, inverse, J_0, e_0 / sizes)
    first = _Descent(start, e_0, np.array(_FIRST_DAMPING), np.array(2.0), np.array(1.0), np.array(0.0))
    last: _Descent = while_loop(goes_on, step, first, iterations)
    q, e = last.q, last.e
    bottom = (last.slope <= _FLAT) | (last.damping > _MOST_DAMPING)
    status = np.where(bottom, float(Status.LEAST_SQUARES), float(Status.ITERATIONS))
    status = np.where(size(e) <= tolerance, float(Status.CONVERGED), status)
    status = np.where(np.isfinite(np.sum(q) + np.sum(e)), status, float(Status.NOT_FINITE))
    return Assembly(q, e, last.count, status)


class _Descent(NamedTuple):
    """Where the damped iteration is: q (nq,), the errors e there, the damping and what it grows by, the slope of the
    sum of squares, and the steps made."""

    q: Any
    e: Any
    damping: Any
    growth: Any
    slope: Any
    count: Any


def _step_aside(mechanism: Mechanism, inverse: Any, J: Any, e: Any) -> Any:
    """A step (nv,) that changes the errors by about a tenth, whichever way they go.

    It is measured by the constraints' own Jacobian: that of the errors is as large as you like near some ridges, such
    as axes of a hinge that point against each other, where the least turn changes the direction of the error.
    """
    scale = np.max(np.diagonal((J * inverse) @ J.T))
    return np.sqrt(inverse * np.where(scale > 0.0, e @ e / scale, 0.0)) * np.array(_aside(mechanism.nv))


def _aside(n: int) -> list[float]:
    """A direction (n,) that no symmetry of a mechanism is likely to have: a tenth of cosines, a golden angle apart."""
    return [0.1 * math.cos(0.5 + math.pi * (3.0 - math.sqrt(5.0)) * k) for k in range(n)]
