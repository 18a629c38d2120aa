"""Contacts solved exactly, one after the other, by halving angles."""

import numpy as np
import pytest
from scipy.optimize import brentq

import delassus as dl
from contact_problems import random_problems
from refusals import refuses


def sliding_impulses(G, g, mu):
    """All impulses with which one contact slides and is braked, by a dense scan of directions."""

    def at(angle):
        e = np.array([np.cos(angle), np.sin(angle)])
        reach = G[2, 2] + mu * G[2, :2] @ e
        impulse = -g[2] / reach * np.array([*(mu * e), 1.0])
        sigma = G @ impulse + g
        return e[0] * sigma[1] - e[1] * sigma[0], reach, impulse, sigma[:2] @ e

    angles = np.linspace(-np.pi, np.pi, 1441)
    across, reach = np.array([at(a)[:2] for a in angles]).T
    places = np.flatnonzero((across[:-1] * across[1:] <= 0) & (reach[:-1] > 0) & (reach[1:] > 0))
    roots = [brentq(lambda a: at(a)[0], angles[k], angles[k + 1], xtol=1e-15, rtol=1e-15) for k in places]
    return [at(a)[2] for a in roots if at(a)[3] <= 0]


def test_one_contact_is_solved_in_one_sweep_to_rounding():
    drawn = random_problems(1, 1000, 1, bodies=2)
    found = dl.ContactProblem(drawn.G, drawn.g, friction=drawn.friction).solve("ncp", "bisection", tolerance=1e-12)
    assert np.all(found.status == dl.Status.CONVERGED)
    assert found.iterations.max() == 1
    modes = found.modes[:, 0]
    assert set(modes) == {"open", "sticking", "sliding"}
    assert np.all(found.impulse[modes == "open"] == 0.0)
    for k in np.flatnonzero(modes == "sticking"):
        stopped = -np.linalg.solve(drawn.G[k], drawn.g[k])
        np.testing.assert_allclose(found.impulse[k], stopped, rtol=0, atol=1e-9 * np.abs(stopped).max())
    for k in np.flatnonzero(modes == "sliding")[:100]:
        known = sliding_impulses(drawn.G[k], drawn.g[k], drawn.friction[k, 0])
        error = min(np.abs(found.impulse[k] - x).max() / np.abs(x).max() for x in known)
        assert error <= 1e-12


def test_friction_is_against_sliding_where_the_normal_moves_the_tangents():
    # The least energy on the edge of the cone is elsewhere: G has entries between normal and tangents.
    G = np.array([[1.0, 0.1, 0.5], [0.1, 1.2, -0.4], [0.5, -0.4, 0.9]])
    found = dl.ContactProblem(G, [1.0, -0.3, -1.0], friction=0.5).solve("ncp", "bisection", tolerance=1e-12)
    push, slide = found.impulse[:2], found.velocity[:2]
    assert found.modes[0] == "sliding"
    assert push @ slide == pytest.approx(-np.linalg.norm(push) * np.linalg.norm(slide), rel=1e-12)
    assert abs(found.velocity[2]) <= 1e-12


def test_several_contacts_converge_where_gauss_seidel_does_and_in_fewer_sweeps():
    drawn = random_problems(6, 300, 4, mass_ratio=1e3, friction=(0.0, 0.5))
    problem = dl.ContactProblem(drawn.G, drawn.g, friction=drawn.friction)
    found, other = (problem.solve("ncp", method, iterations=2000) for method in ("bisection", "pgs"))
    both = (found.status == dl.Status.CONVERGED) & (other.status == dl.Status.CONVERGED)
    # Nothing guarantees the end of either: contacts that are exact one by one may go in circles together.
    assert both.sum() >= 0.99 * np.sum(other.status == dl.Status.CONVERGED)
    assert np.median(found.iterations[both]) < np.median(other.iterations[both])
    assert np.all(found.residual[both] <= 1e-8 * np.abs(drawn.g[both]).max(-1))


def test_no_friction_infinite_friction_and_flat_contacts():
    flat = np.diag([1.0, 0.0, 1.0])  # nothing moves along the second tangent
    for G in (np.eye(3), flat):
        for mu in (0.0, 1e-12, np.inf):
            found = dl.ContactProblem(G, [0.5, 0.0, -1.0], friction=mu).solve("ncp", "bisection")
            assert found.statuses is dl.Status.CONVERGED
            np.testing.assert_allclose(found.impulse, [-0.5 if mu > 1 else -mu, 0.0, 1.0], atol=1e-9)


def test_what_it_is_not_for_is_refused():
    with refuses("not-supported", "'ncp'", "law"):
        dl.ContactProblem(np.eye(3), [0.0, 0.0, -1.0], friction=0.5).solve("ccp", "bisection")
    spinning = dl.ContactProblem(np.eye(4), np.zeros(4), [dl.cones.Friction(4)], friction=0.5, torsional=0.1)
    with refuses("not-supported", "torsional"):
        spinning.solve("ncp", "bisection")
