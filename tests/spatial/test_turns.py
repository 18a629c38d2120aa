"""Constant rotations as turns about z, x and z: near the two where the turns are not unique, and through whole models.

Where the axes of two joints in a row are parallel, or nearly so, only the sum (or the difference) of the turns about z
matters, and the rotation hardly says how it is shared. Real robots have round numbers there; CAD exports do not.
"""

import math
from itertools import permutations, product

import mpmath
import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import delassus as dl
from contacts_in_pinocchio import constraint_dynamics
from delassus.model.joints import Cylindrical
from delassus.model.model import Model
from delassus.model.parts import Frame, Joint
from delassus.spatial.turns import turn_about_z, zxz
from how_many import examples
from joint_cases import (
    Case,
    body,
    continuous_about,
    mass_matrix,
    placement,
    random_axis,
    random_inertia,
    random_rotation,
)
from joint_checks import (
    check_aba,
    check_aba_derivatives,
    check_crba,
    check_frame_biases,
    check_jacobians,
    check_kinematics,
    check_rnea,
    exponential,
    plainly,
    verify,
)
from mechanisms import relative, two_bodies

FLIP = np.diag([1.0, -1.0, -1.0])
distances = st.tuples(st.floats(0.4, math.pi), st.integers(-16, 0)).map(lambda x: x[0] * 10.0 ** x[1])
angles = st.floats(-math.pi, math.pi) | st.sampled_from([0.0, math.pi / 2, math.pi, -math.pi / 2]) | distances
seeds = st.integers(0, 2**32 - 1)


# --- the turns of a matrix --------------------------------------------------------------------------------------------


def exactly(axis, c, s):
    """A turn about an axis as a matrix of numbers with 40 digits."""
    R = np.array([[mpmath.mpf(int(i == j)) for j in range(3)] for i in range(3)])
    i, j = (axis + 1) % 3, (axis + 2) % 3
    R[i, i] = R[j, j] = mpmath.mpf(c)
    R[i, j], R[j, i] = -mpmath.mpf(s), mpmath.mpf(s)
    return R


def by_angles(alpha, beta, gamma):
    with mpmath.workdps(40):
        turns = [exactly(k, mpmath.cos(x), mpmath.sin(x)) for k, x in ((2, alpha), (0, beta), (2, gamma))]
        return (turns[0] @ turns[1] @ turns[2]).astype(float)


@st.composite
def rotations(draw):
    """At any distance from those that keep the z axis or turn it over; half of them with the rounding of a product."""
    beta = draw(distances)
    beta = math.pi - mpmath.mpf(beta) if draw(st.booleans()) else beta
    R = by_angles(draw(angles), beta, draw(angles))
    if draw(st.booleans()):
        there = random_rotation(np.random.default_rng(draw(seeds)))
        return there @ (there.T @ R)
    return R


@settings(max_examples=examples(1000), database=None)
@given(rotations())
def test_the_turns_of_a_rotation_make_it_up(R):
    no_rotation = np.max(np.abs(R.T @ R - np.eye(3)))  # the rounding of a product
    with mpmath.workdps(40):
        alpha, beta, gamma = (exactly(*t) for t in zxz(R))
        assert np.max(np.abs(alpha @ beta @ gamma - R)) <= 1.3e-15 + no_rotation


@settings(max_examples=examples(1000), database=None)
@given(rotations())
def test_cosine_and_sine_of_a_turn_have_length_one(R):
    with mpmath.workdps(40):
        assert all(abs(mpmath.mpf(c) ** 2 + mpmath.mpf(s) ** 2 - 1) <= 4.5e-16 for _, c, s in zxz(R))


def test_rotations_by_quarters_have_turns_by_quarters():
    for order, signs in product(permutations(range(3)), product((1.0, -1.0), repeat=3)):
        R = np.diag(signs)[list(order)]
        if np.linalg.det(R) > 0.0:
            assert all(sorted(map(abs, t[1:])) == [0.0, 1.0] for t in zxz(R))


@settings(max_examples=examples(100), database=None)
@given(distances, st.floats(-math.pi, math.pi))
def test_a_rotation_by_roll_and_yaw_needs_no_third_turn(roll, yaw):
    _, _, (_, c, s) = zxz(dl.Placement.from_xyz_rpy(rpy=(roll, 0.0, yaw)).R)
    assert (abs(c), s) == (1.0, 0.0)


@settings(max_examples=examples(1000), database=None)
@given(st.floats(-1e6, 1e6) | distances, angles)
def test_an_angle_after_a_constant_turn_is_off_by_no_more_than_its_own_rounding(angle, before):
    first = (math.cos(before), math.sin(before))
    _, c, s = turn_about_z(angle, (2, *first))
    with mpmath.workdps(40):
        here = exactly(2, mpmath.cos(angle), mpmath.sin(angle)) @ exactly(2, *first)
        assert max(abs(here[0, 0] - c), abs(here[1, 0] - s)) <= 5e-16 + 0.51 * np.spacing(abs(angle) + math.pi)


# --- through whole models, against Pinocchio --------------------------------------------------------------------------

KINDS = {
    "revolute": lambda axis, rng: pin.JointModelRevoluteUnaligned(axis),
    "continuous": lambda axis, rng: continuous_about(axis),
    "prismatic": lambda axis, rng: pin.JointModelPrismaticUnaligned(axis),
    "helical": lambda axis, rng: pin.JointModelHelicalUnaligned(axis, rng.uniform(-0.5, 0.5)),
    "universal": lambda axis, rng: pin.JointModelUniversal(axis, across(axis, rng)),
    "revolute z": lambda axis, rng: pin.JointModelRZ(),
    "prismatic z": lambda axis, rng: pin.JointModelPZ(),
    "free": lambda axis, rng: pin.JointModelFreeFlyer(),
    "spherical": lambda axis, rng: pin.JointModelSpherical(),
    "planar": lambda axis, rng: pin.JointModelPlanar(),
    "translation": lambda axis, rng: pin.JointModelTranslation(),
}


def across(axis, rng):
    """A random direction at right angles to an axis."""
    found = np.cross(axis, random_axis(rng))
    return found / np.linalg.norm(found)


def nearly_parallel(rng, axis, distance):
    """A rotation that keeps an axis or turns it over, but for a tilt by some angle, with a turn about it or without."""
    spin = pin.exp3(axis * rng.choice([0.0, rng.uniform(-3.0, 3.0)]))
    over = pin.exp3(math.pi * across(axis, rng)) if rng.integers(2) else np.eye(3)
    return pin.exp3(distance * random_axis(rng)) @ over @ spin


def mount(rng, axis, distance):
    return pin.SE3(nearly_parallel(rng, axis, distance), rng.uniform(-0.5, 0.5, 3))


def chosen_axis(rng, distance):
    """z, nearly z, or any other one."""
    return [np.array([0.0, 0.0, 1.0]), pin.exp3(distance * random_axis(rng))[:, 2], random_axis(rng)][rng.integers(3)]


@st.composite
def nearly_parallel_mechanisms(draw, branches=True):
    """One to five joints of any kinds in any order, with axes that are nearly parallel from one to the next."""
    rng = np.random.default_rng(draw(seeds))
    axis = chosen_axis(rng, draw(distances))
    theirs = pin.Model()
    for k, kind in enumerate(draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=5))):
        parent = draw(st.integers(max(0, k - 1), k)) if branches else k
        i = theirs.addJoint(parent, KINDS[kind](axis, rng), mount(rng, axis, draw(distances)), f"{kind} {k}")
        theirs.appendBodyToJoint(i, random_inertia(rng), pin.SE3.Identity())
        theirs.addFrame(pin.Frame(f"frame {k}", i, 0, mount(rng, axis, draw(distances)), pin.FrameType.OP_FRAME))
    model = dl.from_pinocchio(theirs)
    return Case(model, theirs, model.random_configuration(rng), *rng.normal(size=(2, model.nv)))


NEAR = [
    check_kinematics,
    check_rnea,
    check_crba,
    check_aba,
    check_aba_derivatives,
    check_jacobians,
    check_frame_biases,
]


@pytest.mark.parametrize("check", NEAR, ids=lambda check: check.__name__[6:])
@settings(max_examples=examples(60), database=None)
@given(c=nearly_parallel_mechanisms())
def test_nearly_parallel_joints_of_any_kind_agree_with_pinocchio(check, c):
    verify(c, check, plainly(c.model))


@settings(max_examples=examples(60), database=None)
@given(nearly_parallel_mechanisms())
def test_nearly_parallel_joints_are_where_pinocchio_has_them_to_the_last_digits(c):
    assert_frames(c.model, c.q, frames_in_pinocchio(c, c.q))


@pytest.mark.parametrize("make", [dl.Point, dl.Weld])
@settings(max_examples=examples(40), database=None)
@given(nearly_parallel_mechanisms(branches=False), seeds, distances)
def test_constraints_that_are_placed_nearly_parallel_agree_with_pinocchio(make, c, seed, distance):
    last = c.model.frame_list[-1].name
    rng = np.random.default_rng(seed)
    own = placement(mount(rng, np.array([0.0, 0.0, 1.0]), distance))
    held = dl.Mechanism(c.model, make(last, placement=own))
    a, force = dl.prox_ltl.python(held, c.q, c.v, c.a, iterations=2, proximal=0.1)
    expected = constraint_dynamics(held, c.theirs, c.q, c.v, c.a, 0.1, 2)
    loss = np.linalg.cond(mass_matrix(c)) * 1e-14
    assert relative(a, expected[0]) < 1e-11 + loss
    assert relative(force, expected[1]) < 1e-11 + loss


@settings(max_examples=examples(40), database=None)
@given(seeds, distances, st.booleans())
def test_the_error_of_a_weld_leads_from_the_target_to_the_frame(seed, distance, over):
    """Also near no turn at all, and near half a turn, whose axis has no sign."""
    rng = np.random.default_rng(seed)
    bodies = two_bodies(1.0, 1.0)
    q = bodies.random_configuration(rng)
    first = pin.XYZQUATToSE3(q[:7])
    turn = random_axis(rng) * (math.pi - distance if over else distance)
    there = first * pin.SE3(pin.exp3(turn), rng.normal(size=3)).inverse()
    held = dl.Mechanism(bodies, dl.Weld("a", target=placement(there)))
    error = dl.constraint_error.python(held, q)
    expected = (there.inverse() * first).homogeneous
    np.testing.assert_allclose(exponential("free", error), expected, rtol=0, atol=1e-14)
    assert np.linalg.norm(error[3:]) <= math.pi + 1e-15


@settings(max_examples=examples(100), database=None)
@given(seeds, distances, distances)
def test_nearly_parallel_cylindrical_joints_are_prismatic_and_revolute_ones(seed, distance, tilt):
    rng = np.random.default_rng(seed)
    axis = chosen_axis(rng, tilt)
    mounts, inertias = [mount(rng, axis, distance) for _ in range(2)], [random_inertia(rng) for _ in range(2)]
    kind = Cylindrical(tuple(axis.tolist()))
    joints = [Joint(f"j{k}", kind, k - 1, placement(mounts[k]), body(inertias[k])) for k in range(2)]
    theirs, parent = pin.Model(), 0
    for where, inertia in zip(mounts, inertias, strict=True):
        parent = theirs.addJoint(parent, pin.JointModelPrismaticUnaligned(axis), where, f"slide {parent}")
        parent = theirs.addJoint(parent, pin.JointModelRevoluteUnaligned(axis), pin.SE3.Identity(), f"turn {parent}")
        theirs.appendBodyToJoint(parent, inertia, pin.SE3.Identity())
    model = Model("cylinders", tuple(joints), (Frame("frame 1", 1),))
    c = Case(model, theirs, model.random_configuration(rng), *rng.normal(size=(2, model.nv)))
    for check in (check_rnea, check_aba):
        verify(c, check, plainly(model))


# --- models made of models --------------------------------------------------------------------------------------------


def frames_in_pinocchio(c: Case, q) -> list[pin.SE3]:
    pin.framesForwardKinematics(c.theirs, c.data, dl.q_to_pinocchio(c.model, q))
    return list(c.data.oMf)


def assert_frames(model, q, expected):
    R, p = dl.frame_placements.python(model, q)
    np.testing.assert_allclose(R, [M.rotation for M in expected], rtol=0, atol=1e-14)
    np.testing.assert_allclose(p, [M.translation for M in expected], rtol=0, atol=3e-14)


@settings(max_examples=examples(60), database=None)
@given(nearly_parallel_mechanisms(), st.data(), distances, st.booleans())
def test_a_joint_that_is_locked_nearly_where_it_is_neutral_leaves_all_frames_where_pinocchio_has_them(
    c, data, distance, over
):
    """Or nearly turned over."""
    model, k = c.model, data.draw(st.integers(0, c.model.njoints - 1))
    joint, i, j = model.joints[k], model.q_starts[k], model.v_starts[k]
    way = np.zeros(model.nv)
    way[j : j + joint.kind.nv] = math.pi - distance if over else distance
    at = slice(i, i + joint.kind.nq)
    q = c.q.copy()
    q[at] = dl.integrate.python(model, model.neutral(), way)[at]
    rest = np.delete(q, np.arange(model.nq)[at])
    locked = model.lock(joint.name, q=q)
    assert_frames(locked, rest, frames_in_pinocchio(c, q))


@settings(max_examples=examples(60), database=None)
@given(nearly_parallel_mechanisms(), nearly_parallel_mechanisms(), seeds, distances)
def test_a_model_that_is_attached_nearly_parallel_has_its_frames_where_pinocchio_has_them(c, other, seed, distance):
    where = mount(np.random.default_rng(seed), np.array([0.0, 0.0, 1.0]), distance)
    last = c.model.frame_list[-1].name
    both = c.model.attach(other.model, last, placement(where), prefix="other ")
    ours, theirs = frames_in_pinocchio(c, c.q), frames_in_pinocchio(other, other.q)
    assert_frames(both, np.concatenate([c.q, other.q]), [*ours, *(ours[-1] * where * M for M in theirs)])


# --- from files -------------------------------------------------------------------------------------------------------

THERE = np.array([0.3, -0.7, 1.9])
"""Roll, pitch and yaw [rad] of a part that is turned there, and back by numbers with some digits."""


def urdf_there_and_back(digits: int, over: bool) -> str:
    """An arm with a mount between its joints that is turned there and back, or half a turn about x beyond."""
    back = pin.rpy.matrixToRpy(pin.rpy.rpyToMatrix(THERE).T @ (FLIP if over else np.eye(3)))
    text = " ".join(f"{x:.{digits}g}" for x in back)
    inertial = '<inertial><origin xyz="0.1 0.2 0.1"/><mass value="1"/>'
    inertial += '<inertia ixx="0.1" iyy="0.2" izz="0.15" ixy="0.01" ixz="0" iyz="0"/></inertial>'
    links = "".join(f'<link name="l{k}">{inertial}</link>' for k in range(4)) + '<link name="mount"/>'

    def joint(name: str, kind: str, parent: str, child: str, rpy: str) -> str:
        ends = f'<parent link="{parent}"/><child link="{child}"/><axis xyz="0 0 1"/>'
        limit = '<limit lower="-3" upper="3" effort="1" velocity="1"/>'
        return f'<joint name="{name}" type="{kind}">{ends}<origin xyz="0 0.3 0.1" rpy="{rpy}"/>{limit}</joint>'

    there = " ".join(map(str, THERE))
    joints = [
        joint("j1", "revolute", "l0", "l1", "0 0 0"),
        joint("out", "fixed", "l1", "mount", there),
        joint("j2", "revolute", "mount", "l2", text),
        joint("j3", "prismatic", "l2", "l3", "0 0 0"),
    ]
    return f'<robot name="there and back">{links}{"".join(joints)}</robot>'


@pytest.mark.parametrize("over", [False, True], ids=["back", "over"])
@pytest.mark.parametrize("digits", [3, 6, 9, 12, 14, 15, 16, 17])
def test_a_mount_turned_there_and_back_in_urdf_moves_as_in_pinocchio(digits, over):
    text = urdf_there_and_back(digits, over)
    model, theirs = dl.load(text), pin.buildModelFromXML(text)
    c = Case(model, theirs, *np.random.default_rng(digits).normal(size=(3, 3)))
    for check in (check_kinematics, check_rnea, check_aba):
        verify(c, check, plainly(model))
    _, p = dl.forward_kinematics.python(model, c.q)
    np.testing.assert_allclose(p, [M.translation for M in c.data.oMi[1:]], rtol=0, atol=1e-14)


@pytest.mark.parametrize("over", [False, True], ids=["back", "over"])
@pytest.mark.parametrize("digits", [3, 6, 9, 12, 14, 15, 16, 17])
def test_a_body_turned_there_and_back_in_mjcf_moves_as_in_mujoco(digits, over):
    mujoco = pytest.importorskip("mujoco")
    back = pin.Quaternion(pin.rpy.rpyToMatrix(THERE).T @ (FLIP if over else np.eye(3))).coeffs()
    there = pin.Quaternion(pin.rpy.rpyToMatrix(THERE)).coeffs()
    geom = "<geom type='box' size='.1 .2 .3' pos='.1 .2 .3' quat='1 .2 .3 .4'/>"
    hinge, slide = "<joint pos='.1 0 .1'/>", "<joint type='slide'/>"
    out, home = (" ".join(f"{q[k]:.{n}g}" for k in (3, 0, 1, 2)) for q, n in ((there, 17), (back, digits)))
    last = f"<body pos='0 .3 .1'>{slide}{geom}</body>"
    inner = f"<body pos='.2 0 0' quat='{out}'><body pos='0 .1 0' quat='{home}'>{hinge}{geom}{last}</body></body>"
    text = f"<mujoco><worldbody><body>{hinge}{geom}{inner}</body></worldbody></mujoco>"
    model, m = dl.load(text), mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(m)
    q, v, a = np.random.default_rng(digits).normal(size=(3, 3))
    d.qpos[:], d.qvel[:], d.qacc[:] = q, v, a
    mujoco.mj_forward(m, d)
    d.qacc[:] = a
    mujoco.mj_inverse(m, d)
    np.testing.assert_allclose(dl.rnea.python(model, q, v, a), d.qfrc_inverse, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(dl.aba.python(model, q, v, d.qfrc_inverse), a, rtol=1e-11, atol=1e-11)
    R, _ = dl.forward_kinematics.python(model, q)
    np.testing.assert_allclose(R, d.xmat.reshape(-1, 3, 3)[[1, 3, 4]], rtol=0, atol=1e-14)
