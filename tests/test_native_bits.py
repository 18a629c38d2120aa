"""Compiled code gives the interpreter's bits: at every lane width, in every batch and on any number of threads."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import delassus as dl
import delassus.numpy as dnp
from delassus.compiler.backends.interpreter import evaluate
from delassus.compiler.backends.llvm import states
from delassus.compiler.backends.schedule import CHUNK
from delassus.compiler.graph.program import LOGICAL
from delassus.compiler.host import runtime, threads
from delassus.model.generators import random_tree
from how_many import examples
from native_bits import FULL, HOST, SPECIAL, WIDTHS, assert_same_bits, check, compile_program, every_width, numbers
from programs import programs

TREE = random_tree(3, seed=5)


@pytest.fixture
def cut_small_batches(monkeypatch):
    """Batches from two groups on are cut over threads; the number of threads is put back at the end."""
    monkeypatch.setattr(threads, "_MINIMUM_FLOPS", 1)
    before = dl.threads()
    yield
    dl.threads(before)


@every_width
def test_forward_dynamics_has_the_bits_of_the_interpreter(lanes):
    check(dl.aba, lanes, *np.random.default_rng(1).normal(size=(3, 21, TREE.nv)), model=TREE)


@every_width
def test_forward_dynamics_of_special_numbers_has_the_bits_of_the_interpreter(lanes):
    check(dl.aba, lanes, *numbers(3, 33, TREE.nv), model=TREE)


@pytest.mark.skipif(not HOST.is_x86, reason="every 64-bit ARM has fused multiply-add")
@every_width
def test_a_machine_without_fused_multiply_add_has_the_bits_of_the_interpreter(lanes):
    features = ["-fma" if feature == "+fma" else feature for feature in HOST.features.split(",")]
    target = replace(HOST, features=",".join(features)).with_lanes(lanes)
    x = numbers(3, 33, TREE.nv)
    (expected,) = evaluate(dl.aba.program(TREE), *x, fma=False)
    assert_same_bits(dl.aba.compiled(TREE, target=target).ufunc(*x), expected)


def test_optimized_code_has_the_bits_of_unoptimized_code():
    x = numbers(3, 33, TREE.nv)
    fast = dl.aba.compiled(TREE, target=FULL).ufunc(*x)
    assert_same_bits(fast, dl.aba.compiled(TREE, target=HOST).ufunc(*x))


@every_width
def test_a_state_has_the_same_bits_in_every_batch_and_position(lanes):
    ufunc = dl.aba.compiled(TREE, target=HOST.with_lanes(lanes)).ufunc
    x = numbers(3, 70, TREE.nv)
    alone = np.array([ufunc(*x[:, k]) for k in range(70)])
    for size in range(1, 71):
        for start in range(71 - size):
            part = slice(start, start + size)
            assert_same_bits(ufunc(*x[:, part]), alone[part])


@pytest.mark.parametrize("count", [1, 2, 8])
def test_a_state_has_the_same_bits_on_any_number_of_threads(count, cut_small_batches):
    x = numbers(3, 70, TREE.nv)
    alone = np.array([dl.aba(TREE, *x[:, k]) for k in range(70)])
    dl.threads(count)
    for size in range(1, 71):
        assert_same_bits(dl.aba(TREE, *x[:, :size]), alone[:size])


@every_width
def test_a_batch_beyond_the_cpu_caches_has_the_bits_of_its_states(lanes):
    @dl.kernel("(8)->(8)")
    def f(model, x):
        return x * x[::-1] + 1.0

    ufunc = compile_program(f.program(None), lanes)
    x = np.random.default_rng(2).normal(size=(runtime.CACHE_BYTES // 128 + 2 * lanes + 1, 8))
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


@every_width
def test_frames_larger_than_the_stack_allows_live_on_the_heap(lanes):
    @dl.kernel("(9000)->(2)")
    def f(model, x):
        return dnp.stack([x[0] + x[8999], x[4000] * x[5000]])

    planned = check(f, lanes, numbers(5, 9000))
    assert 8 * planned.frame > states.STACK_BYTES


@every_width
def test_there_may_be_many_outputs(lanes):
    @dl.kernel("(4)->" + ",".join(["(2)"] * 40))
    def f(model, x):
        return tuple(x[:2] * (k + 1.0) + x[2:] for k in range(40))

    check(f, lanes, numbers(19, 4))


@every_width
@pytest.mark.parametrize("shape", [(1,), (7,), (8,), (9,), (17,), (3, 3), (1, 5), (5, 1), (2, 3, 4), (1, 1, 1)])
def test_cores_of_any_shape_arrive_and_leave_in_order(lanes, shape):
    @dl.kernel(f"({','.join(map(str, shape))})->({','.join(map(str, shape[::-1]))})")
    def f(model, x):
        return 2.0 * x.T

    check(f, lanes, numbers(19, *shape))


@every_width
def test_scalars_arrive_and_leave(lanes):
    @dl.kernel("(),()->(),()")
    def f(model, x, y):
        return x / y, dnp.sqrt(x)

    check(f, lanes, numbers(37), numbers(37, seed=1))


@every_width
def test_elementary_functions_have_the_bits_of_the_interpreter(lanes):
    @dl.kernel("()->(2),(4)")
    def f(model, x):
        return dnp.stack([dnp.sin(x), dnp.cos(x)]), dnp.stack(
            [dnp.sign(x), dnp.minimum(x, 0.5), dnp.maximum(0.5, x), abs(x)]
        )

    check(f, lanes, np.concatenate([SPECIAL, np.random.default_rng(4).normal(size=200) * 1e3, [2.0**50, 1e6]]))


@settings(max_examples=examples(60), deadline=None)
@given(
    program=programs(),
    lanes=st.sampled_from(WIDTHS),
    chunk=st.sampled_from([1, 3, CHUNK]),
    host=st.sampled_from([HOST, FULL]),
    seed=st.integers(0, 99),
)
def test_random_programs_have_the_bits_of_the_interpreter(program, lanes, chunk, host, seed):
    f = dl.kernel(f"({program.inputs})->({program.outputs})")(lambda model, x: program.function(x))
    check(f, lanes, numbers(19, program.inputs, seed=seed), chunk=chunk, host=host)


def test_states_of_a_kernel_with_large_frames_have_the_bits_of_single_ones():
    n = 6000  # two frames of which are beyond what is kept in the cache, so groups of lanes do not take turns

    @dl.kernel(f"(2)->({n})")
    def wide(model, x):
        return dnp.stack([x[0] * float(k) + x[1] for k in range(n)])

    x = np.random.default_rng(0).normal(size=(37, 2))
    f = wide.specialize(None)
    np.testing.assert_array_equal(f(x), np.stack([f(row) for row in x]))
