"""Constrained dynamics to a tolerance: iterates as often as a state needs, and says how it ended.

`constrained_dynamics` is the function for users; `solve_to_tolerance` is the kernel behind it, for hot loops. The
iterations are a loop of compiled code: every state of a batch makes as many as it needs.

An iteration adds -E⁻¹ r to λ, r its residual. Where rows are independent r vanishes; where they contradict each other a
part of it stays, which moves nothing, and λ drifts along it. So iterations end when neither the generalised forces Jᵀ λ
nor r change any more, seen ahead by the rate at which their changes become smaller. If r is not zero then, the drift is
taken off λ and iterations go on with rows that ask for r, which agree, to the smallest forces.

Along directions in which rows hardly move, errors shrink slowly, or not at all: near singular poses. Such a state is
solved by singular values instead (`gauss`), and so is one whose result does not stand the check. The check is the same
for all: the equation of motion and the rows are computed anew from a and λ (`equations`), and tell the status.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.host.kernel import Floats, kernel
from delassus.compiler.tracing.flow.control import while_loop
from delassus.compiler.tracing.trace import computing_in
from delassus.constrained.delassus.proximal import Proximal, proximal_rows
from delassus.constrained.elimination.gauss import RANK, by_singular_values
from delassus.constrained.elimination.tree_factor import tree_factor
from delassus.constrained.rows.counts import whole
from delassus.constrained.rows.options import check_iterations, check_mechanism, check_method, checked_tolerance
from delassus.constrained.rows.task import ROW_INPUTS, task_of
from delassus.constrained.solvers.choice import SOLVERS, solver_for
from delassus.constrained.solvers.equations import Equations
from delassus.constrained.solvers.optimality import Check
from delassus.constrained.solvers.prox_ltls import moving_dofs
from delassus.constrained.solvers.solver import Solver
from delassus.constrained.solvers.status import Asked, Solution, Status
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.dynamics.forces.aba import aba

_SHARES: Final = {("float64", False): 1e-7, ("float64", True): 3e-5, ("float32", False): 1e-6, ("float32", True): 3e-4}
"""ε as a share of the rows' mobility, by precision, without and with penalties."""

_NAMES: Final = ("auto", *SOLVERS)
_TOLERANCES: Final = {"float64": 1e-10, "float32": 1e-4}

_SLOW: Final = 0.7
"""An iteration whose change is more than this share of the one before makes too little progress."""


def constrained_dynamics(
    mechanism: Mechanism,
    q: Any,
    v: Any,
    tau: Any,
    *,
    method: str = "auto",
    tolerance: float = 1e-10,
    iterations: int = 100,
    proximal: Proximal = None,
    rank: float | None = None,
    mask: Any = None,
    force: Any = None,
    acceleration: Any = None,
    time: Any = None,
    parameters: Any = None,
) -> Solution:
    """Accelerations and constraint forces of one state or a batch, to a tolerance.

    Args:
        mechanism: The robot and its constraints.
        q: Configurations (…, nq) [rad, m].
        v: Velocities (…, nv) [rad/s, m/s].
        tau: Generalised forces (…, nv) [N·m, N].
        method: "caba", "prox_pv", "prox_ltl", "prox_ltls", or "auto" for the fastest of them (see `best_method`).
        tolerance: Relative error of rows and of generalised constraint forces at which iterations end.
        iterations: How many are made at most.
        proximal: The proximal parameter ε [1/kg, 1/(kg·m²)], one number or one per row; by default one that suits the
            mechanism and the method, in any units (see `natural_proximal`).
        rank: Eigenvalues of J M⁻¹ Jᵀ below this share of the largest count as zero: rows that depend on each other but
            for errors of position. All states are then solved by singular values. By default 1e-12, where it matters.
        mask: (…, m) not zero for rows that act; by default all.
        force: (…, m) forces to start from [N, N·m].
        acceleration: (…, m) desired accelerations of the rows, instead of the constraints' own [m/s², rad/s²].
        time: (…) [s] what references move with, needed where they do.
        parameters: (…, nparameters) those of a mechanism whose model has some.
    """
    check_mechanism(mechanism)
    check_method(method, _NAMES)
    check_iterations(iterations)
    checked_tolerance(tolerance, 1e-10)
    if proximal is not None:
        proximal_rows(mechanism, proximal)
    for name, value in (("mask", mask), ("force", force), ("acceleration", acceleration)):
        if value is not None and numpy.shape(value)[-1:] != (mechanism.m,):
            raise ValueError(
                f"{name} has shape {numpy.shape(value)}; its last axis has one number for each of the {mechanism.m} "
                f"rows ({', '.join(mechanism.names)})."
            )
    if not mechanism.m:
        return _unconstrained(mechanism, q, v, tau, parameters)
    found = solve_to_tolerance(
        mechanism,
        q,
        v,
        tau,
        method=method,
        tolerance=tolerance,
        iterations=iterations,
        proximal=proximal,
        rank=rank,
        mask=mask,
        force=force,
        acceleration=acceleration,
        time=time,
        parameters=parameters,
    )
    a, forces, residual, count, status, imbalance = found
    asked = Asked.of(q, v, tau, proximal, mask, acceleration, time, parameters)
    return Solution(mechanism, a, forces, residual, whole(count), whole(status), imbalance, asked)


@kernel("(nq),(nv),(nv)->(nv),(m),(m),(),(),(nv)", inputs=ROW_INPUTS)
def solve_to_tolerance(
    mechanism: Mechanism,
    q: Any,
    v: Any,
    tau: Any,
    *,
    method: str = "auto",
    tolerance: float | None = None,
    iterations: int = 100,
    proximal: Proximal = None,
    rank: float | None = None,
    mask: Any = None,
    force: Any = None,
    acceleration: Any = None,
    time: Any = None,
) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats]:
    """Accelerations (nv,), forces λ (m,), residual (m,), iterations, the number of a `Status`, and imbalance (nv,)."""
    solver = solver_for(mechanism, method)
    tolerance = checked_tolerance(_TOLERANCES[computing_in().name] if tolerance is None else tolerance, 1e-10)
    check_iterations(iterations)
    epsilon = proximal_rows(mechanism, proximal, _SHARES[computing_in().name, solver.penalties])
    equations = Equations.of(task_of(mechanism, q, v, tau, epsilon, mask, acceleration, time))
    known = [x for x in (q, v, tau, mask, force, acceleration, time) if x is not None]
    finite = np.isfinite(sum(np.sum(x) for x in (*known, equations.J, equations.gamma, equations.h)))

    a, force, count, ended = _iterated(solver, equations, force, tolerance, iterations)
    exhausted = ~ended & (count >= float(iterations))
    first = _Result.of(equations, a, force, tolerance)
    settled = first.sound & ended if rank is None else np.array(False)
    needed = finite & ~settled & ~exhausted
    result = _by_singular_values(equations, first, needed, tolerance, RANK if rank is None else rank)

    status = np.where(exhausted, float(Status.ITERATIONS), result.status)
    finite = finite & np.isfinite(np.sum(result.a) + np.sum(result.force))
    status = np.where(finite, status, float(Status.NOT_FINITE))
    return result.a, result.force, result.residual, count, status, result.imbalance


class _Result(NamedTuple):
    """Accelerations (nv,) and forces (m,), what is left of the equations, and the number of a `Status`."""

    a: Any
    force: Any
    residual: Any
    imbalance: Any
    status: Any

    @classmethod
    def of(cls, equations: Equations, a: Any, force: Any, tolerance: float) -> _Result:
        """Held against the equations."""
        check = Check(equations, a, force, tolerance)
        found = np.where(check.met, float(Status.CONVERGED), float(Status.LEAST_SQUARES))
        status = np.where(check.sound, found, float(Status.PRECISION))
        return cls(a, force, check.residual, check.imbalance, status)

    @property
    def sound(self) -> Any:
        """Whether it is what it claims to be."""
        return self.status < float(Status.PRECISION) - 0.5


def _iterated(solver: Solver, equations: Equations, force: Any, tolerance: float, iterations: int) -> tuple[Any, ...]:
    """Accelerations (nv,), forces (m,), the number of iterations, and whether they have settled.

    Rows that contradict each other make another round, from zero, in which they ask for what they left: they agree
    then, and forces do not drift. If that had not all its digits, there is something left again, and a last round.
    """
    task, loop = equations.task, _Loop(solver, equations, tolerance, iterations)
    factors, first = solver.factor(task, force)
    kind, none = type(first), np.zeros(task.rows.m)

    def goes_on(carry: Any) -> Any:
        return carry[-1]

    def play(carry: Any) -> Any:
        state, asked, count, rounds, _, _ = carry
        state, again = kind(*state), rounds > 0.5
        r = np.where(again, state.residual, 0.0)
        asked = asked + r
        # What joints feel of keep λ⁻ + ρ k, from the last iteration to the next: another k is another λ⁻.
        start = state._replace(force=np.where(again, 0.0, state.force), before=state.before - r / task.epsilon)
        state, made, settled = loop.run(solver.shifted(factors, asked), start, count)
        left = _share(state.residual, loop.scale) > np.where(again, 64.0 * digits, tolerance)
        # A round is worth beginning if it can be expected to end.
        further = settled & left & (rounds < 1.5) & (count + 2.0 * made <= float(iterations))
        return tuple(state), asked, count + made, rounds + 1.0, settled, further

    digits = 2.0 ** -computing_in().digits
    begins = np.isfinite(np.sum(first.force)) if iterations > 1 else np.array(False)
    start = (tuple(first), none, np.array(1.0), np.array(0.0), np.array(False), begins)
    state, asked, count, _, settled, _ = while_loop(goes_on, play, start, 3)
    return *solver.finish(solver.shifted(factors, asked), kind(*state)), count, settled


@dataclass(frozen=True)
class _Loop:
    """The iterations of a method, and when they end."""

    solver: Solver
    equations: Equations
    tolerance: float
    iterations: int

    @property
    def scale(self) -> Any:
        """What the rows' residuals are compared with (m,)."""
        return self.equations.row_scale()

    @property
    def reached(self) -> float:
        """The change of forces that counts as none: the tolerance, or what penalties leave of the digits."""
        share = _SHARES[computing_in().name, True]
        return max(self.tolerance, 16.0 * 2.0 ** -computing_in().digits / share if self.solver.penalties else 0.0)

    def run(self, factors: Any, state: Any, count: Any) -> tuple[Any, Any, Any]:
        """The last state, the number of iterations made, and whether they have settled."""
        kind = type(state)

        def goes_on(carry: Any) -> Any:
            return carry[2]

        def step(carry: Any) -> Any:
            last, made, _, _, before = carry
            state = self.solver.iterate(factors, kind(*last))
            change = self.change(state, kind(*last).residual)
            rate = change / before
            # What is still to come is a geometric series: a small part of what may be, since light joints feel it more.
            settled = (change <= 1.0) & (100.0 * rate * change <= 1.0 - rate)
            slow = (made > 1.5) & (rate > _SLOW)
            further = ~settled & ~slow & (count + made + 1.0 < float(self.iterations))
            return tuple(state), made + 1.0, further, settled, change

        going = count < float(self.iterations)
        start = (tuple(state), np.array(0.0), going, np.array(False), np.array(1.0 / self.tolerance))
        state, made, _, settled, _ = while_loop(goes_on, step, start, self.iterations)
        return kind(*state), made, settled

    def change(self, state: Any, residual: Any) -> Any:
        """By how much an iteration has changed Jᵀ λ, and the residual unless rows are met, in units of what may be.

        What rows leave is what they ask for next, so it has to be known better than to the tolerance.
        """
        J, met = self.equations.J, self.equations.met(state.residual, self.scale, self.tolerance)
        forces = _share(J.T @ (state.force - state.before), self.equations.force_scale(state.force))
        rows = _share(state.residual - residual, self.scale)
        return np.maximum(forces / self.reached, np.where(met, 0.0, 1000.0 * rows / self.tolerance))


def _by_singular_values(equations: Equations, first: _Result, needed: Any, tolerance: float, rank: float) -> _Result:
    """The first result, or that of singular values where it is needed.

    A loop of at most one iteration: states that do not need it skip it. All that it computes with is carried, since
    what is not would be computed beforehand, for all.
    """
    task = equations.task
    model, places = task.mechanism.model, [(r, k) for r, dofs in enumerate(moving_dofs(task)) for k in dofs]
    entries = np.stack([equations.J[place] for place in places])
    compliance = task.active(numpy.sqrt(task.rows.compliance)) if numpy.any(task.rows.compliance) else None

    def solve(carry: Any) -> Any:
        _, q, h, entries, gamma, _ = carry
        J = np.zeros(equations.J.shape)
        for place, entry in zip(places, entries, strict=True):
            J[place] = entry
        found = by_singular_values(tree_factor(model, q, J), h, gamma, task.epsilon, compliance, rank)
        return np.array(False), q, h, entries, gamma, tuple(_Result.of(equations, *found, tolerance))

    start = (needed, task.motions.q, equations.h, entries, equations.gamma, tuple(first))
    *_, result = while_loop(lambda carry: carry[0], solve, start, 1)
    return _Result(*result)


def _share(x: Any, scale: Any) -> Any:
    """The largest of some numbers, each as a share of its scale; what has no scale is zero."""
    return np.max(np.where(scale > 0.0, np.abs(x) / np.where(scale > 0.0, scale, 1.0), 0.0))


def _unconstrained(mechanism: Mechanism, q: Any, v: Any, tau: Any, parameters: Any) -> Solution:
    """The solution without any rows."""
    a = aba(mechanism, q, v, tau, parameters=parameters)
    batch, empty = a.shape[:-1], numpy.zeros((*a.shape[:-1], 0))
    finite = numpy.isfinite(a).all(-1)
    status = numpy.where(finite, int(Status.CONVERGED), int(Status.NOT_FINITE))
    return Solution(
        mechanism, a, empty, empty, numpy.zeros(batch, int), status, numpy.zeros_like(a), Asked.of(q, v, tau)
    )
