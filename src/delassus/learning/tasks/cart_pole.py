"""A pole balanced on a cart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy

import delassus.numpy as np
from delassus.learning.environment.options import PPO, Architecture
from delassus.learning.environment.task import Evaluation, LearningTask, Moment, Verdict
from delassus.learning.tasks.catalog import register_task
from delassus.model.model import Model
from delassus.simulation.ground import Ground
from delassus.simulation.simulation import Simulation
from delassus.step.actuators.servos import motors


@dataclass(frozen=True)
class CartPole(LearningTask):
    """Balance a pole that starts at an angle of up to `spread` from upright.

    Attributes:
        force: Force on the cart for an action of 1 [N].
        spread: Largest initial angle of the pole from upright [rad].
        upright: Joint angle of the upright pole [rad].
    """

    force: float = 20.0
    spread: float = 0.3
    upright: float = 0.0

    learning: ClassVar[PPO] = PPO(items=256, networks=Architecture((32, 32), (32, 32)))

    def simulation(self, items: int, seed: int) -> Simulation:
        """A simulation without ground contacts, which would support the pole."""
        return Simulation(self.robot, Ground(), self.time_step, substeps=self.substeps, touching=[])

    def begin(self, now: Moment) -> dict[str, Any]:
        """A start near upright, with small velocities."""
        angle = self.upright + now.draws.uniform(-self.spread, self.spread)
        return {"q": np.stack([now.draws.uniform(-0.2, 0.2), angle]), "v": now.draws.uniform(-0.1, 0.1, 2)}

    def control(self, now: Moment) -> Any:
        """The force on the cart, and none on the pole."""
        return np.stack([self.force * np.clip(now.action[0], -1.0, 1.0)])

    def observe(self, now: Moment) -> Any:
        """Position of the cart, direction of the pole, velocities."""
        angle = now.q[1] - self.upright
        return np.concatenate([np.stack([now.q[0], np.sin(angle), np.cos(angle)]), 0.2 * now.v])

    def reward(self, now: Moment) -> dict[str, Any]:
        """Terms for an upright pole, a centered cart, and small velocities."""
        angle = now.q[1] - self.upright
        return {
            "upright": 0.1 * np.cos(angle),
            "middle": -0.02 * now.q[0] ** 2,
            "effort": -0.002 * now.action[0] ** 2,
        }

    def fails(self, now: Moment) -> Any:
        """Whether the pole has fallen or the cart is too far from the center."""
        return (np.cos(now.q[1] - self.upright) < 0.2) | (np.abs(now.q[0]) > 2.0)

    def measure(self, now: Moment) -> dict[str, Any]:
        """The deviation of the pole from upright, |sin| of its angle."""
        return {"lean": np.abs(np.sin(now.q[1] - self.upright))}

    def looks_learnt(self, measures: Mapping[str, float], falls: float) -> bool:
        """Whether poles hardly fall."""
        return falls < 0.02

    def judge(self, trial: Evaluation) -> Verdict:
        """Judge a trial: the goal is no fall and a mean deviation below 0.02 rad at the end."""
        lean = float(numpy.abs(trial.measures["lean"][-50:]).mean())
        reached = bool(not trial.failed.any() and lean < 0.02)
        return Verdict(f"{trial.failed.sum()} of {len(trial.failed)} fall, {lean:.3f} rad", reached, reached)


@register_task("cart-pole", "cart_pole", "balance a pole on a cart")
def cart_pole(robot: Model) -> CartPole:
    """The task for a cart and a pole."""
    return CartPole(replace(robot, actuators=motors(robot)[:1]), time_step=5e-3, substeps=4, upright=0.0)
