"""Guards: steppers move robots as they did when their motions were recorded. See `reference_trajectories`."""

import pytest

from reference_trajectories import MOTIONS, TOLERANCE, error, recorded

RECORD = recorded()


@pytest.mark.parametrize("name", MOTIONS)
def test_a_motion_is_the_recorded_one(name):
    motion = MOTIONS[name]
    assert error(motion, motion.states(), RECORD[name]) <= TOLERANCE


def test_every_recorded_motion_is_made():
    assert set(RECORD) == set(MOTIONS)
