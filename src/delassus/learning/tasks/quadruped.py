"""Quadrupeds that trot at a commanded velocity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy

import delassus.numpy as np
from delassus.dynamics.kinematics.kinematics import frame_in_world
from delassus.learning.environment.task import Evaluation, LearningTask, Moment, Verdict, lower_onto_ground
from delassus.learning.errors import LearningError
from delassus.learning.tasks.catalog import register_task
from delassus.model.model import Model
from delassus.model.parts import Frame
from delassus.simulation.ground import Ground
from delassus.simulation.simulation import Simulation
from delassus.step.actuators.servos import position_servos


@dataclass(frozen=True)
class QuadrupedWalk(LearningTask):
    """Trot ahead at a commanded speed.

    Attributes:
        stand: Angles of the joints that actions are added to [rad].
        trunk: The frame whose velocity counts.
        feet: Frames at the centres of the feet: front left, front right, hind left, hind right.
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

    memory: ClassVar[Mapping[str, int]] = {"command": 3, "phase": 1, "load": 4, "fall_speed": 4}

    FREQUENCY: ClassVar[float] = 2.0  # of the trot [Hz]

    def simulation(self, items: int, seed: int) -> Simulation:
        """Feet alone touch the ground."""
        return Simulation(self.robot, Ground(0.7), self.time_step, substeps=self.substeps, touching=list(self.shapes))

    def begin(self, now: Moment) -> dict[str, Any]:
        """Standing, almost at rest, with a command."""
        joints = np.array(self.stand) + now.draws.uniform(-0.1, 0.1, len(self.stand))
        q = np.concatenate([now.q[:7], joints])
        phase = now.draws.uniform(0.0, 2.0 * np.pi, 1)
        v = now.draws.uniform(-0.2, 0.2, self.robot.nv)
        return {"q": lower_onto_ground(now, q), "v": v, "command": self.draw_command(now), "phase": phase}

    def draw_command(self, now: Moment) -> Any:
        """Speeds ahead and to the left [m/s], and of turning [rad/s]."""
        ahead = now.draws.uniform(*self.speeds)
        return np.stack([ahead, 0.0 * ahead, 0.0 * ahead])

    def control(self, now: Moment) -> Any:
        """Angles that the servos are to reach."""
        return np.array(self.stand) + 0.5 * now.action

    def observe(self, now: Moment) -> Any:
        """Velocity, turning, up, joints and their rates, the last action, the command, the clock."""
        velocity, gyro, up = body_motion(now, self.trunk)
        joints, rates = now.q[7:] - np.array(self.stand), 0.1 * now.v[6:]
        clock = np.concatenate([np.sin(now["phase"]), np.cos(now["phase"])])
        return np.concatenate([velocity, gyro, up, joints, rates, now["action"], now["command"], clock])

    def reward(self, now: Moment) -> dict[str, Any]:
        """Follow the command, trot, hold the trunk level, move smoothly."""
        velocity, gyro, up = body_motion(now, self.trunk)
        joints = now.q[7:] - np.array(self.stand)
        off_pose = np.sum(np.array((1.0, 1.0, 0.1) * 4) * joints**2)
        landed = np.where((now["load"] < 1.0) & (self.loads(now) >= 1.0), now["fall_speed"], 0.0)
        terms = {
            **self.track(np.sum((velocity[:2] - now["command"][:2]) ** 2), (gyro[2] - now["command"][2]) ** 2),
            "gait": 2.0 * self.gait(now),
            "pose": 0.5 * np.exp(-off_pose),
            "tilt": -5.0 * (up[0] ** 2 + up[1] ** 2),
            "bounce": -0.5 * velocity[2] ** 2,
            "roll": -0.05 * (gyro[0] ** 2 + gyro[1] ** 2),
            "jerk": -0.01 * np.sum((now.action - now["action"]) ** 2),
            "landing": -0.25 * np.sum(landed**2),
        }
        return {name: 0.025 * term for name, term in terms.items()}

    def track(self, off_speed: Any, off_turn: Any) -> dict[str, Any]:
        """Terms for following the command, of the squared errors of velocity [m²/s²] and turning [rad²/s²]."""
        speed = np.exp(-off_speed / 0.25) + 0.5 * np.exp(-off_speed / 0.04)
        return {"speed": speed, "turn": 0.5 * np.exp(-off_turn / 0.25)}

    def total(self, terms: Any) -> Any:
        """The sum, not below zero: ending early is nothing to wish for."""
        return np.maximum(np.sum(terms), 0.0)

    def gait(self, now: Moment) -> Any:
        """From 0 to 1: diagonal pairs swing in turn to 6 cm, the others carry without slipping."""
        score = 0.0
        for k, (foot, load) in enumerate(zip(self.feet, self.loads(now), strict=True)):
            wave = np.sin(now["phase"][0] + (np.pi if k in (1, 2) else 0.0))
            swings = np.clip(0.5 + 2.5 * wave, 0.0, 1.0)
            clearance = now[f"framepos:{foot}"][2] - self.radius
            low, high = np.maximum(0.06 * wave - clearance, 0.0), np.maximum(clearance - 0.075, 0.0)
            swing = np.exp(-load / 10.0) * np.exp(-(low**2 + high**2) / 0.035**2)
            slip = np.sum(now[f"framelinvel:{foot}"][:2] ** 2)
            stance = (1.0 - np.exp(-load / 10.0)) * np.exp(-slip / 0.05)
            score = score + 0.25 * (swings * swing + (1.0 - swings) * stance)
        return score

    def loads(self, now: Moment) -> Any:
        """(4,) normal forces of the feet [N]."""
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

    def trial(self, items: int) -> dict[str, Any]:
        """Commands from 0.5 to 1 m/s."""
        ahead = numpy.linspace(0.5, 1.0, items)
        return {"command": numpy.stack([ahead, 0.0 * ahead, 0.0 * ahead], -1)}

    def judge(self, trial: Evaluation) -> Verdict:
        """It walks if none falls and all are faster than 0.4 m/s; the goal is an error of 0.05 m/s."""
        speed = distance(trial.q[:, :, :2]) / (len(trial.control) * self.period)
        error = numpy.abs(speed - trial.told["command"][:, 0]).mean()
        walks = not trial.failed.any() and speed.mean() >= 0.4
        words = f"{trial.failed.sum()} of {len(speed)} fall, {speed.mean():.2f} m/s, error {error:.3f} m/s"
        return Verdict(words, bool(walks and error <= 0.05), bool(walks))


def distance(places: Any) -> Any:
    """(items,) how far points (times, items, 2) come [m], along their path as half seconds draw it."""
    coarse = places[:: max(1, len(places) // 20)]
    return numpy.linalg.norm(numpy.diff(coarse, axis=0), axis=-1).sum(0)


def body_motion(now: Moment, frame: str) -> tuple[Any, Any, Any]:
    """Linear and angular velocity of a frame, and the direction upwards, all in its axes."""
    x, y, z, w = now["framequat:" + frame]
    up = np.stack([2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)])
    return now["velocimeter:" + frame], now["gyro:" + frame], up


@register_task("quadruped-walk", "quadruped", "trot ahead at a speed of 0.4 to 1.1 m/s")
def quadruped_walk(robot: Model) -> QuadrupedWalk:
    """The task for a robot with four feet that are balls, found by its posture "home" or its first one."""
    return QuadrupedWalk(**quadruped_parts(robot))


def quadruped_parts(robot: Model) -> dict[str, Any]:
    """Servos, stance, feet and trunk of a robot with four legs of three joints each."""
    if robot.nv != 18 or robot.nq != 19:
        raise LearningError(
            f"{robot.name!r} has {robot.nv} velocities; a quadruped has a free base and four legs of three joints, 18.",
            code="other-system",
        )
    postures = [one.name for one in robot.postures]
    home = robot.posture("home" if "home" in postures or not postures else postures[0])
    balls = {one.name: one for one in robot.geometries if one.shape == "sphere" and one.role == "collision"}
    frames = [Frame(f"center of {name}", ball.joint, ball.placement) for name, ball in balls.items()]
    robot = replace(robot, frame_list=(*robot.frame_list, *frames))
    places = {name: frame_in_world(robot, home, f"center of {name}")[1] for name in balls}
    lowest = sorted(places, key=lambda name: places[name][2])[:4]
    by_front = sorted(lowest, key=lambda name: -places[name][0])
    shapes = [name for pair in (by_front[:2], by_front[2:]) for name in sorted(pair, key=lambda name: -places[name][1])]
    if len(shapes) < 4:
        raise LearningError(
            f"{robot.name!r} has {len(shapes)} balls as shapes that touch; a quadruped has four feet.",
            code="other-system",
        )
    stiffness = 35.0 * robot.mass / 12.0
    servos = position_servos(robot, stiffness=stiffness, damping=stiffness / 70.0)
    return {
        "robot": replace(robot, actuators=servos),
        "stand": tuple(home[7:].tolist()),
        "trunk": next(one.name for one in robot.frame_list if one.joint == 0 and one.role == "link"),
        "feet": tuple(f"center of {name}" for name in shapes),
        "shapes": tuple(shapes),
        "radius": float(balls[shapes[0]].size[0]),
        "height": 0.5 * float(home[2]),
    }
