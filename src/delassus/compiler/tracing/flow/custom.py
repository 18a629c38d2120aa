"""`custom_tangent`: functions in kernels with a user-defined tangent.

    solve = custom_tangent(function, tangent)
    y = solve(*primals)                        function(*primals), as ever
    jvp(solve, primals, tangents)              y, tangent(y, primals, tangents)

The derivative of an iteration differentiates all its steps. For a solution of F(y, x) = 0 this is not needed: by the
implicit function theorem F_y dy = -F_x dx, one linear system, whose cost does not depend on the number of iterations,
and which works in reverse mode, where a `while_loop` does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from delassus.compiler.graph.rules import Rule
from delassus.compiler.tracing.array import Array, Recording
from delassus.compiler.tracing.flow.bodies import LoopError, arrays_of, finish_body, inputs_of
from delassus.compiler.tracing.flow.nests import find_difference, labels, leaves, like
from delassus.compiler.tracing.trace import Trace, current, trace_of


def custom_tangent(function: Callable[..., Any], tangent: Callable[[Any, Any, Any], Any]) -> Callable[..., Any]:
    """A function with the values of `function` and the derivative `tangent`.

    Args:
        function: Maps arrays, or nests of tuples of them, to such.
        tangent: Maps the function's value, its arguments as a tuple, and their tangents to the tangent of the value,
            linearly in the tangents. It may use other arrays of the enclosing scope.

    Variables of the enclosing scope must not depend on what is differentiated; pass them as arguments. Derivatives of
    higher order differentiate `tangent`, in which the value has this derivative again.

    >>> square = dl.compiler.custom_tangent(lambda x: x * x, lambda y, x, dx: 2.0 * x[0] * dx[0])
    >>> @dl.kernel("()->()")
    ... def slope(n, x):
    ...     return dl.compiler.grad(square)(x)
    >>> slope(1, 3.0)
    np.float64(6.0)
    """

    def call_with_rule(*primals: Any) -> Any:
        value = function(*primals)
        trace = current() or trace_of(primals, value)
        if trace is None:
            return value
        lifted = [trace.lift(x) for x in leaves(primals)]
        result = [trace.lift(x) for x in leaves(value)]
        parts = _with_rule(trace, tangent, (value, result), (primals, lifted))
        return like(value, (part if isinstance(part, Array) else x for part, x in zip(parts, result, strict=True)))

    return call_with_rule


def _with_rule(
    trace: Recording, tangent: Callable[..., Any], value: tuple[Any, list[Array]], primals: tuple[Any, list[Array]]
) -> list[Array | None]:
    """The arrays of a value with a rule for their tangents; None for those that hold booleans."""
    floats = [x for x in value[1] if not x.truths]
    float_primals = [x.astype(float) if x.truths else x for x in primals[1]]
    inner = Trace(trace)
    with inner.recording():
        inputs = list(inputs_of(inner, 0, [*floats, *float_primals], lambda x: x.shape))
        input_iterator = iter(inputs)
        before = like(value[0], (inner.lift(x) if x.truths else next(input_iterator) for x in value[1]))
        at = like(primals[0], iter(inputs[len(floats) :]))
        tangents_in = like(primals[0], inputs_of(inner, 1, float_primals, lambda x: x.shape))
        tangents = _check_tangents(inner, value, tangent(before, at, tangents_in))
    sizes = (sum(x.size for x in (*floats, *float_primals)), sum(x.size for x in float_primals))
    program, captured = finish_body(inner, trace, sizes, [tangents, []], hoist=False)
    arguments = [i for x in (*floats, *float_primals) for i in x.ids.ravel().tolist()]
    node = trace.builder.emit(("custom", Rule(program), *arguments, *captured))
    parts = [trace.builder.emit(("part", node, k)) for k in range(sum(x.size for x in floats))]
    arrays = arrays_of(trace, parts, floats)
    return [None if x.truths else next(arrays) for x in value[1]]


def _check_tangents(trace: Recording, value: tuple[Any, list[Array]], returned: Any) -> list[Array]:
    """The tangents of all arrays of a value that hold numbers."""
    difference = find_difference(value[0], returned)
    if difference is not None:
        _, one, other = difference
        raise LoopError(f"custom_tangent: the function returns {one}, and its tangent {other}; both must be the same.")
    lifted = [trace.lift(x) for x in leaves(returned)]
    for label, x, dx in zip(labels(value[0]), value[1], lifted, strict=True):
        if not x.truths and np.shape(dx) != x.shape:
            raise LoopError(f"custom_tangent: {label} has shape {x.shape}, and its tangent shape {np.shape(dx)}.")
    return [dx.astype(float) for x, dx in zip(value[1], lifted, strict=True) if not x.truths]
