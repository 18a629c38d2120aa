"""The relaxed model against MuJoCo: weights, compliance, references, and the forces themselves."""

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.compiler.host.definition import plainly
from delassus.step.laws.relaxed import relaxed_rows
from delassus.step.laws.weights import InverseMass
from refusals import refuses
from relaxed_pairs import Pair
from stepped import kept_straight


def test_weights_are_those_of_mujoco_at_qpos0():
    pair = Pair()
    with plainly():
        inverse = InverseMass(pair.model)
        bodies = [inverse.placed(j) for j in range(len(pair.model.joints))]
        joints = inverse.joints()
    np.testing.assert_allclose(bodies, pair.mj.body_invweight0[1:], rtol=1e-12)
    np.testing.assert_allclose(joints, pair.mj.dof_invweight0, rtol=1e-12)


@pytest.mark.parametrize("solref", ["0.015 1.2", "0.001 1", "-400 -30"])
def test_compliance_and_references_are_those_of_mujoco(solref):
    from delassus.step.contact.arguments import ContactArguments
    from delassus.step.contact.options import ProblemOptions
    from delassus.step.contact.steps import row_relaxation
    from delassus.step.laws.law import Relaxed

    pair = Pair(solref=solref)
    law, state = Relaxed(impratio=2.0), (pair.q, pair.v, pair.tau)
    asked = ContactArguments.of(pair.model, state, pair.contact, 0.002, law, ProblemOptions())
    inputs = {"relaxation": row_relaxation(asked, law), "contact": asked.inputs.contact}
    _, R, wanted, free, on = relaxed_rows.python(asked.scene, *asked.state, 0.002, **inputs)
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
    mujoco.mj_Euler(pair.mj, pair.data)
    q = dl.q_from_mujoco(pair.model, pair.data.qpos)
    np.testing.assert_allclose(found.q, q, atol=1e-9)
    np.testing.assert_allclose(found.velocity, dl.v_from_mujoco(pair.model, q, pair.data.qvel), atol=2e-9)


def test_an_open_contact_has_no_force():
    pair = Pair()
    q = pair.q.copy()
    q[2] = 0.11
    found = dl.contact_dynamics(pair.model, q, pair.v, pair.tau, time_step=None, **pair.options)
    np.testing.assert_array_equal(found.force[:3], 0.0)


def test_a_number_that_is_none_marks_its_own_state():
    pair = Pair()
    q = np.tile(pair.q, (3, 1))
    q[2, 2] = np.nan
    found = dl.contact_dynamics(pair.model, q, pair.v, pair.tau, time_step=None, **pair.options)
    assert [s is dl.Status.NOT_FINITE for s in found.statuses] == [False, False, True]
    np.testing.assert_array_equal(found.force[0], found.force[1])


def test_its_problem_is_convex_and_solved():
    pair = Pair()
    found = dl.contact_dynamics(pair.model, pair.q, pair.v, pair.tau, time_step=None, **pair.options)
    again = found.problem.solve(law="ccp", tolerance=1e-12)
    np.testing.assert_allclose(again.impulse, found.force, atol=1e-8)


def test_one_proximal_iteration_with_its_compliance_gives_the_forces_of_equalities():
    from delassus.step.contact.arguments import ContactArguments
    from delassus.step.contact.options import ProblemOptions
    from delassus.step.contact.steps import row_relaxation
    from delassus.step.laws.law import Relaxed

    pair = Pair()
    loop = dl.Mechanism(pair.model, model_constraints=False, constraints=dl.Mechanism(pair.model).constraints[:1])
    asked = ContactArguments.of(loop, (pair.q, pair.v, pair.tau), (), 0.002, Relaxed(), ProblemOptions())
    inputs = {"relaxation": row_relaxation(asked, Relaxed())}
    _, R, wanted, _, _ = relaxed_rows.python(asked.scene, *asked.state, 0.002, **inputs)
    options = {"time_step": 0.002, "law": "relaxed", "tolerance": 1e-12}
    found = dl.contact_dynamics(loop, pair.q, pair.v, pair.tau, **options)
    a, force = dl.prox_pv(loop, pair.q, pair.v, pair.tau, acceleration=wanted, proximal=tuple(R.tolist()), iterations=1)
    np.testing.assert_allclose(found.impulse / 0.002, force, rtol=1e-8)
    np.testing.assert_allclose(found.velocity, kept_straight(pair.v, a, 0.002)[1], atol=1e-11)


def test_numbers_that_do_not_say_how_rows_give_way_are_refused():
    with refuses("out-of-range"):
        dl.Relaxation(solref=(0.02, -1.0))
    with refuses("wrong-shape"):
        dl.Relaxation(solimp=(0.9, 0.95))
    pair = Pair()
    for options, words in (
        ({"impratio": 0.0}, ("out-of-range",)),
        ({"impratio": "x"}, ("not-a-number", "impratio")),
        ({"cone": "round"}, ("unknown-option",)),
        ({"restitution": 0.5}, ("conflicting-arguments",)),
    ):
        with refuses(*words):
            dl.contact_dynamics(pair.model, pair.q, pair.v, pair.tau, time_step=None, **pair.options | options)


WELDED = """
<mujoco>
  <option timestep="0.002" tolerance="0" iterations="300" ls_iterations="100" jacobian="dense"/>
  <worldbody>
    <body name="a" pos="0 0 1"><freejoint/><geom type="box" size=".1 .2 .3" mass="1.3" contype="0"/></body>
    <body name="b" pos="0.5 0 1"><freejoint/><geom type="box" size=".2 .1 .1" mass=".7" contype="0"/></body>
  </worldbody>
  <equality><weld body1="a" body2="b" anchor="0.1 0.2 0"/></equality>
</mujoco>
"""


def test_welds_are_those_of_mujoco():
    mj = mujoco.MjModel.from_xml_string(WELDED)
    data, model, rng = mujoco.MjData(mj), dl.from_mujoco(mj), np.random.default_rng(0)
    for _ in range(4):
        data.qpos[:] = mj.qpos0 + 0.1 * rng.normal(size=14)
        mujoco.mj_normalizeQuat(mj, data.qpos)
        data.qvel[:] = rng.normal(size=12)
        mujoco.mj_forward(mj, data)
        q = dl.q_from_mujoco(model, data.qpos)
        v = dl.v_from_mujoco(model, q, data.qvel)
        found = dl.contact_dynamics(model, q, v, np.zeros(12), time_step=None, law="relaxed", tolerance=1e-12)
        a = dl.a_from_mujoco(model, q, v, data.qacc)
        np.testing.assert_allclose(found.acceleration, a, atol=1e-6 * abs(a).max())
        np.testing.assert_allclose(found.force[:3], data.efc_force[:3], atol=1e-6 * abs(data.efc_force).max())


STANDING = """
<mujoco>
  <option timestep="0.002" cone="{cone}" tolerance="0" iterations="300" ls_iterations="100" jacobian="dense"/>
  <worldbody>
    <geom type="plane" size="5 5 .1" friction="0.5"/>
    <body name="box" pos="0 0 0.0985"><freejoint/><geom type="box" size=".2 .15 .1" mass="2" friction="0.5"/></body>
  </worldbody>
</mujoco>
"""


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_corners_that_share_a_body_have_the_forces_of_mujoco(cone):
    mj = mujoco.MjModel.from_xml_string(STANDING.format(cone=cone))
    data, model, rng = mujoco.MjData(mj), dl.from_mujoco(mj), np.random.default_rng(1)
    feet = dl.Contact.foot("box", 0.4, 0.3, center=(0, 0, -0.1), friction=0.5, tangent=(0, 1, 0))
    for _ in range(4):
        data.qpos[3:] = np.array([1, 0, 0, 0]) + np.array([0, 1e-3, 1e-3, 1.0]) * rng.normal(size=4)
        mujoco.mj_normalizeQuat(mj, data.qpos)
        data.qvel[:] = 0.3 * rng.normal(size=6)
        mujoco.mj_forward(mj, data)
        q = dl.q_from_mujoco(model, data.qpos)
        v = dl.v_from_mujoco(model, q, data.qvel)
        options = {"contacts": feet, "time_step": None, "law": "relaxed", "cone": cone, "tolerance": 1e-12}
        found = dl.contact_dynamics(model, q, v, np.zeros(6), **options)
        assert data.ncon > 2
        a = dl.a_from_mujoco(model, q, v, data.qacc)
        np.testing.assert_allclose(found.acceleration, a, atol=1e-6 * abs(a).max())
        pushes = []
        for k in range(data.ncon):
            wrench = np.zeros(6)
            mujoco.mj_contactForce(mj, data, k, wrench)
            pushes.append(wrench[[1, 2, 0]])
        touching = found.force.reshape(4, 3)[found.gap < 0.0]
        np.testing.assert_allclose(in_order(touching), in_order(np.array(pushes)), atol=1e-5)


def in_order(pushes):
    """By their normal forces: contacts come in another order there."""
    return pushes[np.argsort(np.round(pushes[:, 2], 4))]
