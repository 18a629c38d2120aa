"""Parallel robots that follow a path, by inverse dynamics of their closed loops.

The tool of a delta robot goes round a figure of eight, and a four-bar swings its rocker. Each starts a little off its
path. The controller is compiled into the simulation: tasks with a spring and a damper towards the path, and the torques
that give these accelerations, with the forces that go round the loops (`dl.control.task_inverse_dynamics`). Run it by
`python examples/track_loops.py`; the picture goes to docs/images.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import delassus as dl
import delassus.numpy as dnp

SECONDS, RATE = 3.0, 8.0  # s, 1/s: how fast errors are taken off
OUTPUT = Path(__file__).parent.parent / "docs" / "images"
INK, COLORS = "#2c3e50", ("#c0392b", "#27ae60", "#2980b9", "#e67e22", "#8e44ad", "#16a085")

matplotlib.rcParams.update({"font.size": 10, "svg.hashsalt": "delassus", "axes.edgecolor": INK})


@dataclass(frozen=True)
class Tracking:
    """A robot with a task, the path of its rows, and where it starts."""

    name: str
    tasks: dl.control.Tasks
    path: Any  # of a time, in dnp: position, velocity and acceleration (t,) of the rows
    start: Any
    unit: str

    def position(self, q):
        """Of the task's rows (t,)."""
        (task,) = self.tasks.tasks
        zero = np.zeros(task.targets(self.tasks.model))
        return task.error(self.tasks.model, q, zero)

    def demands(self, time, q, v):
        """ẍ (t,): the path's, and what takes errors off."""
        x, xd, xdd = self.path(time)
        off, slip = self.position(q) - x, dl.control.task_jacobian(self.tasks, q) @ v - xd
        return xdd - 2.0 * RATE * slip - RATE**2 * off

    def torques(self, time, q, v):
        """Generalised forces (nv,) of the controller."""
        found = dl.control.task_inverse_dynamics(self.tasks, q, v, self.demands(time, q, v))
        return self.tasks.robot.B @ found.torque


def eight(center, size):
    """A figure of eight across z, once in two seconds."""

    def path(time):
        w = np.pi
        s, c, s2, c2 = dnp.sin(w * time), dnp.cos(w * time), dnp.sin(2 * w * time), dnp.cos(2 * w * time)
        x = dnp.stack([size * s, 0.5 * size * s2, 0.2 * size * (c - 1.0)]) + center
        xd = w * dnp.stack([size * c, size * c2, -0.2 * size * s])
        xdd = w * w * dnp.stack([-size * s, -2.0 * size * s2, -0.2 * size * c])
        return x, xd, xdd

    return path


def cosine(center, size):
    """A cosine of one second."""

    def path(time):
        w = 2.0 * np.pi
        s, c = dnp.sin(w * time), dnp.cos(w * time)
        return tuple(dnp.stack([x]) for x in (center + size * c, -size * w * s, -size * w * w * c))

    return path


def delta() -> Tracking:
    """Three motors, eighteen joints that are carried along."""
    loop = dl.Mechanism(dl.load("delta"))
    tasks = dl.control.Tasks(
        dl.control.ActuatedMechanism(loop, "arm?_joint"), dl.control.FrameTask("tool", rows="x y z")
    )
    home = loop.posture("home")
    center = dl.control.task_error(tasks, home, np.zeros(3))
    start = dl.control.inverse_kinematics(tasks, home, center + np.array([0.01, -0.01, 0.01])).q
    return Tracking("delta robot, tool", tasks, eight(center, 0.08), start, "m")


def four_bar() -> Tracking:
    """One motor at the crank; the rocker is what is asked for."""
    loop = dl.Mechanism(dl.load("four_bar"))
    tasks = dl.control.Tasks(dl.control.ActuatedMechanism(loop, "crank*"), dl.control.PostureTask("rocker*"))
    home = loop.posture("home")
    return Tracking("four-bar, rocker", tasks, cosine(-2.1, 0.3), home, "rad")  # it can go from -2.63 to -1.57


def simulate(robot: Tracking) -> dl.Trajectory:
    """The motion, from the start at rest."""
    times = np.linspace(0.0, SECONDS, round(100 * SECONDS) + 1)
    return dl.simulate_motion(robot.tasks.mechanism, robot.start, tau=robot.torques, times=times, tolerance=1e-9)


def errors(robot: Tracking, log: dl.Trajectory):
    """Where it is, seen from its path (times, t)."""
    wanted = np.stack([robot.path(t)[0] for t in log.time])
    return np.stack([robot.position(q) for q in log.q]) - wanted


def forces(robot: Tracking, log: dl.Trajectory) -> dl.control.TaskDynamics:
    """Torques and forces of the loops, all times at once."""
    demands = np.stack([robot.demands(t, q, v) for t, q, v in zip(log.time, log.q, log.v, strict=True)])
    return dl.control.task_inverse_dynamics(robot.tasks, log.q, log.v, demands)


def draw(robots, logs, path: Path) -> None:
    """Errors, torques and the forces in the loops over time."""
    figure, axes = plt.subplots(len(robots), 3, figsize=(12.0, 3.2 * len(robots)), layout="constrained", squeeze=False)
    for row, robot, log in zip(axes, robots, logs, strict=True):
        found = forces(robot, log)
        row[0].semilogy(log.time, np.maximum(np.linalg.norm(errors(robot, log), axis=-1), 1e-12), color=INK)
        row[0].set(title=f"{robot.name}: off the path [{robot.unit}]", xlabel="time [s]", ylim=(1e-12, 1.0))
        for k, name in enumerate(robot.tasks.robot.names):
            row[1].plot(log.time, found.torque[:, k], color=COLORS[k], label=name)
        row[1].set(title="torques [N·m]", xlabel="time [s]")
        for k, (name, rows) in enumerate(robot.tasks.mechanism.slices.items()):
            size = np.linalg.norm(found.force[:, rows], axis=-1)
            row[2].plot(log.time, size, color=COLORS[k % len(COLORS)], label=name)
        row[2].set(title="forces that close the loops [N]", xlabel="time [s]")
        for axis in row:
            axis.grid(alpha=0.3)
        row[1].legend(frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def main(makers=(delta, four_bar)) -> None:
    """Simulate, print, draw."""
    robots = [make() for make in makers]
    logs = [simulate(robot) for robot in robots]
    for robot, log in zip(robots, logs, strict=True):
        off = np.linalg.norm(errors(robot, log), axis=-1)
        print(
            f"{robot.name}: {off[0]:.1e} {robot.unit} off the path at first, {off[-1]:.1e} after {SECONDS:g} s; "
            f"loops open by {log.drift.max():.1e} m"
        )
    OUTPUT.mkdir(exist_ok=True)
    draw(robots, logs, OUTPUT / "track_loops.svg")
    print(f"picture: {OUTPUT / 'track_loops.svg'}")


if __name__ == "__main__":
    main()
