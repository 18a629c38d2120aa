"""Sensors of MJCF files, all that a file has: equal to MuJoCo's at its own states."""

import warnings
from dataclasses import replace

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.errors import DelassusWarning

XML = """
<mujoco model="toy">
  <option magnetic="0.1 0.2 0.3"/>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/><site name="hook" pos="0 0 2"/>
    <camera name="eye" pos="1 0 1"/>
    <body name="base" pos="0 0 1">
      <freejoint name="root"/>
      <geom name="hull" type="box" size=".2 .1 .1" mass="3" pos=".02 .01 0"/>
      <site name="imu" pos=".05 .02 .1" euler="20 30 40"/>
      <body name="upper" pos=".2 0 0">
        <joint name="shoulder" axis="0 1 0" stiffness="3" springref="0.2"/>
        <geom name="rod" type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass="1"/>
        <body name="plate" pos=".1 0 .1"><geom size=".02" mass=".1"/><site name="mount"/></body>
        <body name="lower" pos=".3 0 0">
          <joint name="elbow" type="ball"/>
          <geom name="tip" type="sphere" size=".05" pos=".2 0 0" mass=".5"/>
          <site name="hand" pos=".2 .1 0" euler="0 90 10"/>
        </body>
      </body>
    </body>
  </worldbody>
  <tendon>
    <spatial name="string"><site site="hook"/><site site="hand"/></spatial>
    <fixed name="sum"><joint joint="shoulder" coef="2"/></fixed>
  </tendon>
  <actuator>
    <position name="bend" joint="shoulder" kp="20" kv="1" forcerange="-3 3" ctrlrange="-1 1"/>
    <motor name="lift" joint="shoulder" gear="5"/>
  </actuator>
  <sensor>
    <magnetometer name="compass" site="imu"/>
    <framexaxis objtype="body" objname="lower"/><frameyaxis objtype="geom" objname="rod"/>
    <framezaxis name="up" objtype="xbody" objname="base"/><framezaxis objtype="site" objname="hand"/>
    <framezaxis objtype="site" objname="hand"/>
    <framepos objtype="site" objname="hand" reftype="site" refname="imu"/>
    <framepos objtype="geom" objname="hull"/><framepos objtype="camera" objname="eye"/>
    <framequat objtype="site" objname="hand" reftype="xbody" refname="base"/>
    <framelinvel objtype="site" objname="hand" reftype="site" refname="imu"/>
    <frameangvel objtype="site" objname="hand" reftype="site" refname="imu"/>
    <framelinvel objtype="body" objname="lower"/>
    <tendonpos tendon="string"/><tendonvel tendon="string"/><tendonpos tendon="sum"/><tendonvel tendon="sum"/>
    <jointactuatorfrc joint="shoulder"/><ballquat joint="elbow"/><ballangvel joint="elbow"/>
    <gyro name="clipped" site="imu" cutoff="0.3"/>
    <force name="load" site="hand"/><torque name="twist" site="hand"/><force site="imu"/>
    <e_kinetic/><clock/>
    <rangefinder name="lidar" site="imu"/><force name="plate_load" site="mount"/>
  </sensor>
</mujoco>
"""
THEIRS = mujoco.MjModel.from_xml_string(XML)
THEIRS.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
with warnings.catch_warnings(record=True) as SAID:
    warnings.simplefilter("always")
    SIM = dl.Simulation(dl.load(XML), max_contacts=0, max_limits=0)
ROBOT = SIM.model
SENSORS = SIM.sensors()
CARRIED = [k for k in range(THEIRS.nsensor) if k < THEIRS.nsensor - 2]
STATES = 8


def readings():
    rng = np.random.default_rng(1)
    q = np.array([ROBOT.random_configuration(rng) for _ in range(STATES)])
    v, a = rng.normal(size=(2, STATES, ROBOT.nv))
    u = rng.normal(size=(STATES, 2))
    here = replace(SIM.start(q, v), time=1e-3 * np.arange(1.0, STATES + 1.0))
    before = replace(here, v=v - 1e-3 * a, time=here.time - 1e-3)
    data, there = mujoco.MjData(THEIRS), []
    for i in range(STATES):
        data.qpos[:], data.qvel[:] = dl.q_to_mujoco(ROBOT, q[i]), dl.v_to_mujoco(ROBOT, q[i], v[i])
        data.ctrl[:], data.time = u[i], here.time[i]
        mujoco.mj_forward(THEIRS, data)
        data.qacc[:] = dl.a_to_mujoco(ROBOT, q[i], v[i], a[i])
        mujoco.mj_rnePostConstraint(THEIRS, data)
        mujoco.mj_sensorAcc(THEIRS, data)
        there.append(data.sensordata.copy())
    return SENSORS(here, since=before, control=u), np.array(there)


HERE, THERE = readings()


@pytest.mark.parametrize("k", CARRIED)
def test_a_reading_is_mujocos(k):
    name, at = SENSORS.names[k], THEIRS.sensor_adr[k]
    ours, theirs = HERE[name], THERE[:, at : at + THEIRS.sensor_dim[k]]
    if ours.shape[-1] == 4:  # theirs has w first, and either sign
        theirs = np.roll(theirs, -1, -1) * np.sign(np.sum(np.roll(theirs, -1, -1) * ours, -1, keepdims=True))
    np.testing.assert_allclose(ours, theirs, atol=1e-9, rtol=1e-9)


def test_sensors_without_a_name_are_called_by_kind_and_target():
    assert {"framezaxis:hand", "framezaxis:hand#2", "compass", "up"} <= set(SENSORS.names)


def test_sensors_that_cannot_be_read_are_said_by_kind_name_and_number():
    (said,) = [str(w.message) for w in SAID if issubclass(w.category, DelassusWarning)]
    assert "rangefinder (1: lidar)" in said and "force (1: plate_load)" in said


def test_a_leg_is_pushed_down_by_what_its_foot_carries():
    robot = dl.load("quadruped")
    home, servos = robot.posture("home"), dl.simulation.position_servos(robot, 200.0, 10.0)
    sim = dl.Simulation(robot, actuators=servos, touching="*_calf_1")
    log = sim.run(home, control=home[7:], steps=600, every=100)
    leg = "front_left_calf"
    found = sim.sensors(f"jointforce:{leg}", f"force:{leg}_1", f"framequat:{leg}")(log[-1], since=log[-2])
    x, y, z, w = found[f"framequat:{leg}"]
    R = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    weight = np.array([0.0, 0.0, -9.81 * robot.joints[robot.body_index(leg)].inertia.mass])
    np.testing.assert_allclose(R @ found[f"jointforce:{leg}"], -found[f"force:{leg}_1"] - weight, atol=1e-3)
