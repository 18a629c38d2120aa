"""Which shapes may touch: the pairs that MuJoCo's own collision detection finds when everything overlaps."""

import mujoco
import pytest

import delassus as dl
from delassus.geometry.filters import touching_pairs

CROWD = """
<mujoco><option>{flags}</option>
  <default><geom type="sphere" size="1"/></default>
  <worldbody>
    <geom name="rock"/>
    <body name="a"><joint type="slide"/><joint type="hinge"/><geom name="a1"/>
      <body name="a_fixed"><geom name="a2" contype="2" conaffinity="2"/></body>
      <body name="b"><joint type="slide" axis="0 1 0"/><joint type="slide" axis="1 0 0"/><geom name="b1"/>
        <body name="c"><joint type="hinge"/><geom name="c1"/><geom name="c2" contype="3" conaffinity="2"/></body>
      </body>
    </body>
    <body name="d"><freejoint/><geom name="d1"/><geom name="d2" contype="0" conaffinity="0"/></body>
    <body name="e"><freejoint/><geom name="e1" contype="4" conaffinity="1"/></body>
  </worldbody>
  <contact><exclude body1="c" body2="d"/><pair geom1="d2" geom2="rock"/><pair geom1="a1" geom2="b1"/></contact>
</mujoco>"""


def pairs_of(model):
    return {frozenset((one.name, two.name)) for one, two in touching_pairs(model)}


def pairs_in_mujoco(text):
    m = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(m)
    mujoco.mj_forward(m, data)
    return {frozenset(m.geom(g).name for g in pair) for pair in data.contact.geom}


@pytest.mark.parametrize("flags", ["", '<flag filterparent="disable"/>', '<flag contact="disable"/>'])
def test_pairs_of_overlapping_shapes_are_those_of_mujoco(flags):
    text = CROWD.format(flags=flags)
    assert pairs_of(dl.load(text)) == pairs_in_mujoco(text)


def test_adjacent_links_of_a_urdf_pass_through_each_other():
    links = "".join(
        f'<link name="l{k}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
        '</inertial><collision><geometry><sphere radius="1"/></geometry></collision></link>'
        for k in range(3)
    )
    joints = "".join(
        f'<joint name="j{k}" type="continuous"><parent link="l{k}"/><child link="l{k + 1}"/></joint>' for k in range(2)
    )
    model = dl.load(f'<robot name="chain">{links}{joints}</robot>')
    assert pairs_of(model) == {frozenset(("l0_0", "l2_0"))}


def test_attached_models_keep_their_exclusions():
    model = dl.load(CROWD.format(flags=""))
    both = model.attach(model, "world", prefix="second_")
    assert ("second_c1", "second_d1") in both.contact_rules.excluded
    assert frozenset(("c1", "d1")) not in pairs_of(both)
    assert frozenset(("c1", "second_d1")) in pairs_of(both)
