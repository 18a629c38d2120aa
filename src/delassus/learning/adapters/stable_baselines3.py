"""Tasks as a `VecEnv` of Stable-Baselines3, for its learners. Needs `stable-baselines3` and the extra `gym`.

    from stable_baselines3 import SAC
    SAC("MlpPolicy", TaskVecEnv("quadruped-walk", num_envs=64)).learn(100_000)

After the end of an episode, the next one starts in the same step; the last observation of the first is
`info["terminal_observation"]`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from stable_baselines3.common.vec_env import VecEnv

from delassus.learning.adapters.gymnasium import TaskVectorEnv
from delassus.learning.environment.task import LearningTask
from delassus.learning.errors import LearningError


class TaskVecEnv(VecEnv):  # type: ignore[misc]  # the package is not installed where types are checked
    """Many robots that perform a task, as a `VecEnv`."""

    def __init__(self, task: LearningTask | str, num_envs: int = 1) -> None:
        self.vector = TaskVectorEnv(task, num_envs, AutoresetMode.SAME_STEP)
        super().__init__(num_envs, self.vector.single_observation_space, self.vector.single_action_space)
        self._actions: Any = None

    def reset(self) -> Any:
        """Start an episode of all robots, with the seeds of the last call of `seed`."""
        seeds = None if all(one is None for one in self._seeds) else self._seeds
        observation, _ = self.vector.reset(seed=seeds)
        self._reset_seeds()
        self._reset_options()
        return observation

    def step_async(self, actions: Any) -> None:
        """Store actions (num_envs, actions) for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, Any, Any, list[dict[str, Any]]]:
        """Advance all robots by one control period: observations, rewards, whether episodes ended, and infos."""
        observation, reward, terminated, truncated, info = self.vector.step(self._actions)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        over = terminated | truncated
        for k in np.flatnonzero(over):
            infos[k] = {"terminal_observation": info["final_obs"][k], "TimeLimit.truncated": bool(truncated[k])}
        return observation, reward.astype(np.float32), over, infos

    def close(self) -> None:
        """Do nothing, since there are no resources to release."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """An attribute of the environments, which is the same for all of them."""
        return [getattr(self.vector, attr_name, None) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Raise an error, since robots of a batch share one compiled task."""
        raise LearningError(
            f"{attr_name} cannot be set for single robots: create a TaskVecEnv of find_task(name, {attr_name}=…).",
            code="not-supported",
        )

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **options: Any) -> list[Any]:
        """Raise an error, since robots of a batch have no methods of their own."""
        raise LearningError(
            f"{method_name} cannot be called for single robots: call it on the attribute `vector`.",
            code="not-supported",
        )

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """False for all robots, since none is wrapped."""
        return [False for _ in self._get_indices(indices)]
