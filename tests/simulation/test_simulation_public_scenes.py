"""Scenes that other people wrote, at states of MuJoCo's own trajectories: contacts, actuator forces, sensors; loops.

The folder of scenes is given by DELASSUS_ROBOTS, with files */scene*.xml; without it nothing is tested.
"""

import os
import warnings
from pathlib import Path

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.constrained.rows.references import constraint_error
from delassus.model.readers.mjcf_names import read_names
from delassus.step.selection.world_shapes import ground_shape

ROBOTS = Path(os.environ.get("DELASSUS_ROBOTS", "/nowhere"))
SCENES = sorted(path.relative_to(ROBOTS).as_posix() for path in ROBOTS.glob("*/scene*.xml"))
STATES = 200
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not SCENES, reason="DELASSUS_ROBOTS names no folder of scenes")]


def trajectory(scene):
    """States of two seconds under noise in MuJoCo, with elliptic cones and a tight solve: data after a forward pass."""
    mj = mujoco.MjModel.from_xml_path(str(ROBOTS / scene))
    mj.opt.cone, mj.opt.iterations, mj.opt.tolerance = mujoco.mjtCone.mjCONE_ELLIPTIC, 100, 1e-12
    data, rng, found = mujoco.MjData(mj), np.random.default_rng(0), []
    if mj.nkey:
        mujoco.mj_resetDataKeyframe(mj, data, 0)
    home, width = data.ctrl.copy(), np.where(mj.actuator_ctrllimited, np.diff(mj.actuator_ctrlrange)[:, 0], 1.0)
    steps = round(2.0 / mj.opt.timestep)
    for k in range(steps):
        if k % 50 == 0:
            data.ctrl[:] = home + 0.1 * width * rng.uniform(-1.0, 1.0, mj.nu)
        if k % max(steps // STATES, 1) == 0:
            state = mujoco.MjData(mj)
            state.qpos[:], state.qvel[:], state.act[:], state.ctrl[:] = data.qpos, data.qvel, data.act, data.ctrl
            mujoco.mj_forward(mj, state)
            found.append(state)
        mujoco.mj_step(mj, data)
    return mj, found


@pytest.fixture(scope="module", params=SCENES)
def case(request):
    mj, states = trajectory(request.param)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sim = dl.Simulation.from_file(ROBOTS / request.param)
    q = dl.q_from_mujoco(sim.model, np.array([state.qpos for state in states]))
    return mj, states, sim, q, dl.v_from_mujoco(sim.model, q, np.array([state.qvel for state in states]))


def test_contact_pairs_are_mujocos(case):
    mj, states, sim, q, _ = case
    names, gaps = read_names(mj).geoms, sim.contacts(q).gap
    plane = ground_shape(sim.model)
    pairs = [
        frozenset((one.geometry.name, other.geometry.name if other else plane.name if plane else "ground"))
        for one, other, _ in sim.scene.candidate_shapes
    ]
    for state, gap in zip(states, gaps, strict=True):
        ours = {pairs[k] for k in np.flatnonzero(gap < 0.0)}
        theirs = {frozenset(names[g] for g in c.geom): c.dist for c in state.contact if c.dist < 0.0}
        assert ours <= set(theirs)
        # Hulls of meshes are simplified: what touches by less than that distance may be missed.
        assert all(-depth <= 2.0 * sim.hull_error for pair, depth in theirs.items() if pair not in ours)


def test_actuator_forces_are_mujocos(case):
    mj, states, sim, q, v = case
    stateful = np.flatnonzero(mj.actuator_actadr >= 0)
    signals = np.array([state.ctrl[mj.actuator_ctrladr] for state in states])
    for signal, state in zip(signals, states, strict=True):
        signal[stateful] = state.act[mj.actuator_actadr[stateful]]
    ours = dl.v_to_mujoco(sim.model, q, dl.simulation.actuator_forces(sim.model, q, v, signals))
    theirs = np.array([state.qfrc_actuator for state in states])
    np.testing.assert_allclose(ours, theirs, atol=1e-9 * max(np.abs(theirs).max(), 1.0))


def test_sensors_of_position_and_velocity_are_mujocos(case):
    mj, states, sim, q, v = case
    stages = {mujoco.mj_id2name(mj, mujoco.mjtObj.mjOBJ_SENSOR, k): k for k in range(mj.nsensor)}
    plain = [
        one.name
        for one in sim.model.sensors
        if one.name in stages and mj.sensor_needstage[stages[one.name]] <= 2 and one.kind not in ("framequat", "clock")
    ]
    if not plain:
        pytest.skip("the file has no such sensors")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = sim.start(np.broadcast_to(sim.keyframe.q, q.shape))
    readings = sim.sensors(*plain)(dl.simulation.State(**{**vars(start), "q": q, "v": v}))
    for name, ours in readings.items():
        k = stages[name]
        theirs = np.array([state.sensordata[mj.sensor_adr[k] :][: mj.sensor_dim[k]] for state in states])
        np.testing.assert_allclose(ours, theirs, atol=1e-9, rtol=1e-9, err_msg=name)


def test_loops_of_cassie_stay_closed_while_it_is_pushed_and_falls():
    if "agility_cassie/scene.xml" not in SCENES:
        pytest.skip("there is no Cassie")
    sim, rng, items = dl.Simulation.from_file(ROBOTS / "agility_cassie/scene.xml"), np.random.default_rng(0), 8
    state, lowest = sim.start(np.tile(sim.keyframe.q, (items, 1))), np.full(items, np.inf)
    for k in range(2000):
        if k % 200 == 0:
            kick, wrench = np.zeros((items, sim.model.nv)), rng.normal(0.0, 60.0, (items, 6))
            kick[:, :6] = rng.normal(0.0, 0.8, (items, 6))
            control = sim.keyframe.control + 3.0 * rng.uniform(-1.0, 1.0, (items, sim.nu))
        push = dl.simulation.Push({"cassie-pelvis": wrench}, kick if k % 200 == 0 else None)
        state = sim.step(state, control, push=push)
        lowest = np.minimum(lowest, state.q[:, 2])
        if k % 20 == 0:
            assert np.abs(constraint_error(sim.mechanism, state.q)).max() < 1e-10
    assert lowest.max() < 0.8 and not state.frozen.any()
