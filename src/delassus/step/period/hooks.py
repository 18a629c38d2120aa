"""Functions of a user in a control period: one before the forces of a step, one after its loops are closed.

    before(HookInputs) → Command     the controls, forces on joints, and memory
    after(HookInputs)  → memory      reads the new state: rewards, sensors, terminations

They run once a control period, or once a time step. Memory (n,) is a state of their own, which is carried from period
to period behind the impulses. Behind it are the seed, the stream and the period of the environment, for random numbers.
An environment that is rolled back keeps its memory, so each attempt at a period begins with the same one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.step.actuators.external import JointForces
from delassus.step.scene import Scene
from delassus.step.stages.types import StepInputs, StepState

COUNTERS: Final = 3
"""Numbers behind the memory: seed, stream, period."""


class HookInputs(NamedTuple):
    """What the functions read.

    Attributes:
        scene: The scene, with its full contact set.
        state: Of the beginning of a step for `before`, of its end for `after`.
        inputs: Of the step; for `before`, the controls that the call was given.
        tally: (tallies,) of tracked shapes: of the period for an `after` that runs once a period, else of the last one.
        memory: (n,) memory.
        counters: (3,) seed, stream and period.
        number: () of the time step in its period; zero for functions that run once a period.
    """

    scene: Scene
    state: StepState
    inputs: StepInputs
    tally: Any
    memory: Any
    counters: Any
    number: Any


class Command(NamedTuple):
    """Controls (nu,), forces on joints or None, and memory (n,)."""

    control: Any
    joint_forces: JointForces | None
    memory: Any


class StepHooks(NamedTuple):
    """Functions in a control period; None for none. `every_step` tells whether they run in each time step."""

    before: Callable[[HookInputs], Command] | None
    after: Callable[[HookInputs], Any] | None
    every_step: bool = False


def apply_command(command: Command, inputs: StepInputs, usable: Any) -> tuple[StepInputs, Any]:
    """The inputs of a step with a command, and whether they can be used: `usable`, and no NaN in the command."""
    if np.size(command.control):
        usable = usable & ~np.any(np.isnan(command.control))
    joint = command.joint_forces
    if joint is not None:
        usable = usable & np.isfinite(sum(np.sum(x) for x in joint))
        joint = JointForces(*(np.where(usable, x, 0.0) for x in joint))
    return inputs._replace(control=np.where(usable, command.control, 0.0), joint_forces=joint), usable
