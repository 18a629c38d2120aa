"""Rods, couplings, functions of the user, hinges, references that move: their rows against differences of placements.

What a row measures is written down here from the frames' placements alone; its first and second differences along a
motion are J v and J̇ v.
"""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import delassus as dl
import delassus.numpy as dnp
from delassus.constraints.basis.motions import LinkMotions
from delassus.model.generators import chain
from delassus.spatial.quaternions import quaternion_multiply
from differences import jacobian
from how_many import examples
from mechanisms import PROXIMAL, relative, two_bodies
from refusals import refuses

ROBOT = dl.load("humanoid")
ORIGIN = dl.Placement()
HERE = dl.Placement.from_xyz_rpy((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
THERE = dl.Placement.from_xyz_rpy((-0.1, 0.02, 0.3), (-0.4, 0.15, 0.6))
AT = {"placement": HERE, "placement2": THERE}


def place(q, frame: str, placement: dl.Placement = ORIGIN):
    """Rotation and origin of a frame."""
    R, p = dl.frame_placement.python(ROBOT, q, frame=frame)
    return R @ placement.R, p + R @ placement.p


def coordinate(q, joint: str):
    return q[ROBOT.q_starts[ROBOT.joint_index(joint)]]


def spiral(t):
    return dnp.stack([dnp.sin(t), t * t, 0.3 * t])


def turning(t):
    c, s = dnp.cos(t), dnp.sin(t)
    return dnp.stack([dnp.stack([c, -s, 0.0]), dnp.stack([s, c, 0.0]), dnp.stack([0.0, 0.0, 1.0])]), spiral(t)


def palms_level(kinematics, q):
    return dnp.stack([kinematics.position("left_palm")[2] - kinematics.position("right_palm")[2], q[8] * q[9]])


def height_in_time(kinematics, q, t):
    return dnp.stack([kinematics.position("left_palm")[2] - dnp.sin(t)])


def rod(q, t):
    return [np.linalg.norm(place(q, "left_palm", HERE)[1] - place(q, "right_sole", THERE)[1]) - 0.7]


def rod_to_world(q, t):
    return [np.linalg.norm(place(q, "left_palm", HERE)[1] - THERE.p) - 0.7]


def knees(q, t):
    x = coordinate(q, "right_shin_joint") - 0.2
    return [coordinate(q, "left_shin_joint") - 0.1 - (0.3 + 0.5 * x - 0.2 * x**2 + 0.1 * x**3)]


def level(q, t):
    return [place(q, "left_palm")[1][2] - place(q, "right_palm")[1][2], q[8] * q[9]]


def in_time(q, t):
    return [place(q, "left_palm")[1][2] - np.sin(t)]


SCALARS = {
    "rod": (dl.Distance("left_palm", "right_sole", length=0.7, **AT), rod),
    "rod to the world": (dl.Distance("left_palm", length=0.7, **AT), rod_to_world),
    "coupling": (
        dl.Coupling(
            "left_shin_joint",
            "right_shin_joint",
            coefficients=(0.3, 0.5, -0.2, 0.1),
            reference=0.1,
            reference2=0.2,
        ),
        knees,
    ),
    "function": (dl.Implicit(palms_level, rows=2), level),
    "function of time": (dl.Implicit(height_in_time, rows=1), in_time),
}


def case(name: str):
    constraint, measured = SCALARS[name]
    rng = np.random.default_rng(1)
    q, v = ROBOT.random_configuration(rng), rng.normal(size=ROBOT.nv)

    def along(s):
        return np.array(measured(dl.integrate.python(ROBOT, q, s[0] * v), 0.7 + s[0]))

    return dl.Mechanism(ROBOT, (constraint,)), q, v, along


@pytest.mark.parametrize("name", SCALARS)
def test_the_error_of_position_is_what_the_row_measures(name):
    mechanism, q, v, along = case(name)
    (constraint,) = mechanism.constraints
    gain = dl.Mechanism(ROBOT, (type(constraint)(**{**vars_of(constraint), "position_gain": 1.0}),))
    with_error = dl.constraint_bias.python(gain, q, v, time=0.7)
    without = dl.constraint_bias.python(mechanism, q, v, time=0.7)
    np.testing.assert_allclose(with_error - without, along(np.zeros(1)), atol=1e-12)


@pytest.mark.parametrize("name", SCALARS)
def test_the_velocity_is_the_first_derivative(name):
    mechanism, q, v, along = case(name)
    (constraint,) = mechanism.constraints
    gain = dl.Mechanism(ROBOT, (type(constraint)(**{**vars_of(constraint), "velocity_gain": 1.0}),))
    velocity = dl.constraint_bias.python(gain, q, v, time=0.7) - dl.constraint_bias.python(mechanism, q, v, time=0.7)
    np.testing.assert_allclose(velocity, jacobian(along, 1)[:, 0], atol=1e-9)


@pytest.mark.parametrize("name", SCALARS)
def test_the_bias_is_the_second_derivative(name):
    mechanism, q, v, along = case(name)
    second = jacobian(lambda s: jacobian(lambda r: along(s + r), 1)[:, 0], 1)[:, 0]
    np.testing.assert_allclose(dl.constraint_bias.python(mechanism, q, v, time=0.7), second, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("name", SCALARS)
@pytest.mark.parametrize("method", PROXIMAL, ids=lambda f: f.name)
def test_every_method_has_the_dense_answer(method, name):
    mechanism, q, v, _ = case(name)
    expected, force = dl.kkt(mechanism, q, v, np.zeros(ROBOT.nv), time=0.7)
    a, found = method.python(mechanism, q, v, np.zeros(ROBOT.nv), iterations=20, proximal=1e-3, time=0.7)
    assert relative(a, expected) < 1e-9
    assert relative(found, force) < 1e-9


def vars_of(constraint) -> dict:
    return {name: getattr(constraint, name) for name in constraint.__dataclass_fields__ if name != "_"}


# --- references that move ---------------------------------------------------------------------------------------------


def test_a_point_follows_a_reference_that_moves():
    """With gains, the error e of the solved motion obeys ë + Kd ė + Kp e = 0, seen in the world's axes."""
    point = dl.Point("left_palm", position=spiral, position_gain=50.0, velocity_gain=9.0)
    mechanism = dl.Mechanism(ROBOT, (point,))
    rng = np.random.default_rng(2)
    q, v, t = ROBOT.random_configuration(rng), rng.normal(size=ROBOT.nv), 0.7
    a = dl.constrained_dynamics(mechanism, q, v, np.zeros(ROBOT.nv), time=t).acceleration
    p = dl.frame_placement.python(ROBOT, q, frame="left_palm")[1]
    world = {"frame": "left_palm", "reference": "LOCAL_WORLD_ALIGNED"}
    p_1 = dl.frame_velocity.python(ROBOT, q, v, **world)[:3]
    p_2 = dl.frame_acceleration.python(ROBOT, q, v, a, classical=True, **world)[:3]
    target = [np.array([np.sin(t), t * t, 0.3 * t]), np.array([np.cos(t), 2 * t, 0.3]), np.array([-np.sin(t), 2.0, 0])]
    np.testing.assert_allclose(p_2 - target[2] + 9.0 * (p_1 - target[1]) + 50.0 * (p - target[0]), 0.0, atol=1e-8)


def test_a_joint_follows_a_function_of_time():
    """With gains, its error obeys ë + Kd ė + Kp e = 0."""
    lock = dl.JointLock(
        "left_shin_joint", position=lambda t: dnp.stack([dnp.sin(2.0 * t)]), position_gain=50.0, velocity_gain=9.0
    )
    rng = np.random.default_rng(2)
    q, v, t = ROBOT.random_configuration(rng), rng.normal(size=ROBOT.nv), 0.7
    a = dl.constrained_dynamics(dl.Mechanism(ROBOT, (lock,)), q, v, np.zeros(ROBOT.nv), time=t).acceleration
    k = ROBOT.v_starts[ROBOT.joint_index("left_shin_joint")]
    s, c = np.sin(2 * t), np.cos(2 * t)
    error = a[k] + 4 * s + 9.0 * (v[k] - 2 * c) + 50.0 * (coordinate(q, "left_shin_joint") - s)
    assert abs(error) < 1e-8


def test_two_constraints_with_the_same_function_are_equal():
    one, other = (
        dl.Point("left_palm", position=spiral),
        dl.Point("left_palm", position=lambda t: dnp.stack([dnp.sin(t), t * t, 0.3 * t])),
    )
    assert one == other and hash(one) == hash(other)


def test_two_mechanisms_whose_functions_compute_the_same_are_equal():
    def same(places, q):
        return dnp.stack([places.position("left_palm")[2] - places.position("right_palm")[2], q[8] * q[9]])

    one = dl.Mechanism(ROBOT, (dl.Implicit(palms_level, rows=2, name="level"),))
    assert one == dl.Mechanism(ROBOT, (dl.Implicit(same, rows=2, name="level"),))
    assert one != dl.Mechanism(ROBOT, (dl.Implicit(lambda k, q: 2.0 * same(k, q), rows=2, name="level"),))


# --- hinges and rows --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_a_hinge_leaves_one_turn_free(axis):
    """The tilt of the axes is what a hinge measures: no turn about the shared axis changes it, however large."""
    q = ROBOT.random_configuration(np.random.default_rng(0))
    turn = np.zeros(3)
    turn["xyz".index(axis)] = 2.5
    R1, p1 = place(q, "left_palm")
    R2, p2 = place(q, "right_palm")
    onto = dl.Placement.of(R2.T @ R1, R2.T @ (p1 - p2)) * dl.Placement.from_xyz_rpy(rpy=turn)
    hinge = dl.Hinge("left_palm", "right_palm", axis=axis, placement2=onto)
    error = hinge.position_error(LinkMotions.of(ROBOT, q, np.zeros(ROBOT.nv)))
    np.testing.assert_allclose(error, 0.0, atol=1e-14)


@settings(max_examples=examples(200))
@given(
    st.sampled_from("xyz"),
    st.tuples(st.floats(0.4, 3.14), st.integers(-16, 0)).map(lambda x: x[0] * 10.0 ** x[1]),
    st.booleans(),
    st.floats(-3.0, 3.0),
    st.floats(-3.0, 3.0),
)
def test_axes_of_a_hinge_are_apart_by_twice_the_sine_of_half_their_angle(axis, distance, opposite, direction, spin):
    """Also where they are nearly parallel, and where they nearly point against each other."""
    bodies, hinge, k = two_bodies(1.0, 1.0), dl.Hinge("a", "b", axis=axis), "xyz".index(axis)
    with mpmath.workdps(40):
        half = (mpmath.pi - distance if opposite else mpmath.mpf(distance)) / 2
        across = np.zeros(3) * mpmath.mpf(0)
        across[(k + 1) % 3], across[(k + 2) % 3] = mpmath.cos(direction), mpmath.sin(direction)
        tilt = np.array([*(across * mpmath.sin(half)), mpmath.cos(half)])
        turn = np.array([*(mpmath.sin(spin) * np.eye(3, dtype=int)[k]), mpmath.cos(spin)])
        q = np.concatenate([bodies.neutral()[:10], quaternion_multiply(tilt, turn).astype(float)])
        length, expected = float(2 * mpmath.sin(half)), (-2 * mpmath.sin(half) * across).astype(float)
    error = np.zeros(6)
    error[list(hinge.rows)] = hinge.position_error(LinkMotions.of(bodies, q, np.zeros(12)))
    assert np.linalg.norm(error) == pytest.approx(length, rel=4e-15, abs=4e-16)
    np.testing.assert_allclose(error[3:], expected, rtol=0, atol=1e-15 * (1.0 + length / distance))


@settings(max_examples=examples(30))
@given(st.sets(st.integers(0, 5), min_size=1))
def test_chosen_rows_of_a_loop_are_rows_of_the_whole(chosen):
    rows = sorted(chosen)
    q = ROBOT.random_configuration(np.random.default_rng(3))
    whole = dl.constraint_jacobian.python(dl.Mechanism(ROBOT, dl.Weld("left_palm", "right_palm", **AT)), q)
    some = dl.constraint_jacobian.python(dl.Mechanism(ROBOT, dl.Weld("left_palm", "right_palm", rows=rows, **AT)), q)
    np.testing.assert_allclose(some, whole[rows], atol=1e-14)


# --- what cannot be ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "refusal"),
    [
        (lambda: dl.Point("left_palm", "left_palm"), ("immovable", "'left_palm'")),
        (lambda: dl.Weld("left_palm", "left_hand"), ("immovable",)),
        (lambda: dl.Distance("left_palm", "right_palm", length=0.0), ("out-of-range",)),
        (lambda: dl.Hinge("left_palm", "right_palm", axis="w"), ("unknown-option", "'x'", "'y'", "'z'")),
        (lambda: dl.Hinge("left_palm", "right_palm", rows=("rz",)), ("conflicting-arguments",)),
        (lambda: dl.Point("left_palm", "right_palm", position=(0, 0, 0)), ("conflicting-arguments",)),
        (lambda: dl.Point("left_palm", placement2=HERE), ("conflicting-arguments",)),
        (lambda: dl.Coupling("left_shin_joint", "left_shin_joint"), ("immovable",)),
        (lambda: dl.Coupling("pelvis_joint", "left_shin_joint"), ("not-supported", "joints")),
        (lambda: dl.Implicit(lambda k, q: q[:2], rows=3), ("function-failed", "(2,)")),
        (lambda: dl.Implicit(lambda k, q: dnp.zeros(1), rows=1), ("immovable",)),
        (lambda: dl.Implicit(lambda k, q: k.position("palm")[:1], rows=1), ("function-failed", "palm")),
        (lambda: dl.Implicit(3.0, rows=1), ("wrong-type",)),
        (lambda: dl.Implicit(palms_level, rows=0), ("out-of-range",)),
        (lambda: dl.Point("left_palm", position=lambda t: t), ("function-failed",)),
    ],
)
def test_what_cannot_be_a_constraint_is_refused(make, refusal):
    with refuses(*refusal):
        dl.Mechanism(ROBOT, (make(),))


def test_a_state_where_a_function_has_no_derivative_is_marked():
    """The distance of a point from where it is has no direction."""

    arm = chain(2)
    at = dl.frame_placement.python(arm, arm.neutral(), frame="link1")[1]

    def there(kinematics, q):
        return dnp.stack([dnp.linalg.norm(kinematics.position("link1") - dnp.array(at))])

    mechanism = dl.Mechanism(arm, (dl.Implicit(there, rows=1),))
    q = np.stack([arm.neutral(), arm.neutral() + 0.3])
    found = dl.constrained_dynamics(mechanism, q, np.zeros((2, 2)), np.zeros((2, 2)))
    assert found.status.tolist() == [int(dl.Status.NOT_FINITE), int(dl.Status.CONVERGED)]
