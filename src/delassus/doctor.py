"""Checks of an installation for `delassus doctor`."""

import platform
import time
import warnings
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numpy

import delassus.numpy as np
from delassus.compiler.backends.interpreter import evaluate
from delassus.compiler.backends.target import Target
from delassus.compiler.host import cache
from delassus.compiler.host.kernel import Floats, kernel
from delassus.compiler.host.threads import threads


@kernel("(3),(3,3)->(3),()")
def check_kernel(model: float, x: Any, A: Any) -> tuple[Floats, Floats]:
    """A bit of everything that a kernel is made of; the model is a number that makes it new, so that it compiles."""
    y = np.linalg.solve(A @ A.T + model * np.eye(3), np.sin(x), assume_a="pos")
    return np.where(y > 0, y, np.sqrt(abs(y))), np.cos(y) @ x


def facts() -> dict[str, str]:
    """Versions, machine and cache, in the order they are read."""
    from delassus import __version__

    target = Target.host()
    folder = cache.directory()
    entries, size = cache.usage()
    return {
        "delassus": __version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()}, {platform.platform()})",
        "numpy": numpy.__version__,
        "llvmlite": f"{llvmlite.__version__} (LLVM {'.'.join(map(str, llvm.llvm_version_info))})",
        "processor": f"{target.cpu} ({target.triple})",
        "lanes": f"{target.lanes} doubles or {target.with_dtype(numpy.float32).lanes} floats, "
        f"{'with' if target.fma else 'without'} fused multiply-add",
        "threads": str(threads()),
        "cache": "off" if folder is None else f"{folder} ({entries} entries, {size / 1e6:.1f} MB)",
    }


def problem() -> str:
    """Compile a new kernel, compare it with the interpreter; a sentence if something is wrong, else nothing."""
    model = 1.0 + time.time_ns() % 10**6 * 1e-9
    rng = numpy.random.default_rng(0)
    x, A = rng.normal(size=(19, 3)), rng.normal(size=(19, 3, 3))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cache.probe()
        with cache.disable_cache():  # nobody needs this kernel again
            ufunc = check_kernel.specialize(model)
        batch = ufunc(x, A)
        single = ufunc(x[0], A[0])
    expected = evaluate(check_kernel.program(model), x, A, fma=Target.host().fma)
    for got, alone, right in zip(batch, single, expected, strict=True):
        if not (numpy.array_equal(got, right) and numpy.array_equal(alone, right[0])):
            return "compiled code and interpreter disagree: please report this, with the lines above."
    return " ".join(str(w.message) for w in caught)
