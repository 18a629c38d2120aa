"""Proximal iterations on the forces, for the methods that form or factor the Delassus matrix G = J M⁻¹ Jᵀ.

With b = J a_free + γ, the residual of the rows without forces, the iteration of `weights` reads

    (G + C + E) λ = -(b - E λ⁻),      J a + γ + C λ = -E (λ - λ⁻):

It needs one factorization, and loses no digits to penalties.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import delassus.numpy as np
from delassus.constrained.rows.weights import Weighted
from delassus.constrained.solvers.solver import State
from delassus.linalg.ldl import ldl


@dataclass(frozen=True)
class Dual:
    """The system of the forces.

    `respond` computes the forces -(G + C + E)⁻¹ (b + δ) (m,) for δ (m,), or for zero; `shift` (m,) is a part of δ that
    is the same in all iterations, or None.
    """

    weighted: Weighted
    respond: Callable[[Any], Any]
    shift: Any = None

    def change(self, before: Any) -> Any:
        """δ (m,) of an iteration from the forces λ⁻."""
        proximal_part = -self.weighted.epsilon * before
        return proximal_part if self.shift is None else proximal_part + self.shift


def factor(weighted: Weighted, G: Any, b: Any) -> Dual:
    """Factor the Delassus matrix (m, m), given by its lower triangle, for b (m,)."""
    factors = ldl(G + np.diag(weighted.damping))
    return Dual(weighted, lambda change: -factors.solve(b if change is None else b + change))


def start(dual: Dual, force: Any = None) -> State:
    """The first iteration."""
    if force is None:
        first = dual.respond(dual.shift)
        return State(first, np.zeros(dual.weighted.problem.rows.m), -dual.weighted.epsilon * first)
    return _state(dual, dual.weighted.problem.first_force(force))


def iterate(dual: Dual, state: State) -> State:
    """One more iteration."""
    return _state(dual, state.force)


def shift_target(dual: Dual, r: Any) -> Dual:
    """The system of rows with the target J a + γ + C λ = r instead of zero."""
    return replace(dual, shift=-r if dual.shift is None else dual.shift - r)


def _state(dual: Dual, before: Any) -> State:
    force = dual.respond(dual.change(before))
    return State(force, before, dual.weighted.epsilon * (before - force))
