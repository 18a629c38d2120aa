"""Impacts: momentum is kept, rows rest or bounce, any rank, and energy as the law says."""

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import delassus as dl
from constrained_cases import clear, mechanisms
from delassus.compiler.backends.interpreter import evaluate
from delassus.model.generators import chain
from how_many import examples
from mechanisms import FOUR_BAR, Dense, dense, robot, state, two_bodies, weighted
from native_bits import FULL
from refusals import refuses
from robots import file, pinocchio_model

PENDULUM = dl.load("double_pendulum")
TIP = dl.Mechanism(PENDULUM, dl.Point("tip", rows="xz"))

restitutions = st.floats(0.0, 1.0).map(lambda e: round(e, 3))


def dense_impact(system: Dense, v, e):
    """v⁺ and the smallest impulses of M (v⁺ - v) = Jᵀ Λ, J v⁺ = -e J v, by singular values."""
    L = np.linalg.cholesky(system.M)
    A = (np.linalg.solve(L, system.J.T) * system.weight).T
    jump = -np.linalg.pinv(A, rcond=1e-6) @ (system.weight * (1.0 + e) * (system.J @ v))
    return v + np.linalg.solve(L.T, jump), system.weight * (np.linalg.pinv(A.T, rcond=1e-6) @ jump)


def energy(mechanism, q, v):
    return float(dl.kinetic_energy.python(mechanism.model, q, v))


def tips(count=None):
    """States of the double pendulum."""
    rng = np.random.default_rng(0)
    shape = (2,) if count is None else (count, 2)
    return rng.uniform(-1.0, 1.0, shape), rng.normal(size=shape)


# --- closed forms -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("e", [0.0, 0.4, 1.0])
def test_two_masses_that_collide_have_the_velocities_of_the_textbook(e):
    model = two_bodies(3.0, 1.0)
    meeting = dl.Mechanism(model, dl.Point("a", "b", rows="x"))
    v = np.zeros(12)
    v[0], v[6] = 2.0, -1.0
    found = dl.impact(meeting, model.neutral(), v, restitution=e)
    common, approach = (3.0 * 2.0 - 1.0) / 4.0, 3.0
    assert found.v[0] == pytest.approx(common - e * approach / 4.0, abs=1e-14)
    assert found.v[6] == pytest.approx(common + 3.0 * e * approach / 4.0, abs=1e-14)
    assert found.impulse == pytest.approx([-(1.0 + e) * approach * 0.75], abs=1e-13)


def test_a_rod_that_falls_flat_on_one_end_turns_about_it():
    model = two_bodies(1.0, 1.0)  # of inertia 1 kg·m²; the first falls, its end 0.5 m out strikes
    corner = dl.Mechanism(model, dl.Point("a", placement=dl.Placement.of(p=(0.5, 0.0, 0.0)), rows="z"))
    v = np.zeros(12)
    v[2] = -1.0
    found = dl.impact(corner, model.neutral(), v)
    impulse = 1.0 / (1.0 + 0.5**2)  # 1/(1/m + r²/I)
    assert found.impulse == pytest.approx([impulse], abs=1e-14)
    assert found.v[2] == pytest.approx(-1.0 + impulse, abs=1e-14)
    assert found.v[4] == pytest.approx(-0.5 * impulse, abs=1e-14)


@settings(max_examples=examples(50))
@given(restitutions, st.integers(0, 1000))
def test_a_double_pendulum_that_strikes_has_the_dense_answer(e, seed):
    q, v, tau = state(PENDULUM, seed)
    system = dense(TIP, q, v, tau)
    K = np.block([[system.M, -system.J.T], [system.J, np.zeros((2, 2))]])
    assume(np.linalg.cond(K) < 1e6)
    expected = np.linalg.solve(K, np.concatenate([system.M @ v, -e * (system.J @ v)]))
    after, impulse = dl.impact.python(TIP, q, v, restitution=e)
    np.testing.assert_allclose(np.concatenate([after, impulse]), expected, atol=1e-9 * max(1.0, abs(expected).max()))


# --- other people's software ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("e", [0.0, 0.3, 1.0])
def test_feet_that_strike_have_pinocchios_answer(e):
    model, theirs = robot("solo12.urdf"), pinocchio_model(file("solo12.urdf"), "free")
    feet = ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")
    standing = dl.Mechanism(model, [dl.Point(foot) for foot in feet])
    q, v, _ = state(model, 3)
    J = dl.constraint_jacobian(standing, q)
    data = theirs.createData()
    expected = pin.impulseDynamics(theirs, data, dl.q_to_pinocchio(model, q), v, J, e, 0.0)
    found = dl.impact(standing, q, v, restitution=e)
    np.testing.assert_allclose(found.v, expected, atol=1e-10)
    np.testing.assert_allclose(found.impulse, data.impulse_c, atol=1e-9)


# --- any rank ---------------------------------------------------------------------------------------------------------


@settings(max_examples=examples(80))
@given(mechanisms(), restitutions, st.integers(0, 1000))
def test_impacts_of_redundant_rows_have_the_smallest_impulses(mechanism, e, seed):
    q, v, tau = state(mechanism.model, seed)
    system = weighted(mechanism, dense(mechanism, q, v, tau))
    assume(clear(system))
    after, impulse = dl.impact.python(mechanism, q, v, restitution=e)
    expected, smallest = dense_impact(system, v, e)
    np.testing.assert_allclose(after, expected, atol=1e-9 * max(1.0, abs(expected).max()))
    np.testing.assert_allclose(impulse, smallest, atol=1e-7 * max(1.0, abs(smallest).max()))


def test_repeated_rows_that_bounce_differently_meet_in_the_middle():
    twice = dl.Mechanism(PENDULUM, [dl.Point("tip", rows="z", name="soft"), dl.Point("tip", rows="z", name="hard")])
    q, v = tips()
    found = dl.impact(twice, q, v, restitution={"hard": 1.0})
    middle = dl.impact(dl.Mechanism(PENDULUM, dl.Point("tip", rows="z")), q, v, restitution=0.5)
    np.testing.assert_allclose(found.v, middle.v, atol=1e-12)
    np.testing.assert_allclose(found.impulse, 0.5 * middle.impulse[0], rtol=1e-8)


def test_a_joint_that_strikes_in_a_stretched_configuration_has_finite_impulses():
    found = dl.impact(TIP, np.zeros(2), np.array([1.0, 1.0]))  # both rods in line: no way to move along them
    assert np.isfinite(found.impulse).all()
    assert dl.constraint_jacobian(TIP, np.zeros(2)) @ found.v == pytest.approx(0.0, abs=1e-12)


# --- energy -----------------------------------------------------------------------------------------------------------


@settings(max_examples=examples(60))
@given(mechanisms(), st.integers(0, 1000))
def test_impacts_without_loss_keep_the_kinetic_energy(mechanism, seed):
    q, v, tau = state(mechanism.model, seed)
    assume(clear(dense(mechanism, q, v, tau)))
    after, _ = dl.impact.python(mechanism, q, v, restitution=1.0)
    assert energy(mechanism, q, after) == pytest.approx(energy(mechanism, q, v), rel=1e-11)


@settings(max_examples=examples(60))
@given(mechanisms(), restitutions, st.integers(0, 1000))
def test_impacts_never_put_energy_in(mechanism, e, seed):
    q, v, tau = state(mechanism.model, seed)
    assume(clear(dense(mechanism, q, v, tau)))
    after, _ = dl.impact.python(mechanism, q, v, restitution=e)
    assert energy(mechanism, q, after) <= energy(mechanism, q, v) * (1.0 + 1e-11)


# --- rows -------------------------------------------------------------------------------------------------------------


def test_rows_bounce_each_with_its_own_restitution():
    q, v = tips()
    J = dl.constraint_jacobian(TIP, q)
    found = dl.impact(TIP, q, v, restitution=(0.25, 1.0))
    np.testing.assert_allclose(J @ found.v, [-0.25, -1.0] * (J @ v), atol=1e-12)


def test_restitutions_by_name_are_those_of_the_rows():
    both = dl.Mechanism(chain(6), [dl.Point("tip"), dl.JointLock("joint0")])
    q, v, _ = state(both.model)
    named = dl.impact(both, q, v, restitution={"joint0": 0.5})
    np.testing.assert_array_equal(named.v, dl.impact(both, q, v, restitution=(0.0, 0.0, 0.0, 0.5)).v)


def test_rows_that_are_switched_off_do_not_strike():
    q, v = tips(3)
    mask = np.array([[1.0, 1.0], [0.0, 1.0], [0.0, 0.0]])
    found = dl.impact(TIP, q, v, restitution=0.5, mask=mask)
    alone = dl.impact(dl.Mechanism(PENDULUM, dl.Point("tip", rows="z")), q[1], v[1], restitution=0.5)
    np.testing.assert_allclose(found.v[1], alone.v, atol=1e-13)
    assert found.impulse[1, 0] == 0.0
    np.testing.assert_array_equal(found.v[2], v[2])


def test_rows_bounce_off_references_that_move():
    model = chain(6)
    q, v, _ = state(model)
    moving = dl.Mechanism(model, dl.Point("tip", position=lambda t: np.array([0.0, 0.0, 0.7]) * t))
    found = dl.impact(moving, q, v, restitution=0.5, time=0.3)
    R, _ = dl.frame_placement(model, q, frame="tip")
    before, after = (R @ dl.frame_velocity(model, q, x, frame="tip")[:3] - [0.0, 0.0, 0.7] for x in (v, found.v))
    np.testing.assert_allclose(after, -0.5 * before, atol=1e-11)


def test_a_closed_loop_feels_no_impact_of_velocities_it_allows():
    q = FOUR_BAR.model.posture("home")
    v = dl.project(FOUR_BAR, q, np.ones(3)).v
    found = dl.impact(FOUR_BAR, q, v)
    np.testing.assert_allclose(found.v, v, atol=1e-11)
    np.testing.assert_allclose(found.impulse, 0.0, atol=1e-11)


# --- calls ------------------------------------------------------------------------------------------------------------


def test_a_batch_has_the_bits_of_its_states():
    q, v = tips(11)
    together = dl.impact(TIP, q, v, restitution=0.5)
    for k in range(11):
        alone = dl.impact(TIP, q[k], v[k], restitution=0.5)
        np.testing.assert_array_equal(together.v[k], alone.v)
        np.testing.assert_array_equal(together.impulse[k], alone.impulse)


def test_compiled_code_has_the_bits_of_the_interpreter():
    arrays = *tips(11), np.full((11, TIP.m), 0.5)
    found = dl.impact.compiled(TIP, target=FULL, inputs=("restitution",)).ufunc(*arrays)
    program = dl.impact.program(TIP, inputs=("restitution",))
    for ours, expected in zip(found, evaluate(program, *arrays), strict=True):
        np.testing.assert_array_equal(ours, expected)


def test_a_state_that_is_no_number_spoils_nothing_else():
    q, v = tips(11)
    expected = dl.impact(TIP, q, v)
    v[4, 0] = np.nan
    found = dl.impact(TIP, q, v)
    others = np.arange(11) != 4
    np.testing.assert_array_equal(found.v[others], expected.v[others])
    assert np.isnan(found.v[4]).all()


def test_without_constraints_nothing_happens():
    q, v = tips()
    found = dl.impact(dl.Mechanism(PENDULUM), q, v)
    np.testing.assert_array_equal(found.v, v)
    assert found.impulse.shape == (0,)


@pytest.mark.parametrize("restitution", [1.5, -0.1, (0.5, 1.5), {"tip": -0.1}])
def test_restitutions_beyond_their_bounds_are_refused(restitution):
    with refuses("restitution-out-of-range"):
        dl.impact(TIP, *tips(), restitution=restitution)


def test_a_restitution_for_another_number_of_rows_is_refused():
    with refuses("wrong-shape", "3"):
        dl.impact(TIP, *tips(), restitution=(0.1, 0.2, 0.3))


@pytest.mark.parametrize("restitution", [float("nan"), "soft"])
def test_a_restitution_that_is_no_number_is_refused(restitution):
    with refuses("not-a-number" if restitution == "soft" else "not-finite", "restitution"):
        dl.impact(TIP, *tips(), restitution=restitution)


def test_a_restitution_of_an_unknown_constraint_names_the_nearest():
    with refuses("unknown-constraint", "'tpi'"):
        dl.impact(TIP, *tips(), restitution={"tpi": 0.5})
