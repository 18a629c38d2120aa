"""Schur complements: eliminates unconstrained rows from a system.

With f the eliminated rows and c the others, S_ff λ_f + S_fc λ_c + g_f = 0 gives λ_f = -(X λ_c + x), and the reduced
system is

    S' = S_cc - S_cf X,    g' = g_c - S_cf x,    X = S_ff⁺ S_fc,    x = S_ff⁺ g_f.

S_ff may have any rank: rows of loops may be redundant or infeasible. The caller chooses how it is solved, by
`least_norm` of `filtered_system` (accurate) or by `ldl_regularized` (cheap).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import delassus.numpy as np
from delassus.linalg.products import mirror


class ReducedSystem(NamedTuple):
    """A system without its first rows.

    Attributes:
        S: (c, c) the Schur complement, symmetric.
        shift: (c,) -S_cf x, the velocity that the eliminated rows cause in the others.
        X: (f, c), and `x` (f,): the impulses of the eliminated rows are -(X λ + x).
    """

    S: Any
    shift: Any
    X: Any
    x: Any

    def impulses(self, others: Any) -> Any:
        """The impulses of the eliminated rows (f,), from those of the others (c,)."""
        return -(self.X @ others) - self.x


def eliminate_rows(S: Any, g: Any, solve: Callable[[Any, Any], Any]) -> ReducedSystem:
    """Eliminate the first rows of S (n, n), as many as g (f,) has; `solve(S_ff, B)` is S_ff⁺ B (f, k)."""
    count = len(g)
    result = solve(S[:count, :count], np.concatenate([S[:count, count:], g[:, None]], 1))
    X, x = result[:, :-1], result[:, -1]
    coupling = S[count:, :count]
    return ReducedSystem(mirror(S[count:, count:] - coupling @ X), -(coupling @ x), X, x)
