"""Programs as C, compiled by what this machine has and held against the interpreter, bit by bit."""

import ctypes
import shutil
import subprocess
from functools import partial

import numpy as np
import pytest

from delassus.compiler.backends.c_program import emit_c
from delassus.compiler.backends.interpreter import evaluate
from delassus.compiler.backends.schedule import CHUNK
from native_bits import assert_same_bits, numbers

COMPILERS = [c for c in ("gcc", "clang") if shutil.which(c)]
FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-ffp-contract=off"]
NORMAL = np.array([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, 2.0**60])  # subnormal ones are zero for us, not in C
needs_compiler = pytest.mark.skipif(not COMPILERS, reason="neither gcc nor clang is installed")
normal_numbers = partial(numbers, special=NORMAL)


def compile_c(folder, name, *sources, compiler=None, shared=True, optimize="-O1"):
    """Compile files of a folder with all warnings as errors; returns the path of the library or program."""
    result = folder / f"{name}.{'so' if shared else 'exe'}"
    kind = ["-shared", "-fPIC"] if shared else []
    command = [compiler or COMPILERS[0], *FLAGS, optimize, *kind, *sources, "-o", result, "-lm"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return result


def library(program, folder, name="f", fma=True, chunk=CHUNK, dtype=np.float64, **how):
    """The function of a program in C, as a function of arrays of one state that returns the outputs."""
    header, source = emit_c(program, name, fma, chunk=chunk, dtype=dtype)
    (folder / f"{name}.h").write_text(header)
    (folder / f"{name}.c").write_text(source)
    function = getattr(ctypes.CDLL(str(compile_c(folder, name, f"{name}.c", **how))), name)
    function.restype = None

    def call(*arrays):
        outputs = [np.full(operand.shape, 7.0, dtype) for operand in program.outputs]
        pointers = [np.ascontiguousarray(x, dtype) for x in arrays] + outputs
        function(*[ctypes.c_void_p(x.ctypes.data) for x in pointers])
        return outputs

    return call


def check(kernel, folder, *arrays, model=None, **how):
    """Compare C with the interpreter, state by state."""
    program = kernel.program(model)
    call = library(program, folder, **how)
    expected = evaluate(program, *arrays, fma=how.get("fma", True), dtype=how.get("dtype", np.float64))
    for k in range(len(arrays[0])):
        for got, right in zip(call(*[x[k] for x in arrays]), expected, strict=True):
            assert_same_bits(got, right[k])
