"""Robots at rest as in MuJoCo: the same MJCF, the same step, heights and forces at the end.

MuJoCo's contacts are soft: feet rest 0.5 to 0.8 mm in the floor, by which robots are lower there, and creep, by which
they turn a little. Here gaps are closed to 1e-9 m and feet stick.
"""

import mujoco
import numpy as np
import pytest

import delassus as dl
from mjcf_robots import (
    HUMANOID,
    HUMANOID_CONTROL,
    HUMANOID_FEET,
    HUMANOID_POSE,
    QUADRUPED,
    QUADRUPED_FEET,
    QUADRUPED_POSE,
)


@pytest.fixture(
    scope="module",
    params=[
        (QUADRUPED, 8, QUADRUPED_POSE, QUADRUPED_POSE, QUADRUPED_FEET, 3000),
        (HUMANOID, 21, HUMANOID_POSE, HUMANOID_CONTROL, HUMANOID_FEET, 10_000),  # it sways for long
    ],
    ids=["quadruped", "humanoid"],
)
def runs(request):
    """Both dropped by some centimetres, held by their servos."""
    xml, nu, pose, control, feet, steps = request.param
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    data.qpos[7:], data.ctrl[:] = pose, control
    q0 = data.qpos.copy()
    for _ in range(steps):
        mujoco.mj_step(model, data)
    robot = dl.load(xml)
    sim = dl.Simulation(robot, dl.Ground(friction=0.8), model.opt.timestep)
    assert sim.nu == nu
    return model, data, feet, sim, sim.run(dl.q_from_mujoco(robot, q0), control=control, steps=steps, every=10)


def test_a_dropped_robot_ends_at_the_same_height(runs):
    _, data, _, sim, log = runs
    q = dl.q_to_mujoco(sim.model, log.q[-1])
    assert np.abs(log.v[-1]).max() < 1e-6
    assert q[2] == pytest.approx(data.qpos[2], abs=1e-3)
    np.testing.assert_allclose(q[7:], data.qpos[7:], atol=5e-3)


def test_the_feet_carry_the_same_weights(runs):
    model, data, feet, _, log = runs
    found = dict.fromkeys(feet, 0.0)
    for k in range(data.ncon):
        force = np.zeros(6)
        mujoco.mj_contactForce(model, data, k, force)
        found[model.geom(data.contact[k].geom[1]).name] += force[0]
    for foot in feet:
        assert log.normal_force(foot)[-1] == pytest.approx(found[foot], rel=1e-2)


DRONE = """
<mujoco>
  <option timestep="0.001"/>
  <worldbody>
    <body name="frame" pos="0 0 1">
      <freejoint/>
      <geom type="box" size="0.1 0.1 0.02" mass="0.5"/>
      <site name="left" pos="0 0.15 0" euler="10 5 0"/>
      <site name="right" pos="0 -0.15 0"/>
    </body>
  </worldbody>
  <actuator>
    <motor site="left" gear="0 0 1 0 0 0.02" ctrlrange="0 5"/>
    <general site="right" gear="0 0 1 0 0 -0.02" gainprm="2" biastype="affine" biasprm="0.1 0 -0.3"/>
  </actuator>
</mujoco>"""


def test_thrust_at_sites_moves_a_drone_as_in_mujoco():
    model = mujoco.MjModel.from_xml_string(DRONE)
    data = mujoco.MjData(model)
    data.ctrl[:] = [7.0, 1.2]  # the first is clipped to 5
    robot = dl.load(DRONE)
    q0 = dl.q_from_mujoco(robot, data.qpos)
    for _ in range(200):
        mujoco.mj_step(model, data)
    log = dl.Simulation(robot, max_contacts=0).run(q0, control=[7.0, 1.2], steps=200)
    q = dl.q_to_mujoco(robot, log.q[-1])
    np.testing.assert_allclose(q[:3], data.qpos[:3], atol=2e-3)  # both are of first order
    np.testing.assert_allclose(q[3:], data.qpos[3:], atol=2e-3)
    assert "clipped" in log.describe()
