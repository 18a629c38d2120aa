"""Functions of a user in a control period: one before the forces of a step, one after its loops are closed.

    before(HookInputs) → Command     the controls, forces on joints, and memory
    after(HookInputs)  → memory      reads the new state: rewards, sensors, terminations

They run once per control period, or once per time step. Memory (n,) is the state of these functions. The impulse array
of a state stores it after the impulses, followed by seed, stream and period of the environment, for random numbers. A
rollback restores the memory, so each attempt at a period starts with the same one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.step.actuators.external import JointForces
from delassus.step.scene import Scene
from delassus.step.stages.types import StepInputs, StepState

COUNTERS: Final = 3
"""The number of elements after the memory: seed, stream, period."""


class HookInputs(NamedTuple):
    """The input of the functions of a user.

    Attributes:
        scene: The scene, with its full contact set.
        state: The state at the beginning of a step for `before`, at its end for `after`.
        inputs: The inputs of the step; for `before`, with the controls of the call.
        tally: (tallies,) of tracked shapes: of this period for an `after` that runs once per period, else of the
            previous one.
        memory: (n,) memory.
        counters: (3,) seed, stream and period.
        number: () the index of the time step in its period; zero for functions that run once per period.
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
    """The functions of a user in a control period, each may be None; with `every_step` they run in each time step."""

    before: Callable[[HookInputs], Command] | None
    after: Callable[[HookInputs], Any] | None
    every_step: bool = False


def apply_command(command: Command, inputs: StepInputs, usable: Any) -> tuple[StepInputs, Any]:
    """The inputs of a step with a command, and whether they are usable: `usable`, and no NaN in the command."""
    if np.size(command.control):
        usable = usable & ~np.any(np.isnan(command.control))
    joint = command.joint_forces
    if joint is not None:
        usable = usable & np.isfinite(sum(np.sum(x) for x in joint))
        joint = JointForces(*(np.where(usable, x, 0.0) for x in joint))
    return inputs._replace(control=np.where(usable, command.control, 0.0), joint_forces=joint), usable
