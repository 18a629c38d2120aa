"""The table of solvers, and the default for a mechanism."""

from __future__ import annotations

from typing import Final

from delassus.common.checks import one_of
from delassus.constrained.solvers import caba, prox_ltl, prox_ltls, prox_pv
from delassus.constrained.solvers.solver import Solver
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.model.links import links_of

SOLVERS: Final = {solver.name: solver for solver in (caba.SOLVER, prox_ltl.SOLVER, prox_ltls.SOLVER, prox_pv.SOLVER)}

_MANY_ROWS: Final = 12
"""Number of rows above which m² operations per iteration are too many."""

_MANY_LOOP_ROWS: Final = 24
"""As above, if all rows close loops: penalties on light rods lose digits."""


def solver_for(mechanism: Mechanism, name: str) -> Solver:
    """The solver used for a mechanism and a name; "auto" selects the solver expected to be fastest."""
    one_of("method", name, ("auto", *SOLVERS), code="unknown-method")
    return SOLVERS[best_method(mechanism) if name == "auto" else name].on(mechanism)


def best_method(mechanism: Mechanism) -> str:
    """The name of the solver expected to be fastest.

    Solvers on forces iterate in m² operations, so they are fastest for few rows; otherwise the recursion over the tree
    is. Mimic joints have no such recursion. Moving closed loops with light bodies lose most accuracy through penalties,
    and a state that falls back to singular values takes twenty times as long.
    """
    if links_of(mechanism.model).mimics:
        return "prox_ltl"
    loops = all(constraint.relative(mechanism.model) for constraint in mechanism.constraints)
    return "prox_pv" if mechanism.m <= (_MANY_LOOP_ROWS if loops else _MANY_ROWS) else "caba"
