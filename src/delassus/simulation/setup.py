"""`Setup`: the robot, ground, compiled scene and time step of a simulation, and the choice of its step method."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, Final, Self
from weakref import WeakKeyDictionary

import numpy as np

from delassus.common.frozen import Frozen
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.contact.solvers.registry import find_solver
from delassus.contact.systems.scaled import CAPABILITIES as COMPILED
from delassus.errors import short, warn
from delassus.model.description import Keyframe
from delassus.model.model import Model, ParametricModel
from delassus.simulation.checks import SimulationError
from delassus.simulation.ground import Ground
from delassus.simulation.initial_states import between_robots, first_keyframe
from delassus.simulation.options import StepSolver
from delassus.step.articulated.qualification import prefers_recursion, reason_against
from delassus.step.bodies.choice import SWEEPS, choose_loops, has_many_bodies, reason_against_loops, with_loops
from delassus.step.bodies.robots import scene_parts
from delassus.step.period.reduced import reduced_scene
from delassus.step.scene import ARTICULATED, ParametricScene, Scene

PRIMAL: Final = "primal"
"""The name of Newton's method on velocities, which solves MuJoCo's contact law."""


MORE_SLOTS: Final = 8
"""Contact slots in addition to those of the rigid law: without redundant contacts, soft contacts would be softer."""


def refuse_restitution(ground: Ground) -> None:
    """Raise for a coefficient of restitution, which MuJoCo's law does not support."""
    if np.any(ground.restitution):
        raise SimulationError(
            f'the ground\'s restitution is {short(repr(ground.restitution))}; it must be 0 under law="mujoco", where '
            'solref determines how contacts bounce, such as solref="-10000 -10". Omit restitution, or choose '
            'law="rigid".',
            code="conflicting-arguments",
        )


def reason_against_single_precision(scene: Scene) -> str | None:
    """The part of a scene that steps in float32 cannot solve, since its tolerance is below their resolution."""
    return (
        'law="mujoco"'
        if scene.is_soft
        else "constraints that close loops"
        if scene.mechanism.m
        else "one-sided constraints"
        if scene.one_sided
        else "many free bodies"
        if scene.many_bodies is not None
        else None
    )


def refuse_single_precision(scene: Scene) -> None:
    """Raise if steps in float32 cannot solve a scene."""
    reason = reason_against_single_precision(scene)
    if reason is not None:
        raise SimulationError(
            f"dtype is float32, which cannot solve scenes with {reason}: omit dtype=, or choose np.float64.",
            code="not-supported",
        )


def choose_step(scene: Scene, method: Any, slots: int) -> Scene:
    """The scene with the method of its steps.

    Scenes of many free bodies use loops over bodies and contacts. Others have this number of contact slots, unless
    `max_contacts` is set.
    """
    if method == SWEEPS and not scene.is_soft:
        reason = reason_against_loops(scene)
        if reason is not None:
            raise SimulationError(
                f'the method "{SWEEPS}" cannot solve this scene: {reason}. Omit method=, or choose "auto".',
                code="not-supported",
            )
        return with_loops(scene)
    if scene.is_soft:
        if method not in ("auto", PRIMAL):
            raise SimulationError(
                f'the method {method!r} cannot solve law="mujoco": omit method=, or choose "auto" or "{PRIMAL}".',
                code="not-supported",
            )
        return replace(scene, max_contacts=slots) if scene.max_contacts is None else scene
    looped = choose_loops(scene) if method == "auto" else scene
    if looped.many_bodies is not None:
        return looped
    if method == "auto":
        warn_of_straight_code(scene)
    scene = replace(scene, max_contacts=slots) if scene.max_contacts is None else scene
    return replace(scene, method=step_method(scene, method))


def warn_of_straight_code(scene: Scene) -> None:
    """Warn if a scene has many free bodies, but its steps are straight-line code."""
    if not (scene.has_pairs and has_many_bodies(scene)):
        return
    warn(
        f"the steps of {len(scene_parts(scene).bodies)} free bodies are straight-line code, which takes minutes to "
        f"compile, since {reason_against_loops(scene)}. Remove this, such as with Ground(friction, torsional=0.0, "
        "rolling=0.0), or simulate fewer bodies."
    )


def step_method(scene: Scene, method: Any) -> str:
    """The method of a scene's steps for the user's choice (see `StepSolver`)."""
    if method == "dual" or (method == "auto" and not prefers_recursion(scene)):
        return "auto"
    if method == "auto":
        return ARTICULATED
    if method != ARTICULATED:
        return find_solver(method, COMPILED).name
    reason = reason_against(scene)
    if reason is not None:
        raise SimulationError(
            f'the method "{ARTICULATED}" cannot solve this robot: {reason}. Omit method=, or choose "auto".',
            code="not-supported",
        )
    return ARTICULATED


class Setup(Frozen):
    """The parts of a simulation that its runs, controls and logs read.

    Attributes:
        mechanism: The robot and its constraints.
        ground: The ground.
        time_step: Length of a time step [s].
        tolerance: Tolerance of the contact solver.
        dtype: The dtype of the arithmetic of steps.
        scene: All constants of the step, which are compiled in.
    """

    mechanism: Mechanism
    ground: Ground
    time_step: float
    tolerance: float
    dtype: np.dtype[Any]
    scene: Scene

    @cached_property
    def reduced_scene(self) -> Scene:
        """The scene with the reduced contact set, which each step tries first."""
        if self.plain_scene is self.scene:
            return reduced_scene(self.scene)
        return replace(self.scene, reduced=reduced_scene(self.plain_scene).reduced)

    @cached_property
    def plain_scene(self) -> Scene:
        """The scene with the nominal values of all parameters, with which starts are checked."""
        scene = self.scene
        return scene.with_parameters(scene.parameters()) if isinstance(scene, ParametricScene) else scene

    @cached_property
    def starting_scene(self) -> Scene:
        """The scene with which the bodies of a start are moved out of the ground and apart."""
        return between_robots(self.plain_scene)

    @property
    def parametric(self) -> ParametricModel | None:
        """The parametric robot; None if the robot has no parameters."""
        part: ParametricModel | None = getattr(self.mechanism, "parametric", None)
        return part

    @property
    def nparameters(self) -> int:
        """Number of parameters of each environment."""
        return 0 if self.parametric is None else self.parametric.nparameters

    def with_wrenches(self, scene: Scene, frames: tuple[str, ...]) -> Scene:
        """A scene of this simulation with external wrenches on frames."""
        return self._variant(scene, pushed=frames) if frames else scene

    def fallback(self, scene: Scene) -> Scene:
        """The scene with the method for steps that its first method has not solved."""
        return scene if scene.fallback is None else self._variant(scene, method=scene.fallback)

    def _variant(self, scene: Scene, **change: Any) -> Scene:
        """A scene with one field changed; the same object every time, because kernels are cached by identity."""
        key = (id(scene), *change.items())
        if key not in self._variants:
            self._variants[key] = scene, replace(scene, **change)
        return self._variants[key][1]

    def with_dtype(self, dtype: Any) -> Self:
        """This simulation with steps computed in another dtype, and the default tolerance of that dtype."""
        solver = StepSolver(dtype=dtype)
        if solver.dtype == self.dtype:
            return self
        if solver.dtype == np.float32:
            refuse_single_precision(self.scene)
        copy = type(self).__new__(type(self))
        names = ("mechanism", "ground", "time_step", "scene")
        copy.__dict__.update({name: self.__dict__[name] for name in names})
        copy.dtype, copy.tolerance = solver.dtype, solver.effective_tolerance
        copy.freeze()
        return copy

    def with_memory(self, size: int) -> Self:
        """This simulation with `size` values of policy memory after the impulses; the same object for each call."""
        if size not in self._with_memory:
            copy = type(self).__new__(type(self))
            names = ("mechanism", "ground", "time_step", "dtype", "tolerance")
            copy.__dict__.update({name: self.__dict__[name] for name in names})
            copy.scene = scene = replace(self.scene, memory_size=size)
            reduced = self.reduced_scene
            copy.reduced_scene = scene if reduced is self.scene else replace(reduced, memory_size=size)
            copy.freeze()
            self._with_memory[size] = copy
        return self._with_memory[size]

    @cached_property
    def _with_memory(self) -> dict[int, Self]:
        return {}

    @cached_property
    def compiled(self) -> WeakKeyDictionary[Any, set[Any]]:
        """Kernels that are compiled for runs, with the inputs that they are compiled for."""
        return WeakKeyDictionary()

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
        """The default start of runs: the first keyframe of the model's file, else its first posture."""
        return first_keyframe(self.model)

    @property
    def nu(self) -> int:
        """Number of controls: of actuators or, if there are none, of joint velocities except those of a free base."""
        return self.scene.nu

    @property
    def period(self) -> float:
        """Length of a control period [s]."""
        return self.time_step * self.scene.substeps

    @property
    def candidates(self) -> tuple[str, ...]:
        """The shape name of each contact candidate."""
        return tuple(name for _, _, name in self.scene.candidate_shapes)
