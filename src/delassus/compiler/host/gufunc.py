"""Wraps machine code in a `numpy.ufunc`.

NumPy makes a generalized ufunc from an address, types and a signature through its C interface, which is reached
here with ctypes. NumPy keeps the addresses that it is given and not what they point to. A ufunc has a place for one
object that lives as long as it does, where `numpy.frompyfunc` keeps its function: here it is what the addresses need.
"""

import ctypes
from functools import cache
from typing import Any

import numpy as np

from delassus.compiler.graph.program import Operand

_FROM_SIGNATURE = 31  # PyUFunc_FromFuncAndDataAndSignature's place in NumPy's table of functions
_NONE = -1  # PyUFunc_None: the ufunc has no identity


class _Head(ctypes.Structure):
    """The beginning of NumPy's PyUFuncObject, as far as the object that a ufunc keeps alive."""

    _fields_ = (
        ("python", ctypes.c_byte * object.__basicsize__),
        ("counts", ctypes.c_int * 4),  # inputs, outputs, both, identity
        ("functions", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
        ("types", ctypes.c_int * 2),  # number of loops, unused
        ("texts", ctypes.c_void_p * 3),  # name, types, documentation
        ("memory", ctypes.c_void_p),
        ("kept", ctypes.c_void_p),
    )


_kept: list[Any] = []
"""What is kept for the life of the process, should NumPy ever change the place where a ufunc keeps its object."""


@cache
def _constructor() -> Any:
    capsule = np._core._multiarray_umath._UFUNC_API  # type: ignore[attr-defined]
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(get(capsule, None), ctypes.POINTER(ctypes.c_void_p))
    return ctypes.PYFUNCTYPE(
        ctypes.py_object,
        ctypes.c_void_p,  # functions
        ctypes.c_void_p,  # data
        ctypes.c_char_p,  # types
        *[ctypes.c_int] * 4,  # number of loops, inputs, outputs, identity
        ctypes.c_char_p,  # name
        ctypes.c_char_p,  # documentation
        ctypes.c_int,  # unused
        ctypes.c_char_p,  # signature
    )(table[_FROM_SIGNATURE])


def frozen_signature(inputs: tuple[Operand, ...], outputs: tuple[Operand, ...]) -> str:
    """Sizes instead of names, such as "(19),(18)->(18)", so that NumPy checks them before any native code runs."""

    def side(operands: tuple[Operand, ...]) -> str:
        return ",".join(f"({','.join(map(str, o.shape))})" for o in operands)

    return f"{side(inputs)}->{side(outputs)}"


def make_ufunc(
    loop: int,
    data: int,
    name: str,
    doc: str,
    inputs: tuple[Operand, ...],
    outputs: tuple[Operand, ...],
    dtype: np.dtype[Any],
    needed: Any,
) -> np.ufunc:
    """A gufunc of one dtype whose inner loop is the machine code at address `loop`, called with the address `data`.

    What is `needed` at these addresses lives as long as the ufunc.
    """
    functions = (ctypes.c_void_p * 1)(loop)
    pointers = (ctypes.c_void_p * 1)(data)
    types = bytes([dtype.num]) * (len(inputs) + len(outputs))
    texts = [text.encode() for text in (name, doc, frozen_signature(inputs, outputs))]
    ufunc: np.ufunc = _constructor()(
        ctypes.addressof(functions), ctypes.addressof(pointers), types, 1, len(inputs), len(outputs), _NONE,
        texts[0], texts[1], 0, texts[2],
    )  # fmt: skip
    _keep(ufunc, ctypes.addressof(functions), (functions, pointers, types, texts, needed))
    return ufunc


def _keep(ufunc: np.ufunc, functions: int, needed: tuple[Any, ...]) -> None:
    """Make a ufunc keep what it needs alive."""
    head = _Head.from_address(id(ufunc))
    if head.functions != functions or head.kept is not None:
        _kept.append(needed)
        return
    increment = ctypes.pythonapi.Py_IncRef
    increment.argtypes = [ctypes.py_object]
    increment(needed)
    head.kept = id(needed)
