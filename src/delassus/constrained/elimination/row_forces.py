"""Forces of rows on the links and joints on which the rows act."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import delassus.numpy as np
from delassus.constraints.mechanism.rows import Rows
from delassus.dynamics.tree.poses import Pair
from delassus.dynamics.tree.sweep import ZERO
from delassus.model.links import Links


def row_forces(tree: Links, rows: Rows, x: Any) -> tuple[dict[int, Pair], dict[int, Any]]:
    """Kᵀ x on the links, and forces at their joints (n,), of forces x (m,) by row."""
    applied: dict[int, Pair] = {}
    for i, link_rows in rows.links.items():
        forces = x[list(link_rows.rows)]
        applied[i] = (link_rows.K[:, :3].T @ forces, link_rows.K[:, 3:].T @ forces)
    driven: dict[int, Any] = {}
    for dof in rows.dofs:
        link_rows = driven.setdefault(dof.link, np.zeros(tree.links[dof.link].motion.nv))
        link_rows[dof.k] = link_rows[dof.k] + dof.factor * x[dof.row]
    return applied, driven


@dataclass(frozen=True)
class Piece:
    """A part of a row: its unit force as it acts on a link (f, n), or on the link's joint, `driven` (n,)."""

    row: int
    link: int
    force: Pair
    driven: Any = None


def pieces_of(tree: Links, rows: Rows) -> list[Piece]:
    """Every link, and every velocity, that a row acts on."""
    pieces = [
        Piece(row, link, (link_rows.K[j, :3], link_rows.K[j, 3:]))
        for link, link_rows in rows.links.items()
        for j, row in enumerate(link_rows.rows)
    ]
    for dof in rows.dofs:
        driven = np.zeros(tree.links[dof.link].motion.nv)
        driven[dof.k] = dof.factor
        pieces.append(Piece(dof.row, dof.link, ZERO, driven))
    return pieces
