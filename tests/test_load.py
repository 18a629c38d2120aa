"""Robots from files, from text, and by the names of their descriptions."""

import sys

import pytest

import delassus as dl
from delassus.errors import DelassusError
from delassus.model.readers.load import load
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
    with pytest.raises(DelassusError, match=r"there is no file .* Near it are: panda\.urdf\."):
        load(tmp_path / "pnda.urdf")


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(DelassusError, match="Nor is there a folder"):
        load(tmp_path / "x" / "panda.urdf")


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(DelassusError, match="is not a file"):
        load(tmp_path)


def test_xacro_must_be_run_first():
    with pytest.raises(DelassusError, match=r"run `xacro r.urdf.xacro > r.urdf.urdf` first"):
        load("r.urdf.xacro")


def test_mjcf_without_mujoco_says_what_to_install(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DelassusError, match=r"pip install 'delassus\[mujoco\]'"):
        load("<mujoco/>")


def test_a_name_without_the_descriptions_says_what_to_install(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        DelassusError, match=r"'panda' is neither a file nor the name .* pip install robot_descriptions"
    ):
        load("panda")


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("quadrupd", "quadruped"), ("Humanoid", "humanoid"), ("cartpole", "cart_pole"), ("fourbar", "four_bar")],
)
def test_a_name_like_that_of_a_robot_of_the_package_is_answered_with_it(name, nearest, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DelassusError, match=rf"{name!r} is neither .* The nearest are: {nearest}[,.]"):
        load(name)


def test_robots_of_the_package_are_suggested_where_no_others_are_installed(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        DelassusError, match=r"The nearest are: quadruped\..* pip install robot_descriptions mujoco-menag"
    ):
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
    ("name", "sentence"),
    [
        ("swing_descripion", "The nearest are: swing_description"),
        ("xacro", "is xacro, which is not read"),
        ("far", "'far_description' cannot be fetched: no network"),
    ],
)
def test_a_description_that_cannot_be_loaded_says_why(name, sentence):
    with pytest.raises(DelassusError, match=sentence):
        load(name)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"root": "flying"}, "root is 'flying'; it is one of 'fixed', 'free'."),
        ({"mimic": "yes"}, "mimic is 'yes'; it is one of 'reduce', 'ignore'."),
        ({"format": "sdf"}, "format is 'sdf'; it is None or one of 'mjcf', 'urdf'."),
    ],
)
def test_unknown_options_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        load(arm(), **options)


def test_something_else_is_no_source():
    with pytest.raises(TypeError, match="source is a int"):
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
    with pytest.raises(DelassusError, match="The nearest are: unitree_go2"):
        load("unitree_go2x")


@pytest.mark.usefixtures("menagerie")
def test_a_part_of_a_name_of_the_menagerie_is_enough_to_be_told_it():
    with pytest.raises(DelassusError, match=r"The nearest are: .*boston_dynamics_spot"):
        load("spot")


@pytest.mark.usefixtures("menagerie")
def test_a_robot_of_the_menagerie_that_cannot_be_fetched_says_why(monkeypatch):
    monkeypatch.setenv("MENAGERIE_ROOT", "/nowhere/at/all")
    with pytest.raises(DelassusError, match="'unitree_go2' of the menagerie cannot be fetched: "):
        load("unitree_go2")


@pytest.mark.parametrize("source", ["", "  "])
def test_an_empty_source_is_refused(source):
    with pytest.raises(DelassusError, match="the source is empty"):
        load(source)


def test_a_kernel_that_gets_a_path_says_how_to_load_it():
    with pytest.raises(DelassusError, match=r"takes the model itself: delassus.load\('arm.urdf'\)"):
        dl.aba("arm.urdf", [0.0], [0.0], [0.0])
