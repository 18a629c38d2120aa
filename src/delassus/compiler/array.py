"""Traced arrays: what an algorithm works on while its graph is being recorded.

An `Array` is a NumPy array of graph values (integers) together with its trace. Indexing, slicing, reshaping
and item assignment are NumPy's own, done on those integers, so views are views and broadcasting broadcasts.
Arithmetic makes new values. Zero-dimensional arrays stand for scalars and, like NumPy's scalars, are never
changed in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from delassus.compiler.graph import Builder
from delassus.compiler.handlers import HANDLERS, dispatch

if TYPE_CHECKING:
    from delassus.compiler.trace import Trace

Ids: TypeAlias = NDArray[np.int64]


def contains_traced(x: Any) -> bool:
    """Whether a traced array hides in a nest of lists and tuples."""
    return isinstance(x, Array) or (isinstance(x, (list, tuple)) and any(contains_traced(e) for e in x))


def _binary(function: Any, reflected: bool = False, maker: Callable[[Builder, int, int], int] | None = None) -> Any:
    """An operator; with `maker`, a short way for two scalars, which is what most operations of a recursion are."""

    def operator(self: Array, other: Any) -> Any:
        if (
            maker is not None
            and type(other) is Array
            and not (self.ids.shape or other.ids.shape or self.truths or other.truths)
            and self.origin is other.origin
            and self.origin.open
        ):
            return Array(self.origin, np.array(maker(self.origin.builder, self.ids.item(), other.ids.item())))
        return HANDLERS[function](other, self) if reflected else HANDLERS[function](self, other)

    return operator


def _in_place(function: Any) -> Callable[[Array, Any], Array]:
    def operator(self: Array, other: Any) -> Array:
        result: Array = HANDLERS[function](self, other)
        if self.ids.ndim == 0:
            return result
        self[...] = result
        return self

    return operator


def _unary(function: Any) -> Callable[[Array], Any]:
    def operator(self: Array) -> Any:
        return HANDLERS[function](self)

    return operator


def _method(function: Any) -> Callable[..., Any]:
    def method(self: Array, *args: Any, **kwargs: Any) -> Any:
        return HANDLERS[function](self, *args, **kwargs)

    return method


class Array:
    """A traced array; behaves as a NumPy array of float64 (or of truth values, after a comparison)."""

    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]
    __slots__ = ("ids", "origin", "truths")

    def __init__(self, origin: Trace, ids: Ids, truths: bool = False) -> None:
        self.origin = origin
        self.ids = ids
        self.truths = truths  # whether some elements are, or may be, truth values

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
        """`bool` if every element is a truth value, else `float64`."""
        if not self.truths:
            return np.dtype(np.float64)
        is_logical = self.origin.builder.is_logical
        return np.dtype(bool if self.size and all(map(is_logical, self.ids.ravel().tolist())) else np.float64)

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
        lifted = origin.lift(value)
        if not origin.open:
            origin.lift(self)  # raises
        try:
            self.ids[key] = lifted.ids
        except (TypeError, IndexError):
            _check_index(key)
            raise
        self.truths = self.truths or lifted.truths

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

    __int__ = __index__ = __complex__ = __float__

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
            raise TypeError(f"np.{ufunc.__name__}.{method} met traced values and has no compiled form.")
        return dispatch(ufunc, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return dispatch(func, args, kwargs)

    __neg__, __pos__, __abs__ = _unary(np.negative), _unary(np.positive), _unary(np.absolute)
    __invert__ = _unary(np.logical_not)
    __add__, __radd__, __iadd__ = _binary(np.add, maker=Builder.add), _binary(np.add, True), _in_place(np.add)
    __sub__, __rsub__, __isub__ = (
        _binary(np.subtract, maker=Builder.sub),
        _binary(np.subtract, True),
        _in_place(np.subtract),
    )
    __mul__, __rmul__, __imul__ = (
        _binary(np.multiply, maker=Builder.mul),
        _binary(np.multiply, True),
        _in_place(np.multiply),
    )
    __truediv__, __rtruediv__, __itruediv__ = (
        _binary(np.divide),
        _binary(np.divide, True),
        _in_place(np.divide),
    )
    __pow__, __rpow__, __ipow__ = _binary(np.power), _binary(np.power, True), _in_place(np.power)
    __matmul__, __rmatmul__ = _binary(np.matmul), _binary(np.matmul, True)
    __and__, __rand__, __iand__ = _binary(np.logical_and), _binary(np.logical_and), _in_place(np.logical_and)
    __or__, __ror__, __ior__ = _binary(np.logical_or), _binary(np.logical_or), _in_place(np.logical_or)
    __xor__, __rxor__, __ixor__ = _binary(np.logical_xor), _binary(np.logical_xor), _in_place(np.logical_xor)
    __lt__, __le__ = _binary(np.less), _binary(np.less_equal)
    __gt__, __ge__ = _binary(np.greater), _binary(np.greater_equal)
    __eq__, __ne__ = _binary(np.equal), _binary(np.not_equal)

    sum, prod, mean = _method(np.sum), _method(np.prod), _method(np.mean)
    min, max, any, all = _method(np.min), _method(np.max), _method(np.any), _method(np.all)
    dot, trace, clip = _method(np.dot), _method(np.trace), _method(np.clip)
    ravel = _method(np.ravel)
    squeeze, swapaxes, diagonal = _method(np.squeeze), _method(np.swapaxes), _method(np.diagonal)
    repeat, take = _method(np.repeat), _method(np.take)

    def copy(self) -> Array:
        """The same values in an array of their own."""
        return Array(self.origin, self.ids.copy(), self.truths)

    def flatten(self) -> Array:
        """A copy with one axis."""
        return Array(self.origin, self.ids.flatten(), self.truths)

    def reshape(self, *shape: Any) -> Array:
        """The same values in another shape."""
        return Array(self.origin, self.ids.reshape(*shape), self.truths)

    def transpose(self, *axes: Any) -> Array:
        """The axes in another order, a view."""
        return Array(self.origin, self.ids.transpose(*axes), self.truths)

    def astype(self, dtype: Any, **_: Any) -> Array:
        """A copy; truth values become 1.0 and 0.0. Traced values are float64 or truth values, nothing else."""
        if np.dtype(dtype) == np.float64:
            return self.origin.map(self.origin.builder.number, self)
        if np.dtype(dtype) == np.bool_:
            result: Array = HANDLERS[np.not_equal](self, 0.0)
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


def _check_index(key: Any) -> None:
    if contains_traced(key):
        raise TypeError(
            "an array cannot be indexed by a traced value: which element it takes would be known at run time "
            "only. Use np.where(condition, a, b)."
        )
