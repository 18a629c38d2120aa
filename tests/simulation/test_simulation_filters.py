"""Who touches whom in a simulation: the contacts of MuJoCo at states of its own trajectories, and options."""

import os
from pathlib import Path

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.model.readers.mjcf_names import read_names
from delassus.step.period.kernels import candidate_geometry
from refusals import refuses

ROBOTS = Path(os.environ.get("DELASSUS_ROBOTS", "/nowhere"))
PRIMITIVE = [
    f"{name}.xml"
    for name in (
        "agility_cassie/scene",
        "anybotics_anymal_c/scene",
        "apptronik_apollo/scene",
        "berkeley_humanoid/scene",
        "booster_t1/scene",
        "kuka_iiwa_14/scene",
        "unitree_g1/scene_mjx",
        "unitree_go1/scene",
        "unitree_go2/scene",
        "unitree_go2/scene_mjx",
        "universal_robots_ur5e/scene",
    )
]


def trajectory(m, count, every=10):
    """States of a robot with random controls, as qpos and the data there."""
    rng, d = np.random.default_rng(0), mujoco.MjData(m)
    if m.nkey:
        mujoco.mj_resetDataKeyframe(m, d, 0)
    start, (low, high) = d.ctrl.copy(), m.actuator_ctrlrange.T
    for k in range(count * every):
        if k % every == 0:
            d.ctrl[:] = start + 0.5 * rng.normal(size=m.nu) * np.where(high > low, high - low, 1.0)
        mujoco.mj_step(m, d)
        if k % every == every - 1:
            mujoco.mj_forward(m, d)
            yield d


def check_pairs(m, model, count):
    """Bodies that touch in MuJoCo's list are those that touch here, unless MuJoCo's distance says otherwise."""
    sim, names = dl.Simulation(model), read_names(m).geoms
    shapes, number = {g.name: g for g in model.geometries}, {name: k for k, name in enumerate(names)}
    places = [(a.geometry, b and b.geometry) for a, b, _ in sim.scene.candidate_shapes]
    pairs = [frozenset((a.joint, -1 if b is None else b.joint)) for a, b in places]
    total = 0
    for d in trajectory(m, count):
        expected = {frozenset(shapes[names[g]].joint for g in c.geom) for c in d.contact if c.dist < 0.0}
        q = dl.mujoco.q_from_mujoco(model, d.qpos)
        gap = candidate_geometry(sim.scene, q, ground=sim.ground.shape)[0]
        touching = {pairs[k] for k in np.flatnonzero(gap < 0.0)}
        for k in np.flatnonzero(gap < 0.0):
            a, b = places[k]
            if pairs[k] not in expected and b is not None:
                # Points that MuJoCo adds to a patch replace the deepest one, and may be apart.
                assert mujoco.mj_geomDistance(m, d, number[a.name], number[b.name], 1.0, None) < 0.0
                touching.discard(pairs[k])
        assert touching == expected
        total += len(expected)
    return total


@pytest.mark.slow
@pytest.mark.parametrize("scene", PRIMITIVE)
def test_bodies_touch_as_in_mujoco_along_its_trajectory(scene):
    if not (ROBOTS / scene).exists():
        pytest.skip("no such robot here")
    m = mujoco.MjModel.from_xml_path(str(ROBOTS / scene))
    total = check_pairs(m, dl.load(ROBOTS / scene), 200)
    assert total > 0 or scene.startswith("kuka")  # an arm that does not reach itself


HEAP = """
<mujoco><worldbody><geom name="floor" type="plane" size="0 0 1"/>
  <geom name="wall" type="box" size=".05 1 1" pos=".4 0 0"/>
  <body pos="0 0 .3"><freejoint/><geom type="box" size=".1 .05 .07"/>
    <body pos=".15 0 0"><joint axis="0 1 0"/><geom type="capsule" size=".04 .1"/>
      <body pos=".1 0 .1"><joint axis="0 0 1"/><geom type="sphere" size=".06"/></body></body></body>
  <body pos=".05 .05 .5"><freejoint/><geom type="sphere" size=".08"/></body>
  <body pos="-.05 0 .7"><freejoint/><geom type="capsule" size=".05 .08"/></body>
</worldbody></mujoco>"""


def test_a_heap_of_bodies_touches_as_in_mujoco():
    assert check_pairs(mujoco.MjModel.from_xml_string(HEAP), dl.load(HEAP), 60) > 60


FEET = """
<mujoco><worldbody><geom name="floor" type="plane" size="0 0 1"/>
  <body name="block" pos="0 0 .1"><freejoint/>
    <geom name="ghost" type="box" size=".1 .1 .1" contype="0" conaffinity="0" mass="1"/>
    <geom name="foot" type="sphere" size=".05" pos="0 0 -.05" {bits} mass=".1"/></body>
</worldbody>{contact}</mujoco>"""
NOTHING = 'contype="0" conaffinity="0"'
LISTED = '<contact><pair geom1="floor" geom2="foot" friction="0.3 0.3 0 0 0" condim="3"/></contact>'


def test_feet_that_collide_with_nothing_fall_through_the_floor():
    sim = dl.Simulation(dl.load(FEET.format(bits=NOTHING, contact="")), time_step=5e-3)
    assert sim.run([0, 0, 0.1, 0, 0, 0, 1.0], steps=100, repair=False).q[-1, 2] < -0.5


def test_a_listed_pair_touches_whatever_the_bits_say_with_its_own_friction():
    sim = dl.Simulation(dl.load(FEET.format(bits=NOTHING, contact=LISTED)), dl.Ground(friction=None), time_step=5e-3)
    assert sim.scene.own_friction == ((0.3, 0.0, 0.0),)
    assert sim.run([0, 0, 0.1, 0, 0, 0, 1.0], steps=100).q[-1, 2] > 0.05


def pairs_of(sim):
    return {frozenset((a.geometry.name, b.geometry.name)) for a, b, _ in sim.scene.candidate_shapes if b is not None}


def test_without_self_collision_the_world_is_touched_alone():
    model = dl.load(HEAP)
    some, every = (pairs_of(dl.Simulation(model, self_collision=on)) for on in (False, True))
    assert some == {pair for pair in every if "wall" in pair} and len(some) == 5 < len(every)


def test_named_pairs_come_besides_those_of_the_file():
    model = dl.load(HEAP)
    names = [g.name for g in model.geometries if g.joint in {0, 1}]
    touching = dl.Simulation(model, colliding=[(names[0], names[1])])
    assert pairs_of(touching) - pairs_of(dl.Simulation(model)) == {frozenset(names[:2])}


def test_too_many_pairs_are_refused_with_a_remedy():
    body = '<body pos="{x} 0 1"><freejoint/><geom size=".01"/></body>'
    text = f"<mujoco><worldbody>{''.join(body.format(x=x) for x in range(700))}</worldbody></mujoco>"
    with refuses("out-of-range", "colliding="):
        dl.Simulation(dl.load(text))


@pytest.mark.parametrize(("robot", "slots"), [("quadruped", 8), ("biped", 8), ("humanoid", 8)])
def test_bundled_robots_have_eight_contacts(robot, slots):
    assert dl.Simulation(dl.load(robot)).scene.slots == slots


def test_several_free_bodies_have_four_contacts_each():
    assert dl.Simulation(dl.load(HEAP)).scene.slots == 12
    assert dl.Simulation(dl.load(HEAP), max_contacts=3).scene.slots == 3


BALLS = "".join(f'<body pos="0 0 {0.2 + 0.25 * k}"><freejoint/><geom size=".1"/></body>' for k in range(3))


def test_a_class_of_pairs_moves_as_straight_line_code_does(monkeypatch):
    text = f'<mujoco><worldbody><geom type="plane" size="0 0 1"/>{BALLS}</worldbody></mujoco>'
    q = np.array([[0.01 * k, -0.02 * k, 0.15 + 0.25 * k, 0, 0, 0, 1.0] for k in range(3)]).ravel()
    logs = []
    for straight in (10**6, 0):
        monkeypatch.setattr("delassus.geometry.classes.STRAIGHT", straight)
        sim = dl.Simulation(dl.load(text), time_step=5e-3)
        assert bool(sim.scene.pair_classes) == (straight == 0)
        logs.append(sim.run(q, steps=150))
    np.testing.assert_allclose(logs[0].q, logs[1].q, atol=1e-10)
    apart = np.linalg.norm(np.diff(logs[1].q[-1].reshape(3, 7)[:, :3], axis=0), axis=1)
    assert (apart > 0.2 - 1e-4).all()
