"""Builds the quadratic program in x = (a, f); torques are eliminated by the rows of the actuators.

min  Σ ½ ‖J x - target‖²_W
s.t. Pᵀ (M a + c - Jᵀ f) = 0         rows of the equation of motion that no actuator reaches
     J a + C f = target accelerations of supports and loops, C the compliance of constraints
     lower ≤ C x ≤ upper             friction, pressure, torques U x + u₀, ranges of joints
     K x in cones                    friction, of the second order
"""

from __future__ import annotations

from typing import Any

import numpy

import delassus.numpy as np
from delassus.compiler.host.kernel import Floats, kernel
from delassus.control.qp.scaled import Data
from delassus.control.reactive.data import ControlData
from delassus.control.reactive.limits import cones_of, rows_of
from delassus.control.reactive.situation import Situation
from delassus.control.reactive.task import Task, Term
from delassus.linalg.products import gram


def data_of(s: Situation, tasks: tuple[Task, ...]) -> Data:
    """The arrays of the QP."""
    control = s.control
    H, g = objective(s, tasks)
    passive = np.array(control.actuated.passive.T)
    A = np.concatenate([passive @ s.motion, np.concatenate([s.J, np.array(numpy.diag(s.gives))], 1)])
    b = np.concatenate([-(passive @ s.c), s.held])
    C, lower, upper = rows_of(s)
    K = cones_of(control)
    return Data(H, g, A, b, C, lower, upper, K, np.zeros(len(K)))


def objective(s: Situation, tasks: tuple[Task, ...]) -> tuple[Any, Any]:
    """H (n, n) and g (n,) of all tasks."""
    n = s.control.n
    H, g = np.zeros((n, n)), np.zeros(n)
    for task in tasks:
        share = s.reference_part(f"{task.name}.weight")[0]
        for term in task.terms(s):
            J = on_x(s, term)
            WJ = share * weighted(term.weight, J)
            H = H + gram(WJ, J)
            g = g - WJ.T @ term.target
    lower = np.tril(H, -1)
    return H + lower.T, g


def on_x(s: Situation, term: Term) -> Any:
    """The rows (k, n) of a term in x = (a, f)."""
    k = len(term.target)
    on_a = np.zeros((k, s.control.nv)) if term.on_a is None else term.on_a
    on_f = np.zeros((k, s.control.nf)) if term.on_f is None else term.on_f
    return np.concatenate([on_a, on_f], 1)


def weighted(weight: Any, J: Any) -> Any:
    """W J, for a weight that is one value, one for each row, or a matrix."""
    W = numpy.asarray(weight, float)
    if W.ndim == 0:
        return float(W) * J
    return np.array(W)[:, None] * J if W.ndim == 1 else np.array(W) @ J


def errors_in(s: Situation, x: Any, task: Task) -> Any:
    """J x - target of the tasks' rows, one after the other."""
    return np.concatenate([on_x(s, term) @ x - term.target for term in task.terms(s)] or [np.zeros(0)])


@kernel(
    "(nq),(nv),(references)->(n,n),(n),(equalities,n),(equalities),(rows,n),(rows),(rows),(cone_rows,n),(cone_rows)",
    result=Data,
)
def build_qp(control: ControlData, q: Any, v: Any, reference: Any) -> tuple[Floats, ...]:
    """H, g, A, b, C, lower, upper, K and k."""
    return data_of(Situation.of(control, control.places, q, v, reference), control.tasks)


@kernel("(nq),(nv),(references),(n)->(task_rows)")
def task_errors(control: ControlData, q: Any, v: Any, reference: Any, x: Any) -> Floats:
    """Residuals of the tasks (task_rows,), in their units, one after the other."""
    s = Situation.of(control, control.places, q, v, reference)
    return np.concatenate([errors_in(s, x, task) for task in control.tasks])
