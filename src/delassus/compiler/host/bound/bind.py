"""Binds arrays to a kernel: the result is called without arguments, for control loops.

A bound kernel is a Python function object implemented in machine code that is generated here: it loads the addresses,
calls the kernel and returns None. It costs only a Python call without arguments.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import llvmlite.binding as llvm
import numpy as np

from delassus.compiler.backends import native
from delassus.compiler.backends.llvm.shorthand import expand_ir
from delassus.compiler.backends.target import Target
from delassus.compiler.graph.program import Operand

if TYPE_CHECKING:
    from delassus.compiler.host.build import Compiled

_METH_NOARGS = 4
_RELEASE_ABOVE = 50_000  # flops of a call, about 10 µs: longer calls release Python's lock

_SYMBOLS = ("PyTuple_GetItem", "PyLong_AsVoidPtr", "Py_IncRef", "PyEval_SaveThread", "PyEval_RestoreThread")

_TRAMPOLINES = """
declare ptr @PyTuple_GetItem(ptr, i64)
declare ptr @PyLong_AsVoidPtr(ptr)
declare void @Py_IncRef(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
""" + "".join(
    expand_ir(f"""
define ptr @{name}(ptr %self, ptr %unused) nounwind {{
  %item = call ptr @PyTuple_GetItem(ptr %self, i64 0)
  %call = call ptr @PyLong_AsVoidPtr(ptr %item)
  %code = load ptr, ptr %call, align 8
  %args <- ptr %call[1]
  %dimensions <- ptr %call[2]
  %strides <- ptr %call[3]
  %data <- ptr %call[4]
  %none <- ptr %call[5]
{before}  call void %code(ptr %args, ptr %dimensions, ptr %strides, ptr %data)
{after}  call void @Py_IncRef(ptr %none)
  ret ptr %none
}}
""")
    for name, before, after in (
        ("bound", "", ""),
        (
            "bound_released",
            "  %thread = call ptr @PyEval_SaveThread()\n",
            "  call void @PyEval_RestoreThread(ptr %thread)\n",
        ),
    )
)


class _MethodDef(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_made: dict[bool, _MethodDef] = {}
_code: list[native.Code] = []
"""Never freed, since CPython uses their addresses."""


def _methods() -> dict[bool, _MethodDef]:
    """The method definitions, by whether they release Python's lock; created once."""
    if not _made:
        with native.compiling:
            if not _made:
                _made.update(_make_methods())
    return _made


def _make_methods() -> dict[bool, _MethodDef]:
    for name in _SYMBOLS:
        llvm.add_symbol(name, ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value)
    target = Target.host().with_lanes(1)
    code = native.load([native.emit_object(_TRAMPOLINES, target)], target)
    _code.append(code)
    doc = b"Recompute the outputs from the inputs, in the arrays this was bound to."
    return {
        released: _MethodDef(b"bound_kernel", code.address(name), _METH_NOARGS, doc)
        for released, name in ((False, "bound"), (True, "bound_released"))
    }


def bind(kernel: Compiled, arrays: tuple[Any, ...]) -> Callable[[], None]:
    """A callable that reads the input arrays and writes the output arrays at each call.

    Inputs come first, then outputs: arrays of the kernel's dtype with the same batch axes, or none; shared arrays have
    no batch axes. An output may be the same array as an input, for updates in place, but must not overlap it otherwise.
    It must not overlap a shared array, which is still read when the first outputs are written.
    """
    operands, inputs = (*kernel.inputs, *kernel.outputs), len(kernel.inputs)
    if len(arrays) != len(operands):
        raise TypeError(
            f"{kernel.name}.bind takes {inputs} inputs and {len(kernel.outputs)} outputs, {len(operands)} arrays in "
            f"all; got {len(arrays)}."
        )
    leads = [(_batch(kernel, array, operand), operand) for array, operand in zip(arrays, operands, strict=True)]
    for lead, operand in leads:
        if operand.shared and lead:
            raise ValueError(
                f"{kernel.name}.bind: {operand.name} is shared by all states, so it has no batch axes; got {lead}."
            )
    batches = {lead for lead, operand in leads if not operand.shared}
    if len(batches) > 1:
        shapes = ", ".join(map(str, sorted(batches)))
        raise ValueError(f"{kernel.name}.bind: the arrays have different batch axes: {shapes}.")
    for k, output in enumerate(arrays[inputs:]):
        if not output.flags.writeable:
            raise ValueError(f"{kernel.name}.bind: output {k} is read-only.")
        if output.size and _repeats(output):
            raise ValueError(
                f"{kernel.name}.bind: several indices of output {k} refer to the same memory; pass an array "
                "without overlap."
            )
        for j, other in enumerate(arrays[: inputs + k]):
            if _overlap(output, other) and not (j < inputs and not operands[j].shared and _same(output, other)):
                raise ValueError(
                    f"{kernel.name}.bind: output {k} overlaps array {j} in memory; pass the same array for both, or "
                    "separate memory."
                )
    states = int(np.prod(batches.pop()))
    kernel.widths.need(many=states > 1)
    return _bound_function(kernel, arrays, operands, states)


def _batch(kernel: Compiled, array: object, operand: Operand) -> tuple[int, ...]:
    """The batch axes of an array; raises an error if it cannot be bound to an operand."""
    if not isinstance(array, np.ndarray) or array.dtype != kernel.dtype:
        kind = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
        raise TypeError(
            f"{kernel.name}.bind: {operand.name} must be a {kernel.dtype} array, not {kind}: it is used in place."
        )
    if not array.flags.aligned:
        raise ValueError(f"{kernel.name}.bind: {operand.name} is not aligned in memory; pass a copy.")
    lead = array.ndim - len(operand.shape)
    if lead < 0 or array.shape[lead:] != operand.shape:
        raise ValueError(
            f"{kernel.name}.bind: {operand.name} has shape {array.shape}, its core must be {operand.shape}."
        )
    batch: tuple[int, ...] = array.shape[:lead]
    return batch


def _overlap(a: Any, b: Any) -> bool:
    """Whether two arrays have a common element; True if this is expensive to decide."""
    shares_memory: Any = np.shares_memory  # its type does not allow most values of max_work
    try:
        return bool(shares_memory(a, b, max_work=10_000))
    except np.exceptions.TooHardError:
        return True


def _same(a: Any, b: Any) -> bool:
    return bool(a.ctypes.data == b.ctypes.data and a.shape == b.shape and a.strides == b.strides)


def _repeats(array: Any) -> bool:
    """Whether several indices may refer to one element, as with a stride of zero."""
    extent = array.itemsize
    for stride, length in sorted((abs(s), n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1):
        if stride < extent:
            return True
        extent += stride * (length - 1)
    return False


def _bound_function(
    kernel: Compiled, arrays: tuple[Any, ...], operands: tuple[Operand, ...], states: int
) -> Callable[[], None]:
    """The function object; its `__self__` owns the arrays, the addresses and the machine code."""
    flat = []
    for array, operand in zip(arrays, operands, strict=True):
        rows = np.asarray(array).reshape(1 if operand.shared else states, *operand.shape)
        if states and not np.may_share_memory(rows, array):
            raise ValueError(
                f"{kernel.name}.bind: the batch axes of {operand.name} need more than one stride; pass a "
                "contiguous copy."
            )
        flat.append(rows)
    strides = [0 if o.shared else x.strides[0] for x, o in zip(flat, operands, strict=True)]
    strides += [s for x in flat for s in x.strides[1:]]
    addresses = (ctypes.c_void_p * len(flat))(*[x.ctypes.data for x in flat])
    dimensions, steps = (ctypes.c_ssize_t * 1)(states), (ctypes.c_ssize_t * len(strides))(*strides)
    call = (ctypes.c_void_p * 6)(
        kernel.loop,
        ctypes.addressof(addresses),
        ctypes.addressof(dimensions),
        ctypes.addressof(steps),
        kernel.data,
        id(None),
    )
    method = _methods()[states * kernel.flops > _RELEASE_ABOVE]
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]
    # NumPy does not resize arrays that have weak references; resizing would move their memory.
    references = [weakref.ref(x) for x in arrays]
    owners = (ctypes.addressof(call), call, addresses, dimensions, steps, flat, references, kernel.ufunc)
    function: Callable[[], None] = make(ctypes.addressof(method), owners, kernel.name)
    return function
