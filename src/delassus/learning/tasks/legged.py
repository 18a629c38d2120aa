"""Legged robots that walk at a commanded velocity, with a gait that follows a clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy

import delassus.numpy as np
from delassus.learning.environment.task import Evaluation, LearningTask, Moment
from delassus.simulation.ground import Ground
from delassus.simulation.simulation import Simulation


@dataclass(frozen=True)
class LeggedWalk(LearningTask):
    """Walk forward at a commanded speed, with alternating feet.

    Attributes:
        stand: Joint angles of the stance, to which actions are added [rad].
        trunk: The frame whose velocity follows the command.
        feet: Frames of the feet; in stance, their height above the ground is `radius`.
        shapes: Names of the feet's shapes, in the same order.
        radius: Radius of the feet [m].
        height: Height of the trunk below which the robot has fallen [m].
        speeds: Smallest and largest commanded forward speed [m/s].
    """

    stand: tuple[float, ...] = ()
    trunk: str = "trunk"
    feet: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()
    radius: float = 0.02
    height: float = 0.15
    speeds: tuple[float, float] = (0.4, 1.1)

    FREQUENCY: ClassVar[float] = 2.0  # of the gait [Hz]
    OFFSETS: ClassVar[tuple[float, ...]] = ()  # of the feet's clocks [rad]
    OVERLAP: ClassVar[float] = 0.5  # share of the swing in the middle of a change of feet
    WEIGHT: ClassVar[float] = 10.0  # load above which a foot carries [N]
    CLEARANCE: ClassVar[tuple[float, float]] = (0.06, 0.075)  # least and largest height of a swing [m]

    def simulation(self, items: int, seed: int) -> Simulation:
        """A simulation in which only feet touch the ground."""
        return Simulation(self.robot, Ground(0.7), self.time_step, substeps=self.substeps, touching=list(self.shapes))

    def draw_command(self, now: Moment) -> Any:
        """A random command: forward and lateral speed [m/s], and yaw rate [rad/s]."""
        ahead = now.draws.uniform(*self.speeds)
        return np.stack([ahead, 0.0 * ahead, 0.0 * ahead])

    def motion_terms(self, now: Moment) -> dict[str, Any]:
        """Terms of the reward for the trunk: following the command, level orientation, no bouncing or rolling."""
        velocity, gyro, up = body_motion(now, self.trunk)
        return {
            **self.track(np.sum((velocity[:2] - now["command"][:2]) ** 2), (gyro[2] - now["command"][2]) ** 2),
            "tilt": -5.0 * (up[0] ** 2 + up[1] ** 2),
            "bounce": -0.5 * velocity[2] ** 2,
            "roll": -0.05 * (gyro[0] ** 2 + gyro[1] ** 2),
        }

    def foot_terms(self, now: Moment) -> dict[str, Any]:
        """Terms of the reward for the feet: following the clock, soft landing."""
        landed = np.where((now["load"] < 1.0) & (self.loads(now) >= 1.0), now["fall_speed"], 0.0)
        return {"gait": 2.0 * self.gait(now), "landing": -0.25 * np.sum(landed**2)}

    def track(self, off_speed: Any, off_turn: Any) -> dict[str, Any]:
        """Terms for following the command, from squared errors of velocity [m²/s²] and yaw rate [rad²/s²]."""
        speed = np.exp(-off_speed / 0.25) + 0.5 * np.exp(-off_speed / 0.04)
        return {"speed": speed, "turn": 0.5 * np.exp(-off_turn / 0.25)}

    def total(self, terms: Any) -> Any:
        """The sum of the terms, at least zero, so that an early end of the episode gains nothing."""
        return np.maximum(np.sum(terms), 0.0)

    def gait(self, now: Moment) -> Any:
        """A score from 0 to 1: feet swing in turn, and the others carry load without slipping."""
        score = 0.0
        least, most = self.CLEARANCE
        for foot, load, offset in zip(self.feet, self.loads(now), self.OFFSETS, strict=True):
            wave = np.sin(now["phase"][0] + offset)
            swings = np.clip(self.OVERLAP + 2.5 * wave, 0.0, 1.0)
            clearance = now[f"framepos:{foot}"][2] - self.radius
            low, high = np.maximum(least * wave - clearance, 0.0), np.maximum(clearance - most, 0.0)
            swing = np.exp(-load / self.WEIGHT) * np.exp(-(low**2 + high**2) / 0.035**2)
            slip = np.sum(now[f"framelinvel:{foot}"][:2] ** 2)
            stance = (1.0 - np.exp(-load / self.WEIGHT)) * np.exp(-slip / 0.05)
            score = score + (swings * swing + (1.0 - swings) * stance) / len(self.feet)
        return score

    def loads(self, now: Moment) -> Any:
        """Normal forces (feet,) [N]."""
        return np.concatenate([now[f"touch:{shape}"] for shape in self.shapes])

    def fails(self, now: Moment) -> Any:
        """Whether the trunk is tilted by more than 60° or too low."""
        return (body_motion(now, self.trunk)[2][2] < 0.5) | (now[f"framepos:{self.trunk}"][2] < self.height)

    def advance(self, now: Moment) -> dict[str, Any]:
        """Advance the clock; the command changes about every five seconds."""
        phase = (now["phase"] + 2.0 * np.pi * self.FREQUENCY * self.period) % (2.0 * np.pi)
        command = np.where(now.draws.chance(self.period / 5.0), self.draw_command(now), now["command"])
        falling = np.stack([now[f"framelinvel:{foot}"][2] for foot in self.feet])
        return {"phase": phase, "command": command, "load": self.loads(now), "fall_speed": falling}

    def measure(self, now: Moment) -> dict[str, Any]:
        """The error of the speed, and the forward speed [m/s]."""
        velocity = body_motion(now, self.trunk)[0]
        return {"speed_error": np.sqrt(np.sum((velocity[:2] - now["command"][:2]) ** 2)), "speed": velocity[0]}

    def looks_learnt(self, measures: Mapping[str, float], falls: float) -> bool:
        """Whether robots hardly fall, with small speed errors."""
        return falls < 0.05 and measures["speed_error"] < 0.35


def speeds_ahead(trial: Evaluation, period: float) -> tuple[Any, Any]:
    """Mean speeds (items,) in a trial, and their errors (items,) with respect to the commands [m/s]."""
    speed = distance(trial.q[:, :, :2]) / (len(trial.control) * period)
    return speed, numpy.abs(speed - trial.told["command"][:, 0])


def distance(places: Any) -> Any:
    """Lengths (items,) [m] of the paths of points (times, items, 2), sampled at 20 intervals."""
    coarse = places[:: max(1, len(places) // 20)]
    return numpy.linalg.norm(numpy.diff(coarse, axis=0), axis=-1).sum(0)


def body_motion(now: Moment, frame: str) -> tuple[Any, Any, Any]:
    """Linear and angular velocity of a frame, and the up direction, all in its axes."""
    x, y, z, w = now["framequat:" + frame]
    up = np.stack([2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)])
    return now["velocimeter:" + frame], now["gyro:" + frame], up
