"""Contact problems whose Delassus matrix is an operator, against those that have its entries."""

import numpy as np
import pytest

import delassus as dl
from contact_oracle import residual
from contact_problems import random_problems
from delassus.constrained.solvers.status import Status
from refusals import refuses


class Products:
    """A matrix of which products are known."""

    def __init__(self, G):
        self.G, self.shape = G, G.shape

    def apply(self, x):
        return np.einsum("...ij,...j->...i", self.G, x)


@pytest.mark.parametrize("model", ["ncp", "ccp"])
def test_products_are_enough_to_obey_the_laws(model):
    problems = random_problems(3, 20, 3, bodies=3, mass_ratio=3.0, friction=(0.2, 0.6))
    problem = dl.ContactProblem(Products(problems.G), problems.g, friction=problems.friction)
    solution = problem.solve(model, tolerance=1e-7, iterations=20_000)
    assert np.all(solution.status == Status.CONVERGED), solution.describe()
    found = [residual(*p, model == "ccp") for p in zip(*problems[:3], solution.impulse, strict=True)]
    assert np.max(found / np.abs(problems.g).max(1)) < 2e-7


def test_a_robot_on_many_points_is_solved_by_its_recursions():
    """A quadruped with a contact at every frame of its legs: impulses lift it as those of the dense problem do."""
    robot = dl.load("quadruped")
    points = [dl.Point(frame, axes="world") for frame in robot.frames("*_*")]
    mechanism = dl.Mechanism(robot, points)
    q, v = robot.posture("home"), np.random.default_rng(0).normal(size=robot.nv)
    g = dl.constraint_jacobian(mechanism, q) @ v
    thin = dl.ContactProblem(dl.contact.DelassusOperator(mechanism, q), g, friction=0.5)
    dense = dl.ContactProblem(dl.delassus_matrix(mechanism, q), g, friction=0.5)
    solution = thin.solve("ccp", tolerance=1e-6, iterations=5000)
    assert solution.statuses == Status.CONVERGED, solution.describe()
    np.testing.assert_allclose(solution.velocity, dense.solve("ccp").velocity, atol=1e-4)


def test_what_needs_entries_says_so(tmp_path):
    problem = dl.ContactProblem(Products(np.eye(3)), np.zeros(3), friction=0.5)
    with refuses("not-supported", "G"):
        problem.save(tmp_path / "x.npz")
    with refuses("not-supported", "operator"):
        problem.solve(method="admm")
    with refuses("not-supported", "'lcp'", "'auto'"):
        problem.solve(law="lcp")
