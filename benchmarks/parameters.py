"""Kernels with parameters against the same with constants: a batch of quadrupeds, each with bodies of its own."""

from typing import Any

import numpy as np

import delassus as dl
from benchmarks.dynamics import BATCH, ROBOTS, folder
from benchmarks.timing import best_of_each


def run() -> str:
    """Measure and write the table."""
    file, root = ROBOTS["Solo12"]
    model = dl.load(folder() / file, root=root)
    rng = np.random.default_rng(0)
    q = np.array([model.random_configuration(rng) for _ in range(BATCH)])
    v, x = rng.normal(size=(2, BATCH, model.nv))
    kernels: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "`rnea`": (dl.rnea, (q, v, x)),
        "`aba`": (dl.aba, (q, v, x)),
        "`crba`": (dl.crba, (q,)),
    }
    lines = [
        f"### Parameters: {BATCH} Solo12, each with masses or inertias of its own, one thread, ns per state\n",
        "| | constants | 13 masses | ratio | 130 inertial parameters | ratio | bytes of a state |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, (kernel, arrays) in kernels.items():
        tasks, outs = {"constant": (kernel.specialize(model), arrays)}, {}
        for kind in ("mass", "inertia"):
            parametric = model.parametric(kind)
            p = parametric.parameters() * rng.uniform(0.8, 1.2, (BATCH, 1))
            tasks[kind] = (kernel.specialize(parametric), (*arrays, p))
        outs = {key: f(*inputs) for key, (f, inputs) in tasks.items()}
        calls = {key: _call(f, inputs, outs[key]) for key, (f, inputs) in tasks.items()}
        ns = {key: 1e9 * s / BATCH for key, s in best_of_each(calls, repeat=60).items()}
        size = sum(array.nbytes for array in (*tasks["inertia"][1], outs["inertia"])) // BATCH
        lines.append(
            f"| {name} | {ns['constant']:.0f} | {ns['mass']:.0f} | {ns['mass'] / ns['constant']:.2f} | "
            f"{ns['inertia']:.0f} | {ns['inertia'] / ns['constant']:.2f} | {size} |"
        )
    return "\n".join(lines) + "\n"


def _call(ufunc: np.ufunc, inputs: tuple[Any, ...], out: Any) -> Any:
    return lambda: ufunc(*inputs, out=out)
