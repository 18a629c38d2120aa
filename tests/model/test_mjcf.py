"""MJCF, feature by feature, against MuJoCo: random trees, references, springs, equality constraints, refusals."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import delassus as dl
from delassus.model.equality import Connect, JointCoupling, WeldEquality
from how_many import examples
from refusals import refuses

mujoco = pytest.importorskip("mujoco")


def world(*parts: str) -> str:
    """MJCF with some elements in it."""
    inside = "".join(part for part in parts if part.startswith("<body"))
    outside = "".join(part for part in parts if not part.startswith("<body"))
    return f"<mujoco><compiler angle='radian'/><worldbody>{inside}</worldbody>{outside}</mujoco>"


def body(inner: str = "<joint name='hinge'/>", name: str = "arm") -> str:
    box = "<geom type='box' size='.1 .2 .3' pos='.1 .2 .3' quat='1 .2 .3 .4'/>"
    return f"<body name='{name}' pos='0 0 1'>{inner}{box}</body>"


def state(text: str, seed: int = 0):
    """A model, MuJoCo's with its data, and a random state."""
    model, m = dl.load(text), mujoco.MjModel.from_xml_string(text)
    rng = np.random.default_rng(seed)
    q, v = model.random_configuration(rng), rng.normal(size=model.nv)
    d = mujoco.MjData(m)
    d.qpos[:], d.qvel[:] = dl.q_to_mujoco(model, q), dl.v_to_mujoco(model, q, v)
    mujoco.mj_forward(m, d)
    return model, m, d, q, v


# --- trees ------------------------------------------------------------------------------------------------------------

numbers = st.floats(-1.5, 1.5).map(lambda x: round(x, 3))
positive = st.floats(0.0, 2.0).map(lambda x: round(x, 3))


@st.composite
def vectors(draw, n=3):
    return " ".join(str(draw(numbers)) for _ in range(n))


@st.composite
def joints(draw):
    kind = draw(st.sampled_from(["hinge", "slide", "ball"]))
    axis = f"{draw(numbers)} {draw(numbers)} {2.0 + draw(numbers)}"
    text = f"<joint type='{kind}' pos='{draw(vectors())}' stiffness='{draw(positive)}' damping='{draw(positive)}'"
    text += f" armature='{0.1 + draw(positive)}'"  # parallel axes would else make the mass matrix singular
    return text + (f" axis='{axis}' ref='{draw(numbers)}' springref='{draw(numbers)}'/>" if kind != "ball" else "/>")


@st.composite
def trees(draw, depth=2, root=True):
    quat = f"{2.0 + draw(numbers)} {draw(vectors())}"
    row = draw(st.lists(joints(), max_size=3))
    if sum("'ball'" in joint for joint in row) and len(row) > 1 and sum("slide" not in joint for joint in row) > 1:
        row = row[:1]  # MuJoCo has no other rotation beside a ball joint
    inner = "".join(row)
    if root and draw(st.booleans()):
        inner = f"<joint type='free' stiffness='{draw(positive)}' damping='{draw(positive)}'/>"
    inner += f"<geom type='box' size='.1 .2 .3' pos='{draw(vectors())}' quat='{quat}'/><site pos='{draw(vectors())}'/>"
    children = draw(st.lists(trees(depth - 1, root=False), max_size=2)) if depth else []
    return f"<body pos='{draw(vectors())}' quat='{quat}'>{inner}{''.join(children)}</body>"


@settings(deadline=None, max_examples=examples(40))
@given(st.lists(trees(), min_size=1, max_size=2), vectors(), st.integers(0, 100))
def test_random_trees_move_as_in_mujoco(bodies, gravity, seed):
    text = world(*bodies, f"<option gravity='{gravity}'><flag contact='disable'/></option>")
    model, _, d, q, v = state(text, seed)
    for k in range(len(d.xpos)):
        R, p = dl.frame_placement.python(model, q, frame=model.frame_list[k].name)
        np.testing.assert_allclose(R, d.xmat[k].reshape(3, 3), atol=1e-10)
        np.testing.assert_allclose(p, d.xpos[k], atol=1e-10)
    if not model.nv:
        return
    still = dl.a_from_mujoco(model, q, v, np.zeros(model.nv))
    scale = 1.0 + np.max(np.abs(d.qfrc_bias))
    bias = dl.v_to_mujoco(model, q, dl.rnea.python(model, q, v, still))
    np.testing.assert_allclose(bias, d.qfrc_bias, atol=1e-10 * scale)
    passive = dl.v_to_mujoco(model, q, dl.passive_forces.python(model, q, v))
    np.testing.assert_allclose(passive, d.qfrc_passive, atol=1e-10 * (1.0 + np.max(np.abs(d.qfrc_passive))))


def test_a_joint_has_mujocos_coordinate_whatever_its_reference():
    model, _, d, q, _ = state(world(body("<joint type='hinge' ref='0.7'/><joint type='slide' ref='-0.2'/>")))
    _, p = dl.frame_placement.python(model, q, frame="arm")
    np.testing.assert_allclose(p, d.body("arm").xpos, atol=1e-14)


def test_limits_armature_damping_friction_and_springs_are_kept():
    joint = "<joint range='-1 2' ref='.5' springref='.3' stiffness='4' armature='.1' damping='.2' frictionloss='.3'/>"
    (hinge,) = dl.load(world(body(joint))).joints
    assert (hinge.lower, hinge.upper, hinge.rest, hinge.stiffness) == ((-1.0,), (2.0,), (0.3,), (4.0,))
    assert (hinge.armature, hinge.damping, hinge.friction) == ((0.1,), (0.2,), (0.3,))


def test_rotors_of_actuators_count_with_their_gears_squared():
    actuator = "<actuator><motor joint='hinge' gear='3' armature='.1' damping='.2'/></actuator>"
    (hinge,) = dl.load(world(body(), actuator)).joints
    assert hinge.armature == pytest.approx((0.9,))
    assert hinge.damping == pytest.approx((1.8,))


def test_springs_that_are_free_in_space_pull_as_in_mujoco():
    text = world(body("<joint type='free' stiffness='2' damping='.3'/>"))
    model, _, d, q, v = state(text)
    forces = dl.passive_forces(model, q, v)
    np.testing.assert_allclose(dl.v_to_mujoco(model, q, forces), d.qfrc_passive, atol=1e-12)


@pytest.mark.parametrize(
    ("flag", "field", "value"),
    [
        ("gravity", "gravity", (0.0, 0.0, 0.0)),
        ("equality", "constraints", ()),
        ("constraint", "constraints", ()),
    ],
)
def test_what_a_flag_switches_off_is_left_out(flag, field, value):
    weld = "<equality><weld body1='arm'/></equality>"
    model = dl.load(world(body(), weld, f"<option><flag {flag}='disable'/></option>"))
    assert getattr(model, field) == value


CORD = "<tendon><fixed name='cord' {}><joint joint='hinge' coef='1'/></fixed></tendon>"


@pytest.mark.parametrize(("flag", "field"), [("spring", "stiffness"), ("damper", "damping")])
def test_springs_and_dampers_that_are_switched_off_are_left_out(flag, field):
    joint, cord = body("<joint name='hinge' stiffness='1' damping='1'/>"), CORD.format("stiffness='1' damping='1'")
    model = dl.load(world(joint, cord, f"<option><flag {flag}='disable'/></option>"))
    assert getattr(model.joints[0], field) == ()
    assert getattr(model.tendons[0], field) == 0.0


# --- names ------------------------------------------------------------------------------------------------------------


def test_parts_without_names_are_called_after_their_bodies():
    model = dl.load(world(body("<joint/><joint axis='1 0 0'/><site/>"), "<body><geom size='1'/></body>"))
    assert [joint.name for joint in model.joints] == ["arm_joint", "arm_joint2"]
    assert [frame.name for frame in model.frame_list] == [
        "world", "arm", "body", "arm_joint", "arm_joint2", "arm_site",
    ]  # fmt: skip


def test_a_joint_and_a_site_may_have_the_name_of_a_body():
    model = dl.load(world(body("<joint name='arm'/><site name='arm'/>")))
    assert model.joints[0].name == "arm"
    assert {"arm", "arm_joint", "arm_site"} <= {frame.name for frame in model.frame_list}


# --- equality constraints ---------------------------------------------------------------------------------------------

PAIR = (
    body("<freejoint/><site name='s1' pos='.1 0 0' quat='1 1 0 0'/>", "one"),
    body("<joint type='ball'/><site name='s2' pos='0 .1 0'/>", "two"),
)


def violation(text: str):
    """What MuJoCo says by how much the first constraint is violated, in a random state, and that state."""
    model, _, d, q, _ = state(text)
    return model, q, d.efc_pos[: (d.efc_type == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)).sum()]


@pytest.mark.parametrize(
    "connect", ["body1='one' body2='two' anchor='.3 .2 .1'", "body1='two' anchor='.3 .2 .1'", "site1='s1' site2='s2'"]
)
def test_a_connect_ties_the_origins_of_two_frames(connect):
    model, q, expected = violation(world(*PAIR, f"<equality><connect name='tie' {connect}/></equality>"))
    (tie,) = model.constraints
    assert isinstance(tie, Connect)
    (_, p1), (_, p2) = (dl.frame_placement.python(model, q, frame=f) for f in (tie.frame1, tie.frame2))
    np.testing.assert_allclose(p1 - p2, expected, atol=1e-12)


@pytest.mark.parametrize(
    "weld",
    [
        "body1='one' body2='two' anchor='.3 .2 .1'",
        "body1='one' body2='two' relpose='.1 .2 .3 1 .5 .2 .1'",
        "body1='two'",
        "site1='s1' site2='s2'",
    ],
)
def test_a_weld_ties_two_frames(weld):
    model, q, expected = violation(world(*PAIR, f"<equality><weld name='tie' torquescale='1' {weld}/></equality>"))
    (tie,) = model.constraints
    assert isinstance(tie, WeldEquality)
    (R1, p1), (R2, p2) = (dl.frame_placement.python(model, q, frame=f) for f in (tie.frame1, tie.frame2))
    np.testing.assert_allclose(p1 - p2, expected[:3], atol=1e-12)
    turn = np.zeros(4)
    mujoco.mju_mat2Quat(turn, (R2.T @ R1).ravel())
    np.testing.assert_allclose(abs(turn[1:]), abs(expected[3:]), atol=1e-12)


def test_a_coupling_of_joints_is_a_polynomial():
    hinge = "<joint name='{}' ref='{}'/>"
    pair = (body(hinge.format("a", 0.3), "one"), body(hinge.format("b", -0.4), "two"))
    text = world(*pair, "<equality><joint joint1='a' joint2='b' polycoef='.1 2 -.3 .4 .5'/></equality>")
    model, q, expected = violation(text)
    (tie,) = model.constraints
    assert isinstance(tie, JointCoupling)
    q1, q2 = q[model.joint_index(tie.follower)], q[model.joint_index(tie.leader)]
    value = q1 - tie.reference1 - np.polyval(tie.coefficients[::-1], q2 - tie.reference2)
    np.testing.assert_allclose([value], expected, atol=1e-12)


def test_a_joint_may_be_held_alone():
    (tie,) = dl.load(world(body(), "<equality><joint joint1='hinge' polycoef='.1 0 0 0 0'/></equality>")).constraints
    assert (tie.follower, tie.leader, tie.coefficients[0]) == ("hinge", None, 0.1)


# --- data and what is left out ----------------------------------------------------------------------------------------


def test_actuators_and_tendons_are_data():
    tendon = (
        "<tendon><fixed name='cord' stiffness='2' springlength='.1'><joint joint='hinge' coef='3'/></fixed></tendon>"
    )
    servo = "<actuator><position name='servo' tendon='cord' kp='5' ctrlrange='-1 1' gear='2'/></actuator>"
    model = dl.load(world(body(), tendon, servo))
    (cord,), (actuator,) = model.tendons, model.actuators
    assert (cord.terms, cord.stiffness, cord.rest) == ((("hinge", 3.0),), 2.0, (0.1, 0.1))
    assert (actuator.drives, actuator.target, actuator.gain, actuator.bias) == (
        "tendon", "cord", (5.0, 0.0, 0.0), (0.0, -5.0, 0.0),
    )  # fmt: skip
    assert (actuator.control_range, actuator.force_gear[0], actuator.kind) == ((-1.0, 1.0), 2.0, "affine")


def test_keyframes_are_postures():
    text = world(body("<freejoint/>"), "<keyframe><key name='home' qpos='1 2 3 0 1 0 0'/></keyframe>")
    np.testing.assert_array_equal(dl.load(text).posture("home"), [1.0, 2.0, 3.0, 1.0, 0.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ((CORD.format("armature='1'"),), "inertia of tendons is left out \\(1\\): cord."),
        ((CORD.format("stiffness='1 2'"),), "of tendons that are not linear are taken as linear \\(1\\): cord."),
        (("<actuator><general name='u' joint='hinge' dyntype='user'/></actuator>",), "the affine part is kept .*: u"),
        (("<equality><weld name='w' body1='arm' active='false'/></equality>",), "not active at the start .*: w."),
        (("<body name='hand' mocap='true'/>",), "mocap bodies are fixed where the file puts them .*: hand."),
        (
            ("<body><joint name='j' actuatorgravcomp='true' actuatorfrcrange='-1 1'/><geom size='.1'/></body>",),
            "gravity compensation by actuators counts as a passive force.*: j.",
        ),
        ((body("<joint name='j' stiffness='1 2'/>", "b"),), "springs that are not linear are taken as linear .*: j."),
        ((body("<joint name='f' type='free' armature='1'/>", "b"),), "the linear armature of a free joint.*: f."),
    ],
)  # fmt: skip
def test_what_is_not_carried_is_said_once_by_name(parts, sentence):
    warnings = dl.load(world(body(), *parts)).warnings
    assert len(warnings) == 1
    assert re.search(sentence, warnings[0])


def test_a_file_that_needs_nothing_else_has_no_warnings():
    assert dl.load(world(body())).warnings == ()


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        (world("<body><joint/></body>"), ("mujoco-refused",)),
        (world("<bdy/>"), ("mujoco-refused",)),
        ("<mujoco><worldbody>", ("mujoco-refused",)),
        (world("<include file='nowhere.xml'/>"), ("mujoco-refused", "nowhere.xml")),
    ],
)
def test_what_mujoco_refuses_is_refused_with_its_message(text, refusal):
    with refuses(*refusal) as refused:
        dl.load(text)
    assert refused.value.file == "<string>"


def test_a_refusal_names_file_and_line(tmp_path):
    path = tmp_path / "robot.xml"
    path.write_text("<mujoco>\n<worldbody>\n<bdy/>\n</worldbody>\n</mujoco>")
    with refuses("mujoco-refused", path, "<bdy>"):
        dl.load(path)


def test_a_free_root_is_the_files_own_business():
    with refuses("conflicting-arguments", '"free"', "root"):
        dl.load(world(body()), root="free")


def test_comments_that_xml_forbids_are_read_as_mujoco_reads_them():
    assert dl.load("<!-- a -- b -->\n" + world(body())).nv == 1


def test_a_file_finds_what_it_includes(tmp_path):
    (tmp_path / "part.xml").write_text(f"<mujoco>{body()}</mujoco>")
    (tmp_path / "robot.xml").write_text(world("<body><include file='part.xml'/></body>"))
    assert dl.load(tmp_path / "robot.xml").joint("hinge").kind.nv == 1


def test_a_model_in_memory_is_taken_over():
    assert dl.from_mujoco(mujoco.MjModel.from_xml_string(world(body()))).nv == 1
