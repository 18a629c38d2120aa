"""`LearningTask`: a learning task, as functions of one robot at one moment.

A task is a frozen dataclass. Its methods are written in `delassus.numpy` for one robot, and are traced into the kernel
that ends each control period: reward, termination, the task's own memory, the next observation, and, for robots whose
episode ends, the start of the next one. See docs/learning.md for how to write one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy
from numpy.typing import NDArray

import delassus.numpy as np
from delassus.learning.environment.options import PPO
from delassus.model.model import Model
from delassus.simulation.ground import Ground
from delassus.simulation.sensors.snapshot import Snapshot
from delassus.simulation.simulation import Simulation

Floats = NDArray[numpy.float64]


@dataclass(frozen=True)
class Moment(Snapshot):
    """One robot at the end of a control period, as the functions of a task see it.

    Among its memory are `action`, the one before, and `age`, periods since the start.

    Attributes:
        action: (actions,) of the policy in this period; before the first one, zero.
        difficulty: From 0 to 1: how far a curriculum has come.

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
        q, v: (periods + 1, items, …) their motion.
        control: (periods, items, nu).
        reward: (periods, items).
        failed: (items,) truth values: whether it failed at any time.
        measures: By name, (periods, items).
        told: What they were told, by the names of memory, (items, n) each.

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
    """A trial in words, whether the goal is reached, and whether an earlier one is (it walks, if not yet precisely).

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
        robot: With its actuators.
        time_step: Of one step of time [s].
        substeps: Steps of time in a control period.
        periods: Control periods of an episode, which ends by time-out if the robot has not failed before.

    >>> task = dl.learning.find_task("cart-pole")
    >>> task.period, task.actions
    (0.02, 1)
    """

    robot: Model
    time_step: float = 4e-3
    substeps: int = 5
    periods: int = 500

    learning: ClassVar[PPO] = PPO()
    """Options that the task is learnt well with."""

    ramp: ClassVar[int] = 0
    """Iterations in which the difficulty of a curriculum grows from 0 to 1; none for 1 throughout."""

    memory: ClassVar[Mapping[str, int]] = {}
    """The memory of the task, kept from period to period: names and sizes of arrays."""

    @property
    def period(self) -> float:
        """Of control [s]."""
        return self.time_step * self.substeps

    @property
    def actions(self) -> int:
        """Numbers that the policy gives."""
        return len(self.robot.actuators)

    def simulation(self, items: int, seed: int) -> Simulation:
        """The robots on their ground; items may differ by the friction that they draw here."""
        return Simulation(self.robot, Ground(), self.time_step, substeps=self.substeps)

    def begin(self, now: Moment) -> dict[str, Any]:
        """The start of an episode: q (nq,); where they are not zero, v (nv,) and memory by name; `parameters`."""
        raise NotImplementedError

    def control(self, now: Moment) -> Any:
        """Controls of the actuators (nu,) for an action, at the beginning of a period."""
        raise NotImplementedError

    def observe(self, now: Moment) -> Any:
        """The observation of the policy (observations,)."""
        raise NotImplementedError

    def reward(self, now: Moment) -> dict[str, Any]:
        """Terms of the reward by name, for a period; their sum is what counts."""
        raise NotImplementedError

    def total(self, terms: Any) -> Any:
        """The reward of a period, of its terms (terms,)."""
        return np.sum(terms)

    def fails(self, now: Moment) -> Any:
        """Whether the episode ends here, with nothing to gain any more."""
        raise NotImplementedError

    def advance(self, now: Moment) -> dict[str, Any]:
        """Changes for the next period: memory by name, and `kick` (nv,), which is added to the velocity."""
        return {}

    def measure(self, now: Moment) -> dict[str, Any]:
        """What progress is reported by, such as the error of the speed, by name."""
        return {}

    def looks_learnt(self, measures: Mapping[str, float], falls: float) -> bool:
        """Whether a trial is worth while: by the mean measures of an iteration, and failures per second."""
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
