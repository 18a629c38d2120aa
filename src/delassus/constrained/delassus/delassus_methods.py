"""Algorithms for the Delassus matrix J M⁻¹ Jᵀ, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from delassus.common.checks import one_of
from delassus.constrained.delassus.efpa import efpa
from delassus.constrained.delassus.pv_osim import pv_osim
from delassus.constrained.elimination.articulated_tree import ArticulatedTree
from delassus.constrained.elimination.elimination import free_tree
from delassus.constrained.elimination.row_forces import Piece, pieces_of
from delassus.constrained.elimination.tree_factor import tree_factor
from delassus.constrained.rows.jacobian import constraint_jacobian
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.dynamics.tree.check import check_inertias
from delassus.model.links import links_of

TREE_METHODS: Final[dict[str, Callable[[ArticulatedTree, list[Piece], int], Any]]] = {
    "efpa": efpa,
    "pv_osimr": pv_osim,
}
"""Algorithms by recursion over the tree."""


def lower_delassus(mechanism: Mechanism, q: Any, method: str, time: Any = None) -> Any:
    """The lower triangle of J M⁻¹ Jᵀ (m, m); entries above it are undefined."""
    one_of("method", method, ("auto", "ltl", *TREE_METHODS), code="unknown-method")
    name = best_delassus(mechanism) if method == "auto" else method
    if name == "ltl":
        check_inertias(mechanism.model)
        return tree_factor(mechanism.model, q, constraint_jacobian(mechanism, q, time=time)).delassus
    body, rows = free_tree(mechanism, q, time=time)
    return TREE_METHODS[name](body, pieces_of(body.tree, rows), rows.m)


def best_delassus(mechanism: Mechanism) -> str:
    """The fastest method, as measured on arms, quadrupeds and humanoids; only "ltl" supports mimic joints."""
    return "ltl" if links_of(mechanism.model).mimics else "pv_osimr"
