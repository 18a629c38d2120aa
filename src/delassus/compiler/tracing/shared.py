"""Arrays that all states of a batch share, such as weights and height fields, during tracing.

A `SharedArray` is a traced array whose values are made when they are needed. What only moves its elements, such as
indexing, gives another one, and `np.take` with a traced index reads it as a table: a field of a million heights costs
nothing in the graph.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from delassus.compiler.tracing.array import Array, Ids, Recording


class SharedArray(Array):
    """Elements of a shared operand: its number among the inputs of the kernel, and the places of the elements in it."""

    __slots__ = ("_made", "operand", "places")

    def __init__(self, origin: Recording, operand: int, places: Ids) -> None:
        self.origin, self.operand, self.places, self.truths = origin, operand, places, False
        self._made: Ids | None = None

    @property
    def ids(self) -> Ids:  # type: ignore[override]
        """The values: inputs of the kernel, captured by the loops around."""
        if self._made is None:
            trace, flat = self.origin, self.places.ravel().tolist()
            if trace.parent is None:
                values = [trace.builder.emit(("input", self.operand, position)) for position in flat]
            else:
                outer = SharedArray(trace.parent, self.operand, self.places)
                values = [trace.enter(v) for v in outer.ids.ravel().tolist()]
            self._made = np.array(values, np.int64).reshape(self.places.shape)
            self._made.setflags(write=False)
        return self._made

    def select_elements(self, places: Any) -> SharedArray:
        """Other elements of the same operand."""
        return SharedArray(self.origin, self.operand, np.asarray(places))

    def enter(self, trace: Recording) -> SharedArray:
        """The array as a value of the body of a loop."""
        return SharedArray(trace, self.operand, self.places)

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self.places.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.places.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.places.size

    @property
    def T(self) -> SharedArray:
        """The transpose of the array."""
        return self.select_elements(self.places.T)

    @property
    def mT(self) -> SharedArray:
        """The last two axes exchanged."""
        return self.select_elements(self.places.swapaxes(-1, -2))

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, key: Any) -> Array:
        try:
            return self.select_elements(self.places[key])
        except (TypeError, IndexError):
            return super().__getitem__(key)  # says what is wrong

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise TypeError("a shared array is read in place by all states and cannot be changed: change a copy of it.")

    def reshape(self, *shape: Any) -> SharedArray:
        """The elements in another shape."""
        return self.select_elements(self.places.reshape(*shape))

    def ravel(self) -> SharedArray:
        """The elements on one axis."""
        return self.select_elements(self.places.ravel())

    def transpose(self, *axes: Any) -> SharedArray:
        """The axes in another order."""
        return self.select_elements(self.places.transpose(*axes))

    def straight(self, axis: int) -> list[tuple[int, int]] | None:
        """First places and steps of all rows along an axis, if the steps are regular."""
        rows = np.moveaxis(self.places, axis, -1).reshape(-1, self.shape[axis])
        first, step = rows[:, :1], (rows[:, 1:2] - rows[:, :1] if rows.shape[1] > 1 else np.ones_like(rows[:, :1]))
        if not np.array_equal(rows, first + step * np.arange(rows.shape[1])):
            return None
        return list(zip(first.ravel().tolist(), step.ravel().tolist(), strict=True))
