"""What is doubtful or wrong in a URDF file is said in a sentence with its line."""

import pytest

from delassus.model.readers.urdf import read_urdf
from refusals import refuses
from urdf_samples import LIMIT, MASS, MESH, arm, joint, link, mimicking, robot


def test_a_sound_robot_has_no_warnings():
    assert read_urdf(arm()).warnings == ()


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (arm().replace(' name="r"', ""), '<string>:1: <robot> has no name, so the model is called "robot"'),
        (arm(tip=""), "<string>:3: link 'b' moves and has no mass"),
        (arm(tip=MASS.replace('izz="1"', 'izz="3"')), "<string>:3: link 'b' has the principal moments 1, 1, 3"),
        (arm(""), "<string>:4: joint 'j' is revolute and has no <limit>"),
        (arm("", "prismatic"), "<string>:4: joint 'j' is prismatic and has no <limit>"),
        (arm('<limit velocity="1" effort="1"/>'), "<string>:4: joint 'j' has a <limit> without lower and upper"),
        (arm('<limit lower="0" upper="1" effort="-1"/>'), "<string>:4: joint 'j' has the effort limit -1"),
        (arm(tip=MASS + "<visual/>"), "<string>:3: <visual> 'b_0' is left out"),
        (arm(tip=MASS + MESH.format("m.stl")), "<string>: 1 mesh not found, such as 'm.stl'"),
        (arm(tip=MASS + MESH.format("http://x/m.stl")), "<string>: 1 mesh not found, such as 'http://x/m.stl'"),
        (
            arm(tip=MASS + MESH.format("package://p/1.stl") + MESH.format("package://p/2.stl")),
            "<string>: 2 meshes of the package 'p' not found, such as 'package://p/1.stl'",
        ),
    ],
)
def test_what_is_doubtful_is_one_warning(text, warning):
    (found,) = read_urdf(text).warnings
    assert found.startswith(warning)


def test_a_negative_moment_is_a_warning_since_robots_in_use_have_them():
    (warning,) = read_urdf(arm(tip=MASS.replace('ixx="1"', 'ixx="-1"'))).warnings
    assert warning.startswith("<string>:3: link 'b' has the principal moment -1 kg·m², which is negative. No body")


def test_a_negative_moment_that_its_body_outweighs_is_a_milder_warning():
    small = '<inertial><mass value="1e-6"/><inertia ixx="1e-8" ixy="3e-8" iyy="1e-8" izz="1e-8"/></inertial>'
    text = robot(link("a"), link("b"), link("c", small), joint("j", "a", "b"), joint("f", "b", "c", "", "fixed"))
    (warning,) = read_urdf(text).warnings
    assert warning.startswith("<string>:4: link 'c' has the principal moment -2e-08 kg·m²")


SHAPE = MASS + "<visual><geometry>{}</geometry></visual>"
ERRORS = {
    "not XML": ("hello", 1, "", ("not-xml",)),
    "another root element": ("\n<sdf/>", 2, "sdf", ("bad-model-file", "<robot>")),
    "MJCF": ("<mujoco/>", 1, "mujoco", ("bad-model-file",)),
    "SDF": ("<sdf/>", 1, "sdf", ("bad-model-file",)),
    "no links": ("\n<robot/>", 2, "robot", ("bad-model-file", "<link>")),
    "a link without name": (robot("<link/>"), 2, "link", ("missing-attribute", "'name'")),
    "a joint without name": (robot(link("a"), "<joint/>"), 3, "joint", ("missing-attribute", "'name'")),
    "two links of one name": (robot(link("a"), link("a")), 3, "link", ("duplicate-name", "'a'", "2")),
    "two joints of one name": (
        robot(link("a"), link("b"), joint("j", "a", "b"), joint("j", "a", "b")),
        5,
        "joint",
        ("duplicate-name", "'j'", "4"),
    ),
    "two roots": (robot(link("a"), link("b")), 3, "link", ("not-a-tree", "'a'", "'b'", "2")),
    "a circle": (robot(link("a"), joint("j", "a", "a")), 3, "joint", ("not-a-tree", "'j'")),
    "a circle apart": (
        robot(link("a"), link("b"), link("c"), joint("j", "b", "c"), joint("k", "c", "b")),
        5,
        "joint",
        ("not-a-tree", "'j'"),
    ),
    "two parents": (
        robot(link("a"), link("b"), joint("j", "a", "b"), joint("k", "a", "b")),
        5,
        "joint",
        ("not-a-tree", "'b'", "'k'", "'j'", "4"),
    ),
    "an unknown type": (arm(kind="ball"), 4, "joint", ("unknown-option", "'ball'")),
    "an unknown parent": (robot(link("a"), joint("j", "x", "a")), 3, "joint", ("unknown-link", "'j'", "'x'", "parent")),
    "an unknown child": (robot(link("a"), joint("j", "a", "x")), 3, "joint", ("unknown-link", "'j'", "'x'", "child")),
    "no child": (robot(link("a"), '<joint name="j"><parent link="a"/></joint>'), 3, "joint", ("missing-element",)),
    "negative mass": (arm(tip=MASS.replace('"1"', '"-2"', 1)), 3, "mass", ("out-of-range", "-2", "mass")),
    "no mass": (arm(tip="<inertial/>"), 3, "inertial", ("missing-element", "<mass>")),
    "no moment": (arm(tip=MASS.replace('ixx="1"', "")), 3, "inertia", ("missing-attribute", "'ixx'")),
    "NaN": (arm('<origin xyz="nan 0 0"/>'), 4, "origin", ("not-a-number", '"nan"')),
    "infinity": (arm('<limit lower="-inf"/>'), 4, "limit", ("not-a-number", '"-inf"')),
    "overflow": (arm('<limit lower="-1e999"/>'), 4, "limit", ("not-a-number",)),
    "no number": (arm('<origin rpy="0 0 1_0"/>'), 4, "origin", ("not-a-number", '"1_0"')),
    "absurd numbers": (arm('<origin xyz="0 0 1e200"/>'), 4, "origin", ("out-of-range", "200", "30")),
    "too few numbers": (arm('<origin xyz="0 0"/>'), 4, "origin", ("wrong-shape", "2")),
    "too many numbers": (arm('<limit lower="0 0"/>'), 4, "limit", ("wrong-shape", "2")),
    "no axis": (arm('<axis xyz="0 0 0"/>'), 4, "axis", ("zero-direction", "0", "axis")),
    "no quaternion": (arm('<origin quat_xyzw="0 0 0 0"/>'), 4, "origin", ("zero-direction", "quat_xyzw")),
    "two rotations": (
        arm('<origin quat_xyzw="0 0 0 1" rpy="0 0 0"/>'),
        4,
        "origin",
        ("conflicting-arguments", "quat_xyzw"),
    ),
    "crossed limits": (arm('<limit lower="1" upper="0"/>'), 4, "limit", ("empty-interval", "1", "0", "lower")),
    "mimic of nothing": (mimicking('<mimic joint="x"/>'), 2, "mimic", ("bad-mimicry", "'j0'", "'x'")),
    "mimic of itself": (mimicking('<mimic joint="j0"/>'), 2, "mimic", ("bad-mimicry", "'j0'")),
    "mimics in a circle": (
        mimicking('<mimic joint="j1"/>', '<mimic joint="j2"/>', '<mimic joint="j1"/>'),
        3,
        "mimic",
        ("bad-mimicry", "'j1'"),
    ),
    "mimic of a fixed joint": (
        robot(link("a"), link("b"), link("c"), joint("j", "a", "b", LIMIT + '<mimic joint="k"/>')).replace(
            "</robot>", joint("k", "b", "c", "", "fixed") + "</robot>"
        ),
        5,
        "mimic",
        ("bad-mimicry", "'j'", "'k'", "1", "0"),
    ),
    "endless mimics": (
        mimicking('<mimic joint="j1" multiplier="1e200"/>', '<mimic joint="j2" multiplier="1e200"/>', ""),
        2,
        "mimic",
        ("bad-mimicry",),
    ),
    "a negative size": (arm(tip=SHAPE.format('<sphere radius="-1"/>')), 3, "sphere", ("out-of-range", "-1")),
    "no size": (arm(tip=SHAPE.format("<box/>")), 3, "box", ("missing-attribute", "'size'")),
    "no file": (arm(tip=SHAPE.format("<mesh/>")), 3, "mesh", ("missing-attribute", "'filename'")),
    "xacro": (robot("<xacro:include/>"), 2, "xacro:include", ("not-supported",)),
}


@pytest.mark.parametrize("case", ERRORS)
def test_what_is_wrong_is_named_with_its_line(case):
    text, line, element, sentence = ERRORS[case]
    with refuses(*sentence) as caught:
        read_urdf(text, file="r.urdf")
    assert (caught.value.file, caught.value.line, caught.value.element) == ("r.urdf", line, element)


def test_messages_start_with_file_line_and_element():
    with refuses("zero-direction", "r.urdf:4", "<axis>", "0"):
        read_urdf(arm('<axis xyz="0 0 0"/>'), file="r.urdf")


def test_a_free_root_needs_its_name():
    text = robot(link("a"), link("b"), joint("root_joint", "a", "b"))
    with refuses("duplicate-name", "'root_joint'", '"free"'):
        read_urdf(text, root="free")
