"""Files whose contacts are soft in MuJoCo, under the rigid law."""

import warnings

import mujoco
import pytest

import delassus as dl
from delassus.errors import DelassusWarning

BOX = """<mujoco><option timestep="0.002"/><worldbody><geom name="floor" type="plane" size="1 1 1" solref="{solref}"/>
<body pos="0 0 0.1"><freejoint/><geom name="crate" type="box" size="0.2 0.2 0.1" mass="3" solref="{solref}"/></body>
</worldbody></mujoco>"""


def said(text, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dl.Simulation.from_file(text, **options)
    return [str(w.message) for w in caught if issubclass(w.category, DelassusWarning)]


@pytest.mark.parametrize("solref", ["0.3 1", "-30 -10"])
def test_the_depth_of_soft_contacts_is_that_of_mujoco(solref):
    text = BOX.format(solref=solref)
    mj = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(mj)
    for _ in range(2000):
        mujoco.mj_step(mj, data)
    (sentence,) = said(text)
    assert f"'crate' sags by {-1e3 * data.contact.dist.mean():.1f} mm" in sentence


@pytest.mark.parametrize("options", [{"law": "mujoco"}, {"ground": dl.Ground()}])
def test_nothing_is_said_where_the_file_is_not_made_rigid(options):
    assert said(BOX.format(solref="0.3 1"), **options) == []


def test_nothing_is_said_of_contacts_as_hard_as_by_default():
    assert said(BOX.format(solref="0.02 1")) == []
