"""The `VecEnv` of Stable-Baselines3: its own learner runs on it, and episodes end as it expects."""

import numpy as np
import pytest

pytest.importorskip("gymnasium")
sb3 = pytest.importorskip("stable_baselines3")


@pytest.fixture(scope="module")
def envs():
    from delassus.learning.adapters.stable_baselines3 import TaskVecEnv

    return TaskVecEnv("cart-pole", num_envs=4)


def test_same_seed_gives_the_same_episode(envs):
    starts = []
    for _ in range(2):
        envs.seed(3)
        starts.append(envs.reset())
    assert np.array_equal(*starts)
    assert not np.array_equal(starts[0], envs.reset())


def test_last_observation_of_an_episode_is_kept(envs):
    envs.seed(0)
    envs.reset()
    for _ in range(400):
        observation, _, over, infos = envs.step(np.full((4, 1), 1.0, np.float32))
        if over.any():
            break
    k = int(np.flatnonzero(over)[0])
    assert not infos[k]["TimeLimit.truncated"]
    assert not np.array_equal(infos[k]["terminal_observation"], observation[k])
    with pytest.raises(ValueError, match="find_task"):
        envs.set_attr("force", 1.0)


def test_learner_of_the_package_runs(envs):
    learner = sb3.PPO("MlpPolicy", envs, n_steps=16, batch_size=32, n_epochs=1, seed=0, device="cpu").learn(64)
    action, _ = learner.predict(envs.reset(), deterministic=True)
    assert action.shape == (4, 1)
