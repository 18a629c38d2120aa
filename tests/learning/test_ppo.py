"""Proximal policy optimisation: gradients, advantages, the same bits however it is run, files."""

import numpy as np
import pytest

import delassus as dl
from delassus.learning import PPO, Budget, Network, Normalizer, Policy, export_policy, find_task, load_checkpoint, train
from delassus.learning.environment.environments import Environments
from delassus.learning.environment.options import Architecture, Objective
from delassus.learning.errors import CheckpointError
from delassus.learning.learner.network import policy_gradients, value_gradients, weight_gradient
from delassus.learning.learner.ppo import Rollout, advantages, begin_learning, iterate

SMALL = PPO(items=16, horizon=8, epochs=2, minibatches=2, networks=Architecture((16, 8), (8, 16)))
NAME = "quadruped-walk"


@pytest.fixture(scope="module")
def task():
    return find_task(NAME)


def perceptron(theta, sizes, x):
    at = 0
    for k in range(len(sizes) - 1):
        a, b = sizes[k : k + 2]
        W, c = theta[at : at + a * b].reshape(b, a), theta[at + a * b : at + a * b + b]
        at += a * b + b
        x = x @ W.T + c
        x = x if k == len(sizes) - 2 else np.where(x > 0, x, np.expm1(np.minimum(x, 0)))
    return x


def test_gradients_are_those_of_finite_differences():
    net, rng = Network(5, 2, (7, 6), (4, 3)), np.random.default_rng(0)
    theta = 0.5 * rng.normal(size=net.weights)
    x, action, advantage, target = (rng.normal(size=s) for s in ((9, 5), (9, 2), (9,), (9,)))
    old = rng.normal(-2.0, 0.1, 9)

    def loss(theta):
        policy, spread, value = net.split(theta)
        z = (action - perceptron(policy, net.policy_sizes, x)) * np.exp(-spread)
        log = -0.5 * (z**2).sum(1) - spread.sum() - np.log(2.0 * np.pi)
        r = np.exp(log - old)
        surrogate = -np.minimum(r * advantage, np.clip(r, 0.8, 1.2) * advantage)
        error = perceptron(value, net.value_sizes, x)[:, 0] - target
        return surrogate.sum() + 0.5 * (error**2).sum()

    p = policy_gradients(net, x, action, old, advantage, 0.2, theta=theta)
    v = value_gradients(net, x, target, theta=theta)
    parts = weight_gradient(net.policy_sizes, x, p.hidden, p.deltas, p.output), p.spread.sum(0)
    slope = np.concatenate([*parts, weight_gradient(net.value_sizes, x, *v)])
    steps = 1e-6 * np.eye(net.weights)
    numeric = [(loss(theta + d) - loss(theta - d)) / 2e-6 for d in steps]
    assert slope == pytest.approx(np.array(numeric), abs=1e-6 * np.abs(numeric).max())


def test_advantages_bootstrap_time_outs_and_end_at_failures():
    T = 4
    none, options = np.zeros((T, 1)), PPO(objective=Objective(discount=0.5, trace=1.0))
    reward, value = np.ones((T, 1)), np.array([[1.0], [2.0], [3.0], [4.0]])
    over = np.array([[False], [True], [False], [False]])
    following = np.array([[2.0], [10.0], [4.0], [8.0]])
    rollout = Rollout(none, none, none, value, following, reward, over, over)
    _, target = advantages(rollout, options)
    assert target[1] == 1.0 + 0.5 * 10.0  # a time-out
    assert target[0] == 1.0 + 0.5 * target[1]
    assert target[2] == 1.0 + 0.5 * (1.0 + 0.5 * 8.0)


def test_normalizer_has_mean_and_variance_of_all_samples():
    x = np.random.default_rng(0).normal(5.0, 2.0, (6, 40, 3))
    normalizer = Normalizer.new(3).update(x[:2]).update(x[2:])
    assert normalizer.mean == pytest.approx(x.mean((0, 1)), rel=1e-12)
    assert normalizer.variance == pytest.approx(x.var((0, 1)), rel=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_learning_has_the_same_bits_on_one_and_two_threads(task, dtype):
    before, found = dl.threads(), []
    for threads in (1, 2):
        dl.threads(threads)
        envs = Environments(task, SMALL.items, 5, dtype)
        learner = begin_learning(envs, SMALL)
        for _ in range(3):
            learner, _ = iterate(envs, learner, SMALL)
        found.append(learner.theta)
    dl.threads(before)
    assert np.array_equal(*found)


def test_learning_that_goes_on_from_a_file_has_the_same_bits(task, tmp_path):
    whole = train(NAME, task, SMALL, seed=1, budget=Budget(iterations=4, goal="none"), out=tmp_path / "whole")
    train(NAME, task, SMALL, seed=1, budget=Budget(iterations=2, goal="none"), out=tmp_path / "parts")
    parts = train(NAME, task, budget=Budget(iterations=2, goal="none"), out=tmp_path / "parts", resume=True)
    assert np.array_equal(whole.policy.theta, parts.policy.theta)
    assert np.array_equal(whole.policy.normalizer.mean, parts.policy.normalizer.mean)


def test_checkpoint_of_another_robot_or_no_checkpoint_is_refused(task, tmp_path):
    train(NAME, task, SMALL, budget=Budget(iterations=1, goal="none"), out=tmp_path)
    with pytest.raises(CheckpointError, match="another robot"):
        load_checkpoint(tmp_path / "checkpoint.npz", NAME, find_task(NAME, speeds=(0.1, 0.2)))
    with pytest.raises(CheckpointError, match="not a checkpoint"):
        load_checkpoint(tmp_path / "policy.npz", NAME, task)
    (tmp_path / "noise.npz").write_bytes(b"noise")
    with pytest.raises(CheckpointError):
        Policy.load(tmp_path / "noise.npz")


def test_policy_that_cannot_be_written_leaves_the_old_one(task, tmp_path, monkeypatch):
    policy = train(NAME, task, SMALL, budget=Budget(iterations=1, goal="none"), out=tmp_path).policy
    before = (tmp_path / "policy.npz").read_bytes()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(CheckpointError, match="No space left"):
        policy.save(tmp_path / "policy.npz")
    assert (tmp_path / "policy.npz").read_bytes() == before


def test_interrupted_learning_keeps_its_policy(task, tmp_path):
    def interrupt(progress):
        if progress.iteration == 2:
            raise KeyboardInterrupt

    training = train(NAME, task, SMALL, out=tmp_path, progress=interrupt)
    assert training.ending == "interrupted"
    assert np.array_equal(Policy.load(tmp_path / "policy.npz").theta, training.policy.theta)


def test_exported_policies_give_the_same_actions(task, tmp_path):
    policy = train(NAME, task, SMALL, budget=Budget(iterations=1, goal="none")).policy
    x = np.random.default_rng(0).normal(size=(5, 50))
    export_policy(policy, tmp_path, "numpy")
    space = {"__file__": str(tmp_path / "policy.py")}
    exec((tmp_path / "policy.py").read_text(), space)
    assert space["policy"](x) == pytest.approx(policy(x), abs=1e-5)
    with pytest.raises(ValueError, match="'wood'"):
        export_policy(policy, tmp_path, "wood")


def test_policy_in_onnx_gives_the_same_actions(tmp_path):
    reference = pytest.importorskip("onnx.reference")
    import onnx

    policy = dl.learning.bundled_policy(NAME)
    (path,) = export_policy(policy, tmp_path, "onnx")
    onnx.checker.check_model(onnx.load(path), full_check=True)
    x = np.random.default_rng(0).normal(size=(5, 50)).astype(np.float32)
    (action,) = reference.ReferenceEvaluator(str(path)).run(None, {"observation": x})
    assert action == pytest.approx(policy(x), abs=1e-5)
