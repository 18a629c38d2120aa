"""Quadrupeds that trot at a commanded velocity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy

import delassus.numpy as np
from delassus.dynamics.kinematics.kinematics import frame_in_world
from delassus.learning.environment.task import Evaluation, Moment, Verdict, lower_onto_ground
from delassus.learning.errors import LearningError
from delassus.learning.tasks.catalog import register_task
from delassus.learning.tasks.legged import LeggedWalk, body_motion, speeds_ahead
from delassus.model.model import Model
from delassus.model.parts import Frame
from delassus.step.actuators.servos import position_servos


@dataclass(frozen=True)
class QuadrupedWalk(LeggedWalk):
    """Trot forward at a commanded speed; the order of `feet` is front left, front right, hind left, hind right."""

    memory: ClassVar[Mapping[str, int]] = {"command": 3, "phase": 1, "load": 4, "fall_speed": 4}
    OFFSETS: ClassVar[tuple[float, ...]] = (0.0, np.pi, np.pi, 0.0)  # diagonal pairs swing in turn

    def begin(self, now: Moment) -> dict[str, Any]:
        """A start in stance, with small velocities and a random command."""
        joints = np.array(self.stand) + now.draws.uniform(-0.1, 0.1, len(self.stand))
        q = np.concatenate([now.q[:7], joints])
        phase = now.draws.uniform(0.0, 2.0 * np.pi, 1)
        v = now.draws.uniform(-0.2, 0.2, self.robot.nv)
        return {"q": lower_onto_ground(now, q), "v": v, "command": self.draw_command(now), "phase": phase}

    def control(self, now: Moment) -> Any:
        """Target angles of the servos [rad]."""
        return np.array(self.stand) + 0.5 * now.action

    def observe(self, now: Moment) -> Any:
        """Velocity, angular velocity, up direction, joints and rates, last action, command, clock."""
        velocity, gyro, up = body_motion(now, self.trunk)
        joints, rates = now.q[7:] - np.array(self.stand), 0.1 * now.v[6:]
        clock = np.concatenate([np.sin(now["phase"]), np.cos(now["phase"])])
        return np.concatenate([velocity, gyro, up, joints, rates, now["action"], now["command"], clock])

    def reward(self, now: Moment) -> dict[str, Any]:
        """Terms for following the command, the trot, a level trunk, and smooth motion."""
        joints = now.q[7:] - np.array(self.stand)
        terms = {
            **self.motion_terms(now),
            **self.foot_terms(now),
            "pose": 0.5 * np.exp(-np.sum(np.array((1.0, 1.0, 0.1) * 4) * joints**2)),
            "jerk": -0.01 * np.sum((now.action - now["action"]) ** 2),
        }
        return {name: 0.025 * term for name, term in terms.items()}

    def trial(self, items: int) -> dict[str, Any]:
        """Commands from 0.5 to 1 m/s."""
        ahead = numpy.linspace(0.5, 1.0, items)
        return {"command": numpy.stack([ahead, 0.0 * ahead, 0.0 * ahead], -1)}

    def judge(self, trial: Evaluation) -> Verdict:
        """Judge a trial: robots walk if none falls and the mean speed is at least 0.4 m/s; the goal is a mean error of
        at most 0.05 m/s."""
        speed, error = speeds_ahead(trial, self.period)
        walks = not trial.failed.any() and speed.mean() >= 0.4
        words = f"{trial.failed.sum()} of {len(speed)} fall, {speed.mean():.2f} m/s, error {error.mean():.3f} m/s"
        return Verdict(words, bool(walks and error.mean() <= 0.05), bool(walks))


@register_task("quadruped-walk", "quadruped", "trot ahead at a speed of 0.4 to 1.1 m/s")
def quadruped_walk(robot: Model) -> QuadrupedWalk:
    """The task for a robot with four feet that are balls, found by its posture "home" or its first one."""
    return QuadrupedWalk(**quadruped_parts(robot))


def quadruped_parts(robot: Model) -> dict[str, Any]:
    """Arguments of `QuadrupedWalk` for a robot with four legs of three joints: servos, stance, feet and trunk."""
    if robot.nv != 18 or robot.nq != 19:
        raise LearningError(
            f"{robot.name!r} has {robot.nv} velocities; a quadruped must have 18, of a free base and four legs with "
            "three joints.",
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
            f"{robot.name!r} has {len(shapes)} collision shapes that are balls; a quadruped must have four, its feet.",
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
