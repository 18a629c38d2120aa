"""`Snapshot`: one environment at one instant, the argument of a user's traced functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import delassus.numpy as np
from delassus.common.names import UnknownName
from delassus.simulation.checks import SimulationError
from delassus.simulation.policies.draws import Draws
from delassus.simulation.sensors.readout import KINDS, Readout, Sensor
from delassus.simulation.sensors.sensors import matching_targets


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

    def __post_init__(self) -> None:
        # copies: a function that changes one in place does not move the robot
        read = self.readout
        q, v, control = np.array(read.q), np.array(read.v), np.array(read.control)
        object.__setattr__(self, "readout", read._replace(q=q, v=v, control=control))
        object.__setattr__(self, "memory", {name: np.array(x) for name, x in self.memory.items()})

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
        if not isinstance(name, str):
            raise TypeError(f"now[{name!r}] is neither a memory nor a sensor: their names are texts.")
        if name in self.memory:
            return self.memory[name]
        kind, _, target = name.partition(":")
        if kind not in KINDS:
            raise UnknownName("memory or sensor named", name, [*self.memory, *KINDS])
        if KINDS[kind].needs == "acceleration":
            raise SimulationError(
                f"{name!r} measures an acceleration, which is not available inside a period: read it with sim.sensors.",
                code="not-supported",
            )
        names = matching_targets(self.readout.scene, Sensor(kind, target))
        if len(names) > 1:
            raise SimulationError(
                f"{name!r} matches {len(names)} sensors, and now[…] reads one of them: {', '.join(names)}.",
                code="unknown-sensor",
            )
        return KINDS[kind].read(self.readout, Sensor(kind, names[0]))


@dataclass(frozen=True)
class StepSnapshot(Snapshot):
    """One environment in a step of a simulation, the argument of the functions of a `CompiledPolicy`."""

    @property
    def time(self) -> Any:
        """() time of the environment [s]."""
        return self.readout.time

    @property
    def control(self) -> Any:
        """(nu,) controls of the run; after a step, those that acted."""
        return self.readout.control
