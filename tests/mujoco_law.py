"""MuJoCo as the reference of its law of contact: states of its rollouts, and what is different there."""

from typing import Any, NamedTuple

import mujoco
import numpy as np

import delassus as dl
from delassus.model.converters.mujoco import q_from_mujoco, v_from_mujoco

GRAVITY = 9.81


class States(NamedTuple):
    """States of a rollout, (n, …) each: configurations, velocities, activations, controls, and MuJoCo's accelerations
    and constraint forces there."""

    qpos: np.ndarray
    qvel: np.ndarray
    act: np.ndarray
    ctrl: np.ndarray
    acceleration: np.ndarray
    constraint: np.ndarray
    contacts: list[list[tuple[int, int, float]]]


class Difference(NamedTuple):
    """The largest difference of accelerations and of constraint forces, relative to the largest of the state."""

    acceleration: float
    constraint: float


def reference_model(m: Any) -> Any:
    """The model with elliptic cones, 100 iterations and a tolerance of 1e-12, whatever its file says."""
    m.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    m.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    m.opt.iterations, m.opt.tolerance = 100, 1e-12
    m.opt.ls_iterations, m.opt.ls_tolerance, m.opt.noslip_iterations = 100, 1e-6, 0
    return m


def rollout_states(m: Any, count: int = 200, seconds: float = 4.0, noise: float = 0.1, seed: int = 0) -> States:
    """States of a rollout from the first keyframe, with noise on the controls as a share of their ranges."""
    data = mujoco.MjData(m)
    if m.nkey:
        mujoco.mj_resetDataKeyframe(m, data, 0)
    rng, steps, first = np.random.default_rng(seed), int(seconds / m.opt.timestep), data.ctrl.copy()
    limited = m.actuator_ctrllimited.astype(bool)
    lower, upper = np.where(limited[:, None], m.actuator_ctrlrange, (-np.inf, np.inf)).T if m.nu else ([], [])
    width = np.where(limited, m.actuator_ctrlrange[:, 1] - m.actuator_ctrlrange[:, 0], 1.0)
    found = []
    for k in range(steps):
        if k % 25 == 0:
            data.ctrl[:] = np.clip(first + noise * width * rng.uniform(-1.0, 1.0, m.nu), lower, upper)
        if k % max(steps // count, 1) == 0 and len(found) < count:
            state = [x.copy() for x in (data.qpos, data.qvel, data.act, data.ctrl)]
            mujoco.mj_forward(m, data)
            touching = [(int(c.geom1), int(c.geom2), float(c.dist)) for c in data.contact]
            found.append((*state, data.qacc.copy(), data.qfrc_constraint.copy(), touching))
        mujoco.mj_step(m, data)
    *arrays, contacts = zip(*found, strict=True)
    return States(*(np.stack(x) for x in arrays), list(contacts))


def state_of(sim: dl.Simulation, states: States) -> Any:
    """The same states here."""
    q = q_from_mujoco(sim.model, states.qpos)
    v = v_from_mujoco(sim.model, q, states.qvel)
    return sim.start(q, v, activation=states.act if states.act.shape[1] else None)


def differences(sim: dl.Simulation, states: States) -> tuple[np.ndarray, np.ndarray]:
    """Of each state the differences of accelerations and of constraint forces, relative to their largest there."""
    start = state_of(sim, states)
    here = sim.accelerations(start, states.ctrl if states.ctrl.shape[1] else None)
    result = []
    for ours, theirs in ((here.acceleration, states.acceleration), (here.constraint_force, states.constraint)):
        there = v_from_mujoco(sim.model, start.q, theirs)  # as velocities turn: axes of the state
        scale = np.maximum(np.abs(there).max(-1), GRAVITY if ours is here.acceleration else 1e-3)
        result.append(np.abs(ours - there).max(-1) / scale)
    return result[0], result[1]


def compare_states(sim: dl.Simulation, m: Any, states: States) -> Difference:
    """The largest differences of all states."""
    return Difference(*(float(np.max(x)) for x in differences(sim, states)))
