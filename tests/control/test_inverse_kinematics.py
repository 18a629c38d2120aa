"""Inverse kinematics: velocities within limits against SciPy's bounded least squares, poses to a tolerance."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

import delassus as dl
from delassus.spatial.quaternions import quaternion_from_rotation
from how_many import examples
from refusals import refuses

C = dl.control
Status = C.ControlStatus
ARM = dl.load("arm7")
TOOL = C.Tasks(ARM, C.FrameTask("tool"))
DELTA = C.Tasks(dl.Mechanism(dl.load("delta")), C.FrameTask("tool", rows="x y z"))
BENT = np.array([0.1, 0.4, 0.2, -0.9, 0.1, 0.7, 0.1])


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(0, 100_000))
def test_velocities_within_limits_are_those_of_bounded_least_squares(seed):
    rng = np.random.default_rng(seed)
    q, rates = rng.uniform(-1, 1, 7), rng.normal(size=6)
    lower, upper = -rng.uniform(0.0, 1.0, 7), rng.uniform(0.0, 1.0, 7)
    found = C.differential_inverse_kinematics.python(TOOL, q, rates, lower=lower, upper=upper)
    J = C.task_jacobian.python(TOOL, q) / TOOL.sizes[:, None]
    best = lsq_linear(J, rates / TOOL.sizes, bounds=(lower, upper), method="bvls", tol=1e-14).cost
    cost = 0.5 * np.sum((J @ found.velocity - rates / TOOL.sizes) ** 2)
    assert np.all(found.velocity >= lower) and np.all(found.velocity <= upper)
    assert cost <= best * (1.0 + 1e-6) + 1e-9
    assert found.statuses is not Status.ITERATIONS


def test_velocities_are_the_slowest_that_move_the_tool():
    rates = np.array([0.1, -0.2, 0.3, 0.1, 0.0, -0.1])
    found = C.differential_inverse_kinematics.python(TOOL, BENT, rates)
    J, root = C.task_jacobian.python(TOOL, BENT), np.sqrt(np.diagonal(dl.crba.python(ARM, BENT)))
    expected = np.linalg.pinv(J / root) @ rates / root
    np.testing.assert_allclose(
        found.velocity, expected, atol=1e-5
    )  # the damping takes 1e-10 over small singular values
    assert found.statuses is Status.REALISED


def test_joints_stop_at_their_limits_of_position():
    q = BENT.copy()
    q[3] = ARM.lower[3] + 1e-3
    found = [
        C.differential_inverse_kinematics.python(TOOL, q, [0.0, 0.0, -1.0, 0.0, 0.0, 0.0], step=s) for s in (None, 0.01)
    ]
    assert found[0].velocity[3] < -0.1 and found[0].statuses is Status.REALISED
    assert found[1].velocity[3] == (ARM.lower[3] - q[3]) / 0.01 and found[1].bounded[3] == -1


def test_loops_stay_closed_while_the_platform_moves():
    home = DELTA.posture("home")
    found = C.differential_inverse_kinematics.python(DELTA, home, [0.1, 0.2, 0.3])
    J = dl.constraint_jacobian.python(DELTA.mechanism, home)
    np.testing.assert_allclose(J @ found.velocity, 0.0, atol=1e-10)
    np.testing.assert_allclose(found.residual, 0.0, atol=1e-8)


def test_a_singular_direction_is_not_chased():
    stretched = np.zeros(7)
    found = C.differential_inverse_kinematics.python(TOOL, stretched, [0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    assert found.statuses is Status.NEAREST and np.max(abs(found.velocity)) < 1e-3


@pytest.mark.parametrize("distance", [0.0, *10.0 ** np.arange(-16, 1.0)])
def test_near_a_stretched_arm_velocities_stay_within_their_limits(distance):
    rates, most = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0]), np.full(7, 2.0)
    found = C.differential_inverse_kinematics.python(TOOL, distance * BENT, rates, lower=-most, upper=most)
    assert np.all(np.abs(found.velocity) <= most) and found.statuses in (Status.REALISED, Status.NEAREST)
    assert np.sum((found.residual / TOOL.sizes) ** 2) <= np.sum((rates / TOOL.sizes) ** 2) * (1.0 + 1e-9)


def test_rates_that_are_no_numbers_give_no_velocity():
    rates = np.tile([0.1, 0.0, 0.0, 0.0, 0.0, 0.0], (3, 1))
    rates[1, 2] = np.nan
    found = C.differential_inverse_kinematics(TOOL, BENT, rates)
    assert found.status.tolist() == [Status.REALISED, Status.NOT_FINITE, Status.REALISED]
    assert not np.any(found.velocity[1]) and np.array_equal(found.velocity[0], found.velocity[2])


def pose_of(q):
    R, p = dl.frame_placement.python(ARM, q, frame="tool")
    return np.concatenate([p, quaternion_from_rotation(R)])


@settings(max_examples=examples(4), deadline=None)
@given(st.integers(0, 100_000))
def test_a_pose_nearby_is_reached_to_the_tolerance(seed):
    rng = np.random.default_rng(seed)
    q = BENT + 0.2 * rng.normal(size=7)
    found = C.inverse_kinematics.python(TOOL, BENT, pose_of(q))
    assert found.statuses is dl.Status.CONVERGED
    off = pose_of(found.q) - pose_of(q)
    assert np.max(abs(off[:3])) < 1e-9 and np.max(abs(off[3:])) < 1e-9


def test_out_of_reach_is_least_squares_and_limits_hold():
    target = 3.0 * pose_of(BENT)
    target[3:] /= 3.0
    found = C.inverse_kinematics(C.Tasks(ARM, C.FrameTask("tool", rows="x y z")), BENT, target[:3], iterations=2000)
    reach = np.linalg.norm(dl.frame_placement.python(ARM, found.q, frame="tool")[1] - target[:3])
    assert found.statuses is dl.Status.LEAST_SQUARES
    assert np.all(found.q >= ARM.lower) and np.all(found.q <= ARM.upper)
    for k in range(7):  # no joint alone comes nearer
        for turn in (1e-3, -1e-3):
            q = np.clip(found.q + turn * np.eye(7)[k], ARM.lower, ARM.upper)
            assert np.linalg.norm(dl.frame_placement.python(ARM, q, frame="tool")[1] - target[:3]) > reach - 1e-8


def test_a_limit_in_the_way_is_kept():
    low = pose_of(np.array([0.0, 0.5, 0.0, ARM.lower[3] - 0.2, 0.0, 0.5, 0.0]))
    found = C.inverse_kinematics.python(TOOL, [0.0, 0.5, 0.0, -1.8, 0.0, 0.5, 0.0], low)
    assert np.all(found.q >= ARM.lower) and np.all(found.q <= ARM.upper)


def test_the_delta_robot_closes_its_loops_and_compiled_batches_agree():
    home = DELTA.posture("home")
    origin = C.task_error.python(DELTA, home, np.zeros(3))
    targets = origin + np.random.default_rng(0).uniform(-0.05, 0.05, (9, 3))
    targets[4, 1] = np.nan
    found = C.inverse_kinematics(DELTA, home, targets)
    good = np.arange(9) != 4
    assert np.array_equal(found.status == dl.Status.CONVERGED, good) and found.status[4] == dl.Status.NOT_FINITE
    assert np.max(abs(dl.constraint_error(DELTA.mechanism, found.q[good]))) < 1e-9
    alone = C.inverse_kinematics(DELTA, home, targets[7])
    assert np.array_equal(alone.q, found.q[7])


def test_momentum_has_no_pose():
    with refuses("not-supported"):
        C.inverse_kinematics.python(C.Tasks(ARM, C.MomentumTask(rows="x")), BENT, np.zeros(0))


@pytest.mark.parametrize("given", [{"damping": -1.0}, {"step": -0.01}, {"damping": "much"}])
def test_steps_and_damping_that_make_no_sense_are_refused(given):
    with pytest.raises(dl.DelassusError, match=next(iter(given))):
        C.differential_inverse_kinematics(TOOL, BENT, np.zeros(6), **given)


def test_limits_that_contradict_each_other_are_told():
    found = C.differential_inverse_kinematics.python(TOOL, BENT, np.zeros(6), lower=np.zeros(7), upper=np.full(7, -1.0))
    np.testing.assert_array_equal(found.velocity, 0.0)
    assert found.statuses is Status.NEAREST


def test_a_task_of_ones_own_needs_no_word_on_units():
    class Sum:
        priority, weight = 0, 1.0

        def count(self, model):
            return 1

        def jacobian(self, model, q):
            return dl.numpy.ones((1, model.nv))

        def bias(self, model, q, v):
            return dl.numpy.zeros(1)

    found = C.differential_inverse_kinematics.python(C.Tasks(ARM, Sum()), BENT, [0.7])
    assert np.sum(found.velocity) == pytest.approx(0.7, rel=1e-6)
