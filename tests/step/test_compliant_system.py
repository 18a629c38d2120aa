"""The system of a step: its phases and forms, solvers by name, and what forces add to it that turn."""

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

import delassus as dl
from delassus.constrained.solvers.status import Status
from delassus.step.compliant.geometric import geometric_stiffness, not_negative
from delassus.step.compliant.solve import solve_bilateral
from delassus.step.compliant.types import RowAccuracy
from refusals import refuses
from stepped import G, balls_in_a_row, governor, length, on_rod, slider

step, system = dl.stepping.compliant_step, dl.stepping.compliant_system
SOLVERS = ("ldl", "cg", "minres", "gauss_seidel", "pgs", "sequential_impulses")
ELASTIC = {"compliance": {"left": 1e-4}, "damping": {"left": 3.0}}


def moving():
    """The governor away from where its couplers fit, one of which is to be elastic."""
    mechanism, q, _ = governor()
    rng = np.random.default_rng(2)
    return mechanism, q + 0.02 * rng.normal(size=4), rng.normal(size=4), rng.normal(size=4)


# --- right-hand sides, phase by phase ---------------------------------------------------------------------------------


@pytest.mark.parametrize("blend", [(1.0, 1.0), (0.7, 0.6)])
def test_the_table_of_right_hand_sides(blend):
    """Elastic rows: nothing in the correction; stabilised ones: the error there, and nothing in the dynamics."""
    mechanism, q, v, tau = moving()
    (alpha, beta), h, C, B = blend, 1e-2, 1e-4, 3.0
    options = {"time_step": h, "alpha": alpha, "beta": beta, **ELASTIC}
    g = dl.constraint_error(mechanism, q)
    rate = dl.constraint_jacobian(mechanism, q) @ v
    d = B * C
    l = alpha * (h * beta + d)
    spring = (g[0] + (alpha * h * (1 - beta) + (1 - alpha) * d) * rate[0]) / l
    rigid = g[1] / (h * beta) + (1 - beta) / beta * rate[1]
    table = {
        ("dynamics", "none"): [spring, rigid],
        ("dynamics", "pre"): [spring, 0.0],
        ("correction", "pre"): [0.0, g[1] / h],
        ("correction", "post"): [0.0, g[1] / h],
    }
    for (phase, how), expected in table.items():
        found = system(mechanism, q, v, tau, phase=phase, stabilization=how, **options)
        np.testing.assert_allclose(found.b, expected, rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(found.R, [C / (h * l), 0.0], rtol=1e-12)
        assert phase == "dynamics" or not found.c.any()


def test_the_table_of_right_hand_sides_of_contacts():
    """Open: the gap; slow and violated: corrected apart; striking: the relative velocity is flipped."""
    model, row = balls_in_a_row(5)
    q, v, h = np.array([0.0, 1.0005, 2.1005, 3.0995, 4.0975]), np.array([1.0, 0.0, 0.0, -1.0, -1.0]), 1e-3
    gaps, rates = np.diff(q) - 1.0, np.diff(v)
    dynamics, correction = (
        system(model, q, v, np.zeros(5), time_step=h, contacts=row, restitution=0.5, phase=phase)
        for phase in ("dynamics", "correction")
    )
    normals = [2, 5, 8, 11]
    np.testing.assert_allclose(gaps, [0.0005, 0.1, -0.001, -0.002], rtol=1e-9)
    np.testing.assert_allclose(dynamics.b[normals], [0.5 * rates[0], 100.0, 0.5 * rates[2], 0.0], rtol=1e-9)
    np.testing.assert_allclose(correction.b[normals], gaps / h, rtol=1e-9)


# --- forms ------------------------------------------------------------------------------------------------------------


def test_velocities_their_change_and_accelerations_are_equivalent_unknowns():
    mechanism, q, v, tau = moving()
    h = 1e-2
    found = {
        form: system(mechanism, q, v, tau, time_step=h, alpha=0.7, beta=0.6, form=form, **ELASTIC)
        for form in ("velocity", "variation", "acceleration")
    }
    after, change, a = (found[form].solve("ldl") for form in ("velocity", "variation", "acceleration"))
    np.testing.assert_allclose(v + change.x, after.x, rtol=1e-10)
    np.testing.assert_allclose(v + h * a.x, after.x, rtol=1e-10)
    np.testing.assert_allclose(h * a.impulse, after.impulse, rtol=1e-9)
    np.testing.assert_allclose(change.impulse, after.impulse, rtol=1e-9)
    stepped = step(mechanism, q, v, tau, time_step=h, alpha=0.7, beta=0.6, **ELASTIC)
    np.testing.assert_allclose(stepped.system_velocity, after.x, rtol=1e-10)


def test_the_variation_asks_for_what_the_reference_says():
    """J Δv = (-g/(αh) - J v)/β of elastic rows, with α → 1 of rigid ones."""
    mechanism, q, v, tau = moving()
    h, alpha, beta = 1e-2, 0.7, 0.6
    found = system(mechanism, q, v, tau, time_step=h, alpha=alpha, beta=beta, form="variation",
                   compliance={"left": 1e-4})  # fmt: skip
    g, rate = dl.constraint_error(mechanism, q), found.J @ v
    np.testing.assert_allclose(-found.b, (-g / (np.array([alpha, 1.0]) * h) - rate) / beta, rtol=1e-10)


# --- solvers ----------------------------------------------------------------------------------------------------------


def dense(found):
    """v⁺ and λ of the whole matrix, by SciPy."""
    KKT = np.block([[found.W, -found.J.T], [-found.J, -np.diag(found.R)]])
    x = scipy.linalg.solve(KKT, np.concatenate([found.c, found.b]))
    return x[: len(found.c)], x[len(found.c) :]


@pytest.mark.parametrize("method", SOLVERS)
def test_all_solvers_find_the_answer_of_the_whole_matrix(method):
    mechanism, q, v, tau = moving()
    found = system(mechanism, q, v, tau, time_step=1e-2, **ELASTIC)
    x, impulse = dense(found)
    answer = found.solve(method, tolerance=1e-12, iterations=10_000)
    assert answer.status == Status.CONVERGED
    np.testing.assert_allclose(answer.x, x, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(answer.impulse, impulse, rtol=1e-8)
    np.testing.assert_allclose(answer.residual, found.J @ answer.x + found.R * answer.impulse + found.b, atol=1e-10)
    stepped = step(mechanism, q, v, tau, time_step=1e-2, method=method, tolerance=1e-12, iterations=10_000, **ELASTIC)
    np.testing.assert_allclose(stepped.system_velocity, x, rtol=1e-8, atol=1e-9)


@given(st.integers(0, 10_000), st.integers(1, 8), st.integers(0, 8), st.floats(-6.0, 6.0), st.booleans())
@settings(max_examples=150, deadline=None)
def test_rows_of_any_rank_get_the_smallest_impulses_and_say_whether_they_agree(seed, m, rank, size, agree):
    rng, rank = np.random.default_rng(seed), min(rank, m)
    Q = np.linalg.qr(rng.normal(size=(m, m)))[0]
    s = np.where(np.arange(m) < rank, 10.0 ** rng.uniform(-4, 0, size=m), 0.0)
    A = (Q * s) @ Q.T
    unit = np.sqrt(np.where(np.diag(A) > 1e-12, np.diag(A), 1.0))
    A = 10.0**size * A / np.outer(unit, unit)  # as rows respond to themselves: alike
    b = A @ rng.normal(size=m) if agree else rng.normal(size=m) * 10.0**size
    found = solve_bilateral(A, -b, np.zeros(m), RowAccuracy(np.zeros(m)))
    expected = np.linalg.pinv(A, rcond=1e-9, hermitian=True) @ b
    scale = np.abs(expected).max() + np.abs(b).max() / 10.0**size
    np.testing.assert_allclose(found.impulse, expected, atol=1e-8 * scale)
    np.testing.assert_allclose(found.residual, A @ found.impulse - b, atol=1e-9 * np.abs(b).max())
    met = np.abs(A @ expected - b).max() <= 1e-9 * np.abs(b).max()
    assert found.status == (Status.CONVERGED if met else Status.LEAST_SQUARES)


@pytest.mark.parametrize("method", ["pgs", "sequential_impulses", "newton"])
def test_solvers_for_contacts_agree(method):
    model, row = balls_in_a_row(4)
    v = np.array([1.0, 0.2, 0.0, -0.5])
    usual, other = (
        step(model, np.arange(4.0), v, np.zeros(4), time_step=1e-3, contacts=row, method=name, tolerance=1e-11)
        for name in ("auto", method)
    )
    np.testing.assert_allclose(other.v, usual.v, atol=1e-9)


@pytest.mark.parametrize("method", ["cg", "minres", "gauss_seidel"])
def test_iterations_that_are_not_enough_are_told_with_the_best_there_is(method):
    mechanism, q, v, tau = moving()
    found = system(mechanism, q, v, tau, time_step=1e-2, **ELASTIC).solve(method, tolerance=1e-12, iterations=1)
    assert found.status == Status.ITERATIONS and found.iterations == 1 and np.all(np.isfinite(found.x))
    assert np.abs(found.residual).max() > 1e-9


@pytest.mark.parametrize("method", SOLVERS)
@pytest.mark.parametrize("form", ["velocity", "variation", "acceleration"])
def test_a_robot_without_rows_has_a_system_of_its_springs_and_dampers(form, method):
    model, h, k, d, m = slider(2.0, 50.0, 3.0), 1e-2, 50.0, 3.0, 2.0
    q, v = np.array([[0.1], [-0.2]]), np.array([[0.5], [1.0]])
    found = system(model, q, v, np.zeros(1), time_step=h, form=form)
    assert found.J.shape == (2, 0, 1) and found.R.shape == found.b.shape == (2, 0)
    np.testing.assert_allclose(found.W, np.full((2, 1, 1), m + h * d + h * h * k), rtol=1e-12)
    answer = found.solve(method)
    after = (m * v - h * k * q) / (m + h * d + h * h * k)
    unknown = {"velocity": after, "variation": after - v, "acceleration": (after - v) / h}[form]
    np.testing.assert_allclose(answer.x, unknown, rtol=1e-10)
    assert answer.impulse.shape == (2, 0) and np.all(answer.status == Status.CONVERGED)
    np.testing.assert_allclose(step(model, q, v, np.zeros((2, 1)), time_step=h, alpha=1.0).v, after, rtol=1e-12)


def test_driven_joints_are_projected_out_of_the_system():
    mechanism, q, v, tau = moving()
    options = {"time_step": 1e-2, "driven": {"axis_joint": 0.3}, **ELASTIC}
    formed, swept = (step(mechanism, q, v, tau, method=method, **options) for method in ("ldl", "auto"))
    np.testing.assert_allclose(formed.v, swept.v, rtol=1e-10)
    assert swept.v[0] == pytest.approx(0.3, abs=1e-15)


def test_methods_for_bilateral_rows_refuse_contacts():
    model, row = balls_in_a_row(2)
    with refuses("not-supported", "'cg'", "method"):
        step(model, [0.0, 1.0], [1.0, 0.0], np.zeros(2), time_step=1e-3, contacts=row, method="cg")
    with refuses("unknown-option", "'momentum'"):
        system(model, [0.0, 1.0], [1.0, 0.0], np.zeros(2), time_step=1e-3, contacts=row, form="momentum")


# --- forces that turn -------------------------------------------------------------------------------------------------


def test_a_rod_under_tension_is_stiff_across_by_tension_over_length():
    q = np.array([0.6, 0.0, 0.2])
    n = (q - [0.0, 0.0, 1.0]) / length(q)
    K = geometric_stiffness(on_rod(), q, np.array([-30.0]))  # the row pushes apart: tension is negative
    np.testing.assert_allclose(K, 30.0 / length(q) * (np.eye(3) - np.outer(n, n)), atol=1e-12)


def test_geometric_stiffness_is_minus_the_derivative_of_what_rows_push_with():
    mechanism, q, _, _ = moving()
    force, d = np.array([30.0, -50.0]), 1e-6
    push = [dl.constraint_jacobian(mechanism, q + s * d * np.eye(4)).mT @ force for s in (1.0, -1.0)]
    K = -(push[0] - push[1]).T / (2 * d)
    np.testing.assert_allclose(geometric_stiffness(mechanism, q, force), 0.5 * (K + K.T), atol=1e-6)
    np.testing.assert_allclose(K, K.T, atol=1e-6)  # coordinates of these joints are a vector space


def test_of_a_stiffness_what_is_negative_can_be_left_out():
    A = np.random.default_rng(4).normal(size=(5, 5))
    A = A + A.T
    w, V = np.linalg.eigh(A)
    np.testing.assert_allclose(not_negative(A), V @ np.diag(np.maximum(w, 0.0)) @ V.T, atol=1e-12)
    np.testing.assert_allclose(not_negative(np.zeros((3, 3))), np.zeros((3, 3)))


def test_steps_longer_than_the_period_across_a_tight_string_need_its_geometric_stiffness():
    """A mass of 1 kg on a string of 1e6 N: 1000 rad/s across it, at steps of 10 ms."""
    C, stretch, h = 1e-7, 0.1, 1e-2
    tau = np.array([0.0, 0.0, -stretch / C + G])  # holds the mass where it is along the string

    def across(turning):
        q, v, impulse, found = np.array([1e-4, 0.0, -stretch]), np.zeros(3), np.array([-stretch / C * h]), []
        for _ in range(60):
            more = {"geometric_stiffness": impulse} if turning else {}
            after = step(on_rod(), q, v, tau, time_step=h, compliance=C, **more)
            q, v, impulse = after.q, after.v, after.impulse
            found.append(abs(q[0]))
        return np.array(found)

    assert across(True).max() < 1.1e-4 and across(True)[-1] < 1e-5
    assert across(False).max() > 1e-2
