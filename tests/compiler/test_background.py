"""Large kernels are compiled quickly first, and optimized in the background."""

import os
import subprocess
import sys

import numpy as np
import pytest

import delassus as dl
import delassus.numpy as dnp
from delassus.compiler.backends.target import Target
from delassus.compiler.host import widths

X = np.linspace(0.1, 0.9, 24).reshape(8, 3)
USUAL = Target.host().with_opt(2)


def large():
    """A new kernel with some thousand operations."""

    @dl.kernel("(3)->()")
    def series(_, x):
        total = dnp.array(0.0)
        for k in range(1, 1500):
            total = total + x[k % 3] / (k + x[(k + 1) % 3] * total)
        return total

    return series


@pytest.fixture
def installed(monkeypatch):
    """The levels of the code that kernels get, at the usual level of optimization and without a disk cache."""
    monkeypatch.setenv("DELASSUS_CACHE", "off")
    monkeypatch.setattr(Target, "host", classmethod(lambda cls: USUAL))
    levels, emit, emit_later = [], widths.native.emit_objects, widths.emit_in_background

    def emit_objects(texts, target):
        levels.append(target.opt)
        return emit(texts, target)

    def emit_in_background(texts, target):
        levels.append(target.opt)
        return emit_later(texts, target)

    monkeypatch.setattr(widths.native, "emit_objects", emit_objects)
    monkeypatch.setattr(widths, "emit_in_background", emit_in_background)
    return levels


def test_large_kernels_are_compiled_quickly_and_then_optimized(installed):
    kernel = large()
    kernel(None, X)
    dl.compiler.finish_optimizing()
    assert installed[0] == 0 and set(installed[1:]) == {2}


def test_small_kernels_are_optimized_at_once(installed):
    dl.kernel("(3)->()")(lambda _, x: x @ x)(None, X)
    assert installed == [2]


def test_a_named_target_has_its_level_at_once(installed):
    large().compiled(None, target=USUAL).ufunc(X)
    assert set(installed) == {2}


def test_optimized_code_gives_the_same_bits(installed):
    kernel = large()
    bound = np.empty(8)
    call = kernel.bind(None, X, bound)
    call()
    quick = kernel(None, X), bound.copy(), kernel(None, X[0])
    dl.compiler.finish_optimizing()
    call()
    for now, before in zip((kernel(None, X), bound, kernel(None, X[0])), quick, strict=True):
        np.testing.assert_array_equal(now, before)


SCRIPT = """
import delassus as dl

robot = dl.load("humanoid")
dl.aba(robot, robot.posture("home"), *[[0.0] * robot.nv] * 2)
"""


def test_a_process_ends_while_code_is_optimized(tmp_path):
    subprocess.run([sys.executable, "-c", SCRIPT], env=os.environ | {"DELASSUS_CACHE": str(tmp_path)}, check=True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_compiles_while_its_parent_optimizes(installed):
    kernel = large()
    kernel(None, X)
    child = os.fork()
    if child == 0:
        os._exit(int(not np.isfinite(large()(None, X)).all()))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
