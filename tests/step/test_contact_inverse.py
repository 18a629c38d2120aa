"""Contact inverse dynamics: motions of `contact_dynamics` and of MuJoCo are explained by the forces that made them."""

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.model.bundled.build import Assembly, box
from delassus.model.joints import Free
from delassus.step.points.geometry import contact_geometry
from delassus.step.points.parameters import scene_for
from refusals import refuses
from relaxed_pairs import Pair
from stepped import at_the_end, kept_straight

G, H = 9.81, 1e-3


def free_box() -> dl.Model:
    a = Assembly("box")
    a.body("box", Free(), None, (0, 0, 0), [box((0.4, 0.3, 0.2), 2.0)])
    return a.model()


BOX = free_box()
FEET = dl.Contact.foot("box", 0.4, 0.3, center=(0, 0, -0.1), friction=0.5)
LYING = BOX.neutral()
LYING[2] = 0.1
STATES = np.random.default_rng(0).normal(size=(6, 6)) * [0.5, 0.5, 0.3, 1, 1, 1]


@pytest.mark.parametrize("model", ["ncp", "ccp"])
def test_rows_that_yield_tell_their_impulses_by_the_motion(model):
    R = 0.05
    problem = dl.contact_problem(BOX, LYING, STATES, np.zeros(6), contacts=FEET, time_step=H)
    yielding = dl.ContactProblem(problem.G, problem.g, friction=0.5, compliance=R).solve(model, tolerance=1e-12)
    J = contact_geometry.python(scene_for(BOX, FEET, False, False)[0], LYING)[1]
    M = dl.crba.python(BOX, LYING)
    inertia = np.array(BOX.joints[0].inertia.rotational)
    free, _ = kept_straight(STATES, dl.aba(BOX, LYING, STATES, np.zeros(6)), H, inertia=inertia)
    after = at_the_end(free + np.linalg.solve(M, J.T @ yielding.impulse.T).T, H, inertia=inertia)
    found = dl.contact_inverse_dynamics(
        BOX, LYING, STATES, (after - STATES) / H, contacts=FEET, time_step=H, law=model, yielding=R
    )
    np.testing.assert_allclose(H * found.force, yielding.impulse, atol=1e-8)
    np.testing.assert_allclose(H * found.torque, 0.0, atol=1e-8)


def test_rigid_contacts_are_explained_by_what_no_motor_does():
    tau = np.random.default_rng(1).normal(size=(6, 6))
    step = dl.contact_dynamics(BOX, LYING, STATES, tau, contacts=FEET, time_step=H, tolerance=1e-12)
    found = dl.contact_inverse_dynamics(
        BOX, LYING, STATES, (step.velocity - STATES) / H, contacts=FEET, time_step=H, tau=tau
    )
    assert np.all(found.status == dl.Status.CONVERGED)
    np.testing.assert_allclose(H * found.torque, H * tau, atol=1e-6)
    np.testing.assert_allclose(H * found.force[:, 2::3].sum(-1), step.impulse[:, 2::3].sum(-1), atol=1e-6)
    force = found.force.reshape(6, 4, 3)
    assert np.all(np.hypot(force[..., 0], force[..., 1]) <= 0.5 * force[..., 2] + 1e-6)


def test_a_motion_that_no_contact_can_cause_is_said_to_be_unexplained():
    up = np.array([0.0, 0.0, 2.0, 0.0, 0.0, 0.0])
    found = dl.contact_inverse_dynamics(BOX, LYING, np.zeros(6), -G * up, contacts=FEET, time_step=H)
    assert found.status == dl.Status.LEAST_SQUARES
    np.testing.assert_allclose(found.unexplained[2], -2.0 * G, rtol=1e-6)
    rest = dl.contact_inverse_dynamics(BOX, LYING, np.zeros(6), 0.0 * up, contacts=FEET, time_step=H)
    assert rest.status == dl.Status.CONVERGED
    np.testing.assert_allclose(rest.force[2::3].sum(), 2.0 * G, rtol=1e-6)


@pytest.mark.parametrize(("cone", "condim"), [("elliptic", 3), ("elliptic", 6), ("pyramidal", 3)])
def test_the_relaxed_model_is_explained_as_mujoco_does(cone, condim):
    for seed in range(4):
        pair = Pair(cone, condim, seed=seed)
        options = {name: pair.options[name] for name in ("contacts", "impratio", "cone", "law")}
        a = dl.a_from_mujoco(pair.model, pair.q, pair.v, pair.data.qacc)
        found = dl.contact_inverse_dynamics(pair.model, pair.q, pair.v, a, **options)
        wanted = pair.forces()
        np.testing.assert_allclose(found.force, wanted, atol=1e-6 * abs(wanted).max())
        np.testing.assert_allclose(found.torque, pair.tau, atol=1e-6 * abs(wanted).max())
        # another motion than the one that MuJoCo has found
        pair.data.qacc[:] += np.random.default_rng(seed).normal(size=9)
        mujoco.mj_inverse(pair.mj, pair.data)
        a = dl.a_from_mujoco(pair.model, pair.q, pair.v, pair.data.qacc)
        other = dl.contact_inverse_dynamics(pair.model, pair.q, pair.v, a, **options)
        np.testing.assert_allclose(other.torque[6:], pair.data.qfrc_inverse[6:], rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"time_step": None}, ("missing-argument", "time_step")),
        ({"yielding": 0.0}, ("out-of-range",)),
        ({"passive": np.ones(3)}, ("wrong-shape", "each")),
        ({"law": "soft"}, ("unknown-law",)),
        ({"contacts": dl.Contact("box", restitution=0.5)}, ("not-supported",)),
        ({"contacts": ()}, ("nothing-to-do", "rnea")),
    ],
)
def test_what_has_no_inverse_is_refused(options, refusal):
    given = {"contacts": FEET, "time_step": H} | options
    with refuses(*refusal):
        dl.contact_inverse_dynamics(BOX, LYING, *np.zeros((2, 6)), **given)
