"""The rows through which links are coupled, and the data that sweeps need after elimination (see `couplings`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import delassus.numpy as np
from delassus.constraints.mechanism.rows import Rows
from delassus.dynamics.tree.poses import Pair
from delassus.model.links import Links


@dataclass(frozen=True, eq=False)
class Port:
    """Rows K (r, 6) by which a link is coupled; `number` stays the same when the port is passed to the parent."""

    number: int
    link: int
    K: Any

    def felt(self, a: Pair) -> Any:
        """K a (r,)."""
        return self.K[:, :3] @ a[0] + self.K[:, 3:] @ a[1]

    def exert(self, x: Any) -> Pair:
        """Kᵀ x: force and moment."""
        return self.K[:, :3].T @ x, self.K[:, 3:].T @ x


class Part(NamedTuple):
    """Coefficients of a tie: K (1, 6) of a link's acceleration, and F (n,) of its joint's, or None."""

    K: Any
    F: Any = None


@dataclass(frozen=True, eq=False)
class PartialTie:
    """A tie after the elimination of a link with a part in it: its row, V = K S + F (1, n), and K - V Wᵀ (1, 6).

    `port` is the port that replaced it; None if it is still a tie, or if the link was its last.
    """

    row: int
    V: Any
    K: Any
    port: Port | None


@dataclass(frozen=True, eq=False)
class Bonds:
    """Couplings of a link at its elimination: ports, and ties by row, with T (r, n); and its own ties."""

    felt: tuple[tuple[Port | int, Any], ...] = ()
    ties: tuple[PartialTie, ...] = ()


def ties_of(tree: Links, rows: Rows) -> dict[int, dict[int, Part]]:
    """For each row that ties joints, its parts by link."""
    ties: dict[int, dict[int, Part]] = {row: {} for row in rows.tied}
    for link, link_rows in rows.links.items():
        for j, row in enumerate(link_rows.rows):
            if row in ties:
                ties[row][link] = Part(link_rows.K[[j]])
    for dof in (dof for dof in rows.dofs if dof.row in ties):
        part = ties[dof.row].get(dof.link, Part(np.zeros((1, 6))))
        F = np.zeros(tree.links[dof.link].motion.nv) if part.F is None else part.F
        F[dof.k] = F[dof.k] + dof.factor
        ties[dof.row][dof.link] = Part(part.K, F)
    return ties
