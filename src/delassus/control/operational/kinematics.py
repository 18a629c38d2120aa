"""Inverse kinematics to a tolerance: a configuration near an initial one in which all tasks reach their targets.

As in `assemble`, least squares of the errors by Levenberg–Marquardt on the joints' manifolds, with lengths relative to
the robot's size:

    (J D⁻¹ Jᵀ + μ) y = e,      δ = -D⁻¹ Jᵀ y,      q ← q ⊕ δ,      D = diag M(q₀),

e are the errors of the tasks and of the constraints. Joints stay within their limits: a joint at a limit that steepest
descent would violate is excluded from the step (D⁻¹ = 0), and a configuration beyond a limit is clipped. Iterations end
when all errors are below the tolerance, or at a local minimum. Near a solution, about ten iterations are typical. For
unreachable targets convergence is slow: the last digits of the nearest pose take hundreds.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy

import delassus.numpy as np
from delassus.common.checks import iteration_count
from delassus.common.outcomes import Outcome
from delassus.common.types import Traced
from delassus.compiler.differentiation.derivatives import jacobian
from delassus.compiler.host.kernel import kernel
from delassus.constrained.delassus.scales import row_sizes
from delassus.constrained.projection.descent import LeastSquares, descend
from delassus.constrained.rows.counts import as_integer
from delassus.constrained.rows.inputs import TIME, tolerance_input
from delassus.constrained.rows.locked import locked_velocities
from delassus.constrained.rows.references import constraint_error, error_derivative
from delassus.constrained.solvers.status import Status
from delassus.control.operational.limits import movable_velocities, within
from delassus.control.operational.tasks import Tasks, task_error
from delassus.dynamics.kinematics.manifold import integrate, normalize, rates_per_velocity
from delassus.dynamics.mass.crba import mass_matrix


class _Arrays(NamedTuple):
    q: Any
    error: Any
    iterations: Any
    status: Any


class TaskPose(Outcome, _Arrays):
    """Poses for tasks, one or a batch.

    Attributes:
        q: (…, nq) [rad, m].
        error: (…, t) remaining errors of the tasks [m, rad].
        iterations: (…) number of iterations.
        status: (…) values of `Status`: CONVERGED, or LEAST_SQUARES at a local minimum.

    >>> tasks = dl.control.Tasks(dl.load("double_pendulum"), dl.control.PostureTask())
    >>> dl.control.inverse_kinematics(tasks, [0.0, 0.0], [0.1, 0.2]).q.round(6)
    array([0.1, 0.2])
    """

    status_type = Status

    @classmethod
    def of_call(cls, values: tuple[Any, ...], *_: Any) -> TaskPose:
        """Create from the results of a call."""
        q, error, iterations, status = values
        return cls(q, error, as_integer(iterations), as_integer(status))


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
    """A pose near q0 in which tasks reach their targets within constraints and limits; one or a batch.

    Args:
        tasks: A robot with tasks; their weights matter if not all targets can be reached.
        q0: Initial configurations (…, nq) [rad, m].
        targets: (…, ntargets) targets of the tasks, one after the other: x y z for a position, followed by a quaternion
            x y z w for a pose; x y z for the center of mass; a configuration for a posture.
        locked: Joints that must not move, by name or pattern.
        iterations: Maximum number of iterations.
        limits: Whether to keep joints within their position limits.
        time: (…) [s] time of moving references of constraints, required if there are any.
        tolerance: Largest error, relative to the robot's length, or to a radian.

    >>> tasks = dl.control.Tasks(dl.load("double_pendulum"), dl.control.PostureTask())
    >>> pose = dl.control.inverse_kinematics(tasks, [0.0, 0.0], [0.1, 0.2])
    """
    iteration_count("iterations", iterations)
    model, mechanism = tasks.model, tasks.mechanism
    locked_indices = locked_velocities(model, locked)
    start = normalize(model, q0)
    start = within(model, start) if limits else start
    sizes = numpy.concatenate([row_sizes(mechanism) if tasks.m else [], tasks.sizes])
    weights = numpy.concatenate([numpy.ones(tasks.m), tasks.weights])
    inverse = 1.0 / np.diagonal(mass_matrix(model, start))
    inverse[list(locked_indices)] = 0.0

    def error(q: Any) -> Any:
        task_part = task_error(tasks, q, targets)
        return np.concatenate([constraint_error(mechanism, q, time=time), task_part]) if tasks.m else task_part

    def derivative(q: Any) -> Any:
        task_part = jacobian(lambda q: task_error(tasks, q, targets))(q) @ rates_per_velocity(model, q)
        return np.concatenate([error_derivative(mechanism, q, time), task_part]) if tasks.m else task_part

    def move(q: Any, step: Any) -> Any:
        end = integrate(model, q, step)
        return within(model, end) if limits else end

    open_ways = partial(movable_velocities, model) if limits else None
    problem = LeastSquares(error, derivative, sizes, weights, inverse, move, open_ways)
    last, status = descend(problem, start, tolerance, iterations)
    return TaskPose(last.q, last.e[tasks.m :], last.count, status)
