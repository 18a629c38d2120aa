"""Friction pyramids: linear complementarity problems, and the methods that solve them by pivots."""

import itertools

import numpy as np
import pytest

import delassus as dl
from contact_problems import cones_of, random_problems
from delassus.contact.problems import by_pyramids
from delassus.contact.solvers.lemke import lemke
from refusals import refuses

CORNERS = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
ALL_SETS = [list(s) for size in range(7) for s in itertools.combinations(range(6), size)]


def solved(problem, **options):
    return problem.solve("lcp", **options)


# --- every complementary index set ------------------------------------------------------------------------------------


def by_index_sets(G, g, mu):
    """The impulses of one contact with four faces, for each set of (λ_n, four β, ξ) that may be positive."""
    S, C = np.zeros((3, 6)), np.zeros((6, 6))
    S[2, 0], S[:2, 1:5] = 1.0, CORNERS.T
    C[1:5, 5], C[5, 1:5], C[5, 0] = 1.0, -1.0, mu
    d = np.trace(G) / 3
    M, q = S.T @ (G / d) @ S + C, S.T @ g / np.abs(g).max()
    found = []
    for some in ALL_SETS:
        z = np.zeros(6)
        if some:
            z[some] = np.linalg.lstsq(M[np.ix_(some, some)], -q[some], rcond=1e-10)[0]
        w = M @ z + q
        if min(z.min(), w.min(), -np.abs(w[some]).max(initial=0.0)) > -1e-9:
            found.append(S @ z / d * np.abs(g).max())
    return found


def test_one_contact_has_an_impulse_of_those_that_index_sets_give():
    drawn = random_problems(1, 400, 1, bodies=2)
    rng = np.random.default_rng(2)
    thin = rng.normal(size=(100, 3, 2))  # a matrix of rank two, as of a body in the plane
    G = np.concatenate([drawn.G, thin @ thin.mT])
    g = np.concatenate([drawn.g, (thin @ rng.normal(size=(100, 2, 1)))[..., 0]])
    mu = np.concatenate([drawn.friction, rng.uniform(0, 2, (100, 1))])
    found = solved(dl.ContactProblem(G, g, friction=mu))
    assert np.all(found.status == dl.Status.CONVERGED)
    for k in range(len(g)):
        known = by_index_sets(G[k], g[k], mu[k, 0])
        scale = np.abs(g[k]).max()
        # Impulses of a singular G are not unique: what they do to velocities is.
        assert min(np.abs(G[k] @ (found.impulse[k] - x)).max() for x in known) <= 1e-8 * scale


MODES = ["open", "stick", *(f"corner {k}" for k in range(4)), *(f"edge {k}" for k in range(4))]


def equations(mode, mu):
    """X (…, 3, 3) and Y (3, 3) with X λ + Y σ = 0 of a contact in a mode."""
    X, Y = np.zeros((*mu.shape, 3, 3)), np.zeros((3, 3))
    kind, k = mode.split()[0], int(mode.split()[-1]) if " " in mode else 0
    if kind == "open":
        return X + np.eye(3), Y
    if kind == "stick":
        return X, np.eye(3)
    Y[2, 2] = 1.0
    a, b = CORNERS[k], CORNERS[(k + 1) % 4]
    if kind == "corner":
        X[..., :2, :2], X[..., :2, 2] = np.eye(2), -mu[..., None] * a
    else:
        X[..., 0, :2], X[..., 0, 2], Y[1, :2] = a + b, -mu, a - b
    return X, Y


def violations(d, scale, mu, impulse, velocity):
    """(…) the largest violation of the pyramid's laws by impulses and velocities (…, contacts, 3), without units."""
    push, slide = impulse * d[..., None] / scale[:, None, None], velocity / scale[:, None, None]
    rub = np.max(-slide[..., :2] @ CORNERS.T, -1)
    found = [
        -push[..., 2],
        -slide[..., 2],
        np.abs(push[..., 2] * slide[..., 2]),
        np.abs(push[..., :2]).sum(-1) - mu * push[..., 2],
        np.abs((push[..., :2] * slide[..., :2]).sum(-1) + mu * push[..., 2] * rub),
    ]
    return np.max(found, (0, -1))


def test_two_contacts_have_an_impulse_of_those_that_modes_give():
    drawn = random_problems(3, 500, 2)
    G, g, mu = drawn.G, drawn.g, drawn.friction
    count, scale = len(g), np.abs(g).max(-1)
    d = np.stack([np.trace(G[:, :3, :3], axis1=1, axis2=2), np.trace(G[:, 3:, 3:], axis1=1, axis2=2)], -1) / 3
    found = solved(dl.ContactProblem(G, g, friction=mu))
    assert np.all(found.status == dl.Status.CONVERGED)
    assert np.all(violations(d, scale, mu, *(x.reshape(count, 2, 3) for x in (found.impulse, found.velocity))) <= 1e-8)

    unit = np.repeat(np.sqrt(d), 3, -1)
    balanced = G / unit[:, :, None] / unit[:, None, :]
    nearest = np.full(count, np.inf)
    for first, second in itertools.product(MODES, MODES):
        X, Y = np.zeros((count, 6, 6)), np.zeros((6, 6))
        X[:, :3, :3], Y[:3, :3] = equations(first, mu[:, 0])
        X[:, 3:, 3:], Y[3:, 3:] = equations(second, mu[:, 1])
        A = X + Y @ balanced
        impulse = (np.linalg.pinv(A, rcond=1e-11) @ -(Y @ (g / unit)[..., None]))[..., 0]
        met = np.abs((A @ impulse[..., None])[..., 0] + (g / unit) @ Y.T).max(-1) <= 1e-9 * np.abs(g / unit).max(-1)
        impulse = impulse / unit
        velocity = (G @ impulse[..., None])[..., 0] + g
        valid = met & (violations(d, scale, mu, impulse.reshape(count, 2, 3), velocity.reshape(count, 2, 3)) <= 1e-7)
        apart = np.abs(velocity - found.velocity).max(-1) / scale
        nearest = np.minimum(nearest, np.where(valid, apart, np.inf))
    assert np.all(nearest <= 1e-6)


# --- other rows, other solvers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["lemke", "dantzig"])
def test_without_friction_all_models_have_the_same_velocities(method):
    drawn = random_problems(4, 200, 3, free=2)
    problem = dl.ContactProblem(drawn.G, drawn.g, cones_of(3, 2), friction=0.0)
    found, other = solved(problem, method=method), problem.solve("ccp", tolerance=1e-10)
    assert np.all(found.status == dl.Status.CONVERGED)
    assert np.all(np.abs(found.velocity - other.velocity).max(-1) <= 1e-6 * np.abs(drawn.g).max(-1))


@pytest.mark.parametrize("method", ["lemke", "dantzig"])
def test_half_lines_and_intervals_with_infinite_bounds_and_redundant_free_rows(method):
    drawn = random_problems(5, 200, 2, bodies=2, mass_ratio=1e2)
    J = np.concatenate([drawn.J, drawn.J[:, -1:] - drawn.J[:, -2:-1]], 1)  # the last row says what two others say
    G, g = J @ drawn.Minv @ J.mT, (J @ drawn.v[..., None])[..., 0]
    cones = [dl.cones.NonNegative(2), dl.cones.Interval(2), dl.cones.Free(3)]
    bounds = {"lower": [-np.inf, 0.01], "upper": [0.02, np.inf]}
    problem = dl.ContactProblem(G, g, cones, **bounds)
    found, other = solved(problem, method=method), problem.solve("ccp", tolerance=1e-10)
    assert np.all(found.status == dl.Status.CONVERGED)
    assert np.all(found.primal_violation <= 1e-12)
    assert np.all(np.abs(found.velocity - other.velocity).max(-1) <= 1e-6 * np.abs(g).max(-1))


@pytest.mark.parametrize("pyramid", ["inner", "outer"])
def test_many_faces_come_close_to_the_cone_from_inside_or_outside(pyramid):
    G, g = np.diag([1.0, 1.2, 0.9]), np.array([0.9, 0.5, -1.0])
    problem = dl.ContactProblem(G, g, friction=0.4)
    found, cone = solved(problem, faces=16, pyramid=pyramid), problem.solve()
    length = np.linalg.norm(found.impulse[:2]) / found.impulse[2]
    low, high = (np.cos(np.pi / 16), 1.0) if pyramid == "inner" else (1.0, 1.0 / np.cos(np.pi / 16))
    assert 0.4 * low * (1 - 1e-12) <= length <= 0.4 * high * (1 + 1e-12)
    np.testing.assert_allclose(found.impulse, cone.impulse, atol=0.08)
    assert max(found.primal_violation, found.dual_violation, found.complementarity_violation) <= 1e-12


def test_residuals_measures_and_compliance_are_those_of_the_pyramid():
    drawn = random_problems(6, 20, 2)
    problem = dl.ContactProblem(drawn.G, drawn.g, friction=drawn.friction, compliance=0.1)
    found = solved(problem)
    total = drawn.G + 0.1 * np.eye(6)
    np.testing.assert_allclose(
        found.velocity, (total @ found.impulse[..., None])[..., 0] + drawn.g, rtol=1e-9, atol=1e-12
    )
    scale = np.abs(drawn.g).max()
    assert max(found.residual.max(), found.dual_violation.max()) <= 1e-8 * scale
    for k in range(20):
        d = np.trace(drawn.G[k, :3, :3]) / 3
        wrong = found.impulse[k, :3] - found.corrected_velocity[k, :3] / d
        nearest = dl.cones.project_pyramid(wrong, drawn.friction[k, 0])
        np.testing.assert_allclose(found.residuals[k, :3], d * (found.impulse[k, :3] - nearest), atol=1e-12 * scale)


def test_problems_too_large_to_compile_are_solved_as_well(monkeypatch):
    drawn = random_problems(7, 3, 2)
    problem = dl.ContactProblem(drawn.G, drawn.g, friction=drawn.friction)
    compiled = solved(problem)
    monkeypatch.setattr(by_pyramids, "_LARGEST_COMPILED", 3)
    np.testing.assert_allclose(solved(problem).impulse, compiled.impulse, rtol=1e-9, atol=1e-12)
    g = drawn.g.copy()
    g[1, 0] = np.nan
    spoiled = solved(dl.ContactProblem(drawn.G, g, friction=drawn.friction))
    np.testing.assert_array_equal(spoiled.status, [0, dl.Status.NOT_FINITE, 0])


def test_many_contacts_on_few_bodies_are_solved_to_the_tolerance():
    drawn = random_problems(3, 40, 12, bodies=2)
    found = solved(dl.ContactProblem(drawn.G, drawn.g, friction=drawn.friction))
    assert np.all(found.status == dl.Status.CONVERGED)
    assert np.all(found.residual <= 1e-8 * np.abs(drawn.g).max(-1))


def test_lemke_solves_problems_that_are_not_symmetric():
    rng = np.random.default_rng(10)
    for _ in range(40):
        M = rng.normal(size=(5, 5))
        M = M @ M.T + 0.1 * np.eye(5) + 2.0 * (M - M.T)  # positive definite: there is one solution
        q = rng.normal(size=5)
        z = lemke(M, q, np.ones(5), 1e-7, 100.0).z
        w = M @ z + q
        assert min(z.min(), w.min()) >= -1e-10
        assert np.abs(z * w).max() <= 1e-10


# --- where there is no solution ---------------------------------------------------------------------------------------


def test_a_rod_whose_friction_presses_harder_than_it_is_lifted_ends_in_a_ray():
    # Painlevé's rod, sliding: a_n = (G_nn - friction G_nt) λ + b with a negative coefficient. It has no solution for b
    # below zero, and two above.
    G_nn, G_nt, mu = 1.0, 1.2, 1.5
    M = np.array([[G_nn - mu * G_nt]])
    assert lemke(M, np.array([-1.0]), np.ones(1), 1e-7, 100.0).ray
    assert lemke(M, np.array([1.0]), np.ones(1), 1e-7, 100.0).solved


def test_where_friction_leaves_no_solution_that_is_said():
    # As of Painlevé's rod: sliding friction presses harder than the normal impulse lifts. No index set has a solution.
    G = np.array([[1.0, 0.0, -2.0], [0.0, 1.0, 0.0], [-2.0, 0.0, 1.0]])
    g = np.array([-3.0, 0.0, -1.0])
    assert not by_index_sets(G, g, 1.0)
    found = solved(dl.ContactProblem(G, g, friction=1.0, check=False))
    assert found.statuses is dl.Status.NO_SOLUTION
    assert "no solution" in found.describe()


@pytest.mark.parametrize("method", ["lemke", "dantzig"])
def test_contradictory_rows_are_infeasible(method):
    bilateral = dl.ContactProblem(np.ones((2, 2)), [1.0, -1.0], [dl.cones.Free(2)])
    assert solved(bilateral, method=method).statuses is dl.Status.INFEASIBLE
    unilateral = dl.ContactProblem([[1.0, -1.0], [-1.0, 1.0]], [-1.0, -1.0], [dl.cones.NonNegative(2)])
    assert solved(unilateral, method=method).statuses is dl.Status.INFEASIBLE


def test_what_is_not_a_number_spoils_no_other_problem():
    drawn = random_problems(8, 4, 2)
    g = drawn.g.copy()
    g[1, 2] = np.nan
    found = solved(dl.ContactProblem(drawn.G, g, friction=drawn.friction))
    np.testing.assert_array_equal(found.status, [0, dl.Status.NOT_FINITE, 0, 0])


def test_a_limit_of_pivots_is_told():
    drawn = random_problems(9, 30, 2)
    found = solved(dl.ContactProblem(drawn.G, drawn.g, friction=drawn.friction), iterations=1)
    assert np.any(found.status == dl.Status.ITERATIONS)
    assert found.iterations.max() <= 1


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"faces": 2}, ("out-of-range",)),
        ({"pyramid": "round"}, ("unknown-option", "'round'")),
        ({"method": "newton"}, ("unknown-method",)),
        ({"method": "dantzig"}, ("not-supported",)),
    ],
)
def test_what_pyramids_cannot_do_is_refused(options, refusal):
    with refuses(*refusal):
        solved(dl.ContactProblem(np.eye(3), [0.0, 0.0, -1.0], friction=0.5), **options)


def test_contacts_with_torsional_friction_have_no_pyramid():
    problem = dl.ContactProblem(np.eye(4), np.zeros(4), [dl.cones.Friction(4)], friction=0.5, torsional=0.1)
    with refuses("not-supported"):
        solved(problem)
