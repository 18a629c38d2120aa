"""Evaluates a program on NumPy arrays: the reference that compiled code has to meet bit by bit.

One NumPy operation per node, over any batch. Arithmetic is IEEE double precision with subnormals taken as zero,
as in compiled code. The fused operations round once, by the C library's `fma` (`math.fma` from Python 3.13 on).
"""

import ctypes
import ctypes.util
import math
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delassus.compiler.lower import lower
from delassus.compiler.program import ROUNDER, Loop, Program, arguments

Floats = NDArray[np.float64]


def evaluate(program: Program, *inputs: ArrayLike, fma: bool = True) -> tuple[Floats, ...]:
    """The outputs of a program, lowered first; inputs may carry leading batch axes, which broadcast.

    `fma` tells which of the two lowered forms to run: the one for machines with fused multiply-add, or without.
    """
    lowered = lower(program, fma)
    arrays = [np.asarray(x, float) for x in inputs]
    batches = []
    for array, operand in zip(arrays, lowered.inputs, strict=True):
        lead = array.ndim - len(operand.shape)
        if lead < 0 or array.shape[lead:] != operand.shape:
            raise ValueError(f"{operand.name} has shape {array.shape}, {operand.shape} is needed after the batch axes.")
        batches.append(array.shape[:lead])
    batch = np.broadcast_shapes(*batches)
    flat = [
        _flush(np.broadcast_to(a, batch + o.shape).reshape(*batch, o.size).astype(float))
        for a, o in zip(arrays, lowered.inputs, strict=True)
    ]
    with np.errstate(all="ignore"):
        results = _run(lowered, [[x[..., k] for k in range(o.size)] for x, o in zip(flat, lowered.inputs, strict=True)])
    outputs = []
    for operand, result in zip(lowered.outputs, results, strict=True):
        columns = [np.broadcast_to(np.asarray(x, float), batch) for x in result]
        stacked = np.stack(columns, -1) if columns else np.zeros((*batch, 0))
        outputs.append(stacked.reshape(batch + operand.shape))
    return tuple(outputs)


def _run(program: Program, inputs: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The results of a lowered program, for each output a list of arrays over the batch."""
    values: dict[int, Any] = {-k: np.asarray(c) for k, c in enumerate(program.constants)}
    for value, node in enumerate(program.nodes):
        if node[0] == "input":
            values[value] = inputs[node[1]][node[2]]
        elif node[0] == "loop":
            values[value] = _run_loop(program.loops[node[1]], [values[a] for a in arguments(node)])
        elif node[0] == "part":
            values[value] = values[node[1]][node[2]]
        elif value:
            values[value] = _flush(_OPERATIONS[node[0]](*[values[a] for a in node[1:]]))
    return [[values[v] for v in result] for result in program.results]


def _run_loop(loop: Loop, values: list[Any]) -> list[Any]:
    """The parts of a loop; a conditional one ends when no state of the batch goes on."""
    carried, items, captured = loop.split(values)
    kept: list[list[Any]] = [[] for _ in range(loop.count)]
    for k in reversed(range(loop.count)) if loop.reverse else range(loop.count):
        carried, kept[k] = _run(loop.body, [carried, items[k], captured])
        if loop.conditional and not np.any(carried[0]):
            break
    return [*carried, *(x for row in kept for x in row)]


def _flush(x: Any) -> Any:
    """Subnormals as zero; truth values as they are."""
    if x.dtype == bool:
        return x
    return np.where(np.abs(x) < sys.float_info.min, np.copysign(0.0, x), x)


@cache
def _scalar_fma() -> Callable[[float, float, float], float]:
    fma: Callable[[float, float, float], float] | None = getattr(math, "fma", None)
    if fma is None:
        library = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else ctypes.util.find_library("m"))
        library.fma.argtypes, library.fma.restype = [ctypes.c_double] * 3, ctypes.c_double
        fma = library.fma
    return fma


def _fma(a: Any, b: Any, c: Any) -> Floats:
    """a·b + c rounded once, element by element."""
    broadcast = np.broadcast_arrays(a, b, c)
    scalar = _scalar_fma()

    def safe(x: float, y: float, z: float) -> float:
        # math.fma raises where IEEE gives NaN or inf; there a product without fusion is right as well.
        try:
            return scalar(x, y, z)
        except (ValueError, OverflowError):
            return float(np.float64(x) * np.float64(y) + np.float64(z))

    flat = [safe(*xyz) for xyz in zip(*[x.ravel().tolist() for x in broadcast], strict=True)]
    return np.array(flat, float).reshape(broadcast[0].shape)


def _bit(position: int) -> Callable[[Any], Any]:
    return lambda a: (_bits(a) >> np.uint64(position) & np.uint64(1)).astype(bool)


def _bits(a: Any) -> Any:
    return np.asarray(a, float).view(np.uint64)


def _exponent(a: Any) -> Any:
    return (_bits(a) >> np.uint64(52) & np.uint64(2047)).astype(float) - 1023.0


def _scale(a: Any, n: Any) -> Any:
    return np.asarray(_bits(a) + (_bits(n + ROUNDER) << np.uint64(52))).view(float)


_OPERATIONS: Final[dict[str, Callable[..., Any]]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "fma": _fma,
    "fms": lambda a, b, c: _fma(a, b, -c),
    "fnma": lambda a, b, c: _fma(-a, b, c),
    "lt": np.less,
    "le": np.less_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "and": np.logical_and,
    "xor": np.logical_xor,
    "not": np.logical_not,
    "bit0": _bit(0),
    "bit1": _bit(1),
    "exponent": _exponent,
    "scale": _scale,
    "select": np.where,
}
