"""Files with adhesion: the rest of them is simulated, and a warning says what is left out."""

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.errors import DelassusWarning
from delassus.model.readers.mjcf import from_mujoco

LEG = """<mujoco><option timestep=".002"/><worldbody><geom type="plane" size="0 0 1"/>
  <body name="base" pos="0 0 .3"><freejoint/><geom type="box" size=".1 .1 .02" mass="1"/>
    <body name="foot" pos="0 0 -.1"><joint name="slide" type="slide" axis="0 0 1"/>
      <geom type="box" size=".1 .1 .02" mass=".5"/></body></body></worldbody>
  <actuator><adhesion name="glue" body="foot" ctrlrange="0 1" gain="5"/>
    <position name="servo" joint="slide" kp="500" kv="20"/></actuator></mujoco>"""


def test_adhesion_is_left_out_with_a_warning_and_its_control_stays():
    m = mujoco.MjModel.from_xml_string(LEG)
    with pytest.warns(DelassusWarning, match=r"adhesion.*glue"):
        sim = dl.Simulation(from_mujoco(m), time_step=m.opt.timestep)
    assert sim.nu == m.nu == 2
    log = sim.run(sim.start(), control=[0.0, 0.03], steps=500)
    data = mujoco.MjData(m)
    data.ctrl[:] = 0.0, 0.03
    for _ in range(500):
        mujoco.mj_step(m, data)
    np.testing.assert_allclose(log.q[-1][-1], data.qpos[-1], atol=1e-4)
    np.testing.assert_allclose(log.q[-1][2], data.qpos[2], atol=2e-3)
