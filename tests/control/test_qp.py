"""Quadratic programs: the project's own solver against clarabel, proxsuite and SciPy, and hard QPs."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog, lsq_linear

import delassus as dl
from delassus.control.qp.measures import errors_of, nearest_in_cone
from delassus.control.qp.solve import solve_qp
from quadratic_programs import contradicting, feasible
from refusals import refuses

SEEDS = st.integers(0, 2**32 - 1)
Status = dl.control.QPStatus


def alone(qp, **given):
    """Solved without compiling anything."""
    return solve_qp.python(qp.shape, *qp.arrays, **given)


# --- programs that have an answer -----------------------------------------------------------------------------------


@given(SEEDS)
def test_an_answer_obeys_the_conditions_of_optimality(seed):
    qp = feasible(seed)
    found = alone(qp)
    assert found.status == Status.SOLVED
    assert max(errors_of(qp, found.x, found.multipliers)) < 1e-8


@given(SEEDS)
def test_an_answer_with_cones_obeys_the_conditions_of_optimality(seed):
    qp = feasible(seed, cones=True)
    found = alone(qp)
    assert found.status == Status.SOLVED
    assert max(errors_of(qp, found.x, found.multipliers)) < 1e-8


@pytest.mark.parametrize(("seed", "cones"), [(1847, False), (2995, False), (1429, True), (1847, True)])
def test_an_answer_that_is_alone_in_meeting_the_rows_is_found(seed, cones):
    found = alone(feasible(seed, cones))  # multipliers have a long way to go there, and penalties that are too stiff
    assert found.status == Status.SOLVED


@pytest.mark.parametrize("method", ["clarabel", "proxsuite"])
@pytest.mark.parametrize("seed", [0, 2, 3, 4, 5, 6])
def test_an_answer_is_as_good_as_other_peoples(seed, method):
    qp = feasible(seed, cones=method == "clarabel")
    theirs = qp.solve(method, tolerance=1e-10)
    ours = alone(qp)
    assert theirs.status == Status.SOLVED
    assert qp.value(ours.x) == pytest.approx(qp.value(theirs.x), rel=1e-6, abs=1e-6)


def test_bounds_alone_give_scipys_least_squares():
    rng = np.random.default_rng(3)
    A, b = rng.normal(size=(12, 8)), rng.normal(size=12)
    qp = dl.QP(A.T @ A, -A.T @ b, C=np.eye(8), lower=-0.1, upper=0.2)
    expected = lsq_linear(A, b, (-0.1, 0.2), tol=1e-14).x
    np.testing.assert_allclose(alone(qp).x, expected, atol=1e-8)


def test_a_cone_is_met_at_its_apex():
    qp = dl.QP(np.eye(3), [0.0, 0.0, 5.0], K=np.eye(3), k=np.zeros(3), cones=(3,))
    found = alone(qp)
    assert found.status == Status.SOLVED
    np.testing.assert_allclose(found.x, 0.0, atol=1e-9)


@given(st.lists(st.floats(-10, 10), min_size=3, max_size=3))
def test_the_nearest_point_of_a_cone_is_an_answer(point):
    qp = dl.QP(np.eye(3), -np.array(point), K=np.eye(3), k=np.zeros(3), cones=(3,))
    np.testing.assert_allclose(alone(qp).x, nearest_in_cone(np.array(point)), atol=1e-7)


def test_units_do_not_count():
    qp = feasible(11)
    D = 10.0 ** np.random.default_rng(0).uniform(-3, 3, qp.shape.n)
    other = dataclasses.replace(qp, H=D[:, None] * qp.H * D, g=D * qp.g, A=qp.A * D, C=qp.C * D, shape=None)
    np.testing.assert_allclose(D * alone(other).x, alone(qp).x, atol=1e-5)


@pytest.mark.parametrize("what", ["cost", "unknowns", "rows", "numbers"])
@pytest.mark.parametrize("power", [-40, -20, 20, 40])
def test_a_qp_in_other_units_has_the_same_answer(what, power):
    base, factor = feasible(11), 2.0**power
    n = base.shape.n
    base = dataclasses.replace(base, H=base.H + np.eye(n), shape=None)
    cost, unknown, row, size = (factor if what == name else 1.0 for name in ("cost", "unknowns", "rows", "numbers"))
    other = dataclasses.replace(
        base,
        H=base.H * cost / unknown**2,
        g=base.g * cost * size / unknown,
        A=base.A * row / unknown,
        C=base.C * row / unknown,
        **{name: getattr(base, name) * row * size for name in ("b", "lower", "upper")},
        shape=None,
    )
    found = alone(other)
    assert found.status == Status.SOLVED
    np.testing.assert_allclose(found.x / (unknown * size), alone(base).x, atol=1e-6)


def test_a_qp_without_weights_has_an_answer_that_meets_its_rows():
    qp = dataclasses.replace(feasible(5), H=np.zeros((feasible(5).shape.n,) * 2), g=np.zeros(feasible(5).shape.n))
    found = alone(qp)
    assert found.status == Status.SOLVED
    assert qp.row_violation(found.x).max() < 1e-8


def test_a_good_start_saves_steps():
    qp = feasible(7)
    cold = alone(qp)
    moved = dataclasses.replace(qp, g=qp.g * (1.0 + 1e-6))
    warm = alone(moved, start=cold.x, push=cold.multipliers)
    assert warm.status == Status.SOLVED
    assert warm.iterations <= min(3, cold.iterations)


# --- programs that have none ----------------------------------------------------------------------------------------


@given(SEEDS)
def test_rows_that_contradict_each_other_are_broken_least(seed):
    qp = contradicting(seed)
    found = alone(qp)
    assert found.status == Status.INFEASIBLE
    # Both rows are the same but for their bounds, so each is broken by half of what is between them.
    np.testing.assert_allclose(qp.row_violation(found.x)[:2], 0.5, atol=1e-4)
    assert qp.row_violation(found.x)[2:].max(initial=0.0) < 1e-6


def test_a_row_whose_bounds_contradict_each_other_is_met_in_the_middle():
    qp = dl.QP(np.eye(2), np.zeros(2), C=np.eye(2), lower=[3.0, 0.0], upper=[1.0, 1.0])
    found = alone(qp)
    np.testing.assert_allclose(found.x, [2.0, 0.0], atol=1e-8)
    assert qp.row_violation(found.x)[0] == pytest.approx(1.0)
    assert found.status == Status.INFEASIBLE
    assert found.primal == pytest.approx(errors_of(qp, found.x, found.multipliers)[0]) == pytest.approx(1.0)


@pytest.mark.parametrize("method", ["clarabel", "proxsuite"])
def test_no_method_says_that_bounds_that_contradict_each_other_are_met(method):
    qp = dl.QP(np.eye(1), [0.0], C=[[1.0]], lower=1.0, upper=-1.0)
    assert qp.solve(method).status == Status.INFEASIBLE


def test_a_cone_that_other_rows_keep_away_from_is_told_and_named():
    # x = 1 and z = ½, but |(x, y)| ≤ z
    given = {"A": [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], "b": [1.0, 0.5], "K": np.eye(3), "k": np.zeros(3)}
    qp = dl.QP(np.diag([1.0, 2.0, 3.0]), [0.0, 1.0, 0.0], cones=(3,), **given)
    found = alone(qp)
    assert found.status == Status.INFEASIBLE
    assert np.max(qp.row_violation(found.x)) > 0.1


@pytest.mark.parametrize("name", ["H", "g", "A", "b", "C", "lower", "upper"])
def test_a_qp_with_nan_is_told(name):
    qp = feasible(2)
    value = np.array(getattr(qp, name))
    assert value.size
    value.flat[0] = np.nan
    found = alone(dataclasses.replace(qp, **{name: value}))
    assert found.status == Status.NOT_FINITE
    assert not found.x.any()
    assert found.primal == found.dual == np.inf


def test_a_cost_without_a_least_value_is_told():
    assert alone(dl.QP(-np.eye(2), np.ones(2))).status == Status.NOT_FINITE


def falls_along(rows: str) -> dl.QP:
    """A cost that falls without end along (0, 1, 1), in spite of rows of one kind that do not end that direction."""
    given = {
        "nothing": {},
        "equality": {"A": [[0.0, 1.0, -1.0]], "b": [1.0]},
        "bounds": {"C": np.eye(3), "lower": [-1.0, -3.0, -np.inf], "upper": [1.0, np.inf, np.inf]},
        "cone": {"K": np.eye(3), "cones": (3,)},
    }[rows]
    return dl.QP(np.diag([2.0, 0.0, 0.0]), [1.0, -1.0, -2.0], **given)


@pytest.mark.parametrize("rows", ["nothing", "equality", "bounds", "cone"])
def test_a_cost_that_falls_without_end_has_no_answer(rows):
    found = falls_along(rows).solve()
    assert found.status == Status.NOT_FINITE
    assert not found.x.any()
    assert found.residual == np.inf


@pytest.mark.parametrize("seed", [19, 140, 292])
def test_a_cost_that_falls_along_an_oblique_ray_has_no_answer(seed):
    """A few rows bound some of the directions without curvature; the ray is that of a linear program."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 9))
    A, g, C = rng.normal(size=(rng.integers(1, n), n)), rng.normal(size=n), rng.normal(size=(4, n))
    lower, upper = -rng.choice([1, np.inf], 4), rng.choice([1, np.inf], 4)
    ends = np.concatenate([C[np.isfinite(upper)], -C[np.isfinite(lower)]])
    ray = linprog(g, ends, np.zeros(len(ends)), A, np.zeros(len(A)), bounds=(-1, 1))
    assert ray.fun < -0.05
    found = dl.QP(A.T @ A, g, C=C, lower=lower, upper=upper).solve()
    assert found.status == Status.NOT_FINITE
    assert not found.x.any()


@pytest.mark.parametrize("method", ["clarabel", "proxsuite"])
@pytest.mark.parametrize("rows", ["nothing", "equality", "bounds"])
def test_packages_say_so_as_well(method, rows):
    found = falls_along(rows).solve(method)
    assert found.status == Status.NOT_FINITE
    assert not found.x.any()


def test_a_flat_cost_whose_rows_end_it_is_solved():
    flat = dl.QP(np.diag([1.0, 0.0]), [1.0, 1.0], C=[[0.0, 1.0]], lower=-1e6, upper=1e6)
    found = flat.solve()
    assert found.status == Status.SOLVED
    np.testing.assert_allclose(found.x, [-1.0, -1e6], rtol=1e-8)


def test_a_long_answer_is_not_mistaken_for_none():
    found = dl.QP(np.diag([1.0, 1e-9]), [1.0, 1.0]).solve()
    assert found.status == Status.SOLVED
    np.testing.assert_allclose(found.x, [-1.0, -1e9])


# --- batches, and what an answer tells --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def answers():
    """Of three programs, the second without any answer, the third with a NaN."""
    b = np.array([[1.0], [1.0], [np.nan]])
    upper = np.array([[np.inf, 0.4], [0.2, 0.2], [np.inf, np.inf]])
    qp = dl.QP(np.eye(2), [-1.0, 0.0], [[1.0, 1.0]], b, np.eye(2), -np.inf, upper, names=("sum", "left", "right"))
    return qp.solve()


def test_each_qp_of_a_batch_has_its_own_end(answers):
    assert answers.status.tolist() == [Status.SOLVED, Status.INFEASIBLE, Status.NOT_FINITE]
    np.testing.assert_allclose(answers.x[0], [1.0, 0.0], atol=1e-8)
    assert np.isfinite(answers.x).all()


def test_the_residual_is_the_one_that_is_recomputed(answers):
    primal, dual = errors_of(answers.qp.item(0), answers.x[0], answers.multipliers[0])
    assert max(primal, dual) <= 1e-8
    assert answers.residual[0] == pytest.approx(max(primal, dual), abs=1e-12)


def test_broken_rows_are_named_with_what_they_miss(answers):
    broken = answers.item(1).violated_rows()
    # x + y = 1, x ≤ 0.2 and y ≤ 0.2 lack 0.6 together, and left and right are alike.
    assert sum(broken.values()) == pytest.approx(0.6, abs=1e-6)
    assert broken["left"] == pytest.approx(broken["right"], abs=1e-6)
    assert f"sum by {broken['sum']:.3g}" in answers.item(1).describe()


def test_active_rows_are_named():
    qp = dl.QP(np.eye(2), [-1.0, 0.0], C=np.eye(2), upper=[0.5, 2.0], names=("near", "far"))
    answer = qp.solve("proxsuite")
    assert answer.active() == ["near"]
    np.testing.assert_allclose(answer.slack, [0.0, 2.0], atol=1e-7)


def test_a_sentence_says_how_many_of_a_batch_failed(answers):
    assert "1 of 3" in answers.describe()


def test_describe_names_an_empty_batch():
    answer = dl.QP(np.eye(2), np.zeros((0, 2))).solve("proxsuite")
    assert answer.describe() == "There are no QPs."


def test_a_start_from_another_qp_is_refused():
    answer = dl.QP(np.eye(2), np.zeros(2)).solve("proxsuite")
    with refuses("other-system", "start"):
        dl.QP(np.eye(3), np.zeros(3)).solve(start=answer)


def test_bits_do_not_depend_on_the_neighbours(answers):
    single = answers.qp.item(0).solve()
    np.testing.assert_array_equal(answers.x[0], single.x)


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({"H": np.eye(3), "g": np.zeros(2)}, ("wrong-shape", "H")),
        ({"H": np.eye(2), "g": np.zeros(2), "A": np.ones((1, 3))}, ("wrong-shape",)),
        ({"H": np.eye(2), "g": np.zeros(2), "A": np.ones((1, 2)), "b": [1.0, 2.0]}, ("wrong-shape", "b")),
        ({"H": np.eye(2), "g": np.zeros(2), "K": np.ones((2, 2)), "cones": (3,)}, ("wrong-shape", "cones")),
        ({"H": np.eye(2), "g": np.zeros(2), "names": ("a",)}, ("wrong-shape",)),
        ({"H": np.eye(2), "g": np.zeros(2), "unknowns": ("a",)}, ("wrong-shape",)),
        ({"H": [[1.0, 0.5], [0.0, 1.0]], "g": np.zeros(2)}, ("not-symmetric", "0.5")),
        ({"H": np.ones((3, 2, 2)), "g": np.zeros((2, 2))}, ("batch-mismatch",)),
        ({"H": "two", "g": np.zeros(2)}, ("not-a-number",)),
    ],
)
def test_shapes_that_do_not_fit_are_refused(given, refusal):
    with refuses(*refusal):
        dl.QP(**given)


def test_an_unknown_method_names_those_that_exist():
    with refuses("unknown-method", "proximal", "proxsuite", "clarabel"):
        feasible(0).solve("simplex")


def test_proxsuite_refuses_cones():
    with refuses("not-supported"):
        feasible(0, cones=True).solve("proxsuite")


def test_the_old_name_of_the_program_warns():
    solution = dl.control.QP(np.eye(1), [1.0]).solve()
    with pytest.warns(DeprecationWarning, match="use qp"):
        assert solution.programme is solution.qp
