"""A run of many control periods, and its states, kept in arrays that are there from the beginning, time first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from delassus.common.memory import free_memory
from delassus.errors import short
from delassus.output.contacts import ContactRecord
from delassus.output.trajectory import Trajectory
from delassus.simulation.checks import RunError, SimulationError
from delassus.simulation.controls import Control
from delassus.simulation.runner import Runner, report_progress
from delassus.simulation.setup import Setup
from delassus.simulation.state import State
from delassus.simulation.stretch import Stretch
from delassus.step.marks import Mark

_LITTLE: Final = 32 * 1024 * 1024
"""Bytes that there always are."""

KEPT: Final = ("time", "q", "v", "impulse", "contact", "activation", "residual", "status")


def check_memory(states: int, each: int) -> None:
    """Refuse a log of so many states, bytes each, that this machine has no memory for, before it is killed for it."""
    if states * each < _LITTLE:  # to ask takes longer than a short run
        return
    free = free_memory()
    if states * each > free:
        fewer = -(-states * each // int(max(0.5 * free, 1.0)))
        raise SimulationError(
            f"a log of {short(str(states), 20)} states would take {short(str(states * each // 10**9), 20)} GB, and "
            f"{free / 1e9:.3g} GB are free. Keep fewer of them: every={short(str(fewer), 20)}.",
            code="out-of-memory",
        )


class Recorder:
    """A log in the making, of at most so many states; the first is that of the start."""

    def __init__(self, start: State, most: int) -> None:
        values = {name: np.asarray(getattr(start, name)) for name in KEPT}
        check_memory(most, sum(x.nbytes for x in values.values()))
        self.arrays = {name: np.empty((most, *x.shape), x.dtype) for name, x in values.items()}
        self.count, self.first, self.last = 0, start.count, start.count
        self.keep(start)

    def keep(self, state: State | Runner) -> None:
        """Copy a state."""
        for name, array in self.arrays.items():
            array[self.count] = getattr(state, name)
        self.count, self.last = self.count + 1, state.count

    def keep_stretch(self, stretch: Stretch, k: int, made: int, every: int, steps: int) -> None:
        """Copy those periods of a stretch from the k-th on that are kept of a run of so many steps."""
        first, runner = every - k % every, stretch.runner
        if first <= made:
            count = 1 + (made - first) // every
            for name, rows in stretch.rows(slice(first, made + 1, every)).items():
                self.arrays[name][self.count : self.count + count] = rows
            self.count, self.last = self.count + count, runner.count - (made - first) % every
        if k + made == steps:
            self.keep_last(runner)

    def keep_last(self, state: State | Runner) -> None:
        """Copy a state unless it has been, as the last of a run."""
        if state.count != self.last:
            self.keep(state)

    def trajectory(self, sim: Setup, interrupted: bool = False) -> Trajectory:
        """What has been kept of a run; the last state of one that was interrupted is marked."""
        if interrupted:
            self.arrays["status"][self.count - 1] |= int(Mark.INTERRUPTED)
        kept: dict[str, Any] = {name: array[: self.count] for name, array in self.arrays.items()}
        impulse, contact = kept.pop("impulse"), kept.pop("contact")
        if not sim.scene.na:
            del kept["activation"]
        return Trajectory(
            **kept,
            steps=np.full(kept["status"].shape[1:], (self.last - self.first) * sim.scene.substeps),
            mechanism=sim.mechanism,
            contacts=ContactRecord(impulse, contact, sim.time_step, sim.candidates, sim.scene.contact_rows),
            simulation=sim,
        )


def record_run(
    sim: Setup, state: State, control: Control, every: int, progress: Callable[[int, State], None] | None
) -> Trajectory:
    """The control periods of a run from a state on; see `Simulation.run`."""
    log, runner, steps = Recorder(state, 1 + -(-control.steps // every)), Runner(sim, state, control), control.steps
    stretch = Stretch(runner)
    try:
        k = 0
        while k < steps:
            made = 0 if progress is not None else stretch.advance(k, steps - k)
            if made:
                log.keep_stretch(stretch, k, made, every, steps)
            else:
                runner.step(k)
                made = 1
                if (k + 1) % every == 0 or k + 1 == steps:
                    log.keep(runner)
                if progress is not None:
                    report_progress(progress, k, runner)
            k += made
    except KeyboardInterrupt:
        if runner.consistent:
            log.keep_last(runner)
        return log.trajectory(sim, interrupted=True)
    except RunError as error:
        log.keep_last(runner)
        error.log = log.trajectory(sim, interrupted=True)
        error.add_note("What was simulated until then is the `log` of this error.")
        raise
    return log.trajectory(sim)
