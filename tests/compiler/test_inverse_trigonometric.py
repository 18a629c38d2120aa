"""tan, arcsin and arccos: against arbitrary precision, where floats are special, and in compiled code."""

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

FMA = pytest.mark.parametrize("fma", [True, False], ids=["fused", "unfused"])
HOST = Target.host().with_opt(0)
INF, NAN, PI = math.inf, math.nan, math.pi
TINY, HUGE = sys.float_info.min, sys.float_info.max

ALLOWED_ULPS = {"tan": 1.7, "arcsin": 1.2, "arccos": 1.2}
"""The largest errors seen in three million arguments each, fused and unfused: 1.63, 1.09 and 1.10 ulp."""


def run(function, x, fma=True):
    """A function of a scalar for every element of an array."""
    (result,) = evaluate(record("scalar", function, (Operand("x", ()),), (Operand("y", ()),)), x, fma=fma)
    return result


def random(low, high, count=1500):
    return numpy.random.default_rng(count + int(1000 * abs(low))).uniform(low, high, count)


def signs(count=1500):
    return numpy.random.default_rng(0).choice([-1.0, 1.0], count)


def odd_multiples(of):
    return of * (2.0 * numpy.arange(1500) + 1.0)


SINES = {
    "everywhere": lambda: random(-1.0, 1.0),
    "where the root begins": lambda: signs() * random(0.49, 0.6),
    "near the ends": lambda: signs() * (1.0 - 2.0 ** random(-53.0, -2.0)),
    "of any size": lambda: signs() * 2.0 ** random(-1022.0, 0.0),
    "next to a half": lambda: 0.5 + numpy.arange(-20, 20) * 2.0**-53,
    "ends": lambda: numpy.array([1.0, -1.0, 0.5, -0.5, TINY, -TINY, 1.0 - 2.0**-53, 2.0**-53 - 1.0]),
}
ANGLES = {
    "first octant": lambda: random(-PI / 4, PI / 4),
    "some turns": lambda: random(-20.0, 20.0),
    "up to 1e6": lambda: random(-1e6, 1e6),
    "of any size": lambda: signs() * 2.0 ** random(-1022.0, 19.0),
    "borders of octants": lambda: odd_multiples(PI / 4),
    "near borders of octants": lambda: odd_multiples(PI / 4) + signs() * 2.0 ** random(-40.0, -3.0),
    "poles": lambda: odd_multiples(PI / 2),
    "zeros": lambda: 2.0 * odd_multiples(PI / 2),
    "just below one": lambda: random(0.72, PI / 4),
}
CASES = [
    *((np.tan, mpmath.tan, ANGLES[name], f"tan, {name}") for name in ANGLES),
    *((np.arcsin, mpmath.asin, SINES[name], f"arcsin, {name}") for name in SINES),
    *((np.arccos, mpmath.acos, SINES[name], f"arccos, {name}") for name in SINES),
]


@FMA
@pytest.mark.parametrize(("function", "exact", "arguments"), [c[:3] for c in CASES], ids=[c[3] for c in CASES])
def test_results_are_within_two_ulp(function, exact, arguments, fma):
    x = arguments()
    computed = run(function, x, fma)
    with mpmath.workprec(160):
        right = [exact(mpmath.mpf(v)) for v in x.tolist()]
        units = numpy.spacing(numpy.abs(numpy.array(right, float))).tolist()
        errors = [float(abs(c - r) / u) for c, r, u in zip(computed.tolist(), right, units, strict=True)]
    worst = numpy.argmax(errors)
    assert errors[worst] <= ALLOWED_ULPS[function.__name__], f"{errors[worst]:.2f} ulp at {x[worst]!r}"


@FMA
def test_special_values_give_those_of_c(fma):
    x = numpy.array([0.0, -0.0, 5e-324, 1.0, -1.0, 1.0 + 2.0**-52, -1.5, HUGE, INF, -INF, NAN])
    numpy.testing.assert_array_equal(run(np.arcsin, x, fma), [0.0, 0.0, 0.0, PI / 2, -PI / 2, *[NAN] * 6])
    numpy.testing.assert_array_equal(run(np.arccos, x, fma), [*[PI / 2] * 3, 0.0, PI, *[NAN] * 6])
    x = numpy.array([0.0, -0.0, 5e-324, 2.0**50, -HUGE, INF, -INF, NAN])
    numpy.testing.assert_array_equal(run(np.tan, x, fma), [*[0.0] * 5, NAN, NAN, NAN])


@pytest.mark.parametrize("function", [np.tan, np.arcsin, np.arccos], ids=lambda f: f.__name__)
def test_a_constant_is_treated_as_a_variable(function):
    for x in (0.0, 1.0, -1.0, 0.3, -0.8, 2.5, INF, NAN):
        constant = run(lambda _, x=x: function(np.full((), x)), 0.0)
        numpy.testing.assert_array_equal(constant, run(function, x))


@dl.kernel("()->(),(),()")
def functions(model, x):
    return np.tan(x), np.arcsin(x), np.arccos(x)


@pytest.mark.parametrize("lanes", (1, *HOST.widths))
def test_compiled_code_has_the_bits_of_the_interpreter(lanes):
    special = [0.0, -0.0, INF, -INF, NAN, TINY, -TINY, HUGE, 1.0, -1.0, 0.5, -0.5, 5e-324]
    x = numpy.concatenate([special, random(-1.2, 1.2), random(-50.0, 50.0), odd_multiples(PI / 4)])
    expected = evaluate(functions.program(None), x, fma=HOST.fma)
    numpy.testing.assert_array_equal(functions.compiled(None, target=HOST.with_lanes(lanes)).ufunc(x), expected)
