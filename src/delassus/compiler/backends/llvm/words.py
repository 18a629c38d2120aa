"""LLVM IR of arithmetic with words, 32-bit integers that are stored as doubles; see `functions/words`."""

from collections.abc import Callable, Sequence
from typing import Final

from delassus.compiler.backends.llvm.philox import float_of, integer_of
from delassus.compiler.graph.precision import DOUBLE

_INSTRUCTIONS: Final = {
    "word_add": "add",
    "word_mul": "mul",
    "word_mulhi": "mul",
    "word_and": "and",
    "word_or": "or",
    "word_xor": "xor",
}


def emit_word(emit: Callable[[str], str], kind: str, arguments: Sequence[str]) -> str:
    """One operation; `emit` appends an instruction and returns the name of its value."""
    a, b = (integer_of(emit, x, DOUBLE) for x in arguments)
    result = emit(f"{_INSTRUCTIONS[kind]} $Q {a}, {b}")
    if kind == "word_mulhi":
        result = emit(f"lshr $Q {result}, $(i64 32$)")
    elif kind in ("word_add", "word_mul"):
        result = emit(f"and $Q {result}, $(i64 {0xFFFFFFFF}$)")
    return float_of(emit, result, DOUBLE)
