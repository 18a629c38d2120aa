"""Runs of many control periods. Recorded states are copied into arrays that are allocated in advance, time first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from delassus.common.memory import free_memory
from delassus.common.progress import ProgressLine
from delassus.errors import short
from delassus.output.contacts import ContactRecord
from delassus.output.run_record import RunRecord
from delassus.output.trajectory import Trajectory
from delassus.simulation.checks import RunError, SimulationError
from delassus.simulation.chunked_run import ChunkedRun
from delassus.simulation.controls import Control
from delassus.simulation.pushes import Pushes
from delassus.simulation.runner import Runner, report_progress
from delassus.simulation.setup import Setup
from delassus.simulation.state import State
from delassus.step.flags import Mark

_LITTLE: Final = 32 * 1024 * 1024
"""Logs up to this size [bytes] are allocated without a check of memory."""

KEPT: Final = ("log_time", "q", "v", "impulse", "contact", "activation", "tally", "memory", "residual", "status")


def check_memory(states: int, each: int) -> None:
    """Raise an error if a log does not fit into memory, instead of letting the system kill the process."""
    if states * each < _LITTLE:  # the check takes longer than a short run
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
    """Records a log of at most a given number of states. The first is the initial state."""

    def __init__(self, sim: Setup, start: State, runner: Runner, most: int, own_times: bool = False) -> None:
        same = not own_times and (np.ndim(start.time) == 0 or bool(np.all(start.time == runner.log_time)))
        values = {name: np.asarray(getattr(runner, name)) for name in (*KEPT, *(() if same else ("time",)))}
        check_memory(most, sum(x.nbytes for x in values.values()))
        kinds = {"status": np.int64}
        self.arrays = {name: np.empty((most, *x.shape), kinds.get(name, float)) for name, x in values.items()}
        self._sim, self._start, self._begin = sim, start, runner.log_time
        self.count, self.last = 0, 0
        self.inputs: Any = None
        self.keep(runner)

    def keep(self, runner: Runner) -> None:
        """Copy the current state."""
        for name, array in self.arrays.items():
            array[self.count] = getattr(runner, name)
        self.count, self.last = self.count + 1, runner.made

    def keep_chunk(self, chunk: ChunkedRun, k: int, made: int, every: int, steps: int) -> None:
        """Copy the periods to record from a chunk of several periods, the first of which has index k."""
        first, runner = every - k % every, chunk.runner
        if first <= made:
            count = 1 + (made - first) // every
            for name, rows in chunk.rows(slice(first, made + 1, every)).items():
                self.arrays[name][self.count : self.count + count] = rows
            self.count, self.last = self.count + count, runner.made - (made - first) % every
        if k + made == steps:
            self.keep_last(runner)

    def keep_last(self, runner: Runner) -> None:
        """Copy the current state as the last of a run, unless it is recorded already."""
        if runner.made != self.last:
            self.keep(runner)

    def trajectory(self, interrupted: bool = False) -> Trajectory:
        """The recorded trajectory. The last state of an interrupted run gets a flag."""
        if interrupted:
            self.arrays["status"][self.count - 1] |= int(Mark.INTERRUPTED)
        arrays: dict[str, Any] = {name: array[: self.count] for name, array in self.arrays.items()}
        impulse, contact, item_time = arrays.pop("impulse"), arrays.pop("contact"), arrays.pop("time", None)
        if item_time is not None and _is_common(item_time, arrays["log_time"]):
            item_time = None
        sim, start = self._sim, self._start
        if not sim.scene.na:
            del arrays["activation"]
        if not sim.scene.tracked:
            del arrays["tally"]
        if not arrays["memory"].shape[-1]:
            del arrays["memory"]
        whole = {name: np.asarray(getattr(start, name)) for name in ("count", "seed", "stream")}
        return Trajectory(
            time=arrays.pop("log_time"),
            **arrays,
            steps=np.full(arrays["status"].shape[1:], self.last * sim.scene.substeps),
            mechanism=sim.mechanism,
            contacts=ContactRecord(impulse, contact, sim.time_step, sim.candidates, sim.scene.contact_rows),
            simulation=sim,
            run=RunRecord(self._begin, sim.period, **whole, time=item_time),
            parameters=start.parameters if start.parameters.shape[-1] else None,
            replay=None if self.inputs is None else self.inputs.record(),
        )


def _is_common(times: Any, common: Any) -> bool:
    """Whether the times (times, …) of all environments equal those of the log (times,)."""
    return bool(np.all(times == common.reshape(-1, *(1,) * (times.ndim - 1))))


def record_run(
    sim: Setup,
    state: State,
    control: Control,
    every: int,
    progress: Callable[[int, State], State | None] | None,
    push: Pushes | None = None,
    inputs: Callable[[Runner], Any] | None = None,
) -> Trajectory:
    """Run control periods from a state on (see `Simulation.run`); `inputs` creates an `InputRecorder`."""
    runner, steps = Runner(sim, state, control, pushes=push), control.steps
    log = Recorder(sim, state, runner, 1 + -(-steps // every), own_times=progress is not None)
    chunk = ChunkedRun(runner)
    log.inputs = None if inputs is None else inputs(runner)
    runner.compile_ahead(steps)
    line = ProgressLine("simulates", steps, "periods")
    try:
        k = 0
        while k < steps:
            periods = 0 if progress is not None or log.inputs is not None else chunk.advance(k, steps - k)
            if periods:
                log.keep_chunk(chunk, k, periods, every, steps)
            else:
                runner.step(k)
                periods = 1
                if log.inputs is not None:
                    log.inputs.keep(k, runner)
                if progress is not None:
                    _report(progress, k, runner, log)
                if (k + 1) % every == 0 or k + 1 == steps:
                    log.keep(runner)
            k += periods
            line.show(k)
    except KeyboardInterrupt:
        if runner.consistent:
            log.keep_last(runner)
        return log.trajectory(interrupted=True)
    except RunError as error:
        log.keep_last(runner)
        error.log = log.trajectory(interrupted=True)
        error.add_note("The attribute `log` of this error has the trajectory up to that time.")
        raise
    finally:
        line.clear()
    return log.trajectory()


def _report(progress: Callable[[int, State], Any], k: int, runner: Runner, log: Recorder) -> None:
    """Call the user's `progress`, and continue from the state that it returns, if any."""
    before, after = report_progress(progress, k, runner)
    if after is None or after is before:
        return
    if not isinstance(after, State) or after.batch != before.batch:
        raise RunError(
            f"progress returned {short(repr(after))} at {runner.log_time:g} s; it must return None, or a state of the "
            "same environments to continue from, such as sim.reset(state, fallen, home).",
            runner.log_time,
            code="wrong-type",
        )
    sim: Any = runner.sim
    sim.check(after)
    if not np.array_equal(after.parameters, before.parameters, equal_nan=True):
        raise RunError(
            f"progress changed parameters at {runner.log_time:g} s; the parameters of a run are constant. Reset items "
            "without parameters=, or write a loop over sim.step.",
            runner.log_time,
            code="not-supported",
        )
    if log.inputs is not None:
        log.inputs.reset(k + 1, before, after)
    runner.go_on(after)
