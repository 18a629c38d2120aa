"""Quadrupeds that follow velocity commands, with randomized robots, ground and sensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy

import delassus.numpy as np
from delassus.learning.environment.task import Evaluation, Moment, Verdict
from delassus.learning.tasks.catalog import register_task
from delassus.learning.tasks.legged import body_motion
from delassus.learning.tasks.quadruped import QuadrupedWalk, quadruped_parts
from delassus.model.model import Model, ParametricModel
from delassus.simulation.ground import Ground
from delassus.simulation.simulation import Simulation


@dataclass(frozen=True)
class RandomizedQuadruped(QuadrupedWalk):
    """Walk under domain randomization.

    Attributes:
        friction: Smallest and largest friction coefficient of the ground; each environment has its own.
        mass_spread: Largest relative change of masses; each episode draws one for each body.
        gain_spread: Largest relative change of stiffness and damping of servos; each episode draws one for each.
        noise: Scale of the sensors' noise; 1 is 0.1 m/s, 0.1 rad/s, 0.03 of the vertical, 0.01 rad, 1 rad/s.
        push: Velocity that is added to the trunk every five seconds on average [m/s].
    """

    friction: tuple[float, float] = (0.4, 1.0)
    mass_spread: float = 0.15
    gain_spread: float = 0.1
    noise: float = 1.0
    push: float = 0.5

    @property
    def parametric(self) -> ParametricModel:
        """The robot with its masses and servo gains as parameters."""
        return self.robot.parametric("mass", "servo")

    def simulation(self, items: int, seed: int) -> Simulation:
        """A simulation in which only feet touch the ground, whose friction differs between environments."""
        ground = Ground(numpy.random.default_rng([seed, 0xF00]).uniform(*self.friction, items))
        touching = list(self.shapes)
        return Simulation(self.parametric, ground, self.time_step, substeps=self.substeps, touching=touching)

    def begin(self, now: Moment) -> dict[str, Any]:
        """The start of `QuadrupedWalk`, with random masses and gains for this episode."""
        nominal = self.parametric.parameters()
        gains = 2 * len(self.robot.actuators)
        spread = numpy.repeat((self.mass_spread, self.gain_spread), (len(nominal) - gains, gains))
        factor = 1.0 + spread * now.draws.uniform(-1.0, 1.0, len(nominal))
        return {**super().begin(now), "parameters": nominal * factor}

    def observe(self, now: Moment) -> Any:
        """The observation of `QuadrupedWalk` with sensor noise."""
        scale = numpy.repeat((0.1, 0.1, 0.03, 0.01, 0.1, 0.0), (3, 3, 3, 12, 12, 17))
        return super().observe(now) + self.noise * scale * now.draws.normal(1.0, len(scale))

    def advance(self, now: Moment) -> dict[str, Any]:
        """The changes of `QuadrupedWalk`, and random pushes."""
        angle = now.draws.uniform(0.0, 2.0 * np.pi)
        size = np.where(now.draws.chance(self.period / 5.0), self.push, 0.0)
        kick = np.concatenate([size * np.stack([np.cos(angle), np.sin(angle)]), np.zeros(self.robot.nv - 2)])
        return {**super().advance(now), "kick": kick}


@dataclass(frozen=True)
class QuadrupedJoystick(RandomizedQuadruped):
    """Follow commands of forward, lateral and yaw velocity, under domain randomization.

    Attributes:
        commands: Largest forward and lateral velocity [m/s], and yaw rate [rad/s].
    """

    periods: int = 1000
    commands: tuple[float, float, float] = (1.5, 0.8, 1.2)

    ramp: ClassVar[int] = 150
    FREQUENCY: ClassVar[float] = 2.5

    def draw_command(self, now: Moment) -> Any:
        """A random command. Its components are nonzero with probabilities 0.9, 0.25 and 0.5; the range grows with the
        difficulty."""
        used = np.where(now.draws.uniform(0.0, 1.0, 3) < np.array((0.9, 0.25, 0.5)), 1.0, 0.0)
        reach = 0.5 + 0.5 * now.difficulty
        return reach * np.array(self.commands) * used * now.draws.uniform(-1.0, 1.0, 3)

    def track(self, off_speed: Any, off_turn: Any) -> dict[str, Any]:
        """Terms for following the command, with larger weights than for walking and a narrow term for the yaw rate."""
        speed = 1.5 * np.exp(-off_speed / 0.25) + np.exp(-off_speed / 0.04)
        return {"speed": speed, "turn": 0.75 * np.exp(-off_turn / 0.25) + 0.5 * np.exp(-off_turn / 0.05)}

    def measure(self, now: Moment) -> dict[str, Any]:
        """Errors of the velocities [m/s, rad/s]."""
        velocity, gyro, _ = body_motion(now, self.trunk)
        ahead, left = velocity[:2] - now["command"][:2]
        speed = np.sqrt(ahead**2 + left**2)
        return {"speed_error": speed, "ahead": ahead, "left": left, "turn": gyro[2] - now["command"][2]}

    def looks_learnt(self, measures: Mapping[str, float], falls: float) -> bool:
        """Whether robots hardly fall, with small speed errors over the whole range of commands."""
        return falls < 0.02 and measures["speed_error"] < 0.3

    def trial(self, items: int) -> dict[str, Any]:
        """Random commands in their range."""
        draws = numpy.random.default_rng(7).uniform(-1.0, 1.0, (items, 3))
        return {"command": draws * numpy.array(self.commands)}

    def judge(self, trial: Evaluation) -> Verdict:
        """Judge velocity errors, averaged over a cycle of the trot: at most 0.15 m/s and 0.2 rad/s, and no fall."""
        return judge_tracking(trial, round(1.0 / (self.FREQUENCY * self.period)))


def judge_tracking(trial: Evaluation, cycle: int) -> Verdict:
    """Judge a trial: the goal is no fall, and errors of velocities, averaged over cycles of `cycle` periods, of at most
    0.15 m/s and 0.2 rad/s."""
    count, items = len(trial.reward) // cycle * cycle, len(trial.failed)
    errors = (trial.measures[name][-count:].reshape(-1, cycle, items).mean(1) for name in ("ahead", "left", "turn"))
    ahead, left, turn = errors
    speed_error, turn_error = float(numpy.hypot(ahead, left).mean()), float(numpy.abs(turn).mean())
    falls = int(trial.failed.sum())
    words = f"{falls} of {items} fall, errors {speed_error:.3f} m/s, {turn_error:.3f} rad/s"
    reached = falls == 0 and speed_error <= 0.15 and turn_error <= 0.2
    return Verdict(words, reached, falls <= items // 50)


@register_task("quadruped-joystick", "quadruped", "follow velocities of a joystick, on robots and ground that vary")
def quadruped_joystick(robot: Model) -> QuadrupedJoystick:
    """The task for a robot with four feet that are balls."""
    return QuadrupedJoystick(**quadruped_parts(robot))
