"""Boxes against boxes: where they touch by closed forms and by MuJoCo, and stacks of them at rest."""

import math

import coal
import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

import delassus as dl
from bodies import G, body
from delassus.geometry.pairs.boxes import box_touches
from delassus.geometry.shapes.registry import Placed

CUBE = (0.2, 0.2, 0.2)
ONE, OTHER = (0.2, 0.3, 0.1), (0.24, 0.16, 0.4)
XML = """
<mujoco>
  <worldbody>
    <body><freejoint/><geom type="box" size="0.1 0.15 0.05" mass="1" margin="0.02"/></body>
    <body><freejoint/><geom type="box" size="0.12 0.08 0.2" mass="1" margin="0.02"/></body>
  </worldbody>
</mujoco>"""


@dl.kernel("(3,3),(3),(3,3),(3)->(4)")
def gaps_of_boxes(model, R1, p1, R2, p2):
    return dl.numpy.stack([touch.gap for touch in box_touches(Placed(R1, p1, ONE), Placed(R2, p2, OTHER))])


def touching(one, size, other, other_size):
    """Gaps (n,), points and normals (n, 3) of the places that are not far away."""
    found = box_touches(Placed(*one, size), Placed(*other, other_size))
    gap, point, normal = (np.array([np.asarray(touch[k], float) for touch in found]) for k in range(3))
    near = gap < 0.5 * max(*size, *other_size)
    return gap[near], point[near], normal[near]


def turned(*angles: float):
    return Rotation.from_euler("xyz", angles).as_matrix()


def test_aligned_boxes_touch_with_the_four_corners_of_one():
    gap, point, normal = touching((np.eye(3), np.array([0, 0, 0.201])), CUBE, (np.eye(3), np.zeros(3)), CUBE)
    np.testing.assert_allclose(gap, np.full(4, 0.001), atol=1e-15)
    np.testing.assert_allclose(np.abs(point), np.tile([0.1, 0.1, 0.101], (4, 1)), atol=1e-15)
    np.testing.assert_allclose(normal, np.tile([0, 0, 1.0], (4, 1)), atol=1e-15)


def test_boxes_turned_by_an_eighth_touch_with_four_corners_of_an_octagon():
    gap, point, _ = touching((turned(0, 0, math.pi / 4), np.array([0, 0, 0.2])), CUBE, (np.eye(3), np.zeros(3)), CUBE)
    radius = 0.1 * math.sqrt(1 + math.tan(math.pi / 8) ** 2)
    assert len(gap) == 4
    np.testing.assert_allclose(np.hypot(*point[:, :2].T), radius, atol=1e-12)
    assert ConvexHull(point[:, :2]).volume > 1.99 * radius**2  # the largest area that four corners span: a square


@pytest.mark.parametrize("angle", [1e-9, 1e-7, 1e-5, 1e-3])
@pytest.mark.parametrize("size", [CUBE, (0.1, 0.15, 0.2), (1.0, 0.1, 0.2)])
def test_boxes_on_each_other_keep_their_features_when_they_turn_a_little(angle, size):
    def stacked(turn, shift):
        one = Placed(Rotation.from_rotvec(turn).as_matrix(), np.array([0, 0, 0.5 * (size[2] + CUBE[2])]) + shift, size)
        return box_touches(one, Placed(np.eye(3), np.zeros(3), CUBE))

    wanted = stacked(np.zeros(3), np.zeros(3))
    for turn in np.random.default_rng(0).normal(size=(20, 3)):
        turn[:2] *= size[0] < 1.0  # a bar that is tilted touches the rim of the cube with an edge
        found = stacked(angle * turn / np.linalg.norm(turn), 0.1 * angle * turn)
        for one, two in zip(found, wanted, strict=True):
            assert float(one.feature) == float(two.feature)
            np.testing.assert_allclose(one.point, two.point, atol=3.0 * angle)


def test_crossed_bars_touch_where_their_sides_cross():
    """Neither has a corner above the other."""
    gap, point, _ = touching(
        (np.eye(3), np.array([0, 0, 0.1])), (1.0, 0.1, 0.1), (np.eye(3), np.zeros(3)), (0.1, 1, 0.1)
    )
    assert len(gap) == 4
    np.testing.assert_allclose(np.abs(point[:, :2]), 0.05, atol=1e-12)


def test_a_small_box_below_a_large_one_touches_with_its_own_corners():
    small = (0.05, 0.06, 0.07)
    gap, point, normal = touching((np.eye(3), np.array([0.01, 0, 0.135])), CUBE, (np.eye(3), np.zeros(3)), small)
    assert len(gap) == 4
    np.testing.assert_allclose(np.abs(point[:, :2]), np.tile([0.025, 0.03], (4, 1)), atol=1e-12)
    np.testing.assert_allclose(normal, np.tile([0, 0, 1.0], (4, 1)), atol=1e-12)


def test_crossing_edges_touch_in_one_point():
    upper = turned(math.pi / 4, 0, 0), np.array([0.02, 0, 0.2 * math.sqrt(2) + 0.003])  # an edge along x below
    lower = turned(0, math.pi / 4, 0), np.array([0, 0.03, 0])  # and one along y above
    gap, point, normal = touching(upper, CUBE, lower, CUBE)
    np.testing.assert_allclose(gap, [0.003], atol=1e-15)
    np.testing.assert_allclose(point, [[0.0, 0.0, 0.1 * math.sqrt(2) + 0.003]], atol=1e-12)
    np.testing.assert_allclose(normal, [[0, 0, 1.0]], atol=1e-12)


def test_the_nearest_place_is_the_one_of_mujoco():
    model = mujoco.MjModel.from_xml_string(XML)
    data, rng, seen = mujoco.MjData(model), np.random.default_rng(0), 0
    for trial in range(1500):
        one, other = Rotation.random(rng=rng), Rotation.random(rng=rng)
        if trial % 2:  # nearly parallel
            quarter = Rotation.from_rotvec(rng.choice([0.0, math.pi / 2, 0.3]) * np.eye(3)[rng.integers(3)])
            other = one * quarter * Rotation.from_rotvec(rng.normal(size=3) * 10.0 ** rng.uniform(-9, -1))
        place = 0.16 * rng.normal(size=3)
        data.qpos[:] = 0.0
        data.qpos[3:7], data.qpos[10:] = (x.as_quat(scalar_first=True) for x in (one, other))
        data.qpos[7:10] = place
        mujoco.mj_forward(model, data)
        if data.ncon == 0 or data.contact.dist.min() < -0.015 or data.contact.dist.min() > 0.0:
            continue
        seen += 1
        gap, _, normal = touching((one.as_matrix(), np.zeros(3)), ONE, (other.as_matrix(), place), OTHER)
        nearest = data.contact.dist.argmin()
        assert gap.min() == pytest.approx(data.contact.dist[nearest], abs=1e-6)
        assert normal[gap.argmin()] @ -data.contact.frame[nearest, :3] > math.cos(math.radians(1.0))
    assert seen > 50


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_where_boxes_touch_depends_neither_on_the_world_nor_on_their_order(seed):
    rng = np.random.default_rng(seed)
    A, B, W = (Rotation.random(rng=rng).as_matrix() for _ in range(3))
    a, b, w = 0.15 * rng.normal(size=3), np.zeros(3), rng.normal(size=3)
    gap, point, normal = touching((A, a), ONE, (B, b), OTHER)
    moved = touching((W @ A, W @ a + w), ONE, (W @ B, W @ b + w), OTHER)
    np.testing.assert_allclose(moved[0], gap, atol=1e-9)
    np.testing.assert_allclose(moved[1], point @ W.T + w, atol=1e-9)
    np.testing.assert_allclose(moved[2], normal @ W.T, atol=1e-9)
    swapped = touching((B, b), OTHER, (A, a), ONE)
    np.testing.assert_allclose(np.sort(swapped[0]), np.sort(gap), atol=1e-9)
    if len(gap):
        np.testing.assert_allclose(swapped[2][0], -normal[0], atol=1e-9)


LONG, THICK = 0.2, 0.004


def card(width: float = 0.1) -> dl.Model:
    size = np.array([THICK, width, LONG])
    return body("box", tuple(size), 1.0, tuple((np.sum(size**2) - size**2) / 12))


def leaning(theta: float) -> np.ndarray:
    """Two cards that lean against each other with an edge, θ from upright, above x = 0."""
    q = []
    for side in (1.0, -1.0):
        along = np.array([side * math.sin(theta), 0.0, math.cos(theta)])
        inwards = np.array([side * math.cos(theta), 0.0, -math.sin(theta)])
        top, bottom = 0.5 * LONG * along + 0.5 * THICK * inwards, -0.5 * LONG * along + 0.5 * THICK * inwards
        q.append([-top[0], 0, -bottom[2], 0, side * math.sin(theta / 2), 0, math.cos(theta / 2)])
    return np.concatenate(q)


@pytest.mark.parametrize(("theta", "width"), [(0.2, 0.1), pytest.param(0.4, 0.17, marks=pytest.mark.slow)])
def test_leaning_cards_stand_exactly_where_friction_is_enough(theta, width):
    """The floor carries the weight of each, and N = ½ m g (tan θ - t/L) along it."""
    critical = 0.5 * (math.tan(theta) - THICK / LONG)
    friction = critical * np.array([0.98, 0.999, 1.001, 1.2])
    model = card().attach(card(width), "world", prefix="other_")
    sim = dl.Simulation(model, dl.Ground(friction=friction), colliding=[("box", "other_box")], max_contacts=12)
    q0 = np.tile(leaning(theta), (4, 1))
    q0[3, 10:] = (Rotation.from_rotvec([0, 0, 1e-4]) * Rotation.from_quat(q0[3, 10:])).as_quat()  # not quite parallel
    log = sim.run(q0, steps=1000, every=100)
    fallen = log.q[0, :, 2] - log.q[-1, :, 2]
    assert np.all(fallen[:2] > 0.01) and np.all(fallen[2:] < 1e-5)
    assert np.abs(log.v[-1, 2:]).max() < 1e-9
    np.testing.assert_allclose(log.normal_force("box")[-1, 2], G, rtol=1e-6)


def test_the_normal_of_parallel_edges_is_between_the_faces_at_any_angle_between_them():
    """Cubes that touch with an edge each, one of them turned about the line across by next to nothing, and by more."""
    one = turned(0, math.pi / 4, 0), np.array([-0.1 * math.sqrt(2), 0, 0])
    for angle in [0.0, *10.0 ** np.arange(-16.0, -0.5)]:
        other = turned(angle, 0, 0) @ turned(0, math.pi / 4, 0), np.array([0.1 * math.sqrt(2), 0, 0])
        gap, point, normal = touching(one, CUBE, other, CUBE)
        assert gap.min() == pytest.approx(0.0, abs=5e-4) and len(gap) >= 1
        slack = 1e-12 + (0.0 if angle > 1e-3 else 0.6 * angle)  # crossing edges have one normal
        np.testing.assert_allclose(normal, np.tile([-1.0, 0, 0], (len(gap), 1)), atol=slack)
        np.testing.assert_allclose(point[gap.argmin(), [0, 2]], 0.0, atol=1e-6 + 0.1 * angle)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_where_parallel_edges_touch_does_not_depend_on_units_or_sides(scale):
    mirror = np.diag([-1.0, 1.0, 1.0])
    one = turned(0, 0.3, 0), np.array([-0.131, 0.01, 0.002])
    other = turned(0, -0.5, 0), np.array([0.0998, 0.0, 0.0])
    gap, _, normal = touching(one, ONE, other, ONE)
    size = tuple(scale * x for x in ONE)
    scaled = touching((one[0], scale * one[1]), size, (other[0], scale * other[1]), size)
    np.testing.assert_allclose(scaled[0], scale * gap, atol=1e-12 * scale)
    np.testing.assert_allclose(scaled[2], normal, atol=1e-9)
    seen = touching(*((part for R, p in (one, other) for part in ((mirror @ R @ mirror, mirror @ p), ONE))))
    np.testing.assert_allclose(np.sort(seen[0]), np.sort(gap), atol=1e-12)
    np.testing.assert_allclose(seen[2][0], mirror @ normal[0], atol=1e-9)


def test_depths_are_those_of_coal_and_change_by_no_more_than_boxes_move():
    """Random ones, and those with edges that are parallel to 1e-16 … 0.1 rad."""
    rng, count = np.random.default_rng(1), 3000
    one, free = Rotation.random(count, rng=rng), Rotation.random(count, rng=rng).as_matrix()
    turn = np.eye(3)[rng.integers(3, size=count)] * rng.choice([0.0, math.pi / 2, 0.3, 0.7], (count, 1))
    little = Rotation.from_rotvec(rng.normal(size=(count, 3)) * 10.0 ** rng.uniform(-16, -1, (count, 1)))
    other = np.where(
        rng.integers(3, size=count)[:, None, None] == 0, free, (one * Rotation.from_rotvec(turn) * little).as_matrix()
    )
    place, move = 0.14 * rng.normal(size=(count, 3)), rng.normal(size=(count, 3))
    move *= 10.0 ** rng.uniform(-9, -3, (count, 1)) / np.linalg.norm(move, axis=1)[:, None]
    A, zero = one.as_matrix(), np.zeros((count, 3))
    gap, moved = (gaps_of_boxes(None, A, zero, other, p).min(-1) for p in (place, place + move))
    boxes, seen = (coal.Box(*ONE), coal.Box(*OTHER)), 0
    for k in range(count):
        poses = coal.Transform3s(A[k], zero[k]), coal.Transform3s(other[k], place[k])
        wanted = coal.distance(boxes[0], poses[0], boxes[1], poses[1], coal.DistanceRequest(), coal.DistanceResult())
        if -0.04 < wanted < 0.0:
            seen += 1
            assert gap[k] == pytest.approx(wanted, abs=2e-6)
            assert abs(moved[k] - gap[k]) <= np.linalg.norm(move[k]) * (1.0 + 1e-6) + 1e-12
    assert seen > 300


@pytest.mark.parametrize(("lower", "upper"), [pytest.param(1.0, 1000.0, marks=pytest.mark.slow), (1000.0, 1.0)])
def test_a_stack_of_two_boxes_rests_for_ten_seconds(lower, upper):
    """Aligned, askew, all but aligned, and turned by an eighth."""
    first, second = (body("box", CUBE, mass, (mass / 150,) * 3) for mass in (lower, upper))
    sim = dl.Simulation(
        first.attach(second, "world", prefix="upper_"),
        touching="box",
        colliding=[("upper_box", "box")],
        max_contacts=12,
    )
    q0 = np.tile([0, 0, 0.1, 0, 0, 0, 1.0, 0, 0, 0.3, 0, 0, 0, 1.0], (4, 1))
    yaw = np.array([0.0, 0.3, 1e-4, math.pi / 4])
    q0[:, 7], q0[:, 8] = [0.0, 0.02, 1e-3, 0.0], [0.0, 0.01, 0.0, 0.0]
    q0[:, 12], q0[:, 13] = np.sin(yaw / 2), np.cos(yaw / 2)
    log = sim.run(q0, steps=10_000, every=10)
    assert np.abs(log.v).max() < 1e-9 and np.abs(log.q - log.q[0]).max() < 1e-9
    np.testing.assert_allclose(log.normal_force("box")[-1], (lower + upper) * G, rtol=1e-6)
    np.testing.assert_allclose(log.normal_force("upper_box on box")[-1], upper * G, rtol=1e-6)
    assert not log.status.any()
