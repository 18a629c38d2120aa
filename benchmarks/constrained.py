"""Constrained dynamics against Pinocchio: the table of Sathya and Carpentier, convergence, scaling.

Everything is called from Python, in one process, on one thread. Three proximal iterations, ε = 1e-6, no warm start,
random states. H is a hand, F a foot, T a fingertip; 3 is a point, 6 a weld, and the count follows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from tests.in_pinocchio import rigid_contacts

import delassus as dl
from benchmarks.dynamics import ROBOTS, folder
from benchmarks.timing import best_of_each
from delassus.model.generators import balanced_tree, chain

BATCH, ITERATIONS, PROXIMAL = 4096, 3, 1e-6
METHODS = (dl.caba, dl.prox_pv, dl.prox_ltls, dl.prox_ltl)
HAND = "allegro_hand_description/urdf/allegro_{}_hand.urdf"
SOLES = ("left_sole_link", "right_sole_link")
WRISTS = ("gripper_left_base_link", "gripper_right_base_link")
TIPS = ("link_3.0_tip", "link_7.0_tip", "link_11.0_tip", "link_15.0_tip")
CORNERS = [dl.Placement.of(p=(x, y, -0.02)) for x in (0.1, -0.1) for y in (0.05, -0.05)]


@cache
def robot(name: str) -> tuple[dl.Model, Any]:
    """A robot here and in Pinocchio; mimic joints move on their own."""
    if name == "Talos with hands":
        return _with_hands()
    path, root = ROBOTS[name]
    free = [pin.JointModelFreeFlyer()] if root == "free" else []
    return (
        dl.load(folder() / path, root=root, mimic="ignore"),
        pin.buildModelFromUrdf(str(folder() / path), *free),
    )


def _with_hands() -> tuple[dl.Model, Any]:
    ours, theirs = robot("Talos")
    for side, wrist in zip(("left", "right"), WRISTS, strict=True):
        path = folder() / HAND.format(side)
        ours = ours.attach(dl.load(path), wrist, prefix=f"{side}_")
        hand = pin.buildModelFromUrdf(str(path))
        for k in range(1, hand.njoints):
            hand.names[k] = f"{side}_{hand.names[k]}"
        for frame in hand.frames:
            frame.name = f"{side}_{frame.name}"
        theirs = pin.appendModel(theirs, hand, theirs.getFrameId(wrist), pin.SE3.Identity())
    return ours, theirs


def _tips(count: int) -> list[dl.Point]:
    return [dl.Point(f"{side}_{tip}") for side in ("left", "right") for tip in TIPS[: count // 2]]


@cache
def mechanism(name: str, rows: str) -> dl.Mechanism:
    """A row of the table."""
    model, _ = robot(name)
    feet = ["FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"]
    welds = [dl.Weld(sole) for sole in SOLES]
    sets: dict[tuple[str, str], Callable[[], list[Any]]] = {
        ("UR5", "H3"): lambda: [dl.Point("tool0")],
        ("UR5", "H6"): lambda: [dl.Weld("tool0")],
        ("Solo12", "F3×2"): lambda: [dl.Point(foot) for foot in feet[:2]],
        ("Solo12", "F3×4"): lambda: [dl.Point(foot) for foot in feet],
        ("Talos", "F6×2"): lambda: welds,
        ("Talos", "F6×2 H6×2"): lambda: welds + [dl.Weld(wrist) for wrist in WRISTS],
        ("Talos", "F3×8"): lambda: [dl.Point(sole, placement=corner) for sole in SOLES for corner in CORNERS],
        ("Talos with hands", "F6×2"): lambda: welds,
        ("Talos with hands", "F6×2 T3×4"): lambda: welds + _tips(4),
        ("Talos with hands", "F6×2 T3×8"): lambda: welds + _tips(8),
    }
    return dl.Mechanism(model, sets[name, rows]())


TABLE = (
    ("UR5", "H3"),
    ("UR5", "H6"),
    ("Solo12", "F3×2"),
    ("Solo12", "F3×4"),
    ("Talos", "F6×2"),
    ("Talos", "F6×2 H6×2"),
    ("Talos", "F3×8"),
    ("Talos with hands", "F6×2"),
    ("Talos with hands", "F6×2 T3×4"),
    ("Talos with hands", "F6×2 T3×8"),
)


@dataclass
class Theirs:
    """The same constraints in Pinocchio."""

    model: Any
    data: Any
    models: Any
    datas: Any
    settings: Any

    @classmethod
    def of(cls, held: dl.Mechanism, theirs: Any) -> Theirs:
        models, datas = rigid_contacts(held, theirs)
        return cls(theirs, theirs.createData(), models, datas, pin.ProximalSettings(0.0, 0.0, PROXIMAL, ITERATIONS))

    def calls(self, q: Any, v: Any, tau: Any) -> dict[str, Callable[[], Any]]:
        pin.initConstraintDynamics(self.model, self.data, self.models, self.datas)
        other = self.model.createData()
        pin.computeJointMinimalOrdering(self.model, other, self.models)
        rest = (q, v, tau, self.models, self.datas, self.settings)
        return {
            "constraintDynamics": lambda: pin.constraintDynamics(self.model, self.data, *rest),
            "lcaba": lambda: pin.lcaba(self.model, other, *rest),
        }


def states(held: dl.Mechanism, count: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Random configurations, velocities and torques."""
    rng = np.random.default_rng(seed)
    q = np.array([held.random_configuration(rng) for _ in range(count)])
    return q, rng.normal(size=(count, held.nv)), rng.normal(size=(count, held.nv))


def table() -> str:
    """Our four algorithms next to Pinocchio's two."""
    cases = [(f"{name} {rows}", mechanism(name, rows), robot(name)[1]) for name, rows in TABLE]
    return f"### Three proximal iterations\n\n{side_by_side(cases)}"


@dataclass
class Comparison:
    """A mechanism with a label, states (q, v, tau) of it, and Pinocchio's calls that solve one of them."""

    name: str
    held: dl.Mechanism
    states: tuple[Any, Any, Any]
    theirs: dict[str, Callable[[], Any]]

    @classmethod
    def at_random_states(cls, name: str, held: dl.Mechanism, theirs: Any) -> Comparison:
        """At random states, which need not be the same here and there."""
        q, v, tau = states(held, BATCH)
        pq = pin.randomConfiguration(theirs, *_bounds(theirs))
        return cls(name, held, (q, v, tau), Theirs.of(held, theirs).calls(pq, v[0].copy(), tau[0].copy()))


def side_by_side(cases: Iterable[tuple[str, dl.Mechanism, Any]]) -> str:
    """The tables of some mechanisms, each with a label and the robot in Pinocchio."""
    return comparison_tables(Comparison.at_random_states(*case) for case in cases)


def comparison_tables(cases: Iterable[Comparison]) -> str:
    """Times of all methods, and the fastest of ours against the better of Pinocchio's."""
    rows, summary = [], []
    for case in cases:
        held, (q, v, tau) = case.held, case.states
        one = [x[0].copy() for x in (q, v, tau)]
        tasks = dict(case.theirs)
        outs, batch = {}, {}
        for method in METHODS:
            ufunc = method.specialize(held)
            outs[method.name] = (np.empty(held.nv), np.empty(held.m))
            tasks[f"{method.name} ufunc"] = partial(ufunc, *one, out=outs[method.name])
            tasks[f"{method.name} bound"] = method.bind(held, *one, *outs[method.name])
            many = (np.empty((BATCH, held.nv)), np.empty((BATCH, held.m)))
            batch[method.name] = partial(ufunc, q, v, tau, out=many)
        t = best_of_each(tasks, repeat=30, number=200)
        b = {k: x / BATCH for k, x in best_of_each(batch, repeat=12).items()}
        best = min(t["constraintDynamics"], t["lcaba"])
        label = f"| {case.name} | {held.nv} | {held.m} "
        rows.append(
            label
            + f"| {1e6 * t['constraintDynamics']:.2f} | {1e6 * t['lcaba']:.2f} "
            + "".join(f"| {1e6 * t[f'{m.name} ufunc']:.2f} " for m in METHODS)
            + "".join(f"| {1e6 * b[m.name]:.3f} " for m in METHODS)
            + "|"
        )
        fastest = {
            "ufunc": min(METHODS, key=lambda m: t[f"{m.name} ufunc"]),
            "bound": min(METHODS, key=lambda m: t[f"{m.name} bound"]),
            "batch": min(METHODS, key=lambda m: b[m.name]),
        }
        single = best / t[f"{fastest['ufunc'].name} ufunc"]
        bound = best / t[f"{fastest['bound'].name} bound"]
        summary.append(
            label
            + f"| {single:.1f}× {fastest['ufunc'].name} | {bound:.1f}× {fastest['bound'].name} "
            + f"| {best / b[fastest['batch'].name]:.0f}× {fastest['batch'].name} |"
        )
    names = " | ".join(m.name for m in METHODS)
    return f"""µs per state of Pinocchio's two algorithms and of four algorithms of Delassus, in a call of the ufunc
with one state and in a batch of {BATCH}.

| | nv | rows | pin.constraintDynamics | pin.lcaba | {names} | batch {names.replace(" | ", " | batch ")} |
|---|---|---|---|---|{"---|" * 8}
{chr(10).join(rows)}

The fastest algorithm of Delassus compared with the faster algorithm of Pinocchio:

| | nv | rows | one call | bound call | batch |
|---|---|---|---|---|---|
{chr(10).join(summary)}
"""


def _bounds(model: Any) -> tuple[Any, Any]:
    return -np.ones(model.nq), np.ones(model.nq)


WORST = (("UR5", "H6"), ("Solo12", "F3×4"), ("Talos", "F6×2 H6×2"), ("Talos with hands", "F6×2 T3×8"))
WITHIN = (2, 3, 4, 5, 6, 8, 10, 20, 100)


@cache
def solved_within(name: str, constraints: str, natural: bool) -> tuple[float, ...]:
    """Percentage of 10 000 random states that are solved within some numbers of iterations."""
    held = mechanism(name, constraints)
    epsilon = dl.natural_proximal(held, 1e-7) if natural else PROXIMAL
    *_, count, status, _ = dl.constrained_dynamics(
        held, *states(held, 10_000, seed=1), method="prox_pv", proximal=epsilon
    )
    return tuple(float(100 * np.mean((status <= 1) & (count <= k))) for k in WITHIN)


@cache
def residuals(method: Any) -> tuple[float, ...]:
    """Median of the largest residual after k iterations: Talos at rest, so that the points of a foot agree."""
    held = mechanism("Talos", "F3×8")
    q, v, tau = states(held, 1000, seed=2)
    J, gamma = dl.constrained.constraint_jacobian(held, q), dl.constrained.constraint_bias(held, q, 0.0 * v)
    found = []
    for k in range(1, 9):
        a, _ = method(held, q, 0.0 * v, tau, iterations=k, proximal=PROXIMAL)
        found.append(float(np.median(np.max(np.abs((J @ a[..., None])[..., 0] + gamma), -1))))
    return tuple(found)


def convergence() -> str:
    """Share of random states solved to 1e-10 within k iterations; residual against iterations."""
    rows = [
        f"| {name} {constraints} | {'chosen' if natural else PROXIMAL} | "
        + " | ".join(f"{x:.1f}" for x in solved_within(name, constraints, natural))
        + " |"
        for name, constraints in WORST
        for natural in (False, True)
    ]
    medians = [f"| {m.name} | " + " | ".join(f"{x:.0e}" for x in residuals(m)) + " |" for m in METHODS]
    return f"""### Convergence

Percentage of 10 000 random states solved to 1e-10 (`constrained_dynamics`, prox_pv) within k iterations, for a fixed
ε and for the default ε of the mechanism. Near singular configurations of an arm, iterations converge slowly; these
states are then solved by a singular value decomposition, which is not counted.

| | ε | {" | ".join(map(str, WITHIN))} |
|---|---|{"---|" * len(WITHIN)}
{chr(10).join(rows)}

Median of the largest residual [m/s²] after k iterations, Talos at rest on eight points (24 rows, rank 12), 1000 states,
ε = {PROXIMAL}:

| k | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 |
|---|---|---|---|---|---|---|---|---|
{chr(10).join(medians)}

![Residual and share of solved states against iterations](images/convergence.svg)
"""


def exponent(sizes: list[int], seconds: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


CHAIN, TREE = "chain with a weld at its tip", "binary tree with a point on every leaf"
SIZES = {CHAIN: (10, 30, 100, 300), TREE: (10, 30, 100, 200)}


@cache
def growth(label: str, method: Any) -> dict[int, float]:
    """Seconds per state by number of links, as long as a kernel stays below 300 000 operations or so.

    Matrices in joint space of a chain of 100 links, and Delassus matrices of 150 rows, are beyond.
    """
    found = {}
    for n in SIZES[label]:
        if n > 30 and method is not dl.caba and not (method is dl.prox_pv and label == CHAIN):
            continue
        held = dl.Mechanism(chain(n), [dl.Weld(f"link{n - 1}")]) if label == CHAIN else _tree(n)
        q, v, tau = states(held, 512)
        out = (np.empty((512, held.nv)), np.empty((512, held.m)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dl.DelassusWarning)  # long kernels are the point here
            run = partial(method.specialize(held), q, v, tau, out=out)
        found[n] = best_of_each({"": run}, repeat=8)[""] / 512
    return found


def scaling() -> str:
    """Growth of the run time with the size of chains and trees."""
    texts = []
    for label, sizes in SIZES.items():
        rows = []
        for method in METHODS:
            found = growth(label, method)
            cells = " | ".join(f"{1e6 * found[n]:.2f}" if n in found else "–" for n in sizes)
            rows.append(f"| {method.name} | {cells} | {exponent(list(found), list(found.values())):.2f} |")
        texts.append(
            f"A {label}, µs per state in a batch of 512:\n\n| links | {' | '.join(map(str, sizes))} | exponent |\n"
            f"|---|{'---|' * len(sizes)}---|\n" + "\n".join(rows) + "\n"
        )
    return "### Scaling\n\n" + "\n".join(texts) + "\n![Time against the number of links](images/scaling.svg)\n"


def plots(folder: Path) -> None:
    """Draw what `convergence` and `scaling` tabulate."""
    import matplotlib.pyplot as plt

    folder.mkdir(exist_ok=True)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for method in METHODS:
        left.semilogy(range(1, 9), residuals(method), marker="o", label=method.name)
    left.set(xlabel="iterations", ylabel="largest residual, median [m/s²]", title="Talos on eight points")
    for name, constraints in WORST:
        right.plot(WITHIN, solved_within(name, constraints, True), marker="o", label=f"{name} {constraints}")
    right.set(xlabel="iterations", ylabel="states solved to 1e-10 [%]", xscale="log", title="prox_pv to a tolerance")
    for axes in (left, right):
        axes.legend()
        axes.grid(alpha=0.3)
    figure.savefig(folder / "convergence.svg")
    figure, axes_pair = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for axes, label in zip(axes_pair, SIZES, strict=True):
        for method in METHODS:
            found = growth(label, method)
            axes.loglog(list(found), [1e6 * t for t in found.values()], marker="o", label=method.name)
        axes.set(xlabel="links", ylabel="µs per state, batch of 512", title=label)
        axes.legend()
        axes.grid(alpha=0.3, which="both")
    figure.savefig(folder / "scaling.svg")


def _tree(n: int) -> dl.Mechanism:
    tree = balanced_tree(n)
    parents = {joint.parent for joint in tree.joints}
    return dl.Mechanism(tree, [dl.Point(f"link{i}") for i in range(n) if i not in parents])


def run() -> str:
    """All of them."""
    return "\n".join((table(), convergence(), scaling()))
