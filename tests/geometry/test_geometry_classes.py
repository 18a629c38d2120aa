"""Classes of pairs: a loop over the nearest pairs finds what straight-line code for all of them does."""

import itertools

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import delassus as dl
from delassus.geometry.bounds import bounding_capsule, segment_distance
from delassus.geometry.candidates import Shape
from delassus.geometry.classes import PairClass
from delassus.geometry.collisions import collisions_of
from delassus.geometry.pairs.registry import PAIRS
from delassus.model.joints import Free
from delassus.model.parts import Geometry, Joint
from delassus.model.placement import Inertia, Placement
from delassus.step.scene import Scene
from delassus.step.stages.kernels import candidate_geometry, contact_candidates

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
    straight, looped = scenes(kinds)
    q = np.stack([poses(4, 0.2, seed) for seed in range(6)])
    for one, two in zip(candidate_geometry(straight, q), candidate_geometry(looped, q), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-9)
    assert straight.candidate_shapes == looped.candidate_shapes


def test_the_nearest_pairs_have_the_contacts():
    straight, looped = scenes(("sphere", "sphere"), slots=8, count=10)
    q = np.stack([poses(10, 0.3, seed) for seed in range(40)])
    gap = candidate_geometry(straight, q)[0]
    chosen = contact_candidates(looped, q, np.zeros(60), 1e-3).astype(int)
    for state, row in zip(gap, chosen, strict=True):
        touching = np.flatnonzero(state < 0.0)
        assert len(touching) > 6 or set(touching) <= set(row)
    assert (gap < 0.0).sum() > 40


@pytest.mark.parametrize("kind", sorted(SIZES))
def test_bounding_capsules_contain_their_shapes(kind):
    _, shapes = bodies([kind] * 4)
    for shape in shapes:
        center, half, radius = bounding_capsule(shape)
        points = shape.kind.outline(shape.size)
        away = [segment_distance(x, np.zeros(3), center, half) for x in points]
        assert max(away) <= radius * (1.0 + 1e-12)


def test_segments_are_as_far_apart_as_their_nearest_points():
    rng = np.random.default_rng(0)
    t = np.linspace(-1.0, 1.0, 401)
    for k in range(50):
        p1, d1, p2, d2 = rng.normal(size=(4, 3))
        d2 = [d2, d1 * 0.7, np.zeros(3)][k % 3]
        sampled = np.linalg.norm((p1 + t[:, None] * d1)[:, None] - (p2 + t[:, None] * d2), axis=-1).min()
        exact = segment_distance(p1, d1, p2, d2)
        assert sampled - 0.02 <= exact <= sampled + 1e-12
