"""Machine code held against the interpreter, bit by bit, at every lane width.

It is compiled for HOST at LLVM's lowest effort, which takes half the time, or for FULL, as users get it. `single_bits`
has the same for single precision.
"""

from functools import partial

import numpy as np
import pytest

from delassus.compiler.backends.interpreter import evaluate
from delassus.compiler.backends.schedule import CHUNK, schedule
from delassus.compiler.backends.target import Target
from delassus.compiler.functions.lower import lower
from delassus.compiler.host import build

HOST, FULL = Target.host().with_opt(0), Target.host().with_opt(2)
WIDTHS = (1, *HOST.widths)
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, -1e-310, 1e-200, -1e200, 2.0**60, 0.5])

every_width = pytest.mark.parametrize("lanes", WIDTHS)


def bits(x):
    """The bits of floats, all NaN alike."""
    return np.where(np.isnan(x), x.dtype.type(np.nan), x).view(f"i{x.dtype.itemsize}")


def assert_same_bits(actual, expected):
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(bits(actual), bits(expected))


def numbers(*shape, seed=0, special=SPECIAL):
    """Normal numbers of many magnitudes, and a special one here and there."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape) * 10.0 ** rng.integers(-3, 4, shape)
    return np.where(rng.random(shape) < 0.1, rng.choice(special, shape), x).astype(special.dtype)


def compile_program(program, lanes, chunk=CHUNK, host=HOST):
    """The ufunc of a program cut into chunks of some size."""
    recipe = build.Recipe("f", "", program.inputs, program.outputs, lambda: program, None, host.with_lanes(lanes))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DELASSUS_CACHE", "off")
        patch.setattr(build, "schedule", partial(schedule, chunk=chunk))
        return build.build(recipe).ufunc


def check(kernel, lanes, *arrays, model=None, chunk=CHUNK, host=HOST):
    """Compare with the interpreter, alone and in a batch; returns the schedule."""
    program = kernel.program(model)
    ufunc = compile_program(program, lanes, chunk, host)
    expected = evaluate(program, *arrays, fma=host.fma, dtype=host.precision.dtype)
    together = ufunc(*arrays)
    alone = [ufunc(*[x[k] for x in arrays]) for k in range(len(arrays[0]))]
    for k, output in enumerate(expected):
        assert_same_bits(together if len(expected) == 1 else together[k], output)
        assert_same_bits(np.array([a if len(expected) == 1 else a[k] for a in alone]), output)
    return schedule(lower(program, host.fma, host.precision), chunk=chunk)
