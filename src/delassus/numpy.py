"""NumPy for algorithms: `import delassus.numpy as np`.

On plain numbers this is NumPy itself. While a kernel is being traced, `zeros`, `ones`, `full`, `empty`, `eye`,
`identity` and `array` make traced arrays, which can receive traced values, and these functions work on them:

arithmetic      + - * / @ **, add, subtract, multiply, divide, negative, positive, conjugate, power, float_power
                (fixed integer and half-integer exponents are the cheap ones), square, reciprocal, sqrt, absolute,
                fabs, clip, deg2rad, radians, rad2deg, degrees, interp
elementary      {elementary}
integers   // %, floor, ceil, rint, trunc, mod
orders          sort, argsort, argmin, argmax
positions       take, add_at (not of NumPy: a copy with values added at rows, as np.add.at does in place)
booleans    < <= > >= == != & | ^ ~, less, less_equal, greater, greater_equal, equal, not_equal, logical_and,
                logical_or, logical_xor, logical_not, bitwise_and, bitwise_or, bitwise_xor, invert, isnan, isfinite,
                isinf, where, any, all
sums, products  sum, prod, mean, min, max, trace, dot, vdot, inner, outer, kron, cross, matmul, matvec, vecmat,
                vecdot, tensordot, einsum
shapes          reshape, ravel, transpose, matrix_transpose, swapaxes, moveaxis, expand_dims, squeeze, broadcast_to,
                broadcast_arrays, diag, diagonal, tril, triu, flip, fliplr, flipud, roll, rot90, tile, repeat, take,
                copy, stack, concatenate, vstack, hstack, dstack, column_stack, block, split, array_split, append,
                delete, atleast_1d, atleast_2d, shape, ndim, size, zeros_like, ones_like, empty_like, full_like
linalg          norm, cholesky, solve, inv, det (`solve` and `inv` take `assume_a="pos"` for positive definite
                matrices), and NumPy's linalg spellings of cross, diagonal, matmul, matrix_transpose, outer,
                tensordot, trace, vecdot

`dir(delassus.numpy)` lists them. Any other function of NumPy works on plain numbers and raises a `TypeError` on traced
values. Indices, shapes and loop counts are plain integers: they are known when the kernel is compiled. `take` and
`add_at` alone have indices that may be traced, floats that hold integers, as `floor` and `argsort` give them.
"""

from collections.abc import Callable, Iterable
from functools import wraps
from textwrap import fill as _fill
from types import ModuleType
from typing import Any

import numpy as _np

from delassus.compiler.functions.registry import FUNCTIONS as _FUNCTIONS
from delassus.compiler.tracing.handlers import HANDLERS as _HANDLERS
from delassus.compiler.tracing.handlers import dispatch as _dispatch
from delassus.compiler.tracing.operations import linalg as _linalg
from delassus.compiler.tracing.operations import movement as _movement
from delassus.compiler.tracing.operations import scatter as _scatter
from delassus.compiler.tracing.trace import current as _current
from delassus.compiler.tracing.trace import trace_of as _trace_of

_ELEMENTARY = sorted(f.numpy.__name__ for f in _FUNCTIONS.values() if f.numpy is not None)
__doc__ = (__doc__ or "").replace(
    "{elementary}", _fill(", ".join(_ELEMENTARY), 104, subsequent_indent=" " * 16, break_long_words=False)
)


def zeros(shape: Any, dtype: Any = float) -> Any:
    """Zeros; traced inside a kernel if they are floats."""
    return _creation(_np.zeros(shape, dtype))


def empty(shape: Any, dtype: Any = float) -> Any:
    """Zeros, so that nothing uninitialised can be read; traced inside a kernel."""
    return zeros(shape, dtype)


def ones(shape: Any, dtype: Any = float) -> Any:
    """Ones; traced inside a kernel if they are floats."""
    return _creation(_np.ones(shape, dtype))


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Any:
    """One value everywhere; traced inside a kernel if it is a float."""
    if _trace_of(fill_value) is not None:
        return _movement.full_like(fill_value, fill_value, dtype, shape=shape)
    return _creation(_np.full(shape, fill_value, dtype))


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> Any:
    """Ones on a diagonal; traced inside a kernel if they are floats."""
    return _creation(_np.eye(N, M, k, dtype))


def identity(n: int, dtype: Any = float) -> Any:
    """The identity matrix; traced inside a kernel if it is one of floats."""
    return eye(n, dtype=dtype)


def array(x: Any, dtype: Any = None) -> Any:
    """A new array; traced inside a kernel if it holds floats or traced values."""
    trace = _trace_of(x)
    if trace is None:
        return _creation(_np.array(x, dtype))
    copied = trace.lift(x).copy()
    return copied if dtype is None else copied.astype(dtype)


def asarray(x: Any, dtype: Any = None) -> Any:
    """Convert to an array: plain numbers stay plain, nested lists with traced values are stacked."""
    trace = _trace_of(x)
    if trace is None:
        return _np.asarray(x, dtype)
    lifted = trace.lift(x)
    return lifted if dtype is None else lifted.astype(dtype)


def _creation(plain: Any) -> Any:
    trace = _current()
    return plain if trace is None or plain.dtype != _np.float64 else trace.lift(plain)


def _forward(function: Any) -> Callable[..., Any]:
    """NumPy's function on plain numbers, its traced form on traced ones."""

    @wraps(function)
    def forward(*args: Any, **kwargs: Any) -> Any:
        if _trace_of(*args, *kwargs.values()) is None:
            return function(*args, **kwargs)
        return _dispatch(function, args, kwargs)

    return forward


class _Namespace(ModuleType):
    """A module of NumPy whose functions are forwarded; names it defines itself come first."""

    def __init__(self, module: ModuleType, own: dict[str, Any]) -> None:
        super().__init__(f"delassus.{module.__name__}", module.__doc__)
        self._module, self._own = module, tuple(own)
        self.__dict__.update(own)

    def __getattr__(self, name: str) -> Any:
        found = _lookup(self._module, name)
        self.__dict__[name] = found
        return found

    def __dir__(self) -> list[str]:
        return _traceable(self._module, self._own)


def _lookup(module: ModuleType, name: str) -> Any:
    found = getattr(module, name)
    if isinstance(found, ModuleType):
        return _Namespace(found, {})
    return _forward(found) if callable(found) and not isinstance(found, type) else found


def _traceable(module: ModuleType, own: Iterable[str]) -> list[str]:
    """The functions of a module of NumPy that work on traced values, constants, and names that are its own."""
    names = {name for name in dir(module) if _is_traceable(getattr(module, name))}
    return sorted({*names, *own})


def _is_traceable(found: Any) -> bool:
    return type(found) is float or (callable(found) and not isinstance(found, type) and found in _HANDLERS)


def take(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise") -> Any:
    """Elements of an array at some indices, which may be traced.

    Indices that are floats, plain or traced, lose their fraction and are brought into the range of the array, NaN to
    the first element; `mode="wrap"` takes those outside modulo the length.
    """
    if _trace_of(a, indices, out) is not None:
        return _dispatch(_np.take, (a, indices), {"axis": axis, "mode": mode} | ({} if out is None else {"out": out}))
    places = _np.asarray(indices)
    if places.dtype.kind == "f":
        count = _np.size(a, axis)
        places = places % count if mode == "wrap" else _np.clip(places, 0, count - 1)
        places, mode = _np.nan_to_num(places).astype(int), "clip"
    return _np.take(a, places, axis, out, mode)  # type: ignore[call-overload]


def add_at(array: Any, index: Any, values: Any) -> Any:
    """A copy of an array (n, …) with values (index.shape, …) added to its rows at an index, which may be traced.

    Indices lose their fraction. Those outside of the array, and NaN, add nothing; a row that comes twice gets both.
    """
    if _trace_of(array, index, values) is not None:
        return _scatter.add_at(array, index, values)
    total, places = _np.array(array, float), _np.asarray(index, float)
    inside = (places >= 0.0) & (places < len(total))
    added = _np.broadcast_to(values, places.shape + total.shape[1:])
    _np.add.at(total, places[inside].astype(int), added[inside])
    return total


def _solve(a: Any, b: Any, *, assume_a: str = "gen") -> Any:
    """x with A x = b; `assume_a="pos"` for a positive definite A costs half inside a kernel."""
    if _trace_of(a, b) is None:
        return _np.linalg.solve(a, b)
    return _linalg.solve(a, b, assume_a=assume_a)


def _inv(a: Any, *, assume_a: str = "gen") -> Any:
    """A⁻¹; `assume_a="pos"` for a positive definite A costs half inside a kernel."""
    return _np.linalg.inv(a) if _trace_of(a) is None else _linalg.inv(a, assume_a=assume_a)


linalg: Any = _Namespace(_np.linalg, {"solve": _solve, "inv": _inv})


_OWN = ("zeros", "empty", "ones", "full", "eye", "identity", "array", "asarray", "add_at", "linalg", "newaxis")


def __dir__() -> list[str]:
    return _traceable(_np, _OWN)


def __getattr__(name: str) -> Any:
    found = _lookup(_np, name)
    if not name.startswith("__"):
        globals()[name] = found
    return found
