"""A bound kernel recomputes in place: the ufunc's bits, arrays checked once and kept alive."""

import gc
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import delassus as dl
import delassus.numpy as dnp
from delassus.compiler.host.bound import bind
from delassus.model.generators import chain

TREE = chain(2)


@dl.kernel("(3),(2,3),()->(3),(2)")
def mixed(model, x, A, s):
    return x * s + A[0], A @ x


@dl.kernel("(3)->(3)")
def step(model, x):
    return x[::-1] * 1.5 + 1.0


@dl.kernel("()->()")
def root(model, x):
    return dnp.sqrt(x) + 1.0


def arrays(*batch, seed=0):
    """Inputs and outputs of `mixed`."""
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(*batch, 3)), rng.normal(size=(*batch, 2, 3)), rng.normal(size=batch)
    return (*inputs, np.full((*batch, 3), np.nan), np.full((*batch, 2), np.nan))


def vectors(*batch, seed=0):
    return np.random.default_rng(seed).normal(size=(*batch, 3))


class Memory:
    """Owns the memory of an array, and can be watched by a weak reference."""

    def __init__(self, numbers):
        self.numbers = numbers
        self.__array_interface__ = numbers.__array_interface__


@pytest.mark.parametrize("batch", [(), (1,), (7,), (19,), (3, 5), (2, 1, 4)])
def test_a_bound_call_has_the_bits_of_the_ufunc(batch):
    x, A, s, y, z = arrays(*batch)
    mixed.bind(None, x, A, s, y, z)()
    expected = mixed.specialize(None)(x, A, s)
    np.testing.assert_array_equal(y, expected[0])
    np.testing.assert_array_equal(z, expected[1])


def test_a_bound_call_returns_none():
    assert mixed.bind(None, *arrays())() is None


def test_nothing_is_computed_before_the_call():
    x, A, s, y, z = arrays(7)
    mixed.bind(None, x, A, s, y, z)
    assert np.isnan(y).all()


def test_a_call_sees_what_changed_in_the_inputs():
    x, A, s, y, z = arrays(7)
    call = mixed.bind(None, x, A, s, y, z)
    call()
    x += 1.0
    call()
    np.testing.assert_array_equal(z, mixed.specialize(None)(x, A, s)[1])


def test_options_can_be_chosen():
    f = dl.kernel("()->()")(lambda model, x, *, gain=1.0: x * gain)
    x, y = np.array(2.0), np.array(0.0)
    f.bind(None, x, y, gain=3.0)()
    assert y == 6.0


def test_an_empty_batch_can_be_bound():
    assert mixed.bind(None, *arrays(0))() is None


def test_a_large_batch_runs_without_the_lock_of_python():
    states = bind._RELEASE_ABOVE // step.compiled(None).flops + 1
    x, y = vectors(states), np.empty((states, 3))
    step.bind(None, x, y)()
    np.testing.assert_array_equal(y, step.specialize(None)(x))


@pytest.mark.parametrize(
    "layout",
    [
        np.asfortranarray,
        lambda x: np.repeat(x, 2, axis=0)[::2],
        lambda x: np.repeat(x, 3, axis=-1)[..., ::3],
        lambda x: x[::-1].copy()[::-1],
        lambda x: x[..., ::-1].copy()[..., ::-1],
    ],
    ids=["Fortran order", "every other state", "every third element", "states backwards", "elements backwards"],
)
def test_arrays_need_not_be_contiguous(layout):
    x, y = layout(vectors(19)), layout(np.zeros((19, 3)))
    step.bind(None, x, y)()
    np.testing.assert_array_equal(y, step.specialize(None)(x))


def test_an_input_may_repeat_with_zero_stride():
    x, y = np.broadcast_to(vectors(), (19, 3)), np.empty((19, 3))
    step.bind(None, x, y)()
    np.testing.assert_array_equal(y, step.specialize(None)(x))


def test_a_matrix_of_numpy_is_walked_like_an_array():
    with pytest.warns(PendingDeprecationWarning):
        x, y = np.matrix([[1.0, 4.0, 9.0], [16.0, 25.0, 36.0]]), np.matrix(np.zeros((2, 3)))
    root.bind(None, x, y)()
    np.testing.assert_array_equal(y, [[2.0, 3.0, 4.0], [5.0, 6.0, 7.0]])


def test_the_output_may_be_the_input():
    x = vectors(19)
    expected = x.copy()
    call = step.bind(None, x, x)
    for _ in range(3):
        call()
        expected = step.specialize(None)(expected)
    np.testing.assert_array_equal(x, expected)


def test_output_and_input_may_be_columns_of_one_array():
    memory = np.random.default_rng(0).normal(size=(19, 6))
    expected = step.specialize(None)(memory[:, :3].copy())
    step.bind(None, memory[:, :3], memory[:, 3:])()
    np.testing.assert_array_equal(memory[:, 3:], expected)


# Refusals.


@pytest.mark.parametrize("shift", [1, 3, 30])
def test_an_output_that_overlaps_an_input_partly_is_refused(shift):
    memory = np.zeros(90)
    with pytest.raises(ValueError, match="output 0 overlaps array 0"):
        step.bind(None, memory[:57].reshape(19, 3), memory[shift : shift + 57].reshape(19, 3))


def test_two_outputs_that_overlap_are_refused():
    f = dl.kernel("(3)->(3),(3)")(lambda model, x: (x, x + 1.0))
    x, y = vectors(19), np.empty((19, 3))
    with pytest.raises(ValueError, match="output 1 overlaps array 1"):
        f.bind(None, x, y, y)


def test_the_input_backwards_is_refused_as_output():
    x = vectors(19)
    with pytest.raises(ValueError, match="output 0 overlaps array 0"):
        step.bind(None, x, x[::-1])


@pytest.mark.parametrize("strides", [(0, 8), (8, 8), (24, 0)])
def test_an_output_that_repeats_elements_is_refused(strides):
    y = np.lib.stride_tricks.as_strided(np.zeros(60), (19, 3), strides)
    with pytest.raises(ValueError, match="several indices of output 0 refer to the same memory"):
        step.bind(None, vectors(19), y)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, complex, object, ">f8"])
def test_another_dtype_is_refused(dtype):
    with pytest.raises(TypeError, match="x must be a float64 array"):
        step.bind(None, np.zeros(3, dtype), np.zeros(3))


@pytest.mark.parametrize(
    "other",
    [[0.0, 0.0, 0.0], 1.0, None, "text", memoryview(b"12345678")],
    ids=["list", "float", "none", "text", "memory"],
)
def test_what_is_no_array_is_refused(other):
    with pytest.raises(TypeError, match="output 0 must be a float64 array"):
        step.bind(None, np.zeros(3), other)


@pytest.mark.parametrize("shape", [(2,), (4,), (), (3, 1), (19, 4)])
def test_a_wrong_core_is_refused(shape):
    with pytest.raises(ValueError, match=r"its core must be \(3,\)"):
        step.bind(None, np.zeros(shape), np.zeros(3))


@pytest.mark.parametrize(("one", "two"), [((19,), (18,)), ((19,), ()), ((3, 4), (12,)), ((2, 3), (3, 2))])
def test_different_batches_are_refused(one, two):
    with pytest.raises(ValueError, match="different batch axes"):
        step.bind(None, np.zeros((*one, 3)), np.zeros((*two, 3)))


def test_a_read_only_output_is_refused():
    y = np.zeros(3)
    y.flags.writeable = False
    with pytest.raises(ValueError, match="output 0 is read-only"):
        step.bind(None, np.zeros(3), y)


def test_an_unaligned_array_is_refused():
    x = np.zeros(25, np.uint8)[1:].view(float)
    with pytest.raises(ValueError, match="x is not aligned"):
        step.bind(None, x, np.zeros(3))


def test_batch_axes_without_a_common_stride_are_refused():
    x = np.zeros((4, 10, 3))[:, ::2][:, :3]
    with pytest.raises(ValueError, match="need more than one stride"):
        step.bind(None, x, np.zeros((4, 3, 3)))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_wrong_number_of_arrays_is_refused(count):
    with pytest.raises(TypeError, match="takes 1 inputs and 1 outputs, 2 arrays in all"):
        step.bind(None, *[np.zeros(3)] * count)


def test_a_bound_call_takes_no_arguments():
    with pytest.raises(TypeError, match="no arguments"):
        step.bind(None, np.zeros(3), np.zeros(3))(1)


# Lifetimes.


def test_arrays_stay_alive_while_they_are_bound():
    x, y = vectors(2000), np.zeros((2000, 3))
    expected = step.specialize(None)(x)
    call, seen = step.bind(None, x, y), y[:5]
    del x, y
    gc.collect()
    others = [np.full((2000, 3), 7.0) for _ in range(5)]
    call()
    np.testing.assert_array_equal(seen, expected[:5])
    assert all(np.all(other == 7.0) for other in others)


def test_arrays_are_released_with_the_bound_call():
    x, y = np.asarray(Memory(vectors(5))), np.asarray(Memory(np.zeros((5, 3))))
    call, watched = step.bind(None, x, y), [weakref.ref(x.base), weakref.ref(y.base)]
    call()
    del x, y
    gc.collect()
    assert all(w() is not None for w in watched)
    del call
    gc.collect()
    assert all(w() is None for w in watched)


def test_a_bound_array_cannot_be_resized():
    x = np.zeros(3)
    call = step.bind(None, x, np.zeros(3))
    with pytest.raises(ValueError, match="resize"):
        x.resize(300_000)
    call()


def test_calls_do_not_count_references_of_none_wrongly():
    call = step.bind(None, np.zeros(3), np.zeros(3))
    before = sys.getrefcount(None)
    for _ in range(100_000):
        call()
    assert abs(sys.getrefcount(None) - before) < 1000


def test_binding_does_not_leak():
    x, y = np.zeros(3), np.zeros(3)
    step.bind(None, x, y)
    before = sys.getrefcount(x)
    for _ in range(1000):
        step.bind(None, x, y)()
    gc.collect()
    assert sys.getrefcount(x) == before


# Threads.


def test_threads_may_call_bound_kernels_at_once():
    def work(seed):
        q, v, tau = np.random.default_rng(seed).normal(size=(3, 40, TREE.nv))
        a = np.empty((40, TREE.nv))
        call = dl.aba.bind(TREE, q, v, tau, a)
        for _ in range(200):
            a[...] = 0.0
            call()
        return np.array_equal(a, dl.aba.specialize(TREE)(q, v, tau))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))


def test_threads_may_share_a_bound_kernel():
    x, y = vectors(5000), np.empty((5000, 3))
    call = step.bind(None, x, y)
    workers = [threading.Thread(target=lambda: [call() for _ in range(50)]) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    np.testing.assert_array_equal(y, step.specialize(None)(x))


def test_first_binds_at_once_in_several_threads_share_one_definition(monkeypatch):
    monkeypatch.setattr(bind, "_made", {})
    step.compiled(None)
    start = threading.Barrier(4)

    def work(_):
        x, y = vectors(5), np.empty((5, 3))
        start.wait()
        call = step.bind(None, x, y)
        call()
        return np.array_equal(y, step.specialize(None)(x)), id(bind._methods()[False])

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(work, range(4)))
    assert len(set(results)) == 1
    assert results[0][0]
