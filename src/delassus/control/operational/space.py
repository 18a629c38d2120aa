"""Operational space: the inertia of tasks, and decoupled task motions.

In coordinates x with M = L Lᵀ and ẋ = Lᵀ v, the kinetic energy is ½ ẋᵀ ẋ. A is the matrix of the tasks' rows in these
coordinates, projected onto the null space of the constraints. Then

    Λ = (A Aᵀ)⁺,      J̄ = L⁻ᵀ Aᵀ Λ,      N = 1 - Jᵀ J̄ᵀ:

are the inertia of the tasks, their dynamically consistent inverse (the motion of least energy that achieves the tasks
under the constraints), and the projector onto torques that do not accelerate the tasks. Compliant rows do not
constrain, but add inertia, M + Jᵀ C⁻¹ J, C their compliance. Without constraints these are Khatib's. Directions in
which tasks are singular or redundant get zero inertia.

Reference: O. Khatib, A unified approach for motion and force control of robot manipulators (1987); J. Park, O. Khatib,
Contact consistent control framework for humanoid robots (2006).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy

import delassus.numpy as np
from delassus.common.outcomes import Outcome
from delassus.common.types import Traced
from delassus.compiler.host.kernel import kernel
from delassus.constrained.delassus.scales import row_mobilities
from delassus.constrained.elimination.tree_factor import TreeFactor, tree_factor
from delassus.constrained.rows.counts import as_integer
from delassus.constrained.rows.inputs import TIME, per_row
from delassus.constrained.rows.jacobian import jacobian_of
from delassus.constrained.rows.problem import Problem
from delassus.control.inverse.result import ControlStatus
from delassus.control.operational.tasks import Tasks, task_bias, task_jacobian
from delassus.dynamics.mass.factor import forward
from delassus.linalg.jacobi import orthogonalize
from delassus.linalg.ldl import ldl
from delassus.linalg.least_squares import RANK
from delassus.linalg.staged_least_squares import first_stage


class _Arrays(NamedTuple):
    jacobian: Any
    bias: Any
    inertia: Any
    inverse: Any
    projector: Any
    status: Any


class OperationalSpace(Outcome, _Arrays):
    """Tasks of a robot in a state, one or a batch.

    Attributes:
        jacobian: J (…, t, nv).
        bias: J̇ v (…, t) [m/s², rad/s²].
        inertia: Λ (…, t, t) [kg, kg·m²], of the constrained robot.
        inverse: J̄ (…, nv, t), the dynamically consistent inverse of J.
        projector: N (…, nv, nv): torques N tau do not accelerate the tasks.
        status: (…) values of `ControlStatus`: REALISED, or SINGULAR if tasks cannot move or depend on each other.

    >>> tasks = dl.control.Tasks(dl.load("arm7"), dl.control.FrameTask("tool"))
    >>> dl.control.operational_space(tasks, np.full(7, 0.3), np.zeros(7)).inertia.shape
    (6, 6)
    """

    status_type = ControlStatus

    @classmethod
    def of_call(cls, values: tuple[Any, ...], *_: Any) -> OperationalSpace:
        """Create from the results of a call."""
        jacobian, bias, inertia, inverse, projector, status = values
        return cls(jacobian, bias, inertia, inverse, projector, as_integer(status))


@kernel(
    "(nq),(nv)->(t,nv),(t),(t,t),(nv,t),(nv,nv),()",
    inputs={"mask": per_row("mask"), "time": TIME},
    result=OperationalSpace,
)
def operational_space(
    tasks: Tasks, q: Traced, v: Traced, *, mask: Traced = None, time: Traced = None
) -> OperationalSpace:
    """Jacobian, bias, inertia, consistent inverse and null-space projector of tasks, of one state or a batch.

    Args:
        tasks: A robot with tasks.
        q: Configurations (…, nq) [rad, m].
        v: Velocities (…, nv) [rad/s, m/s].
        mask: (…, m) nonzero for active rows of constraints; by default all.
        time: (…) [s] time of moving references, required if there are any.

    >>> tasks = dl.control.Tasks(dl.load("arm7"), dl.control.FrameTask("tool"))
    >>> dl.control.operational_space(tasks, np.full(7, 0.3), np.zeros(7)).projector.shape
    (7, 7)
    """
    J, bias = task_jacobian(tasks, q), task_bias(tasks, q, v)
    model, n = tasks.model, tasks.nv
    constraints = constraint_rows(tasks, q, v, mask, time)
    space = in_energy(model, q, np.concatenate([constraints, J]) if len(constraints) else J)
    scale = np.max(np.sum(space.rows[len(constraints) :] ** 2, 1))
    soft = tasks.robot.mechanism_compliance > 0.0
    if numpy.any(soft):
        space = _add_compliance(tasks, space, numpy.flatnonzero(soft))
    rigid = space.rows[: len(constraints)][numpy.flatnonzero(~soft)]
    A = space.rows[len(constraints) :]
    if len(rigid):
        A = first_stage(rigid, np.zeros(len(rigid)), RANK).open_part(A)
    orthogonal = orthogonalize(np.concatenate([A, np.eye(tasks.t)], 1), n)
    C, V = orthogonal[:, :n], orthogonal[:, n:]
    squares = np.sum(C * C, 1)
    is_independent = squares > RANK * np.maximum(np.max(squares), scale)
    inverse = np.where(is_independent, 1.0 / np.where(is_independent, squares, 1.0), 0.0)
    Lambda = V.T @ (inverse[:, None] * V)
    AL = C.T @ (inverse[:, None] * V)  # Aᵀ Λ
    consistent = np.stack([space.velocities(AL[:, k]) for k in range(tasks.t)], axis=1)
    status = np.where(np.all(is_independent), float(ControlStatus.REALISED), float(ControlStatus.SINGULAR))
    finite = np.isfinite(np.sum(q) + np.sum(v) + np.sum(J) + np.sum(bias) + np.sum(Lambda))
    status = np.where(finite, status, float(ControlStatus.NOT_FINITE))
    return OperationalSpace(J, bias, Lambda, consistent, np.eye(n) - J.T @ consistent.T, status)


class EnergySpace(NamedTuple):
    """Rows (·, nv) in coordinates x with v = L⁻ᵀ x, where the kinetic energy is ½ xᵀ x."""

    tree: TreeFactor
    root: Any
    rows: Any
    back: Any = None

    def velocities(self, x: Any) -> Any:
        """v (nv,) from x (nv,)."""
        x = x if self.back is None else self.back @ x
        return forward(self.tree.above, self.tree.U, x / self.root)

    def of_velocities(self, v: Any) -> Any:
        """x (nv,) from v (nv,): D^½ Uᵀ v."""
        return self.root * (self.tree.U.T @ v)


def in_energy(model: Any, q: Any, rows: Any) -> EnergySpace:
    """Transform rows (·, nv) on velocities to rows on x."""
    tree = tree_factor(model, q, rows)
    root = np.sqrt(tree.D)
    return EnergySpace(tree, root, tree.Y * root)


def _add_compliance(tasks: Tasks, space: EnergySpace, soft: Any) -> EnergySpace:
    """Change variables to y, x = back y, so that ½ yᵀ y includes the energy of compliant rows, `soft`."""
    scaled = 1.0 / numpy.array(row_mobilities(tasks.mechanism))[soft] * tasks.robot.mechanism_compliance[soft]
    A, n = space.rows[soft], tasks.nv
    K = ldl(np.eye(n) + A.T @ (A / scaled[:, None]))  # L D^½ is a square root
    inverse_root = K.solve((np.tril(K.L, -1) + np.eye(n)) / np.sqrt(K.inverse))
    return EnergySpace(space.tree, space.root, space.rows @ inverse_root, inverse_root)


def constraint_rows(tasks: Tasks, q: Any, v: Any, mask: Any, time: Any) -> Any:
    """The rows of the constraints (m, nv), scaled by their mobility."""
    if not tasks.m:
        return np.zeros((0, tasks.nv))
    weight = 1.0 / numpy.sqrt(numpy.array(row_mobilities(tasks.mechanism)))
    return jacobian_of(Problem.of(tasks.mechanism, q, v, np.zeros(tasks.nv), mask, time)) * weight[:, None]
