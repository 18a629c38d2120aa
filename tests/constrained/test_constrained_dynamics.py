"""Constrained dynamics to a tolerance: exact whatever the rank, honest about how it ended."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import delassus as dl
from constrained_cases import MARKED_CASES, clear, mechanism_of, mechanisms, problem
from delassus.compiler.backends.interpreter import evaluate
from delassus.constrained.solvers.choice import SOLVERS, best_method
from delassus.constrained.solvers.status import Status
from delassus.model.generators import balanced_tree, random_tree
from delassus.model.joints import Free
from delassus.model.parts import Mimic
from how_many import examples
from mechanisms import dense, relative, state, weighted
from native_bits import FULL
from refusals import refuses

every_method = pytest.mark.parametrize("method", SOLVERS)


def solve(mechanism, q, v, tau, method="prox_pv", **options):
    """One state in plain NumPy."""
    return dl.constrained_dynamics.python(mechanism, q, v, tau, method=method, **options)


@every_method
@settings(max_examples=examples(120))
@given(mechanisms(), st.integers(0, 1000))
def test_random_mechanisms_of_any_rank_have_the_dense_answer(method, mechanism, seed):
    q, v, tau = state(mechanism.model, seed)
    system = weighted(mechanism, dense(mechanism, q, v, tau))
    assume(clear(system))
    a, force, residual, count, status, imbalance = solve(mechanism, q, v, tau, method)
    assert relative(a, system.answer[0]) < 1e-9
    assert relative(force, system.answer[1]) < 1e-6
    r = system.J @ a + system.gamma
    slope = system.J.T @ (system.weight**2 * r)
    assert np.max(np.abs(slope)) <= 1e-10 * np.max(system.weight) ** 2 * np.linalg.norm(system.J, 2) * np.max(
        1.0 + np.abs(system.J) @ np.abs(a)
    )
    M_a = np.abs(system.M) @ np.abs(a) + np.abs(system.h) + np.abs(system.J).T @ np.abs(force)
    assert np.all(np.abs(system.M @ a - system.h - system.J.T @ force) <= 1e-9 * M_a)
    np.testing.assert_allclose(imbalance, 0.0, atol=1e-9 * np.max(M_a))
    assert status in (Status.CONVERGED, Status.LEAST_SQUARES)
    np.testing.assert_allclose(residual, r, rtol=0.0, atol=1e-12 * (1.0 + np.max(np.abs(a))))
    assert 1 <= count <= 100


# --- robots -----------------------------------------------------------------------------------------------------------


@every_method
@pytest.mark.parametrize("case", MARKED_CASES, ids="-".join)
def test_robots_have_the_dense_answer(case, method):
    mechanism, q, v, tau, system = problem(*case)
    system = weighted(mechanism, system)
    a, force, residual, _, status, _ = solve(mechanism, q, v, tau, method)
    assert relative(a, system.answer[0]) < 1e-9
    assert relative(force, system.answer[1]) < 1e-6
    least = np.max(np.abs(system.J @ system.answer[0] + system.gamma))
    assert status == (Status.CONVERGED if least < 1e-8 else Status.LEAST_SQUARES)
    assert np.max(np.abs(residual)) == pytest.approx(least, abs=1e-8, rel=1e-8)


FEET = mechanism_of("solo12.urdf", "feet")


def on_two_points() -> dl.Mechanism:
    """A free body with two limbs of two links, each held at its end: small, and its rows are independent."""
    model = balanced_tree(7)
    model = replace(model, joints=(replace(model.joints[0], kind=Free()), *model.joints[1:]))
    return dl.Mechanism(model, [dl.Point("link3"), dl.Point("link6")])


TREE = on_two_points()


def batch(count=11, mechanism=TREE):
    return [np.array(x) for x in zip(*[state(mechanism.model, seed) for seed in range(count)], strict=True)]


def test_a_batch_is_solved_state_by_state():
    q, v, tau = batch()
    together = dl.constrained_dynamics(TREE, q, v, tau)
    for k in range(len(q)):
        alone = dl.constrained_dynamics(TREE, q[k], v[k], tau[k])
        for name in ("acceleration", "force", "residual", "iterations", "status"):
            np.testing.assert_array_equal(getattr(together, name)[k], getattr(alone, name))


def test_compiled_code_has_the_bits_of_the_interpreter():
    arrays = batch(11, FEET)
    options = {"method": "prox_pv"}
    found = dl.constrained_dynamics.compiled(FEET, target=FULL, **options).ufunc(*arrays)
    for ours, expected in zip(found, evaluate(dl.constrained_dynamics.program(FEET, **options), *arrays), strict=True):
        np.testing.assert_array_equal(ours, expected)


def test_a_solution_carries_forces_by_name():
    solution = dl.constrained_dynamics(TREE, *batch(4))
    assert list(solution.forces) == list(TREE.names)
    assert all(np.shares_memory(part, solution.force) for part in solution.forces.values())
    np.testing.assert_array_equal(np.concatenate(list(solution.forces.values()), -1), solution.force)


def test_a_warm_start_needs_fewer_iterations():
    arrays = batch(4)
    cold = dl.constrained_dynamics(TREE, *arrays)
    warm = dl.constrained_dynamics(TREE, *arrays, force=cold.force)
    assert (warm.iterations < cold.iterations).all()
    np.testing.assert_allclose(warm.acceleration, cold.acceleration, rtol=1e-9, atol=1e-9)


def test_rows_that_are_switched_off_do_not_act():
    q, v, tau = batch(3)
    mask = np.ones((3, TREE.m))
    mask[1, :3] = 0.0
    solution = dl.constrained_dynamics(TREE, q, v, tau, mask=mask)
    fewer = dl.Mechanism(TREE.model, TREE.constraints[1:])
    expected = dl.constrained_dynamics(fewer, q[1], v[1], tau[1])
    np.testing.assert_allclose(solution.acceleration[1], expected.acceleration, rtol=1e-9, atol=1e-9)
    assert (solution.force[1, :3] == 0.0).all()
    assert (solution.status == Status.CONVERGED).all()


def test_desired_accelerations_can_be_given_at_run_time():
    q, v, tau = batch(2)
    wanted = np.random.default_rng(0).normal(size=(2, TREE.m))
    solution = dl.constrained_dynamics(TREE, q, v, tau, acceleration=wanted)
    for k in range(2):
        bare = dl.constraint_jacobian.python(TREE, q[k]) @ solution.acceleration[k]
        moving = dl.constraint_bias.python(TREE, q[k], v[k])
        np.testing.assert_allclose(bare + moving, wanted[k], atol=1e-9)


def test_a_state_that_is_no_number_is_marked_and_spoils_nothing_else():
    q, v, tau = batch()
    expected = dl.constrained_dynamics(TREE, q, v, tau)
    v[4, 7] = np.nan
    found = dl.constrained_dynamics(TREE, q, v, tau)
    others = np.arange(len(q)) != 4
    np.testing.assert_array_equal(found.acceleration[others], expected.acceleration[others])
    np.testing.assert_array_equal(found.status[others], expected.status[others])
    assert found.status[4] == Status.NOT_FINITE
    assert found.iterations[4] == 1


def test_too_few_iterations_are_reported():
    q, v, tau = batch(2)
    solution = dl.constrained_dynamics(TREE, q, v, tau, iterations=1, proximal=10.0)
    assert (solution.status == Status.ITERATIONS).all()
    assert (solution.iterations == 1).all()


def test_without_constraints_it_is_forward_dynamics():
    model = TREE.model
    q, v, tau = batch(3)
    solution = dl.constrained_dynamics(dl.Mechanism(model), q, v, tau)
    np.testing.assert_array_equal(solution.acceleration, dl.aba(model, q, v, tau))
    assert solution.force.shape == (3, 0)
    assert (solution.status == Status.CONVERGED).all()


def test_compliance_is_not_iterated_away():
    soft = dl.Mechanism(FEET.model, [replace(c, compliance=0.01) for c in FEET.constraints])
    q, v, tau = state(FEET.model, 0)
    system = dense(FEET, q, v, tau)
    K = np.block([[system.M, -system.J.T], [system.J, 0.01 * np.eye(FEET.m)]])
    expected = np.linalg.solve(K, np.concatenate([system.h, -system.gamma]))
    for method in SOLVERS:
        a, force, *_ = solve(soft, q, v, tau, method)
        assert relative(a, expected[: FEET.nv]) < 1e-9
        assert relative(force, expected[FEET.nv :]) < 1e-7


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"method": "newton"}, ("unknown-method", "'newton'")),
        ({"tolerance": 0.0}, ("tolerance-out-of-range", "0.0", "tolerance")),
        ({"iterations": 0}, ("iterations-out-of-range", "0", "iterations")),
        ({"proximal": -1.0}, ("out-of-range", "-1", "proximal")),
        ({"proximal": (1e-6, 1e-6)}, ("wrong-shape", "(2,)", "12", "proximal")),
    ],
)
def test_bad_options_are_refused_with_a_sentence(options, refusal):
    with refuses(*refusal):
        dl.constrained_dynamics(FEET, *batch(1, FEET), **options)


def test_a_mask_of_the_wrong_size_is_refused():
    with refuses("wrong-shape", "mask"):
        dl.constrained_dynamics(FEET, *batch(1, FEET), mask=np.ones(5))


def test_the_method_is_chosen_by_rows_and_joints():
    assert best_method(FEET) == "prox_pv"
    assert best_method(dl.Mechanism(dl.load("stewart"))) == best_method(dl.Mechanism(dl.load("delta"))) == "prox_pv"
    assert best_method(mechanism_of("solo12.urdf", "thrice")) == "caba"


@every_method
def test_joints_that_mimic_others_are_solved_in_joint_space(method):
    model = random_tree(5, seed=2)
    joints = (*model.joints[:4], replace(model.joints[4], mimic=Mimic(1, 0.7, 0.1)))
    held = dl.Mechanism(replace(model, joints=joints), [dl.Point("link4")])
    q, v, tau = state(held.model, 5)
    expected = dl.kkt(held, q, v, tau)
    solution = dl.constrained_dynamics(held, q, v, tau, method=method)
    assert relative(solution.acceleration, expected[0]) < 1e-9
    assert relative(solution.force, expected[1]) < 1e-7


@every_method
@pytest.mark.parametrize("iterations", [4, 5, 6, 7])
def test_contradictions_that_use_up_the_iterations_keep_what_was_found(method, iterations):
    mechanism, q, v, tau, system = problem("solo12.urdf", "contradiction", "random")
    a, _, _, count, *_ = solve(mechanism, q, v, tau, method, iterations=iterations)
    assert count <= iterations
    assert relative(a, system.answer[0]) < 1e-4
