"""Task-space inverse dynamics: torques for target accelerations of tasks, in the order of their priorities.

Feasible accelerations come before all tasks. They satisfy the constraints, J a + γ = 0, and leave no residual where
neither actuators nor constraints act: with N the directions without actuators and P those among them without constraint
forces (see `inverse`), P Nᵀ (M a + c) = 0. Compliant rows have the force -(J a + γ)/C, which is part of M and c here.
Then, level by level,

    minimize |J_k a + J̇_k v - ẍ_k|   among the accelerations that remain free,

each by an orthogonal decomposition of J_k projected onto the null space of the previous levels, in the metric of M.
Directions that are free at the end follow a given acceleration as closely as possible. Torques and forces are those of
`inverse_dynamics`. Infeasible and conflicting tasks are solved in the least-squares sense, and their residuals are
returned.

References: L. Sentis, O. Khatib, Synthesis of whole-body behaviors through hierarchical control (2005); B. Siciliano,
J.-J. Slotine, A general framework for managing multiple tasks (1991).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.common.outcomes import Outcome, name_of_row
from delassus.common.provenance import Provenance
from delassus.common.types import Traced
from delassus.compiler.host.kernel import kernel
from delassus.constrained.delassus.scales import row_mobilities
from delassus.constrained.rows.counts import as_integer
from delassus.constrained.rows.jacobian import bias_of, jacobian_of
from delassus.constrained.rows.problem import Problem
from delassus.control.inverse.distribution import passive_inertia
from delassus.control.inverse.dynamics import actuated_inverse_dynamics
from delassus.control.inverse.result import ControlStatus, largest_entry, worst_control
from delassus.control.inverse.weights import NO_INPUTS, TASK_INPUTS, InverseInputs
from delassus.control.operational.space import in_energy
from delassus.control.operational.tasks import Tasks, task_bias, task_jacobian
from delassus.dynamics.forces.passive import passive_forces
from delassus.dynamics.forces.rnea import bias_torques
from delassus.dynamics.mass.crba import mass_matrix
from delassus.linalg.least_squares import RANK
from delassus.linalg.staged_least_squares import first_stage

_MET: Final = 1e-8
"""Largest residual of a row of a task, relative to the accelerations that cancel in it."""


class _Arrays(NamedTuple):
    torque: Any
    force: Any
    acceleration: Any
    residual: Any
    status: Any


class TaskDynamics(Provenance, Outcome, _Arrays):
    """Torques for tasks, one state or a batch.

    Attributes:
        torque: (…, nu) forces of the actuators [N·m, N].
        force: (…, m) of the constraints [N, N·m].
        acceleration: (…, nv) resulting acceleration [rad/s², m/s²].
        residual: (…, t) J a + J̇ v - ẍ: residual of the tasks, in their units.
        status: (…) values of `ControlStatus`; NEAREST if tasks are infeasible.
        tasks: The tasks.

    >>> tasks = dl.control.Tasks(dl.load("arm7"), dl.control.PostureTask())
    >>> dl.control.task_inverse_dynamics(tasks, np.full(7, 0.3), np.zeros(7), np.zeros(7)).torque.shape
    (7,)
    """

    status_type = ControlStatus
    tasks: Tasks

    @classmethod
    def of_call(cls, values: tuple[Any, ...], tasks: Tasks, _: Any) -> TaskDynamics:
        """Create from the results of a call."""
        torque, force, acceleration, residual, status = values
        return cls(torque, force, acceleration, residual, as_integer(status)).with_inputs(tasks=tasks)

    def describe(self) -> str:
        """Describe the result in a sentence or two; for a batch, that of the worst state."""
        worst, text = worst_control(self.status)
        if worst is ControlStatus.NEAREST:
            row, most = largest_entry(self.residual, self.status == worst)
            task = self.tasks.tasks[name_of_row(self.tasks.slices, row)]
            text += f" The largest that is missing is {most:.3g}, of {task}."
        return text


@kernel(
    "(nq),(nv),(t)->(nu),(m),(nv),(t),()",
    inputs={"setting": TASK_INPUTS, "acceleration": "(nv)"},
    result=TaskDynamics,
)
def task_inverse_dynamics(
    tasks: Tasks,
    q: Traced,
    v: Traced,
    demands: Traced,
    *,
    setting: InverseInputs = NO_INPUTS,
    acceleration: Traced = None,
) -> TaskDynamics:
    """Torques for target accelerations of tasks, of one state or a batch. Springs and dampers are compensated.

    Args:
        tasks: A robot with tasks; those with a smaller `priority` come first.
        q: Configurations (…, nq) [rad, m].
        v: Velocities (…, nv) [rad/s, m/s].
        demands: ẍ (…, t): accelerations of the tasks' rows [m/s², rad/s²], forces and moments for momentum.
        setting: Other forces, active rows, weights; its fields are also keywords: mask, time, tau, torque_weight,
            torque_target, force_weight, force_target, as for `inverse_dynamics`.
        acceleration: (…, nv) target for accelerations that tasks leave free; by default zero.

    >>> tasks = dl.control.Tasks(dl.load("arm7"), dl.control.FrameTask("tool"))
    >>> torque = dl.control.task_inverse_dynamics(tasks, np.full(7, 0.3), np.zeros(7), np.zeros(6)).torque
    """
    robot, n = tasks.robot, tasks.nv
    M, c = mass_matrix(tasks.model, q), bias_torques(tasks.model, q, v) - passive_forces(tasks.model, q, v)
    c = c if setting.tau is None else c - setting.tau
    rows, right = _possible(tasks, q, v, M, c, setting.mask, setting.time)
    J, targets = task_jacobian(tasks, q), demands - task_bias(tasks, q, v)
    space = in_energy(tasks.model, q, np.concatenate([rows, J]) if len(rows) else J)
    start = np.zeros(n) if acceleration is None else space.of_velocities(acceleration)
    x, covered = start, np.zeros((0, n))
    levels = [(space.rows[: len(rows)], right)] if len(rows) else []
    task_rows, weights = space.rows[len(rows) :], tasks.weights
    for level in map(list, tasks.levels):
        levels.append((task_rows[level] * weights[level][:, None], targets[level] * weights[level]))
    for A, b in levels:
        scale = np.max(np.sum(A * A, 1))
        open_part = A - (A @ covered.T) @ covered if len(covered) else A
        stage = first_stage(open_part, b - A @ x, RANK, scale)
        x = x + stage.x
        covered = np.concatenate([covered, stage.seen])
    a = space.velocities(x)
    result = actuated_inverse_dynamics(robot, q, v, a, setting=setting)
    residual = J @ a - targets
    size = np.abs(J) @ np.abs(a) + np.abs(demands) + np.abs(demands - targets)
    unit = np.sqrt(np.sum(task_rows * task_rows, 1))
    size = np.maximum(size, np.max(size / np.where(unit > 0.0, unit, 1.0)) * unit)
    has_residual = np.any(np.abs(residual) > _MET * size)
    status = np.where(
        has_residual & (result.status == float(ControlStatus.REALISED)), float(ControlStatus.NEAREST), result.status
    )
    finite = np.isfinite(np.sum(a) + np.sum(demands) + np.sum(residual))
    status = np.where(finite, status, float(ControlStatus.NOT_FINITE))
    torque, force = (np.where(finite, x, 0.0) for x in (result.torque, result.force))
    return TaskDynamics(torque, force, a, residual, status)


def _possible(tasks: Tasks, q: Any, v: Any, M: Any, c: Any, mask: Any, time: Any) -> tuple[Any, Any]:
    """Rows (·, nv) and right-hand sides (·,) of feasible accelerations: rows @ a = ends."""
    robot, N = tasks.robot, tasks.robot.passive
    rows, right = [], []
    Y = None
    if robot.m:
        problem = Problem.of(robot.mechanism, q, v, np.zeros(tasks.nv), mask, time)
        J, gamma, compliance = jacobian_of(problem), bias_of(problem), robot.mechanism_compliance
        soft = numpy.flatnonzero(compliance > 0.0)
        weight = 1.0 / numpy.sqrt(numpy.array(row_mobilities(robot.mechanism)))
        rigid = numpy.where(compliance > 0.0, 0.0, weight)
        rigid_rows = J * rigid[:, None]
        rows, right, Y = [rigid_rows], [-gamma * rigid], rigid_rows.T
        if len(soft):  # their force -(J a + γ) / C acts like inertia
            stiff_rows = (J[soft] / compliance[soft][:, None]).T
            M, c = M + stiff_rows @ J[soft], c + stiff_rows @ gamma[soft]
    if N.shape[1]:
        S = passive_inertia(robot, M)
        whitened = S.whiten(np.concatenate([N.T @ M, (N.T @ c)[:, None]], 1))
        if Y is not None:
            stage = first_stage(S.whiten(N.T @ Y), np.zeros(N.shape[1]), RANK, pushes=True)
            whitened = whitened - (stage.left * stage.met[:, None]).T @ (stage.left @ whitened)
        rows.append(whitened[:, :-1])
        right.append(-whitened[:, -1])
    return (np.concatenate(rows), np.concatenate(right)) if rows else (np.zeros((0, tasks.nv)), np.zeros(0))
