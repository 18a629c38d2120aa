"""The tables of the papers behind the algorithms, on their robots: constrained dynamics, factors and inverse.

Sathya and Carpentier, Constrained articulated body dynamics algorithms, Table I: an iiwa arm, Solo, Talos, and Atlas
with two Shadow hands. Carpentier, Budhiraja and Mansard, Proximal and sparse resolution of constrained dynamic
equations: Solo 8, ANYmal B, iCub, Talos, against dense algebra and the contact Cholesky that the paper introduced.

example-robot-data has Solo, ANYmal, iCub and Talos. The others are looked for in the folder that the environment
variable DELASSUS_ROBOTS names: `kuka_iiwa_14/scene.xml` and `shadow_hand/{left,right}_hand.xml`, of the MuJoCo
Menagerie, and `atlas/atlas.urdf`, Drake's. Without them their rows are left out, and a sentence says so.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pinocchio as pin
import scipy.linalg
from tests.in_pinocchio import to_pinocchio

import delassus as dl
from benchmarks.constrained import BATCH, ITERATIONS, PROXIMAL, Theirs, mechanism, robot, side_by_side, states
from benchmarks.dynamics import ROBOTS, folder
from benchmarks.timing import best_of_each
from delassus.model import WORLD

MATRICES: Final = 1024
"""States of a batch whose results are matrices."""

PRINTED: Final = {
    "iiwa H3": (0.97, 0.95, 0.99, 1.51),
    "iiwa H6": (1.02, 1.33, 1.0, 2.0),
    "Solo12 F3×2": (1.81, 2.11, 2.06, 3.08),
    "Solo12 F3×4": (2.25, 2.84, 2.27, 4.06),
    "Talos F6×2": (5.02, 6.27, 7.14, 10.2),
    "Talos F6×2 H6×2": (6.21, 8.84, 7.57, 14.5),
    "Atlas with hands F6×2": (7.90, 9.56, 13.4, 17.7),
    "Atlas with hands F6×2 T3×5": (9.95, 14.0, 14.7, 26.5),
    "Atlas with hands F6×2 T3×10": (11.7, 20.8, 15.0, 36.8),
}
"""µs of Table I: cABA, PV, LTLs, LTL in C++ (Clang 14, -O3 -march=native) on an i9-13950HX with turbo."""


def other_robots() -> Path | None:
    """The folder with robots that no package has, if there is one."""
    name = os.environ.get("DELASSUS_ROBOTS")
    return Path(name) if name and Path(name).is_dir() else None


def _load(path: Path, **options: Any) -> dl.Model | None:
    if not path.exists():
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dl.DelassusWarning)  # actuators and shapes play no part here
        return dl.load(path, **options)


def iiwa() -> dl.Model | None:
    """The arm with seven joints, on a fixed base."""
    found = other_robots()
    return found and _load(found / "kuka_iiwa_14" / "scene.xml")


def atlas_with_hands() -> dl.Model | None:
    """Atlas with a Shadow hand on each wrist: 84 velocities."""
    found = other_robots()
    atlas = found and _load(found / "atlas" / "atlas.urdf", root="free")
    for side in ("left", "right"):
        hand = found and _load(found / "shadow_hand" / f"{side}_hand.xml")
        if atlas is None or hand is None:
            return None
        atlas = atlas.attach(hand, f"{side[0]}_hand", prefix=f"{side}_")
    return atlas


def depth_first(model: dl.Model) -> dl.Model:
    """The same robot with the joints of each subtree next to each other, which Pinocchio's contact Cholesky assumes."""
    order: list[int] = []
    waiting = [k for k, joint in enumerate(model.joints) if joint.parent == WORLD][::-1]
    while waiting:
        order.append(waiting.pop())
        waiting += [k for k, joint in enumerate(model.joints) if joint.parent == order[-1]][::-1]
    place = {WORLD: WORLD} | {old: new for new, old in enumerate(order)}
    joints = [replace(model.joints[k], parent=place[model.joints[k].parent]) for k in order]
    frames = [replace(frame, joint=place[frame.joint]) for frame in model.frame_list if frame.name != "world"]
    return dl.Model(model.name, tuple(joints), tuple(frames), gravity=model.gravity)


def fingertips(atlas: dl.Model, sides: tuple[str, ...]) -> list[dl.Point]:
    """A point on the last link of each of five fingers."""
    tips = [frame.name for side in sides for frame in atlas.frames(f"{side}_?h_??distal")]
    return [dl.Point(tip) for tip in tips]


def table_one_cases() -> Iterator[tuple[str, dl.Mechanism, Any]]:
    """The rows of Table I whose robots are there."""
    arm = iiwa()
    if arm is not None:
        theirs = to_pinocchio(arm)
        yield "iiwa H3", dl.Mechanism(arm, dl.Point("attachment_site")), theirs
        yield "iiwa H6", dl.Mechanism(arm, dl.Weld("attachment_site")), theirs
    for name, rows in (("Solo12", "F3×2"), ("Solo12", "F3×4"), ("Talos", "F6×2"), ("Talos", "F6×2 H6×2")):
        yield f"{name} {rows}", mechanism(name, rows), robot(name)[1]
    atlas = atlas_with_hands()
    if atlas is not None:
        theirs = to_pinocchio(depth_first(atlas))
        feet: list[Any] = [dl.Weld("l_foot"), dl.Weld("r_foot")]
        for rows, sides in (("F6×2", ()), ("F6×2 T3×5", ("right",)), ("F6×2 T3×10", ("left", "right"))):
            yield f"Atlas with hands {rows}", dl.Mechanism(atlas, feet + fingertips(atlas, sides)), theirs


def table_one() -> str:
    """Table I of Sathya and Carpentier."""
    cases = list(table_one_cases())
    names = [name for name, *_ in cases]
    missing = (
        ""
        if len(names) == len(PRINTED)
        else (
            "\nLeft out, since DELASSUS_ROBOTS names no folder with their files: "
            + ", ".join(name for name in PRINTED if name not in names)
            + ".\n"
        )
    )
    printed = "\n".join(f"| {name} | " + " | ".join(f"{x:g}" for x in PRINTED[name]) + " |" for name in names)
    return f"""### Sathya and Carpentier, Table I

{ITERATIONS} proximal iterations, ε = {PROXIMAL:g} for Pinocchio; all functions are called from Python.

{side_by_side(cases)}{missing}
Values of the paper, µs per call in C++ on another machine (i9-13950HX with turbo):

| | cABA | PV | LTLs | LTL |
|---|---|---|---|---|
{printed}
"""


def humanoids_and_quadrupeds() -> Iterator[tuple[str, dl.Mechanism, Any]]:
    """Solo 8 and ANYmal B on four points, iCub and Talos on two welded feet."""
    paths = {"Solo 8": "solo_description/robots/solo.urdf", "ANYmal B": ROBOTS["ANYmal"][0], "iCub": ROBOTS["iCub"][0]}
    for name, path in paths.items():
        model = dl.load(folder() / path, root="free", mimic="ignore")
        feet = [f.name for f in model.frame_list if f.name.endswith("_FOOT") and "ADAPTER" not in f.name]
        held: list[Any] = [dl.Point(foot) for foot in feet] or [dl.Weld("l_sole"), dl.Weld("r_sole")]
        yield name, dl.Mechanism(model, held), pin.buildModelFromUrdf(str(folder() / path), pin.JointModelFreeFlyer())
    yield "Talos", mechanism("Talos", "F6×2"), robot("Talos")[1]


def dense(held: dl.Mechanism, q: Any, v: Any, tau: Any) -> dict[str, Callable[[], Any]]:
    """One damped solve by dense algebra: the whole matrix, or its Schur complement; M, J, c and γ are there already."""
    M, J = dl.crba(held.model, q), dl.constraint_jacobian(held, q)
    h, gamma = tau - dl.bias_torques(held.model, q, v), dl.constraint_bias(held, q, v)
    K = np.block([[M, J.T], [J, -PROXIMAL * np.eye(held.m)]])
    b = np.concatenate([h, -gamma])

    def schur() -> Any:
        factor = scipy.linalg.cho_factor(M, check_finite=False)
        free = scipy.linalg.cho_solve(factor, h, check_finite=False)
        response = scipy.linalg.cho_solve(factor, J.T, check_finite=False)
        G = J @ response + PROXIMAL * np.eye(held.m)
        force = -scipy.linalg.solve(G, J @ free + gamma, assume_a="pos", check_finite=False)
        return free + response @ force, force

    return {
        "dense K": lambda: scipy.linalg.solve(K, b, assume_a="sym", check_finite=False),
        "dense Schur": schur,
    }


def dynamics_row(name: str, held: dl.Mechanism, theirs: Any) -> str:
    """Constrained dynamics of a robot."""
    q, v, tau = states(held, BATCH)
    one = [x[0].copy() for x in (q, v, tau)]
    tasks = dense(held, *one)
    tasks |= Theirs.of(held, theirs).calls(pin.neutral(theirs), one[1].copy(), one[2].copy())
    batch = {}
    for method in (dl.prox_ltl, dl.caba):
        ufunc, out = method.specialize(held), (np.empty(held.nv), np.empty(held.m))
        tasks[f"{method.name} call"] = partial(ufunc, *one, out=out)
        tasks[f"{method.name} bound"] = method.bind(held, *one, *out)
        many = (np.empty((BATCH, held.nv)), np.empty((BATCH, held.m)))
        batch[f"{method.name} batch"] = partial(ufunc, q, v, tau, out=many)
    t = best_of_each(tasks, repeat=30, number=100)
    t |= {k: x / BATCH for k, x in best_of_each(batch, repeat=12).items()}
    order = ["dense K", "dense Schur", "constraintDynamics", "lcaba"]
    order += [f"{method} {how}" for method in ("prox_ltl", "caba") for how in ("call", "bound", "batch")]
    return f"| {name} | {held.nv} | {held.m} | " + " | ".join(f"{1e6 * t[k]:.3g}" for k in order) + " |"


def matrices_row(name: str, held: dl.Mechanism, theirs: Any) -> str:
    """Factors of the KKT matrix, and its inverse."""
    q = states(held, MATRICES)[0]
    one = q[0].copy()
    J, M = dl.constraint_jacobian(held, one), dl.crba(held.model, one)
    K = np.block([[-PROXIMAL * np.eye(held.m), J], [J.T, M]])
    own = Theirs.of(held, theirs)
    data, pq = theirs.createData(), pin.neutral(theirs)
    cholesky = pin.ContactCholeskyDecomposition(theirs, data, own.models, own.datas)

    def compute() -> None:
        pin.crba(theirs, data, pq, pin.Convention.WORLD)
        pin.computeJointJacobians(theirs, data)
        for constraint, its in zip(own.models, own.datas, strict=True):
            constraint.calc(theirs, data, its)
        cholesky.compute(theirs, data, own.models, own.datas, PROXIMAL)

    def invert() -> Any:
        compute()
        return cholesky.inverse()

    tasks: dict[str, Callable[[], Any]] = {
        "ldl": lambda: scipy.linalg.ldl(K, check_finite=False),
        "pin factor": compute,
        "inv": lambda: np.linalg.inv(K),
        "pin inverse": invert,
    }
    ours = {
        "factor": dl.kkt_factor.specialize(held),
        "inverse": dl.kkt_inverse_blocks.specialize(held),
        "exact": dl.kkt_inverse_blocks.specialize(held, exact=True),
    }
    batch = {f"{k} batch": partial(ufunc, q) for k, ufunc in ours.items()}
    tasks |= {f"{k} call": partial(ufunc, one) for k, ufunc in ours.items()}
    t = best_of_each(tasks, repeat=20, number=50)
    t |= {k: x / MATRICES for k, x in best_of_each(batch, repeat=8).items()}
    order = ["ldl", "pin factor", "factor call", "factor batch", "inv", "pin inverse"]
    order += ["inverse call", "inverse batch", "exact call", "exact batch"]
    return f"| {name} | {held.nv} | {held.m} | " + " | ".join(f"{1e6 * t[k]:.3g}" for k in order) + " |"


def contact_cholesky() -> str:
    """The robots of Carpentier, Budhiraja and Mansard."""
    cases = list(humanoids_and_quadrupeds())
    dynamics = _table(
        "dense K | dense Schur | pin.constraintDynamics | pin.lcaba | prox_ltl | bound | batch | caba | bound | batch",
        [dynamics_row(*case) for case in cases],
    )
    matrices = _table(
        "scipy ldl | pin factor | kkt_factor | batch "
        "| numpy inv | pin inverse | kkt_inverse_blocks | batch | exact | batch",
        [matrices_row(*case) for case in cases],
    )
    return f"""### Carpentier, Budhiraja and Mansard

Constrained dynamics, µs per state, {ITERATIONS} proximal iterations with ε = {PROXIMAL:g}. "dense" is one damped solve
by SciPy, of the whole matrix or by its Schur complement; the time for M, J, c and γ is not included.
`constraintDynamics` is Pinocchio's contact Cholesky, and `prox_ltl` is the same algorithm in Delassus. Times are for
one state per call from Python, for a bound call, and for a batch of {BATCH}.

{dynamics}
Factors K = U D Uᵀ of [-εI, J; Jᵀ, M] and its inverse, µs per state, from the configuration (M and J included) in
Pinocchio's contact Cholesky and in Delassus; for SciPy and NumPy, K is given. "exact" is the inverse without ε, by a
singular value decomposition. Batches of {MATRICES} write their matrices to memory.

{matrices}"""


def _table(columns: str, rows: list[str]) -> str:
    count = columns.count("|") + 4
    return f"| | nv | rows | {columns} |\n|{'---|' * count}\n" + "\n".join(rows) + "\n"


def run() -> str:
    """Both."""
    return "\n".join((table_one(), contact_cholesky()))
