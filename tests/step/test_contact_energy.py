"""Steps of `contact_dynamics` keep momentum, and add no energy: rods that strike, bouncing balls, bodies that fly."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import delassus as dl
from delassus.model.bundled.build import Assembly, ball, box
from delassus.model.joints import Free, Planar, Prismatic
from stepped import G


def free_body(part, joint=None, gravity=0.0) -> dl.Model:
    a = Assembly("body")
    a.body("body", Free() if joint is None else joint, None, (0, 0, 0), [part])
    return a.model().with_gravity((0.0, 0.0, -gravity))


ROD = free_body(box((1.0, 0.02, 0.02), 1.0))
ROUND = free_body(ball(0.1, 2.0))  # turns alike about all axes: nothing but contacts changes its energy
TIP = dl.Contact("body", corners=[(0.5, 0.0, 0.0)], friction=1.0, restitution=0.9)
LAWS = ("ncp", "ccp", "lcp")


def striking(count: int, corners, seed: int = 0):
    """Bodies in all directions whose lowest corner is at the ground, or just in it."""
    rng = np.random.default_rng(seed)
    q, v = np.zeros((count, 7)), rng.normal(size=(count, 6)) * [1, 1, 1, 3, 3, 3]
    turn = Rotation.from_quat(rng.normal(size=(count, 4)))
    q[:, 3:] = turn.as_quat()
    q[:, 2] = rng.uniform(-1e-3, 1e-3, count) - (turn.as_matrix()[:, 2] @ np.transpose(corners)).min(1)
    return q, v


# --- energy -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS)
def test_rods_that_strike_with_one_tip_and_friction_gain_no_energy(law):
    q, v = striking(2000, TIP.corners)
    step = dl.contact_dynamics(ROUND, q, v, np.zeros(6), contacts=TIP, time_step=1e-3, law=law)
    before, after = dl.kinetic_energy(ROUND, q, v), dl.kinetic_energy(ROUND, q, step.velocity)
    assert np.all(after <= before * (1 + 1e-9)) and np.sum(after < 0.99 * before) > 500
    assert np.all(step.status == dl.Status.CONVERGED)


def test_slender_rods_that_strike_gain_less_than_a_thousandth():
    q, v = striking(2000, TIP.corners)
    step = dl.contact_dynamics(ROD, q, v, np.zeros(6), contacts=TIP, time_step=1e-3)
    gain = dl.kinetic_energy(ROD, q, step.velocity) / dl.kinetic_energy(ROD, q, v) - 1.0
    assert gain.max() < 1e-3


FOUR = dl.Contact.foot("body", 0.2, 0.3, friction=0.8, restitution=1.0)


@pytest.mark.parametrize("law", LAWS)
def test_where_restitution_is_lowered_a_flag_says_so_and_the_problem_is_the_one_that_was_solved(law):
    q, v = striking(500, FOUR.corners, seed=1)
    step = dl.contact_dynamics(ROUND, q, v, np.zeros(6), contacts=FOUR, time_step=1e-3, law=law)
    limited = step.energy_limited
    assert 10 < limited.sum() < 250
    assert np.all(step.restitution_share[limited] < 1.0) and np.all(step.restitution_share[~limited] == 1.0)
    sigma = (step.problem.G @ step.impulse[..., None])[..., 0] + step.problem.g
    np.testing.assert_allclose(step.row_velocity, sigma, atol=1e-12)
    if law != "lcp":
        np.testing.assert_allclose(step.solution.residual, step.residual, atol=1e-12)
        assert np.all(step.residual <= 1e-7 * np.abs(step.problem.g).max(-1))
    assert "Restitution was lowered" in step.describe()


@pytest.mark.parametrize("law", LAWS)
def test_restitution_is_lowered_only_where_all_of_it_would_add_energy(law):
    q, v = striking(500, FOUR.corners, seed=1)
    step = dl.contact_dynamics(ROUND, q, v, np.zeros(6), contacts=FOUR, time_step=1e-3, law=law)
    full = dl.contact_problem(ROUND, q, v, np.zeros(6), contacts=FOUR, time_step=1e-3).solve(law).impulse
    J = dl.contact_kinematics(ROUND, q, contacts=FOUR).jacobian
    after = v + np.linalg.solve(dl.crba(ROUND, q), (np.swapaxes(J, -1, -2) @ full[..., None]))[..., 0]
    gain = dl.kinetic_energy(ROUND, q, after) / dl.kinetic_energy(ROUND, q, v) - 1.0
    assert np.all(step.energy_limited[gain > 1e-6]) and not np.any(step.energy_limited[gain < -1e-6])


def test_a_compliant_step_reports_residuals_of_the_restitution_that_it_applied():
    q, v = striking(500, FOUR.corners, seed=1)
    step = dl.stepping.compliant_step(ROUND, q, v, np.zeros(6), time_step=1e-3, contacts=FOUR)
    limited = step.energy_limited
    assert 10 < limited.sum() < 250 and np.all(step.status == dl.Status.CONVERGED)
    # Contacts that push leave with the same share of what all of restitution would throw them back with.
    asked = dl.stepping.compliant_system(ROUND, q, v, np.zeros(6), time_step=1e-3, contacts=FOUR)
    straight = v + np.linalg.solve(asked.W, np.swapaxes(asked.J, -1, -2) @ step.impulse[..., None])[..., 0]
    normal = (asked.J @ straight[..., None])[..., 2::3, 0]
    plastic = np.maximum(step.gap, 0.0) / 1e-3
    share = step.restitution_share[:, None]
    left = normal + plastic + share * (asked.b[:, 2::3] - plastic)
    assert np.abs(left[step.impulse[:, 2::3] > 1e-6]).max() < 1e-5


# --- bounces ----------------------------------------------------------------------------------------------------------


def apexes(h: float, e: float, law: str, integrated: bool) -> np.ndarray:
    """Heights of a ball between bounces, from 1 m, where positions are integrated by the user, or the step's."""
    model = free_body(ball(0.05, 1.3), Prismatic((0, 0, 1)), G)
    contact, z, v, found = dl.Contact("body", friction=0.0, restitution=e), np.ones(1), np.zeros(1), []
    for _ in range(round(3.0 / h)):
        step = dl.contact_dynamics(model, z, v, np.zeros(1), contacts=contact, time_step=h, law=law)
        z, v = z + h * step.velocity if integrated else step.q, step.velocity
        found.append(z[0])
    return np.array([b for a, b, c in zip(found[:-2], found[1:-1], found[2:], strict=True) if b > a and b >= c])


@pytest.mark.parametrize("integrated", [True, False])
@pytest.mark.parametrize(("h", "e"), [(4e-3, 0.8), (1e-3, 0.8), (2.3e-3, 0.5), (3.1e-3, 1.0)])
def test_a_ball_comes_back_to_the_heights_that_restitution_says(h, e, integrated):
    count = {0.8: 4, 0.5: 2, 1.0: 3}[e]
    heights = apexes(h, e, "ncp", integrated)[:count]
    np.testing.assert_allclose(heights, e ** (2 * np.arange(1, count + 1)), atol=0.2 * G * h * h)


@pytest.mark.parametrize("e", [0.05, 0.2])
def test_a_ball_that_hardly_bounces_never_rises_above_where_it_was_let_go(e):
    heights = apexes(4e-3, e, "ncp", True)
    assert np.all(heights < e * e + 4e-3 * np.sqrt(2 * G))


# --- flight -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("contacts", [(), dl.Contact("body", height=-50.0)], ids=["alone", "far"])
@pytest.mark.parametrize("law", [*LAWS, "relaxed", "soft"])
def test_a_body_that_flies_and_spins_keeps_its_momentum(law, contacts):
    model = free_body(box((0.4, 0.3, 0.2), 2.0))
    q, v, h = model.neutral(), np.array([1.0, 0.2, -0.4, 0.0, 0.0, 10.0]), 1e-3
    straight = q
    for _ in range(200):
        step = dl.contact_dynamics(model, q, v, np.zeros(6), contacts=contacts, time_step=h, law=law)
        straight = dl.contact_dynamics(model, straight, v, np.zeros(6), contacts=contacts, time_step=h, law=law).q
        q, v = dl.integrate(model, q, h * step.velocity), step.velocity
    np.testing.assert_allclose(Rotation.from_quat(q[3:]).apply(v[:3]), [1.0, 0.2, -0.4], rtol=1e-12)
    np.testing.assert_allclose(straight[:3], 0.2 * np.array([1.0, 0.2, -0.4]), atol=1e-12)


def test_a_planar_body_that_flies_and_spins_keeps_its_momentum():
    model = free_body(box((0.4, 0.3, 0.2), 2.0), Planar((0, 1, 0)))
    q, v, h = model.neutral(), np.array([1.0, 0.5, 8.0]), 1e-3
    for _ in range(100):
        step = dl.contact_dynamics(model, q, v, np.zeros(3), time_step=h)
        q, v = step.q, step.velocity
    c, s = np.cos(q[2]), np.sin(q[2])
    np.testing.assert_allclose(np.array([[c, -s], [s, c]]) @ v[:2], [1.0, 0.5], rtol=1e-12)


def test_inverse_dynamics_explain_a_step_of_a_body_that_spins():
    model = free_body(box((0.4, 0.3, 0.2), 2.0), gravity=G)
    rng, h = np.random.default_rng(3), 5e-3
    q, v, tau = model.neutral(), rng.normal(size=(8, 6)) * [1, 1, 1, 10, 10, 10], rng.normal(size=(8, 6))
    far = dl.Contact("body", height=-50.0)
    step = dl.contact_dynamics(model, q, v, tau, contacts=far, time_step=h)
    found = dl.contact_inverse_dynamics(model, q, v, (step.velocity - v) / h, contacts=far, time_step=h, tau=tau)
    np.testing.assert_allclose(found.torque, tau, atol=1e-9)
