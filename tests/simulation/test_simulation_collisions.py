"""Shapes that touch each other: gaps as MuJoCo measures them, collisions of balls, stacks, stairs."""

import math
from dataclasses import replace

import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import delassus as dl
from bodies import BALL, BRICK, G, body
from delassus.model import Placement
from delassus.model.parts import Geometry
from refusals import refuses

SIZES = {"sphere": (0.1,), "capsule": (0.06, 0.3), "box": (0.2, 0.3, 0.1), "cylinder": (0.08, 0.2)}
MJCF = {
    "sphere": "0.1",
    "capsule": "0.06 0.15",
    "box": "0.1 0.15 0.05",
    "cylinder": "0.08 0.1",
    "ellipsoid": "0.1 0.15 0.05",
}


def two(one: str, other: str) -> dl.Model:
    """Two free bodies of 1 kg."""
    first, second = (body(shape, SIZES[shape], 1.0, (0.01, 0.01, 0.01)) for shape in (one, other))
    return first.attach(second, "world", prefix="other_")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("sphere", "sphere"),
        ("sphere", "capsule"),
        ("box", "sphere"),
        ("cylinder", "sphere"),
        ("ellipsoid", "sphere"),
        ("capsule", "capsule"),
        ("capsule", "box"),
        ("box", "capsule"),
    ],
)
def test_gaps_are_those_that_mujoco_measures(one, other):
    bodies = "".join(
        f'<body><freejoint/><geom name="{name}" type="{shape}" size="{MJCF[shape]}" mass="1"/></body>'
        for name, shape in (("a", one), ("b", other))
    )
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")
    data = mujoco.MjData(model)
    robot = dl.load(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")
    sim = dl.Simulation(robot, touching=[], colliding=[("a", "b")])
    rng = np.random.default_rng(0)
    for _ in range(60):
        data.qpos[:] = rng.normal(size=14)
        for at in (slice(3, 7), slice(10, 14)):
            data.qpos[at] /= np.linalg.norm(data.qpos[at])
        data.qpos[7:10] = data.qpos[:3] + 0.25 * rng.normal(size=3)
        mujoco.mj_kinematics(model, data)
        wanted = mujoco.mj_geomDistance(model, data, 0, 1, 10.0, None)
        if wanted > -0.02:  # deep inside, there are several ways out
            found = sim.contacts(dl.q_from_mujoco(robot, data.qpos.copy()))
            assert found.gap.min() == pytest.approx(wanted, abs=1e-6)


def test_balls_of_equal_mass_exchange_their_velocities():
    model = replace(two("sphere", "sphere"), gravity=(0.0, 0.0, 0.0))
    sim = dl.Simulation(
        model, dl.Ground(restitution=1.0, friction=0.0), touching=[], colliding=[("sphere", "other_sphere")]
    )
    q0 = np.array([0, 0, 0, 0, 0, 0, 1.0, 0.3, 0, 0, 0, 0, 0, 1.0])
    log = sim.run(q0, [1.0, 0, 0, 0, 0, 0] + [0.0] * 6, steps=300)
    np.testing.assert_allclose(log.v[-1, [0, 6]], [0.0, 1.0], atol=1e-9)
    np.testing.assert_allclose(log.energy, log.energy[0], rtol=1e-9)


@pytest.mark.parametrize(("lower", "upper"), [(1.0, 1000.0), (1000.0, 1.0)])
def test_a_stack_of_free_bodies_rests_for_ten_seconds(lower, upper):
    """A box, and on it another one with four balls as feet, askew."""
    boxes = [body("box", (0.3, 0.3, 0.2), m, (m / 100, m / 100, m / 100)) for m in (lower, upper)]
    feet = tuple(
        Geometry(f"foot_{x}_{y}", 0, Placement.of(p=(0.1 * x, 0.1 * y, -0.1)), "sphere", (0.02,), "collision")
        for x in (-1, 1)
        for y in (-1, 1)
    )
    model = boxes[0].attach(replace(boxes[1], geometries=feet), "world", prefix="upper_")
    sim = dl.Simulation(model, touching="box", colliding=[("upper_foot_*", "box")], max_contacts=12)
    assert sim.scene.m == 3 * 12
    q0 = np.array([0, 0, 0.1, 0, 0, 0, 1.0, 0.02, 0.01, 0.32, 0, 0, math.sin(0.1), math.cos(0.1)])
    log = sim.run(q0, steps=10_000, every=10)
    assert np.abs(log.v[1:]).max() < 1e-8 and np.abs(log.q - log.q[0]).max() < 1e-8
    np.testing.assert_allclose(log.normal_force("box")[-1], (lower + upper) * G, rtol=1e-6)
    carried = sum(log.normal_force(f"upper_foot_{x}_{y} on box")[-1] for x in (-1, 1) for y in (-1, 1))
    np.testing.assert_allclose(carried, upper * G, rtol=1e-6)
    assert not log.status.any()


def test_few_slots_choose_among_bodies_and_the_ground():
    """A ball on a box on the ground; eight corners and one meeting share five slots."""
    box, ball = (
        body("box", (0.4, 0.4, 0.2), 2.0, (0.03, 0.03, 0.05)),
        body("sphere", (0.1,), 1.0, (0.004, 0.004, 0.004)),
    )
    model = box.attach(ball, "world", prefix="a_")
    sim = dl.Simulation(model, touching="box", colliding=[("a_sphere", "box")], max_contacts=5)
    q0 = np.array([0, 0, 0.1, 0, 0, 0, 1.0, 0.05, 0.02, 0.3, 0, 0, 0, 1.0])
    log = sim.run(q0, steps=300)
    assert np.abs(log.v).max() < 1e-8
    np.testing.assert_allclose(log.normal_force("box")[-1], 3.0 * G, rtol=1e-6)
    np.testing.assert_allclose(log.normal_force("a_sphere on box")[-1], G, rtol=1e-6)


def test_a_ball_rolls_down_a_stair_that_is_fixed_to_the_world():
    xml = """
    <mujoco>
      <worldbody>
        <geom type="plane" size="1 1 1"/>
        <geom name="stair" type="box" size="0.3 0.3 0.1" pos="0 0 0.1"/>
        <body><freejoint/><geom name="ball" type="sphere" size="0.1" mass="1"/></body>
      </worldbody>
    </mujoco>"""
    sim = dl.Simulation(dl.load(xml), colliding=[("ball", "stair")])
    log = sim.run([0.2, 0, 0.3, 0, 0, 0, 1], [1.0, 0, 0, 0, 0, 0], steps=900)
    heights = log.q[:, 2]
    np.testing.assert_allclose(heights[:90], 0.3, atol=1e-9)
    assert heights[-1] == pytest.approx(0.1, abs=1e-6) and log.q[-1, 0] > 0.5
    assert np.all(log.energy <= log.energy[0])


@pytest.mark.parametrize(
    ("pairs", "refusal"),
    [
        ([("boks", "b_sphere")], ("unknown-shape", "box")),
        (["box"], ("wrong-type",)),
        ([("box", "b_sphere", "box")], ("wrong-type",)),
        ([("c_plane", "d_plane")], ("not-supported",)),
    ],
)
def test_pairs_that_cannot_be_are_refused(pairs, refusal):
    plane = body("plane", (), 1.0, (0.01, 0.01, 0.01))
    model = (
        BRICK.attach(BALL, "world", prefix="b_").attach(plane, "world", prefix="c_").attach(plane, "world", prefix="d_")
    )
    with refuses(*refusal):
        dl.Simulation(model, colliding=pairs)


@pytest.mark.parametrize(
    ("one", "other", "turn", "across"),
    [
        ("capsule", "capsule", (0.0, 0.0, 0.0), [(0, 0, 1)]),  # on one axis
        ("capsule", "capsule", (0.0, math.pi / 2, 0.0), [(0, 0, 1), (1, 0, 0)]),
        ("capsule", "capsule", (1e-9, 0.0, 0.0), [(0, 0, 1)]),
        ("sphere", "capsule", (0.0, 0.0, 0.0), [(0, 0, 1)]),
        ("sphere", "cylinder", (0.0, 0.0, 0.0), [(0, 0, 1)]),
    ],
)
def test_shapes_whose_axes_meet_are_parted_across_them(one, other, turn, across):
    q = np.zeros(14)
    q[6], q[10:] = 1.0, Rotation.from_euler("xyz", turn).as_quat()
    sim = dl.Simulation(two(one, other), touching=[], colliding=[(one, f"other_{other}")])
    contacts = sim.contacts(q)
    deepest = contacts.normal[contacts.gap.argmin()]
    np.testing.assert_allclose(np.array(across) @ deepest, 0.0, atol=1e-6)
    assert np.linalg.norm(deepest) == pytest.approx(1.0)


def test_a_capsule_without_length_is_a_ball():
    model = body("capsule", (0.06, 0.0), 1.0, (0.01, 0.01, 0.01))
    pair = model.attach(body("capsule", (0.06, 0.3), 1.0, (0.01, 0.01, 0.01)), "world", prefix="other_")
    sim = dl.Simulation(pair, touching=[], colliding=[("capsule", "other_capsule")])
    contacts = sim.contacts(np.array([0.2, 0, 0, 0, 0, 0, 1, 0, 0, 0.1, 0, 0, 0, 1]))
    assert np.all(np.isfinite(contacts.gap)) and contacts.gap.min() == pytest.approx(0.2 - 0.12, abs=1e-15)
