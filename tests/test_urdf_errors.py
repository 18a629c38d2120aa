"""What is doubtful or wrong in a URDF file is said in a sentence with its line."""

import pytest

from delassus.model.readers.urdf import read_urdf
from delassus.model.readers.xml import ModelFileError
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
    "not XML": ("hello", 1, "", "this is not XML"),
    "another root element": ("\n<sdf/>", 2, "sdf", "the root element of a URDF file is <robot>"),
    "MJCF": ("<mujoco/>", 1, "mujoco", "This is MJCF; load it with format"),
    "SDF": ("<sdf/>", 1, "sdf", "This looks like SDF, which is not read; convert it to URDF"),
    "no links": ("\n<robot/>", 2, "robot", "the robot has no <link>"),
    "a link without name": (robot("<link/>"), 2, "link", "the attribute 'name' is missing"),
    "a joint without name": (robot(link("a"), "<joint/>"), 3, "joint", "the attribute 'name' is missing"),
    "two links of one name": (robot(link("a"), link("a")), 3, "link", "a link 'a' is there already, on line 2"),
    "two joints of one name": (
        robot(link("a"), link("b"), joint("j", "a", "b"), joint("j", "a", "b")),
        5,
        "joint",
        "a joint 'j' is there already, on line 4",
    ),
    "two roots": (robot(link("a"), link("b")), 3, "link", "the links 'a' .line 2. and 'b' are no child of any"),
    "a circle": (robot(link("a"), joint("j", "a", "a")), 3, "joint", "'j' is part of a circle"),
    "a circle apart": (
        robot(link("a"), link("b"), link("c"), joint("j", "b", "c"), joint("k", "c", "b")),
        5,
        "joint",
        "'j' is part of a circle",
    ),
    "two parents": (
        robot(link("a"), link("b"), joint("j", "a", "b"), joint("k", "a", "b")),
        5,
        "joint",
        "the link 'b' is the child of this joint 'k' and of joint 'j' .line 4.",
    ),
    "an unknown type": (arm(kind="ball"), 4, "joint", "the joint type 'ball' is unknown; it is one of revolute"),
    "an unknown parent": (robot(link("a"), joint("j", "x", "a")), 3, "joint", "parent of joint 'j' is the link 'x'"),
    "an unknown child": (robot(link("a"), joint("j", "a", "x")), 3, "joint", "child of joint 'j' is the link 'x'"),
    "no child": (robot(link("a"), '<joint name="j"><parent link="a"/></joint>'), 3, "joint", "<child link.* missing"),
    "negative mass": (arm(tip=MASS.replace('"1"', '"-2"', 1)), 3, "mass", "the mass is -2 kg"),
    "no mass": (arm(tip="<inertial/>"), 3, "inertial", "<mass> is missing"),
    "no moment": (arm(tip=MASS.replace('ixx="1"', "")), 3, "inertia", "the attribute 'ixx' is missing"),
    "NaN": (arm('<origin xyz="nan 0 0"/>'), 4, "origin", 'xyz: "nan" is not a finite decimal number'),
    "infinity": (arm('<limit lower="-inf"/>'), 4, "limit", 'lower: "-inf" is not a finite decimal number'),
    "overflow": (arm('<limit lower="-1e999"/>'), 4, "limit", "is not a finite decimal number"),
    "no number": (arm('<origin rpy="0 0 1_0"/>'), 4, "origin", 'rpy: "1_0" is not a finite decimal number'),
    "absurd numbers": (arm('<origin xyz="0 0 1e200"/>'), 4, "origin", r"xyz holds 1e\+200; .* within ±1e\+30"),
    "too few numbers": (arm('<origin xyz="0 0"/>'), 4, "origin", "has 2 numbers; 3 are needed"),
    "too many numbers": (arm('<limit lower="0 0"/>'), 4, "limit", "has 2 numbers; 1 are needed"),
    "no axis": (arm('<axis xyz="0 0 0"/>'), 4, "axis", "the axis is 0 0 0"),
    "no quaternion": (arm('<origin quat_xyzw="0 0 0 0"/>'), 4, "origin", "quat_xyzw is zero"),
    "two rotations": (arm('<origin quat_xyzw="0 0 0 1" rpy="0 0 0"/>'), 4, "origin", "both rpy and quat_xyzw"),
    "crossed limits": (arm('<limit lower="1" upper="0"/>'), 4, "limit", "lower is 1 and upper is 0"),
    "mimic of nothing": (mimicking('<mimic joint="x"/>'), 2, "mimic", "'j0' mimics the joint 'x', which is not"),
    "mimic of itself": (mimicking('<mimic joint="j0"/>'), 2, "mimic", "'j0' mimics itself in a circle"),
    "mimics in a circle": (
        mimicking('<mimic joint="j1"/>', '<mimic joint="j2"/>', '<mimic joint="j1"/>'),
        3,
        "mimic",
        "'j1' mimics itself in a circle",
    ),
    "mimic of a fixed joint": (
        robot(link("a"), link("b"), link("c"), joint("j", "a", "b", LIMIT + '<mimic joint="k"/>')).replace(
            "</robot>", joint("k", "b", "c", "", "fixed") + "</robot>"
        ),
        5,
        "mimic",
        "'j' has 1 degrees of freedom and mimics 'k', which has 0",
    ),
    "endless mimics": (
        mimicking('<mimic joint="j1" multiplier="1e200"/>', '<mimic joint="j2" multiplier="1e200"/>', ""),
        2,
        "mimic",
        "multiply to more than a float holds",
    ),
    "a negative size": (arm(tip=SHAPE.format('<sphere radius="-1"/>')), 3, "sphere", "the size -1 m is negative"),
    "no size": (arm(tip=SHAPE.format("<box/>")), 3, "box", "the attribute 'size' is missing"),
    "no file": (arm(tip=SHAPE.format("<mesh/>")), 3, "mesh", "the attribute 'filename' is missing"),
    "xacro": (robot("<xacro:include/>"), 2, "xacro:include", "run `xacro"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_what_is_wrong_is_named_with_its_line(case):
    text, line, element, sentence = ERRORS[case]
    with pytest.raises(ModelFileError, match=sentence) as caught:
        read_urdf(text, file="r.urdf")
    assert (caught.value.file, caught.value.line, caught.value.element) == ("r.urdf", line, element)


def test_messages_start_with_file_line_and_element():
    with pytest.raises(ModelFileError, match=r"^r\.urdf:4: <axis>: the axis is 0 0 0; a joint needs a direction"):
        read_urdf(arm('<axis xyz="0 0 0"/>'), file="r.urdf")


def test_a_free_root_needs_its_name():
    text = robot(link("a"), link("b"), joint("root_joint", "a", "b"))
    with pytest.raises(ModelFileError, match="'root_joint' is taken by root=\"free\""):
        read_urdf(text, root="free")
