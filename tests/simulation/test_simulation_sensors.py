"""Sensors: MuJoCo's at random states, weights of what stands, and closed forms."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.errors import DelassusError
from delassus.simulation import Sensor, position_servos

ARM = """
<mujoco>
  <option gravity="0 0 -9.81"/>
  <worldbody>
    <body name="base" pos="0 0 1">
      <freejoint name="root"/>
      <geom name="hull" type="box" size=".2 .1 .1" mass="3" pos=".02 .01 0"/>
      <site name="imu" pos=".05 .02 .1" euler="20 30 40"/>
      <body name="upper" pos=".2 0 0">
        <joint name="shoulder" axis="0 1 0" damping=".1"/>
        <geom name="rod" type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass="1"/>
        <body name="lower" pos=".3 0 0">
          <joint name="elbow" axis="0 0 1"/>
          <geom name="tip" type="sphere" size=".05" pos=".2 0 0" mass=".5"/>
          <site name="hand" pos=".2 .1 0" euler="0 90 10"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position name="bend" joint="elbow" kp="20" kv="1" forcerange="-3 3"/>
    <motor name="lift" joint="shoulder" gear="5"/>
  </actuator>
  <sensor>
    <framepos objtype="site" objname="hand"/><framelinvel objtype="site" objname="hand"/>
    <frameangvel objtype="site" objname="hand"/><gyro name="turning" site="imu"/><velocimeter site="imu"/>
    <framelinacc objtype="site" objname="hand"/><frameangacc objtype="site" objname="hand"/><accelerometer site="imu"/>
    <jointpos joint="elbow"/><jointvel joint="shoulder"/>
    <actuatorpos actuator="lift"/><actuatorvel actuator="lift"/><actuatorfrc actuator="bend"/>
    <subtreecom name="middle" body="upper"/><subtreelinvel body="upper"/><subtreeangmom body="upper"/>
    <framequat objtype="site" objname="hand"/>
  </sensor>
</mujoco>
"""
NAMES = [
    "framepos:hand",
    "framelinvel:hand",
    "frameangvel:hand",
    "gyro:imu",
    "velocimeter:imu",
    "framelinacc:hand",
    "frameangacc:hand",
    "accelerometer:imu",
    "jointpos:elbow",
    "jointvel:shoulder",
    "actuatorpos:lift",
    "actuatorvel:lift",
    "actuatorfrc:bend",
    "subtreecom:upper",
    "subtreelinvel:upper",
    "subtreeangmom:upper",
    "framequat:hand",
]
THEIRS = mujoco.MjModel.from_xml_string(ARM)
ROBOT = dl.from_mujoco(THEIRS)
FLYING = dl.Simulation(ROBOT, max_contacts=0, max_limits=0)
RNG = np.random.default_rng(0)
STATES = 20

QUADRUPED = dl.load("quadruped")
HOME = QUADRUPED.posture("home")
STANDING = dl.Simulation(QUADRUPED, actuators=position_servos(QUADRUPED, 200.0, 10.0), touching="*_calf_1")
FEET = list(dict.fromkeys(STANDING.candidates))
WEIGHT = 9.81 * sum(joint.inertia.mass for joint in QUADRUPED.joints)


@pytest.fixture(scope="module")
def rest():
    """A quadruped that has stood for 1.5 s."""
    return STANDING.run(HOME, control=HOME[7:], steps=1500, every=100)


@pytest.fixture(scope="module")
def readings():
    """Of all sensors at random states with random accelerations and controls, here and in MuJoCo."""
    q = np.array([ROBOT.random_configuration(RNG) for _ in range(STATES)])
    v, a, u = (RNG.normal(size=(STATES, n)) for n in (ROBOT.nv, ROBOT.nv, 2))
    here = replace(FLYING.start(q, v), time=1e-3)
    before = replace(here, v=v - 1e-3 * a, time=0.0)
    data, there = mujoco.MjData(THEIRS), []
    for i in range(STATES):
        data.qpos[:], data.ctrl[:] = dl.q_to_mujoco(ROBOT, q[i]), u[i]
        data.qvel[:] = dl.v_to_mujoco(ROBOT, q[i], v[i])
        mujoco.mj_forward(THEIRS, data)
        data.qacc[:] = dl.a_to_mujoco(ROBOT, q[i], v[i], a[i])
        mujoco.mj_rnePostConstraint(THEIRS, data)
        mujoco.mj_sensorAcc(THEIRS, data)
        there.append(data.sensordata.copy())
    return FLYING.sensors(*NAMES)(here, since=before, control=u), np.array(there)


@pytest.mark.parametrize("name", NAMES)
def test_a_reading_is_mujocos(readings, name):
    here, there = readings[0][name], readings[1]
    at = THEIRS.sensor_adr[NAMES.index(name)]
    theirs = there[:, at : at + here.shape[-1]]
    if name.startswith("framequat"):  # theirs has w first, and either sign
        theirs = np.roll(theirs, -1, -1) * np.sign(np.sum(np.roll(theirs, -1, -1) * here, -1, keepdims=True))
    np.testing.assert_allclose(here, theirs, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize(("name", "kind"), [("turning", "gyro:imu"), ("middle", "subtreecom:upper")])
def test_sensors_of_the_file_are_read_by_their_names(name, kind):
    state = FLYING.start(ROBOT.random_configuration(RNG), RNG.normal(size=ROBOT.nv))
    np.testing.assert_array_equal(FLYING.sensors(name)(state)[name], FLYING.sensors(kind)(state)[kind])


def test_the_feet_of_a_standing_robot_carry_its_weight(rest):
    felt = STANDING.sensors("force:*_calf_1", "touch:*_calf_1")(rest[-1])
    total = sum(felt[f"force:{foot}"] for foot in FEET)
    np.testing.assert_allclose(total, [0.0, 0.0, WEIGHT], atol=1e-3 * WEIGHT)
    for foot in FEET:
        np.testing.assert_allclose(felt[f"touch:{foot}"], felt[f"force:{foot}"][2:])


def test_contacts_are_found_by_shape_body_and_pair(rest):
    foot, body = FEET[0], "front_left_calf"
    names = f"force:{foot}", f"force:{body}", f"force:{foot}|ground"
    one, other, pair = STANDING.sensors(*names)(rest[-1]).values()
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(one, pair)


def test_two_shapes_that_touch_push_each_other():
    pair = dl.load("quadruped").attach(dl.load("quadruped"), "world", prefix="second_")
    sim = dl.Simulation(pair, touching="*_calf_1", colliding=[("front_left_calf_1", "second_trunk_0")], max_contacts=9)
    state = sim.start(np.concatenate([HOME, HOME + np.eye(19)[0]]))
    names = "force:front_left_calf_1|second_trunk_0", "force:second_trunk_0"
    impulse = RNG.normal(size=state.impulse.shape)
    contact = np.concatenate([np.arange(state.contact.shape[-1] - 1.0), [len(sim.candidates) - 1.0]])
    on, against = sim.sensors(*names)(replace(state, impulse=impulse, contact=contact)).values()
    assert np.abs(on).max() > 0.0
    np.testing.assert_allclose(on, -against)


def test_an_accelerometer_at_rest_feels_gravity(rest):
    log = STANDING.run(rest[-1], control=HOME[7:], steps=2)
    reading = STANDING.sensors("accelerometer:trunk")(log)["accelerometer:trunk"]
    assert reading.shape == (3, 3)
    np.testing.assert_allclose(np.linalg.norm(reading[-1]), 9.81, rtol=1e-3)


def test_logs_are_read_as_their_states(rest):
    sensors = STANDING.sensors("gyro:trunk", "touch:*_calf_1", "jointpos:front_left_calf_joint")
    log = sensors(rest)
    for name, value in sensors(rest[7]).items():
        np.testing.assert_array_equal(log[name][7], value)


def test_air_time_grows_until_a_foot_touches():
    q = HOME + 0.05 * np.eye(19)[2]
    log = STANDING.run(q, control=HOME[7:], steps=150)
    air = STANDING.sensors(f"airtime:{FEET[0]}")(log)[f"airtime:{FEET[0]}"][:, 0]
    lands = int(np.argmax(log.normal_force(FEET[0]) > 0.0))
    np.testing.assert_allclose(air[:lands], log.time[:lands], atol=1e-12)
    assert air[lands] == 0.0 and 0.09 < log.time[lands] < 0.11  # √(2·0.05/9.81)


@pytest.mark.parametrize(
    "ground",
    [dl.Ground(normal=(-0.1, 0.0, 1.0)), dl.Ground(heights=0.1 * np.arange(20.0)[:, None] + np.zeros(20), spacing=1.0)],
)
def test_a_scan_measures_the_height_above_a_slope(ground):
    sim = dl.Simulation(QUADRUPED, ground, touching="*_calf_1")
    scan = sim.sensors(Sensor("heightscan", "trunk", ((0.0, 0.0), (0.5, 0.0), (0.0, 0.5)), name="scan"))
    turned = HOME.copy()
    turned[3:7] = [0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5)]  # to the left: ahead is y
    straight, left = (scan(sim.start(q))["scan"] for q in (HOME, turned))
    np.testing.assert_allclose(straight - straight[0], [0.0, -0.05, 0.0], atol=1e-12)
    np.testing.assert_allclose(left - left[0], [0.0, 0.0, 0.05], atol=1e-12)


@pytest.mark.parametrize(
    ("read", "code"),
    [
        (lambda rest: STANDING.sensors(), "missing-argument"),
        (lambda rest: STANDING.sensors("smell:trunk"), "unknown-sensor"),
        (lambda rest: STANDING.sensors("gyro:nose"), "unknown-sensor"),
        (lambda rest: STANDING.sensors("touch:trunk"), "unknown-sensor"),
        (lambda rest: STANDING.sensors("gyro:trunk", "gyro:trunk"), "duplicate-name"),
        (lambda rest: STANDING.sensors(3), "wrong-type"),
        (lambda rest: STANDING.sensors("accelerometer:trunk")(rest[-1]), "missing-argument"),
        (lambda rest: STANDING.sensors("heightscan:trunk"), "wrong-shape"),
        (lambda rest: STANDING.sensors(f"airtime:{FEET[0]}")(rest[-1]), "not-recorded"),
        (lambda rest: STANDING.sensors("gyro:trunk")(FLYING.start(ROBOT.neutral())), "other-system"),
    ],
)
def test_sensors_that_cannot_be_are_refused(rest, read, code):
    with pytest.raises(DelassusError) as caught:
        read(rest)
    assert caught.value.code == code
