"""The statuses of constrained dynamics near singular poses are true, limb by limb, for every method.

A quadruped whose trunk is welded and whose feet are held: each leg is straight but for a distance of its own, 1e-16 … 1
rad. The oracle is dense algebra in NumPy: residuals in extended precision, each row beside the accelerations of what
moves it, and the singular values of the weighted rows.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import delassus as dl
from delassus.constrained.delassus.scales import row_groups, row_mobilities
from delassus.constrained.solvers.choice import SOLVERS
from delassus.constrained.solvers.kkt import dense_system
from delassus.constrained.solvers.status import Status
from scaling import Units

CHOSEN = ("caba", "prox_pv")  # what "auto" may choose; `make test-all` takes all
every_method = pytest.mark.parametrize(
    "method", [pytest.param(name, marks=[pytest.mark.slow] * (name not in CHOSEN)) for name in SOLVERS]
)
COUNT = 120


@cache
def quadruped() -> dl.Mechanism:
    """Four feet, a welded trunk, and the first foot once more."""
    robot = dl.load("quadruped")
    feet = [frame.name for frame in robot.frames("*foot")]
    held = [*map(dl.Point, feet), dl.Weld("trunk"), dl.Point(feet[0], name="again")]
    return dl.Mechanism(robot, held)


@cache
def nearly_straight(seed: int):
    """Configurations with every leg at a distance of its own from being straight, velocities and torques."""
    rng, model = np.random.default_rng(seed), quadruped().model
    steps = rng.normal(size=(COUNT, model.nv))
    steps[:, 6:] *= np.repeat(10.0 ** rng.uniform(-16.0, 0.0, (COUNT, 4)), 3, axis=1)
    v, tau = rng.normal(size=(2, COUNT, model.nv))
    return dl.integrate(model, np.broadcast_to(model.neutral(), (COUNT, model.nq)), steps), v, tau


def answers(method, q, v, tau, again=0.0, asked=0.0):
    """Statuses, and what the oracle says; `again` is the mask of the repeated foot, `asked` its acceleration."""
    mechanism = quadruped()
    mask, acceleration = np.ones((len(q), mechanism.m)), np.zeros((len(q), mechanism.m))
    mask[:, -3:], acceleration[:, -3:] = again, asked
    found = dl.constrained_dynamics(mechanism, q, v, tau, method=method, mask=mask, acceleration=acceleration)
    M, h, J, gamma = dense_system(mechanism, q, v, tau)
    systems = zip(M, h, J * mask[..., None], (gamma - acceleration) * mask, found.acceleration, strict=True)
    return found.status, [Truth(*system) for system in systems]


class Truth:
    """Whether rows are met by accelerations a, can be met by any, and whether their rank is beyond doubt."""

    def __init__(self, M, h, J, gamma, a):
        groups, weight = row_groups(quadruped()), 1.0 / np.sqrt(row_mobilities(quadruped()))
        size = np.abs(J) @ (np.abs(a) + np.abs(np.linalg.solve(M, h))) + np.abs(gamma)
        size = np.array([max(size[k] for k, other in enumerate(groups) if other == group) for group in groups])
        residual = J.astype(np.longdouble) @ a + gamma
        B = np.linalg.solve(np.linalg.cholesky(M), J.T).T * weight[:, None]
        U, s, _ = np.linalg.svd(B, full_matrices=False)
        moving = U[:, s > 1e-10 * s[0]]
        contradiction = weight * gamma - moving @ (moving.T @ (weight * gamma))
        self.met = np.all(np.abs(residual) <= 1e-8 * size)
        self.can_be_met = np.all(np.abs(contradiction / weight) <= 3e-11 * size)
        self.clear = np.all((s < 1e-11 * s[0]) | (s > 3e-6 * s[0]))


def check(statuses, truths):
    """No status says what is not so."""
    for status, truth in zip(statuses, truths, strict=True):
        assert status in (Status.CONVERGED, Status.LEAST_SQUARES, Status.PRECISION)
        assert truth.met or status != Status.CONVERGED
        assert not truth.can_be_met or status != Status.LEAST_SQUARES
        assert not truth.clear or status != Status.PRECISION


@every_method
def test_statuses_of_legs_that_are_nearly_straight_are_true(method):
    q, v, tau = nearly_straight(0)
    check(*answers(method, q, v, tau))


@every_method
def test_at_rest_rows_are_never_said_to_be_impossible(method):
    q, v, tau = nearly_straight(1)
    statuses, truths = answers(method, q, 0.0 * v, tau)
    assert not np.any(statuses == Status.LEAST_SQUARES)
    check(statuses, truths)


@every_method
def test_a_contradiction_in_one_leg_and_singular_others_are_told_apart(method):
    q, v, tau = nearly_straight(2)
    statuses, truths = answers(method, q, 0.0 * v, tau, again=1.0, asked=1.0)
    check(statuses, truths)
    assert not np.any(statuses == Status.CONVERGED)


@every_method
def test_a_large_force_in_one_leg_hides_no_unmet_row_of_another(method):
    model = quadruped().model
    bent = np.zeros(model.nv)
    bent[6:] = [0.0, 0.3, -0.6, 0.0, 0.3, -0.6, 0.0, 0.0, 1e-7, 0.0, 0.0, 3e-6]
    q = dl.integrate(model, model.neutral(), bent)[None]
    v = np.random.default_rng(0).normal(size=(1, model.nv))
    statuses, (truth,) = answers(method, q, v, 0.0 * v)
    assert not truth.met
    assert statuses == Status.PRECISION


@pytest.mark.parametrize("exponents", [(20, 0, 0), (-20, 0, 0), (0, 20, -20), (0, -20, 20)])
def test_statuses_near_singular_poses_are_the_same_in_all_units(exponents):
    units, mechanism = Units(*(2.0**k for k in exponents)), quadruped()
    model, other = mechanism.model, units.mechanism(mechanism)
    for k in range(3):
        q, v, tau = (x[k] for x in nearly_straight(3))
        expected = dl.constrained_dynamics.python(mechanism, q, v, tau).status
        found = dl.constrained_dynamics.python(other, units.q(model) * q, units.v(model) * v, units.tau(model) * tau)
        assert found.status == expected


@pytest.mark.parametrize("method", ["caba", "prox_pv"])
@pytest.mark.parametrize("rank", [None, 1e-12])
def test_joints_that_are_locked_rest_beside_a_torque_as_well_as_rounding_lets_them(method, rank):
    """Without gravity most rows have no acceleration of their own: rounding is all that there is to compare."""
    robot = replace(dl.load("biped"), constraints=(), gravity=(0.0, 0.0, 0.0))
    soles, locks = [dl.Weld("left_sole"), dl.Weld("right_sole")], [dl.JointLock(j.name) for j in robot.joints[1:]]
    mechanism, rng = dl.Mechanism(robot, [*soles, *locks]), np.random.default_rng(0)
    tau = np.eye(robot.nv)[8]
    for _ in range(3):
        q = robot.random_configuration(rng)
        options = {} if rank is None else {"rank": rank}
        found = dl.constrained_dynamics.python(mechanism, q, 0.0 * tau, tau, method=method, **options)
        assert found.status == Status.CONVERGED
        np.testing.assert_allclose(found.acceleration, 0.0, atol=1e-9)
