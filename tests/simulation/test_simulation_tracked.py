"""Shapes that are tracked: mean and peak force over a control period, and air time, of states as of logs."""

import numpy as np
import pytest

import delassus as dl
from refusals import refuses

BALL = """<mujoco><worldbody><geom name="floor" type="plane" size="0 0 1" friction="0"/>
<body name="ball" pos="0 0 0.1"><freejoint/><geom name="skin" size="0.1" mass="2"/></body></worldbody></mujoco>"""
ROBOT = dl.load(BALL)
STEP, SUBSTEPS = 1e-3, 10
TRACKING = dl.Simulation(ROBOT, time_step=STEP, substeps=SUBSTEPS, tracked="skin")
FINE = dl.Simulation(ROBOT, time_step=STEP)
NAMES = ("touchmean:skin", "touchpeak:skin", "airtime:skin")


def high(z):
    q = ROBOT.neutral()
    q[2] = z
    return q


START = np.stack([high(z) for z in (0.1, 0.1 + 1e-4, 0.12, 0.5)])
LOG = TRACKING.run(START, steps=12)
STEPS = FINE.run(START, steps=12 * SUBSTEPS)
TOUCH = FINE.sensors("touch:skin")(STEPS)["touch:skin"][1:, :, 0].reshape(12, SUBSTEPS, 4)
READ = {name: x[..., 0] for name, x in TRACKING.sensors(*NAMES)(LOG).items()}


def test_the_mean_is_that_of_all_steps_of_a_period():
    np.testing.assert_allclose(READ["touchmean:skin"][1:], TOUCH.mean(1), rtol=1e-12, atol=1e-12)


def test_the_peak_is_the_largest_of_a_period():
    np.testing.assert_allclose(READ["touchpeak:skin"][1:], TOUCH.max(1), rtol=1e-12)
    assert READ["touchpeak:skin"].max() > 10.0 * 9.81 * 2.0  # where the ball strikes


def test_air_time_counts_from_the_last_step_that_touched():
    last = [[12 * SUBSTEPS - 1 - np.flatnonzero(x)[-1] if x.any() else 12 * SUBSTEPS] for x in TOUCH.reshape(-1, 4).T]
    np.testing.assert_allclose(READ["airtime:skin"][-1], STEP * np.ravel(last), atol=1e-12)
    np.testing.assert_allclose(READ["airtime:skin"][1:, 3], STEP * SUBSTEPS * np.arange(1, 13), atol=1e-12)


def test_states_have_what_logs_have():
    state = TRACKING.start(START)
    for _ in range(12):
        state = TRACKING.step(state)
    for name, x in TRACKING.sensors(*NAMES)(state).items():
        np.testing.assert_array_equal(x[..., 0], READ[name][-1])


def test_one_item_has_the_bits_of_its_batch():
    alone = TRACKING.run(START[2], steps=12)
    np.testing.assert_array_equal(alone.tally, LOG.tally[:, 2])


def test_tracking_changes_no_motion():
    np.testing.assert_array_equal(LOG.q, STEPS.q[::SUBSTEPS])


def test_items_that_start_again_have_touched_nothing_yet():
    state = TRACKING.reset(LOG[-1], [3], high(0.3))
    assert state.tally[3].tolist() == [0.0, 0.0, 0.0] and state.tally[0].any()


def test_a_run_goes_on_from_a_file(tmp_path):
    LOG.save(tmp_path / "log.npz")
    loaded = dl.Trajectory.load(tmp_path / "log.npz", TRACKING)
    np.testing.assert_array_equal(TRACKING.run(loaded[6], steps=6).tally, LOG.tally[6:])


def test_bodies_and_pairs_can_be_tracked():
    sim = dl.Simulation(ROBOT, time_step=STEP, tracked=["ball", "skin|ground"])
    read = sim.sensors("touchmean:ball", "touchpeak:skin|ground")(sim.run(START[0], steps=3))
    np.testing.assert_array_equal(read["touchmean:ball"], read["touchpeak:skin|ground"])


@pytest.mark.parametrize("tracked", ["nose", ["skin|nose"]])
def test_unknown_shapes_are_refused(tracked):
    with refuses("unknown-name", "nose"):
        dl.Simulation(ROBOT, tracked=tracked)


def test_readings_of_shapes_that_are_not_tracked_say_how():
    with refuses("unknown-sensor", "tracked='ball'"):
        TRACKING.sensors("touchmean:ball")
    with refuses("not-recorded", "tracked='skin'"):
        FINE.sensors("airtime:skin")(FINE.start(START))


@pytest.mark.parametrize("name", ["ball", "ball_joint", "skin|ground", "ball|ground"])
def test_forces_are_found_by_bodies_joints_and_pairs(name):
    np.testing.assert_array_equal(STEPS.normal_force(name), STEPS.normal_force("skin"))
