"""The relaxed model against MuJoCo: weights, compliance, references, and the forces themselves."""

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.contact.models.relaxation import RelaxationError
from delassus.contact.models.relaxed import relaxed_rows
from delassus.contact.models.weights import inverse_weights

XML = """
<mujoco>
  <compiler angle="radian"/>
  <option timestep="0.002" cone="{cone}" impratio="{impratio}" tolerance="0" iterations="300" ls_iterations="100"
          jacobian="dense"><flag warmstart="disable"/></option>
  <worldbody>
    <geom type="plane" size="5 5 .1" friction="0.4 0.01 0.01"/>
    <body name="ball" pos="0 0 0.0985">
      <freejoint/>
      <geom type="sphere" size="0.1" mass="1.3" friction="0.6 0.02 0.01" condim="{condim}" solref="{solref}"
            solimp="0.7 0.97 0.004 0.4 3" solmix="2"/>
    </body>
    <body name="crank" pos="1 0 0.5">
      <joint name="crank" axis="0 1 0" armature="0.01" frictionloss="{dry}"/>
      <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.02" mass="0.5" contype="0" conaffinity="0"/>
      <body name="rod" pos="0.4 0 0">
        <joint name="rod" axis="0 1 0" range="-4 {limit}" limited="true"/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0.1" size="0.02" mass="0.4" contype="0" conaffinity="0"/>
      </body>
    </body>
    <body name="rocker" pos="1.8 0 0.5">
      <joint name="rocker" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 -0.3 0 0.2" size="0.02" mass="0.3" contype="0" conaffinity="0"/>
    </body>
  </worldbody>
  <equality>
    <connect body1="rod" body2="rocker" anchor="0.3 0 0.1"/>
    <joint joint1="crank" joint2="rocker" polycoef="0.1 0.5 0.2 0 0"/>
  </equality>
</mujoco>
"""


class Pair:
    """A model in MuJoCo and here, in the same state."""

    def __init__(self, cone="elliptic", condim=3, impratio=2.0, solref="0.015 1.2", dry=0.0, limit=4.0, seed=0):
        text = XML.format(cone=cone, condim=condim, impratio=impratio, solref=solref, dry=dry, limit=limit)
        self.mj, rng = mujoco.MjModel.from_xml_string(text), np.random.default_rng(seed)
        self.data = mujoco.MjData(self.mj)
        self.data.qpos[-3:] = 0.1 * rng.normal(size=3)
        self.data.qvel[:] = rng.normal(size=9)
        self.data.qpos[3:7] = rng.normal(size=4)
        self.data.qpos[3:7] /= np.linalg.norm(self.data.qpos[3:7])
        self.data.qfrc_applied[6:] = rng.normal(size=3)
        mujoco.mj_forward(self.mj, self.data)
        self.model = dl.from_mujoco(self.mj)
        self.q = dl.q_from_mujoco(self.model, self.data.qpos)
        self.v = dl.v_from_mujoco(self.model, self.q, self.data.qvel)
        self.tau = np.array(self.data.qfrc_applied)
        met = dl.Relaxation([float(x) for x in solref.split()], (0.7, 0.97, 0.004, 0.4, 3)).mixed_with(
            dl.Relaxation(), 2.0, 1.0
        )
        more = {3: {}, 4: {"torsional": 0.02}, 6: {"torsional": 0.02, "rolling": 0.01}}[condim]
        self.contact = dl.Contact("ball", radius=0.1, friction=0.6, tangent=(0, 1, 0), relaxation=met, **more)
        self.options = {"model": "relaxed", "impratio": impratio, "cone": cone, "tolerance": 1e-12}
        self.options |= {"limits": limit < 4.0, "joint_friction": dry > 0.0, "contacts": self.contact}

    def forces(self):
        """MuJoCo's, in the order of rows here: t1, t2, n, spin, roll, then equalities, limits, dry friction."""
        kind, f, contact = self.data.efc_type, np.array(self.data.efc_force), self.data.contact[0]
        wrench = np.zeros(6)
        mujoco.mj_contactForce(self.mj, self.data, 0, wrench)
        own = wrench[[1, 2, 0, 3, 4, 5]][: contact.dim]
        rest = mujoco.mjtConstraint
        R, _ = dl.frame_placement(self.model, self.q, frame=self.model.constraints[0].frame1)
        equal = f[kind == int(rest.mjCNSTR_EQUALITY)]
        stops, dry = (f[kind == int(k)] for k in (rest.mjCNSTR_LIMIT_JOINT, rest.mjCNSTR_FRICTION_DOF))
        return np.concatenate([own, R.T @ equal[:3], equal[3:], stops, dry])


def test_weights_are_those_of_mujoco_at_qpos0():
    pair = Pair()
    bodies, joints = inverse_weights(pair.model)
    np.testing.assert_allclose(bodies, pair.mj.body_invweight0[1:], rtol=1e-12)
    np.testing.assert_allclose(joints, pair.mj.dof_invweight0, rtol=1e-12)


@pytest.mark.parametrize("solref", ["0.015 1.2", "0.001 1", "-400 -30"])
def test_compliance_and_references_are_those_of_mujoco(solref):
    from delassus.contact.dynamics.asked import Asked
    from delassus.contact.dynamics.steps import Relaxed, relaxed_numbers

    pair = Pair(solref=solref)
    rows = {"limits": False, "joint_friction": False, "midway": True}
    asked = Asked.of(pair.model, (pair.q, pair.v, pair.tau), pair.contact, 0.002, {}, {}, {}, rows)
    numbers = relaxed_numbers(asked, Relaxed(None, 2.0, "elliptic"))
    _, R, wanted, free, on = relaxed_rows.python(asked.scene, *asked.state, 0.002, **numbers)
    met = pair.data.contact[0]
    np.testing.assert_allclose(pair.contact.relaxation.solref, met.solref)
    np.testing.assert_allclose(pair.contact.relaxation.solimp, met.solimp)
    order = [5, 6, 4, 0, 1, 2, 3]
    np.testing.assert_allclose(R, pair.data.efc_R[order], rtol=1e-10)
    np.testing.assert_array_equal(on, 1.0)
    smooth = pair.data.efc_J.reshape(-1, 9) @ pair.data.qacc_smooth
    for k in (0, 1, 2, 6):  # those of the connection are in other axes
        np.testing.assert_allclose(wanted[k], pair.data.efc_aref[order[k]], atol=1e-9)
        np.testing.assert_allclose(free[k], smooth[order[k]], atol=1e-9)


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
@pytest.mark.parametrize("condim", [3, 6])
def test_forces_are_those_of_mujoco(cone, condim):
    for seed in range(8):
        pair = Pair(cone, condim, seed=seed)
        found = dl.contact_dynamics(pair.model, pair.q, pair.v, pair.tau, time_step=None, **pair.options)
        wanted = pair.forces()
        np.testing.assert_allclose(found.force, wanted, atol=1e-6 * abs(wanted).max())
        a = dl.a_from_mujoco(pair.model, pair.q, pair.v, pair.data.qacc)
        np.testing.assert_allclose(found.acceleration, a, atol=1e-6 * abs(a).max())


def test_limits_and_dry_friction_are_those_of_mujoco():
    pair = Pair(dry=0.3, limit=-0.5, seed=3)
    found = dl.contact_dynamics(pair.model, pair.q, pair.v, pair.tau, time_step=0.002, **pair.options)
    wanted = pair.forces()
    # Our row of the limit pushes the joint away from it, as theirs does.
    np.testing.assert_allclose(found.impulse / 0.002, wanted, atol=1e-6 * abs(wanted).max())
    after = found.velocity - pair.v
    np.testing.assert_allclose(after / 0.002, dl.a_from_mujoco(pair.model, pair.q, pair.v, pair.data.qacc), atol=1e-6)


def test_an_open_contact_has_no_force():
    pair = Pair()
    q = pair.q.copy()
    q[2] = 0.11
    found = dl.contact_dynamics(pair.model, q, pair.v, pair.tau, time_step=None, **pair.options)
    np.testing.assert_array_equal(found.force[:3], 0.0)


def test_its_problem_is_convex_and_solved():
    pair = Pair()
    found = dl.contact_dynamics(pair.model, pair.q, pair.v, pair.tau, time_step=None, **pair.options)
    again = found.problem.solve(model="ccp", tolerance=1e-12)
    np.testing.assert_allclose(again.impulse, found.force, atol=1e-8)


def test_one_proximal_iteration_with_its_compliance_gives_the_forces_of_equalities():
    from delassus.contact.dynamics.asked import Asked
    from delassus.contact.dynamics.steps import Relaxed, relaxed_numbers

    pair = Pair()
    loop = dl.Mechanism(pair.model, model_constraints=False, constraints=dl.Mechanism(pair.model).constraints[:1])
    rows = {"limits": False, "joint_friction": False, "midway": True}
    asked = Asked.of(loop, (pair.q, pair.v, pair.tau), (), 0.002, {}, {}, {}, rows)
    numbers = relaxed_numbers(asked, Relaxed(None, 1.0, "elliptic"))
    _, R, wanted, _, _ = relaxed_rows.python(asked.scene, *asked.state, 0.002, **numbers)
    options = {"time_step": 0.002, "model": "relaxed", "tolerance": 1e-12}
    found = dl.contact_dynamics(loop, pair.q, pair.v, pair.tau, **options)
    a, force = dl.prox_pv(loop, pair.q, pair.v, pair.tau, acceleration=wanted, proximal=tuple(R.tolist()), iterations=1)
    np.testing.assert_allclose(found.impulse / 0.002, force, rtol=1e-8)
    np.testing.assert_allclose((found.velocity - pair.v) / 0.002, a, atol=1e-8)


def test_numbers_that_do_not_say_how_rows_give_way_are_refused():
    with pytest.raises(RelaxationError, match="both positive"):
        dl.Relaxation(solref=(0.02, -1.0))
    with pytest.raises(RelaxationError, match="5 finite numbers"):
        dl.Relaxation(solimp=(0.9, 0.95))
    pair = Pair()
    for options, words in (
        ({"impratio": 0.0}, "positive"),
        ({"cone": "round"}, "no cone"),
        ({"restitution": 0.5}, "no r"),
    ):
        with pytest.raises(dl.DelassusError, match=words):
            dl.contact_dynamics(pair.model, pair.q, pair.v, pair.tau, time_step=None, **pair.options | options)
