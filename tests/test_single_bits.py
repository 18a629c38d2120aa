"""float32 kernels give the float32 interpreter's bits: at every lane width, in every batch and on any thread."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import delassus as dl
import delassus.numpy as dnp
from delassus.compiler.backends.llvm import states
from delassus.compiler.backends.schedule import CHUNK
from delassus.compiler.host import runtime, threads
from delassus.compiler.tracing.flow.control import scan, while_loop
from delassus.model.generators import random_tree
from how_many import examples
from programs import programs
from single_bits import (
    FULL,
    HOST,
    SPECIAL,
    WIDTHS,
    assert_same_bits,
    check,
    compile_program,
    every_width,
    interpret,
    numbers,
)

TREE = random_tree(3, seed=5)


@every_width
def test_forward_dynamics_has_the_bits_of_the_interpreter(lanes):
    x = np.random.default_rng(1).normal(size=(3, 37, TREE.nv)).astype(np.float32)
    check(dl.aba, lanes, *x, model=TREE)


@every_width
def test_forward_dynamics_of_special_numbers_has_the_bits_of_the_interpreter(lanes):
    check(dl.aba, lanes, *numbers(3, 65, TREE.nv), model=TREE)


@pytest.mark.skipif(not HOST.is_x86, reason="every 64-bit ARM has fused multiply-add")
@every_width
def test_a_machine_without_fused_multiply_add_has_the_bits_of_the_interpreter(lanes):
    features = ["-fma" if feature == "+fma" else feature for feature in HOST.features.split(",")]
    target = replace(HOST, features=",".join(features)).with_lanes(lanes)
    x = numbers(3, 65, TREE.nv)
    (expected,) = interpret(dl.aba.program(TREE), *x, fma=False)
    assert_same_bits(dl.aba.compiled(TREE, target=target).ufunc(*x), expected)


def test_optimized_code_has_the_bits_of_unoptimized_code():
    x = numbers(3, 65, TREE.nv)
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
def test_a_state_has_the_same_bits_on_any_number_of_threads(count, monkeypatch):
    monkeypatch.setattr(threads, "_MINIMUM_FLOPS", 1)
    before, x = dl.threads(), numbers(3, 70, TREE.nv)
    alone = np.array([dl.aba(TREE, *x[:, k], dtype=np.float32) for k in range(70)])
    try:
        dl.threads(count)
        for size in range(1, 71):
            assert_same_bits(dl.aba(TREE, *x[:, :size], dtype=np.float32), alone[:size])
    finally:
        dl.threads(before)


@every_width
def test_a_batch_beyond_the_cpu_caches_has_the_bits_of_its_states(lanes):
    @dl.kernel("(16)->(16)")
    def f(model, x):
        return x * x[::-1] + 1.0

    ufunc = compile_program(f.program(None), lanes)
    x = np.random.default_rng(2).normal(size=(runtime.CACHE_BYTES // 128 + 2 * lanes + 1, 16)).astype(np.float32)
    np.testing.assert_array_equal(ufunc(x), np.concatenate([ufunc(part) for part in np.array_split(x, 50)]))


@every_width
@pytest.mark.parametrize("shape", [(1,), (7,), (15,), (16,), (17,), (33,), (3, 3), (5, 1), (2, 3, 4), (1, 1, 1)])
def test_cores_of_any_shape_arrive_and_leave_in_order(lanes, shape):
    @dl.kernel(f"({','.join(map(str, shape))})->({','.join(map(str, shape[::-1]))})")
    def f(model, x):
        return 2.0 * x.T

    check(f, lanes, numbers(35, *shape))


@every_width
def test_cores_of_any_strides_arrive_and_leave_in_order(lanes):
    @dl.kernel("(18)->(18)")
    def f(model, x):
        return 3.0 * x

    ufunc = compile_program(f.program(None), lanes)
    x, out = numbers(40, 36)[:, ::-2], np.zeros((18, 40), np.float32)
    ufunc(x, out=out.T)
    assert_same_bits(out.T, *interpret(f.program(None), x))


@every_width
@pytest.mark.parametrize("chunk", [1, 5, CHUNK])
def test_inputs_constants_and_truth_values_leave_as_they_are(lanes, chunk):
    @dl.kernel("(4)->(4),(4),(),(4)")
    def f(model, x):
        positive, small = x > 0.0, abs(x) < 1.0
        return x, dnp.array([0.0, 0.1, np.inf, np.nan]), dnp.any(x > 1.0), dnp.where(positive ^ small, x, x * x)

    check(f, lanes, numbers(35, 4), chunk=chunk)


@every_width
def test_frames_larger_than_the_stack_allows_live_on_the_heap(lanes):
    @dl.kernel("(18000)->(2)")
    def f(model, x):
        return dnp.stack([x[0] + x[17999], x[8000] * x[10000]])

    check(f, lanes, numbers(5, 18000))
    assert 4 * 18000 > states.STACK_BYTES


TRIGONOMETRIC = [dnp.sin, dnp.cos, dnp.tan, dnp.arcsin, dnp.arccos, dnp.arctan]
EXPONENTIAL = [dnp.exp, dnp.expm1, dnp.log, dnp.log1p, dnp.sinh, dnp.cosh, dnp.tanh]
BINARY = [dnp.arctan2, dnp.hypot, dnp.power, dnp.minimum, dnp.maximum]


@dl.kernel("(),()->(20)")
def functions(model, x, y):
    unary = [f(x) for f in (*TRIGONOMETRIC, *EXPONENTIAL, dnp.sign, dnp.sqrt)]
    return dnp.stack([*unary, *(f(x, y) for f in BINARY)])


def pairs():
    """Corners, and numbers of every size."""
    limits = [88.72, -87.34, 89.4, 3e6, 12868.0]
    corners = np.stack(np.meshgrid([*SPECIAL, *limits], [*SPECIAL, *limits])).reshape(2, -1)
    rng = np.random.default_rng(3)
    sizes = rng.choice([-1.0, 1.0], (2, 2000)) * 2.0 ** rng.uniform(-126, 127.9, (2, 2000))
    ranges = [rng.uniform(-end, end, (2, 2000)) for end in (1.0, 30.0, 1e4)]
    return np.concatenate([corners, sizes, *ranges], axis=1).astype(np.float32)


@every_width
def test_elementary_functions_have_the_bits_of_the_interpreter(lanes):
    x, y = pairs()
    (expected,) = interpret(functions.program(None), x, y)
    assert_same_bits(functions.compiled(None, target=HOST.with_lanes(lanes)).ufunc(x, y), expected)


@every_width
def test_loops_have_the_bits_of_the_interpreter(lanes):
    @dl.kernel("(3),(20,3)->(3),(20),(3)")
    def f(model, x, A):
        last, squares = scan(lambda c, a: (dnp.sin(c) + 0.1 * a, c @ c), x, A)
        return last, squares, while_loop(lambda c: c @ c > 0.5, lambda c: 0.7 * c, x, 20)

    check(f, lanes, numbers(35, 3), numbers(35, 20, 3, seed=1))


@settings(max_examples=examples(60), deadline=None)
@given(
    program=programs(transcendental=True),
    lanes=st.sampled_from(WIDTHS),
    chunk=st.sampled_from([1, 3, CHUNK]),
    host=st.sampled_from([HOST, FULL]),
    seed=st.integers(0, 99),
)
def test_random_programs_have_the_bits_of_the_interpreter(program, lanes, chunk, host, seed):
    f = dl.kernel(f"({program.inputs})->({program.outputs})")(lambda model, x: program.function(x))
    check(f, lanes, numbers(19, program.inputs, seed=seed), chunk=chunk, host=host)
