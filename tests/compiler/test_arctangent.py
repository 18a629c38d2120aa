"""arctan and arctan2: against arbitrary precision, where floats are special, and in compiled code."""

import math
import sys

import mpmath
import numpy
import pytest

import delassus as dl
import delassus.numpy as np
from delassus.compiler.backends.interpreter import evaluate
from delassus.compiler.backends.target import Target
from delassus.compiler.graph.program import Operand
from delassus.compiler.tracing.record import record
from native_bits import FULL

FMA = pytest.mark.parametrize("fma", [True, False], ids=["fused", "unfused"])
INF, NAN, PI = math.inf, math.nan, math.pi
TINY, HUGE = sys.float_info.min, sys.float_info.max

ALLOWED_ULPS = 1.6
"""The largest error seen in two million arguments, with and without fused operations, is 1.46 ulp."""


def run(function, *arrays, fma=True):
    """A function of scalars for every element of some arrays."""
    inputs = tuple(Operand(f"x{k}", ()) for k in range(len(arrays)))
    (result,) = evaluate(record("scalars", function, inputs, (Operand("y", ()),)), *arrays, fma=fma)
    return result


def assert_accurate(computed, function, *arguments):
    """Every result is near the exact one, in units of the spacing of floats there."""
    with mpmath.workprec(120):
        exact = [function(*map(mpmath.mpf, a)) for a in zip(*[x.tolist() for x in arguments], strict=True)]
        units = numpy.spacing(numpy.abs(numpy.array(exact, float))).tolist()
        errors = [float(abs(c - e) / u) for c, e, u in zip(computed.tolist(), exact, units, strict=True)]
    worst = numpy.argmax(errors)
    assert errors[worst] <= ALLOWED_ULPS, f"{errors[worst]:.2f} ulp at {[x[worst] for x in arguments]}"


def random(low, high, count=2000):
    return numpy.random.default_rng(count + int(1000 * abs(low))).uniform(low, high, count)


def signs(count=2000, seed=0):
    return numpy.random.default_rng(seed).choice([-1.0, 1.0], count)


def of_ratio(low, high):
    """Points whose smaller coordinate is low … high of the larger one, in all octants."""
    larger, ratio = random(1.0, 2.0), random(low, high)
    pair = numpy.stack([signs(seed=1) * larger, signs(seed=2) * larger * ratio])
    return numpy.where(signs(seed=3) > 0, pair, pair[::-1])


def of_size(low, high):
    """Points whose coordinates are between two magnitudes, each for itself."""
    return numpy.stack([signs(seed=4) * 2.0 ** random(low, high), signs(seed=5) * 2.0 ** random(-high, -low)[::-1]])


POINTS = {
    "circle": lambda: numpy.stack([numpy.sin(random(-PI, PI)), numpy.cos(random(-PI, PI))]),
    "where the reduction begins": lambda: of_ratio(0.37, 0.38),
    "just below a quarter of a radian": lambda: of_ratio(0.25, 0.2554),
    "near the diagonals": lambda: of_ratio(0.98, 1.0),
    "on the diagonals": lambda: of_ratio(1.0, 1.0),
    "near half": lambda: of_ratio(0.4999, 0.5001),
    "near the axes": lambda: of_ratio(0.0, 1e-9),
    "of any ratio": lambda: of_size(-500.0, 500.0),
    "huge": lambda: of_ratio(0.3, 1.0) * (HUGE / 2),
    "small": lambda: of_ratio(0.3, 1.0) * (TINY / 0.3),
    "halves of the smallest number": lambda: TINY * numpy.array([[1.0, 2.0, -2.0, 3.0], [2.0, 1.0, 4.0, -2.0]]),
    "next to each other": lambda: numpy.stack([x := random(1.0, 2.0) * 2.0 ** random(-1000, 1000).round(), x * 1.5]),
}


@FMA
@pytest.mark.parametrize("points", POINTS.values(), ids=POINTS)
def test_the_angle_of_a_point_is_within_two_ulp(points, fma):
    y, x = points()
    assert_accurate(run(np.arctan2, y, x, fma=fma), mpmath.atan2, y, x)


ARGUMENTS = {
    "flat": lambda: random(-1.0, 1.0),
    "steep": lambda: signs() / random(0.01, 1.0),
    "of any size": lambda: signs() * 2.0 ** random(-1021.0, 1023.0),
    "where the reduction begins": lambda: numpy.concatenate([random(0.37, 0.38), 1.0 / random(0.37, 0.38)]),
    "ends": lambda: numpy.array([TINY, -TINY, HUGE, -HUGE, 1.0, -1.0, 0.375, 1 / 0.375]),
}


@FMA
@pytest.mark.parametrize("arguments", ARGUMENTS.values(), ids=ARGUMENTS)
def test_arctan_is_within_two_ulp(arguments, fma):
    x = arguments()
    assert_accurate(run(np.arctan, x, fma=fma), mpmath.atan, x)


EDGES = [
    (0.0, 1.0, 0.0),
    (0.0, -1.0, PI),
    (1.0, 0.0, PI / 2),
    (-1.0, 0.0, -PI / 2),
    (0.0, 0.0, 0.0),
    (0.0, INF, 0.0),
    (0.0, -INF, PI),
    (1.0, INF, 0.0),
    (-1.0, INF, 0.0),
    (1.0, -INF, PI),
    (-1.0, -INF, -PI),
    (INF, 1.0, PI / 2),
    (-INF, 1.0, -PI / 2),
    (INF, -HUGE, PI / 2),
    (-INF, 0.0, -PI / 2),
    (INF, INF, PI / 4),
    (-INF, INF, -PI / 4),
    (INF, -INF, 3 * PI / 4),
    (-INF, -INF, -3 * PI / 4),
    (1.0, HUGE, 0.0),
    (TINY, HUGE, 0.0),
    (TINY, -HUGE, PI),
    (-TINY, -HUGE, -PI),
    (HUGE, TINY, PI / 2),
    (-HUGE, -TINY, -PI / 2),
]


@FMA
@pytest.mark.parametrize(("y", "x", "angle"), EDGES)
def test_angles_at_the_edges_are_those_of_c(y, x, angle, fma):
    assert math.atan2(y, x) == pytest.approx(angle, abs=1e-300)
    assert run(np.arctan2, y, x, fma=fma) == angle


@FMA
@pytest.mark.parametrize("zero", [0.0, -0.0, 5e-324, -5e-324])
def test_the_sign_of_a_zero_does_not_count(zero, fma):
    assert run(np.arctan2, zero, -2.0, fma=fma) == PI
    assert run(np.arctan2, zero, -INF, fma=fma) == PI
    assert run(np.arctan2, 2.0, zero, fma=fma) == PI / 2
    assert run(np.arctan2, -2.0, zero, fma=fma) == -PI / 2
    for other in (0.0, -0.0, 2.0):
        assert run(np.arctan2, zero, other, fma=fma) == 0.0


@FMA
@pytest.mark.parametrize("other", [0.0, 1.0, -1.0, HUGE, TINY, INF, -INF, NAN])
def test_nan_in_either_coordinate_gives_nan(other, fma):
    assert numpy.isnan(run(np.arctan2, NAN, other, fma=fma))
    assert numpy.isnan(run(np.arctan2, other, NAN, fma=fma))


@FMA
def test_arctan_of_special_values_is_that_of_numpy(fma):
    x = numpy.array([0.0, -0.0, INF, -INF, NAN, 5e-324])
    numpy.testing.assert_array_equal(run(np.arctan, x, fma=fma), [0.0, 0.0, PI / 2, -PI / 2, NAN, 0.0])


def test_a_constant_coordinate_is_treated_as_a_variable_one():
    x = numpy.array([0.0, 0.3, -0.3, 1.0, -5.0, 1e300, INF, -INF, NAN])
    for constant in (0.0, 1.0, -1.0, 0.5, -3.0, 1e-300, INF, -INF, NAN):
        as_variable = numpy.full_like(x, constant)
        left, right = run(lambda v, c=constant: np.arctan2(v, c), x), run(lambda v, c=constant: np.arctan2(c, v), x)
        numpy.testing.assert_array_equal(left, run(np.arctan2, x, as_variable))
        numpy.testing.assert_array_equal(right, run(np.arctan2, as_variable, x))


def test_each_call_is_one_operation_until_it_is_lowered():
    operands = Operand("y", ()), Operand("x", ())
    program = record("f", lambda y, x: np.arctan2(y, x) + np.arctan(y), operands, (Operand("z", ()),))
    assert program.count() == {"add": 1, "arctan": 1, "arctan2": 1}


@dl.kernel("(),()->(),()")
def angles(model, y, x):
    return np.arctan2(y, x), np.arctan(x)


def test_compiled_code_has_the_bits_of_the_interpreter():
    special = [0.0, -0.0, INF, -INF, NAN, TINY, -HUGE, 1.0, -0.375]
    corners = numpy.stack(numpy.meshgrid(special, special)).reshape(2, -1)
    y, x = numpy.concatenate([corners, of_size(-1000.0, 1000.0), of_ratio(0.3, 0.5)], axis=1)
    expected = evaluate(angles.program(None), y, x, fma=Target.host().fma)
    numpy.testing.assert_array_equal(angles.compiled(None, target=FULL).ufunc(y, x), expected)
