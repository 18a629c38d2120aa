"""Rows that contradict each other, or repeat each other: residuals and statuses are those of the rows as stated."""

from dataclasses import replace

import numpy as np
import pytest

import delassus as dl
from delassus.constrained.solvers.status import Status

step, system = dl.stepping.compliant_step, dl.stepping.compliant_system
BAR = dl.load("four_bar")
(TIE,) = dl.Mechanism(BAR).constraints
HOME, REST, H = BAR.posture("home"), np.zeros(3), 1e-3
FAR = dl.Contact("coupler_end", height=-50.0)
BESIDE = {"alone": {}, "contact": {"contacts": FAR}, "limit": {"limits": True}, "friction": {"joint_friction": True}}
EXACT = ("auto", "newton")
BILATERAL = ("ldl", "cg", "minres", "gauss_seidel")
SWEEPS = ("pgs", "sequential_impulses", "admm", "bisection")


def closed_twice(offset: float) -> dl.Mechanism:
    """A four-bar whose loop is closed twice, an offset [m] apart, with limits and friction in its joints."""
    joints = tuple(replace(joint, lower=(-3.0,), upper=(3.0,), friction=(0.01,)) for joint in BAR.joints)
    other = replace(TIE, placement2=dl.Placement.of(p=(offset, 0.0, 0.0)), name="other")
    return dl.Mechanism(replace(BAR, joints=joints, constraints=()), [TIE, other])


def left(mechanism, found, **options) -> np.ndarray:
    """What the loops' rows leave, by the matrices of the step."""
    asked = system(mechanism, HOME, REST, REST, time_step=H, **options)
    return (asked.J @ found.system_velocity + asked.R * found.impulse + asked.b)[found.scene.bilateral]


CASES = [
    (method, beside)
    for method in (*EXACT, *BILATERAL, *SWEEPS)
    for beside in BESIDE
    if beside == "alone" or method not in BILATERAL
]


@pytest.mark.parametrize(("method", "beside"), CASES)
def test_contradictory_loops_are_reported_whatever_else_there_is(method, beside):
    mechanism, options = closed_twice(5e-3), BESIDE[beside]
    found = step(mechanism, HOME, REST, REST, time_step=H, method=method, **options)
    if method in (*EXACT, "ldl", "cg", "minres"):
        assert found.statuses is Status.LEAST_SQUARES
    else:
        assert found.statuses in (Status.LEAST_SQUARES, Status.ITERATIONS)
    assert found.residual == pytest.approx(2.5, rel=0.05)  # half of 5 mm in 1 ms, each
    rows = found.scene.bilateral
    np.testing.assert_allclose(found.residuals[rows], left(mechanism, found, **options), atol=1e-9)


@pytest.mark.parametrize(("method", "beside"), CASES)
def test_loops_that_repeat_each_other_are_met(method, beside):
    mechanism, options = closed_twice(0.0), BESIDE[beside]
    found = step(mechanism, HOME, REST, REST, time_step=H, method=method, tolerance=1e-10, **options)
    assert found.statuses is Status.CONVERGED
    assert np.abs(left(mechanism, found, **options)).max() < 1e-5


@pytest.mark.parametrize("how", ["pre", "post"])
@pytest.mark.parametrize("beside", BESIDE)
def test_contradictions_are_reported_in_the_phase_of_corrections_too(how, beside):
    found = step(closed_twice(5e-3), HOME, REST, REST, time_step=H, stabilization=how, **BESIDE[beside])
    assert found.statuses is Status.LEAST_SQUARES


def test_a_contradiction_among_states_that_have_none_is_reported_for_itself():
    q = HOME + np.array([[0.0, 0.0, 0.0], [1e-3, 0.0, 0.0]])
    both = dl.Mechanism(BAR, [replace(TIE, name="again")])
    free = dl.Mechanism(BAR, [dl.JointLock(joint.name, position=0.0, name=joint.name) for joint in BAR.joints])
    assert step(both, q, REST, REST, time_step=H, contacts=FAR).statuses.tolist() == [Status.CONVERGED] * 2
    assert step(free, q, REST, REST, time_step=H, contacts=FAR).statuses.tolist() == [Status.LEAST_SQUARES] * 2


# --- systems that are formed ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [*BILATERAL, "pgs", "sequential_impulses"])
@pytest.mark.parametrize("offset", [5e-3, 5e-2])
def test_solvers_of_a_contradictory_system_report_what_they_leave(method, offset):
    asked = system(closed_twice(offset), HOME, REST, REST, time_step=H)
    found = asked.solve(method)
    assert found.status in (Status.LEAST_SQUARES, Status.ITERATIONS)
    rows = asked.J @ found.x + asked.R * found.impulse + asked.b
    np.testing.assert_allclose(found.residual, rows, atol=1e-9 * np.abs(asked.b).max())
    assert np.abs(rows).max() <= 1.1 * np.abs(asked.b).max()
    momentum = asked.W @ found.x - asked.J.T @ found.impulse - asked.c
    assert np.abs(momentum).max() <= 1e-6 * (1.0 + np.abs(found.impulse).max())
