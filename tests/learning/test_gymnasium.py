"""Tasks as environments of gymnasium."""

import warnings

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")

from delassus.learning import find_task  # noqa: E402
from delassus.learning.adapters.gymnasium import TaskEnv, TaskVectorEnv, register  # noqa: E402


@pytest.fixture(scope="module")
def task():
    return find_task("quadruped-walk", periods=5)


def test_environment_of_one_robot_passes_the_checker(task):
    from gymnasium.utils.env_checker import check_env

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(TaskEnv(task), skip_render_check=True)


def rollout(env, periods):
    zero = np.zeros(env.action_space.shape, np.float32)
    return [env.step(zero) for _ in range(periods)]


def test_next_step_begins_a_new_episode_in_the_step_after_the_last(task):
    env = TaskVectorEnv(task, 3, "NextStep")
    first, _ = env.reset(seed=0)
    steps = rollout(env, 6)
    assert steps[4][3].all() and not steps[5][3].any()
    assert (steps[5][1] == 0.0).all()
    assert steps[4][0][:, -5:-2] == pytest.approx(first[:, -5:-2])  # the command of the episode that ends


def test_same_step_gives_the_final_observation_besides(task):
    env = TaskVectorEnv(task, 3, "SameStep")
    env.reset(seed=0)
    steps = rollout(env, 5)
    info = steps[4][4]
    assert info["_final_obs"].all() and info["final_obs"][0].shape == (50,)
    assert not np.array_equal(info["final_obs"][0], steps[4][0][0])


def test_disabled_waits_for_a_mask(task):
    env = TaskVectorEnv(task, 3, "Disabled")
    env.reset(seed=0)
    steps = rollout(env, 5)
    assert steps[4][3].all()
    with pytest.raises(ValueError, match="reset"):
        rollout(env, 1)
    env.reset(options={"reset_mask": np.array([True, True, True])})
    rollout(env, 1)
    with pytest.raises(ValueError, match="reset_mask"):
        env.reset(options={"reset_mask": [1, 0]})


def test_sub_environment_is_seeded_with_its_number(task):
    many, one = TaskVectorEnv(task, 3), TaskVectorEnv(task, 1)
    a, b = many.reset(seed=10)[0], one.reset(seed=12)[0]
    assert np.array_equal(a[2], b[0])
    action = np.full((3, 12), 0.1, np.float32)
    assert np.array_equal(many.step(action)[0][2], one.step(action[:1])[0][0])


def test_observations_are_new_arrays(task):
    env = TaskVectorEnv(task, 2)
    first, _ = env.reset(seed=0)
    kept = first.copy()
    second = env.step(np.zeros((2, 12)))[0]
    second[:] = 7.0
    env.step(np.zeros((2, 12)))
    assert np.array_equal(first, kept) and (second == 7.0).all()


def test_tasks_are_registered(task):
    register()
    env = gymnasium.make("delassus/quadruped-walk-v0")
    assert env.reset(seed=0)[0].shape == (50,)
    assert gymnasium.make_vec("delassus/quadruped-walk-v0", num_envs=2).num_envs == 2
