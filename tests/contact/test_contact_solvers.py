"""Solvers of contact problems against the laws of contact, checked densely, and against each other."""

import numpy as np
import pytest

import delassus as dl
from contact_oracle import residual
from contact_problems import Problems, cones_of, random_problems
from delassus.constrained.solvers.status import Status


def speeds(problems: Problems, contacts: int) -> np.ndarray:
    """The largest free velocity of a contact of each problem."""
    return np.abs(problems.g[:, : 3 * contacts]).max(1)


def worst_residual(problems: Problems, impulses: np.ndarray, convex: bool = False) -> float:
    """The largest residual of a problem by the dense checker, as a share of its velocities."""
    contacts = problems.friction.shape[1]
    found = [residual(*p, convex) for p in zip(*problems[:3], impulses, strict=True)]
    return float(np.max(found / np.abs(problems.g).max(1))) if contacts else float(np.max(found))


LAYOUTS = [(1, 0), (3, 0), (4, 5), (12, 0), *(pytest.param(n, 3, marks=pytest.mark.slow) for n in (2, 6, 9))]


@pytest.mark.parametrize(("contacts", "free"), LAYOUTS)
def test_rigid_contact_obeys_its_laws_whatever_masses_friction_and_rank(contacts, free):
    problems = random_problems(contacts, 200, contacts, free=free)
    solution = dl.ContactProblem(problems.G, problems.g, cones_of(contacts, free), friction=problems.friction).solve()
    assert np.all(solution.status == Status.CONVERGED), solution.describe()
    assert worst_residual(problems, solution.impulse) <= 2e-8


@pytest.mark.parametrize("method", ["auto", "newton", "admm"])
def test_velocities_of_the_convex_model_are_those_of_clarabel(method):
    """They are unique, whatever the rank; ADMM is asked where masses are alike, since it needs long elsewhere."""
    problems = random_problems(7, 30, 4, free=3, mass_ratio=10.0 if method == "admm" else 1e4)
    problem = dl.ContactProblem(problems.G, problems.g, cones_of(4, 3), friction=problems.friction)
    reference = problem.solve("ccp", method="clarabel", tolerance=1e-7)
    solution = problem.solve("ccp", method=method, tolerance=1e-8 if method == "admm" else 1e-10, iterations=20_000)
    assert np.all(solution.status == Status.CONVERGED), solution.describe()
    known = reference.status == Status.CONVERGED
    assert known.sum() >= 24
    scale = np.abs(problems.g).max(1, keepdims=True)
    assert np.max((np.abs(solution.velocity - reference.velocity) / scale)[known]) < 1e-6


@pytest.mark.parametrize("method", ["auto", "newton", "pgs", "admm"])
def test_without_friction_all_methods_have_the_same_velocities(method):
    problems = random_problems(8, 30, 4, mass_ratio=3.0)
    problem = dl.ContactProblem(problems.G, problems.g, friction=0.0)
    reference = problem.solve(method="proxsuite", tolerance=1e-8)
    solution = problem.solve(method=method, tolerance=1e-10, iterations=100_000)
    assert np.all(solution.status == Status.CONVERGED), solution.describe()
    scale = np.abs(problems.g).max(1, keepdims=True)
    assert np.max(np.abs(solution.velocity - reference.velocity) / scale) < 1e-6


def test_a_heavy_cube_on_a_light_one_is_no_trouble():
    """Mass ratio 10⁶, four corners each: Gauss–Seidel needs millions of sweeps, "auto" a handful of iterations."""
    problem, weight = tower([1.0, 1e6])
    solution = problem.solve()
    assert solution.statuses == Status.CONVERGED
    normals = solution.impulse.reshape(2, 4, 3)[:, :, 2].sum(1)
    np.testing.assert_allclose(normals, np.cumsum(weight[::-1])[::-1], rtol=1e-9)
    assert problem.solve(method="pgs", iterations=1000).statuses == Status.ITERATIONS


@pytest.mark.parametrize("count", [1, 3, pytest.param(10, marks=pytest.mark.slow)])
def test_every_interface_of_a_stack_carries_all_that_is_above_it(count):
    problem, weight = tower([2.0] * count)
    solution = problem.solve(tolerance=1e-10)
    normals = solution.impulse.reshape(count, 4, 3)[:, :, 2].sum(1)
    np.testing.assert_allclose(normals, np.cumsum(weight[::-1])[::-1], rtol=1e-9)


def test_a_warm_start_takes_half_the_iterations_or_less():
    """Along a trajectory of problems that change little from one to the next."""
    problems = random_problems(9, 32, 4, bodies=4, mass_ratio=10.0, friction=(0.3, 0.9))
    turned = np.random.default_rng(0).normal(size=problems.g.shape)
    cold = warm = 0
    start = None
    for k in range(20):
        g = problems.g + 0.002 * k * turned
        problem = dl.ContactProblem(problems.G, g, friction=problems.friction, check=False)
        cold += problem.solve(tolerance=1e-6).iterations.sum()
        solution = problem.solve(tolerance=1e-6, start=start)
        warm += solution.iterations.sum()
        start = solution.impulse
    assert warm <= 0.5 * cold


def test_a_batch_gives_what_its_problems_give_alone():
    problems = random_problems(10, 24, 3)
    problem = dl.ContactProblem(problems.G, problems.g, friction=problems.friction)
    together = problem.solve(method="newton")
    for k in range(24):
        np.testing.assert_array_equal(problem[k].solve(method="newton").impulse, together.impulse[k])


@pytest.mark.parametrize("unit", [2.0**-20, 2.0**20])
def test_units_change_nothing_but_numbers(unit):
    """Lengths in another unit: velocities grow, masses stay, so iterations and statuses are the same."""
    problems = random_problems(11, 24, 3)
    plain = dl.ContactProblem(problems.G, problems.g, friction=problems.friction).solve(method="newton")
    other = dl.ContactProblem(problems.G, problems.g * unit, friction=problems.friction).solve(method="newton")
    heavier = dl.ContactProblem(problems.G * unit, problems.g, friction=problems.friction).solve(method="newton")
    np.testing.assert_array_equal(other.impulse, plain.impulse * unit)
    np.testing.assert_array_equal(other.iterations, plain.iterations)
    np.testing.assert_array_equal(heavier.impulse, plain.impulse / unit)


@pytest.mark.parametrize("angle", np.linspace(0.0, 3.0, 7))
def test_the_choice_of_tangents_does_not_matter(angle):
    problems = random_problems(12, 30, 2, bodies=2, mass_ratio=3.0, friction=(0.1, 0.3))
    c, s = np.cos(angle), np.sin(angle)
    turn = np.kron(np.eye(2), np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]))
    plain = dl.ContactProblem(problems.G, problems.g, friction=problems.friction).solve(tolerance=1e-10)
    turned = dl.ContactProblem(turn @ problems.G @ turn.T, problems.g @ turn.T, friction=problems.friction)
    np.testing.assert_allclose(turned.solve(tolerance=1e-10).velocity, plain.velocity @ turn.T, atol=1e-7)


def tower(masses: list[float]) -> tuple[dl.ContactProblem, np.ndarray]:
    """Cubes of one metre on top of each other, at rest before a step of 10 ms, and their weights' impulses [N·s].

    Interface k is below cube k, with contacts at its four corners.
    """
    count, step = len(masses), 0.01
    J = np.zeros((count, 4, 3, 6 * count))
    for k in range(count):
        for corner, (x, y) in enumerate([(-0.5, -0.5), (-0.5, 0.5), (0.5, -0.5), (0.5, 0.5)]):
            for body, sign, z in ((k, 1.0, -0.5), (k - 1, -1.0, 0.5)):
                if body >= 0:
                    arm = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
                    J[k, corner, :, 6 * body : 6 * body + 6] = sign * np.hstack([np.eye(3), -arm])
    rows = J.reshape(12 * count, 6 * count)
    inverse = np.concatenate([np.r_[np.full(3, 1.0 / m), np.full(3, 6.0 / m)] for m in masses])
    free = np.tile([0.0, 0.0, -9.81 * step, 0.0, 0.0, 0.0], count)
    return dl.ContactProblem((rows * inverse) @ rows.T, rows @ free, friction=0.5), 9.81 * step * np.array(masses)


def test_a_row_that_only_rounding_moves_changes_nothing():
    """The third row of a loop in a plane: its response of 1e-33 is noise, and so is what couples it to others."""
    problems = random_problems(5, 20, 4, mass_ratio=10.0)
    m = problems.G.shape[-1]
    noise = 1e-17 * np.random.default_rng(0).normal(size=m)
    G = np.zeros((20, m + 1, m + 1))
    G[:, :m, :m], G[:, m, m] = problems.G, 1e-33
    G[:, m, :m] = G[:, :m, m] = noise
    g = np.concatenate([problems.g, np.full((20, 1), 1e-18)], -1)
    plain = dl.ContactProblem(problems.G, problems.g, cones_of(4, 0), friction=problems.friction).solve()
    more = dl.ContactProblem(G, g, cones_of(4, 1), friction=problems.friction, check=False)
    solution = more.solve()
    assert np.all(solution.status == Status.CONVERGED), solution.describe()
    np.testing.assert_allclose(solution.velocity[:, :m], plain.velocity, atol=1e-7 * np.abs(problems.g).max())
