"""The world that a file describes: which plane is the ground, and what is said of the rest."""

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.errors import DelassusWarning
from refusals import refuses

BALL = '<body pos="0 0 1"><freejoint/><geom name="ball" type="sphere" size="0.1" mass="1"/></body>'
FLOOR = '<geom name="floor" type="plane" size="0 0 1" pos="0.3 0 -0.75"/>'
SLOPE = '<geom name="slope" type="plane" size="0 0 1" pos="0 0 -0.2" euler="10 20 0"/>'
WALL = '<geom name="wall" type="plane" size="0 0 1" pos="0.05 0 0" euler="0 -90 0"/>'


def world(*parts):
    return f"<mujoco><worldbody>{''.join(parts)}{BALL}</worldbody></mujoco>"


def fallen(sim):
    return sim.run(sim.model.posture("qpos0"), steps=1000).q[-1]


def test_a_floor_at_minus_75_cm_is_there():
    assert fallen(dl.Simulation(dl.load(world(FLOOR))))[2] == pytest.approx(-0.65, abs=1e-8)


def test_a_tilted_plane_is_the_ground_as_in_mujoco():
    mj = mujoco.MjModel.from_xml_string(world(SLOPE))
    data = mujoco.MjData(mj)
    data.qpos[2] = -0.15
    mujoco.mj_forward(mj, data)
    sim = dl.Simulation(dl.load(world(SLOPE)))
    contacts = sim.contacts(dl.q_from_mujoco(sim.model, data.qpos))
    np.testing.assert_allclose(contacts.normal[0], data.contact[0].frame[:3], atol=1e-12)
    assert contacts.gap[0] == pytest.approx(data.contact[0].dist, abs=1e-12)


def test_the_first_level_plane_is_the_ground():
    assert dl.Simulation(dl.load(world(SLOPE, FLOOR))).ground.height == -0.75


def test_the_plane_that_is_the_ground_decides_its_friction():
    rough, icy = (part.replace("/>", f' friction="{mu}"/>') for part, mu in ((SLOPE, 9), (FLOOR, 2)))
    assert dl.Simulation(dl.load(world(rough, icy))).scene.own_friction[0][0] == 2.0


def test_other_planes_are_touched_too():
    sim = dl.Simulation(dl.load(world(FLOOR, WALL)))
    q = sim.model.posture("qpos0") - 0.06 * (np.arange(7) == 0)
    log = sim.run(q, np.array([1.0, 0, 0, 0, 0, 0]), steps=500)
    assert log.q[:, 0].max() == pytest.approx(-0.05, abs=1e-6)


def test_planes_that_nothing_may_touch_are_named():
    slope = SLOPE.replace("/>", ' contype="2" conaffinity="2"/>')
    with pytest.warns(DelassusWarning, match="nothing can touch 1 planes other than the ground: slope"):
        dl.Simulation(dl.load(world(FLOOR, slope)))


def test_a_ground_that_is_given_overrides_that_of_the_file():
    assert fallen(dl.Simulation(dl.load(world(FLOOR)), dl.Ground()))[2] == pytest.approx(0.1, abs=1e-8)


def test_the_ground_of_a_file_takes_other_coefficients():
    ground = dl.simulation.ground_of(dl.load(world(FLOOR)), friction=0.2)
    assert (float(ground.height), float(ground.friction)) == (-0.75, 0.2)


def test_a_world_without_a_floor_has_none():
    with pytest.warns(DelassusWarning, match="has no plane"):
        sim = dl.Simulation(dl.load(world()))
    assert fallen(sim)[2] < -3.0


def test_a_robot_alone_stands_on_level_ground_at_zero():
    urdf = """<robot name="ball"><link name="ball"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0"
    ixz="0" iyz="0"/></inertial><collision><geometry><sphere radius="0.1"/></geometry></collision></link></robot>"""
    sim = dl.Simulation(dl.load(urdf, root="free"))
    assert sim.run([0, 0, 0.5, 0, 0, 0, 1.0], steps=1000).q[-1, 2] == pytest.approx(0.1, abs=1e-8)


def test_shapes_that_touch_a_floor_that_is_not_there_are_refused():
    with refuses("conflicting-arguments", "has no ground"):
        dl.Simulation(dl.load(world()), touching="ball")
    with refuses("nothing-to-do", "without a plane"):
        dl.simulation.ground_of(dl.load(world()))


def test_bodies_joints_and_frames_name_their_shapes():
    robot = dl.load("quadruped")
    by_shape = dl.Simulation(robot, touching="front_left_calf_*", colliding=())
    for name in ("front_left_foot", "front_left_calf_joint"):
        assert dl.Simulation(robot, touching=name, colliding=()).candidates == by_shape.candidates
