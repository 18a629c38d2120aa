"""Code for single states and for batches: each is compiled when it is first needed, whoever needs it."""

import ctypes
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import delassus as dl
import delassus.numpy as dnp
from delassus.compiler.backends import native
from delassus.compiler.backends.interpreter import evaluate
from delassus.compiler.backends.llvm import module
from delassus.compiler.tracing.flow.control import map as map_rounds
from delassus.model.generators import random_tree
from native_bits import HOST, assert_same_bits, compile_program

X = np.linspace(-1.0, 2.0, 15).reshape(5, 3)
TREE = random_tree(12, seed=3)
needs_lanes = pytest.mark.skipif(HOST.lanes == 1, reason="needs vectors")


def cubic():
    """A new kernel, and the list of its traces."""
    traces = []

    @dl.kernel("(3)->(3)")
    def cube(model, x):
        traces.append(model)
        return x * x * x - 0.25

    return cube, traces


EXPECTED = X * X * X - 0.25


@pytest.fixture
def compiled(monkeypatch):
    """The numbers of lanes that LLVM was asked for, in a list that grows; nothing is kept on disk."""
    monkeypatch.setenv("DELASSUS_CACHE", "off")
    lanes, true = [], native.emit_objects

    def emit_objects(texts, target):
        lanes.append(1 if "@body1_0_x1(" in texts[0] else target.lanes)
        return true(texts, target)

    monkeypatch.setattr(native, "emit_objects", emit_objects)
    return lanes


# What is compiled when.


def test_nothing_is_compiled_before_the_first_call(compiled):
    cubic()[0].specialize(None)
    assert compiled == []


@needs_lanes
@pytest.mark.parametrize("call", [lambda f, x: f(None, x), lambda f, x: f.specialize(None)(x)], ids=["kernel", "ufunc"])
def test_a_state_and_a_batch_have_code_of_their_own(compiled, call):
    cube, _ = cubic()
    np.testing.assert_allclose(call(cube, X[0]), EXPECTED[0], rtol=1e-15)
    assert compiled == [1]
    np.testing.assert_allclose(call(cube, X), EXPECTED, rtol=1e-15)
    assert compiled == [1, HOST.lanes]
    assert_same_bits(call(cube, X)[3], call(cube, X[3]))
    assert compiled == [1, HOST.lanes]


@needs_lanes
def test_the_second_code_needs_no_second_trace(compiled):
    cube, traces = cubic()
    cube(None, X)
    cube(None, X[0])
    assert (compiled, traces) == ([HOST.lanes, 1], [None])


def test_both_codes_are_of_the_program_that_was_traced(compiled):
    factor = 2.0
    scale = dl.kernel("(3)->(3)")(lambda model, x: factor * x)
    assert scale(None, X[0])[0] == -2.0
    factor = 3.0
    assert scale(None, X)[0, 0] == -2.0


@needs_lanes
@pytest.mark.parametrize(("x", "lanes"), [(X[0].copy(), 1), (X.copy(), HOST.lanes), (X[:1].copy(), 1)])
def test_bound_arrays_get_the_code_for_their_number(compiled, x, lanes):
    y = np.empty_like(x)
    bound = cubic()[0].bind(None, x, y)
    assert compiled == [lanes]
    bound()
    np.testing.assert_allclose(y, x * x * x - 0.25, rtol=1e-15)
    assert compiled == [lanes]


@needs_lanes
@pytest.mark.parametrize(("batch", "lanes"), [(None, [1, HOST.lanes]), (False, [1]), (True, [HOST.lanes])])
def test_a_kernel_is_warmed_up_without_a_call(compiled, batch, lanes):
    cube, _ = cubic()
    cube.warm_up(None, batch=batch)
    assert compiled == lanes
    cube(None, X if batch else X[0])
    assert compiled == lanes


def test_a_large_batch_does_not_need_the_code_for_one_state(compiled):
    heavy = dl.kernel("(3)->(3)")(lambda model, x: sum((x * (k + 0.5) for k in range(4000)), x))
    before = dl.threads()
    dl.threads(2)
    try:
        heavy(None, np.ones((1009, 3)))
    finally:
        dl.threads(before)
    assert compiled == [HOST.lanes]


# Compiling in the middle of a ufunc.


BATCHES = {
    "state": X[0],
    "batch": X,
    "strided": np.repeat(X, 2, 0)[::2],
    "several loops": np.broadcast_to(X[:, None], (5, 4, 3)),
    "other dtype": X.astype(np.float32),
}


@pytest.mark.parametrize("error", [KeyboardInterrupt("stop"), MemoryError("full")], ids=repr)
@pytest.mark.parametrize("x", BATCHES.values(), ids=BATCHES)
def test_an_exception_of_the_compiler_comes_out_of_the_ufunc(x, error, monkeypatch):
    monkeypatch.setenv("DELASSUS_CACHE", "off")
    ufunc = cubic()[0].specialize(None)

    def failing(*args):
        raise error

    with monkeypatch.context() as patch, pytest.raises(type(error), match=str(error)):
        patch.setattr(native, "emit_objects", failing)
        ufunc(x)
    np.testing.assert_allclose(ufunc(x), np.float64(x) ** 3 - 0.25, rtol=1e-6)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="raises flags by the C library")
def test_compiling_leaves_no_flags_of_arithmetic(monkeypatch):
    monkeypatch.setenv("DELASSUS_CACHE", "off")
    ufunc, true = cubic()[0].specialize(None), native.emit_objects

    def careless(*args):
        ctypes.CDLL(None).feraiseexcept(1)  # FE_INVALID
        return true(*args)

    monkeypatch.setattr(native, "emit_objects", careless)
    with np.errstate(all="raise"):
        np.testing.assert_allclose(ufunc(X), EXPECTED, rtol=1e-15)


def test_many_threads_that_call_a_ufunc_first_compile_it_once(compiled):
    ufunc, start = cubic()[0].specialize(None), threading.Barrier(8)

    def work(k):
        start.wait()
        return ufunc(X + k)

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(8)))
    assert compiled == [HOST.lanes]
    np.testing.assert_array_equal(results, [ufunc(X + k) for k in range(8)])


@pytest.mark.filterwarnings("ignore:os.fork")  # by others that the process has imported
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_makes_the_code_that_its_parent_had_not_needed():
    ufunc = cubic()[0].specialize(None)
    ufunc(X[0])
    pid = os.fork()
    if not pid:
        os._exit(0 if np.allclose(ufunc(X), EXPECTED) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_ufunc_that_is_called_in_a_trace_for_the_first_time_is_made(compiled):
    ufunc = cubic()[0].specialize(None)
    outer = dl.kernel("(3)->(3)")(lambda model, x: x + ufunc(X)[0])
    np.testing.assert_allclose(outer(None, X[1]), X[1] + EXPECTED[0], rtol=1e-15)


@needs_lanes
def test_a_batch_without_memory_for_its_frames_goes_one_by_one():
    cube = cubic()[0]
    compiled = cube.compiled(None)
    compiled.widths.need(many=True)
    ((_, _, words),) = compiled.widths._descriptor._codes
    no_memory = ctypes.CFUNCTYPE(ctypes.c_bool, *[ctypes.c_void_p] * 5)(lambda *arguments: False)
    words.states = ctypes.cast(no_memory, ctypes.c_void_p).value
    np.testing.assert_allclose(compiled.ufunc(X), EXPECTED, rtol=1e-15)


# Memory, disk and parts.


@needs_lanes
def test_text_is_kept_for_the_other_code_only(compiled):
    kernel = cubic()[0].compiled(None)
    kernel.ufunc(X)
    assert kernel.widths._kept
    kernel.ufunc(X[0])
    assert not kernel.widths._kept


@needs_lanes
@pytest.mark.parametrize("gone", [0, 1])
def test_each_code_is_an_entry_of_the_cache(gone, tmp_path, monkeypatch):
    monkeypatch.setenv("DELASSUS_CACHE", str(tmp_path / "cache"))
    states = np.ones((3, 4, 12))
    built = dl.kernel("(nq),(nv),(nv)->(nv)")(dl.aba.function)
    built(TREE, *states)
    built(TREE, *states[:, 0])
    entries = sorted((tmp_path / "cache").glob("*.object.delassus"), key=lambda path: path.stat().st_mtime_ns)
    entries[-1 - gone].unlink()
    asked, true = [], native.emit_objects
    monkeypatch.setattr(native, "emit_objects", lambda *args: asked.append(args) or true(*args))
    again = dl.kernel("(nq),(nv),(nv)->(nv)")(dl.aba.function)
    assert_same_bits(again(TREE, *states)[0], again(TREE, *states[:, 0]))
    assert len(asked) == 1


@dl.kernel("(6),(6,6)->(6),(6)")
def mixed(model, x, a):
    """Straight-line code around rounds that can be side by side."""
    y = dnp.sin(a @ x)
    rows = map_rounds(lambda row: dnp.sum(row * y) * row[0], a)
    return y * rows, dnp.cos(rows) + x


def test_parts_that_are_compiled_apart_have_the_same_bits(monkeypatch):
    monkeypatch.setattr(module, "PART", 30)
    program = mixed.program(None)
    rng = np.random.default_rng(0)
    x, a = rng.normal(size=(19, 6)), rng.normal(size=(19, 6, 6))
    ufunc = compile_program(program, HOST.lanes, chunk=20)
    expected = evaluate(program, x, a, fma=HOST.fma)
    for together, alone, right in zip(ufunc(x, a), ufunc(x[7], a[7]), expected, strict=True):
        assert_same_bits(together, right)
        assert_same_bits(alone, right[7])


def test_a_kernel_of_several_parts_says_so(monkeypatch):
    monkeypatch.setattr(module, "PART", 30)
    seen, true = [], native.emit_objects
    monkeypatch.setattr(native, "emit_objects", lambda texts, target: seen.append(len(texts)) or true(texts, target))
    compile_program(mixed.program(None), HOST.lanes, chunk=20)(np.ones(6), np.ones((6, 6)))
    assert seen[0] > 2


def test_a_part_that_llvm_refuses_is_an_exception(monkeypatch):
    monkeypatch.setattr(native, "CORES", 3)
    with pytest.raises(RuntimeError, match="LLVM IR parsing error"):
        native.emit_objects(["", "nonsense", "", ""], HOST)


def test_objects_come_out_of_a_package_as_they_went_in():
    for objects in ([b"one"], [b"", b"two", b"three" * 100]):
        assert native.unpack(native.pack(objects)) == objects
