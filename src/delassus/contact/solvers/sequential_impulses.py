"""Sequential impulses: Gauss–Seidel on the velocities of the bodies, without a Delassus matrix.

A contact reads its velocity J_i v, changes its impulse as if all others stood still, and passes the change on at once,
v ← v + M⁻¹ J_iᵀ Δλ_i. The iterates are those of Gauss–Seidel on G = J M⁻¹ Jᵀ, but a contact costs 6 n multiplications
in place of 3 m, and G is not needed: for many contacts on few velocities. What J does not touch is left out when the
kernel is compiled, if its zeros are known then.

Reference: E. Catto, Iterative dynamics with temporal coherence (2005).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import delassus.numpy as np
from delassus.compiler.host.kernel import Floats, kernel
from delassus.constrained.solvers.status import Status
from delassus.contact.cones.layout import Layout
from delassus.contact.solvers.gauss_seidel import cone_step, coulomb_step, row_step
from delassus.contact.solvers.progress import Best, Budget, repeated
from delassus.contact.solvers.scaled import Scaled, shape_of
from delassus.contact.solvers.solve import PROBLEM_INPUTS


@dataclass(frozen=True)
class RowsOnVelocities(Layout):
    """The cones of some rows, and the number n of velocities that they are rows on."""

    n: int = 6


@kernel(
    "(m,n),(n,m),(n)->(n),(m),(m),(),()",
    inputs={**PROBLEM_INPUTS, "start": "(m)", "tolerance": "()", "iterations": "()"},
)
def sequential_impulses(
    layout: RowsOnVelocities,
    J: Any,
    MinvJt: Any,
    v: Any,
    *,
    friction: Any = None,
    torsional: Any = None,
    rolling: Any = None,
    lower: Any = None,
    upper: Any = None,
    compliance: Any = None,
    start: Any = None,
    tolerance: Any = None,
    iterations: Any = None,
    law: str = "ncp",
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Velocities (n,) after the step, impulses (m,) [N·s], σ (m,) [m/s], sweeps, and the number of a `Status`.

    `J` is the Jacobian of the rows, `MinvJt` is M⁻¹ Jᵀ, `v` are the velocities without impulses, `start` impulses to
    start from, and `law` is "ncp" or "ccp".
    """
    own = np.zeros((layout.m, layout.m))  # of G, what contacts and rows have on their own
    for _, rows in layout.places:
        for i in rows:
            for j in rows if rows in layout.friction else (i,):
                own[i, j] = np.sum(J[i] * MinvJt[:, j])
    numbers = (friction, torsional, rolling, lower, upper)
    problem = Scaled.of(layout, law == "ccp", own, J @ v, *numbers, compliance)
    factors, order = shape_of(layout, friction, torsional, rolling), list(layout.order)
    share = factors[order] / problem.root
    J_, B = J[order] * share[:, None], MinvJt[:, order] * share[None, :]
    yields = np.zeros(layout.m) if compliance is None else compliance[order] * share * share
    one = cone_step if problem.convex else coulomb_step

    def velocity(v: Any, impulse: Any, at: Any) -> Any:
        return J_[at] @ v + yields[at] * impulse[at]

    def sweep(impulse: Any, v: Any) -> tuple[Any, Any]:
        impulse = np.array(impulse)
        for k in range(layout.scalars):
            new = row_step(problem, k, problem.G[k, k], impulse[k], velocity(v, impulse, k), 1.0)
            v = v + B[:, k] * (new - impulse[k])
            impulse[k] = new
        for k, at in enumerate(layout.blocks):
            new = one(problem.G[at, at], impulse[at], velocity(v, impulse, at), problem.friction[k], 1.0)
            v = v + B[:, at] @ (new - impulse[at])
            impulse[at] = new
        return impulse, v

    def measured(impulse: Any, v: Any, count: Any) -> Best:
        sigma = velocity(v, impulse, slice(None))
        return Best(impulse, sigma, problem.error(impulse, sigma), count)

    def step(held: Any, best: Best) -> tuple[Any, Best]:
        impulse, v = sweep(*held)
        return (impulse, v), measured(impulse, v, best.count + 1.0)

    budget = Budget(1e-8 if tolerance is None else tolerance, 1000.0 if iterations is None else iterations)
    impulse = np.zeros(layout.m) if start is None else problem.projected(problem.taken(start, factors))
    begun = measured(impulse, v + B @ impulse, np.array(0.0))
    best = repeated(step, (impulse, v + B @ impulse), begun, budget)
    impulse = problem.given(best.impulse, factors)
    moved = v + MinvJt @ impulse
    sigma = J @ moved if compliance is None else J @ moved + compliance * impulse
    finite = np.isfinite(np.sum(impulse)) & np.isfinite(np.sum(moved)) & np.isfinite(np.sum(sigma))
    for x in (*numbers, start):
        finite = finite if x is None else finite & ~np.any(np.isnan(x))
    status = np.where(best.error <= budget.tolerance, float(Status.CONVERGED), float(Status.ITERATIONS))
    return moved, impulse, sigma, best.count, np.where(finite, status, float(Status.NOT_FINITE))
