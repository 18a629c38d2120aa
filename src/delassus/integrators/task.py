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
"""What is projected onto the constraints: nothing; velocities after steps; states after steps; and inside them."""


@dataclass(frozen=True)
class Task:
    """What is followed, and how: all that decides the code.

    Attributes:
        mechanism: The robot and its constraints.
        integrator: The method.
        control: Forces as a function of time and state, or None.
        events: What may happen.
        projection: One of `PROJECTIONS`.
        samples: How many states are wanted between two output times, by dense output.
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
        """Numbers kept for events: one at least, since arrays are not empty."""
        return max(1, len(self.events))

    @property
    def nsamples(self) -> int:
        """Places kept for states between output times: one at least."""
        return max(1, self.samples)

    def event_values(self, time: Any, q: Any, v: Any) -> Any:
        """The functions of all events (nevents,)."""
        if not self.events:
            return np.ones(1)
        return np.stack([event.function(time, q, v)[0] for event in self.events])


@dataclass(frozen=True)
class ParametricTask(Task, ParametricComposite):
    """The task of a mechanism with parameters: the kernel takes them, one set per item of a batch."""

    mechanism: ParametricMechanism

    @property
    def parametric_part(self) -> ParametricMechanism:
        """The part with parameters: the mechanism."""
        return self.mechanism

    def with_parameters(self, parameters: Any) -> Task:
        """The task of the mechanism with these."""
        robot = self.mechanism.with_parameters(parameters)
        return Task(robot, self.integrator, self.control, self.events, self.projection, self.samples)
