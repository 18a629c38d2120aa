"""`train`: trains until a goal is reached, time is up, or Ctrl-C is pressed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from delassus.learning.environment.environments import Environments
from delassus.learning.environment.options import PPO
from delassus.learning.environment.task import LearningTask, Verdict
from delassus.learning.errors import LearningError
from delassus.learning.learner.checkpoint import load_checkpoint, policy_of, save_checkpoint
from delassus.learning.learner.evaluation import evaluate
from delassus.learning.learner.policy import Policy
from delassus.learning.learner.ppo import Learner, Report, begin_learning, iterate

CHECKPOINT: Final = "checkpoint.npz"
POLICY: Final = "policy.npz"
GOALS: Final = ("goal", "halfway", "none")

_TRIED_ROBOTS: Final = 64
_SAVED_EVERY: Final = 30.0
"""Seconds between two checkpoints."""


@dataclass(frozen=True)
class Budget:
    """When learning ends.

    Attributes:
        minutes: Of wall time, at most; the first iteration, which compiles or loads the kernels, is not counted.
        iterations: At most; None for as many as fit into the time.
        goal: Whether it ends when the task's goal is reached: "goal", "halfway" for the earlier one, "none".
        trial_every: Iterations between two trials of 64 robots, once the task looks learnt.

    >>> dl.learning.Budget(minutes=1.0, goal="halfway").trial_every
    10
    """

    minutes: float = 10.0
    iterations: int | None = None
    goal: str = "goal"
    trial_every: int = 10

    def __post_init__(self) -> None:
        if self.goal not in GOALS:
            raise LearningError(f"goal is {self.goal!r}; it must be one of {', '.join(GOALS)}.", code="unknown-name")
        if not self.minutes > 0.0:
            raise LearningError(f"minutes is {self.minutes}; it must be positive.", code="bad-argument")


class Progress(NamedTuple):
    """An iteration of learning.

    Attributes:
        iteration: Its number.
        seconds: Since learning began.
        steps_per_second: Environment steps, learning included.
        share: Of the time or the iterations that are used up.
        report: Of the iteration.
        verdict: Of a trial, if there was one.

    >>> task = dl.learning.find_task("cart-pole")
    >>> small = dl.learning.PPO(items=8, horizon=4, networks=dl.learning.Architecture((8,), (8,)))
    >>> one = dl.learning.Budget(iterations=1, goal="none")
    >>> dl.learning.train("cart-pole", task, small, budget=one).history[0].iteration
    1
    """

    iteration: int
    seconds: float
    steps_per_second: float
    share: float
    report: Report
    verdict: Verdict | None


class Training(NamedTuple):
    """What came of learning: the policy, how it went, and why it ended.

    >>> task = dl.learning.find_task("cart-pole")
    >>> small = dl.learning.PPO(items=8, horizon=4, networks=dl.learning.Architecture((8,), (8,)))
    >>> one = dl.learning.Budget(iterations=1, goal="none")
    >>> dl.learning.train("cart-pole", task, small, budget=one).policy.task
    'cart-pole'
    """

    policy: Policy
    history: list[Progress]
    ending: str


def train(
    name: str,
    task: LearningTask,
    options: PPO | None = None,
    *,
    seed: int = 0,
    budget: Budget = Budget(),
    out: Path | None = None,
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Training:
    """Learn a task.

    Args:
        name: Of the task, for files.
        task: What is learnt.
        options: Of the algorithm.
        seed: Of everything that is drawn.
        budget: When it ends.
        out: A folder for checkpoint and policy, or None for no files.
        resume: Whether to go on from the checkpoint in the folder.
        progress: Called after each iteration.

    >>> task = dl.learning.find_task("cart-pole")
    >>> small = dl.learning.PPO(items=8, horizon=4, networks=dl.learning.Architecture((8,), (8,)))
    >>> training = dl.learning.train("cart-pole", task, small, budget=dl.learning.Budget(iterations=2, goal="none"))
    >>> len(training.history)
    2
    """
    began = time.perf_counter()
    if resume and out is not None:
        envs, learner, options = load_checkpoint(out / CHECKPOINT, name, task)
    else:
        options = task.learning if options is None else options
        envs = Environments(task, options.items, seed, options.dtype)
        learner = begin_learning(envs, options)
    trials = Environments(task, _TRIED_ROBOTS, seed)
    history: list[Progress] = []
    ending, saved = "the time is over", began
    first = learner.iteration
    counted_from: float | None = None  # the end of the first iteration
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    try:
        while True:
            start = time.perf_counter()
            difficulty = min(1.0, learner.iteration / task.ramp) if task.ramp else 1.0
            learner, report = iterate(envs, learner, options, difficulty)
            now = time.perf_counter()
            verdict = _try(name, envs, trials, learner, options, report, budget)
            counted_from = now if counted_from is None else counted_from
            share = (now - counted_from) / (60.0 * budget.minutes)
            if budget.iterations is not None:
                share = max(share, (learner.iteration - first) / budget.iterations)
            speed = options.items * options.horizon / (now - start)
            history.append(Progress(learner.iteration, now - began, speed, share, report, verdict))
            if progress is not None:
                progress(history[-1])
            if out is not None and now - saved > _SAVED_EVERY:
                save_checkpoint(out / CHECKPOINT, name, envs, learner, options)
                saved = now
            if verdict is not None and (verdict.reached or (budget.goal == "halfway" and verdict.halfway)):
                ending = "the goal is reached"
                break
            if share >= 1.0:
                break
    except KeyboardInterrupt:
        ending = "interrupted"
    policy = policy_of(name, envs, learner, options)
    if out is not None:
        save_checkpoint(out / CHECKPOINT, name, envs, learner, options)
        policy.save(out / POLICY)
    return Training(policy, history, ending)


def _try(
    name: str,
    envs: Environments,
    trials: Environments,
    learner: Learner,
    options: PPO,
    report: Report,
    budget: Budget,
) -> Verdict | None:
    """The verdict on a trial, if it is time for one."""
    task = envs.task
    due = learner.iteration % budget.trial_every == 0 and task.looks_learnt(report.measures, report.falls)
    if budget.goal == "none" or not due:
        return None
    policy = policy_of(name, envs, learner, options)
    return task.judge(evaluate(policy, trials, task.periods - 1, told=task.trial(trials.items)))
