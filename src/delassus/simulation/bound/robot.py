"""One robot in a control loop: a state on arrays that are bound to the kernel once and change in place.

    robot = sim.bind(sim.start(q0))
    while …:
        robot.control[:] = policy(robot.q, robot.v)
        robot.step()

`sim.step` makes a new state of new arrays, some 10 µs a call; this takes less than a microsecond beside the kernel.
Both have the same bits.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Advancing(Protocol):
    """Arrays of one robot that change in place with each control period, as the runner of a simulation has them."""

    q: Any
    v: Any
    time: Any
    status: Any

    @property
    def own_control(self) -> Any:
        """(nu,) controls of the next period."""

    def advance(self) -> None:
        """Make a period."""

    def state(self) -> Any:
        """A copy as a `State`."""


class BoundRobot:
    """A robot on its way; `Simulation.bind` makes it. For one thread.

    Attributes:
        q: (nq,) configuration [rad, m]; changes in place, and may be read, not written.
        v: (nv,) velocity [rad/s, m/s], likewise.
        control: (nu,) of the next period: write to it.
    """

    __slots__ = ("_runner", "control", "q", "step", "v")

    def __init__(self, runner: Advancing) -> None:
        self._runner = runner
        self.q, self.v, self.control = self._read_only(runner.q), self._read_only(runner.v), runner.own_control
        self.step = runner.advance
        """Make one control period."""

    @staticmethod
    def _read_only(x: Array) -> Array:
        view = x.view()
        view.flags.writeable = False
        return view

    @property
    def time(self) -> float:
        """The time [s] of the robot."""
        return float(self._runner.time)

    @property
    def status(self) -> int:
        """Marks of the last period that add up, see `Mark`; zero if all went well."""
        return int(self._runner.status)

    @property
    def state(self) -> Any:
        """A `State`: a copy of where it is, for `sim.run`, `sim.step` and all that takes a state."""
        return self._runner.state()

    def __repr__(self) -> str:
        return f"BoundRobot(time={self.time:.6g}, status={self.status})"


def bind_robot(runner: Advancing, control: Any) -> BoundRobot:
    """A robot on the arrays of a runner of one item, with its first control (nu,)."""
    robot = BoundRobot(runner)
    robot.control[:] = control
    return robot
