"""`compliant_system`: the system of a step as matrices, for those who look at it, and solvers for it by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import TOLERANCES, iteration_count, number_in_range, one_of
from delassus.constrained.solvers.status import Status
from delassus.contact.solvers.sequential_impulses import RowsOnVelocities
from delassus.step.compliant.asked import batch_of, prepared
from delassus.step.compliant.inputs import structured_step
from delassus.step.compliant.kernel import system_of_step
from delassus.step.compliant.system import SOLVERS, SystemSolution, check_rows, system_kernel
from delassus.step.scene import Scene

Array = NDArray[np.float64]

FORMS: Final = ("velocity", "variation", "acceleration")
PHASES: Final = ("dynamics", "correction")


@dataclass(frozen=True, eq=False)
class CompliantSystem:
    """[W, -Jᵀ; -J, -R] [x; λ] = [c; b] of a step, of one state or a batch.

    Attributes:
        scene: The robot, its contacts and its other rows.
        time_step: (…) h [s].
        form: "velocity", x = v⁺; "variation", x = v⁺ - v; "acceleration", x = (v⁺ - v)/h, and λ are forces. Velocities
            of free and planar joints are in the axes of the start of the step.
        W: (…, nv, nv) the response matrix.
        c: (…, nv) the net momentum.
        J: (…, m, nv) the rows.
        R: (…, m) C/(h²αβ) of elastic rows [1/kg], zero of the others: the diagonal, where C is a matrix.
        b: (…, m) the constraint values: J x + R λ + b = 0, or complementary to λ.
        rubbing: Coefficients of friction by name.
        coupling: (…, m, m) what R has besides its diagonal, None if no compliance is a matrix.
    """

    scene: Scene
    time_step: Array
    form: str
    W: Array
    c: Array
    J: Array
    R: Array
    b: Array
    rubbing: dict[str, Any]
    coupling: Array | None = None

    def solve(self, method: str = "ldl", *, tolerance: float = 1e-8, iterations: int = 1000) -> SystemSolution:
        """x, λ, what rows leave, iterations and status, by "ldl", "cg", "minres", "gauss_seidel", "pgs" or
        "sequential_impulses".
        """
        one_of("method", method, SOLVERS, code="unknown-method")
        iteration_count("iterations", iterations)
        scene = self.scene
        layout = RowsOnVelocities(scene.layout.cones, scene.nv)
        check_rows(layout, method)
        if not scene.m:
            return self._solve_without_rows()
        numbers: dict[str, Any] = {
            "tolerance": number_in_range("tolerance", tolerance, TOLERANCES),
            "iterations": float(iterations),
        }
        if scene.friction_bounds:
            bounds = np.array(scene.friction_bounds)
            h = np.ones(()) if self.form == "acceleration" else self.time_step
            numbers["bounds"] = np.asarray(h)[..., None] * bounds
        numbers |= self.rubbing
        if self.coupling is not None:
            numbers["coupling"] = self.coupling
        return system_kernel(layout, self.W, self.c, self.J, self.R, self.b, **numbers, method=method)

    def _solve_without_rows(self) -> SystemSolution:
        """x of W x = c."""
        x = np.linalg.solve(self.W, self.c[..., None])[..., 0]
        finite = np.isfinite(x).all(-1)
        none, status = np.zeros((*finite.shape, 0)), np.where(finite, Status.CONVERGED, Status.NOT_FINITE)
        return SystemSolution(x, none, none, np.zeros(finite.shape), status)


def compliant_system(
    mechanism: Any,
    q: Any,
    v: Any,
    tau: Any,
    *,
    time_step: Any,
    form: str = "velocity",
    phase: str = "dynamics",
    stabilization: str = "none",
    **options: Any,
) -> CompliantSystem:
    """The system of a step of `compliant_step`, formed and not solved, of one state or a batch.

    Args:
        mechanism: The robot with its constraints, or a model.
        q: Configurations (…, nq) [rad, m].
        v: Velocities (…, nv) [rad/s, m/s].
        tau: Generalised forces (…, nv) [N·m, N].
        time_step: (…) h [s].
        form: Of which unknowns: "velocity", "variation" or "acceleration".
        phase: "dynamics", or "correction", whose x is a motion that takes errors off, for positions alone.
        stabilization: As for `compliant_step`: with "pre" or "post", errors are the correction phase's business.
        **options: As for `compliant_step`.
    """
    for what, value, known in (("form", form, FORMS), ("phase", phase, PHASES)):
        one_of(what, value, known)
    batch = batch_of(q, v, tau, time_step)
    asked = prepared(mechanism, time_step=time_step, stabilization=stabilization, batch=batch, **options)
    stabilized = stabilization in ("pre", "post")
    found = system_of_step(
        asked.scene,
        q,
        v,
        tau,
        asked.step,
        **structured_step(asked.numbers),
        **asked.fixed,
        stabilized=stabilized,
        phase=phase,
        form=form,
    )
    W, c, J, R, b, coupling = found
    matrix = coupling if "compliance_matrix" in asked.numbers else None
    return CompliantSystem(asked.scene, asked.step, form, W, c, J, R, b, asked.rubbing, matrix)
