"""MuJoCo as the reference of its law of contact: states of its rollouts, and what is different there."""

import copy
from typing import Any, NamedTuple

import mujoco
import numpy as np

import delassus as dl
from delassus.model.converters.mujoco import q_from_mujoco, q_to_mujoco, v_from_mujoco
from delassus.model.readers.mjcf import from_mujoco
from delassus.model.readers.mjcf_names import read_names
from delassus.step.selection.world_shapes import ground_shape

GRAVITY = 9.81

SAME = 1e-9
"""Difference [m] of the depths of contacts that are the same."""


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
    """The model with elliptic cones, 100 iterations and a tolerance of 1e-12, whatever its file says.

    Where shapes are iterated for, as cylinders are, normals are known to the root of the tolerance of depths: 1e-12.
    """
    m.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    m.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    m.opt.iterations, m.opt.tolerance = 100, 1e-12
    m.opt.ls_iterations, m.opt.ls_tolerance, m.opt.noslip_iterations = 100, 1e-6, 0
    m.opt.ccd_iterations, m.opt.ccd_tolerance = 200, 1e-12
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


def has_equal_contacts(sim: dl.Simulation, m: Any, states: States) -> np.ndarray:
    """Of each state whether both find the same contact points: of the same pairs of shapes, and as deep."""
    here = sim.accelerations(state_of(sim, states), states.ctrl if states.ctrl.shape[1] else None)
    names, floor = read_names(m).geoms, ground_shape(sim.model)
    pairs = [
        (shape.geometry.name, (floor if other is None else other.geometry).name)
        for shape, other, _ in sim.scene.candidate_shapes
    ]
    margin = np.array([own.margin for own in sim.scene.impedances.contacts])
    same = []
    for k, contacts in enumerate(states.contacts):
        theirs = sorted((sorted((names[one], names[two])), gap) for one, two, gap in contacts)
        candidates = here.candidate[k].astype(int)
        near = [(c, gap) for c, gap in zip(candidates, here.gap[k], strict=True) if gap < margin[c]]
        ours = sorted((sorted(pairs[c]), gap) for c, gap in near)
        pairs_agree = [pair for pair, _ in ours] == [pair for pair, _ in theirs]
        same.append(pairs_agree and np.allclose([x for _, x in ours], [x for _, x in theirs], rtol=0.0, atol=SAME))
    return np.array(same)


# --- robots at rest ---------------------------------------------------------------------------------------------------

SERVO = (20.0, 1.0)
"""Stiffness [N·m/rad] and damping [N·m·s/rad] of the servos that files without controllers get, per kilogram."""


class Rest(NamedTuple):
    """Where a robot comes to rest: configurations in MuJoCo's layout, the largest speed at the end, and the mean
    distance [m] of its contacts there, negative where they penetrate."""

    qpos: np.ndarray
    speed: float
    distance: float


def servoed_model(file: str, servos: bool) -> tuple[Any, Any, np.ndarray]:
    """MuJoCo's model of a file, with position servos at its keyframe in all joints if so asked, ours of the same, and
    the control (nu,) to hold it."""
    spec = mujoco.MjSpec.from_file(file)
    if servos:
        for part in (*spec.sensors, *spec.actuators):  # sensors may be those of actuators
            spec.delete(part)
        for key in list(spec.keys):
            key.ctrl = []
        mass = float(spec.compile().body_mass.sum())
        for joint in spec.joints:
            if joint.type in (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE):
                servo = spec.add_actuator(trntype=mujoco.mjtTrn.mjTRN_JOINT, target=joint.name)
                servo.set_to_position(kp=mass * SERVO[0], kv=mass * SERVO[1])
    m = reference_model(spec.compile())
    data = mujoco.MjData(m)
    if m.nkey:
        mujoco.mj_resetDataKeyframe(m, data, 0)
    control = data.ctrl.copy()
    if servos:
        control = data.qpos[m.jnt_qposadr[m.actuator_trnid[:, 0]]].copy()
    return m, from_mujoco(m), control


def rest_in_mujoco(m: Any, control: np.ndarray, seconds: float, impratio: float | None = None) -> Rest:
    """Roll out from the first keyframe, with the file's `impratio` or another one: feet that push sideways creep less,
    the larger it is."""
    m = copy.copy(m)
    m.opt.impratio = impratio or m.opt.impratio
    data = mujoco.MjData(m)
    if m.nkey:
        mujoco.mj_resetDataKeyframe(m, data, 0)
    data.ctrl[:] = control
    for _ in range(round(seconds / m.opt.timestep)):
        mujoco.mj_step(m, data)
    distance = float(np.mean(data.contact.dist)) if data.ncon else 0.0
    return Rest(data.qpos.copy(), float(np.abs(data.qvel).max()), distance)


def rest_here(model: dl.Model, m: Any, law: str, control: np.ndarray, seconds: float) -> Rest:
    """The same here."""
    data = mujoco.MjData(m)
    if m.nkey:
        mujoco.mj_resetDataKeyframe(m, data, 0)
    sim = dl.Simulation(model, time_step=m.opt.timestep, law=law)
    state = sim.start(q_from_mujoco(model, data.qpos))
    given = control if sim.nu == len(control) else None
    log = sim.run(state, control=given, steps=round(seconds / sim.time_step), every=1000)
    return Rest(q_to_mujoco(model, log.q[-1]), float(np.abs(log.v[-1]).max()), 0.0)


def height_difference(m: Any, one: np.ndarray, other: np.ndarray) -> float:
    """How much higher [m] the free bodies are in another configuration, on average."""
    free = m.jnt_qposadr[m.jnt_type == mujoco.mjtJoint.mjJNT_FREE] + 2
    return float(np.mean(other[free] - one[free]))


def pose_difference(m: Any, one: np.ndarray, other: np.ndarray) -> tuple[float, float, float]:
    """Largest differences of the height of free bodies [m], of lengths [m] and of angles [rad]."""
    change = np.zeros(m.nv)
    mujoco.mj_differentiatePos(m, change, 1.0, one, other)
    height, length, angle = 0.0, 0.0, 0.0
    for j in range(m.njnt):
        at, kind = m.jnt_dofadr[j], m.jnt_type[j]
        if kind == mujoco.mjtJoint.mjJNT_FREE:
            height, length = max(height, abs(change[at + 2])), max(length, np.abs(change[at : at + 3]).max())
            angle = max(angle, np.abs(change[at + 3 : at + 6]).max())
        elif kind == mujoco.mjtJoint.mjJNT_SLIDE:
            length = max(length, abs(change[at]))
        else:
            angle = max(angle, np.abs(change[at : at + (3 if kind == mujoco.mjtJoint.mjJNT_BALL else 1)]).max())
    return float(height), float(length), float(angle)
