"""Derivatives of solved contacts against differences, in all modes and away from where they change."""

import numpy as np
import pytest

import delassus as dl
from contact_problems import random_problems
from delassus.contact.solvers.derivatives import contact_derivatives


@pytest.mark.parametrize("law", ["ncp", "ccp"])
def test_impulses_change_with_free_velocities_as_differences_say(law):
    problems = random_problems(5, 40, 3, bodies=3, mass_ratio=10.0, friction=(0.2, 0.8))
    problem = dl.ContactProblem(problems.G, problems.g, friction=problems.friction)
    solution = problem.solve(law, tolerance=1e-12)
    found = set(solution.modes.reshape(-1))
    assert found == {"open", "sticking", "sliding"}
    by_g, _ = contact_derivatives(
        problem.layout, problems.G, problems.g, solution.impulse, friction=problems.friction, law=law
    )
    step = 1e-6
    for k in range(9):
        moved = step * np.eye(9)[k]
        ends = [
            dl.ContactProblem(problems.G, problems.g + sign * moved, friction=problems.friction).solve(
                law, tolerance=1e-12, start=solution.impulse
            )
            for sign in (1.0, -1.0)
        ]
        same = (ends[0].modes == solution.modes).all(-1) & (ends[1].modes == solution.modes).all(-1)
        differences = (ends[0].velocity - ends[1].velocity) / (2.0 * step)
        velocities = np.einsum("bij,bj->bi", problems.G, by_g[:, :, k]) + np.eye(9)[k]
        assert np.abs(velocities - differences)[same].max() < 2e-4
        assert same.sum() >= 25


def test_impulses_change_with_friction_as_in_closed_form():
    """A sliding point mass: λ_t = -friction λ_n along the velocity."""
    G, g, friction = np.eye(3) / 2.0, np.array([3.0, 4.0, -1.0]), np.array([0.5])
    layout = dl.ContactProblem(G, g, friction=friction).layout
    impulse = dl.ContactProblem(G, g, friction=friction).solve(tolerance=1e-12).impulse
    _, by_friction = contact_derivatives(layout, G, g, impulse, friction=friction)
    np.testing.assert_allclose(by_friction[:, 0], [-2.0 * 0.6, -2.0 * 0.8, 0.0], atol=1e-9)
