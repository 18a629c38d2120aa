"""The Delassus matrix, its damped inverse and early elimination against Pinocchio: from Python, on one thread.

Pinocchio's `computeDampedDelassusMatrixInverse` gives 1/ε times the identity from Python (version 4.1.0), whatever the
robot; it is timed next to what does give the inverse there: `computeDelassusMatrix` with the penalty ρ = 1/ε, and
Λ = ρ 1 - ρ² G in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pinocchio as pin

import delassus as dl
import delassus.numpy as dnp
from benchmarks.constrained import BATCH, Theirs, mechanism, robot, states
from benchmarks.timing import best_of_each

PROXIMAL = 1e-4
CASES = (("Solo12", "F3×4"), ("Talos", "F6×2 H6×2"), ("Talos with hands", "F6×2 T3×8"))
MATRICES: dict[str, tuple[Any, dict[str, Any]]] = {
    "ltl": (dl.delassus_matrix, {"method": "ltl"}),
    "efpa": (dl.delassus_matrix, {"method": "efpa"}),
    "pv_osimr": (dl.delassus_matrix, {"method": "pv_osimr"}),
}
INVERSES: dict[str, tuple[Any, dict[str, Any]]] = {
    "pv_osimr, inverted": (dl.constrained.operational_inertia, {"method": "pv_osimr", "proximal": PROXIMAL}),
    "caba_osim": (dl.constrained.operational_inertia, {"method": "caba_osim", "proximal": PROXIMAL}),
}
OPERATORS: dict[str, tuple[Any, dict[str, Any]]] = {
    "G x": (dl.constrained.delassus_apply, {}),
    "(G + E)⁻¹ b": (dl.constrained.delassus_solve, {"refinements": 0, "proximal": PROXIMAL}),
    "refined once": (dl.constrained.delassus_solve, {"proximal": PROXIMAL}),
}


@dl.kernel("(nq)->()")
def summed(held: dl.Mechanism, q: Any, *, inverse: bool, method: str) -> Any:
    """The sum of a matrix: as long as it takes to compute it, without writing it."""
    options = {"proximal": PROXIMAL} if inverse else {}
    kernel: Any = dl.constrained.operational_inertia if inverse else dl.delassus_matrix
    return dnp.sum(kernel(held, q, method=method, **options))


def theirs(name: str, held: dl.Mechanism, q: Any) -> dict[str, Callable[[], Any]]:
    """Pinocchio's calls."""
    t = Theirs.of(held, robot(name)[1])
    arguments = (t.model, t.data, dl.pinocchio.q_to_pinocchio(held.model, q), t.models, t.datas)
    one, rho = np.eye(held.m), 1.0 / PROXIMAL
    return {
        "pin G": lambda: pin.computeDelassusMatrix(*arguments),
        "pin damped": lambda: pin.computeDampedDelassusMatrixInverse(*arguments, PROXIMAL),
        "pin Λ": lambda: rho * one - rho**2 * pin.computeDelassusMatrix(*arguments, rho),
    }


def ours(
    held: dl.Mechanism, kernels: dict[str, tuple[Any, dict[str, Any]]], core: tuple[int, ...], *inputs: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Our calls of one state, by the ufunc and bound, and those of a batch."""
    one = [x[0].copy() for x in inputs]
    out, outs = np.empty(core), np.empty((BATCH, *core))
    single, batch = {}, {}
    for label, (kernel, options) in kernels.items():
        ufunc = kernel.specialize(held, **options)
        single[label] = partial(ufunc, *one, out=out)
        single[f"{label} bound"] = kernel.bind(held, *one, out, **options)
        batch[label] = partial(ufunc, *inputs, out=outs)
    batch["fill"] = partial(outs.fill, 1.0)
    return single, batch


def _cells(label: str, t: dict[str, float], b: dict[str, float], reference: float) -> str:
    return (
        f"| {label} | {1e6 * t[label]:.2f} | {reference / t[label]:.1f}× | {1e6 * t[f'{label} bound']:.2f} "
        f"| {reference / t[f'{label} bound']:.1f}× | {1e6 * b[label]:.3f} | {reference / b[label]:.1f}× "
        f"| {1e6 * b[f'{label} sum']:.3f} | {reference / b[f'{label} sum']:.0f}× |"
    )


def table(title: str, kernels: dict[str, tuple[Any, dict[str, Any]]], references: tuple[str, ...], text: str) -> str:
    """Kernels that give a matrix, next to Pinocchio's; ratios are to the last of the references."""
    rows = []
    for name, constraints in CASES:
        held = mechanism(name, constraints)
        q = states(held, BATCH)[0]
        single, batch = ours(held, kernels, (held.m, held.m), q)
        for label, (kernel, options) in kernels.items():
            inverse = kernel is dl.constrained.operational_inertia
            ufunc = summed.specialize(held, inverse=inverse, method=options["method"])
            batch[f"{label} sum"] = partial(ufunc, q, out=np.empty(BATCH))
        calls = theirs(name, held, q[0])
        t = best_of_each({**single, **{label: calls[label] for label in references}}, repeat=30, number=200)
        b = {label: seconds / BATCH for label, seconds in best_of_each(batch, repeat=15).items()}
        them = " | ".join(f"{1e6 * t[label]:.2f}" for label in references)
        head = f"| {name} {constraints} | {held.m} | {them} | {1e6 * b['fill']:.3f} "
        rows += [head + _cells(label, t, b, t[references[-1]]) for label in kernels]
    return f"""### {title}

{text} µs; ratios are to "{references[-1]}". The batch has {BATCH} states. The cost of writing the
matrices follows from `fill`, the time per state of `out.fill(1.0)`, and from `sum`, the time of a kernel that
returns only the sum of the matrix elements.

| | rows | {" | ".join(references)} | fill | method | one call | ratio | bound | ratio | batch | ratio | sum | ratio |
|---|---|{"---|" * len(references)}---|---|---|---|---|---|---|---|---|---|
{chr(10).join(rows)}
"""


def operators() -> str:
    """The operators, next to a matrix that is there already."""
    rows = []
    for name, constraints in CASES:
        held = mechanism(name, constraints)
        q = states(held, BATCH)[0]
        x = np.random.default_rng(1).normal(size=(BATCH, held.m))
        single, batch = ours(held, OPERATORS, (held.m,), q, x)
        single["dense"] = partial(np.linalg.solve, dl.delassus_matrix(held, q[0]) + PROXIMAL * np.eye(held.m), x[0])
        t = best_of_each(single, repeat=20, number=200)
        b = {label: seconds / BATCH for label, seconds in best_of_each(batch, repeat=12).items()}
        cells = " | ".join(f"{1e6 * t[label]:.2f} | {1e6 * b[label]:.3f}" for label in OPERATORS)
        rows.append(f"| {name} {constraints} | {held.m} | {cells} | {1e6 * t['dense']:.2f} |")
    return f"""### The Delassus operator

From the configuration, without forming the matrix; times of one call and per state of a batch of {BATCH}, µs. For
comparison, `numpy.linalg.solve` with a given matrix.

| | rows | {" | ".join(f"{label} | batch" for label in OPERATORS)} | numpy.linalg.solve |
|---|---|{"---|" * (2 * len(OPERATORS))}---|
{chr(10).join(rows)}
"""


def digits() -> str:
    """What cancellation costs `caba_osim`."""
    epsilons = (1e-1, 1e-2, 1e-4, 1e-6, 1e-8)
    rows = []
    for name, constraints in CASES:
        held = mechanism(name, constraints)
        q = states(held, 64)[0]
        G = dl.delassus_matrix(held, q, method="ltl")
        cells = []
        for epsilon in epsilons:
            expected = np.linalg.inv(G + epsilon * np.eye(held.m))
            found = dl.constrained.operational_inertia(held, q, method="caba_osim", proximal=epsilon)
            worst = np.max(np.abs(found - expected), (1, 2)) / np.max(np.abs(expected), (1, 2))
            cells.append(f"{np.median(worst):.0e}")
        rows.append(f"| {name} {constraints} | {' | '.join(cells)} |")
    return f"""### Digits of caba_osim

Largest error of Λ relative to its largest element, median of 64 random states:

| ε | {" | ".join(f"{epsilon:.0e}" for epsilon in epsilons)} |
|---|{"---|" * len(epsilons)}
{chr(10).join(rows)}
"""


def early() -> str:
    """Early elimination, which is exact, next to three iterations of other methods."""
    rows = []
    for name, constraints in CASES:
        held = mechanism(name, constraints)
        inputs = states(held, BATCH)
        one = [x[0].copy() for x in inputs]
        shapes = ((held.nv,), (held.m,), ())
        pq = dl.pinocchio.q_to_pinocchio(held.model, one[0])
        single = dict(Theirs.of(held, robot(name)[1]).calls(pq, one[1].copy(), one[2].copy()))
        batch = {}
        for kernel in (dl.pv_early, dl.caba, dl.prox_pv):
            ufunc = kernel.specialize(held)
            single[kernel.name] = partial(ufunc, *one, out=tuple(np.empty(s) for s in shapes[: ufunc.nout]))
            batch[kernel.name] = partial(ufunc, *inputs, out=tuple(np.empty((BATCH, *s)) for s in shapes[: ufunc.nout]))
        t = best_of_each(single, repeat=20, number=200)
        b = best_of_each(batch, repeat=12)
        rows.append(
            f"| {name} {constraints} | {held.m} | {1e6 * t['constraintDynamics']:.2f} | {1e6 * t['lcaba']:.2f} | "
            + " | ".join(f"{1e6 * t[label]:.2f} | {1e6 * b[label] / BATCH:.3f}" for label in batch)
            + " |"
        )
    return f"""### Early elimination

`pv_early` is exact and takes no iterations; the other methods take three. Times of one call and per state of a batch
of {BATCH}, µs.

| | rows | pin.constraintDynamics | pin.lcaba | pv_early | batch | caba | batch | prox_pv | batch |
|---|---|---|---|---|---|---|---|---|---|
{chr(10).join(rows)}
"""


def run() -> str:
    """All of them."""
    inverse = (
        f"(J M⁻¹ Jᵀ + ε)⁻¹ for ε = {PROXIMAL}. `pin damped` is `computeDampedDelassusMatrixInverse`, which gives 1/ε "
        "times the identity from Python; `pin Λ` is its matrix with penalties and NumPy, which gives the inverse."
    )
    return "\n".join(
        (
            table("The Delassus matrix", MATRICES, ("pin G",), "J M⁻¹ Jᵀ, next to `pin.computeDelassusMatrix`."),
            table("The damped inverse", INVERSES, ("pin damped", "pin Λ"), inverse),
            operators(),
            digits(),
            early(),
        )
    )
