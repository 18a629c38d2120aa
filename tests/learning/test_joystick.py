"""The joystick task: robots and ground that vary, pushes, noise, verdicts."""

from dataclasses import replace

import numpy as np
import pytest

from delassus.learning import Environments, Evaluation, find_task


@pytest.fixture(scope="module")
def task():
    return find_task("quadruped-joystick")


@pytest.fixture(scope="module")
def envs(task):
    return Environments(task, items=64, seed=3)


def test_masses_gains_and_friction_vary_within_their_ranges(task, envs):
    factor = envs.start().simulation.parameters / task.parametric.parameters()
    masses, gains = np.split(factor, [factor.shape[1] - 24], axis=1)
    assert 0.85 <= masses.min() < 0.87 and 1.13 < masses.max() <= 1.15
    assert 0.9 <= gains.min() < 0.92 and 1.08 < gains.max() <= 1.1
    friction = np.asarray(envs.sim.ground.friction)
    assert friction.shape == (64,) and 0.4 <= friction.min() < 0.5 and 0.9 < friction.max() <= 1.0


def test_range_of_commands_grows_in_the_curriculum(task, envs):
    for difficulty in (0.0, 1.0):
        command = envs.memory(envs.start(difficulty))["command"]
        bound = (0.5 + 0.5 * difficulty) * np.array(task.commands)
        assert (np.abs(command) <= bound).all() and (np.abs(command[:, 0]).max() > 0.9 * bound[0])


def test_noise_leaves_command_and_clock_alone(task, envs):
    clean = Environments(replace(task, noise=0.0), items=64, seed=3).start().observation
    noisy = envs.start().observation
    assert np.array_equal(clean[:, 33:], noisy[:, 33:])
    assert (noisy - clean)[:, :6].std() == pytest.approx(0.1, rel=0.2)


def test_pushes_add_half_a_meter_per_second(task):
    calm, rough = (Environments(replace(task, push=push), items=64, seed=3) for push in (0.0, 0.5))
    state, sizes = calm.start(), []
    for _ in range(20):
        (state, _), (other, _) = (envs.step(state, np.zeros((64, 12))) for envs in (calm, rough))
        change = np.linalg.norm(other.simulation.v - state.simulation.v, axis=1)
        sizes += change[change > 0.0].tolist()
    assert 0 < len(sizes) < 40  # a chance of 1 in 250 each period
    assert np.array(sizes) == pytest.approx(0.5, abs=1e-9)


@pytest.mark.parametrize("error, reached", [(0.1, True), (0.2, False)])
def test_verdict_averages_over_a_cycle_of_the_trot(task, error, reached):
    sway = 0.5 * np.sin(2.0 * np.pi * np.arange(100) / 20.0)[:, None]
    none = np.zeros((100, 4))
    measures = {"ahead": none + error + sway, "left": none + sway, "turn": none}
    trial = Evaluation(none, none, none, none, np.zeros(4, bool), measures, {})
    assert task.judge(trial).reached is reached
