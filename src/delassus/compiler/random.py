"""Random numbers in kernels: pure functions of a seed and counters.

    uniform(seed, item, step)              in [0, 1)
    normal(seed, item, step, shape=(3,))   mean 0, standard deviation 1

There is no state: equal seeds and counters give the same result, on any machine, in any batch, by any back end. So
every call needs its own counters, such as the index of the state in the batch and that of the time step, which are
inputs of the kernel, and a constant that distinguishes the calls in the program. Results for other counters or another
seed are independent.

Seed and counters are integers: a seed below 2⁵³, up to three counters below 2³² each; omitted counters are 0. Fractions
are dropped, and larger values are reduced modulo 2³²; infinities and NaN are 0. Single precision represents integers up
to 2²⁴.

The generator is Philox4x32-10. Uniform values have 53 bits, in single precision the first 24 of them. Normal values use
the Box–Muller method, and end at 8.6 standard deviations, in single precision at 5.8.

Cost: some 150 instructions for two uniform numbers, in the lanes.

>>> @dl.kernel("()->(2)")
... def sample(model, seed):
...     return dl.compiler.random.uniform(seed, shape=2)
>>> sample("any", 0.0).shape
(2,)
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from delassus.compiler.functions import philox
from delassus.compiler.tracing.array import Array, Recording
from delassus.compiler.tracing.handlers import HANDLERS
from delassus.compiler.tracing.trace import current, trace_of
from delassus.compiler.words import word_of
from delassus.errors import BadArgument

MOST: Final = 3
"""Counters that can be given; the fourth one of the cipher numbers the elements of an array."""


def uniform(seed: Any, *counters: Any, shape: int | tuple[int, ...] = ()) -> Any:
    """Independent values in [0, 1): one, or an array."""
    return _reshape_pairs(_pairs(seed, counters, shape), shape)


def normal(seed: Any, *counters: Any, shape: int | tuple[int, ...] = ()) -> Any:
    """Independent values with mean 0 and standard deviation 1: one, or an array."""
    pairs = _pairs(seed, counters, shape)
    radius = _apply(np.sqrt, -2.0 * _apply(np.log, 1.0 - pairs[:, 0]))
    angle = (2.0 * math.pi) * pairs[:, 1]
    return _reshape_pairs(_apply(np.stack, [radius * _apply(np.cos, angle), radius * _apply(np.sin, angle)], -1), shape)


def _pairs(seed: Any, counters: tuple[Any, ...], shape: int | tuple[int, ...]) -> Any:
    """Uniform numbers, two for each block of the cipher, as many as an array of some shape needs."""
    if len(counters) > MOST:
        raise BadArgument(
            f"random numbers: there are {len(counters)} counters; there must be at most {MOST}. Combine some, such as "
            "step * 100.0 + place.",
            code="out-of-range",
        )
    for name, x in (("the seed", seed), *((f"counter {k}", x) for k, x in enumerate(counters))):
        if np.shape(x) != ():
            raise BadArgument(
                f"random numbers: {name} has shape {np.shape(x)}; it must be one number.", code="wrong-shape"
            )
    blocks = -(-math.prod(_tuple(shape)) // 2)
    padded = (*counters, *[0.0] * (MOST - len(counters)))
    trace = current() or trace_of(seed, *counters)
    if trace is None:
        return _plain(seed, padded, blocks)
    g = trace.builder
    words = [word_of(g, _scalar(trace, x)) for x in padded]
    integer = g.floor(_scalar(trace, seed))
    key = [word_of(g, integer), word_of(g, g.mul(integer, g.constant(2.0**-32)))]
    ids = [
        [g.emit((f"uniform{half}", *words, g.constant(float(block)), *key)) for half in (0, 1)]
        for block in range(blocks)
    ]
    return Array(trace, np.array(ids, np.int64).reshape(blocks, 2))


def _scalar(trace: Recording, x: Any) -> int:
    lifted = trace.lift(x)
    return trace.builder.number(lifted.ids.item())


def _plain(seed: Any, counters: tuple[Any, ...], blocks: int) -> Any:
    """Random words for plain numbers, by the algorithm that kernels compile."""
    integer = np.floor(np.float64(seed))
    words_of_key = [*counters, integer, np.floor(integer * 2.0**-32)]
    with np.errstate(invalid="ignore"):
        low = np.nan_to_num([np.floor(np.float64(x)) % 2.0**32 for x in words_of_key], nan=0.0).astype(np.uint64)
    counter = (*low[:MOST], np.arange(blocks, dtype=np.uint64))
    random_words = philox.words(np.broadcast_arrays(*counter), low[MOST:])
    upper, lower = (np.stack(random_words[k::2], -1) >> np.uint64(5 + k) for k in (0, 1))
    return (upper.astype(float) * 2.0**26 + lower.astype(float)) * 2.0**-53


def _apply(function: Any, first: Any, *others: Any) -> Any:
    """A function of NumPy, on traced arrays or on plain ones."""
    traced = trace_of(first) is not None
    return HANDLERS[function](first, *others) if traced else function(first, *others)


def _tuple(shape: int | tuple[int, ...]) -> tuple[int, ...]:
    return shape if isinstance(shape, tuple) else (shape,)


def _reshape_pairs(pairs: Any, shape: int | tuple[int, ...]) -> Any:
    return pairs.reshape(-1)[: math.prod(_tuple(shape))].reshape(_tuple(shape))
