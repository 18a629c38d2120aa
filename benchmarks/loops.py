"""Loops in kernels: against the same written out, and the derivatives that use them."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

import delassus as dl
from benchmarks.timing import best_of_each
from delassus.compiler import jacobian, scan, vjp, while_loop
from delassus.model.generators import balanced_tree, random_tree

BATCH = 4096
SIZE = 50


def _product(model: Any, a: Any, b: Any) -> Any:
    return a @ b


def products() -> str:
    """A large product in loops and written out."""
    signature = f"({SIZE},{SIZE}),({SIZE},{SIZE})->({SIZE},{SIZE})"
    a, b = np.random.default_rng(0).normal(size=(2, 128, SIZE, SIZE))
    out = np.empty_like(a)
    kernels, seconds, sizes = {}, {}, {}
    for name, limit in (("in loops", 0), ("written out", 10**9)):
        with patch("delassus.compiler.tracing.operations.products.LARGEST_UNROLLED", limit):
            kernel = dl.kernel(signature)(_product)
            report = min((kernel.inspect(None) for _ in range(3 if not limit else 1)), key=_total)
            kernels[name], seconds[name], sizes[name] = kernel.specialize(None), _total(report), report.code_bytes
    times = best_of_each({name: partial(f, a, b, out) for name, f in kernels.items()}, 10)
    rows = [
        f"| {name} | {seconds[name]:.2f} | {sizes[name] / 1024:.0f} | {1e6 * times[name] / len(a):.1f} |"
        for name in kernels
    ]
    return f"""### A product of two {SIZE} × {SIZE} matrices

| | compile [s] | code [KB] | run [µs per state] |
|---|---|---|---|
{chr(10).join(rows)}
"""


def _total(report: Any) -> float:
    return sum(report.seconds.values())


def _body(size: int) -> Callable[[Any], Any]:
    """About 200 operations on a vector."""
    matrix = 0.3 * np.random.default_rng(1).normal(size=(size, size))
    rounds = max(1, round(200 / (size * size + size)))

    def body(x: Any) -> Any:
        for _ in range(rounds):
            x = matrix @ x + 0.01 * x * x
        return x

    return body


def masking() -> str:
    """What masks and control cost in a while_loop."""
    rows = []
    for size, count in ((6, 20), (9, 20), (13, 20), (13, 100)):
        body = _body(size)

        def unrolled(x: Any, body: Any = body, count: int = count) -> Any:
            for _ in range(count):
                x = body(x)
            return x

        def counted(x: Any, body: Any = body, count: int = count) -> Any:
            return scan(lambda carry, _: (body(carry), None), x, length=count)[0]

        def conditional(x: Any, body: Any = body, count: int = count) -> Any:
            step = while_loop(lambda c: c[0] < count, lambda c: (c[0] + 1.0, body(c[1])), (0.0, x), bound=1000)
            return step[1]

        signature = f"({size})->({size})"
        kernels = {
            name: dl.kernel(signature)(_of(function)).specialize(None)
            for name, function in (("out", unrolled), ("for", counted), ("while", conditional))
        }
        operations = sum(dl.kernel(signature)(_of(body)).inspect(None).operations.values())
        x = 0.1 * np.random.default_rng(2).normal(size=(BATCH, size))
        result = np.empty_like(x)
        times = best_of_each({name: partial(f, x, result) for name, f in kernels.items()}, 40)
        rows.append(
            f"| {operations} | {size} | {count} | {1e9 * times['out'] / BATCH:.0f} | {times['for'] / times['out']:.2f} "
            f"| {times['while'] / times['out']:.2f} |"
        )
    return f"""### Loops against the same body written out

Batch of {BATCH}. The last two columns are times relative to the body written out: as a `scan`, and as a `while_loop`
that ends by its condition.

| operations of the body | values carried | iterations | written out [ns per state] | scan | while_loop |
|---|---|---|---|---|---|
{chr(10).join(rows)}
"""


def _of(function: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def f(model: Any, x: Any) -> Any:
        return function(x)

    return f


@dl.kernel("(nq),(nv),(nv)->(nv,nv),(nv,nv),(nv,nv)")
def _rnea_jacobian(model, q, v, a):
    return jacobian(lambda *x: dl.rnea(model, *x), (0, 1, 2))(q, v, a)


@dl.kernel("(nq),(nv),(nv),(nv)->(nq),(nv),(nv)")
def _aba_gradient(model, q, v, tau, g):
    return vjp(lambda *x: dl.aba(model, *x), q, v, tau)[1](g)


def derivatives() -> str:
    """Operations and compile times of derivatives."""
    tree, deep = balanced_tree(50), random_tree(30)
    primal, reverse = (sum(k.program(tree).count().values()) for k in (dl.aba, _aba_gradient))
    start = time.perf_counter()
    report = _rnea_jacobian.inspect(deep)
    seconds = time.perf_counter() - start
    return f"""### Derivatives

| | |
|---|---|
| operations of `vjp` of ABA, tree of 50 joints, relative to ABA | {reverse / primal:.2f} |
| operations of the Jacobian of RNEA in q, v, a, tree of 30 joints | {sum(report.traced.values())} |
| its compile time, tracing included [s] | {seconds:.2f} |
"""


def run() -> str:
    """All of them."""
    return "\n".join((products(), masking(), derivatives()))
