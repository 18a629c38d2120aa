"""Reactive control: programs of robots against other people's solvers and mathematics, closed loops, bad input."""

import dataclasses
import math
import sys
from pathlib import Path

import numpy as np
import pytest

import delassus as dl
from delassus.control import (
    FollowCenterOfMass,
    FollowForce,
    FollowFrame,
    FollowMomentum,
    FollowPosture,
    Nominal,
    QPStatus,
    ReactiveControl,
    Support,
)
from delassus.control.reactive.build import build_qp, task_errors
from delassus.control.reactive.react import react
from delassus.control.reactive.supports import ReactiveError

ROBOT = dl.load("quadruped")
HOME = ROBOT.posture("home")
FEET = [frame.name for frame in ROBOT.frames("*_foot")]
TASKS = (
    FollowCenterOfMass(weight=10.0, stiffness=50.0),
    FollowFrame(weight=5.0, stiffness=50.0, frame="trunk", rows="rotation"),
    FollowPosture(weight=0.1, stiffness=20.0),
    Nominal(force=1e-4),
)


def standing(**options):
    given = {"tasks": TASKS, "supports": [Support(foot, 0.6) for foot in FEET]}
    return ReactiveControl(ROBOT, **{**given, **options})


def state(seed):
    rng = np.random.default_rng(seed)
    q, v = HOME.copy(), 0.2 * rng.normal(size=ROBOT.nv)
    q[7:] += 0.1 * rng.normal(size=12)
    return q, v


def built(control, q, v, reference):
    """A program, without compiling anything."""
    data = build_qp.python(control, q, v, reference)
    return dl.QP(*data, cones=(3,) * (control.cone_rows // 3))


def reacted(control, q, v, reference, **given):
    """A reaction, without compiling anything."""
    return react.python(control, q, v, reference, **given)


def motion_missed(control, q, v, found, gravity=True):
    """M a + c - B u - Jᵀ f, by kernels of their own."""
    J = np.concatenate(
        [
            dl.frame_jacobian.python(ROBOT, q, frame=s.frame, reference="LOCAL_WORLD_ALIGNED")[:3]
            for s in control.supports
        ]
    )
    c = dl.rnea.python(ROBOT, q, v, np.zeros(ROBOT.nv))
    torque = np.concatenate([np.zeros(6), found.torque])
    return dl.crba.python(ROBOT, q) @ found.acceleration + c - torque - J.T @ found.force


# --- the program ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cone", ["pyramid", "second order"])
@pytest.mark.parametrize("seed", range(3))
def test_torques_forces_and_accelerations_obey_the_equation_of_motion(seed, cone):
    control = standing(cone=cone)
    q, v = state(seed)
    found = reacted(control, q, v, control.reference(HOME))
    assert found.status == QPStatus.SOLVED
    assert max(found.primal, found.dual) <= 1e-8
    np.testing.assert_allclose(motion_missed(control, q, v, found), 0.0, atol=1e-7)


@pytest.mark.parametrize(("cone", "method"), [("pyramid", "proxsuite"), ("second order", "clarabel")])
def test_the_answer_is_other_peoples(cone, method):
    control = standing(cone=cone, tasks=[*TASKS[:3], Nominal(force=1e-2, acceleration=1e-2)])
    q, v = state(5)
    reference = control.reference(HOME)
    theirs = built(control, q, v, reference).solve(method)
    found = reacted(control, q, v, reference)
    np.testing.assert_allclose(found.acceleration, theirs.x[:18], atol=1e-4)
    np.testing.assert_allclose(found.force, theirs.x[18:], atol=1e-3)


@pytest.mark.parametrize("cone", ["pyramid", "second order"])
def test_forces_are_in_their_cones_though_the_task_asks_for_more(cone):
    control = standing(cone=cone)
    reference = control.reference(HOME, {"com.acceleration": [20.0, 5.0, 0.0]})
    found = reacted(control, HOME, np.zeros(18), reference)
    force = found.force.reshape(4, 3)
    edge = np.linalg.norm(force[:, :2], axis=1) - 0.6 * force[:, 2]
    assert found.status == QPStatus.SOLVED
    assert edge.max() <= 1e-8
    if cone == "second order":
        assert edge.max() > -1e-6  # the cone is used up to its edge, the pyramid inside is not


def test_a_pyramid_around_the_cone_allows_more_than_one_inside():
    missed = {}
    for cone in ("pyramid", "second order", "outer pyramid"):
        control = standing(cone=cone)
        reference = control.reference(HOME, {"com.acceleration": [20.0, 8.0, 0.0]})
        found = reacted(control, HOME, np.zeros(18), reference)
        x = np.concatenate([found.acceleration, found.force])
        missed[cone] = np.linalg.norm(task_errors.python(control, HOME, np.zeros(18), reference, x)[:3])
    assert missed["outer pyramid"] < missed["second order"] < missed["pyramid"]


def test_the_lectures_qp_has_its_known_answer():
    """Without limits, min ½‖a - a*‖²_Q₁ + ½‖f - f*‖²_Q₂ + ½‖u - u*‖²_Q₃ is a linear system."""
    rng = np.random.default_rng(1)
    roots = [rng.normal(size=(k, k)) for k in (18, 12, 12)]
    Q1, Q2, Q3 = (root @ root.T + np.eye(len(root)) for root in roots)
    control = standing(
        tasks=[Nominal(acceleration=Q1, force=Q2, torque=Q3)],
        supports=[Support(foot, 1e3, least=0.0) for foot in FEET],
        torque_limits=False,
        joint_limits=False,
    )
    q, v = HOME, np.zeros(18)
    nominal = {"acceleration": 0.1 * rng.normal(size=18), "torque": rng.normal(size=12)}
    nominal["force"] = np.tile([0.0, 0.0, 30.0], 4)
    reference = control.reference(q, {f"nominal.{name}": x for name, x in nominal.items()})
    found = reacted(control, q, v, reference)
    J = np.concatenate(
        [dl.frame_jacobian.python(ROBOT, q, frame=foot, reference="LOCAL_WORLD_ALIGNED")[:3] for foot in FEET]
    )
    M, c = dl.crba.python(ROBOT, q), dl.rnea.python(ROBOT, q, v, np.zeros(18))
    B = np.eye(18)[:, 6:]
    weights = np.zeros((42, 42))
    weights[:18, :18], weights[18:30, 18:30], weights[30:, 30:] = Q1, Q2, Q3
    rows = np.block([[M, -J.T, -B], [J, np.zeros((12, 24))]])
    K = np.block([[weights, rows.T], [rows, np.zeros((30, 30))]])
    asked = weights @ np.concatenate([nominal["acceleration"], nominal["force"], nominal["torque"]])
    expected = np.linalg.solve(K, np.concatenate([asked, -c, np.zeros(12)]))
    assert found.force.reshape(4, 3)[:, 2].min() > 1.0
    np.testing.assert_allclose(found.acceleration, expected[:18], atol=1e-6)
    np.testing.assert_allclose(found.force, expected[18:30], atol=1e-6)
    np.testing.assert_allclose(found.torque, expected[30:42], atol=1e-6)


def test_momentum_and_force_tasks_get_what_they_ask_for():
    control = standing(
        tasks=[FollowMomentum(weight=1.0), FollowForce(weight=1e-6, support=FEET[0]), FollowPosture(weight=1e-6)]
    )
    rate = np.array([2.0, 1.0, 5.0, 0.1, 0.2, 0.0])
    reference = control.reference(HOME, {"momentum.rate": rate})
    found = reacted(control, HOME, np.zeros(18), reference)
    A = dl.dynamics.centroidal_momentum_matrix.python(ROBOT, HOME)
    np.testing.assert_allclose(A @ found.acceleration, rate, atol=1e-3)
    total = found.force.reshape(4, 3).sum(0)  # Newton: forces make the rate of momentum, and carry the weight
    np.testing.assert_allclose(total, rate[:3] + np.array([0.0, 0.0, 9.81 * ROBOT.mass]), atol=1e-3)


def test_a_foot_that_is_lifted_carries_nothing_and_is_free_to_move():
    control = standing(tasks=[*TASKS, FollowFrame("swing", 10.0, frame=FEET[0], rows="position")])
    reference = control.reference(HOME, {f"{FEET[0]}.active": 0.0, "swing.acceleration": [0, 0, 2.0, 0, 0, 0]})
    found = reacted(control, HOME, np.zeros(18), reference)
    assert np.abs(found.force[:3]).max() < 1e-8
    J = dl.frame_jacobian.python(ROBOT, HOME, frame=FEET[0], reference="LOCAL_WORLD_ALIGNED")[:3]
    assert (J @ found.acceleration)[2] > 1.0


def test_the_pressure_of_a_sole_stays_inside_of_it():
    robot = dl.load("humanoid")
    home = robot.posture("home")
    soles = [Support(f"{side}_sole", 0.5, size=(0.2, 0.08), least=10.0) for side in ("left", "right")]
    tasks = [FollowCenterOfMass(weight=10.0), FollowPosture(weight=0.1, stiffness=20.0), Nominal(force=1e-5)]
    control = ReactiveControl(robot, tasks, soles)
    reference = control.reference(home, {"com.acceleration": [3.0, 0.0, 0.0]})
    found = reacted(control, home, np.zeros(36), reference)
    wrench = found.force.reshape(2, 6)
    assert found.status == QPStatus.SOLVED
    pressure = np.stack([-wrench[:, 4], wrench[:, 3]], 1) / wrench[:, 2:3]
    assert np.all(np.abs(pressure) <= np.array([0.1, 0.04]) + 1e-9)
    assert np.abs(pressure[:, 0]).max() > 0.09  # the task asks for more than the soles can give
    assert wrench[:, 2].min() >= 10.0 - 1e-8


def test_a_joint_does_not_run_into_its_limit():
    control = standing(supports=[], tasks=[FollowPosture(weight=1.0)])
    q, v = HOME.copy(), np.zeros(18)
    q[7] = ROBOT.upper[7] - 0.01
    reference = control.reference(HOME, {"posture.acceleration": np.full(18, 1e3)})
    found = reacted(control, q, v, reference)
    T = control.horizon
    assert q[7] + 0.5 * T * T * found.acceleration[6] <= ROBOT.upper[7] + 1e-9


def test_torques_stay_within_their_limits():
    control = standing(supports=[])
    reference = control.reference(HOME, {"posture.acceleration": np.full(18, 1e5)})
    found = reacted(control, HOME, np.zeros(18), reference)
    assert np.all(np.abs(found.torque) <= ROBOT.effort_limit[6:])


# --- what is told -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pendulum():
    """A small robot, compiled: two joints, one task."""
    return ReactiveControl(dl.load("double_pendulum"), [FollowPosture(weight=1.0, stiffness=10.0)])


def test_build_and_solve_can_be_done_apart(pendulum):
    q, v, reference = np.array([0.3, -0.2]), np.array([0.5, 0.1]), pendulum.reference(np.zeros(2))
    qp = pendulum.qp(q, v, reference)
    answer = qp.solve()
    reaction = pendulum(q, v, reference)
    np.testing.assert_allclose(answer.x, reaction.x, atol=1e-9)
    expected = dl.rnea(pendulum.model, q, v, -10.0 * q - 2.0 * math.sqrt(10.0) * v)
    np.testing.assert_allclose(reaction.torque, expected, atol=1e-6)


def test_each_state_of_a_batch_has_its_own_end(pendulum):
    q = np.array([[0.3, -0.2], [np.nan, 0.0], [0.1, 0.1]])
    reaction = pendulum(q, np.zeros(2), pendulum.reference(np.zeros(2)))
    assert reaction.status.tolist() == [0, QPStatus.NOT_FINITE, 0]
    assert np.isfinite(reaction.torque).all()
    assert not reaction.torque[1].any()
    np.testing.assert_array_equal(reaction.torque[2], pendulum(q[2], np.zeros(2), reaction.reference).torque)
    assert "1 of 3" in reaction.describe()


def test_a_reaction_tells_what_tasks_miss(pendulum):
    reaction = pendulum(np.array([0.3, 0.0]), np.zeros(2), pendulum.reference(np.zeros(2)))
    assert np.abs(reaction.task_errors["posture"]).max() < 1e-6
    assert "'posture' misses most" in reaction.describe()


def test_rows_have_names():
    control = standing(cone="second order")
    names = control.row_names
    assert {"front_left_foot normal", "front_left_thigh_joint torque", "front_left_calf_joint range"} <= set(names)


def test_frames_are_given_by_themselves_or_by_name():
    by_itself = standing(tasks=[FollowFrame(frame=ROBOT.frame("trunk"))], supports=[Support(ROBOT.frame(FEET[0]))])
    assert by_itself == standing(tasks=[FollowFrame("trunk", rows="x y z rx ry rz")], supports=[Support(FEET[0])])


@pytest.mark.parametrize("length", [1e-3, 2.0, -1.0])
def test_the_length_of_a_quaternion_does_not_count(length):
    control = standing()
    turned = np.array([0.0, 0.0, 0.1, 1.0]) / math.sqrt(1.01)
    given = [control.reference(HOME, {"trunk.rotation": q}) for q in (turned, length * turned)]
    errors = [task_errors.python(control, HOME, np.zeros(18), r, np.zeros(control.n)) for r in given]
    np.testing.assert_allclose(*errors, atol=1e-12)


# --- constraints and limits of the model ------------------------------------------------------------------------------

ARM = dl.load("double_pendulum")
BENT, TURNING = np.array([0.3, 0.8]), np.array([0.2, -0.1])


def held(**options):
    """An arm whose tip is held, with a motor at its shoulder."""
    mechanism = dl.Mechanism(ARM, [dl.Point("tip", rows="z", axes="world", **options)])
    return ReactiveControl(dl.control.ActuatedMechanism(mechanism, "upper_joint"), FollowPosture(stiffness=20.0))


@pytest.mark.parametrize("compliance", [0.0, 0.5])
def test_constraints_move_as_forward_dynamics_says_whether_they_give_way_or_not(compliance):
    control = held(compliance=compliance)
    found = reacted(control, BENT, TURNING, control.reference(np.zeros(2)))
    robot = control.actuated
    forward = dl.kkt(robot.mechanism, BENT, TURNING, robot.B @ found.torque)
    np.testing.assert_allclose(found.acceleration, forward[0], atol=1e-6)
    np.testing.assert_allclose(found.force, forward[1], atol=1e-6)


def test_a_constraint_that_moves_is_told_the_time():
    def position(t):
        return dl.numpy.stack([0.0 * t, 0.0 * t, 0.1 * dl.numpy.sin(t)])

    control = held(position=position, position_gain=100.0)
    reference = control.reference(np.zeros(2), time=0.7)
    found = reacted(control, BENT, TURNING, reference)
    robot = control.actuated
    forward = dl.kkt(robot.mechanism, BENT, TURNING, robot.B @ found.torque, time=0.7)
    np.testing.assert_allclose(found.acceleration, forward[0], atol=1e-6)


MOTORS = """<mujoco><worldbody><body>
  <joint name="a" axis="0 1 0"/><geom type="capsule" size=".02" fromto="0 0 0 .5 0 0"/>
  <body pos=".5 0 0"><joint name="b" axis="0 1 0"/><geom type="capsule" size=".02" fromto="0 0 0 .5 0 0"/></body>
  </body></worldbody><actuator>
  <motor name="geared" joint="a" gear="5" ctrlrange="-1 1" ctrllimited="true"/>
  <motor name="uneven" joint="b" forcerange="-0.5 3"/></actuator></mujoco>"""


@pytest.mark.parametrize(("pose", "uneven"), [(-9.0, -0.5), (9.0, 3.0)])
def test_motors_have_the_ranges_of_their_controls_and_forces(pose, uneven):
    control = ReactiveControl(dl.load(MOTORS), FollowPosture(stiffness=1e4))
    found = reacted(control, np.zeros(2), np.zeros(2), control.reference(np.full(2, pose)))
    assert np.abs(found.torque[0]) <= 1.0
    assert found.torque[1] == pytest.approx(uneven, abs=1e-9)


@pytest.mark.parametrize(("q", "v", "a"), [(1.5, 0.0, -40.0), (0.99, 2.5, -90.0), (1.2, -3.0, 20.0)])
def test_a_joint_beyond_its_range_comes_back_no_faster_than_it_may(q, v, a):
    arm = dl.load(
        """<robot name="arm"><link name="base"/><link name="link"><inertial><mass value="1"/><origin xyz=".2 0 0"/>
        <inertia ixx=".01" iyy=".01" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="joint"
        type="revolute"><parent link="base"/><child link="link"/><axis xyz="0 1 0"/><limit lower="-1" upper="1"
        velocity="2" effort="50"/></joint></robot>"""
    )
    control = ReactiveControl(arm, FollowPosture(stiffness=20.0), horizon=0.05)
    found = reacted(control, np.array([q]), np.array([v]), control.reference(np.zeros(1)))
    assert found.status == QPStatus.SOLVED
    assert found.acceleration[0] == pytest.approx(a, abs=1e-6)  # (∓2 m/s - v) / 0.05 s


# --- bad input --------------------------------------------------------------------------------------------------------


def test_without_tasks_any_torques_that_hold_all_rows_will_do():
    control = standing(tasks=[])
    found = reacted(control, HOME, np.zeros(18), control.reference(HOME))
    assert found.status == QPStatus.SOLVED
    np.testing.assert_allclose(motion_missed(control, HOME, np.zeros(18), found), 0.0, atol=1e-7)


def test_tasks_that_contradict_each_other_share_what_they_miss():
    tasks = [FollowPosture("up", 1.0), FollowPosture("down", 3.0)]
    control = ReactiveControl(dl.load("double_pendulum"), tasks, joint_limits=False)
    reference = control.reference(np.zeros(2), {"up.acceleration": [4.0, 0.0], "down.acceleration": [-4.0, 0.0]})
    found = reacted(control, np.zeros(2), np.zeros(2), reference)
    assert found.status == QPStatus.SOLVED
    np.testing.assert_allclose(found.acceleration, [-2.0, 0.0], atol=1e-7)


def test_limits_that_cannot_be_met_name_the_rows_they_break():
    control = standing(supports=[Support(foot, 0.6, least=1e4) for foot in FEET])
    reference = control.reference(HOME)
    found = reacted(control, HOME, np.zeros(18), reference)
    assert found.status == QPStatus.INFEASIBLE
    assert np.isfinite(found.torque).all()
    assert np.all(np.abs(found.torque) <= ROBOT.effort_limit[6:])
    qp = built(control, HOME, np.zeros(18), reference)
    names = [*(f"{k}" for k in range(18)), *control.row_names]
    qp = dataclasses.replace(qp, names=tuple(names))
    x = np.concatenate([found.acceleration, found.force])
    answer = dl.QPSolution(found.multipliers, *map(np.asarray, (0.0, 0.0)), *map(np.int64, (1, 1)), qp, x)
    assert any("normal" in name for name in answer.violated_rows())
    assert "Broken:" in answer.describe()


def test_a_task_whose_rows_depend_on_each_other_is_done_all_the_same():
    control = ReactiveControl(
        dl.load("double_pendulum"),
        [FollowFrame(weight=1.0, frame=dl.load("double_pendulum").frames("*")[-1].name), FollowPosture(weight=0.0)],
    )
    found = reacted(control, np.zeros(2), np.zeros(2), control.reference(np.zeros(2)))
    assert found.status == QPStatus.SOLVED
    assert np.isfinite(found.torque).all()


@pytest.mark.parametrize("where", ["q", "v", "reference"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
def test_no_torque_is_ever_nan(where, bad):
    control = ReactiveControl(dl.load("double_pendulum"), TASKS[2:3])
    given = {"q": np.zeros(2), "v": np.zeros(2), "reference": control.reference(np.zeros(2))}
    given[where][0] = bad
    with np.errstate(all="ignore"):
        found = reacted(control, *given.values())
    assert np.isfinite(np.concatenate([found.torque, found.force, found.acceleration, found.multipliers])).all()
    assert found.status == QPStatus.NOT_FINITE
    assert found.primal == found.dual == np.inf  # no answer is not a good one


def test_compiled_code_tells_a_switch_that_is_no_number():
    control = ReactiveControl(ARM, [FollowPosture(stiffness=10.0)], [Support("tip")])
    reference = control.reference(BENT, {"tip.active": [[0.0], [np.nan]]})
    found = control(BENT, np.zeros(2), reference)
    assert found.status.tolist() == [QPStatus.SOLVED, QPStatus.NOT_FINITE]
    assert not found.torque[1].any() and not found.x[1].any() and found.residual[1] == np.inf


def also_held(foot):
    """A foot that is a support and a constraint of one name."""
    return ReactiveControl(dl.Mechanism(ROBOT, [dl.Point(foot)]), TASKS, [Support(foot)])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: standing(cone="square"), "cone is 'square'"),
        (lambda: standing(horizon=0.0), "horizon is 0.0"),
        (lambda: standing(tasks=[FollowPosture(), FollowPosture()]), "'posture' occurs twice"),
        (lambda: standing(supports=[Support(FEET[0]), Support(FEET[0])]), f"'{FEET[0]}' occurs twice"),
        (lambda: also_held(FEET[0]), f"'{FEET[0]}' occurs twice"),
        (lambda: standing(supports=[Support("nose")]), "nose"),
        (lambda: Support("a", friction=-1.0), "friction of 'a' is -1.0"),
        (lambda: Support("a", size=(0.1, 0.0)), "size of 'a'"),
        (lambda: FollowPosture(weight=-1.0), "weight of 'posture' is -1.0"),
        (lambda: FollowPosture(weight="much"), "weight of 'posture' is 'much'"),
        (lambda: FollowPosture(stiffness=-1.0), "stiffness -1.0"),
        (lambda: FollowPosture(damping=-1.0), "damping -1.0"),
        (lambda: Nominal(weight=5.0), "its weights are acceleration=, force= and torque="),
        (lambda: standing(tasks=[FollowCenterOfMass(weight=(1.0, 2.0))]), "'com' has shape .2,.; it must fit 3 rows"),
        (lambda: standing(tasks=[Nominal(torque=np.eye(3))]), "'nominal.torque' has shape .3, 3.; it must fit 12 rows"),
        (lambda: standing(tasks=[FollowPosture(joints=("front*", "nose"))]), "nose"),
        (lambda: standing(tasks=dl.control.PostureTask()), "is not one of the controller's tasks"),
        (lambda: Support("a", least=5.0, most=1.0), "most must not be below least"),
        (lambda: Support("a", gain=np.nan), "gain of 'a' is nan"),
        (lambda: Support("a", torsional=-1.0), "torsional of 'a' is -1.0"),
        (lambda: Support("a", normal=(0.0, 0.0, 0.0)), "normal of 'a' is zero"),
        (lambda: Support("a", normal=(0.0, 1.0)), r"normal of 'a' has shape \(2,\)"),
        (lambda: standing()(np.zeros((2, 19)), np.zeros((3, 18)), standing().reference(HOME)), "q .2,., v .3,."),
        (lambda: standing().policy(np.full(standing().references, np.nan)), "not finite"),
        (lambda: Nominal(force=((1.0, 2.0), (2.0, 1.0))), "eigenvalue -1"),
        (lambda: standing(tasks=[FollowPosture(joints="wing*")]).task_rows, "wing"),
        (lambda: standing(tasks=[FollowForce(support="nose")]), "nose"),
        (lambda: standing().reference(HOME, {"com.positon": 0.0}), "com.position"),
        (lambda: standing().reference(HOME[:3]), "q has shape"),
    ],
)
def test_bad_input_is_refused_in_words(make, said):
    with pytest.raises((ReactiveError, dl.DelassusError), match=said):
        make()


# --- closed loops -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def examples():
    """The folder of examples, from which one can import."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
    yield
    sys.path.pop(0)


def test_a_quadruped_moves_its_trunk_and_lifts_a_foot(examples, monkeypatch):
    import reactive_quadruped as example

    monkeypatch.setattr(example, "STEP", 4e-3)
    run = example.lift_foot()
    q, force = np.array(run.q), np.array(run.force)
    foot = dl.frame_placement(ROBOT, q, frame="front_left_foot")[1]
    assert foot[:, 2].max() > 0.09
    assert np.abs(foot[-1] - foot[0]).max() < 5e-3  # balls roll on the ground as legs turn
    assert np.linalg.norm(q[-1, :3] - HOME[:3]) < 5e-3
    assert max(run.residual) <= 1e-8
    assert max(run.status) == QPStatus.SOLVED
    assert (np.linalg.norm(force[..., :2], axis=-1) - example.FRICTION * force[..., 2]).max() <= 1e-8


@pytest.mark.slow
def test_a_quadruped_trots(examples, monkeypatch):
    import reactive_quadruped as example

    monkeypatch.setattr(example, "STRIDES", 4)
    run = example.trot()
    q, force = np.array(run.q), np.array(run.force)
    assert q[-1, 0] > 0.12
    assert np.abs(q[:, 3:5]).max() < 0.05
    assert np.abs(q[:, 2] - HOME[2]).max() < 0.02
    assert max(run.residual) <= 1e-8
    assert (np.linalg.norm(force[..., :2], axis=-1) - example.FRICTION * force[..., 2]).max() <= 1e-8


@pytest.mark.slow
def test_a_humanoid_balances_under_pushes(examples, monkeypatch):
    import reactive_humanoid as example

    monkeypatch.setattr(example, "SECONDS", 1.0)
    monkeypatch.setattr(example, "PUSHES", example.PUSHES[:1])
    run = example.balance()
    com, sole, force = np.array(run.com), np.array(run.sole), np.array(run.force)
    assert 3e-3 < np.linalg.norm(com - com[0], axis=-1).max() < 0.03
    assert np.linalg.norm(com[-1] - com[0]) < 3e-3
    assert np.linalg.norm(sole - sole[0], axis=-1).max() < 1e-6
    assert (np.linalg.norm(force[..., :2], axis=-1) - example.FRICTION * force[..., 2]).max() <= 1e-8
    assert max(run.residual) <= 1e-8


def test_a_controller_is_compiled_into_the_step(pendulum):
    sim = dl.Simulation(dl.load("double_pendulum"), time_step=1e-3, max_contacts=0, max_limits=0)
    log = sim.run(
        np.array([0.5, -0.3]), control=pendulum.policy(pendulum.reference(np.zeros(2))), steps=3000, every=100
    )
    assert np.abs(log.q[-1]).max() < 1e-2
