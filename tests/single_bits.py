"""Machine code of single precision held against the interpreter, bit by bit; see `native_bits`."""

from functools import partial

import numpy as np
import pytest

import native_bits
from delassus.compiler.backends.interpreter import evaluate

HOST, FULL = native_bits.HOST.with_dtype(np.float32), native_bits.FULL.with_dtype(np.float32)
WIDTHS = (1, *HOST.widths)
SPECIAL = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-45, -1e-39, 2e-38, -1e30, 3e38, 0.5], np.float32)

every_width = pytest.mark.parametrize("lanes", WIDTHS)
assert_same_bits = native_bits.assert_same_bits
numbers = partial(native_bits.numbers, special=SPECIAL)
compile_program = partial(native_bits.compile_program, host=HOST)
check = partial(native_bits.check, host=HOST)
interpret = partial(evaluate, fma=HOST.fma, dtype=np.float32)
