"""Answers of general solvers to contact problems, and ours beside them."""

import sys

import numpy as np
import pytest

import delassus as dl
from contact_problems import cones_of, random_problems
from delassus.contact.references.primal import primal_impulses
from refusals import refuses

CONTACTS, FREE = 3, 2
CONES = cones_of(CONTACTS, FREE)


def as_energies(problem, velocity):
    """Velocities (…, m) divided by the roots of their rows' responses: their squares are energies."""
    size = np.diagonal(problem.G, axis1=-2, axis2=-1).copy()
    for rows in problem.layout.friction:
        size[..., list(rows)] = size[..., list(rows)].mean(-1, keepdims=True)
    return velocity / np.sqrt(np.where(size > 0, size, 1.0))


def apart(problem, a, b):
    """(…) how far velocities are apart, in energy and as a share of the free ones."""
    return np.abs(as_energies(problem, a - b)).max(-1) / np.abs(as_energies(problem, problem.g)).max(-1)


def energy(problem, impulse):
    """(…) what convex models minimise, as a share of the kinetic energy of the free velocities."""
    whole = 0.5 * (as_energies(problem, problem.g) ** 2).sum(-1)
    G = np.einsum("...i,...ij,...j->...", impulse, problem.G, impulse)
    return (0.5 * G + (problem.g * impulse).sum(-1)) / whole


def convex_problems(seed=11, friction=(0.05, 1.5), mass_ratio=1e4, count=40):
    drawn = random_problems(seed, count, CONTACTS, mass_ratio=mass_ratio, free=FREE, friction=friction)
    return drawn, dl.ContactProblem(drawn.G, drawn.g, CONES, friction=drawn.friction)


def test_the_convex_model_has_the_velocities_of_a_cone_program():
    _, problem = convex_problems()
    ours, theirs = problem.solve("ccp", tolerance=1e-10), problem.solve("ccp", "clarabel")
    assert np.all(ours.status == dl.Status.CONVERGED)
    assert np.all(apart(problem, ours.velocity, theirs.velocity) <= 1e-6)
    # And the program finds no less energy: the answer is not just near.
    assert np.all(energy(problem, ours.impulse) <= energy(problem, theirs.impulse) + 1e-9)


@pytest.mark.parametrize("method", ["clarabel", "proxsuite"])
@pytest.mark.parametrize("model", ["ncp", "ccp"])
def test_without_friction_all_models_have_the_velocities_of_a_quadratic_program(model, method):
    _, problem = convex_problems(friction=(0.0, 0.0), count=15)
    ours, theirs = problem.solve(model, tolerance=1e-10), problem.solve(model, method)
    assert np.all(apart(problem, ours.velocity, theirs.velocity) <= 1e-6)


def test_half_lines_intervals_and_compliance_are_part_of_the_program():
    drawn = random_problems(12, 20, 2, mass_ratio=1e2)
    cones = [dl.cones.NonNegative(2), dl.cones.Interval(3), dl.cones.Free(1)]
    bounds = {"lower": [-np.inf, -0.1, 0.2], "upper": [0.1, 0.1, 0.2]}
    problem = dl.ContactProblem(drawn.G, drawn.g, cones, **bounds, compliance=0.05)
    ours, theirs = problem.solve("ccp", tolerance=1e-10), problem.solve("ccp", "clarabel")
    other = problem.solve("ccp", "proxsuite")
    np.testing.assert_allclose(ours.impulse, theirs.impulse, atol=1e-6 * np.abs(ours.impulse).max())
    np.testing.assert_allclose(ours.impulse, other.impulse, atol=1e-6 * np.abs(ours.impulse).max())


def test_multipliers_of_the_primal_qp_are_the_impulses():
    drawn = random_problems(13, 12, 2, bodies=2, mass_ratio=1e2, free=1, friction=(0.05, 1.0))
    cones = cones_of(2, 1)
    problem = dl.ContactProblem(drawn.G, drawn.g, cones, friction=drawn.friction)
    solution = problem.solve("ccp", tolerance=1e-10)
    unique = np.linalg.cond(drawn.G) < 1e6
    assert unique.sum() >= 8
    for k in range(12):
        M = np.linalg.inv(drawn.Minv[k])
        v, impulse = primal_impulses(cones, M, drawn.J[k], drawn.v[k], drawn.friction[k])
        assert apart(problem[k], drawn.J[k] @ v, solution.velocity[k]) <= 1e-6
        np.testing.assert_allclose(
            M @ (v - drawn.v[k]), drawn.J[k].T @ impulse, atol=1e-8 * np.abs(M @ drawn.v[k]).max()
        )
        if unique[k]:
            scale = np.abs(solution.impulse[k]).max()
            np.testing.assert_allclose(impulse, solution.impulse[k], atol=1e-5 * scale)


def test_a_problem_that_is_not_a_number_spoils_no_other_and_shapes_stay():
    drawn, _ = convex_problems(count=4)
    g = drawn.g.copy().reshape(2, 2, -1)
    g[0, 1, 3] = np.nan
    batch = dl.ContactProblem(drawn.G.reshape(2, 2, *drawn.G.shape[1:]), g, CONES, friction=0.5)
    found = batch.solve("ccp", "clarabel", tolerance=1e-4)
    assert found.impulse.shape == (2, 2, batch.m)
    np.testing.assert_array_equal(found.status, [[0, dl.Status.NOT_FINITE], [0, 0]])
    one = dl.ContactProblem(drawn.G[0], drawn.g[0], CONES, friction=0.5).solve("ccp", "clarabel", tolerance=1e-4)
    np.testing.assert_allclose(one.impulse, found.impulse[0, 0], rtol=1e-12)


def test_contradictory_rows_are_said_to_be_so():
    problem = dl.ContactProblem(np.ones((2, 2)), [1.0, -1.0], [dl.cones.Free(2)])
    assert problem.solve("ccp", "clarabel").statuses is dl.Status.INFEASIBLE


def test_residuals_are_those_of_the_laws():
    _, problem = convex_problems(count=3)
    found = problem.solve("ccp", "clarabel")
    one = problem[1]
    impulse, velocity = found.impulse[1], found.velocity[1]
    np.testing.assert_allclose(velocity, one.G @ impulse + one.g, rtol=1e-12)
    for k, rows in enumerate(one.layout.friction):
        d, at = np.trace(one.G[np.ix_(rows, rows)]) / 3, list(rows)
        nearest = dl.cones.project(impulse[at] - velocity[at] / d, one.friction[k])
        np.testing.assert_allclose(found.residuals[1][at], d * (impulse[at] - nearest), atol=1e-12)


@pytest.mark.parametrize(("model", "method"), [("ncp", "clarabel"), ("ccp", "proxsuite")])
def test_references_refuse_what_is_not_convex_for_them(model, method):
    _, problem = convex_problems(count=1)
    with refuses("not-supported", "convex"):
        problem.solve(model, method)


@pytest.mark.parametrize("method", ["clarabel", "proxsuite"])
def test_a_missing_package_is_named_with_what_installs_it(method, monkeypatch):
    monkeypatch.setitem(sys.modules, method, None)
    problem = dl.ContactProblem(np.eye(1), [-1.0], [dl.cones.NonNegative()])
    with refuses("missing-package", method):
        problem.solve("ccp", method)
