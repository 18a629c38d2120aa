"""A training session with its files: checkpoint, policy, learning curves and film."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

from delassus.learning.environment.environments import Environments
from delassus.learning.environment.task import Evaluation, LearningTask
from delassus.learning.errors import LearningError
from delassus.learning.learner.checkpoint import robot_digest
from delassus.learning.learner.evaluation import evaluate
from delassus.learning.learner.policy import Policy
from delassus.learning.learner.training import POLICY, Progress, Training
from delassus.learning.policies.bundled import bundled_policies, bundled_policy
from delassus.learning.results.page import save_page
from delassus.learning.tasks.catalog import find_task
from delassus.output.trajectory import Trajectory

FILM: Final = "film.html"
PAGE: Final = "learning.html"
_SHOWN_ROBOTS: Final = 4
_APART: Final = 1.0
"""Distance between neighboring robots of a film [m], which all start at the same position."""


def motion(envs: Environments, trial: Evaluation) -> Trajectory:
    """The motion of robots in a trial, as a `Trajectory` that can be drawn, saved and filmed."""
    times: Any = envs.task.period * np.arange(len(trial.q))
    return Trajectory(times, trial.q, trial.v, mechanism=envs.sim.mechanism, simulation=envs.sim)


def show(out: Path, name: str, task: LearningTask, training: Training) -> str:
    """Write the film and the page of a training session; return the verdict on the robots of the film."""
    verdict = film(out / FILM, task, training.policy)
    save_page(out / PAGE, name, training.history, FILM, verdict)
    return verdict


def film(path: Path, task: LearningTask, policy: Policy, told: dict[str, Any] | None = None, seed: int = 1) -> str:
    """Write a film of robots that follow a policy; return the verdict on them."""
    envs = Environments(task, _SHOWN_ROBOTS, seed)
    told = task.trial(_SHOWN_ROBOTS) if told is None else told
    trial = evaluate(policy, envs, task.periods - 1, told=told, seed=seed)
    motion(envs, trial._replace(q=_side_by_side(envs, trial.q))).save_html(path)
    return task.judge(trial).words


def _side_by_side(envs: Environments, q: Any) -> Any:
    """Configurations (times, items, nq) in which robots with a free base on flat ground are moved apart along y."""
    if envs.task.robot.joints[0].kind.nv < 6 or envs.sim.ground.heights is not None:
        return q
    apart = np.zeros(q.shape[1:])
    apart[:, 1] = _APART * np.arange(len(apart))
    return q + apart


def parse_command(task: LearningTask, text: str) -> dict[str, Any]:
    """The command to robots of a task, from numbers with commas between them."""
    size = task.memory.get("command", 0)
    try:
        numbers = [float(x) for x in text.split(",")]
    except ValueError:
        numbers = []
    if not size or len(numbers) != size or not np.all(np.isfinite(numbers)):
        need = f"it must be {size} finite numbers, such as {','.join(['0.5', '0', '0'][:size])}" if size else "omit it"
        what = f"the command is {text!r}" if size else "robots of this task take no command"
        raise LearningError(f"{what}; {need}.", code="bad-argument")
    return {"command": numbers}


def load_run(run: Path, robot: Any = None) -> tuple[LearningTask, Policy]:
    """The task and the policy of a folder of a training session, of a file, or of a bundled policy."""
    if not run.exists() and str(run) in bundled_policies():
        if robot is not None:
            raise LearningError(
                f"the bundled policy of {str(run)!r} is for the task's own robot, not for {str(robot)!r}: train one, "
                f"delassus learn {run} --robot {robot}.",
                code="other-system",
            )
        return find_task(str(run)), bundled_policy(str(run))
    if not run.exists():
        raise LearningError(
            f"{str(run)!r} is neither the folder of a training, nor the file of a policy, nor a task with a bundled "
            f"policy: {', '.join(bundled_policies())}.",
            code="missing-file",
        )
    policy = Policy.load(run / POLICY if run.is_dir() else run)
    task = find_task(policy.task, robot)
    envs = Environments(task, 1)
    policy.check_fits(policy.task, robot_digest(task), envs.observations, envs.actions)
    return task, policy


def progress_line(name: str, progress: Progress, minutes: float) -> str:
    """A line of text about an iteration."""
    report = progress.report
    measures = "  ".join(f"{key.replace('_', ' ')} {value:.3f}" for key, value in report.measures.items())
    left = 60.0 * minutes * max(0.0, 1.0 - progress.share)
    trial = f"  trial: {progress.verdict.words}" if progress.verdict is not None else ""
    frozen = f"  frozen {report.frozen}" if report.frozen else ""
    return (
        f"{progress.seconds:6.1f} s  {name}  iteration {progress.iteration}  reward {report.reward:.4f}  {measures}  "
        f"falls {report.falls:.3f}/s  {progress.steps_per_second:,.0f} steps/s  {left:.0f} s left{frozen}{trial}"
    )
