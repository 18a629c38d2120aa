"""What a simulation is of: a robot, the ground, the scene that they are compiled into, and the steps of time."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from delassus.common.frozen import Frozen
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.contact.solvers.registry import find_solver
from delassus.contact.systems.scaled import CAPABILITIES as COMPILED
from delassus.errors import short
from delassus.model.model import Model, ParametricModel
from delassus.model.of_model import Keyframe
from delassus.simulation.checks import SimulationError
from delassus.simulation.ground import Ground
from delassus.simulation.starting import between_robots, first_keyframe
from delassus.step.articulated.qualification import ARTICULATED, prefers_recursion, reason_against
from delassus.step.bodies.choice import SWEEPS, choose_loops, reason_against_loops, with_loops
from delassus.step.scene import ParametricScene, Scene
from delassus.step.stages.reduced import reduced_scene

PRIMAL: Final = "primal"
"""The name of Newton's method on velocities, that of MuJoCo's law of contact."""


MORE_SLOTS: Final = 8
"""Contacts beyond those of the rigid law: a redundant contact that is left out makes a soft robot softer."""


def refuse_restitution(ground: Ground) -> None:
    """Refuse coefficients of restitution, which MuJoCo's law does not have."""
    if np.any(ground.restitution):
        raise SimulationError(
            f'law="mujoco" has no coefficient of restitution, and the ground has {short(repr(ground.restitution))}: '
            'how contacts bounce is said by solref, such as solref="-10000 -10"; leave restitution out, or choose '
            'law="rigid".',
            code="conflicting-arguments",
        )


def choose_step(scene: Scene, method: Any, slots: int) -> Scene:
    """The scene with the method of its steps: loops over bodies and contacts where there are many free bodies, else one
    with so many slots for contacts, unless their number is given."""
    if method == SWEEPS and not scene.is_soft:
        reason = reason_against_loops(scene)
        if reason is not None:
            raise SimulationError(
                f'the method "{SWEEPS}" does not solve this scene: {reason}. Leave it out, or choose "auto".',
                code="not-supported",
            )
        return with_loops(scene)
    if scene.is_soft:
        if method not in ("auto", PRIMAL):
            raise SimulationError(
                f'the method {method!r} does not solve law="mujoco": leave it out, or choose "auto" or "{PRIMAL}".',
                code="not-supported",
            )
        return replace(scene, max_contacts=slots) if scene.max_contacts is None else scene
    looped = choose_loops(scene) if method == "auto" else scene
    if looped.many_bodies is not None:
        return looped
    scene = replace(scene, max_contacts=slots) if scene.max_contacts is None else scene
    return replace(scene, method=step_method(scene, method))


def step_method(scene: Scene, method: Any) -> str:
    """The method of a scene for the one that a user has chosen; see `StepSolver`."""
    if method == "dual" or (method == "auto" and not prefers_recursion(scene)):
        return "auto"
    if method == "auto":
        return ARTICULATED
    if method != ARTICULATED:
        return find_solver(method, COMPILED).name
    reason = reason_against(scene)
    if reason is not None:
        raise SimulationError(
            f'the method "{ARTICULATED}" does not solve this robot: {reason}. Leave it out, or choose "auto".',
            code="not-supported",
        )
    return ARTICULATED


class Setup(Frozen):
    """The parts of a simulation that its runs, controls and logs read.

    Attributes:
        mechanism: The robot and its constraints.
        ground: What it stands on.
        time_step: Of one step of time [s].
        tolerance: Of the contact solve.
        scene: All that is known when the step is compiled.
    """

    mechanism: Mechanism
    ground: Ground
    time_step: float
    tolerance: float
    scene: Scene

    @cached_property
    def reduced_scene(self) -> Scene:
        """The scene with the reduced contact set, with which steps are tried first."""
        if self.plain_scene is self.scene:
            return reduced_scene(self.scene)
        return replace(self.scene, reduced=reduced_scene(self.plain_scene).reduced)

    @cached_property
    def plain_scene(self) -> Scene:
        """The scene with the robot's own numbers where parameters stand: what starts are checked with."""
        scene = self.scene
        return scene.with_parameters(scene.parameters()) if isinstance(scene, ParametricScene) else scene

    @cached_property
    def starting_scene(self) -> Scene:
        """The scene with which starts are moved out of the ground and of each other."""
        return between_robots(self.plain_scene)

    @property
    def parametric(self) -> ParametricModel | None:
        """The robot with its parameters; None if it has none."""
        part: ParametricModel | None = getattr(self.mechanism, "parametric", None)
        return part

    @property
    def nparameters(self) -> int:
        """The number of parameters that each item has of its own."""
        return 0 if self.parametric is None else self.parametric.nparameters

    def pushed_scene(self, scene: Scene, frames: tuple[str, ...]) -> Scene:
        """A scene of this simulation with wrenches on frames."""
        return self._variant(scene, pushed=frames) if frames else scene

    def fallback(self, scene: Scene) -> Scene:
        """The scene with the method for steps that its own one has left unsolved."""
        return scene if scene.fallback is None else self._variant(scene, method=scene.fallback)

    def _variant(self, scene: Scene, **change: Any) -> Scene:
        """A scene with one field changed; always the same object, by which its kernels are looked up."""
        key = (id(scene), *change.items())
        if key not in self._variants:
            self._variants[key] = scene, replace(scene, **change)
        return self._variants[key][1]

    @cached_property
    def compiled(self) -> dict[tuple[Any, ...], Any]:
        """Which kernels are compiled for runs, with these, so that their identities stay theirs."""
        return {}

    @cached_property
    def _variants(self) -> dict[tuple[Any, ...], tuple[Scene, Scene]]:
        return {}

    @property
    def model(self) -> Model:
        """The model of the robot."""
        model: Model = self.scene.model
        return model

    @cached_property
    def keyframe(self) -> Keyframe:
        """Where runs start unless they are told: the first keyframe of the model's file, else its first posture."""
        return first_keyframe(self.model)

    @property
    def nu(self) -> int:
        """The number of controls: of actuators, or of velocities of joints without a free base."""
        return self.scene.nu

    @property
    def period(self) -> float:
        """Of the controls [s]."""
        return self.time_step * self.scene.substeps

    @property
    def candidates(self) -> tuple[str, ...]:
        """Of each candidate for a contact, the name of its shape."""
        return tuple(name for _, _, name in self.scene.candidate_shapes)
