"""`compliant_system`: the system of a step as matrices, and its solvers by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import TOLERANCES, iteration_count, number_in_range, one_of
from delassus.common.options import Shortcuts
from delassus.constrained.solvers.status import Status
from delassus.contact.cones.parameters import ContactParameters
from delassus.contact.solvers.sequential_impulses import RowsOnVelocities
from delassus.step.compliant.arguments import CompliantArguments, StepError, batch_of
from delassus.step.compliant.kernel import system_of_step
from delassus.step.compliant.options import SystemForm, SystemOptions
from delassus.step.compliant.system import SOLVERS, SystemSolution, check_rows, system_kernel
from delassus.step.compliant.types import ConeInputs
from delassus.step.scene import Scene

Array = NDArray[np.float64]

_SYSTEM: Final = Shortcuts(
    "compliant_system", "mechanism q v tau time_step contacts", system=SystemForm(), options=SystemOptions()
)


@dataclass(frozen=True, eq=False)
class CompliantSystem:
    """[W, -Jᵀ; -J, -R] [x; λ] = [c; b] of a step, of one state or a batch.

    Attributes:
        scene: The robot, its contacts and its other rows.
        time_step: (…) h [s].
        form: "velocity", x = v⁺; "variation", x = v⁺ - v; "acceleration", x = (v⁺ - v)/h, and λ are forces. Velocities
            of free and planar joints are in the body axes at the start of the step.
        W: (…, nv, nv) the response matrix.
        c: (…, nv) the net momentum.
        J: (…, m, nv) the rows.
        R: (…, m) C/(h²αβ) of elastic rows [1/kg], zero for the others; the diagonal of R, if a C is a matrix.
        b: (…, m) the constraint values: J x + R λ + b = 0, or complementary to λ.
        contact: Coefficients of friction.
        coupling: (…, m, m) the off-diagonal part of R; None if no compliance is a matrix.

    >>> loop, zero = dl.Mechanism(dl.load("four_bar")), np.zeros(3)
    >>> dl.stepping.compliant_system(loop, loop.model.posture("home"), zero, zero, time_step=1e-3).W.shape
    (3, 3)
    """

    scene: Scene
    time_step: Array
    form: str
    W: Array
    c: Array
    J: Array
    R: Array
    b: Array
    contact: ContactParameters
    coupling: Array | None = None

    def solve(self, method: str = "ldl", *, tolerance: float = 1e-8, iterations: int = 1000) -> SystemSolution:
        """Solve for x and λ by "ldl", "cg", "minres", "gauss_seidel", "pgs" or "sequential_impulses".

        The result also has the residuals of rows, the number of iterations and the status.
        """
        one_of("method", method, SOLVERS, code="unknown-method")
        iteration_count("iterations", iterations)
        scene = self.scene
        layout = RowsOnVelocities(scene.layout.cones, scene.nv)
        check_rows(layout, method)
        if not scene.m:
            return self._solve_without_rows()
        bounds = None
        if scene.friction_bounds:
            h = np.ones(()) if self.form == "acceleration" else self.time_step
            bounds = np.asarray(h)[..., None] * np.array(scene.friction_bounds)
        friction, torsional, rolling, *_ = self.contact
        goal = number_in_range("tolerance", tolerance, TOLERANCES)
        cones = ConeInputs(friction, torsional, rolling, bounds, tolerance=goal, iterations=float(iterations))
        system = (self.W, self.c, self.J, self.R, self.b)
        return system_kernel(layout, *system, cones=cones, coupling=self.coupling, method=method)

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
    contacts: Any = (),
    system: SystemForm | None = None,
    options: SystemOptions | None = None,
    **shortcuts: Any,
) -> CompliantSystem:
    """Form the system of a step of `compliant_step` without solving it, for one state or a batch.

    Choose it to look at the matrices or to compare solvers; `compliant_step` is faster, since it does not form them.

    Args:
        mechanism: The robot with its constraints, or a model.
        q: Configurations (…, nq) [rad, m].
        v: Velocities (…, nv) [rad/s, m/s].
        tau: Generalized forces (…, nv) [N·m, N].
        time_step: (…) h [s].
        contacts: The `Contact`s of the robot.
        system: A `SystemForm`: the unknowns, and the phase of the step.
        options: A `SystemOptions`: scheme, elements, contact, planes, rows, time, parameters. With the stabilization
            "pre" or "post", only the phase "correction" contains position errors; midpoint and impacts are not
            supported.
        **shortcuts: form, phase (system), and fields of the options as for `compliant_step`.

    >>> loop, zero = dl.Mechanism(dl.load("four_bar")), np.zeros(3)
    >>> system = dl.stepping.compliant_system(loop, loop.model.posture("home"), zero, zero, time_step=1e-3)
    >>> system.solve("ldl").x.shape
    (3,)
    """
    system, options = _SYSTEM.fill(shortcuts, system=system, options=options)
    scheme = options.scheme
    if scheme.midpoint or scheme.impacts != "newton":
        raise StepError(
            "midpoint or impacts is set; these are options of compliant_step only. Omit them here.",
            code="not-supported",
        )
    arguments = CompliantArguments.of(mechanism, contacts, time_step, options, batch_of(q, v, tau, time_step))
    contact = arguments.numbers.contact
    W, c, J, R, b, coupling = system_of_step(
        arguments.scene,
        q,
        v,
        tau,
        arguments.step,
        numbers=arguments.numbers._replace(contact=ContactParameters(restitution=contact.restitution)),
        options=arguments.options,
        parameters=options.parameters,
        system=(system.phase, system.form),
    )
    matrix = None if arguments.numbers.springs.compliance_matrix is None else coupling
    return CompliantSystem(arguments.scene, arguments.step, system.form, W, c, J, R, b, contact, matrix)
