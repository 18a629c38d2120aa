"""Random nests of loops and branches, for tests that compare two ways of running the same arithmetic.

`nests()` is a hypothesis strategy for tuples that `run` interprets, on plain numbers or in a trace: a function of an
array of shape (SIZE,) to one of the same shape. How often its loops run depends on the numbers. With `UNROLLED` instead
of `ROLLED` loops, the same is made of plain Python loops.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy
from hypothesis import strategies as st

import delassus.numpy as np
from delassus.compiler import cond, scan, while_loop
from delassus.compiler import map as rolled_map

SIZE = 3
DEPTH = 3

_NUMBERS = st.floats(-2.0, 2.0).map(lambda x: round(x, 2))
_COUNTS = st.integers(1, 4)


def _statements(depth: int, bound: int) -> Any:
    simple = [
        st.tuples(st.just("mix"), _NUMBERS, _NUMBERS),
        st.tuples(st.just("divide"), _NUMBERS),
        st.tuples(st.just("choose"), _NUMBERS),
    ]
    if depth == 0:
        return st.lists(st.one_of(simple), min_size=1, max_size=3).map(tuple)
    inner = _statements(depth - 1, 5)  # loops in loops in loops that all run long take seconds
    loops = [
        st.tuples(st.just("scan"), _COUNTS, st.booleans(), inner),
        st.tuples(st.just("map"), _COUNTS, inner),
        st.tuples(st.just("while"), st.integers(1, bound), st.floats(0.01, 4.0), inner),
        st.tuples(st.just("cond"), _NUMBERS, inner, st.none() | inner),
    ]
    return st.lists(st.one_of(*simple, *loops, *loops), min_size=1, max_size=3).map(tuple)


def nests(depth: int = DEPTH, conditional: bool = True) -> Any:
    """Statements with loops in loops in loops; without `conditional` ones, no while."""
    found = _statements(depth, 40)
    return found if conditional else found.filter(lambda statements: "while" not in repr(statements))


class Loops(NamedTuple):
    """Ways to loop."""

    scan: Callable[..., Any]
    map: Callable[..., Any]
    while_loop: Callable[..., Any]
    cond: Callable[..., Any]


def _plain_scan(body: Any, carry: Any, stacks: Any, reverse: bool) -> Any:
    count = len(stacks[0])
    kept: list[Any] = [None] * count
    for k in reversed(range(count)) if reverse else range(count):
        carry, kept[k] = body(carry, tuple(x[k] for x in stacks))
    return carry, kept


def _plain_while(condition: Any, body: Any, carry: Any, bound: int) -> Any:
    for _ in range(bound):
        go = condition(carry)
        carry = tuple(np.where(go, new, old) for new, old in zip(body(carry), carry, strict=True))
    return carry


def _plain_cond(condition: Any, function: Any, otherwise: Any, *operands: Any) -> Any:
    return np.where(condition, function(*operands), otherwise(*operands) if callable(otherwise) else otherwise)


ROLLED = Loops(scan, rolled_map, while_loop, cond)
UNROLLED = Loops(_plain_scan, lambda body, stack: [body(x) for x in stack], _plain_while, _plain_cond)


def run(statements: Any, x: Any, loops: Loops = ROLLED) -> Any:
    """The result of some statements."""
    for kind, *details in statements:
        x = _STATEMENTS[kind](loops, x, *details)
        x = x / (1.0 + np.abs(x))  # nothing grows beyond bounds
    return x


def _scan(loops: Loops, x: Any, count: int, reverse: bool, inner: Any) -> Any:
    def body(carry: Any, item: Any) -> tuple[Any, Any]:
        stacked, number = item
        carry = run(inner, carry + 0.3 * stacked - x, loops)
        return carry, carry[0] * x[1] + number

    stacks = (np.stack([x * (k + 1) for k in range(count)]), numpy.arange(float(count)))
    carry, kept = loops.scan(body, 0.5 * x, stacks, reverse=reverse)
    return carry + kept[0] - kept[-1]


def _map(loops: Loops, x: Any, count: int, inner: Any) -> Any:
    rows = loops.map(lambda row: run(inner, row - x, loops), np.stack([x + k for k in range(count)]))
    return rows[0] - 0.5 * rows[-1]


def _while(loops: Loops, x: Any, bound: int, threshold: float, inner: Any) -> Any:
    def body(carry: Any) -> Any:
        y, count, odd = carry
        return 0.8 * run(inner, y, loops) + 0.1 * x, count + 1.0, ~odd

    y, count, odd = loops.while_loop(
        lambda c: ~(np.sum(np.abs(c[0])) < threshold), body, (2.0 * x, 0.0, x[0] > 0.0), bound
    )
    return y + 0.01 * count + np.where(odd, x, 0.0)


def _cond(loops: Loops, x: Any, threshold: float, inner: Any, other: Any) -> Any:
    def otherwise(y: Any) -> Any:
        return run(other, 2.0 * y, loops)

    holds = x[0] + x[1] > 0.3 * threshold
    return loops.cond(holds, lambda y: run(inner, y - x, loops), x if other is None else otherwise, 0.5 * x + 0.2)


_STATEMENTS = {
    "mix": lambda _, x, a, b: np.roll(x, 1) * a + np.sin(x) * b + 0.1,
    "divide": lambda _, x, a: x / (a * a + 0.1 + x[0] * x[0]),
    "choose": lambda _, x, a: np.where(x > a, x, 0.5 - x),
    "scan": _scan,
    "map": _map,
    "while": _while,
    "cond": _cond,
}
