"""Inputs that `run(record="replay")` records: controls, pushes and resets, and the first failures of environments."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from delassus.common.memory import free_memory
from delassus.output.replay_record import FAILURES, NEVER, RecordedPush, RecordedReset, ReplayRecord
from delassus.simulation.checks import SimulationError
from delassus.simulation.controls import Control
from delassus.simulation.runner import Runner
from delassus.simulation.state import State


class InputRecorder:
    """Records the inputs of a run."""

    def __init__(self, control: Control, runner: Runner) -> None:
        self._policy = control.policy
        batch = runner.q.shape[:-1]
        self._controls: list[Any] = []
        self._failures = np.full((len(FAILURES), *batch), NEVER, np.int64)
        self._pushes: dict[int, RecordedPush] = {}
        self._resets: dict[int, RecordedReset] = {}
        self._check_memory(control, int(np.prod(batch, dtype=int)), runner.sim.nu)

    @staticmethod
    def _check_memory(control: Control, items: int, nu: int) -> None:
        most, free = 8 * control.steps * items * nu, free_memory()
        if control.asks and most > free:
            raise SimulationError(
                f"the controls of {items} environments in {control.steps} periods may take {most / 1e9:.3g} GB, and "
                f"{free / 1e9:.3g} GB are free. Split the run into parts, or omit record=.",
                code="out-of-memory",
            )

    def keep(self, k: int, runner: Runner) -> None:
        """Copy the inputs of the k-th period, and record which environments it flagged for the first time."""
        self._controls.append(np.array(runner.given[0]))
        if runner.pushed is not None and (runner.pushed.frames or runner.pushed.kick is not None):
            self._pushes[k] = RecordedPush(*(copy(x) for x in runner.pushed))
        status = np.asarray(runner.status).astype(np.int64)
        if status.any():
            for row, mark in zip(self._failures, FAILURES, strict=True):
                row[...] = np.where((row == NEVER) & (status & int(mark) != 0), k, row)

    def reset(self, k: int, before: State, after: State) -> None:
        """Record which environments are reset before the k-th period."""
        old, new = before.flat(), after.flat()
        differs = np.zeros(len(old["q"]), bool)
        for name, x in old.items():
            same = (x == new[name]) | (np.isnan(x) & np.isnan(new[name]))
            differs |= ~same.reshape(len(x), -1).all(-1)
        numbers = np.flatnonzero(differs)
        if len(numbers):
            self._resets[k] = RecordedReset(numbers, {name: np.array(x[numbers]) for name, x in new.items()})

    def record(self) -> ReplayRecord:
        """All that was kept."""
        control = np.stack(np.broadcast_arrays(*self._controls)) if self._controls else None
        return ReplayRecord(control, self._failures, self._pushes, self._resets, self._policy)
