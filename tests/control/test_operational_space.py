"""Operational space: rows of tasks by Pinocchio, inertia and projectors by dense algebra, hierarchies by SciPy."""

from functools import cache

import numpy as np
import pinocchio as pin
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

import delassus as dl
from how_many import examples
from in_pinocchio import to_pinocchio
from refusals import refuses

C = dl.control
Status = C.ControlStatus
ARM = dl.load("arm7")
QUADRUPED = dl.load("quadruped")
HOME = QUADRUPED.posture("home")
STANDING = dl.Mechanism(QUADRUPED, [dl.Point(foot) for foot in QUADRUPED.frames("*_foot")])
WALKING = C.Tasks(
    STANDING, [C.CenterOfMassTask(), C.FrameTask("trunk", rows="rx ry rz", priority=1), C.PostureTask(priority=2)]
)


def moved(seed, model=QUADRUPED):
    rng = np.random.default_rng(seed)
    home = HOME if model is QUADRUPED else model.neutral()
    return dl.integrate.python(model, home, 0.3 * rng.normal(size=model.nv)), rng.normal(size=model.nv)


@pytest.fixture(scope="module")
def theirs():
    return to_pinocchio(QUADRUPED)


def test_rows_of_a_frame_are_those_of_pinocchio(theirs):
    q, v = moved(0)
    tasks = C.Tasks(QUADRUPED, C.FrameTask(QUADRUPED.frames("*_foot")[0].name))
    data, frame = theirs.createData(), theirs.getFrameId(QUADRUPED.frames("*_foot")[0].name)
    pin.forwardKinematics(theirs, data, q, v, np.zeros(theirs.nv))
    pin.computeJointJacobians(theirs, data, q)
    pin.updateFramePlacements(theirs, data)
    J = pin.getFrameJacobian(theirs, data, frame, pin.LOCAL_WORLD_ALIGNED)
    bias = pin.getFrameClassicalAcceleration(theirs, data, frame, pin.LOCAL_WORLD_ALIGNED).vector
    np.testing.assert_allclose(C.task_jacobian.python(tasks, q), J, atol=1e-12)
    np.testing.assert_allclose(C.task_bias.python(tasks, q, v), bias, atol=1e-12)


def test_rows_of_the_centre_of_mass_and_of_momentum_are_those_of_pinocchio(theirs):
    q, v = moved(1)
    tasks = C.Tasks(QUADRUPED, [C.CenterOfMassTask(), C.MomentumTask(rows="rx rz")])
    data = theirs.createData()
    pin.computeCentroidalMomentumTimeVariation(theirs, data, q, v, np.zeros(theirs.nv))
    pin.centerOfMass(theirs, data, q, v, np.zeros(theirs.nv))
    J = np.concatenate(
        [pin.jacobianCenterOfMass(theirs, data, q), pin.ccrba(theirs, theirs.createData(), q, v)[[3, 5]]]
    )
    bias = np.concatenate([data.acom[0], data.dhg.angular[[0, 2]]])
    np.testing.assert_allclose(C.task_jacobian.python(tasks, q), J, atol=1e-12)
    np.testing.assert_allclose(C.task_bias.python(tasks, q, v), bias, atol=1e-12)


def constrained_inverse(mechanism, q):
    """Φ = M⁻¹ - M⁻¹ Jᵀ (J M⁻¹ Jᵀ)⁺ J M⁻¹."""
    inverse = np.linalg.inv(dl.crba.python(mechanism.model, q))
    J = dl.constraint_jacobian.python(mechanism, q)
    return inverse - inverse @ J.T @ scipy.linalg.pinvh(J @ inverse @ J.T, rtol=1e-11) @ J @ inverse


def test_inertia_inverse_and_projector_are_those_of_dense_algebra():
    q, v = moved(2)
    tasks = C.Tasks(STANDING, WALKING.tasks[:2])
    found, Phi = C.operational_space.python(tasks, q, v), constrained_inverse(STANDING, q)
    Lambda = np.linalg.inv(found.jacobian @ Phi @ found.jacobian.T)
    np.testing.assert_allclose(found.inertia, Lambda, atol=1e-9 * np.max(abs(Lambda)))
    np.testing.assert_allclose(found.inverse, Phi @ found.jacobian.T @ Lambda, atol=1e-10)
    np.testing.assert_allclose(found.jacobian @ Phi @ found.projector, 0.0, atol=1e-9)
    assert found.statuses is Status.REALISED


def test_redundant_constraints_change_nothing():
    q, v = moved(2)
    twice = dl.Mechanism(QUADRUPED, STANDING.constraints * 2)
    found = [C.operational_space.python(C.Tasks(m, WALKING.tasks[:1]), q, v).inertia for m in (STANDING, twice)]
    np.testing.assert_allclose(*found, atol=1e-9 * np.max(abs(found[0])))


@pytest.mark.parametrize("distance", [0.0, *10.0 ** np.arange(-16, 1.0)])
def test_a_stretched_arm_has_finite_inertia_and_says_that_it_is_singular(distance):
    tasks = C.Tasks(ARM, C.FrameTask("tool"))
    q = distance * np.array([0.1, 0.4, 0.2, -0.9, 0.1, 0.7, 0.1])
    found = C.operational_space.python(tasks, q, np.zeros(7))
    assert all(np.all(np.isfinite(x)) for x in found)
    if distance < 1e-8 or distance > 1e-3:
        assert found.statuses is (Status.REALISED if distance > 1e-3 else Status.SINGULAR)
    if distance > 1e-3:
        leaks = found.jacobian @ np.linalg.inv(dl.crba.python(ARM, q)) @ found.projector
        np.testing.assert_allclose(leaks, 0.0, atol=1e-6)


# --- dynamics ---------------------------------------------------------------------------------------------------------


def forward(mechanism, robot, q, v, torque):
    """The acceleration of torques, by dense algebra."""
    M, c = dl.crba.python(mechanism.model, q), dl.bias_torques.python(mechanism.model, q, v)
    J, gamma = dl.constraint_jacobian.python(mechanism, q), dl.constraint_bias.python(mechanism, q, v)
    system = np.block([[M, -J.T], [J, np.zeros((len(J), len(J)))]])
    return scipy.linalg.lstsq(system, np.concatenate([robot.B @ torque - c, -gamma]), cond=1e-13)[0][: mechanism.nv]


@cache
def walking():
    q, v = moved(3)
    J = dl.constraint_jacobian.python(STANDING, q)
    v = v - np.linalg.pinv(J) @ (J @ v)
    demands = np.random.default_rng(4).normal(size=WALKING.t)
    return q, v, demands, C.task_inverse_dynamics.python(WALKING, q, v, demands)


def test_torques_give_the_acceleration_that_is_told():
    q, v, _, found = walking()
    back = forward(STANDING, WALKING.robot, q, v, found.torque)
    np.testing.assert_allclose(back, found.acceleration, atol=1e-9 * np.max(abs(back)))


def test_a_hierarchy_is_that_of_null_spaces():
    q, v, demands, found = walking()
    J, bias = C.task_jacobian.python(WALKING, q), C.task_bias.python(WALKING, q, v)
    held, gamma = dl.constraint_jacobian.python(STANDING, q), dl.constraint_bias.python(STANDING, q, v)
    root = scipy.linalg.cholesky(dl.crba.python(QUADRUPED, q), lower=False)  # energy is the square of root @ v
    x, Z = np.zeros(18), np.eye(18)
    parts = [(held, -gamma), *((J[list(rows)], (demands - bias)[list(rows)]) for rows in WALKING.levels)]
    for rows, b in parts:
        A = rows @ np.linalg.inv(root)
        x = x + Z @ scipy.linalg.lstsq(A @ Z, b - A @ x, cond=1e-9)[0]
        if np.linalg.matrix_rank(A @ Z, tol=1e-9) == Z.shape[1]:
            break
        Z = Z @ scipy.linalg.null_space(A @ Z, rcond=1e-9)
    expected = np.linalg.solve(root, x)
    np.testing.assert_allclose(found.acceleration, expected, atol=1e-8 * np.max(abs(expected)))


def test_lower_priorities_do_not_disturb_higher_ones():
    _, _, _, found = walking()
    np.testing.assert_allclose(found.residual[:6], 0.0, atol=1e-9)
    assert found.statuses is Status.NEAREST and "PostureTask" in found.describe()  # twelve rows are too many


def test_an_underactuated_robot_is_asked_for_what_it_can_do_alone():
    pendulum = dl.load("double_pendulum")
    first, second = (joint.name for joint in pendulum.joints)
    robot = C.ActuatedMechanism(pendulum, second)
    tasks = C.Tasks(robot, C.PostureTask(first))
    q, v = np.array([0.3, 0.4]), np.array([0.5, -1.0])
    found = C.task_inverse_dynamics.python(tasks, q, v, np.array([1.0]))
    a = dl.aba.python(pendulum, q, v, robot.B @ found.torque)
    assert abs(a[0] - 1.0) < 1e-10 and found.statuses is Status.REALISED


def test_contradictory_tasks_are_met_by_their_weights():
    tool = C.FrameTask("tool", rows="x y z")
    tasks = C.Tasks(ARM, [tool, C.FrameTask("tool", rows="x y z", weight=3.0)])
    q = np.array([0.1, 0.4, 0.2, -0.9, 0.1, 0.7, 0.1])
    found = C.task_inverse_dynamics.python(tasks, q, np.zeros(7), np.array([1.0, 0, 0, 0, 0, 0]))
    J = C.task_jacobian.python(tasks, q)[:3]
    np.testing.assert_allclose(J @ found.acceleration, [0.25, 0.0, 0.0], atol=1e-10)
    assert found.statuses is Status.NEAREST and "missing is 0.75" in found.describe()


def test_no_tasks_and_no_rows_are_refused_in_words():
    with refuses("nothing-to-do"):
        C.Tasks(ARM, [])
    with refuses("unknown-row"):
        C.CenterOfMassTask(rows="x rx")
    with refuses("out-of-range"):
        C.PostureTask(weight=-1.0)
    with refuses("unknown-frame", "toolx"):
        C.Tasks(ARM, C.FrameTask("toolx"))


def test_an_item_that_is_not_finite_gets_no_torque():
    loop = C.Tasks(C.ActuatedMechanism(dl.Mechanism(dl.load("four_bar")), "crank*"), C.PostureTask("crank*"))
    q = np.tile(loop.posture("home"), (3, 1))
    q[1, 0] = np.nan
    found = C.task_inverse_dynamics(loop, q, np.zeros(3), np.ones(1))
    assert found.status.tolist() == [Status.REALISED, Status.NOT_FINITE, Status.REALISED]
    assert np.array_equal(found.torque[0], found.torque[2]) and not np.any(found.torque[1])
    alone = C.task_inverse_dynamics(loop, q[0], np.zeros(3), np.ones(1))
    assert np.array_equal(alone.torque, found.torque[0])


def test_parameters_of_a_model_come_with_its_tasks():
    model = dl.load("double_pendulum").parametric("gravity")
    tasks = C.Tasks(model, C.PostureTask())
    q, v, demands = np.random.default_rng(0).normal(size=(3, 2))
    found = C.task_inverse_dynamics(tasks, q, v, demands, parameters=[0.0, 0.0, -1.6])
    expected = dl.rnea(model, q, v, demands, parameters=[0.0, 0.0, -1.6])
    np.testing.assert_allclose(found.torque, expected, atol=1e-10)


@settings(max_examples=examples(10), deadline=None)
@given(st.integers(0, 10_000))
def test_nothing_is_asked_that_constraints_forbid(seed):
    """A closed four-bar whose two tasks fight: the loop stays closed, whatever."""
    loop = dl.Mechanism(dl.load("four_bar"))
    robot = C.ActuatedMechanism(loop, "crank*")
    tasks = C.Tasks(robot, [C.PostureTask("crank*"), C.PostureTask("rocker*")])
    rng = np.random.default_rng(seed)
    start = loop.posture("home") + np.array([rng.uniform(-0.5, 0.5), 0.0, 0.0])
    q = dl.assemble.python(loop, start, locked=["crank*"]).q
    found = C.task_inverse_dynamics.python(tasks, q, np.zeros(3), rng.normal(size=2))
    J = dl.constraint_jacobian.python(loop, q)
    assert np.max(abs(J @ found.acceleration)) < 1e-10 * max(1.0, np.max(abs(found.acceleration)))
    back = forward(loop, robot, q, np.zeros(3), found.torque)
    np.testing.assert_allclose(back, found.acceleration, atol=1e-9 * max(1.0, np.max(abs(back))))


def test_rows_are_named_numbered_or_all_of_a_kind():
    named = C.FrameTask("tool", rows="x y z")
    assert named == C.FrameTask(ARM.frame("tool"), rows="position") == C.FrameTask("tool", rows=(0, 1, 2))
    with refuses("not-a-whole-number", "priority"):
        C.FrameTask("tool", priority=0.5)


@pytest.mark.parametrize("compliance", [0.0, 0.3])
def test_tasks_know_that_rows_of_constraints_give_way(compliance):
    q, v = np.array([0.1, 0.4, 0.2, -0.9, 0.1, 0.7, 0.1]), np.linspace(-0.5, 0.5, 7)
    held = dl.Mechanism(ARM, [dl.Point("link5", rows="z", axes="world", compliance=compliance)])
    tool = C.FrameTask("tool", rows="position")
    space = C.operational_space.python(C.Tasks(held, tool), q, v)
    rest = dl.kkt(held, q, v, np.zeros(7))[0]
    response = np.transpose([dl.kkt(held, q, v, unit)[0] - rest for unit in np.eye(7)])
    np.testing.assert_allclose(space.inertia @ space.jacobian @ response @ space.jacobian.T, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(space.jacobian @ response @ space.projector, 0.0, atol=1e-9)
    few = C.ActuatedMechanism(held, ["link1_joint", "link2_joint", "link4_joint"])
    found = C.task_inverse_dynamics.python(C.Tasks(few, tool), q, v, np.array([0.3, -0.2, 0.5]))
    np.testing.assert_allclose(dl.kkt(held, q, v, few.B @ found.torque)[0], found.acceleration, atol=1e-8)
