"""What a proximal method is made of, and how its parts make a solve.

A method prepares a task once (`factor`, which makes the first iteration too), iterates from one state to the next, and
finishes with the accelerations of all joints. A state is a tuple of traced arrays that begins with `force`, `before`
and `residual`: what a loop has to carry, and to look at, whether it is unrolled or not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.trace import computing_in
from delassus.constrained.options import check_iterations
from delassus.constrained.proximal import Proximal, proximal_rows
from delassus.constrained.task import Task, task_of
from delassus.constraints.mechanism import Mechanism
from delassus.dynamics.aba import aba


class State(NamedTuple):
    """Forces λ (m,) after an iteration and before it, and the residual J a + γ + C λ (m,) of its accelerations."""

    force: Any
    before: Any
    residual: Any


class PrimalState(NamedTuple):
    """As `State`, and what the accelerations of the iteration follow from (nv,)."""

    force: Any
    before: Any
    residual: Any
    work: Any


@dataclass(frozen=True)
class Method:
    """The parts of a method; `factor` takes a task and the forces to start from, the others factors and a state.

    `shifted` makes rows ask for J a + γ + C λ = r (m,) instead of zero: where they contradict each other and r is their
    residual of least squares, they agree then. The residuals of states that follow have r taken off. `penalties` tells
    whether there is a division by ε, which costs digits where it is small.
    """

    factor: Callable[[Task, Any], tuple[Any, Any]]
    iterate: Callable[[Any, Any], Any]
    shifted: Callable[[Any, Any], Any]
    finish: Callable[[Any, Any], tuple[Any, Any]]
    penalties: bool


_SHARES: Final = {("float64", False): 1e-6, ("float64", True): 1e-6, ("float32", False): 1e-6, ("float32", True): 3e-4}
"""ε as a share of the rows' mobility, by precision, without and with penalties."""


def share_of(method: Method) -> float:
    """The share of the rows' mobility that ε is, where it is not given."""
    return _SHARES[computing_in().name, method.penalties]


def solve(
    method: Method,
    mechanism: Mechanism,
    q: Any,
    v: Any,
    tau: Any,
    iterations: int,
    proximal: Proximal,
    mask: Any,
    force: Any,
    acceleration: Any,
    time: Any,
) -> tuple[Any, Any]:
    """Accelerations (nv,) and forces (m,) after a fixed number of iterations, unrolled."""
    check_iterations(iterations)
    if not mechanism.m:
        return aba.function(mechanism.model, q, v, tau), np.zeros(0)
    epsilon = proximal_rows(mechanism, proximal, share_of(method))
    factors, state = method.factor(task_of(mechanism, q, v, tau, epsilon, mask, acceleration, time), force)
    for _ in range(iterations - 1):
        state = method.iterate(factors, state)
    return method.finish(factors, state)
