"""Meshes of MJCF files whose vertices are in the file itself, or built in, against MuJoCo."""

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.model.readers.mjcf import from_mujoco
from mujoco_law import differences, has_equal_contacts, reference_model, rollout_states

MESHES = {
    "vertices": '<mesh name="mesh" vertex="0 0 0 0.2 0 0 0 0.3 0 0 0 .25" scale="1 1 .5"/>',
    "a reference frame": '<mesh name="mesh" vertex="0 0 0 .2 0 0 .2 .1 0 0 .1 0 0 0 .1 0 .1 .1" refpos=".01 .02 .03"'
    ' refquat="1 .1 .2 .3"/>',
    "a cone": '<mesh name="mesh" builtin="cone" params="8 .5" scale=".1 .1 .15"/>',
}
SCENE = """<mujoco><asset>{}</asset><worldbody><geom type="plane" size="0 0 1"/>
  <body pos="0 0 .3" euler="10 20 30"><freejoint/><geom type="mesh" mesh="mesh" pos=".1 0 0" euler="0 40 0"/></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize("mesh", MESHES)
def test_meshes_without_a_file_touch_the_ground_as_in_mujoco(mesh):
    m = reference_model(mujoco.MjModel.from_xml_string(SCENE.format(MESHES[mesh])))
    states = rollout_states(m, count=50, seconds=1.0)
    sim = dl.Simulation(from_mujoco(m), law="mujoco", tolerance=1e-10)
    assert sum(map(bool, states.contacts)) > 25
    assert np.all(has_equal_contacts(sim, m, states))
    for difference in differences(sim, states):
        assert difference.max() < 2e-6


def test_vertices_of_a_file_stand_for_a_mesh_that_cannot_be_found(tmp_path):
    wedge = "v 0 0 0\nv .2 0 0\nv 0 .1 0\nv 0 0 .1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    (tmp_path / "wedge.obj").write_text(wedge)
    spec = mujoco.MjSpec.from_string(SCENE.format('<mesh name="mesh" file="wedge.obj" scale="1 2 1"/>'))
    spec.meshdir = str(tmp_path)
    m = spec.compile()
    there = dl.Simulation(from_mujoco(m), law="mujoco")
    (tmp_path / "wedge.obj").unlink()
    gone = dl.Simulation(from_mujoco(m), law="mujoco")
    ends = [sim.run(sim.start(), steps=300).q[-1] for sim in (there, gone)]
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-6)
