"""Simulations of MJCF files as the files say: keyframes, time step, limits and equalities of tendons."""

import mujoco
import numpy as np
import pytest

import delassus as dl
from refusals import refuses

CART = """
<mujoco>
  <option timestep="0.004"/>
  <worldbody>
    <geom type="plane" size="0 0 1" pos="0 0 -0.5"/><site name="hook" pos="0 0 1"/>
    <body name="base" pos="0 0 1"><freejoint/><geom size="0.1"/></body>
    <body><joint name="one" type="slide" axis="1 0 0"/><geom size="0.05" mass="1" contype="0" conaffinity="0"/>
      <site name="pin" pos="0.1 0 0.2"/></body>
    <body pos="0 1 0"><joint name="two" type="slide" axis="1 0 0"/>
      <geom size="0.05" mass="1" contype="0" conaffinity="0"/></body>
  </worldbody>
  <tendon>
    <fixed name="sum" {sum}><joint joint="one" coef="1"/><joint joint="two" coef="2"/></fixed>
    <fixed name="second"><joint joint="two" coef="1"/></fixed>
    <spatial name="string" {string}><site site="hook"/><site site="pin"/></spatial>
  </tendon>
  {equality}
  <actuator>
    <motor joint="one"/><general joint="two" dyntype="integrator" gainprm="3"/>
  </actuator>
  <keyframe>
    <key name="go" time="0.2" qpos="0 0 2 0.6 0 0.8 0 0.1 0.2" qvel="1 2 3 4 5 6 7 8" act="0.3" ctrl="0.4 0.5"/>
  </keyframe>
</mujoco>"""


def cart(sum="", string="", equality=""):
    return CART.format(sum=sum, string=string, equality=equality)


def at_key(xml):
    mj = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(mj)
    mujoco.mj_resetDataKeyframe(mj, data, 0)
    mujoco.mj_forward(mj, data)
    return mj, data


def test_keyframes_have_velocities_activations_controls_and_a_time():
    robot = dl.load(cart())
    _, data = at_key(cart())
    key = robot.keyframe("go")
    np.testing.assert_allclose(dl.q_to_mujoco(robot, key.q), data.qpos)
    np.testing.assert_allclose(dl.v_to_mujoco(robot, key.q, key.v), data.qvel, atol=1e-15)
    assert (*key.activation, *key.control, key.time) == (0.3, 0.4, 0.5, 0.2)


def test_postures_are_keyframes_at_rest():
    key = dl.load("quadruped").keyframe("home")
    assert not key.v.any() and key.control.shape == (12,) and key.time == 0.0


def test_unknown_keyframes_are_refused():
    with refuses("unknown-posture", "'gone'"):
        dl.load(cart()).keyframe("gone")


def test_a_file_is_simulated_as_it_says():
    sim = dl.Simulation.from_file(cart())
    assert (sim.time_step, float(sim.ground.height), sim.nu) == (0.004, -0.5, 2)
    start = sim.start()
    np.testing.assert_array_equal(start.q, sim.keyframe.q)
    np.testing.assert_array_equal(start.v, sim.keyframe.v)
    assert start.time == 0.2 and start.activation == [0.3]


def test_runs_start_from_the_keyframe_with_its_control():
    sim = dl.Simulation.from_file(cart(), time_step=1e-3)
    given = sim.run(sim.start(), control=sim.keyframe.control, steps=20)
    np.testing.assert_array_equal(sim.run(steps=20).q, given.q)


@pytest.mark.parametrize("tendon", ["sum", "string"])
def test_tendons_stay_within_their_limits(tendon):
    ranges = {"sum": "-0.5 0.6", "string": "0.803 1.0"}
    xml = cart(**{tendon: f'range="{ranges[tendon]}"'})
    mj = mujoco.MjModel.from_xml_string(xml)
    data, number = mujoco.MjData(mj), mj.tendon(tendon).id
    sim = dl.Simulation.from_file(xml, time_step=1e-3)
    lower, upper = mj.tendon_range[number]
    for push in (20.0, -20.0):
        lengths = []
        for q in sim.run(sim.model.posture("qpos0"), control=np.array([push, 0.0]), steps=1000).q[::50]:
            data.qpos = dl.q_to_mujoco(sim.model, q)
            mujoco.mj_forward(mj, data)
            lengths.append(data.ten_length[number])
        assert lower - 1e-6 < min(lengths) and max(lengths) < upper + 1e-6
        assert min(upper - lengths[-1], lengths[-1] - lower) < 1e-6 or tendon == "string"


@pytest.mark.parametrize("follows", ["", 'tendon2="second"'])
@pytest.mark.parametrize("tendon", ["sum", "string"])
def test_equalities_of_tendons_hold_as_in_mujoco(tendon, follows):
    equality = f'<equality><tendon tendon1="{tendon}" {follows} polycoef="0 0.5 0.3 0 0"/></equality>'
    xml = cart(equality=equality)
    mj, data = at_key(xml)
    robot = dl.load(xml)
    mechanism = dl.Mechanism(robot)
    q = dl.q_from_mujoco(robot, data.qpos)
    error, J = dl.constraint_error(mechanism, q), dl.constraint_jacobian(mechanism, q)
    rows = data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
    np.testing.assert_allclose(error, data.efc_pos[rows], atol=1e-12)
    np.testing.assert_allclose(J[:, 6:], data.efc_J.reshape(-1, mj.nv)[rows][:, 6:], atol=1e-12)


def test_a_mechanism_is_held_by_its_tendons():
    equality = '<equality><tendon tendon1="sum"/></equality>'
    sim = dl.Simulation.from_file(cart(equality=equality), time_step=1e-3)
    log = sim.run(sim.model.posture("qpos0"), control=np.array([3.0, 0.0]), steps=500)
    assert np.abs(log.q[:, 7] + 2.0 * log.q[:, 8]).max() < 1e-9 and abs(log.q[-1, 7]) > 0.05
