"""Kernels across processes: forks, the cache that they share, accidents with its files, and interrupts."""

import errno
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import delassus as dl
from delassus.compiler.backends import native
from delassus.compiler.backends.target import Target
from delassus.compiler.graph.digest import content_digest
from delassus.compiler.host import cache
from delassus.compiler.host.kernel import Kernel
from delassus.compiler.host.runtime import loop_address, shared_states
from delassus.model.generators import chain, random_tree

TREE = random_tree(3, seed=5)
STATES = np.random.default_rng(0).normal(size=(3, 5, TREE.nv))

PREAMBLE = """
import os, signal, sys, threading, warnings
import numpy as np
import delassus as dl
from delassus.compiler.backends import native
from delassus.compiler.host import threads
from delassus.compiler.tracing import trace
from delassus.model.generators import chain, random_tree

TREE = random_tree(3, seed=5)
STATES = np.random.default_rng(0).normal(size=(3, 5, TREE.nv))

def forbidden(*args, **kwargs):
    raise AssertionError("this must not happen again")

def show(x):
    print(np.ascontiguousarray(x).tobytes().hex(), flush=True)

def in_child(work):
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache of the test's own; the loop that all kernels share has been loaded before and is not in it."""
    host = Target.host()
    loop_address(host)
    for lanes in (1, host.lanes):
        shared_states(host, lanes)
    place = tmp_path / "cache"
    monkeypatch.setenv("DELASSUS_CACHE", str(place))
    return place


def start(script, **environment):
    """A new Python process that runs a script after the preamble."""
    return subprocess.Popen(
        [sys.executable, "-W", "error::delassus.DelassusWarning", "-c", PREAMBLE + script],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output(process):
    """What a process printed, once it ended well."""
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out


def run(script, **environment):
    return output(start(script, **environment))


def entries(folder, kind="*"):
    return sorted(folder.glob(f"*.{kind}.delassus"))


# Forks.


@needs_fork
def test_a_child_computes_on_threads_after_its_parent_did(folder):
    assert run("""
threads._MINIMUM_FLOPS = 1
dl.threads(2)
x = np.random.default_rng(0).normal(size=(3, 500, TREE.nv))
expected = dl.aba(TREE, *x)
assert threads._workers.pool is not None
def work():
    assert threads._workers.pool is None
    same = np.array_equal(dl.aba(TREE, *x), expected)
    return same and threads._workers.pool is not None
print(in_child(work), in_child(work), np.array_equal(dl.aba(TREE, *x), expected))
""") == "0 0 True\n"  # fmt: skip


COMPILING = """
started = threading.Event()
emit_objects, emit_assembly = native.emit_objects, native.emit_assembly
def announced(function):
    def emit(*args):
        with native.compiling:
            started.set()
            return function(*args)
    return emit
native.emit_objects, native.emit_assembly = map(announced, (emit_objects, emit_assembly))
f = dl.kernel("(3)->(3)")(lambda model, x: x * model)
"""


@needs_fork
@pytest.mark.parametrize("work", ["dl.aba(chain(12), *np.zeros((3, 12)))", "dl.aba.inspect(chain(12)).assembly"])
def test_a_child_of_a_process_that_was_compiling_can_compile(work, folder):
    assert run(COMPILING + f"""
worker = threading.Thread(target=lambda: {work})
worker.start()
started.wait()
print(in_child(lambda: np.array_equal(f(2.0, np.ones(3)), [2.0] * 3)))
worker.join()
""") == "0\n"  # fmt: skip


@needs_fork
def test_a_function_may_fork_while_it_is_being_traced(folder):
    assert run("""
@dl.kernel("()->()")
def g(model, x):
    return x + in_child(lambda: dl.aba.specialize(TREE)(*STATES).shape == (5, 3))
print(g(None, 1.0))
""") == "1.0\n"  # fmt: skip


@needs_fork
def test_a_child_has_the_kernels_of_its_parent(folder):
    assert run("""
expected = dl.aba(TREE, *STATES)
native.parse = trace.Trace.__init__ = forbidden
print(in_child(lambda: np.array_equal(dl.aba(TREE, *STATES), expected)))
""") == "0\n"  # fmt: skip


# The end of a process.


def test_kernels_work_on_threads_while_the_interpreter_ends(folder):
    assert run("""
import atexit
threads._MINIMUM_FLOPS = 1
dl.threads(2)
x = np.zeros((3, 500, TREE.nv))
dl.aba(TREE, *x)
atexit.register(lambda: print(dl.aba(TREE, *x).shape))
""") == "(500, 3)\n"  # fmt: skip


# The shared cache.


def test_another_process_neither_traces_nor_compiles_a_kernel_of_the_package(folder):
    first = run("show(dl.aba(TREE, *STATES))")
    second = run("native.parse = trace.Trace.__init__ = forbidden; show(dl.aba(TREE, *STATES))")
    assert first == second == expected_output()


def expected_output():
    return dl.aba(TREE, *STATES).tobytes().hex() + "\n"


USER_KERNEL = """
traced = []
@dl.kernel("(3)->(3)")
def f(model, x):
    traced.append(model)
    return x * FACTOR + 1.0
show(f(None, np.arange(3.0)))
print(len(traced))
"""


def test_another_process_traces_a_users_kernel_and_does_not_compile_it(folder):
    first = run("FACTOR = 3.0" + USER_KERNEL)
    second = run("native.parse = forbidden; FACTOR = 3.0" + USER_KERNEL)
    assert first == second
    assert first.endswith("1\n")


def test_a_users_kernel_that_changed_is_compiled_again(folder):
    first = run("FACTOR = 3.0" + USER_KERNEL)
    second = run("FACTOR = 4.0" + USER_KERNEL)
    assert second == (np.arange(3.0) * 4.0 + 1.0).tobytes().hex() + "\n1\n" != first


def test_two_processes_may_compile_the_same_kernel_at_once(folder):
    processes = [start("show(dl.aba(chain(5), *np.ones((3, 5))))") for _ in range(2)]
    results = {output(process) for process in processes}
    assert len(results) == 1
    assert not list(folder.glob("*part"))
    assert run("native.parse = forbidden; show(dl.aba(chain(5), *np.ones((3, 5))))") in results


def test_programs_and_models_have_the_same_digest_in_every_process(folder):
    script = """
from delassus.compiler.graph.digest import content_digest
model = (frozenset({"a", "b", "c", "dd"}), 1, 1.0, True, None, b"x", np.float64(2.5), np.arange(3), TREE)
print(dl.aba.program(TREE).digest, content_digest(model))
"""
    assert run(script, PYTHONHASHSEED="1") == run(script, PYTHONHASHSEED="2")


# The cache within one process: a new kernel of the same function knows nothing of the old one.


@pytest.fixture
def compiled(monkeypatch):
    """What LLVM was asked for, in a list that grows."""
    texts, true = [], native.emit_objects
    monkeypatch.setattr(native, "emit_objects", lambda *args: texts.append(args) or true(*args))
    return texts


def fresh_result():
    """The accelerations from a kernel that has no memory."""
    return Kernel(dl.aba.function, dl.aba.signature)(TREE, *STATES)


def damage(path, how):
    blob = path.read_bytes()
    path.write_bytes(
        {"truncated": blob[:-9], "flipped": blob[:-9] + bytes([blob[-9] ^ 4]) + blob[-8:], "empty": b""}[how]
    )


@pytest.mark.parametrize("kind", ["object", "index"])
@pytest.mark.parametrize("how", ["truncated", "flipped", "empty"])
def test_a_damaged_entry_is_replaced_with_one_warning(kind, how, folder, compiled):
    expected = fresh_result()
    (path,) = entries(folder, kind)
    damage(path, how)
    with pytest.warns(dl.DelassusWarning, match="is damaged") as caught:
        np.testing.assert_array_equal(fresh_result(), expected)
    assert [warning.filename for warning in caught] == [__file__]
    del compiled[:]
    np.testing.assert_array_equal(fresh_result(), expected)
    assert compiled == []


@pytest.mark.parametrize("kind", ["object", "index"])
def test_an_entry_that_is_gone_is_made_again(kind, folder, compiled):
    expected = fresh_result()
    (path,) = entries(folder, kind)
    path.unlink()
    np.testing.assert_array_equal(fresh_result(), expected)
    assert path.exists()


ODD = [
    b"",
    b"null",
    b"[]",
    b"3",
    b"{}",
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"program": "%s", "flops": 10}',
    b'{"program": "%s", "flops": 10, "slots": 1, "repeats": false}',
    b'{"program": "%s", "flops": 10, "slots": -5, "repeats": false}',
    b'{"program": "%s", "flops": 10, "slots": 1e300, "repeats": false}',
    b'{"program": "%s", "flops": 10, "slots": 99999999999, "repeats": false}',
    b'{"program": "%s", "flops": 10, "slots": true, "repeats": false}',
    b'{"program": "%s", "flops": -10, "slots": 100, "repeats": false}',
    b'{"program": "%s", "flops": "10", "slots": 100, "repeats": false}',
    b'{"program": "%s", "flops": 10, "slots": 100, "more": 1, "repeats": false}',
    b'{"program": "%s", "flops": 10, "slots": 100, "repeats": 1}',
    b'{"program": 3, "flops": 10, "slots": 100, "repeats": false}',
    b'{"program": "0123", "flops": 10, "slots": 100, "repeats": false}',
]


@pytest.mark.parametrize("payload", ODD, ids=lambda payload: payload[:60].decode(errors="replace"))
def test_an_index_entry_that_makes_no_sense_is_made_again(payload, folder, compiled):
    expected = fresh_result()
    (path,) = entries(folder, "index")
    content = path.read_bytes()
    program = dl.aba.program(TREE).digest.encode()
    cache.store("index", path.name.partition(".")[0], payload.replace(b"%s", program))
    np.testing.assert_array_equal(fresh_result(), expected)
    assert path.read_bytes() == content


def test_a_cache_that_cannot_be_written_costs_one_warning(folder, monkeypatch):
    def refused(*_):
        raise OSError(errno.EROFS, "Read-only file system")

    expected = dl.aba(TREE, *STATES)
    cache.clear()
    monkeypatch.setattr(cache, "_write", refused)
    with pytest.warns(dl.DelassusWarning, match="Read-only file system") as caught:
        np.testing.assert_array_equal(fresh_result(), expected)
        np.testing.assert_array_equal(fresh_result(), expected)
    assert len(caught) == 1


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write all")
def test_a_read_only_cache_is_read(folder, compiled):
    expected = fresh_result()
    folder.chmod(0o500)
    del compiled[:]
    try:
        np.testing.assert_array_equal(fresh_result(), expected)
    finally:
        folder.chmod(0o700)
    assert compiled == []


def test_without_a_cache_kernels_work_and_leave_nothing(folder, compiled, monkeypatch):
    monkeypatch.setenv("DELASSUS_CACHE", "off")
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    np.testing.assert_array_equal(fresh_result(), dl.aba(TREE, *STATES))
    assert not folder.exists()
    assert len(compiled) == 1


def test_functions_that_depend_on_what_surrounds_them_are_traced(folder):
    def scaling(gain):
        def scaled(model, x):
            return x * gain

        scaled.__module__ = "delassus.dynamics"
        return dl.kernel("()->()")(scaled)

    assert [scaling(gain)(None, 1.0) for gain in (2.0, 3.0)] == [2.0, 3.0]


def test_targets_do_not_share_entries(folder, compiled):
    kernel = Kernel(dl.aba.function, dl.aba.signature)
    for lanes in (1, *Target.host().widths):
        kernel.compiled(TREE, target=Target.host().with_lanes(lanes).with_opt(0))
    assert len(entries(folder, "index")) == 1 + len(Target.host().widths)


# Content of models.


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        (0.0, -0.0),
        ("1", 1),
        ("1", b"1"),
        ((1, 2), (1, (2,))),
        (("a", "b"), ("ab",)),
        ((), None),
        (np.float32(0.1), float(np.float32(0.1))),
        (np.float64(1.0), 1.0),
        (np.arange(3), np.arange(3.0)),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (frozenset({1}), frozenset({1.0})),
        (chain(2), chain(3)),
    ],
)
def test_what_differs_has_another_digest(one, other):
    assert content_digest(one) is not None
    assert content_digest(one) != content_digest(other)


@dataclass(frozen=True)
class UsersModel:
    """Its methods may be others in the next process."""

    gain: float = 1.0


class Pair(NamedTuple):
    """Likewise."""

    a: float = 1.0


@pytest.mark.parametrize(
    "x",
    [object(), [1], {}, (1, object()), frozenset({object()}), 1j, Path(), np.array([None]), UsersModel(), Pair(), len],
)
def test_what_may_change_unseen_has_no_digest(x):
    assert content_digest(x) is None


def test_large_integers_and_long_floats_have_a_digest():
    assert None not in (content_digest(10**5000), content_digest(np.longdouble(1)))


# Interrupts.


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_an_interrupt_while_compiling_is_an_exception_and_the_cache_stays_sound(folder):
    process = start("""
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a process in the background lacks
emit_objects = native.emit_objects
def announced(*args):
    print("compiling", flush=True)
    return emit_objects(*args)
native.emit_objects = announced
model = chain(80)
try:
    dl.aba(model, *np.ones((3, 80)))
except KeyboardInterrupt:
    print("interrupted", flush=True)
native.emit_objects = emit_objects
show(dl.aba(model, *np.ones((3, 80))))
""")  # fmt: skip
    assert process.stdout.readline() == "compiling\n"
    process.send_signal(signal.SIGINT)
    out = output(process)
    assert out.startswith("interrupted\n")
    assert not list(folder.glob("*part"))
    after = run("native.parse = forbidden; show(dl.aba(chain(80), *np.ones((3, 80))))")
    assert out == "interrupted\n" + after
