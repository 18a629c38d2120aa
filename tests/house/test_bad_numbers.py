"""NaN, infinities and subnormals stay in their own state, warn of nothing and leave the caller's CPU modes alone."""

import ctypes
import ctypes.util
import platform
import sys
import threading

import numpy as np
import pytest

import delassus as dl
import delassus.numpy as dnp
from delassus.compiler.backends.target import Target
from delassus.model.generators import chain

BATCH = 19
TREE = chain(2)
TARGET = Target.host().with_opt(0)
WIDTHS = (1, *TARGET.widths)
BAD = [np.nan, np.inf, -np.inf, 5e-324, -1e-310, 1e308]
TINY = 5e-324


@dl.kernel("(3)->(3),()")
def rough(model, x):
    """Everything that raises a floating-point flag on some number."""
    return dnp.stack([1.0 / x[0], dnp.sqrt(x[1]), x[2] * x[2] * 1e200]), dnp.sum(x / x[::-1])


@dl.kernel("()->(6)")
def of_tiny(model, x):
    return dnp.stack([x + 1e-320, x * 1e300, 1.0 / x, dnp.sqrt(x), dnp.where(x > 0.0, 1.0, 0.0), 1e-200 * 1e-200 * x])


ROUGH = {w: rough.compiled(None, target=TARGET.with_lanes(w)).ufunc for w in WIDTHS}
OF_TINY = {w: of_tiny.compiled(None, target=TARGET.with_lanes(w)).ufunc for w in WIDTHS}
ABA = {w: dl.aba.compiled(TREE, target=TARGET.with_lanes(w)).ufunc for w in WIDTHS}

every_width = pytest.mark.parametrize("lanes", WIDTHS)


def good(*shape):
    return np.random.default_rng(0).normal(size=shape)


def mess():
    """States of which every one raises a flag: divisions by zero, roots of negative numbers, overflows, NaN."""
    return np.array([[0.0, -1.0, 1e300], [np.inf, -np.inf, np.nan], [5e-324, 0.0, -1e308]] * 7)


@every_width
@pytest.mark.parametrize("number", BAD)
def test_a_bad_number_leaves_the_other_states_alone(lanes, number):
    x = good(3, BATCH, TREE.nv)
    expected = ABA[lanes](*x)
    for position in range(BATCH):
        for k in range(3):
            bad = x.copy()
            bad[k, position, 1] = number
            result = ABA[lanes](*bad)
            others = np.arange(BATCH) != position
            np.testing.assert_array_equal(result[others].view(np.int64), expected[others].view(np.int64))


@every_width
@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_bad_number_spoils_its_own_state(lanes, number):
    x = good(3, BATCH, TREE.nv)
    x[0, 7, 1] = number
    assert np.isnan(ABA[lanes](*x)[7]).any()


@every_width
@pytest.mark.parametrize("size", [1, 2, 3, 9, 17, 21])
def test_bad_numbers_do_not_warn(lanes, size):
    ROUGH[lanes](mess()[:size])


@every_width
@pytest.mark.parametrize("size", [1, 2, 3, 9, 17, 21])
def test_bad_numbers_do_not_raise_where_numpy_would(lanes, size):
    with np.errstate(all="raise"):
        ROUGH[lanes](mess()[:size])


def test_bad_numbers_do_not_raise_on_threads():
    x = np.tile(mess(), (20_000, 1))
    with np.errstate(all="raise"):
        rough(None, x)


@every_width
@pytest.mark.parametrize("batch", [(), (BATCH,)])
def test_division_by_zero_gives_infinity(lanes, batch):
    x = np.zeros((*batch, 3))
    np.testing.assert_array_equal(ROUGH[lanes](x)[0][..., 0], np.full(batch, np.inf))


@every_width
@pytest.mark.parametrize("batch", [(), (BATCH,)])
def test_subnormal_inputs_count_as_zero(lanes, batch):
    for number in (TINY, -TINY, np.nextafter(sys.float_info.min, 0.0), -1e-310):
        result = OF_TINY[lanes](np.full(batch, number))
        np.testing.assert_array_equal(result, OF_TINY[lanes](np.full(batch, np.copysign(0.0, number))))


@every_width
@pytest.mark.parametrize("batch", [(), (BATCH,)])
@pytest.mark.parametrize("size", [1, 3, 4, 9, 17])
def test_subnormal_inputs_do_not_pass_to_outputs(lanes, batch, size):
    opposite = dl.kernel(f"({size})->({size})")(lambda model, x: -x)
    ufunc = opposite.compiled(None, target=TARGET.with_lanes(lanes)).ufunc
    x = np.full((*batch, 2 * size), TINY)
    for view in (x[..., :size], x[..., ::2]):
        assert np.all(ufunc(view) == 0.0)


@every_width
@pytest.mark.parametrize("batch", [(), (BATCH,)])
def test_subnormal_results_are_zero(lanes, batch):
    x = np.full((*batch, 3), sys.float_info.min)
    half = dl.kernel("(3)->(3)")(lambda model, x: x * 0.5).compiled(None, target=TARGET.with_lanes(lanes)).ufunc
    np.testing.assert_array_equal(half(x), np.zeros_like(x))


@pytest.mark.parametrize("size", [1, BATCH])
def test_subnormal_arithmetic_of_numpy_works_after_a_call(size):
    ROUGH[max(WIDTHS)](mess()[:size])
    assert np.array([TINY]) + np.array([0.0]) == TINY


@pytest.mark.parametrize("size", [1, BATCH])
def test_subnormal_arithmetic_of_numpy_works_after_a_bound_call(size):
    rough.bind(None, mess()[:size], np.empty((size, 3)), np.empty(size))()
    assert np.array([TINY]) + np.array([0.0]) == TINY


# The C library's view of the modes of the CPU: <fenv.h> counts rounding modes and flags differently on each machine.
X86 = platform.machine().lower() in ("x86_64", "amd64")
TO_NEAREST, UPWARD = (0, 0x800) if X86 else (0, 0x400000)
ALL_FLAGS = 0x3D if X86 else 0x1F
c_math = pytest.mark.skipif(sys.platform == "win32", reason="needs <fenv.h> of a Unix C library")


@pytest.fixture
def fenv():
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    library.feclearexcept(ALL_FLAGS)
    yield library
    library.fesetround(TO_NEAREST)
    library.feclearexcept(ALL_FLAGS)


@c_math
@pytest.mark.parametrize("size", [1, BATCH])
def test_flags_are_as_before_the_call(size, fenv):
    call = rough.bind(None, mess()[:size], np.empty((size, 3)), np.empty(size))
    fenv.feclearexcept(ALL_FLAGS)
    call()
    assert fenv.fetestexcept(ALL_FLAGS) == 0


@c_math
@pytest.mark.parametrize("size", [1, BATCH])
def test_flags_raised_before_the_call_stay_raised(size, fenv):
    call = rough.bind(None, good(size, 3), np.empty((size, 3)), np.empty(size))
    fenv.feraiseexcept(ALL_FLAGS)
    call()
    assert fenv.fetestexcept(ALL_FLAGS) == ALL_FLAGS


@c_math
@pytest.mark.parametrize("size", [1, BATCH])
def test_the_rounding_mode_is_as_before_the_call(size, fenv):
    call = rough.bind(None, good(size, 3), np.empty((size, 3)), np.empty(size))
    fenv.fesetround(UPWARD)
    call()
    assert fenv.fegetround() == UPWARD


@c_math
@pytest.mark.parametrize("size", [1, BATCH])
def test_the_callers_rounding_mode_does_not_change_results(size, fenv):
    x, y, s = good(size, 3), np.empty((size, 3)), np.empty(size)
    call = rough.bind(None, x, y, s)
    call()
    expected = y.copy()
    y[...] = 0.0
    fenv.fesetround(UPWARD)
    call()
    fenv.fesetround(TO_NEAREST)
    np.testing.assert_array_equal(y, expected)


def test_subnormal_arithmetic_of_numpy_works_in_a_thread_after_a_call():
    found = []

    def work():
        ROUGH[max(WIDTHS)](mess())
        found.append(np.array([TINY]) + np.array([0.0]))

    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    assert found == [TINY]


def test_signs_of_infinity_and_nan_follow_ieee():
    x = np.array([[-0.0, 4.0, 1e200], [0.0, -1.0, -1e200], [-np.inf, np.nan, 0.0]])
    with np.errstate(all="ignore"):
        expected = np.stack([1.0 / x[:, 0], np.sqrt(x[:, 1]), x[:, 2] ** 2 * 1e200], -1)
    np.testing.assert_array_equal(ROUGH[max(WIDTHS)](x)[0], expected)
    np.testing.assert_array_equal([ROUGH[1](row)[0] for row in x], expected)
