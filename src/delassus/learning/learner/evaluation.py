"""Evaluation of a policy: returns of robots that follow it without exploration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from delassus.learning.environment.environments import Environments
from delassus.learning.environment.episode import unpack
from delassus.learning.environment.task import Evaluation
from delassus.learning.learner.policy import Policy


def evaluate(
    policy: Policy, envs: Environments, periods: int, *, told: Mapping[str, Any] | None = None, seed: int = 1
) -> Evaluation:
    """Let all environments follow a policy for a number of periods, with fixed values of the memory, by name.

    >>> envs = dl.learning.Environments(dl.learning.find_task("quadruped-walk"), items=2)
    >>> trial = dl.learning.evaluate(dl.learning.bundled_policy("quadruped-walk"), envs, periods=3)
    >>> trial.failed
    array([False, False])
    """
    hold = envs.hold(**({} if told is None else told))
    memory = unpack(envs.episode, hold)
    told = {name: memory[name] for name in told or ()}
    state = envs.start(seed=seed, hold=hold)
    qs, vs, controls, rewards, measures = [state.simulation.q], [state.simulation.v], [], [], []
    failed = np.zeros(envs.items, bool)
    for _ in range(periods):
        action = policy(state.observation)
        controls.append(envs.control(state, action))
        state, outcome = envs.step(state, action, hold=hold)
        failed |= outcome.terminated
        qs.append(state.simulation.q)
        vs.append(state.simulation.v)
        rewards.append(outcome.reward)
        measures.append(outcome.measures)
    stacked = np.moveaxis(np.array(measures), -1, 0)
    named = dict(zip(envs.measure_names, stacked, strict=True))
    q, v, control, reward = (np.array(x) for x in (qs, vs, controls, rewards))
    return Evaluation(q, v, control, reward, failed, named, told)
