"""The first attempt at a period of a small batch, on arrays that are bound to its kernel once.

A call of a kernel looks at shapes, packs structures and allocates results, some 60 µs of Python; a batch of 64 robots
takes as long as that to compute. Bound arrays take a copy in, a call without arguments and a copy out. Results have
the same bits as those of a call: it is the same machine code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.compiler.host.kernel import Kernel
from delassus.step.scene import Scene

LARGEST: Final = 128
"""Items of a batch that is bound: larger ones are worth the threads of a call."""


class SmallBatch:
    """Arrays of a batch with one axis, bound to the kernel of a scene.

    Args:
        kernel: The kernel of a period.
        scene: That of the first attempt.
        moving: q, v, rows and places of the batch.
        controls: How many there are for one item; None if they are compiled in.
        inputs: Names of the kernel's optional inputs, and what all items have after their controls.
    """

    def __init__(
        self,
        kernel: Kernel[..., Any],
        scene: Scene,
        moving: Sequence[NDArray[np.float64]],
        controls: int | None,
        inputs: tuple[tuple[str, ...], Sequence[Any]],
    ) -> None:
        count, (names, numbers) = len(moving[0]), inputs
        self._moving = tuple(np.array(x) for x in moving)
        self._time, self._alive = np.empty(count), np.empty(count)
        self._control = np.zeros((count, scene.control_size))
        self._own = self._control[:, :controls]
        same = [np.tile(x, (count, *(1,) * np.ndim(x))) for x in numbers]
        self._results = (*(np.empty_like(x) for x in self._moving), *(np.empty(count) for _ in range(3)))
        given = () if controls is None else (self._control,)
        self._call = kernel.bind(
            scene, *self._moving, self._time, self._alive, *given, *same, *self._results, inputs=names
        )

    def solve(self, moving: tuple[Any, ...], time: Any, alive: Any, control: tuple[Any, ...]) -> tuple[Any, ...]:
        """q, v, rows, places, residual, iterations and marks after a period, in arrays of their own."""
        for own, x in zip(self._moving, moving, strict=True):
            own[...] = x
        self._time[...], self._alive[...] = time, alive
        if control:
            self._own[...] = control[0]
        self._call()
        return tuple(x.copy() for x in self._results)
