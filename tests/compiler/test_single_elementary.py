"""Elementary functions in float32: against float64, which has twice the digits, and where floats are special."""

import math
from dataclasses import replace

import numpy
import pytest

import delassus as dl
import delassus.numpy as np
from delassus.compiler.backends.interpreter import evaluate
from delassus.compiler.backends.target import Target
from delassus.compiler.graph.program import Operand
from delassus.compiler.tracing.record import record

FMA = pytest.mark.parametrize("fma", [True, False], ids=["fused", "unfused"])
HOST = Target.host().with_dtype(numpy.float32).with_opt(0)
INF, NAN, PI = math.inf, math.nan, math.pi
TINY, HUGE = float(numpy.finfo(numpy.float32).tiny), float(numpy.finfo(numpy.float32).max)
COUNT = 100_000

ALLOWED_ULPS = {
    "sin": 1.6,
    "cos": 1.6,
    "tan": 1.8,
    "arcsin": 1.2,
    "arccos": 1.2,
    "arctan": 1.3,
    "arctan2": 1.6,
    "exp": 0.75,
    "expm1": 1.3,
    "log": 0.9,
    "log1p": 0.9,
    "sinh": 1.7,
    "cosh": 1.2,
    "tanh": 1.5,
    "hypot": 1.2,
    "power": 0.8,
}
"""The largest errors on every float of the ranges below (unary), or in a million pairs, with and without fused
operations: 1.54, 1.54, 1.75, 1.18, 1.14, 1.17, 1.40, 0.72, 1.23, 0.81, 0.83, 1.59, 1.19, 1.35, 1.17 and 0.72 ulp."""


def singles(x):
    return numpy.asarray(x).astype(numpy.float32)


def every(low, high, count=COUNT):
    """Floats between two positive ones at equal distances in their enumeration, so of every size."""
    first, last = (int(numpy.float32(end).view(numpy.int32)) for end in (low, high))
    return numpy.linspace(first, last, count).astype(numpy.int32).view(numpy.float32)


def uniform(low, high, seed=0):
    return singles(numpy.random.default_rng(seed).uniform(low, high, COUNT))


def both_signs(x):
    return numpy.concatenate([x, -x])


def shuffled(x, seed=0):
    return numpy.random.default_rng(seed).permutation(x)


def near_multiples_of_half_pi():
    """Floats next to multiples of π/2 up to 1e4, where the remainder has the fewest correct bits."""
    nearest = singles(numpy.arange(1, 6367) * (PI / 2))
    return numpy.concatenate([numpy.nextafter(nearest, singles(end)) for end in (0.0, INF)] + [nearest])


def up_to(power, x):
    """Exponents that take x to a power of two of some size."""
    logarithms = numpy.log2(x.astype(float))
    return singles(uniform(-power, power, 1) / numpy.where(logarithms == 0.0, 1.0, logarithms))


ANGLES = [
    lambda: (both_signs(every(TINY, 1e4)),),
    lambda: (both_signs(uniform(0.0, 1e4)),),
    lambda: (both_signs(uniform(0.0, 7.0)),),
    lambda: (both_signs(near_multiples_of_half_pi()),),
]
SINES = [lambda: (both_signs(every(TINY, 1.0)),), lambda: (uniform(-1.0, 1.0),), lambda: (1 - every(2.0**-24, 0.5),)]
POINTS = [
    lambda: (uniform(-1.0, 1.0), uniform(-1.0, 1.0, 1)),
    lambda: (shuffled(every(TINY, 3e38)), every(TINY, 3e38)),
    lambda: (-shuffled(every(TINY, HUGE)), every(TINY, HUGE)),
    lambda: (every(2 * TINY, 3e38), -every(2 * TINY, 3e38) * uniform(0.5, 1.0)),
    lambda: (every(2.0**58, 2.0**62), shuffled(every(2.0**58, 2.0**62))),
    lambda: (every(2.0**-42, 2.0**-38), shuffled(every(2.0**-42, 2.0**-38))),
]
ARGUMENTS = {
    "sin": ANGLES,
    "cos": ANGLES,
    "tan": ANGLES,
    "arcsin": SINES,
    "arccos": [*SINES, lambda: (every(2.0**-24, 0.5) - 1,)],
    "arctan": [lambda: (both_signs(every(TINY, HUGE)),), lambda: (uniform(-3.0, 3.0),)],
    "arctan2": POINTS,
    "exp": [lambda: (uniform(-87.3, 88.7),), lambda: (both_signs(every(TINY, 87.0)),)],
    "expm1": [lambda: (uniform(-30.0, 88.7),), lambda: (uniform(-2.0, 2.0),), lambda: (both_signs(every(TINY, 88.0)),)],
    "log": [lambda: (every(TINY, HUGE),), lambda: (uniform(0.5, 2.0),), lambda: (1 + every(2.0**-23, 0.3),)],
    "log1p": [lambda: (every(TINY, HUGE),), lambda: (-every(TINY, 0.9999999),), lambda: (uniform(-0.999, 3.0),)],
    "sinh": [lambda: (both_signs(every(TINY, 89.4)),), lambda: (uniform(-3.0, 3.0),), lambda: (uniform(-89.0, 89.0),)],
    "cosh": [lambda: (both_signs(every(TINY, 89.4)),), lambda: (uniform(-3.0, 3.0),), lambda: (uniform(-89.0, 89.0),)],
    "tanh": [lambda: (both_signs(every(TINY, 12.0)),), lambda: (uniform(-1.0, 1.0),)],
    "hypot": POINTS,
    "power": [
        lambda: (uniform(0.0, 10.0), uniform(-10.0, 10.0, 1)),
        lambda: (x := every(TINY, HUGE), up_to(126.0, x)),
        lambda: (x := 1 + every(2.0**-23, 0.5), up_to(126.0, x)),
        lambda: (x := 1 - every(2.0**-24, 0.5), up_to(126.0, x)),
        lambda: (-uniform(0.0, 10.0), uniform(-30.0, 30.0, 1).round()),
        lambda: (every(TINY, HUGE), both_signs(every(TINY, 0.1, COUNT // 2))),
    ],
}


def compiled(name, fma):
    """The function as a ufunc of float32, on this machine or on one without fused multiply-add."""
    target = HOST
    if not fma:
        features = ["-fma" if feature == "+fma" else feature for feature in HOST.features.split(",")]
        target = replace(HOST, features=",".join(features))
    signature = "(),()->()" if name in ("arctan2", "hypot", "power") else "()->()"
    function = (
        (lambda model, x, y: getattr(np, name)(x, y)) if "," in signature else lambda model, x: getattr(np, name)(x)
    )
    return dl.kernel(signature)(function).compiled(None, target=target).ufunc


@pytest.mark.parametrize("name", ARGUMENTS)
@FMA
def test_results_are_within_two_ulp(name, fma):
    if fma != HOST.fma and not (HOST.is_x86 and HOST.fma):
        pytest.skip("the processor has no choice: a 64-bit ARM always fuses, an x86 without the instruction never")
    ufunc = compiled(name, fma)
    for number, arguments in enumerate(ARGUMENTS[name]):
        x = arguments()
        with numpy.errstate(all="ignore"):
            right = getattr(numpy, name)(*[a.astype(float) for a in x])
            nearest = singles(right)
            judged = (numpy.abs(right) >= TINY) & numpy.isfinite(nearest)
            errors = numpy.where(judged, numpy.abs(ufunc(*x) - right) / numpy.spacing(numpy.abs(nearest)), 0.0)
        worst = numpy.argmax(errors)
        assert errors[worst] <= ALLOWED_ULPS[name], f"{errors[worst]:.2f} ulp at {[a[worst] for a in x]}, case {number}"
        assert judged.mean() > 0.5
        numpy.testing.assert_array_equal(ufunc(*x)[numpy.abs(right) < 0.99 * TINY], 0.0)


def run(name, *arrays, fma=True):
    """A function of scalars for every element of some arrays, by the interpreter."""
    inputs = tuple(Operand(f"x{k}", ()) for k in range(len(arrays)))
    program = record("scalars", getattr(np, name), inputs, (Operand("y", ()),))
    (result,) = evaluate(program, *[singles(x) for x in arrays], fma=fma, dtype=numpy.float32)
    return result


def after(x):
    return float(numpy.nextafter(numpy.float32(x), numpy.float32(math.copysign(INF, x))))


LAST_EXP, FIRST_EXP, LAST_COSH = 88.72283172607422, -87.33654022216797, 89.4159851074219
NEAR_PI, NEAR_HALF_PI = (float(numpy.float32(angle)) for angle in (PI, PI / 2))
TO_NAN = {INF: NAN, -INF: NAN, NAN: NAN}
EDGES = {
    "sin": {0.0: 0.0, 1e-45: 0.0, 2.0**21: 0.0, -HUGE: 0.0, **TO_NAN},
    "cos": {0.0: 1.0, 1e-45: 1.0, 2.0**21: 1.0, -HUGE: 1.0, **TO_NAN},
    "tan": {0.0: 0.0, 1e-45: 0.0, 2.0**21: 0.0, -HUGE: 0.0, **TO_NAN},
    "arcsin": {0.0: 0.0, 1.0: NEAR_HALF_PI, -1.0: -NEAR_HALF_PI, after(1.0): NAN, -HUGE: NAN, **TO_NAN},
    "arccos": {0.0: NEAR_HALF_PI, 1.0: 0.0, -1.0: NEAR_PI, after(1.0): NAN, -HUGE: NAN, **TO_NAN},
    "arctan": {0.0: 0.0, HUGE: NEAR_HALF_PI, INF: NEAR_HALF_PI, -INF: -NEAR_HALF_PI, NAN: NAN},
    "exp": {
        **dict.fromkeys([0.0, 1e-45, -1e-30], 1.0),
        **dict.fromkeys([INF, HUGE, after(LAST_EXP)], INF),
        **dict.fromkeys([-INF, -HUGE, -100.0, after(FIRST_EXP)], 0.0),
        NAN: NAN,
    },
    "expm1": {0.0: 0.0, 1e-45: 0.0, INF: INF, -INF: -1.0, NAN: NAN, HUGE: INF, -HUGE: -1.0, -21.0: -1.0, 89.0: INF},
    "log": {0.0: -INF, -1e-45: -INF, 1.0: 0.0, -1.0: NAN, -TINY: NAN, INF: INF, -INF: NAN, NAN: NAN},
    "log1p": {0.0: 0.0, 1e-45: 0.0, -1.0: -INF, -1.5: NAN, after(-1.0): NAN, INF: INF, -INF: NAN, NAN: NAN},
    "sinh": {0.0: 0.0, 1e-45: 0.0, INF: INF, -INF: -INF, NAN: NAN, after(LAST_COSH): INF, -HUGE: -INF},
    "cosh": {0.0: 1.0, 1e-45: 1.0, INF: INF, -INF: INF, NAN: NAN, after(LAST_COSH): INF, -HUGE: INF},
    "tanh": {0.0: 0.0, 1e-45: 0.0, INF: 1.0, -INF: -1.0, NAN: NAN, HUGE: 1.0, -15.0: -1.0},
    "sign": {0.0: 0.0, TINY: 1.0, -TINY: -1.0, INF: 1.0, -INF: -1.0, NAN: NAN},
}


@FMA
@pytest.mark.parametrize("name", EDGES)
def test_edges_are_those_of_c(name, fma):
    x, expected = numpy.array(list(EDGES[name].items())).T
    numpy.testing.assert_array_equal(run(name, x, fma=fma), expected)


@FMA
@pytest.mark.parametrize(("name", "last"), [("exp", LAST_EXP), ("sinh", LAST_COSH), ("cosh", LAST_COSH)])
def test_the_last_finite_result_is_finite(name, last, fma):
    assert 0.999 * HUGE < run(name, last, fma=fma) <= HUGE


@FMA
@pytest.mark.parametrize("exponents", [(4, 5), (5, 6), (6, 6.4), (6, 38)], ids=str)
def test_huge_angles_stay_on_the_unit_circle(exponents, fma):
    x = uniform(-1.0, 1.0) * 10.0 ** uniform(*exponents, 1)
    sin, cos = (run(name, x, fma=fma).astype(float) for name in ("sin", "cos"))
    assert numpy.abs([sin, cos]).max() <= 1.0
    numpy.testing.assert_allclose(sin * sin + cos * cos, 1.0, rtol=0.0, atol=1e-6)


@FMA
def test_the_error_of_huge_angles_is_that_of_their_last_digit(fma):
    x = both_signs(every(1e4, 2.0**20))
    for name in ("sin", "cos"):
        error = numpy.abs(run(name, x, fma=fma) - getattr(numpy, name)(x.astype(float)))
        assert (error <= 1.5 * numpy.abs(numpy.spacing(x))).all()


def flushed(x):
    """The nearest float32; zero for those that are subnormal."""
    return singles(numpy.where(numpy.abs(x) < TINY, 0.0, x))


SIDES = [0.0, -3.0, TINY, HUGE, INF, -INF, NAN]


@FMA
@pytest.mark.parametrize("name", ["hypot", "arctan2"])
def test_special_points_are_those_of_c(name, fma):
    x, y = numpy.meshgrid(SIDES, SIDES)
    with numpy.errstate(all="ignore"):
        right = flushed(getattr(numpy, name)(x, y))
    numpy.testing.assert_allclose(run(name, x, y, fma=fma), right, rtol=2e-7)


BASES = [0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, TINY, -TINY, HUGE, -HUGE, 1.0 + 2.0**-23, INF, -INF, NAN]
WHOLE = [0.0, 1.0, 2.0, 3.0, 64.0, 65.0, 127.0, 128.0, 2.0**23 + 1.0, 2.0**24 - 1.0, 2.0**24, 2.0**33, 1e30, INF]
EXPONENTS = [*WHOLE, 0.5, 0.3, 1.5, TINY, 1e-20, 2.0**22 + 0.5, NAN]


@FMA
def test_powers_at_edges_are_those_of_c(fma):
    x, y = (singles(a) for a in numpy.meshgrid(BASES, [*EXPONENTS, *(-y for y in EXPONENTS)]))
    with numpy.errstate(all="ignore"):
        right = flushed(numpy.power(x.astype(float), y.astype(float)))
    numpy.testing.assert_allclose(run("power", x, y, fma=fma), right, rtol=2e-7)
