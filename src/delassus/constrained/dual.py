"""Proximal iterations on the forces, for the methods that form the Delassus matrix G = J M⁻¹ Jᵀ.

With the accelerations b = J a_free + γ that the rows have without forces, the iteration of `task` reads

    (G + C + E) λ = -(b - E λ⁻),      J a + γ = -E (λ - λ⁻) - C λ:

one factorisation, m² operations an iteration, and no digits lost to penalties.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import delassus.numpy as np
from delassus.constrained.task import Task
from delassus.dynamics.ldl import Ldl, ldl


@dataclass(frozen=True)
class Dual:
    """The factors of G + C + E, and b (m,)."""

    task: Task
    factors: Ldl
    b: Any


class State(NamedTuple):
    """Forces λ (m,) after an iteration, and before it."""

    force: Any
    before: Any


def factor(task: Task, G: Any, b: Any) -> Dual:
    """From the Delassus matrix (m, m), of which the lower triangle is read."""
    return Dual(task, ldl(G + np.diag(task.rows.compliance + task.epsilon)), b)


def start(dual: Dual, force: Any = None) -> State:
    """The first iteration."""
    first = dual.task.first_force(force)
    return State(_solve(dual, first), first)


def iterate(dual: Dual, state: State) -> State:
    """One more iteration."""
    return State(_solve(dual, state.force), state.force)


def residual(dual: Dual, state: State) -> Any:
    """J a + γ (m,) of the iteration."""
    task = dual.task
    return -(task.epsilon * (state.force - state.before) + task.rows.compliance * state.force)


def _solve(dual: Dual, before: Any) -> Any:
    return -dual.factors.solve(dual.b - dual.task.epsilon * before)
