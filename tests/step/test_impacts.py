"""Impacts of a step of time: bounces without lost speed, blows through rows of balls, penetrations that add nothing."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import delassus as dl
from delassus.constrained.solvers.status import Status
from delassus.model.bundled.build import Assembly, Prismatic, ball
from delassus.model.joints import Spherical, Translation
from refusals import refuses
from stepped import G, balls_in_a_row, masses, run

step = dl.stepping.compliant_step


def falling() -> dl.Model:
    a = Assembly("falling")
    a.body("ball", Prismatic((0, 0, 1)), None, (0, 0, 0), [ball(0.05, 1.3)])
    return a.model()


def peaks(z):
    """The largest heights between bounces."""
    return np.array([b for a, b, c in zip(z[:-2], z[1:-1], z[2:], strict=True) if b > a and b >= c])


def bounces(h, duration=3.0, e=0.8, **options):
    contact = dl.Contact("ball", friction=0.0, restitution=e)
    q, _ = run(falling(), [1.0], [0.0], round(duration / h), time_step=h, contacts=contact, **options)
    return q[:, 0]


# --- one contact ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("beta", [1.0, 0.75, 0.5])
def test_a_ball_comes_back_to_the_heights_that_restitution_says(beta):
    found = peaks(bounces(1e-3, beta=beta))[:6]
    np.testing.assert_allclose(found, 0.8 ** (2 * np.arange(1, 7)), rtol=5e-4)


def test_the_error_of_heights_is_at_least_of_first_order():
    errors = [np.abs(peaks(bounces(h))[:5] / 0.8 ** (2 * np.arange(1, 6)) - 1).max() for h in (8e-3, 1e-3)]
    assert errors[1] < errors[0] / 8 and errors[0] < 0.04


def test_no_loss_means_no_loss_whatever_the_step_leaves_of_the_gap():
    for h in (1e-3, 1.3e-3, 1.7e-3):
        np.testing.assert_allclose(peaks(bounces(h, e=1.0, beta=0.5)), 1.0, rtol=2e-5)


def test_a_ball_comes_to_rest_and_stays():
    z = bounces(2e-3, duration=6.0, e=0.6)
    assert np.ptp(z[-500:]) < 1e-15 and -1e-6 < z[-1] < 1e-3


@pytest.mark.parametrize("beta", [1.0, 0.5])
def test_without_restitution_a_gap_closes_and_not_more(beta):
    q, v = run(falling(), [0.1], [0.0], 200, time_step=2e-3, contacts=dl.Contact("ball"), beta=beta)
    assert q.min() > -(1.0 - beta) * 2e-3 * 1.5 - 1e-12  # β = ½ moves with the approach for half of a step
    np.testing.assert_allclose([q[-1, 0], v[-1, 0]], [q[-2, 0], 0.0], atol=1e-12)


@pytest.mark.parametrize("how", ["pre", "post"])
def test_a_penetration_is_taken_off_without_velocity(how):
    found = step(falling(), [-0.02], [0.0], [0.0], time_step=1e-3, contacts=dl.Contact("ball"), stabilization=how)
    np.testing.assert_allclose([found.q, found.v], np.zeros((2, 1)), atol=1e-11)


def test_a_penetration_that_is_not_taken_off_stays_and_adds_no_energy():
    found = step(falling(), [-0.02], [0.0], [0.0], time_step=1e-3, contacts=dl.Contact("ball"))
    np.testing.assert_allclose([found.q[0], found.v[0]], [-0.02, 0.0], atol=1e-12)


def test_contacts_have_restitution_of_their_own():
    a = Assembly("two")
    for k in range(2):
        a.body(f"ball{k}", Prismatic((0, 0, 1)), None, (k, 0, 0), [ball(0.05, 1.0)])
    contacts = [dl.Contact("ball0", restitution=0.9), dl.Contact("ball1", restitution=0.3)]
    found = step(a.model(), [0.0, 0.0], [-2.0, -2.0], np.zeros(2), time_step=1e-4, contacts=contacts, beta=0.5)
    np.testing.assert_allclose(found.v, [1.8, 0.6], atol=2 * 1e-4 * G)


def test_a_compliant_contact_sinks_in_by_what_its_weight_says():
    contact = dl.Contact("ball", compliance=1e-4)
    q, _ = run(falling(), [0.01], [0.0], 2000, time_step=5e-3, contacts=contact)
    np.testing.assert_allclose(q[-1], -1.3 * G * 1e-4, rtol=1e-6)


def test_a_thrown_ball_is_braked_by_friction_alone():
    contact = dl.Contact("mass0", friction=0.3)
    _, v = run(masses(1), [0.0, 0.0, 0.0], [1.0, 0.0, 0.0], 100, time_step=1e-3, contacts=contact)
    np.testing.assert_allclose(v[-1], [1.0 - 0.3 * G * 0.1, 0.0, 0.0], atol=1e-7)


def test_limits_of_joints_stop_a_step():
    model = falling()
    model = replace(model, joints=(replace(model.joints[0], lower=(-0.1,), upper=(1.0,)),))
    q, _ = run(model, [0.0], [0.0], 400, time_step=1e-3, limits=True)
    np.testing.assert_allclose(q[-1], -0.1, atol=1e-9)


# --- energy -----------------------------------------------------------------------------------------------------------


def dumbbell() -> tuple[dl.Model, dl.Contact]:
    """A body that turns alike about all axes, so that nothing but contacts changes its energy, with two ends."""
    a = Assembly("dumbbell")
    a.body("place", Translation(), None)
    a.body("body", Spherical(), "place", parts=[ball(0.1, 2.0)])
    ends = dl.Contact("body", corners=[(0.3, 0.0, 0.0), (-0.2, 0.1, 0.0)], friction=0.5, restitution=0.5)
    return replace(a.model(), gravity=(0.0, 0.0, 0.0)), ends


@pytest.mark.parametrize("options", [{"stabilization": "none"}, {"stabilization": "post"}, {"impacts": "reflections"}],
                         ids=["none", "post", "reflections"])  # fmt: skip
@given(st.integers(0, 10_000), st.floats(0.0, 2.0), st.floats(0.0, 1.0), st.floats(1e-4, 1e-2))
@settings(max_examples=25, deadline=None)
def test_friction_and_restitution_never_add_energy(options, seed, friction, e, h):
    (model, ends), rng = dumbbell(), np.random.default_rng(seed)
    q, v = rng.normal(size=(64, 7)), rng.normal(size=(64, 6)) * [3.0, 3.0, 3.0, 20.0, 20.0, 20.0]
    q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1)[:, None]
    tips = Rotation.from_quat(q[:, 3:]).as_matrix()[:, 2] @ np.transpose(ends.corners)
    q[:, 2] = rng.uniform(-0.02, 0.02, size=64) - tips.min(1)  # just above the ground, or in it
    after = step(
        model, q, v, np.zeros((64, 6)), time_step=h, contacts=ends, friction=friction, restitution=e, **options
    )
    before, left = dl.kinetic_energy(model, q, v), dl.kinetic_energy(model, after.q, after.v)
    assert np.any(left < 0.99 * before) and np.all(left <= before * (1 + 1e-9))


def test_a_blow_that_newton_and_coulomb_would_make_add_energy_loses_none():
    """A rod that strikes with its end, as in the paradox of Kane and Levinson: restitution alone would add 18 %."""
    model, ends = dumbbell()
    q, v = np.array([0.0, 0.0, 0.15, 0.0, np.sin(np.pi / 12), 0.0, np.cos(np.pi / 12)]), np.zeros(6)
    gains = []
    for slip in np.linspace(-10.0, 10.0, 41):
        v[:3] = slip, 0.0, -1.0
        found = step(model, q, v, np.zeros(6), time_step=1e-3, contacts=ends, friction=1.5, restitution=1.0)
        gains.append(dl.kinetic_energy(model, found.q, found.v) / dl.kinetic_energy(model, q, v) - 1.0)
    assert max(gains) < 1e-12 and min(gains) < -0.01


# --- several at once --------------------------------------------------------------------------------------------------


def in_a_row(velocities, **options):
    v = np.asarray(velocities, float)
    model, row = balls_in_a_row(v.shape[-1])
    return dl.stepping.reflections(model, np.arange(float(v.shape[-1])), v, contacts=row, **options)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([1, 0, 0], [0, 0, 1]),
        ([1, 0, 0, 0, 0], [0, 0, 0, 0, 1]),
        ([1, 1, 0, 0], [0, 0, 1, 1]),
        ([1, 0, -1], [-1, 0, 1]),
    ],
)
def test_a_cradle_swings_by_reflections(before, after):
    found = in_a_row(before)
    np.testing.assert_allclose(found.v, after, atol=1e-14)
    assert found.status == Status.CONVERGED


def test_the_law_of_newton_throws_all_back_at_once():
    model, row = balls_in_a_row(3)
    found = step(model, np.arange(3.0), [1.0, 0.0, 0.0], np.zeros(3), time_step=1e-6, contacts=row, restitution=1.0)
    np.testing.assert_allclose(found.v, [-1 / 3, 2 / 3, 2 / 3], atol=1e-7)


@pytest.mark.parametrize("gap", [0.0, 1e-4])
def test_a_step_can_reflect(gap):
    model, row = balls_in_a_row(4)
    q = np.array([-gap, 1.0, 2.0, 3.0])
    found = step(model, q, [1.0, 0, 0, 0], np.zeros(4), time_step=1e-3, contacts=row, restitution=1.0,
                 impacts="reflections")  # fmt: skip
    np.testing.assert_allclose(found.v, [0, 0, 0, 1.0], atol=1e-12)
    np.testing.assert_allclose(found.q, [0.0, 1.0, 2.0, 3.0 + 1e-3 - gap], atol=1e-9)


@given(st.integers(0, 10_000), st.floats(0.0, 1.0))
@settings(max_examples=40, deadline=None)
def test_reflections_keep_momentum_and_energy_and_nothing_approaches(seed, e):
    v = np.random.default_rng(seed).normal(size=(5, 6))
    found = in_a_row(v, restitution=np.full(5, e))
    np.testing.assert_allclose(found.v.sum(-1), v.sum(-1), atol=1e-12)
    assert np.all(np.diff(found.v) > -1e-11) and np.all(found.impulse > -1e-12)
    lost = (v**2).sum(-1) - (found.v**2).sum(-1)
    assert np.all(lost > -1e-11)
    if e == 1.0:
        np.testing.assert_allclose(lost, 0.0, atol=1e-11)


def test_the_plastic_end_of_reflections_is_that_of_the_contact_solver():
    v = np.random.default_rng(3).normal(size=6)
    model, row = balls_in_a_row(6)
    plastic = step(model, np.arange(6.0), v, np.zeros(6), time_step=1e-3, contacts=row)
    np.testing.assert_allclose(in_a_row(v, restitution=0.0).v, plastic.v, atol=1e-7)


def test_rounds_that_are_not_enough_are_told():
    found = in_a_row([1.0, 0, 0, 0, 0], rounds=2)
    assert found.status == Status.ITERATIONS and found.rounds == 2.0
    np.testing.assert_allclose(found.v, [0, 0, 1, 0, 0], atol=1e-14)  # the best so far


def test_reflections_have_the_restitution_of_their_contacts():
    v = np.array([1.0, 0.3, -0.5, 0.1])
    model, row = balls_in_a_row(4)
    own = [replace(contact, restitution=e) for contact, e in zip(row, (0.3, 0.9, 0.6), strict=True)]
    found = dl.stepping.reflections(model, np.arange(4.0), v, contacts=own)
    np.testing.assert_array_equal(found.v, in_a_row(v, restitution=[0.3, 0.9, 0.6]).v)
    assert np.abs(found.v - in_a_row(v).v).max() > 0.01
    other = dl.stepping.reflections(model, np.arange(4.0), v, contacts=own, restitution=1.0)
    np.testing.assert_array_equal(other.v, in_a_row(v).v)  # what a call says goes before


def test_a_plastic_reflection_can_be_asked_for():
    np.testing.assert_allclose(in_a_row([1.0, 0.0], restitution=0.0).v, [0.5, 0.5], atol=1e-14)


def test_points_that_do_not_touch_do_not_take_part():
    np.testing.assert_allclose(in_a_row([1.0, 0.0, 0.0], touching=[1.0, 0.0]).v, [0.0, 1.0, 0.0], atol=1e-14)


def test_bad_impacts_are_said_in_sentences():
    with refuses("restitution-out-of-range", "1.5", "restitution"):
        in_a_row([1.0, 0.0], restitution=1.5)
    with refuses("unknown-option", "'poisson'"):
        step(falling(), [0.1], [0.0], [0.0], time_step=1e-3, impacts="poisson")
    with refuses("out-of-range", "0", "500", "rounds"):
        in_a_row([1.0, 0.0], rounds=0)
