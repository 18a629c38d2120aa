"""Robots that stand under servos and random torques, against MuJoCo and MotrixSim on the same MJCF and step."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import mujoco
import mujoco.batch
import mujoco.rollout
import numpy as np

import delassus as dl
from benchmarks.mjcf_robots import mjcf
from benchmarks.timing import best_of

STEP: Final = 1e-3
BATCH: Final = 4096
STEPS: Final = 50
SETTLING: Final = 300
FRICTION: Final = 0.7


@dataclass(frozen=True)
class Case:
    """A bundled robot: shapes that touch, joints without servos, the servos' gains, and random torques [N·m]."""

    name: str
    touching: tuple[str, ...]
    stiffness: float
    damping: float
    torque: float
    undriven: tuple[str, ...] = ()

    @cached_property
    def text(self) -> str:
        """In MJCF. Loops are as stiff as MuJoCo keeps stable: as soft as its default is, the biped collapses."""
        robot = dl.load(self.name)
        text = mjcf(robot, self.touching, self.stiffness, self.damping, FRICTION, STEP, undriven=self.undriven)
        return text.replace("<connect ", '<connect solref="0.002 1" ')

    @cached_property
    def robot(self) -> dl.Model:
        """As it is read here."""
        return dl.load(self.text)

    @cached_property
    def simulation(self) -> dl.Simulation:
        """With the defaults."""
        return dl.Simulation(self.robot, dl.Ground(friction=FRICTION), STEP)

    @cached_property
    def target(self) -> Any:
        """The servos' targets (nu,) that hold the posture "home"."""
        home = dl.load(self.name)
        q = dict(zip((joint.name for joint in home.joints[1:]), home.posture("home")[7:], strict=True))
        return np.array([q[actuator.target] for actuator in self.robot.actuators])

    @cached_property
    def settled(self) -> tuple[Any, Any]:
        """q and v of a robot that has come to rest."""
        log = self.simulation.run(
            dl.load(self.name).posture("home"), control=self.target, steps=SETTLING, every=SETTLING
        )
        return log.q[-1], log.v[-1]

    def controls(self, steps: int, batch: int) -> Any:
        """(steps, batch, nu): targets whose noise gives random torques."""
        noise = np.random.default_rng(0).normal(size=(steps, batch, len(self.target)))
        return self.target + self.torque / self.stiffness * noise


CASES: Final = (
    Case("quadruped", ("*_calf_1",), 200.0, 10.0, 2.0),
    Case("humanoid", ("*_foot_0", "*_shin_0", "*_hand_0"), 1500.0, 60.0, 4.0),
    Case("biped", ("*_foot_0",), 1500.0, 60.0, 1.5, ("*_rod_joint", "*_shin_joint")),
)


@contextlib.contextmanager
def on_threads(count: int) -> Iterator[None]:
    """Kernels use so many threads for a while."""
    before = dl.threads()
    dl.threads(count)
    try:
        yield
    finally:
        dl.threads(before)


def ours(case: Case, batch: int, steps: int) -> tuple[float, Any]:
    """Seconds of a step of one item of a batch, and what was kept: the states before and after."""
    sim, controls = case.simulation, case.controls(steps + 10, batch)
    state = sim.start(*(np.tile(x, (batch, 1)) for x in case.settled))
    for u in controls[:10]:
        state = sim.step(state, u)
    seconds = best_of(lambda: sim.run(state, control=controls[10:], every=steps))
    return seconds / (batch * steps), sim.run(state, control=controls[10:], every=steps)


def _mujoco(case: Case, cone: str) -> Any:
    model = mujoco.MjModel.from_xml_string(case.text)
    model.opt.cone = getattr(mujoco.mjtCone, f"mjCONE_{cone.upper()}")
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    return model


def _settled_there(case: Case, model: Any) -> Any:
    data = mujoco.MjData(model)
    data.qpos[:] = dl.q_to_mujoco(case.robot, dl.load(case.name).posture("home"))
    data.ctrl[:] = case.target
    for _ in range(SETTLING):
        mujoco.mj_step(model, data)
    return data


def rolled_out(case: Case, cone: str, batch: int, steps: int) -> tuple[float, float]:
    """Seconds of a step in `mujoco.rollout` on one thread, and the largest sliding velocity of a foot [m/s]."""
    model = _mujoco(case, cone)
    data = _settled_there(case, model)
    begin = np.tile(np.concatenate([[0.0], data.qpos, data.qvel]), (batch, 1))
    controls = np.ascontiguousarray(case.controls(steps, batch).transpose(1, 0, 2))
    rollout = mujoco.rollout.Rollout(nthread=0)
    seconds = best_of(lambda: rollout.rollout(model, data, begin, controls))
    return seconds / (batch * steps), _creep(model, _settled_there(case, model))


def _creep(model: Any, data: Any) -> float:
    """The largest sliding velocity of a contact of a robot at rest."""
    for _ in range(2000):
        mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    slides, J = [0.0], np.zeros((3, model.nv))
    for contact in data.contact:
        body = model.geom_bodyid[contact.geom[1]]
        mujoco.mj_jac(model, data, J, None, contact.pos, body)
        slides.append(float(np.linalg.norm((contact.frame.reshape(3, 3) @ (J @ data.qvel))[1:])))
    return max(slides)


def batched(case: Case, cone: str, batch: int, steps: int) -> float:
    """Seconds of a step in `mujoco.batch` on one thread."""
    model = _mujoco(case, cone)
    data = _settled_there(case, model)
    many = mujoco.batch.Batch(model, nsim=batch, nthread=1)
    many.qpos, many.qvel = data.qpos, data.qvel
    controls = case.controls(steps, batch)

    def run() -> None:
        for u in controls:
            many.ctrl = u
            many.step()

    return best_of(run, 2) / (batch * steps)


def motrix(case: Case, batch: int, steps: int) -> float | None:
    """Seconds of a step in MotrixSim (float32, one thread); None without it."""
    try:
        import motrixsim
    except ImportError:
        return None
    with contextlib.suppress(RuntimeError):  # it is there already
        motrixsim.init_thread_pool(1)
    model = motrixsim.load_mjcf_str(case.text)
    data = motrixsim.SceneData(model, batch=(batch,))
    q = dl.load(case.name).posture("home").astype(np.float32)
    data.set_dof_pos(np.tile(q, (batch, 1)), model)
    controls = case.controls(steps, batch).astype(np.float32)
    for u in (np.tile(case.target, (batch, 1)).astype(np.float32),) * SETTLING:
        data.actuator_ctrls = u
        model.step(data)

    def run() -> None:
        for u in controls:
            data.actuator_ctrls = u
            model.step(data)

    return best_of(run, 2) / (batch * steps)


def alone(case: Case, steps: int = 2000) -> tuple[float, float]:
    """Seconds of a step of one robot, with a new control in each, here and by `mj_step` from Python."""
    sim, controls = case.simulation, case.controls(steps, 1)[:, 0]
    q, v = case.settled

    def here() -> None:
        sim.run(q, v, control=controls, every=steps)

    model = _mujoco(case, "pyramidal")
    data = _settled_there(case, model)

    def there() -> None:
        for u in controls:
            data.ctrl[:] = u
            mujoco.mj_step(model, data)

    return best_of(here) / steps, best_of(there) / steps


def against_peers(batch: int = BATCH, steps: int = STEPS) -> str:
    """The table of all robots."""
    rows, singles = [], []
    with on_threads(1):
        for case in CASES:
            seconds, log = ours(case, batch, steps)
            peers = {cone: rolled_out(case, cone, 64, steps) for cone in ("pyramidal", "elliptic")}
            cone = min(peers, key=lambda name: peers[name][0])
            theirs = min(peers[cone][0], batched(case, cone, 64, steps))
            other = motrix(case, 256, steps)
            unsolved = np.mean(log.status[-1] != 0)
            rows.append(
                f"| {case.name} | {case.robot.nv} | {case.simulation.scene.candidates} | {1e-3 / seconds:,.0f} "
                f"| {np.median(log.residual[-1]):.0e}, {np.max(log.residual[-1]):.0e} | {unsolved:.2%} "
                f"| {1e-3 / theirs:,.1f} ({cone}) | {peers[cone][1]:.0e} | **{theirs / seconds:.1f}** "
                f"| {'-' if other is None else f'{1e-3 / other:,.1f} ({other / seconds:.0f}×)'} |"
            )
            here, there = alone(case)
            singles.append(f"| {case.name} | {1e6 * here:.1f} | {1e6 * there:.1f} | {there / here:.1f} |")
    torques = ", ".join(f"{case.torque:g}" for case in CASES)
    return f"""### Robots on the ground, one thread

Held by position servos, with random torques (standard deviation {torques} N·m) that change in every step of
{STEP * 1e3:g} ms; {batch} robots in Delassus. MuJoCo by its faster cone and the faster of `rollout` and `batch` (64
robots, `implicitfast`); MotrixSim computes in float32 (256 robots). The residual, median and largest, is the violation
of the contact laws. MuJoCo's contacts are soft: the table has the sliding velocity of the feet of a robot at rest
instead.

| robot | velocities | candidates | 10³ steps/s | residual [m/s] | marked | MuJoCo | slides [m/s] | ratio | MotrixSim |
|---|---|---|---|---|---|---|---|---|---|
{chr(10).join(rows)}

One robot at a time, a new control in every step, from Python (`Simulation.run`, `mj_step`):

| robot | µs a step | `mj_step` [µs] | ratio |
|---|---|---|---|
{chr(10).join(singles)}
"""


def by_size() -> str:
    """Steps a second of quadrupeds against the size of the batch, and two threads against one."""
    case, rows = CASES[0], []
    for batch in (1, 16, 256, 1024, 4096, 16384, 65536):
        steps = max(5, min(STEPS, 200_000 // batch))
        seconds = {}
        for count in (1, 2):
            with on_threads(count):
                seconds[count], _ = ours(case, batch, steps)
        one, two = seconds[1], seconds[2]
        rows.append(f"| {batch} | {1e-3 / one:,.0f} | {1e-3 / two:,.0f} | {one / two:.2f} |")
    return f"""### Quadrupeds by the size of the batch

| robots | 10³ steps/s, one thread | two threads | ratio |
|---|---|---|---|
{chr(10).join(rows)}
"""


_FRESH: Final = """
import sys, time
import delassus as dl
robot = dl.load("quadruped")
sim = dl.Simulation(robot, touching="*_calf_1")
state = sim.start(robot.posture("home"))
start = time.perf_counter()
sim.step(state)
print(time.perf_counter() - start)
"""


def first_step() -> str:
    """The first step of a quadruped, compiled and from the cache."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "DELASSUS_CACHE": folder}
        command = [sys.executable, "-c", _FRESH]
        times = [
            float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)
            for _ in range(3)
        ]
    return (
        f"First step of a quadruped in a fresh process: {times[0]:.2f} s when it is compiled, "
        f"{min(times[1:]):.3f} s when it is in the cache.\n"
    )


PILES: Final = (("50 balls", "sphere", "0.05", 50), ("20 boxes", "box", "0.05 0.05 0.05", 20))
"""Names, shapes, sizes in MJCF and numbers of bodies that fall onto the ground from a lattice."""


def _pile(kind: str, size: str, count: int) -> tuple[str, Any]:
    """A scene in MJCF, and where its bodies start (count, 7)."""
    geom = f'type="{kind}" size="{size}" mass="1" friction="{FRICTION} 0 0"'
    bodies = "".join(f'<body><freejoint/><geom name="g{k}" {geom}/></body>' for k in range(count))
    ground = f'<geom type="plane" size="9 9 .1" friction="{FRICTION} 0 0"/>'
    text = f'<mujoco><option timestep="{STEP}" cone="elliptic"/><worldbody>{ground}{bodies}</worldbody></mujoco>'
    side = 4 if count > 30 else 3
    k = np.arange(count)
    q = np.zeros((count, 7))
    q[:, :3] = 0.105 * np.stack([k % side, k // side % side, k // side**2], 1) + np.array([0, 0, 0.063])
    q[:, :3] += np.random.default_rng(0).uniform(-0.003, 0.003, (count, 3))
    q[:, 6] = 1.0
    return text, q


def piles(steps: int = 200, rounds: int = 8) -> str:
    """Piles of free bodies while they fall and at rest, CPU time a step in turns with MuJoCo."""
    lines = []
    for name, kind, size, count in PILES:
        text, q = _pile(kind, size, count)
        model = mujoco.MjModel.from_xml_string(text)
        data = mujoco.MjData(model)
        data.qpos[:] = np.concatenate([q[:, :3], q[:, [6, 3, 4, 5]]], 1).ravel()
        sim = dl.Simulation(dl.load(text), dl.Ground(friction=FRICTION), STEP, colliding=[("g*", "g*")])
        state = sim.step(sim.start(q.ravel()))
        sim.run(state, steps=steps, every=steps)  # compiles
        dl.compiler.finish_optimizing()
        times = []
        for _ in range(rounds):
            start = time.process_time()
            log = sim.run(state, steps=steps, every=steps)
            middle = time.process_time()
            for _ in range(steps):
                mujoco.mj_step(model, data)
            times.append((middle - start, time.process_time() - middle))
            state = sim.resume(log, -1)
        for label, (own, peer) in (("falls", times[0]), ("comes to rest", times[-1])):
            lines.append(
                f"| {name} | {label} | {own / steps * 1e6:.0f} | {peer / steps * 1e6:.0f} | {peer / own:.2f} |"
            )
    table = "\n".join(lines)
    return f"""
Piles of free bodies, one item, elliptic cones in MuJoCo, CPU time:

| pile | | µs a step | MuJoCo | ratio |
|---|---|---|---|---|
{table}
"""


def run() -> str:
    """All of it."""
    return "\n".join((against_peers(), by_size(), piles(), first_step()))
