"""The bundled policies, by the names of their tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from delassus.learning.errors import LearningError
from delassus.learning.learner.policy import Policy

_FOLDER: Final = Path(__file__).parent


def bundled_policies() -> list[str]:
    """The tasks that have one.

    >>> dl.learning.bundled_policies()
    ['biped-walk', 'quadruped-walk']
    """
    return sorted(path.stem for path in _FOLDER.glob("*.npz"))


def bundled_policy(task: str) -> Policy:
    """The policy of a task, for the task's own robot.

    >>> dl.learning.bundled_policy("biped-walk").network.policy
    (128, 128)
    """
    if task not in bundled_policies():
        raise LearningError(
            f"there is no bundled policy of {task!r}; there are {', '.join(bundled_policies())}. Train one: "
            f"delassus learn {task}.",
            code="unknown-task",
        )
    return Policy.load(_FOLDER / f"{task}.npz")
