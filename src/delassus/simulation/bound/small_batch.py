"""The first attempt at a period of a small batch, on arrays that are bound to its kernel once.

A call of a kernel checks shapes, packs structures and allocates results, which takes about 60 µs of Python, as long as
computing a batch of 64 robots. Bound arrays need only a copy in, a call without arguments, and a copy out. It is the
same machine code, so the results are bit for bit the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.compiler.host.kernel import Kernel
from delassus.step.scene import Scene

LARGEST: Final = 128
"""Largest batch that is bound. Larger ones profit from the threads of a call."""


class SmallBatch:
    """Arrays of a batch with one axis, bound to the kernel of a scene.

    Args:
        kernel: The kernel of a control period.
        scene: The scene of the first attempt.
        moving: q, v, rows, and candidates of the contact slots, in the dtype of the step.
        controls: Number of controls of an environment.
        inputs: Names of the kernel's optional inputs, and the arrays that all environments share.
    """

    def __init__(
        self,
        kernel: Kernel[..., Any],
        scene: Scene,
        moving: Sequence[NDArray[Any]],
        controls: int,
        inputs: tuple[tuple[str, ...], Sequence[Any]],
    ) -> None:
        count, dtype, (names, shared) = len(moving[0]), moving[0].dtype, inputs
        self._moving = tuple(np.array(x) for x in moving)
        self._time, self._alive = np.empty(count, dtype), np.empty(count, dtype)
        self._control = np.zeros((count, scene.control_size), dtype)
        self._signals = self._control[:, :controls]
        operands = kernel.operands(scene, names)[0][-len(shared) :]
        tiled = [
            x if operand.shared else np.tile(x, (count, *(1,) * np.ndim(x)))
            for x, operand in zip(shared, operands, strict=True)
        ]
        self._results = (*(np.empty_like(x) for x in self._moving), *(np.empty(count, dtype) for _ in range(3)))
        self._call = kernel.bind(
            scene,
            *self._moving,
            self._time,
            self._alive,
            self._control,
            *tiled,
            *self._results,
            dtype=dtype,
            inputs=names,
        )

    def solve(self, moving: tuple[Any, ...], time: Any, alive: Any, control: tuple[Any, ...]) -> tuple[Any, ...]:
        """q, v, rows, candidates, residual, iterations and flags after a period, as copies."""
        for array, x in zip(self._moving, moving, strict=True):
            array[...] = x
        self._time[...], self._alive[...] = time, alive
        self._signals[...] = control[0]
        self._call()
        return tuple(x.copy() for x in self._results)
