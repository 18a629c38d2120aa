"""What a model tells as arrays and by the names of its joints; mechanisms and models with parameters tell the same."""

import numpy as np
import pinocchio as pin
import pytest

import delassus as dl
from delassus.model.joints import Free, Planar, Prismatic, Revolute, Spherical, Universal
from delassus.model.model import Model
from delassus.model.parts import Frame, Joint, Mimic
from delassus.model.placement import Inertia, Placement
from refusals import refuses
from robots import file
from urdf_samples import FIXED

BALL = Inertia.of(2.0, (0.1, 0.2, 0.3), np.diag([0.3, 0.4, 0.5]))
MIXED = Model(
    "mixed",
    (
        Joint("base", Free(), inertia=BALL),
        Joint("elbow", Revolute(), 0, inertia=BALL, lower=(-1.0,), upper=(2.0,), velocity_limit=(3.0,)),
        Joint("follower", Revolute(), 1, inertia=BALL, lower=(-9.0,), upper=(9.0,), mimic=Mimic(1, 2.0)),
        Joint("ball", Spherical(), 2, inertia=BALL, effort_limit=(4.0, 5.0, 6.0)),
        Joint("left knee", Universal(), 1, inertia=BALL, lower=(-np.inf, 0.5), upper=(0.0, 1.5)),
        Joint("rail", Prismatic(), 4, lower=(200.0,), upper=(900.0,)),
        Joint("mover", Planar(), 0, inertia=BALL),
    ),
    (Frame("trunk", 0, role="link"), Frame("hand", 1, Placement.of(p=(0, 0, 1)), "link"), Frame("floor", -1)),
)
ALIKE = [MIXED, dl.Mechanism(MIXED), MIXED.parametric("gravity")]
alike = pytest.mark.parametrize("model", ALIKE, ids=lambda model: type(model).__name__)


# --- names ------------------------------------------------------------------------------------------------------------


@alike
def test_a_joint_says_where_its_coordinates_and_velocities_are(model):
    assert (model.q_slice("base"), model.v_slice("base")) == (slice(0, 7), slice(0, 6))
    assert (model.q_slice("ball"), model.v_slice("ball")) == (slice(8, 12), slice(7, 10))
    assert model.q_slice("follower") == model.q_slice("elbow") == slice(7, 8)


def test_places_are_those_of_pinocchio():
    theirs = pin.buildModelFromUrdf(str(file("solo12.urdf")), pin.JointModelFreeFlyer())
    ours = dl.from_pinocchio(theirs)
    for name, joint in zip(theirs.names[1:], theirs.joints[1:], strict=True):
        assert ours.q_slice(name) == slice(joint.idx_q, joint.idx_q + joint.nq)
        assert ours.v_slice(name) == slice(joint.idx_v, joint.idx_v + joint.nv)


def test_an_unknown_joint_is_answered_with_the_nearest():
    with refuses("unknown-joint", "elbow"):
        MIXED.q_slice("elbwo")


# --- limits -----------------------------------------------------------------------------------------------------------


@alike
def test_limits_are_arrays_over_coordinates_and_velocities(model):
    inf = np.inf
    lower = [*[-inf] * 7, -1.0, *[-inf] * 4, -inf, 0.5, 200.0, *[-inf] * 3]
    upper = [*[inf] * 7, 2.0, *[inf] * 4, 0.0, 1.5, 900.0, *[inf] * 3]
    np.testing.assert_array_equal(model.lower, lower)
    np.testing.assert_array_equal(model.upper, upper)
    np.testing.assert_array_equal(model.velocity_limit, [*[inf] * 6, 3.0, *[inf] * 9])
    np.testing.assert_array_equal(model.effort_limit, [*[inf] * 7, 4.0, 5.0, 6.0, *[inf] * 6])


def test_limits_are_those_of_pinocchio():
    theirs = pin.buildModelFromUrdf(str(file("ur5_robot.urdf")))
    ours = dl.load(file("ur5_robot.urdf"))
    np.testing.assert_array_equal(ours.lower, theirs.lowerPositionLimit)
    np.testing.assert_array_equal(ours.upper, theirs.upperPositionLimit)
    np.testing.assert_array_equal(ours.velocity_limit, theirs.velocityLimit)
    np.testing.assert_array_equal(ours.effort_limit, theirs.effortLimit)
    assert ours.mass == pytest.approx(pin.computeTotalMass(theirs), rel=1e-14)


def test_writing_to_limits_leaves_the_model_as_it_is():
    MIXED.lower[:] = 0.0
    assert MIXED.lower[7] == -1.0


@alike
def test_the_mass_is_that_of_all_bodies(model):
    assert model.mass == 12.0


# --- configurations ---------------------------------------------------------------------------------------------------


@alike
def test_a_configuration_is_neutral_but_for_the_joints_that_are_named(model):
    q = model.configuration({"left knee": (-0.1, 0.7)}, elbow=0.3, ball=(0, 0, 1, 0))
    expected = model.neutral()
    expected[7], expected[8:12], expected[12:14] = 0.3, (0, 0, 1, 0), (-0.1, 0.7)
    np.testing.assert_array_equal(q, expected)


@pytest.mark.parametrize(
    ("coordinates", "refusal"),
    [
        ({"left knee": 0.1}, ("wrong-shape", "'left knee'", "2")),
        ({"elbow": (0.1, 0.2)}, ("wrong-shape", "'elbow'", "(2,)", "1")),
        ({"follower": 0.1}, ("bad-mimicry", "'follower'", "'elbow'")),
        ({"elbwo": 0.1}, ("unknown-joint", "elbow")),
    ],
)
def test_coordinates_that_a_joint_does_not_have_are_refused(coordinates, refusal):
    with refuses(*refusal):
        MIXED.configuration(coordinates)


@alike
@pytest.mark.parametrize(("size", "shape"), [(None, ()), (0, (0,)), (5, (5,)), ((2, 3), (2, 3)), ((), ())])
def test_random_configurations_come_in_any_number(model, size, shape):
    assert model.random_configuration(np.random.default_rng(0), size).shape == (*shape, model.nq)


def test_random_configurations_of_a_batch_are_within_limits_and_have_unit_quaternions():
    q = MIXED.random_configuration(np.random.default_rng(0), 1000)
    assert np.all((MIXED.lower <= q) & (q <= MIXED.upper))
    np.testing.assert_allclose(np.linalg.norm(q[:, 3:7], axis=-1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(q[:, MIXED.q_slice("ball")], axis=-1), 1.0, rtol=1e-14)
    assert np.all(np.ptp(q, axis=0) > 0.4)


def test_one_of_a_batch_of_one_is_the_one_that_is_drawn_alone():
    alone = MIXED.random_configuration(np.random.default_rng(3))
    np.testing.assert_array_equal(MIXED.random_configuration(np.random.default_rng(3), 1)[0], alone)


# --- gravity, inertias, placements ------------------------------------------------------------------------------------


def test_gravity_can_be_another():
    q = MIXED.random_configuration(np.random.default_rng(0))
    moon = MIXED.with_gravity([0.0, 0.0, -1.62])
    assert moon.gravity == (0.0, 0.0, -1.62)
    expected = dl.gravity_torques.python(MIXED, q) * (1.62 / 9.81)
    np.testing.assert_allclose(dl.gravity_torques.python(moon, q), expected, atol=1e-12)


@pytest.mark.parametrize("gravity", [-9.81, (0.0, -9.81), (0.0, 0.0, np.nan)])
def test_gravity_is_three_finite_numbers(gravity):
    with pytest.raises((ValueError, dl.DelassusError), match="gravity"):
        MIXED.with_gravity(gravity)


def test_a_body_is_named_by_its_joint_or_its_link():
    light = Inertia.of(0.1)
    assert MIXED.with_inertia("trunk", light) == MIXED.with_inertia("base", light)
    assert MIXED.with_inertia("trunk", light).joint("base").inertia == light


def test_a_link_that_is_but_a_part_of_a_body_is_refused():
    with refuses("bad-parameter", "'c'", "'j'"):
        dl.load(FIXED).with_inertia("c", BALL)


def test_a_link_of_the_world_has_no_inertia_to_change():
    with refuses("bad-parameter", "'a'"):
        dl.load(FIXED).with_inertia("a", BALL)


def test_a_body_that_is_not_there_is_answered_with_the_nearest():
    with refuses("unknown-joint", "trunk"):
        MIXED.with_inertia("trunc", BALL)


def test_a_placement_comes_from_a_homogeneous_matrix_and_back():
    M = pin.SE3.Random()
    placement = Placement.from_matrix(M.homogeneous)
    np.testing.assert_array_equal(placement.R, M.rotation)
    np.testing.assert_array_equal(placement.p, M.translation)
    np.testing.assert_array_equal(placement.homogeneous, M.homogeneous)


@pytest.mark.parametrize(
    ("T", "refusal"),
    [
        (np.eye(3), ("wrong-shape", "shape")),
        (np.diag([1.0, 1.0, 1.0, 2.0]), ("not-a-rotation",)),
        (np.diag([1.0, 1.0, -1.0, 1.0]), ("not-a-rotation", "rotation")),
        (np.diag([1.0, 1.0, np.nan, 1.0]), ("not-a-rotation",)),
    ],
)
def test_what_is_no_homogeneous_matrix_is_refused(T, refusal):
    with refuses(*refusal):
        Placement.from_matrix(T)


# --- bundled robots ---------------------------------------------------------------------------------------------------


def test_the_robots_of_the_package_are_listed_with_what_they_are():
    robots = dl.robots()
    assert robots["humanoid"].startswith("A humanoid of 1.6 m")
    assert all(dl.load(name).name and text for name, text in robots.items())
