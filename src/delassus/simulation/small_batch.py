"""The first attempt at a period of a small batch, on arrays that are bound to its kernel once.

A call of a kernel looks at shapes, packs structures and allocates results, some 60 µs of Python; a batch of 64 robots
takes as long as that to compute. Bound arrays take a copy in, a call without arguments and a copy out. Results have
the same bits as those of a call: it is the same machine code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from delassus.simulation.state import is_alive

if TYPE_CHECKING:
    from delassus.simulation.runner import Runner
    from delassus.step.scene import Scene

LARGEST: Final = 128
"""Items of a batch that is bound: larger ones are worth the threads of a call."""


class SmallBatch:
    """Arrays of a batch with one axis, bound to the kernel of a runner's first attempt with some iterations."""

    def __init__(self, runner: Runner, scene: Scene, iterations: float) -> None:
        sim, count = runner.sim, len(runner.q)
        self._moving = tuple(np.array(x) for x in runner.moving)
        self._time, self._alive = np.empty(count), np.empty(count)
        self._control = np.zeros((count, sim.scene.control_size))
        self._own = self._control[:, : sim.nu]
        names, numbers = runner.packed(iterations)
        same = [np.tile(x, (count, *(1,) * x.ndim)) for x in (np.array(sim.time_step), *numbers)]
        results = [np.empty_like(x) for x in self._moving]
        self._results = (*results, *(np.empty(count) for _ in range(3)))
        control = (self._control,) if runner.control.takes else ()
        self._call = runner.control.kernel.bind(
            scene, *self._moving, self._time, self._alive, *control, *same, *self._results, inputs=names
        )

    def solve(self, moving: tuple[Any, ...], time: Any, status: Any, control: tuple[Any, ...]) -> tuple[Any, ...]:
        """q, v, rows, places, residual, iterations and marks after a period, in arrays of their own."""
        for own, x in zip(self._moving, moving, strict=True):
            own[...] = x
        self._time[...], self._alive[...] = time, is_alive(status)
        if control:
            self._own[...] = control[0]
        self._call()
        return tuple(x.copy() for x in self._results)
