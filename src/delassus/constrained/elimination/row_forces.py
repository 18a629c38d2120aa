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
    for i, own in rows.links.items():
        here = x[list(own.rows)]
        applied[i] = (own.K[:, :3].T @ here, own.K[:, 3:].T @ here)
    driven: dict[int, Any] = {}
    for dof in rows.dofs:
        own = driven.setdefault(dof.link, np.zeros(tree.links[dof.link].motion.nv))
        own[dof.k] = own[dof.k] + dof.factor * x[dof.row]
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
        Piece(row, link, (own.K[j, :3], own.K[j, 3:]))
        for link, own in rows.links.items()
        for j, row in enumerate(own.rows)
    ]
    for dof in rows.dofs:
        driven = np.zeros(tree.links[dof.link].motion.nv)
        driven[dof.k] = dof.factor
        pieces.append(Piece(dof.row, dof.link, ZERO, driven))
    return pieces
