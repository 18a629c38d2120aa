"""The expression graph that tracing builds.

A value is an integer. Positive values are operations, numbered in order of creation, so that the arguments of an
operation always precede it. Zero and negative values are constants; value 0 is the constant 0.0, so that NumPy's own
`diag`, `tril` and similar functions move values and fill gaps correctly.

`Builder` creates operations. It is hash-consing (the same operation on the same values is one value) and folds
constants and the identities of 0, 1 and -1. It treats 0·x and 0/x as 0 and does not preserve the sign of zero, so
finiteness has to be tested on inputs and outputs. Signs are moved outward, so that x·(-y) and x·y share one product and
the sign ends in a subtraction. Subnormal constants are zero, as in compiled code. Constants are rounded to the
builder's precision: double while a function is traced, that of the kernel when its program is lowered. Sums, products,
quotients and roots of float32 values may be folded in double: it has more than twice the digits, so that rounding twice
gives the same result as rounding once.

`Builder.finish` returns the `Program` of the outputs, without unused operations.
"""

import math
import struct
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from delassus.compiler.graph.finishing import finish_program
from delassus.compiler.graph.precision import DOUBLE, Precision
from delassus.compiler.graph.program import LOGICAL, WHOLE, Loop, Node, Operand, Program

ZERO: Final = 0
ONE: Final = -1
MINUS_ONE: Final = -2
FALSE: Final = -3
TRUE: Final = -4
_FIXED_CONSTANTS: Final = (0.0, 1.0, -1.0, False, True)


class Builder:
    """Creates values; the module's docstring lists what it folds."""

    def __init__(self, precision: Precision = DOUBLE, fma: bool = False) -> None:
        """An empty graph; `fma` if the target has fused operations."""
        self.precision = precision
        self.fma = fma
        self.nodes: list[Node] = [("constant",)]
        self.constants: list[float] = list(_FIXED_CONSTANTS)
        self._made: dict[Node, int] = {}
        self._seen: dict[float, int] = {}  # keyed by the float itself, which is faster; without zeros and NaN
        self._known: dict[bytes, int] = {struct.pack("<d", c): -k for k, c in enumerate(_FIXED_CONSTANTS[:3])}
        self._negated: dict[int, int] = {}
        self.loops: list[Loop] = []
        self._loop_numbers: dict[tuple[str, int, bool, bool], int] = {}

    def emit(self, node: Node) -> int:
        """The value of an operation, without folding."""
        value = self._made.get(node)
        if value is None:
            value = self._made[node] = len(self.nodes)
            self.nodes.append(node)
        return value

    def constant(self, number: float) -> int:
        """The value of a number or a boolean."""
        cached = self._seen.get(number) if type(number) is float else None
        if cached is not None:
            return cached
        if isinstance(number, (bool, np.bool_)):
            return TRUE if number else FALSE
        given = float(number)
        number = self.precision.rounded(given)
        if abs(number) < self.precision.smallest:  # zero of either sign, or subnormal
            return ZERO
        bits = struct.pack("<d", number)
        value = self._known.get(bits)
        if value is None:
            value = self._known[bits] = -len(self.constants)
            self.constants.append(number)
        if given == given:  # noqa: PLR0124 (not a NaN)
            self._seen[given] = value
        return value

    def is_logical(self, value: int) -> bool:
        """Whether a value is a boolean."""
        return self.nodes[value][0] in LOGICAL if value > 0 else value in (FALSE, TRUE)

    def number(self, value: int) -> int:
        """A boolean as 1.0 or 0.0, a float as it is."""
        return self.select(value, ONE, ZERO) if self.is_logical(value) else value

    # --- arithmetic -----------------------------------------------------------------------------------------

    def neg(self, a: int) -> int:
        """Add the node -a."""
        if a <= 0:
            return self.constant(-self.constants[-a])
        inner = self._negated.get(a)
        if inner is None:
            inner, a = a, self.emit(("neg", a))
            self._negated[a] = inner
            return a
        return inner

    def add(self, a: int, b: int) -> int:
        """Add the node a + b."""
        if a <= 0 and b <= 0:
            return self.constant(self.constants[-a] + self.constants[-b])
        if a == 0:
            return b
        if b == 0:
            return a
        if b in self._negated:
            return self.sub(a, self._negated[b])
        if a in self._negated:
            return self.sub(b, self._negated[a])
        return self.emit(("add", a, b) if a < b else ("add", b, a))

    def sub(self, a: int, b: int) -> int:
        """a - b. Not folded for a = b, since inf - inf is not zero."""
        if a <= 0 and b <= 0:
            return self.constant(self.constants[-a] - self.constants[-b])
        if b == 0:
            return a
        if a == 0:
            return self.neg(b)
        if b in self._negated:
            return self.add(a, self._negated[b])
        if a in self._negated:
            return self.neg(self.add(self._negated[a], b))
        return self.emit(("sub", a, b))

    def mul(self, a: int, b: int) -> int:
        """Add the node a · b."""
        if a <= 0 and b <= 0:
            return self.constant(self.constants[-a] * self.constants[-b])
        if a == 0 or b == 0:
            return ZERO
        if a == ONE:
            return b
        if b == ONE:
            return a
        if a > 0 and b > 0 and a not in self._negated and b not in self._negated:  # the common case
            return self.emit(("mul", a, b) if a < b else ("mul", b, a))
        a, b, flip = self._split_signs(a, b)
        product = self._plain_mul(a, b)
        return self.neg(product) if flip else product

    def _plain_mul(self, a: int, b: int) -> int:
        if ONE in (a, b):
            return b if a == ONE else a
        return self.emit(("mul", a, b) if a < b else ("mul", b, a))

    def div(self, a: int, b: int) -> int:
        """a / b. A division by a power of two becomes the (exact) product with its inverse."""
        if b <= 0:
            divisor = self.constants[-b]
            if a <= 0 and divisor != 0.0:
                return self.constant(self.constants[-a] / divisor)
            inverse = _exact_inverse(divisor, self.precision)
            if inverse is not None:
                return self.mul(a, self.constant(inverse))
        if a == 0 and b != 0:
            return ZERO
        a, b, flip = self._split_signs(a, b)
        quotient = a if b == ONE else self.emit(("div", a, b))
        return self.neg(quotient) if flip else quotient

    def _split_signs(self, a: int, b: int) -> tuple[int, int, bool]:
        """The factors without their signs, and whether the product changes sign."""
        a, flip_a = self._split_sign(a)
        b, flip_b = self._split_sign(b)
        return a, b, flip_a != flip_b

    def _split_sign(self, a: int) -> tuple[int, bool]:
        if a <= 0:
            return (self.constant(-self.constants[-a]), True) if self.constants[-a] < 0.0 else (a, False)
        inner = self._negated.get(a)
        return (a, False) if inner is None else (inner, True)

    def sqrt(self, a: int) -> int:
        """Add the node √a."""
        if a <= 0 and self.constants[-a] >= 0.0:
            return self.constant(math.sqrt(self.constants[-a]))
        return self.emit(("sqrt", a))

    def abs(self, a: int) -> int:
        """Add the node of the absolute value of a."""
        if a <= 0:
            return self.constant(abs(self.constants[-a]))
        return self.emit(("abs", self._negated.get(a, a)))

    def floor(self, a: int) -> int:
        """The largest integer that is not above a."""
        return self._rounding("floor", a)

    def ceil(self, a: int) -> int:
        """The smallest integer that is not below a."""
        return self._rounding("ceil", a)

    def rint(self, a: int) -> int:
        """The nearest integer, the even one of two."""
        return self._rounding("rint", a)

    def trunc(self, a: int) -> int:
        """The number without its fraction."""
        return self._rounding("trunc", a)

    def _rounding(self, kind: str, a: int) -> int:
        if a <= 0:
            return self.constant(float(getattr(np, kind)(self.constants[-a])))
        return a if self.nodes[a][0] in WHOLE else self.emit((kind, a))

    def unary(self, operation: str, a: int) -> int:
        """An elementary function such as sin, kept as one operation until the program is lowered."""
        return self.emit((operation, a))

    def minimum(self, a: int, b: int) -> int:
        """The smaller one, NaN if either is NaN (np.minimum)."""
        return a if a == b else self.emit(("min", a, b))

    def maximum(self, a: int, b: int) -> int:
        """The larger one, NaN if either is NaN (np.maximum)."""
        return a if a == b else self.emit(("max", a, b))

    # --- comparisons and logic ------------------------------------------------------------------------------

    def lt(self, a: int, b: int) -> int:
        """Add the node a < b."""
        if a <= 0 and b <= 0:
            return self.constant(bool(self.constants[-a] < self.constants[-b]))
        return self.emit(("lt", a, b))

    def le(self, a: int, b: int) -> int:
        """Add the node a <= b."""
        if a <= 0 and b <= 0:
            return self.constant(bool(self.constants[-a] <= self.constants[-b]))
        return self.emit(("le", a, b))

    def eq(self, a: int, b: int) -> int:
        """Add the node a == b."""
        if a <= 0 and b <= 0:
            return self.constant(bool(self.constants[-a] == self.constants[-b]))
        return self.emit(("eq", a, b) if a < b else ("eq", b, a))

    def ne(self, a: int, b: int) -> int:
        """a != b; `ne(a, a)` tells NaN."""
        if a <= 0 and b <= 0:
            return self.constant(bool(self.constants[-a] != self.constants[-b]))
        return self.emit(("ne", a, b) if a < b else ("ne", b, a))

    def logical_not(self, a: int) -> int:
        """Add the node of the negation of a."""
        if a <= 0:
            return FALSE if a == TRUE else TRUE
        node = self.nodes[a]
        return node[1] if node[0] == "not" else self.emit(("not", a))

    def logical_and(self, a: int, b: int) -> int:
        """Add the node that is true if a and b are."""
        if FALSE in (a, b):
            return FALSE
        if a in (TRUE, b):
            return b
        if b == TRUE:
            return a
        return self.emit(("and", a, b) if a < b else ("and", b, a))

    def logical_or(self, a: int, b: int) -> int:
        """Either or both."""
        return self.logical_not(self.logical_and(self.logical_not(a), self.logical_not(b)))

    def logical_xor(self, a: int, b: int) -> int:
        """One of the two."""
        if a <= 0 or b <= 0:
            constant, other = (a, b) if a <= 0 else (b, a)
            return self.logical_not(other) if constant == TRUE else other
        return self.emit(("xor", a, b) if a < b else ("xor", b, a))

    def select(self, condition: int, a: int, b: int) -> int:
        """`a` where the condition holds, else `b`."""
        if a == b:
            return a
        if condition <= 0:
            return a if condition == TRUE else b
        if self.is_logical(a) or self.is_logical(b):
            if a > 0 and b > 0:
                return self.logical_xor(b, self.logical_and(condition, self.logical_xor(a, b)))
            keep, drop = self.logical_and(condition, a), self.logical_and(self.logical_not(condition), b)
            return self.logical_or(keep, drop)
        return self.emit(("select", condition, a, b))

    def gather(self, index: int, *values: int) -> int:
        """The value at an index among several; see `tables` for invalid indices."""
        if all(value == values[0] for value in values):
            return values[0]
        if index <= 0:
            number = self.constants[-index]
            return values[0 if math.isnan(number) else int(min(max(number, 0.0), len(values) - 1.0))]
        return self.emit(("gather", index, *values))

    def scatter(self, rows: int, index: int, row: Sequence[int], values: Sequence[int]) -> list[int]:
        """Rows of values, flattened, with the row at an index replaced; see `tables` for invalid indices."""
        if index <= 0:
            number, size = self.constants[-index], len(row)
            start = size * (0 if math.isnan(number) else int(min(max(number, 0.0), rows - 1.0)))
            return [*values[:start], *row, *values[start + size :]]
        node = self.emit(("scatter", rows, index, *row, *values))
        return [self.emit(("part", node, k)) for k in range(len(values))]

    def bit(self, a: int, position: int) -> int:
        """Bit `position` of those that hold a float, as a boolean."""
        if a <= 0:
            return self.constant(bool(self.precision.bits(self.constants[-a]) >> position & 1))
        return self.emit((f"bit{position}", a))

    def exponent(self, a: int) -> int:
        """The exponent e of a number ±2ᵉ·m, 1 <= m < 2, from its bits.

        In double precision that is -1023 for 0, and 1024 for inf and NaN; in single precision -127 and 128.
        """
        p = self.precision
        if a <= 0:
            return self.constant(float((p.bits(self.constants[-a]) >> p.digits & p.exponents) - p.bias))
        return self.emit(("exponent", a))

    def scale(self, a: int, n: int) -> int:
        """a·2ⁿ for an integer n, by adding n to the exponent in the bits of a.

        This is correct if a and the result are normal numbers, or n is zero. Otherwise the result is undefined, and an
        expansion must not use it.
        """
        if n == 0:
            return a
        if a <= 0 and n <= 0:
            p = self.precision
            digits = p.bits(self.constants[-n] + p.rounder)
            return self.constant(p.from_bits(p.bits(self.constants[-a]) + (digits << p.digits)))
        return self.emit(("scale", a, n))

    # --- loops ----------------------------------------------------------------------------------------------

    def loop_number(self, loop: Loop) -> int:
        """The index of a loop in this graph; equal loops share one."""
        key = (loop.body.digest, loop.count, loop.reverse, loop.conditional)
        if key not in self._loop_numbers:
            self._loop_numbers[key] = len(self.loops)
            self.loops.append(loop)
        return self._loop_numbers[key]

    def loop(self, loop: Loop, values: Iterable[int]) -> list[int]:
        """The parts of a loop over some values; see `Loop` for their order."""
        node = self.emit(("loop", self.loop_number(loop), *values))
        return [self.emit(("part", node, k)) for k in range(loop.parts)]

    # --- the end --------------------------------------------------------------------------------------------

    def finish(
        self,
        inputs: tuple[Operand, ...],
        outputs: tuple[Operand, ...],
        results: tuple[tuple[int, ...], ...],
    ) -> Program:
        """The program that computes `results`: the required operations, in order of creation, renumbered."""
        return finish_program(self.nodes, self.constants, self.loops, inputs, outputs, results)


def _exact_inverse(divisor: float, precision: Precision) -> float | None:
    """1/divisor if the divisor is a power of two whose inverse is a normal number, else None."""
    if divisor == 0.0 or not math.isfinite(divisor) or abs(math.frexp(divisor)[0]) != 0.5:
        return None
    inverse = 1.0 / divisor
    return inverse if precision.smallest <= abs(inverse) <= precision.largest else None
