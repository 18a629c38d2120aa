"""Robots on legs that walk at a commanded velocity: what gaits that follow a clock have in common."""

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
    """Walk ahead at a commanded speed, feet in turn.

    Attributes:
        stand: Angles of the joints that actions are added to [rad].
        trunk: The frame whose velocity counts.
        feet: Frames of the feet, whose height above the ground is `radius` while they stand.
        shapes: Names of the feet's shapes, in the same order.
        radius: Of the feet [m].
        height: Of the trunk, below which the robot has fallen [m].
        speeds: Least and largest speed ahead that is commanded [m/s].
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
        """Feet alone touch the ground."""
        return Simulation(self.robot, Ground(0.7), self.time_step, substeps=self.substeps, touching=list(self.shapes))

    def draw_command(self, now: Moment) -> Any:
        """Speeds ahead and to the left [m/s], and of turning [rad/s]."""
        ahead = now.draws.uniform(*self.speeds)
        return np.stack([ahead, 0.0 * ahead, 0.0 * ahead])

    def motion_terms(self, now: Moment) -> dict[str, Any]:
        """Terms of the reward for the trunk: follow the command, hold level, do not bounce or roll."""
        velocity, gyro, up = body_motion(now, self.trunk)
        return {
            **self.track(np.sum((velocity[:2] - now["command"][:2]) ** 2), (gyro[2] - now["command"][2]) ** 2),
            "tilt": -5.0 * (up[0] ** 2 + up[1] ** 2),
            "bounce": -0.5 * velocity[2] ** 2,
            "roll": -0.05 * (gyro[0] ** 2 + gyro[1] ** 2),
        }

    def foot_terms(self, now: Moment) -> dict[str, Any]:
        """Terms of the reward for the feet: follow the clock, land softly."""
        landed = np.where((now["load"] < 1.0) & (self.loads(now) >= 1.0), now["fall_speed"], 0.0)
        return {"gait": 2.0 * self.gait(now), "landing": -0.25 * np.sum(landed**2)}

    def track(self, off_speed: Any, off_turn: Any) -> dict[str, Any]:
        """Terms for following the command, of the squared errors of velocity [m²/s²] and turning [rad²/s²]."""
        speed = np.exp(-off_speed / 0.25) + 0.5 * np.exp(-off_speed / 0.04)
        return {"speed": speed, "turn": 0.5 * np.exp(-off_turn / 0.25)}

    def total(self, terms: Any) -> Any:
        """The sum, not below zero: ending early is nothing to wish for."""
        return np.maximum(np.sum(terms), 0.0)

    def gait(self, now: Moment) -> Any:
        """From 0 to 1: feet swing in turn, the others carry without slipping."""
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
        """(feet,) normal forces [N]."""
        return np.concatenate([now[f"touch:{shape}"] for shape in self.shapes])

    def fails(self, now: Moment) -> Any:
        """Tilted by more than 60°, or too low."""
        return (body_motion(now, self.trunk)[2][2] < 0.5) | (now[f"framepos:{self.trunk}"][2] < self.height)

    def advance(self, now: Moment) -> dict[str, Any]:
        """Advance the clock; the command changes about every five seconds."""
        phase = (now["phase"] + 2.0 * np.pi * self.FREQUENCY * self.period) % (2.0 * np.pi)
        command = np.where(now.draws.chance(self.period / 5.0), self.draw_command(now), now["command"])
        falling = np.stack([now[f"framelinvel:{foot}"][2] for foot in self.feet])
        return {"phase": phase, "command": command, "load": self.loads(now), "fall_speed": falling}

    def measure(self, now: Moment) -> dict[str, Any]:
        """How far the speed is from the command [m/s]."""
        velocity = body_motion(now, self.trunk)[0]
        return {"speed_error": np.sqrt(np.sum((velocity[:2] - now["command"][:2]) ** 2)), "speed": velocity[0]}

    def looks_learnt(self, measures: Mapping[str, float], falls: float) -> bool:
        """It hardly falls, and hardly lags behind."""
        return falls < 0.05 and measures["speed_error"] < 0.35


def speeds_ahead(trial: Evaluation, period: float) -> tuple[Any, Any]:
    """(items,) mean speeds in a trial, and how far they are from the commands [m/s]."""
    speed = distance(trial.q[:, :, :2]) / (len(trial.control) * period)
    return speed, numpy.abs(speed - trial.told["command"][:, 0])


def distance(places: Any) -> Any:
    """(items,) how far points (times, items, 2) come [m], along their path as half seconds draw it."""
    coarse = places[:: max(1, len(places) // 20)]
    return numpy.linalg.norm(numpy.diff(coarse, axis=0), axis=-1).sum(0)


def body_motion(now: Moment, frame: str) -> tuple[Any, Any, Any]:
    """Linear and angular velocity of a frame, and the direction upwards, all in its axes."""
    x, y, z, w = now["framequat:" + frame]
    up = np.stack([2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)])
    return now["velocimeter:" + frame], now["gyro:" + frame], up
