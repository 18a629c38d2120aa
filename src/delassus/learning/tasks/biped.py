"""A biped with closed loops that walks at a commanded speed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import numpy

import delassus.numpy as np
from delassus.learning.environment.task import Evaluation, Moment, Verdict, lower_onto_ground
from delassus.learning.tasks.catalog import register_task
from delassus.learning.tasks.legged import LeggedWalk, body_motion, speeds_ahead
from delassus.model.model import Model
from delassus.step.actuators.servos import position_servos

_SIDES: Final = ("left", "right")
_LEG: Final = numpy.array((-1.0, -1.0, 1.0, 1.0, 1.0, -1.0, 1.0, 1.0))
"""Signs of joint angles under reflection: yaw, roll, thigh, shin, ankle, foot, crank, rod."""
_SERVOS: Final = numpy.array((0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14))
"""Joints with servos: all except shins and rods, which the loops move."""
_JOINTS: Final = numpy.tile(_LEG, 2)
_POLAR, _AXIAL, _COMMAND = ((1.0, -1.0, 1.0), (-1.0, 1.0, -1.0), (1.0, -1.0, -1.0))


@dataclass(frozen=True)
class BipedWalk(LeggedWalk):
    """Walk ahead at a commanded speed, with the same gait on the left and on the right.

    While the right foot swings, observations and actions of the policy are reflected (Abdolhosseini et al., On learning
    symmetric locomotion, 2019). So the policy learns only one half of the gait.
    """

    periods: int = 1000
    memory: ClassVar[Mapping[str, int]] = {"command": 3, "phase": 1, "target": 12, "load": 2, "fall_speed": 2}
    FREQUENCY: ClassVar[float] = 1.25  # of two steps [Hz]
    OFFSETS: ClassVar[tuple[float, ...]] = (0.0, numpy.pi)
    OVERLAP: ClassVar[float] = 0.0
    WEIGHT: ClassVar[float] = 30.0
    CLEARANCE: ClassVar[tuple[float, float]] = (0.06, 0.1)

    def begin(self, now: Moment) -> dict[str, Any]:
        """A start near the home posture, with closed loops: a crank rotates with its knee, its rod opposite to it."""
        legs = [np.concatenate([leg, np.stack([leg[3], -leg[3]])]) for leg in now.draws.uniform(-0.05, 0.05, (2, 6))]
        q = np.concatenate([np.array(self.robot.posture("home")[:7]), np.array(self.stand) + np.concatenate(legs)])
        v = np.concatenate([now.draws.uniform(-0.2, 0.2, 6), np.zeros(16)])
        phase = now.draws.uniform(0.0, 2.0 * np.pi, 1)
        return {"q": lower_onto_ground(now, q), "v": v, "command": self.draw_command(now), "phase": phase}

    def mirror(self, now: Moment, values: Any, signs: Any) -> Any:
        """Values that are reflected while the right foot swings: vectors (3,), or joints of the left and right leg."""
        half = len(values) // 2
        image = values if len(values) == 3 else np.concatenate([values[half:], values[:half]])
        return np.where(np.sin(now["phase"][0]) < 0.0, np.array(signs) * image, values)

    def target(self, now: Moment) -> Any:
        """Target angles (12,) of the servos relative to the home posture [rad]."""
        return self.mirror(now, 0.3 * now.action, _JOINTS[_SERVOS])

    def control(self, now: Moment) -> Any:
        """Target angles of the servos [rad]."""
        return np.array(numpy.array(self.stand)[_SERVOS]) + self.target(now)

    def observe(self, now: Moment) -> Any:
        """Velocity, angular velocity, up direction, command, joints and rates, last target, clock of half a cycle."""
        velocity, gyro, up = body_motion(now, self.trunk)
        vectors = (velocity, _POLAR), (gyro, _AXIAL), (up, _POLAR), (now["command"], _COMMAND)
        joints = (now.q[7:] - np.array(self.stand), _JOINTS), (0.1 * now.v[6:], _JOINTS)
        seen = [self.mirror(now, *one) for one in (*vectors, *joints, (now["target"], _JOINTS[_SERVOS]))]
        return np.concatenate([*seen, np.sin(2.0 * now["phase"]), np.cos(2.0 * now["phase"])])

    def reward(self, now: Moment) -> dict[str, Any]:
        """Terms for following the command, flat feet, a level pelvis, and smooth motion."""
        soles = [body_motion(now, foot)[2] for foot in self.feet]
        joints = np.array((1.0, 1.0, 0.1, 0.0, 0.1, 1.0, 0.1, 0.0) * 2) * (now.q[7:] - np.array(self.stand)) ** 2
        terms = {
            **self.motion_terms(now),
            **self.foot_terms(now),
            "pose": 0.5 * np.exp(-np.sum(joints)),
            "sole": -0.5 * sum(up[0] ** 2 + up[1] ** 2 for up in soles),
            "jerk": -0.1 * np.sum((self.target(now) - now["target"]) ** 2),
        }
        return {name: 0.025 * term for name, term in terms.items()}

    def advance(self, now: Moment) -> dict[str, Any]:
        """Changes of memory, including the target."""
        return {**super().advance(now), "target": self.target(now)}

    def trial(self, items: int) -> dict[str, Any]:
        """Commands of 0.5 m/s."""
        return {"command": numpy.tile((0.5, 0.0, 0.0), (items, 1))}

    def judge(self, trial: Evaluation) -> Verdict:
        """Judge a trial: the goal is no fall and a mean speed error of at most 0.05 m/s."""
        speed, error = speeds_ahead(trial, self.period)
        falls = int(trial.failed.sum())
        words = f"{falls} of {len(speed)} fall, {speed.mean():.2f} m/s, error {error.mean():.3f} m/s"
        return Verdict(words, bool(falls == 0 and error.mean() <= 0.05), bool(falls == 0 and speed.mean() >= 0.3))


@register_task("biped-walk", "biped", "walk ahead at a speed of 0.3 to 0.7 m/s, on two legs with closed loops")
def biped_walk(robot: Model) -> BipedWalk:
    """The task for the bundled biped, whose knees are driven by cranks and rods."""
    names = numpy.array([joint.name for joint in robot.joints[1:]])[_SERVOS]
    servos = position_servos(robot, stiffness=250.0, damping=6.0, joints=names.tolist())
    return BipedWalk(
        robot=replace(robot, actuators=tuple(replace(x, force_range=x.force_range or (-150.0, 150.0)) for x in servos)),
        stand=tuple(robot.posture("home")[7:].tolist()),
        trunk="pelvis",
        feet=tuple(f"{side}_sole" for side in _SIDES),
        shapes=tuple(f"{side}_foot_0" for side in _SIDES),
        radius=0.0,
        height=0.65,
        speeds=(0.3, 0.7),
    )
