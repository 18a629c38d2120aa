"""Solves the system of a step together with its contacts."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from delassus.common.outcomes import worst_of
from delassus.constrained.solvers.status import Status
from delassus.particles.contact.bricks import Touches
from delassus.particles.contact.solve import solve_touches
from delassus.particles.contact.sweeps import sweep_elements_and_contacts
from delassus.particles.motion.state import ParticleState
from delassus.particles.solvers.choice import solve_system
from delassus.particles.solvers.coupled_system import CoupledSystem
from delassus.particles.solvers.direct import refine
from delassus.particles.solvers.system import RowSolution, System
from delassus.step.scheme.blend import Blend
from delassus.step.scheme.row_laws import unilateral

Array = NDArray[np.float64]


class Ways(NamedTuple):
    """Solvers and options of a step, as for `Stepper`."""

    method: str
    contact_method: str
    tolerance: float
    contact_tolerance: float
    iterations: int
    contact_iterations: int


class StepSolution(NamedTuple):
    """A solution, the impulses (c, 3) of contacts, and their error, iterations and status."""

    solved: RowSolution
    contact: Array
    error: float
    iterations: int
    status: Status

    def worst(self, other: Status = Status.CONVERGED) -> Status:
        """The worst status of rows, contacts, and another one."""
        return worst_of(Status, np.array([int(self.solved.status), int(self.status), int(other)]))


class Clock:
    """Computing times of the parts of a step [s]."""

    def __init__(self) -> None:
        self.seconds = {"elements": 0.0, "assembly": 0.0, "solve": 0.0, "contact": 0.0}
        self.last = time.perf_counter()

    def __call__(self, label: str) -> None:
        """Assign the time since the last call to this part."""
        now = time.perf_counter()
        self.seconds[label] += now - self.last
        self.last = now


def solution(
    ways: Ways, system: System, v: Array, impulse: Array, groups: list[Touches], target: Array, friction: float,
    start: Array, cache: dict[str, Any], clock: Clock,
) -> StepSolution:  # fmt: skip
    """Solve a system with contacts, from velocities v (nodes, 3) and impulses (m,).

    The normal velocities of contacts have the targets `wanted` (c,) [m/s], and initial impulses (c, 3) [N·s]; `known`
    caches patterns between steps.
    """
    flat, tied = v.reshape(-1), isinstance(system, CoupledSystem)
    if not system.finite:
        return StepSolution(
            RowSolution(flat, impulse, np.inf, 0, Status.NOT_FINITE), start, np.inf, 0, Status.NOT_FINITE
        )
    if not groups and not tied and ways.method != "cholesky":
        element_solution = solve_system(system, ways.method, flat, impulse, ways.tolerance, ways.iterations)
        clock("solve")
        return _without_contacts(element_solution)
    targets = np.zeros((len(target), 3))
    targets[:, 2] = target
    if groups and not tied and ways.method in ("pgs", "sequential_impulses"):
        element_solution, contact_impulse = sweep_elements_and_contacts(
            system, groups, targets.reshape(-1), friction, start.reshape(-1), flat, impulse, ways.tolerance,
            ways.iterations,
        )  # fmt: skip
        clock("contact")
        return StepSolution(
            element_solution,
            contact_impulse.reshape(-1, 3),
            element_solution.error,
            element_solution.iterations,
            element_solution.status,
        )
    lower = system.lower
    clock("assembly")
    factor = system.complete_factor(system.structure.factor.take(lower))
    free = refine(system, factor, flat, impulse, ways.tolerance, ways.iterations)
    clock("solve")
    if not groups:
        return _without_contacts(free)
    contact_solution = solve_touches(
        system, factor, free, groups, targets.reshape(-1), friction, start.reshape(-1), ways.contact_method,
        ways.contact_tolerance, ways.contact_iterations, cache,
    )  # fmt: skip
    clock("contact")
    return StepSolution(*contact_solution)


def _without_contacts(solved: RowSolution) -> StepSolution:
    return StepSolution(solved, np.zeros((0, 3)), 0.0, 0, Status.CONVERGED)


def gaps(groups: list[Touches]) -> Array:
    """(c,) of all contacts [m]."""
    return np.concatenate([np.zeros(0), *(t.gap for t in groups)])


def keys(groups: list[Touches]) -> NDArray[np.int64]:
    """(c,) the keys of all contacts."""
    return np.concatenate([np.zeros(0, np.int64), *(t.key for t in groups)])


def closing(blend: Blend, groups: list[Touches], v: Array) -> Array:
    """(c,) the target normal velocities of contacts in a step from velocities v (nodes, 3)."""
    if not groups:
        return np.zeros(0)  # without contacts, β may be zero
    rate = np.concatenate([np.zeros(0), *(np.einsum("caj,caj->c", t.rows[:, 2], v[t.nodes]) for t in groups)])
    return np.asarray(unilateral(blend, gaps(groups), rate))


def impulses_before(state: ParticleState, groups: list[Touches]) -> Array:
    """Impulses (c, 3) of the previous step, for contacts that persist."""
    names = keys(groups)
    impulses = np.zeros((len(names), 3))
    if len(state.touched):
        order = np.argsort(state.touched)
        at = np.clip(np.searchsorted(state.touched[order], names), 0, len(order) - 1)
        persists = state.touched[order][at] == names
        impulses[persists] = state.contact[order][at[persists]]
    return impulses
