"""Random numbers: the published vectors of Philox4x32-10, the distributions, and the same bits everywhere."""

import numpy as np
import pytest
import scipy.stats

import delassus as dl
import delassus.numpy as dnp
import single_bits as single
from c_code import check as check_c
from c_code import library, needs_compiler
from delassus.compiler import grad, random, scan
from delassus.compiler.backends.interpreter import evaluate
from delassus.compiler.graph.graph import Builder
from delassus.compiler.graph.program import Operand
from native_bits import check, compile_program, every_width
from refusals import refuses

# Counter, key and result of philox4x32 with 10 rounds, from the file kat_vectors of Random123.
KNOWN = [
    "00000000 00000000 00000000 00000000 00000000 00000000 6627e8d5 e169c58d bc57ac4c 9b00dbd8",
    "ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff 408f276d 41c83b0e a20bc7c6 6d5451fd",
    "243f6a88 85a308d3 13198a2e 03707344 a4093822 299f31d0 d16cfe09 94fdcceb 5001e420 24126ea1",
]
KNOWN = np.array([[int(word, 16) for word in row.split()] for row in KNOWN], float)


def cipher():
    """A program of the cipher itself: six words in, four out."""
    g = Builder()
    words = [g.emit(("input", 0, k)) for k in range(6)]
    results = tuple(g.emit((f"philox{k}", *words)) for k in range(4))
    return g.finish((Operand("x", (6,)),), (Operand("y", (4,)),), (results,))


def test_the_interpreter_gives_the_published_words():
    np.testing.assert_array_equal(evaluate(cipher(), KNOWN[:, :6])[0], KNOWN[:, 6:])


@every_width
def test_compiled_code_gives_the_published_words(lanes):
    ufunc = compile_program(cipher(), lanes)
    np.testing.assert_array_equal(ufunc(KNOWN[:, :6]), KNOWN[:, 6:])
    np.testing.assert_array_equal(ufunc(KNOWN[2, :6]), KNOWN[2, 6:])


@needs_compiler
def test_c_gives_the_published_words(tmp_path):
    call = library(cipher(), tmp_path)
    for row in KNOWN:
        np.testing.assert_array_equal(call(row[:6])[0], row[6:])


@pytest.mark.parametrize("lanes", single.WIDTHS)
def test_words_in_float32_are_the_upper_bits(lanes):
    x = np.random.default_rng(0).integers(0, 2**24, (50, 6)).astype(np.float32)
    expected = evaluate(cipher(), x)[0].astype(np.uint64) >> np.uint64(8)
    np.testing.assert_array_equal(single.compile_program(cipher(), lanes)(x), expected.astype(np.float32))


@dl.kernel("(),(),()->(),(5),(2,3)")
def draws(model, seed, item, step):
    noise = random.normal(seed, item, step, 2.0, shape=(2, 3))
    return random.uniform(seed, item, step), random.uniform(seed, item, shape=5), noise


def counters(count, dtype=float):
    odd = [0.0, -1.0, 2.5, 1e6, 2.0**24 - 1.0, np.nan, np.inf, 2.0**40]
    return (
        np.resize([0.0, 1.0, 12345.0, *odd], count).astype(dtype),
        np.arange(count).astype(dtype),
        np.resize(odd, count).astype(dtype),
    )


@every_width
@pytest.mark.parametrize("chunk", [3, 400])
def test_compiled_code_has_the_bits_of_the_interpreter(lanes, chunk):
    check(draws, lanes, *counters(37), chunk=chunk)


@pytest.mark.parametrize("lanes", single.WIDTHS)
def test_compiled_code_in_float32_has_the_bits_of_the_interpreter(lanes):
    single.check(draws, lanes, *counters(37, np.float32))


@needs_compiler
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_c_has_the_bits_of_the_interpreter(dtype, tmp_path):
    check_c(draws, tmp_path, *counters(30, dtype), dtype=np.dtype(dtype))


def test_plain_numbers_give_what_kernels_give():
    for state in zip(*counters(30), strict=True):
        one, five, six = draws.python(None, *state)
        expected = draws(None, *state)
        np.testing.assert_array_equal(one, expected[0])
        np.testing.assert_array_equal(five, expected[1])
        np.testing.assert_allclose(six, expected[2], rtol=1e-13, atol=1e-15)


def test_the_first_number_is_made_of_the_first_two_published_words():
    high, low = int(KNOWN[0, 6]) >> 5, int(KNOWN[0, 7]) >> 6
    assert random.uniform(0) == (high * 2**26 + low) / 2**53


def test_a_large_seed_has_an_upper_half():
    values = {float(random.uniform(seed)) for seed in (1, 2**32 + 1, 2**33 + 1, 2**53 - 1)}
    assert len(values) == 4


def test_uniform_numbers_have_53_bits_and_are_uniform():
    u = draws(None, 3.0, np.arange(20_000.0), 0.0)[1].ravel()
    assert u.min() >= 0.0
    assert u.max() < 1.0
    np.testing.assert_array_equal(u * 2.0**53, np.rint(u * 2.0**53))
    assert (u * 2.0**53 % 2.0 == 1.0).mean() == pytest.approx(0.5, abs=0.01)
    assert scipy.stats.kstest(u, "uniform").pvalue > 0.01


def test_normal_numbers_are_normal():
    z = draws(None, 4.0, np.arange(20_000.0), 0.0)[2].ravel()
    assert scipy.stats.kstest(z, "norm").pvalue > 0.01
    assert scipy.stats.kurtosis(z) == pytest.approx(0.0, abs=0.05)


@pytest.mark.parametrize("moved", [0, 1, 2], ids=["seed", "item", "step"])
def test_neighbouring_counters_have_nothing_in_common(moved):
    n = np.arange(20_000.0)
    here, there = [np.full(20_000, 5.0), n, np.full(20_000, 7.0)], [np.full(20_000, 5.0), n, np.full(20_000, 7.0)]
    there[moved] = there[moved] + 1.0
    a, b = draws(None, *here)[0], draws(None, *there)[0]
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.03


def test_elements_of_an_array_have_nothing_in_common():
    five = draws(None, 5.0, np.arange(20_000.0), 0.0)[1]
    assert np.abs(np.corrcoef(five.T) - np.eye(5)).max() < 0.03


def test_float32_has_the_first_24_bits_of_float64():
    items = np.arange(1000.0)
    u64, u32 = (draws(None, 9.0, items, 1.0, dtype=dtype)[1] for dtype in (np.float64, np.float32))
    np.testing.assert_array_equal(u32, np.floor(u64 * 2.0**24) / 2.0**24)


def test_numbers_with_nothing_traced_are_drawn_in_a_kernel_as_well():
    f = dl.kernel("()->()")(lambda model, x: x + random.uniform(1, 2, 3))
    assert f(None, 0.0) == random.uniform(1, 2, 3)


def test_random_numbers_are_drawn_in_loops():
    def walk(model, seed):
        return scan(lambda c, k: (c + random.normal(seed, k), None), 0.0, dnp.array(np.arange(10.0)))[0]

    expected = sum(random.normal(6, k) for k in range(10))
    assert dl.kernel("()->()")(walk)(None, 6.0) == pytest.approx(expected, rel=1e-12)


def test_random_numbers_have_the_derivative_zero():
    assert grad(lambda x: random.normal(x, 1.0) * 2.0 + x)(3.0) == 1.0


def test_there_are_three_counters():
    with refuses("out-of-range"):
        random.uniform(0, 1, 2, 3, 4)


def test_a_counter_is_one_number():
    with refuses("wrong-shape", "(3,)"):
        random.normal(0, 1, np.ones(3))
