"""Constrained inverse dynamics against dense algebra on Pinocchio's matrices, which is what its users write.

The peers are given M a + c and J, made beforehand, and are timed for the algebra alone; ours starts from q, v and a.
"lstsq" is SciPy's least squares of [B, Jᵀ]; "QR" is Mistry's decomposition, SciPy's QR with pivots and least
squares of what is left; both find the smallest torques and forces in their own norms, and meet the same equation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pinocchio as pin
import scipy.linalg

import delassus as dl
from benchmarks.constrained import mechanism
from benchmarks.timing import best_of_each

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from in_pinocchio import to_pinocchio

BATCH: Final = 1024
MOTORS: Final = [f"*_{joint}_joint" for joint in ("hip_yaw", "hip_roll", "thigh", "crank", "ankle", "foot")]


def robots() -> dict[str, tuple[dl.control.ActuatedMechanism, Any]]:
    """Mechanisms with actuators, and a configuration."""
    rng = np.random.default_rng(0)
    found: dict[str, tuple[dl.control.ActuatedMechanism, Any]] = {}
    for name, rows in (("Solo12", "F3×4"), ("Talos", "F6×2"), ("Talos", "F3×8")):
        held = mechanism(name, rows)
        found[f"{name}, {rows}"] = dl.control.ActuatedMechanism(held), held.random_configuration(rng)
    biped = dl.Mechanism(dl.load("biped"), [dl.Weld("left_sole"), dl.Weld("right_sole")])
    delta = dl.Mechanism(dl.load("delta"))
    found["biped with closed knees"] = dl.control.ActuatedMechanism(biped, MOTORS), biped.posture("home")
    found["delta robot"] = dl.control.ActuatedMechanism(delta, "arm?_joint"), delta.posture("home")
    return found


def qr(B: Any, J: Any, b: Any) -> tuple[Any, Any]:
    """Mistry's decomposition, for any rank."""
    Q, R, order = scipy.linalg.qr(J.T, pivoting=True)
    rank = int(np.sum(np.abs(np.diagonal(R)) > 1e-9 * abs(R[0, 0])))
    left = Q[:, rank:].T
    u = scipy.linalg.lstsq(left @ B, left @ b)[0]
    force = np.zeros(len(J))
    force[order[:rank]] = scipy.linalg.solve_triangular(R[:rank, :rank], Q[:, :rank].T @ (b - B @ u))
    return u, force


def lstsq(B: Any, J: Any, b: Any) -> tuple[Any, Any]:
    """Both at once, by singular values."""
    x = scipy.linalg.lstsq(np.hstack([B, J.T]), b)[0]
    return x[: B.shape[1]], x[B.shape[1] :]


def row(name: str, robot: dl.control.ActuatedMechanism, q: Any) -> str:
    """A row of the table."""
    rng = np.random.default_rng(1)
    n = robot.nv
    Q = np.broadcast_to(q, (BATCH, robot.nq)).copy()
    still = np.zeros((BATCH, n))
    a = dl.constrained_dynamics(robot.mechanism, Q, still, rng.normal(size=(BATCH, robot.nu)) @ robot.B.T).acceleration
    theirs = to_pinocchio(robot.model)
    b = pin.rnea(theirs, theirs.createData(), dl.q_to_pinocchio(robot.model, q), still[0], a[0])
    J, B = dl.constraint_jacobian(robot.mechanism, q), robot.B
    kernel = dl.control.actuated_inverse_dynamics
    one = (q, still[0], a[0])
    found = kernel(robot, *one)
    out = [np.empty_like(x, float) for x in found]
    tasks: dict[str, Callable[[], Any]] = {
        "call": lambda: kernel(robot, *one),
        "bound": kernel.bind(robot, *one, *out),
        "batch": lambda: kernel(robot, Q, still, a),
        "qr": lambda: qr(B, J, b),
        "lstsq": lambda: lstsq(B, J, b),
    }
    threads = dl.threads(1)
    time = best_of_each(tasks, repeat=10, number=10)
    dl.threads(threads)
    time["batch"] /= BATCH
    off = [b - B @ u - J.T @ force for u, force in (found[:2], qr(B, J, b), lstsq(B, J, b))]
    scale = np.max(np.abs(b))
    micro = " | ".join(f"{1e6 * time[key]:.2f}" for key in ("call", "bound", "batch", "qr", "lstsq"))
    ratios = " | ".join(f"{time['qr'] / time[key]:.1f}" for key in ("call", "bound", "batch"))
    left = " | ".join(f"{np.max(np.abs(x)) / scale:.0e}" for x in off)
    return f"| {name} | {n} | {robot.m} | {robot.nu} | {micro} | {ratios} | {left} |"


def run() -> str:
    """The table."""
    rows = [row(name, *parts) for name, parts in robots().items()]
    return f"""### Constrained inverse dynamics

Torques and forces of a motion, `dl.control.actuated_inverse_dynamics` against dense linear algebra of SciPy on
matrices computed in advance by Pinocchio, one thread. Columns are µs for a call, a bound call, a state in a batch of
{BATCH}, Mistry's QR with pivots, and least squares of [B, Jᵀ]; ratios of the time of QR to the times of Delassus; and the
residual of the equation of motion, as a fraction of the largest generalized force.

| robot | velocities | rows | actuators | call | bound | batch | QR | lstsq | QR/call | QR/bound | QR/batch | ours | QR | lstsq |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
{chr(10).join(rows)}
"""  # noqa: E501


if __name__ == "__main__":
    print(run())
