"""The table of bundled tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from delassus.learning.environment.task import LearningTask
from delassus.learning.errors import LearningError
from delassus.model.model import Model
from delassus.model.readers.load import load

Maker: TypeAlias = Callable[[Model], LearningTask]
"""A function that creates the task for a robot."""


@dataclass(frozen=True)
class Entry:
    """An entry of the catalog: the default robot of a task, its description, and the function that creates it."""

    robot: str
    about: str
    make: Maker


CATALOG: Final[dict[str, Entry]] = {}
"""All tasks by name."""


def register_task(
    name: str, robot: str, about: str
) -> Callable[[Callable[[Model], LearningTask]], Callable[[Model], LearningTask]]:
    """Put the function below, which makes a task of a robot, into the catalog.

    >>> @dl.learning.register_task("hold-pole", "cart_pole", "balance a pole from a small angle")
    ... def hold_pole(robot):
    ...     return dl.learning.find_task("cart-pole", robot, spread=0.05)
    >>> dl.learning.find_task("hold-pole").spread
    0.05
    """

    def register(make: Maker) -> Maker:
        CATALOG[name] = Entry(robot, about, make)
        return make

    return register


def task_names() -> dict[str, str]:
    """The names of all tasks, with descriptions.

    >>> sorted(dl.learning.task_names())[0]
    'biped-walk'
    """
    return {name: entry.about for name, entry in CATALOG.items()}


def find_task(name: str, robot: Any = None, **changes: Any) -> LearningTask:
    """A task by name, for its own robot, or for another one by name, by file, or as a model; with fields changed.

    >>> dl.learning.find_task("cart-pole", spread=0.1).spread
    0.1
    """
    if name not in CATALOG:
        raise LearningError(f"there is no task {name!r}; the tasks are {', '.join(CATALOG)}.", code="unknown-task")
    entry = CATALOG[name]
    source = entry.robot if robot is None else robot
    task = entry.make(source if isinstance(source, Model) else load(source))
    return replace(task, **changes) if changes else task
