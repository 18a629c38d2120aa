"""Forces of a medium on bodies: those of MuJoCo, their derivatives, and closed forms."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.model.parts import ImmersedShape, Medium
from delassus.mujoco import from_mujoco, q_from_mujoco, v_from_mujoco
from refusals import refuses

OPTION = '<option density="900" viscosity="0.3" wind="0.4 -0.7 0.2" timestep="0.002"/>'
SHAPES = '<geom type="ellipsoid" size=".1 .2 .05" {0}/><geom type="capsule" size=".05 .2" pos=".2 0 .1" {0}/>'
SWIMMER = """<mujoco>{option}<worldbody><body name="head" euler="20 30 40"><freejoint/>{shapes}
  <body name="tail" pos=".3 0 0"><joint name="bend" axis="0 1 1" damping="1"/>{shapes}
  <body pos=".3 0 0"><joint name="tip" type="ball"/><geom size=".07" {fluid}/></body></body></body>
</worldbody></mujoco>"""
KINDS = ['fluidshape="none"', 'fluidshape="ellipsoid"', 'fluidshape="ellipsoid" fluidcoef=".4 .3 1 .8 .6"']


def swimmer(fluid: str):
    return mujoco.MjModel.from_xml_string(SWIMMER.format(option=OPTION, fluid=fluid, shapes=SHAPES.format(fluid)))


def states(m, count=8):
    """States, and MuJoCo's passive forces there."""
    rng, data = np.random.default_rng(0), mujoco.MjData(m)
    for _ in range(count):
        mujoco.mj_resetData(m, data)
        mujoco.mj_integratePos(m, data.qpos, rng.normal(size=m.nv), 1.0)
        data.qvel[:] = rng.normal(size=m.nv)
        mujoco.mj_forward(m, data)
        yield data


@pytest.mark.parametrize("fluid", KINDS)
def test_passive_forces_are_those_of_mujoco(fluid):
    m = swimmer(fluid)
    robot = from_mujoco(m)
    for data in states(m):
        q = q_from_mujoco(robot, data.qpos)
        v, there = (v_from_mujoco(robot, q, x) for x in (data.qvel, data.qfrc_passive))
        scale = np.abs(there).max()
        np.testing.assert_allclose(dl.dynamics.passive_forces(robot, q, v), there, atol=1e-13 * scale)


@pytest.mark.parametrize("fluid", KINDS)
def test_derivatives_are_those_of_differences(fluid):
    robot, rng = from_mujoco(swimmer(fluid)), np.random.default_rng(1)
    q, v, h = robot.random_configuration(rng), rng.normal(size=robot.nv), 1e-6
    by_q, by_v = dl.derivatives.passive_derivatives.python(robot, q, v)
    steps, force = h * np.eye(robot.nv), dl.dynamics.passive_forces.python
    along_v = [(force(robot, q, v + x) - force(robot, q, v - x)) / (2.0 * h) for x in steps]
    at = lambda x: force(robot, dl.dynamics.integrate.python(robot, q, x), v)  # noqa: E731
    along_q = [(at(x) - at(-x)) / (2.0 * h) for x in steps]
    np.testing.assert_allclose(by_v.T, along_v, atol=1e-6 * np.abs(by_v).max())
    np.testing.assert_allclose(by_q.T, along_q, atol=1e-6 * np.abs(by_v).max())


def test_a_small_sphere_sinks_at_the_speed_of_stokes():
    ball = '<mujoco><option viscosity="2"/>{}</mujoco>'.format(
        '<worldbody><body><freejoint/><geom size=".05" mass=".01"/></body></worldbody>'
    )
    sim = dl.Simulation(dl.load(ball), time_step=1e-3, max_contacts=0)
    log = sim.run(steps=200)
    side = np.sqrt(6.0 * 0.4) * 0.05  # of the cube with the inertia of the sphere
    np.testing.assert_allclose(log.v[-1, 2], -0.01 * 9.81 / (3.0 * np.pi * 2.0 * side), rtol=1e-9)


@pytest.mark.parametrize("fluid", KINDS[:2])
def test_accelerations_are_those_of_mujoco(fluid):
    m = swimmer(fluid)
    sim = dl.Simulation(from_mujoco(m), law="mujoco", touching=(), self_collision=False)
    for data in states(m, 3):
        q = q_from_mujoco(sim.model, data.qpos)
        v, there = (v_from_mujoco(sim.model, q, x) for x in (data.qvel, data.qacc))
        here = sim.accelerations(sim.start(q, v)).acceleration
        np.testing.assert_allclose(here, there, atol=1e-10 * np.abs(there).max())


def test_locked_and_attached_robots_feel_the_medium():
    whole = replace(from_mujoco(swimmer(KINDS[1])), gravity=(0.0, 0.0, 0.0))
    q, rng = whole.random_configuration(np.random.default_rng(2)), np.random.default_rng(3)
    v = rng.normal(size=whole.nv)
    v[6] = 0.0
    locked, rest = whole.lock("bend", q=q), [*range(6), 7, 8, 9]
    there = dl.dynamics.passive_forces.python(whole, q, v)[rest]
    np.testing.assert_allclose(
        dl.dynamics.passive_forces.python(locked, np.delete(q, 7), v[rest]), there, atol=1e-12 * np.abs(there).max()
    )
    two = whole.attach(whole, "world", prefix="b_")
    both = dl.dynamics.passive_forces.python(two, np.tile(q, 2), np.tile(v, 2))
    np.testing.assert_allclose(both, np.tile(dl.dynamics.passive_forces.python(whole, q, v), 2), rtol=1e-12)


@pytest.mark.parametrize(
    ("medium", "code"),
    [
        (Medium(density=-1.0), "out-of-range"),
        (Medium(viscosity=np.nan), "out-of-range"),
        (Medium(wind=(1.0, 2.0)), "not-finite"),
        (Medium(1.0, shapes=(ImmersedShape(7, dl.Placement(), (1.0, 1.0, 1.0)),)), "wrong-shape"),
        (Medium(1.0, shapes=(ImmersedShape(0, dl.Placement(), (1.0, 0.0, 1.0)),)), "not-finite"),
        ("water", "wrong-type"),
    ],
)
def test_impossible_media_are_refused(medium, code):
    with refuses(code):
        replace(dl.load("pendulum"), medium=medium)
