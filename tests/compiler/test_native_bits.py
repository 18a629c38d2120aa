"""Compiled code gives the interpreter's bits: at every lane width, in every batch and on any number of threads.

Tests that take `bits` are made in double and in single precision; the others in double precision alone.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import delassus as dl
import delassus.numpy as dnp
import native_bits
import single_bits
from delassus.compiler.backends.interpreter import evaluate
from delassus.compiler.backends.llvm import states
from delassus.compiler.backends.schedule import CHUNK
from delassus.compiler.graph.program import LOGICAL
from delassus.compiler.host import runtime, threads
from delassus.compiler.tracing.flow.control import scan, while_loop
from delassus.model.generators import random_tree
from how_many import examples
from native_bits import HOST, assert_same_bits, check, every_width, numbers
from programs import programs

TREE = random_tree(3, seed=5)
BITS = {"double": native_bits, "single": single_bits}

both_precisions = pytest.mark.parametrize("bits", BITS.values(), ids=list(BITS))
every_width_of_both = pytest.mark.parametrize(
    ("bits", "lanes"), [pytest.param(bits, n, id=f"{name}-{n}") for name, bits in BITS.items() for n in bits.WIDTHS]
)


def interpret(bits, program, *arrays, fma=HOST.fma):
    return evaluate(program, *arrays, fma=fma, dtype=bits.HOST.precision.dtype)


@pytest.fixture
def cut_small_batches(monkeypatch):
    """Batches from two groups on are cut over threads; the number of threads is put back at the end."""
    monkeypatch.setattr(threads, "_MINIMUM_FLOPS", 1)
    before = dl.threads()
    yield
    dl.threads(before)


@every_width_of_both
def test_forward_dynamics_has_the_bits_of_the_interpreter(bits, lanes):
    x = np.random.default_rng(1).normal(size=(3, 37, TREE.nv)).astype(bits.SPECIAL.dtype)
    bits.check(dl.aba, lanes, *x, model=TREE)


@every_width_of_both
def test_forward_dynamics_of_special_numbers_has_the_bits_of_the_interpreter(bits, lanes):
    bits.check(dl.aba, lanes, *bits.numbers(3, 65, TREE.nv), model=TREE)


@pytest.mark.skipif(not HOST.is_x86, reason="every 64-bit ARM has fused multiply-add")
@every_width_of_both
def test_a_machine_without_fused_multiply_add_has_the_bits_of_the_interpreter(bits, lanes):
    features = ["-fma" if feature == "+fma" else feature for feature in HOST.features.split(",")]
    target = replace(bits.HOST, features=",".join(features)).with_lanes(lanes)
    x = bits.numbers(3, 65, TREE.nv)
    (expected,) = interpret(bits, dl.aba.program(TREE), *x, fma=False)
    assert_same_bits(dl.aba.compiled(TREE, target=target).ufunc(*x), expected)


@both_precisions
def test_optimized_code_has_the_bits_of_unoptimized_code(bits):
    x = bits.numbers(3, 65, TREE.nv)
    fast = dl.aba.compiled(TREE, target=bits.FULL).ufunc(*x)
    assert_same_bits(fast, dl.aba.compiled(TREE, target=bits.HOST).ufunc(*x))


@every_width_of_both
def test_a_state_has_the_same_bits_in_every_batch_and_position(bits, lanes):
    ufunc = dl.aba.compiled(TREE, target=bits.HOST.with_lanes(lanes)).ufunc
    x = bits.numbers(3, 70, TREE.nv)
    alone = np.array([ufunc(*x[:, k]) for k in range(70)])
    for size in range(1, 71):
        for start in range(71 - size):
            part = slice(start, start + size)
            assert_same_bits(ufunc(*x[:, part]), alone[part])


@both_precisions
@pytest.mark.parametrize("count", [1, 2, 8])
def test_a_state_has_the_same_bits_on_any_number_of_threads(bits, count, cut_small_batches):
    x = bits.numbers(3, 70, TREE.nv)
    alone = np.array([dl.aba(TREE, *x[:, k], dtype=x.dtype) for k in range(70)])
    dl.threads(count)
    for size in range(1, 71):
        assert_same_bits(dl.aba(TREE, *x[:, :size], dtype=x.dtype), alone[:size])


@every_width_of_both
def test_a_batch_beyond_the_cpu_caches_has_the_bits_of_its_states(bits, lanes):
    n = 64 // bits.SPECIAL.itemsize

    @dl.kernel(f"({n})->({n})")
    def f(model, x):
        return x * x[::-1] + 1.0

    ufunc = bits.compile_program(f.program(None), lanes)
    x = np.random.default_rng(2).normal(size=(runtime.CACHE_BYTES // 128 + 2 * lanes + 1, n))
    x = x.astype(bits.SPECIAL.dtype)
    np.testing.assert_array_equal(ufunc(x), np.concatenate([ufunc(part) for part in np.array_split(x, 50)]))


@every_width
@pytest.mark.parametrize("chunk", [1, 5, CHUNK])
def test_outputs_may_be_inputs(lanes, chunk):
    @dl.kernel("(3),()->(3),(),(3)")
    def f(model, x, y):
        return x, y, x[::-1] + y

    check(f, lanes, numbers(19, 3), numbers(19, seed=1), chunk=chunk)


@every_width
@pytest.mark.parametrize("chunk", [1, 5, CHUNK])
def test_outputs_may_be_constants(lanes, chunk):
    @dl.kernel("(2)->(4),(2)")
    def f(model, x):
        return dnp.array([0.0, -1.5, np.inf, np.nan]), x * 3.0

    check(f, lanes, numbers(19, 2), chunk=chunk)


@every_width
@pytest.mark.parametrize("chunk", [1, 5, CHUNK])
def test_one_value_may_be_several_outputs(lanes, chunk):
    @dl.kernel("(2)->(3),(),()")
    def f(model, x):
        product = x[0] * x[1]
        return dnp.stack([product, product, x[0]]), product, product + x[1]

    check(f, lanes, numbers(19, 2), chunk=chunk)


@every_width
@pytest.mark.parametrize("chunk", [1, 5, CHUNK])
def test_truth_values_leave_as_one_and_zero(lanes, chunk):
    @dl.kernel("(4)->(4),(),()")
    def f(model, x):
        return x > 0.5, dnp.any(x > 1.0), dnp.array(True)

    check(f, lanes, numbers(19, 4), chunk=chunk)


@every_width
@pytest.mark.parametrize("chunk", [1, 2, 5])
def test_truth_values_cross_from_chunk_to_chunk(lanes, chunk):
    @dl.kernel("(6)->(6),(6)")
    def f(model, x):
        positive, small = x > 0.0, abs(x) < 1.0
        y = dnp.where(positive & small, x, x * x)
        return dnp.where(positive ^ dnp.roll(small, 1), y, -y), ~positive

    planned = check(f, lanes, numbers(19, 6), chunk=chunk)
    assert {planned.program.nodes[value][0] for value in planned.slots} & LOGICAL


@every_width
def test_slots_are_reused_without_harm_when_every_operation_is_a_chunk(lanes):
    planned = check(dl.aba, lanes, *numbers(3, 9, 1), model=random_tree(1), chunk=1)
    assert planned.frame < len(planned.steps) / 2


@every_width
def test_a_program_may_have_no_operations(lanes):
    @dl.kernel("(2,2)->(2,2)")
    def f(model, x):
        return x.T

    planned = check(f, lanes, numbers(19, 2, 2))
    assert [step.values for step in planned.steps] == [()]


@every_width
def test_an_input_may_go_unused(lanes):
    @dl.kernel("(9),()->()")
    def f(model, x, y):
        return y + y

    check(f, lanes, numbers(19, 9), numbers(19, seed=1))


@every_width_of_both
def test_frames_larger_than_the_stack_allows_live_on_the_heap(bits, lanes):
    n = 72000 // bits.SPECIAL.itemsize

    @dl.kernel(f"({n})->(2)")
    def f(model, x):
        return dnp.stack([x[0] + x[n - 1], x[n // 2] * x[n // 3]])

    planned = bits.check(f, lanes, bits.numbers(5, n))
    assert bits.SPECIAL.itemsize * planned.frame > states.STACK_BYTES


@every_width
def test_there_may_be_many_outputs(lanes):
    @dl.kernel("(4)->" + ",".join(["(2)"] * 40))
    def f(model, x):
        return tuple(x[:2] * (k + 1.0) + x[2:] for k in range(40))

    check(f, lanes, numbers(19, 4))


@every_width_of_both
@pytest.mark.parametrize("shape", [(1,), (7,), (8,), (9,), (15,), (16,), (17,), (33,), (3, 3), (5, 1), (2, 3, 4)])
def test_cores_of_any_shape_arrive_and_leave_in_order(bits, lanes, shape):
    @dl.kernel(f"({','.join(map(str, shape))})->({','.join(map(str, shape[::-1]))})")
    def f(model, x):
        return 2.0 * x.T

    bits.check(f, lanes, bits.numbers(35, *shape))


@every_width_of_both
def test_cores_of_any_strides_arrive_and_leave_in_order(bits, lanes):
    @dl.kernel("(18)->(18)")
    def f(model, x):
        return 3.0 * x

    ufunc = bits.compile_program(f.program(None), lanes)
    x = bits.numbers(40, 36)[:, ::-2]
    out = np.zeros((18, 40), x.dtype)
    ufunc(x, out=out.T)
    assert_same_bits(out.T, *interpret(bits, f.program(None), x))


@every_width
def test_scalars_arrive_and_leave(lanes):
    @dl.kernel("(),()->(),()")
    def f(model, x, y):
        return x / y, dnp.sqrt(x)

    check(f, lanes, numbers(37), numbers(37, seed=1))


TRIGONOMETRIC = [dnp.sin, dnp.cos, dnp.tan, dnp.arcsin, dnp.arccos, dnp.arctan]
EXPONENTIAL = [dnp.exp, dnp.expm1, dnp.log, dnp.log1p, dnp.sinh, dnp.cosh, dnp.tanh]
BINARY = [dnp.arctan2, dnp.hypot, dnp.power, dnp.minimum, dnp.maximum]


@dl.kernel("(),()->(20)")
def functions(model, x, y):
    unary = [f(x) for f in (*TRIGONOMETRIC, *EXPONENTIAL, dnp.sign, dnp.sqrt)]
    return dnp.stack([*unary, *(f(x, y) for f in BINARY)])


def pairs(bits):
    """Corners, and numbers of every size that single precision has."""
    limits = [88.72, -87.34, 89.4, 3e6, 12868.0]
    corners = np.stack(np.meshgrid([*bits.SPECIAL, *limits], [*bits.SPECIAL, *limits])).reshape(2, -1)
    rng = np.random.default_rng(3)
    sizes = rng.choice([-1.0, 1.0], (2, 2000)) * 2.0 ** rng.uniform(-126, 127.9, (2, 2000))
    ranges = [rng.uniform(-end, end, (2, 2000)) for end in (1.0, 30.0, 1e4)]
    return np.concatenate([corners, sizes, *ranges], axis=1).astype(bits.SPECIAL.dtype)


@every_width_of_both
def test_elementary_functions_have_the_bits_of_the_interpreter(bits, lanes):
    x, y = pairs(bits)
    (expected,) = interpret(bits, functions.program(None), x, y)
    assert_same_bits(functions.compiled(None, target=bits.HOST.with_lanes(lanes)).ufunc(x, y), expected)


@every_width_of_both
def test_loops_have_the_bits_of_the_interpreter(bits, lanes):
    @dl.kernel("(3),(20,3)->(3),(20),(3)")
    def f(model, x, A):
        last, squares = scan(lambda c, a: (dnp.sin(c) + 0.1 * a, c @ c), x, A)
        return last, squares, while_loop(lambda c: c @ c > 0.5, lambda c: 0.7 * c, x, 20)

    bits.check(f, lanes, bits.numbers(35, 3), bits.numbers(35, 20, 3, seed=1))


@both_precisions
@settings(max_examples=examples(60), deadline=None)
@given(
    program=programs(transcendental=True),
    width=st.integers(0, 3),
    chunk=st.sampled_from([1, 3, CHUNK]),
    full=st.booleans(),
    seed=st.integers(0, 99),
)
def test_random_programs_have_the_bits_of_the_interpreter(bits, program, width, chunk, full, seed):
    f = dl.kernel(f"({program.inputs})->({program.outputs})")(lambda model, x: program.function(x))
    lanes, host = bits.WIDTHS[width % len(bits.WIDTHS)], bits.FULL if full else bits.HOST
    bits.check(f, lanes, bits.numbers(19, program.inputs, seed=seed), chunk=chunk, host=host)


def test_states_of_a_kernel_with_large_frames_have_the_bits_of_single_ones():
    n = 6000  # two frames of which are beyond what is kept in the cache, so groups of lanes do not take turns

    @dl.kernel(f"(2)->({n})")
    def wide(model, x):
        return dnp.stack([x[0] * float(k) + x[1] for k in range(n)])

    x = np.random.default_rng(0).normal(size=(37, 2))
    f = wide.specialize(None)
    np.testing.assert_array_equal(f(x), np.stack([f(row) for row in x]))
