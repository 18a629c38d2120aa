"""Derivatives of constrained dynamics against Pinocchio's, called from Python, on one thread.

Pinocchio's need the accelerations and factors that `constraintDynamics` leaves behind, ours compute them along the way:
both calls count. Three proximal iterations, ε = 1e-6.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pinocchio as pin

import delassus as dl
from benchmarks.constrained import Theirs, mechanism, robot, states
from benchmarks.timing import best_of_each

BATCH = 1024
TABLE = (("UR5", "H6"), ("Solo12", "F3×4"), ("Talos", "F6×2"))
MODES = {"exact": False, "converged": True}


def row(name: str, constraints: str) -> str:
    """A robot, with both kinds of derivatives."""
    held = mechanism(name, constraints)
    q, v, tau = states(held, BATCH)
    one = [x[0].copy() for x in (q, v, tau)]
    theirs = Theirs.of(held, robot(name)[1])
    pq = dl.pinocchio.q_to_pinocchio(held.model, one[0])
    dynamics = theirs.calls(pq, one[1].copy(), one[2].copy())["constraintDynamics"]
    rest = (theirs.model, theirs.data, theirs.models, theirs.datas, theirs.settings)

    def both() -> Any:
        dynamics()
        return pin.computeConstraintDynamicsDerivatives(*rest)

    tasks: dict[str, Any] = {"dynamics": dynamics, "pin": both}
    batch: dict[str, Any] = {}
    seconds = {}
    for mode, converged in MODES.items():
        seconds[mode] = sum(dl.derivatives.constrained_derivatives.inspect(held, converged=converged).seconds.values())
        ufunc = dl.derivatives.constrained_derivatives.specialize(held, converged=converged)
        out = ufunc(*one)
        tasks[f"{mode} ufunc"] = partial(ufunc, *one, out=out)
        tasks[f"{mode} bound"] = dl.derivatives.constrained_derivatives.bind(held, *one, *out, converged=converged)
        batch[mode] = partial(ufunc, q, v, tau, out=ufunc(q, v, tau))
    t = best_of_each(tasks, repeat=30, number=50)
    b = {mode: x / BATCH for mode, x in best_of_each(batch, repeat=10).items()}
    alone = t["pin"] - t["dynamics"]
    cells = [f"{name} {constraints}", held.nv, held.m, f"{1e6 * alone:.1f}", f"{1e6 * t['pin']:.1f}"]
    for mode in MODES:
        ufunc_time, bound_time = t[f"{mode} ufunc"], t[f"{mode} bound"]
        cells += [f"{seconds[mode]:.1f}", f"{1e6 * ufunc_time:.1f}", f"{t['pin'] / ufunc_time:.1f}×"]
        cells += [f"{1e6 * bound_time:.1f}", f"{t['pin'] / bound_time:.1f}×"]
        cells += [f"{1e6 * b[mode]:.2f}", f"{t['pin'] / b[mode]:.1f}×"]
    return f"| {' | '.join(map(str, cells))} |"


def run() -> str:
    """The table."""
    ours = "compile [s] | ufunc | ratio | bound | ratio | batch | ratio"
    return f"""### Derivatives of constrained dynamics

One thread, µs. The table has Pinocchio's `computeConstraintDynamicsDerivatives` alone, and with the preceding
`constraintDynamics`, to which ratios refer; then the derivatives of Delassus, exact for three iterations, and with
`converged=True`. The batch has {BATCH} states.

| | nv | rows | pin alone | pin | exact: {ours} | converged: {ours} |
|---|---|---|---|---|{"---|" * 14}
{chr(10).join(row(*case) for case in TABLE)}
"""
