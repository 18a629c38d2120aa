"""The blocks of A = W + Jᵀ E⁻¹ J that a factor reads, in its order: of mirrored pairs, one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from delassus.particles.solvers.assembly import Assembly
    from delassus.particles.solvers.system import System

Array = NDArray[np.float64]


class _Kept(NamedTuple):
    """What rows that never change and W's diagonal add to A, for an E."""

    E: Array
    diagonal: Array
    total: Array


class Lower:
    """Sums of the groups' blocks; what groups add whose rows never change, such as bends, is kept."""

    def __init__(self, assembly: Assembly) -> None:
        self.assembly, self.source = assembly, assembly.symbolic.source
        self.sums = {number: assembly.pattern.sums[number][self.source] for number, _, _ in assembly.rows.groups}
        order = np.argsort(self.source)
        self.diagonal = order[np.searchsorted(self.source[order], assembly.pattern.diagonal[assembly.free])]
        self.kept: _Kept | None = None

    def blocks(self, system: System) -> Array:
        """(source, 9) of a step."""
        kept, own, E = self.kept, system.diagonal, system.E[: self.assembly.rows.m]
        if kept is None or not (np.array_equal(kept.E, E) and np.array_equal(kept.diagonal, own)):
            total = self._sum(system, steady=True)
            total[self.diagonal] += own[self.assembly.free].reshape(-1, 9)
            self.kept = kept = _Kept(E, own, total)
        found = self._sum(system, steady=False)
        found += kept.total
        if system.stiff is not None:
            found += system.stiff.reshape(-1, 9)[self.source]
            found[self.diagonal] -= own[self.assembly.free].reshape(-1, 9)
        return found

    def _sum(self, system: System, steady: bool) -> Array:
        """(source, 9) of Jᵀ E⁻¹ J of the groups whose rows never change, or of the others."""
        total: Any = None
        for number, square in self.assembly.rows.squares(system.J, system.E, (steady,)):
            added = self.sums[number] @ square.reshape(-1, 9)
            total = added if total is None else np.add(total, added, out=total)
        return np.zeros((len(self.source), 9)) if total is None else np.asarray(total)
