"""How things are timed: the best of many repetitions, interleaved where two things are compared."""

import time
from collections.abc import Callable
from typing import Any

Task = Callable[[], Any]


def best_of_each(tasks: dict[str, Task], repeat: int = 20, number: int = 1) -> dict[str, float]:
    """Seconds of one call of each task; the rounds of all tasks alternate, so that noise meets them alike."""
    seconds = dict.fromkeys(tasks, float("inf"))
    for task in tasks.values():
        task()
    for _ in range(repeat):
        for name, task in tasks.items():
            start = time.perf_counter()
            for _ in range(number):
                task()
            seconds[name] = min(seconds[name], (time.perf_counter() - start) / number)
    return seconds


def best_of(task: Task, repeat: int = 3, clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds of the fastest of several calls."""
    best = float("inf")
    for _ in range(repeat):
        start = clock()
        task()
        best = min(best, clock() - start)
    return best
