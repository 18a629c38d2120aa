"""`dtype=np.float32` on every way to run a kernel, and the arithmetic behind it."""

import math
from fractions import Fraction

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st

import delassus as dl
import delassus.numpy as dnp
from delassus.compiler.backends.interpreter import evaluate
from delassus.compiler.backends.target import Target
from delassus.compiler.graph.graph import Builder
from delassus.compiler.graph.precision import DOUBLE, SINGLE, Precision
from delassus.compiler.graph.program import Operand
from delassus.compiler.host.c99 import random_states
from delassus.compiler.host.kernel import Kernel
from delassus.compiler.tracing.record import record
from delassus.model.generators import chain, random_tree
from refusals import refuses
from robots import file, pinocchio_model

TREE = random_tree(5, seed=2)
STATES = np.random.default_rng(0).normal(size=(3, 40, TREE.nv))
SINGLES = STATES.astype(np.float32)
WAYS = [np.float32, "float32", "f4", np.dtype(np.float32)]


@dl.kernel("(3)->(3),()")
def pair(model, x):
    """Two outputs."""
    return 2.0 * x, x @ x


# Every way to call.


@pytest.mark.parametrize("dtype", WAYS, ids=repr)
def test_a_call_converts_its_inputs_and_gives_float32(dtype):
    got = dl.aba(TREE, *STATES, dtype=dtype)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, dl.aba(TREE, *SINGLES, dtype=dtype))


def test_float32_is_near_float64():
    right = dl.aba(TREE, *STATES)
    error = np.abs(dl.aba(TREE, *STATES, dtype=np.float32) - right).max(1) / np.abs(right).max(1)
    assert 1e-9 < error.max() < 1e-4


@pytest.mark.parametrize("dtype", [None, float, np.float64, "float64", "d"], ids=repr)
def test_float64_is_the_default(dtype):
    got = dl.aba(TREE, *STATES, dtype=dtype)
    assert got.dtype == np.float64
    np.testing.assert_array_equal(got, dl.aba(TREE, *STATES))


@pytest.mark.parametrize("dtype", ["float16", np.longdouble, int, complex, bool, ">f4", "nonsense", []], ids=repr)
@pytest.mark.parametrize("call", ["specialize", "compiled", "inspect"])
def test_other_dtypes_are_refused_with_a_sentence(call, dtype):
    with refuses("unknown-option"):
        getattr(dl.aba, call)(TREE, dtype=dtype)


def test_a_ufunc_has_one_dtype():
    ufunc = pair.specialize(None, dtype=np.float32)
    assert ufunc.types == ["f->ff"]
    with pytest.raises(TypeError):
        ufunc(np.zeros(3))


def test_the_ufunc_is_remembered_beside_that_of_float64():
    assert dl.aba.specialize(TREE, dtype=np.float32) is dl.aba.specialize(TREE, dtype="f4")
    assert dl.aba.specialize(TREE, dtype=np.float64) is dl.aba.specialize(TREE)
    assert dl.aba.specialize(TREE) is not dl.aba.specialize(TREE, dtype=np.float32)


def test_outputs_may_be_arrays_of_either_dtype():
    for dtype in (np.float32, np.float64):
        out = np.empty((40, TREE.nv), dtype)
        assert dl.aba(TREE, *STATES, out=out, dtype=np.float32) is out
        np.testing.assert_array_equal(out, dl.aba(TREE, *STATES, dtype=np.float32))


def test_lists_integers_and_truth_values_are_converted():
    y, square = pair(None, [1, 2, True], dtype=np.float32)
    assert (y.tolist(), square, square.dtype) == ([2.0, 4.0, 2.0], 6.0, np.float32)


@pytest.mark.parametrize("kind", [complex, str, object])
def test_what_is_no_real_number_is_refused(kind):
    with pytest.raises(TypeError, match="float32"):
        pair(None, np.array([1, 2, 3]).astype(kind), dtype=np.float32)


def test_a_bound_kernel_works_on_float32_arrays():
    x, out = SINGLES.copy(), np.empty((40, TREE.nv), np.float32)
    tick = dl.aba.bind(TREE, *x, out, dtype=np.float32)
    x[2] += 1.0
    tick()
    np.testing.assert_array_equal(out, dl.aba(TREE, *x, dtype=np.float32))


@pytest.mark.parametrize(("dtype", "wrong"), [(np.float32, "float64"), (np.float64, "float32")])
def test_binding_arrays_of_the_other_dtype_is_refused(dtype, wrong):
    right = np.dtype(dtype)
    with pytest.raises(TypeError, match=f"x must be a {right} array, not {wrong}"):
        pair.bind(None, np.zeros(3, wrong), np.zeros(3, right), np.zeros((), right), dtype=dtype)
    with pytest.raises(TypeError, match=f"output 1 must be a {right} array, not {wrong}"):
        pair.bind(None, np.zeros(3, right), np.zeros(3, right), np.zeros((), wrong), dtype=dtype)


def test_the_report_tells_lanes_and_dtype():
    report = pair.inspect(None, dtype=np.float32)
    assert report.target == Target.host().with_dtype(np.float32)
    assert f"{report.target.lanes} lanes of float32" in str(report)
    assert "double" not in report.ir.replace("0x", "")


def test_options_and_dtype_go_together():
    @dl.kernel("()->()")
    def scaled(model, x, *, by=1.0):
        return by * x

    assert scaled(None, 3.0, by=0.1, dtype=np.float32) == np.float32(0.1) * np.float32(3.0)


def test_dtype_is_no_name_for_an_option():
    with refuses("bad-signature", "'dtype'"):
        dl.kernel("()->()")(lambda model, x, *, dtype=None: x)


def test_an_inlined_kernel_has_the_precision_of_its_caller():
    @dl.kernel("(3)->()")
    def outer(model, x):
        return pair(None, x, dtype=np.float32)[1]

    with pytest.raises(TypeError, match="inlined into another kernel, where dtype= has no meaning"):
        outer(None, np.zeros(3))


# The machine.


def test_vectors_hold_twice_as_many_float32():
    host = Target.host()
    single = host.with_dtype(np.float32)
    assert single.widths == tuple(2 * w for w in host.widths)
    assert single.with_dtype(np.float64) == host
    assert all(host.with_lanes(w).with_dtype(np.float32).lanes == 2 * w for w in host.widths)


def test_scalar_code_stays_scalar():
    assert Target.host().with_lanes(1).with_dtype(np.float32).lanes == 1


# The arithmetic.


def test_formats_are_those_of_numpy():
    for precision in (DOUBLE, SINGLE):
        info = np.finfo(precision.name)
        assert (precision.smallest, precision.largest) == (info.tiny, info.max)
        assert (precision.digits, 8 * precision.bytes, precision.bias) == (info.nmant, info.bits, info.maxexp - 1)
        assert Precision.of(precision.dtype) is precision


@pytest.mark.parametrize("x", [0.0, SINGLE.smallest, 1.0, -1.5, 0.999, 2.0, 1e30, SINGLE.largest, math.inf])
def test_constants_are_taken_apart_and_scaled_exactly(x):
    g = Builder(SINGLE)
    x = SINGLE.rounded(x)
    exponent = g.constants[-g.exponent(g.constant(x))]
    if 0.0 < abs(x) < math.inf:
        assert exponent == math.frexp(x)[1] - 1
        assert g.scale(g.constant(x), g.constant(-exponent)) == g.constant(math.ldexp(x, int(-exponent)))
    else:
        assert exponent == (128.0 if x else -127.0)


@pytest.mark.parametrize(("number", "rounded"), [(0.1, float(np.float32(0.1))), (1e300, math.inf), (1e-39, 0.0)])
def test_constants_are_rounded_to_float32(number, rounded):
    g = Builder(SINGLE)
    assert g.constants[-g.constant(number)] == rounded


def exactly_rounded(x):
    """The float32 nearest to a fraction, ties to even; none that is subnormal."""
    if x == 0:
        return 0.0
    exponent = abs(x).numerator.bit_length() - abs(x).denominator.bit_length()
    unit = Fraction(2) ** (exponent - 23 - (abs(x) < Fraction(2) ** exponent))
    return float(round(x / unit) * unit)


FLOATS = st.floats(2.0**-30, 2.0**30, width=32)
SIGNED = st.builds(math.copysign, FLOATS, st.sampled_from([-1.0, 1.0]))


@given(SIGNED, SIGNED, SIGNED, st.integers(-30, 0), st.integers(-2, 2))
def test_the_interpreter_rounds_a_fused_product_once(a, b, c, shift, steps):
    near_tie = np.float32(a) * np.float32(b)  # the sum with half a unit of the product is often next to a tie
    half = float(np.spacing(near_tie)) / 2 * (1.0 + steps * 2.0**-22)
    operands = tuple(Operand(name, ()) for name in "abc")
    program = record("f", lambda a, b, c: a * b + c, operands, (Operand("y", ()),))
    for addend in (SINGLE.rounded(c * 2.0**shift), -float(near_tie), SINGLE.rounded(half), float(near_tie)):
        (got,) = evaluate(program, a, b, addend, dtype=np.float32)
        assert got == exactly_rounded(Fraction(a) * Fraction(b) + Fraction(addend))


@pytest.mark.parametrize("x", [1e-45, -1e-39, SINGLE.smallest / 2])
def test_subnormal_float32_are_zero(x):
    f = dl.kernel("()->(2)")(lambda model, x: dnp.stack([x * 1e30, -x]))
    (expected,) = evaluate(f.program(None), x, dtype=np.float32)
    np.testing.assert_array_equal(expected, 0.0)
    np.testing.assert_array_equal(f(None, x, dtype=np.float32), 0.0)


# Robots.


KERNELS = [k for k in vars(dl).values() if isinstance(k, Kernel)]
OF_MODELS = [k for k in KERNELS if k.takes is dl.Model]


@pytest.mark.parametrize("kernel", OF_MODELS, ids=lambda k: k.name)
def test_every_kernel_of_a_model_keeps_five_digits(kernel):
    frame = {"frame": TREE.frame_list[-1].name} if "frame" in kernel.options else {}
    states = [x.astype(np.float32) for x in random_states(kernel, TREE, 30)]
    target = Target.host().with_opt(0)
    double = kernel.compiled(TREE, target=target, **frame).ufunc(*[x.astype(float) for x in states])
    single = kernel.compiled(TREE, target=target, dtype=np.float32, **frame).ufunc(*states)
    for right, got in zip(*(x if isinstance(x, tuple) else (x,) for x in (double, single)), strict=True):
        core = tuple(range(1, right.ndim))
        size = np.maximum(np.abs(right).max(core), 0.01)
        assert (np.abs(got - right).max(core) <= 1e-5 * size).all()


def test_forward_dynamics_of_a_legged_robot_is_that_of_pinocchio():
    path = file("solo12.urdf")
    model, theirs = dl.load(path, root="free"), pinocchio_model(path, "free")
    data, states = theirs.createData(), [x.astype(np.float32).astype(float) for x in random_states(dl.aba, model, 50)]
    got = dl.aba(model, *states, dtype=np.float32)
    for a, q, v, tau in zip(got, dl.q_to_pinocchio(model, states[0]), *states[1:], strict=True):
        right = pin.aba(theirs, data, q, v, tau)
        np.testing.assert_allclose(a, right, rtol=0.0, atol=1e-5 * np.abs(right).max())


@pytest.mark.parametrize("method", [dl.caba, dl.prox_ltls], ids=lambda f: f.name)
def test_methods_with_penalties_warn_of_single_precision(method):
    held = dl.Mechanism(chain(2, seed=77), dl.Point("tip", rows="x"))
    with pytest.warns(dl.DelassusWarning, match="in float32: penalties leave it five digits.* Take prox_pv"):
        method.specialize(held, np.float32)


def test_methods_without_penalties_keep_their_digits_in_single_precision():
    robot = dl.load("quadruped")
    held = dl.Mechanism(robot, [dl.Point(foot) for foot in robot.frames("*_foot")])
    rng = np.random.default_rng(0)
    q = np.array([robot.random_configuration(rng) for _ in range(100)])
    v, tau = rng.normal(size=(2, 100, robot.nv))
    expected, _ = dl.kkt(held, q, v, tau)
    found, _ = dl.prox_pv(held, q, v, tau, dtype=np.float32)
    size = np.maximum(1.0, np.max(np.abs(expected), axis=-1, keepdims=True))
    assert np.max(np.abs(found - expected) / size) < 2e-5
