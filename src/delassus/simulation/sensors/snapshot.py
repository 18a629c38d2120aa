"""`Snapshot`: one environment at one instant, as traced functions of a user see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import delassus.simulation.sensors.sensors  # noqa: F401 - registers the kinds of sensors
from delassus.common.names import UnknownName
from delassus.simulation.checks import SimulationError
from delassus.simulation.policies.draws import Draws
from delassus.simulation.sensors.readout import KINDS, Readout, Sensor


@dataclass(frozen=True)
class Snapshot:
    """One environment at one instant.

    `now["gyro:trunk"]` is the reading of a sensor, and `now["command"]` a part of the memory.

    Attributes:
        readout: The state and the forces on the robot, which sensors read.
        memory: The memory by name.
        draws: Random numbers of the environment in this period.
    """

    readout: Readout
    memory: Mapping[str, Any]
    draws: Draws

    @property
    def model(self) -> Any:
        """The model of the robot."""
        return self.readout.model

    @property
    def q(self) -> Any:
        """(nq,) configuration [rad, m]."""
        return self.readout.q

    @property
    def v(self) -> Any:
        """(nv,) velocity [rad/s, m/s]."""
        return self.readout.v

    def __getitem__(self, name: str) -> Any:
        """The memory of a name, or the reading of a sensor: now["command"], now["gyro:trunk"]."""
        if name in self.memory:
            return self.memory[name]
        kind, _, target = name.partition(":")
        if kind not in KINDS:
            raise UnknownName("memory or sensor named", name, [*self.memory, *KINDS])
        if KINDS[kind].needs == "acceleration":
            raise SimulationError(
                f"{name!r} measures an acceleration, which is not known inside a period: read it with sim.sensors.",
                code="not-supported",
            )
        return KINDS[kind].read(self.readout, Sensor(kind, target))


@dataclass(frozen=True)
class StepSnapshot(Snapshot):
    """One environment in a step of a simulation, as the functions of a `CompiledPolicy` see it."""

    @property
    def time(self) -> Any:
        """() [s]."""
        return self.readout.time

    @property
    def control(self) -> Any:
        """(nu,) controls: those that the run was given, or after a step those that acted."""
        return self.readout.control
