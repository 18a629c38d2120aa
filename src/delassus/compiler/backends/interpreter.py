"""Evaluates a program on NumPy arrays: the reference that compiled code must match bit for bit.

One NumPy operation per node, over any batch. Arithmetic is IEEE double or single precision with subnormals flushed to
zero, as in compiled code. Fused operations round once: in double precision by the C library's `fma` (`math.fma` from
Python 3.13 on), in single precision by an intermediate double rounded to odd.
"""

import ctypes
import ctypes.util
import math
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from delassus.compiler.functions import philox, words
from delassus.compiler.functions.lower import lower
from delassus.compiler.graph.precision import SINGLE, Precision
from delassus.compiler.graph.program import Loop, Program, arguments
from delassus.compiler.graph.tables import Source

Floats = NDArray[Any]  # of either precision


def evaluate(
    program: Program, *inputs: ArrayLike, fma: bool = True, dtype: DTypeLike = np.float64
) -> tuple[Floats, ...]:
    """Evaluate a program after lowering it; inputs may carry leading batch axes, which broadcast.

    `fma` selects the lowered form for machines with or without fused multiply-add. `dtype` is float64 or float32.
    """
    precision = Precision.of(dtype)
    kind = precision.dtype
    lowered = lower(program, fma, precision)
    arrays = [np.asarray(x, kind) for x in inputs]
    batches = []
    for array, operand in zip(arrays, lowered.inputs, strict=True):
        lead = array.ndim - len(operand.shape)
        if lead < 0 or array.shape[lead:] != operand.shape:
            raise ValueError(
                f"{operand.name} has shape {array.shape}; its last axes, after those of the batch, must be "
                f"{operand.shape}."
            )
        batches.append(array.shape[:lead])
    batch = np.broadcast_shapes(*batches)
    # Shared arrays usually have no batch axes, and may be long: they are not broadcast.
    leads = [lead if o.shared else batch for lead, o in zip(batches, lowered.inputs, strict=True)]
    flat = [
        _flush(np.moveaxis(np.broadcast_to(a, lead + o.shape).reshape(*lead, o.size), -1, 0))
        for a, o, lead in zip(arrays, lowered.inputs, leads, strict=True)
    ]
    with np.errstate(all="ignore"):
        results = _run(lowered, flat, kind, flat)
    outputs = []
    for operand, result in zip(lowered.outputs, results, strict=True):
        columns = [np.broadcast_to(np.asarray(x, kind), batch) for x in result]
        stacked = np.stack(columns, -1) if columns else np.zeros((*batch, 0), kind)
        outputs.append(stacked.reshape(batch + operand.shape))
    return tuple(outputs)


def _run(
    program: Program, inputs: Sequence[Sequence[Any]], kind: np.dtype[Any], shared: Sequence[Any]
) -> list[list[Any]]:
    """The results of a lowered program, for each output a list of arrays over the batch, of dtype `kind`.

    `inputs` are those of the program. `shared` are the inputs of the kernel, which bodies of loops can read, too.
    """
    values: dict[int, Any] = {
        -k: np.asarray(c, bool if isinstance(c, bool) else kind) for k, c in enumerate(program.constants)
    }
    for value, node in enumerate(program.nodes):
        if node[0] == "input":
            values[value] = inputs[node[1]][node[2]]
        elif node[0] == "loop":
            values[value] = _run_loop(program.loops[node[1]], [values[a] for a in arguments(node)], kind, shared)
        elif node[0] == "part":
            values[value] = values[node[1]][node[2]]
        elif node[0] == "gather":
            values[value] = _gather(*[values[a] for a in node[1:]])
        elif node[0] == "scatter":
            values[value] = _scatter(node[1], *[values[a] for a in node[2:]])
        elif node[0] == "lookup":
            values[value] = _lookup(node[1], values[node[2]], shared)
        elif value:
            values[value] = _flush(OPERATIONS[node[0]](*[values[a] for a in node[1:]]))
    return [[values[v] for v in result] for result in program.results]


def _run_loop(loop: Loop, values: list[Any], kind: np.dtype[Any], shared: Sequence[Any]) -> list[Any]:
    """The parts of a loop; a conditional loop ends when no state of the batch continues."""
    carries, items, captured = loop.split(values)
    none = np.zeros((), kind)
    outputs: list[list[Any]] = [[none] * loop.stored_count for _ in range(loop.count)] if loop.stored_count else []
    for k in reversed(range(loop.count)) if loop.reverse else range(loop.count):
        if loop.conditional and not np.any(carries[0]):
            break
        carries, out = _run(loop.body, [carries, items[k], captured], kind, shared)
        if out:
            outputs[k] = out
    return [*carries, *(x for row in outputs for x in row)]


def _gather(index: Any, *values: Any) -> Any:
    """The value with an index, which may differ between states of the batch."""
    position, *candidates = np.broadcast_arrays(index, *values)
    return np.take_along_axis(np.stack(candidates), position.astype(np.int64)[None], 0)[0]


def _scatter(rows: int, index: Any, *values: Any) -> list[Any]:
    """Values in rows, with one row replaced, whose index may differ between states of the batch."""
    position, *candidates = np.broadcast_arrays(index, *values)
    columns = len(candidates) // (rows + 1)
    row, rows_of_values = (
        np.stack(candidates[:columns]),
        np.stack(candidates[columns:]).reshape(rows, columns, *position.shape),
    )
    np.put_along_axis(rows_of_values, np.broadcast_to(position.astype(np.int64), (1, *row.shape)), row[None], 0)
    return list(rows_of_values.reshape(rows * columns, *position.shape))


def _lookup(source: Source, index: Any, shared: Sequence[Any]) -> Any:
    """Elements of a table; tables in shared arrays with batch axes differ between states."""
    position = source.first + source.step * index.astype(np.int64)
    if not isinstance(source.table, int):
        return source.table.rounded(Precision.of(index.dtype))[position]
    table = shared[source.table]
    if table.ndim == 1:
        return table[position]
    position = np.broadcast_to(position, np.broadcast_shapes(position.shape, table.shape[1:]))
    return np.take_along_axis(np.broadcast_to(table, (len(table), *position.shape)), position[None], 0)[0]


def _flush(x: Any) -> Any:
    """Flush subnormals to zero; booleans are unchanged."""
    if x.dtype == bool:
        return x
    return np.where(np.abs(x) < Precision.of(x.dtype).smallest, np.copysign(0.0, x), x)


@cache
def _scalar_fma() -> Callable[[float, float, float], float]:
    fma: Callable[[float, float, float], float] | None = getattr(math, "fma", None)
    if fma is None:
        library = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else ctypes.util.find_library("m"))
        library.fma.argtypes, library.fma.restype = [ctypes.c_double] * 3, ctypes.c_double
        fma = library.fma
    return fma


def _fma(a: Any, b: Any, c: Any) -> Floats:
    """a·b + c rounded once."""
    return _single_fma(a, b, c) if a.dtype == SINGLE.dtype else _double_fma(a, b, c)


def _single_fma(a: Any, b: Any, c: Any) -> Floats:
    """a·b + c in single precision.

    The product is exact in double precision, the sum is not. The sum is rounded to odd: of the two nearest doubles, the
    one whose last bit is set. An odd double is never halfway between two single-precision numbers, so the second
    rounding is correct.
    """
    product, addend = np.asarray(a, float) * np.asarray(b, float), np.asarray(c, float)
    total = np.asarray(product + addend)
    rounded_addend = total - product
    error = (product - (total - rounded_addend)) + (addend - rounded_addend)
    bits = total.view(np.int64)
    even = np.isfinite(total) & (error != 0.0) & (bits & 1 == 0)
    outwards = np.where((error > 0.0) == (total > 0.0), 1, -1)
    odd: Floats = np.asarray(bits + np.where(even, outwards, 0)).view(float).astype(SINGLE.dtype)
    return odd


def _double_fma(a: Any, b: Any, c: Any) -> Floats:
    """a·b + c in double precision, element by element."""
    broadcast = np.broadcast_arrays(a, b, c)
    scalar = _scalar_fma()

    def safe(x: float, y: float, z: float) -> float:
        # math.fma raises an error where the IEEE result is NaN or inf; in these cases, separate operations agree.
        try:
            return scalar(x, y, z)
        except (ValueError, OverflowError):
            return float(np.float64(x) * np.float64(y) + np.float64(z))

    flat = [safe(*xyz) for xyz in zip(*[x.ravel().tolist() for x in broadcast], strict=True)]
    return np.array(flat, float).reshape(broadcast[0].shape)


def _bit(position: int) -> Callable[[Any], Any]:
    return lambda a: (_bits(a) >> position & 1).astype(bool)


def _bits(a: Any) -> Any:
    return np.asarray(a).view(Precision.of(a.dtype).unsigned)


def _exponent(a: Any) -> Any:
    p = Precision.of(a.dtype)
    return (_bits(a) >> p.digits & p.exponents).astype(p.dtype) - p.bias


def _scale(a: Any, n: Any) -> Any:
    p = Precision.of(a.dtype)
    return np.asarray(_bits(a) + (_bits(n + p.dtype.type(p.rounder)) << p.digits)).view(p.dtype)


OPERATIONS: Final[dict[str, Callable[..., Any]]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "rint": np.rint,
    "trunc": np.trunc,
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
    **{f"philox{k}": philox.word(k) for k in range(4)},
    **{kind: words.on_floats(kind) for kind in words.OPERATIONS},
}
"""Each machine operation on arrays."""
