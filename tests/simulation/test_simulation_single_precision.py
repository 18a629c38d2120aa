"""Steps in single precision: close to those in double, with the same bits in any batch."""

import numpy as np
import pytest

import delassus as dl
from delassus.simulation import position_servos


def _simulation(name, dtype=np.float32, **options):
    robot = dl.load(name)
    return dl.Simulation(robot, actuators=position_servos(robot, 200.0, 10.0), time_step=1e-3, dtype=dtype, **options)


@pytest.fixture(scope="module")
def quadruped():
    return _simulation("quadruped", touching="*_calf_1")


def _starts(sim, count):
    home = sim.model.posture("home")
    q = np.tile(home, (count, 1))
    q[:, 2] += np.linspace(0.0, 0.05, count)
    return q, home[7:]


def test_quadrupeds_fall_and_stand_as_in_double_precision(quadruped):
    q, u = _starts(quadruped, 16)
    double = _simulation("quadruped", np.float64, touching="*_calf_1")
    one, two = (sim.run(q, control=u, steps=600, every=600) for sim in (quadruped, double))
    assert not one.status.any()
    np.testing.assert_allclose(one.q[-1], two.q[-1], atol=1e-3)


def test_resting_quadrupeds_creep_by_less_than_a_tenth_of_a_millimeter_a_second(quadruped):
    q, u = _starts(quadruped, 2)
    still = quadruped.run(q, control=u, steps=1500, every=1500)[-1]
    later = quadruped.run(still, control=u, steps=1000, every=1000)[-1]
    np.testing.assert_allclose(later.q, still.q, atol=1e-4)


def test_a_state_has_the_same_bits_alone_and_in_a_batch(quadruped):
    q, u = _starts(quadruped, 20)
    many = quadruped.run(q, control=u, steps=80, every=80)
    alone = quadruped.run(q[7], control=u, steps=80, every=80)
    np.testing.assert_array_equal(many.q[-1, 7], alone.q[-1])
    np.testing.assert_array_equal(many.v[-1, 7], alone.v[-1])


def test_a_run_goes_on_from_its_last_state_to_the_same_bits(quadruped):
    q, u = _starts(quadruped, 3)
    whole = quadruped.run(q, control=u, steps=60)
    rest = quadruped.run(quadruped.run(q, control=u, steps=30)[-1], control=u, steps=30)
    np.testing.assert_array_equal(whole.q[-1], rest.q[-1])


def test_states_and_logs_are_double_precision(quadruped):
    q, u = _starts(quadruped, 2)
    state = quadruped.step(quadruped.start(q), np.tile(u, (2, 1)))
    assert state.q.dtype == quadruped.run(q, control=u, steps=2).q.dtype == np.float64


def test_flat_feet_with_redundant_contacts_stand():
    sim = _simulation("humanoid", max_limits=0, self_collision=False, touching="*foot*")
    home = sim.model.posture("home")
    log = sim.run(np.tile(home, (4, 1)), control=home[7:], steps=200, every=200)
    assert not (log.status[-1] & int(dl.Mark.UNSOLVED | dl.Mark.FROZEN)).any()
    assert np.abs(log.q[-1, :, 2] - home[2]).max() < 0.02


def test_closed_loops_are_refused():
    with pytest.raises(dl.DelassusError) as error:
        _simulation("biped")
    assert error.value.code == "not-supported"


def test_the_law_of_mujoco_is_refused():
    with pytest.raises(dl.DelassusError) as error:
        _simulation("quadruped", law="mujoco")
    assert error.value.code == "not-supported"


@pytest.mark.parametrize("dtype", [int, "half", "nonsense"])
def test_other_dtypes_are_refused(dtype):
    with pytest.raises(dl.DelassusError) as error:
        _simulation("quadruped", dtype)
    assert error.value.code == "wrong-dtype"


def test_tolerances_below_its_resolution_are_refused():
    with pytest.raises(dl.DelassusError):
        _simulation("quadruped", tolerance=1e-8)
