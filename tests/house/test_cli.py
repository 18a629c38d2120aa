"""`delassus info`, and how commands get along with terminals."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import delassus as dl
from delassus.cli import app
from urdf_samples import FIXED, LIMIT, MASS, arm, joint, link, mimicking, robot

GRIPPER = mimicking("", '<mimic joint="j0" multiplier="-2" offset="0.5"/>')
MIXED = robot(
    link("a"),
    link("b"),
    link("c"),
    link("d", MASS.replace('<mass value="1"/>', '<mass value="2.5"/>')),
    joint("swing", "a", "b", '<axis xyz="0 1 0"/>' + LIMIT),
    joint("slide", "b", "c", LIMIT, "prismatic"),
    joint("spin", "a", "d", "", "continuous"),
)


@pytest.fixture
def info(tmp_path):
    """Runs `delassus info` on a text and gives the exit code and the lines printed."""

    def run(text, *options):
        path = tmp_path / "robot.urdf"
        path.write_text(text)
        return call(str(path), *options)

    run.path = tmp_path / "robot.urdf"
    return run


def call(*arguments):
    result = CliRunner().invoke(app, ["info", *arguments], env={"COLUMNS": "100"})
    return result.exit_code, result.output.splitlines()


def line(lines, word):
    """The first line that has a word; tables come after the tree."""
    return next(text for text in lines if word in text)


def table(lines, title):
    """The rows of the table whose first title this is, each as the list of its cells."""
    start = next(k for k, text in enumerate(lines) if text.startswith(title + "  "))
    rows = lines[start + 1 : lines.index("", start)]
    return {cells[0]: cells[1:] for cells in (re.split(r"  +", row) for row in rows)}


def test_a_sound_robot_is_printed_with_exit_code_zero(info):
    code, lines = info(MIXED)
    assert code == 0
    assert lines[0] == "r"


def test_a_joint_is_printed_with_its_kind_axis_coordinate_limits_and_mass(info):
    _, lines = info(MIXED)
    assert line(lines, "swing").endswith("swing  revolute 0 1 0  v[1]  [-1, 2]  1 kg")


def test_a_prismatic_joint_is_called_so(info):
    _, lines = info(MIXED)
    assert "slide  prismatic 1 0 0  v[2]" in line(lines, "slide")


def test_a_continuous_joint_is_called_so(info):
    _, lines = info(MIXED)
    assert "spin  continuous 1 0 0  v[0]" in line(lines, "spin")


def test_joints_hang_on_the_joints_that_carry_them(info):
    _, lines = info(MIXED)
    assert line(lines, "slide").index("slide") > line(lines, "swing").index("swing")
    assert line(lines, "spin").index("spin") == line(lines, "swing").index("swing")


def test_totals_are_printed(info):
    _, lines = info(MIXED)
    text = " ".join(lines)
    assert "3 joints (0 mimic others), nq 3, nv 3, 7 frames, 0 shapes, 4.5 kg moving, 1 kg fixed" in text


def test_warnings_are_printed_with_file_and_line(info):
    _, lines = info(arm(tip=""))
    assert "robot.urdf:3: link 'b' moves and has no mass" in line(lines, "warning")


def test_a_robot_without_faults_has_no_warnings(info):
    _, lines = info(MIXED)
    assert not any("warning" in text for text in lines)


def test_a_follower_is_printed_with_what_it_follows(info):
    _, lines = info(GRIPPER)
    assert "j1  revolute 1 0 0  -2·j0 + 0.5" in line(lines, "j1")


def test_followers_are_counted(info):
    _, lines = info(GRIPPER)
    assert "2 joints (1 mimic others), nq 1, nv 1" in " ".join(lines)


def test_mimic_ignore_makes_all_joints_independent(info):
    _, lines = info(GRIPPER, "--mimic", "ignore")
    assert "2 joints (0 mimic others), nq 2, nv 2" in " ".join(lines)


def test_root_free_adds_a_free_joint(info):
    _, lines = info(MIXED, "--root", "free")
    assert "root_joint  free  v[0:6]  1 kg" in line(lines, "root_joint")
    assert "nq 10, nv 9" in " ".join(lines)


def test_brackets_in_names_are_printed_as_they_are(info):
    _, lines = info(GRIPPER.replace('"j0"', '"[red]j0"').replace('"j1"', '"[b]"'))
    assert "[b]  revolute 1 0 0  -2·[red]j0 + 0.5" in line(lines, "[b]")


def test_a_broken_file_gives_file_and_line_on_one_line(info, tmp_path):
    code, lines = info(arm(kind="wobbly"))
    assert code == 1
    assert f"{tmp_path / 'robot.urdf'}:4: <joint>: the joint type 'wobbly' is unknown" in line(lines, "error")


def test_text_that_is_not_xml_gives_file_and_line(info, tmp_path):
    code, lines = info("<robot>\n<link name=")
    assert code == 1
    assert f"{tmp_path / 'robot.urdf'}:2" in line(lines, "error")


def test_a_missing_file_names_those_near_it(tmp_path):
    (tmp_path / "panda.urdf").write_text(MIXED)
    code, lines = call(str(tmp_path / "panta.urdf"))
    assert code == 1
    assert line(lines, "error").endswith("panta.urdf'. Near it are: panda.urdf.")


@pytest.mark.parametrize("option", [("--root", "floating"), ("--mimic", "maybe")], ids=lambda option: option[0])
def test_an_unknown_value_of_an_option_is_refused_with_those_known(info, option):
    code, lines = info(MIXED, *option)
    assert code == 2
    assert option[1] in " ".join(lines)


def test_a_failure_prints_no_traceback(info):
    _, lines = info("<robot/>")
    assert not any("Traceback" in text for text in lines)


MJCF = """
<mujoco model="loop">
  <worldbody>
    <body name="a"><joint name="one"/><geom name="bar" type="capsule" size="0.02" fromto="0 0 0 1 0 0"/></body>
    <body name="b" pos="0 1 0"><joint name="two"/><geom type="sphere" size="0.1" pos="0.3 0 0"/></body>
  </worldbody>
  <equality>
    <connect name="rod" body1="a" body2="b" anchor="1 0 0"/>
    <joint name="gear" joint1="one" joint2="two" polycoef="0 2 0 0 0"/>
  </equality>
  <actuator><motor joint="one"/></actuator>
</mujoco>
"""


@pytest.fixture
def mjcf():
    pytest.importorskip("mujoco")
    return MJCF


def test_mjcf_is_printed_with_its_constraints(info, mjcf):
    code, lines = info(mjcf)
    assert code == 0
    assert line(lines, "rod:") == "constraint  rod: rod_1 is connected to rod_2"
    assert line(lines, "gear:") == "constraint  gear: one is given by two, coefficients 0, 2, 0, 0, 0"


def test_constraints_actuators_and_tendons_are_counted(info, mjcf):
    _, lines = info(mjcf)
    assert "2 constraints, 1 actuators, 0 tendons" in lines


def test_mjcf_that_mujoco_refuses_gives_its_message_on_one_line(info, mjcf):
    code, lines = info(mjcf.replace('joint1="one"', 'joint1="three"'))
    assert code == 1
    assert "MuJoCo refuses this" in line(lines, "error")


def test_masses_are_printed_on_demand(info):
    _, lines = info(MIXED, "--masses")
    assert table(lines, "body of")["spin"][0] == "2.5"


def test_masses_that_look_wrong_are_warnings(info):
    _, lines = info(arm(tip=""), "--masses")
    assert any("warning" in text and "moves no mass" in text for text in lines)


def test_a_robot_does_not_differ_from_itself(info, tmp_path):
    (tmp_path / "other.urdf").write_text(MIXED)
    assert info(MIXED, "--against", str(tmp_path / "other.urdf")) == (0, ["no differences"])


def test_differences_are_printed_and_are_the_exit_code(info, tmp_path):
    (tmp_path / "other.urdf").write_text(MIXED.replace('"2.5"', '"3.5"'))
    code, lines = info(MIXED, "--against", str(tmp_path / "other.urdf"))
    assert code == 1
    assert lines == ["model: mass 4.5 → 5.5", "joint 'spin': mass 2.5 → 3.5", "2 differences"]


def test_a_robot_with_loops_is_printed_with_how_well_they_are_closed():
    _, lines = call("four_bar")
    # The rocker's end is at 0.4 + 0.3 m in the neutral configuration, the coupler's at 0.15 + 0.35 m.
    assert line(lines, "neutral").endswith("are off by 0.2 m or rad at most (closure)")
    assert float(line(lines, "posture 'home'").split("off by ")[1].split()[0]) < 1e-15


def test_constraints_that_cannot_be_solved_are_named_and_the_rest_is_printed(info, mjcf):
    body = '<mujoco><worldbody><body name="still"><geom size="0.1"/></body></worldbody>'
    code, lines = info(body + '<equality><connect name="idle" body1="still" anchor="0 0 0"/></equality></mujoco>')
    assert code == 0
    assert "'idle' is on the frame 'idle_1', which is fixed to the world" in line(lines, "cannot be solved")
    assert line(lines, "constraints, ").startswith("1 constraints")


def test_a_robot_without_loops_says_nothing_of_them(info):
    _, lines = info(MIXED)
    assert not [text for text in lines if "constraints are off" in text]


def test_joints_have_a_table_of_coordinates_and_limits(info):
    _, lines = info(MIXED, "--root", "free")
    joints = table(lines, "joint")
    assert joints["root_joint"] == ["0:7", "0:6", "-", "-", "-", "-"]
    assert joints["swing"] == ["8", "7", "-1", "2", "3", "4"]


def test_frames_have_a_table_of_places(info):
    _, lines = info(FIXED)
    assert table(lines, "frame")["c"] == ["link", "j", "0 0 3", "0 0 0 1"]
    assert table(lines, "frame")["a"] == ["link", "world", "0 0 0", "0 0 0 1"]


def test_postures_are_printed_with_their_numbers():
    _, lines = call("cart_pole")
    assert not any(text.startswith("posture") for text in lines)
    _, lines = call("quadruped")
    assert table(lines, "posture")["home"][0].startswith("0 0 0.")


def test_without_a_robot_those_of_the_package_are_listed():
    code, lines = call()
    assert code == 0
    assert [text.split()[0] for text in lines[2:]] == list(dl.robots())


def test_a_robot_comes_from_standard_input():
    result = CliRunner().invoke(app, ["info", "-"], input="\n" + MIXED)
    assert result.exit_code == 0
    assert result.output.splitlines()[0] == "r"


@pytest.mark.parametrize("text", ["", "arm7", "robot.urdf"])
def test_info_refuses_standard_input_without_a_model(text):
    result = CliRunner().invoke(app, ["info", "-"], input=text)
    assert result.exit_code == 1
    assert "standard input is neither URDF nor MJCF" in result.output


@pytest.mark.parametrize("columns", ["20", "80"])
def test_lines_are_neither_cut_nor_broken(info, columns):
    name = "a_joint_with_a_name_of_many_letters_" * 8
    path = info.path
    path.write_text(MIXED.replace('"swing"', f'"{name}"'))
    done = command("info", str(path), "--masses", COLUMNS=columns)
    lines = done.stdout.decode().splitlines()
    assert sum(name in text for text in lines) == 4  # the tree, and the tables of joints, frames and masses
    assert not any("…" in text for text in lines)
    assert all(text == text.rstrip() for text in lines)


# --- terminals --------------------------------------------------------------------------------------------------------

ESCAPES = "\x1b[31m\x07\x9b2J\u202e\n"  # red, bell, clear the screen, write from right to left, a new line
BEHAVED = r"\x1b[31m\x07\x9b2J\u202e\n"


@pytest.fixture
def wild(mjcf):
    """MJCF, since XML 1.0 has no such characters, with some in all of its names."""
    for name in ("loop", "one", "rod", '"a"'):
        plain = name.strip('"')
        mjcf = mjcf.replace(f'"{plain}"', f'"{plain}{ESCAPES}"')
    return mjcf


@pytest.mark.parametrize("options", [(), ("--masses",), ("--against", "pendulum")], ids=str)
def test_control_characters_of_names_do_not_reach_the_terminal(info, wild, options):
    _, lines = info(wild, *options)
    assert all(text.isprintable() for text in lines)
    assert any("one" + BEHAVED[:8] in text for text in lines)


def test_control_characters_in_an_error_do_not_reach_the_terminal(tmp_path):
    code, lines = call(str(tmp_path / f"{ESCAPES}.urdf"))
    assert code == 1
    assert all(text.isprintable() for text in lines)


def test_control_characters_in_a_refused_file_do_not_reach_the_terminal(info, wild):
    code, lines = info(wild.replace(f'joint1="one{ESCAPES}"', f'joint1="{ESCAPES}"'))
    assert code == 1
    assert all(text.isprintable() for text in lines)


def test_words_between_colons_are_no_pictures(info):
    _, lines = info(GRIPPER.replace('"j0"', '":warning:"'))
    assert line(lines, ":warning:  revolute")


FULL = Path("/dev/full")


def command(*arguments, out=subprocess.PIPE, **environment):
    """A process that runs a command."""
    return subprocess.run(
        [sys.executable, "-m", "delassus", *arguments],
        env={**os.environ, **environment},
        stdout=out,
        stderr=subprocess.PIPE,
        timeout=120,
        check=False,
    )


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [("info", "four_bar"), ("--help",), ("--version",)], ids=" ".join)
def test_output_that_cannot_be_written_is_said_in_a_sentence(arguments):
    with FULL.open("wb") as full:
        done = command(*arguments, out=full)
    assert done.returncode == 1
    assert done.stderr.decode() == "error  the output cannot be written: No space left on device.\n"


@pytest.mark.parametrize("columns", ["0", "1", "²", "1" * 5000])
def test_a_width_that_no_terminal_has_is_passed_over(columns):
    done = command("info", "four_bar", "--masses", COLUMNS=columns, LINES=columns)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "3 joints (0 mimic others)" in done.stdout.decode()


def test_characters_that_the_terminal_lacks_are_escaped():
    done = command("info", "gripper", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"1\xb7left_finger_joint + 0" in done.stdout
