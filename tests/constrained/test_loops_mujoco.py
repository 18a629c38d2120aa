"""Ties of MJCF files as constraints: their Jacobians are those of MuJoCo's equality constraints."""

import mujoco
import numpy as np
import pytest

import delassus as dl
from in_pinocchio import Loop
from loop_oracles import close
from mechanisms import PROXIMAL, Dense, relative, state

BODIES = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body name="a" pos="0 0 1">
      <joint name="ja" axis="0 1 0"/> <geom size="0.1" mass="1"/>
      <body name="b" pos="0.5 0.1 0" euler="0.2 0.3 0.4">
        <joint name="jb" axis="1 0 0"/> <geom size="0.1" mass="1"/>
      </body>
    </body>
    <body name="c" pos="0.2 0 1.5"> <freejoint/> <geom size="0.1 0.2 0.1" type="box" mass="1"/> </body>
    <body name="d" pos="1 0 1"> <joint name="jd" type="slide" axis="0 0 1"/> <geom size="0.1" mass="1"/> </body>
  </worldbody>
  <equality> {tie} </equality>
</mujoco>
"""

TIES = {
    "connect": '<connect name="t" body1="b" body2="c" anchor="0.1 0.2 0.3"/>',
    "connect to the world": '<connect name="t" body1="b" anchor="0.1 0.2 0.3"/>',
    "weld": '<weld name="t" body1="b" body2="c"/>',
    "joint": '<joint name="t" joint1="jb" joint2="jd" polycoef="0.1 0.5 0.3 0.2 0.1"/>',
    "joint alone": '<joint name="t" joint1="jb" polycoef="0.1 0 0 0 0"/>',
}


def theirs(xml: str, q):
    """The Jacobian of MuJoCo's equality rows."""
    model = mujoco.MjModel.from_xml_string(xml)
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    data = mujoco.MjData(model)
    data.qpos[:] = q
    mujoco.mj_forward(model, data)
    return data.efc_J.reshape(-1, model.nv)[: data.ne]


def both(name: str, closed: bool = False):
    """Our Jacobian and theirs, per unit of our velocities, and the rotation of the first frame."""
    xml = BODIES.format(tie=TIES[name])
    ours = dl.load(xml)
    mechanism = dl.Mechanism(ours)
    q = ours.random_configuration(np.random.default_rng(0))
    if closed:
        q = close(ours, (Loop("weld", mechanism.constraints[0].frame, mechanism.constraints[0].frame2),), q)
    columns = np.stack([dl.v_to_mujoco(ours, q, e) for e in np.eye(ours.nv)], axis=1)
    R, _ = dl.frame_placement.python(ours, q, frame=getattr(ours.constraints[0], "frame1", "b"))
    return dl.constraint_jacobian.python(mechanism, q), theirs(xml, dl.q_to_mujoco(ours, q)) @ columns, R


@pytest.mark.parametrize("name", ["connect", "connect to the world"])
def test_jacobians_of_connections_are_mujocos(name):
    J, expected, R = both(name)
    np.testing.assert_allclose(R @ J, expected, atol=1e-10)  # their axes are the world's


@pytest.mark.parametrize("name", ["joint", "joint alone"])
def test_jacobians_of_coupled_joints_are_mujocos(name):
    J, expected, _ = both(name)
    np.testing.assert_allclose(J, expected, atol=1e-10)


def test_jacobians_of_welds_are_mujocos_where_they_hold():
    """Elsewhere theirs take the bodies at different points. Their angular rows are those of the quaternion between the
    bodies: half the angle, and as a quaternion either sign."""
    J, expected, R = both("weld", closed=True)
    np.testing.assert_allclose(R @ J[:3], expected[:3], atol=1e-10)
    sign = np.sign(np.sum(J[3:] * expected[3:]))
    np.testing.assert_allclose(0.5 * sign * J[3:], expected[3:], atol=1e-10)


@pytest.mark.parametrize("method", PROXIMAL, ids=lambda f: f.name)
def test_joints_that_a_file_ties_move_as_mujocos_rows_say(method):
    _, J, _ = both("joint")
    mechanism = dl.Mechanism(dl.load(BODIES.format(tie=TIES["joint"])))
    q, _, tau = state(mechanism.model)
    rest = np.zeros(mechanism.nv)
    h = tau - dl.bias_torques.python(mechanism.model, q, rest)
    a, _ = method.python(mechanism, q, rest, tau, iterations=10, proximal=1e-3)
    assert relative(a, Dense(dl.crba.python(mechanism.model, q), h, J, np.zeros(1)).answer[0]) < 1e-9
