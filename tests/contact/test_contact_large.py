"""Contact problems with more rows than are compiled: every size and every method ends, and answers obey the laws."""

import clarabel
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse

import delassus as dl
from contact_oracle import residual
from contact_problems import Problems, cones_of, random_problems, sphere_pile
from delassus.constrained.solvers.status import Status
from delassus.contact.large.sweeps import color_greedily
from delassus.contact.problems import solving

METHODS = ("auto", "newton", "pgs", "admm", "bisection")


def problem_of(pile: Problems) -> dl.ContactProblem:
    return dl.ContactProblem(pile.G[0], pile.g[0], friction=pile.friction[0])


def left(pile: Problems, impulse: np.ndarray, convex: bool = False) -> float:
    """The dense checker's residual as a share of the largest free velocity."""
    return residual(pile.G[0], pile.g[0], pile.friction[0], impulse, convex) / np.abs(pile.g).max()


@pytest.fixture(scope="module")
def pile() -> Problems:
    """87 contacts, more rows than G has rank."""
    return sphere_pile(1, (4, 3, 3))


@pytest.mark.parametrize("model", ["ncp", "ccp"])
@pytest.mark.parametrize("mass_ratio", [1.0, 1e4])
def test_a_pile_of_hundreds_of_contacts_obeys_the_laws(model, mass_ratio):
    pile = sphere_pile(1, (5, 4, 4), mass_ratio)
    assert len(pile.friction[0]) == 204
    solution = problem_of(pile).solve(model)
    assert solution.status == Status.CONVERGED
    assert left(pile, solution.impulse, model == "ccp") < 1e-8


def test_velocities_of_a_convex_pile_are_those_of_clarabel(pile):
    solution = problem_of(pile).solve("ccp", tolerance=1e-10)
    velocities = pile.G[0] @ clarabel_impulses(pile) + pile.g[0]
    np.testing.assert_allclose(solution.velocity, velocities, atol=1e-5 * np.abs(pile.g).max())


def clarabel_impulses(pile: Problems) -> np.ndarray:
    """min ½ λᵀ G λ + gᵀ λ with ‖λ_t‖ ≤ μ λ_n, in clarabel's own words."""
    contacts = len(pile.friction[0])
    block = -np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    A = np.kron(np.eye(contacts), block)
    A[::3] *= pile.friction[0][:, None]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    cones = [clarabel.SecondOrderConeT(3)] * contacts
    H, b = scipy.sparse.csc_matrix(np.triu(pile.G[0])), np.zeros(len(A))
    solver = clarabel.DefaultSolver(H, pile.g[0], scipy.sparse.csc_matrix(A), b, cones, settings)
    return np.array(solver.solve().x)


@pytest.mark.parametrize("contacts", [13, 24, 52, 60])
def test_sizes_beyond_the_compiled_ones_are_solved(contacts):
    drawn = random_problems(contacts, 6, contacts, mass_ratio=100.0, free=2)
    solution = dl.ContactProblem(drawn.G, drawn.g, cones_of(contacts, 2), friction=drawn.friction).solve()
    found = [
        residual(G, g, mu, x) for G, g, mu, x in zip(drawn.G, drawn.g, drawn.friction, solution.impulse, strict=True)
    ]
    solved = solution.status == Status.CONVERGED
    assert solved.sum() >= 5
    assert np.all(np.array(found)[solved] <= 1e-8 * np.abs(drawn.g).max(-1)[solved])


@pytest.mark.parametrize("method", METHODS)
def test_every_method_ends_at_its_limit(pile, method):
    solution = problem_of(pile).solve(method=method, iterations=7)
    assert solution.iterations <= 7
    assert np.isfinite(solution.impulse).all()
    assert solution.primal_violation < 1e-12


@pytest.mark.parametrize("method", METHODS)
def test_every_method_solves_spheres_of_equal_masses(method):
    pile = sphere_pile(2, (3, 2, 3), mass_ratio=1.0)
    solution = problem_of(pile).solve(method=method, tolerance=1e-6, iterations=5000)
    assert solution.status == Status.CONVERGED
    assert left(pile, solution.impulse) < 1e-6


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rows", [37, 60])
def test_rows_between_bounds_without_any_contact(method, rows):
    solution = dl.ContactProblem(
        np.eye(rows), np.linspace(-2.0, 2.0, rows), [dl.cones.Interval(rows)], lower=-1.0, upper=1.0
    ).solve(method=method)
    np.testing.assert_allclose(solution.impulse, np.clip(-np.linspace(-2.0, 2.0, rows), -1.0, 1.0), atol=1e-7)


@pytest.mark.parametrize("method", ["lemke", "dantzig"])
def test_pyramids_without_any_contact(method):
    problem = dl.ContactProblem(np.eye(40), np.linspace(-2.0, 2.0, 40), [dl.cones.NonNegative(40)])
    np.testing.assert_allclose(problem.solve("lcp", method).impulse, np.maximum(-problem.g, 0.0), atol=1e-9)


def test_half_lines_are_those_of_nonnegative_least_squares():
    rng = np.random.default_rng(4)
    J, v = rng.normal(size=(50, 60)), rng.normal(size=60)
    solution = dl.ContactProblem(J @ J.T, J @ v, [dl.cones.NonNegative(50)]).solve(tolerance=1e-12)
    expected, _ = scipy.optimize.nnls(J.T, -v)  # the least ‖Jᵀ λ + v‖
    np.testing.assert_allclose(solution.impulse, expected, atol=1e-8)


def mixed() -> dl.ContactProblem:
    """All kinds of cones, in 46 rows."""
    kinds = dl.cones
    cones = [kinds.Interval(5), kinds.Friction(6), kinds.Free(4), kinds.Friction(6), kinds.Friction(4)]
    cones += [kinds.Friction(3), kinds.NonNegative(6), kinds.Friction(3), kinds.Friction(3), kinds.Friction(6)]
    rng = np.random.default_rng(0)
    J = rng.normal(size=(46, 60)) / 8.0
    numbers = {"friction": 0.5, "torsional": 0.1, "rolling": 0.05, "lower": -0.5, "upper": 0.7}
    return dl.ContactProblem(J @ J.T, J @ rng.normal(size=60), cones, **numbers, compliance=0.01)


@pytest.mark.parametrize("model", ["ncp", "ccp"])
def test_all_kinds_of_cones_together(model):
    solution = mixed().solve(model, tolerance=1e-10)
    assert solution.status == Status.CONVERGED
    for violation in (solution.primal_violation, solution.dual_violation, solution.complementarity_violation):
        assert violation < 1e-8


def test_compiled_and_large_problems_have_the_same_answer(monkeypatch):
    drawn = random_problems(5, 8, 6, mass_ratio=10.0, friction=(0.1, 0.4))
    problem = dl.ContactProblem(drawn.G, drawn.g, friction=drawn.friction)
    compiled = problem.solve("ccp", tolerance=1e-11)
    monkeypatch.setattr(solving, "LARGEST_COMPILED", 3)
    large = problem.solve("ccp", tolerance=1e-11)
    assert np.all(large.status == Status.CONVERGED)
    np.testing.assert_allclose(large.velocity, compiled.velocity, atol=1e-8)
    np.testing.assert_allclose(large.residuals, 0.0, atol=1e-9)


def test_a_large_batch_gives_what_its_problems_give_alone():
    drawn = random_problems(9, 4, 14, mass_ratio=10.0)
    batch = dl.ContactProblem(drawn.G, drawn.g, friction=drawn.friction)
    together = batch.solve()
    for k in range(4):
        np.testing.assert_allclose(batch[k].solve().velocity, together.velocity[k], atol=1e-7)


def test_a_problem_that_is_not_finite_spoils_no_other():
    drawn = random_problems(9, 3, 14, mass_ratio=10.0)
    g = drawn.g.copy()
    g[1, 5] = np.nan
    solution = dl.ContactProblem(drawn.G, g, friction=drawn.friction).solve()
    assert solution.status.tolist() == [Status.CONVERGED, Status.NOT_FINITE, Status.CONVERGED]
    assert not solution.impulse[1].any()


def test_a_start_that_is_right_takes_no_iterations(pile):
    first = problem_of(pile).solve(tolerance=1e-9)
    assert problem_of(pile).solve(start=first.impulse).iterations == 0


def test_many_rows_that_contradict_each_other_are_told():
    rng = np.random.default_rng(1)
    J = rng.normal(size=(60, 25))
    solution = dl.ContactProblem(J @ J.T, J @ rng.normal(size=25) + rng.normal(size=60), [dl.cones.Free(60)]).solve()
    assert solution.status == Status.INFEASIBLE
    # Least squares of rows in units of their own responses leave what is orthogonal to the columns of J.
    np.testing.assert_allclose(J.T @ (solution.velocity / np.sum(J * J, 1)), 0.0, atol=1e-4)


def test_units_of_many_rows_change_nothing_but_numbers(pile):
    one = problem_of(pile).solve().velocity
    other = dl.ContactProblem(1e6 * pile.G[0], 1e-3 * pile.g[0], friction=pile.friction[0]).solve().velocity
    np.testing.assert_allclose(1e3 * other, one, atol=1e-7)


@pytest.mark.parametrize("contacts", [4, 16])
@pytest.mark.parametrize("share", [1e-8, 3e-7])
def test_a_matrix_that_is_slightly_indefinite_is_solved(contacts, share):
    drawn = random_problems(contacts, 1, contacts, bodies=1, mass_ratio=1.0)  # rank 6
    G = drawn.G[0]
    _, vectors = np.linalg.eigh(G)
    spoiled = G - share * np.linalg.norm(G, 2) * np.outer(vectors[:, 0], vectors[:, 0])
    assert np.linalg.eigvalsh(spoiled)[0] < -0.9 * share * np.linalg.norm(G, 2)
    solution = dl.ContactProblem(spoiled, drawn.g[0], friction=drawn.friction[0]).solve()
    assert solution.status == Status.CONVERGED
    assert residual(spoiled, drawn.g[0], drawn.friction[0], solution.impulse) < 2e-8 * np.abs(drawn.g).max()


def test_nothing_is_compiled_for_many_rows(pile, monkeypatch):
    monkeypatch.setattr(solving, "solve_contacts", None)
    for method in METHODS:
        problem_of(pile).solve(method=method, iterations=2)


def test_no_two_neighbours_have_the_same_color():
    rng = np.random.default_rng(0)
    coupled = rng.random((40, 40)) < 0.1
    coupled = coupled | coupled.T | np.eye(40, dtype=bool)
    colors = color_greedily(coupled)
    same = (colors[:, None] == colors[None, :]) & ~np.eye(40, dtype=bool)
    assert not (same & coupled).any()
    assert colors.max() < 12


@pytest.mark.slow
@pytest.mark.parametrize("model", ["ncp", "ccp"])
def test_five_hundred_contacts_end(model):
    pile = sphere_pile(1, (6, 6, 5))
    assert len(pile.friction[0]) == 480
    solution = problem_of(pile).solve(model)
    assert solution.iterations <= 1000
    assert left(pile, solution.impulse, model == "ccp") < (0.05 if solution.status == Status.ITERATIONS else 1e-8)
