"""Joints of every kind against Pinocchio, in mechanisms of random shape, order, placements and inertias.

A relative error in the infinity norm of 1e-10 is allowed, more for accelerations where the mass matrix is ill
conditioned.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings

import delassus as dl
from delassus.model.joints import rotation_to_axis
from delassus.model.model import Model
from delassus.model.motions.prismatic import PRISMATIC
from delassus.model.parts import Joint
from how_many import examples
from joint_cases import (
    EACH,
    KINDS,
    Case,
    X,
    Y,
    Z,
    continuous_about,
    cylindrical,
    mechanism,
    mechanisms,
    random_axis,
    with_all_kinds,
)
from joint_checks import (
    CHECKS,
    NAMES,
    check_aba,
    check_external_forces,
    check_kinematics,
    check_regressor,
    exponential,
    plainly,
    verify,
)
from refusals import refuses


@pytest.mark.parametrize("check", CHECKS, ids=NAMES)
@settings(max_examples=examples(12), deadline=None, database=None)
@given(c=mechanisms())
def test_any_mechanism_agrees_with_pinocchio(check, c):
    verify(c, check, plainly(c.model))


@pytest.mark.parametrize("armature", [False, True], ids=["without armature", "with armature"])
@pytest.mark.parametrize("check", CHECKS, ids=NAMES)
def test_a_mechanism_with_all_kinds_of_joints_agrees_with_pinocchio(check, armature):
    c = with_all_kinds(armature)
    verify(c, check, plainly(c.model))


@pytest.mark.parametrize("check", CHECKS, ids=NAMES)
def test_a_compiled_mechanism_with_all_kinds_of_joints_agrees_with_pinocchio(check):
    c = with_all_kinds(True)
    verify(c, check, lambda kernel, *arrays, **options: kernel(c.model, *arrays, **options))


@pytest.mark.parametrize("kind", KINDS)
def test_a_single_joint_has_pinocchios_accelerations(kind):
    c = mechanism([kind], [0], 3)
    verify(c, check_aba, plainly(c.model))


# --- from Pinocchio and back ------------------------------------------------------------------------------------------


def test_configurations_survive_the_way_to_pinocchio_and_back():
    c = with_all_kinds(False)
    np.testing.assert_allclose(dl.q_from_pinocchio(c.model, c.pq), c.q, rtol=0, atol=1e-15)


def test_configurations_of_pinocchio_survive_the_way_here_and_back():
    c = with_all_kinds(False)
    np.testing.assert_allclose(dl.q_to_pinocchio(c.model, dl.q_from_pinocchio(c.model, c.pq)), c.pq, rtol=0, atol=1e-15)


def test_batches_of_configurations_are_converted_row_by_row():
    c = with_all_kinds(False)
    rng = np.random.default_rng(2)
    q = np.array([[c.model.random_configuration(rng) for _ in range(3)] for _ in range(2)])
    theirs = dl.q_to_pinocchio(c.model, q)
    assert theirs.shape == (2, 3, c.theirs.nq)
    np.testing.assert_array_equal(theirs[1, 2], dl.q_to_pinocchio(c.model, q[1, 2]))
    np.testing.assert_array_equal(
        dl.q_from_pinocchio(c.model, theirs)[1, 2], dl.q_from_pinocchio(c.model, theirs[1, 2])
    )


def test_a_configuration_with_too_many_numbers_is_refused():
    c = with_all_kinds(False)
    with refuses("wrong-shape"):
        dl.q_from_pinocchio(c.model, np.zeros(c.theirs.nq + 1))


def test_neutral_is_pinocchios():
    c = with_all_kinds(False)
    np.testing.assert_array_equal(dl.q_to_pinocchio(c.model, c.model.neutral()), pin.neutral(c.theirs))


def test_a_continuous_joint_of_pinocchio_keeps_its_axis():
    theirs = pin.Model()
    theirs.addJoint(0, continuous_about(np.array([1.0, 2.0, 2.0]) / 3), pin.SE3.Identity(), "j")
    assert dl.from_pinocchio(theirs).joints[0].kind == dl.Revolute((1 / 3, 2 / 3, 2 / 3), continuous=True)


def test_a_joint_of_pinocchio_without_counterpart_is_refused():
    theirs = pin.Model()
    theirs.addJoint(0, pin.JointModelSphericalZYX(), pin.SE3.Identity(), "j")
    with refuses("not-supported", "SphericalZYX"):
        dl.from_pinocchio(theirs)


# --- cylindrical joints, which Pinocchio has none of ------------------------------------------------------------------


BY_BODY = (check_kinematics, check_external_forces, check_regressor)  # these have something per joint


@pytest.mark.parametrize("check", [c for c in CHECKS if c not in BY_BODY], ids=lambda c: c.__name__[6:])
def test_a_cylindrical_joint_is_a_prismatic_and_a_revolute_one(check):
    c, _ = cylindrical()
    verify(c, check, plainly(c.model))


def test_bodies_behind_a_cylindrical_joint_are_where_pinocchio_has_them():
    c, _ = cylindrical()
    pin.forwardKinematics(c.theirs, c.data, c.q)
    _, p = dl.forward_kinematics.python(c.model, c.q)
    np.testing.assert_allclose(p, [c.data.oMi[k].translation for k in (1, 3, 4)], atol=1e-14)


def test_forces_on_bodies_behind_a_cylindrical_joint_give_pinocchios_torques():
    c, two = cylindrical()
    forces = np.random.default_rng(1).normal(size=(4, 6))
    forces[1] = 0.0
    theirs = dl.rnea.python(two.model, c.q, c.v, c.a, forces=forces)
    ours = dl.rnea.python(c.model, c.q, c.v, c.a, forces=forces[[0, 2, 3]])
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


# --- axes -------------------------------------------------------------------------------------------------------------

LONG = (0.0, -3.0, 4.0)
WITH_AXES: dict[str, Callable[..., dl.JointKind]] = {
    "revolute": dl.Revolute,
    "prismatic": dl.Prismatic,
    "helical": dl.Helical,
    "cylindrical": dl.Cylindrical,
    "planar": dl.Planar,
    "universal": dl.Universal,
}


@pytest.mark.parametrize("name", WITH_AXES)
def test_the_length_of_an_axis_does_not_matter(name):
    kind = WITH_AXES[name]
    assert kind(LONG) == kind((0.0, -0.6, 0.8))


@pytest.mark.parametrize("name", WITH_AXES)
@pytest.mark.parametrize("length", [0.0, float("nan"), float("inf")], ids=str)
def test_an_axis_without_direction_is_refused(name, length):
    with refuses("zero-direction"):
        WITH_AXES[name]((0.0, length, 0.0))


@pytest.mark.parametrize("length", [5e-324, 1e-310, 1e-160, 1e300])
def test_an_axis_of_any_length_has_length_one(length):
    np.testing.assert_allclose(dl.Revolute((length, -length, 0.0)).axis, [np.sqrt(0.5), -np.sqrt(0.5), 0.0], atol=2e-16)


def test_both_axes_of_a_universal_joint_are_directions():
    assert dl.Universal(second=LONG).second == (0.0, -0.6, 0.8)


def test_a_unit_axis_is_kept_to_the_bit():
    axis = tuple(random_axis(np.random.default_rng(0)).tolist())
    assert dl.Revolute(axis).axis == axis


def test_a_long_axis_moves_as_pinocchios_unit_axis():
    c = mechanism(["revolute y"], [0], 1)
    kind = dl.Revolute((0.0, 5.0, 0.0))
    (joint,) = c.model.joints
    model = Model("long", (Joint("j", kind, placement=joint.placement, inertia=joint.inertia),))
    np.testing.assert_allclose(dl.rnea.python(model, c.q, c.v, c.a), pin.rnea(c.theirs, c.data, c.pq, c.v, c.a))


@pytest.mark.parametrize("axis", [X, Y, Z, -X, -Y, -Z, [1.0, 2.0, 2.0]], ids=str)
def test_a_planar_joint_moves_across_its_normal(axis):
    normal = np.array(axis) / np.linalg.norm(axis)
    model = Model("plane", (Joint("j", dl.Planar(tuple(normal.tolist()))),))
    R, p = dl.forward_kinematics.python(model, np.array([0.3, -0.7, 0.5]))
    np.testing.assert_allclose([p[0] @ normal, np.linalg.norm(p[0])], [0.0, np.hypot(0.3, 0.7)], atol=1e-15)
    np.testing.assert_allclose(R[0], pin.AngleAxis(0.5, normal).matrix(), atol=1e-15)


@pytest.mark.parametrize("axis", [X, Y, Z, -X, -Y, -Z], ids=str)
def test_the_frame_of_an_axis_is_a_rotation_at_any_distance_from_a_coordinate_axis(axis):
    tilt = np.random.default_rng(0).normal(size=(17, 3)) * 10.0 ** np.arange(-16.0, 1.0)[:, None]
    for direction in [axis, *(axis + tilt)]:
        near = direction / np.linalg.norm(direction)
        R = rotation_to_axis(tuple(near.tolist()))
        np.testing.assert_array_equal(R[:, 2], near)
        np.testing.assert_allclose(R.T @ R, np.eye(3), rtol=0, atol=1e-15)
        assert np.linalg.det(R) > 0.0


# --- moving on the manifold -------------------------------------------------------------------------------------------

MANIFOLDS: dict[str, Callable[[], dl.JointKind]] = {"free": dl.Free, "spherical": dl.Spherical, "planar": dl.Planar}
ANGLES = [0.0, 1e-300, 1e-150, 1e-16, 1e-9, 1e-6, 9.9e-4, 1.1e-3, 1e-2, 0.1, 0.199, 0.2, 0.499, 0.501, 1.0, 3.0, 3.14]


def manifold(name) -> Case:
    return mechanism([name], [0], 11)


def way(name, angle):
    """A tangent vector that turns by an angle [rad]."""
    turn = angle * np.array([2.0, -1.0, 2.0]) / 3.0
    return {
        "spherical": turn,
        "free": np.concatenate([[0.3, -0.2, 0.5], turn]),
        "planar": np.array([0.3, -0.2, angle]),
    }[name]


@pytest.mark.parametrize("angle", ANGLES)
@pytest.mark.parametrize("name", MANIFOLDS)
def test_difference_finds_the_way_that_integrate_went(name, angle):
    c, w = manifold(name), way(name, angle)
    found = dl.difference.python(c.model, c.q, dl.integrate.python(c.model, c.q, w))
    np.testing.assert_allclose(found, w, rtol=0, atol=1e-12)


def placed(c: Case, q):
    """The body's placement (4, 4) in the joint's frame."""
    pin.forwardKinematics(c.theirs, c.data, dl.q_to_pinocchio(c.model, q))
    return c.data.joints[1].M.homogeneous


@pytest.mark.parametrize("angle", [*ANGLES, np.pi, 4.0, 2 * np.pi, 20.0])
@pytest.mark.parametrize("name", MANIFOLDS)
def test_integrate_follows_the_matrix_exponential(name, angle):
    c, w = manifold(name), way(name, angle)
    reached = placed(c, dl.integrate.python(c.model, c.q, w))
    np.testing.assert_allclose(reached, placed(c, c.q) @ exponential(name, w), rtol=0, atol=2e-15 * (1.0 + angle))


def turned_on(c: Case, turn):
    """A planar configuration that is some way off and turned by an angle [rad], over half a turn as it may be."""
    return c.q + np.array([0.3, -0.2, turn])


@pytest.mark.parametrize("turn", [3.2, 2 * np.pi - 0.1, 2 * np.pi, 7.0, 20.0, -3.2, -20.0, -1e4])
def test_the_difference_of_planar_configurations_is_pinocchios_beyond_half_a_turn(turn):
    c = manifold("planar")
    there = turned_on(c, turn)
    expected = pin.difference(c.theirs, dl.q_to_pinocchio(c.model, c.q), dl.q_to_pinocchio(c.model, there))
    found = dl.difference.python(c.model, c.q, there)
    np.testing.assert_allclose(found, expected, rtol=0, atol=4e-16 * (1.0 + abs(turn)))


@pytest.mark.parametrize("turn", [np.pi, -np.pi, 3.2, 2 * np.pi - 1e-3, 2 * np.pi, 2 * np.pi + 1e-9, -20.0, 1e4])
def test_the_difference_of_planar_configurations_leads_there(turn):
    c = manifold("planar")
    there = turned_on(c, turn)
    reached = dl.integrate.python(c.model, c.q, dl.difference.python(c.model, c.q, there))
    np.testing.assert_allclose(placed(c, reached), placed(c, there), rtol=0, atol=4e-16 * (1.0 + abs(turn)))


def test_a_planar_difference_of_less_than_half_a_turn_is_the_plain_one_to_the_bit():
    model = manifold("planar").model
    for turn in (1e-9, 0.1, 3.14, -np.pi, np.pi):
        assert dl.difference.python(model, np.zeros(3), np.array([0.3, -0.2, turn]))[2] == turn


@pytest.mark.parametrize("below", [1e-3, 1e-6, 1e-9, 1e-12, 0.0])
@pytest.mark.parametrize("name", ["free", "spherical"])
def test_a_difference_of_nearly_half_a_turn_leads_there(name, below):
    c = manifold(name)
    there = dl.integrate.python(c.model, c.q, way(name, np.pi - below))
    reached = dl.integrate.python(c.model, c.q, dl.difference.python(c.model, c.q, there))
    reached[-4:] *= np.sign(reached[-4:] @ there[-4:])
    np.testing.assert_allclose(reached, there, rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", ["free", "spherical"])
def test_a_difference_is_the_shorter_way_round(name):
    c = manifold(name)
    there = dl.integrate.python(c.model, c.q, way(name, 2 * np.pi - 1.0))
    turn = dl.difference.python(c.model, c.q, there)[-3:]
    np.testing.assert_allclose(turn, way(name, -1.0)[-3:], atol=1e-13)


@pytest.mark.parametrize("name", ["free", "spherical"])
def test_opposite_quaternions_do_not_differ(name):
    c = manifold(name)
    there = c.q.copy()
    there[-4:] *= -1.0
    np.testing.assert_allclose(dl.difference.python(c.model, c.q, there), 0.0, atol=1e-15)


def test_an_angle_is_not_wrapped():
    c = mechanism(["continuous z"], [0], 11)
    np.testing.assert_array_equal(dl.difference.python(c.model, np.zeros(1), np.array([20.0])), [20.0])


@pytest.mark.parametrize("name", ["free", "spherical"])
def test_steps_keep_quaternions_at_length_one(name):
    c = manifold(name)
    q = c.q
    for _ in range(200):
        q = dl.integrate.python(c.model, q, way(name, 0.7))
    assert np.linalg.norm(q[-4:]) == pytest.approx(1.0, abs=4e-16)


# --- quaternions of another length ------------------------------------------------------------------------------------


def stretched(c: Case):
    q = c.q.copy()
    q[-4:] *= 1.5
    return q


@pytest.mark.parametrize("name", ["free", "spherical"])
def test_a_quaternion_that_is_not_of_length_one_is_no_rotation(name):
    c = manifold(name)
    R, _ = dl.forward_kinematics.python(c.model, stretched(c))
    assert np.max(np.abs(R[0] @ R[0].T - np.eye(3))) > 0.1


@pytest.mark.parametrize("name", ["free", "spherical"])
def test_normalize_repairs_a_quaternion(name):
    c = manifold(name)
    np.testing.assert_allclose(dl.normalize.python(c.model, stretched(c)), c.q, rtol=0, atol=4e-16)


def test_normalize_leaves_all_other_coordinates_alone():
    c = mechanism([kind for kind in EACH if kind not in ("free", "spherical")], [0] * (len(EACH) - 2), 1)
    np.testing.assert_array_equal(dl.normalize.python(c.model, c.q), c.q)


def test_all_quaternions_of_a_mechanism_are_normalised_as_pinocchio_does():
    c = with_all_kinds(False)
    q = c.q.copy()
    for joint, i in zip(c.model.joints, c.model.q_starts, strict=True):
        if isinstance(joint.kind, dl.Free | dl.Spherical):
            q[i + joint.kind.nq - 4 : i + joint.kind.nq] *= 3.0
    there = pin.normalize(c.theirs, dl.q_to_pinocchio(c.model, q))
    np.testing.assert_allclose(dl.q_to_pinocchio(c.model, dl.normalize(c.model, q)), there, rtol=0, atol=1e-15)


def test_translations_have_no_quaternion_to_normalise():
    assert dl.Translation().nq == dl.Translation().nv


# --- joints of several elements ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SlidingBall(dl.JointKind):
    """A ball joint that slides, then a free flight: no kind of the package has quaternions behind other coordinates."""

    label = "sliding ball"

    @property
    def elements(self):
        return ((PRISMATIC, (0.0, 0.0, 1.0), 0.0), *dl.Spherical().elements, *dl.Free().elements)


COMPOSED = Model("composed", (Joint("j", SlidingBall()),))
APART = Model("apart", (Joint("a", dl.Prismatic()), Joint("b", dl.Spherical(), 0), Joint("c", dl.Free(), 1)))


def test_a_joint_of_several_elements_has_their_neutral_coordinates():
    np.testing.assert_array_equal(COMPOSED.neutral(), APART.neutral())


def test_a_joint_of_several_elements_has_their_random_coordinates():
    limits = (-0.5,) * 12
    limited = Model("limited", (Joint("j", SlidingBall(), lower=limits, upper=tuple(-x for x in limits)),))
    q = limited.random_configuration(np.random.default_rng(0))
    np.testing.assert_allclose([np.linalg.norm(q[1:5]), np.linalg.norm(q[8:])], 1.0, atol=1e-15)
    assert np.max(np.abs(q[[0, 5, 6, 7]])) <= 0.5


def test_a_joint_of_several_elements_is_converted_to_mujocos_layout_as_they_are():
    rng = np.random.default_rng(0)
    q, v, a = APART.random_configuration(rng), *rng.normal(size=(2, 10))
    np.testing.assert_array_equal(dl.q_to_mujoco(COMPOSED, q), dl.q_to_mujoco(APART, q))
    np.testing.assert_array_equal(dl.a_to_mujoco(COMPOSED, q, v, a), dl.a_to_mujoco(APART, q, v, a))


def test_springs_of_a_joint_of_several_elements_are_theirs():
    stiffness = tuple(np.arange(1.0, 11.0).tolist())
    composed = Model("composed", (replace(COMPOSED.joints[0], stiffness=stiffness),))
    parts = ((0, 1), (1, 4), (4, 10))
    apart = [replace(joint, stiffness=stiffness[i:j]) for joint, (i, j) in zip(APART.joints, parts, strict=True)]
    rng = np.random.default_rng(0)
    q, v = APART.random_configuration(rng), np.zeros(10)
    expected = dl.passive_forces.python(Model("apart", tuple(apart)), q, v)
    np.testing.assert_array_equal(dl.passive_forces.python(composed, q, v), expected)
