"""Checkpoints: a `Learner` in one file, from which learning continues bit for bit."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from delassus.common.archives import read_arrays, write_arrays
from delassus.compiler.graph.digest import content_digest
from delassus.learning.environment.environments import Environments, EnvironmentState
from delassus.learning.environment.options import PPO, Architecture, Objective
from delassus.learning.environment.task import LearningTask
from delassus.learning.errors import CheckpointError
from delassus.learning.learner.policy import Policy
from delassus.learning.learner.ppo import Learner, network_for
from delassus.simulation.state import State


def robot_digest(task: LearningTask) -> str:
    """A digest that identifies a robot and its task."""
    return str(content_digest(task))[:32]


def policy_of(name: str, envs: Environments, learner: Learner, options: PPO) -> Policy:
    """The policy that a learner has come to."""
    network = network_for(envs, options)
    return Policy(name, robot_digest(envs.task), network, learner.theta, learner.normalizer)


def save_checkpoint(
    path: str | os.PathLike[str], name: str, envs: Environments, learner: Learner, options: PPO
) -> None:
    """Write a checkpoint, which is a file of a policy as well; the one that was there stays if that fails.

    >>> import pathlib, tempfile
    >>> small = dl.learning.PPO(items=8, horizon=4, networks=dl.learning.Architecture((8,), (8,)))
    >>> envs = dl.learning.Environments(dl.learning.find_task("cart-pole"), items=8)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "checkpoint.npz"
    >>> dl.learning.save_checkpoint(path, "cart-pole", envs, dl.learning.begin_learning(envs, small), small)
    >>> path.exists()
    True
    """
    arrays = policy_of(name, envs, learner, options).arrays()
    state = learner.environment
    arrays |= {f"state.{one.name}": np.asarray(getattr(state.simulation, one.name)) for one in fields(State)}
    arrays |= {"memory": state.memory, "observation": state.observation}
    arrays |= {"first": learner.first, "second": learner.second}
    numbers = {"updates": learner.updates, "rate": learner.learning_rate, "iteration": learner.iteration}
    arrays["learner"] = np.array(json.dumps({**numbers, "options": asdict(options), "seed": envs.seed}))
    write_arrays("the checkpoint", path, arrays, CheckpointError)


def load_checkpoint(path: str | os.PathLike[str], name: str, task: LearningTask) -> tuple[Environments, Learner, PPO]:
    """What `save_checkpoint` wrote, for a task and robot that are the same.

    >>> import pathlib, tempfile
    >>> task = dl.learning.find_task("cart-pole")
    >>> small = dl.learning.PPO(items=8, horizon=4, networks=dl.learning.Architecture((8,), (8,)))
    >>> envs, path = dl.learning.Environments(task, items=8), pathlib.Path(tempfile.mkdtemp()) / "checkpoint.npz"
    >>> dl.learning.save_checkpoint(path, "cart-pole", envs, dl.learning.begin_learning(envs, small), small)
    >>> _, learner, options = dl.learning.load_checkpoint(path, "cart-pole", task)
    >>> learner.iteration, options.items
    (0, 8)
    """
    arrays = read_arrays("the checkpoint", path, CheckpointError)
    policy = Policy.of_arrays(path, arrays)
    try:
        about: dict[str, Any] = json.loads(str(arrays["learner"]))
        saved: dict[str, Any] = about["options"]
        sizes: dict[str, Any] = {key: tuple(x) if isinstance(x, list) else x for key, x in saved["networks"].items()}
        parts: dict[str, Any] = {"objective": Objective(**saved["objective"]), "networks": Architecture(**sizes)}
        options = PPO(**{**saved, **parts})
        simulation = State(**{one.name: arrays[f"state.{one.name}"] for one in fields(State)})
        environment = EnvironmentState(simulation, arrays["memory"], arrays["observation"])
        numbers = about["updates"], about["rate"], policy.normalizer, about["iteration"], environment
        learner = Learner(policy.theta, arrays["first"], arrays["second"], *numbers)
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} is not a checkpoint: {error!r}.", code="other-file") from error
    envs = Environments(task, options.items, about["seed"], options.dtype)
    policy.check_fits(name, robot_digest(task), envs.observations, envs.actions)
    return envs, learner, options
