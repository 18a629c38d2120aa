"""Linear models of constrained robots against differences, and their regulators against SciPy."""

import numpy as np
import pytest
import scipy.linalg
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import delassus as dl
from delassus.control.linear.exponential import discretize, matrix_exponential
from delassus.control.linear.riccati import continuous_riccati, discrete_riccati
from delassus.model.bundled.build import Assembly, box
from delassus.model.joints import Free
from how_many import examples
from refusals import refuses

C = dl.control
FOUR_BAR = dl.Mechanism(dl.load("four_bar"))
CRANK = C.ActuatedMechanism(FOUR_BAR, "crank*")
QUADRUPED = dl.load("quadruped")
STANDING = dl.Mechanism(QUADRUPED, [dl.Point(foot) for foot in QUADRUPED.frames("*_foot")])


# --- a linkage in one coordinate --------------------------------------------------------------------------------------


def closed(angle):
    """The four-bar with its crank turned by an angle from "home", and how it moves per speed of the crank."""
    start = FOUR_BAR.posture("home") + np.array([angle, 0.0, 0.0])
    q = dl.assemble.python(FOUR_BAR, start, locked=["crank*"], tolerance=1e-14).q
    way = scipy.linalg.null_space(dl.constraint_jacobian.python(FOUR_BAR, q), rcond=1e-9)[:, 0]
    return q, way / way[0]


def crank_acceleration(angle, speed, torque):
    q, way = closed(angle)
    return dl.kkt(FOUR_BAR, q, speed * way, CRANK.B @ [torque])[0][0]


def difference_of(function, x, step=1e-5):
    return (function(x + step) - function(x - step)) / (2.0 * step)


@pytest.mark.parametrize("speed", [0.0, 2.0])
def test_a_four_bar_is_that_of_its_crank_angle(speed):
    angle, torque = 0.2, 0.3
    q, way = closed(angle)
    found = C.linearize(CRANK, q, speed * way, [torque])
    assert found.freedoms == 1
    by_angle = difference_of(lambda x: crank_acceleration(x, speed, torque), angle)
    by_speed = difference_of(lambda x: crank_acceleration(angle, x, torque), speed)
    by_torque = difference_of(lambda x: crank_acceleration(angle, speed, x), torque)
    z, s = found.basis[0, 0], found.lift[0, 0]

    def lift(time):
        """The crank's part of S on the way, Z carried along in the metric of the state."""
        moved = angle + speed * time + 0.5 * crank_acceleration(angle, speed, torque) * time**2
        rate = speed + crank_acceleration(angle, speed, torque) * time

        def basis(x):
            direction = closed(x)[1]
            return np.sign(z) * direction[0] / np.sqrt(direction @ (found.metric * direction))

        return difference_of(basis, moved) * rate  # δθ = z ξ: what z grows by is the crank's part of S

    expected = [
        [0.0, 1.0],
        [by_angle + (by_speed * s - difference_of(lift, 0.0, 1e-4)) / z, by_speed - 2.0 * s / z],
    ]
    np.testing.assert_allclose(found.A, expected, atol=2e-4 * max(1.0, np.max(np.abs(expected))))
    np.testing.assert_allclose(found.B[1, 0], by_torque / z, rtol=1e-6)
    assert abs(s - lift(0.0)) < 1e-6


def test_redundant_rows_change_no_model():
    twice = dl.Mechanism(FOUR_BAR.model, FOUR_BAR.constraints)  # the loop comes with the model, too
    q, way = closed(0.2)
    assert twice.m == 2 * FOUR_BAR.m
    found = [C.linearize(m, q, 1.5 * way, [0.3], actuation="crank*") for m in (FOUR_BAR, twice)]
    turn = np.sign(found[0].basis[0, 0] * found[1].basis[0, 0])  # two bases of the same line
    np.testing.assert_allclose(turn * found[1].basis, found[0].basis, atol=1e-10)
    np.testing.assert_allclose(found[1].A, found[0].A, atol=1e-6 * np.max(abs(found[0].A)))
    np.testing.assert_allclose(turn * found[1].B, found[0].B, atol=1e-6 * np.max(abs(found[0].B)))


def test_a_quadruped_on_its_feet_answers_as_differences_do():
    q = QUADRUPED.posture("home")
    torque = C.gravity_compensation(STANDING, q).torque
    found = C.linearize(STANDING, q, torque=torque)
    left = (found.basis * found.metric[:, None]).T

    def rates(x, u):
        moved = found.state(x)
        a = dl.kkt(STANDING, *moved, found.robot.B @ (torque + u))[0]
        return left @ a

    h = 1e-5
    for x in np.eye(12)[[0, 4, 7, 11]]:
        by_x = (rates(h * x, 0.0) - rates(-h * x, 0.0)) / (2.0 * h)
        np.testing.assert_allclose(found.A[6:] @ x, by_x, atol=1e-5 * np.max(abs(found.A)))
    u = np.eye(12)[3]
    np.testing.assert_allclose(found.B[6:] @ u, rates(np.zeros(12), u) - rates(np.zeros(12), 0 * u), atol=1e-8)


def test_tangent_vectors_of_a_free_body_turn_with_it():
    a = Assembly("box")
    a.body("box", Free(), None, (0, 0, 0), [box((0.4, 0.3, 0.2), 2.0)])
    model = a.model()
    rng = np.random.default_rng(0)
    q, v, x = model.random_configuration(rng), rng.normal(size=6), rng.normal(size=12)
    found, h = C.linearize(C.ActuatedMechanism(model, np.zeros((6, 0))), q, v), 1e-6

    def at(state, time):
        q, v = state
        a = dl.aba.python(model, q, v, np.zeros(6))
        return dl.integrate.python(model, q, time * v + 0.5 * time**2 * a), v + time * a

    def apart(time):
        (q0, v0), (q1, v1) = at((q, v), time), at(found.state(h * x), time)
        way = np.concatenate([dl.difference.python(model, q0, q1), v1 - v0]) / h
        return np.kron(np.eye(2), (found.basis * found.metric[:, None]).T) @ way

    np.testing.assert_allclose(difference_of(apart, 0.0, 1e-4), found.A @ x, atol=1e-5 * np.max(abs(found.A)))


def test_coordinates_are_those_that_states_were_made_of():
    found = C.linearize(STANDING, QUADRUPED.posture("home"))
    x = 1e-2 * np.random.default_rng(0).normal(size=(5, 12))
    np.testing.assert_allclose(found.coordinates(*found.state(x)), x, atol=1e-12)


def test_a_batch_is_its_items():
    angles = [0.0, 0.1, 0.2]
    q = np.stack([closed(x)[0] for x in angles])
    found = C.linearize(CRANK, q, time_step=0.01)
    for k in range(3):
        np.testing.assert_array_equal(found.A[k], C.linearize(CRANK, q[k], time_step=0.01).A)


# --- exponentials, Riccati --------------------------------------------------------------------------------------------


def random_system(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 9), rng.integers(1, 5)
    scale = 10.0 ** rng.uniform(-2, 1)
    Q, R = rng.normal(size=(n, n)), rng.normal(size=(m, m))
    return scale * rng.normal(size=(n, n)), rng.normal(size=(n, m)), Q @ Q.T + 0.1 * np.eye(n), R @ R.T + np.eye(m)


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(0, 100_000))
def test_exponentials_are_those_of_scipy(seed):
    A, B, _, _ = random_system(seed)
    expected = scipy.linalg.expm(A)
    np.testing.assert_allclose(matrix_exponential(A), expected, atol=1e-11 * np.max(abs(expected)))
    discrete = scipy.signal.cont2discrete((A, B, np.eye(len(A)), np.zeros_like(B)), 0.1)
    np.testing.assert_allclose(discretize(A, B, 0.1)[1], discrete[1], atol=1e-11 * np.max(abs(discrete[1])))


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(0, 100_000))
def test_riccati_equations_are_solved_as_by_scipy(seed):
    A, B, Q, R = random_system(seed)
    for ours, theirs in (
        (discrete_riccati, scipy.linalg.solve_discrete_are),
        (continuous_riccati, scipy.linalg.solve_continuous_are),
    ):
        expected = theirs(A, B, Q, R)
        assume(np.linalg.cond(expected) < 1e8)
        np.testing.assert_allclose(ours(A, B, Q, R), expected, atol=1e-7 * np.max(abs(expected)))


@pytest.mark.parametrize("time_step", [None, 0.01])
def test_the_regulator_of_a_cart_pole_is_that_of_scipy(time_step):
    cart = C.ActuatedMechanism(dl.load("cart_pole"), np.array([[1.0], [0.0]]))
    linear = C.linearize(cart, np.zeros(2), time_step=time_step)
    cost = np.array([1.0, 10.0, 0.1, 0.1])
    found = C.lqr(linear, cost, 0.5)
    solve = scipy.linalg.solve_continuous_are if time_step is None else scipy.linalg.solve_discrete_are
    expected = solve(linear.A, linear.B, np.diag(cost), 0.5 * np.eye(1))
    np.testing.assert_allclose(found.cost, expected, atol=1e-9 * np.max(abs(expected)))
    assert found.residual < 1e-11


def test_the_regulator_of_a_standing_quadruped_is_that_of_scipy():
    q = QUADRUPED.posture("home")
    linear = C.linearize(STANDING, q, torque=C.gravity_compensation(STANDING, q).torque, time_step=0.01)
    found = C.lqr(linear, 1.0, 1e-2)
    expected = scipy.linalg.solve_discrete_are(linear.A, linear.B, np.eye(12), 1e-2 * np.eye(12))
    np.testing.assert_allclose(found.cost, expected, atol=1e-9 * np.max(abs(expected)))
    assert np.max(abs(found.modes)) < 1.0
    spoiled = np.full(18, np.nan)
    np.testing.assert_array_equal(found.torque(q, spoiled), linear.torque)


@pytest.mark.parametrize(
    ("call", "refusal"),
    [
        (
            lambda: C.lqr(C.linearize(C.ActuatedMechanism(dl.load("cart_pole"), np.zeros((2, 1))), np.zeros(2))),
            ("not-stabilizable",),
        ),
        (lambda: C.lqr(None), ("wrong-type",)),
        (lambda: C.lqr(C.linearize(CRANK, closed(0.1)[0]), np.ones(3)), ("wrong-shape", "(3,)", "state_cost")),
        (lambda: C.lqr(C.linearize(CRANK, closed(0.1)[0]), 1.0, -1.0), ("not-semidefinite",)),
        (lambda: C.lqr(C.linearize(CRANK, closed(0.1)[0]), -1.0), ("not-semidefinite",)),
        (lambda: C.linearize(CRANK, np.full(3, np.nan)), ("not-finite",)),
        (lambda: C.linearize(CRANK, closed(0.1)[0], torque=np.zeros(3)), ("wrong-shape", "(3,)", "torque")),
        (lambda: C.linearize(CRANK, closed(0.1)[0], time_step=-1.0), ("time-step-out-of-range",)),
        (lambda: C.linearize(CRANK, closed(0.1)[0], time_step=0.1).discrete(0.1), ("conflicting-arguments", "already")),
        (
            lambda: C.linearize(dl.Mechanism(dl.load("pendulum"), dl.Nonholonomic(still, rows=1)), [0.0]),
            ("not-supported", "velocities"),
        ),
    ],
)
def test_what_cannot_be_done_is_said(call, refusal):
    with refuses(*refusal):
        call()


@pytest.mark.parametrize("time_step", [None, 0.01])
def test_modes_that_no_actuator_reaches_are_named(time_step):
    hanging = C.ActuatedMechanism(
        dl.load("double_pendulum"), np.zeros((2, 1))
    )  # swings for ever, so that nothing grows
    with refuses("not-stabilizable"):
        C.lqr(C.linearize(hanging, np.zeros(2), time_step=time_step))


@pytest.mark.parametrize("time_step", [None, 0.01])
def test_a_floating_robot_has_a_base_that_its_joints_do_not_move(time_step):
    q = QUADRUPED.posture("home")
    with refuses("not-stabilizable", "'trunk_joint'"):
        C.lqr(C.linearize(QUADRUPED, q, time_step=time_step))


@pytest.mark.parametrize("time_step", [None, 0.01])
def test_costs_may_have_any_unit_but_not_any_ratio(time_step):
    linear = C.linearize(C.ActuatedMechanism(dl.load("cart_pole"), "cart*"), np.zeros(2), time_step=time_step)
    gain = C.lqr(linear).gain
    for unit in (1e-300, 1e-30, 1e200):
        np.testing.assert_allclose(C.lqr(linear, unit, unit).gain, gain, rtol=1e-9)
    for state, torque in ((1e-300, 1.0), (1.0, 1e-300), (1e200, 1e-300), (5e-324, 1.0)):
        with refuses("not-stabilizable"):
            C.lqr(linear, state, torque)


def still(kinematics, q, v):
    return v[:1]


@pytest.mark.parametrize("shape", [(), (2,)])
def test_parameters_of_a_model_come_with_the_state(shape):
    model = dl.load("double_pendulum").parametric("mass")
    masses = np.multiply.outer(np.linspace(2.0, 3.0, int(np.prod(shape))).reshape(shape), model.parameters())
    found = C.linearize(model, [0.3, 0.4], [1.0, 2.0], parameters=masses)
    for index in np.ndindex(shape):
        other = C.linearize(model.with_parameters(masses[index]), [0.3, 0.4], [1.0, 2.0])
        # freedoms are measured by the model's own masses, whatever the parameters are
        turn = np.kron(np.eye(2), np.diag(np.sqrt(found.metric[index] / other.metric)))
        np.testing.assert_allclose(found.A[index], turn @ other.A @ np.linalg.inv(turn), atol=1e-10)


@pytest.mark.parametrize(("q", "v", "code"), [(0.3, 0.0, "constraints-violated"), (0.0, 1.0, "constraints-violated")])
def test_a_state_that_breaks_the_constraints_is_refused(q, v, code):
    with refuses(code):
        C.linearize(FOUR_BAR, FOUR_BAR.posture("home") + q, np.full(3, v))


def test_a_time_step_may_be_any_number():
    cart = C.ActuatedMechanism(dl.load("cart_pole"), "cart*")
    assert C.linearize(cart, np.zeros(2), time_step=np.float32(0.5)).time_step == 0.5


def test_rows_that_give_way_take_no_freedom():
    arm, q, v = dl.load("double_pendulum"), np.array([0.3, 0.8]), np.array([0.2, -0.1])
    mechanism = dl.Mechanism(arm, [dl.Point("tip", rows="z", axes="world", compliance=0.5, velocity_gain=3.0)])
    linear = C.linearize(mechanism, q, v)
    assert linear.freedoms == 2

    def accelerations(x):
        return (
            linear.basis.T
            * linear.metric
            @ dl.kkt(mechanism, q + linear.basis @ x[:2], v + linear.basis @ x[2:], 0 * v)[0]
        )

    by_differences = [difference_of(lambda s, e=e: accelerations(s * e), 0.0) for e in np.eye(4)]
    np.testing.assert_allclose(linear.A[2:], np.transpose(by_differences), atol=1e-6)
