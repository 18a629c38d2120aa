"""Controls that come late: by whole periods, and through the lag of actuators."""

import numpy as np
import pytest

import delassus as dl
from delassus.errors import DelassusError
from delassus.simulation import Delayed, position_servos, with_lag

ROBOT = dl.load("double_pendulum")
SERVOS = position_servos(ROBOT, 20.0, 2.0)
SIM = dl.Simulation(ROBOT, actuators=SERVOS, max_contacts=0)
RNG = np.random.default_rng(0)
CONTROLS = RNG.normal(size=(20, 1, ROBOT.nv))
Q0 = np.zeros((3, ROBOT.nq))


def late(periods):
    """The controls with the first one before them, and the last ones left out."""
    return np.concatenate([np.repeat(CONTROLS[:1], periods, 0), CONTROLS[: len(CONTROLS) - periods]])


@pytest.mark.parametrize("kind", ["array", "function"])
def test_controls_act_as_many_periods_later(kind):
    given = CONTROLS if kind == "array" else lambda time, q, v: CONTROLS[round(float(time[0]) / SIM.period), 0]
    log = SIM.run(Q0, control=Delayed(given, 3), steps=20)
    np.testing.assert_array_equal(log.q, SIM.run(Q0, control=late(3), steps=20).q)


def test_each_item_may_have_a_delay_of_its_own():
    log = SIM.run(Q0, control=Delayed(CONTROLS, [0, 2, 5]), steps=20)
    for item, periods in enumerate((0, 2, 5)):
        np.testing.assert_array_equal(log.q[:, item], SIM.run(Q0[:1], control=late(periods), steps=20).q[:, 0])


@pytest.mark.parametrize("periods", [-1, 0.5, 10**6, [1, 2], "two"])
def test_delays_that_cannot_be_are_refused(periods):
    with pytest.raises(DelassusError) as caught:
        SIM.run(Q0, control=Delayed(CONTROLS, periods), steps=5)
    assert caught.value.code == "out-of-range"


def test_a_lag_lets_63_percent_of_a_step_arrive_after_its_time_constant():
    lagging = dl.Simulation(ROBOT, actuators=with_lag(SERVOS, 0.05), max_contacts=0)
    log = lagging.run(Q0[0], control=np.ones(ROBOT.nv), steps=50)
    np.testing.assert_allclose(log.activation[-1], 1.0 - np.exp(-1.0), rtol=1e-6)


def test_a_lag_on_a_lag_is_refused():
    with pytest.raises(DelassusError):
        with_lag(with_lag(SERVOS, 0.1), 0.1)
