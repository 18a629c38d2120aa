"""Forces of actuators and passive forces, against MuJoCo at random states."""

import os
from pathlib import Path

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.simulation import actuator_forces
from differences import jacobian

SCENES = sorted(Path(os.environ.get("DELASSUS_ROBOTS", "/nowhere")).glob("*/*.xml"))
WORLD = """
<mujoco>
  <worldbody>
    <site name="wall" pos="0.3 -0.2 0.4" euler="20 0 30"/>
    <body name="base" pos="0 0 1"><freejoint name="free"/>
      <geom size="0.1" pos="0.02 0 0"/><site name="on_base" pos="0.1 0.1 0" euler="10 20 30"/>
      <body name="arm" pos="0.2 0 0">
        <joint name="hinge" axis="0 1 0.3" ref="0.2" {hinge}/><geom size="0.05" pos="0.1 0 0"/>
        <site name="on_arm" pos="0.1 0.05 0.1" euler="0 40 10"/>
        <body name="hand" pos="0.3 0 0">
          <joint name="slide" type="slide" axis="1 0 0.2"/><geom size="0.04" pos="0 0 0.1"/>
          <site name="on_hand" pos="0 0.1 0.02"/>
          <body name="ball" pos="0.1 0 0"><joint name="ball" type="ball"/><geom size="0.05" pos="0 0.02 0"/>
            <site name="on_ball" pos="0.1 0 0.1"/></body>
        </body>
      </body>
    </body>
  </worldbody>
  <tendon>
    <fixed name="sum" {fixed}><joint joint="hinge" coef="0.7"/><joint joint="slide" coef="-1.3"/></fixed>
    <spatial name="string" {string}><site site="on_base"/><site site="on_arm"/><site site="on_ball"/>
      <pulley divisor="2"/><site site="wall"/><site site="on_hand"/></spatial>
  </tendon>
  <actuator>{actuator}</actuator>
</mujoco>"""
SERVO = 'gainprm="5" biastype="affine" biasprm="0.3 -5 -0.4"'
ACTUATORS = {
    "joint": f'<general joint="hinge" gear="2" {SERVO}/>',
    "affine gain": '<general joint="slide" gaintype="affine" gainprm="5 2 3" biastype="affine" biasprm="1 2 3"/>',
    "force range": f'<general joint="slide" {SERVO} forcerange="-1 2"/>',
    "control range": '<motor joint="slide" ctrlrange="-0.1 0.2"/>',
    "ball": f'<general joint="ball" gear="1 2 3" {SERVO}/>',
    "ball in parent": f'<general jointinparent="ball" gear="1 2 3" {SERVO}/>',
    "free": f'<general joint="free" gear="1 2 3 4 5 6" {SERVO}/>',
    "free in parent": f'<general jointinparent="free" gear="1 2 3 4 5 6" {SERVO}/>',
    "fixed tendon": f'<general tendon="sum" gear="1.5" {SERVO}/>',
    "string": f'<general tendon="string" gear="1.5" {SERVO} forcerange="-1 1"/>',
    "site": f'<general site="on_arm" gear="1 2 3 4 5 6" {SERVO}/>',
    "site and reference": f'<general site="on_hand" refsite="wall" gear="1 2 3 0 0 0" {SERVO}/>',
    "turning site and reference": f'<general site="on_ball" refsite="on_base" gear="1 0 3 4 5 6" {SERVO}/>',
    "slider-crank": f'<general cranksite="on_hand" slidersite="on_base" cranklength="0.6" gear="2" {SERVO}/>',
    "slider-crank out of reach": f'<general cranksite="on_hand" slidersite="wall" cranklength="0.1" {SERVO}/>',
}


def world(actuator="", hinge="", fixed="", string=""):
    return WORLD.format(actuator=actuator, hinge=hinge, fixed=fixed, string=string)


def states(mj, count, seed=0):
    """MuJoCo's data at random states with random controls."""
    rng, data = np.random.default_rng(seed), mujoco.MjData(mj)
    for _ in range(count):
        data.qpos = mj.qpos0 + rng.normal(size=mj.nq)
        mujoco.mj_normalizeQuat(mj, data.qpos)
        data.qvel, data.ctrl = rng.normal(size=mj.nv), rng.normal(size=mj.nu)
        mujoco.mj_forward(mj, data)
        yield data


def compare(mj, robot, ours, theirs, count=20):
    """The largest difference of generalised forces, relative to their scale."""
    worst = 0.0
    for data in states(mj, count):
        q = dl.q_from_mujoco(robot, data.qpos)
        v = dl.v_from_mujoco(robot, q, data.qvel)
        expected = getattr(data, theirs)
        found = dl.v_to_mujoco(robot, q, ours(robot, q, v, data.ctrl))
        worst = max(worst, np.abs(found - expected).max() / (1.0 + np.abs(expected).max()))
    return worst


def difference(xml, theirs="qfrc_actuator"):
    functions = {
        "qfrc_actuator": actuator_forces.python,
        "qfrc_passive": lambda m, q, v, u: dl.passive_forces.python(m, q, v),
    }
    return compare(mujoco.MjModel.from_xml_string(xml), dl.load(xml), functions[theirs], theirs)


@pytest.mark.parametrize("kind", ACTUATORS)
def test_actuators_of_all_transmissions_push_as_in_mujoco(kind):
    assert difference(world(ACTUATORS[kind])) < 1e-12


@pytest.mark.parametrize("kind", ["joint", "fixed tendon", "string", "site", "slider-crank"])
def test_the_force_on_a_joint_is_limited_whatever_drives_it(kind):
    both = ACTUATORS[kind] + '<motor joint="hinge" gear="-3"/>'
    for actuators in (ACTUATORS[kind], both):
        assert difference(world(actuators, hinge='actuatorfrcrange="-0.8 0.3"')) < 1e-12


def test_a_force_range_beyond_that_of_the_joint_is_its_end():
    motor = '<motor joint="hinge" gear="-2" forcerange="3 4"/>'
    assert difference(world(motor, hinge='actuatorfrcrange="-0.8 0.3"')) < 1e-12


PASSIVE = {
    "joint": {"hinge": 'stiffness="3" springref="0.4" damping="0.2"'},
    "fixed tendon": {"fixed": 'stiffness="20" damping="0.3" springlength="0.1"'},
    "string": {"string": 'stiffness="20" damping="0.3"'},
    "slack string": {"string": 'stiffness="20" springlength="0.2 0.9"'},
}


@pytest.mark.parametrize("kind", PASSIVE)
def test_springs_and_dampers_pull_as_in_mujoco(kind):
    assert difference(world(**PASSIVE[kind]), "qfrc_passive") < 1e-12


COMPENSATED = (
    world()
    .replace('<body name="hand"', '<body name="hand" gravcomp="0.7"')
    .replace('<body name="ball"', '<body name="ball" gravcomp="1.5"')
)


def test_gravity_is_compensated_as_in_mujoco():
    assert difference(COMPENSATED, "qfrc_passive") < 1e-12


def test_compensation_is_the_derivative_of_its_energy():
    robot = dl.load(COMPENSATED)
    q = robot.random_configuration(np.random.default_rng(1))
    slope = jacobian(lambda x: np.atleast_1d(dl.dynamics.spring_energy(robot, dl.integrate(robot, q, x))), robot.nv)
    np.testing.assert_allclose(-slope[0], dl.passive_forces(robot, q, np.zeros(robot.nv)), atol=1e-9)


@pytest.mark.parametrize("xml", [COMPENSATED, world(string='stiffness="20" damping="0.3"')], ids=["gravcomp", "string"])
def test_derivatives_of_passive_forces(xml):
    robot = dl.load(xml)
    q, v = robot.random_configuration(np.random.default_rng(1)), np.linspace(-1.0, 1.0, robot.nv)
    by_q, by_v = dl.derivatives.passive_derivatives(robot, q, v)
    at = lambda x: dl.passive_forces(robot, dl.integrate(robot, q, x), v)  # noqa: E731
    np.testing.assert_allclose(by_q, jacobian(at, robot.nv), atol=1e-8)
    np.testing.assert_allclose(by_v, jacobian(lambda x: dl.passive_forces(robot, q, v + x), robot.nv), atol=1e-9)


def test_locking_joints_keeps_what_is_compensated():
    robot = dl.load(COMPENSATED)
    locked = robot.lock("slide", "ball")
    q = robot.configuration(hinge=0.4)
    whole = dl.passive_forces(robot, q, np.zeros(robot.nv))
    part = dl.passive_forces(locked, q[: locked.nq], np.zeros(locked.nv))
    np.testing.assert_allclose(part, whole[: locked.nv], atol=1e-12)


def test_limits_are_narrower_by_their_margin():
    robot = dl.load(world(hinge='range="-30 40" margin="0.1"'))
    joint = robot.joint("hinge")
    np.testing.assert_allclose((*joint.lower, *joint.upper), (np.deg2rad(-30) + 0.1, np.deg2rad(40) - 0.1))


@pytest.mark.parametrize(
    ("hinge", "actuator", "most"),
    [
        ('actuatorfrcrange="-3 2"', '<motor joint="hinge"/>', 3.0),
        ("", '<position joint="hinge" gear="2" forcerange="-3 4"/>', 8.0),
        ("", '<motor joint="hinge" gear="2" ctrlrange="-3 4"/>', 8.0),
        ("", '<motor joint="hinge" ctrlrange="-3 4"/><motor joint="hinge"/>', np.inf),
    ],
)
def test_effort_limits_are_those_of_the_actuators(hinge, actuator, most):
    robot = dl.load(world(actuator, hinge=hinge))
    assert robot.effort_limit[robot.v_slice("hinge")] == most


def test_servos_keep_the_force_ranges_of_the_file():
    robot = dl.load(world('<position joint="hinge" gear="2" forcerange="-3 4"/>'))
    (servo,) = dl.position_servos(robot, 10.0, 1.0, joints="hinge")
    assert servo.force_range == (-8.0, 8.0)


def test_strings_around_shapes_are_pulled_as_in_mujoco():
    xml = (
        world('<motor tendon="string"/>')
        .replace('<site site="on_arm"/>', '<site site="on_arm"/><geom geom="round"/>')
        .replace('<geom size="0.1" pos="0.02 0 0"/>', '<geom name="round" size="0.1" pos="0.02 0 0"/>')
    )
    assert difference(xml) < 1e-12


@pytest.mark.skipif(not SCENES, reason="no scenes: DELASSUS_ROBOTS names none")
@pytest.mark.parametrize("path", SCENES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_actuators_of_public_scenes_push_as_in_mujoco(path):
    mj, robot = mujoco.MjModel.from_xml_path(str(path)), dl.load(path)
    assert compare(mj, robot, actuator_forces.python, "qfrc_actuator", 200 if robot.nv < 20 else 40) < 1e-9
