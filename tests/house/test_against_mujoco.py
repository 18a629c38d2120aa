"""`delassus compare`: a file here and in MuJoCo."""

import pytest
from typer.testing import CliRunner

from delassus.against_mujoco import compare_with_mujoco
from delassus.cli import app
from delassus.errors import DelassusWarning
from refusals import refuses

ARM = """<mujoco><option timestep="0.0005"/><worldbody>
  <geom name="floor" type="plane" size="0 0 1" pos="0 0 -1"/>
  <body><joint name="elbow" axis="0 1 0" damping="{damping}"/><geom size="0.1" pos="0.3 0 0" contype="0"/></body>
  {more}</worldbody><actuator><motor joint="elbow"/></actuator></mujoco>"""
BALLS = """<body pos="2 0 -0.5"><freejoint/><geom name="ball" size="0.1"/></body>
  <body pos="2 0 0"><freejoint/><geom name="other" size="0.1"/></body>"""


@pytest.fixture
def scene(tmp_path):
    def write(damping="0.1", more=""):
        path = tmp_path / "scene.xml"
        path.write_text(ARM.format(damping=damping, more=more))
        return str(path)

    return write


def test_motions_that_agree_are_said_to(scene):
    result = compare_with_mujoco(scene(), seconds=0.2, noise=0.5)
    assert result.parted_at is None
    assert all(part.agrees for part in result.ingredients if part.name != "integrator")


def test_what_differs_is_named(scene):
    with pytest.warns(DelassusWarning, match="damping that is not linear"):
        result = compare_with_mujoco(scene(damping="0.1 2"), seconds=0.5)
    assert [part.name for part in result.ingredients if not part.agrees] == ["passive forces", "integrator"]
    assert result.parted_joint == "elbow" and "damping that is not linear" in result.omissions[0]


def test_the_command_prints_both(scene, tmp_path):
    plot = tmp_path / "apart.png"
    output = CliRunner().invoke(app, ["compare", scene(more=BALLS), "--seconds", "0.4", "--plot", str(plot)])
    assert output.exit_code == 0 and plot.stat().st_size > 1000
    assert "law of contact" in output.output and "the motions" in output.output


def test_files_that_mujoco_does_not_read_are_refused(scene):
    with refuses("not-supported", "MJCF"):
        compare_with_mujoco("examples/arm.urdf")
    assert CliRunner().invoke(app, ["compare", "gone.xml"]).exit_code == 1


def test_a_start_that_is_repaired_is_an_ingredient(scene):
    result = compare_with_mujoco(scene(more=BALLS.replace('pos="2 0 -0.5"', 'pos="2 0 -0.95"')), seconds=0.1)
    start = next(part for part in result.ingredients if part.name == "start")
    assert abs(start.difference - 0.05) < 1e-6 and "ground" in start.remark


def test_normals_are_compared_where_both_touch(scene):
    result = compare_with_mujoco(scene(more=BALLS), seconds=0.5)
    assert {part.name: part.agrees for part in result.ingredients}["contact normals"]
