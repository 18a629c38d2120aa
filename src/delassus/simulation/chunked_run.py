"""Many control periods of one robot in one call of machine code, if no Python function is called between periods.

Each period reads a row of the bound arrays and writes the next row, so that all periods can be copied into a log at
once. A period with a flag ends the chunk, because it may have to be solved again.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from delassus.simulation.runner import Runner, iterations_alone

LONGEST: Final = 64
"""Largest number of periods in a chunk. They take a millisecond or less, after which Python can handle Ctrl-C."""

_WORTH_IT: Final = 64
"""Smallest number of remaining periods for which a chunk is bound."""


class ChunkedRun:
    """Rows for the periods of a runner, bound on the first long run; row 0 is the state at the start of a chunk."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self._is_bound, self._ahead = False, 8

    def _bind(self) -> None:
        """Allocate the rows, and bind the kernel to them."""
        runner, sim = self.runner, self.runner.sim
        self._moving = tuple(np.empty((LONGEST + 1, *x.shape)) for x in runner.moving)
        self.time = np.empty(LONGEST + 1)
        self.residual, count, self._mark = (np.empty(LONGEST) for _ in range(3))
        self._given = np.zeros((LONGEST, sim.scene.control_size))
        names, shared = runner.packed(iterations_alone(sim.reduced_scene))
        inputs = (
            *(x[:-1] for x in self._moving),
            self.time[:-1],
            runner.alive,
            self._given,
            np.array(sim.time_step),
            *shared,
        )
        outputs = (*(x[1:] for x in self._moving), self.residual, count, self._mark)
        arrays = (*inputs, *outputs)
        self._calls = runner.control.kernel.sequence(sim.reduced_scene, *arrays, stop=len(arrays) - 1, inputs=names)
        self._is_bound = True

    def advance(self, k: int, most: int) -> int:
        """Advance by at most `most` control periods from index k on, and return their number, which may be zero.

        Chunks become shorter if many periods have flags.
        """
        if not self._is_bound:
            runner = self.runner
            if most < _WORTH_IT or not runner.bound or runner.control.ahead is None or runner.sim.dtype != np.float64:
                return 0
            self._bind()
        periods = min(self._ahead, most, LONGEST)
        if periods < 4:
            self._ahead = min(2 * self._ahead + 1, LONGEST)
            return 0
        periods_made = self.go(k, periods)
        self._ahead = min(2 * periods_made, LONGEST) if periods_made < periods else min(2 * self._ahead, LONGEST)
        return periods_made

    def go(self, k: int, periods: int) -> int:
        """Advance from index k on up to the last period without a flag, and return the number of periods."""
        runner = self.runner
        for rows, x in zip(self._moving, runner.moving, strict=True):
            rows[0] = x
        if runner.control.ahead is not None:
            self._given[:periods, : runner.sim.nu] = runner.control.ahead(k, periods)
        self.time[0], self.time[1:] = runner.time, runner.sim.period
        np.add.accumulate(self.time, out=self.time)
        made = self._calls(periods)
        if self._mark[made - 1]:
            made -= 1
        runner.consistent = False
        for rows, x in zip(self._moving, runner.moving, strict=True):
            x[...] = rows[made]
        if made:
            runner.residual[...], runner.status[...] = self.residual[made - 1], 0.0
        runner.time = runner.log_time = float(self.time[made])
        runner.made += made
        runner.consistent = True
        return made

    def rows(self, periods: slice) -> dict[str, Any]:
        """The recorded values of these periods, counted from 1, by the names of `State`."""
        q, v, impulse, contact = (x[periods] for x in self._moving)
        scene = self.runner.sim.scene
        before = slice(periods.start - 1, periods.stop - 1, periods.step)
        return {
            "log_time": self.time[periods],
            "q": q,
            "v": v,
            "impulse": impulse[:, : scene.m],
            "activation": impulse[:, scene.m : scene.m + scene.na],
            "tally": impulse[:, scene.m + scene.na : scene.m + scene.na + scene.tally_size],
            "memory": self.runner.memory if self.runner.policy is None else impulse[:, self.runner.carried],
            "contact": contact[:, : scene.slots],
            "residual": self.residual[before],
            "status": 0,
        }
