"""Wraps machine code in a `numpy.ufunc`.

NumPy's C interface, which is called by ctypes, creates a generalized ufunc from an address, types and a signature.
NumPy stores the addresses, but does not own the data there. A ufunc has a reference to one object, which
`numpy.frompyfunc` uses for its function. Here it refers to the owners of the data.
"""

import ctypes
from functools import cache
from typing import Any

import numpy as np

from delassus.compiler.graph.program import Operand

_FROM_SIGNATURE = 31  # index of PyUFunc_FromFuncAndDataAndSignature in NumPy's table of functions
_NONE = -1  # PyUFunc_None: the ufunc has no identity


class _Head(ctypes.Structure):
    """The beginning of NumPy's PyUFuncObject, up to the reference to an object."""

    _fields_ = (
        ("python", ctypes.c_byte * object.__basicsize__),
        ("counts", ctypes.c_int * 4),  # inputs, outputs, both, identity
        ("functions", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
        ("types", ctypes.c_int * 2),  # number of loops, unused
        ("texts", ctypes.c_void_p * 3),  # name, types, documentation
        ("memory", ctypes.c_void_p),
        ("owned", ctypes.c_void_p),
    )


_immortal: list[Any] = []
"""Owners that are never freed, for versions of NumPy with another layout of ufuncs."""


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
    """A signature with sizes instead of names, such as "(19),(18)->(18)", so that NumPy checks the shapes."""

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
    owners: Any,
) -> np.ufunc:
    """A gufunc of one dtype whose inner loop is the machine code at address `loop`, called with the address `data`.

    The ufunc has a reference to the `owners` of these addresses.
    """
    functions = (ctypes.c_void_p * 1)(loop)
    pointers = (ctypes.c_void_p * 1)(data)
    types = bytes([dtype.num]) * (len(inputs) + len(outputs))
    texts = [text.encode() for text in (name, doc, frozen_signature(inputs, outputs))]
    ufunc: np.ufunc = _constructor()(
        ctypes.addressof(functions), ctypes.addressof(pointers), types, 1, len(inputs), len(outputs), _NONE,
        texts[0], texts[1], 0, texts[2],
    )  # fmt: skip
    _set_owners(ufunc, ctypes.addressof(functions), (functions, pointers, types, texts, owners))
    return ufunc


def _set_owners(ufunc: np.ufunc, functions: int, owners: tuple[Any, ...]) -> None:
    """Store a reference to the owners of its data in a ufunc."""
    head = _Head.from_address(id(ufunc))
    if head.functions != functions or head.owned is not None:
        _immortal.append(owners)
        return
    increment = ctypes.pythonapi.Py_IncRef
    increment.argtypes = [ctypes.py_object]
    increment(owners)
    head.owned = id(owners)
