"""Predictive sampling: rollouts with their costs in one call, against `mujoco.rollout` on the same robots and steps."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import mujoco
import mujoco.rollout
import numpy as np

import delassus as dl
from benchmarks.mjcf_robots import mjcf
from benchmarks.simulation import CASES, on_threads
from benchmarks.timing import best_of

SAMPLES: Final = 1024
ROUNDS: Final = 5

FREE = """<mujoco><option timestep="0.01" integrator="implicitfast"/><worldbody>{bodies}</worldbody>
<actuator><motor name="motor" joint="{joint}" ctrlrange="-15 15"/></actuator></mujoco>"""
ROD = '<geom type="capsule" size="0.02" mass="1" fromto="0 0 0 0 0 {z}" contype="0" conaffinity="0"/>'
CART_POLE = FREE.format(
    joint="cart",
    bodies='<body><joint name="cart" type="slide" axis="1 0 0"/><geom type="box" size=".1 .1 .1" mass="1" '
    f'contype="0" conaffinity="0"/><body><joint name="pole" axis="0 1 0"/>{ROD.format(z=0.6)}</body></body>',
)
ACROBOT = FREE.format(
    joint="elbow",
    bodies=f'<body><joint name="shoulder" axis="0 1 0"/>{ROD.format(z=-0.5)}<body pos="0 0 -0.5">'
    f'<joint name="elbow" axis="0 1 0"/>{ROD.format(z=-0.5)}</body></body>',
)


@dataclass(frozen=True)
class Case:
    """A robot in MJCF, steps of time in a control period, periods ahead, and controls that are tried about a target."""

    name: str
    text: str
    substeps: int
    horizon: int
    noise: float
    target: Any
    start: Any

    @cached_property
    def planner(self) -> dl.control.Sampling:
        """With the simulation's defaults, and a cost that reads all of the state."""
        robot = dl.load(self.text)
        step = mujoco.MjModel.from_xml_string(self.text).opt.timestep
        sim = dl.Simulation(robot, dl.Ground(friction=0.7), step, substeps=self.substeps)

        @dl.kernel(f"(),(nq),(nv),({sim.nu})->()")
        def effort(model: Any, time: Any, q: Any, v: Any, u: Any) -> Any:
            return q @ q + 0.1 * (v @ v) + 1e-3 * (u @ u)

        return dl.control.Sampling(sim, effort, self.horizon, samples=SAMPLES, noise=self.noise)


def cases() -> tuple[Case, ...]:
    """Two that swing, and a quadruped on its feet under servos."""
    legged = CASES[0]
    text = mjcf(dl.load("quadruped"), legged.touching, legged.stiffness, legged.damping, 0.7, 5e-3)
    home = dl.load("quadruped").posture("home")
    return (
        Case("cart-pole", CART_POLE, 2, 50, 5.0, np.zeros(1), np.array([0.0, 3.0])),
        Case("acrobot", ACROBOT, 2, 50, 5.0, np.zeros(1), np.array([0.1, 0.0])),
        Case("quadruped", text, 4, 15, 0.05, legged.target, home),
    )


def measured(case: Case) -> str:
    """A row of the table."""
    planner = case.planner
    sim, plan = planner.sim, planner.start(0, case.target)
    state = sim.start(case.start)
    noise = case.noise * np.random.default_rng(0).normal(size=(SAMPLES, planner.knots, sim.nu))
    controls = planner.controls(plan.knots + noise)
    model = mujoco.MjModel.from_xml_string(case.text)
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    data = mujoco.MjData(model)
    begin = np.concatenate([[0.0], dl.q_to_mujoco(sim.model, state.q), np.zeros(model.nv)])
    repeated = np.repeat(controls, case.substeps, 1)
    rollout = mujoco.rollout.Rollout(nthread=0)
    alone = _seconds(lambda: planner.costs(state, controls), ROUNDS)
    whole = _seconds(lambda: planner.improve(plan, state), ROUNDS)
    theirs = _seconds(lambda: rollout.rollout(model, data, np.tile(begin, (SAMPLES, 1)), repeated), 2)
    steps = SAMPLES * case.horizon * case.substeps
    return (
        f"| {case.name} | {case.horizon} × {case.substeps} | {1e3 * alone:.1f} | {1e-6 * steps / alone:.2f} "
        f"| {1e3 * whole:.1f} | {1e3 * theirs:.0f} | {1e-6 * steps / theirs:.3f} | **{theirs / alone:.0f}** |"
    )


def _seconds(task: Callable[[], Any], rounds: int) -> float:
    """CPU time of the best of some rounds, after one to compile."""
    task()
    return best_of(task, rounds, time.process_time)


def run() -> str:
    """The table."""
    with on_threads(1):
        rows = [measured(case) for case in cases()]
    return f"""### Predictive sampling, one thread

{SAMPLES} rollouts from one state, CPU time: in Delassus with their costs (`Sampling.costs`), which is one call, and
a complete improvement of a plan (MPPI: samples, splines, rollouts, costs, the new plan and its cost);
`mujoco.rollout` on the same MJCF with the same controls, `implicitfast`, without costs.

| robot | periods × steps | rollouts [ms] | 10⁶ steps/s | `improve` [ms] | MuJoCo [ms] | 10⁶ steps/s | ratio |
|---|---|---|---|---|---|---|---|
{chr(10).join(rows)}
"""
