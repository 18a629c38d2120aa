"""Constrained dynamics to a tolerance: iterates as often as a state needs, and says how it ended.

`constrained_dynamics` is the function for users; `solve_to_tolerance` is the kernel behind it, for hot loops. The
iterations are a loop of compiled code: every state of a batch makes as many as it needs.

A state goes on until an iteration changes the generalised forces Jᵀ λ by less than the tolerance, relative to their
size. It also ends when the residual r = J a + γ + C λ is one of least squares, |Jᵀ r| below the tolerance, and the
change becomes no smaller: then rounding is all that changes. So rows that contradict each other end as well, where
neither r nor the change of λ would vanish.

Every iteration adds -E⁻¹ r to λ. The part of r that moves nothing (the kernel of Jᵀ) is the same in all iterations, and
is all that is left of r in the end; so where rows contradict each other, λ has drifted by -E⁻¹ r in each of them, which
is taken off at last: the forces are the smallest ones with their effect. Methods that compute accelerations from forces
iterate again from zero, with rows that agree, since the drift has cost them digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy

import delassus.numpy as np
from delassus.compiler.control import while_loop
from delassus.compiler.kernel import kernel
from delassus.constrained import caba, prox_ltl, prox_ltls, prox_pv
from delassus.constrained.choice import best_method, natural_proximal
from delassus.constrained.jacobian import jacobian_of
from delassus.constrained.method import Method
from delassus.constrained.options import check_iterations, check_mechanism, check_method, checked_tolerance
from delassus.constrained.residual import residual_of
from delassus.constrained.status import Solution, Status
from delassus.constrained.task import ROW_INPUTS, Proximal, Task, proximal_rows, task_of
from delassus.constraints.mechanism import Mechanism
from delassus.dynamics.aba import aba
from delassus.model.links import links_of

METHODS: Final = {
    "caba": caba.METHOD,
    "prox_ltl": prox_ltl.METHOD,
    "prox_ltls": prox_ltls.METHOD,
    "prox_pv": prox_pv.METHOD,
}

_IN_JOINT_SPACE: Final = {"caba": "prox_ltls", "prox_pv": "prox_ltl"}
"""Where joints share coordinates there is no recursion over the tree: these have the same iterates."""

_STALLED: Final = 0.9
"""An iteration whose change is more than this share of the one before makes no progress."""


def constrained_dynamics(
    mechanism: Mechanism,
    q: Any,
    v: Any,
    tau: Any,
    *,
    method: str = "auto",
    tolerance: float = 1e-10,
    iterations: int = 100,
    proximal: Proximal | None = None,
    mask: Any = None,
    force: Any = None,
    acceleration: Any = None,
    time: Any = None,
) -> Solution:
    """Accelerations and constraint forces of one state or a batch, to a tolerance.

    Args:
        mechanism: The robot and its constraints.
        q: Configurations (…, nq) [rad, m].
        v: Velocities (…, nv) [rad/s, m/s].
        tau: Generalised forces (…, nv) [N·m, N].
        method: "caba", "prox_pv", "prox_ltl", "prox_ltls", or "auto" for the fastest of them (see `best_method`).
        tolerance: Relative change of the generalised constraint forces at which iterations end.
        iterations: How many are made at most.
        proximal: The proximal parameter ε [1/kg, 1/(kg·m²)], one number or one per row; by default one that suits the
            mechanism and the method (see `natural_proximal`).
        mask: (…, m) not zero for rows that act; by default all.
        force: (…, m) forces to start from [N, N·m].
        acceleration: (…, m) desired accelerations of the rows, instead of the constraints' own [m/s², rad/s²].
        time: (…) [s] what references move with, 0 if not given.
    """
    check_mechanism(mechanism)
    check_method(method, ("auto", *METHODS))
    check_iterations(iterations)
    tolerance = checked_tolerance(tolerance, 1e-10)
    given = {"mask": mask, "force": force, "acceleration": acceleration, "time": time}
    for name, value in given.items():
        if name != "time" and value is not None and numpy.shape(value)[-1:] != (mechanism.m,):
            raise ValueError(
                f"{name} has shape {numpy.shape(value)}; its last axis has one number for each of the {mechanism.m} "
                f"rows ({', '.join(mechanism.names)})."
            )
    if not mechanism.m:
        return _unconstrained(mechanism, q, v, tau)
    chosen = best_method(mechanism) if method == "auto" else method
    if proximal is None:
        proximal = natural_proximal(mechanism, chosen)
    found = solve_to_tolerance(
        mechanism,
        q,
        v,
        tau,
        method=chosen,
        tolerance=tolerance,
        iterations=iterations,
        proximal=tuple(proximal_rows(mechanism, proximal).tolist()),
        **{name: value for name, value in given.items() if value is not None},
    )
    a, forces, residual, count, status = found
    return Solution(mechanism, a, forces, residual, numpy.asarray(count, int), numpy.asarray(status, int))


@kernel("(nq),(nv),(nv)->(nv),(m),(m),(),()", inputs=ROW_INPUTS)
def solve_to_tolerance(
    mechanism: Mechanism,
    q: Any,
    v: Any,
    tau: Any,
    *,
    method: str,
    tolerance: float = 1e-10,
    iterations: int = 100,
    proximal: Proximal = 1e-6,
    mask: Any = None,
    force: Any = None,
    acceleration: Any = None,
    time: Any = None,
) -> Any:
    """Accelerations (nv,), forces λ (m,), residual (m,), iterations, and the number of a `Status`."""
    check_method(method, METHODS)
    checked_tolerance(tolerance, 1e-10)
    check_iterations(iterations)
    parts = METHODS[_IN_JOINT_SPACE.get(method, method) if links_of(mechanism.model).mimics else method]
    task = task_of(mechanism, q, v, tau, proximal, mask, acceleration, time)
    loop = _Loop(parts, task, jacobian_of(task), tolerance, iterations)
    factors, first = parts.factor(task, force)
    state, count = loop.run(factors, first, 1.0)
    a, force = parts.finish(factors, state)
    # What a residual is measured against: the accelerations that have to cancel in it.
    scale = tolerance * (1.0 + loop.reach * _size(a))
    r = state.residual
    contradict = (_size(r) > scale) & (_size(loop.J.T @ r) <= scale * (1.0 + loop.reach))
    drifting = count
    if parts.agreed is not None:
        again = contradict & (count < float(iterations))
        factors = parts.agreed(factors, state._replace(residual=np.where(again, r, 0.0)))
        start = state._replace(force=np.where(again, 0.0, state.force))
        state, count = loop.run(factors, start, count, again)
        a, force = parts.finish(factors, state)
        drifting = np.where(again, count - drifting, count)
    force = np.where(contradict, force + drifting * state.residual / task.epsilon, force)
    r, pull = residual_of(task, a, force)
    status = np.where(contradict, float(Status.LEAST_SQUARES), float(Status.CONVERGED))
    status = np.where(_size(pull) <= scale * (1.0 + loop.reach), status, float(Status.ITERATIONS))
    # An input that no row and no result depends on is looked at, too.
    seen = [x for x in (a, force, q, v, tau, mask, acceleration, time) if x is not None]
    finite = np.isfinite(sum(np.sum(x) for x in seen))
    return a, force, r, count, np.where(finite, status, float(Status.NOT_FINITE))


@dataclass(frozen=True)
class _Loop:
    """The iterations of a method on a task with the Jacobian J, and when they end."""

    method: Method
    task: Task
    J: Any
    tolerance: float
    iterations: int

    @property
    def reach(self) -> Any:
        """The largest sum of a row of |J|."""
        return np.max(np.sum(np.abs(self.J), 1))

    def run(self, factors: Any, first: Any, count: Any, again: Any = None) -> tuple[Any, Any]:
        """The last state, and the number of iterations.

        `again` is None after the first iteration, or else tells whether to iterate, at least once, from another state.
        """
        kind, start = type(first), self.measured(first)

        def goes_on(carry: Any) -> Any:
            _, count, share, before, slope = carry
            done = (share <= self.tolerance) | ((slope <= self.tolerance) & (share > _STALLED * before))
            return ~done if again is None else again & ~done & (count < float(self.iterations))

        def step(carry: Any) -> Any:
            state, count, before, _, _ = carry
            state = self.method.iterate(factors, kind(*state))
            share, slope = self.measured(state)
            return tuple(state), count + 1.0, share, before, slope

        share, slope = start if again is None else (1.0, 1.0)
        bound = self.iterations - 1 if again is None else self.iterations
        if not bound:
            return first, count
        state, count, *_ = while_loop(goes_on, step, (tuple(first), count, share, 4.0 * share, slope), bound)
        return kind(*state), count

    def measured(self, state: Any) -> tuple[Any, Any]:
        """The share by which an iteration has changed Jᵀ λ, and how far its r is from least squares."""
        change, whole = self.J.T @ (state.force - state.before), self.J.T @ state.force
        scale = (1.0 + self.reach) * (1.0 + _size(state.residual) + _size(self.task.k))
        return _size(change) / (1.0 + _size(whole)), _size(self.J.T @ state.residual) / scale


def _size(x: Any) -> Any:
    """The largest of some numbers."""
    return np.max(np.abs(x))


def _unconstrained(mechanism: Mechanism, q: Any, v: Any, tau: Any) -> Solution:
    """The solution without any rows."""
    a = aba(mechanism.model, q, v, tau)
    batch, empty = a.shape[:-1], numpy.zeros((*a.shape[:-1], 0))
    finite = numpy.isfinite(a).all(-1)
    status = numpy.where(finite, int(Status.CONVERGED), int(Status.NOT_FINITE))
    return Solution(mechanism, a, empty, empty, numpy.zeros(batch, int), status)
