"""Words, integers of 32 bits: NumPy's uint32, the same bits everywhere, and Philox written with them."""

import numpy as np
import pytest

import delassus as dl
import delassus.numpy as dnp
from c_code import check as check_c
from c_code import needs_compiler
from delassus.compiler import grad, scan, words
from delassus.compiler.backends.interpreter import evaluate
from delassus.errors import DelassusError
from native_bits import check, every_width

RNG = np.random.default_rng(2)
SPECIAL = np.array([0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF], np.uint64)
A, B = (np.concatenate([x.ravel(), RNG.integers(0, 2**32, 50, np.uint64)]) for x in np.meshgrid(SPECIAL, SPECIAL))
MASK = np.uint64(0xFFFFFFFF)

# Counter, key and result of philox4x32 with 10 rounds, from the file kat_vectors of Random123.
PUBLISHED = "243f6a88 85a308d3 13198a2e 03707344 a4093822 299f31d0 d16cfe09 94fdcceb 5001e420 24126ea1"

BINARY = {
    "add": lambda a, b: a + b & MASK,
    "multiply": lambda a, b: a * b & MASK,
    "multiply_high": lambda a, b: a * b >> np.uint64(32),
    "bitwise_and": lambda a, b: a & b,
    "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b,
}


def everything(model, a, b):
    found = [getattr(words, name)(a, b) for name in BINARY]
    found += [words.shift_left(a, 5), words.shift_right(a, 5), words.shift_right(a, 0), words.word(a * 3.7 - b)]
    return dnp.stack([*found, dnp.where(words.bitwise_xor(a, b) < b, 1.0, 0.0)])


KERNEL = dl.kernel("(),()->(11)")(everything)


def test_words_are_those_of_numpy():
    got = evaluate(KERNEL.program(None), A.astype(float), B.astype(float))[0]
    for k, (name, right) in enumerate(BINARY.items()):
        np.testing.assert_array_equal(got[:, k].astype(np.uint64), right(A, B), err_msg=name)
    np.testing.assert_array_equal(got[:, 6].astype(np.uint64), (A << np.uint64(5)) & MASK)
    np.testing.assert_array_equal(got[:, 7].astype(np.uint64), A >> np.uint64(5))
    np.testing.assert_array_equal(got[:, 8], A)
    np.testing.assert_array_equal(got[:, 10], ((A ^ B) < B).astype(float))


def test_plain_code_has_the_words_of_compiled_code():
    for a, b in zip(A.astype(float), B.astype(float), strict=True):
        np.testing.assert_array_equal(KERNEL.python(None, a, b), evaluate(KERNEL.program(None), a, b)[0])


@every_width
def test_compiled_code_has_the_bits_of_the_interpreter(lanes):
    check(KERNEL, lanes, A.astype(float), B.astype(float))


@needs_compiler
def test_c_has_the_bits_of_the_interpreter(tmp_path):
    check_c(KERNEL, tmp_path, A.astype(float), B.astype(float))


def test_any_number_is_made_a_word():
    f = dl.kernel("()->()")(lambda model, x: words.bitwise_or(x, 0.0))
    x = [-1.0, 2.0**32, 2.0**32 + 5.7, -0.5, np.nan, np.inf, 2.0**60 + 2.0**20]
    right = [2.0**32 - 1, 0.0, 5.0, 2.0**32 - 1, 0.0, 0.0, 2.0**20]
    np.testing.assert_array_equal(evaluate(f.program(None), x)[0], right)
    np.testing.assert_array_equal(words.word(x), right)


def test_philox_can_be_written_with_words_in_a_loop():
    """Salmon et al. (2011)."""

    def philox(model, x):
        def one_round(carry, _):
            c0, c1, c2, c3, k0, k1 = carry
            high = [words.multiply_high(c, m) for c, m in ((c0, 0xD2511F53), (c2, 0xCD9E8D57))]
            low = [words.multiply(c, m) for c, m in ((c0, 0xD2511F53), (c2, 0xCD9E8D57))]
            c0, c2 = (
                words.bitwise_xor(words.bitwise_xor(high[1], c1), k0),
                words.bitwise_xor(words.bitwise_xor(high[0], c3), k1),
            )
            return (c0, low[1], c2, low[0], words.add(k0, 0x9E3779B9), words.add(k1, 0xBB67AE85)), None

        return dnp.stack(scan(one_round, tuple(x), length=10)[0][:4])

    known = [float(int(word, 16)) for word in PUBLISHED.split()]
    np.testing.assert_array_equal(dl.kernel("(6)->(4)")(philox)(None, known[:6]), known[6:])


def test_derivatives_of_words_are_zero():
    assert grad(lambda x: x + words.bitwise_xor(x, 5.0))(3.0) == 1.0


def test_single_precision_and_long_shifts_are_refused():
    with pytest.raises(DelassusError, match="float32 represents 24"):
        KERNEL(None, 1.0, 2.0, dtype=np.float32)
    with pytest.raises(DelassusError, match="0 to 31"):
        words.shift_left(1.0, 32)
