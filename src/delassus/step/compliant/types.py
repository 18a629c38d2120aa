"""Inputs and results of the stages of a compliant step; see `stages.types` for those that all steps share.

StepState, StepSetup (Forces, RowInputs, ConeInputs, StepOptions)
  → kinematics   RowKinematics  links, rows J, their velocities, gaps
  → forces       Forces         springs, dampers, servos, tendons, forces that turn: the push, and what is added to M
  → assemble     RowSystem      how velocities answer, G = J W⁻¹ Jᵀ, R and b, which contacts are impacts
  → solve        RowSolution    impulses of all rows, with restitution that adds no energy
  → integrate    q⁺, v⁺         positions corrected, energy and momentum kept
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
        elastic: The elastic rows, by their numbers.
        driven: The driven velocities, by their numbers.
        coupled: The first row, and the one after the last, of each constraint with a compliance matrix.
        stabilization: "none", "pre", "post" or "project", as for `compliant_step`.
        midpoint: Whether inertias and rows are those of the middle of the step.
        impacts: "newton" or "reflections"; "start" for Newton's law at the beginning of the step, where positions move
            with v⁺ all along.
        law: Of contacts, as for `solve_contacts`, or "lcp".
        method: The solver, by its name.
        faces: Of pyramids.
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
        """Whether a step is made in the axes of its beginning: the middle sees axes turn."""
        return not self.midpoint


class RowNumbers(NamedTuple):
    """Numbers of the rows in a state, None where they are not needed.

    Attributes:
        compliance: (m,) C of elastic rows [m/N], and of contacts' normals, which are elastic where it is not zero.
        damping: (m,) B of elastic rows [N·s/m].
        restitution: (points,) e.
        matrix: (m, m) with C of constraints whose rows yield to each other's forces.
    """

    compliance: Any = None
    damping: Any = None
    restitution: Any = None
    matrix: Any = None


class Recovery(NamedTuple):
    """The shares of errors of position that velocities take off in a step; 0.0 and 1.0 are compiled in."""

    bilateral: Any = 1.0
    unilateral: Any = 0.0


class RowInputs(NamedTuple):
    """The step h with its blends α and β, numbers of rows, what they recover, and velocities (nv,) of driven joints."""

    blend: Blend
    numbers: RowNumbers
    recovery: Recovery = Recovery()
    driven_velocity: Any = None


class ConeInputs(NamedTuple):
    """Friction of contacts (points,), bounds (intervals,) of joint friction as impulses, and how a solve begins and
    ends: impulses (m,) to start from, tolerance, iterations. None where there is none."""

    friction: Any = None
    torsional: Any = None
    rolling: Any = None
    bounds: Any = None
    start: Any = None
    tolerance: Any = None
    iterations: Any = None

    @property
    def rows(self) -> RowParameters:
        """Friction and bounds, as contact solvers take them."""
        lower = None if self.bounds is None else -self.bounds
        return RowParameters(self.friction, self.torsional, self.rolling, lower, self.bounds)

    @property
    def solver(self) -> SolverInputs:
        """Where a solve begins and ends, as contact solvers take it."""
        return SolverInputs(self.start, self.tolerance, self.iterations)

    @property
    def frictionless(self) -> ConeInputs:
        """Of the correction phase, in which nothing rubs."""
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
        impact_points: Which contacts are impacts; None where no contact has restitution.
        coupling: (m, m) what R has besides its diagonal; None where rows yield to their own forces alone.
        yields: Whether some R is there; known when a kernel is compiled.
    """

    compliance: Any
    bias: Any
    plastic_bias: Any
    impact_points: ImpactPoints | None
    coupling: Any = None
    yields: bool = True

    def add_coupling(self, G: Any) -> Any:
        """G (m, m) with what R has besides its diagonal."""
        return G if self.coupling is None else G + self.coupling

    def bias_with_restitution(self, fraction: Any = None) -> Any:
        """b (m,) with a fraction of restitution; None for all of it."""
        if fraction is None:
            return self.bias
        return self.plastic_bias + fraction * (self.bias - self.plastic_bias)


class RowAccuracy(NamedTuple):
    """Accuracy of rows.

    Attributes:
        reach: (m,) the velocities that cancel in them.
        deviation: () δ, how far J is taken from where rows are met, as a share of the robot's size or of a radian.
        slack: (m,) what they may leave besides: what rounding makes of errors of position, as velocities.
        groups: Rows of one constraint and one unit have the same, and count alike; none for each row by itself.
    """

    reach: Any
    deviation: Any = 0.0
    slack: Any = 0.0
    groups: tuple[Any, ...] = ()


class RowSolution(NamedTuple):
    """Impulses (m,), the residual of J v⁺ + R λ + b (m,), iterations, and the number of a `Status`."""

    impulse: Any
    residual: Any
    iterations: Any
    status: Any


class Reflections(NamedTuple):
    """An impact of several contacts: which strike, the jump of velocities (nv,), the impulses (m,), and its status."""

    impact_points: ImpactPoints
    change: Any
    impulse: Any
    status: Any


class RowSystem(NamedTuple):
    """A step before its impulses are known.

    Attributes:
        response: W⁻¹ and J.
        free_velocity: (nv,) v_f, without impulses of rows.
        velocity: (nv,) the same, with the jump of reflections.
        after: (m,) J of that.
        G: (m, m) J W⁻¹ Jᵀ.
        values: R and b.
        meeting_velocity: (m,) velocities of rows as contacts strike, None where none has restitution.
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
        """(m, m) G with what R has besides its diagonal."""
        return self.values.add_coupling(self.G)


class StepSetup(NamedTuple):
    """What all stages of a step share: forces and what is implicit in them, numbers of rows, of cones, options, and the
    parts that move on their own."""

    forces: Forces
    inputs: RowInputs
    cones: ConeInputs
    options: StepOptions
    parts: tuple[Component, ...] = ()


class VelocityStep(NamedTuple):
    """A step of velocities: the velocity (nv,) after it, in the axes that it is made in, that without impulses of rows
    (nv,), its response, its system and its solution, and the fraction of restitution that adds no energy. Without rows,
    the last but one are None."""

    v: Any
    free_velocity: Any
    response: Response
    system: RowSystem | None
    solution: RowSolution | None
    restitution_fraction: Any

    @property
    def impact_points(self) -> ImpactPoints | None:
        """Which contacts are impacts; None where none has restitution."""
        if self.system is None:
            return None
        source = self.system.values if self.system.reflections is None else self.system.reflections
        return source.impact_points
