"""Sequential impulses are Gauss–Seidel without a Delassus matrix."""

import numpy as np
import pytest

import delassus as dl
from contact_problems import cones_of, random_problems
from delassus.contact.solvers.sequential_impulses import RowsOnVelocities, sequential_impulses

CONES = [*cones_of(2), dl.cones.NonNegative(1), dl.cones.Interval(1), dl.cones.Free(1)]
ROWS = RowsOnVelocities(tuple(CONES), 12)
NUMBERS = {"lower": [-0.1], "upper": [0.2], "compliance": [0.0] * 7 + [0.01, 0.0]}


@pytest.fixture(scope="module")
def drawn():
    return random_problems(1, 100, 2, bodies=2, mass_ratio=1e2, free=3, friction=(0.0, 1.0))


@pytest.mark.parametrize("law", ["ncp", "ccp"])
def test_iterates_are_those_of_gauss_seidel(drawn, law):
    problem = dl.ContactProblem(drawn.G, drawn.g, CONES, friction=drawn.friction, **NUMBERS)
    B = drawn.Minv @ drawn.J.mT
    for sweeps in (1, 5, 300):
        expected = problem.solve(law, "pgs", iterations=sweeps)
        given = {"friction": drawn.friction, **NUMBERS, "iterations": float(sweeps), "tolerance": 1e-8}
        v, impulse, sigma, made, status = sequential_impulses(ROWS, drawn.J, B, drawn.v, **given, law=law)
        scale = np.abs(expected.impulse).max(-1)
        same = made == expected.iterations  # an error next to the tolerance may count either way
        assert same.sum() >= 98
        assert np.all(np.abs(impulse - expected.impulse).max(-1)[same] <= 1e-9 * scale[same])
        np.testing.assert_allclose(v, drawn.v + (B @ impulse[..., None])[..., 0], rtol=1e-12)
        np.testing.assert_array_equal(status[same], expected.status[same])
        assert np.all(np.abs(sigma - expected.velocity).max(-1)[same] <= 1e-9 * np.abs(drawn.g).max(-1)[same])


def test_a_good_start_needs_no_sweep_and_what_is_not_a_number_spoils_its_own_problem(drawn):
    B = drawn.Minv @ drawn.J.mT
    given = {"friction": drawn.friction, **NUMBERS, "iterations": 3000.0, "tolerance": 1e-8}
    _, impulse, _, _, status = sequential_impulses(ROWS, drawn.J, B, drawn.v, **given)
    solved = status == dl.Status.CONVERGED
    assert solved.sum() >= 90
    v = drawn.v.copy()
    v[7, 0] = np.nan
    again = sequential_impulses(ROWS, drawn.J, B, v, **given, start=impulse)
    expected = np.where(np.arange(100) == 7, dl.Status.NOT_FINITE, 0)
    np.testing.assert_array_equal(again[4][solved], expected[solved])
    assert np.all(again[3][solved & (expected == 0)] <= 1)
