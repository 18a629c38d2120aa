"""LLVM IR of the random number generator; see `functions/philox`."""

from collections.abc import Callable, Sequence

from delassus.compiler.backends.llvm.placeholders import constant
from delassus.compiler.functions.philox import MASK, MULTIPLIERS, ROUNDS, STEPS, dropped_bits
from delassus.compiler.graph.precision import Precision

_MASK = f"$(i64 {MASK}$)"


def emit_words(emit: Callable[[str], str], arguments: Sequence[str], precision: Precision) -> list[str]:
    """Four random words as floats; `emit` appends an instruction and returns the name of its value."""
    c0, c1, c2, c3, k0, k1 = (integer_of(emit, x, precision) for x in arguments)
    for number in range(ROUNDS):
        if number:
            sums = [emit(f"add $Q {k}, $(i64 {step}$)") for k, step in zip((k0, k1), STEPS, strict=True)]
            k0, k1 = (emit(f"and $Q {k}, {_MASK}") for k in sums)
        first, second = (emit(f"mul $Q {c}, $(i64 {m}$)") for c, m in zip((c0, c2), MULTIPLIERS, strict=True))
        (high0, low0), (high1, low1) = (
            (emit(f"lshr $Q {x}, $(i64 32$)"), emit(f"and $Q {x}, {_MASK}")) for x in (first, second)
        )
        c0, c2 = (
            emit(f"xor $Q {emit(f'xor $Q {high}, {c}')}, {k}") for high, c, k in ((high1, c1, k0), (high0, c3, k1))
        )
        c1, c3 = low1, low0
    return [float_of(emit, x, precision) for x in (c0, c1, c2, c3)]


def integer_of(emit: Callable[[str], str], x: str, precision: Precision) -> str:
    """A word from a float; in double precision from the last digits of its sum with 2⁵²."""
    if precision.bytes == 8:
        total = emit(f"fadd $T {x}, {constant(2.0**52)}")
        return emit(f"and $Q {emit(f'bitcast $T {total} to $Q')}, {_MASK}")
    return emit(f"zext $J {emit(f'fptoui $T {x} to $J')} to $Q")


def float_of(emit: Callable[[str], str], x: str, precision: Precision) -> str:
    """A float from a word; in single precision from its leading bits."""
    if precision.bytes == 8:
        digits = emit(f"or $Q {x}, $(i64 {(1023 + 52) << 52}$)")
        return emit(f"fsub $T {emit(f'bitcast $Q {digits} to $T')}, {constant(2.0**52)}")
    upper = emit(f"lshr $Q {x}, $(i64 {dropped_bits(precision)}$)")
    return emit(f"sitofp $J {emit(f'trunc $Q {upper} to $J')} to $T")
