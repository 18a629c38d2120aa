"""The floating-point formats that kernels compute in: float64 and float32."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from delassus.errors import BadArgument


@dataclass(frozen=True)
class Precision:
    """A binary format of IEEE 754.

    Attributes:
        name: NumPy's name of it.
        bytes: Size of a number.
        digits: Bits of the fraction, without the leading one.
    """

    name: str
    bytes: int
    digits: int

    @classmethod
    def of(cls, dtype: Any) -> Precision:
        """The format of a NumPy dtype, or of what NumPy takes for one; float64 for None."""
        try:
            precision = _BY_DTYPE.get(np.dtype(dtype))
        except (TypeError, ValueError):
            precision = None
        if precision is None:
            raise BadArgument(
                f"kernels compute in float64 or float32: dtype cannot be {dtype!r}.", code="unknown-option"
            )
        return precision

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of arrays of such numbers."""
        return np.dtype(self.name)

    @cached_property
    def unsigned(self) -> np.dtype[Any]:
        """The dtype of integers with the same number of bits."""
        return np.dtype(f"uint{8 * self.bytes}")

    @cached_property
    def bias(self) -> int:
        """What is added to an exponent before it is stored; also the largest exponent of a finite number."""
        return (1 << (8 * self.bytes - self.digits - 2)) - 1

    @cached_property
    def exponents(self) -> int:
        """The exponent's bits, all set: that of infinity and NaN as it is stored."""
        return 2 * self.bias + 1

    @cached_property
    def smallest(self) -> float:
        """The smallest positive number that is not subnormal."""
        return 2.0 ** (1 - self.bias)

    @cached_property
    def largest(self) -> float:
        """The largest finite number."""
        return (2.0 - 2.0**-self.digits) * 2.0**self.bias

    @cached_property
    def rounder(self) -> float:
        """Adding it rounds to an integer and leaves that integer's low bits in the low bits of the sum."""
        return 1.5 * 2.0**self.digits

    def rounded(self, number: float) -> float:
        """The nearest number of this format."""
        return number if self.bytes == 8 else ctypes.c_float(number).value

    def bits(self, number: float) -> int:
        """The bits of a number of this format."""
        return int(self.dtype.type(number).view(self.unsigned))

    def from_bits(self, bits: int) -> float:
        """The number that has these bits; those beyond its size are dropped."""
        return float(self.unsigned.type(bits & (1 << 8 * self.bytes) - 1).view(self.dtype))


DOUBLE: Final = Precision("float64", 8, 52)
SINGLE: Final = Precision("float32", 4, 23)
_BY_DTYPE: Final = {precision.dtype: precision for precision in (DOUBLE, SINGLE)}
