"""Integers: rounding, remainders and whole quotients have NumPy's values, and the same bits everywhere."""

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import delassus as dl
import delassus.numpy as dnp
import single_bits as single
from c_code import check as check_c
from c_code import needs_compiler, normal_numbers
from delassus.compiler import grad, jvp
from delassus.compiler.backends.interpreter import evaluate
from delassus.compiler.backends.schedule import CHUNK
from delassus.compiler.functions.lower import lower
from how_many import examples
from native_bits import HOST, WIDTHS, assert_same_bits, check, every_width, numbers
from programs import programs

BORDER = {np.float64: 2.0**53, np.float32: 2.0**24}
EDGES = [0.0, 0.5, 1.0, 1.5, 2.5, 3.0, 2.0**23, 2.0**24 - 1.0, 2.0**51 + 0.5, 2.0**52 - 0.5, 2.0**52 + 1.0, 2.0**53]
EDGES += [1e-300, 1e300, 0.49999999999999994, np.inf, np.nan]
EDGES = np.array([*EDGES, *(-x for x in EDGES)])


@dl.kernel("(),()->(4),(2)")
def whole(model, a, b):
    return dnp.stack([dnp.floor(a), dnp.ceil(a), dnp.rint(a), dnp.trunc(a)]), dnp.stack([a % b, a // b])


def by_numpy(a, b):
    with np.errstate(all="ignore"):
        rounded = np.stack([np.floor(a), np.ceil(a), np.rint(a), np.trunc(a)], -1)
        return rounded, np.stack([np.remainder(a, b), np.floor_divide(a, b)], -1)


def pairs(dtype=float):
    """All pairs of edges, and numbers of all sizes with quotients of all sizes."""
    rng = np.random.default_rng(0)
    corners = np.stack(np.meshgrid(EDGES, EDGES)).reshape(2, -1)
    limit, most = (900, 60) if dtype is float else (100, 30)
    b = rng.choice([-1.0, 1.0], 4000) * 2.0 ** rng.uniform(-limit, limit, 4000)
    a = b * rng.choice([-1.0, 1.0], 4000) * 2.0 ** rng.uniform(-2, most, 4000)
    near = b[:2000] * np.rint(2.0 ** rng.uniform(0, 40, 2000))  # the quotient is rounded to an integer
    with np.errstate(over="ignore"):
        return np.concatenate([corners, [a, b], [near, b[:2000]]], axis=1).astype(dtype)


@pytest.mark.parametrize("fma", [True, False], ids=["fused", "unfused"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rounding_and_remainders_are_those_of_numpy(dtype, fma):
    a, b = pairs(dtype)
    rounded, divided = by_numpy(a, b)
    got, (rest, quotient) = (np.moveaxis(x, -1, 0) for x in evaluate(whole.program(None), a, b, fma=fma, dtype=dtype))
    np.testing.assert_array_equal(got, rounded.T)
    with np.errstate(all="ignore"):
        near = ~(np.abs(a / b) >= BORDER[dtype]) | ~np.isfinite(a) | (b == 0.0)
        small = ~(np.abs(a / b) >= BORDER[dtype] / 2**9)  # beyond, NumPy's own quotient is rounded
    expected = np.where(np.abs(divided[:, 0]) < np.finfo(dtype).tiny, 0.0, divided[:, 0])
    np.testing.assert_array_equal(rest[near], expected[near])
    np.testing.assert_array_equal(quotient[small], divided[small, 1])


FINITE = st.floats(-1e140, 1e140, allow_subnormal=False).filter(lambda x: abs(x) > 1e-140)


@settings(max_examples=examples(500))
@example(4503599627370497.0, 1.5)
@example(-1e-20, 1.0)
@given(FINITE, FINITE)
def test_quotients_and_remainders_are_exact(a, b):
    """q is ⌊a/b⌋, and r is a - q b, rounded once where the signs differ."""
    exact = Fraction(a) / Fraction(b)
    rest, quotient = evaluate(whole.program(None), a, b)[1].tolist()
    if abs(exact) < 2**53 - 1:
        assert quotient == math.floor(exact)
        assert rest == float(Fraction(a) - math.floor(exact) * Fraction(b))
    else:
        assert rest == 0.0
        assert quotient == a / b


def test_whole_numbers_are_divided_as_whole_numbers():
    rng = np.random.default_rng(1)
    a, b = rng.integers(-(2**50), 2**50, 3000), rng.integers(1, 2**20, 3000) * rng.choice([-1, 1], 3000)
    rest, quotient = np.moveaxis(whole(None, a, b)[1], -1, 0)
    np.testing.assert_array_equal(quotient, a // b)
    np.testing.assert_array_equal(rest, a % b)


@every_width
def test_compiled_code_has_the_bits_of_the_interpreter(lanes):
    check(whole, lanes, *pairs())


@pytest.mark.parametrize("lanes", single.WIDTHS)
def test_compiled_code_in_float32_has_the_bits_of_the_interpreter(lanes):
    single.check(whole, lanes, *pairs(np.float32))


@pytest.mark.skipif(not HOST.is_x86, reason="every 64-bit ARM has instructions for it")
@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_machine_without_instructions_for_it_has_the_same_bits(lanes, dtype):
    lacking = (
        "+sse4.1",
        "+sse4.2",
        "+avx",
        "+fma",
        "+f16c",
        "+xop",
        "+vaes",
        "+vpcl",
        "+gfni",
        "+amx",
        "+sha512",
        "+sm",
    )
    features = [f for f in HOST.features.split(",") if f.startswith("-") or not f.startswith(lacking)]
    old = replace(HOST, features=",".join([*features, "-sse4.1"])).with_dtype(dtype)
    old = old.with_lanes(1 if lanes == 1 else 16 // np.dtype(dtype).itemsize)
    assert not old.rounds
    a, b = pairs(dtype)
    got, expected = (
        whole.compiled(None, target=old).ufunc(a, b),
        evaluate(whole.program(None), a, b, fma=False, dtype=dtype),
    )
    same = assert_same_bits if dtype is np.float64 else single.assert_same_bits
    for g, e in zip(got, expected, strict=True):
        same(g, e)


@needs_compiler
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_c_has_the_bits_of_the_interpreter(dtype, tmp_path):
    a, b = pairs(dtype)
    some = np.random.default_rng(2).choice(a.size, 800, replace=False)
    check_c(whole, tmp_path, a[some], b[some], dtype=np.dtype(dtype))


@settings(max_examples=examples(40))
@given(
    program=programs(whole=True),
    lanes=st.sampled_from(WIDTHS),
    chunk=st.sampled_from([1, 3, CHUNK]),
    seed=st.integers(0, 99),
)
def test_random_programs_have_the_bits_of_the_interpreter(program, lanes, chunk, seed):
    f = dl.kernel(f"({program.inputs})->({program.outputs})")(lambda model, x: program.function(x))
    check(f, lanes, numbers(19, program.inputs, seed=seed), chunk=chunk)


@needs_compiler
@settings(max_examples=8)
@given(program=programs(whole=True), seed=st.integers(0, 99), dtype=st.sampled_from([np.float64, np.float32]))
def test_random_programs_in_c_have_the_bits_of_the_interpreter(program, seed, dtype):
    f = dl.kernel(f"({program.inputs})->({program.outputs})")(lambda model, x: program.function(x))
    x = normal_numbers(10, program.inputs, seed=seed).astype(dtype)
    with TemporaryDirectory() as folder:
        check_c(f, Path(folder), x, optimize="-O0", dtype=dtype)


def test_rounding_twice_is_rounding_once():
    program = dl.kernel("()->()")(lambda model, x: dnp.rint(dnp.floor(dnp.trunc(x)))).program(None)
    assert program.count() == {"trunc": 1}


def test_constants_are_rounded_once_and_for_all():
    program = dl.kernel("()->()")(lambda model, x: x + dnp.floor(dnp.array(-2.5)) + dnp.ceil(dnp.array(1.5))).program(
        None
    )
    assert lower(program, True).count() == {"add": 2}


def test_whole_numbers_have_the_derivative_zero():
    assert grad(lambda x: dnp.floor(x) + dnp.ceil(x) * dnp.rint(x) + dnp.trunc(x) + x // 0.3)(1.7) == 0.0


def test_a_remainder_moves_with_the_dividend_and_against_the_divisor():
    value, tangent = jvp(lambda a, b: a % b, (-7.3, 2.0), (1.0, 10.0))
    assert value == pytest.approx(0.7)
    assert tangent == pytest.approx(1.0 + 4 * 10.0)


def test_interpolation_has_the_slope_of_its_piece():
    slope = grad(lambda x: dnp.interp(x, [0.0, 1.0, 3.0], [0.0, 2.0, 1.0]))
    assert [float(slope(x)) for x in (-1.0, 0.5, 2.0, 4.0)] == [0.0, 2.0, -0.5, 0.0]


@every_width
def test_interpolation_has_the_bits_of_the_interpreter(lanes):
    rng = np.random.default_rng(3)
    xp, fp = np.sort(rng.normal(size=9)), rng.normal(size=9)

    @dl.kernel("(),(9),(9)->(),(),()")
    def f(model, x, places, heights):
        return dnp.interp(x, xp, fp), dnp.interp(x, places, heights), dnp.interp(x, xp, heights, left=1.0)

    check(f, lanes, numbers(200), np.sort(numbers(200, 9, seed=1)), numbers(200, 9, seed=2))


@every_width
def test_interpolation_in_long_tables_has_the_bits_of_the_interpreter(lanes):
    rng = np.random.default_rng(3)
    xp, fp = np.sort(rng.normal(size=100)), rng.normal(size=100)

    @dl.kernel("(),(40),(40)->(),(),()")
    def f(model, x, places, heights):
        return dnp.interp(x, xp, fp), dnp.interp(x, places, heights), dnp.interp(x, xp[:40], heights, left=1.0)

    places, x = np.sort(rng.normal(size=(60, 40))), rng.normal(size=60)
    x[:30] = places[:30, 7]  # at knots
    check(f, lanes, x, places, numbers(60, 40, seed=2))
    np.testing.assert_allclose(f(None, x, places, places)[1], np.clip(x, places[:, 0], places[:, -1]), rtol=1e-13)


def test_interpolation_takes_two_rows_of_equal_length():
    with pytest.raises(ValueError, match=r"two rows of equal length, at least 1; got shapes \(2,\) and \(3,\)"):
        dl.kernel("()->()")(lambda model, x: dnp.interp(x, [0.0, 1.0], [1.0, 2.0, 3.0])).program(None)


def test_interpolation_refuses_a_period():
    with pytest.raises(TypeError, match="x % period"):
        dl.kernel("()->()")(lambda model, x: dnp.interp(x, [0.0, 1.0], [1.0, 2.0], period=1.0)).program(None)
