"""What is wrong in an MJCF file is said in a sentence with file, line and element, and nothing is left behind."""

import os
import threading
from pathlib import Path

import numpy as np
import pytest

import delassus as dl
from delassus.model.readers.documents.xml import ModelFileError
from refusals import refuses

mujoco = pytest.importorskip("mujoco")

ARM = """<mujoco model="arm">
  <option/>
  <default><default class="strong"><joint/></default></default>
  <worldbody>
    <body name="upper">
      <joint name="hinge"/>
      <geom name="bar" size=".1"/>
      <site name="tip"/>
    </body>
  </worldbody>
  <equality><joint name="stop" joint1="hinge"/></equality>
  <tendon><fixed name="cord"><joint joint="hinge" coef="1"/></fixed></tendon>
  <actuator>
    <motor name="drive" joint="hinge"/>
    <position name="servo" joint="hinge"/>
  </actuator>
  <keyframe>
    <key name="home"/>
  </keyframe>
</mujoco>
"""
STARTS = {
    "option": "<option",
    "default": '<default class="strong"><joint',
    "body": '<body name="upper"',
    "joint": '<joint name="hinge"',
    "geom": '<geom name="bar"',
    "site": '<site name="tip"',
    "equality": '<joint name="stop"',
    "tendon": '<fixed name="cord"',
    "motor": '<motor name="drive"',
    "position": '<position name="servo"',
    "key": '<key name="home"',
}
LINES = {element: ARM[: ARM.index(start)].count("\n") + 1 for element, start in STARTS.items()}


def arm(element: str, attribute: str) -> str:
    """The arm with one more attribute in one of its elements."""
    return ARM.replace(STARTS[element], f"{STARTS[element]} {attribute}")


def refusal(source) -> ModelFileError:
    with pytest.raises(ModelFileError) as caught:
        dl.load(source)
    return caught.value


# --- numbers ----------------------------------------------------------------------------------------------------------

NUMBERS = [
    ("option", "gravity='0 0 {}'", "gravity is {}"),
    ("body", "pos='{} 0 0'", "pos of body 'upper' is {}"),
    ("joint", "range='{} 1'", "range of joint 'hinge' is {}"),
    ("joint", "pos='0 {} 0'", "pos of joint 'hinge' is {}"),
    ("joint", "stiffness='{}'", "stiffness of joint 'hinge' is {}"),
    ("joint", "damping='{}'", "damping of joint 'hinge' is {}"),
    ("joint", "armature='{}'", "armature of joint 'hinge' is {}"),
    ("joint", "frictionloss='{}'", "frictionloss of joint 'hinge' is {}"),
    ("joint", "ref='{}'", "ref of joint 'hinge' is {}"),
    ("joint", "springref='{}'", "springref of joint 'hinge' is {}"),
    ("joint", "actuatorfrcrange='-1 {}'", "actuatorfrcrange of joint 'hinge' is {}"),
    ("geom", "friction='{} 0 0'", "friction of geom 'bar' is {}"),
    ("geom", "rgba='{} 0 0 1'", "rgba of geom 'bar' is {}"),
    ("site", "pos='0 0 {}'", "pos of site 'tip' is {}"),
    ("equality", "polycoef='{} 0 0 0 0'", "polycoef of equality 'stop' is {}"),
    ("tendon", "stiffness='{}'", "stiffness of tendon 'cord' is {}"),
    ("tendon", "damping='{}'", "damping of tendon 'cord' is {}"),
    ("tendon", "range='0 {}'", "range of tendon 'cord' is {}"),
    ("motor", "gear='{}'", "gear of actuator 'drive' is {}"),
    ("motor", "ctrlrange='-1 {}'", "ctrlrange of actuator 'drive' is {}"),
    ("motor", "forcerange='-1 {}'", "forcerange of actuator 'drive' is {}"),
    ("position", "kp='{}'", "kp of actuator 'servo' is {}"),
    ("key", "qpos='{}'", "qpos of key 'home' is {}"),
]


@pytest.mark.parametrize("number", ["nan", "inf"])
@pytest.mark.parametrize(("element", "attribute", "sentence"), NUMBERS, ids=lambda part: part.split("=")[0])
def test_a_number_that_is_not_finite_is_refused_with_line_and_attribute(element, attribute, sentence, number):
    error = refusal(arm(element, attribute.format(number)))
    assert f"{sentence.format(number)}; it must be a finite number." in str(error)
    assert error.line == LINES[element]


def test_a_number_of_a_default_is_refused_where_it_is_written():
    text = arm("default", "damping='nan'").replace('<joint name="hinge"', '<joint class="strong" name="hinge"')
    assert str(refusal(text)) == "<string>:3: <joint>: damping of joint 'hinge' is nan; it must be a finite number."


@pytest.mark.parametrize(
    ("attribute", "sentence"),
    [
        ('pos="1e31 0 0"', "pos of geom 'bar' is 1e+31; numbers of a robot in SI units must be within ±1e+30."),
        ('mass="inf"', "mass of body 'upper' is inf; it must be a finite number."),
    ],
)
def test_a_number_of_a_shape_that_spoils_its_body_is_refused_where_it_is_written(attribute, sentence):
    assert str(refusal(arm("geom", attribute))) == f"<string>:{LINES['geom']}: <geom>: {sentence}"


def test_a_number_that_mujoco_stumbles_over_is_refused_where_it_is_written():
    inertial = "<inertial pos='0 0 0' mass='nan' diaginertia='1 1 3'/>"  # MuJoCo speaks of the triangle inequality
    text = ARM.replace('<joint name="hinge"', f'{inertial}<joint name="hinge"')
    sentence = 'mass="nan": the numbers of a robot are finite and within ±1e+30.'
    assert str(refusal(text)) == f"<string>:{LINES['joint']}: <inertial>: {sentence}"


def test_a_number_beyond_all_robots_is_refused():
    with refuses("out-of-range", "<string>:2: <option>", "gravity"):
        dl.load(arm("option", "gravity='0 0 1e300'"))


def test_a_model_in_memory_with_a_number_that_is_not_finite_is_refused():
    m = mujoco.MjModel.from_xml_string(ARM)
    m.jnt_stiffness[0] = np.inf
    with refuses("not-finite", "'hinge'", "stiffness"):
        dl.from_mujoco(m)


def test_names_that_look_like_numbers_are_names():
    assert dl.load(ARM.replace("hinge", "nan").replace("upper", "inf")).joint("nan").name == "nan"


# --- places -----------------------------------------------------------------------------------------------------------

REFUSED = [
    (arm("joint", "type='ball joint'"), 6, "joint", "invalid keyword: 'ball joint'."),
    (arm("joint", "axis='0 0 0'"), 6, "joint", "axis too small in joint (name 'hinge')."),
    (ARM.replace('size=".1"', 'size="-1"'), 7, "geom", "size 0 must be positive in geom (name 'bar')."),
    (ARM.replace('joint1="hinge"', 'joint1="knee"'), 11, "joint", "unknown element 'knee'"),
    (arm("key", "qpos='1 2'"), 18, "key", "invalid qpos size, expected 1, got 2"),
    (ARM.replace("<option/>", "<asset><mesh name='m' file='no.stl'/></asset>"), 2, "mesh", "file 'no.stl'."),
    (ARM.replace("<option/>", "<compiler meshdir='a'/><asset><mesh file='b.stl'/></asset>"), 2, "mesh", "'a/b.stl'."),
    (ARM.replace("</body>", "</bdy>"), 5, "", "XML_ERROR_MISMATCHED_ELEMENT"),
    (ARM.replace("<option/>", "<option timestep='line 9'/>"), 2, "option", "bad format in attribute 'timestep'."),
]


@pytest.mark.parametrize(("text", "line", "element", "sentence"), REFUSED, ids=lambda part: str(part)[-40:])
def test_what_mujoco_refuses_is_refused_with_line_and_element(text, line, element, sentence):
    error = refusal(text)
    assert sentence in str(error)
    assert (error.line, error.element) == (line, element)


@pytest.fixture
def robot(tmp_path):
    """A robot in two files, the second of which is to be given."""
    (tmp_path / "robot.xml").write_text("<mujoco>\n<worldbody>\n<include file='parts/arm.xml'/></worldbody></mujoco>")
    (tmp_path / "parts").mkdir()

    def write(text):
        (tmp_path / "parts" / "arm.xml").write_text(f"<mujoco>\n<!-- a -- b\n -->\n{text}</mujoco>")
        return tmp_path / "robot.xml"

    return write


@pytest.mark.parametrize(
    ("joint", "sentence"),
    [
        ("type='wobbly'", "invalid keyword: 'wobbly'"),
        ("axis='0 0 0'", "axis too small in joint"),
        ("damping='nan'", "damping of joint 'hinge' is nan"),
        ("/><joint name='hinge'", "repeated name 'hinge' in joint"),
    ],
)
def test_what_is_wrong_in_an_included_file_is_named_with_that_file_and_its_line(robot, joint, sentence):
    path = robot(f"<body>\n<joint name='hinge' {joint}/>\n<geom size='.1'/></body>")
    error = refusal(path)
    assert sentence in str(error)
    assert (Path(error.file), error.line) == (path.parent / "parts" / "arm.xml", 5)


def test_an_included_file_that_is_not_xml_is_named(robot):
    error = refusal(robot("<body>"))
    assert "Include error" in str(error)
    assert (error.line, error.element) == (3, "include")


def test_a_document_type_is_refused():
    with refuses("bad-model-file"):
        dl.load("<!DOCTYPE mujoco><mujoco/>", format="mjcf")


def test_what_is_not_quite_xml_is_left_to_mujoco():
    assert dl.load(ARM.replace('"bar"', '"a < b"')).geometries[0].name == "a < b"


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["robot.mjcf", "robot.XML", "robot.Xml", "robot.txt", "robot"])
def test_a_file_may_have_any_suffix(robot, name):
    path = robot("<body><joint name='hinge'/><geom size='.1'/></body>")
    assert dl.load(path.rename(path.parent / name)).joint("hinge").kind.nv == 1


def test_meshes_are_looked_for_beside_a_file_of_any_suffix(tmp_path):
    (tmp_path / "m.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n")
    mesh = "<asset><mesh name='m' file='m.obj'/></asset>"
    (tmp_path / "r.mjcf").write_text(f"<mujoco>{mesh}<worldbody><geom type='mesh' mesh='m'/></worldbody></mujoco>")
    assert dl.load(tmp_path / "r.mjcf").geometries[0].mesh == str(tmp_path / "m.obj")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_unicode_is_read_in_its_encodings(tmp_path, encoding):
    (tmp_path / "robot.xml").write_text(ARM.replace('"arm"', '"机器人 Ω"'), encoding=encoding)
    assert dl.load(tmp_path / "robot.xml").name == "机器人 Ω"


# --- what MuJoCo warns of ---------------------------------------------------------------------------------------------

NOTED = arm("option", "timestep='nan'")  # MuJoCo warns of it, and nothing here uses it


def test_no_file_is_left_in_the_working_folder(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    dl.load(NOTED)
    refusal(arm("joint", "damping='nan'"))
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_what_mujoco_warns_of_is_a_warning_of_the_model():
    assert "<string>: MuJoCo says: XML contains a 'NaN'. Please check it carefully." in dl.load(NOTED).warnings


def test_a_handler_of_the_users_own_is_kept():
    said = []
    mujoco.set_mju_user_warning(said.append)
    try:
        dl.load(NOTED)
        assert said == []
        mujoco.MjModel.from_xml_string(NOTED)
        assert len(said) == 1
    finally:
        mujoco.set_mju_user_warning(None)


def test_threads_may_load_at_once():
    warnings = []
    workers = [threading.Thread(target=lambda: warnings.append(dl.load(NOTED).warnings)) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(warnings) == 8
    assert len(set(warnings)) == 1
    assert mujoco.get_mju_user_warning() is None


REFERENCES = {
    "mesh": "<asset><mesh name='m' file='pipe.obj'/></asset>",
    "a mesh in a folder": "<compiler meshdir='parts'/><asset><mesh name='m' file='pipe.obj'/></asset>",
    "a mesh without its path": "<compiler strippath='true'/><asset><mesh name='m' file='no/pipe.obj'/></asset>",
    "hfield": "<asset><hfield name='m' file='pipe.obj' size='1 1 1 1'/></asset>",
    "texture": "<asset><texture name='m' type='2d' file='pipe.obj'/></asset>",
    "a side of a cube": "<asset><texture name='m' type='cube' fileright='pipe.obj'/></asset>",
    "skin": "<asset><skin name='m' file='pipe.obj'/></asset>",
    "model": "<asset><model name='m' file='pipe.obj'/></asset>",
    "include": "<include file='pipe.obj'/>",
    "an included mesh": "<include file='parts/inner.xml'/>",
    "what is not quite XML": "<asset><mesh name='m' file='pipe.obj' name='m'/></asset>",
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are those of POSIX")
@pytest.mark.parametrize("reference", REFERENCES.values(), ids=REFERENCES.keys())
def test_references_to_named_pipes_are_refused_before_they_are_opened(tmp_path, reference):
    (tmp_path / "parts").mkdir()
    for folder in (tmp_path, tmp_path / "parts"):
        os.mkfifo(folder / "pipe.obj")
    inner = "<mujoco><asset><mesh name='m' file='pipe.obj'/></asset></mujoco>"
    (tmp_path / "parts" / "inner.xml").write_text(inner)
    (tmp_path / "r.xml").write_text(f"<mujoco>{reference}<worldbody/></mujoco>")
    error = refusal(tmp_path / "r.xml")
    assert "is a named pipe; only regular files are read" in str(error) and error.line == 1


def test_references_to_devices_and_huge_files_are_refused(tmp_path):
    with (tmp_path / "huge.obj").open("wb") as file:
        file.truncate(2**30)  # without any blocks on the disk
    for name, words in (("/dev/zero", "is a device"), ("huge.obj", "has 1024 MB")):
        (tmp_path / "r.xml").write_text(f"<mujoco><asset><mesh name='m' file='{name}'/></asset></mujoco>")
        assert words in str(refusal(tmp_path / "r.xml"))
