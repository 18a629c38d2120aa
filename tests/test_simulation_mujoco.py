"""Robots at rest as in MuJoCo: the same MJCF, the same step, heights and forces at the end."""

import mujoco
import numpy as np
import pytest

import delassus as dl


def leg(name: str, x: float, y: float) -> str:
    return f"""
    <body name="{name}_thigh" pos="{x} {y} 0">
      <joint name="{name}_hip" axis="0 1 0" damping="0.5" armature="0.01"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.2" size="0.02" mass="0.7" contype="0" conaffinity="0"/>
      <body name="{name}_calf" pos="0 0 -0.2">
        <joint name="{name}_knee" axis="0 1 0" range="-2.7 -0.3" limited="true" armature="0.01"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.2" size="0.012" mass="0.15" contype="0" conaffinity="0"/>
        <geom name="{name}_foot" type="sphere" pos="0 0 -0.2" size="0.02" mass="0.05"/>
      </body>
    </body>"""


LEGS = {"fl": (0.2, 0.1), "fr": (0.2, -0.1), "hl": (-0.25, 0.12), "hr": (-0.25, -0.12)}
SERVOS = "".join(
    f'<position joint="{name}_hip" kp="150" kv="6"/><position joint="{name}_knee" kp="150" kv="6" forcerange="-36 36"/>'
    for name in LEGS
)
XML = f"""
<mujoco>
  <compiler angle="radian"/>
  <option timestep="0.001" cone="elliptic" impratio="10"/>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1" friction="0.8"/>
    <body name="trunk" pos="0 0 0.4">
      <freejoint/>
      <geom type="box" size="0.25 0.1 0.05" mass="6" contype="0" conaffinity="0"/>
      {"".join(leg(name, *at) for name, at in LEGS.items())}
    </body>
  </worldbody>
  <actuator>{SERVOS}</actuator>
</mujoco>"""
POSE = np.array([0.7, -1.4] * 4)


@pytest.fixture(scope="module")
def runs():
    model = mujoco.MjModel.from_xml_string(XML)
    data = mujoco.MjData(model)
    data.qpos[7:], data.ctrl[:] = POSE, POSE
    for _ in range(3000):
        mujoco.mj_step(model, data)
    robot = dl.load(XML)
    sim = dl.Simulation(robot, dl.Ground(friction=0.8), 1e-3)
    q0 = dl.q_from_mujoco(robot, np.array([0, 0, 0.4, 1, 0, 0, 0, *POSE]))
    return model, data, sim, sim.run(q0, control=POSE, steps=3000)


def test_a_dropped_robot_ends_at_the_same_height(runs):
    _, data, sim, log = runs
    q = dl.q_to_mujoco(sim.model, log.q[-1])
    assert sim.nu == 8 and np.abs(log.v[-1]).max() < 1e-6
    assert q[2] == pytest.approx(data.qpos[2], abs=1e-3)
    np.testing.assert_allclose(q[7:], data.qpos[7:], atol=5e-3)


def test_the_feet_carry_the_same_weights(runs):
    model, data, _, log = runs
    found = {}
    for k in range(data.ncon):
        force = np.zeros(6)
        mujoco.mj_contactForce(model, data, k, force)
        found[model.geom(data.contact[k].geom[1]).name] = force[0]
    assert len(found) == 4
    for name, force in found.items():
        assert log.normal_force(name)[-1] == pytest.approx(force, rel=1e-2)
