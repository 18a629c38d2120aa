"""`compliant_step`: one time step of a robot with springs, dampers, constraints and contacts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import one_of
from delassus.common.options import Shortcuts
from delassus.common.outcomes import worst_of
from delassus.constrained.rows.counts import as_integer
from delassus.constrained.solvers.status import Status
from delassus.contact.solvers.options import SolverInputs
from delassus.contact.solvers.registry import solver_names
from delassus.contact.solvers.sequential_impulses import RowsOnVelocities
from delassus.contact.systems.scaled import CAPABILITIES as COMPILED
from delassus.step.compliant.arguments import CompliantArguments, batch_of, solver_inputs
from delassus.step.compliant.inputs import Scheme
from delassus.step.compliant.kernel import compliant_kernel
from delassus.step.compliant.options import CompliantOptions
from delassus.step.compliant.system import SOLVERS, check_rows
from delassus.step.impacts.dissipation import describe_energy_limit
from delassus.step.outcome import RowOutcome

Array = NDArray[np.float64]

METHODS: Final = ("auto", *SOLVERS, *(name for name in solver_names(COMPILED) if name not in ("auto", *SOLVERS)))
"""Methods that solve for the impulses, by name."""

_STEP: Final = Shortcuts("compliant_step", "mechanism q v tau time_step contacts", options=CompliantOptions())


@dataclass(frozen=True, eq=False)
class CompliantStep(RowOutcome):
    """The result of a compliant step, for one state or a batch; see also `RowOutcome`.

    Attributes:
        time_step: (…) h [s].
        q: (…, nq) configurations after the step [rad, m].
        v: (…, nv) velocities after the step [rad/s, m/s], with the energy and momentum that its impulses allow.
        impulse: (…, m) of all rows [N·s, N·m·s]: contacts (t1, t2, n), constraints, limits, joint friction.
        restitution_share: (…) the fraction of restitution that was applied: less than 1 if all of it would have added
            energy. Residuals are those of the rows with this fraction.
        system_velocity: (…, nv) the velocities that solve the system of the step, W v⁺ = c + Jᵀ λ, in the body axes at
            its start or middle; equal to `v` if no axes rotate.

    >>> loop, zero = dl.Mechanism(dl.load("four_bar")), np.zeros(3)
    >>> step = dl.stepping.compliant_step(loop, loop.model.posture("home"), zero, zero, time_step=1e-3)
    >>> isinstance(step, dl.stepping.CompliantStep)
    True
    """

    time_step: Array
    q: Array
    v: Array
    impulse: Array
    restitution_share: Array
    system_velocity: Array

    @property
    def energy_limited(self) -> Any:
        """(…) whether restitution was reduced because, with friction, it would have added energy."""
        return np.asarray(self.restitution_share) < 1.0

    @property
    def force(self) -> Array:
        """(…, m) the mean forces of the step [N, N·m]: impulses divided by h."""
        return np.asarray(self.impulse / np.asarray(self.time_step)[..., None])

    @property
    def forces(self) -> Mapping[str, Array]:
        """Views of `force` by the names of contacts, constraints and joints."""
        return self.by_name(self.force)

    def describe(self) -> str:
        """A sentence that states how the solver ended; for a batch, that of the worst state."""
        if not np.size(self.status):
            return "There is no state."
        worst = worst_of(Status, np.asarray(self.status))
        counted = (
            f", in {np.sum(self.status == worst)} of {np.size(self.status)} states" if np.ndim(self.status) else ""
        )
        return f"{worst.sentence[:-1]}{counted}.{describe_energy_limit(self.energy_limited)}"


def compliant_step(
    mechanism: Any,
    q: Any,
    v: Any,
    tau: Any,
    *,
    time_step: Any,
    contacts: Any = (),
    options: CompliantOptions | None = None,
    **shortcuts: Any,
) -> CompliantStep:
    """Integrate a robot with springs, dampers, constraints and contacts over one time step, for one state or a batch.

        W v⁺ = c + Jᵀ λ,      J v⁺ + R λ + b = 0  (or complementary),      q⁺ = q ⊕ h ((1-β) v + β v⁺)

    Springs and dampers of joints and tendons, servos, and constraints with a compliance are integrated implicitly as α
    and β state, so any stiffness is stable with α = β = 1. Constraints without a compliance are rigid. Contacts, limits
    and joint friction are solved for together with them. The model's own springs and dampers are included: leave
    `passive_forces` out of tau.

    Args:
        mechanism: The robot with its constraints, or a model.
        q: Configurations (…, nq) [rad, m].
        v: Velocities (…, nv) [rad/s, m/s].
        tau: Generalized forces (…, nv) [N·m, N], constant during the step.
        time_step: (…) h [s].
        contacts: The `Contact`s of the robot; one with a compliance is elastic.
        options: A `CompliantOptions`: scheme, elements, contact, planes, rows, solver, time, parameters.
        **shortcuts: Fields of the options and of the objects that they hold, by their names: alpha, beta,
            stabilization, midpoint, impacts (scheme); compliance, damping, servo_stiffness, servo_damping,
            servo_target, driven, geometric_stiffness (elements); friction, torsional, rolling, restitution,
            contact_compliance (contact); normal, height (planes); limits, joint_friction (rows); method, tolerance,
            iterations, start (solver).

    >>> loop, zero = dl.Mechanism(dl.load("four_bar")), np.zeros(3)
    >>> dl.stepping.compliant_step(loop, loop.model.posture("home"), zero, zero, time_step=1e-3).q.shape
    (3,)
    """
    (options,) = _STEP.fill(shortcuts, options=options)
    arguments = CompliantArguments.of(mechanism, contacts, time_step, options, batch_of(q, v, tau, time_step))
    scene, method = arguments.scene, options.solver.method
    one_of("method", method, METHODS, code="unknown-method")
    check_rows(RowsOnVelocities(scene.layout.cones, scene.nv), method)
    numbers = arguments.numbers._replace(solver=solver_inputs(scene, options.solver))
    midpoint = bool(options.scheme.midpoint)
    if method == "auto" and not (scene.points or scene.stops or scene.friction_bounds):
        numbers = numbers._replace(solver=SolverInputs())  # the direct solve takes no options
    if options.scheme.is_default and arguments.has_smooth_forces:
        numbers, midpoint = numbers._replace(scheme=Scheme(np.array(1.0), np.array(0.5))), True
    compiled = arguments.options._replace(midpoint=midpoint, impacts=options.scheme.impacts, method=method)
    result = compliant_kernel(
        scene, q, v, tau, arguments.step, numbers=numbers, options=compiled, parameters=options.parameters
    )
    return CompliantStep(
        scene,
        result.gap,
        result.residual,
        as_integer(result.iterations),
        as_integer(result.status),
        time_step=arguments.step,
        q=result.q,
        v=result.v,
        impulse=result.impulse,
        restitution_share=result.restitution_share,
        system_velocity=result.system_velocity,
    )
