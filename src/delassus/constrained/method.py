"""What a proximal method is made of, and how its parts make a solve.

A method prepares a task once (`factor`, which makes the first iteration too), iterates from one state to the next, and
finishes with the accelerations of all joints. A state is a tuple of traced arrays that begins with `force`, `before`
and `residual`: what a loop has to carry, and to look at, whether it is unrolled or not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import delassus.numpy as np
from delassus.constrained.options import check_iterations
from delassus.constrained.task import Proximal, Task, task_of
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

    Forces that drift lose digits, and with them the accelerations of the methods that compute these from the forces.
    They have `agreed`: the factors of rows that contradict each other, made to agree (see `dual`).
    """

    factor: Callable[[Task, Any], tuple[Any, Any]]
    iterate: Callable[[Any, Any], Any]
    finish: Callable[[Any, Any], tuple[Any, Any]]
    agreed: Callable[[Any, Any], Any] | None = None


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
    factors, state = method.factor(task_of(mechanism, q, v, tau, proximal, mask, acceleration, time), force)
    for _ in range(iterations - 1):
        state = method.iterate(factors, state)
    return method.finish(factors, state)
