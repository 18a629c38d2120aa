"""The kernel that ends a control period: reward, termination, memory, the next observation, the next episode."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.host.inputs import Declared
from delassus.compiler.host.kernel import Kernel, kernel
from delassus.compiler.tracing.flow.branch import cond
from delassus.learning.environment.task import LearningTask, Moment
from delassus.learning.errors import LearningError
from delassus.simulation.policies.draws import Draws
from delassus.simulation.sensors.readout import Readout
from delassus.step.period.kernels import GROUND
from delassus.step.scene import Scene
from delassus.step.scene_sizes import HasScene
from delassus.step.stages.types import GroundShape

LARGEST_OBSERVATION: Final = 100.0
"""What observations are clipped to, in either direction."""

_BEGIN_PLACE: Final = 1000.0
"""Where the random numbers of a new episode are counted from: they differ from those of the period before."""


@dataclass(frozen=True)
class Episode(HasScene):
    """A task in a scene, and the sizes of what its functions give: what its kernels are compiled for."""

    scene: Scene
    task: LearningTask
    parameter_size: int
    observations: int = 1
    terms: int = 1
    measures: int = 1

    @property
    def actions(self) -> int:
        """Numbers of an action."""
        return self.task.actions

    @property
    def memory_fields(self) -> dict[str, int]:
        """Names and sizes of the memory."""
        return {"action": self.task.actions, "age": 1, **self.task.memory}

    @property
    def memory_size(self) -> int:
        """Numbers that are remembered."""
        return sum(self.memory_fields.values())


class Ending(NamedTuple):
    """The end of a period, of one environment.

    Attributes:
        q, v, impulse, contact, parameters, memory: To go on with: those of a new episode where one begins.
        observation: (observations,) the policy's next one.
        final_observation: (observations,) the same without the start of a new episode.
        reward: Of the period.
        terminated: 1 where the robot has failed, or is frozen.
        truncated: 1 where the time of the episode is over.
        terms: (terms,) of the reward.
        measures: (measures,) see `LearningTask.measure`.
    """

    q: Any
    v: Any
    impulse: Any
    contact: Any
    parameters: Any
    memory: Any
    observation: Any
    final_observation: Any
    reward: Any
    terminated: Any
    truncated: Any
    terms: Any
    measures: Any


SIGNATURE: Final = (
    "(nq),(nv),(impulse_size),(slot_size),(parameter_size),(memory_size),(memory_size),(actions),(),(3),(),()"
    "->(nq),(nv),(impulse_size),(slot_size),(parameter_size),(memory_size),(observations),(observations),(),(),(),"
    "(terms),(measures)"
)


@kernel(SIGNATURE, inputs={"ground": GROUND}, result=Ending)
def end_period(
    episode: Episode,
    q: Any,
    v: Any,
    impulse: Any,
    contact: Any,
    parameters: Any,
    memory: Any,
    hold: Any,
    action: Any,
    frozen: Any,
    counters: Any,
    difficulty: Any,
    time_step: Any,
    *,
    ground: GroundShape,
) -> Ending:
    """The end of a control period.

    `counters` are seed, stream and period of an item; where `hold` is a number, memory has that one.
    """
    task, scene = episode.task, episode.scene
    level = ground._replace(normal=np.array(ground.normal))
    draws = Draws(*counters)
    readout = _readout(scene, q, v, impulse / time_step, contact, level)
    now = Moment(readout, unpack(episode, memory), draws, action, difficulty)
    is_frozen = frozen > 0.0

    terms = task.reward(now)
    measures = task.measure(now) or {"none": np.array(0.0)}
    failed = task.fails(now) | is_frozen
    age = now.memory["age"][0] + 1.0
    overdue = (age >= float(task.periods)) & ~failed

    changes = task.advance(now)
    v_next = v + changes.pop("kick") if "kick" in changes else v
    remembered = {**now.memory, **changes, "action": action, "age": np.stack([age])}
    remembered = unpack(episode, hold_memory(pack(episode, remembered), hold))
    after = Moment(readout._replace(v=v_next), remembered, draws, action, difficulty)
    observation = _bounded(task.observe(after))

    def restart(*_: Any) -> tuple[Any, ...]:
        return start(
            episode, level, Draws(counters[0], counters[1], counters[2], _BEGIN_PLACE), difficulty, parameters, hold
        )

    kept = (q, v_next, pack(episode, remembered), parameters, observation)
    q_next, v_next, memory_next, parameters_next, observation_next = cond(failed | overdue, restart, kept)
    over = failed | overdue
    values = np.stack(list(terms.values()))
    values = np.where(is_frozen | ~(np.abs(values) < 1e6), np.zeros(len(values)), values)
    return Ending(
        q_next,
        v_next,
        np.where(over, np.zeros(episode.impulse_size), impulse),
        np.where(over, np.arange(float(episode.slot_size)), contact),
        parameters_next,
        memory_next,
        observation_next,
        observation,
        task.total(values),
        np.where(failed, 1.0, 0.0),
        np.where(overdue, 1.0, 0.0),
        values,
        np.stack(list(measures.values())),
    )


BEGIN: Final = "(parameter_size),(memory_size),(3),(),()->(nq),(nv),(memory_size),(parameter_size),(observations)"


@kernel(BEGIN, inputs={"ground": GROUND})
def begin_episode(
    episode: Episode, parameters: Any, hold: Any, counters: Any, difficulty: Any, age: Any, *, ground: GroundShape
) -> tuple[Any, ...]:
    """q, v, memory, parameters and observation at the start of an episode, of which a share `age` counts as over."""
    level = ground._replace(normal=np.array(ground.normal))
    q, v, memory, parameters, observation = start(episode, level, Draws(*counters), difficulty, parameters, hold)
    fields = unpack(episode, memory)
    memory = pack(episode, {**fields, "age": np.stack([np.floor(age * float(episode.task.periods))])})
    return q, v, memory, parameters, observation


CONTROL: Final = "(nq),(nv),(memory_size),(actions)->(control_size)"


@kernel(CONTROL)
def control_for(episode: Episode, q: Any, v: Any, memory: Any, action: Any) -> Any:
    """The controls of the actuators for an action."""
    now = moment_without_contacts(episode, q, v, memory, action)
    return np.array(episode.task.control(now))


def moment_without_contacts(episode: Episode, q: Any, v: Any, memory: Any, action: Any) -> Moment:
    """The moment of a robot on which nothing is known to exert forces: for `control` and `observe`."""
    zero = np.zeros(episode.impulse_size)
    contact, level = np.zeros(episode.slot_size), GroundShape(np.array((0.0, 0.0, 1.0)), 0.0, None)
    readout = _readout(episode.scene, q, v, zero, contact, level)
    return Moment(readout, unpack(episode, memory), Draws(0.0, 0.0, 0.0), action, np.array(0.0))


def start(
    episode: Episode, ground: GroundShape, draws: Draws, difficulty: Any, parameters: Any, hold: Any
) -> tuple[Any, Any, Any, Any, Any]:
    """q, v, memory, parameters and observation at the start of an episode."""
    task, scene = episode.task, episode.scene
    none = {name: np.zeros(size) for name, size in episode.memory_fields.items()}
    force, contact = np.zeros(episode.impulse_size), np.arange(float(episode.slot_size))
    home = np.array(scene.model.neutral())
    readout = _readout(scene, home, np.zeros(episode.nv), force, contact, ground)
    chosen = task.begin(Moment(readout, none, draws, none["action"], difficulty))
    q, v = chosen.pop("q"), chosen.pop("v", np.zeros(episode.nv))
    parameters = chosen.pop("parameters", parameters)
    memory = unpack(episode, hold_memory(pack(episode, {**none, **chosen}), hold))
    readout = readout._replace(q=q, v=v)
    observation = task.observe(Moment(readout, memory, draws, memory["action"], difficulty))
    return q, v, pack(episode, memory), parameters, _bounded(observation)


def hold_memory(memory: Any, hold: Any) -> Any:
    """Memory with the values that are fixed by `hold`; NaN leaves an element free."""
    return np.where(hold == hold, hold, memory)  # noqa: PLR0124


def _bounded(observation: Any) -> Any:
    """An observation within bounds, with NaN replaced."""
    clipped = np.clip(observation, -LARGEST_OBSERVATION, LARGEST_OBSERVATION)
    return np.where(clipped == clipped, clipped, 0.0)  # noqa: PLR0124 - NaN equals nothing


def _readout(scene: Scene, q: Any, v: Any, force: Any, contact: Any, ground: GroundShape) -> Readout:
    a, control, zero, one = np.zeros(scene.nv), np.zeros(scene.nu), np.array(0.0), np.array(1.0)
    tally = np.zeros(scene.tally_size)
    return Readout(scene, q, v, a, force[: scene.m], contact[: scene.slots], control, ground, zero, one, tally)


# --- memory -----------------------------------------------------------------------------------------------------------


def unpack(episode: Episode, memory: Any) -> dict[str, Any]:
    """The memory by name, from an array (…, memory_size)."""
    fields, end = {}, 0
    for name, size in episode.memory_fields.items():
        fields[name], end = memory[..., end : end + size], end + size
    return fields


def pack(episode: Episode, memory: Mapping[str, Any]) -> Any:
    """The memory as an array (memory_size,)."""
    unknown = [name for name in memory if name not in episode.memory_fields]
    if unknown:
        known = ", ".join(episode.memory_fields)
        raise LearningError(
            f"the task remembers {unknown[0]!r}, which its `memory` does not list; it lists {known}.",
            code="unknown-name",
        )
    return np.concatenate([np.array(memory[name]).reshape(-1) for name in episode.memory_fields])


# --- kernels of a task ------------------------------------------------------------------------------------------------


@functools.cache
def kernels_of(kind: type[LearningTask]) -> tuple[Kernel[..., Any], Kernel[..., Any], Kernel[..., Any]]:
    """`end_period`, `begin_episode` and `control_for` for a class of tasks.

    Kernels of this package are found in the cache by the package's source; a task from elsewhere is traced anew in each
    process, as its own source may have changed.
    """
    if kind.__module__.partition(".")[0] == __name__.partition(".")[0]:
        return end_period, begin_episode, control_for

    ground: dict[str, Declared] = {"ground": GROUND}
    return (
        kernel(SIGNATURE, inputs=ground, result=Ending)(_without_cache(end_period.function)),
        kernel(BEGIN, inputs=ground)(_without_cache(begin_episode.function)),
        kernel(CONTROL)(_without_cache(control_for.function)),
    )


def _without_cache(function: Callable[..., Any]) -> Callable[..., Any]:
    """A copy of a kernel's function that counts as one from elsewhere, since it has no name in this package."""

    @functools.wraps(function)
    def copy(*arguments: Any, **inputs: Any) -> Any:
        return function(*arguments, **inputs)

    copy.__qualname__ = f"{_without_cache.__name__}.<locals>.{function.__name__}"
    return copy


def measured(episode: Episode) -> tuple[Episode, tuple[str, ...], tuple[str, ...]]:
    """The episode with the sizes of what its task gives, and the names of terms and measures, by plain evaluation."""
    scene, task = episode.scene, episode.task
    heights = None if scene.field is None else numpy.zeros((scene.field.rows, scene.field.columns))
    ground = GroundShape(numpy.array([0.0, 0.0, 1.0]), 0.0, heights)
    draws, difficulty = Draws(0.0, 0.0, 0.0), numpy.array(0.0)
    parameters = numpy.zeros(episode.parameter_size)
    q, v, memory, _, observation = start(
        episode, ground, draws, difficulty, parameters, numpy.full(episode.memory_size, numpy.nan)
    )
    force, contact = numpy.zeros(episode.impulse_size), numpy.arange(float(episode.slot_size))
    readout = _readout(scene, q, v, force, contact, ground)
    now = Moment(readout, unpack(episode, memory), draws, numpy.zeros(task.actions), difficulty)
    terms, measures = task.reward(now), task.measure(now) or {"none": 0.0}
    _check("observe", observation, 1)
    for name, value in {**terms, **measures}.items():
        _check(f"{name!r} of the reward or the measures", value, 0)
    sizes = {"observations": len(observation), "terms": len(terms), "measures": len(measures)}
    return Episode(scene, task, episode.parameter_size, **sizes), tuple(terms), tuple(measures)


def _check(what: str, value: Any, axes: int) -> None:
    if numpy.ndim(value) != axes or numpy.size(value) == 0:
        wanted = "one number" if axes == 0 else "an array with one axis"
        raise LearningError(
            f"the task returns {what} of shape {numpy.shape(value)}; it must be {wanted}.", code="wrong-shape"
        )
