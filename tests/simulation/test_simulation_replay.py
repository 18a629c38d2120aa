"""Runs that are recorded to be replayed: items made again to the bit, and failures explained."""

import numpy as np
import pytest

import delassus as dl
from delassus.simulation import position_servos
from refusals import refuses

ROBOT = dl.load("quadruped")
HOME = ROBOT.posture("home")
SERVOS = position_servos(ROBOT, 60.0, 3.0)
ITEMS, STEPS = 6, 30
RNG = np.random.default_rng(3)
SIM = dl.Simulation(
    ROBOT, dl.Ground(friction=RNG.uniform(0.3, 1.0, ITEMS)), 2e-3, actuators=SERVOS, touching="*_calf_1"
)
CONTROL = HOME[7:] + RNG.normal(0.0, 0.2, (STEPS, ITEMS, 12))
CONTROL[20, 2, 5] = np.nan


def push(time, q, v):
    if np.max(time) < 0.019:
        return None
    gust = np.zeros((ITEMS, 6))
    gust[:, 1] = 30.0 * np.arange(ITEMS)
    return dl.simulation.Push({"trunk": gust}, np.where(np.arange(18) == 1, 0.1, 0.0))


def restart(k, state):
    return SIM.reset(state, [4], HOME) if k == 15 else None


def run(**options):
    return SIM.run(np.tile(HOME, (ITEMS, 1)), control=CONTROL, steps=STEPS, push=push, progress=restart, **options)


@pytest.fixture(scope="module")
def whole():
    return run()


@pytest.fixture(scope="module")
def log():
    return run(record="replay", every=10)


@pytest.mark.parametrize("period", [0, 7, 15, 16, 19, 29])
@pytest.mark.parametrize("item", [0, 3, 4])
def test_an_item_is_replayed_to_the_bit(whole, log, item, period):
    again = SIM.replay(log, (item,), period).state
    for name in ("q", "v", "impulse", "contact", "time", "status", "count"):
        np.testing.assert_array_equal(getattr(again, name), getattr(whole[period, item], name))


def test_resets_of_progress_are_part_of_a_run(whole):
    np.testing.assert_array_equal(whole.q[16, 4], HOME)
    assert whole[16].time[4] == 0.0 and whole[16].time[3] > 0.03


def test_a_frozen_item_is_explained_by_its_control(log):
    said = log.explain(2)
    assert said.period == 20 and "control 5" in said and SERVOS[5].name in said


def test_what_happened_between_recorded_states_is_known(log):
    assert log.explain(2).log.q.shape == (21, 19) and "Nothing" in log.explain(1)


def test_an_explanation_can_be_drawn(log):
    pytest.importorskip("matplotlib").use("Agg")
    assert len(log.explain(2).draw(3)) == 3


def test_files_keep_what_a_replay_needs(whole, log, tmp_path):
    log.save(tmp_path / "run.npz")
    loaded = dl.Trajectory.load(tmp_path / "run.npz", SIM)
    assert loaded.explain(2) == log.explain(2)
    np.testing.assert_array_equal(SIM.replay(loaded, (4,), 18).state.q, whole.q[18, 4])


def test_a_log_of_some_states_says_what_was_not_recorded():
    assert "not recorded" in run(every=10).explain(2)


def test_an_unknown_record_is_refused():
    with refuses("unknown-option", "'replay'"):
        SIM.run(HOME, steps=1, record="all")


def test_progress_that_gives_something_else_is_refused():
    with refuses("wrong-type", "to continue from"):
        SIM.run(np.tile(HOME, (ITEMS, 1)), steps=1, progress=lambda k, state: 3)
