"""`LearningTask`: a learning task, as functions of one robot at one moment.

A task is a frozen dataclass. Its methods are written in `delassus.numpy` for one robot and are traced into the kernel
at the end of each control period. They compute the reward, termination, memory and next observation, and, at the end of
an episode, the start of the next one. See docs/learning.md for how to write a task.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

import numpy
from numpy.typing import NDArray

import delassus.numpy as np
from delassus.learning.environment.options import PPO
from delassus.learning.errors import LearningError
from delassus.model.model import Model
from delassus.simulation.ground import Ground
from delassus.simulation.sensors.snapshot import Snapshot
from delassus.simulation.simulation import Simulation

Floats = NDArray[numpy.float64]


_METHODS: Final = ("begin", "control", "observe", "reward", "fails")
"""What a task has to define."""


@dataclass(frozen=True)
class Moment(Snapshot):
    """One robot at the end of a control period, the argument of the functions of a task.

    Its memory includes `action`, the previous action, and `age`, the number of periods since the start.

    Attributes:
        action: (actions,) action of the policy in this period; zero before the first period.
        difficulty: Difficulty of the curriculum, from 0 to 1.

    >>> class Still(dl.learning.LearningTask):
    ...     def observe(self, now):
    ...         return dl.numpy.concatenate([now.q, now.v])
    >>> Still.observe.__name__
    'observe'
    """

    action: Any
    difficulty: Any


class Evaluation(NamedTuple):
    """Trajectories of robots that follow a policy.

    Attributes:
        q, v: (periods + 1, items, …) configurations and velocities.
        control: (periods, items, nu) controls of the actuators.
        reward: (periods, items) rewards.
        failed: (items,) whether the robot failed at any time.
        measures: Measures by name, each (periods, items).
        told: Fixed values of memory, such as commands, by name, each (items, n).

    >>> envs = dl.learning.Environments(dl.learning.find_task("quadruped-walk"), items=2)
    >>> trial = dl.learning.evaluate(dl.learning.bundled_policy("quadruped-walk"), envs, periods=3)
    >>> trial.reward.shape
    (3, 2)
    """

    q: Floats
    v: Floats
    control: Floats
    reward: Floats
    failed: NDArray[numpy.bool_]
    measures: dict[str, Floats]
    told: Mapping[str, Any]


class Verdict(NamedTuple):
    """The result of a trial: a summary, whether the goal is reached, and whether an intermediate goal is reached.

    >>> dl.learning.Verdict("none of 64 robots falls", reached=True, halfway=True).reached
    True
    """

    words: str
    reached: bool
    halfway: bool = False


@dataclass(frozen=True)
class LearningTask:
    """A learning task of a robot.

    Attributes:
        robot: The robot with its actuators.
        time_step: Length of a time step [s].
        substeps: Number of time steps in a control period.
        periods: Largest number of control periods of an episode, which ends then if the robot has not failed before.

    >>> task = dl.learning.find_task("cart-pole")
    >>> task.period, task.actions
    (0.02, 1)
    """

    robot: Model
    time_step: float = 4e-3
    substeps: int = 5
    periods: int = 500

    learning: ClassVar[PPO] = PPO()
    """Default options of the learner for this task."""

    ramp: ClassVar[int] = 0
    """Number of iterations in which the difficulty of the curriculum grows from 0 to 1; 0 for difficulty 1 from the
    start."""

    memory: ClassVar[Mapping[str, int]] = {}
    """The memory of the task, kept from period to period: names and sizes of arrays."""

    @property
    def period(self) -> float:
        """Length of a control period [s]."""
        return self.time_step * self.substeps

    @property
    def actions(self) -> int:
        """Number of values of an action."""
        return len(self.robot.actuators)

    def simulation(self, items: int, seed: int) -> Simulation:
        """The simulation of the robots; friction of the ground may differ between environments."""
        return Simulation(self.robot, Ground(), self.time_step, substeps=self.substeps)

    def begin(self, now: Moment) -> dict[str, Any]:
        """The start of an episode: q (nq,); where they are not zero, v (nv,) and memory by name; `parameters`."""
        raise _missing_method(self, "begin")

    def control(self, now: Moment) -> Any:
        """Controls of the actuators (nu,) for an action, at the beginning of a period."""
        raise _missing_method(self, "control")

    def observe(self, now: Moment) -> Any:
        """The observation of the policy (observations,)."""
        raise _missing_method(self, "observe")

    def reward(self, now: Moment) -> dict[str, Any]:
        """Terms of the reward by name, for a period; their sum is what counts."""
        raise _missing_method(self, "reward")

    def total(self, terms: Any) -> Any:
        """The reward of a period from its terms (terms,), by default their sum."""
        return np.sum(terms)

    def fails(self, now: Moment) -> Any:
        """Whether the episode ends here, with nothing to gain any more."""
        raise _missing_method(self, "fails")

    def advance(self, now: Moment) -> dict[str, Any]:
        """Changes for the next period: memory by name, and "kick" (nv,), which is added to the velocity."""
        return {}

    def measure(self, now: Moment) -> dict[str, Any]:
        """Measures of progress by name, such as the error of the speed, for reports."""
        return {}

    def looks_learnt(self, measures: Mapping[str, float], falls: float) -> bool:
        """Whether to run a trial, from the mean measures of an iteration and the failures per second."""
        return falls < 0.02

    def trial(self, items: int) -> dict[str, Any]:
        """Values of the memory during an evaluation, by name: arrays (items, n)."""
        return {}

    def judge(self, trial: Evaluation) -> Verdict:
        """Judge an evaluation."""
        return Verdict(f"{trial.failed.mean():.0%} fail", not trial.failed.any())


def lower_onto_ground(now: Moment, q: Any, clearance: float = 1e-3) -> Any:
    """A configuration of a robot with a free base, moved straight up or down until it almost touches the ground.

    >>> class Lowered(dl.learning.LearningTask):
    ...     def begin(self, now):
    ...         return {"q": dl.learning.lower_onto_ground(now, self.robot.posture("home"))}
    >>> Lowered.begin.__name__
    'begin'
    """
    from delassus.step.stages.collide import find_candidates
    from delassus.step.stages.kinematics import compute_kinematics

    scene = now.readout.scene
    gaps = find_candidates(scene, compute_kinematics(scene, q), now.readout.ground).gap
    height = q[2] - np.min(gaps) + clearance
    return np.concatenate([q[:2], np.stack([height]), q[3:]])


def _missing_method(task: LearningTask, name: str) -> LearningError:
    """The error of a task that lacks a method."""
    return LearningError(
        f"the task {type(task).__name__} has no method {name}(self, now); a task defines "
        f"{', '.join(_METHODS[:-1])} and {_METHODS[-1]}.",
        code="missing-argument",
    )
