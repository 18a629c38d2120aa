"""Pairs in closed form against coal: distances of shapes that are apart, depths of those that are not."""

import numpy as np
import pytest

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


@pytest.mark.parametrize("count", [2_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_distances_and_depths_of_boxes_are_those_of_coal(count):
    error, wanted = errors("box", "box", count, 3)
    assert np.abs(error[wanted < 0.0]).max() < 1e-9
    # Corners beside each other are found; two edges that are almost parallel count as nearer than they are.
    assert error.max() < 1e-9 and np.mean(error < -1e-9) < 1e-3


def test_gaps_of_boxes_change_by_no_more_than_boxes_move():
    rng, poses = np.random.default_rng(5), random_poses(5000, 4, spread=0.5)
    move = rng.normal(size=poses.p.shape)
    move *= 10.0 ** rng.uniform(-9, -1, (len(move), 1)) / np.linalg.norm(move, axis=1)[:, None]
    before, after = (deepest("box", "box", p).gap for p in (poses, poses._replace(p=poses.p + move)))
    assert (np.abs(after - before) - np.linalg.norm(move, axis=1)).max() < 1e-6
