"""Robots from files, from text, and by the names of their descriptions."""

import sys

import pytest

import delassus as dl
from delassus.errors import WrongType
from delassus.model.readers.load import load
from refusals import refuses
from urdf_samples import arm

MJCF = """
<mujoco model="swing">
  <worldbody><body name="arm"><joint name="hinge"/><geom type="sphere" size="0.1" pos="0 0 -1"/></body></worldbody>
</mujoco>
"""


def test_text_is_loaded():
    assert load("\n " + arm(), root="free").nv == 7


def test_a_file_is_loaded(tmp_path):
    (tmp_path / "r.urdf").write_text(arm())
    assert load(tmp_path / "r.urdf") == load(str(tmp_path / "r.urdf")) == load(arm())


def test_a_missing_file_is_named_with_those_near_it(tmp_path):
    (tmp_path / "panda.urdf").touch()
    with refuses("missing-file"):
        load(tmp_path / "pnda.urdf")


def test_a_missing_folder_is_named(tmp_path):
    with refuses("missing-file", "Nor"):
        load(tmp_path / "x" / "panda.urdf")


def test_a_folder_is_no_file(tmp_path):
    with refuses("unreadable-file"):
        load(tmp_path)


def test_xacro_must_be_run_first():
    with refuses("not-supported"):
        load("r.urdf.xacro")


def test_mjcf_without_mujoco_says_what_to_install(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with refuses("missing-package", "'delassus[mujoco]'"):
        load("<mujoco/>")


def test_a_name_without_the_descriptions_says_what_to_install(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with refuses("missing-file", "'panda'", "robot_descriptions"):
        load("panda")


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("quadrupd", "quadruped"), ("Humanoid", "humanoid"), ("cartpole", "cart_pole"), ("fourbar", "four_bar")],
)
def test_a_name_like_that_of_a_robot_of_the_package_is_answered_with_it(name, nearest, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with refuses("missing-file", repr(name), nearest):
        load(name)


def test_robots_of_the_package_are_suggested_where_no_others_are_installed(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with refuses("missing-file", "robot_descriptions"):
        load("quadrupd")


@pytest.fixture
def descriptions(tmp_path, monkeypatch):
    """A package robot_descriptions that knows a pendulum, one in MJCF, and one that cannot be fetched."""
    folder = tmp_path / "robot_descriptions"
    folder.mkdir()
    (tmp_path / "r.urdf").write_text(arm())
    (folder / "__init__.py").touch()
    paths = f"URDF_PATH = {str(tmp_path / 'r.urdf')!r}\nPACKAGE_PATH = REPOSITORY_PATH = {str(tmp_path)!r}\n"
    (folder / "swing_description.py").write_text(paths)
    (folder / "pendulum_mj_description.py").write_text(f"MJCF_PATH = {str(tmp_path / 'm.xml')!r}\n")
    (tmp_path / "m.xml").write_text(MJCF)
    (folder / "xacro_description.py").write_text("XACRO_PATH = ''\n")
    (folder / "far_description.py").write_text("raise OSError('no network')\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "robot_descriptions"]:
        del sys.modules[name]


@pytest.mark.usefixtures("descriptions")
@pytest.mark.parametrize("name", ["swing_description", "swing"])
def test_a_description_is_loaded_by_its_name(name):
    assert load(name) == load(arm())


@pytest.mark.usefixtures("descriptions")
def test_a_description_in_mjcf_is_loaded():
    pytest.importorskip("mujoco")
    assert load("pendulum_mj") == load(MJCF)


@pytest.mark.usefixtures("descriptions")
@pytest.mark.parametrize(
    ("name", "refusal"),
    [
        ("swing_descripion", ("missing-file", "swing_description")),
        ("xacro", ("not-supported",)),
        ("far", ("not-fetched", "'far_description'")),
    ],
)
def test_a_description_that_cannot_be_loaded_says_why(name, refusal):
    with refuses(*refusal):
        load(name)


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"root": "flying"}, ("unknown-option", "'flying'", "'fixed'", "'free'", "root")),
        ({"mimic": "yes"}, ("unknown-option", "'yes'", "'reduce'", "'ignore'", "mimic")),
        ({"format": "sdf"}, ("unknown-option", "'sdf'", "'urdf'", "'mjcf'", "format")),
    ],
)
def test_unknown_options_are_refused(options, refusal):
    with refuses(*refusal):
        load(arm(), **options)


def test_something_else_is_no_source():
    with pytest.raises(WrongType, match="source is a int"):
        load(3)


@pytest.fixture
def menagerie(tmp_path, monkeypatch):
    """A checkout of the menagerie with one robot in it."""
    pytest.importorskip("mujoco_menagerie")
    (tmp_path / "unitree_go2").mkdir()
    (tmp_path / "unitree_go2" / "go2.xml").write_text(MJCF)
    monkeypatch.setenv("MENAGERIE_ROOT", str(tmp_path))


@pytest.mark.usefixtures("menagerie")
def test_a_robot_of_the_menagerie_is_loaded_by_its_name_without_its_scene():
    assert load("unitree_go2") == load(MJCF)


@pytest.mark.usefixtures("menagerie")
def test_a_robot_like_one_of_the_menagerie_is_named():
    with refuses("missing-file", "unitree_go2"):
        load("unitree_go2x")


@pytest.mark.usefixtures("menagerie")
def test_a_part_of_a_name_of_the_menagerie_is_enough_to_be_told_it():
    with refuses("missing-file", "boston_dynamics_spot"):
        load("spot")


@pytest.mark.usefixtures("menagerie")
def test_a_robot_of_the_menagerie_that_cannot_be_fetched_says_why(monkeypatch):
    monkeypatch.setenv("MENAGERIE_ROOT", "/nowhere/at/all")
    with refuses("not-fetched", "'unitree_go2'"):
        load("unitree_go2")


@pytest.mark.parametrize("source", ["", "  "])
def test_an_empty_source_is_refused(source):
    with refuses("missing-argument", "source"):
        load(source)


def test_a_kernel_that_gets_a_path_says_how_to_load_it():
    with refuses("bad-signature", "'arm.urdf'"):
        dl.aba("arm.urdf", [0.0], [0.0], [0.0])
