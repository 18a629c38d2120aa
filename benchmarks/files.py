"""Robots that other people wrote, standing and fallen, in Delassus and MuJoCo: both read one text, in one process.

The files are those of the MuJoCo Menagerie, in the folder that the environment variable DELASSUS_ROBOTS names. Robots
with torque motors get position servos. Controls are those of the keyframe and uniform noise, ± 10 % of the control
range to stand and all of it to fall from random orientations, each held for 20 ms. Times are CPU time on one thread,
per step and robot, over one second after the first second. MuJoCo's is the better of the file's own settings and of
elliptic cones solved to 1e-8.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import mujoco
import mujoco.rollout
import numpy as np

import delassus as dl
from benchmarks.simulation import on_threads

HOLD: Final = 0.02
"""For how long a control is held [s]."""

THEIRS: Final = 64
"""States that MuJoCo rolls out: its time does not depend on their number."""


@dataclass(frozen=True)
class Case:
    """A robot's scene, the stiffness [N·m/rad] of servos in place of its motors, and whether it can fall."""

    robot: str
    stiffness: float = 0.0
    falls: bool = True


CASES: Final = (
    Case("unitree_go2", 60.0),
    Case("unitree_go1"),
    Case("anybotics_anymal_c"),
    Case("google_barkour_vb"),
    Case("unitree_g1"),
    Case("booster_t1", 200.0),
    Case("berkeley_humanoid", 100.0),
    Case("apptronik_apollo", 400.0),
    Case("agility_cassie", 200.0),
    Case("franka_emika_panda", falls=False),
    Case("shadow_hand", falls=False),
    Case("leap_hand", falls=False),
    Case("aloha", falls=False),
)


class Robot:
    """One text for both simulators, its keyframe and its control ranges."""

    def __init__(self, case: Case, folder: Path) -> None:
        path = next(p for p in (folder / case.robot / name for name in ("scene.xml", "scene_right.xml")) if p.exists())
        spec = mujoco.MjSpec.from_file(str(path))
        spec.meshdir = str(path.parent / spec.meshdir)
        spec.texturedir = str(path.parent / spec.texturedir)
        if case.stiffness:
            _servos(spec, case.stiffness)
        self.case, self.model = case, spec.compile()
        with tempfile.TemporaryDirectory() as place:
            text = Path(place) / "scene.xml"
            text.write_text(spec.to_xml())
            self.simulation: dl.Simulation = dl.Simulation.from_file(str(text))
        self.data = mujoco.MjData(self.model)
        if self.model.nkey:
            mujoco.mj_resetDataKeyframe(self.model, self.data, 0)
        self.qpos = self.data.qpos.copy()  # rollouts change those of the data

    @property
    def step(self) -> float:
        """[s]."""
        return float(self.model.opt.timestep)

    @cached_property
    def control(self) -> Any:
        """(nu,) that of the keyframe, or of servos that hold its configuration."""
        if not self.case.stiffness:
            return self.data.ctrl.copy()
        joints = self.model.actuator_trnid[:, 0]
        return self.qpos[self.model.jnt_qposadr[joints]]

    def controls(self, seconds: float, batch: int, fallen: bool) -> Any:
        """(steps, batch, nu)."""
        low, high = self.model.actuator_ctrlrange.T
        holds = round(seconds / HOLD)
        noise = np.random.default_rng(1).uniform(-1.0, 1.0, (holds, batch, self.model.nu))
        share = 0.5 if fallen else 0.1
        middle = 0.5 * (low + high) if fallen else self.control
        u = np.clip(middle + share * (high - low) * noise, low, high)
        return np.repeat(u, round(HOLD / self.step), axis=0)

    def starts(self, batch: int, fallen: bool) -> Any:
        """(batch, nq) of MuJoCo: the keyframe, or that turned at random and lifted."""
        q = np.tile(self.qpos, (batch, 1))
        if fallen:
            turn = np.random.default_rng(2).normal(size=(batch, 4))
            q[:, 3:7] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
            q[:, 2] += 0.3
        return q


def _servos(spec: Any, stiffness: float) -> None:
    """Position servos in place of torque motors, as strong as these, over the ranges of their joints."""
    spec.keys and [spec.delete(key) for key in spec.keys[1:]]
    model = spec.compile()
    for actuator in spec.actuators:
        joint = model.joint(actuator.target)
        low, high = model.actuator(actuator.name).ctrlrange * model.actuator(actuator.name).gear[0]
        limited = bool(model.jnt_limited[joint.id])
        actuator.gainprm[0], actuator.biasprm[1], actuator.biasprm[2] = stiffness, -stiffness, -stiffness / 40.0
        actuator.biastype = mujoco.mjtBias.mjBIAS_AFFINE
        actuator.gear[0] = 1.0
        actuator.forcerange, actuator.forcelimited = (low, high), True
        actuator.ctrlrange = joint.range if limited else (-np.pi, np.pi)
        actuator.ctrllimited = True


def time_ours(robot: Robot, batch: int, fallen: bool, seconds: float) -> dict[str, float]:
    """CPU time of a step [s], the share of robots with a flag, and contacts a robot; one robot has no batch axis."""
    sim, u = robot.simulation, robot.controls(2.0 * seconds, batch, fallen)
    q = np.array([dl.q_from_mujoco(sim.model, x) for x in robot.starts(batch, fallen)])
    if batch == 1:
        q, u = q[0], u[:, 0]
    half = len(u) // 2
    with on_threads(1):
        state = sim.run(q, control=u[:half], every=half)[-1]
        sim.run(state, control=u[half:], every=half)  # all kernels that this takes are compiled now
        dl.compiler.finish_optimizing()
        start = time.process_time()
        log = sim.run(state, control=u[half:], every=half)
        spent = time.process_time() - start
    last = log[-1]
    flagged = np.mean((np.asarray(last.status) & int(dl.Mark.UNSOLVED | dl.Mark.FROZEN)) != 0)
    touching = np.mean(np.sum(sim.contacts(last.q).gap < 1e-4, axis=-1))
    return {"time": spent / (batch * half), "flagged": float(flagged), "contacts": float(touching)}


def time_theirs(robot: Robot, fallen: bool, seconds: float) -> dict[str, float]:
    """CPU time of a step [s], the better of two settings, and contacts a robot."""
    u = np.ascontiguousarray(robot.controls(2.0 * seconds, THEIRS, fallen).transpose(1, 0, 2))
    half, model, times, touching = u.shape[1] // 2, robot.model, [], 0.0
    q = robot.starts(THEIRS, fallen)
    begin = np.concatenate([np.zeros((THEIRS, 1)), q, np.zeros((THEIRS, model.nv + model.na))], axis=1)
    before = model.opt.cone, model.opt.tolerance
    rollout = mujoco.rollout.Rollout(nthread=0)
    for cone, tolerance in (before, (mujoco.mjtCone.mjCONE_ELLIPTIC, 1e-8)):
        model.opt.cone, model.opt.tolerance = cone, tolerance
        middle = rollout.rollout(model, robot.data, begin, u[:, :half])[0][:, -1]
        start = time.process_time()
        end = rollout.rollout(model, robot.data, middle, u[:, half:])[0][:, -1]
        times.append((time.process_time() - start) / (THEIRS * half))
        touching = float(np.mean([_contacts(model, state) for state in end]))
    model.opt.cone, model.opt.tolerance = before
    return {"time": min(times), "contacts": touching}


def _contacts(model: Any, state: Any) -> int:
    data = mujoco.MjData(model)
    mujoco.mj_setState(model, data, np.array(state), mujoco.mjtState.mjSTATE_FULLPHYSICS)
    mujoco.mj_forward(model, data)
    return int(data.ncon)


def row(robot: Robot, fallen: bool, batches: tuple[int, ...], seconds: float) -> str:
    """One line of the table."""
    theirs = time_theirs(robot, fallen, seconds)
    ours = {batch: time_ours(robot, batch, fallen, seconds) for batch in batches}
    most = ours[max(batches)]
    times = " | ".join(f"{1e6 * ours[b]['time']:.3g} ({theirs['time'] / ours[b]['time']:.2g}×)" for b in batches)
    pose = "fallen" if fallen else "held" if not robot.case.falls else "standing"
    return (
        f"| {robot.case.robot}, {pose} | {1e6 * theirs['time']:.3g} | {times} | "
        f"{theirs['contacts']:.1f} / {most['contacts']:.1f} | {most['flagged']:.1e} |"
    )


def run(cases: tuple[Case, ...] = CASES, batches: tuple[int, ...] = (4096, 64, 1), seconds: float = 1.0) -> str:
    """The section's text; without files, what it would want."""
    folder = os.environ.get("DELASSUS_ROBOTS")
    if not folder:
        return "Third-party robots were omitted: DELASSUS_ROBOTS names no folder with their files.\n"
    head = " | ".join(f"ours, {batch}" for batch in batches)
    lines = ["", f"| µs of a step | MuJoCo | {head} | contacts | flagged |", "|" + "---|" * (len(batches) + 4)]
    for case in cases:
        if not (Path(folder) / case.robot).exists():
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dl.DelassusWarning)
            robot = Robot(case, Path(folder))
            lines += [row(robot, fallen, batches, seconds) for fallen in ((False, True) if case.falls else (False,))]
        print(lines[-1], flush=True)
    return __doc__.partition("\n\n")[2] + "\n".join(lines) + "\n"
