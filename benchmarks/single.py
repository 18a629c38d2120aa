"""Single precision against double precision: what it gains in time and loses in digits."""

from typing import Any

import numpy as np

import delassus as dl
from benchmarks.dynamics import BATCH, ROBOTS, folder
from benchmarks.timing import best_of_each
from delassus.model.generators import chain, random_tree


def _models() -> dict[str, dl.Model]:
    """The robots, and two that are larger or longer."""
    robots = {name: dl.load(folder() / file, root=root, mimic="ignore") for name, (file, root) in ROBOTS.items()}
    return {**robots, "random tree": random_tree(50), "chain": chain(50)}


def _compare(kernel: Any, model: dl.Model) -> tuple[dict[str, float], Any]:
    """Seconds of a batch by dtype, and the error of each state.

    The error is the largest one of an output relative to the largest output. Both kernels get the same numbers, those
    that float32 can hold.
    """
    rng = np.random.default_rng(0)
    q = np.array([model.random_configuration(rng) for _ in range(BATCH)])
    states = [x.astype(np.float32) for x in (q, *rng.normal(size=(2, BATCH, model.nv)))]
    tasks, outs = {}, {}
    for name in ("float64", "float32"):
        ufunc, inputs = kernel.specialize(model, dtype=name), [x.astype(name) for x in states]
        outs[name] = np.empty((BATCH, model.nv), name)
        tasks[name] = lambda f=ufunc, x=inputs, out=outs[name]: f(*x, out=out)
    seconds = best_of_each(tasks, repeat=30)
    difference = np.abs(outs["float32"] - outs["float64"]).max(1)
    return seconds, difference / np.abs(outs["float64"]).max(1)


def run() -> str:
    """Speed and error of ABA and RNEA, as Markdown."""
    rows = []
    for name, model in _models().items():
        cells = []
        for kernel in (dl.aba, dl.rnea):
            t, error = _compare(kernel, model)
            cells += [f"{1e6 * t[k] / BATCH:.3f}" for k in t] + [f"{t['float64'] / t['float32']:.2f}×"]
            cells += [f"{np.median(error):.0e}", f"{error.max():.0e}"]
        rows.append(f"| {name} | {model.nv} | {' | '.join(cells)} |")
    return f"""### Single precision

`dtype=np.float32` against float64, one thread, µs per state of a batch of {BATCH}. The error of a state is that of its
worst output, relative to its largest output: median and worst of the batch.

| robot | dofs | ABA float64 | float32 | ratio | error | worst | RNEA float64 | float32 | ratio | error | worst |
|---|---|---|---|---|---|---|---|---|---|---|---|
{chr(10).join(rows)}
"""
