"""Fast path of a call: a call with the form of an earlier one finds its compiled kernel without parsing.

The form of a call is its model, how many arrays come by place, the names of the others, and the values of its options.
Models and tuples count as the same if they are the same object, which is quick to tell; numbers and text by value and
type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from delassus.compiler.host.build import Compiled
from delassus.compiler.host.inputs import Group

_BY_VALUE: Final = frozenset({str, int, bool, type(None)})


class CallPlan(NamedTuple):
    """What a form of call leads to.

    `named` says which of the arrays that come by name is the next one of the kernel, after those by place, what shape
    it has for one state, and what reads it. `options` is kept so that what is compared by identity cannot be something
    else that took its place. `outputs` are the names of the chosen results.
    """

    model: Any
    compiled: Compiled
    named: tuple[tuple[int, tuple[int, ...], Callable[[Any], Any] | None], ...] = ()
    options: Any = None
    outputs: tuple[str, ...] = ()


def broadcast_input(x: Any, shape: tuple[int, ...]) -> Any:
    """An optional input; one plain number stands for all of its elements."""
    if not shape or type(x) not in (float, int):
        return x
    filled = np.empty(shape)
    try:
        filled.fill(x)
    except OverflowError:
        raise TypeError("an integer is too large to be an input of a kernel.") from None
    return filled


def keyword_inputs(call: CallPlan, given: list[Any]) -> list[Any]:
    """The arrays of a known call that come by name, in the kernel's order."""
    inputs = []
    for k, shape, read in call.named:
        x = given[k]
        if read is not None:
            x = read(x)
        inputs.append(x if type(x) is np.ndarray else broadcast_input(x, shape))
    return inputs


def form_of(
    model: Any, count: int, dtype: Any, given: dict[str, Any], arrays: frozenset[str], groups: Mapping[str, Group]
) -> tuple[tuple[Any, ...], list[Any]] | None:
    """The form of a call, and the arrays and structures that it gives by name; None where it takes longer to tell."""
    form, named = [id(model), count, dtype], []
    for name, value in given.items():
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
