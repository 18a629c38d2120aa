"""`Task`: the mechanism and options for which the kernel of an integrator is compiled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import delassus.numpy as np
from delassus.compiler.differentiation.recorded_function import RecordedFunction
from delassus.compiler.graph.parameters import ParametricComposite
from delassus.constraints.mechanism.mechanism import Mechanism, ParametricMechanism
from delassus.integrators.events import Event
from delassus.integrators.protocol import Integrator

PROJECTIONS: Final = ("none", "velocities", "steps", "stages")
"""Projections onto the constraints: none; velocities after steps; states after steps; also inside steps."""


@dataclass(frozen=True)
class Task:
    """Compile-time arguments of an integrator's kernel.

    Attributes:
        mechanism: The robot and its constraints.
        integrator: The method.
        control: Forces as a function of time and state, or None.
        events: Events to detect.
        projection: One of `PROJECTIONS`.
        samples: Number of states between two output times, by dense output.
    """

    mechanism: Mechanism
    integrator: Integrator
    control: RecordedFunction | None = None
    events: tuple[Event, ...] = ()
    projection: str = "none"
    samples: int = 0

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return self.mechanism.nq

    @property
    def nv(self) -> int:
        """Number of velocities."""
        return self.mechanism.nv

    @property
    def nevents(self) -> int:
        """Length of arrays of events: at least one, since arrays cannot be empty."""
        return max(1, len(self.events))

    @property
    def nsamples(self) -> int:
        """Length of arrays of samples: at least one."""
        return max(1, self.samples)

    def event_values(self, time: Any, q: Any, v: Any) -> Any:
        """The values of all event functions (nevents,)."""
        if not self.events:
            return np.ones(1)
        return np.stack([event.function(time, q, v)[0] for event in self.events])


@dataclass(frozen=True)
class ParametricTask(Task, ParametricComposite):
    """The task of a mechanism with parameters, one set for each state of a batch."""

    mechanism: ParametricMechanism

    @property
    def parametric_part(self) -> ParametricMechanism:
        """The part with parameters: the mechanism."""
        return self.mechanism

    def with_parameters(self, parameters: Any) -> Task:
        """The task of the mechanism with these parameters."""
        robot = self.mechanism.with_parameters(parameters)
        return Task(robot, self.integrator, self.control, self.events, self.projection, self.samples)
