"""Derivatives of contact impulses with respect to free velocities and friction.

A solution has λ = P(λ - σ) with σ = G λ + g. As long as no contact changes its mode (open, sticking, sliding), P has a
derivative D there, and

    (I - D + D G) dλ = -D (dG λ + dg) + ∂P/∂friction · dfriction

This is one linear system for all derivatives. An open contact has dλ = 0, a sticking one dσ = 0, and for a sliding one
λ stays on the boundary of its cone and turns with σ. Where impulses are not unique, their derivative has no component
along the null space.
"""

from __future__ import annotations

from typing import Any

import delassus.numpy as np
from delassus.common.types import Traced
from delassus.compiler.differentiation.derivatives import jacobian
from delassus.compiler.host.kernel import Floats, kernel
from delassus.contact.cones.layout import Layout
from delassus.contact.cones.parameters import RowParameters
from delassus.contact.solvers.solve import NO_PARAMETERS, ROWS
from delassus.contact.systems.scaled import Scaled, shape_of
from delassus.errors import BadArgument
from delassus.linalg.lu import solve_without_pivots


@kernel("(m,m),(m),(m)->(m,m),(m,contacts)", inputs={"rows": ROWS})
def contact_derivatives(
    layout: Layout, G: Traced, g: Traced, impulse: Traced, *, rows: RowParameters = NO_PARAMETERS, law: str = "ncp"
) -> tuple[Floats, Floats]:
    """Derivatives ∂λ/∂g (m, m) [kg] and ∂λ/∂friction (m, contacts) [N·s] of the solution λ of a problem.

    Velocities follow: ∂σ/∂g = I + (G + R) ∂λ/∂g. A change dG has the effect of a change dG λ of g.

    >>> problem = dl.ContactProblem(np.eye(3), [1.0, 0.0, -1.0], friction=0.5)
    >>> impulse = problem.solve(tolerance=1e-12).impulse
    >>> by_g, _ = dl.contact.contact_derivatives(problem.layout, problem.G, problem.g, impulse, friction=[0.5])
    >>> by_g.shape
    (3, 3)
    """
    if layout.contacts and rows.friction is None:
        raise BadArgument(
            f"friction is missing: {layout.contacts} contacts need it; pass friction=.", code="missing-argument"
        )

    def gap(impulse: Any, g: Any, friction: Any) -> Any:
        """P(λ - σ) - λ (m,), in the solvers' order and units."""
        perturbed = rows._replace(friction=friction)
        problem = Scaled.of(layout, law == "ccp", G, g, perturbed)
        scaled = problem.to_scaled(impulse, shape_of(layout, *perturbed.coefficients))
        return problem.smooth(scaled - problem.velocity(scaled), 0.0)[0] - scaled

    problem = Scaled.of(layout, law == "ccp", G, g, rows)
    factors = shape_of(layout, *rows.coefficients)
    scaled = problem.to_scaled(impulse, factors)
    _, jacobians = problem.smooth(scaled - problem.velocity(scaled), 0.0)
    K = problem.newton_matrix(jacobians)
    by_g = jacobian(gap, 1)(impulse, g, rows.friction)
    sides = [by_g[:, k] for k in range(layout.m)]
    if layout.contacts:
        by_friction = jacobian(gap, 2)(impulse, g, rows.friction)
        sides += [by_friction[:, k] for k in range(layout.contacts)]
    solved = [problem.from_scaled(x, factors) for x in solve_without_pivots(K, np.stack(sides, 1)).T]
    return np.stack(solved[: layout.m], 1), np.stack(solved[layout.m :], 1)
