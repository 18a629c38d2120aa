"""The compiled loop that NumPy calls, and its data.

The loop is the same for all kernels and is compiled once for a machine; NumPy passes it the kernel's descriptor. The
descriptor refers to the kernel's code for single states and for batches, once this is compiled, and to the Python
functions that compile it.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from delassus.compiler.backends import native
from delassus.compiler.backends.llvm.numpy_loop import LOOP, emit_loop
from delassus.compiler.backends.llvm.states import STATES, emit_states
from delassus.compiler.backends.llvm.streaming import STREAM_BYTES
from delassus.compiler.backends.steps import first_slots
from delassus.compiler.backends.target import Target
from delassus.compiler.graph.program import Operand
from delassus.compiler.host import cache as disk

CACHE_BYTES = 1024 * 1024  # larger batches are prefetched
PAIR_BYTES = 640 * 1024  # largest size of two frames that alternate: larger ones, with their outputs, exceed the cache
LARGE_CODE = 1024 * 1024  # larger machine code exceeds the cache itself, and is fetched for each group of lanes
PAIR_BYTES_OF_LARGE_CODE = 1536 * 1024  # so for large code, larger frames alternate, too

_PYTHON: Final = ("PyGILState_Ensure", "PyErr_Occurred", "PyObject_CallNoArgs", "Py_DecRef", "PyGILState_Release")


class _Operand(ctypes.Structure):
    """An operand for the loop: number of values, first slot, number of axes, their lengths."""

    _fields_ = (
        ("size", ctypes.c_int64),
        ("slot", ctypes.c_int64),
        ("axes", ctypes.c_int64),
        ("shape", ctypes.c_void_p),
        ("shared", ctypes.c_int64),  # number of values if it is shared, and then its size is 0
    )


class _Code(ctypes.Structure):
    """The code of a kernel for single states or for batches; the IR reads it by the position of these 64-bit words."""

    _fields_ = (
        ("states", ctypes.c_void_p),  # runs states through frames
        ("start", ctypes.c_void_p),  # initializes a frame
        ("parts", ctypes.c_int64),
        ("bodies1", ctypes.c_void_p),  # the parts for one group of lanes
        ("bodies2", ctypes.c_void_p),  # the parts for two groups
        ("most", ctypes.c_int64),  # largest size of two frames that alternate [bytes]
    )


class _Descriptor(ctypes.Structure):
    """The data of a kernel for the loop; the IR reads it by the position of these 64-bit words."""

    _fields_ = (
        ("operands", ctypes.c_int64),
        ("inputs", ctypes.c_int64),
        ("slots", ctypes.c_int64),
        ("near", ctypes.c_int64),  # states of the largest batch that fits into the cache
        ("table", ctypes.c_void_p),
        ("codes", ctypes.c_void_p * 2),  # for single states and for batches; null if not compiled yet
        ("makers", ctypes.c_void_p * 2),  # Python functions without arguments that compile them
        ("python", ctypes.c_void_p),  # functions of Python's C interface that call these
        ("far", ctypes.c_int64),  # states of the largest batch whose outputs are not streamed
        ("shared", ctypes.c_int64),  # number of shared operands
    )


class Descriptor:
    """The descriptor of a kernel, and the data that it points to, including the machine code."""

    def __init__(
        self,
        inputs: tuple[Operand, ...],
        outputs: tuple[Operand, ...],
        slots: int,
        target: Target,
        repeats: bool = False,
    ) -> None:
        """Create a descriptor. With `repeats`, a large part of the code is in conditional loops; then frames do not
        alternate, since their numbers of iterations differ."""
        operands = (*inputs, *outputs)
        self._largest_pair = (0, 0) if repeats else (PAIR_BYTES, PAIR_BYTES_OF_LARGE_CODE)
        self._target = target
        self._shapes = [(ctypes.c_int64 * max(1, len(o.shape)))(*o.shape) for o in operands]
        self._table = (_Operand * len(operands))(
            *[
                _Operand(0 if o.shared else o.size, slot, len(o.shape), ctypes.addressof(shape), o.size * o.shared)
                for o, slot, shape in zip(operands, first_slots(operands), self._shapes, strict=True)
            ]
        )
        self._words = _Descriptor(
            operands=len(operands),
            inputs=len(inputs),
            slots=slots,
            near=CACHE_BYTES // max(1, target.precision.bytes * sum(o.size for o in operands if not o.shared)),
            table=ctypes.addressof(self._table),
            python=ctypes.addressof(_python()),
            far=STREAM_BYTES // max(1, target.precision.bytes * sum(o.size for o in outputs)),
            shared=sum(o.shared for o in operands),
        )
        self._codes: list[Any] = []

    @property
    def address(self) -> int:
        """The address of the descriptor, for the loop."""
        return ctypes.addressof(self._words)

    def set_builders(self, makers: tuple[Callable[[], None], Callable[[], None]]) -> None:
        """Set the functions that the loop calls for missing code. The caller keeps them alive with the descriptor."""
        self._words.makers = (ctypes.c_void_p * 2)(*map(id, makers))

    def has(self, many: bool) -> bool:
        """Whether there is code for single states, or with `many` for batches."""
        return bool(self._words.codes[many])

    def install(self, many: bool, code: native.Code) -> None:
        """Install machine code for the loop. The last step writes one word, so it is atomic for other threads."""
        lanes = self._target.lanes if many else 1
        bodies = [
            (ctypes.c_void_p * code.objects)(*[code.address(f"{body}_{k}_x{lanes}") for k in range(code.objects)])
            for body in (("body1", "body2") if many else ("body1",))
        ]
        words = _Code(
            states=shared_states(self._target, lanes).address(STATES),
            start=code.address(f"start_x{lanes}"),
            parts=code.objects,
            bodies1=ctypes.addressof(bodies[0]),
            bodies2=ctypes.addressof(bodies[-1]),
            most=self._largest_pair[code.size > LARGE_CODE],
        )
        self._codes.append((code, bodies, words))
        self._words.codes[many] = ctypes.addressof(words)


@cache
def _python() -> ctypes.Array[ctypes.c_void_p]:
    """Addresses of the functions of Python that the loop calls."""
    addresses = [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value for name in _PYTHON]
    return (ctypes.c_void_p * len(addresses))(*addresses)


def loop_address(target: Target) -> int:
    """The address of the loop for a machine."""
    with native.compiling:  # one thread compiles it, and all use the same
        return _loop(target).address(LOOP)


@cache
def _loop(target: Target) -> native.Code:
    """The loop for a machine, which is never freed."""
    return _shared(emit_loop(target), target)


@cache
def shared_states(target: Target, lanes: int) -> native.Code:
    """The code that runs states through frames, which is never freed; the caller holds `compiling`."""
    return _shared(emit_states(target, lanes), target)


def _shared(text: str, target: Target) -> native.Code:
    """Code that all kernels share, compiled or loaded from the disk cache."""
    key = hashlib.sha256(repr((text, target, native.VERSION)).encode()).hexdigest()
    object_code = disk.load("object", key)
    if object_code is None:
        object_code = native.emit_object(text, target)
        disk.store("object", key, object_code)
    return native.load([object_code], target)
