"""`Policy`: a trained policy, as a function of observations; stored in one small file."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.common.archives import read_arrays, write_arrays
from delassus.learning.errors import CheckpointError, LearningError
from delassus.learning.learner.network import Floats32, Network, layers, mean_action
from delassus.learning.learner.normalizer import Normalizer

FORMAT: Final = 1
"""Of files of policies and checkpoints."""


@dataclass(frozen=True, eq=False)
class Policy:
    """The mean of a learnt distribution of actions.

    Attributes:
        task: The name of the task that it was learnt for.
        robot: The digest of the robot that it was learnt on, "" if it does not matter.
        network: Sizes.
        theta: (weights,) single precision.
        normalizer: Of observations.

    >>> policy = dl.learning.bundled_policy("quadruped-walk")
    >>> policy.task, policy.network.actions
    ('quadruped-walk', 12)
    """

    task: str
    robot: str
    network: Network
    theta: Floats32
    normalizer: Normalizer

    def __call__(self, observation: Any) -> NDArray[np.float32]:
        """Actions (…, actions) for observations (…, observations)."""
        x = np.asarray(observation)
        if x.shape[-1:] != (self.network.observations,):
            raise LearningError(
                f"the observations have shape {x.shape}; the policy takes (…, {self.network.observations}).",
                code="wrong-shape",
            )
        action: NDArray[np.float32] = mean_action(self.network, x, dtype=np.float32, **self.shared)
        return action

    @property
    def shared(self) -> dict[str, Floats32]:
        """The arrays that its kernels share."""
        mean, scale = (np.asarray(x, np.float32) for x in (self.normalizer.mean, self.normalizer.scale))
        return {"theta": self.theta, "mean": mean, "scale": scale}

    def layers(self) -> list[tuple[Floats32, Floats32]]:
        """W (outputs, inputs) and b (outputs,) of each layer of the policy."""
        return layers(self.network.policy_sizes, self.network.split(self.theta)[0])

    # --- files --------------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, Any]:
        """The arrays of its file."""
        sizes: dict[str, Any] = {"observations": self.network.observations, "actions": self.network.actions}
        sizes |= {"policy": list(self.network.policy), "value": list(self.network.value)}
        about = {"format": FORMAT, "task": self.task, "robot": self.robot, "network": sizes}
        return {
            "about": np.array(json.dumps(about)),
            "theta": self.theta,
            "mean": self.normalizer.mean,
            "variance": self.normalizer.variance,
            "count": np.array(self.normalizer.count),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file of NumPy (.npz); the one that was there stays if that fails."""
        write_arrays("the policy", path, self.arrays(), CheckpointError)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Policy:
        """Read what `save` wrote, or the policy of a checkpoint."""
        return cls.of_arrays(path, read_arrays("the policy", path, CheckpointError))

    @classmethod
    def of_arrays(cls, path: Any, arrays: dict[str, Any]) -> Policy:
        """Create a policy from the arrays of a file."""
        try:
            about = json.loads(str(arrays["about"]))
            version = about["format"]
            sizes = about["network"]
            network = Network(sizes["observations"], sizes["actions"], tuple(sizes["policy"]), tuple(sizes["value"]))
            normalizer = Normalizer(arrays["mean"], arrays["variance"], float(arrays["count"]))
            policy = cls(about["task"], about["robot"], network, arrays["theta"].astype(np.float32), normalizer)
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"{path} is not a policy: {error!r}.", code="other-file") from error
        if version != FORMAT:
            raise CheckpointError(
                f"{path} has the format {version}; this version of Delassus reads {FORMAT}. Train it again.",
                code="other-version",
            )
        right = policy.theta.shape == (network.weights,) and normalizer.mean.shape == (network.observations,)
        if not right or not np.isfinite(policy.theta).all():
            raise CheckpointError(
                f"{path} is not a policy: its {policy.theta.size} weights are {network.weights} finite numbers.",
                code="other-file",
            )
        return policy

    def check_fits(self, task: str, robot: str, observations: int, actions: int) -> None:
        """Refuse another task or another robot."""
        sizes = (self.network.observations, self.network.actions)
        if sizes != (observations, actions) or (self.robot and robot and self.robot != robot) or self.task != task:
            what = "another robot" if self.task == task else f"the task {self.task!r}"
            raise CheckpointError(
                f"the policy was trained for {what}: it maps {sizes[0]} observations to {sizes[1]} actions, and "
                f"{task!r} has {observations} and {actions}, or its robot has other numbers. Train it again.",
                code="other-system",
            )
