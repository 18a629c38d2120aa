"""Whether learned gaits exploit the simulation: finer steps, contacts of all shapes, flags, and mechanical power.

python -m benchmarks.learned_gait [run/policy.npz or quadruped-walk] [go2.xml]
"""

import sys
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import delassus as dl
from delassus.learning import Environments, LearningTask
from delassus.learning.results.session import load_run
from delassus.simulation import Ground, Simulation
from delassus.step.flags import Mark

ITEMS = 16
SECONDS = 10.0
STEPS = (4e-3, 1e-3, 0.25e-3)
GRAVITY = 9.81


def with_all_contacts(task):
    """The task with all shapes of the robot in contact with the ground and with each other."""

    @dataclass(frozen=True)
    class WholeBody(type(task)):
        def simulation(self, items, seed):
            return Simulation(self.robot, Ground(0.7), self.time_step, substeps=self.substeps)

    return WholeBody(**vars(task))


def measure(task: LearningTask, policy, label):
    """Print speeds, falls, flags and the cost of transport of robots that follow a policy."""
    envs = Environments(task, ITEMS, 1)
    values = task.trial(ITEMS)
    hold = envs.hold(**values)
    state = envs.start(hold=hold)
    periods, falls, flags, work = round(SECONDS / task.period), 0, 0, np.zeros(ITEMS)
    places, joints = [state.simulation.q[:, :2]], _driven(task)
    for _ in range(periods):
        action = policy(state.observation)
        control = envs.control(state, action)
        state, outcome = envs.step(state, action, hold=hold)
        robots = state.simulation
        falls += int(outcome.terminated.sum())
        flags += int(np.count_nonzero(robots.status & int(Mark.UNSOLVED | Mark.MANY_CONTACTS | Mark.TOO_LONG)))
        stiffness, damping, most, q, v = joints
        force = np.clip(stiffness * (control - robots.q[:, q]) - damping * robots.v[:, v], -most, most)
        work += np.abs(force * robots.v[:, v]).sum(-1) * task.period
        places.append(robots.q[:, :2])
    travel = np.linalg.norm(np.diff(np.array(places)[:: round(0.5 / task.period)], axis=0), axis=-1).sum(0)
    speed, told = travel / SECONDS, values["command"][:, 0]
    cost = (work / (task.robot.mass * GRAVITY * travel)).mean()
    print(
        f"{label:34}  {speed.mean():9.3f}  {np.abs(speed - told).mean():9.3f}  {falls:5d}  {flags:7d}  {cost:17.2f}",
        flush=True,
    )


def _driven(task):
    """Gains, largest forces, and places of coordinates and velocities, of all servos."""
    servos, robot = task.robot.actuators, task.robot
    names = [joint.name for joint in robot.joints]
    places = np.array([names.index(one.target) - 1 for one in servos])
    values = [(one.gain[0], -one.bias[2], one.force_range[1]) for one in servos]
    return (*np.array(values).T, 7 + places, 6 + places)


def main():
    run, robot = [*sys.argv[1:], None, None][:2]
    warnings.simplefilter("ignore", dl.DelassusWarning)
    task, policy = load_run(Path(run or "quadruped-walk"), robot)
    heads = ("", "speed", "error", "falls", "flagged", "cost of transport")
    print("{:34}  {:>9}  {:>9}  {:>5}  {:>7}  {:>17}".format(*heads))
    for h in STEPS:
        measure(replace(task, time_step=h, substeps=round(task.period / h)), policy, f"steps of {1e3 * h:g} ms")
    measure(with_all_contacts(task), policy, "contacts of all shapes")


if __name__ == "__main__":
    main()
