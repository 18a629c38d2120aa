"""Proximal iterations on the forces, for the methods that form the Delassus matrix G = J M⁻¹ Jᵀ.

With the accelerations b = J a_free + γ that the rows have without forces, the iteration of `task` reads

    (G + C + E) λ = -(b - E λ⁻),      J a + γ + C λ = -E (λ - λ⁻):

one factorisation, m² operations an iteration, and no digits lost to penalties.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import delassus.numpy as np
from delassus.constrained.method import State
from delassus.constrained.task import Task
from delassus.dynamics.ldl import Ldl, ldl


@dataclass(frozen=True)
class Dual:
    """The factors of G + C + E, and b (m,)."""

    task: Task
    factors: Ldl
    b: Any


def factor(task: Task, G: Any, b: Any) -> Dual:
    """From the Delassus matrix (m, m), of which the lower triangle is read."""
    return Dual(task, ldl(G + np.diag(task.rows.compliance + task.epsilon)), b)


def start(dual: Dual, force: Any = None) -> State:
    """The first iteration."""
    return _state(dual, dual.task.first_force(force))


def iterate(dual: Dual, state: State) -> State:
    """One more iteration."""
    return _state(dual, state.force)


def consistent(dual: Dual, state: State) -> Dual:
    """The system of rows that contradict each other, made to agree: J a + γ = r, r the residual of a state.

    Forces of contradictory rows drift, and grow until their digits are lost in it. Once r is a residual of least
    squares (Jᵀ r = 0), the rows of this system agree, have the same accelerations, and iterations from zero forces,
    `start` and `iterate`, lead to the smallest ones. Their residuals have r taken off. Doing it again takes away what
    r lacks in digits, where forces have drifted far.
    """
    return Dual(dual.task, dual.factors, dual.b - state.residual)


def _state(dual: Dual, before: Any) -> State:
    epsilon = dual.task.epsilon
    force = -dual.factors.solve(dual.b - epsilon * before)
    return State(force, before, epsilon * (before - force))
