"""The smallest motion that removes residuals: the δ with J δ = -r that minimizes δᵀ M δ.

    M δ = Jᵀ λ,      J δ + r = 0,      so that      G λ = -r,      G = J M⁻¹ Jᵀ,

This applies to displacements (r a position error), velocities and impacts (r a velocity error, λ an impulse). The
factors are those of `tree_factor`, and proximal iterations allow any rank of J:

    (G + E) λ = -(r - E λ⁻),      J δ + r = -E (λ - λ⁻),

see `dual`. They begin with λ = 0. So no iteration is made if r is small enough, λ is the smallest with its effect, and
at any iteration δᵀ M δ and the energy of v + δ (r = J v) are not larger than at the solution. Each state ends when its
residual is below the tolerance, or no longer changes. In the latter case the rows are infeasible, δ is the
least-squares solution, and λ has drifted: solving again with r minus that residual gives the smallest λ.

O(n d² + m d² + m² d + m³) operations for depth d, and m² per iteration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy
from numpy.typing import NDArray

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import while_loop
from delassus.constrained.delassus.proximal import natural_proximal
from delassus.constrained.elimination.tree_factor import TreeFactor, tree_factor
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.dynamics.mass.factor import forward
from delassus.linalg.ldl import Ldl, ldl

_SHARE: Final = 1e-7
"""ε relative to the mobility of the rows; for redundant rows, λ is accurate to 1e-16 over it."""

_SETTLED: Final = 1e-7
"""A residual counts as constant if its relative change is below this; rounding changes it by 1e-9 per iteration."""


class Response(NamedTuple):
    """δ (nv,), λ (m,), and the residual that no motion removes (m,): zero unless the rows are infeasible."""

    change: Any
    multiplier: Any
    left: Any


@dataclass(frozen=True)
class LeastMotion:
    """Factors at a configuration: those of M with J, and of G + E, E = diag(ε)."""

    tree: TreeFactor
    rows: Ldl
    epsilon: NDArray[numpy.float64]

    @classmethod
    def of(cls, mechanism: Mechanism, q: Any, J: Any, locked: tuple[int, ...] = ()) -> LeastMotion:
        """Factor at a configuration (nq,) with the rows J (m, nv); `locked` velocities do not change."""
        tree = tree_factor(mechanism.model, q, J, locked)
        epsilon = natural_proximal(mechanism, _SHARE)
        return cls(tree, ldl(tree.delassus + np.diag(epsilon)), epsilon)

    def solve(self, r: Any, tolerance: Any, iterations: int) -> Response:
        """The smallest motion for a residual (m,), to a tolerance (m,) in its units."""
        unit = numpy.sqrt(self.epsilon)

        def is_off(residual: Any) -> Any:
            return np.any(np.abs(residual) > tolerance)

        def changes(residual: Any, before: Any) -> Any:
            settled = np.maximum(tolerance, _SETTLED * np.max(np.abs(residual) / unit) * unit)
            return np.any(np.abs(residual - before) > settled)

        def goes_on(carry: Any) -> Any:
            _, residual, before = carry
            return is_off(residual) & changes(residual, before)

        def iterate(carry: Any) -> Any:
            multiplier, residual, _ = carry
            new = -self.rows.solve(r - self.epsilon * multiplier)
            return new, self.epsilon * (multiplier - new), residual

        nothing = np.zeros(len(r))
        start = np.where(np.isfinite(r), nothing, np.nan)  # no iteration would be made, and zero returned
        multiplier, residual, before = while_loop(goes_on, iterate, (start, r, nothing), iterations)
        remainder = np.where(is_off(residual) & ~changes(residual, before), residual, 0.0)
        change = forward(self.tree.above, self.tree.U, self.tree.Y.T @ multiplier)  # M⁻¹ Jᵀ λ
        return Response(change, multiplier, remainder)
