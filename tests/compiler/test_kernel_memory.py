"""What compiled kernels take of memory: a bound, a way to let go, and code that lives as long as somebody holds it."""

import gc
import subprocess
import sys
import threading
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

import delassus as dl
from delassus.compiler.backends import native
from delassus.compiler.backends.target import Target
from delassus.compiler.host import versions
from delassus.compiler.host.runtime import loop_address, shared_states
from delassus.model.generators import random_tree

X = np.array([1.0, -2.0, 3.5])
TREE = random_tree(3, seed=5)
HOST = Target.host()
SHARED = loop_address(HOST), shared_states(HOST, 1), shared_states(HOST, HOST.lanes)  # the code that all kernels share


@dataclass(frozen=True)
class Gain:
    """A model by content."""

    value: float


def scaling():
    """A new kernel, which has met no model yet, and the gains that it was traced for."""
    traced = []

    @dl.kernel("(3)->(3)")
    def scaled(model, x):
        """Scaled numbers."""
        traced.append(model.value)
        return x * model.value

    return scaled, traced


def codes():
    """How many pieces of machine code are loaded."""
    gc.collect()
    return sum(isinstance(x, native.Code) for x in gc.get_objects())


@pytest.fixture(autouse=True, scope="module")
def what_other_tests_have_left():
    """Is not searched again and again: only what is made here counts."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def limit():
    """Set the memory that kernels may take; the old bound comes back."""
    before = dl.kernel_memory()
    dl.clear_kernels()
    yield dl.kernel_memory
    dl.kernel_memory(before)


def room_for(count):
    """The memory that some versions of a small kernel take."""
    scaled, _ = scaling()
    return count * scaled.compiled(Gain(-1.0)).memory


# What is let go of.


def test_a_kernel_that_nobody_holds_any_more_leaves_no_code():
    scaled, _ = scaling()
    before = codes()
    scaled(Gain(2.0), X)
    assert codes() == before + 1
    del scaled
    assert codes() == before


def test_clearing_leaves_no_code_that_nobody_holds():
    scaled, _ = scaling()
    dl.clear_kernels()
    before = codes()
    scaled(Gain(2.0), X)
    dl.clear_kernels()
    assert codes() == before


def test_after_clearing_kernels_are_made_again():
    scaled, traced = scaling()
    for _ in range(2):
        np.testing.assert_array_equal(scaled(Gain(2.0), X), 2.0 * X)
        dl.clear_kernels()
    assert traced == [2.0, 2.0]


def test_inspection_leaves_no_code():
    before = codes()
    dl.aba.inspect(TREE)
    assert codes() == before


def test_the_loop_of_all_kernels_stays():
    scaled, _ = scaling()
    scaled(Gain(2.0), X)
    dl.clear_kernels()
    gc.collect()
    np.testing.assert_array_equal(scaled(Gain(3.0), np.tile(X, (20, 1))), np.tile(3.0 * X, (20, 1)))


# The bound.


def test_there_is_a_bound_from_the_start():
    assert dl.kernel_memory() == versions.LIMIT


def test_versions_beyond_the_bound_go(limit):
    scaled, _ = scaling()
    limit(room_for(5))
    before = codes()
    for k in range(20):
        scaled(Gain(float(k)), X)
    assert codes() <= before + 5


def test_a_lower_bound_lets_go_at_once(limit):
    scaled, _ = scaling()
    before = codes()
    for k in range(5):
        scaled(Gain(float(k)), X)
    limit(room_for(2))
    assert codes() <= before + 2


def test_what_was_used_last_stays(limit):
    scaled, traced = scaling()
    limit(room_for(4))
    busy = Gain(100.0)
    for k in range(20):
        scaled(busy, X)
        scaled(Gain(float(k)), X)
    assert traced.count(100.0) == 1


def test_versions_with_options_that_were_used_last_stay(limit):
    traced = []

    @dl.kernel("(3)->(3)")
    def shifted(model, x, *, offset=0.0):
        traced.append(offset)
        return x + offset + model.value

    limit(room_for(4))
    for k in range(20):
        shifted(Gain(0.0), X, offset=100.0)
        shifted(Gain(0.0), X, offset=float(k))
    assert traced.count(100.0) == 1


def test_the_bound_is_one_for_all_kernels(limit):
    limit(room_for(5))
    before = codes()
    kernels = [scaling()[0] for _ in range(20)]
    for kernel in kernels:
        kernel(Gain(2.0), X)
    assert codes() <= before + 5


def test_one_version_is_kept_however_low_the_bound(limit):
    scaled, traced = scaling()
    limit(0)
    scaled(Gain(2.0), X)
    scaled(Gain(2.0), X)
    assert traced == [2.0]


def test_arrays_without_elements_are_bounded_too(limit):
    @dl.kernel("(3),(0)->(3)")
    def partly(model, x, nothing):
        return x * model.value

    limit(room_for(5))
    before = codes()
    for k in range(20):
        partly(Gain(float(k)), X, np.zeros(0))
    assert codes() <= before + 5


@dataclass(unsafe_hash=True)
class Changing:
    """Hashable by content, and yet it can change."""

    value: float


def test_versions_of_models_that_changed_go_too(limit):
    scaled, _ = scaling()
    limit(room_for(5))
    before, model = codes(), Changing(0.0)
    for k in range(20):
        model.value = float(k)
        np.testing.assert_array_equal(scaled(model, X), k * X)
    assert codes() <= before + 5


@pytest.mark.parametrize("wrong", [-1, 1.5, "much", True])
def test_a_bound_that_is_no_number_of_bytes_is_refused(wrong):
    with pytest.raises(ValueError, match="number of bytes"):
        dl.kernel_memory(wrong)


def test_models_are_not_kept_alive_beyond_the_bound(limit):
    class Watched(Gain):
        alive = 0

        def __del__(self):
            Watched.alive -= 1

    scaled, _ = scaling()
    limit(room_for(5))
    for k in range(20):
        model = Watched(float(k))
        Watched.alive += 1
        scaled(model, X)
        del model
    gc.collect()
    assert Watched.alive <= 5


# What is held.


def test_a_ufunc_that_is_held_outlives_its_kernel():
    scaled, _ = scaling()
    ufunc = scaled.specialize(Gain(2.0))
    del scaled
    dl.clear_kernels()
    gc.collect()
    np.testing.assert_array_equal(ufunc(np.tile(X, (50, 1))), np.tile(2.0 * X, (50, 1)))


def test_a_ufunc_that_is_held_keeps_its_name_and_documentation():
    scaled, _ = scaling()
    ufunc = scaled.specialize(Gain(2.0))
    del scaled
    dl.clear_kernels()
    gc.collect()
    _ = [scaling()[0](Gain(float(k)), X) for k in range(10)]
    assert (ufunc.__name__, ufunc.signature, ufunc.types) == ("scaled", "(3)->(3)", ["d->d"])
    assert "Scaled numbers." in ufunc.__doc__


def check_code_lives_as_long_as(make):
    """What `make` returns holds the code of one kernel, until it is let go of."""
    dl.clear_kernels()
    before = codes()
    held = make()
    held()
    dl.clear_kernels()
    assert codes() == before + 1
    del held
    assert codes() == before


def test_a_ufunc_that_is_let_go_of_leaves_no_code():
    scaled, _ = scaling()
    check_code_lives_as_long_as(lambda: partial(scaled.specialize(Gain(2.0)), X))


def test_bound_arrays_outlive_their_kernel():
    scaled, _ = scaling()
    y = np.zeros(3)
    tick = scaled.bind(Gain(2.0), X, y)
    del scaled
    dl.clear_kernels()
    gc.collect()
    tick()
    np.testing.assert_array_equal(y, 2.0 * X)


def test_bound_arrays_that_are_let_go_of_leave_no_code():
    scaled, _ = scaling()
    scaled.bind(Gain(1.0), X, np.zeros(3))()  # the code that all bound kernels share
    check_code_lives_as_long_as(lambda: scaled.bind(Gain(2.0), X, np.zeros(3)))


def test_threads_compute_while_others_let_go():
    scaled, _ = scaling()
    batch = np.random.default_rng(0).normal(size=(2000, 3))
    done, wrong = threading.Event(), []

    def compute(k):
        while not done.is_set():
            if not np.array_equal(scaled(Gain(float(k)), batch), k * batch):
                wrong.append(k)

    workers = [threading.Thread(target=compute, args=(k,)) for k in range(1, 4)]
    for worker in workers:
        worker.start()
    for _ in range(30):
        dl.clear_kernels()
        gc.collect()
    done.set()
    for worker in workers:
        worker.join()
    assert wrong == []


# A process that runs for long.

SERVER = """
import numpy as np
import delassus as dl
from delassus.compiler.host.kernel import Kernel
from delassus.model.generators import random_tree

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

model = random_tree(8, seed=1)
for k in range(120):
    if k == 60:
        start = resident()
    aba = Kernel(dl.aba.function, dl.aba.signature)
    aba(model, model.neutral(), *np.zeros((2, model.nv)))
print((resident() - start) / 60)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_process_that_makes_kernels_for_ever_does_not_grow():
    found = subprocess.run([sys.executable, "-c", SERVER], check=False, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    # One takes some 300 KB.
    assert float(found.stdout) < 20e3
