"""Philox4x32-10: random words as a pure function of a counter and a key.

Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. Ten rounds of two products of 32
by 32 bits turn four words of counter and two of key into four random words. A program has an operation for each of
these, philox0 to philox3, whose arguments are the six words as floats, integers below 2³²; back ends compute them
with integers. In double precision the result is the word, in single precision its upper 24 bits: integers both.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from delassus.compiler.functions.registry import elementary
from delassus.compiler.graph.graph import Builder
from delassus.compiler.graph.precision import SINGLE, Precision

MULTIPLIERS: Final = (0xD2511F53, 0xCD9E8D57)
STEPS: Final = (0x9E3779B9, 0xBB67AE85)
"""What is added to the key from round to round."""

ROUNDS: Final = 10
MASK: Final = 0xFFFFFFFF


def dropped_bits(precision: Precision) -> int:
    """How many of the 32 bits of a word have no place in a float."""
    return max(0, 31 - precision.digits)


def words(counter: Sequence[Any], key: Sequence[Any]) -> tuple[Any, Any, Any, Any]:
    """Four random words for four words of counter and two of key, all arrays of uint64."""
    c0, c1, c2, c3 = counter
    mask, half = np.uint64(MASK), np.uint64(32)
    for number in range(ROUNDS):
        k0, k1 = (k + np.uint64(number * step & MASK) & mask for k, step in zip(key, STEPS, strict=True))
        first, second = (c * np.uint64(m) for c, m in zip((c0, c2), MULTIPLIERS, strict=True))
        c0, c1, c2, c3 = (second >> half) ^ c1 ^ k0, second & mask, (first >> half) ^ c3 ^ k1, first & mask
    return c0, c1, c2, c3


def word(number: int) -> Callable[..., Any]:
    """One of the words, of arrays of floats: what the interpreter computes."""

    def philox(*arguments: Any) -> Any:
        floats = np.broadcast_arrays(*arguments)
        counter_and_key = [x.astype(np.uint64) for x in floats]
        kind = floats[0].dtype
        random_word = words(counter_and_key[:4], counter_and_key[4:])[number]
        return (random_word >> np.uint64(dropped_bits(Precision.of(kind)))).astype(kind)

    return philox


def uniform(half: int) -> Callable[..., int]:
    """A number in [0, 1) of the first two words or of the other two, with as many bits as a float has digits."""

    def expansion(g: Builder, *arguments: int) -> int:
        first, second = (g.emit((f"philox{2 * half + k}", *arguments)) for k in (0, 1))
        if g.precision is SINGLE:
            return g.mul(first, g.constant(2.0**-24))
        upper, lower = g.floor(g.mul(first, g.constant(2.0**-5))), g.floor(g.mul(second, g.constant(2.0**-6)))
        return g.mul(g.add(g.mul(upper, g.constant(2.0**26)), lower), g.constant(2.0**-53))

    return expansion


for _half in range(2):
    elementary(f"uniform{_half}", partials=(), arity=6)(uniform(_half))
