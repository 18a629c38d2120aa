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


LAYOUTS = [(1, 0), (3, 0), (6, 0), (4, 5), (12, 0)]


@pytest.mark.parametrize(("contacts", "free"), LAYOUTS)
def test_rigid_contact_obeys_its_laws_whatever_masses_friction_and_rank(contacts, free):
    problems = random_problems(contacts, 200, contacts, free=free)
    solution = dl.ContactProblem(problems.G, problems.g, cones_of(contacts, free), friction=problems.friction).solve()
    assert np.all(solution.status == Status.CONVERGED), solution.describe()
    assert worst_residual(problems, solution.impulse) <= 2e-8
