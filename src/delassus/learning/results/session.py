"""A session of learning with its files: checkpoint, policy, a page of curves and a film."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

from delassus.learning.environment.environments import Environments
from delassus.learning.environment.task import Evaluation, LearningTask
from delassus.learning.learner.checkpoint import robot_digest
from delassus.learning.learner.evaluation import evaluate
from delassus.learning.learner.policy import Policy
from delassus.learning.learner.training import POLICY, Progress, Training
from delassus.learning.results.page import save_page
from delassus.learning.tasks.catalog import find_task
from delassus.output.trajectory import Trajectory

FILM: Final = "film.html"
PAGE: Final = "learning.html"
_SHOWN_ROBOTS: Final = 4


def motion(envs: Environments, trial: Evaluation) -> Trajectory:
    """What robots did in a trial, as a trajectory, which can be drawn, saved and filmed."""
    times: Any = envs.task.period * np.arange(len(trial.q))
    return Trajectory(times, trial.q, trial.v, mechanism=envs.sim.mechanism, simulation=envs.sim)


def show(out: Path, name: str, task: LearningTask, training: Training) -> str:
    """Write the film and the page of what was learnt; the verdict on the robots of the film."""
    verdict = film(out / FILM, task, training.policy)
    save_page(out / PAGE, name, training.history, FILM, verdict)
    return verdict


def film(path: Path, task: LearningTask, policy: Policy, told: dict[str, Any] | None = None, seed: int = 1) -> str:
    """Write a film of robots that follow a policy; the verdict on them."""
    envs = Environments(task, _SHOWN_ROBOTS, seed)
    told = task.trial(_SHOWN_ROBOTS) if told is None else told
    trial = evaluate(policy, envs, task.periods - 1, told=told, seed=seed)
    motion(envs, trial).save_html(path)
    return task.judge(trial).words


def load_run(folder: Path, robot: Any = None) -> tuple[LearningTask, Policy]:
    """The task and the policy of a folder that learning has written, or of a file of a policy."""
    policy = Policy.load(folder / POLICY if folder.is_dir() else folder)
    task = find_task(policy.task, robot)
    envs = Environments(task, 1)
    policy.check_fits(policy.task, robot_digest(task), envs.observations, envs.actions)
    return task, policy


def progress_line(name: str, progress: Progress, minutes: float) -> str:
    """An iteration in a line."""
    report = progress.report
    measures = "  ".join(f"{key.replace('_', ' ')} {value:.3f}" for key, value in report.measures.items())
    left = max(0.0, 60.0 * minutes - progress.seconds)
    trial = f"  trial: {progress.verdict.words}" if progress.verdict is not None else ""
    frozen = f"  frozen {report.frozen}" if report.frozen else ""
    return (
        f"{progress.seconds:6.1f} s  {name}  iteration {progress.iteration}  reward {report.reward:.4f}  {measures}  "
        f"falls {report.falls:.3f}/s  {progress.steps_per_second:,.0f} steps/s  {left:.0f} s left{frozen}{trial}"
    )
