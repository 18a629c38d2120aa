"""Inverse kinematics to a tolerance: a pose near a given one in which tasks are where they should be.

As `assemble`, whose targets are constraints: least squares of the errors by Levenberg and Marquardt on the joints'
manifolds, lengths as shares of the robot's own,

    (J D⁻¹ Jᵀ + μ) y = e,      δ = -D⁻¹ Jᵀ y,      q ← q ⊕ δ,      D = diag M(q₀),

e the errors of the tasks and of the constraints. Joints stay within their limits: one that is at a limit, and that the
steepest way would take beyond, has no part in the step (D⁻¹ = 0), and a pose that a step takes beyond is cut to the
limit. It ends when all errors are below the tolerance, or when no way leads down any more. Near a pose that meets all,
some ten iterations are usual. Far out of reach they crawl, as those of `assemble` do: the last digits of the nearest
pose take hundreds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.common.checks import iteration_count
from delassus.common.types import Objects, Traced
from delassus.compiler.differentiation.derivatives import jacobian
from delassus.compiler.host.kernel import kernel
from delassus.compiler.tracing.flow.control import while_loop
from delassus.constrained.delassus.scales import row_sizes
from delassus.constrained.rows.counts import whole
from delassus.constrained.rows.inputs import TIME, tolerance_input
from delassus.constrained.rows.locked import locked_velocities
from delassus.constrained.rows.references import constraint_error, error_derivative
from delassus.constrained.solvers.status import Status, statuses_of
from delassus.control.operational.limits import pressed, within
from delassus.control.operational.tasks import Tasks, task_error
from delassus.dynamics.kinematics.manifold import integrate, normalize, rates_per_velocity
from delassus.dynamics.mass.crba import mass_matrix
from delassus.linalg.ldl import ldl

_FIRST: Final = 1e-3
_LEAST: Final = 1e-10
_MOST: Final = 1e10
"""μ as a share of the largest diagonal element of J D⁻¹ Jᵀ: at first, at least, and at most."""

_FLAT: Final = 1e-6
"""The slope of |e| along the steepest way that limits leave, as a share of the largest it could have."""


class _Arrays(NamedTuple):
    q: Any
    error: Any
    iterations: Any
    status: Any


class TaskPose(_Arrays):
    """Poses for tasks, one or a batch.

    Attributes:
        q: (…, nq) [rad, m].
        error: (…, t) what is left of the tasks' errors [m, rad].
        iterations: (…) how many were made.
        status: (…) numbers of `Status`: CONVERGED, or LEAST_SQUARES where no pose nearby is better.
    """

    @classmethod
    def of_call(cls, values: tuple[Any, ...], *_: Any) -> TaskPose:
        """That of a call."""
        q, error, iterations, status = values
        return cls(q, error, whole(iterations), whole(status))

    @property
    def statuses(self) -> Status | Objects:
        """The status of one pose, or an array of them."""
        return statuses_of(self.status)


class _Descent(NamedTuple):
    """Where the damped iteration is: q (nq,), the errors e there, the damping and what it grows by, the slope of the
    sum of squares, and the steps made."""

    q: Any
    e: Any
    damping: Any
    growth: Any
    slope: Any
    count: Any


@kernel(
    "(nq),(ntargets)->(nq),(t),(),()",
    inputs={"time": TIME, "tolerance": tolerance_input(1e-10)},
    result=TaskPose,
)
def inverse_kinematics(
    tasks: Tasks,
    q0: Traced,
    targets: Traced,
    *,
    locked: Iterable[str] = (),
    iterations: int = 100,
    limits: bool = True,
    time: Traced = None,
    tolerance: Traced = 1e-10,
) -> TaskPose:
    """A pose near q0 in which tasks are at their targets, constraints met, limits kept; one or a batch.

    Args:
        tasks: A robot with tasks; their weights count where they cannot all be met.
        q0: Configurations (…, nq) [rad, m] to start from.
        targets: (…, ntargets) where the tasks are to be, one after the other: x y z for a position, and a quaternion
            x y z w after it for a pose; x y z of the centre of mass; a configuration for a posture.
        locked: Joints that must not move, by name or pattern.
        iterations: How many are made at most.
        limits: Whether joints stay within their limits of position.
        time: (…) [s] what references of constraints move with, needed where they do.
        tolerance: The error that may remain, as a share of the robot's length, or of a radian.
    """
    iteration_count("iterations", iterations)
    model, mechanism = tasks.model, tasks.mechanism
    held = locked_velocities(model, locked)
    start = normalize(model, q0)
    start = within(model, start) if limits else start
    sizes = numpy.concatenate([row_sizes(mechanism) if tasks.m else [], tasks.sizes])
    weights = numpy.concatenate([numpy.ones(tasks.m), tasks.weights])
    inverse = 1.0 / np.diagonal(mass_matrix(model, start))
    inverse[list(held)] = 0.0

    def error(q: Any) -> Any:
        own = task_error(tasks, q, targets)
        return np.concatenate([constraint_error(mechanism, q, time=time), own]) if tasks.m else own

    def derivative(q: Any) -> Any:
        own = jacobian(lambda q: task_error(tasks, q, targets))(q) @ rates_per_velocity(model, q)
        return np.concatenate([error_derivative(mechanism, q, time), own]) if tasks.m else own

    def size(e: Any) -> Any:
        return np.max(np.abs(e) / sizes)

    def goes_on(now: _Descent) -> Any:
        return (size(now.e) > tolerance) & (now.slope > _FLAT) & (now.damping <= _MOST)

    def step(now: _Descent) -> _Descent:
        q, e, damping, growth, _, count = now
        shares = e * weights / sizes
        J = derivative(q) * (weights / sizes)[:, None]
        pull = J.T @ shares
        free = inverse * pressed(model, q, -inverse * pull) if limits else inverse
        G = (J * free) @ J.T
        scale = np.max(np.diagonal((J * inverse) @ J.T))
        mu = np.where(scale > 0.0, damping * scale, 1.0)
        y = ldl(G + mu * np.eye(len(shares))).solve(shares)
        squares = shares @ shares
        slope = np.sqrt(np.where(scale > 0.0, pull @ (free * pull) / (scale * squares), 0.0))
        trial = integrate(model, q, -free * (J.T @ y))
        trial = within(model, trial) if limits else trial
        e_trial = error(trial)
        after = np.sum((e_trial * weights / sizes) ** 2)
        gain = (squares - after) / (squares - mu * mu * (y @ y))
        lowered = np.maximum(damping * np.maximum(1 / 3, 1.0 - (2.0 * gain - 1.0) ** 3), _LEAST)
        better = after < squares
        return _Descent(
            np.where(better, trial, q),
            np.where(better, e_trial, e),
            np.where(better, lowered, damping * growth),
            np.where(better, 2.0, 2.0 * growth),
            slope,
            count + 1.0,
        )

    first = _Descent(start, error(start), np.array(_FIRST), np.array(2.0), np.array(1.0), np.array(0.0))
    last: _Descent = while_loop(goes_on, step, first, iterations)
    q, e = last.q, last.e
    bottom = (last.slope <= _FLAT) | (last.damping > _MOST)
    status = np.where(bottom, float(Status.LEAST_SQUARES), float(Status.ITERATIONS))
    status = np.where(size(e) <= tolerance, float(Status.CONVERGED), status)
    finite = np.isfinite(np.sum(q) + np.sum(e))
    status = np.where(finite, status, float(Status.NOT_FINITE))
    return TaskPose(q, e[tasks.m :], last.count, status)
