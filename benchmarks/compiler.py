"""The compiler, measured on the articulated-body algorithm."""

import os
import subprocess
import sys
import tempfile

import numpy as np

import delassus as dl
import delassus.numpy as dnp
from benchmarks.peak import FmaLoop
from benchmarks.timing import best_of_each
from delassus.compiler.backends.target import Target
from delassus.model.generators import balanced_tree, chain

JOINTS, BATCH = 50, 4096


def compile_time() -> str:
    """Compile time against the size of the program."""
    rows, sizes, totals = [], [], []
    for links in (3, 8, 23, 68, 195, 580):
        model = chain(links)
        reports = [dl.aba.inspect(model) for _ in range(3 if links < 100 else 2)]
        report = min(reports, key=lambda r: sum(r.seconds.values()))
        operations, total = sum(report.traced.values()), sum(report.seconds.values())
        sizes.append(operations)
        totals.append(total)
        times = " | ".join(f"{1e6 * t / operations:.1f}" for t in report.seconds.values())
        rows.append(
            f"| {links} | {operations} | {total:.2f} | {1e6 * total / operations:.1f} | {times} "
            f"| {report.slots} | {report.code_bytes / 1e6:.2f} |"
        )
    exponent = np.polyfit(np.log(sizes), np.log(totals), 1)[0]
    stages = " | ".join(report.seconds)
    return f"""### Compile time

Scalar and widest version together, chains of revolute joints. µs per traced operation, by stage.
Growth: operations to the power {exponent:.2f}.

| joints | traced operations | s | µs/operation | {stages} | slots | code MB |
|---|---|---|---|---|---|---|---|---|---|---|---|---|
{chr(10).join(rows)}
"""


_FRESH = """
import sys, time
import numpy as np
import delassus as dl
from delassus.model.generators import balanced_tree
model = balanced_tree(int(sys.argv[1]))
x = np.zeros((3, model.nv))
start = time.perf_counter()
dl.aba.specialize(model)(*x)
print(time.perf_counter() - start)
"""


def cached_start() -> str:
    """A fresh process that finds its kernel in the cache."""
    operations = sum(dl.aba.program(balanced_tree(JOINTS)).count().values())
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "DELASSUS_CACHE": folder}
        command = [sys.executable, "-c", _FRESH, str(JOINTS)]
        times = [
            float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)
            for _ in range(6)
        ]
    return f"""### Start from the cache

First result of a kernel of {operations} traced operations in a fresh process, imports excluded:
{1e3 * times[0]:.0f} ms when it is compiled, {1e3 * min(times[1:]):.1f} ms when it is in the cache.
"""


def throughput() -> str:
    """Arithmetic through the ufunc, array conversion included, against the peak of the core."""
    loop = FmaLoop(Target.host())
    rows = []
    for label, model, batch in (
        ("tree of 50", balanced_tree(JOINTS), 512),
        ("tree of 50", balanced_tree(JOINTS), BATCH),
        ("tree of 50", balanced_tree(JOINTS), 65536),
        ("chain of 50", chain(JOINTS), BATCH),
        ("tree of 12", balanced_tree(12), BATCH),
    ):
        kernel = dl.aba.compiled(model)
        x, out = np.random.default_rng(0).normal(size=(3, batch, model.nv)), np.empty((batch, model.nv))
        tasks = {"peak": loop, "ours": lambda k=kernel, x=x, out=out: k.ufunc(*x, out=out)}
        seconds = best_of_each(tasks, repeat=40 if batch <= BATCH else 12)
        peak, rate = loop.flops / seconds["peak"], kernel.flops * batch / seconds["ours"]
        rows.append(
            f"| {label} | {batch} | {kernel.flops} | {1e6 * seconds['ours'] / batch:.3f} | {rate / 1e9:.1f} "
            f"| {peak / 1e9:.1f} | {rate / peak:.0%} |"
        )
    return f"""### Throughput

ABA through the ufunc, one thread, array conversion and sin/cos included, against a loop of register-only fused
multiply-adds in the same run (a fused multiply-add counts 2, + - * / √ count 1, everything else 0).

| joints | batch | flops/state | µs/state | Gflop/s | peak Gflop/s | share |
|---|---|---|---|---|---|---|
{chr(10).join(rows)}
"""


@dl.kernel("(3),(3),(3)->(3)")
def _small(model, a, b, c):
    return a + b * c


def call_overhead() -> str:
    """What a call costs when there is next to nothing to compute."""
    x, y, z, out = np.random.default_rng(0).normal(size=(4, 3))
    A = np.random.default_rng(1).normal(size=(3, 3))
    ufunc, bound = _small.specialize(None), _small.bind(None, x, y, z, out)
    seconds = best_of_each(
        {
            "np.matvec": lambda: np.matvec(A, x),
            "np.matvec, out=": lambda: np.matvec(A, x, out=out),
            "ufunc, out=": lambda: ufunc(x, y, z, out=out),
            "kernel(model, …)": lambda: _small(None, x, y, z),
            "bound": lambda: bound(),  # noqa: PLW0108  (the same lambda around every call)
            "nothing": lambda: None,
        },
        repeat=30,
        number=20_000,
    )
    base = seconds.pop("nothing")  # the lambda around each call
    matvec = seconds["np.matvec"] - base
    rows = "\n".join(f"| {k} | {1e9 * (t - base):.0f} | {(t - base) / matvec:.2f} |" for k, t in seconds.items())
    return f"""### Overhead of a call

Three inputs of 3 numbers, one output, against `np.matvec` on a 3×3 matrix.

| call | ns | ratio to np.matvec |
|---|---|---|
{rows}
"""


def two_threads() -> str:
    """A large batch on one and on two threads."""
    model, batch = balanced_tree(JOINTS), 65536
    x, out = np.random.default_rng(0).normal(size=(3, batch, model.nv)), np.empty((batch, model.nv))
    before = dl.threads()

    def on(n: int) -> None:
        dl.threads(n)
        dl.aba(model, *x, out=out)

    seconds = best_of_each({"1": lambda: on(1), "2": lambda: on(2)}, repeat=25)
    dl.threads(before)
    return f"""### Threads

ABA of a tree of {JOINTS}, batch {batch}: {1e3 * seconds["1"]:.1f} ms on one thread, {1e3 * seconds["2"]:.1f} ms on two:
{seconds["1"] / seconds["2"]:.2f} times as fast.
"""


def bad_numbers() -> str:
    """Whether NaN, infinities and subnormals slow a batch down."""
    model = balanced_tree(12)
    ufunc = dl.aba.specialize(model)
    clean, out = np.random.default_rng(0).normal(size=(3, BATCH, 12)), np.empty((BATCH, 12))
    tasks = {"clean": lambda: ufunc(*clean, out=out)}
    for label, value in (("NaN", np.nan), ("inf", np.inf), ("subnormal", 1e-310)):
        x = clean.copy()
        x[1] = value
        tasks[label] = lambda x=x: ufunc(*x, out=out)
    seconds = best_of_each(tasks, repeat=40)
    rows = ", ".join(f"{k} {t / seconds['clean']:.2f}" for k, t in seconds.items())
    return f"""### NaN, infinities and subnormal numbers

Time of a batch with such numbers in every state, relative to a batch without: {rows}.
"""


ELEMENTARY = {
    "positive": (-5.0, 5.0),
    "sqrt": (0.1, 10.0),
    "sin": (-5.0, 5.0),
    "cos": (-5.0, 5.0),
    "tan": (-5.0, 5.0),
    "arcsin": (-1.0, 1.0),
    "arccos": (-1.0, 1.0),
    "arctan": (-5.0, 5.0),
    "exp": (-5.0, 5.0),
    "expm1": (-5.0, 5.0),
    "log": (0.1, 10.0),
    "log1p": (-0.9, 10.0),
    "sinh": (-5.0, 5.0),
    "cosh": (-5.0, 5.0),
    "tanh": (-5.0, 5.0),
    "arctan2": (-5.0, 5.0),
    "hypot": (-5.0, 5.0),
    "power": (0.1, 10.0),
}
"""Functions, and the range of their arguments."""


@dl.kernel("(16)->(16)")
def _unary(name, x):
    return getattr(dnp, name)(x)


@dl.kernel("(16),(16)->(16)")
def _binary(name, x, y):
    return getattr(dnp, name)(x, y)


def elementary_functions() -> str:
    """Elementary functions alone, against NumPy's own loops."""
    rows = []
    for name, (low, high) in ELEMENTARY.items():
        theirs = getattr(np, name)
        ours = (_unary if theirs.nin == 1 else _binary).specialize(name)
        x = np.random.default_rng(0).uniform(low, high, size=(theirs.nin, BATCH, 16))
        out = np.empty((BATCH, 16))
        tasks = {
            "ours": lambda f=ours, x=x, out=out: f(*x, out=out),
            "NumPy": lambda f=theirs, x=x, out=out: f(*x, out),
        }
        seconds = best_of_each(tasks, repeat=100)
        ns = {key: 1e9 * t / out.size for key, t in seconds.items()}
        rows.append(f"| {name} | {ns['ours']:.2f} | {ns['NumPy']:.2f} | {ns['NumPy'] / ns['ours']:.2f} |")
    return f"""### Elementary functions

A kernel that consists of one function of (16) numbers, on {BATCH} states, against NumPy's function on the same
arrays. `positive` computes nothing: its time is that of moving states into the lanes and back, which a larger
kernel needs only once for all its functions.

| function | ns/element | NumPy ns/element | NumPy / ours |
|---|---|---|---|
{chr(10).join(rows)}
"""


def run() -> str:
    """Every benchmark of the compiler, as Markdown."""
    parts = (throughput, elementary_functions, two_threads, call_overhead, bad_numbers, cached_start, compile_time)
    return "\n".join(part() for part in parts)
