"""Shared inputs: arrays that all states of a batch read in place, with the bits of ordinary inputs."""

import subprocess
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import delassus as dl
import delassus.numpy as dnp
import single_bits as single
from c_code import compile_c, library, needs_compiler
from delassus.compiler import grad, jacobian, scan, while_loop
from delassus.compiler import map as rolled_map
from delassus.compiler.backends.interpreter import evaluate
from delassus.compiler.backends.schedule import CHUNK, schedule
from delassus.compiler.backends.steps import Chunk, LoopStep
from delassus.compiler.functions.lower import lower
from delassus.compiler.host import build, threads
from delassus.compiler.host.c99 import export_c
from how_many import examples
from loop_programs import run as run_nest
from native_bits import HOST, WIDTHS, assert_same_bits, every_width, numbers
from refusals import refuses

RNG = np.random.default_rng(8)


def shared_kernel(function, signature, **shared):
    """A kernel of a function of x and shared arrays."""
    parameters = ", ".join(shared)
    made = eval(f"lambda model, x, *, {parameters}: function(x, {parameters})", {"function": function})
    return dl.kernel(signature, shared=shared)(made)


def compile_kernel(kernel, target, chunk=CHUNK):
    program = kernel.program(None)
    recipe = build.Recipe("f", "", program.inputs, program.outputs, lambda: program, None, target)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DELASSUS_CACHE", "off")
        patch.setattr(build, "schedule", partial(schedule, chunk=chunk))
        return build.build(recipe).ufunc


def check(kernel, lanes, x, *shared, chunk=CHUNK, dtype=np.float64):
    """Compare with the interpreter: in a batch, and alone."""
    host = HOST if dtype == np.float64 else single.HOST
    same = assert_same_bits if dtype == np.float64 else single.assert_same_bits
    ufunc = compile_kernel(kernel, host.with_lanes(lanes), chunk)
    expected = evaluate(kernel.program(None), x, *shared, fma=host.fma, dtype=dtype)
    together = ufunc(x, *shared)
    alone = [ufunc(state, *shared) for state in x]
    for k, output in enumerate(expected):
        same(together if len(expected) == 1 else together[k], output)
        same(np.array([a if len(expected) == 1 else a[k] for a in alone]), output)


# --- what it means --------------------------------------------------------------------------------------------------


def layers(x, first, bias, second):
    return second @ dnp.tanh(first @ x + bias)


SIZES = {"first": "(7,5)", "bias": "(7)", "second": "(3,7)"}
POLICY = shared_kernel(layers, "(5)->(3)", **SIZES)
WEIGHTS = {"first": RNG.normal(size=(7, 5)), "bias": RNG.normal(size=7), "second": RNG.normal(size=(3, 7))}
X = RNG.normal(size=(37, 5))
Y = np.tanh(X @ WEIGHTS["first"].T + WEIGHTS["bias"]) @ WEIGHTS["second"].T


def test_all_states_read_the_same_array():
    np.testing.assert_allclose(POLICY(None, X, **WEIGHTS), Y, rtol=1e-12)


def test_one_state_is_a_batch_of_one():
    np.testing.assert_allclose(POLICY(None, X[0], **WEIGHTS), Y[0], rtol=1e-12)


def test_the_plain_function_takes_them_as_well():
    np.testing.assert_allclose(POLICY.python(None, X[0], **WEIGHTS), Y[0], rtol=1e-12)


def test_the_ufunc_takes_them_after_the_others():
    np.testing.assert_allclose(POLICY.specialize(None)(X, *WEIGHTS.values()), Y, rtol=1e-12)


def test_a_bound_kernel_reads_them_where_they_lie():
    weights, out = [w.copy() for w in WEIGHTS.values()], np.empty((37, 3))
    tick = POLICY.bind(None, X, *weights, out)
    tick()
    np.testing.assert_allclose(out, Y, rtol=1e-12)
    weights[2] *= 2.0
    tick()
    np.testing.assert_allclose(out, 2.0 * Y, rtol=1e-12)


def test_states_with_arrays_of_their_own_get_their_own_results():
    seconds = RNG.normal(size=(37, 3, 7))
    got = POLICY(None, X, **WEIGHTS | {"second": seconds})
    expected = [POLICY(None, x, **WEIGHTS | {"second": w}) for x, w in zip(X, seconds, strict=True)]
    np.testing.assert_array_equal(got, expected)


def test_a_batch_of_batches_has_an_array_for_each_of_them():
    seconds = RNG.normal(size=(4, 1, 3, 7))
    x = RNG.normal(size=(4, 9, 5))
    got = POLICY.specialize(None)(x, WEIGHTS["first"], WEIGHTS["bias"], seconds)
    expected = [POLICY(None, x[k], **WEIGHTS | {"second": seconds[k, 0]}) for k in range(4)]
    np.testing.assert_array_equal(got, expected)


def test_threads_share_them(monkeypatch):
    monkeypatch.setattr(threads, "_MINIMUM_FLOPS", 1)
    before, expected = dl.threads(), POLICY(None, X, **WEIGHTS)
    try:
        dl.threads(2)
        np.testing.assert_array_equal(POLICY(None, X, **WEIGHTS), expected)
    finally:
        dl.threads(before)


def test_one_with_a_default_may_be_left_out():
    @dl.kernel("(2)->(2)", inputs={"gain": "()"}, shared={"offset": "(2)"})
    def f(model, x, *, gain=None, offset=None):
        y = x if gain is None else gain * x
        return y if offset is None else y + offset

    x, offset = np.ones((3, 2)), np.array([1.0, 2.0])
    np.testing.assert_array_equal(f(None, x), x)
    np.testing.assert_array_equal(f(None, x, offset=offset), x + offset)
    both = f.specialize(None, inputs=("offset", "gain"))
    np.testing.assert_array_equal(both(x, 3.0, offset), 3.0 * x + offset)


def test_a_kernel_inside_another_one_reads_the_array_of_that_one():
    def outer(x, first, bias, second):
        return POLICY(None, x[::-1], first=first, bias=bias, second=2.0 * second)

    got = shared_kernel(outer, "(5)->(3)", **SIZES)(None, X[:, ::-1], **WEIGHTS)
    np.testing.assert_allclose(got, 2.0 * Y, rtol=1e-12)


def test_a_table_of_a_million_numbers_is_read_in_place():
    heights = RNG.normal(size=(1000, 1000))
    f = shared_kernel(lambda x, heights: dnp.take(heights, 1000.0 * x[0] + x[1]), "(2)->()", heights="(1000,1000)")
    assert len(f.program(None).nodes) < 10
    places = RNG.integers(0, 1000, (300, 2))
    np.testing.assert_array_equal(f(None, places, heights=heights), heights[tuple(places.T)])


# --- the same bits --------------------------------------------------------------------------------------------------


def everywhere(x, A, b):
    """Numbers of shared arrays in every place where a number can be."""
    scaled = A.T * b
    kept = dnp.stack([b[0], A[2, 1], -A[1, 1], dnp.abs(b[3]), x[0] * b[1]])
    chosen = dnp.where(x[0] > A[0], A[1], b[:4])
    taken = dnp.stack([dnp.take(A[:, 1:].ravel(), x[0] * 9.0), dnp.take(A, x[1] * 6.0, axis=0)[2], dnp.take(b, x[2])])
    row = dnp.take(dnp.concatenate([A[:, 0], x, b[:2], scaled[1]]), 5.0 * x[2])
    return dnp.concatenate([kept, chosen, taken, row[None], scaled[:, 2] + x[1]])


def in_loops(x, A, b):
    """Items, captured and carried values, in loops and in loops of loops."""
    total, squares = scan(lambda c, row: (c + row @ x, dnp.sum(row) * c), b[0], A)
    columns = rolled_map(lambda column, y: column * y + b[2], A.T, x)
    backwards, _ = scan(lambda c, item: (0.5 * c + item[0] * item[1], None), x[1], (A[::-1, 1], b[::2]), reverse=True)

    def outer(c, row):
        inner = rolled_map(lambda a, y: a * y + row[0] + b[1] + c, row, x)
        deep = rolled_map(lambda column: scan(lambda d, a: (d * 0.5 + a * row[1], None), c, column)[0], A.T)
        return c + 0.1 * dnp.sum(inner), inner + deep

    def look(carry):
        return carry[0] + dnp.take(A[:, 1], carry[1]) * b[0], carry[1] + 1.0

    last, nested = scan(outer, x[2], A)
    looked = while_loop(lambda c: c[1] < 6.0, look, (x[0], 0.0), 9)
    start = while_loop(lambda c: c[0] < 3.0, lambda c: c + dnp.abs(A[0]) + 0.5, A[3], 9)
    parts = [squares, columns.ravel(), nested.ravel(), start]
    return dnp.concatenate([dnp.stack([total, backwards, last, *looked]), *parts])


KERNELS = {
    "places": shared_kernel(everywhere, "(4)->(17)", A="(6,4)", b="(6)"),
    "loops": shared_kernel(in_loops, "(4)->(63)", A="(6,4)", b="(12)"),
}
SHARED = {"places": ((6, 4), (6,)), "loops": ((6, 4), (12,))}


def states(name, dtype=np.float64):
    """States and shared arrays, with subnormal, infinite and unknown numbers among them."""
    make = numbers if dtype == np.float64 else single.numbers
    return [make(19, 4, seed=3), *(make(*shape, seed=4 + k) for k, shape in enumerate(SHARED[name]))]


@every_width
@pytest.mark.parametrize("chunk", [1, 7, CHUNK])
@pytest.mark.parametrize("name", KERNELS)
def test_compiled_code_has_the_bits_of_the_interpreter(name, chunk, lanes):
    check(KERNELS[name], lanes, *states(name), chunk=chunk)


@pytest.mark.parametrize("lanes", single.WIDTHS)
@pytest.mark.parametrize("name", KERNELS)
def test_compiled_code_in_float32_has_the_bits_of_the_interpreter(name, lanes):
    check(KERNELS[name], lanes, *states(name, np.float32), chunk=20, dtype=np.float32)


@needs_compiler
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("chunk", [7, CHUNK])
@pytest.mark.parametrize("name", KERNELS)
def test_c_has_the_bits_of_the_interpreter(name, chunk, dtype, tmp_path):
    x, *shared = (np.where(np.abs(a) < 1e-30, a.dtype.type(1.0), a) for a in states(name, dtype))
    program = KERNELS[name].program(None)
    call = library(program, tmp_path, chunk=chunk, dtype=dtype)
    for k, right in enumerate(evaluate(program, x, *shared, dtype=dtype)[0]):
        assert_same_bits(call(x[k], *shared)[0], right)


@every_width
@pytest.mark.parametrize("name", KERNELS)
def test_an_array_in_any_order_in_memory_has_the_same_bits(name, lanes):
    ufunc = compile_kernel(KERNELS[name], HOST.with_lanes(lanes))
    x, A, b = states(name)
    expected = ufunc(x, A, b)
    spread = np.zeros((3 * b.size, 2))
    spread[::3, 1] = b
    for other in (np.asfortranarray(A), A[::-1].copy()[::-1], np.pad(A, 1)[1:-1, 1:-1]):
        assert_same_bits(ufunc(x, other, spread[::3, 1]), expected)
        assert_same_bits(ufunc(x[0], other, spread[::3, 1]), expected[0])


@every_width
def test_states_with_arrays_of_their_own_have_the_same_bits(lanes):
    ufunc = compile_kernel(KERNELS["loops"], HOST.with_lanes(lanes))
    x, _, b = states("loops")
    many = numbers(19, 4, 6, seed=9).swapaxes(1, 2)
    assert_same_bits(ufunc(x, many, b), np.array([ufunc(s, a, b) for s, a in zip(x, many, strict=True)]))


@every_width
@pytest.mark.parametrize("shape", [(40, 41), (9, 450), (3, 600)])
@pytest.mark.parametrize("turned", [False, True], ids=["W x", "x W"])
def test_large_products_have_the_bits_of_unrolled_ones(lanes, shape, turned, monkeypatch):
    rows, columns = shape

    def function(x, W):
        return x @ W.T if turned else W @ x

    def kernel():
        return shared_kernel(function, f"({columns})->({rows})", W=f"({rows},{columns})")

    rolled = kernel()
    assert rolled.program(None).loops
    x, W = RNG.normal(size=(9, columns)), RNG.normal(size=shape)
    got = compile_kernel(rolled, HOST.with_lanes(lanes))(x, W)
    monkeypatch.setattr("delassus.compiler.tracing.operations.products.LARGEST_UNROLLED", 10**9)
    unrolled = kernel().program(None)
    assert not unrolled.loops
    assert_same_bits(got, evaluate(unrolled, x, W, fma=HOST.fma)[0])


def test_a_large_product_of_matrices_is_that_of_numpy():
    f = shared_kernel(lambda x, W: W @ x @ W[:30], "(40,30)->(50,40)", W="(50,40)")
    x, W = RNG.normal(size=(9, 40, 30)), RNG.normal(size=(50, 40))
    np.testing.assert_allclose(f(None, x, W=W), W @ x @ W[:30], rtol=1e-11, atol=1e-11)


@settings(max_examples=examples(25))
@given(
    rows=st.lists(st.sampled_from(["scan", "reverse", "map", "turned", "both", "outer"]), min_size=1, max_size=3),
    lanes=st.sampled_from(WIDTHS),
    chunk=st.sampled_from([1, 5, CHUNK]),
    seed=st.integers(0, 99),
)
def test_random_nests_of_loops_have_the_bits_of_the_interpreter(rows, lanes, chunk, seed):
    """Each way to walk along a shared matrix, inside the one before."""

    def walk(kinds, x, A, W):
        if not kinds:
            return run_nest((("mix", 0.5, 0.7),), x + A[0])
        kind, *rest = kinds
        if kind in ("scan", "reverse"):
            return scan(lambda c, row: (walk(rest, c * 0.5 + row, A, W), None), x, A, reverse=kind == "reverse")[0]
        if kind == "map":
            return dnp.sum(rolled_map(lambda row: walk(rest, row - x, A, W), A), axis=0) * 0.25
        if kind == "turned":
            return dnp.sum(rolled_map(lambda row: walk(rest, row + x, A, W), W.T), axis=0) * 0.25
        if kind == "both":
            return dnp.sum(rolled_map(lambda a, b: walk(rest, a * b - x, A, W), A, W[:, ::-1].T[:3]), axis=0)
        return walk(rest, x + A[:, 1] * W[1, 1], A, W)

    f = shared_kernel(lambda x, A, W: walk(rows, x, A, W), "(3)->(3)", A="(3,3)", W="(3,4)")
    check(f, lanes, numbers(11, 3, seed=seed), RNG.normal(size=(3, 3)), RNG.normal(size=(3, 4)), chunk=chunk)


# --- what it costs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [lambda x, W: W @ x, lambda x, W: x @ W], ids=["W x", "x W"])
def test_a_product_with_a_shared_matrix_copies_nothing(function):
    plan = schedule(lower(shared_kernel(function, "(100)->(100)", W="(100,100)").program(None), True))
    assert plan.frame < 500
    assert not any(step.copied or step.length for step in plan.steps if isinstance(step, LoopStep))
    assert not any(step.stores for step in plan.steps if isinstance(step, Chunk) and not step.values)


def test_a_policy_in_a_loop_copies_nothing():
    def rollout(x, W):
        return scan(lambda c, _: (dnp.tanh(W @ c), None), x, length=5)[0]

    plan = schedule(lower(shared_kernel(rollout, "(50)->(50)", W="(50,50)").program(None), True))
    assert plan.frame < 500


def test_shared_arrays_may_be_larger_than_a_frame():
    f = shared_kernel(lambda x, W: dnp.take(W, x) + W[399, 399], "()->()", W="(400,400)")
    x, W = np.arange(0.0, 160_000.0, 7.0), RNG.normal(size=(400, 400))
    np.testing.assert_array_equal(f(None, x, W=W), W.ravel()[::7] + W[399, 399])


def test_a_shared_input_is_another_program_than_an_ordinary_one():
    ordinary = dl.kernel("(2),(2)->(2)")(lambda model, x, b: x + b).program(None)
    assert shared_kernel(lambda x, b: x + b, "(2)->(2)", b="(2)").program(None).digest != ordinary.digest


# --- derivatives ----------------------------------------------------------------------------------------------------


def test_derivatives_pass_through_products_with_shared_matrices(monkeypatch):
    monkeypatch.setattr("delassus.compiler.tracing.operations.products.LARGEST_UNROLLED", 50)

    def slopes(x, W):
        return jacobian(lambda x: dnp.tanh(W @ x))(x), grad(lambda x: dnp.sum(dnp.tanh(W @ x) ** 2))(x)

    f = shared_kernel(slopes, "(10)->(10,10),(10)", W="(10,10)")
    assert f.program(None).loops
    x, W = RNG.normal(size=(3, 10)), RNG.normal(size=(10, 10)) / 3.0
    J, gradient = f(None, x, W=W)
    y = np.tanh(x @ W.T)
    expected = (1.0 - y * y)[..., None] * W
    np.testing.assert_allclose(J, expected, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(gradient, 2.0 * np.einsum("bi,bij->bj", y, expected), rtol=1e-10, atol=1e-11)


def test_derivatives_can_be_taken_in_the_shared_array():
    f = shared_kernel(lambda x, W: grad(lambda W: dnp.sum(dnp.sin(W @ x)))(W), "(3)->(2,3)", W="(2,3)")
    x, W = RNG.normal(size=(5, 3)), RNG.normal(size=(2, 3))
    np.testing.assert_allclose(f(None, x, W=W), np.cos(x @ W.T)[:, :, None] * x[:, None, :], rtol=1e-12)


def test_a_shared_table_has_the_derivative_zero_in_its_index():
    f = shared_kernel(lambda x, t: grad(lambda i: dnp.take(t, i) * i)(x), "()->()", t="(20)")
    t = RNG.normal(size=20)
    np.testing.assert_array_equal(f(None, np.arange(20.0), t=t), t)


# --- C --------------------------------------------------------------------------------------------------------------


@needs_compiler
def test_the_check_program_says_ok(tmp_path):
    header, *sources = export_c(POLICY, None, tmp_path, name="policy")
    program = compile_c(tmp_path, "check", *sources, shared=False)
    assert subprocess.run([program], capture_output=True, text=True, check=False).stdout == "ok\n"
    assert "in place" in header.read_text()


# --- what is refused ------------------------------------------------------------------------------------------------


def test_one_that_is_missing_is_named():
    with pytest.raises(TypeError, match=r"needs the shared array bias= of shape \(7\)"):
        POLICY(None, X, first=WEIGHTS["first"], second=WEIGHTS["second"])


def test_a_wrong_shape_is_refused_by_numpy():
    with pytest.raises(ValueError, match="core dimension"):
        POLICY(None, X, **WEIGHTS | {"bias": np.ones(6)})


def test_a_shared_array_cannot_be_changed():
    def f(x, b):
        b[0] = x[0]
        return b

    with pytest.raises(TypeError, match="read in place by all states and cannot be changed: change a copy"):
        shared_kernel(f, "(2)->(2)", b="(2)").program(None)


def test_a_copy_of_a_shared_array_can_be_changed():
    def f(x, b):
        c = b.copy()
        c[0] = x[0]
        c += 1.0
        return c

    np.testing.assert_array_equal(shared_kernel(f, "(2)->(2)", b="(2)")(None, [5.0, 6.0], b=[1.0, 2.0]), [6.0, 3.0])


def test_binding_refuses_batch_axes_of_shared_arrays():
    with pytest.raises(ValueError, match="bias is shared by all states, so it has no batch axes"):
        POLICY.bind(None, X, WEIGHTS["first"], np.ones((37, 7)), WEIGHTS["second"], np.empty((37, 3)))


def test_binding_refuses_to_write_into_a_shared_array():
    f = shared_kernel(lambda x, b: x + b, "(2)->(2)", b="(2)")
    b = np.ones(2)
    with pytest.raises(ValueError, match="overlaps array 1"):
        f.bind(None, np.ones(2), b, b)


def test_a_shared_array_is_a_keyword():
    with refuses("bad-signature"):
        dl.kernel("()->()", shared={"b": "()"})(lambda model, x: x)


def test_the_bits_of_a_subnormal_number_do_not_pass():
    f = shared_kernel(lambda x, b: dnp.stack([b[0], -b[0], x * b[0], dnp.take(b, x)]), "()->(4)", b="(20)")
    got = f(None, np.ones(9), b=np.full(20, 1e-310))
    assert np.all(got == 0.0)
