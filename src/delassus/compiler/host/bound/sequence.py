"""Calls a kernel for consecutive rows of its arrays, for runs of a single state.

If the outputs of one call are inputs of the next, as in a simulation, the rows of one array are both: call k reads row
k and writes row k + 1. All calls are made by machine code, with a single call from Python.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from delassus.compiler.backends import native
from delassus.compiler.backends.llvm.shorthand import expand_ir
from delassus.compiler.backends.target import Target

if TYPE_CHECKING:
    from delassus.compiler.host.build import Compiled

_CALLS = expand_ir("""
define i64 @calls(ptr %loop, ptr %addresses, ptr %steps, i64 %operands, ptr %strides, ptr %kernel, i64 %most,
                  i64 %stop) {
entry:
  %one = alloca i64, align 8
  store i64 1, ptr %one, align 8
  br label %call
call:
  %made = phi i64 [ 0, %entry ], [ %made1, %moved ]
  call void %loop(ptr %addresses, ptr %one, ptr %strides, ptr %kernel)
  %made1 = add i64 %made, 1
  %stop.at = getelementptr ptr, ptr %addresses, i64 %stop
  %stop.place = load ptr, ptr %stop.at, align 8
  %mark = load double, ptr %stop.place, align 8
  %stopped = fcmp une double %mark, 0.0
  br label %move
move:
  %k = phi i64 [ 0, %call ], [ %k1, %move ]
  %at = getelementptr ptr, ptr %addresses, i64 %k
  %address = load ptr, ptr %at, align 8
  %step <- i64 %steps[%k]
  %next = getelementptr i8, ptr %address, i64 %step
  store ptr %next, ptr %at, align 8
  count %k below %operands: %move, then %moved
moved:
  %left = icmp slt i64 %made1, %most
  %goes.on = xor i1 %stopped, true
  %again = and i1 %left, %goes.on
  br i1 %again, label %call, label %exit
exit:
  ret i64 %made1
}
""")


@cache
def _calls() -> tuple[native.Code, Any]:
    """The machine code, and its function as a Python callable."""
    target = Target.host().with_lanes(1)
    code = native.load([native.emit_object(_CALLS, target)], target)
    pointers, counts = [ctypes.c_void_p] * 3, [ctypes.c_int64]
    kinds = [*pointers, *counts, *pointers[:2], *counts, *counts]
    return code, ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(code.address("calls"))


class CallSequence:
    """Consecutive calls of a float64 kernel for single states, on rows of arrays.

    Args:
        kernel: The compiled kernel.
        arrays: Inputs, then outputs: (n, *core) if each call uses the next row, or (*core,) if all calls use the same
            array. The caller must ensure that rows are read before they are written.
        stop: Index of the array that ends the sequence when its value is nonzero.
    """

    def __init__(self, kernel: Compiled, arrays: tuple[Any, ...], stop: int) -> None:
        operands = (*kernel.inputs, *kernel.outputs)
        for array, operand in zip(arrays, operands, strict=True):
            if array.dtype != np.float64 or array.shape[array.ndim - len(operand.shape) :] != operand.shape:
                raise ValueError(
                    f"{kernel.name}: {operand.name} has shape {array.shape} and type {array.dtype}; it must be a "
                    f"float64 array whose last axes are {operand.shape}."
                )
        kernel.widths.need(many=False)
        self._kernel, self._arrays, self._stop = kernel, arrays, stop
        self._rows = [array.ndim > len(operand.shape) for array, operand in zip(arrays, operands, strict=True)]
        steps = [x.strides[0] if moves else 0 for x, moves in zip(arrays, self._rows, strict=True)]
        cores = [s for x, moves in zip(arrays, self._rows, strict=True) for s in x.strides[moves:]]
        self._first = [x.ctypes.data for x in arrays]
        self._steps = (ctypes.c_int64 * len(steps))(*steps)
        self._strides = (ctypes.c_int64 * (len(arrays) + len(cores)))(*[0] * len(arrays), *cores)
        self.most = min(len(x) for x, moves in zip(arrays, self._rows, strict=True) if moves)
        """The largest number of calls, by the rows of the arrays."""

    def __call__(self, count: int) -> int:
        """Make `count` calls, at least one, or fewer if one of them stops; returns their number."""
        if not 0 < count <= self.most:
            raise ValueError(f"{self._kernel.name}: {count} calls of a sequence that has rows for {self.most}.")
        addresses = (ctypes.c_void_p * len(self._first))(*self._first)
        kernel = self._kernel
        calls = _calls()[1](
            kernel.loop, addresses, self._steps, len(addresses), self._strides, kernel.data, count, self._stop
        )
        return int(calls)
