"""The three steps, and what the sparse factors give besides accelerations."""

import numpy as np
import pytest

import delassus as dl
from delassus.constrained import (
    constraint_residual,
    delassus_matrix,
    kkt_factor,
    kkt_inverse_blocks,
    operational_inertia,
)
from delassus.constrained.delassus.by_products import factor
from delassus.constrained.rows.problem import Problem
from delassus.constrained.rows.weights import Weighted
from delassus.constrained.solvers.choice import SOLVERS
from delassus.constrained.solvers.status import Solution, Status
from delassus.constrained.solvers.three_steps import three_steps
from delassus.model.generators import random_tree
from mechanisms import PROXIMAL, dense, relative, robot, state

TREE = random_tree(12, seed=1)
TIPS = ("tip4", "tip0")
MECHANISM = dl.Mechanism(TREE, [dl.Point(TIPS[0]), dl.Weld(TIPS[1], rows=(0, 1, 5)), dl.JointLock("joint0")])
REDUNDANT = dl.Mechanism(TREE, [dl.Point(TIPS[0]), dl.Point(TIPS[0]), dl.JointLock("joint0")])
CONTRADICTORY = dl.Mechanism(
    TREE, [dl.Point(TIPS[0]), dl.Point(TIPS[0], acceleration=(1, -2, 3)), dl.JointLock("joint0")]
)
STATE = state(TREE, 2)
Q = STATE[0]
SYSTEM = dense(MECHANISM, *STATE)
M, J = SYSTEM.M, SYSTEM.J
EPSILON = 1e-3


def whole(top_left, J, M):
    return np.block([[top_left, J], [J.T, M]])


# --- three steps ------------------------------------------------------------------------------------------------------


def test_three_steps_give_the_dense_answer_where_rows_are_independent():
    a, force, status = three_steps(MECHANISM, *STATE)
    assert relative(a, SYSTEM.answer[0]) < 1e-10
    assert relative(force, SYSTEM.answer[1]) < 1e-10
    assert Status(int(status)) is Status.CONVERGED


def test_three_steps_report_the_loss_of_rank():
    a, force, status = three_steps(REDUNDANT, *STATE)
    assert Status(int(status)) is Status.RANK_LOSS
    assert np.all(np.isfinite(force))
    assert relative(a, dense(REDUNDANT, *STATE).answer[0]) < 1e-8  # consistent rows: one of each pair is enough


def test_three_steps_report_what_is_not_finite():
    q, v, tau = STATE
    assert Status(int(three_steps(MECHANISM, q, v, np.full_like(tau, np.inf))[2])) is Status.NOT_FINITE


def test_three_steps_without_constraints_move_freely():
    a, force, status = three_steps(dl.Mechanism(TREE), *STATE)
    assert relative(a, dl.aba.python(TREE, *STATE)) < 1e-12
    assert force.shape == (0,)
    assert status == Status.CONVERGED


# --- by-products ------------------------------------------------------------------------------------------------------


def test_the_delassus_matrix_is_dense_algebra():
    np.testing.assert_allclose(delassus_matrix(MECHANISM, Q), J @ np.linalg.solve(M, J.T), atol=1e-11)


def test_the_delassus_matrix_is_symmetric_to_the_bit():
    G = delassus_matrix(MECHANISM, Q)
    np.testing.assert_array_equal(G, G.T)


def test_the_operational_inertia_is_the_damped_inverse():
    G = J @ np.linalg.solve(M, J.T) + EPSILON * np.eye(len(J))
    np.testing.assert_allclose(operational_inertia(MECHANISM, Q, proximal=EPSILON) @ G, np.eye(len(J)), atol=1e-10)


def test_the_sparse_factors_multiply_to_the_whole_matrix():
    U_rows, D_rows, Y, U_tree, D_tree = kkt_factor(MECHANISM, Q, proximal=EPSILON)
    U = np.block([[U_rows, Y], [np.zeros(J.T.shape), U_tree]])
    K = whole(-EPSILON * np.eye(len(J)), J, M)
    np.testing.assert_allclose(U @ np.diag([*-D_rows, *D_tree]) @ U.T, K, atol=1e-11)
    np.testing.assert_array_equal(U, np.triu(U))


def test_the_factors_have_as_many_negative_pivots_as_rows():
    _, D_rows, _, _, D_tree = kkt_factor(REDUNDANT, Q)
    assert np.all(D_rows > 0.0)
    assert np.all(D_tree > 0.0)


def test_the_blocks_of_the_inverse_are_those_of_dense_algebra():
    corner, B, N = kkt_inverse_blocks(MECHANISM, Q, proximal=EPSILON)
    inverse = np.linalg.inv(whole(-EPSILON * np.eye(len(J)), J, M))
    np.testing.assert_allclose(whole(corner, B, N), inverse, atol=1e-9 * np.max(np.abs(inverse)))


def test_compliance_joins_the_proximal_parameter_on_the_diagonal():
    soft = dl.Mechanism(TREE, dl.Point(TIPS[0], compliance=(0.1, 0.2, 0.3)))
    G = delassus_matrix(soft, Q) + np.diag([0.1, 0.2, 0.3]) + EPSILON * np.eye(3)
    np.testing.assert_allclose(operational_inertia(soft, Q, proximal=EPSILON) @ G, np.eye(3), atol=1e-10)


def test_the_proximal_parameter_alone_can_be_changed_in_the_factors():
    factors = factor(MECHANISM, Q, EPSILON).damped(np.full(len(J), 0.5))
    b = np.arange(1.0, 1.0 + len(J))
    G = J @ np.linalg.solve(M, J.T) + 0.5 * np.eye(len(J))
    np.testing.assert_allclose(factors.solve_rows(b), np.linalg.solve(G, b), rtol=1e-9)


# --- the smallest forces ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", PROXIMAL, ids=lambda f: f.name)
@pytest.mark.parametrize("iterations", [20, 60])
def test_forces_of_contradictory_rows_drift_by_the_residual_in_every_iteration(method, iterations):
    expected = dense(CONTRADICTORY, *STATE).answer[1]
    a, force = method.python(CONTRADICTORY, *STATE, iterations=iterations, proximal=1e-2)
    residual, _ = constraint_residual.python(CONTRADICTORY, *STATE[:2], a, force)
    assert relative(force, expected) > 1.0
    assert relative(force + iterations * residual / 1e-2, expected) < 1e-8


@pytest.mark.parametrize("method", SOLVERS.values(), ids=SOLVERS)
def test_contradictory_rows_that_are_made_to_agree_have_all_their_digits(method):
    expected = dense(CONTRADICTORY, *STATE).answer
    factors, state = method.factor(Weighted.of(Problem.of(CONTRADICTORY, *STATE), np.full(CONTRADICTORY.m, 1e-6)))
    for _ in range(20):
        state = method.iterate(factors, state)
    first, asked = factors, np.zeros(CONTRADICTORY.m)
    for _ in range(2):
        r = state.residual
        asked, state = asked + r, state._replace(force=np.zeros(len(r)), before=state.before - r / 1e-6)
        factors = method.shifted(first, asked)
        for _ in range(3):
            state = method.iterate(factors, state)
    a, force = method.finish(factors, state)
    assert relative(a, expected[0]) < 1e-13
    assert relative(force, expected[1]) < 1e-8


@pytest.mark.parametrize("method", PROXIMAL, ids=lambda f: f.name)
def test_forces_of_redundant_rows_are_the_smallest_as_they_are(method):
    expected = dense(REDUNDANT, *STATE).answer[1]
    _, force = method.python(REDUNDANT, *STATE, iterations=20, proximal=1e-2)
    assert relative(force, expected) < 1e-8


# --- solutions --------------------------------------------------------------------------------------------------------


def solution() -> Solution:
    force = np.arange(2.0 * MECHANISM.m).reshape(2, MECHANISM.m)
    values = (np.zeros((2, 12)), force, force, np.array([3, 4]), np.array([0, 1]), np.zeros((2, 12)))
    return Solution.of_call(values, MECHANISM, dict.fromkeys(("q", "v", "tau")))


def test_forces_are_views_by_the_names_of_constraints():
    found = solution()
    np.testing.assert_array_equal(found.forces["joint0"], found.force[:, 6:])
    assert np.shares_memory(found.forces[TIPS[0]], found.force)


def test_a_status_is_a_number_and_a_sentence():
    assert Status.LEAST_SQUARES == 1
    assert str(Status.LEAST_SQUARES).startswith("The rows cannot all be met")
    assert list(solution().statuses) == [Status.CONVERGED, Status.LEAST_SQUARES]


def test_a_robot_that_stands_on_points_has_their_delassus_matrix():
    model = robot("solo12.urdf")
    mechanism = dl.Mechanism(model, [dl.Point(f) for f in model.frames("*_FOOT")])
    q, v, tau = state(model)
    system = dense(mechanism, q, v, tau)
    expected = system.whitened @ system.whitened.T
    assert relative(delassus_matrix(mechanism, q), expected) < 1e-10
