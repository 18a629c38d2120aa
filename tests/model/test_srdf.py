"""SRDF beside a URDF: pairs that do not touch, postures."""

import pytest

import delassus as dl
from refusals import refuses

LINK = """<link name="{0}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>
</inertial><collision><geometry><sphere radius="0.1"/></geometry></collision>
<collision><geometry><box size="1 1 1"/></geometry></collision></link>"""
JOINT = """<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{2}"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="2" effort="7" velocity="3"/></joint>"""
URDF = f"""<robot name="arm">{"".join(map(LINK.format, "abc"))}{JOINT.format("ab", "a", "b")}
{JOINT.format("bc", "b", "c")}</robot>"""
SRDF = """<robot name="arm"><disable_collisions link1="a" link2="c" reason="Never"/>
<disable_collisions link1="a" link2="gone"/>
<group_state name="bent" group="all"><joint name="bc" value="0.5"/><joint name="ab" value="1 2"/></group_state>
</robot>"""


def test_disabled_pairs_are_excluded_shape_by_shape():
    robot = dl.load(URDF, srdf=SRDF)
    assert set(robot.contact_rules.excluded) == {("a_0", "c_0"), ("a_0", "c_1"), ("a_1", "c_0"), ("a_1", "c_1")}


def test_rotors_are_armature_as_in_pinocchio(tmp_path):
    pin = pytest.importorskip("pinocchio")
    path, theirs = tmp_path / "arm.srdf", pin.buildModelFromXML(URDF)
    path.write_text('<robot><rotor_params><joint name="bc" mass="1e-5" gear_ratio="-80"/></rotor_params></robot>')
    pin.loadRotorParameters(theirs, str(path), False)
    robot = dl.load(URDF, srdf=path)
    assert not robot.joint("ab").armature and not theirs.armature[0]
    assert robot.joint("bc").armature == pytest.approx(theirs.armature[1:], rel=1e-14)


def test_rotors_of_joints_that_are_not_there_are_left_out():
    srdf = '<robot><rotor_params><joint name="gone" mass="1" gear_ratio="2"/></rotor_params></robot>'
    assert dl.load(URDF, srdf=srdf) == dl.load(URDF, srdf="<robot/>")


def test_rotors_of_negative_inertia_are_left_out_with_a_warning():
    srdf = '<robot><rotor_params><joint name="bc" mass="-1" gear_ratio="2"/></rotor_params></robot>'
    robot = dl.load(URDF, srdf=srdf)
    assert not robot.joint("bc").armature and "'bc' has the inertia -1" in robot.warnings[0]


def test_joints_without_effort_are_a_warning():
    weak = dl.load(URDF.replace('effort="7"', 'effort="0"', 1))
    assert "the effort limit of 1 joints is 0" in weak.warnings[0] and "ab" in weak.warnings[0]


def test_simulations_of_files_take_options_of_load():
    sim = dl.Simulation.from_file(URDF, root="free", srdf=SRDF, self_collision=False)
    assert sim.model.nv == 8 and sim.model.postures


def test_group_states_are_postures():
    assert dl.load(URDF, srdf=SRDF).posture("bent").tolist() == [0.0, 0.5]


def test_what_does_not_fit_is_a_warning():
    pair, joint = dl.load(URDF, srdf=SRDF).warnings
    assert "no link 'gone'" in pair and "'ab' has 1 coordinates, and 2" in joint


def test_srdf_is_a_file_too(tmp_path):
    path = tmp_path / "arm.srdf"
    path.write_text(SRDF)
    assert dl.load(URDF, srdf=path) == dl.load(URDF, srdf=SRDF)


@pytest.mark.parametrize(("srdf", "code"), [("gone.srdf", "missing-file"), ("<sdf/>", "bad-model-file")])
def test_what_is_no_srdf_is_refused(srdf, code):
    with refuses(code):
        dl.load(URDF, srdf=srdf)


def test_joints_are_driven_within_the_limits_of_the_file():
    (servo, _) = dl.position_servos(dl.load(URDF), 10.0, 1.0)
    assert servo.force_range == (-7.0, 7.0)
