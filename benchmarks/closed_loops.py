"""Closed loops against Pinocchio, in the manner of the paper on loops by Sathya and Carpentier, and chains of loops.

Everything is called from Python, in one process, on one thread. Three proximal iterations, ε = 1e-6, no warm start,
states around a closed configuration.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pinocchio as pin
from tests.in_pinocchio import Loop, rigid_constraints

import delassus as dl
from benchmarks.constrained import BATCH, ITERATIONS, PROXIMAL, Comparison, comparison_tables, exponent
from benchmarks.loop_robots import LINKS_PER_LOOP, ROBOTS, LoopRobot, chain_of_loops
from benchmarks.timing import best_of_each

CHAINS = (1, 2, 4, 8, 16, 28, 42)


def constraint_of(loop: Loop) -> dl.Point | dl.Weld:
    """A loop as a constraint."""
    return (dl.Point if loop.kind == "point" else dl.Weld)(loop.frame1, loop.frame2)


def mechanism_of(robot: LoopRobot) -> dl.Mechanism:
    """A robot with its loops."""
    return dl.Mechanism(robot.model, [constraint_of(loop) for loop in robot.loops], model_constraints=False)


def states(robot: LoopRobot, count: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Configurations near the closed one, velocities and torques."""
    rng = np.random.default_rng(seed)
    nv = robot.model.nv
    q = dl.integrate(robot.model, np.tile(robot.q, (count, 1)), 0.1 * rng.normal(size=(count, nv)))
    return q, rng.normal(size=(count, nv)), rng.normal(size=(count, nv))


def theirs(robot: LoopRobot, q: Any, v: Any, tau: Any) -> dict[str, Callable[[], Any]]:
    """Pinocchio's two ways to solve a state."""
    model, settings = robot.theirs, pin.ProximalSettings(0.0, 0.0, PROXIMAL, ITERATIONS)
    data, other = model.createData(), model.createData()
    models, datas = rigid_constraints(model, robot.loops)
    pin.initConstraintDynamics(model, data, models, datas)
    pin.computeJointMinimalOrdering(model, other, models)
    rest = (dl.pinocchio.q_to_pinocchio(robot.model, q), v.copy(), tau.copy(), models, datas, settings)
    return {
        "constraintDynamics": lambda: pin.constraintDynamics(model, data, *rest),
        "lcaba": lambda: pin.lcaba(model, other, *rest),
    }


def table() -> str:
    """Our four algorithms next to Pinocchio's two."""
    cases = []
    for make in ROBOTS:
        robot = make()
        q, v, tau = states(robot, BATCH)
        cases.append(Comparison(robot.name, mechanism_of(robot), (q, v, tau), theirs(robot, q[0], v[0], tau[0])))
    return f"### Closed loops, three proximal iterations\n\n{comparison_tables(cases)}"


def scaling() -> str:
    """A chain of loops of seven links: time against the number of links."""
    rows, sizes = [], [LINKS_PER_LOOP * count for count in CHAINS]
    seconds: dict[str, list[float]] = {"caba": [], "prox_pv": [], "lcaba": []}
    for count in CHAINS:
        robot = chain_of_loops(count)
        held = mechanism_of(robot)
        q, v, tau = states(robot, 256)
        tasks = {"lcaba": theirs(robot, q[0], v[0], tau[0])["lcaba"]}
        for method in (dl.caba, dl.prox_pv):
            out = (np.empty((256, held.nv)), np.empty((256, held.m)))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", dl.DelassusWarning)  # long kernels are the point here
                tasks[method.name] = partial(method.specialize(held), q, v, tau, out=out)
        t = best_of_each(tasks, repeat=10)
        for name, found in seconds.items():
            found.append(t[name] / (1 if name == "lcaba" else 256))
        rows.append(
            f"| {held.nv} | {held.m} | " + " | ".join(f"{1e6 * found[-1]:.2f}" for found in seconds.values()) + " |"
        )
    slopes = " | ".join(f"{exponent(sizes, found):.2f}" for found in seconds.values())
    return f"""### Chains of loops

µs per state for a chain of loops of seven links each, in a batch of 256 for Delassus. The last row is the exponent
of the growth with the number of links.

| links | rows | caba | prox_pv | pin.lcaba |
|---|---|---|---|---|
{chr(10).join(rows)}
| exponent | | {slopes} |
"""


def run() -> str:
    """Both."""
    return f"{table()}\n{scaling()}"
