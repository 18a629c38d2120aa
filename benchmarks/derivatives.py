"""Derivatives of dynamics against Pinocchio, called from Python, in one process and on the same inputs."""

from typing import Any

import numpy as np
import pinocchio as pin

import delassus as dl
from benchmarks.dynamics import BATCH, ROBOTS, Case
from benchmarks.timing import best_of_each


def analytical(label: str, kernel: Any, theirs: Any) -> str:
    """Single calls, bound calls and a batch, for every robot."""
    rows = []
    for name in ROBOTS:
        c = Case.make(name)
        n = c.model.nv
        report, ufunc = kernel.inspect(c.model), kernel.specialize(c.model)
        pq, q, v, x = dl.pinocchio.q_to_pinocchio(c.model, c.q)[0], c.q[0].copy(), c.v[0].copy(), c.x[0].copy()
        out, outs = (tuple(np.empty((*batch, n, n)) for _ in range(3)) for batch in ((), (BATCH,)))
        t = best_of_each(
            {
                "pin": lambda c=c, pq=pq, v=v, x=x: theirs(c.pin, c.data, pq, v, x),
                "ufunc": lambda f=ufunc, q=q, v=v, x=x, out=out: f(q, v, x, out=out),
                "bound": kernel.bind(c.model, q, v, x, *out),
            },
            repeat=30,
            number=100,
        )
        s = best_of_each(
            {
                "": lambda f=ufunc, c=c, outs=outs: f(c.q, c.v, c.x, out=outs),
                "fill": lambda outs=outs: [o.fill(1.0) for o in outs],
            },
            repeat=12,
        )
        written = sum(o.nbytes for o in outs) / 1e9
        rows.append(
            f"| {name} | {n} | {sum(report.traced.values())} | {sum(report.seconds.values()):.1f} "
            f"| {1e6 * t['pin']:.2f} | {1e6 * t['ufunc']:.2f} | {t['pin'] / t['ufunc']:.1f}× "
            f"| {1e6 * t['bound']:.2f} | {t['pin'] / t['bound']:.1f}× | {1e6 * s[''] / BATCH:.2f} "
            f"| {t['pin'] * BATCH / s['']:.1f}× | {written / s['']:.1f} | {written / s['fill']:.1f} |"
        )
    return f"""### {label}

One thread, µs. Ratios are to Pinocchio's single call; the batch has {BATCH} states, and the last columns are the
rates [GB/s] at which the results are written and at which NumPy fills the same arrays with ones.

| robot | dofs | ops | compile [s] | pin | ufunc | ratio | bound | ratio | batch | ratio | written | filled |
|---|---|---|---|---|---|---|---|---|---|---|---|---|
{chr(10).join(rows)}
"""


def run() -> str:
    """Derivatives of inverse and of forward dynamics."""
    return "\n".join(
        (
            analytical("Derivatives of RNEA", dl.derivatives.rnea_derivatives, pin.computeRNEADerivatives),
            analytical("Derivatives of ABA", dl.derivatives.aba_derivatives, pin.computeABADerivatives),
        )
    )
