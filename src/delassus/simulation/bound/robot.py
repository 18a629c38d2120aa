"""One robot in a control loop: its arrays are bound to the kernel once and change in place.

    robot = sim.bind(sim.start(q0))
    while …:
        robot.control[:] = policy(robot.q, robot.v)
        robot.step()

`sim.step` allocates a new state, which takes about 10 µs. `robot.step` adds less than a microsecond to the time of the
kernel. Results are bit for bit the same.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Advancing(Protocol):
    """A runner of one robot, whose arrays change in place with each control period."""

    q: Any
    v: Any
    time: Any
    status: Any

    @property
    def bound_control(self) -> Any:
        """(nu,) controls of the next period."""

    def advance(self) -> None:
        """Make a period."""

    def state(self) -> Any:
        """A copy as a `State`."""


class BoundRobot:
    """A robot whose arrays change in place, created by `Simulation.bind`. Use it from one thread only.

    Attributes:
        q: (nq,) configuration [rad, m], read-only.
        v: (nv,) velocity [rad/s, m/s], read-only.
        control: (nu,) control of the next period, to be written by the user.

    >>> sim = dl.Simulation(dl.load("pendulum"), time_step=1e-2, touching=())
    >>> robot = sim.bind(sim.start([1.0]))
    >>> robot.step()
    >>> robot.time
    0.01
    """

    __slots__ = ("_runner", "control", "q", "step", "v")

    def __init__(self, runner: Advancing) -> None:
        self._runner = runner
        self.q, self.v, self.control = self._read_only(runner.q), self._read_only(runner.v), runner.bound_control
        self.step = runner.advance
        """Make one control period."""

    @staticmethod
    def _read_only(x: Array) -> Array:
        view = x.view()
        view.flags.writeable = False
        return view

    @property
    def time(self) -> float:
        """Time since the start [s]."""
        return float(self._runner.time)

    @property
    def status(self) -> int:
        """Sum of the flags of the last period, see `Mark`; zero if there are none."""
        return int(self._runner.status)

    @property
    def state(self) -> Any:
        """A copy as a `State`, for `sim.run`, `sim.step` and other functions of states."""
        return self._runner.state()

    def __repr__(self) -> str:
        return f"BoundRobot(time={self.time:.6g}, status={self.status})"


def bind_robot(runner: Advancing, control: Any) -> BoundRobot:
    """A robot on the arrays of a runner of one environment, with its first control (nu,)."""
    robot = BoundRobot(runner)
    robot.control[:] = control
    return robot
