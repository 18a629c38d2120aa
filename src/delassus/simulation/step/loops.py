"""Rows of closed loops taken out of a step's contact problem: what their impulses must be, whatever the others are.

With f the free rows and c all others, λ_f = -(G_ff + ε)⁻¹ (G_fc λ_c + g_f), so σ_c = S λ_c + s with the Schur
complement S = G_cc - G_cf (G_ff + ε)⁻¹ G_fc. It is made once in a step, and iterations have fewer rows. ε is a share of
rows' own responses that is far below the tolerance: redundant rows share their impulses, and loops stay as open as
ε λ_f, until they are projected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import delassus.numpy as np
from delassus.contact.cones.kinds import Free
from delassus.contact.cones.layout import Layout
from delassus.contact.solvers.elimination import solve_without_pivots
from delassus.contact.solvers.scaled import Scaled

_EPSILON: Final = 1e-11


def without_loops(problem: Scaled) -> tuple[Scaled, Callable[[Any], Any]]:
    """The problem of the other rows, and what makes impulses (m,) of all rows of theirs."""
    free = len(problem.layout.rows(Free))
    if not free:
        return problem, lambda impulse: impulse
    G, g = problem.G, problem.g
    asked = np.concatenate([G[:free, free:], g[:free, None]], 1)
    X = solve_without_pivots(G[:free, :free] + _EPSILON * np.eye(free), asked)
    layout = Layout(tuple(cone for cone in problem.layout.cones if not isinstance(cone, Free)))
    rest = problem._replace(
        layout=layout,
        G=G[free:, free:] - G[free:, :free] @ X[:, :-1],
        g=g[free:] - G[free:, :free] @ X[:, -1],
        root=problem.root[free:],
        limit=problem.limit[free:],
    )

    def whole(impulse: Any) -> Any:
        return np.concatenate([-(X[:, :-1] @ impulse) - X[:, -1], impulse])

    return rest, whole
