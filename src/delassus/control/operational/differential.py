"""Differential inverse kinematics: velocities that achieve task velocities within joint limits.

    minimize  ½ Σ w (J v - ẋ)² + ½ δ vᵀ D v      with  J_c v = w_c,   l ≤ v ≤ u,

D is the diagonal of M, so that the result is independent of units, and δ a small fraction that keeps velocities small
where tasks are redundant or singular. All tasks are weighted against each other; for priorities use
`task_inverse_dynamics`.

A primal-dual active-set method finds the joints at their bounds: solve with some joints fixed at bounds, release those
with multipliers that pull inward, fix those beyond their bounds, and repeat until the active set is constant. Two to
five solves are typical. If it cycles, joints change one at a time (Júdice and Pires), which terminates. A solve
eliminates v by its inertia and then the constraints, with a proximal term for redundant ones: O(n³ + m n²) operations.

Reference: M. Hintermüller, K. Ito, K. Kunisch, The primal-dual active set strategy as a semismooth Newton method
(2002); J. Júdice, F. Pires, A block principal pivoting algorithm for large-scale strictly monotone linear
complementarity problems (1994).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.common.outcomes import Outcome
from delassus.common.types import Traced
from delassus.compiler.host.inputs import Input
from delassus.compiler.host.kernel import kernel
from delassus.compiler.tracing.flow.control import while_loop
from delassus.constrained.rows.counts import as_integer
from delassus.constrained.rows.inputs import TIME, not_negative
from delassus.constrained.rows.jacobian import constraint_jacobian
from delassus.constrained.rows.references import velocities_asked
from delassus.control.inverse.result import ControlStatus
from delassus.control.operational.limits import velocity_bounds
from delassus.control.operational.tasks import Tasks, task_jacobian
from delassus.dynamics.mass.crba import mass_matrix
from delassus.linalg.ldl import ldl

_ITERATIONS: Final = 300
_TRIES: Final = 5.0
"""Number of changes of several bounds at once without improvement before bounds change one at a time."""

_PROXIMAL: Final = 1e-7
"""Compliance of constraints in a solve, relative to their response, and the number of refinements that remove it."""

_REPEATS: Final = 3
_MET: Final = 1e-6
"""Largest error of tasks, relative to the target velocity, in addition to the effect of damping."""


class _Arrays(NamedTuple):
    velocity: Any
    residual: Any
    status: Any
    bounded: Any


class TaskVelocities(Outcome, _Arrays):
    """Velocities for tasks, one state or a batch.

    Attributes:
        velocity: (…, nv) [rad/s, m/s], within the limits.
        residual: (…, t) J v - ẋ: residual of the tasks.
        status: (…) values of `ControlStatus`: REALISED, NEAREST if limits or singular poses prevent it, or limits are
            inconsistent.
        bounded: (…, nv) 1 for velocities at their upper limit, -1 at their lower one, otherwise 0.

    >>> tasks = dl.control.Tasks(dl.load("double_pendulum"), dl.control.PostureTask())
    >>> dl.control.differential_inverse_kinematics(tasks, [0.0, 0.0], [0.1, 0.2]).velocity.round(6)
    array([0.1, 0.2])
    """

    status_type = ControlStatus

    @classmethod
    def of_call(cls, values: tuple[Any, ...], *_: Any) -> TaskVelocities:
        """Create from the results of a call."""
        velocity, residual, status, bounded = values
        return cls(velocity, residual, as_integer(status), as_integer(bounded))


@kernel(
    "(nq),(t)->(nv),(t),(),(nv)",
    inputs={
        "time": TIME,
        "step": not_negative("step"),
        "damping": not_negative("damping"),
        "lower": Input("(nv)"),
        "upper": Input("(nv)"),
    },
    result=TaskVelocities,
)
def differential_inverse_kinematics(
    tasks: Tasks,
    q: Traced,
    rates: Traced,
    *,
    time: Traced = None,
    step: Traced = None,
    damping: Traced = 1e-10,
    lower: Traced = None,
    upper: Traced = None,
) -> TaskVelocities:
    """Velocities that achieve target velocities of tasks within limits and constraints, of one state or a batch.

    Args:
        tasks: A robot with tasks, which are weighted against each other.
        q: Configurations (…, nq) [rad, m].
        rates: ẋ (…, t) velocities of the tasks' rows [m/s, rad/s].
        time: (…) [s] time of moving references, required if there are any.
        step: (…) [s] duration of the velocities: joints then also stay within their position limits.
        damping: (…) δ, relative to the mobility of the tasks; with zero, redundant velocities are arbitrary.
        lower: (…, nv) lower bounds, by default the model's velocity limits, and those due to `step`.
        upper: (…, nv) upper bounds, likewise; where one is below the lower bound, the upper bound is used.

    >>> tasks = dl.control.Tasks(dl.load("arm7"), dl.control.FrameTask("tool"))
    >>> dl.control.differential_inverse_kinematics(tasks, np.full(7, 0.3), np.zeros(6)).velocity.shape
    (7,)
    """
    n, model = tasks.nv, tasks.model
    J, weight = task_jacobian(tasks, q), tasks.weights / tasks.sizes
    D = np.diagonal(mass_matrix(model, q))
    weighted_jacobian, targets = J * weight[:, None], rates * weight
    least, most = velocity_bounds(model, q, step)
    least = least if lower is None else lower
    most = most if upper is None else upper
    crossed = np.any(least > most)
    most = np.maximum(most, least)
    curvature = np.sum(weighted_jacobian * weighted_jacobian, 0)
    share = np.max(curvature / D)
    H = weighted_jacobian.T @ weighted_jacobian + np.diag(damping * np.where(share > 0.0, share, 1.0) * D)
    f = weighted_jacobian.T @ targets
    constraints, w = _constraint_rows(tasks, q, time, np.diagonal(H))

    def solve(at: Any) -> tuple[Any, Any]:
        """v (nv,), with the joints where `at` (nv,) is nonzero fixed at a bound, and the forces of bounds (nv,)."""
        free_mask = np.where(at == 0.0, 0.0, 1.0)
        value = np.where(at > 0.0, most, np.where(at < 0.0, least, 0.0)) * free_mask
        value = np.where(free_mask > 0.0, value, 0.0)
        free = 1.0 - free_mask
        inner = ldl(H * free[:, None] * free[None, :] + np.diag(free_mask))
        right = (f - H @ value) * free + value
        nu = np.zeros(len(w))
        v = inner.solve(right)
        if len(w):
            rows = constraints * free[None, :]
            response = inner.solve(rows.T)
            G = rows @ response
            epsilon = _PROXIMAL * np.maximum(np.max(np.diagonal(G)), 1e-30)
            outer = ldl(G + epsilon * np.eye(len(w)))
            for _ in range(_REPEATS):
                step = outer.solve(constraints @ v - w)
                nu, v = nu + step, v - response @ step
        return v, (f - H @ v - constraints.T @ nu) * free_mask

    def iterate(carry: Any) -> Any:
        at, _, _, best, tries = carry
        v, force = solve(at)
        # An active bound must push; one that would pull is released.
        up = np.where(at > 0.0, force > 0.0, (at == 0.0) & (v > most))
        down = np.where(at < 0.0, force < 0.0, (at == 0.0) & (v < least))
        new = np.where(up, 1.0, np.where(down, -1.0, 0.0))
        changed_mask = np.where(new == at, 0.0, 1.0)
        count = np.sum(changed_mask)
        fewer = count < best
        # Change all at once as long as the number of violations decreases; otherwise one by one, which terminates.
        last = np.max(changed_mask * number)
        single = np.where(number == last, new, at)
        new = np.where(fewer | (tries > 0.5), new, single)
        return new, count, v, np.minimum(best, count), np.where(fewer, _TRIES, np.maximum(tries - 1.0, 0.0))

    number = numpy.arange(1.0, n + 1.0)
    start = (np.zeros(n), np.array(1.0), np.zeros(n), np.array(n + 1.0), np.array(_TRIES))
    at, changed, v, _, _ = while_loop(lambda carry: carry[1] > 0.5, iterate, start, _ITERATIONS)
    v = np.minimum(np.maximum(v, least), most)
    residual = J @ v - rates
    size = np.abs(J) @ np.abs(v) + np.abs(rates)
    is_off = crossed | np.any(np.abs(residual) > _MET * np.max(size * weight) / weight)
    if len(w):
        constraint_error = np.abs(constraints @ v - w)
        is_off = is_off | np.any(constraint_error > _MET * np.max(np.abs(constraints) @ np.abs(v) + np.abs(w)))
    status = np.where(is_off, float(ControlStatus.NEAREST), float(ControlStatus.REALISED))
    status = np.where(changed > 0.5, float(ControlStatus.ITERATIONS), status)
    finite = np.isfinite(np.sum(v) + np.sum(residual) + np.sum(q))
    status = np.where(finite, status, float(ControlStatus.NOT_FINITE))
    return TaskVelocities(np.where(finite, v, 0.0), residual, status, np.where(finite, at, 0.0))


def _constraint_rows(tasks: Tasks, q: Any, time: Any, curvature: Any) -> tuple[Any, Any]:
    """Rows of constraints (m, nv) and target velocities (m,), divided by their norms in the metric of H."""
    if not tasks.m:
        return np.zeros((0, tasks.nv)), np.zeros(0)
    J, w = constraint_jacobian(tasks.mechanism, q, time=time), velocities_asked(tasks.mechanism, q, time)
    length = np.sqrt(np.sum(J * J / curvature, 1))
    inverse = np.where(length > 0.0, 1.0 / np.where(length > 0.0, length, 1.0), 0.0)
    return J * inverse[:, None], w * inverse
