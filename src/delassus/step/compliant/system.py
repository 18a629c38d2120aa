"""The system of a step as matrices, and its solvers by name.

    [W, -Jᵀ; -J, -R] [v⁺; λ] = [c; b]

W is the response matrix, c the net momentum, b the constraint values, and R = C/(h²αβ) of elastic rows. The recursion
over the tree is faster (see `response`); form the system to look at it or to compare solvers.

    ldl                   L D Lᵀ of W, and of the Schur complement J W⁻¹ Jᵀ + R
    cg                    conjugate gradients on the Schur complement, which is not formed
    minres                minimal residuals on the whole indefinite matrix
    gauss_seidel          Gauss–Seidel sweeps over the rows of the Schur complement
    pgs                   projected Gauss–Seidel, for contacts and limits, too
    sequential_impulses   projected Gauss–Seidel on velocities, without the Schur complement

The first four are for bilateral rows. The unknowns may be velocities v⁺, their changes Δv = v⁺ - v, or accelerations
a = Δv/h with forces λ/h; the three forms are equivalent.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.host.inputs import Bundle
from delassus.compiler.host.kernel import kernel
from delassus.constrained.solvers.status import Status
from delassus.contact.cones.kinds import Free, NonNegative
from delassus.contact.solvers.sequential_impulses import RowsOnVelocities, sequential_impulses
from delassus.contact.solvers.solve import solve_contacts
from delassus.errors import BadArgument
from delassus.linalg.krylov import KrylovSolution, conjugate_gradients, minimal_residuals
from delassus.linalg.ldl import ldl
from delassus.step.compliant.solve import solve_bilateral
from delassus.step.compliant.types import ConeInputs, RowAccuracy, RowSolution

BILATERAL: Final = ("ldl", "cg", "minres", "gauss_seidel")
SOLVERS: Final = (*BILATERAL, "pgs", "sequential_impulses")


class System(NamedTuple):
    """W (nv, nv), c (nv,), J (m, nv), R (m,), b (m,), and the off-diagonal part of R (m, m), or None."""

    W: Any
    c: Any
    J: Any
    R: Any
    b: Any
    coupling: Any = None

    def compliance_term(self, impulse: Any) -> Any:
        """R λ (m,)."""
        own = self.R * impulse
        return own if self.coupling is None else own + self.coupling @ impulse

    def driven(self, dofs: tuple[int, ...], velocity: Any) -> System:
        """The system of the other velocities; the driven ones are projected out with their values (nv,)."""
        W, c, J = np.array(self.W), np.array(self.c), np.array(self.J)
        given = np.zeros(len(c))
        for k in dofs:
            given[k] = velocity[k]
        c, b = c - W @ given, self.b + J @ given
        for k in dofs:
            W[k, :], W[:, k], J[:, k] = 0.0, 0.0, 0.0
            W[k, k], c[k] = 1.0, given[k]
        return System(W, c, J, self.R, b, self.coupling)

    def to_form(self, form: str, v: Any, h: Any) -> System:
        """The system with the unknowns v⁺ ("velocity"), Δv = v⁺ - v ("variation"), or a = Δv/h ("acceleration")."""
        if form == "velocity":
            return self
        c, b = self.c - self.W @ v, self.b + self.J @ v
        return self._replace(c=c, b=b) if form == "variation" else self._replace(c=c / h, b=b / h)


class SystemSolution(NamedTuple):
    """x (…, nv), λ (…, m), residuals of rows (…, m), the number of iterations, and a `Status`."""

    x: Any
    impulse: Any
    residual: Any
    iterations: Any
    status: Any


def check_rows(layout: RowsOnVelocities, method: str) -> None:
    """Raise if a method for bilateral rows is chosen for other rows."""
    if method in BILATERAL and not all(isinstance(cone, Free) for cone in layout.cones):
        raise BadArgument(
            f"method is {method!r}, which solves bilateral rows only; the scene has contacts, limits or joint "
            "friction. Pass 'pgs', 'sequential_impulses' or 'auto'.",
            code="not-supported",
        )


def solve_system(layout: RowsOnVelocities, system: System, cones: ConeInputs, method: str) -> SystemSolution:
    """Solve a system by one of `SOLVERS`, inside a kernel."""
    W, c, J, R, b, coupling = system
    tolerance = 1e-8 if cones.tolerance is None else cones.tolerance
    iterations = 1000.0 if cones.iterations is None else cones.iterations
    factors = None if method == "minres" else ldl(W)
    if factors is None:
        return _by_minres(system, tolerance, iterations)
    free, towards = factors.solve(c), factors.solve(J.T)
    g = J @ free + b
    G = J @ towards if coupling is None else J @ towards + coupling
    if method == "cg":
        result = _by_cg(system, factors, g, tolerance, iterations)
    elif method == "ldl":
        result = solve_bilateral(G, g, R, RowAccuracy(np.abs(J) @ np.abs(free)))
    elif method == "sequential_impulses":
        return _by_impulses(layout, system, towards, free, cones)
    else:
        rows = cones.rows._replace(compliance=R)
        impulse, _, left, count, status = solve_contacts(layout, G, g, rows=rows, solver=cones.solver, method="pgs")
        result = RowSolution(impulse, left, count, status)
    return SystemSolution(free + towards @ result.impulse, *result)


def _by_cg(system: System, factors: Any, g: Any, tolerance: Any, iterations: Any) -> RowSolution:
    """Solve (J W⁻¹ Jᵀ + R) λ = -g by conjugate gradients, scaled by its diagonal."""
    J, R = system.J, system.R
    response = np.stack([row @ factors.solve(row) for row in J]) + R
    unit = 1.0 / np.sqrt(np.where(response > 0.0, response, 1.0))

    def apply(x: Any) -> Any:
        x = unit * x
        return unit * (J @ factors.solve(J.T @ x) + system.compliance_term(x))

    result = conjugate_gradients(apply, -unit * g, tolerance, iterations)
    return RowSolution(unit * result.x, -result.left / unit, result.count, _status(result, tolerance))


def _by_minres(system: System, tolerance: Any, iterations: Any) -> SystemSolution:
    """Solve the whole system by minimal residuals, scaled by the diagonals of W and of the approximate Schur
    complement that this diagonal implies."""
    W, c, J, R, b, _ = system
    n, m = len(c), len(b)
    heavy = 1.0 / np.sqrt(np.stack([W[k, k] for k in range(n)]))
    response = np.sum((J * heavy) ** 2, 1) + R
    unit = 1.0 / np.sqrt(np.where(response > 0.0, response, 1.0))

    def apply(x: Any) -> Any:
        v, impulse = heavy * x[:n], unit * x[n:]
        return np.concatenate([heavy * (W @ v - J.T @ impulse), -unit * (J @ v + system.compliance_term(impulse))])

    result = minimal_residuals(apply, np.concatenate([heavy * c, unit * b]), tolerance, iterations)
    v, impulse = heavy * result.x[:n], unit * result.x[n : n + m]
    yielded = system.compliance_term(impulse)
    left = J @ v + yielded + b
    # If momenta are large, the error of rows may be a small fraction of the whole residual.
    reach = np.max(unit * (np.abs(J) @ np.abs(v) + np.abs(yielded) + np.abs(b)))
    status = np.where(np.max(unit * np.abs(left)) <= tolerance * reach, _status(result, tolerance), _unmet(result))
    return SystemSolution(v, impulse, left, result.count, status)


def _by_impulses(
    layout: RowsOnVelocities, system: System, towards: Any, free: Any, cones: ConeInputs
) -> SystemSolution:
    """Solve by sequential impulses on velocities.

    b is the velocity of an additional body, on which impulses act through the off-diagonal part of R.
    """
    m = layout.m
    across = np.zeros((m, m)) if system.coupling is None else system.coupling
    J = np.concatenate([system.J, np.eye(m)], 1)
    wide = RowsOnVelocities(layout.cones, layout.n + m)
    moved, impulse, sigma, count, status = sequential_impulses(
        wide,
        J,
        np.concatenate([towards, across]),
        np.concatenate([free, system.b]),
        rows=cones.rows._replace(compliance=system.R),
        solver=cones.solver,
    )
    return SystemSolution(moved[: layout.n], impulse, _row_residual(layout, sigma), count, status)


def _row_residual(layout: RowsOnVelocities, sigma: Any) -> Any:
    """The residual (m,) of rows: σ of bilateral rows, and min(σ, 0) of unilateral ones."""
    left = np.zeros(layout.m)
    for row in layout.rows(Free):
        left[row] = sigma[row]
    for row in (*layout.rows(NonNegative), *(rows[2] for rows in layout.friction)):
        left[row] = np.minimum(sigma[row], 0.0)
    return left


def _status(result: KrylovSolution, tolerance: Any) -> Any:
    return np.where(result.residual <= tolerance, float(Status.CONVERGED), _unmet(result))


def _unmet(result: KrylovSolution) -> Any:
    """The status of a solve that missed its tolerance."""
    status = np.where(result.stalled, float(Status.LEAST_SQUARES), float(Status.ITERATIONS))
    return np.where(np.isfinite(np.sum(result.x)), status, float(Status.NOT_FINITE))


_CONES: Final = Bundle(
    ConeInputs,
    friction="(contacts)",
    torsional="(torsional)",
    rolling="(rolling)",
    bounds="(intervals)",
    start="(m)",
    tolerance="()",
    iterations="()",
)
_NO_CONES: Final = ConeInputs()


@kernel(
    "(n,n),(n),(m,n),(m),(m)->(n),(m),(m),(),()",
    inputs={"cones": _CONES, "coupling": "(m,m)"},
    result=SystemSolution,
)
def system_kernel(
    layout: RowsOnVelocities,
    W: Any,
    c: Any,
    J: Any,
    R: Any,
    b: Any,
    *,
    cones: ConeInputs = _NO_CONES,
    coupling: Any = None,
    method: str = "ldl",
) -> SystemSolution:
    """The solution of a system [W, -Jᵀ; -J, -R] [x; λ] = [c; b], as a kernel."""
    return solve_system(layout, System(W, c, J, R, b, coupling), cones, method)
