"""Simulations with actuators that have a state: their activations are part of it, and those of MuJoCo."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest

import delassus as dl
import delassus.numpy as dnp
from delassus.simulation.checks import SimulationError
from delassus.step.period.kernels import simulate
from refusals import refuses

STEP = 1e-3
XML = f"""
<mujoco>
  <option timestep="{STEP}" gravity="0 0 -9.81"/>
  <worldbody>
    <body><joint name="hinge" axis="0 1 0" damping=".1"/><geom size=".1" pos=".2 0 0" mass="1"/>
      <body pos=".4 0 0"><joint name="slide" type="slide" axis="1 0 0" damping=".3"/><geom size=".1" mass="1"/></body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="hinge" gear="2"/>
    <general joint="slide" dyntype="filter" dynprm=".03" gainprm="4"/>
    <general joint="hinge" dyntype="filterexact" dynprm=".01" gainprm="3" actearly="true"/>
    <intvelocity joint="slide" kp="5" actrange="-.1 .1" ctrlrange="-2 2"/>
    <muscle joint="slide" lengthrange="-.5 .6" force="20"/>
  </actuator>
</mujoco>
"""
MODEL = dl.load(XML)
NA = 4
CONTROLS = np.random.default_rng(0).normal(size=(60, len(MODEL.actuators)))


def simulation(substeps=1, **options):
    return dl.Simulation(MODEL, time_step=STEP, substeps=substeps, max_contacts=0, **options)


@pytest.fixture(scope="module")
def log():
    return simulation().run(MODEL.neutral(), control=CONTROLS)


def theirs(controls, each=1, step=STEP):
    """MuJoCo's activations (steps + 1, na), configurations and velocities."""
    m = mujoco.MjModel.from_xml_string(XML)
    m.opt.timestep = step
    d = mujoco.MjData(m)
    found = [(d.act.copy(), d.qpos.copy(), d.qvel.copy())]
    for u in np.repeat(controls, each, axis=0):
        d.ctrl = u
        mujoco.mj_step(m, d)
        found.append((d.act.copy(), d.qpos.copy(), d.qvel.copy()))
    return [np.array(x) for x in zip(*found, strict=True)]


def test_activations_are_those_of_mujoco(log):
    np.testing.assert_allclose(log.activation, theirs(CONTROLS)[0], atol=1e-12)


def test_activations_in_substeps_are_those_of_mujoco():
    log = simulation(substeps=3).run(MODEL.neutral(), control=CONTROLS[:20])
    np.testing.assert_allclose(log.activation, theirs(CONTROLS[:20], 3)[0][::3], atol=1e-12)


def test_the_motion_approaches_that_of_mujoco_with_the_step():
    """Steps are of first order: half of one halves what is between them and MuJoCo's with a tiny step, or better."""
    _, q, v = theirs(CONTROLS, 32, STEP / 32)
    errors = []
    for substeps in (1, 2):
        sim = dl.Simulation(MODEL, time_step=STEP / substeps, substeps=substeps, max_contacts=0)
        log = sim.run(MODEL.neutral(), control=CONTROLS)
        errors.append([np.abs(log.q - q[::32]).max(), np.abs(log.v - v[::32]).max()])
    assert np.all(np.divide(*errors) > 1.8)


def test_steps_one_by_one_are_those_of_a_run(log):
    sim = simulation()
    state = sim.start(MODEL.neutral())
    for u in CONTROLS:
        state = sim.step(state, u)
    np.testing.assert_array_equal(state.activation, log.activation[-1])
    np.testing.assert_array_equal(state.q, log.q[-1])


def test_items_of_a_batch_have_activations_of_their_own(log):
    controls = np.stack([CONTROLS, 0.5 * CONTROLS], axis=1)
    batch = simulation().run(np.stack([MODEL.neutral()] * 2), control=controls)
    np.testing.assert_allclose(batch.activation[:, 0], log.activation, atol=1e-15)
    assert np.abs(batch.activation[-1, 1] - batch.activation[-1, 0]).max() > 1e-3


def test_a_long_run_of_known_controls_is_that_of_single_steps():
    controls = np.tile(CONTROLS, (3, 1))
    sim = simulation()
    stretch = sim.run(MODEL.neutral(), control=controls)
    single = sim.run(MODEL.neutral(), control=controls, progress=lambda k, state: None)
    np.testing.assert_array_equal(stretch.activation, single.activation)


def test_a_kernel_as_control_moves_activations():
    @dl.kernel("(),(nq),(nv)->(5)")
    def constant(model, time, q, v):
        return dnp.array([0.0, 1.0, 0.5, 0.0, 0.7]) + 0.0 * time

    log = simulation().run(MODEL.neutral(), control=constant, steps=10)
    np.testing.assert_allclose(log.activation, theirs(np.tile([0.0, 1.0, 0.5, 0.0, 0.7], (10, 1)))[0], atol=1e-12)


def test_a_run_goes_on_from_a_state_with_activations(log):
    sim = simulation()
    state = sim.start(MODEL.neutral())
    for u in CONTROLS[:30]:
        state = sim.step(state, u)
    np.testing.assert_array_equal(sim.run(state, control=CONTROLS[30:]).activation[-1], log.activation[-1])


def test_activations_to_begin_with_are_taken():
    sim, first = simulation(), np.array([0.1, 0.2, 0.05, 0.4])
    assert sim.start(np.stack([MODEL.neutral()] * 3), activation=first).activation.shape == (3, NA)
    with refuses("wrong-shape", "activation"):
        sim.start(MODEL.neutral(), activation=np.zeros(NA + 1))


def test_controls_of_activations_beyond_their_range_are_marked():
    sim = simulation()
    within, beyond = (sim.step(sim.start(MODEL.neutral()), [0.0, 0.0, 0.0, u, 0.0]) for u in (1.9, 2.1))
    assert not within.status & dl.Mark.CLIPPED
    assert beyond.status & dl.Mark.CLIPPED


def test_a_planner_rolls_out_activations():
    sim = simulation()
    state = sim.start(MODEL.neutral(), activation=[0.5, -0.3, 0.05, 0.2])
    planner = dl.Sampling(sim, lambda time, q, v, u: q[..., 0] ** 2, horizon=5, noise=0.3)
    controls = np.random.default_rng(0).uniform(-0.5, 0.5, (3, 5, sim.nu))
    expected = [sim.run(state, control=u).q[:-1, 0] for u in controls]
    costs = planner.costs(state, controls)
    np.testing.assert_allclose(costs, [sim.period * np.sum(q**2) for q in expected], rtol=1e-12)


def test_a_trajectory_keeps_activations_in_parts_and_files(log, tmp_path):
    np.testing.assert_array_equal(log[10:20].activation, log.activation[10:20])
    log.save(tmp_path / "log.npz")
    np.testing.assert_array_equal(dl.Trajectory.load(tmp_path / "log.npz").activation, log.activation)


def test_a_simulation_without_states_of_actuators_has_none():
    sim = simulation(actuators=[a for a in MODEL.actuators if a.dynamics == "none"])
    assert sim.start(MODEL.neutral()).activation.shape == (0,)
    assert sim.run(MODEL.neutral(), steps=2).activation is None


def test_a_state_without_activations_is_of_another_simulation():
    sim = simulation()
    with pytest.raises(SimulationError, match="another simulation"):
        sim.step(replace(sim.start(MODEL.neutral()), activation=np.zeros(0)))


def test_actuators_without_a_state_add_nothing_to_the_program():
    plain = [replace(a, dynamics="none", kind="affine") for a in MODEL.actuators[:3]]
    unlike = [replace(a, early=not a.early, activation_range=(0.0, 1.0)) for a in plain]
    programs = [simulate.program(simulation(actuators=some).scene) for some in (plain, unlike)]
    assert programs[0].digest == programs[1].digest
