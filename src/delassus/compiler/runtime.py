"""The loop that NumPy calls, in memory, and what it needs to know of a kernel.

The loop is the same for all kernels and is compiled once for a machine; NumPy passes it the kernel's descriptor.
"""

from __future__ import annotations

import ctypes
import hashlib
from functools import cache
from typing import Any

from delassus.compiler import cache as disk
from delassus.compiler import native
from delassus.compiler.loop_ir import LOOP, emit_loop
from delassus.compiler.program import Operand
from delassus.compiler.steps import first_slots
from delassus.compiler.streaming import STREAM_BYTES
from delassus.compiler.target import Target

CACHE_BYTES = 1024 * 1024  # batches beyond this are fetched ahead
PAIR_BYTES = 640 * 1024  # two frames beyond this do not take turns: with what they write they would leave the cache
LARGE_CODE = 2 * 1024 * 1024  # machine code that does not stay in the cache itself, and is fetched for every turn
PAIR_BYTES_OF_LARGE_CODE = 1536 * 1024  # so larger frames take turns, too


class _Operand(ctypes.Structure):
    """An operand as the loop reads it: number of values, first slot, number of axes, their lengths."""

    _fields_ = (
        ("size", ctypes.c_int64),
        ("slot", ctypes.c_int64),
        ("axes", ctypes.c_int64),
        ("shape", ctypes.c_void_p),
        ("shared", ctypes.c_int64),  # number of values if it is shared, and then its size is 0
    )


class _Descriptor(ctypes.Structure):
    """What the loop needs to know of a kernel; the IR reads it by the position of these 64-bit words."""

    _fields_ = (
        ("operands", ctypes.c_int64),
        ("inputs", ctypes.c_int64),
        ("slots", ctypes.c_int64),
        ("near", ctypes.c_int64),  # states of the largest batch that stays in the cache
        ("table", ctypes.c_void_p),
        ("single", ctypes.c_void_p),  # body1 for one lane
        ("group", ctypes.c_void_p),  # body1 for all lanes
        ("pair", ctypes.c_void_p),  # body2 for all lanes
        ("start_single", ctypes.c_void_p),  # start for one lane
        ("start", ctypes.c_void_p),  # start for all lanes
        ("far", ctypes.c_int64),  # states of the largest batch whose outputs are not streamed
        ("most", ctypes.c_int64),  # bytes of the largest two frames that take turns
        ("shared", ctypes.c_int64),  # number of shared operands
    )


def describe(
    inputs: tuple[Operand, ...], outputs: tuple[Operand, ...], slots: int, code: native.Code, target: Target
) -> Any:
    """The descriptor of a kernel, and what it points to, its code included: all to be kept as long as the kernel."""
    operands, lanes = (*inputs, *outputs), target.lanes
    shapes = [(ctypes.c_int64 * max(1, len(o.shape)))(*o.shape) for o in operands]
    table = (_Operand * len(operands))(
        *[
            _Operand(0 if o.shared else o.size, slot, len(o.shape), ctypes.addressof(shape), o.size if o.shared else 0)
            for o, slot, shape in zip(operands, first_slots(operands), shapes, strict=True)
        ]
    )
    descriptor = _Descriptor(
        len(operands),
        len(inputs),
        slots,
        CACHE_BYTES // max(1, target.precision.bytes * sum(o.size for o in operands if not o.shared)),
        ctypes.addressof(table),
        code.address("body1_x1"),
        code.address(f"body1_x{lanes}"),
        code.address(f"body2_x{lanes}") if lanes > 1 else None,
        code.address("start_x1"),
        code.address(f"start_x{lanes}"),
        STREAM_BYTES // max(1, target.precision.bytes * sum(o.size for o in outputs)),
        PAIR_BYTES if code.size <= LARGE_CODE else PAIR_BYTES_OF_LARGE_CODE,
        sum(o.shared for o in operands),
    )
    return descriptor, table, shapes, code


def loop_address(target: Target) -> int:
    """Where the loop for a machine starts."""
    with native.compiling:  # one thread makes it, and all others get the same
        return _loop(target).address(LOOP)


@cache
def _loop(target: Target) -> native.Code:
    """The loop for a machine, compiled, or loaded from the disk cache; kept for the life of the process."""
    text = emit_loop(target)
    key = hashlib.sha256(repr((text, target, native.VERSION)).encode()).hexdigest()
    object_code = disk.load("object", key)
    if object_code is None:
        object_code = native.emit_object(text, target)
        disk.store("object", key, object_code)
    return native.load(object_code, target)
