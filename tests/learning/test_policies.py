"""Policies that come with the package, and small tasks that are learnt within the test."""

from pathlib import Path

import numpy as np
import pytest

from delassus.learning import Budget, Environments, bundled_policies, bundled_policy, evaluate, find_task, train
from delassus.learning.errors import LearningError
from delassus.learning.results.session import load_run, parse_command

NAME = "quadruped-walk"


def test_bundled_quadruped_walks():
    task = find_task(NAME)
    trial = evaluate(bundled_policy(NAME), Environments(task, 4), 100, told={"command": (0.7, 0.0, 0.0)})
    seconds = 100 * task.period
    speed = np.linalg.norm(trial.q[-1, :, :2] - trial.q[0, :, :2], axis=-1) / seconds
    assert not trial.failed.any()
    assert speed.min() > 0.4
    assert task.judge(trial).halfway


def test_bundled_policies_are_small_and_of_their_tasks():
    for name in bundled_policies():
        policy, envs = bundled_policy(name), Environments(find_task(name), 1)
        assert (policy.network.observations, policy.network.actions) == (envs.observations, envs.actions)
        assert policy.theta.dtype == np.float32
        assert policy.theta.nbytes < 300_000


def test_task_name_plays_its_bundled_policy_on_its_own_robot_alone():
    task, policy = load_run(Path(NAME))
    assert policy.task == NAME
    assert task == find_task(NAME)
    with pytest.raises(LearningError, match="train one"):
        load_run(Path(NAME), "biped")
    with pytest.raises(LearningError, match="no bundled policy of 'cart-pole'"):
        bundled_policy("cart-pole")


def test_pole_that_nobody_balances_falls():
    task = find_task("cart-pole")
    envs = Environments(task, 4)
    state, fallen = envs.start(), np.zeros(4, bool)
    for _ in range(150):
        state, outcome = envs.step(state, np.zeros((4, 1)))
        fallen |= outcome.terminated
    assert fallen.all()


def test_cart_pole_learns_to_balance():
    task = find_task("cart-pole")
    training = train("cart-pole", task, seed=3, budget=Budget(minutes=3.0, iterations=150))
    assert training.ending == "the goal is reached"
    trial = evaluate(training.policy, Environments(task, 64, seed=9), task.periods - 1, seed=9)
    assert not trial.failed.any()
    assert trial.measures["lean"][-50:].mean() < 0.03


@pytest.mark.parametrize("wrong", [{"goal": "moon"}, {"minutes": 0.0}, {"minutes": float("nan")}])
def test_budget_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(LearningError):
        Budget(**wrong)


@pytest.mark.parametrize("text", ["fast", "1", "0.5,0,nan", "0.5,0,0,0"])
def test_commands_that_a_task_does_not_take_are_refused(text):
    with pytest.raises(LearningError, match=r"it must be 3 finite numbers, such as 0\.5,0,0"):
        parse_command(find_task("quadruped-walk"), text)


def test_commands_to_a_task_without_any_are_refused():
    with pytest.raises(LearningError, match="take no command; omit it"):
        parse_command(find_task("cart-pole"), "1")


def test_a_policy_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(LearningError, match=r"'walk' is neither .* quadruped-walk"):
        load_run(Path("walk"))
