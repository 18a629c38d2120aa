"""Words, 32-bit integers in kernels, for identifiers, hashes and ciphers.

    add(a, b)   multiply(a, b)          modulo 2³²
    multiply_high(a, b)                 the upper 32 of the 64 bits of a product
    bitwise_and, bitwise_or, bitwise_xor(a, b)
    shift_left(a, count), shift_right(a, count)
    word(x)                             the word of any number: ⌊x⌋ modulo 2³², 0 for NaN and infinities

A word is a float that holds an integer from 0 to 2³² - 1, as kernels have no other numbers: it can be compared,
carried by loops, be an index, and needs no conversion to be used as a number. What is no word is made one by `word`
first, also by the other functions. Outside a kernel they give arrays of float64. In float32 they are refused.

Cost: some ten instructions in the lanes for each operation, most of them to convert words to integers and back.

>>> dl.compiler.words.add(2**32 - 1, 3)
np.float64(2.0)
"""

from __future__ import annotations

import operator
from typing import Any, Final

import numpy as np

from delassus.compiler.functions.words import OPERATIONS, on_floats
from delassus.compiler.graph.graph import ZERO, Builder
from delassus.compiler.tracing.array import Array
from delassus.compiler.tracing.trace import current, trace_of
from delassus.errors import OutOfRange

BITS: Final = 32


def add(a: Any, b: Any) -> Any:
    """a + b modulo 2³²."""
    return _apply("word_add", a, b)


def multiply(a: Any, b: Any) -> Any:
    """a b modulo 2³²."""
    return _apply("word_mul", a, b)


def multiply_high(a: Any, b: Any) -> Any:
    """⌊a b / 2³²⌋."""
    return _apply("word_mulhi", a, b)


def bitwise_and(a: Any, b: Any) -> Any:
    """The bits that both have."""
    return _apply("word_and", a, b)


def bitwise_or(a: Any, b: Any) -> Any:
    """The bits that either has."""
    return _apply("word_or", a, b)


def bitwise_xor(a: Any, b: Any) -> Any:
    """The bits that one of both has."""
    return _apply("word_xor", a, b)


def shift_left(a: Any, count: int) -> Any:
    """a 2ᶜ modulo 2³², for a count 0 ≤ c < 32 that is known when the kernel is compiled."""
    return multiply(a, 2.0 ** _check_count(count))


def shift_right(a: Any, count: int) -> Any:
    """⌊a / 2ᶜ⌋, for a count 0 ≤ c < 32 that is known when the kernel is compiled."""
    return multiply_high(a, 2.0 ** (BITS - count)) if _check_count(count) else word(a)


def word(x: Any) -> Any:
    """⌊x⌋ modulo 2³², 0 for NaN and infinities."""
    trace = current() or trace_of(x)
    if trace is not None:
        lifted = trace.lift(x).astype(float)
        return trace.map(lambda value: word_of(trace.builder, value), lifted)
    with np.errstate(invalid="ignore"):
        integer = np.floor(np.asarray(x, float))
        return np.where(np.isfinite(integer), integer - np.floor(integer * 2.0**-BITS) * 2.0**BITS, 0.0)


def word_of(g: Builder, x: int) -> int:
    """The lower 32 bits of an integer; 0 for what is none, or is rounded up to 2³² in single precision."""
    integer, end = g.floor(x), g.constant(2.0**BITS)
    low = g.sub(integer, g.mul(g.floor(g.mul(integer, g.constant(2.0**-BITS))), end))
    return g.select(g.lt(low, end), low, ZERO)


def _apply(kind: str, a: Any, b: Any) -> Any:
    trace = current() or trace_of(a, b)
    if trace is None:
        return on_floats(kind)(word(a), word(b))
    g = trace.builder

    def as_word(value: int) -> int:
        """A value that is a word for sure."""
        return value if value > 0 and g.nodes[value][0] in OPERATIONS else word_of(g, value)

    def make(a: int, b: int) -> int:
        a, b = as_word(a), as_word(b)
        return g.emit((kind, a, b) if a < b else (kind, b, a))  # all of them commute

    result: Array = trace.map(make, *(trace.lift(x).astype(float) for x in (a, b)))
    return result


def _check_count(count: Any) -> int:
    number = operator.index(count)
    if not 0 <= number < BITS:
        raise OutOfRange(f"a word is shifted by 0 to {BITS - 1} bits, not by {number}.")
    return number
