"""Motions of constrained robots: RK4 against MuJoCo's, the adaptive pair against SciPy's around our own kernels.

MuJoCo's constraints are soft springs and ours are met exactly: its time is that of a step, not of a result. SciPy's
RK45 is the same pair of formulas; it calls `constrained_dynamics` one state at a time, and corrects no drift.
"""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
from scipy.integrate import solve_ivp

import delassus as dl
from benchmarks.timing import best_of_each

STEPS, STEP, BATCH, TOLERANCE = 1000, 1e-3, 256, 1e-8

FOUR_BAR = """
<mujoco model="four-bar">
  <compiler angle="radian"/>
  <option timestep="0.001" integrator="RK4"> <flag contact="disable"/> </option>
  <worldbody>
    <body name="crank" euler="0 -1.5707963 0"> <joint axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .15 0 0" size=".01" mass=".2"/>
      <body name="coupler" pos=".15 0 0" euler="0 1.2 0"> <joint axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 .35 0 0" size=".01" mass=".3"/> </body> </body>
    <body name="rocker" pos=".4 0 0" euler="0 -1.4 0"> <joint axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".01" mass=".3"/> </body>
  </worldbody>
  <equality> <connect body1="coupler" body2="rocker" anchor=".35 0 0"/> </equality>
</mujoco>
"""


def arm(name: str, links: int = 7, place: str = "") -> str:
    """An arm of capsules of 25 cm and 1 kg."""
    text, end = "", ""
    for k in range(links):
        axis = ("0 0 1", "0 1 0", "1 0 0")[k % 3]
        at = f'pos="{0.25 if k else 0} 0 0" euler="0 {0.5 if k == 3 else -0.2} 0.1"' if k or not place else place
        text += f'<body name="{name}{k}" {at}><joint axis="{axis}"/>'
        text += '<geom type="capsule" fromto="0 0 0 .25 0 0" size=".03" mass="1"/>'
        end += "</body>"
    return text + end


def held(name: str, bodies: str, tie: str) -> str:
    """Bodies with an equality."""
    option = '<option timestep="0.001" integrator="RK4"><flag contact="disable"/></option>'
    return (
        f'<mujoco model="{name}"><compiler angle="radian"/>{option}<worldbody>{bodies}</worldbody>'
        f"<equality>{tie}</equality></mujoco>"
    )


def held_arm() -> str:
    """An arm whose tip is held by a ball joint in the world."""
    return held("held arm", arm("b"), '<connect body1="b6" anchor="0.25 0 0"/>')


def two_arms() -> str:
    """Two arms whose last links are welded together."""
    other = arm("c", place='pos="0.9 0.6 0.2" euler="0 0 -1.6"')
    return held("two arms", arm("b") + other, '<weld body1="b6" body2="c6"/>')


def simulated(mechanism: dl.Mechanism, q: Any, **how: Any) -> Any:
    """A motion of STEPS steps."""
    return dl.simulate_motion(mechanism, q, times=[0.0, STEPS * STEP], **how)


def by_scipy(mechanism: dl.Mechanism, q: Any) -> Any:
    """The same motion by SciPy around our dynamics; coordinates are plain numbers here."""
    solve, nv = dl.constrained_dynamics.specialize(mechanism), mechanism.nv
    nothing = np.zeros(nv)

    def rates(_: float, x: Any) -> Any:
        return np.concatenate([x[nv:], solve(x[:nv], x[nv:], nothing)[0]])

    start = np.concatenate([q, nothing])
    return solve_ivp(rates, (0.0, STEPS * STEP), start, "RK45", rtol=TOLERANCE, atol=TOLERANCE)


def row(xml: str) -> str:
    """One robot."""
    mechanism = dl.Mechanism(dl.load(xml))
    q = dl.assemble(mechanism, mechanism.neutral()).q
    many = np.tile(q, (BATCH, 1))
    theirs = mujoco.MjModel.from_xml_string(xml)
    data, start = mujoco.MjData(theirs), dl.q_to_mujoco(mechanism.model, q)

    def step_theirs() -> None:
        mujoco.mj_resetData(theirs, data)
        data.qpos[:] = start
        mujoco.mj_step(theirs, data, STEPS)

    tasks = {
        "mujoco": step_theirs,
        "rk4": lambda: simulated(mechanism, q, method="rk4", step=STEP),
        "batch": lambda: simulated(mechanism, many, method="rk4", step=STEP),
        "pair": lambda: simulated(mechanism, q, tolerance=TOLERANCE),
        "scipy": lambda: by_scipy(mechanism, q),
    }
    before = dl.threads()
    dl.threads(1)
    t = best_of_each(tasks, repeat=5)
    dl.threads(before)
    ends = {
        "mujoco": dl.q_from_mujoco(mechanism.model, data.qpos),
        "rk4": tasks["rk4"]().q[-1],
        "scipy": tasks["scipy"]().y[: mechanism.nv, -1],
    }
    opened = " / ".join(f"{np.abs(dl.constraint_error(mechanism, x)).max():.0e}" for x in ends.values())
    step = {name: 1e6 * t[name] / STEPS for name in ("mujoco", "rk4")} | {"batch": 1e6 * t["batch"] / STEPS / BATCH}
    return (
        f"| {mechanism.model.name} | {mechanism.nv} | {mechanism.m} | {step['mujoco']:.1f} | {step['rk4']:.1f} "
        f"| {step['batch']:.2f} | {step['mujoco'] / step['rk4']:.1f}× | {step['mujoco'] / step['batch']:.0f}× "
        f"| {1e3 * t['scipy']:.1f} | {1e3 * t['pair']:.2f} | {t['scipy'] / t['pair']:.0f}× | {opened} |"
    )


def run() -> str:
    """A table."""
    rows = "\n".join(map(row, (FOUR_BAR, held_arm(), two_arms())))
    return f"""### Motions of constrained robots

RK4 with steps of {1e3 * STEP:g} ms, projected after each step, in µs per step: MuJoCo's RK4 (soft constraints), and
Delassus for one state and in a batch of {BATCH}. Then {STEPS * STEP:g} s to a tolerance of {TOLERANCE:g}, in ms:
SciPy's `solve_ivp` (RK45) around `constrained_dynamics`, and `dopri5` of Delassus, which also keeps loops closed. The
last column is the loop error after 1 s [m, rad] of MuJoCo, Delassus and SciPy.

| | nv | rows | MuJoCo RK4 | rk4 | rk4, batch | one state | batch | solve_ivp | dopri5 | | open |
|---|---|---|---|---|---|---|---|---|---|---|---|
{rows}
"""


if __name__ == "__main__":
    print(run())
