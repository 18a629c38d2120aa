"""Large batches over threads: the bits of one thread, whatever the arrays; errors and shortages reach nobody else."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import delassus as dl
import delassus.numpy as dnp
from delassus.compiler.backends import native
from delassus.compiler.host import threads as module


@dl.kernel("(5),(3,3)->(5),()")
def mixed(model, x, A):
    return dnp.sin(x) * A[0, 1] + A[2, 2], dnp.sum(x) / A[1, 1]


@dl.kernel("(3)->(3)")
def cubes(model, x):
    return x * x * x + 1.0


UFUNC = mixed.specialize(None)


def arrays(x_batch, A_batch, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(*x_batch, 5)), rng.normal(size=(*A_batch, 3, 3))


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Every batch of two groups or more is worth cutting; the number of threads is put back at the end."""
    monkeypatch.setattr(module, "_MINIMUM_FLOPS", 1)
    before = dl.threads()
    dl.threads(3)
    yield
    dl.threads(before)


@pytest.fixture
def pieces(monkeypatch):
    """The parts that were handed to threads, in a list that grows."""
    seen = []
    submit = module._workers.submit

    def spy(task, part):
        seen.append(part)
        return submit(task, part)

    monkeypatch.setattr(module._workers, "submit", spy)
    return seen


# The number of threads.


@pytest.mark.parametrize("n", [5, np.int64(5), np.uint8(5)], ids=repr)
def test_the_number_of_threads_can_be_set_and_read(n):
    assert (dl.threads(n), dl.threads()) == (5, 5)


@pytest.mark.parametrize("n", [0, -1, 2.0, True, "2", [2]], ids=repr)
def test_a_number_of_threads_that_is_none_is_refused(n):
    with pytest.raises(ValueError, match="positive integer"):
        dl.threads(n)


def test_after_a_refused_number_the_old_one_holds():
    with pytest.raises(ValueError, match="positive integer"):
        dl.threads(0)
    assert dl.threads() == 3


def test_one_thread_hands_nothing_over(pieces):
    dl.threads(1)
    mixed(None, *arrays((100,), (100,)))
    assert pieces == []


def test_a_large_batch_is_handed_over(pieces):
    mixed(None, *arrays((100,), (100,)))
    assert pieces == [slice(48, 96), slice(96, 100)]


def test_the_longest_axis_is_cut(pieces):
    mixed(None, *arrays((3, 100), (3, 100)))
    assert pieces == [slice(48, 96), slice(96, 100)]


def test_a_small_batch_is_not_handed_over(pieces, monkeypatch):
    monkeypatch.setattr(module, "_MINIMUM_FLOPS", 10**9)
    mixed(None, *arrays((100,), (100,)))
    assert pieces == []


# The same bits.


@pytest.mark.parametrize("count", [1, 2, 8])
@pytest.mark.parametrize(
    ("x_batch", "A_batch"),
    [
        ((100,), (100,)),
        ((100,), ()),
        ((), (100,)),
        ((1,), (100,)),
        ((3, 70), (3, 70)),
        ((70, 3), (70, 3)),
        ((70, 1), (40,)),
        ((4, 1, 33), (5, 1)),
        ((33,), (4, 5, 1)),
        ((1, 1), (1, 90)),
    ],
)
def test_results_have_the_bits_of_one_thread(count, x_batch, A_batch):
    x, A = arrays(x_batch, A_batch)
    dl.threads(count)
    for actual, expected in zip(mixed(None, x, A), UFUNC(x, A), strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_one_state_of_a_kernel_that_does_much_is_not_cut():
    x, A = arrays((), ())
    np.testing.assert_array_equal(mixed(None, x, A)[0], UFUNC(x, A)[0])


def test_an_empty_batch_is_not_cut():
    x, A = arrays((100, 0), (0,))
    assert [y.shape for y in mixed(None, x, A)] == [(100, 0, 5), (100, 0)]


@pytest.mark.parametrize(
    "layout",
    [
        np.asfortranarray,
        lambda x: np.repeat(x, 2, axis=0)[::2],
        lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
        lambda x: x[::-1],
        lambda x: x.astype(np.float32),
        lambda x: x.astype(">f8"),
    ],
    ids=["Fortran order", "every other state", "every other element", "backwards", "float32", "byte-swapped"],
)
def test_the_layout_does_not_matter(layout, pieces):
    x, A = map(layout, arrays((100,), (100,)))
    for actual, expected in zip(mixed(None, x, A), UFUNC(x, A), strict=True):
        np.testing.assert_array_equal(actual, expected)
    assert pieces


def test_out_receives_the_results(pieces):
    x, A = arrays((100,), (100,))
    outs = np.empty((100, 5)), np.empty(100)
    assert all(a is b for a, b in zip(mixed(None, x, A, out=outs), outs, strict=True))
    np.testing.assert_array_equal(outs[0], UFUNC(x, A)[0])
    assert pieces


def test_a_single_out_is_returned_itself(pieces):
    x, out = np.ones((100, 3)), np.empty((200, 3))[::2]
    assert cubes(None, x, out=out) is out
    assert np.all(out == 2.0)
    assert pieces


def test_out_of_a_larger_batch_is_filled():
    x, out = np.ones((100, 3)), np.empty((2, 100, 3))
    cubes(None, x, out=out)
    assert np.all(out == 2.0)


@pytest.mark.parametrize("shift", [-40, -1, 0, 1, 16, 40])
def test_out_may_overlap_the_input(shift):
    memory = np.random.default_rng(0).normal(size=(200, 3))
    source, target = slice(50, 150), slice(50 + shift, 150 + shift)
    expected = cubes.specialize(None)(memory[source].copy())
    cubes(None, memory[source], out=memory[target])
    np.testing.assert_array_equal(memory[target], expected)


def test_callers_in_several_threads_do_not_mix():
    def work(seed):
        x, A = arrays((100,), (100,), seed)
        return all(np.array_equal(mixed(None, x, A)[0], UFUNC(x, A)[0]) for _ in range(20))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_the_number_of_threads_may_change_while_others_compute():
    x, A = arrays((100,), (100,))
    expected = UFUNC(x, A)[0]
    stop = threading.Event()

    def change():
        while not stop.is_set():
            dl.threads(2)
            dl.threads(5)

    changer = threading.Thread(target=change)
    changer.start()
    try:
        results = [mixed(None, x, A)[0] for _ in range(100)]
    finally:
        stop.set()
        changer.join()
    assert all(np.array_equal(result, expected) for result in results)


# First use.


def test_first_use_from_many_threads_builds_once(monkeypatch):
    monkeypatch.setenv("DELASSUS_CACHE", "off")
    built, true = [], native.emit_objects
    monkeypatch.setattr(native, "emit_objects", lambda *args: built.append(args) or true(*args))
    f = dl.kernel("(3)->(3)")(lambda model, x: x * 0.125 - 7.0)
    start = threading.Barrier(8)

    def work(k):
        start.wait()
        return f(None, np.full(3, float(k)))

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(8)))
    np.testing.assert_array_equal(results, [[k * 0.125 - 7.0] * 3 for k in range(8)])
    assert len(built) == 1


def test_first_use_of_different_models_at_once_keeps_them_apart():
    f = dl.kernel("(3)->(3)")(lambda model, x: x * float(model))
    start = threading.Barrier(8)

    def work(k):
        start.wait()
        return f(k, np.ones(3))[0]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == list(range(8))


# Errors.


def test_an_error_in_the_first_piece_reaches_the_caller():
    out = np.empty((100, 3))
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        cubes(None, np.ones((100, 3)), out=out)


def test_an_error_in_another_piece_reaches_the_caller():
    kernel = cubes.compiled(None)
    calls = []

    def ufunc(*args, **kwargs):
        calls.append(args)
        if threading.current_thread().name.startswith("delassus"):
            raise ZeroDivisionError("in a thread")
        return kernel.ufunc(*args, **kwargs)

    broken = type(kernel)(**{**vars(kernel), "ufunc": ufunc})
    with pytest.raises(ZeroDivisionError, match="in a thread"):
        module.run(broken, (np.ones((100, 3)),), None)


def test_after_an_error_no_piece_is_under_way():
    kernel = cubes.compiled(None)
    finished, release = [], threading.Event()

    def ufunc(*args, **kwargs):
        if not threading.current_thread().name.startswith("delassus"):
            release.set()
            raise ZeroDivisionError("here")
        release.wait(10)
        finished.append(kernel.ufunc(*args, **kwargs))

    broken = type(kernel)(**{**vars(kernel), "ufunc": ufunc})
    with pytest.raises(ZeroDivisionError, match="here"):
        module.run(broken, (np.ones((100, 3)),), None)
    assert len(finished) == 2


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((np.ones((100, 4)), np.ones((3, 3))), ValueError),
        ((np.ones((100, 5)), np.ones((99, 3, 3))), ValueError),
        ((np.ones((100, 5)), np.ones(3)), ValueError),
        ((np.ones((100, 5), complex), np.ones((3, 3))), TypeError),
        ((np.ones((100, 5), object), np.ones((3, 3))), TypeError),
        ((np.ones((100, 5)),), TypeError),
    ],
    ids=["core", "batch", "axes", "complex", "object", "count"],
)
def test_misuse_raises_what_the_ufunc_raises(arguments, error):
    with pytest.raises(error):
        mixed(None, *arguments)


@pytest.mark.parametrize(
    "out",
    [(), (None,), (np.empty((100, 5)),), np.empty((100, 5)), [np.empty((100, 5))]],
    ids=["nothing", "none", "too few", "one array", "a list"],
)
def test_an_out_that_does_not_fit_raises_what_the_ufunc_raises(out):
    with pytest.raises((TypeError, ValueError), match="out"):
        mixed(None, *arrays((100,), (100,)), out=out)


def test_the_callers_errstate_holds_in_every_piece(pieces):
    out = np.empty((100, 3), np.float32)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow"):
        cubes(None, np.r_[np.zeros((90, 3)), np.full((10, 3), 1e30)], out=out)
    with np.errstate(over="ignore"):
        cubes(None, np.full((100, 3), 1e30), out=out)
    assert np.all(np.isinf(out))
    assert pieces


def test_without_threads_to_be_had_the_caller_computes_alone(monkeypatch):
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    dl.threads(4)
    x, A = arrays((100,), (100,))
    np.testing.assert_array_equal(mixed(None, x, A)[0], UFUNC(x, A)[0])


def no_thread(self):
    raise RuntimeError("can't start new thread")


def test_with_too_few_threads_to_be_had_every_piece_is_computed_once(monkeypatch):
    kernel = cubes.compiled(None)
    workers, computed, first_done = [], [], threading.Event()
    start = threading.Thread.start

    def start_one(thread):
        if workers:
            no_thread(thread)
        workers.append(thread)
        start(thread)

    def ufunc(x, out):
        if threading.current_thread() in workers:
            first_done.wait(10)
        computed.append(x[0, 0])
        first_done.set()
        return kernel.ufunc(x, out=out)

    monkeypatch.setattr(threading.Thread, "start", start_one)
    dl.threads(4)
    x = np.arange(300.0).reshape(100, 3)
    result = module.run(type(kernel)(**{**vars(kernel), "ufunc": ufunc}), (x,), None)
    np.testing.assert_array_equal(result, kernel.ufunc(x))
    workers[0].join(10)
    assert sorted(computed) == [0.0, 96.0, 192.0, 288.0]


def test_numbers_among_the_arrays_do_not_keep_a_batch_on_one_thread(pieces):
    @dl.kernel("(5),()->(5)")
    def scaled(model, x, factor):
        return x * factor

    x = np.random.default_rng(0).normal(size=(64, 5))
    np.testing.assert_array_equal(scaled(None, x, 2.0), 2.0 * x)
    assert pieces
