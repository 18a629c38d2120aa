"""The table of file formats: how one is chosen, which options it takes, and how a user adds one."""

import pytest

import delassus as dl
from delassus.model.formats import FORMATS, register_format
from refusals import refuses
from urdf_samples import arm

MJCF = '<mujoco><worldbody><body><joint/><geom size="0.1"/></body></worldbody></mujoco>'


@pytest.fixture
def masses():
    """A format of text with one mass [kg]."""

    @register_format("masses", suffixes=(".masses",), root_tag="masses", options=("factor",))
    def read(data, file, *, factor=1.0):
        text = (data if isinstance(data, str) else data.decode()).removeprefix("<masses>").removesuffix("</masses>")
        return dl.Model("point", (dl.Joint("slide", dl.Prismatic(), inertia=dl.Inertia(factor * float(text))),))

    yield read
    del FORMATS["masses"]


@pytest.mark.usefixtures("masses")
def test_a_format_is_found_by_the_suffix(tmp_path):
    (tmp_path / "point.MASSES").write_text("3.5")
    assert dl.load(tmp_path / "point.MASSES").mass == 3.5


@pytest.mark.usefixtures("masses")
def test_a_format_is_found_by_its_name(tmp_path):
    (tmp_path / "point.txt").write_text("3.5")
    assert dl.load(tmp_path / "point.txt", format="masses").mass == 3.5


@pytest.mark.usefixtures("masses")
def test_the_root_element_decides_before_the_suffix(tmp_path):
    (tmp_path / "point.urdf").write_text("<masses>3.5</masses>")
    assert dl.load(tmp_path / "point.urdf").mass == 3.5


@pytest.mark.usefixtures("masses")
def test_the_options_of_a_format_reach_its_reader():
    assert dl.load("<masses>3.5</masses>", factor=2.0).mass == 7.0


@pytest.mark.parametrize("option", ["factor", "scale"])
def test_an_option_that_a_format_does_not_take_is_refused_with_those_that_fit(option):
    with pytest.raises(
        dl.DelassusError, match=f"'urdf' does not take {option}=; its options are root, mimic, packages"
    ):
        dl.load(arm(), **{option: 2.0})


@pytest.mark.parametrize("option", [{"mimic": "ignore"}, {"packages": ["/x"]}])
def test_mjcf_has_no_options(option):
    with pytest.raises(dl.DelassusError, match=f"'mjcf' does not take {min(option)}=; it has no options"):
        dl.load(MJCF, **option)


def test_defaults_of_options_that_a_format_does_not_take_are_accepted():
    assert dl.load(MJCF, root="fixed", mimic="reduce", packages=()).nv == 1


def test_a_robot_of_the_package_takes_no_options():
    with pytest.raises(ValueError, match="'gripper' defines its own root and joints; mimic='ignore' is for files"):
        dl.load("gripper", mimic="ignore")


def test_an_unknown_format_is_refused_with_those_there_are():
    with refuses("unknown-option", "'sdf'", "'mjcf'", "'urdf'"):
        dl.load(arm(), format="sdf")


def test_a_name_is_registered_once():
    with pytest.raises(ValueError, match="'urdf' is already registered"):
        register_format("urdf")(lambda data, file: None)


@pytest.mark.parametrize("claim", [{"suffixes": [".URDF"]}, {"root_tag": "robot"}])
def test_a_suffix_or_a_root_element_belongs_to_one_format(claim):
    with pytest.raises(ValueError, match="belongs to the format 'urdf'"):
        register_format("other", **claim)(lambda data, file: None)


def test_a_suffix_has_a_dot():
    with pytest.raises(ValueError, match=r"needs a dot: '\.obj'"):
        register_format("other", suffixes=("obj",))
