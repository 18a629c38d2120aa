"""Robot dynamics against Pinocchio and dynibo, all called from Python, in one process and on the same inputs."""

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import dynibo
import numpy as np
import pinocchio as pin

import delassus as dl
from benchmarks.timing import best_of_each
from delassus.model.generators import chain

BATCH = 4096
ROBOTS = {
    "UR5": ("ur_description/urdf/ur5_robot.urdf", "fixed"),
    "Solo12": ("solo_description/robots/solo12.urdf", "free"),
    "ANYmal": ("anymal_b_simple_description/robots/anymal.urdf", "free"),
    "iCub": ("icub_description/robots/icub.urdf", "free"),
    "Talos": ("talos_data/robots/talos_full_v2.urdf", "free"),
    "G1 with hands": ("g1_description/urdf/g1_29dof_with_hand_rev_1_0.urdf", "free"),
}


def folder() -> Path:
    """Where example-robot-data has its robots."""
    parents = Path(pin.__file__).parents
    return next(p / "share/example-robot-data/robots" for p in parents if (p / "share/example-robot-data").is_dir())


@dataclass
class Case:
    """A robot here, in Pinocchio and in dynibo, and random states of it."""

    name: str
    model: dl.Model
    pin: Any
    data: Any
    dynibo: Any
    base: Any
    q: Any
    v: Any
    x: Any

    @classmethod
    def make(cls, name: str) -> "Case":
        file, root = ROBOTS[name]
        path = folder() / file
        model = dl.load(path, root=root, mimic="ignore")
        theirs = pin.buildModelFromUrdf(str(path), *([pin.JointModelFreeFlyer()] if root == "free" else []))
        kind = dynibo.Robot if root == "fixed" else dynibo.FloatingRobot
        base = None
        if root == "free":
            still = dynibo.Twist([0, 0, 0], [0, 0, 0])
            base = dynibo.BaseState(dynibo.Pose([0, 0, 0], [0, 0, 0, 1]), still, still)
        rng = np.random.default_rng(0)
        q = np.array([model.random_configuration(rng) for _ in range(BATCH)])
        v, x = rng.normal(size=(2, BATCH, model.nv))
        try:
            robot = kind.from_urdf(str(path))
        except dynibo.DyniboError:
            robot = None
        return cls(name, model, theirs, theirs.createData(), robot, base, q, v, x)


def _dynibo(c: Case, method: str) -> Any:
    """A call of dynibo with this robot's sizes, or None if it does not read it."""
    if c.dynibo is None:
        return None
    n, first = c.dynibo.joint_count, () if c.base is None else (c.base,)
    function = getattr(c.dynibo, method)
    out = np.empty(n if c.base is None else n + 6)
    q, v, x = (
        np.full(n, 0.1),
        np.full(n, 0.2),
        np.full(n if c.base is None or method == "inverse_dynamics" else n + 6, 0.3),
    )
    try:
        function(*first, q, v, x, out=out)
    except (dynibo.DyniboError, ValueError, TypeError):
        return None
    return lambda: function(*first, q, v, x, out=out)


def tree_algorithms(label: str, kernel: Any, theirs: Any, dynibo_method: str) -> str:
    """Single calls, bound calls and a batch of an algorithm, for every robot."""
    rows = []
    for name in ROBOTS:
        c = Case.make(name)
        compiled = kernel.compiled(c.model)
        pq, q, v, x = dl.pinocchio.q_to_pinocchio(c.model, c.q)[0], c.q[0].copy(), c.v[0].copy(), c.x[0].copy()
        v_pin, x_pin = v.copy(), x.copy()
        out, outs = np.empty(c.model.nv), np.empty((BATCH, c.model.nv))
        bound = kernel.bind(c.model, q, v, x, out)
        ufunc = compiled.ufunc
        tasks = {
            "pin": lambda c=c, pq=pq, v=v_pin, x=x_pin: theirs(c.pin, c.data, pq, v, x),
            "ufunc": lambda f=ufunc, q=q, v=v, x=x, out=out: f(q, v, x, out=out),
            "bound": bound,
        }
        other = _dynibo(c, dynibo_method)
        if other is not None:
            tasks["dynibo"] = other
        t = best_of_each(tasks, repeat=40, number=500)
        batch = best_of_each({"": lambda f=ufunc, c=c, outs=outs: f(c.q, c.v, c.x, out=outs)}, repeat=25)[""] / BATCH
        traced = sum(kernel.program(c.model).count().values())
        them = f"{1e6 * t['dynibo']:.2f}" if "dynibo" in t else "–"
        rows.append(
            f"| {name} | {c.model.nv} | {traced} | {1e6 * t['pin']:.2f} | {them} | {1e6 * t['ufunc']:.2f} "
            f"| {t['pin'] / t['ufunc']:.1f}× | {1e6 * t['bound']:.2f} | {t['pin'] / t['bound']:.1f}× "
            f"| {1e6 * batch:.3f} | {t['pin'] / batch:.0f}× |"
        )
    return f"""### {label}

One thread, µs. Ratios are to Pinocchio's single call; the batch has {BATCH} states. dynibo runs one state of the
same robot in its own conventions; "–" where it does not read the file.

| robot | dofs | traced ops | pin | dynibo | ufunc | ratio | bound | ratio | batch, per state | ratio |
|---|---|---|---|---|---|---|---|---|---|---|
{chr(10).join(rows)}
"""


def mass_matrices() -> str:
    """CRBA of a batch, which is bound by writing the matrices."""
    rows = []
    for name in ROBOTS:
        c = Case.make(name)
        ufunc = dl.crba.specialize(c.model)
        pq = dl.pinocchio.q_to_pinocchio(c.model, c.q)[0]
        out = np.empty((BATCH, c.model.nv, c.model.nv))
        t = best_of_each({"pin": lambda c=c, pq=pq: pin.crba(c.pin, c.data, pq)}, repeat=40, number=500)["pin"]
        s = best_of_each({"": lambda f=ufunc, c=c, out=out: f(c.q, out=out), "fill": lambda o=out: o.fill(1.0)}, 25)
        rows.append(
            f"| {name} | {c.model.nv} | {1e6 * t:.2f} | {1e6 * s[''] / BATCH:.3f} | {t * BATCH / s['']:.1f}× "
            f"| {out.nbytes / s[''] / 1e9:.1f} | {out.nbytes / s['fill'] / 1e9:.1f} |"
        )
    return f"""### CRBA

Batch of {BATCH} with `out=`, one thread, against Pinocchio's single call (which fills half of the matrix).

| robot | dofs | pin µs | ours µs | ratio | GB/s written | GB/s of `out.fill(1.0)` |
|---|---|---|---|---|---|---|
{chr(10).join(rows)}
"""


def parallel() -> str:
    """Two threads against Pinocchio's own parallel functions on two threads."""
    rows = []
    before = dl.threads(2)
    for name in ROBOTS:
        c = Case.make(name)
        pool = pin.ModelPool(c.pin, 2)
        columns = [np.asfortranarray(a.T) for a in (dl.pinocchio.q_to_pinocchio(c.model, c.q), c.v, c.x)]
        theirs, outs = np.asfortranarray(np.empty((c.model.nv, BATCH))), np.empty((BATCH, c.model.nv))
        cells = []
        for kernel, function in ((dl.aba, pin.abaInParallel), (dl.rnea, pin.rneaInParallel)):
            # One after the other: Pinocchio's threads keep a core busy for a while after each call.
            ours = best_of_each({"": partial(kernel, c.model, c.q, c.v, c.x, out=outs)}, repeat=25)[""]
            their = best_of_each({"": partial(function, 2, pool, *columns, theirs)}, repeat=25)[""]
            time.sleep(0.3)
            cells.append(f"{1e6 * their / BATCH:.2f} | {1e6 * ours / BATCH:.3f} | {their / ours:.0f}×")
        rows.append(f"| {name} | {' | '.join(cells)} |")
    dl.threads(before)
    return f"""### Two threads

Pinocchio's `abaInParallel` and `rneaInParallel` on two threads, ours on two; µs per state of {BATCH}.

| robot | pin aba | ours | ratio | pin rnea | ours | ratio |
|---|---|---|---|---|---|---|
{chr(10).join(rows)}
"""


def scaling() -> str:
    """Cost against the number of links of a chain."""
    lengths = (10, 30, 100, 300)
    rows = []
    for label, kernel in (("ABA", dl.aba), ("RNEA", dl.rnea)):
        costs = []
        for n in lengths:
            model = chain(n)
            x = np.random.default_rng(0).normal(size=(3, 1024, n))
            ufunc, out = kernel.specialize(model), np.empty((1024, n))
            costs.append(best_of_each({"": lambda f=ufunc, x=x, out=out: f(*x, out=out)}, repeat=15)[""] / 1024)
        exponent = np.polyfit(np.log(lengths), np.log(costs), 1)[0]
        cells = " | ".join(f"{1e6 * t:.3f}" for t in costs)
        rows.append(f"| {label} | {cells} | {exponent:.2f} |")
    return f"""### Chains

µs per state (batch of 1 024) of chains of {", ".join(map(str, lengths))} links, and the exponent of the growth.

| | {" | ".join(map(str, lengths))} | exponent |
|---|{"---|" * len(lengths)}---|
{chr(10).join(rows)}
"""


_FRESH = """
import sys, time
import numpy as np
import delassus as dl
start = time.perf_counter()
model = dl.load(sys.argv[1], root="free", mimic="ignore")
dl.aba(model, model.neutral(), np.zeros(model.nv), np.zeros(model.nv))
print(time.perf_counter() - start)
"""


def talos_start() -> str:
    """From the file to the first result of ABA, in fresh processes."""
    path = folder() / ROBOTS["Talos"][0]
    with tempfile.TemporaryDirectory() as cache:
        command, environment = [sys.executable, "-c", _FRESH, str(path)], {**os.environ, "DELASSUS_CACHE": cache}
        times = [
            float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)
            for _ in range(6)
        ]
    return f"""### First result

Talos from its URDF to the first result of ABA in a fresh process, imports excluded: {times[0]:.2f} s when it is
compiled, {1e3 * min(times[1:]):.0f} ms when it is in the cache.
"""


def run() -> str:
    """Every benchmark of the dynamics, as Markdown."""
    return "\n".join(
        (
            tree_algorithms("ABA", dl.aba, pin.aba, "forward_dynamics"),
            tree_algorithms("RNEA", dl.rnea, pin.rnea, "inverse_dynamics"),
            mass_matrices(),
            parallel(),
            scaling(),
            talos_start(),
        )
    )
