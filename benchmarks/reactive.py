"""Reactive control of the humanoid on two feet against proxsuite and clarabel, and controlled steps a second."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import numpy as np
import proxsuite

import delassus as dl
from benchmarks.timing import best_of_each
from delassus.control.qp.solve import solve_qp
from delassus.control.reactive.react import react

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
from reactive_humanoid import FRICTION, controller

BATCH: Final = 1024
SHOWN: Final = 32
PERIOD: Final = 2e-3
TOLERANCE: Final = 1e-9
SPREADS: Final = {"calm": (0.01, 0.05), "pushed": (0.03, 0.3)}
"""How far joints [rad] and velocities [rad/s, m/s] are from standing still, as standard deviations."""


def states(robot: dl.Model, spread: tuple[float, float], count: int) -> tuple[Any, Any]:
    """Configurations and velocities near to standing."""
    rng = np.random.default_rng(0)
    q = np.tile(robot.posture("home"), (count, 1))
    q[:, 7:] += spread[0] * rng.normal(size=(count, 30))
    return q, spread[1] * rng.normal(size=(count, robot.nv))


def with_torques(control: dl.control.ReactiveControl, qp: dl.QP) -> dl.QP:
    """The same qp with torques among the unknowns, x = (a, f, u): B u = M a + c - Jᵀ f is more rows."""
    n, nu = qp.shape.n, control.nu
    limited = qp.shape.rows - len(control.limited_joints) - nu
    at = slice(limited, limited + nu)
    # Rows of torques are U x within limits - u₀: as equalities U x - u = -u₀, and limits on u.
    U, middle = qp.C[at], 0.5 * (qp.lower[at] + qp.upper[at])
    limit = 0.5 * (qp.upper[at] - qp.lower[at])
    C = np.vstack([np.delete(qp.C, at, 0), np.zeros((nu, n))])
    C = np.hstack([C, np.vstack([np.zeros((len(C) - nu, nu)), np.eye(nu)])])
    lower, upper = (np.delete(x, at) for x in (qp.lower, qp.upper))
    H = np.zeros((n + nu, n + nu))
    H[:n, :n] = qp.H
    return dl.QP(
        H,
        np.concatenate([qp.g, np.zeros(nu)]),
        np.vstack([np.hstack([qp.A, np.zeros((len(qp.A), nu))]), np.hstack([U, -np.eye(nu)])]),
        np.concatenate([qp.b, middle]),
        C,
        np.concatenate([lower, -limit]),
        np.concatenate([upper, limit]),
    )


class Peer:
    """proxsuite's dense solver on one qp from nothing, or on two in turn, each from the answer to the other."""

    def __init__(self, *qps: dl.QP) -> None:
        shape = qps[0].shape
        self.qp = []
        for qp in qps:
            bounds = [np.clip(x, -1e20, 1e20) for x in (qp.lower, qp.upper)]
            self.qp.append((qp.H, qp.g, qp.A, qp.b, qp.C, *bounds))
        self.data, self.turn = self.qp[0], 0
        self.solver = proxsuite.proxqp.dense.QP(shape.n, shape.equalities, shape.rows)
        self.solver.settings.eps_abs, self.solver.settings.eps_rel = TOLERANCE, 0.0
        self.solver.init(*self.data)
        self.solver.solve()

    def cold(self) -> None:
        """Data, scaling and solution from nothing."""
        self.solver.settings.initial_guess = proxsuite.proxqp.InitialGuess.EQUALITY_CONSTRAINED_INITIAL_GUESS
        self.solver.init(*self.data)
        self.solver.solve()

    def warm(self) -> None:
        """Data and scaling anew, from the answer to the qp before."""
        self.turn = (self.turn + 1) % len(self.qp)
        self.solver.settings.initial_guess = proxsuite.proxqp.InitialGuess.WARM_START_WITH_PREVIOUS_RESULT
        self.solver.update(*self.qp[self.turn])
        self.solver.solve()


def qps() -> str:
    """Microseconds a qp."""
    robot = dl.load("humanoid")
    control = controller(robot)
    reference = control.reference(robot.posture("home"))
    lines = [
        f"The 36-dof humanoid on two feet: {control.n} unknowns with torques eliminated, {control.n + control.nu} with "
        f"them; {control.equalities} equalities, {control.rows} rows. Residuals to {TOLERANCE:g}.\n",
        "| µs a qp | " + " | ".join(SPREADS) + " |",
        "|---|" + "---|" * len(SPREADS),
    ]
    table: dict[str, list[str]] = {}
    for spread in SPREADS.values():
        q, v = states(robot, spread, BATCH)
        found = control(q, v, reference)
        assert found.status.max() == 0
        assert found.residual.max() <= 1e-8
        after = (dl.integrate(robot, q, PERIOD * v), v + PERIOD * found.acceleration)
        tasks = _tasks(control, reference, (q, v), after, found)
        seconds = best_of_each(tasks, repeat=5)
        for name, value in seconds.items():
            count = BATCH if "batch" in name else SHOWN
            table.setdefault(name, []).append(f"{value / count * 1e6:.1f}")
        iterations = np.asarray(found.iterations)
        table.setdefault("Newton steps: mean, largest", []).append(f"{iterations.mean():.1f}, {iterations.max()}")
    return "\n".join([*lines, *(f"| {name} | {' | '.join(cells)} |" for name, cells in table.items())]) + "\n"


def _tasks(control: Any, reference: Any, first: Any, after: Any, found: Any) -> dict[str, Any]:
    """What is timed: states, those a period later, and the reactions to the first ones."""
    q, v = first
    each = [control.qp(q[k], v[k], reference) for k in range(SHOWN)]
    later = [control.qp(after[0][k], after[1][k], reference) for k in range(SHOWN)]
    whole = [Peer(with_torques(control, p)) for p in each]
    eliminated, following = [Peer(p) for p in each], [Peer(*pair) for pair in zip(each, later, strict=True)]
    single = [_bound(control, q[k], v[k], reference) for k in range(SHOWN)]
    warm = [
        _bound(control, after[0][k], after[1][k], reference, found.x[k], found.multipliers[k]) for k in range(SHOWN)
    ]
    cold_batch = react.specialize(control)
    warm_batch = react.specialize(control, inputs=("start", "push"))
    return {
        "built and solved, one": lambda: [tick() for tick in single],
        "one, a period later, started from the answer before": lambda: [tick() for tick in warm],
        "solved, one": lambda: [solve_qp(p.shape, *p.arrays) for p in each],
        f"built and solved, a batch of {BATCH}": lambda: cold_batch(q, v, reference),
        f"a batch of {BATCH}, a period later": lambda: warm_batch(*after, reference, found.x, found.multipliers),
        "proxsuite, with torques (a)": lambda: [peer.cold() for peer in whole],
        "proxsuite, torques eliminated (b)": lambda: [peer.cold() for peer in eliminated],
        "proxsuite (b), a period later, started from the answer before": lambda: [peer.warm() for peer in following],
    }


def _bound(control: Any, q: Any, v: Any, reference: Any, start: Any = None, push: Any = None) -> Any:
    outputs = [np.zeros(k) for k in (control.nu, control.nf, control.nv, control.multipliers)]
    outputs += [np.zeros(()) for _ in range(4)]
    inputs = [np.array(x, float) for x in (q, v, reference)]
    if start is None:
        return react.bind(control, *inputs, *outputs)
    return react.bind(control, *inputs, start.copy(), push.copy(), *outputs, inputs=("start", "push"))


def steps() -> str:
    """Steps of controlled humanoids a second, on one core."""
    robot = dl.load("humanoid")
    control = controller(robot)
    policy = control.policy(control.reference(robot.posture("home")))
    lines = [
        "Steps of 1 ms of controlled humanoids a second on one core, the controller compiled into the step:\n",
        "| | one robot | 256 robots |",
        "|---|---|---|",
    ]
    q, v = states(robot, (0.0, 0.02), 256)
    for substeps, name in ((1, "a qp each step"), (10, "a qp every ten steps")):
        sim = dl.Simulation(
            robot,
            dl.Ground(friction=FRICTION),
            time_step=1e-3,
            substeps=substeps,
            touching=["left_foot_0", "right_foot_0"],
            max_contacts=8,
            max_limits=0,
        )
        one, many = sim.start(q[0], v[0]), sim.start(q, v)
        tasks = {
            "one": lambda sim=sim, one=one: sim.run(one, control=policy, steps=100, every=100),
            "many": lambda sim=sim, many=many: sim.run(many, control=policy, steps=10, every=10),
        }
        threads = dl.threads()
        dl.threads(1)
        seconds = best_of_each(tasks, repeat=3)
        dl.threads(threads)
        rates = (100 * substeps / seconds["one"], 256 * 10 * substeps / seconds["many"])
        lines.append(f"| {name} | {rates[0]:,.0f} | {rates[1]:,.0f} |")
    return "\n".join(lines) + "\n"


def run() -> str:
    """Both tables."""
    return "\n".join(["### Reactive control\n", qps(), steps()])


if __name__ == "__main__":
    print(run())
