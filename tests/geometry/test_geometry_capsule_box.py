"""Capsules against boxes: signed distances by coal, MuJoCo and Qhull, degenerate poses, and bodies at rest."""

import math
from itertools import product
from typing import NamedTuple

import coal
import mujoco
import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

import delassus as dl
from bodies import G, body
from delassus.geometry.pairs.capsule_box import capsule_on_box
from delassus.geometry.shapes.registry import SHAPES, Placed


@dl.kernel("(3,3),(3),(2),(3,3),(3),(3)->(3),(3,3),(3,3)")
def touches(_, R, p, capsule, B, c, box):
    found = capsule_on_box(Placed(R, p, capsule), Placed(B, c, box))
    return tuple(dl.numpy.stack([touch[k] for touch in found]) for k in range(3))


class Poses(NamedTuple):
    """Capsules (rotation, centre, radius and length) and boxes (rotation, centre, edges)."""

    R: np.ndarray
    p: np.ndarray
    capsule: np.ndarray
    B: np.ndarray
    c: np.ndarray
    box: np.ndarray

    def deepest(self):
        """The gap, point and normal of the nearest touch of each pose."""
        gap, point, normal = touches(None, *self)
        nearest = gap.argmin(1), np.arange(len(gap))
        return gap.min(1), point[nearest[1], nearest[0]], normal[nearest[1], nearest[0]]


def random_poses(count: int, seed: int) -> Poses:
    """Needles, plates and cubes; half of the axes all but parallel to an edge or a diagonal; some centres coincide."""
    rng = np.random.default_rng(seed)
    capsule = np.stack([10 ** rng.uniform(-3, 0, count), 10 ** rng.uniform(-3, 0.3, count)], 1)
    capsule[rng.random(count) < 0.05, 1] = 0.0
    box = 10 ** rng.uniform(-2, 0.3, (count, 3))
    free, B = (Rotation.random(count, rng=rng) for _ in range(2))
    turn = np.eye(3)[rng.integers(3, size=count)] * rng.choice([0.0, math.pi / 2, 0.3, math.pi / 4], (count, 1))
    little = Rotation.from_rotvec(rng.normal(size=(count, 3)) * 10.0 ** rng.uniform(-17, -1, (count, 1)))
    along = (B * Rotation.from_rotvec(turn) * little).as_matrix()
    R = np.where((rng.random(count) < 0.5)[:, None, None], free.as_matrix(), along)
    p = 0.3 * rng.normal(size=(count, 3)) * (capsule.sum(1) + box.mean(1))[:, None]
    p[rng.random(count) < 0.02] = 0.0
    return Poses(R, p, capsule, B.as_matrix(), np.zeros((count, 3)), box)


POSES = random_poses(20_000, 0)


def test_gaps_are_those_of_coal():
    """All where the axis is outside. Inside, its expanding polytopes stop early in 2 of 2696 poses, and 6 differed in
    some runs of all tests of geometry, for a reason that is not known. The next test has an exact reference
    for capsules of any length but zero."""
    gap, _, _ = POSES.deepest()
    request = coal.DistanceRequest()
    request.gjk_tolerance = request.epa_tolerance = 1e-12
    request.gjk_max_iterations = request.epa_max_iterations = 1000
    wanted = []
    for R, p, capsule, B, c, box in zip(*POSES, strict=True):
        bodies = coal.Capsule(*capsule), coal.Transform3s(R, p), coal.Box(*box), coal.Transform3s(B, c)
        wanted.append(coal.distance(*bodies, request, coal.DistanceResult()))
    outside, error = gap > -POSES.capsule[:, 0], np.abs(gap - wanted)
    assert error[outside].max() < 1e-9
    assert (error[~outside] < 1e-9).mean() > 0.99 and np.all(gap[~outside] < np.array(wanted)[~outside] + 1e-9)


def test_depths_of_axes_inside_are_those_of_the_convex_hull_of_the_minkowski_sum():
    gap, _, _ = POSES.deepest()
    inside = np.flatnonzero((gap < -POSES.capsule[:, 0]) & (POSES.capsule[:, 1] > 0.0))
    assert len(inside) > 1000
    for k in inside:
        half, arm = 0.5 * POSES.box[k], 0.5 * POSES.capsule[k, 1] * (POSES.B[k].T @ POSES.R[k][:, 2])
        corners = [np.array(signs) * half + s * arm for signs in product((-1, 1), repeat=3) for s in (-1, 1)]
        planes = ConvexHull(corners).equations
        wanted = (planes[:, :3] @ (POSES.B[k].T @ POSES.p[k]) + planes[:, 3]).max()
        assert gap[k] + POSES.capsule[k, 0] == pytest.approx(wanted, abs=1e-11)


def test_gaps_points_and_normals_are_those_of_mujoco():
    """It misses some pairs that are apart, and says that they are as far as it looked."""
    bodies = "".join(f'<body><freejoint/><geom type="{shape}" size="1 1 1"/></body>' for shape in ("capsule", "box"))
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")
    data, ends, seen = mujoco.MjData(model), np.zeros(6), 0
    gap, point, normal = POSES.deepest()
    for k in np.flatnonzero((gap > 1e-3) & (POSES.capsule[:, 1] > 1e-2))[:5000]:
        R, p, (radius, length), B, c, box = (x[k] for x in POSES)
        model.geom_size[:] = [radius, 0.5 * length, 0.0], 0.5 * box
        model.geom_rbound[:] = radius + length, np.linalg.norm(box)
        data.geom_xpos[:], data.geom_xmat[:] = (p, c), (R.ravel(), B.ravel())
        wanted = mujoco.mj_geomDistance(model, data, 0, 1, 100.0, ends)
        if wanted == 100.0:
            continue
        assert gap[k] == pytest.approx(wanted, abs=1e-7)
        away = ends[:3] - ends[3:]
        along = np.abs(normal[k] @ R[:, 2]) < 1e-3 or np.sort(np.abs(B.T @ normal[k]))[1] < 1e-3
        if not along:  # the nearest point is unique
            seen += 1
            assert gap[k] == pytest.approx(wanted, abs=1e-9)
            np.testing.assert_allclose(normal[k], away / np.linalg.norm(away), atol=1e-9)
            np.testing.assert_allclose(point[k], ends[:3], atol=1e-9)
    assert seen > 1000


def test_gaps_change_by_no_more_than_bodies_move_and_normals_are_their_gradients():
    rng, poses = np.random.default_rng(2), random_poses(100_000, 1)
    move = rng.normal(size=poses.p.shape)
    move *= 10.0 ** rng.uniform(-9, -1, (len(move), 1)) / np.linalg.norm(move, axis=1)[:, None]
    gap, _, normal = poses.deepest()
    moved = poses._replace(p=poses.p + move).deepest()[0]
    assert np.all(np.abs(moved - gap) <= np.linalg.norm(move, axis=1) + 1e-10)
    ahead, behind = ([poses._replace(p=poses.p + s * e).deepest()[0] for e in np.eye(3)] for s in (1e-7, -1e-7))
    gradient = (np.stack(ahead, 1) - np.stack(behind, 1)) / 2e-7
    smooth = np.abs(np.linalg.norm(gradient, axis=1) - 1.0) < 1e-6
    assert smooth.mean() > 0.95
    assert np.percentile(np.abs(gradient - normal)[smooth], 99.9) < 1e-4


def test_touches_do_not_depend_on_the_frame_and_points_are_on_the_capsule():
    poses, turn, shift = random_poses(2000, 3), Rotation.random(rng=np.random.default_rng(4)).as_matrix(), np.ones(3)
    gap, point, normal = touches(None, *poses)
    R, p, _, B, c, _ = poses
    seen = touches(None, *poses._replace(R=turn @ R, p=p @ turn.T + shift, B=turn @ B, c=c @ turn.T + shift))
    unique = np.all(poses.p != 0.0, 1) & (np.abs(np.linalg.norm(normal, axis=2) - 1.0) < 1e-12).all(1)
    assert unique.mean() > 0.95
    np.testing.assert_allclose(np.sort(seen[0], 1)[unique, 0], np.sort(gap, 1)[unique, 0], atol=1e-12)
    capsules = zip(R, p, poses.capsule, point[np.arange(len(p)), gap.argmin(1)], strict=True)
    surface = [SHAPES["capsule"].distance(Placed(r, center, size), x)[0] for r, center, size, x in capsules]
    np.testing.assert_allclose(surface, 0.0, atol=1e-12)


BOX = (0.4, 0.3, 0.2)


def on_box(R, p, capsule):
    """The gaps, points and normals of touches that are near."""
    found = capsule_on_box(
        Placed(np.asarray(R, float), np.array(p, float), capsule), Placed(np.eye(3), np.zeros(3), BOX)
    )
    gap, point, normal = (np.array([np.asarray(touch[k], float) for touch in found]) for k in range(3))
    return gap[gap < 0.5], point[gap < 0.5], normal[gap < 0.5]


LYING = Rotation.from_euler("y", 90, degrees=True).as_matrix()


@pytest.mark.parametrize(("length", "reach"), [(0.3, 0.15), (0.8, 0.2)])
def test_a_capsule_lies_on_a_face_with_its_ends_or_on_the_rim_of_the_face(length, reach):
    gap, point, normal = on_box(LYING, (0.0, 0.1, 0.151), (0.05, length))
    np.testing.assert_allclose(gap, 0.001, atol=1e-15)
    np.testing.assert_allclose(sorted(point.tolist()), [[-reach, 0.1, 0.101], [reach, 0.1, 0.101]], atol=1e-12)
    np.testing.assert_allclose(normal, [[0, 0, 1]] * 2, atol=1e-12)


@pytest.mark.parametrize("tilt", [1e-12, 1e-9, 1e-6, 1e-3])
def test_a_capsule_across_a_box_keeps_both_edges_when_it_tilts(tilt):
    """Or it would rock between them."""
    R = Rotation.from_rotvec([0, tilt, 0]).as_matrix() @ LYING
    _, point, _ = on_box(R, (0.0, 0.0, 0.15), (0.05, 0.8))
    assert {round(x, 2) for x in point[:, 0]} >= {-0.2, 0.2}


def test_a_capsule_along_an_edge_touches_with_both_ends_of_what_they_share():
    away = 0.05 / math.sqrt(2)
    gap, point, normal = on_box(LYING, (0.1, 0.15 + away, 0.1 + away), (0.05, 0.4))
    np.testing.assert_allclose(gap, 0.0, atol=1e-15)
    np.testing.assert_allclose(sorted(point[:, 0]), [-0.1, 0.2], atol=1e-12)
    np.testing.assert_allclose(normal, [[0, math.sqrt(0.5), math.sqrt(0.5)]] * 2, atol=1e-12)


def test_an_edge_that_crosses_the_axis_touches_across_both():
    d = np.array([0.0, 1.0, -1.0]) / math.sqrt(2)
    R = Rotation.align_vectors([d], [[0, 0, 1]])[0].as_matrix()
    for depth in (0.01, -0.01, -0.06, -0.09):  # the last two with the axis inside of the box
        n = np.array([0.0, 1.0, 1.0]) / math.sqrt(2)
        gap, point, normal = on_box(R, np.array([0.02, 0.15, 0.1]) + (0.05 + depth) * n, (0.05, 0.3))
        nearest = gap.argmin()
        assert gap[nearest] == pytest.approx(depth, abs=1e-12)
        np.testing.assert_allclose(normal[nearest], n, atol=1e-9)
        np.testing.assert_allclose(point[nearest], np.array([0.02, 0.15, 0.1]) + depth * n, atol=1e-9)


def test_a_capsule_without_length_is_a_ball():
    for x in np.random.default_rng(5).normal(size=(200, 3)) * 0.2:
        gap, _, normal = on_box(np.eye(3), x, (0.4, 0.0))
        distance, direction = SHAPES["box"].distance(Placed(np.eye(3), np.zeros(3), BOX), x)
        assert len(gap) == 1 and gap[0] == pytest.approx(distance - 0.4, abs=1e-12)
        np.testing.assert_allclose(normal[0], direction, atol=1e-9)


@pytest.mark.parametrize("turn", [(0, 0, 0), (math.pi / 2, 0, 0), (0, math.pi / 2, 0), (0.3, 0.2, 0.1)])
@pytest.mark.parametrize("capsule", [(0.05, 0.0), (0.05, 0.1), (1e-6, 3.0), (2.0, 1e-9)])
def test_coincident_centres_are_parted_along_an_axis_of_the_box_or_across_an_edge(turn, capsule):
    R = Rotation.from_euler("xyz", turn).as_matrix()
    found = capsule_on_box(Placed(R, np.zeros(3), capsule), Placed(np.eye(3), np.zeros(3), BOX))
    gap = np.array([float(touch.gap) for touch in found])
    normal = np.asarray(found[gap.argmin()].normal)
    shadow = np.abs(normal) @ (0.5 * np.array(BOX)) + 0.5 * capsule[1] * abs(normal @ R[:, 2])
    assert np.linalg.norm(normal) == pytest.approx(1.0, abs=1e-12)
    assert gap.min() == pytest.approx(-shadow - capsule[0], abs=1e-9)
    assert gap.min() >= -0.1 - capsule[0] - 0.5 * capsule[1] * abs(R[2, 2]) - 1e-9


# --- at rest ----------------------------------------------------------------------------------------------------------

RADIUS, LENGTH = 0.05, 0.3
CAPSULE = body("capsule", (RADIUS, LENGTH), 2.0, (0.02, 0.02, 0.0025))
BLOCK = body("box", BOX, 5.0, (0.054, 0.083, 0.104))
Q_LYING = [0.0, math.sqrt(0.5), 0.0, math.sqrt(0.5)]


@pytest.mark.parametrize("order", [("a_capsule", "box"), ("box", "a_capsule")])
@pytest.mark.parametrize("length", [LENGTH, 0.8])
def test_a_capsule_rests_on_a_box(order, length):
    """With its ends on the face, or across it; in either order of the pair."""
    capsule = body("capsule", (RADIUS, length), 2.0, (0.02, 0.02, 0.0025))
    model = BLOCK.attach(capsule, "world", prefix="a_")
    sim = dl.Simulation(model, touching="box", colliding=[order])
    q0 = np.array([0, 0, 0.1, 0, 0, 0, 1.0, 0.02, 0.01, 0.25, *Q_LYING])
    log = sim.run(q0, steps=2000, every=10)
    assert np.abs(log.v).max() < 1e-8 and np.abs(log.q - q0).max() < 1e-8
    np.testing.assert_allclose(log.energy, log.energy[0], atol=1e-7)
    np.testing.assert_allclose(log.normal_force("a_capsule on box")[-1], 2.0 * G, rtol=1e-6)
    np.testing.assert_allclose(log.normal_force("box")[-1], 7.0 * G, rtol=1e-6)
    assert not log.status.any()


@pytest.mark.parametrize("yaw", [0.0, 0.4])
def test_a_box_rests_on_two_capsules(yaw):
    model = CAPSULE.attach(CAPSULE, "world", prefix="b_").attach(BLOCK, "world", prefix="c_")
    sim = dl.Simulation(model, touching="*capsule", colliding=[("c_box", "capsule"), ("b_capsule", "c_box")])
    lying = Rotation.from_euler("x", 90, degrees=True).as_quat()
    q0 = np.array([-0.12, 0, RADIUS, *lying, 0.12, 0, RADIUS, *lying, 0.02, 0.01, 0.2,
                   0, 0, math.sin(yaw / 2), math.cos(yaw / 2)])  # fmt: skip
    log = sim.run(q0, steps=2000, every=10)
    assert np.abs(log.v).max() < 1e-7 and np.abs(log.q - q0).max() < 1e-6
    assert np.all(np.diff(log.energy) < 1e-9)
    carried = [log.normal_force(f"{name} on c_box")[-1] for name in ("capsule", "b_capsule")]
    np.testing.assert_allclose(sum(carried), 5.0 * G, rtol=1e-6)
    np.testing.assert_allclose(carried[1] - carried[0], 5.0 * G * 0.02 / 0.12, rtol=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_a_capsule_that_falls_on_a_box_gains_no_energy(seed):
    rng = np.random.default_rng(seed)
    model = BLOCK.attach(CAPSULE, "world", prefix="a_")
    sim = dl.Simulation(model, colliding=[("a_capsule", "box")])
    q0 = np.array([0, 0, 0.1, 0, 0, 0, 1.0, *0.1 * rng.normal(size=2), 0.5, *rng.normal(size=4)])
    log = sim.run(q0, [0.0] * 6 + list(rng.normal(size=6)), steps=1500)
    assert np.all(log.energy <= log.energy[0] + 1e-9)
    assert sim.contacts(log.q).gap.min() > -1e-4
