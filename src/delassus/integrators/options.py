"""Options of `simulate_motion`: the integrator and the treatment of constraints."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from delassus.common.options import Options


@dataclass(frozen=True, eq=False)
class IntegratorOptions(Options):
    """How a motion is integrated.

    Attributes:
        method: "dopri5", which chooses its steps by the tolerance, or with steps of a fixed length "explicit_euler",
            "semi_implicit_euler", "taylor", "rk4", "implicit_euler", "midpoint", "gauss"; or an `Integrator`.
        tolerance: (…) what a step of "dopri5" may be off, in radians, robot's lengths, and shares of velocities.
        step: [s] the length of steps, which methods of fixed length need: it is shortened so that an integer leads
            from each time to the next. The first step of "dopri5".
        dense: How many states are wanted between each two times, evenly spaced, by the dense output of "dopri5": steps
            do not end there, so that they cost little, and are not projected.
        max_steps: From one time to the next, for one item.

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
    """What is done about errors of constraints.

    Attributes:
        project: What is projected onto the constraints: "steps" (or True), states after each step; "stages", those
            inside steps as well; "velocities", these alone; "none" (or False).
        start: A start that does not meet the constraints is brought there ("project"), is an error ("refuse"), or stays
            as it is ("keep").

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
        parameters: (…, nparameters) of a model or mechanism with parameters; by default its own.

    >>> dl.stepping.MotionOptions().integrator.method
    'dopri5'
    """

    integrator: IntegratorOptions = field(default=IntegratorOptions())
    projection: ProjectionOptions = field(default=ProjectionOptions())
    parameters: Any = None
