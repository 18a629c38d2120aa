"""The model as data: names, coordinates, content, editing, and what it refuses."""

import pickle
from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pinocchio as pin
import pytest

import delassus as dl
from delassus.common.names import UnknownName
from delassus.dynamics.tree.check import SingularMassMatrix
from delassus.model.equality import Connect, JointCoupling
from delassus.model.generators import balanced_tree, chain, random_tree
from delassus.model.model import Model
from delassus.model.parts import ContactRules, FileSensor, Frame, Geometry, Impedances, Joint, Medium, Mimic, Posture
from delassus.model.placement import HERE, Inertia, Placement
from delassus.model.transmission import Actuator, Tendon
from refusals import refuses
from robots import file, pinocchio_model

BALL = Inertia.of(2.0, (0.1, 0.2, 0.3), np.diag([0.3, 0.4, 0.5]))
TURN = Placement.from_xyz_rpy((0.1, -0.2, 0.3), (0.4, 0.5, -0.6))


def arm(**changes) -> Model:
    """Three joints and three frames."""
    joints = (
        Joint("shoulder", dl.Revolute(), inertia=BALL, lower=(-1.0,), upper=(2.0,)),
        Joint("elbow", dl.Revolute((0.0, 1.0, 0.0)), 0, TURN, BALL),
        Joint("wrist", dl.Prismatic(), 1, TURN, BALL),
    )
    frames = (Frame("base", -1), Frame("left_hand", 2, TURN), Frame("right_hand", 2))
    return Model(**({"name": "arm", "joints": joints, "frame_list": frames} | changes))


def with_joint(k: int, **changes) -> Model:
    joints = list(arm().joints)
    joints[k] = replace(joints[k], **changes)
    return arm(joints=tuple(joints))


def state(model: Model, seed=0):
    rng = np.random.default_rng(seed)
    return model.random_configuration(rng), *rng.normal(size=(2, model.nv))


# --- names ------------------------------------------------------------------------------------------------------------


def test_frames_are_found_by_a_pattern_in_the_models_order():
    assert [f.name for f in arm().frames("*_hand")] == ["left_hand", "right_hand"]


def test_a_pattern_minds_capital_letters():
    with pytest.raises(UnknownName):
        arm().frames("*_HAND")


def test_a_pattern_that_matches_nothing_is_an_error():
    with refuses("unknown-frame", "'*_foot'"):
        arm().frames("*_foot")


def test_a_missing_frame_lists_the_nearest_names():
    with pytest.raises(UnknownName) as caught:
        arm().frame("left_hnd")
    assert caught.value.nearest[0] == "left_hand"
    assert "The nearest are: left_hand" in str(caught.value)


def test_a_missing_joint_lists_the_nearest_names():
    with refuses("unknown-joint", "'elbo'", "elbow"):
        arm().joint("elbo")


def test_a_name_like_no_other_says_how_many_there_are():
    with refuses("unknown-joint", "3"):
        arm().joint("%%%")
    with refuses("unknown-name", "99"):
        raise UnknownName("joint", "%%%", [f"joint{k}" for k in range(99)])


def test_an_unknown_name_is_a_key_error_and_an_error_of_delassus():
    assert issubclass(UnknownName, KeyError)
    assert issubclass(UnknownName, dl.DelassusError)


def test_an_algorithm_with_a_missing_frame_lists_the_nearest_names():
    with refuses("unknown-frame", "left_hand"):
        dl.frame_placement(arm(), np.zeros(3), frame="left_hnd")


def test_frames_and_joints_are_found_by_name():
    model = arm()
    assert (model.frame("left_hand"), model.joint("wrist")) == (model.frame_list[1], model.joints[2])


def test_a_frame_stands_for_its_name():
    model = arm()
    assert model.frame_index(model.frame("right_hand")) == 2


def test_bodies_and_frames_are_counted():
    assert (arm().njoints, arm().nframes) == (3, 3)


def test_repr_says_name_size_and_mass():
    assert repr(arm()) == "<Model 'arm': 3 joints, nq 3, nv 3, 6 kg>"


# --- configurations ---------------------------------------------------------------------------------------------------


def test_neutral_has_unit_quaternions_and_zeros():
    joints = (
        Joint("a", dl.Free()),
        Joint("b", dl.Universal(), 0),
        Joint("c", dl.Spherical(), 1),
        Joint("d", dl.Planar(), 2),
    )
    np.testing.assert_array_equal(Model("m", joints).neutral(), [0] * 6 + [1, 0, 0, 0, 0, 0, 1, 0, 0, 0])


def test_random_configurations_follow_the_seed():
    model = arm()
    first, again, other = (model.random_configuration(np.random.default_rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


LIMITS = {
    "narrow": (-0.1, 0.2),
    "a point": (0.5, 0.5),
    "far": (7.0, 8.0),
    "below only": (0.0, np.inf),
    "above only": (-np.inf, -1.0),
    "far below only": (50.0, np.inf),
    "far above only": (-np.inf, -50.0),
    "wide and far": (1e6, 1e6 + 200.0),
    "wide": (-200.0, 200.0),
}


@pytest.mark.parametrize("name", LIMITS)
def test_random_configurations_are_within_limits(name):
    low, high = LIMITS[name]
    model = with_joint(2, lower=(low,), upper=(high,))
    rng = np.random.default_rng(0)
    drawn = np.array([model.random_configuration(rng)[2] for _ in range(200)])
    assert np.all((drawn >= low) & (drawn <= high))


def test_random_configurations_keep_one_sided_limits():
    model = with_joint(2, upper=(-0.5,))
    rng = np.random.default_rng(0)
    assert all(model.random_configuration(rng)[2] <= -0.5 for _ in range(100))


def test_random_configurations_fill_the_range():
    rng = np.random.default_rng(0)
    drawn = np.array([arm().random_configuration(rng)[0] for _ in range(300)])
    assert drawn.min() < -0.9
    assert drawn.max() > 1.9


def test_random_angles_are_within_half_a_turn_and_random_lengths_within_a_metre():
    rng = np.random.default_rng(0)
    drawn = np.abs([arm().random_configuration(rng) for _ in range(300)]).max(axis=0)
    assert 3.0 < drawn[1] <= np.pi
    assert 0.9 < drawn[2] <= 1.0


def test_random_quaternions_have_length_one_whatever_the_limits():
    joint = Joint("j", dl.Free(), inertia=BALL, lower=(-0.1,) * 7, upper=(0.1,) * 7)
    q = Model("m", (joint,)).random_configuration(np.random.default_rng(0))
    assert np.linalg.norm(q[3:]) == pytest.approx(1.0)
    assert np.all(np.abs(q[:3]) <= 0.1)


def test_random_configurations_of_robots_are_within_pinocchios_limits():
    model, theirs = dl.load(file("ur5_robot.urdf")), pinocchio_model(file("ur5_robot.urdf"), "fixed")
    q = model.random_configuration(np.random.default_rng(0))
    assert np.all((q >= theirs.lowerPositionLimit) & (q <= theirs.upperPositionLimit))


# --- content ----------------------------------------------------------------------------------------------------------


def test_models_with_the_same_content_are_equal():
    assert arm() == arm()
    assert hash(arm()) == hash(arm())


def test_a_file_read_twice_gives_equal_models():
    assert dl.load(file("panda.urdf")) == dl.load(file("panda.urdf"))


def test_equal_models_share_a_kernel():
    assert dl.gravity_torques.specialize(arm()) is dl.gravity_torques.specialize(arm())


def test_warnings_are_no_content():
    assert arm(warnings=("something",)) == arm()


CHANGES = {
    "name": {"name": "leg"},
    "joints": {"joints": arm().joints[:2], "frame_list": ()},
    "frame_list": {"frame_list": ()},
    "gravity": {"gravity": (0.0, 0.0, -1.62)},
    "geometries": {"geometries": (Geometry("g", 0, HERE, "sphere", (0.1,), "visual"),)},
    "constraints": {"constraints": ("closed",)},
    "base_inertia": {"base_inertia": BALL},
    "actuators": {"actuators": (Actuator("motor", "joint", "shoulder", (1.0, 0.0, 0.0)),)},
    "tendons": {"tendons": (Tendon("cord", (("shoulder", 1.0), ("elbow", -1.0))),)},
    "postures": {"postures": (Posture("home", (0.0, 0.0, 0.0)),)},
    "medium": {"medium": Medium(density=1.2)},
    "describes_world": {"describes_world": True},
    "time_step": {"time_step": 2e-3},
    "contact_rules": {"contact_rules": ContactRules(filter_parents=False)},
    "impedances": {"impedances": Impedances(impratio=10.0)},
    "sensors": {"sensors": (FileSensor("gyro", "gyro", "shoulder"),)},
}
JOINT_CHANGES = {
    "name": "hinge",
    "kind": dl.Revolute((0.0, 1.0, 0.0), continuous=True),
    "parent": -1,
    "placement": HERE,
    "inertia": replace(BALL, mass=2.5),
    **dict.fromkeys(("lower", "upper", "velocity_limit", "effort_limit", "armature"), (0.5,)),
    **dict.fromkeys(("damping", "friction", "stiffness", "rest"), (0.5,)),
    "mimic": Mimic(0),
    "actuator_force_range": (-1.0, 2.0),
    "gravity_compensation": (1.0, 0.0, 0.0, 0.1),
    "angle_limit": 1.0,
}


@pytest.mark.parametrize("name", CHANGES)
def test_every_field_is_content(name):
    assert arm(**CHANGES[name]) != arm()


@pytest.mark.parametrize("name", JOINT_CHANGES)
def test_every_field_of_a_joint_is_content(name):
    assert with_joint(1, **{name: JOINT_CHANGES[name]}) != arm()


def test_no_field_was_forgotten():
    assert {f.name for f in fields(Model)} == {*CHANGES, "warnings", "omissions"}
    assert {f.name for f in fields(Joint)} == set(JOINT_CHANGES)


def test_a_model_is_not_equal_to_something_else():
    assert arm() != "arm"


def test_content_that_cannot_be_compared_is_refused_when_it_is():
    with refuses("wrong-type"):
        hash(arm(constraints=(object(),)))


@pytest.mark.parametrize("name", ["talos_full_v2.urdf", "panda.urdf"])
def test_a_model_survives_pickling(name):
    model = dl.load(file(name), root="free")
    copy = pickle.loads(pickle.dumps(model))
    assert (copy, copy.warnings) == (model, model.warnings)


def test_every_kind_of_joint_survives_pickling():
    kinds = (
        dl.Revolute(),
        dl.Prismatic(),
        dl.Helical(pitch=0.1),
        dl.Universal(),
        dl.Cylindrical(),
        dl.Translation(),
        dl.Planar(),
    )
    joints = tuple(Joint(str(k), kind) for k, kind in enumerate((*kinds, dl.Spherical(), dl.Free())))
    assert pickle.loads(pickle.dumps(Model("all", joints))) == Model("all", joints)


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parent", [1, 2, 5, -2])
def test_a_parent_comes_before_its_children(parent):
    with refuses("not-a-tree", "'elbow'", parent):
        with_joint(1, parent=parent)


def test_joints_have_names_of_their_own():
    with refuses("duplicate-name", "'shoulder'"):
        with_joint(1, name="shoulder")


def test_frames_have_names_of_their_own():
    with refuses("duplicate-name", "'base'"):
        arm(frame_list=(Frame("base", 0), Frame("base", 1)))


@pytest.mark.parametrize("joint", [3, -2])
def test_a_frame_is_on_a_joint_of_the_model(joint):
    with refuses("not-a-tree", "'tool'", joint):
        arm(frame_list=(Frame("tool", joint),))


def test_a_shape_is_on_a_joint_of_the_model():
    with refuses("not-a-tree", "'g'", "7"):
        arm(geometries=(Geometry("g", 7, HERE, "sphere", (0.1,), "visual"),))


def test_a_mimic_of_a_mimic_is_refused():
    joints = tuple(replace(j, mimic=Mimic(k + 1)) if k < 2 else j for k, j in enumerate(arm().joints))
    with refuses("bad-mimicry", "'shoulder'", "'elbow'"):
        arm(joints=joints)


def test_a_joint_that_mimics_itself_is_refused():
    with refuses("bad-mimicry"):
        with_joint(1, mimic=Mimic(1))


@pytest.mark.parametrize("source", [3, -1])
def test_a_mimicked_joint_is_one_of_the_model(source):
    with refuses("bad-mimicry", "'elbow'", source):
        with_joint(1, mimic=Mimic(source))


@pytest.mark.parametrize("kind", [dl.Free(), dl.Spherical(), dl.Universal()], ids=lambda kind: kind.label)
def test_a_joint_with_several_degrees_of_freedom_mimics_nothing(kind):
    with refuses("bad-mimicry"):
        with_joint(1, kind=kind, mimic=Mimic(0))


NUMBERS = ["lower", "upper", "velocity_limit", "effort_limit", "armature", "damping", "friction", "stiffness", "rest"]


@pytest.mark.parametrize("field", NUMBERS)
def test_a_wrong_number_of_numbers_is_refused(field):
    with refuses("wrong-shape", field, "'elbow'"):
        with_joint(1, **{field: (1.0, 2.0)})


BAD = {
    "mass": Inertia.of(np.nan, BALL.com, BALL.rotational),
    "infinite mass": Inertia.of(np.inf, BALL.com, BALL.rotational),
    "center": Inertia.of(1.0, (0.0, np.nan, 0.0), BALL.rotational),
    "moment": Inertia.of(1.0, BALL.com, np.diag([1.0, np.nan, 1.0])),
}


@pytest.mark.parametrize("name", BAD)
def test_an_inertia_that_is_not_finite_is_refused(name):
    with refuses("not-finite", "'elbow'", "body"):
        with_joint(1, inertia=BAD[name])


def test_a_negative_mass_is_refused():
    with refuses("out-of-range", "'elbow'", "-1", "body"):
        with_joint(1, inertia=Inertia(-1.0))


def test_a_base_of_negative_mass_is_refused():
    with refuses("out-of-range", "-1"):
        arm(base_inertia=Inertia(-1.0))


NO_ROTATIONS = {
    "scaled": 1.001 * np.eye(3),
    "sheared": [[1.0, 0.001, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    "mirrored": np.diag([1.0, 1.0, -1.0]),
    "zero": np.zeros((3, 3)),
}


@pytest.mark.parametrize("name", NO_ROTATIONS)
def test_a_joint_placed_by_something_that_is_no_rotation_is_refused(name):
    with refuses("not-a-rotation", "'elbow'", "placement"):
        with_joint(1, placement=Placement.of(NO_ROTATIONS[name]))


def test_a_frame_placed_by_something_that_is_no_rotation_is_refused():
    with refuses("not-a-rotation", "'tool'", "placement"):
        arm().with_frame("tool", "base", Placement.of(2.0 * np.eye(3)))


@pytest.mark.parametrize("bad", [np.nan, np.inf], ids=str)
def test_a_placement_that_is_not_finite_is_refused(bad):
    with refuses("not-finite", "'elbow'", "placement"):
        with_joint(1, placement=Placement.of(p=(0.0, bad, 0.0)))


# --- joints that move nothing -----------------------------------------------------------------------------------------


def test_joints_that_move_no_inertia_are_named():
    model = with_joint(2, inertia=Inertia())
    with refuses("singular-mass-matrix", "wrist") as caught:
        dl.aba(model, *state(model))
    assert caught.value.joints == ("wrist",)


@pytest.mark.parametrize("kernel", [dl.udu, dl.inverse_mass_matrix], ids=lambda k: k.name)
def test_factors_of_a_singular_mass_matrix_are_refused(kernel):
    with refuses("singular-mass-matrix", "wrist"):
        kernel.python(with_joint(2, inertia=Inertia()), np.zeros(3))


def test_a_massless_body_that_carries_another_is_no_problem():
    model = with_joint(1, inertia=Inertia())
    q, v, a = state(model)
    np.testing.assert_allclose(dl.aba.python(model, q, v, dl.rnea.python(model, q, v, a)), a)


def test_armature_makes_a_massless_joint_regular():
    model = with_joint(2, inertia=Inertia(), armature=(0.5,))
    q, v, a = state(model)
    np.testing.assert_allclose(dl.aba.python(model, q, v, dl.rnea.python(model, q, v, a)), a)


@pytest.mark.parametrize("armature", [(0.5, 0.0), (0.0, 0.5)], ids=["on the first axis", "on the second axis"])
def test_armature_on_one_of_two_massless_axes_is_not_enough(armature):
    model = with_joint(2, kind=dl.Universal(), inertia=Inertia(), armature=armature)
    assert np.linalg.matrix_rank(dl.crba.python(model, np.zeros(4))) == 3
    with refuses("singular-mass-matrix", "wrist"):
        dl.aba.python(model, np.zeros(4), np.zeros(4), np.zeros(4))


def test_a_follower_that_moves_mass_makes_its_source_regular():
    joints = (Joint("source", dl.Revolute()), Joint("follower", dl.Prismatic(), mimic=Mimic(0, 0.5), inertia=BALL))
    acceleration = dl.aba.python(Model("pair", joints), np.zeros(1), np.zeros(1), np.ones(1))
    np.testing.assert_allclose(acceleration, [(1.0 - 0.5 * 2.0 * 9.81) / (0.5**2 * 2.0)])


def test_a_follower_that_does_not_move_leaves_its_source_singular():
    joints = (Joint("source", dl.Revolute()), Joint("follower", dl.Prismatic(), mimic=Mimic(0, 0.0), inertia=BALL))
    with refuses("singular-mass-matrix", "source"):
        dl.aba.python(Model("pair", joints), np.zeros(1), np.zeros(1), np.ones(1))


BODY = np.diag([1.0, 1.0, 1.0])
VANISHING = {
    "a mass": Joint("j", dl.Prismatic(), inertia=Inertia.of(1e-310)),
    "a moment": Joint("j", dl.Revolute(), inertia=Inertia.of(0.0, rotational=1e-310 * BODY)),
    "a normal mass on a short arm": Joint("j", dl.Revolute(), inertia=Inertia.of(1.0, (1e-160, 0.0, 0.0))),
    "a small mass on a short arm": Joint("j", dl.Revolute(), inertia=Inertia.of(1e-200, (1e-50, 0.0, 0.0))),
    "a mass that would lose digits": Joint("j", dl.Prismatic(), inertia=Inertia.of(1e-300)),
    "an armature": Joint("j", dl.Revolute(), armature=(1e-310,)),
    "a mass behind a joint": Joint("j", dl.Universal(), inertia=Inertia.of(1e-310, (0.1, 0.2, 0.3), 1e-310 * BODY)),
    "a pitch": Joint("j", dl.Helical(pitch=1e-160), inertia=Inertia.of(1.0)),
}


@pytest.mark.parametrize("kernel", [dl.aba, dl.aba_derivatives, dl.udu, dl.inverse_mass_matrix], ids=lambda k: k.name)
@pytest.mark.parametrize("case", VANISHING)
def test_an_inertia_that_vanishes_in_the_arithmetic_of_kernels_is_refused(case, kernel):
    model = Model("tiny", (VANISHING[case],))
    inputs, _ = kernel.operands(model)
    with refuses("singular-mass-matrix", "1e-292"):
        kernel(model, *(np.zeros(operand.shape) for operand in inputs))


def test_a_follower_whose_motion_vanishes_leaves_its_source_singular():
    joints = (Joint("source", dl.Revolute()), Joint("follower", dl.Prismatic(), mimic=Mimic(0, 1e-160), inertia=BALL))
    with refuses("singular-mass-matrix", "source"):
        dl.aba.python(Model("pair", joints), np.zeros(1), np.zeros(1), np.ones(1))


@pytest.mark.parametrize("kernel", [dl.center_of_mass, dl.center_of_mass_jacobian], ids=lambda k: k.name)
def test_a_mass_that_vanishes_has_no_centre(kernel):
    with refuses("no-mass"):
        kernel(Model("tiny", (VANISHING["a mass"],)), np.zeros(1))


def test_inertias_above_that_move_as_all_others_do():
    tree, scale = random_tree(3, seed=1), 2.0**-950
    bodies = [(joint, joint.inertia) for joint in tree.joints]
    small = tuple(
        replace(joint, inertia=Inertia.of(scale * body.mass, body.com, scale * np.array(body.rotational)))
        for joint, body in bodies
    )
    q, v, tau = state(tree)
    a = dl.aba(replace(tree, joints=small), q, v, scale * tau)
    np.testing.assert_array_equal(a, dl.aba(tree, q, v, tau))


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"gravity": (0.0, np.nan, 0.0)}, ("not-finite", "gravity")),
        ({"postures": (Posture("home", (np.inf, 0.0, 0.0)),)}, ("not-finite", "'home'")),
    ],
    ids=str,
)
def test_a_model_with_numbers_that_are_not_finite_is_refused(fields, refusal):
    with refuses(*refusal):
        replace(arm(), **fields)


@pytest.mark.parametrize("bad", [np.nan, np.inf], ids=str)
@pytest.mark.parametrize("field", ["armature", "damping", "friction", "stiffness", "rest"])
def test_a_coefficient_that_is_not_finite_is_refused(field, bad):
    with refuses("not-finite", field, "'elbow'", bad):
        with_joint(1, **{field: (bad,)})


@pytest.mark.parametrize("field", ["lower", "upper", "velocity_limit", "effort_limit"])
def test_a_limit_may_be_infinite_but_is_a_number(field):
    assert getattr(with_joint(1, **{field: (np.inf,)}).joints[1], field) == (np.inf,)
    with refuses("not-finite", field, "'elbow'"):
        with_joint(1, **{field: (np.nan,)})


@pytest.mark.parametrize("mimic", [Mimic(0, np.nan), Mimic(0, 1.0, np.inf)], ids=str)
def test_a_follower_needs_finite_numbers(mimic):
    with refuses("bad-mimicry", "'elbow'", "'shoulder'"):
        with_joint(1, mimic=mimic)


def test_a_pitch_must_be_finite():
    with refuses("not-finite", "pitch"):
        dl.Helical(pitch=np.nan)


def test_romeo_is_refused_for_its_massless_fingers_and_nothing_else():
    model, theirs = dl.load(file("romeo.urdf"), mimic="ignore"), pinocchio_model(file("romeo.urdf"), "fixed")
    q, v, tau = state(model)
    with pytest.raises(SingularMassMatrix) as caught:
        dl.aba.python(model, q, v, tau)
    data = theirs.createData()
    inertias = np.diag(pin.crba(theirs, data, dl.q_to_pinocchio(model, q)))
    bodies = list(zip(theirs.names, theirs.joints, strict=True))[1:]
    assert list(caught.value.joints) == [name for name, joint in bodies if inertias[joint.idx_v] == 0.0]


# --- attaching --------------------------------------------------------------------------------------------------------


def placement(M) -> Placement:
    return Placement.of(M.rotation, M.translation)


MOUNT = pin.SE3(pin.rpy.rpyToMatrix(0.3, -0.4, 0.5), np.array([0.1, 0.2, -0.3]))


def pinocchio_hand_on_arm():
    """Panda with its hand, on a UR5's last link, by Pinocchio."""
    ur5, panda = pinocchio_model(file("ur5_robot.urdf"), "fixed"), pinocchio_model(file("panda.urdf"), "fixed")
    for i, name in enumerate(panda.names):
        panda.names[i] = f"hand/{name}" if i else name
    for frame in panda.frames:
        frame.name = f"hand/{frame.name}" if frame.name != "universe" else frame.name
    return pin.appendModel(ur5, panda, ur5.getFrameId("wrist_3_link"), MOUNT)


def hand_on_arm() -> Model:
    ur5, panda = dl.load(file("ur5_robot.urdf")), dl.load(file("panda.urdf"), mimic="ignore")
    return ur5.attach(panda, "wrist_3_link", placement(MOUNT), prefix="hand/")


def test_an_attached_hand_moves_as_pinocchios():
    model, theirs = hand_on_arm(), pinocchio_hand_on_arm()
    assert list(theirs.names)[1:] == [joint.name for joint in model.joints]
    q, v, a = state(model)
    np.testing.assert_allclose(
        dl.rnea.python(model, q, v, a), pin.rnea(theirs, theirs.createData(), q, v, a), atol=1e-9
    )


def test_frames_of_an_attached_hand_are_where_pinocchio_has_them():
    model, theirs = hand_on_arm(), pinocchio_hand_on_arm()
    q, _, _ = state(model)
    data = theirs.createData()
    pin.framesForwardKinematics(theirs, data, q)
    _, p = dl.frame_placement.python(model, q, frame="hand/panda_rightfinger")
    np.testing.assert_allclose(p, data.oMf[theirs.getFrameId("hand/panda_rightfinger")].translation, atol=1e-12)


def test_the_base_of_an_attached_model_counts_where_it_is_mounted():
    hand = Model("hand", (), (Frame("palm", -1),), base_inertia=BALL)
    total = arm().attach(hand, "left_hand", TURN).joint("wrist").inertia
    mount = TURN * TURN
    expected = pin.Inertia(2.0, np.array(BALL.com), np.array(BALL.rotational))
    expected += pin.SE3(mount.R, mount.p).act(expected)
    np.testing.assert_allclose(total.com, expected.lever, atol=1e-15)
    np.testing.assert_allclose(total.rotational, expected.inertia, atol=1e-15)


def test_a_model_attached_to_the_world_adds_to_the_base():
    hand = Model("hand", (), (Frame("palm", -1),), base_inertia=BALL)
    model = arm(base_inertia=BALL).attach(hand, "base")
    assert model.base_inertia.mass == 4.0
    assert model.joints == arm().joints


def test_an_attached_model_brings_shapes_warnings_and_mimics():
    shape = Geometry("pad", 1, HERE, "sphere", (0.1,), "visual")
    fingers = (Joint("a", dl.Prismatic(), inertia=BALL), Joint("b", dl.Prismatic(), inertia=BALL, mimic=Mimic(0, -1.0)))
    hand = Model("hand", fingers, geometries=(shape,), warnings=("a pad is worn",))
    model = arm().attach(hand, "left_hand", prefix="l_")
    assert model.joint("l_b").mimic == Mimic(3, -1.0)
    assert (model.geometries[0].name, model.geometries[0].joint) == ("l_pad", 4)
    assert model.warnings == ("a pad is worn",)


def test_two_hands_with_prefixes_have_the_sum_of_the_joints():
    hand = chain(2)
    both = arm().attach(hand, "left_hand", prefix="l/").attach(hand, "right_hand", prefix="r/")
    assert both.nv == arm().nv + 2 * hand.nv
    assert both.frame("r/tip").joint == 6


def test_joints_with_the_same_name_ask_for_a_prefix():
    with refuses("duplicate-name", "'arm'", "'shoulder'"):
        arm().attach(arm(), "left_hand")


def test_frames_with_the_same_name_ask_for_a_prefix():
    with refuses("duplicate-name", "'arm'", "'base'"):
        arm().attach(Model("hand", (), (Frame("base", -1),)), "left_hand")


def test_a_missing_mount_lists_the_nearest_names():
    with refuses("unknown-frame", "left_hand"):
        arm().attach(chain(1), "left_hnd")


def test_from_pinocchio_keeps_the_inertia_of_the_base():
    theirs = pinocchio_model(file("panda.urdf"), "fixed")
    ours = dl.load(file("panda.urdf"), mimic="ignore")
    assert dl.from_pinocchio(theirs).base_inertia.mass == pytest.approx(ours.base_inertia.mass)


# --- locking ----------------------------------------------------------------------------------------------------------

LOCKED = ["root_joint", "arm_left_1_joint", "arm_left_4_joint", "leg_right_3_joint", "torso_1_joint"]


def locked_talos(names, q=None):
    """Talos with some joints locked, here and in Pinocchio, and a state."""
    model, theirs = (
        dl.load(file("talos_reduced.urdf"), root="free", mimic="ignore"),
        pinocchio_model(file("talos_reduced.urdf"), "free"),
    )
    q = model.neutral() if q is None else q(model)
    reduced = pin.buildReducedModel(theirs, [theirs.getJointId(n) for n in names], dl.q_to_pinocchio(model, q))
    return model.lock(*names, q=q), reduced


def random_q(model: Model):
    return model.random_configuration(np.random.default_rng(3))


@pytest.mark.parametrize("q", [None, random_q], ids=["neutral", "given"])
def test_a_model_with_locked_joints_moves_as_pinocchios(q):
    model, theirs = locked_talos(LOCKED, q)
    x = state(model)
    np.testing.assert_allclose(dl.rnea.python(model, *x), pin.rnea(theirs, theirs.createData(), *x), atol=1e-9)


def test_frames_behind_locked_joints_stay():
    model, theirs = locked_talos(LOCKED, random_q)
    q, _, _ = state(model)
    data = theirs.createData()
    pin.framesForwardKinematics(theirs, data, q)
    R, p = dl.frame_placement.python(model, q, frame="gripper_left_base_link")
    M = data.oMf[theirs.getFrameId("gripper_left_base_link")]
    np.testing.assert_allclose(R, M.rotation, atol=1e-12)
    np.testing.assert_allclose(p, M.translation, atol=1e-12)


@pytest.mark.parametrize(
    "kind",
    [
        dl.Revolute((1.0, 2.0, 2.0)),
        dl.Prismatic((1.0, 2.0, 2.0)),
        dl.Helical((1.0, 2.0, 2.0), 0.3),
        dl.Universal(),
        dl.Cylindrical((1.0, 2.0, 2.0)),
        dl.Translation(),
        dl.Planar((1.0, 2.0, 2.0)),
        dl.Spherical(),
        dl.Free(),
    ],
    ids=lambda kind: kind.label,
)
def test_a_locked_joint_stays_where_it_was(kind):
    model = with_joint(1, kind=kind)
    q = model.random_configuration(np.random.default_rng(0))
    kept = q[[0, -1]]
    _, expected = dl.frame_placements.python(model, q)
    _, p = dl.frame_placements.python(model.lock("elbow", q=q), kept)
    np.testing.assert_allclose(p, expected, atol=1e-14)


def test_locking_all_joints_leaves_the_base():
    model = arm().lock("shoulder", "elbow", "wrist")
    assert (model.njoints, model.nv, model.nframes) == (0, 0, 3)
    assert model.base_inertia.mass == 6.0


def test_what_is_locked_to_the_world_joins_the_base_as_in_pinocchio():
    model, theirs = locked_talos(LOCKED, random_q)
    base, expected = model.base_inertia, theirs.inertias[0]
    assert base.mass == pytest.approx(expected.mass)
    np.testing.assert_allclose(base.com, expected.lever, atol=1e-12)
    np.testing.assert_allclose(base.rotational, expected.inertia, atol=1e-12)


def test_locking_nothing_changes_nothing():
    assert arm().lock() == arm()


def test_locking_a_source_locks_its_followers_where_they_are():
    model = with_joint(1, mimic=Mimic(0, 0.5, 0.1))
    locked = model.lock("shoulder", q=[0.4, 0.2])
    independent = arm().lock("shoulder", "elbow", q=[0.4, 0.3, 0.2])
    assert [joint.name for joint in locked.joints] == ["wrist"]
    np.testing.assert_allclose(locked.joints[0].placement.R, independent.joints[0].placement.R, atol=1e-16)
    np.testing.assert_allclose(locked.joints[0].placement.p, independent.joints[0].placement.p, atol=1e-16)


def test_locking_a_follower_names_its_source():
    with refuses("bad-mimicry", "'elbow'", "'shoulder'"):
        with_joint(1, mimic=Mimic(0)).lock("elbow")


def test_a_follower_keeps_its_source_when_others_are_locked():
    model = with_joint(2, mimic=Mimic(1, 2.0)).lock("shoulder")
    assert model.joint("wrist").mimic == Mimic(0, 2.0)


def test_a_configuration_of_another_size_is_refused():
    with refuses("wrong-shape", "(2,)", "(3,)"):
        arm().lock("elbow", q=[0.0, 0.0])


def test_a_missing_joint_cannot_be_locked():
    with refuses("unknown-joint", "elbow"):
        arm().lock("elbo")


# --- other edits ------------------------------------------------------------------------------------------------------


def test_a_new_frame_is_placed_on_another_one():
    model = arm().with_frame("tool", "left_hand", TURN)
    q, _, _ = state(model)
    R, p = dl.frame_placement.python(model, q, frame="left_hand")
    _, tool = dl.frame_placement.python(model, q, frame="tool")
    np.testing.assert_allclose(tool, p + R @ TURN.p, atol=1e-15)


def test_a_new_frame_needs_a_name_of_its_own():
    with refuses("duplicate-name", "'base'"):
        arm().with_frame("base", "left_hand")


def test_another_inertia_changes_that_body_only():
    heavy = Inertia(9.0)
    model = arm().with_inertia("elbow", heavy)
    assert [joint.inertia for joint in model.joints] == [BALL, heavy, BALL]


def test_edits_leave_the_model_as_it_was():
    model = arm()
    model.attach(chain(1), "base")
    model.lock("elbow")
    model.with_frame("tool", "base")
    model.with_inertia("elbow", Inertia())
    assert model == arm()


# --- generated mechanisms ---------------------------------------------------------------------------------------------

GENERATORS = {"chain": chain, "balanced_tree": balanced_tree, "random_tree": random_tree}


@pytest.mark.parametrize("n", [1, 2, 17])
@pytest.mark.parametrize("name", GENERATORS)
def test_a_generated_mechanism_has_as_many_joints_as_asked_for(name, n):
    assert GENERATORS[name](n).nv == n


@pytest.mark.parametrize("name", GENERATORS)
def test_a_generated_mechanism_follows_its_seed(name):
    generate = GENERATORS[name]
    assert generate(6, seed=1) == generate(6, seed=1)
    assert generate(6, seed=1) != generate(6, seed=2)


@pytest.mark.parametrize("n", [0, -1])
@pytest.mark.parametrize("name", GENERATORS)
def test_a_generated_mechanism_has_at_least_one_link(name, n):
    with refuses("out-of-range"):
        GENERATORS[name](n)


def test_links_of_a_chain_hang_on_one_another():
    assert [joint.parent for joint in chain(4).joints] == [-1, 0, 1, 2]
    assert chain(4).frame("tip").joint == 3


def test_links_of_a_balanced_tree_carry_as_many_others_as_asked_for():
    parents = [joint.parent for joint in balanced_tree(13, branching=3).joints]
    assert [parents.count(k) for k in range(-1, 13)] == [1] + [3] * 4 + [0] * 9


def test_leaves_of_a_generated_tree_have_tips():
    model = balanced_tree(7)
    assert [frame.joint for frame in model.frames("tip*")] == [3, 4, 5, 6]


@pytest.mark.parametrize("name", GENERATORS)
def test_bodies_of_a_generated_mechanism_are_physical(name):
    for joint in GENERATORS[name](10).joints:
        small, middle, large = np.linalg.eigvalsh(joint.inertia.rotational)
        assert 0.0 < small <= middle <= large < small + middle


@pytest.mark.parametrize("name", GENERATORS)
def test_placements_of_a_generated_mechanism_are_rotations(name):
    for joint in GENERATORS[name](10).joints:
        np.testing.assert_allclose(joint.placement.R @ joint.placement.R.T, np.eye(3), atol=1e-14)
        assert np.linalg.det(joint.placement.R) == pytest.approx(1.0)


# --- coordinates ------------------------------------------------------------------------------------------------------


def test_coordinates_come_in_the_order_of_the_joints():
    joints = (
        Joint("a", dl.Free()),
        Joint("b", dl.Universal(), 0),
        Joint("c", dl.Spherical(), 1),
        Joint("d", dl.Revolute(), 2),
    )
    model = Model("m", joints)
    assert model.q_starts == (0, 7, 9, 13)
    assert model.v_starts == (0, 6, 8, 11)
    assert (model.nq, model.nv) == (14, 12)


def test_a_follower_has_the_coordinates_of_a_later_source():
    model = with_joint(0, mimic=Mimic(2))
    assert model.q_starts == (1, 0, 1)
    assert [joint.name for joint in model.independent] == ["elbow", "wrist"]


def test_coordinates_of_a_robot_leave_no_gaps():
    model = dl.load(file("talos_full_v2.urdf"), root="free")
    starts = [s for s, joint in zip(model.v_starts, model.joints, strict=True) if joint.mimic is None]
    steps = [b - a for a, b in pairwise([*starts, model.nv])]
    assert steps == [joint.kind.nv for joint in model.independent]


def test_a_point_mass_on_the_axis_of_its_joint_is_singular():
    axis = np.array([1.0, 2.0, 3.0]) / np.sqrt(14.0)
    joint = Joint("spin", dl.Revolute(tuple(axis)), inertia=Inertia.of(1.0, com=0.3 * axis))
    with refuses("singular-mass-matrix", "spin"):
        dl.aba(dl.Model("needle", (joint,)), [0.3], [0.0], [1.0])


def test_a_free_point_mass_is_singular():
    with refuses("singular-mass-matrix", "body"):
        dl.udu(dl.Model("point", (Joint("body", dl.Free(), inertia=Inertia.of(1.0)),)), np.eye(7)[6])


WRONG_TYPES = {
    "attach a number": (lambda m: m.attach(3, m.frame_list[0]), ("wrong-type",)),
    "attach at a number": (lambda m: m.attach(m, m.frame_list[0], 0.1), ("wrong-type", "placement")),
    "attach with a number before names": (lambda m: m.attach(m, m.frame_list[0], prefix=3), ("wrong-type", "prefix")),
    "lock a number": (lambda m: m.lock(3), ("wrong-type", "'joint0'")),
    "lock a list": (lambda m: m.lock(["joint0"]), ("wrong-type",)),
    "a frame at a matrix": (lambda m: m.with_frame("tool", m.frame_list[0], np.eye(4)), ("wrong-type", "placement")),
    "a frame named by a number": (lambda m: m.with_frame(3, m.frame_list[0]), ("wrong-type",)),
    "a mass as an inertia": (
        lambda m: m.with_inertia("joint0", 2.0),
        ("wrong-type", "inertia"),
    ),
    "frames by a number": (lambda m: m.frames(3), ("wrong-type", "pattern")),
    "a joint by nothing": (lambda m: m.joint(None), ("wrong-type",)),
    "a posture by a number": (lambda m: m.posture(3), ("wrong-type",)),
    "parameters by one text": (lambda m: dl.ParametricModel(m, "gravity"), ("wrong-type",)),
    "a path to compare with": (
        lambda m: dl.compare(m, "arm.urdf"),
        ("wrong-type",),
    ),
    "masses of a path": (lambda m: dl.mass_report("arm.urdf"), ("wrong-type",)),
    "random numbers from nothing": (lambda m: m.random_configuration(None), ("wrong-type", "rng")),
}


@pytest.mark.parametrize(("call", "message"), WRONG_TYPES.values(), ids=WRONG_TYPES)
def test_an_argument_of_a_wrong_type_is_named(call, message):
    with refuses(*message, kind=TypeError):
        call(chain(2))


# --- what a file says besides the tree --------------------------------------------------------------------------------

DRIVEN = {
    "constraints": (
        Connect("loop", "left_hand", "right_hand"),
        JointCoupling("gear", "shoulder", "elbow", (0.0, 2.0, 0.0, 0.0, 0.0)),
    ),
    "actuators": (
        Actuator("motor", "joint", "wrist", (1.0, 0.0, 0.0)),
        Actuator("winch", "tendon", "cord", (1.0, 0.0, 0.0)),
    ),
    "tendons": (Tendon("cord", (("shoulder", 1.0), ("elbow", -1.0))),),
    "postures": (Posture("home", (0.0, 0.5, 0.0)),),
}


def test_an_attached_model_brings_its_constraints_actuators_and_tendons():
    both = arm().attach(arm(**DRIVEN), "left_hand", prefix="l/")
    assert [(c.name, getattr(c, "frame1", None) or c.follower) for c in both.constraints] == [
        ("l/loop", "l/left_hand"),
        ("l/gear", "l/shoulder"),
    ]
    assert [(a.name, a.target) for a in both.actuators] == [("l/motor", "l/wrist"), ("l/winch", "l/cord")]
    assert both.tendons[0].terms == (("l/shoulder", 1.0), ("l/elbow", -1.0))


def test_attaching_loses_postures():
    assert arm(**DRIVEN).attach(chain(1), "left_hand", prefix="l/").postures == ()


def test_locking_a_joint_takes_its_actuator_away():
    assert [a.name for a in arm(**DRIVEN).lock("wrist").actuators] == ["winch"]


def test_locking_coupled_joints_takes_their_coupling_and_tendon_away():
    locked = arm(**DRIVEN).lock("shoulder", "elbow")
    assert ([c.name for c in locked.constraints], locked.tendons) == (["loop"], ())
    assert [a.name for a in locked.actuators] == ["motor"]


def test_one_of_two_coupled_joints_cannot_be_locked():
    with refuses("bad-mimicry", "'gear'"):
        arm(**DRIVEN).lock("shoulder")


def test_a_posture_is_found_by_its_name():
    np.testing.assert_array_equal(arm(**DRIVEN).posture("home"), [0.0, 0.5, 0.0])


def test_a_posture_that_is_not_there_names_the_nearest():
    with refuses("unknown-posture", "'hom'", "home"):
        arm(**DRIVEN).posture("hom")
