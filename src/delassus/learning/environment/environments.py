"""`Environments`: a batch of robots with a task, advanced by one control period at a time.

    envs = Environments(task, items=512, seed=0)
    state = envs.start()
    state, outcome = envs.step(state, action)

A period is three kernels: the control for an action, the steps of time (the very ones of `Simulation.step`, with its
attempts for items that need more), and the period's end (`episode.end_period`). The network of the policy is a kernel
beside them: inside the step (`simulation.CompiledPolicy`), 512 and 1024 quadrupeds in single precision make 0.71 and
0.68 times as many environment steps per second of one thread. What an item does follows from its
seed, its stream and its actions, whatever else is in the batch, on any number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import check_integer
from delassus.learning.environment.episode import Ending, Episode, kernels_of, measured, unpack
from delassus.learning.environment.task import LearningTask
from delassus.learning.errors import LearningError
from delassus.simulation.runner import pad_empty
from delassus.simulation.setup import reason_against_single_precision
from delassus.simulation.simulation import Simulation
from delassus.simulation.state import State
from delassus.step.flags import Mark

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class EnvironmentState:
    """The state of environments, from which they continue bit for bit.

    Attributes:
        simulation: The robots.
        memory: (items, memory_size) what the task remembers.
        observation: (items, observations) the next ones of the policy.

    >>> envs = dl.learning.Environments(dl.learning.find_task("cart-pole"), items=8)
    >>> envs.start().observation.shape
    (8, 5)
    """

    simulation: State
    memory: Array
    observation: Array


class Outcome(NamedTuple):
    """The result of a period, with one element per environment.

    Attributes:
        reward: (items,).
        terminated: (items,) truth values: failed, or frozen.
        truncated: (items,) truth values: out of time.
        frozen: (items,) truth values: an action or a state was no number, or the robot could not be simulated.
        final_observation: (items, observations) at the end of the period, before a new episode begins.
        terms: (items, terms) of the reward.
        measures: (items, measures).

    >>> envs = dl.learning.Environments(dl.learning.find_task("cart-pole"), items=8)
    >>> _, outcome = envs.step(envs.start(), np.zeros((8, 1)))
    >>> outcome.terminated.any()
    np.False_
    """

    reward: Array
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    frozen: NDArray[np.bool_]
    final_observation: Array
    terms: Array
    measures: Array


class Environments:
    """Environments in which robots learn a task.

    Attributes:
        task: What they practise.
        items: How many there are.
        seed: Of all that is drawn.
        sim: Their simulation, in the dtype that was chosen.
        term_names: Of the reward.
        measure_names: Of what progress is reported by.

    >>> envs = dl.learning.Environments(dl.learning.find_task("cart-pole"), items=8)
    >>> state, outcome = envs.step(envs.start(), np.zeros((8, 1)))
    >>> outcome.reward.shape
    (8,)
    """

    def __init__(self, task: LearningTask, items: int, seed: int = 0, dtype: Any = np.float64) -> None:
        """Create environments of a task.

        Args:
            task: What they practise.
            items: How many there are.
            seed: Of all that is drawn.
            dtype: Of the arithmetic of steps: np.float64, np.float32, or "auto" for np.float32 wherever that can solve
                the robot's steps. States, observations and rewards stay float64.
        """
        if not isinstance(task, LearningTask):
            raise LearningError(
                f"the task is a {type(task).__name__}; it must be a LearningTask, such as find_task('quadruped-walk').",
                code="wrong-type",
            )
        self.task, self.items, self.seed = task, check_integer("items", items), check_integer("seed", seed, 0)
        self.sim = _in_dtype(task.simulation(self.items, self.seed), dtype)
        scene = self.sim.plain_scene
        plain = Episode(scene, task, max(self.sim.nparameters, 1))
        self.episode, self.term_names, self.measure_names = measured(plain)
        self._end, self._begin, self._control = kernels_of(type(task))  # type: ignore[arg-type]
        parametric = self.sim.parametric
        self._nominal = np.zeros(1) if parametric is None else np.asarray(parametric.parameters())

    @property
    def observations(self) -> int:
        """Numbers that the policy sees."""
        return self.episode.observations

    @property
    def actions(self) -> int:
        """Numbers that the policy gives."""
        return self.episode.actions

    def hold(self, **values: Any) -> Array:
        """Numbers that memory is held at, such as command=(0.5, 0, 0), for `start` and `step`: (items, memory_size)."""
        hold = np.full((self.items, self.episode.memory_size), np.nan)
        parts = unpack(self.episode, hold)
        for name, value in values.items():
            if name not in parts:
                raise LearningError(
                    f"the task does not remember {name!r}; it remembers {', '.join(parts)}.", code="unknown-name"
                )
            try:
                parts[name][...] = value
            except ValueError:
                raise LearningError(
                    f"{name} is fixed to an array of shape {np.shape(value)}; the shape must be {parts[name].shape}.",
                    code="wrong-shape",
                ) from None
        return hold

    def start(
        self,
        difficulty: float = 1.0,
        *,
        spread: bool = False,
        seed: Any = None,
        stream: Any = None,
        hold: Any = np.nan,
    ) -> EnvironmentState:
        """The start of an episode of every item.

        Args:
            difficulty: From 0 to 1.
            spread: Whether their time-outs come at different times.
            seed: Of what is drawn, one or (items,); by default that of the environments.
            stream: (items,) of random numbers; by default the number of the item.
            hold: What memory is held at, see `hold`.
        """
        scene, batch = self.sim.scene, (self.items,)
        seed = self.seed if seed is None else seed
        zero = np.zeros((self.items, scene.nq)), np.zeros((self.items, scene.nv))
        base = State(
            *zero,
            time=0.0,
            impulse=np.zeros((*batch, scene.m)),
            contact=np.tile(np.arange(float(scene.slots)), (self.items, 1)),
            residual=np.zeros(batch),
            status=np.zeros(batch, np.int64),
            seed=seed,
            stream=stream,
            activation=np.zeros((*batch, scene.na)),
            tally=np.zeros((*batch, scene.tally_size)),
            parameters=np.tile(self._nominal, (self.items, 1)) if self.sim.nparameters else np.zeros((*batch, 0)),
        )
        age = (np.arange(self.items) * 0.61803398875) % 1.0 if spread else np.zeros(self.items)
        q, v, memory, parameters, observation = self._begin(
            self.episode,
            np.tile(self._nominal, (self.items, 1)),
            np.broadcast_to(hold, (self.items, self.episode.memory_size)),
            _counters(base),
            difficulty,
            age,
            ground=self.sim.ground.shape,
        )
        parts = {**vars(base), "q": q, "v": v, "count": base.count + 1}
        if self.sim.nparameters:
            parts["parameters"] = parameters
        return EnvironmentState(State(**parts), memory, observation)

    def step(
        self, state: EnvironmentState, action: Any, difficulty: float = 1.0, *, hold: Any = np.nan
    ) -> tuple[EnvironmentState, Outcome]:
        """One control period of all items; where an episode ends, the next one begins."""
        given = np.asarray(action, float)
        after = self.sim.step(state.simulation, self.control(state, given))
        frozen = after.frozen
        safe = np.where(frozen[:, None], 0.0, given) if frozen.any() else given
        end: Ending = self._end(
            self.episode,
            after.q,
            after.v,
            pad_empty(after.rows),
            pad_empty(after.contact),
            pad_empty(after.parameters),
            state.memory,
            np.broadcast_to(hold, state.memory.shape),
            safe,
            frozen.astype(float),
            _counters(after),
            difficulty,
            self.sim.time_step,
            ground=self.sim.ground.shape,
        )
        terminated, truncated = end.terminated > 0.0, end.truncated > 0.0
        m, slots, na = self.sim.scene.m, self.sim.scene.slots, self.sim.scene.na
        over = terminated | truncated
        parts = {
            **vars(after),
            "q": end.q,
            "v": end.v,
            "impulse": end.impulse[:, :m],
            "activation": end.impulse[:, m : m + na],
            "tally": end.impulse[:, m + na : m + na + self.sim.scene.tally_size],
            "contact": end.contact[:, :slots],
            "time": np.where(over, 0.0, after.time),
            "status": after.status & ~int(Mark.FROZEN),
        }
        if self.sim.nparameters:
            parts["parameters"] = end.parameters
        following = EnvironmentState(State.unchecked(**parts), end.memory, end.observation)
        return following, Outcome(
            end.reward, terminated, truncated, frozen, end.final_observation, end.terms, end.measures
        )

    def control(self, state: EnvironmentState, action: Any) -> Array:
        """Controls of the actuators (items, nu) for actions (items, actions)."""
        given, robots = np.asarray(action, float), state.simulation
        if given.shape != (self.items, self.actions):
            raise LearningError(
                f"the actions have shape {given.shape}; the shape must be ({self.items}, {self.actions}).",
                code="wrong-shape",
            )
        control: Array = self._control(self.episode, robots.q, robots.v, state.memory, given)
        return control[:, : self.sim.nu]

    def memory(self, state: EnvironmentState) -> dict[str, Array]:
        """The memory of the task by name, (items, n) each."""
        return unpack(self.episode, state.memory)


def _in_dtype(sim: Simulation, dtype: Any) -> Simulation:
    if isinstance(dtype, str) and dtype == "auto":
        return sim if reason_against_single_precision(sim.scene) else sim.with_dtype(np.float32)
    return sim.with_dtype(dtype)


def _counters(state: State) -> Array:
    """(items, 3): seed, stream and period of each item."""
    return np.stack([np.asarray(x, float) for x in (state.seed, state.stream, state.count)], axis=-1)
