"""Exact derivatives of functions of arrays, of any order, inside and outside of kernels.

    value, tangent = jvp(f, (x, y), (dx, dy))      forward: the derivative along one direction
    value, pullback = vjp(f, x, y)                 backward: gx, gy = pullback(g), the gradient of g · f
    J = jacobian(f)(x)                             all of it, of shape f(x).shape + x.shape
    g = grad(f)(x)                                 the gradient of a function that gives a scalar

The functions map arrays, or tuples of them, to the same, and are written with `delassus.numpy`. Inside a kernel,
derivatives become part of its program:

    @kernel("(nq)->(3,nq)")
    def sensitivity(model, q):
        return jacobian(lambda q: position(model, q))(q)

Outside, on plain arrays, they are recorded as a program that the interpreter evaluates at each call: for tests and
small problems. Derivatives may be nested. Variables of the enclosing scope, such as other arrays of the kernel, are
constants.

Cost: for each product, the most expensive of the common operations, a `jvp` takes 4 operations and a `vjp` 5, including
the product; on the articulated-body algorithm of a 50-joint tree each takes 2.2 times the operations of the algorithm.
`jacobian` makes one forward sweep for each input or one backward sweep for each output, whichever are fewer; exact
zeros cost nothing, and common subexpressions of the sweeps are computed once: for RNEA of a 30-joint tree, all
derivatives in q, v and a take 6.4 times the operations of RNEA. See `linearize` for the method, for `where`, and for
kinks. The slope of √x is infinite at 0, so a norm has no derivative at the origin: select one there by `where`, or add
a constant to the square.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from delassus.common.types import Traced
from delassus.compiler.backends.interpreter import evaluate
from delassus.compiler.differentiation.linear_loop import DerivativeError
from delassus.compiler.differentiation.linearize import Tape
from delassus.compiler.graph.graph import ONE, ZERO
from delassus.compiler.graph.program import Operand
from delassus.compiler.tracing import operations  # noqa: F401 (registers what traced arrays can do)
from delassus.compiler.tracing.array import Array, Recording
from delassus.compiler.tracing.flow import control
from delassus.compiler.tracing.flow.nests import leaves, like
from delassus.compiler.tracing.trace import LeakedTracer, Trace, current, trace_of

LARGEST_UNROLLED: Final = 60_000
"""Operations that the sweeps of a Jacobian may take one by one; beyond that they are made in a loop."""


def jvp(function: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """The value of function(*primals), and its derivative along `tangents`, which are like `primals`.

    >>> from delassus.compiler import jvp
    >>> value, tangent = jvp(lambda x: x * x, (3.0,), (1.0,))
    >>> float(value), float(tangent)
    (9.0, 6.0)
    """

    def body(trace: Recording, primals: Any, tangents: Any) -> Any:
        tape, value = _tape(trace, function, primals)
        seeds = _matching("tangent", tangents, primals)
        return value, like(value, _arrays(trace, tape.push(seeds), leaves(value)))

    value, tangent = _run(body, tuple(primals), tuple(tangents))
    return value, tangent


def vjp(function: Callable[..., Any], *primals: Traced) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """The value of function(*primals), and the function that pulls a cotangent back.

    The cotangent is like the value. Pulled back it is a tuple, like `primals`: the gradient of the sum of products of
    cotangent and value.

    >>> value, pull_back = dl.compiler.vjp(lambda x: x * x, 3.0)
    >>> float(value)
    9.0
    """
    if current() is None:
        value = _run(lambda trace, *inner: _tape(trace, lambda: function(*inner), ())[1], *primals)
        primal_copies = like(primals, (np.array(x, float) for x in leaves(primals)))

        def pullback(cotangent: Any) -> tuple[Any, ...]:
            result: tuple[Any, ...] = _run(lambda trace, c, *p: vjp(function, *p)[1](c), cotangent, *primal_copies)
            return result

        return value, pullback

    def body(trace: Recording, *primals: Any) -> Any:
        tape, value = _tape(trace, function, primals)

        def pullback(cotangent: Any) -> tuple[Any, ...]:
            if not trace.open:
                raise LeakedTracer(
                    "a pullback is used outside the call that traced it; call it there, and return its result."
                )
            seeds = _matching("cotangent", _lift(trace, cotangent), value)
            cotangents = _arrays(trace, tape.pull(seeds), leaves(primals))
            result: tuple[Any, ...] = like(primals, cotangents)
            return result

        return value, pullback

    traced: tuple[Any, Callable[[Any], tuple[Any, ...]]] = _run(body, *primals)
    return traced


def jacobian(function: Callable[..., Any], argnum: int | tuple[int, ...] = 0, mode: str = "auto") -> Callable[..., Any]:
    """The function that gives d out / d in, of shape out.shape + in.shape, for the argument number `argnum`.

    For several outputs it gives a tuple, for several arguments (a tuple as `argnum`) a tuple for each output. The
    other arguments may be anything, such as a model. `mode` is "forward", "reverse", or "auto" for the cheaper one.

    >>> dl.compiler.jacobian(lambda x: x * x)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    if mode not in ("auto", "forward", "reverse"):
        raise DerivativeError(f"jacobian: mode is 'auto', 'forward' or 'reverse', not {mode!r}.", code="unknown-option")

    def body(trace: Recording, function: Callable[..., Any], primals: tuple[Any, ...]) -> Any:
        tape, result = _tape(trace, function, primals)
        cheaper = len(tape.inputs) <= len(tape.outputs) or not tape.reversible
        forward = cheaper if mode == "auto" else mode == "forward"
        matrix = _matrix(trace, tape, forward)
        blocks, row = [], 0
        for value in leaves(result):
            parts, column = [], 0
            for x in leaves(primals):
                block = matrix[row : row + value.size, column : column + x.size]
                parts.append(Array(trace, block.reshape(value.shape + x.shape)))
                column += x.size
            row += value.size
            whole = like(primals, iter(parts))
            blocks.append(whole if isinstance(argnum, tuple) else whole[0])
        return like(result, iter(blocks))

    return _of_arguments(body, function, argnum)


def grad(function: Callable[..., Any], argnum: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """The function that gives the gradient of a scalar in the argument number `argnum`, in that argument's shape.

    >>> from delassus.compiler import grad
    >>> float(grad(lambda x: x * x)(3.0))
    6.0
    """

    def body(trace: Recording, function: Callable[..., Any], primals: tuple[Any, ...]) -> Any:
        tape, result = _tape(trace, function, primals)
        if isinstance(result, tuple) or result.shape:
            form = f"{len(result)} values" if isinstance(result, tuple) else f"shape {result.shape}"
            raise DerivativeError(
                f"grad needs a function that returns one scalar; it returned {form}: use jacobian.", code="wrong-shape"
            )
        gradient = like(primals, _arrays(trace, tape.pull([ONE]), leaves(primals)))
        return gradient if isinstance(argnum, tuple) else gradient[0]

    return _of_arguments(body, function, argnum)


def _of_arguments(body: Any, function: Callable[..., Any], argnum: int | tuple[int, ...]) -> Callable[..., Any]:
    """A function of all arguments that differentiates in the chosen ones and leaves the others as they are."""
    positions = argnum if isinstance(argnum, tuple) else (argnum,)

    def derivative(*args: Any) -> Any:
        if not all(-len(args) <= k < len(args) for k in positions):
            raise DerivativeError(
                f"argnum is {argnum}, and the function was called with {len(args)} argument(s).",
                code="index-out-of-range",
            )

        def of_chosen(*primals: Any) -> Any:
            complete = list(args)
            for k, primal in zip(positions, primals, strict=True):
                complete[k] = primal
            return function(*complete)

        return _run(lambda trace, *primals: body(trace, of_chosen, primals), *[args[k] for k in positions])

    return derivative


def _matrix(trace: Recording, tape: Tape, forward: bool) -> Any:
    """The values of d outputs / d inputs, as a matrix: by columns or by rows, one after the other or in a loop."""
    matrix = np.zeros((len(tape.outputs), len(tape.inputs)), np.int64)
    rows, sweep = (matrix.T, tape.push) if forward else (matrix, tape.pull)
    start = len(trace.builder.nodes)
    for k in range(len(rows)):
        rows[k] = sweep([ONE if i == k else ZERO for i in range(len(rows))])
        if len(trace.builder.nodes) - start > LARGEST_UNROLLED:
            rows[:] = _sweep_in_loop(trace, sweep, len(rows))
            break
    return matrix


def _sweep_in_loop(trace: Recording, sweep: Callable[..., list[int]], count: int) -> Any:
    """All sweeps in one loop: the seed is made from the number of the sweep."""

    def body(number: Array) -> Array:
        inner = number.origin
        g = inner.builder
        seeds = [g.select(g.eq(number.ids.item(), g.constant(k)), ONE, ZERO) for k in range(count)]
        return Array(inner, np.array(sweep(seeds, g, inner.enter), np.int64))

    table: Array = control.map(body, trace.lift(np.arange(float(count))))
    return table.ids


def _tape(trace: Recording, function: Callable[..., Any], primals: tuple[Any, ...]) -> tuple[Tape, Any]:
    """The tape of a function at some arguments, and its value."""
    returned: Any = None
    arguments = leaves(primals)

    def flat(values: list[int]) -> list[int]:
        nonlocal returned
        returned = function(*like(primals, _arrays(trace, values, arguments)))
        if any(leaf is None for leaf in leaves(returned)):
            raise DerivativeError(
                "a function to be differentiated returned nothing. Is a `return` missing?", code="missing-return"
            )
        returned = _lift(trace, returned)
        return _values(leaves(returned))

    tape = Tape(trace.builder, flat, _values(arguments))
    return tape, like(returned, _arrays(trace, tape.values, leaves(returned)))


def _run(body: Callable[..., Any], *arguments: Any) -> Any:
    """Call `body` with a trace and the arguments in it: the current trace, or one whose program is evaluated."""
    trace = current() or trace_of(*arguments)
    if trace is not None:
        return body(trace, *_lift(trace, arguments))
    trace = Trace()
    with trace.recording():
        _lift(trace, arguments)  # raises for what is not an array of numbers
        values: list[Any] = [np.asarray(x, float) for x in leaves(arguments)]
        inputs = tuple(Operand(f"x{k}", x.shape) for k, x in enumerate(values))
        emitted = ([trace.builder.emit(("input", k, i)) for i in range(x.size)] for k, x in enumerate(values))
        arrays = (Array(trace, np.array(e, np.int64).reshape(x.shape)) for e, x in zip(emitted, values, strict=True))
        returned = body(trace, *like(arguments, arrays))
        results = leaves(_lift(trace, returned))
    outputs = tuple(Operand(f"y{k}", r.shape) for k, r in enumerate(results))
    program = trace.builder.finish(inputs, outputs, tuple(tuple(r.ids.ravel().tolist()) for r in results))
    return like(returned, iter(evaluate(program, *values)))


def _lift(trace: Recording, x: Any) -> Any:
    """A nest of tuples with traced arrays of floats as leaves."""
    lifted = (trace.lift(leaf) for leaf in leaves(x))
    return like(x, (array.astype(float) if array.truths else array for array in lifted))


def _arrays(trace: Recording, values: list[int], examples: list[Array]) -> Iterator[Array]:
    """Flat values, cut into arrays of given shapes."""
    offsets = np.cumsum([x.size for x in examples]).tolist()
    for end, x in zip(offsets, examples, strict=True):
        yield Array(trace, np.array(values[end - math.prod(x.shape) : end], np.int64).reshape(x.shape))


def _values(arrays: list[Array]) -> list[int]:
    """The values of arrays, one after the other."""
    return [v for array in arrays for v in array.ids.ravel().tolist()]


def _matching(label: str, x: Any, example: Any) -> list[int]:
    """The flat values of tangents or cotangents, which must have the shapes of what they belong to."""
    shapes, expected = (like(y, iter([leaf.shape for leaf in leaves(y)])) for y in (x, example))
    if shapes != expected:
        raise DerivativeError(
            f"a {label} has shape {shapes}; it must have the shape {expected} of its argument or result.",
            code="wrong-shape",
        )
    return _values(leaves(x))
