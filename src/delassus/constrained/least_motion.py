"""The least motion that takes residuals off: of all δ with J δ = -r the one with the smallest δᵀ M δ.

    M δ = Jᵀ λ,      J δ + r = 0,      so that      G λ = -r,      G = J M⁻¹ Jᵀ,

for displacements (r an error of position), velocities and impacts (r one of velocity, λ an impulse). The factors are
those of `tree_factor`, and proximal iterations make it solvable whatever the rank of J:

    (G + ε) λ = -(r - ε λ⁻),      J δ + r = -ε (λ - λ⁻),

`dual` for these. They begin with λ = 0. So there are none if r is small enough as it is, λ is the smallest that has its
effect, and whenever they end, δᵀ M δ and the energy of v + δ (r = J v) are no larger than they should be. Each state
ends by itself: when the residual is below the tolerance, or no longer changes by as much. Where rows contradict each
other, this is the residual of least squares, and every iteration has added it over -ε to λ, which is taken off.

O(n d² + m d² + m² d + m³) operations for depth d, and m² an iteration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.control import while_loop
from delassus.constrained.tree_factor import TreeFactor, tree_factor
from delassus.dynamics.factor import forward
from delassus.dynamics.ldl import Ldl, ldl
from delassus.model.model import Model

_SHARE: Final = 1e-7
"""ε as a share of the largest diagonal element of G; where rows repeat each other, λ is known to 1e-16 over it."""


class Motion(NamedTuple):
    """δ (nv, k) and λ (m, k), for each of k columns of residuals."""

    change: Any
    multiplier: Any


@dataclass(frozen=True)
class LeastMotion:
    """The factors in a configuration: those of M with J, and of G + ε."""

    tree: TreeFactor
    rows: Ldl
    epsilon: Any

    @classmethod
    def of(cls, model: Model, q: Any, J: Any) -> LeastMotion:
        """From a configuration (nq,) and the rows J (m, nv)."""
        tree = tree_factor(model, q, J)
        largest = np.max(np.diagonal(tree.delassus))
        epsilon = np.where(largest > 0.0, _SHARE * largest, 1.0)  # where no row moves anything, any ε will do
        return cls(tree, ldl(tree.delassus + epsilon * np.eye(len(J))), epsilon)

    def solve(self, residuals: Any, tolerance: Any, iterations: int) -> Motion:
        """The least motions for residuals (m, k), each column to a tolerance in the unit of its residual."""

        def is_off(residual: Any) -> Any:
            return np.max(np.abs(residual), 0) > tolerance

        def changes(residual: Any, before: Any) -> Any:
            return np.max(np.abs(residual - before), 0) > tolerance

        def goes_on(carry: Any) -> Any:
            _, residual, before, _ = carry
            return np.any(is_off(residual) & changes(residual, before))

        def iterate(carry: Any) -> Any:
            multiplier, residual, _, count = carry
            new = -self.rows.solve(residuals - self.epsilon * multiplier)
            return new, self.epsilon * (multiplier - new), residual, count + 1.0

        none = np.zeros(residuals.shape)
        multiplier, residual, before, count = while_loop(
            goes_on, iterate, (none, residuals, none, np.array(0.0)), iterations
        )
        drift = np.where(is_off(residual) & ~changes(residual, before), count / self.epsilon, 0.0) * residual
        columns = [self._moved(multiplier[:, k]) for k in range(multiplier.shape[1])]
        return Motion(np.stack(columns, 1), multiplier + drift)

    def _moved(self, multiplier: Any) -> Any:
        """M⁻¹ Jᵀ λ (nv,)."""
        return forward(self.tree.above, self.tree.U, self.tree.Y.T @ multiplier)
