"""Pairs in closed form against coal: distances of shapes that are apart, depths of those that are not."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from convex_pairs import coal_distances, deepest, random_poses

CLOSED = [("sphere", "sphere"), ("sphere", "capsule"), ("sphere", "box"), ("capsule", "box")]


def errors(one, other, count, seed):
    poses = random_poses(count, seed)
    wanted = coal_distances(one, other, poses)
    return deepest(one, other, poses).gap - wanted, wanted


@pytest.mark.slow
@pytest.mark.parametrize(("one", "other"), CLOSED)
def test_distances_and_depths_of_closed_forms_are_those_of_coal(one, other):
    assert np.abs(errors(one, other, 100_000, 3)[0]).max() < 1e-9


@pytest.mark.parametrize("count", [4_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_distances_and_depths_of_boxes_are_those_of_coal(count):
    assert np.abs(errors("box", "box", count, 3)[0]).max() < 1e-9


def test_distances_of_boxes_with_parallel_edges_are_those_of_coal():
    """Farther apart than the radius of their rounded edges; nearer ones are off by less than half of it."""
    rng, poses = np.random.default_rng(6), random_poses(4000, 6)
    about = np.eye(3)[rng.integers(3, size=4000)] * rng.choice([0.0, 0.3, 0.7, np.pi / 2], (4000, 1))
    turned = (Rotation.from_matrix(poses.R) * Rotation.from_rotvec(about)).as_matrix()
    poses = poses._replace(B=turned)
    wanted, radius = coal_distances("box", "box", poses), 0.005 * np.minimum(poses.size, poses.other).min(1)
    error, far = np.abs(deepest("box", "box", poses).gap - wanted), wanted > radius
    assert far.sum() > 1000 and error[far].max() < 1e-9
    assert np.all(error[~far] < 0.5 * radius[~far])


def test_gaps_of_boxes_change_by_no_more_than_boxes_move():
    rng, poses = np.random.default_rng(5), random_poses(5000, 4, spread=0.5)
    move = rng.normal(size=poses.p.shape)
    move *= 10.0 ** rng.uniform(-9, -1, (len(move), 1)) / np.linalg.norm(move, axis=1)[:, None]
    before, after = (deepest("box", "box", p).gap for p in (poses, poses._replace(p=poses.p + move)))
    assert (np.abs(after - before) - np.linalg.norm(move, axis=1)).max() < 1e-6
