"""The task of the biped with closed loops: starts, symmetry, and the policy that comes with the package."""

from dataclasses import replace

import numpy as np
import pytest

import delassus as dl
from delassus.learning import Environments, bundled_policy, evaluate, find_task
from delassus.learning.environment.episode import moment_without_contacts

NAME = "biped-walk"


@pytest.fixture(scope="module")
def task():
    return find_task(NAME)


@pytest.fixture(scope="module")
def envs(task):
    return Environments(task, items=8, seed=2)


def gaps_of_loops(robot, q):
    """Distances between the ends of the knees' rods and the levers that they drive [m]."""
    return np.array(
        [
            np.linalg.norm(place(robot, q, f"{side}_rod_end") - place(robot, q, f"{side}_lever"))
            for side in ("left", "right")
        ]
    )


def place(robot, q, frame):
    return dl.frame_placement(robot, q, frame=frame)[1]


def test_loops_are_closed_at_the_start_of_episodes(task, envs):
    for q in envs.start().simulation.q:
        assert gaps_of_loops(task.robot, q).max() < 1e-12


def test_only_feet_touch_the_ground_at_the_start(envs):
    assert envs.sim.contacts(envs.start().simulation.q[0]).gap.min() == pytest.approx(1e-3, abs=1e-9)


def mirrored(q, v):
    """The mirror image of a state about the plane y = 0."""
    leg = np.tile((-1.0, -1.0, 1.0, 1.0, 1.0, -1.0, 1.0, 1.0), 2)
    swap = np.r_[8:16, 0:8]
    place = q[:7] * (1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0)
    return np.r_[place, (leg * q[7:])[swap]], np.r_[v[:6] * (1, -1, 1, -1, 1, -1), (leg * v[6:])[swap]]


def test_robot_in_the_mirror_half_a_cycle_later_acts_as_its_image(task, envs):
    state, rng = envs.start(), np.random.default_rng(0)
    action, swap = rng.normal(size=12), np.r_[6:12, 0:6]
    signs = np.tile((-1.0, -1.0, 1.0, 1.0, -1.0, 1.0), 2)
    episode = replace(envs.episode, task=task)
    q, memory = state.simulation.q[0], envs.hold(phase=0.7, command=(0.5, 0.0, 0.0), target=0.0, action=0.0, age=0.0)
    later = envs.hold(phase=0.7 + np.pi, command=(0.5, 0.0, 0.0), target=0.0, action=0.0, age=0.0)
    v = rng.normal(size=22)
    one = moment_without_contacts(episode, q, v, memory[0], action)
    other = moment_without_contacts(episode, *mirrored(q, v), later[0], action)
    assert task.observe(other) == pytest.approx(task.observe(one), abs=1e-12)
    stand = np.array(task.control(moment_without_contacts(episode, q, v, memory[0], np.zeros(12))))
    assert task.control(other) - stand == pytest.approx((signs * (task.control(one) - stand))[swap], abs=1e-12)


def test_bundled_biped_walks_with_closed_loops(task):
    trial = evaluate(bundled_policy(NAME), Environments(task, 4), 250, told={"command": (0.5, 0.0, 0.0)})
    assert not trial.failed.any()
    assert task.judge(trial).halfway
    assert max(gaps_of_loops(task.robot, q).max() for q in trial.q[-1]) < 1e-6
