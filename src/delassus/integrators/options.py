"""Options of `simulate_motion`: the integrator and the treatment of constraints."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from delassus.common.options import Options


@dataclass(frozen=True, eq=False)
class IntegratorOptions(Options):
    """Options of the integration.

    Attributes:
        method: "dopri5", which is adaptive, or with steps of fixed length "explicit_euler", "semi_implicit_euler",
            "taylor", "rk4", "implicit_euler", "midpoint", "gauss"; or an `Integrator`.
        tolerance: (…) error of a step of "dopri5", in radians, robot lengths, and relative to velocities.
        step: [s] length of steps, required by methods of fixed length: it is shortened so that an integer number of
            steps leads from each time to the next. For "dopri5" the length of the first step.
        dense: Number of equidistant states between two successive times, by the dense output of "dopri5". They do not
            end steps, so they cost little; they are not projected.
        max_steps: Maximum number of steps between two times, for each state.

    >>> dl.stepping.IntegratorOptions(method="rk4", step=1e-3).step
    0.001
    """

    main: ClassVar[str] = "method"
    method: Any = "dopri5"
    tolerance: Any = 1e-8
    step: float | None = None
    dense: int = 0
    max_steps: int = 1_000_000


@dataclass(frozen=True, eq=False)
class ProjectionOptions(Options):
    """Treatment of constraint errors.

    Attributes:
        project: "steps" (or True) projects states after each step onto the constraints; "stages" also those inside
            steps; "velocities" only velocities; "none" (or False) nothing.
        start: Treatment of an initial state that violates the constraints: "project" corrects it, "refuse" raises an
            error, "keep" uses it as it is.

    >>> dl.stepping.ProjectionOptions(start="refuse").start
    'refuse'
    """

    project: str | bool = True
    start: str = "project"


@dataclass(frozen=True, eq=False)
class MotionOptions(Options):
    """Options of `simulate_motion`.

    Attributes:
        integrator: An `IntegratorOptions`, or the name of a method.
        projection: A `ProjectionOptions`.
        parameters: (…, nparameters) values for a model or mechanism with parameters; by default its own.

    >>> dl.stepping.MotionOptions().integrator.method
    'dopri5'
    """

    integrator: IntegratorOptions = field(default=IntegratorOptions())
    projection: ProjectionOptions = field(default=ProjectionOptions())
    parameters: Any = None
