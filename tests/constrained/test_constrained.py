"""Constrained dynamics against the dense answer by singular values, whatever the rank; all methods against each other.

Numbers of iterations follow from the contraction ε/(ε + σ) of an iteration, σ the smallest singular value of
J M⁻¹ Jᵀ that is not zero. ε is taken somewhat smaller than σ, and at least 1e-5 of the largest: less costs digits
(see docs/constraints.md). Plain NumPy runs here unless compiled code is the point.
"""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import delassus as dl
from constrained_cases import MARKED_CASES, clear, mechanism_of, mechanisms, problem
from delassus.compiler.backends.interpreter import evaluate
from delassus.constrained.solvers.kkt import DenseSystem, dense_system, solve_dense
from delassus.model.generators import chain
from how_many import examples
from mechanisms import PROXIMAL, Dense, dense, relative, robot, state
from native_bits import FULL
from refusals import refuses
from robots import file


def solve(method, mechanism, q, v, tau, system: Dense):
    return method.python(mechanism, q, v, tau, iterations=system.iterations, proximal=system.proximal)


def check_equal(found, expected):
    """Accelerations and forces to 1e-9."""
    assert relative(found[0], expected[0]) < 1e-9
    assert relative(found[1], expected[1]) < 1e-9


def check(method, mechanism, q, v, tau, system: Dense):
    """Acceleration to 1e-9, least squares to 1e-10, nothing that is no number."""
    a, force = solve(method, mechanism, q, v, tau, system)
    assert relative(a, system.answer[0]) < 1e-9
    r = system.J @ a + system.gamma
    assert np.max(np.abs(system.J.T @ r)) <= 1e-10 * (1.0 + np.linalg.norm(system.J, 2) * np.linalg.norm(a))
    assert np.all(np.isfinite(force))


# --- random trees -----------------------------------------------------------------------------------------------------


# prox_pv leaves 1.2 times the bound on one repeated weld of a tiny arm: open, and seen by `make test-all`.
_SLOWLY = [pytest.param(f, marks=pytest.mark.slow) if f is dl.prox_pv else f for f in PROXIMAL]


@pytest.mark.parametrize("method", _SLOWLY, ids=lambda f: f.name)
@settings(max_examples=examples(150))
@given(mechanisms(), st.integers(0, 1000))
def test_random_mechanisms_of_any_rank_have_the_dense_answer(method, mechanism, seed):
    q, v, tau = state(mechanism.model, seed)
    system = dense(mechanism, q, v, tau)
    assume(clear(system))
    check(method, mechanism, q, v, tau, system)


@settings(max_examples=examples(150))
@given(mechanisms(), st.integers(0, 1000), st.sampled_from([1, 2, 4]), st.sampled_from([1e-4, 1e-2, 1.0]))
def test_all_methods_have_the_same_iterates(mechanism, seed, iterations, share):
    q, v, tau = state(mechanism.model, seed)
    system = dense(mechanism, q, v, tau)
    assume(system.scale > 1e-6)
    found = [f.python(mechanism, q, v, tau, iterations=iterations, proximal=share * system.scale) for f in PROXIMAL]
    for a, force in found[1:]:
        check_equal((a, force), found[0])


@settings(max_examples=examples(100))
@given(mechanisms(), st.integers(0, 1000))
def test_kkt_has_the_dense_answer(mechanism, seed):
    q, v, tau = state(mechanism.model, seed)
    system = dense(mechanism, q, v, tau)
    assume(clear(system))
    a, force = solve_dense(DenseSystem(*dense_system.python(mechanism, q, v, tau), np.zeros(mechanism.m)))
    check_equal((a, force), system.answer)


# --- robots -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", PROXIMAL, ids=lambda f: f.name)
@pytest.mark.parametrize("case", MARKED_CASES, ids="-".join)
def test_robots_have_the_dense_answer(case, method):
    mechanism, q, v, tau, system = problem(*case)
    assert system.is_clear()
    check(method, mechanism, q, v, tau, system)


# --- compiled code ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", PROXIMAL, ids=lambda f: f.name)
def test_compiled_code_has_the_bits_of_the_interpreter(method):
    mechanism = mechanism_of("solo12.urdf", "feet")
    states = [state(mechanism.model, seed) for seed in range(11)]
    arrays = [np.array(x) for x in zip(*states, strict=True)]
    found = method.compiled(mechanism, target=FULL).ufunc(*arrays)
    for ours, expected in zip(found, evaluate(method.program(mechanism), *arrays), strict=True):
        np.testing.assert_array_equal(ours, expected)


@pytest.mark.parametrize("method", PROXIMAL, ids=lambda f: f.name)
def test_a_state_without_meaning_spoils_only_itself(method):
    mechanism = mechanism_of("solo12.urdf", "feet")
    states = [state(mechanism.model, seed) for seed in range(11)]
    q, v, tau = [np.array(x) for x in zip(*states, strict=True)]
    expected = method(mechanism, q, v, tau)
    v[4, 7] = np.nan
    found = method(mechanism, q, v, tau)
    others = np.arange(11) != 4
    for ours, before in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours[others], before[others])
        assert np.all(np.isnan(ours[4]).any())


def test_kkt_takes_batches():
    mechanism = mechanism_of("solo.urdf", "thrice")
    states = [state(mechanism.model, seed) for seed in range(3)]
    q, v, tau = [np.array(x) for x in zip(*states, strict=True)]
    a, force = dl.kkt(mechanism, q, v, tau)
    for k in range(3):
        expected = dense(mechanism, q[k], v[k], tau[k]).answer
        check_equal((a[k], force[k]), expected)


def test_the_reported_residual_is_the_dense_one():
    mechanism, q, v, tau, system = problem("solo12.urdf", "contradiction", "random")
    a, force = solve(dl.prox_pv, mechanism, q, v, tau, system)
    r, pull = dl.constraint_residual.python(mechanism, q, v, a, force)
    assert relative(r, system.J @ a + system.gamma) < 1e-12
    assert np.max(np.abs(pull - system.J.T @ r)) < 1e-12 * np.linalg.norm(system.J, 2) * np.linalg.norm(r)


# --- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", PROXIMAL, ids=lambda f: f.name)
def test_a_soft_constraint_is_the_first_iterate(method):
    mechanism, q, v, tau, _ = problem("solo12.urdf", "feet", "random")
    soft = dl.pv_soft.python(mechanism, q, v, tau, proximal=1e-3)
    first = method.python(mechanism, q, v, tau, iterations=1, proximal=1e-3)
    check_equal(soft, first)


@pytest.mark.parametrize("method", PROXIMAL, ids=lambda f: f.name)
def test_the_proximal_parameter_may_differ_by_row(method):
    mechanism, q, v, tau, system = problem("solo12.urdf", "feet", "random")
    E = np.diag(10.0 ** np.linspace(-4, -2, mechanism.m))
    G = system.whitened @ system.whitened.T
    b = system.J @ np.linalg.solve(system.M, system.h) + system.gamma
    expected = np.linalg.solve(G + E, -b)
    expected = np.linalg.solve(G + E, -(b - E @ expected))
    _, force = method.python(mechanism, q, v, tau, iterations=2, proximal=tuple(np.diag(E)))
    assert relative(force, expected) < 1e-9


@pytest.mark.parametrize("method", PROXIMAL, ids=lambda f: f.name)
def test_compliance_stays_whatever_the_iterations(method):
    plain, q, v, tau, system = problem("solo12.urdf", "feet", "random")
    compliance = np.tile([1e-2, 0.0, 3.0], 4)
    points = [dl.Point(c.frame, compliance=tuple(compliance[:3])) for c in plain.constraints]
    mechanism = dl.Mechanism(plain.model, points)
    K = np.block([[system.M, system.J.T], [system.J, -np.diag(compliance)]])
    expected = np.linalg.solve(K, np.concatenate([system.h, -system.gamma]))
    a, force = method.python(mechanism, q, v, tau, iterations=30, proximal=1e-3)
    assert relative(a, expected[: mechanism.nv]) < 1e-9
    assert relative(force, -expected[mechanism.nv :]) < 1e-9


def test_kkt_knows_compliance():
    plain, q, v, tau, system = problem("solo12.urdf", "feet", "random")
    mechanism = dl.Mechanism(plain.model, [dl.Point(c.frame, compliance=0.5) for c in plain.constraints])
    K = np.block([[system.M, system.J.T], [system.J, -0.5 * np.eye(mechanism.m)]])
    expected = np.linalg.solve(K, np.concatenate([system.h, -system.gamma]))
    a, force = dl.kkt(mechanism, q, v, tau)
    assert relative(a, expected[: mechanism.nv]) < 1e-9
    assert relative(force, -expected[mechanism.nv :]) < 1e-9


@pytest.mark.parametrize("method", [*PROXIMAL, dl.pv_soft], ids=lambda f: f.name)
def test_a_masked_mechanism_is_the_one_without_these_rows(method):
    whole = dl.Mechanism(
        robot("solo12.urdf"), [*(dl.Point(f"{leg}_FOOT") for leg in ("FL", "HL", "FR")), dl.JointLock("HR_HFE")]
    )
    some = dl.Mechanism(whole.model, [dl.Point("FL_FOOT", rows="xz"), dl.Point("FR_FOOT")])
    q, v, tau = state(whole.model, 5)
    mask = np.array([1.0, 0.0, -3.0, 0, 0, 0, 1, 1, 1, 0])
    a, force = method.python(whole, q, v, tau, mask=mask, proximal=1e-4)
    expected = method.python(some, q, v, tau, proximal=1e-4)
    assert relative(a, expected[0]) < 1e-12
    assert relative(force[mask != 0.0], expected[1]) < 1e-10
    assert np.all(force[mask == 0.0] == 0.0)


@pytest.mark.parametrize("method", PROXIMAL, ids=lambda f: f.name)
def test_a_mask_without_rows_gives_the_free_motion(method):
    mechanism, q, v, tau, _ = problem("solo12.urdf", "feet", "random")
    a, force = method.python(mechanism, q, v, tau, mask=np.zeros(mechanism.m))
    assert relative(a, dl.aba.python(mechanism.model, q, v, tau)) < 1e-12
    assert not force.any()


def test_masks_differ_between_states_of_a_batch():
    mechanism = mechanism_of("solo12.urdf", "feet")
    q, v, tau = state(mechanism.model)
    masks = np.repeat(np.array([[1, 1, 1, 1], [0, 1, 1, 0], [0, 0, 0, 1.0]]), 3, axis=1)
    a, force = dl.caba(mechanism, q, v, tau, mask=masks)
    for k in range(3):
        expected = dl.caba(mechanism, q, v, tau, mask=masks[k])
        np.testing.assert_array_equal(a[k], expected[0])
        np.testing.assert_array_equal(force[k], expected[1])


@pytest.mark.parametrize("method", PROXIMAL, ids=lambda f: f.name)
def test_iterations_go_on_from_a_given_force(method):
    mechanism, q, v, tau, _ = problem("solo12.urdf", "feet", "random")
    _, first = method.python(mechanism, q, v, tau, iterations=2, proximal=1e-2)
    found = method.python(mechanism, q, v, tau, iterations=3, proximal=1e-2, force=first)
    expected = method.python(mechanism, q, v, tau, iterations=5, proximal=1e-2)
    check_equal(found, expected)


@pytest.mark.parametrize("method", PROXIMAL, ids=lambda f: f.name)
def test_desired_accelerations_may_be_given_at_run_time(method):
    plain, q, v, tau, _ = problem("solo12.urdf", "feet", "random")
    wanted = np.arange(12.0)
    points = [dl.Point(c.frame, acceleration=tuple(wanted[3 * k : 3 * k + 3])) for k, c in enumerate(plain.constraints)]
    found = method.python(plain, q, v, tau, acceleration=wanted, proximal=1e-4)
    expected = method.python(dl.Mechanism(plain.model, points), q, v, tau, proximal=1e-4)
    np.testing.assert_array_equal(found[0], expected[0])


@pytest.mark.parametrize("method", [*PROXIMAL, dl.pv_soft], ids=lambda f: f.name)
def test_a_mechanism_without_constraints_moves_freely(method):
    model = chain(3)
    q, v, tau = np.random.default_rng(0).normal(size=(3, 5, 3))
    a, force = method(dl.Mechanism(model), q, v, tau)
    np.testing.assert_allclose(a, dl.aba(model, q, v, tau), rtol=1e-12)
    assert force.shape == (5, 0)


@pytest.mark.parametrize("method", PROXIMAL, ids=lambda f: f.name)
def test_more_rows_than_dofs_are_fine(method):
    mechanism = dl.Mechanism(chain(2), [dl.Weld("tip")] * 3)
    q, v, tau = state(mechanism.model)
    system = dense(mechanism, q, v, tau)
    check(method, mechanism, q, v, tau, system)


@pytest.mark.parametrize("method", PROXIMAL, ids=lambda f: f.name)
def test_joints_may_share_coordinates(method):
    model = dl.load(file("talos_full_v2.urdf"), root="free")
    assert any(joint.mimic for joint in model.joints)
    mechanism = dl.Mechanism(model, [dl.Weld("left_sole_link"), dl.Point("gripper_left_fingertip_1_link")])
    q, v, tau = state(model, 1)
    system = dense(mechanism, q, v, tau)
    check(method, mechanism, q, v, tau, system)


# --- bad input --------------------------------------------------------------------------------------------------------

ARM = dl.Mechanism(chain(3), dl.Point("tip"))
ONES = np.ones((3, 3))


@pytest.mark.parametrize("proximal", [0.0, -1e-6, np.inf, np.nan, (1e-6, 0.0, 1e-6)])
@pytest.mark.parametrize("method", [*PROXIMAL, dl.pv_soft], ids=lambda f: f.name)
def test_a_proximal_parameter_that_is_not_positive_is_explained(method, proximal):
    with refuses("out-of-range", "1e-6"):
        method(ARM, *ONES, proximal=proximal)


def test_a_proximal_parameter_for_each_row_has_as_many_numbers():
    with refuses("wrong-shape", "(2,)"):
        dl.caba(ARM, *ONES, proximal=(1e-6, 1e-6))


@pytest.mark.parametrize("iterations", [0, -1, 2.5, True])
def test_iterations_are_counted_from_one(iterations):
    with refuses("iterations-out-of-range" if iterations in (0, -1) else "not-a-whole-number"):
        dl.caba(ARM, *ONES, iterations=iterations)


def test_a_mask_of_the_wrong_size_is_refused():
    with refuses("wrong-shape", "(4,)", "mask"):
        dl.caba(ARM, *ONES, mask=np.ones(4))
