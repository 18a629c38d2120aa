"""Environments: many robots that practise a task, and what they are refused for."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import delassus as dl
from delassus.learning import Environments, LearningTask, find_task
from delassus.learning.errors import LearningError
from delassus.learning.tasks.quadruped import QuadrupedWalk


@pytest.fixture(scope="module")
def envs():
    return Environments(find_task("quadruped-walk"), items=16, seed=3)


def run(envs, periods, items=slice(None), threads=2):
    before, rng = dl.threads(), np.random.default_rng(0)
    actions = 0.3 * rng.normal(size=(periods, 16, envs.actions))
    dl.threads(threads)
    try:
        state, rewards = envs.start(), []
        for action in actions:
            state, outcome = envs.step(state, action)
            rewards.append(outcome.reward)
    finally:
        dl.threads(before)
    return state, np.array(rewards)


def test_same_seed_gives_the_same_bits_on_one_and_two_threads(envs):
    one, first = run(envs, 20, threads=1)
    two, second = run(envs, 20, threads=2)
    assert np.array_equal(first, second)
    assert np.array_equal(one.observation, two.observation)


def test_single_precision_gives_nearly_the_same_motion(envs):
    single = Environments(envs.task, items=16, seed=3, dtype=np.float32)
    q, other = (run(one, 10)[0].simulation.q for one in (envs, single))
    assert other == pytest.approx(q, abs=2e-3)
    assert not np.array_equal(other, q)


@dataclass(frozen=True)
class Rest(LearningTask):
    def begin(self, now):
        return {"q": now.q}

    def control(self, now):
        return now.action

    def observe(self, now):
        return now.q

    def reward(self, now):
        return {"rest": now.v @ now.v}

    def fails(self, now):
        return now.q[0] > 9.0


def test_automatic_precision_is_double_where_single_cannot_solve_the_robot(envs):
    linkage = dl.load("four_bar")
    closed = Rest(replace(linkage, actuators=dl.simulation.motors(linkage)))
    assert Environments(envs.task, 1, dtype="auto").sim.dtype == np.float32
    assert Environments(closed, 1, dtype="auto").sim.dtype == np.float64
    with pytest.raises(ValueError, match="constraints that close loops"):
        Environments(closed, 1, dtype=np.float32)
    with pytest.raises(ValueError, match="float16"):
        Environments(envs.task, 1, dtype="float16")


def test_action_that_is_no_number_ends_the_episode_of_its_item_alone(envs):
    state = envs.start()
    action = np.zeros((16, 12))
    clean, _ = envs.step(state, action)
    action[5, 3] = np.nan
    after, outcome = envs.step(state, action)
    others = np.arange(16) != 5
    assert outcome.frozen.tolist() == outcome.terminated.tolist() == (~others).tolist()
    assert np.array_equal(after.observation[others], clean.observation[others])
    assert np.isfinite(after.observation).all() and np.isfinite(outcome.reward).all()
    assert not envs.step(after, np.zeros((16, 12)))[1].frozen.any()


def test_reward_is_the_sum_of_its_terms_where_that_is_positive(envs):
    _, outcome = envs.step(envs.start(), np.zeros((16, 12)))
    assert outcome.reward == pytest.approx(np.maximum(outcome.terms.sum(1), 0.0), abs=1e-12)


def test_observed_velocity_is_that_of_the_sensor(envs):
    state, _ = run(envs, 10)
    sensors = envs.sim.sensors("velocimeter:trunk", "gyro:trunk")(state.simulation)
    assert state.observation[:, :3] == pytest.approx(sensors["velocimeter:trunk"], abs=1e-9)
    assert state.observation[:, 3:6] == pytest.approx(sensors["gyro:trunk"], abs=1e-9)


def test_memory_is_held_at_what_it_is_told(envs):
    hold = envs.hold(command=(0.7, 0.0, 0.0))
    state = envs.start(hold=hold)
    for _ in range(3):
        assert np.array_equal(envs.memory(state)["command"], np.tile([0.7, 0.0, 0.0], (16, 1)))
        state, _ = envs.step(state, np.zeros((16, 12)), hold=hold)


def test_robots_that_fall_begin_again(envs):
    state = envs.start()
    upset = np.tile(np.where(np.arange(12) % 3 == 0, 4.0, -4.0), (16, 1))
    fallen = np.zeros(16, bool)
    for _ in range(150):
        state, outcome = envs.step(state, upset)
        fallen |= outcome.terminated
        assert (envs.memory(state)["age"][outcome.terminated] == 0.0).all()
    assert fallen.any()


@dataclass(frozen=True)
class WrongReward(QuadrupedWalk):
    def reward(self, now):
        return {"joints": now.q}


@dataclass(frozen=True)
class UnknownMemory(QuadrupedWalk):
    def begin(self, now):
        return {**super().begin(now), "mood": np.zeros(1)}


@pytest.mark.parametrize("kind, words", [(WrongReward, "'joints'.*one number"), (UnknownMemory, "'mood'")])
def test_tasks_that_do_not_fit_are_refused(kind, words):
    with pytest.raises(LearningError, match=words):
        Environments(kind(**vars(find_task("quadruped-walk"))), 2)


def test_a_task_without_a_method_is_refused():
    with pytest.raises(LearningError, match=r"the task LearningTask has no method begin\(self, now\)"):
        Environments(LearningTask(dl.load("pendulum"), periods=2), 2)


def test_rewards_cannot_move_the_robot():
    @dataclass(frozen=True)
    class Meddling(QuadrupedWalk):
        def reward(self, now):
            now.q[2] = 5.0
            return {"none": 0.0}

    envs = Environments(Meddling(**vars(find_task("quadruped-walk"))), 2)
    assert (envs.step(envs.start(), np.zeros((2, 12)))[0].simulation.q[:, 2] < 1.0).all()


def test_unknown_names_are_refused(envs):
    with pytest.raises(ValueError, match="quadruped-walk"):
        find_task("quadruped-wlak")
    with pytest.raises(LearningError, match="does not remember 'speed'"):
        envs.hold(speed=1.0)
    with pytest.raises(LearningError, match=r"\(16, 12\)"):
        envs.step(envs.start(), np.zeros(12))
