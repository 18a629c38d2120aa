"""Projection with the constraints linearized elsewhere than at the estimate: S. Savin's lecture 5, eq. 15 to 20.

q = (I - N N⁺) (q₀ - F⁺ g₀) + N N⁺ q_e,      F = ∂g/∂q and g₀ = g in q₀, N the null space of F.
"""

import numpy as np
import pinocchio as pin
import pytest
import scipy.linalg

import delassus as dl
from in_pinocchio import to_pinocchio
from mechanisms import FOUR_BAR, loop

both = pytest.mark.parametrize("method", ["mass", "svd"])


def nearby(mechanism, count=5, sizes=(0.05, 0.02), seed=1):
    """Linearization points q₀, estimates q_e and velocities, none of which meets the constraints."""
    model, rng = mechanism.model, np.random.default_rng(seed)
    home = model.posture("home")
    q0, q = (dl.integrate(model, home, size * rng.normal(size=(count, model.nv))) for size in sizes)
    return q0, q, rng.normal(size=(count, model.nv))


def lecture(mechanism, q0, q, v):
    """Eq. 14 and 19 in a vector space, by an orthonormal null space."""
    F, g0 = dl.constraint_jacobian.python(mechanism, q0), dl.constraint_error.python(mechanism, q0)
    N = scipy.linalg.null_space(F, rcond=1e-9)
    particular = q0 - np.linalg.pinv(F, rcond=1e-9) @ g0
    return particular - N @ N.T @ particular + N @ N.T @ q, N @ N.T @ v


def test_one_step_is_the_lectures_formula():
    states = nearby(FOUR_BAR)
    found = dl.project(FOUR_BAR, states[1], states[2], method="svd", linearization=states[0])
    for q0, q, v, new_q, new_v in zip(*states, *found, strict=True):
        expected = lecture(FOUR_BAR, q0, q, v)
        np.testing.assert_allclose(new_q, expected[0], atol=1e-12)
        np.testing.assert_allclose(new_v, expected[1], atol=1e-12)


def test_redundant_rows_change_nothing():
    (closure,) = FOUR_BAR.constraints
    twice = dl.Mechanism(FOUR_BAR.model, [closure])  # the model has its own loop, too
    q0, q, v = nearby(FOUR_BAR)
    for method in ("mass", "svd"):
        expected = dl.project(FOUR_BAR, q, v, method=method, linearization=q0)
        found = dl.project(twice, q, v, method=method, linearization=q0)
        assert twice.m == 2 * FOUR_BAR.m
        np.testing.assert_allclose(found.q, expected.q, atol=1e-10)


def test_a_floating_robot_moves_along_its_manifold():
    """q₀ ⊕ (d - F⁺ (g₀ + F d)), d = q_e ⊖ q₀, with Pinocchio's ⊕ and ⊖."""
    biped = loop("biped")
    theirs = to_pinocchio(biped.model)
    q0, q, v = (x[0] for x in nearby(biped))
    F, g0 = dl.constraint_jacobian(biped, q0), dl.constraint_error(biped, q0)
    d = pin.difference(theirs, q0, q)
    expected = pin.integrate(theirs, q0, d - np.linalg.pinv(F, rcond=1e-9) @ (g0 + F @ d))
    np.testing.assert_allclose(dl.project(biped, q, v, method="svd", linearization=q0).q, expected, atol=1e-11)


def test_the_first_correction_by_mass_is_that_of_dense_algebra_in_the_linearisation_point():
    q0, q, v = (x[0] for x in nearby(FOUR_BAR))
    F, g0 = dl.constraint_jacobian(FOUR_BAR, q0), dl.constraint_error(FOUR_BAR, q0)
    W = np.linalg.inv(dl.crba(FOUR_BAR.model, q0)) @ F.T
    expected = q - W @ np.linalg.pinv(F @ W, rcond=1e-9) @ (g0 + F @ (q - q0))
    first = dl.project(FOUR_BAR, q, v, linearization=q0, tolerance=0.1)  # as it is after the first
    np.testing.assert_allclose(first.q, expected, atol=1e-9)


@pytest.mark.parametrize("name", ["four_bar", "delta", "biped"])
def test_by_mass_it_is_iterated_until_the_constraints_are_met(name):
    mechanism = loop(name)
    q0, q, v = nearby(mechanism)
    found = dl.project(mechanism, q, v, linearization=q0)
    assert np.max(np.abs(dl.constraint_error(mechanism, found.q))) < 1e-12
    assert np.max(np.abs(np.matvec(dl.constraint_jacobian(mechanism, found.q), found.v))) < 1e-10
    assert np.max(np.abs(found.q - dl.project(mechanism, q, v).q)) > 1e-5  # the choice of the point is felt


@both
def test_linearised_at_the_estimate_it_is_the_projection_without(method):
    biped = loop("biped")
    _, q, v = nearby(biped)
    expected = dl.project(biped, q, v, method=method)
    found = dl.project(biped, q, v, method=method, linearization=q)
    np.testing.assert_allclose(found.q, expected.q, atol=1e-11)
    np.testing.assert_allclose(found.v, expected.v, atol=1e-9)


@both
def test_one_linearisation_point_serves_a_batch_and_is_its_own_in_another(method):
    q0, q, v = nearby(FOUR_BAR)
    one = dl.project(FOUR_BAR, q, v, method=method, linearization=q0[0])
    np.testing.assert_array_equal(one.q[0], dl.project(FOUR_BAR, q[0], v[0], method=method, linearization=q0[0]).q)
    many = dl.project(FOUR_BAR, q, v, method=method, linearization=q0)
    np.testing.assert_array_equal(many.q[0], one.q[0])
    assert np.max(np.abs(many.q[1:] - one.q[1:])) > 1e-6


@both
def test_locked_joints_keep_the_coordinates_of_the_estimate(method):
    q0, q, v = nearby(FOUR_BAR)
    found = dl.project(FOUR_BAR, q, v, method=method, linearization=q0, locked="crank_joint")
    k = [joint.name for joint in FOUR_BAR.model.joints].index("crank_joint")
    np.testing.assert_array_equal(found.q[:, k], q[:, k])
    np.testing.assert_array_equal(found.v[:, k], v[:, k])
    if method == "mass":
        assert np.max(np.abs(dl.constraint_error(FOUR_BAR, found.q))) < 1e-12


@both
def test_linear_constraints_do_not_care_where_they_are_linearised(method):
    pendulum = dl.load("double_pendulum")
    gear = dl.Mechanism(
        pendulum, dl.Coupling(pendulum.joints[1].name, pendulum.joints[0].name, coefficients=(0.0, -2.0))
    )
    q, v = np.array([0.4, 0.1]), np.array([1.0, 2.0])
    expected = dl.project(gear, q, v, method="svd")
    found = dl.project(gear, q, v, method="svd", linearization=[2.0, -1.0])
    np.testing.assert_allclose(found.q, expected.q, atol=1e-14)
    far = dl.project(gear, q, v, linearization=[2.0, -1.0])
    assert np.max(np.abs(dl.constraint_error(gear, far.q))) < 1e-12
