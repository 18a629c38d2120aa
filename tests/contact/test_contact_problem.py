"""Contact problems as data: what they are made of, what is refused, what is marked, and what is saved."""

import numpy as np
import pytest

import delassus as dl
from delassus.constrained.solvers.status import Status
from refusals import refuses

POINT = np.eye(3) / 2.0
FALLING = np.array([0.3, 0.4, -1.0])


def test_a_point_mass_that_falls_sticks_or_slides():
    solution = dl.ContactProblem(POINT, FALLING, friction=np.array([[0.6], [0.1]])).solve(tolerance=1e-12)
    np.testing.assert_allclose(solution.impulse, [[-0.6, -0.8, 2.0], [-0.12, -0.16, 2.0]], atol=1e-10)
    assert solution.modes.tolist() == [["sticking"], ["sliding"]]


def test_a_convex_sliding_contact_lifts_by_friction_times_its_speed():
    solution = dl.ContactProblem(POINT, FALLING, friction=0.1).solve("ccp", tolerance=1e-12)
    assert solution.velocity[2] == pytest.approx(0.1 * np.hypot(*solution.velocity[:2]), abs=1e-10)


def test_all_cones_go_into_one_solve():
    """A contact, a loop, a limit and a dry joint, each on a mass of its own: all in closed form."""
    cones = [dl.cones.Interval(1), dl.cones.Friction(), dl.cones.Free(1), dl.cones.NonNegative(2)]
    g = np.array([3.0, 0.3, 0.4, -1.0, 2.0, -1.0, 1.0])
    solution = dl.ContactProblem(np.eye(7) / 2.0, g, cones, friction=0.1, lower=-1.5, upper=1.5).solve(tolerance=1e-12)
    np.testing.assert_allclose(solution.impulse, [-1.5, -0.12, -0.16, 2.0, -4.0, 2.0, 0.0], atol=1e-10)
    assert solution.primal_violation < 1e-12
    assert solution.dual_violation < 1e-10
    assert solution.complementarity_violation < 1e-10


def test_torsional_and_rolling_friction_limit_moments():
    """A ball that spins and rolls: forces and moments of one ellipse."""
    problem = dl.ContactProblem(
        np.eye(6), np.array([0.0, 0.0, -1.0, 9.0, 0.0, 0.0]), [dl.cones.Friction(6)],
        friction=0.5, torsional=0.02, rolling=0.01,
    )  # fmt: skip
    solution = problem.solve(tolerance=1e-12)
    np.testing.assert_allclose(solution.impulse, [0.0, 0.0, 1.0, -0.02, 0.0, 0.0], atol=1e-10)
    assert solution.dissipation[0] == pytest.approx(0.02 * (9.0 - 0.02), rel=1e-8)


def test_coefficients_of_zero_leave_their_rows_alone():
    problem = dl.ContactProblem(
        np.eye(4), np.array([1.0, 0.0, -1.0, 2.0]), [dl.cones.Friction(4)], friction=0.0, torsional=0.1
    )
    np.testing.assert_allclose(problem.solve(tolerance=1e-12).impulse, [0.0, 0.0, 1.0, -0.1], atol=1e-10)


def test_infinite_friction_sticks():
    solution = dl.ContactProblem(POINT, np.array([100.0, 0.0, -1e-3]), friction=np.inf).solve()
    assert np.abs(solution.velocity).max() < 1e-6


def test_compliance_yields():
    solution = dl.ContactProblem(POINT, FALLING, friction=1.0, compliance=0.5).solve(tolerance=1e-12)
    np.testing.assert_allclose(solution.impulse, -FALLING, atol=1e-10)


def test_a_contact_between_welded_bodies_is_infeasible_if_it_closes():
    closing = dl.ContactProblem(np.zeros((3, 3)), FALLING, friction=0.5).solve()
    opening = dl.ContactProblem(np.zeros((3, 3)), -FALLING, friction=0.5).solve()
    assert (closing.statuses, opening.statuses) == (Status.INFEASIBLE, Status.CONVERGED)
    assert np.all(np.isfinite(closing.impulse))


def test_bilateral_rows_that_contradict_each_other_are_met_in_the_mean():
    solution = dl.ContactProblem(np.ones((2, 2)), np.array([1.0, 2.0]), [dl.cones.Free(2)]).solve()
    assert solution.statuses == Status.INFEASIBLE
    np.testing.assert_allclose(solution.velocity, [-0.5, 0.5], atol=1e-5)
    assert np.abs(solution.impulse).max() < 10.0


def test_a_hundred_contacts_at_one_place_share_what_one_would_carry():
    count = 100
    problem = dl.ContactProblem(np.tile(POINT, (count, count)), np.tile(FALLING, count), friction=0.1, check=False)
    solution = problem.solve()
    total = solution.impulse.reshape(count, 3).sum(0)
    assert solution.statuses == Status.CONVERGED
    np.testing.assert_allclose(total, [-0.12, -0.16, 2.0], rtol=1e-6)


@pytest.mark.parametrize("name", ["G", "g", "friction"])
def test_a_number_that_is_not_finite_marks_its_own_problem(name):
    G, g, friction = np.tile(POINT, (20, 1, 1)), np.tile(FALLING, (20, 1)), np.full((20, 1), 0.1)
    clean = dl.ContactProblem(G, g, friction=friction).solve()
    {"G": G, "g": g, "friction": friction}[name][7, ...] = np.nan
    solution = dl.ContactProblem(G, g, friction=friction).solve()
    assert solution.status.tolist() == [int(Status.NOT_FINITE) if k == 7 else 0 for k in range(20)]
    others = np.arange(20) != 7
    np.testing.assert_array_equal(solution.impulse[others], clean.impulse[others])


def test_single_precision_solves_to_its_digits():
    cones = [dl.cones.Friction(), dl.cones.Friction(), dl.cones.Interval(1)]
    problem = dl.ContactProblem(
        np.eye(7), np.array([0, 0, -1, 0, 0, 2, 3.0]), cones, friction=0.5, lower=-np.inf, upper=1
    )
    numbers = {"tolerance": 1e-4, "dtype": np.float32, **problem.numbers}
    impulse, *_, status = dl.contact.solve_contacts(problem.layout, problem.G, problem.g, **numbers)
    assert status == Status.CONVERGED
    np.testing.assert_allclose(impulse, [0, 0, 1, 0, 0, 0, -3], atol=1e-5)


def test_what_hits_its_limit_says_so_and_gives_its_best():
    G = np.array([[1.0, 0.999], [0.999, 1.0]])
    solution = dl.ContactProblem(G, np.array([-1.0, -2.0]), [dl.cones.Free(2)]).solve(method="pgs", iterations=10)
    assert solution.statuses == Status.ITERATIONS
    assert "iterations ended" in solution.describe()
    assert 0.0 < solution.residual < 1.0


def test_a_problem_alone_says_as_much_as_in_a_batch_of_one():
    rng = np.random.default_rng(2)
    B = rng.normal(size=(12, 3))
    G, g = B @ B.T, rng.normal(size=12)
    alone, together = (dl.ContactProblem(*x, friction=0.6).solve(iterations=10) for x in ((G, g), (G[None], g[None])))
    assert (alone.iterations, alone.status) == (together.iterations[0], together.status[0])
    assert alone.iterations > 10  # that is, by two methods
    np.testing.assert_array_equal(alone.impulse, together.impulse[0])


def test_problems_are_saved_and_loaded_without_being_solved(tmp_path):
    cones = [dl.cones.Friction(4), dl.cones.Interval(1)]
    problem = dl.ContactProblem(
        np.tile(np.eye(5), (3, 1, 1)), np.ones((3, 5)), cones, friction=[[0.1], [0.2], [0.3]], torsional=0.01,
        lower=-1.0, upper=2.0, compliance=0.1,
    )  # fmt: skip
    problem.save(tmp_path / "problem.npz")
    again = dl.ContactProblem.load(tmp_path / "problem.npz")
    assert again.layout == problem.layout
    assert again.batch == (3,)
    for name, numbers in problem.numbers.items():
        np.testing.assert_array_equal(getattr(again, name), numbers)


def test_a_file_that_is_no_problem_is_refused(tmp_path):
    np.savez(tmp_path / "other.npz", G=np.eye(3))
    with refuses("other-file"):
        dl.ContactProblem.load(tmp_path / "other.npz")


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ({"friction": -0.1}, ("friction-out-of-range", "-0.1", "friction")),
        ({"friction": None}, ("missing-argument", "friction")),
        ({"friction": [0.1, 0.2]}, ("wrong-shape", "friction")),
        ({"friction": 0.1, "G": np.eye(3) + 0.1 * np.eye(3, k=1)}, ("not-symmetric", "0.1", "G")),
        ({"friction": 0.1, "G": np.diag([1.0, 1.0, -0.5])}, ("not-semidefinite", "-0.5", "G")),
        ({"friction": 0.1, "G": np.eye(4)}, ("wrong-shape", "g")),
        ({"friction": 0.1, "G": np.eye(4), "g": np.zeros(4)}, ("wrong-shape",)),
        ({"friction": 0.1, "cones": [dl.cones.Friction(), dl.cones.Free(2)]}, ("wrong-shape", "3")),
        ({"cones": [dl.cones.Interval(3)], "lower": 1.0, "upper": -1.0}, ("empty-interval",)),
        ({"friction": 0.1, "cones": [dl.cones.Free(3)]}, ("conflicting-arguments", "friction")),
        ({"friction": 0.1, "compliance": -1.0}, ("out-of-range", "-1", "compliance")),
        ({"friction": np.full((4, 1), 0.1), "g": np.zeros((3, 3))}, ("batch-mismatch",)),
    ],
)  # fmt: skip
def test_numbers_that_make_no_problem_are_refused_in_a_sentence(arguments, refusal):
    G, g = arguments.pop("G", POINT), arguments.pop("g", FALLING)
    with refuses(*refusal):
        dl.ContactProblem(G, g, **arguments)


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"law": "magic"}, ("unknown-law", "'magic'")),
        ({"method": "magic"}, ("unknown-method", "'magic'")),
        ({"tolerance": 0.0}, ("tolerance-out-of-range", "0.0", "tolerance")),
        ({"iterations": 0}, ("iterations-out-of-range", "0", "iterations")),
        ({"start": np.zeros(4)}, ("wrong-shape", "start")),
    ],
)
def test_options_that_do_not_exist_are_refused_in_a_sentence(options, refusal):
    with refuses(*refusal):
        dl.ContactProblem(POINT, FALLING, friction=0.1).solve(**options)


@pytest.mark.parametrize("rows", [0, 2, 5])
def test_a_contact_has_three_four_or_six_rows(rows):
    with refuses("wrong-shape", "3"):
        dl.cones.Friction(rows)


def test_a_single_problem_of_many_pyramids_is_solved():
    solution = dl.ContactProblem(np.kron(np.eye(5), POINT), np.tile(FALLING, 5), friction=0.1).solve("lcp")
    assert solution.statuses == Status.CONVERGED
    assert solution.impulse.shape == (15,)


def test_an_empty_batch_of_pyramids_is_empty():
    problem = dl.ContactProblem(np.kron(np.eye(5), POINT), np.zeros((0, 15)), friction=0.1)
    assert problem.solve("lcp").impulse.shape == (0, 15)


@pytest.mark.parametrize(("friction", "torsional"), [(0.2, 0.0), (0.0, 0.1), (0.0, 0.0)])
def test_the_residual_is_known_where_coefficients_are_zero(friction, torsional):
    problem = dl.ContactProblem(
        np.eye(4), [0.3, 0.4, -1.0, 0.3], [dl.cones.Friction(4)], friction=friction, torsional=torsional
    )
    assert problem.solve().residual < 1e-8


def test_measures_know_infinite_friction():
    solution = dl.ContactProblem(POINT, FALLING, friction=np.inf).solve()
    assert solution.dual_violation < 1e-8
    assert solution.complementarity_violation < 1e-8


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"cones": dl.cones.Friction()}, "wrong-type"),
        ({"cones": [dl.cones.Friction]}, "wrong-type"),
        ({"g": FALLING * 1j}, "not-a-number"),
    ],
)
def test_what_is_no_cone_and_no_number_is_refused(arguments, code):
    with refuses(code):
        dl.ContactProblem(POINT, arguments.pop("g", FALLING), **{"friction": 0.1, **arguments})


def test_a_start_has_the_batch_of_its_problem():
    with refuses("batch-mismatch"):
        dl.ContactProblem(POINT, FALLING, friction=0.1).solve(start=np.zeros((2, 3)))


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "text.npz").write_text("not an archive")
    with refuses("unreadable-file"):
        dl.ContactProblem.load(tmp_path / "text.npz")


def test_an_unknown_law_is_refused_inside_kernels_too():
    problem = dl.ContactProblem(POINT, FALLING, friction=0.1)
    with refuses("unknown-law", "'x'"):
        dl.contact.solve_contacts(problem.layout, POINT, FALLING, friction=[0.1], law="x")


@pytest.mark.parametrize("ratio", [1e4, 1e8])
def test_a_heavy_body_on_a_light_one_is_carried_and_the_rows_are_met(ratio):
    """Two boxes on each other, twice: the light ones below, whose impulses cancel but for their own weight."""
    masses = np.array([1.0, ratio, 1.0, ratio])
    J = np.eye(4) - np.eye(4, k=-1)
    G, g = np.kron(J / masses @ J.T, np.eye(3)), np.kron(J @ np.full(4, -9.81e-3), [0.0, 0.0, 1.0])
    solution = dl.ContactProblem(G, g, friction=np.full(4, 0.5)).solve()
    assert solution.status == Status.CONVERGED
    np.testing.assert_allclose(solution.impulse[2::3], 9.81e-3 * np.cumsum(masses[::-1])[::-1], rtol=1e-7)
