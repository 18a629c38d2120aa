"""The kernel of sequential impulses: Gauss–Seidel on the velocities of the bodies, see `systems.velocity_space`."""

from __future__ import annotations

from dataclasses import dataclass

import delassus.numpy as np
from delassus.common.types import Traced
from delassus.compiler.host.kernel import Floats, kernel
from delassus.constrained.solvers.status import Status
from delassus.contact.cones.layout import Layout
from delassus.contact.cones.parameters import RowParameters
from delassus.contact.solvers.gauss_seidel import gauss_seidel
from delassus.contact.solvers.options import SolverInputs
from delassus.contact.solvers.progress import Best, Budget
from delassus.contact.solvers.solve import NO_INPUTS, NO_PARAMETERS, ROWS, SOLVER
from delassus.contact.systems.scaled import shape_of
from delassus.contact.systems.velocity_space import VelocitySpaceProblem


@dataclass(frozen=True)
class RowsOnVelocities(Layout):
    """The cones of rows, and the number n of velocities.

    >>> dl.contact.RowsOnVelocities((dl.cones.Friction(),), 6).n
    6
    """

    n: int = 6


@kernel(
    "(m,n),(n,m),(n)->(n),(m),(m),(),()",
    inputs={"rows": ROWS, "solver": SOLVER},
)
def sequential_impulses(
    layout: RowsOnVelocities,
    J: Traced,
    MinvJt: Traced,
    v: Traced,
    *,
    rows: RowParameters = NO_PARAMETERS,
    solver: SolverInputs = NO_INPUTS,
    law: str = "ncp",
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Velocities (n,) after the step, impulses (m,) [N·s], σ (m,) [m/s], sweeps, and a value of `Status`.

    `J` is the Jacobian of the rows, `MinvJt` is M⁻¹ Jᵀ, `v` are the velocities without impulses, and `law` is "ncp" or
    "ccp". Fields of `rows` and `solver` are also keywords. Choose it for many contacts on few velocities: a sweep costs
    O(n) for each contact, and the Delassus matrix is not formed.

    >>> layout = dl.contact.RowsOnVelocities((dl.cones.Friction(),), 3)
    >>> one = np.eye(3)
    >>> dl.contact.sequential_impulses(layout, one, one, np.array([0.0, 0.0, -1.0]), friction=[0.5])[1].round(6)
    array([0., 0., 1.])
    """
    start, tolerance, iterations = solver
    system = VelocitySpaceProblem.of(layout, law == "ccp", J, MinvJt, v, rows)
    problem, factors = system.rows, shape_of(layout, *rows.coefficients)
    budget = Budget(1e-8 if tolerance is None else tolerance, 1000.0 if iterations is None else iterations)
    impulse = np.zeros(layout.m) if start is None else problem.project(problem.to_scaled(start, factors))
    best = gauss_seidel(system, Best.of(system, impulse), budget)
    impulse = problem.from_scaled(best.impulse, factors)
    velocity = v + MinvJt @ impulse
    sigma = J @ velocity if rows.compliance is None else J @ velocity + rows.compliance * impulse
    finite = np.isfinite(np.sum(impulse)) & np.isfinite(np.sum(velocity)) & np.isfinite(np.sum(sigma))
    for x in (*rows.rigid, start):
        finite = finite if x is None else finite & ~np.any(np.isnan(x))
    status = np.where(best.error <= budget.tolerance, float(Status.CONVERGED), float(Status.ITERATIONS))
    return velocity, impulse, sigma, best.count, np.where(finite, status, float(Status.NOT_FINITE))
