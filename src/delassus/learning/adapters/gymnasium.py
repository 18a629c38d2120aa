"""Tasks as gymnasium environments: a `VectorEnv` of many robots and an `Env` of one. Needs the extra `gym`.

Rewards, terminations and observations are those of the task. After the end of an episode, the next one starts in one of
gymnasium's three modes: in the following step (NEXT_STEP), in the same step, with the last observation in
`info["final_obs"]` (SAME_STEP), or when `reset` is called with a mask of environments (DISABLED). Observations are new
arrays of float32. Sub-environment k is seeded with seed + k.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from delassus.learning.environment.environments import Environments, EnvironmentState
from delassus.learning.environment.episode import LARGEST_OBSERVATION
from delassus.learning.environment.task import LearningTask
from delassus.learning.errors import LearningError
from delassus.learning.tasks.catalog import find_task, task_names
from delassus.simulation.state import State

_SEEDS = 2**24
"""Upper limit of seeds and streams of random numbers, the largest range of integers that float32 represents."""


class TaskVectorEnv(gymnasium.vector.VectorEnv):
    """Many robots that perform a task, as a `gymnasium.vector.VectorEnv`."""

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self, task: LearningTask | str, num_envs: int = 1, autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP
    ) -> None:
        task = find_task(task) if isinstance(task, str) else task
        self.envs = Environments(task, num_envs)
        self.num_envs, self.mode = num_envs, AutoresetMode(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self.mode}
        high = np.full(self.envs.observations, LARGEST_OBSERVATION, np.float32)
        self.single_observation_space = gymnasium.spaces.Box(-high, high, dtype=np.float32)
        bound = np.full(self.envs.actions, 10.0, np.float32)
        self.single_action_space = gymnasium.spaces.Box(-bound, bound, dtype=np.float32)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._state: EnvironmentState | None = None
        self._over = np.zeros(num_envs, bool)
        self._entropy = int(np.random.SeedSequence().entropy) % _SEEDS  # type: ignore[arg-type]

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode in all environments, or in those that `options["reset_mask"]` (num_envs,) selects."""
        mask = np.ones(self.num_envs, bool)
        if options is not None and "reset_mask" in options:
            mask = np.asarray(options["reset_mask"])
            if mask.dtype != bool or mask.shape != (self.num_envs,):
                raise LearningError(
                    f"reset_mask has shape {mask.shape} and type {mask.dtype}; it must be ({self.num_envs},) booleans.",
                    code="wrong-shape",
                )
        seeds = self._seeds(seed)
        fresh = self._begin(seeds)
        self._state = fresh if self._state is None or mask.all() else _merge(mask, fresh, self._state)
        self._over = self._over & ~mask
        return self._observation(self._state.observation), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Advance all environments by one control period."""
        if self._state is None:
            raise LearningError("no episode has started: call reset() first.", code="missing-argument")
        if self.mode is AutoresetMode.DISABLED and self._over.any():
            numbers = np.flatnonzero(self._over).tolist()
            raise LearningError(
                f"the episodes of the environments {numbers[:8]} have ended: reset them with "
                "options={'reset_mask': over}.",
                code="missing-argument",
            )
        before, over = self._state, self._over
        after, outcome = self.envs.step(before, actions)
        reward, terminated, truncated = outcome.reward.copy(), outcome.terminated, outcome.truncated
        observation: Any = after.observation
        info: dict[str, Any] = {}
        ended = terminated | truncated
        if outcome.frozen.any():
            info["frozen"] = outcome.frozen
        if self.mode is AutoresetMode.NEXT_STEP:
            if over.any():  # their action is ignored: this step is the reset
                after = _merge(over, before, after)
                reward[over], terminated, truncated = 0.0, terminated & ~over, truncated & ~over
                ended = ended & ~over
                observation = after.observation
            observation = np.where(ended[:, None], outcome.final_observation, observation)
        elif self.mode is AutoresetMode.SAME_STEP:
            if ended.any():
                final = np.full(self.num_envs, None, dtype=object)
                for k in np.flatnonzero(ended):
                    final[k] = self._observation(outcome.final_observation[k])
                info |= {"final_obs": final, "_final_obs": ended.copy(), "final_info": {}}
        else:
            observation = np.where(ended[:, None], outcome.final_observation, observation)
        self._state, self._over = after, ended
        return self._observation(observation), reward, terminated.copy(), truncated.copy(), info

    def _seeds(self, seed: Any) -> list[int]:
        if seed is None:
            self._entropy = (self._entropy * 48271 + 11) % _SEEDS
            return [(self._entropy + k) % _SEEDS for k in range(self.num_envs)]
        if isinstance(seed, (int, np.integer)):
            return [(int(seed) + k) % _SEEDS for k in range(self.num_envs)]
        given = list(seed)
        if len(given) != self.num_envs:
            raise LearningError(
                f"there are {len(given)} seeds for {self.num_envs} environments; pass one seed for each environment.",
                code="wrong-shape",
            )
        return [k if one is None else int(one) % _SEEDS for k, one in enumerate(given)]

    def _begin(self, seeds: list[int]) -> EnvironmentState:
        """The start of all environments; each one depends on its own seed only."""
        return self.envs.start(seed=seeds, stream=0)

    @staticmethod
    def _observation(x: Any) -> Any:
        return np.array(x, np.float32)


class TaskEnv(gymnasium.Env[Any, Any]):
    """One robot that performs a task, as a `gymnasium.Env`."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(self, task: LearningTask | str = "quadruped-walk", render_mode: None = None) -> None:
        self.vector = TaskVectorEnv(task, 1, AutoresetMode.DISABLED)
        self.observation_space = self.vector.single_observation_space
        self.action_space = self.vector.single_action_space
        self.render_mode = render_mode

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        super().reset(seed=seed)
        start = int(self.np_random.integers(_SEEDS)) if seed is None else seed
        observation, info = self.vector.reset(seed=start)
        return observation[0], info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Advance the robot by one control period."""
        observation, reward, terminated, truncated, _ = self.vector.step(np.asarray(action)[None])
        return observation[0], float(reward[0]), bool(terminated[0]), bool(truncated[0]), {}


def register() -> None:
    """Register all tasks for `gymnasium.make` and `make_vec`, with names such as delassus/quadruped-walk-v0."""
    for name in task_names():
        key = f"delassus/{name}-v0"
        if key not in gymnasium.registry:
            gymnasium.register(
                key,
                entry_point=f"{__name__}:TaskEnv",
                vector_entry_point=f"{__name__}:TaskVectorEnv",
                kwargs={"task": name},
                disable_env_checker=True,
            )


def _merge(mask: Any, one: EnvironmentState, other: EnvironmentState) -> EnvironmentState:
    """Environments of the first state where a mask (environments,) is true, and of the other elsewhere."""

    def choose(a: Any, b: Any) -> Any:
        a, b = np.asarray(a), np.asarray(b)
        return np.where(mask.reshape(-1, *(1,) * (a.ndim - 1)), a, b)

    first, second = vars(one.simulation), vars(other.simulation)
    simulation = State(**{name: choose(first[name], second[name]) for name in first})
    return EnvironmentState(simulation, choose(one.memory, other.memory), choose(one.observation, other.observation))
