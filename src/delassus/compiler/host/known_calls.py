"""Fast path of a call: a call with the form of an earlier one uses its compiled kernel without reading all arguments.

The form of a call is its model, the number of positional arrays, the names of the others, and the values of its
options. Models and tuples are compared by identity, which is fast, numbers and text by value and type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from delassus.compiler.host.build import Compiled
from delassus.compiler.host.inputs import Group

_BY_VALUE: Final = frozenset({str, int, bool, type(None)})


class CallPlan(NamedTuple):
    """The compiled kernel for a form of calls.

    Attributes:
        model: The model.
        compiled: The compiled kernel.
        named: For each operand after the positional arrays: the index of its keyword argument, its shape for one state,
            and the function that reads it.
        options: The keyword arguments. The reference prevents another object with the identity of one of them.
        outputs: The names of the requested outputs.
    """

    model: Any
    compiled: Compiled
    named: tuple[tuple[int, tuple[int, ...], Callable[[Any], Any] | None], ...] = ()
    options: Any = None
    outputs: tuple[str, ...] = ()


def broadcast_input(x: Any, shape: tuple[int, ...]) -> Any:
    """An optional input; a single number is used for all elements."""
    if not shape or type(x) not in (float, int):
        return x
    filled = np.empty(shape)
    try:
        filled.fill(x)
    except OverflowError:
        raise TypeError("an integer input is too large for a float; pass a float.") from None
    return filled


def keyword_inputs(call: CallPlan, values: list[Any]) -> list[Any]:
    """The keyword arrays of a call with a plan, in the kernel's order."""
    inputs = []
    for k, shape, read in call.named:
        x = values[k]
        if read is not None:
            x = read(x)
        inputs.append(x if type(x) is np.ndarray else broadcast_input(x, shape))
    return inputs


def form_of(
    model: Any, count: int, dtype: Any, keywords: dict[str, Any], arrays: frozenset[str], groups: Mapping[str, Group]
) -> tuple[tuple[Any, ...], list[Any]] | None:
    """The form of a call, and its keyword arrays and structures; None if an argument is expensive to compare."""
    form, named = [id(model), count, dtype], []
    for name, value in keywords.items():
        if name in arrays:
            if value is not None:
                form.append(name)
                named.append(value)
            continue
        kind = type(value)
        if kind in _BY_VALUE or (kind is float and value != 0.0):  # zeros of both signs are equal
            form += (name, kind, value)
        elif kind is tuple:
            form += (name, kind, id(value))
        elif name in groups and isinstance(value, groups[name].kind):
            fields = groups[name].nondefault_fields(value)
            form += (name, kind, fields)
            if fields:
                named.append(value)
        else:
            return None
    return tuple(form), named
