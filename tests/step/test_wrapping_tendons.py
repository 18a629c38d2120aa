"""Strings around spheres and cylinders, over pulleys, against MuJoCo on the same text; dry friction of tendons."""

import mujoco
import numpy as np
import pytest

import delassus as dl
import delassus.numpy as dnp
from delassus.dynamics.forces.tendons import tendon_line
from delassus.model.converters.mujoco import q_from_mujoco
from delassus.model.readers.mjcf import from_mujoco
from mujoco_law import compare_states, reference_model, rollout_states, state_of

ARM = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <site name="start" pos="-0.25 0.03 0.02"/>
    <geom name="far" type="sphere" size="0.02" pos="-0.1 0.3 0" contype="0" conaffinity="0"/>
    <body pos="0 0 0">
      <joint name="shoulder" axis="0 1 0" range="-150 150" damping="0.05"/>
      <joint name="roll" axis="1 0.2 0" damping="0.05"/>
      <geom name="upper" type="capsule" size="0.02" fromto="0 0 0 0.3 0 0" contype="0" conaffinity="0"/>
      <geom name="round" type="{shape}" size="0.05 0.1" pos="0.02 0 0.01" euler="90 10 0" contype="0" conaffinity="0"/>
      <site name="aside" pos="{side}"/>
      <site name="middle" pos="0.2 0.02 0.06"/>
      <body pos="0.3 0 0">
        <joint name="elbow" axis="0 1 0" damping="0.05"/>
        <geom name="lower" type="capsule" size="0.02" fromto="0 0 0 0.2 0 0" contype="0" conaffinity="0"/>
        <site name="end" pos="0.1 0.01 0.03"/>
        <site name="tip" pos="0.2 0 0"/>
      </body>
    </body>
  </worldbody>
  <tendon>
    <spatial name="string" stiffness="300" springlength="0.2 0.3" damping="2" limited="true" range="0.1 0.62">
      <site site="start"/><geom geom="round"{sidesite}/><site site="middle"/><site site="end"/>
      <pulley divisor="2"/><site site="start"/><geom geom="far"/><site site="end"/>
      <pulley divisor="3"/><site site="middle"/><geom geom="round"/><site site="tip"/>
    </spatial>
  </tendon>
  <actuator>
    <general tendon="string" gear="1.5" gainprm="20" biastype="affine" biasprm="0 -30 -1" ctrlrange="-1 1"/>
  </actuator>
  <sensor><tendonpos name="length" tendon="string"/><tendonvel name="rate" tendon="string"/></sensor>
</mujoco>
"""

SIDES = {
    "free": ("0 0 0", ""),
    "outside": ("0.02 0.01 -0.2", ' sidesite="aside"'),
    "other": ("0.02 0.02 0.3", ' sidesite="aside"'),
    "inside": ("0.02 0 0.012", ' sidesite="aside"'),
}

ARMS = {"inside": 1e-7}
"""Tolerance of moment arms [m]: MuJoCo iterates for the point at which a string bends inside a shape to 1e-6 rad."""


def arm(shape: str, side: str) -> str:
    place, sidesite = SIDES[side]
    return ARM.format(shape=shape, side=place, sidesite=sidesite)


@dl.kernel("(nq)->(),(nv)")
def first_string(model, q):
    """Length and moment arms of the first tendon."""
    line = tendon_line(model, model.tendons[0], q)
    return line.length, dnp.array(line.moment_arms)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("shape", ["sphere", "cylinder"])
def test_lengths_and_moment_arms_are_those_of_mujoco(shape, side):
    m = mujoco.MjModel.from_xml_string(arm(shape, side))
    robot, data, rng = from_mujoco(m), mujoco.MjData(m), np.random.default_rng(0)
    poses = rng.uniform(-np.pi, np.pi, (300, m.nq))
    length, moment_arms = first_string(robot, q_from_mujoco(robot, poses))
    wrapped = 0
    for k, pose in enumerate(poses):
        data.qpos[:] = pose
        mujoco.mj_forward(m, data)
        moments = np.zeros(m.nv)
        moments[data.ten_J_colind if hasattr(data, "ten_J_colind") else m.ten_J_colind] = data.ten_J
        assert length[k] == pytest.approx(data.ten_length[0], abs=1e-12)
        np.testing.assert_allclose(moment_arms[k], moments, atol=ARMS.get(side, 1e-12))
        wrapped += bool(np.any(data.wrap_obj[: data.ten_wrapnum[0]] >= 0))
    assert wrapped > 30


@pytest.mark.parametrize("shape, side", [("sphere", "free"), ("cylinder", "outside"), ("cylinder", "inside")])
def test_wrapped_strings_move_robots_as_in_mujoco(shape, side):
    m = reference_model(mujoco.MjModel.from_xml_string(arm(shape, side)))
    sim = dl.Simulation(from_mujoco(m), time_step=m.opt.timestep, law="mujoco")
    states = rollout_states(m, noise=1.0)
    assert max(compare_states(sim, m, states)) < 1e-6


def test_file_sensors_of_wrapped_strings_read_as_in_mujoco():
    m = reference_model(mujoco.MjModel.from_xml_string(arm("cylinder", "outside")))
    sim = dl.Simulation(from_mujoco(m), time_step=m.opt.timestep)
    states, data = rollout_states(m, noise=1.0), mujoco.MjData(m)
    here = sim.sensors("length", "rate")(state_of(sim, states))
    for k in range(len(states.qpos)):
        data.qpos[:], data.qvel[:] = states.qpos[k], states.qvel[k]
        mujoco.mj_forward(m, data)
        ours = [np.ravel(here[name][k])[0] for name in ("length", "rate")]
        np.testing.assert_allclose(ours, data.sensordata, rtol=1e-9, atol=1e-9)


HANGING = """<mujoco><option timestep="0.002"/><worldbody><site name="top" pos="0 0 1"/>
<body><joint name="slide" type="slide" axis="0 0 1"/><geom size="0.05" mass="1"/><site name="hook"/></body></worldbody>
<tendon><spatial frictionloss="{friction}"><site site="top"/><site site="hook"/></spatial></tendon></mujoco>"""


@pytest.mark.parametrize("friction", [11.0, 6.0])
def test_dry_friction_of_a_tendon_holds_or_brakes_a_weight(friction):
    sim = dl.Simulation(dl.load(HANGING.format(friction=friction)), max_contacts=0)
    log = sim.run(steps=100)
    expected = -max(9.81 - friction, 0.0) * 100 * sim.time_step
    assert log.v[-1][0] == pytest.approx(expected, abs=1e-9)


def test_a_ball_joint_stops_at_its_limit():
    text = """<mujoco><worldbody><body><joint name="neck" type="ball" range="0 40"/>
    <geom type="capsule" fromto="0 0 0 0.3 0.02 0" size="0.03"/></body></worldbody></mujoco>"""
    sim = dl.Simulation(dl.load(text), time_step=0.002, max_contacts=0)
    log = sim.run(steps=1000)
    angle = 2.0 * np.arccos(np.abs(log.q[:, 3]))
    assert angle.max() < np.radians(40.0) + 1e-3 and angle[-1] > np.radians(39.0)
