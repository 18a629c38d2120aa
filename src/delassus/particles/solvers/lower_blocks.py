"""The lower blocks of A = W + Jᵀ E⁻¹ J in the order in which a factorization reads them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from delassus.particles.algebra.pattern import Pattern
from delassus.particles.solvers.rows import Rows

Array = NDArray[np.float64]


class _ConstantPart(NamedTuple):
    """The contribution of constant rows and W's diagonal to A, for an E."""

    E: Array
    diagonal: Array
    total: Array


class Lower:
    """Sums of the groups' blocks; those of groups with constant rows, such as bends, are cached."""

    def __init__(self, source: NDArray[np.int64], pattern: Pattern, rows: Rows, free: NDArray[np.bool_]) -> None:
        self.source, self.rows, self.free = source, rows, free
        self.sums = {number: pattern.sums[number][source] for number, _, _ in rows.groups}
        order = np.argsort(source)
        self.diagonal = order[np.searchsorted(source[order], pattern.diagonal[free])]
        self.kept: _ConstantPart | None = None

    def blocks(self, diagonal: Array, stiff: Array | None, J: Any, E: Array) -> Array:
        """(source, 9) of a step, from the diagonal blocks of W or all of them, and its rows."""
        cache, yields = self.kept, E[: self.rows.m]
        if cache is None or not (np.array_equal(cache.E, yields) and np.array_equal(cache.diagonal, diagonal)):
            total = self._sum(J, E, steady=True)
            total[self.diagonal] += diagonal[self.free].reshape(-1, 9)
            self.kept = cache = _ConstantPart(yields, diagonal, total)
        result = self._sum(J, E, steady=False)
        result += cache.total
        if stiff is not None:
            result += stiff.reshape(-1, 9)[self.source]
            result[self.diagonal] -= diagonal[self.free].reshape(-1, 9)
        return result

    def _sum(self, J: Any, E: Array, steady: bool) -> Array:
        """(source, 9) of Jᵀ E⁻¹ J of the groups with constant rows, or of the others."""
        total: Any = None
        for number, square in self.rows.squares(J, E, (steady,)):
            added = self.sums[number] @ square.reshape(-1, 9)
            total = added if total is None else np.add(total, added, out=total)
        return np.zeros((len(self.source), 9)) if total is None else np.asarray(total)
