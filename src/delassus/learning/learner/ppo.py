"""Proximal policy optimization (Schulman et al. 2017) on robots simulated in one kernel.

An iteration:

1. *Collect* T periods of N robots with the policy π_old.
2. *Advantages* by generalised estimation (Schulman et al. 2016): δₜ = rₜ + γ Vₜ₊₁ - Vₜ, Aₜ = δₜ + γλ Aₜ₊₁. A failure
   has no value after it; after a time-out it is that of the observation that would have followed.
3. *Learn* for some epochs in minibatches: Adam on the clipped surrogate, ½ (V - A - V_old)², and the entropy of π.

Every minibatch is cut into two halves, whose gradients are computed on two threads, or one after the other, and summed
in that order: the result has the same bits either way. All that an iteration needs is in `Learner`, so that learning
goes on from a file as if it had never stopped.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from delassus.compiler.host.threads import threads
from delassus.learning.environment.environments import Environments, EnvironmentState
from delassus.learning.environment.options import PPO
from delassus.learning.learner.blas import one_blas_thread
from delassus.learning.learner.network import (
    Act,
    Floats32,
    Network,
    act,
    policy_gradients,
    value_gradients,
    value_of,
    weight_gradient,
)
from delassus.learning.learner.normalizer import Normalizer

_SINGLE: Final = np.float32
_POOL: Final = ThreadPoolExecutor(1, thread_name_prefix="delassus-learning")


@dataclass(frozen=True, eq=False)
class Learner:
    """The state of learning.

    Attributes:
        theta: (weights,) see `Network`.
        first: (weights,) Adam's mean of gradients.
        second: (weights,) Adam's mean of their squares.
        updates: Minibatches so far.
        learning_rate: Of the next iteration.
        normalizer: Of observations.
        iteration: How many were made.
        environment: Where the robots are.

    >>> envs = dl.learning.Environments(dl.learning.find_task("cart-pole"), items=8)
    >>> small = dl.learning.PPO(items=8, horizon=4, networks=dl.learning.Architecture((8,), (8,)))
    >>> dl.learning.begin_learning(envs, small).theta.dtype
    dtype('float32')
    """

    theta: Floats32
    first: Floats32
    second: Floats32
    updates: int
    learning_rate: float
    normalizer: Normalizer
    iteration: int
    environment: EnvironmentState


class Rollout(NamedTuple):
    """Collected samples: arrays (periods, items, …)."""

    seen: Floats32
    action: Floats32
    logarithm: Floats32
    value: Floats32
    following: Floats32
    reward: Floats32
    over: NDArray[np.bool_]
    terminated: NDArray[np.bool_]


class Report(NamedTuple):
    """Statistics of an iteration.

    Attributes:
        reward: Mean of a period.
        falls: Failures per robot and second.
        frozen: Items that an action or state that is no number has stopped.
        terms: Means of the terms of the reward by name.
        measures: Means of what the task measures by name.
        divergence: Kullback–Leibler divergence of the new policy from the old one.
        clipped: Share of samples whose ratio is beyond the clip.
        value_error: Root mean square.
        deviation: Mean σ.

    >>> envs = dl.learning.Environments(dl.learning.find_task("cart-pole"), items=8)
    >>> small = dl.learning.PPO(items=8, horizon=4, networks=dl.learning.Architecture((8,), (8,)))
    >>> _, report = dl.learning.iterate(envs, dl.learning.begin_learning(envs, small), small)
    >>> report.frozen
    0
    """

    reward: float
    falls: float
    frozen: int
    terms: dict[str, float]
    measures: dict[str, float]
    divergence: float
    clipped: float
    value_error: float
    deviation: float


def network_for(envs: Environments, options: PPO) -> Network:
    """The networks of a task."""
    return Network(envs.observations, envs.actions, options.networks.policy, options.networks.value)


def begin_learning(envs: Environments, options: PPO) -> Learner:
    """Create a learner with initial weights.

    >>> envs = dl.learning.Environments(dl.learning.find_task("cart-pole"), items=8)
    >>> small = dl.learning.PPO(items=8, horizon=4, networks=dl.learning.Architecture((8,), (8,)))
    >>> dl.learning.begin_learning(envs, small).iteration
    0
    """
    network = network_for(envs, options)
    theta = network.initial(envs.seed, options.networks.deviation)
    state = envs.start(0.0, spread=True)
    normalizer = Normalizer.new(envs.observations)
    zero = np.zeros_like(theta)
    return Learner(theta, zero, zero, 0, options.learning_rate, normalizer, 0, state)


def iterate(envs: Environments, learner: Learner, options: PPO, difficulty: float = 1.0) -> tuple[Learner, Report]:
    """Run one iteration of the learner.

    >>> envs = dl.learning.Environments(dl.learning.find_task("cart-pole"), items=8)
    >>> small = dl.learning.PPO(items=8, horizon=4, networks=dl.learning.Architecture((8,), (8,)))
    >>> learner, report = dl.learning.iterate(envs, dl.learning.begin_learning(envs, small), small)
    >>> learner.iteration
    1
    """
    environment, rollout, normalizer, report = collect(envs, learner, options, difficulty)
    learner, statistics = learn(network_for(envs, options), learner, rollout, options)
    after = replace(learner, normalizer=normalizer, environment=environment, iteration=learner.iteration + 1)
    return after, Report(**report, **statistics)


# --- collecting -------------------------------------------------------------------------------------------------------


def collect(
    envs: Environments, learner: Learner, options: PPO, difficulty: float
) -> tuple[EnvironmentState, Rollout, Normalizer, dict[str, Any]]:
    """T periods of all robots."""
    T, N, network = options.horizon, envs.items, network_for(envs, options)
    shared = _shared(learner)
    seen = np.empty((T, N, network.observations), _SINGLE)
    action = np.empty((T, N, network.actions), _SINGLE)
    logarithm, value, reward, following = (np.empty((T, N), _SINGLE) for _ in range(4))
    terminated, truncated = np.empty((T, N), bool), np.empty((T, N), bool)
    observed: list[Any] = []
    terms, measures, frozen = np.zeros((N, len(envs.term_names))), np.zeros((N, len(envs.measure_names))), 0
    state = learner.environment
    for t in range(T):
        observed.append(state.observation)
        choice = _act(network, state, shared)
        seen[t], action[t], logarithm[t], value[t] = choice.seen, choice.action, choice.logarithm, choice.value
        state, outcome = envs.step(state, choice.action, difficulty)
        reward[t], terminated[t], truncated[t] = outcome.reward, outcome.terminated, outcome.truncated
        if truncated[t].any():
            late = truncated[t]
            following[t, late] = value_of(network, outcome.final_observation[late], dtype=_SINGLE, **shared)
        terms += outcome.terms
        measures += outcome.measures
        frozen += int(outcome.frozen.sum())
    last = value_of(network, state.observation, dtype=_SINGLE, **shared)
    over = terminated | truncated
    following = np.where(over, following, np.concatenate([value[1:], last[None]]))
    following[terminated] = 0.0
    report = {
        "reward": float(reward.mean()),
        "falls": float(terminated.mean()) / envs.task.period,
        "frozen": frozen,
        "terms": dict(zip(envs.term_names, (terms.sum(0) / (T * N)).tolist(), strict=True)),
        "measures": dict(zip(envs.measure_names, (measures.sum(0) / (T * N)).tolist(), strict=True)),
    }
    rollout = Rollout(seen, action, logarithm, value, following, reward, over, terminated)
    return state, rollout, learner.normalizer.update(observed), report


def _shared(learner: Learner) -> dict[str, Any]:
    """The arrays that kernels of the policy share."""
    normalizer = learner.normalizer
    return {
        "theta": learner.theta,
        "mean": normalizer.mean.astype(_SINGLE),
        "scale": normalizer.scale.astype(_SINGLE),
    }


def _act(network: Network, state: EnvironmentState, shared: dict[str, Any]) -> Act:
    robots = state.simulation
    counters = np.stack([np.asarray(x, _SINGLE) for x in (robots.seed, robots.stream, robots.count)], -1)
    choice: Act = act(network, state.observation, counters, 1.0, dtype=_SINGLE, **shared)
    return choice


def advantages(rollout: Rollout, options: PPO) -> tuple[Floats32, Floats32]:
    """Advantages and targets of values, (periods, items) each."""
    delta = rollout.reward + options.objective.discount * rollout.following - rollout.value
    fade = np.where(rollout.over, 0.0, options.objective.discount * options.objective.trace).astype(_SINGLE)
    advantage, sum_ = np.empty_like(delta), np.zeros_like(delta[0])
    for t in reversed(range(len(delta))):
        sum_ = delta[t] + fade[t] * sum_
        advantage[t] = sum_
    return advantage, advantage + rollout.value


# --- learning ---------------------------------------------------------------------------------------------------------


class _Samples(NamedTuple):
    seen: Floats32
    action: Floats32
    logarithm: Floats32
    advantage: Floats32
    target: Floats32


class _Gradient(NamedTuple):
    """Summed over samples: ∂L/∂θ, log ratios, clipped ones, squared errors of the value."""

    theta: Floats32
    log_ratio: Any
    clipped: Any
    value_error: Any


def learn(network: Network, learner: Learner, rollout: Rollout, options: PPO) -> tuple[Learner, dict[str, Any]]:
    """Run all epochs on the collected samples."""
    advantage, target = advantages(rollout, options)
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    flat = [x.reshape(-1, *x.shape[2:]) for x in (rollout.seen, rollout.action, rollout.logarithm, advantage, target)]
    count, part = len(flat[0]), len(flat[0]) // options.minibatches
    theta, first, second, updates = learner.theta, learner.first, learner.second, learner.updates
    seed = int(np.ravel(learner.environment.simulation.seed)[0])
    rng = np.random.default_rng([seed, learner.iteration])
    total = np.zeros(3)
    with one_blas_thread():
        for _ in range(options.epochs):
            order = rng.permutation(count)
            mixed = _Samples(*(x[order] for x in flat))
            for k in range(options.minibatches):
                batch = _Samples(*(x[k * part : (k + 1) * part] for x in mixed))
                gradient = _both_halves(network, theta, batch, options)
                total += gradient.log_ratio, gradient.clipped, gradient.value_error
                slope = gradient.theta / _SINGLE(part)
                slope[network.policy_weights : network.policy_weights + network.actions] -= options.objective.entropy
                updates += 1
                theta, first, second = adam(theta, first, second, slope, updates, learner.learning_rate, options)
    used = options.epochs * options.minibatches * part
    divergence, clipped, error = (total / used).tolist()
    spread = network.split(theta)[1]
    rate = adapted_rate(learner.learning_rate, divergence, options)
    after = replace(learner, theta=theta, first=first, second=second, updates=updates, learning_rate=rate)
    return after, {
        "divergence": divergence,
        "clipped": clipped,
        "value_error": error**0.5,
        "deviation": float(np.exp(spread).mean()),
    }


def _both_halves(network: Network, theta: Floats32, batch: _Samples, options: PPO) -> _Gradient:
    middle = len(batch.seen) // 2
    halves = [_Samples(*(x[:middle] for x in batch)), _Samples(*(x[middle:] for x in batch))]
    if threads() > 1:
        other = _POOL.submit(_gradient, network, theta, halves[1], options)
        parts = [_gradient(network, theta, halves[0], options), other.result()]
    else:
        parts = [_gradient(network, theta, half, options) for half in halves]
    return _Gradient(*(a + b for a, b in zip(*parts, strict=True)))


@lru_cache(8)
def _passes(network: Network) -> tuple[Any, Any]:
    """Machine code for one thread."""
    return policy_gradients.specialize(network, dtype=_SINGLE), value_gradients.specialize(network, dtype=_SINGLE)


def _gradient(network: Network, theta: Floats32, batch: _Samples, options: PPO) -> _Gradient:
    """Of the loss, summed over samples."""
    seen, action, logarithm, advantage, target = batch
    clip = np.full(len(seen), options.objective.clip, _SINGLE)
    policy_pass, value_pass = _passes(network)
    policy = policy_pass(seen, action, logarithm, advantage, clip, theta)
    hidden, deltas, output, spread, log_ratio, clipped = policy
    parts = [weight_gradient(network.policy_sizes, seen, hidden, deltas, output), spread.sum(0)]
    value = value_pass(seen, target, theta)
    weight = _SINGLE(options.objective.value_weight)
    parts.append(weight * weight_gradient(network.value_sizes, seen, *value))
    ratio = np.exp(log_ratio) - 1.0 - log_ratio  # an estimate of the divergence that is never negative
    return _Gradient(np.concatenate(parts), ratio.sum(), clipped.sum(), (value[2] ** 2).sum())


def adam(
    theta: Floats32,
    first: Floats32,
    second: Floats32,
    slope: Floats32,
    updates: int,
    rate: float,
    options: PPO,
) -> tuple[Floats32, Floats32, Floats32]:
    """A step of Adam (Kingma and Ba 2015), on a gradient that is cut to its largest norm."""
    norm = float(np.sqrt(slope @ slope))
    if not np.isfinite(norm):
        return theta, first, second
    slope = slope * _SINGLE(min(1.0, options.objective.gradient / (norm + 1e-6)))
    first = first + _SINGLE(0.1) * (slope - first)
    second = second + _SINGLE(0.001) * (slope * slope - second)
    step = _SINGLE(rate * (1.0 - 0.999**updates) ** 0.5 / (1.0 - 0.9**updates))
    new: Any = theta - step * first / (np.sqrt(second) + _SINGLE(1e-8))
    return new, first, second


def adapted_rate(rate: float, divergence: float, options: PPO) -> float:
    """The learning rate after an iteration that moved the policy by a divergence."""
    if divergence > 2.0 * options.objective.divergence:
        return max(rate / 1.5, 1e-4)
    if divergence < 0.5 * options.objective.divergence:
        return min(rate * 1.5, 3e-3)
    return rate
