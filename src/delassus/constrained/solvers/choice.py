"""The solvers that there are, and which of them suits a mechanism."""

from __future__ import annotations

from typing import Final

from delassus.constrained.rows.options import check_method
from delassus.constrained.solvers import caba, prox_ltl, prox_ltls, prox_pv
from delassus.constrained.solvers.solver import Solver
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.model.links import links_of

SOLVERS: Final = {solver.name: solver for solver in (caba.SOLVER, prox_ltl.SOLVER, prox_ltls.SOLVER, prox_pv.SOLVER)}

_MANY_ROWS: Final = 12
"""Beyond so many rows, m² operations an iteration are too many."""


def solver_for(mechanism: Mechanism, name: str) -> Solver:
    """The solver of a name that does the work on a mechanism; "auto" is the one that is expected to be the fastest."""
    check_method(name, ("auto", *SOLVERS))
    return SOLVERS[best_method(mechanism) if name == "auto" else name].on(mechanism)


def best_method(mechanism: Mechanism) -> str:
    """The name of the solver that is expected to be the fastest.

    Solvers on the forces iterate in m² operations, so they win while rows are few; beyond, the recursion over the tree
    does. Where joints share coordinates there is no such recursion.
    """
    if links_of(mechanism.model).mimics:
        return "prox_ltl"
    return "prox_pv" if mechanism.m <= _MANY_ROWS else "caba"
