"""Classes of pairs: a loop over the nearest pairs finds what straight-line code for all of them does."""

import itertools

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import delassus as dl
from delassus.geometry.approach import Approach
from delassus.geometry.bounds import bounding_box, bounding_capsule, box_distance, segment_offset
from delassus.geometry.broad_phase import pair_bounds, pair_tables, place_shapes
from delassus.geometry.candidates import Shape
from delassus.geometry.classes import PairClass
from delassus.geometry.collisions import collisions_of
from delassus.geometry.pairs.registry import PAIRS
from delassus.model.joints import Free
from delassus.model.parts import Geometry, Joint
from delassus.model.placement import Inertia, Placement
from delassus.step.period.kernels import candidate_geometry, contact_candidates
from delassus.step.scene import Scene
from delassus.step.stages.collide import link_movement
from delassus.step.stages.kinematics import compute_kinematics

SIZES = {
    "sphere": [(0.1,), (0.15,)],
    "capsule": [(0.05, 0.3), (0.08, 0.1)],
    "box": [(0.2, 0.1, 0.3), (0.15, 0.25, 0.1)],
    "cylinder": [(0.1, 0.2), (0.06, 0.3)],
    "ellipsoid": [(0.1, 0.2, 0.05), (0.1, 0.12, 0.15)],
    "mesh": [(1.0, 1.0, 1.0), (1.0, 1.0, 1.0)],
}
POINTS = np.random.default_rng(5).normal(size=(2, 12, 3)) * 0.12
KINDS = sorted(pair for pair in PAIRS if "plane" not in pair)


def bodies(kinds):
    """Free bodies with a shape each, of the kinds in turn."""
    rng, shapes, joints = np.random.default_rng(1), [], []
    for k, kind in enumerate(kinds):
        size = SIZES[kind][k // 2 % 2]
        at = Placement.of(Rotation.random(rng=rng).as_matrix(), rng.normal(size=3) * 0.03)
        geometry = Geometry(f"{kind}{k}", k, at, kind, size, "collision")
        count = 12 - 4 * (k // 2 % 2)  # hulls of different sizes
        vertices = tuple(map(tuple, POINTS[k // 2 % 2, :count].tolist())) if kind == "mesh" else ()
        shapes.append(Shape(geometry, vertices))
        joints.append(Joint(f"j{k}", Free(), inertia=Inertia.of(1.0, (0, 0, 0), 0.01 * np.eye(3))))
    return dl.Mechanism(dl.Model("bodies", tuple(joints), geometries=tuple(s.geometry for s in shapes))), shapes


def poses(count, spread, seed=0):
    rng = np.random.default_rng(seed)
    turns = Rotation.random(count, rng=rng).as_quat()
    return np.concatenate([rng.uniform(-spread, spread, (count, 3)), turns], 1).ravel()


def scenes(kinds, slots=100, count=4):
    """The same pairs as straight-line code and as a class."""
    mechanism, shapes = bodies([kinds[k % 2] for k in range(count)])
    pairs = [p for p in itertools.combinations(shapes, 2) if sorted(s.kind.name for s in p) == sorted(kinds)]
    pairs = [(c.shape, c.other) for c in (collisions_of(*pair)[0] for pair in pairs)]
    straight = Scene(mechanism, collisions=tuple(c for pair in pairs for c in collisions_of(*pair)), max_contacts=6)
    return straight, Scene(mechanism, pair_classes=(PairClass(tuple(pairs), min(slots, len(pairs))),), max_contacts=6)


@pytest.mark.parametrize("kinds", KINDS, ids=" on ".join)
def test_every_kind_of_pair_is_the_same_in_a_loop(kinds):
    straight, looped = scenes(kinds, count=3)
    q = np.stack([poses(3, 0.15, seed) for seed in range(8)])
    for one, two in zip(candidate_geometry(straight, q), candidate_geometry(looped, q), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-9)
    assert straight.candidate_shapes == looped.candidate_shapes


def check_contacts_are_chosen(gap, chosen):
    """Candidates (states, …) that touch have slots, unless there are more than 6."""
    for state, row in zip(gap, chosen, strict=True):
        touching = np.flatnonzero(state < 0.0)
        assert len(touching) > 6 or set(touching) <= set(row)


def test_the_nearest_pairs_have_the_contacts():
    straight, looped = scenes(("sphere", "sphere"), slots=8, count=10)
    q = np.stack([poses(10, 0.3, seed) for seed in range(40)])
    gap = candidate_geometry(straight, q)[0]
    chosen = contact_candidates(looped, q, np.zeros(60), 1e-3).astype(int)
    check_contacts_are_chosen(gap, chosen)
    assert (gap < 0.0).sum() > 40


@pytest.mark.parametrize("kinds", [("mesh", "mesh"), ("cylinder", "mesh"), ("sphere", "cylinder")], ids=" on ".join)
def test_searches_that_end_beyond_the_reach_lose_no_contact(kinds):
    straight, looped = scenes(kinds)
    q = np.stack([poses(4, 0.25, seed) for seed in range(64)])
    gap = candidate_geometry(straight, q)[0]
    chosen = contact_candidates(looped, q, np.zeros(24), 1e-3).astype(int)
    check_contacts_are_chosen(gap, chosen)
    assert (gap < 0.0).any(1).sum() > 20
    alone = [contact_candidates(looped, state, np.zeros(24), 1e-3) for state in q]
    np.testing.assert_array_equal(chosen, np.array(alone))


@pytest.mark.parametrize("kind", sorted(SIZES))
def test_bounding_capsules_contain_their_shapes(kind):
    _, shapes = bodies([kind] * 4)
    for shape in shapes:
        center, half, radius = bounding_capsule(shape)
        points = shape.kind.outline(shape.size)
        away = [np.linalg.norm(segment_offset(x, np.zeros(3), center, half)) for x in points]
        assert max(away) <= radius * (1.0 + 1e-12)


@pytest.mark.parametrize("kind", sorted(SIZES))
def test_bounding_boxes_contain_their_shapes(kind):
    _, shapes = bodies([kind] * 4)
    for shape in shapes:
        center, half = bounding_box(shape)
        points = np.asarray(shape.kind.outline(shape.size))
        assert (np.abs(points - center) <= half * (1.0 + 1e-12)).all()


def test_no_two_points_of_boxes_are_nearer_than_their_bound():
    rng, corners = np.random.default_rng(0), np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    apart = 0
    for _ in range(200):
        R1, R2 = (Rotation.random(rng=rng).as_matrix() for _ in range(2))
        h1, h2, p2 = *rng.uniform(0.0, 1.0, (2, 3)), rng.normal(size=3) * 1.5
        bound = box_distance(R1, np.zeros(3), h1, R2, p2, h2)
        inside = np.concatenate([corners, rng.uniform(-1.0, 1.0, (300, 3))])
        one, two = (inside * h1) @ R1.T, p2 + (inside * h2) @ R2.T
        assert bound <= np.linalg.norm(one[:, None] - two, axis=-1).min() + 1e-12
        apart += bound > 0.0
    assert apart > 50


def test_boxes_along_the_same_axes_are_as_far_apart_as_their_faces():
    bound = box_distance(
        np.eye(3), np.zeros(3), np.array([1.0, 2.0, 3.0]), np.eye(3), np.array([0.5, -4.0, 1.0]), np.ones(3)
    )
    assert bound == pytest.approx(1.0)


@dl.kernel("(nq),(nv),()->(1)")
def bounds_before(scene, q, v, time_step):
    """Bounds of the gaps of all pairs, less the gap below which they are near; two bodies each."""
    tables, kinematics = pair_tables(scene.pair_classes), compute_kinematics(scene, q)
    placed = place_shapes(tables, kinematics.tree, kinematics.poses, link_movement(scene, kinematics, v, time_step))
    return pair_bounds(tables, 0, scene.pair_classes[0], placed).reshape(-1)


@pytest.mark.parametrize("kinds", [("box", "box"), ("cylinder", "cylinder"), ("mesh", "mesh")], ids=" on ".join)
def test_pairs_that_meet_within_a_step_are_near_before_it(kinds):
    straight, looped = scenes(kinds, count=2)
    rng, h = np.random.default_rng(4), 2e-3
    q, v = np.stack([poses(2, 0.25, seed) for seed in range(2000)]), rng.normal(size=(2000, 12)) * 10.0
    before = candidate_geometry(straight, q)[0].min(-1)
    after = candidate_geometry(straight, dl.integrate(straight.model, q, h * v))[0].min(-1)
    meeting = (before > 0.0) & (after < 0.0)
    near = np.array(
        [bounds_before.python(looped, *pair, h)[0] < 0.0 for pair in zip(q[meeting], v[meeting], strict=True)]
    )
    assert near.all()
    assert near.size > 20


def test_no_point_approaches_by_more_than_the_reach_of_its_shape():
    rng, t = np.random.default_rng(0), np.linspace(-1.0, 1.0, 21)
    for _ in range(200):
        half, way, turn, n = rng.normal(size=(4, 3))
        radius, n = rng.uniform(0.0, 2.0), n / np.linalg.norm(n)
        out = rng.normal(size=(50, 1, 3))
        points = (t[:, None] * half + radius * out / np.linalg.norm(out, axis=-1, keepdims=True)).reshape(-1, 3)
        closing = -(way + np.cross(turn, points)) @ n
        assert closing.max() <= Approach(way, turn, half, radius, 0.0).reach(n) + 1e-12


def test_pairs_that_pass_each_other_are_not_near():
    _, looped = scenes(("box", "box"), count=2)
    q = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.6, 0.0, 0.0, 0.0, 0.0, 1.0])
    across, towards = np.zeros(12), np.zeros(12)
    across[0], towards[1] = 50.0, 50.0  # 100 mm in a step; 600 mm between the centers
    assert bounds_before.python(looped, q, across, 2e-3)[0] > 0.05
    assert bounds_before.python(looped, q, towards * 4.0, 2e-3)[0] < 0.0


def test_segments_are_as_far_apart_as_their_nearest_points():
    rng = np.random.default_rng(0)
    t = np.linspace(-1.0, 1.0, 401)
    for k in range(50):
        p1, d1, p2, d2 = rng.normal(size=(4, 3))
        d2 = [d2, d1 * 0.7, np.zeros(3)][k % 3]
        sampled = np.linalg.norm((p1 + t[:, None] * d1)[:, None] - (p2 + t[:, None] * d2), axis=-1).min()
        exact = np.linalg.norm(segment_offset(p1, d1, p2, d2))
        assert sampled - 0.02 <= exact <= sampled + 1e-12
