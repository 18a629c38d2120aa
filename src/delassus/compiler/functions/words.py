"""Arithmetic of words: 32-bit integers modulo 2³², which a program stores as floats.

Back ends convert them to integers and back, which is exact in double precision; single precision cannot represent 32
bits and raises an error.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from delassus.compiler.functions.registry import elementary
from delassus.compiler.graph.graph import Builder
from delassus.compiler.graph.precision import DOUBLE
from delassus.errors import BadArgument

_MASK: Final = np.uint64(0xFFFFFFFF)

OPERATIONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "word_add": lambda a, b: (a + b) & _MASK,
    "word_mul": lambda a, b: (a * b) & _MASK,
    "word_mulhi": lambda a, b: (a * b) >> np.uint64(32),
    "word_and": lambda a, b: a & b,
    "word_or": lambda a, b: a | b,
    "word_xor": lambda a, b: a ^ b,
}
"""What each operation gives, on arrays of uint64 that hold words."""


def on_floats(kind: str) -> Callable[[Any, Any], Any]:
    """An operation on arrays of floats that hold words: what the interpreter computes."""
    operation = OPERATIONS[kind]
    return lambda a, b: operation(a.astype(np.uint64), b.astype(np.uint64)).astype(np.float64)


def check_precision(kind: str) -> Callable[..., int]:
    """The operation as it is, in double precision."""

    def expansion(g: Builder, a: int, b: int) -> int:
        if g.precision is not DOUBLE:
            raise BadArgument(
                "words have 32 bits, and float32 represents 24: compile kernels with words for float64.",
                code="not-supported",
            )
        return g.emit((kind, a, b))

    return expansion


for _kind in OPERATIONS:
    elementary(_kind, partials=(), arity=2)(check_precision(_kind))
