"""Inputs and results of the stages of a compliant step; `stages.types` has those that all steps share.

StepState, StepSetup (Forces, RowInputs, ConeInputs, StepOptions)
  → kinematics   RowKinematics  links, rows J, their velocities, gaps
  → forces       Forces         forces of springs, dampers, servos, tendons, and their implicit part in W
  → assemble     RowSystem      the response W⁻¹, G = J W⁻¹ Jᵀ, R and b, the contacts with an impact
  → solve        RowSolution    impulses of all rows, with restitution that adds no energy
  → integrate    q⁺, v⁺         positions corrected, energy and momentum restored
"""

from __future__ import annotations

from typing import Any, NamedTuple

import delassus.numpy as np
from delassus.contact.cones.parameters import RowParameters
from delassus.contact.solvers.options import SolverInputs
from delassus.step.actuators.forces import Forces
from delassus.step.impacts.detection import ImpactPoints
from delassus.step.scheme.blend import Blend
from delassus.step.scheme.components import Component
from delassus.step.scheme.response import Response


class StepOptions(NamedTuple):
    """Options of a step that are compiled in.

    Attributes:
        elastic: Indices of the elastic rows.
        driven: Indices of the driven velocities.
        coupled: The row range (start, end) of each constraint with a compliance matrix.
        stabilization: "none", "pre", "post" or "project", as for `compliant_step`.
        midpoint: Whether inertias and rows are those of the middle of the step.
        impacts: "newton" or "reflections"; "start" for Newton's law at the start of the step, so that positions move
            with v⁺ over the whole step.
        law: The contact law, as for `solve_contacts`, or "lcp".
        method: The name of the solver.
        faces: The number of faces of a friction pyramid.
        pyramid: "inner" or "outer".
    """

    elastic: tuple[int, ...] = ()
    driven: tuple[int, ...] = ()
    coupled: tuple[tuple[int, int], ...] = ()
    stabilization: str = "none"
    midpoint: bool = False
    impacts: str = "newton"
    law: str = "ncp"
    method: str = "auto"
    faces: int = 4
    pyramid: str = "inner"

    @property
    def straight(self) -> bool:
        """Whether velocities of a step are in the body axes at its start; a midpoint step has rotating axes."""
        return not self.midpoint


class RowNumbers(NamedTuple):
    """Coefficients of the rows of a state, each None if no row has it.

    Attributes:
        compliance: (m,) C of elastic rows and of normals of contacts [m/N]; a normal is elastic if C is not zero.
        damping: (m,) B of elastic rows [N·s/m].
        restitution: (points,) coefficient of restitution e.
        matrix: (m, m) the matrices C of constraints whose rows are coupled.
    """

    compliance: Any = None
    damping: Any = None
    restitution: Any = None
    matrix: Any = None


class Recovery(NamedTuple):
    """The fractions of position errors that velocities correct in a step; constants 0.0 and 1.0 are compiled in."""

    bilateral: Any = 1.0
    unilateral: Any = 0.0


class RowInputs(NamedTuple):
    """h with the blends α and β, coefficients of rows, the fractions of errors that velocities correct, and the
    velocities (nv,) of driven joints."""

    blend: Blend
    numbers: RowNumbers
    recovery: Recovery = Recovery()
    driven_velocity: Any = None


class ConeInputs(NamedTuple):
    """Friction of contacts (points,), bounds (intervals,) of joint friction as impulses, initial impulses (m,),
    tolerance and number of iterations; each None if not used."""

    friction: Any = None
    torsional: Any = None
    rolling: Any = None
    bounds: Any = None
    start: Any = None
    tolerance: Any = None
    iterations: Any = None

    @property
    def rows(self) -> RowParameters:
        """Friction and bounds as inputs of contact solvers."""
        lower = None if self.bounds is None else -self.bounds
        return RowParameters(self.friction, self.torsional, self.rolling, lower, self.bounds)

    @property
    def solver(self) -> SolverInputs:
        """Warm start and termination criteria as inputs of contact solvers."""
        return SolverInputs(self.start, self.tolerance, self.iterations)

    @property
    def frictionless(self) -> ConeInputs:
        """The inputs of the correction phase, without friction and warm start."""
        none = {name: getattr(self, name) for name in RUBBING}
        slip = {name: None if x is None else np.zeros(x.shape) for name, x in none.items()}
        return self._replace(**slip, bounds=None if self.bounds is None else 0.0 * self.bounds, start=None)


RUBBING = ("friction", "torsional", "rolling")
"""The coefficients of friction, by name."""


class RowValues(NamedTuple):
    """Equations of rows: J v⁺ + R λ + b = 0, or complementary to λ.

    Attributes:
        compliance: (m,) the diagonal of R.
        bias: (m,) b.
        plastic_bias: (m,) b without restitution.
        impact_points: Which contacts are impacts; None if no contact has restitution.
        coupling: (m, m) the off-diagonal part of R; None if R is diagonal.
        yields: Whether a row has a compliance; known when a kernel is compiled.
    """

    compliance: Any
    bias: Any
    plastic_bias: Any
    impact_points: ImpactPoints | None
    coupling: Any = None
    yields: bool = True

    def add_coupling(self, G: Any) -> Any:
        """G (m, m) plus the off-diagonal part of R."""
        return G if self.coupling is None else G + self.coupling

    def bias_with_restitution(self, fraction: Any = None) -> Any:
        """b (m,) with a fraction of restitution; None for all of it."""
        if fraction is None:
            return self.bias
        return self.plastic_bias + fraction * (self.bias - self.plastic_bias)


class RowAccuracy(NamedTuple):
    """The accuracy to which rows are known, from which the tolerance of their solve follows.

    Attributes:
        reach: (m,) the magnitude of the terms that cancel in each row, as a velocity.
        deviation: () δ, the distance of the configuration of J from the constraint manifold, relative to the robot's
            size or a radian.
        slack: (m,) an additional residual that is allowed: the rounding error of positions, as a velocity.
        groups: The group of each row; rows of one constraint with one unit have a common scale. Empty for none.
    """

    reach: Any
    deviation: Any = 0.0
    slack: Any = 0.0
    groups: tuple[Any, ...] = ()


class RowSolution(NamedTuple):
    """Impulses (m,), the residual of J v⁺ + R λ + b (m,), the number of iterations, and the value of a `Status`."""

    impulse: Any
    residual: Any
    iterations: Any
    status: Any


class Reflections(NamedTuple):
    """An impact of several contacts: the contacts with an impact, the velocity jump (nv,), impulses (m,), status."""

    impact_points: ImpactPoints
    change: Any
    impulse: Any
    status: Any


class RowSystem(NamedTuple):
    """The system of a step, whose unknowns are the impulses.

    Attributes:
        response: W⁻¹ and J.
        free_velocity: (nv,) v_f, the velocity without row impulses.
        velocity: (nv,) v_f plus the velocity jump of reflections.
        after: (m,) row velocities J v of `velocity`.
        G: (m, m) J W⁻¹ Jᵀ.
        values: R and b.
        meeting_velocity: (m,) row velocities at the impact; None if no contact has restitution.
        reflections: The impact before the step; None if impacts are part of it.
    """

    response: Response
    free_velocity: Any
    velocity: Any
    after: Any
    G: Any
    values: RowValues
    meeting_velocity: Any
    reflections: Reflections | None = None

    @property
    def A(self) -> Any:
        """G (m, m) plus the off-diagonal part of R."""
        return self.values.add_coupling(self.G)


class StepSetup(NamedTuple):
    """Inputs that all stages of a step share: forces with their implicit part, coefficients of rows and cones, options,
    and the independently moving parts."""

    forces: Forces
    inputs: RowInputs
    cones: ConeInputs
    options: StepOptions
    parts: tuple[Component, ...] = ()


class VelocityStep(NamedTuple):
    """The velocity (nv,) after a step, the velocity (nv,) without row impulses, the response, the system and its
    solution (None without rows), and the fraction of restitution that adds no energy. Velocities are in the axes of the
    system."""

    v: Any
    free_velocity: Any
    response: Response
    system: RowSystem | None
    solution: RowSolution | None
    restitution_fraction: Any

    @property
    def impact_points(self) -> ImpactPoints | None:
        """Which contacts are impacts; None if no contact has restitution."""
        if self.system is None:
            return None
        source = self.system.values if self.system.reflections is None else self.system.reflections
        return source.impact_points
