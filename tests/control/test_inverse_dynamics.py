"""Constrained inverse dynamics: M a + c = B u + Jᵀ λ, held against dense algebra of SciPy, Pinocchio and itself."""

from dataclasses import replace
from functools import cache

import numpy as np
import pinocchio as pin
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

import delassus as dl
import delassus.numpy as dnp
import loop_oracles
from constrained_cases import mechanism_of
from constrained_cases import mechanisms as any_mechanism
from delassus.constrained.delassus.scales import row_mobilities
from delassus.constrained.solvers.kkt import dense_system
from how_many import examples
from images import mirror, reordered
from in_pinocchio import to_pinocchio
from linkages import bundled
from mechanisms import Dense
from refusals import refuses
from scaling import Units

C = dl.control
inverse = C.actuated_inverse_dynamics
Status = C.ControlStatus


def closed(name, *constraints):
    """A robot of the package in its posture "home"."""
    mechanism = dl.Mechanism(dl.load(name), constraints)
    return mechanism, mechanism.posture("home")


def on_feet(file, kind):
    mechanism = mechanism_of(file, kind)
    return mechanism, mechanism.model.random_configuration(np.random.default_rng(3))


BIPED_MOTORS = [
    "*_hip_yaw_joint",
    "*_hip_roll_joint",
    "*_thigh_joint",
    "*_crank_joint",
    "*_ankle_joint",
    "*_foot_joint",
]
ROBOTS = {
    "solo": (lambda: on_feet("solo12.urdf", "feet"), None),
    "solo, each foot thrice": (lambda: on_feet("solo12.urdf", "thrice"), None),
    "talos": (lambda: on_feet("talos_full_v2.urdf", "feet"), None),
    "talos on corners": (lambda: on_feet("talos_full_v2.urdf", "corners"), None),
    "icub": (lambda: on_feet("icub.urdf", "feet"), None),
    "icub on corners": (lambda: on_feet("icub.urdf", "corners"), None),
    "delta": (lambda: closed("delta"), ["arm?_joint"]),
    "four-bar": (lambda: closed("four_bar"), ["crank_joint"]),
    "biped": (lambda: closed("biped", dl.Weld("left_sole"), dl.Weld("right_sole")), BIPED_MOTORS),
    "biped on corners": (
        lambda: closed(
            "biped",
            *(
                dl.Point(foot, placement=dl.Placement.of(p=(x, y, 0.0)))
                for foot in ("left_sole", "right_sole")
                for x in (0.1, -0.05)
                for y in (0.03, -0.03)
            ),
        ),
        BIPED_MOTORS,
    ),
}
every_robot = pytest.mark.parametrize("name", ROBOTS)


@cache
def asked(name):
    """A robot with actuators, a state that meets the constraints, an acceleration that does, and the dense system."""
    make, actuation = ROBOTS[name]
    mechanism, q = make()
    robot = C.ActuatedMechanism(mechanism, actuation)
    rng = np.random.default_rng(5)
    J = dl.constraint_jacobian.python(mechanism, q)
    v = rng.normal(size=robot.nv)
    v -= scipy.linalg.pinv(J, rtol=1e-9) @ (J @ v)
    system = Dense(*dense_system.python(mechanism, q, v, robot.B @ rng.normal(size=robot.nu)))
    return robot, q, v, system.answer[0], system


def imbalance(robot, system, a, tau, torque, force):
    """M a + c - B u - Jᵀ λ at each joint, as a share of what cancels there; h of the system is tau - c."""
    c = tau - system.h
    size = abs(system.M) @ abs(a) + abs(c) + abs(robot.B) @ abs(torque) + abs(system.J).T @ abs(force)
    off = system.M @ a + c - robot.B @ torque - system.J.T @ force
    return float(np.max(abs(off) / np.where(size > 0.0, size, 1.0)))


def resisting(robot, q, v):
    """Forces of gravity, velocities and dampers (nv,); none of the robots has a spring."""
    damping = np.zeros(robot.nv)
    for joint in robot.model.joints:
        assert not any(joint.stiffness)
        damping[robot.model.v_slice(joint.name)] += joint.damping or 0.0
    return dl.bias_torques.python(robot.model, q, v) + damping * v


@cache
def solved(name):
    return inverse.python(*asked(name)[:4])


@every_robot
def test_the_equation_of_motion_holds(name):
    robot, q, v, a, system = asked(name)
    found = solved(name)
    c = resisting(robot, q, v)
    assert imbalance(robot, system, a, system.h + c, found.torque, found.force) < 1e-10
    assert found.statuses is Status.REALISED


@every_robot
def test_forward_dynamics_gives_the_acceleration_back(name):
    robot, q, v, a, system = asked(name)
    c = resisting(robot, q, v)
    back = Dense(system.M, robot.B @ solved(name).torque - c, system.J, system.gamma).answer[0]
    size = np.diagonal(np.linalg.inv(system.M)) * (abs(c) + abs(system.J).T @ abs(solved(name).force)) + abs(a)
    assert np.max(abs(back - a) / size) < 1e-9


def mistry(robot, system, a, c):
    """u = (S₂ Qᵀ B)⁺ S₂ Qᵀ (M a + c), by SciPy's QR with pivots."""
    Q, R, _ = scipy.linalg.qr(system.J.T, pivoting=True)
    diagonal = abs(np.diagonal(R))
    left = Q[:, int(np.sum(diagonal > 1e-9 * diagonal[0])) :].T
    return scipy.linalg.lstsq(left @ robot.B, left @ (system.M @ a + c), cond=1e-9)[0]


@every_robot
def test_torques_are_those_of_the_decomposition_of_mistry(name):
    robot, q, v, a, system = asked(name)
    expected = mistry(robot, system, a, resisting(robot, q, v))
    np.testing.assert_allclose(solved(name).torque, expected, rtol=0.0, atol=1e-8 * np.max(abs(expected)))


@pytest.mark.parametrize("name", ["solo, each foot thrice", "biped on corners"])
def test_forces_are_the_smallest_that_go_with_the_torques(name):
    robot, q, v, a, system = asked(name)
    b = system.M @ a + dl.bias_torques.python(robot.model, q, v)
    weight = 1.0 / np.sqrt(row_mobilities(robot.mechanism))
    left = b - robot.B @ solved(name).torque
    expected = weight * scipy.linalg.lstsq(system.J.T * weight, left, cond=1e-9)[0]
    np.testing.assert_allclose(solved(name).force, expected, rtol=0.0, atol=1e-7 * np.max(abs(expected)))


def constrained_least(A, b, F, t):
    """x of least |F x - t| with A x = b, by the null space of A."""
    x, Z = scipy.linalg.lstsq(A, b, cond=1e-9)[0], scipy.linalg.null_space(A, rcond=1e-9)
    return x + Z @ scipy.linalg.lstsq(F @ Z, t - F @ x, cond=1e-9)[0]


@pytest.mark.parametrize("given", [("torque",), ("force",), ("torque", "force")], ids="+".join)
def test_weights_distribute_torques_and_forces(given):
    robot, q, v, a, system = asked("solo")
    rng = np.random.default_rng(8)
    nu, m = robot.nu, robot.m
    weights = {"torque": rng.uniform(0.1, 5.0, nu), "force": rng.uniform(0.1, 5.0, m)}
    targets = {"torque": rng.normal(size=nu), "force": rng.normal(size=m)}
    options = {f"{x}_weight": weights[x] for x in given} | {f"{x}_target": targets[x] for x in given}
    found = inverse.python(robot, q, v, a, **options)
    b = system.M @ a + dl.bias_torques.python(robot.model, q, v)
    weight = np.sqrt(
        np.concatenate([weights[x] if x in given else np.zeros(n) for x, n in (("torque", nu), ("force", m))])
    )
    nominal = np.concatenate([targets["torque"], targets["force"]])
    expected = constrained_least(np.hstack([robot.B, system.J.T]), b, np.diag(weight), weight * nominal)
    np.testing.assert_allclose(np.concatenate([found.torque, found.force]), expected, atol=1e-8)


def test_pinocchio_finds_the_torques_from_the_forces():
    robot, q, v, a, _ = asked("solo")
    theirs, found = to_pinocchio(robot.model), solved("solo")
    data, external = theirs.createData(), pin.StdVec_Force()
    pin.framesForwardKinematics(theirs, data, q)
    external.extend([pin.Force.Zero() for _ in range(theirs.njoints)])
    for constraint, force in zip(robot.mechanism.constraints, found.forces.values(), strict=True):
        frame = theirs.frames[theirs.getFrameId(constraint.frame)]
        external[frame.parentJoint] += frame.placement.act(pin.Force(force, np.zeros(3)))
    torque = pin.rnea(theirs, data, dl.q_to_pinocchio(robot.model, q), v, a, external)
    np.testing.assert_allclose(torque, robot.B @ found.torque, atol=1e-10 * np.max(abs(found.force)))


@pytest.mark.parametrize("name", ["delta", "stewart", "five_bar"])
def test_loops_balance_by_the_matrices_of_pinocchio(name):
    linkage = bundled(name)
    mechanism = dl.Mechanism(dl.load(name))
    rng = np.random.default_rng(0)
    J = loop_oracles.jacobian(to_pinocchio(linkage.model), linkage.loops, dl.q_to_pinocchio(linkage.model, linkage.q))
    robot = C.ActuatedMechanism(mechanism, scipy.linalg.null_space(J, rcond=1e-9))  # as many motors as freedoms
    system = loop_oracles.dense(
        linkage.model, linkage.loops, linkage.q, np.zeros(robot.nv), robot.B @ rng.normal(size=robot.nu)
    )
    a = system.answer[0]
    found = inverse.python(robot, linkage.q, np.zeros(robot.nv), a)
    c = dl.gravity_torques.python(robot.model, linkage.q)
    assert imbalance(robot, system, a, system.h + c, found.torque, found.force) < 1e-10
    assert found.statuses is Status.REALISED


# --- what cannot be had -----------------------------------------------------------------------------------------------


def test_the_nearest_torques_come_nearest_in_the_metric_of_the_mass():
    robot = C.ActuatedMechanism(dl.load("cart_pole"), ["*"])
    cart = C.ActuatedMechanism(robot.mechanism, robot.B[:, :1])
    q, v, a = np.array([0.0, 0.4]), np.array([0.3, -0.7]), np.array([1.0, -2.0])
    found = inverse.python(cart, q, v, a)
    M, c = dl.crba.python(cart.model, q), dl.bias_torques.python(cart.model, q, v)

    def distance(u):
        off = scipy.linalg.solve(M, cart.B[:, 0] * u - c) - a
        return off @ M @ off

    least = scipy.optimize.minimize_scalar(distance, method="brent", options={"xtol": 1e-12})
    assert found.statuses is Status.NEAREST and "nearest" in found.describe()
    assert abs(found.torque[0] - least.x) < 1e-6 * abs(least.x)
    np.testing.assert_allclose(found.residual, M @ a + c - cart.B @ found.torque, atol=1e-12)


def test_torques_of_an_acceleration_that_breaks_the_constraints_are_those_of_the_nearest_one():
    robot, q, v, a, system = asked("four-bar")
    wrong = a + np.array([0.0, 0.5, 0.0])
    found = inverse.python(robot, q, v, wrong)
    free = Dense(system.M, system.M @ wrong, system.J, system.gamma).answer[0]
    np.testing.assert_allclose(found.torque, inverse.python(robot, q, v, free).torque, atol=1e-12)
    np.testing.assert_allclose(found.violation, system.J @ wrong + system.gamma, atol=1e-12)
    assert found.statuses is Status.BREAKS_CONSTRAINTS and "violation" in found.describe()


def test_a_robot_without_actuators_is_held_by_its_constraints_alone():
    mechanism, q = closed("four_bar")
    found = inverse.python(C.ActuatedMechanism(mechanism, np.zeros((3, 0))), q, np.zeros(3), np.zeros(3))
    assert found.torque.shape == (0,) and found.statuses is Status.NEAREST


def test_a_model_without_constraints_needs_what_rnea_says():
    arm = dl.load("arm7")
    q, v, a = np.random.default_rng(0).normal(size=(3, 7))
    found = inverse.python(C.ActuatedMechanism(arm), q, v, a)
    np.testing.assert_allclose(found.torque, dl.rnea.python(arm, q, v, a), atol=1e-12)
    assert found.force.shape == (0,) and found.statuses is Status.REALISED


def test_redundant_actuators_share_by_their_weights():
    pendulum = dl.load("pendulum")
    pair = C.ActuatedMechanism(pendulum, [[1.0, 2.0]])
    found = inverse.python(pair, [0.5], [0.0], [0.0], torque_weight=[1.0, 3.0])
    needed = dl.gravity_torques.python(pendulum, [0.5])[0]
    share = np.array([1.0, 2.0 / 3.0])  # W⁻¹ Bᵀ
    np.testing.assert_allclose(found.torque, share * needed / (share @ [1.0, 2.0]), atol=1e-12)


def test_rows_that_give_way_have_the_force_that_the_motion_tells():
    model = dl.load("double_pendulum")
    soft = dl.Mechanism(model, dl.Point("tip", rows=(0, 2), compliance=0.1))
    rng = np.random.default_rng(2)
    q, v, tau = rng.normal(size=(3, 2))
    a, force = dl.kkt(soft, q, v, tau)
    found = inverse.python(C.ActuatedMechanism(soft), q, v, a)
    np.testing.assert_allclose(found.force, force, atol=1e-10)
    np.testing.assert_allclose(found.torque, tau, atol=1e-10)
    assert found.statuses is Status.REALISED


def test_rows_that_are_switched_off_have_no_force():
    robot, q, v, _, _ = asked("solo")
    mask = np.repeat([1.0, 0.0, 1.0, 1.0], 3)
    found = inverse.python(robot, q, v, np.zeros(robot.nv), mask=mask)
    feet = dl.Mechanism(robot.model, [c for k, c in enumerate(robot.mechanism.constraints) if k != 1])
    fewer = inverse.python(C.ActuatedMechanism(feet), q, v, np.zeros(robot.nv))
    assert not np.any(found.force[3:6])
    np.testing.assert_allclose(found.torque, fewer.torque, atol=1e-10)


@pytest.mark.parametrize(
    ("actuation", "refusal"),
    [
        (np.eye(4), ("wrong-shape", "(4, 4)")),
        (np.full((3, 1), np.nan), ("not-finite",)),
        (["crank", 3.0], ("wrong-type", "matrix")),
        (["no such joint"], ("unknown-joint",)),
        (7.0, ("wrong-shape", "shape")),
    ],
)
def test_actuation_that_cannot_be_understood_is_refused(actuation, refusal):
    mechanism, q = closed("four_bar")
    with refuses(*refusal):
        dl.inverse_dynamics(mechanism, q, np.zeros(3), np.zeros(3), actuation=actuation)


@pytest.mark.parametrize("weights", [{"torque_weight": [1.0, 2.0]}, {"torque_weight": -1.0}, {"force_weight": -1.0}])
def test_weights_that_make_no_sense_are_refused(weights):
    mechanism, q = closed("four_bar")
    with pytest.raises((dl.DelassusError, ValueError), match="weight"):
        dl.inverse_dynamics(mechanism, q, np.zeros(3), np.zeros(3), actuation="crank_joint", **weights)


# --- in any company, in any units -------------------------------------------------------------------------------------


def test_an_item_that_is_not_finite_spoils_itself_alone_and_gets_no_torque():
    mechanism, q = closed("four_bar")
    rng = np.random.default_rng(0)
    v, a = np.zeros((20, 3)), rng.normal(size=(20, 3))
    good = dl.inverse_dynamics(mechanism, q, v, a, actuation="crank_joint")
    a[7, 1], v[11, 0] = np.nan, np.inf
    found = dl.inverse_dynamics(mechanism, q, v, a, actuation="crank_joint")
    bad = np.isin(np.arange(20), (7, 11))
    assert np.array_equal(found.status == Status.NOT_FINITE, bad)
    assert not np.any(found.torque[bad]) and not np.any(found.force[bad])
    assert np.array_equal(found.torque[~bad], good.torque[~bad]) and np.array_equal(found.force[~bad], good.force[~bad])
    assert "2 of 20 states" in found.describe()


def test_a_state_has_the_same_bits_alone_and_anywhere_in_a_batch():
    mechanism, q = closed("four_bar")
    a = np.random.default_rng(1).normal(size=(11, 3))
    together = dl.inverse_dynamics(mechanism, q, np.zeros(3), a, actuation="crank_joint")
    for k in (0, 5, 10):
        alone = dl.inverse_dynamics(mechanism, q, np.zeros(3), a[k], actuation="crank_joint")
        assert np.array_equal(alone.torque, together.torque[k]) and np.array_equal(alone.force, together.force[k])


def test_compiled_code_computes_what_the_function_says():
    robot, q, v, a, _ = asked("four-bar")
    found, plain = inverse(robot, q, v, a), solved("four-bar")
    for x, y in zip(found, plain, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-10)


@pytest.mark.parametrize("name", ["four-bar", "solo"])
def test_nothing_depends_on_units(name):
    robot, q, v, a, _ = asked(name)
    units = Units(length=2.0**10, mass=2.0**-3, time=2.0**2)
    model = robot.model
    scaled = C.ActuatedMechanism(units.mechanism(robot.mechanism), robot.B)
    found = inverse.python(scaled, units.q(model) * q, units.v(model) * v, units.a(model) * a)
    expected = solved(name)
    np.testing.assert_allclose(found.torque, units.energy * expected.torque, rtol=1e-9)
    factor = units.row_force(robot.mechanism)
    np.testing.assert_allclose(found.force / factor, expected.force, atol=1e-9 * np.max(abs(expected.force)))


def test_the_order_of_constraints_and_actuators_does_not_matter():
    robot, q, v, a, _ = asked("solo")
    order = np.random.default_rng(4).permutation(robot.nu)
    turned = dl.Mechanism(robot.model, robot.mechanism.constraints[::-1])
    found = inverse.python(C.ActuatedMechanism(turned, robot.B[:, order]), q, v, a)
    np.testing.assert_allclose(found.torque, solved("solo").torque[order], atol=1e-10)
    np.testing.assert_allclose(found.force.reshape(4, 3)[::-1].ravel(), solved("solo").force, atol=1e-10)


@pytest.mark.parametrize("name", ["solo", "four-bar", "biped on corners"])
def test_a_mirror_image_has_the_torques_that_the_mirror_shows(name):
    robot, q, v, a, _ = asked(name)
    image = mirror(robot.model, np.array([0.0, 1.0, 0.0]))
    mechanism, W = image.mechanism(robot.mechanism)
    found = inverse.python(C.ActuatedMechanism(mechanism, image.V @ robot.B), image.Q @ q, image.V @ v, image.V @ a)
    size = np.max(abs(solved(name).force))
    np.testing.assert_allclose(found.torque, solved(name).torque, atol=1e-9 * size)
    np.testing.assert_allclose(found.force, W @ solved(name).force, atol=1e-7 * size)


def test_the_order_of_joints_does_not_matter():
    robot, q, v, a, _ = asked("solo")
    image = reordered(robot.model, np.random.default_rng(1))
    mechanism, _ = image.mechanism(robot.mechanism)
    found = inverse.python(C.ActuatedMechanism(mechanism, image.V @ robot.B), image.Q @ q, image.V @ v, image.V @ a)
    np.testing.assert_allclose(found.torque, solved("solo").torque, atol=1e-10)
    np.testing.assert_allclose(found.force, solved("solo").force, atol=1e-8)


GEARED = """
<mujoco><worldbody><body name="a"><joint name="one" axis="0 1 0"/><geom size=".1" pos=".5 0 0"/>
<body name="b" pos="1 0 0"><joint name="two" axis="0 1 0"/><geom size=".1" pos=".5 0 0"/></body></body></worldbody>
<actuator><motor name="far" joint="two" gear="4"/><motor name="near" joint="one" gear="-0.5"/></actuator></mujoco>
"""


def test_the_actuators_of_a_file_have_a_torque_each_before_their_gears():
    model = dl.load(GEARED)
    robot = C.ActuatedMechanism(model)
    q, v, a = np.random.default_rng(0).normal(size=(3, 2))
    tau = dl.rnea.python(model, q, v, a)
    found = inverse.python(robot, q, v, a)
    assert robot.names == ("far", "near") and list(found.torques) == ["far", "near"]
    np.testing.assert_allclose(found.torque, [tau[1] / 4.0, tau[0] / -0.5], atol=1e-12)


def test_an_actuator_that_drives_nothing_has_no_torque():
    robot, q, v, a, _ = asked("four-bar")
    idle = C.ActuatedMechanism(robot.mechanism, np.hstack([robot.B, np.zeros((3, 1)), robot.B]))
    found = inverse.python(idle, q, v, a)
    expected = solved("four-bar").torque[0]
    np.testing.assert_allclose(found.torque, [expected / 2.0, 0.0, expected / 2.0], atol=1e-12)


def test_parameters_of_a_model_come_with_each_item():
    model = dl.load("double_pendulum").parametric("gravity")
    q, v, a = np.random.default_rng(0).normal(size=(3, 2))
    for g in (-9.81, -1.6):
        plain = replace(dl.load("double_pendulum"), gravity=(0.0, 0.0, g))
        found = dl.inverse_dynamics(model, q, v, a, parameters=[0.0, 0.0, g])
        np.testing.assert_allclose(found.torque, dl.rnea.python(plain, q, v, a), atol=1e-12)


def circling(t):
    return dnp.stack([0.4 * dnp.cos(t), 0.0, -0.6 + 0.2 * dnp.sin(t)])


def test_constraints_that_move_are_told_the_time():
    gains = {"position_gain": 9.0, "velocity_gain": 6.0}
    moving = dl.Mechanism(dl.load("double_pendulum"), dl.Point("tip", position=circling, **gains))
    rng = np.random.default_rng(3)
    q, v, tau = rng.normal(size=(3, 2))
    a = dl.kkt(moving, q, v, tau, time=0.7)[0]
    found = [inverse.python(C.ActuatedMechanism(moving), q, v, a, time=time) for time in (0.7, 1.7)]
    assert [x.statuses for x in found] == [Status.REALISED, Status.BREAKS_CONSTRAINTS]
    np.testing.assert_allclose(found[0].violation, 0.0, atol=1e-9)


def test_it_may_be_a_part_of_other_kernels():
    robot, q, v, a, _ = asked("four-bar")

    @dl.kernel("(nq),(nv),(nv)->(nu)")
    def twice(robot, q, v, a):
        return 2.0 * dl.inverse_dynamics(robot, q, v, a).torque

    np.testing.assert_allclose(twice(robot, q, v, a), 2.0 * solved("four-bar").torque, rtol=1e-9)


@settings(max_examples=examples(15), deadline=None)
@given(any_mechanism(), st.integers(0, 1000), st.data())
def test_what_is_returned_obeys_its_equations_whatever_the_rank(mechanism, seed, data):
    rng = np.random.default_rng(seed)
    nv = mechanism.nv
    nu = data.draw(st.integers(0, nv))
    B = rng.normal(size=(nv, nu)) if data.draw(st.booleans()) else np.eye(nv)[:, rng.permutation(nv)[:nu]]
    robot = C.ActuatedMechanism(mechanism, B)
    q, v, u = mechanism.random_configuration(rng), rng.normal(size=nv), rng.normal(size=nu)
    system = Dense(*dense_system.python(mechanism, q, v, B @ u), weight=1.0 / np.sqrt(row_mobilities(mechanism)))
    a, _ = system.answer
    found = inverse.python(robot, q, v, a)
    b = dl.rnea.python(mechanism.model, q, v, a)
    np.testing.assert_allclose(found.residual, b - B @ found.torque - system.J.T @ found.force, atol=1e-8)
    if system.is_clear():  # a came from torques, and what rows contradict each other in is no acceleration's
        size = abs(system.M) @ abs(a) + abs(b) + abs(B) @ abs(found.torque) + abs(system.J).T @ abs(found.force)
        assert np.max(abs(found.residual) / np.max(size)) < 1e-9


# --- near singular poses ----------------------------------------------------------------------------------------------

DISTANCES = [0.0, *10.0 ** np.arange(-16, 1.0)]


@pytest.mark.parametrize("distance", DISTANCES)
def test_a_crank_driven_by_its_piston_near_the_dead_centre(distance):
    mechanism = dl.Mechanism(dl.load("slider_crank"))
    home = mechanism.model.neutral()
    names = [joint.name for joint in mechanism.model.joints]
    crank = next(name for name in names if "crank" in name)
    home[mechanism.q_slice(crank)] = distance
    q = dl.assemble.python(mechanism, home, locked=[crank]).q
    rod = dl.constraint_jacobian.python(mechanism, q)
    moves = scipy.linalg.null_space(rod, rcond=1e-9)[:, 0]
    piston = C.ActuatedMechanism(mechanism, [next(name for name in names if "piston" in name or "slid" in name)])
    found = inverse.python(piston, q, np.zeros(robot_nv := mechanism.nv), moves)
    size = abs(dl.rnea.python(mechanism.model, q, np.zeros(robot_nv), moves)) + abs(rod).T @ abs(found.force)
    assert np.all(np.isfinite(found.torque))
    assert found.statuses in (Status.REALISED, Status.NEAREST)
    if found.statuses is Status.REALISED:
        assert np.all(abs(found.residual) <= 1e-9 * np.max(size))
    assert (found.statuses is Status.REALISED) == (distance > 1e-6) or 1e-8 < distance < 1e-4


@pytest.mark.parametrize("distance", DISTANCES)
def test_a_quadruped_near_stretched_legs(distance):
    model = dl.load("quadruped")
    robot = C.ActuatedMechanism(dl.Mechanism(model, [dl.Point(f) for f in model.frames("*_foot")]))
    q = model.neutral()
    q[7:] = distance * (model.posture("home")[7:] - q[7:])
    still = np.zeros(18)
    found = inverse.python(robot, q, still, still)
    b = dl.gravity_torques.python(model, q)
    size = abs(b) + abs(robot.B) @ abs(found.torque)
    assert found.statuses is Status.REALISED
    assert np.all(abs(found.residual) <= 1e-10 * np.max(size)) and np.max(abs(found.force)) < 1e3


@pytest.mark.parametrize("rank", [-1.0, 2.0])
def test_a_share_below_which_singular_values_do_not_count_is_between_zero_and_one(rank):
    mechanism, q = closed("four_bar")
    with refuses("out-of-range", "rank"):
        dl.inverse_dynamics(mechanism, q, np.zeros(3), np.zeros(3), actuation="crank_joint", rank=rank)


def test_each_actuator_has_a_name():
    with refuses("wrong-shape"):
        C.ActuatedMechanism(dl.load("four_bar"), "crank_joint", names=("one", "two"))


def test_the_nearest_torques_know_that_rows_give_way():
    arm, q, v, a = dl.load("double_pendulum"), np.array([0.3, 0.8]), np.array([0.2, -0.1]), np.array([3.0, -2.0])
    mechanism = dl.Mechanism(arm, [dl.Point("tip", rows="z", axes="world", compliance=0.5)])
    robot = C.ActuatedMechanism(mechanism, "upper_joint")
    found = inverse.python(robot, q, v, a)
    J = dl.constraint_jacobian.python(mechanism, q)
    metric = dl.crba.python(arm, q) + J.T @ J / 0.5
    # accelerations are linear in the torque: the nearest is where what is missing is orthogonal to their slope
    rest, pushed = (dl.kkt(mechanism, q, v, robot.B @ [u])[0] for u in (0.0, 1.0))
    slope = pushed - rest
    assert found.statuses is Status.NEAREST
    assert found.torque[0] == pytest.approx(slope @ metric @ (a - rest) / (slope @ metric @ slope), rel=1e-9)
