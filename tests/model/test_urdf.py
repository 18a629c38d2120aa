"""URDF feature by feature, on robots of a few lines: joints, frames, inertias, mimics."""

import math

import numpy as np
import pytest

from delassus.model.joints import Free, Planar, Prismatic, Revolute
from delassus.model.parts import Mimic
from delassus.model.placement import IDENTITY, Inertia, Placement
from delassus.model.readers.urdf import read_urdf
from urdf_samples import FIXED, LIMIT, arm, joint, link, mimicking, robot


def one_joint(*args, **kwargs):
    return read_urdf(arm(*args, **kwargs)).joints[0]


# --- joints -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("revolute", Revolute((0.0, 0.0, 1.0))),
        ("continuous", Revolute((0.0, 0.0, 1.0), continuous=True)),
        ("prismatic", Prismatic((0.0, 0.0, 1.0))),
        ("planar", Planar((0.0, 0.0, 1.0))),
        ("floating", Free()),
    ],
)
def test_every_moving_joint_type_has_its_kind(kind, expected):
    assert one_joint('<axis xyz="0 0 1"/>' + LIMIT, kind).kind == expected


def test_the_axis_is_x_if_there_is_none():
    assert one_joint().kind == Revolute((1.0, 0.0, 0.0))


@pytest.mark.parametrize("xyz", ["3 0 4", "3e300 0 4e300", "3e-300 0 4e-300"])
def test_the_axis_is_normalised(xyz):
    assert one_joint(f'<axis xyz="{xyz}"/>').kind.axis == pytest.approx((0.6, 0.0, 0.8), rel=1e-15)


def test_limits_damping_and_friction_are_read():
    j = one_joint(LIMIT + '<dynamics damping="5" friction="6"/>')
    limits = (j.lower, j.upper, j.velocity_limit, j.effort_limit, j.damping, j.friction)
    assert limits == ((-1.0,), (2.0,), (3.0,), (4.0,), (5.0,), (6.0,))


def test_a_continuous_joint_has_no_bounds():
    j = one_joint(LIMIT, "continuous")
    assert (j.lower, j.upper, j.velocity_limit) == ((-math.inf,), (math.inf,), (3.0,))


def test_a_bound_that_is_not_written_is_zero():
    assert one_joint('<limit upper="1"/>').lower == (0.0,)


def test_rotations_by_zero_are_exact():
    assert one_joint('<origin xyz="1 2 3" rpy="0 -0 0"/>').placement == Placement(IDENTITY, (1.0, 2.0, 3.0))


def test_roll_pitch_and_yaw_turn_about_fixed_axes():
    R = one_joint('<origin rpy="0 1.5707963267948966 1.5707963267948966"/>').placement.R
    np.testing.assert_allclose(R, [[0, -1, 0], [0, 0, 1], [-1, 0, 0]], atol=1e-15)


@pytest.mark.parametrize("length", [1.0, 3.0, 1e-200, 1e200])
def test_a_quaternion_of_any_length_gives_the_rotation_of_its_angles(length):
    s, c = length * math.sin(0.3), length * math.cos(0.3)
    by_angles, by_quaternion = (
        one_joint(f"<origin {text}/>").placement.R for text in ('rpy="0 0 0.6"', f'quat_xyzw="0 0 {s} {c}"')
    )
    np.testing.assert_allclose(by_quaternion, by_angles, atol=1e-15)


def test_unknown_elements_are_ignored():
    extra = "<transmission><joint name='j'/></transmission><gazebo reference='a'><link name='c'/></gazebo><foo/>"
    joint_extra = LIMIT + '<safety_controller k_velocity="1"/><calibration rising="0"/>'
    text = robot(extra, link("a"), link("b"), joint("j", "a", "b", joint_extra))
    assert read_urdf(text) == read_urdf(arm())


# --- order ------------------------------------------------------------------------------------------------------------

BRANCHED = robot(
    link("a"), link("b"), link("c"), link("d"), joint("z", "a", "b"), joint("A", "a", "c"), joint("b", "b", "d")
)


def test_joints_are_depth_first_in_the_order_of_their_names():
    assert [j.name for j in read_urdf(BRANCHED).joints] == ["A", "z", "b"]


def test_frames_are_depth_first_with_joints_before_their_links():
    assert [f.name for f in read_urdf(BRANCHED).frame_list] == ["a", "A", "c", "z", "b", "b_joint", "d"]


def test_the_frame_of_a_joint_with_a_taken_name_gets_a_free_one():
    text = robot(link("a"), link("x"), link("x_joint"), joint("x", "a", "x"), joint("y", "x", "x_joint"))
    assert [f.name for f in read_urdf(text).frame_list] == ["a", "x_joint2", "x", "y", "x_joint"]


def test_the_order_of_the_file_does_not_matter():
    lines = BRANCHED.splitlines()
    assert read_urdf("\n".join([lines[0], *lines[-2:0:-1], lines[-1]])) == read_urdf(BRANCHED)


def test_fixed_joints_are_merged_into_their_parent():
    expected = Inertia.of(3.0, (0, 0, 2), np.diag([9.0, 9.0, 3.0]))
    assert [j.inertia for j in read_urdf(FIXED).joints] == [expected]


def test_frames_of_merged_links_are_kept():
    frames = [(f.name, f.joint, f.placement.translation, f.role) for f in read_urdf(FIXED).frame_list[-2:]]
    assert frames == [("f", 0, (0.0, 0.0, 3.0), "frame"), ("c", 0, (0.0, 0.0, 3.0), "link")]


def test_joints_beyond_a_fixed_one_hang_on_the_merged_body():
    text = FIXED.replace("</robot>", link("d") + joint("k", "c", "d", '<origin xyz="1 0 0"/>' + LIMIT) + "</robot>")
    k = read_urdf(text).joint("k")
    assert (k.parent, k.placement.translation) == (0, (1.0, 0.0, 3.0))


def test_a_fixed_root_link_is_part_of_the_world():
    model = read_urdf(arm())
    assert (len(model.joints), model.frame("a").joint) == (1, -1)


def test_a_free_root_link_has_a_free_joint():
    model = read_urdf(arm(), root="free")
    assert [(j.name, j.kind.label, j.parent, j.inertia.mass) for j in model.joints] == [
        ("root_joint", "free", -1, 1.0),
        ("j", "revolute", 0, 1.0),
    ]


@pytest.mark.parametrize("root", ["fixed", "free"])
def test_a_floating_joint_below_a_massless_root_link_is_the_only_free_joint(root):
    text = robot(link("world", ""), link("a"), joint("float", "world", "a", "", "floating"))
    assert [(j.name, j.kind) for j in read_urdf(text, root=root).joints] == [("float", Free())]


def test_a_single_link_is_a_robot():
    assert read_urdf(robot(link("a")), root="free").nv == 6


def test_chains_may_be_longer_than_the_stack_of_python():
    n = 3000
    links = [link(f"l{k}", "") for k in range(n + 1)]
    joints = [joint(f"j{k}", f"l{k}", f"l{k + 1}", "", "fixed") for k in range(n)]
    assert read_urdf(robot(*links, *joints)).frame(f"l{n}").joint == -1


# --- inertias ---------------------------------------------------------------------------------------------------------


def test_inertias_are_turned_into_the_axes_of_their_link():
    tip = (
        '<inertial><origin xyz="1 2 3" rpy="0 0 1.5707963267948966"/><mass value="2"/>'
        '<inertia ixx="3" ixy="0.1" ixz="0.2" iyy="4" iyz="0.3" izz="5"/></inertial>'
    )
    body = one_joint(tip=tip).inertia
    assert (body.mass, body.com) == (2.0, (1.0, 2.0, 3.0))
    np.testing.assert_allclose(body.rotational, [[4, -0.1, -0.3], [-0.1, 3, 0.2], [-0.3, 0.2, 5]], atol=1e-15)


def test_a_link_without_inertial_has_no_mass():
    assert one_joint(tip="").inertia == Inertia()


# --- mimics -----------------------------------------------------------------------------------------------------------


def mimics(model):
    return [j.mimic for j in model.joints]


def test_a_mimicking_joint_has_no_coordinate_of_its_own():
    model = read_urdf(mimicking("", '<mimic joint="j0" multiplier="2" offset="3"/>'))
    assert (model.nv, mimics(model)) == (1, [None, Mimic(0, 2.0, 3.0)])


def test_a_joint_may_mimic_one_further_out():
    assert mimics(read_urdf(mimicking('<mimic joint="j1"/>', ""))) == [Mimic(1), None]


def test_chains_of_mimics_lead_to_the_first_source():
    text = mimicking(
        '<mimic joint="j1" multiplier="2" offset="1"/>', '<mimic joint="j2" multiplier="3" offset="5"/>', ""
    )
    assert mimics(read_urdf(text)) == [Mimic(2, 6.0, 11.0), Mimic(2, 3.0, 5.0), None]


def test_ignored_mimics_leave_independent_joints():
    assert read_urdf(mimicking("", '<mimic joint="missing"/>'), mimic="ignore").nv == 2


def test_a_fixed_joint_mimics_nothing():
    assert read_urdf(mimicking('<mimic joint="missing"/>', kind="fixed")).nv == 0
