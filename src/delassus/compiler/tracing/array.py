"""Traced arrays: the operands of an algorithm while its graph is recorded.

An `Array` is a NumPy array of graph values (integers) together with its trace. Indexing, slicing, reshaping and item
assignment are NumPy's own, applied to those integers, so views are views and broadcasting broadcasts. Arithmetic
creates new values. An array holds floats or booleans, never both: joining or assigning the other type converts it, as
in NumPy. Zero-dimensional arrays are scalars and, like NumPy's scalars, do not change in place, unless they are views.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from delassus.compiler.graph.graph import Builder
from delassus.compiler.tracing.handlers import HANDLERS, dispatch, store, unsupported_error

Ids: TypeAlias = NDArray[np.int64]


class Recording(Protocol):
    """What an array needs of the trace that it belongs to; `Trace` is the one there is, and documents the parts."""

    builder: Builder
    open: bool
    suspended: bool
    parent: Recording | None
    depth: int
    calls: list[object]
    flags: set[int]
    active: Array | None

    def lift(self, x: Any) -> Array:
        """Anything array-like as an array of this trace."""

    def map(self, make: Callable[..., int], *arrays: Array, truths: bool = False) -> Array:
        """Apply a maker of values element by element."""

    def enter(self, value: int) -> int:
        """A value of the parent, as one of this trace."""

    def check_changeable(self) -> None:
        """Raise if an array of this trace must not change now."""


def contains_traced(x: Any) -> bool:
    """Whether a traced array hides in a nest of lists and tuples."""
    return isinstance(x, Array) or (isinstance(x, (list, tuple)) and any(contains_traced(e) for e in x))


def _binary(function: Any, reflected: bool = False, maker: Callable[[Builder, int, int], int] | None = None) -> Any:
    """An operator; with `maker`, a short way for two scalars, which is what most operations of a recursion are."""

    def operator(self: Array, other: Any) -> Any:
        trace = self.origin
        if maker is not None and trace.open and not (trace.suspended or self.ids.shape or self.truths):
            value = None
            if type(other) is float:
                value = trace.builder.constant(other)
            elif type(other) is Array and other.origin is trace and not (other.ids.shape or other.truths):
                value = other.ids.item()
            if value is not None:
                pair = (value, self.ids.item()) if reflected else (self.ids.item(), value)
                return Array(trace, np.array(maker(trace.builder, *pair)))
        return HANDLERS[function](other, self) if reflected else HANDLERS[function](self, other)

    return operator


def _in_place(function: Any) -> Callable[[Array, Any], Array]:
    def operator(self: Array, other: Any) -> Array:
        result: Array = HANDLERS[function](self, other)
        if self.ids.ndim == 0 and self.ids.base is None:
            return result
        if result.shape != self.shape:
            raise ValueError(
                f"np.{function.__name__} in place: the result has shape {result.shape}, the array {self.shape}."
            )
        store(function, self, result)
        return self

    return operator


def _unary(function: Any) -> Callable[[Array], Any]:
    def operator(self: Array) -> Any:
        return HANDLERS[function](self)

    return operator


def _refuse(function: Any) -> Callable[..., NoReturn]:
    """An operator that has no compiled form, which it says."""

    def operator(self: Array, *_: Any) -> NoReturn:
        raise unsupported_error(function)

    return operator


def _method(function: Any) -> Callable[..., Any]:
    def method(self: Array, *args: Any, **kwargs: Any) -> Any:
        return HANDLERS[function](self, *args, **kwargs)

    return method


class Array:
    """A traced array; behaves as a NumPy array of float64 (or of booleans, after a comparison)."""

    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]
    __slots__ = ("ids", "origin", "truths")

    def __init__(self, origin: Recording, ids: Ids, truths: bool = False) -> None:
        """Values of a trace; `truths` if there are booleans among them, which are numbers beside floats."""
        self.origin = origin
        if truths:
            values = ids.ravel().tolist()
            truths = all(map(origin.builder.is_logical, values))
            if not truths:
                ids = np.array([origin.builder.number(v) for v in values], np.int64).reshape(ids.shape)
        self.ids = ids
        self.truths = truths

    def enter(self, trace: Recording) -> Array:
        """The array as a value of an inner trace, in which the body of a loop is recorded."""
        ids = [trace.enter(v) for v in self.ids.ravel().tolist()]
        return Array(trace, np.array(ids, np.int64).reshape(self.shape), self.truths)

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self.ids.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.ids.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.ids.size

    @property
    def dtype(self) -> np.dtype[Any]:
        """`bool` for booleans, else `float64`."""
        return np.dtype(bool if self.truths else np.float64)

    @property
    def T(self) -> Array:
        """The transpose, a view."""
        return Array(self.origin, self.ids.T, self.truths)

    @property
    def mT(self) -> Array:
        """The last two axes exchanged, a view."""
        return Array(self.origin, self.ids.swapaxes(-1, -2), self.truths)

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Array]:
        return (self[i] for i in range(len(self.ids)))

    def __getitem__(self, key: Any) -> Array:
        try:
            return Array(self.origin, np.asarray(self.ids[key]), self.truths)
        except (TypeError, IndexError):
            _check_index(key)
            raise

    def __setitem__(self, key: Any, value: Any) -> None:
        origin = self.origin
        origin.check_changeable()
        lifted = origin.lift(value)
        if not origin.open:
            origin.lift(self)  # raises
        if lifted.truths != self.truths:
            lifted = lifted.astype(self.dtype)
        try:
            self.ids[key] = lifted.ids
        except (TypeError, IndexError):
            _check_index(key)
            raise

    def __repr__(self) -> str:
        return f"<traced array of shape {self.shape}>"

    # --- what a traced value cannot be -------------------------------------------------------------------------

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "the truth of a traced value is not known while the kernel is being compiled: write "
            "np.where(condition, a, b) instead of `if`, and np.logical_and, np.logical_or instead of `and`, `or`."
        )

    def __float__(self) -> NoReturn:
        raise TypeError(
            "a traced value has no number yet: use functions of delassus.numpy (np.sin, not math.sin), and make "
            "arrays that receive it with delassus.numpy.zeros."
        )

    __int__ = __complex__ = __float__

    def __index__(self) -> NoReturn:
        raise TypeError(_NOT_AN_INDEX)

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(
            f"a traced array of shape {self.shape} cannot become a plain NumPy array: inside a kernel, make and "
            "join arrays with delassus.numpy (import delassus.numpy as np)."
        )

    # --- NumPy's protocols ---------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "reduce" and ufunc in _REDUCTIONS:
            return dispatch(_REDUCTIONS[ufunc], inputs, {"axis": 0} | kwargs)
        if method != "__call__":
            remedy = " Use np.add_at(array, index, values) of delassus.numpy." if method == "at" else ""
            raise TypeError(f"np.{ufunc.__name__}.{method} met traced values and has no compiled form.{remedy}")
        return dispatch(ufunc, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return dispatch(func, args, kwargs)

    __neg__, __pos__, __abs__ = _unary(np.negative), _unary(np.positive), _unary(np.absolute)
    __invert__ = _unary(np.invert)
    __add__, __radd__, __iadd__ = (
        _binary(np.add, maker=Builder.add),
        _binary(np.add, True, Builder.add),
        _in_place(np.add),
    )
    __sub__, __rsub__, __isub__ = (
        _binary(np.subtract, maker=Builder.sub),
        _binary(np.subtract, True, Builder.sub),
        _in_place(np.subtract),
    )
    __mul__, __rmul__, __imul__ = (
        _binary(np.multiply, maker=Builder.mul),
        _binary(np.multiply, True, Builder.mul),
        _in_place(np.multiply),
    )
    __truediv__, __rtruediv__, __itruediv__ = (
        _binary(np.divide),
        _binary(np.divide, True),
        _in_place(np.divide),
    )
    __pow__, __rpow__, __ipow__ = _binary(np.power), _binary(np.power, True), _in_place(np.power)
    __matmul__, __rmatmul__, __imatmul__ = _binary(np.matmul), _binary(np.matmul, True), _in_place(np.matmul)
    __and__, __rand__, __iand__ = _binary(np.bitwise_and), _binary(np.bitwise_and, True), _in_place(np.bitwise_and)
    __or__, __ror__, __ior__ = _binary(np.bitwise_or), _binary(np.bitwise_or, True), _in_place(np.bitwise_or)
    __xor__, __rxor__, __ixor__ = _binary(np.bitwise_xor), _binary(np.bitwise_xor, True), _in_place(np.bitwise_xor)
    __floordiv__, __rfloordiv__, __ifloordiv__ = (
        _binary(np.floor_divide),
        _binary(np.floor_divide, True),
        _in_place(np.floor_divide),
    )
    __mod__, __rmod__, __imod__ = _binary(np.remainder), _binary(np.remainder, True), _in_place(np.remainder)
    __round__ = _refuse(np.round)
    __lt__, __le__ = _binary(np.less), _binary(np.less_equal)
    __gt__, __ge__ = _binary(np.greater), _binary(np.greater_equal)
    __eq__, __ne__ = _binary(np.equal), _binary(np.not_equal)

    sum, prod, mean = _method(np.sum), _method(np.prod), _method(np.mean)
    min, max, any, all = _method(np.min), _method(np.max), _method(np.any), _method(np.all)
    dot, trace, clip = _method(np.dot), _method(np.trace), _method(np.clip)
    ravel = _method(np.ravel)
    squeeze, swapaxes, diagonal = _method(np.squeeze), _method(np.swapaxes), _method(np.diagonal)
    repeat, take = _method(np.repeat), _method(np.take)
    argsort, argmin, argmax = _method(np.argsort), _method(np.argmin), _method(np.argmax)

    def copy(self) -> Array:
        """A copy of the array."""
        result: Array = HANDLERS[np.copy](self)
        return result

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> Array:
        return self.copy()

    def flatten(self) -> Array:
        """A copy with one axis."""
        return Array(self.origin, self.ids.flatten(), self.truths)

    def reshape(self, *shape: Any) -> Array:
        """The values in another shape."""
        return Array(self.origin, self.ids.reshape(*shape), self.truths)

    def transpose(self, *axes: Any) -> Array:
        """The axes in another order, a view."""
        return Array(self.origin, self.ids.transpose(*axes), self.truths)

    def astype(self, dtype: Any, **_: Any) -> Array:
        """A copy; booleans become 1.0 and 0.0. Traced values are float64 or booleans, nothing else."""
        if np.dtype(dtype) == np.float64:
            return self.origin.map(self.origin.builder.number, self.origin.lift(self))
        if np.dtype(dtype) == np.bool_:
            result: Array = self.copy() if self.truths else HANDLERS[np.not_equal](self, 0.0)
            return result
        raise TypeError(f"traced values are float64 or bool, they cannot become {np.dtype(dtype)}.")


_REDUCTIONS = {
    np.add: np.sum,
    np.multiply: np.prod,
    np.minimum: np.min,
    np.maximum: np.max,
    np.logical_and: np.all,
    np.logical_or: np.any,
}


_NOT_AN_INDEX = (
    "an array cannot be indexed by a traced value, nor can one be a length or a loop count: it would be known at run "
    "time only. Use np.take(array, index, axis=0), or np.where(condition, a, b); in a loop, hand the array over as a "
    "stack to walk along."
)


def _check_index(key: Any) -> None:
    for part in key if isinstance(key, tuple) else (key,):
        if contains_traced([part.start, part.stop, part.step] if isinstance(part, slice) else part):
            raise TypeError(_NOT_AN_INDEX)
