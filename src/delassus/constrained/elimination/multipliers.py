"""Elimination of multipliers at the links where loops close.

When the rows R of a link have met there, they are, with l the part that does not depend on forces and a the
acceleration,

    K_R a + l_R + T λ_R + L_RU λ_U = 0,      T = L_RR + C + E,

U are the other rows that pass the link. Nothing further out depends on λ_R, so it is solved for and substituted: the
link gets the spring K_Rᵀ T⁻¹ K_R, and U the same rows less L_UR T⁻¹ times those of R.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import delassus.numpy as np
from delassus.dynamics.tree.poses import Blocks, Pair
from delassus.dynamics.tree.sums import total
from delassus.linalg.ldl import Ldl, ldl


@dataclass(frozen=True)
class MultiplierElimination:
    """Rows R, the factors of T, K_R and T⁻¹ K_R (r, 6) unless they belong to the world, and T⁻¹ L_RU (r, u) of others
    U.
    """

    rows: list[int]
    others: list[int]
    T: Ldl
    K: Any
    TK: Any
    TL: Any

    def spring(self, A: Blocks) -> Blocks:
        """The link's inertia plus the spring of the rows."""
        K, TK = self.K, self.TK
        return total(A, (K[:, :3].T @ TK[:, :3], K[:, :3].T @ TK[:, 3:], K[:, 3:].T @ TK[:, 3:]))

    def press(self, p: Pair, l: Any) -> tuple[Pair, Any]:
        """The link's bias force, and l (m,) of the remaining rows, with the forces of the rows."""
        row_bias = l[self.rows]
        p = (p[0] + self.TK[:, :3].T @ row_bias, p[1] + self.TK[:, 3:].T @ row_bias)
        if self.others:
            l = np.array(l)
            l[self.others] = l[self.others] - self.TL.T @ row_bias
        return p, l

    def force(self, l: Any, a: Pair | None, force: Any) -> Any:
        """λ_R, from the link's acceleration (None for the world) and the forces (m,) of the other rows."""
        result = -self.T.solve(l[self.rows])
        if a is not None:
            result = result - self.TK[:, :3] @ a[0] - self.TK[:, 3:] @ a[1]
        return result - self.TL @ force[self.others] if self.others else result


def eliminate(rows: list[int], K: dict[int, Any] | None, L: Any) -> tuple[MultiplierElimination, dict[int, Any]]:
    """Eliminate `rows` of a link from K (by row); returns K of the others and updates the lower triangle of L (m, m).

    Without K, the rows are all that remain in the world, which does not move.
    """
    T = ldl(_part(L, rows, rows))
    if K is None:
        return MultiplierElimination(rows, [], T, None, None, None), {}
    remaining = [r for r in sorted(K) if r not in rows]
    K_R = np.stack([K[r] for r in rows])
    TK = T.solve(K_R)
    if not remaining:
        return MultiplierElimination(rows, remaining, T, K_R, TK, None), {}
    L_RU = _part(L, rows, remaining)
    TL = T.solve(L_RU)
    for i, r in enumerate(remaining):
        for j, t in enumerate(remaining[: i + 1]):
            L[r, t] = L[r, t] - L_RU[:, i] @ TL[:, j]
    reduced = {r: K[r] - L_RU[:, i] @ TK for i, r in enumerate(remaining)}
    return MultiplierElimination(rows, remaining, T, K_R, TK, TL), reduced


def _part(L: Any, rows: list[int], columns: list[int]) -> Any:
    """A part of a symmetric matrix stored as its lower triangle."""
    return np.stack([np.stack([L[max(r, t), min(r, t)] for t in columns]) for r in rows])
