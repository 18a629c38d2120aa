"""Parameters per item: each item does what a simulation of its own robot does."""

from dataclasses import replace

import numpy as np
import pytest

import delassus as dl
from delassus.errors import DelassusError
from delassus.simulation import position_servos
from delassus.step.period.kernels import simulate

BARE = dl.load("quadruped")
SERVED = replace(
    BARE,
    actuators=tuple(replace(a, force_range=(-30.0, 30.0)) for a in position_servos(BARE, 120.0, 4.0)),
)
HOME = BARE.posture("home")
NAMES = ("gravity", "mass:trunk", "inertia:front_left_calf", "armature", "damping", "servo", "force_limit")
ROBOT = SERVED.parametric(*NAMES)
SIM = dl.Simulation(ROBOT, touching="*_calf_1")
TARGET = HOME[7:] + 0.3
ITEMS = 4


def drawn(items=ITEMS):
    """Parameters (items, nparameters) around those of the robot."""
    p = np.tile(ROBOT.parameters(), (items, 1)) * np.random.default_rng(3).uniform(0.8, 1.2, (items, 1))
    p[:, ROBOT.slices["damping"]] += 0.1
    p[:, ROBOT.slices["force_limit"]] = np.linspace(2.0, 30.0, items)[:, None]
    return p


def counted(scene):
    return sum(simulate.program(scene).count().values())


def test_each_item_is_a_robot_of_its_own():
    p = drawn()
    log = SIM.run(SIM.start(np.tile(HOME, (ITEMS, 1)), parameters=p), control=TARGET, steps=30)
    for k in (0, 3):
        alone = dl.Simulation(ROBOT.with_parameters(p[k]), touching="*_calf_1")
        np.testing.assert_allclose(log.q[-1, k], alone.run(HOME, control=TARGET, steps=30).q[-1], atol=1e-9)
    assert np.abs(log.q[-1, 0] - log.q[-1, 3]).max() > 1e-3


def test_without_parameters_the_robot_has_its_own_numbers():
    plain = dl.Simulation(SERVED, touching="*_calf_1").run(HOME, control=TARGET, steps=20)
    np.testing.assert_allclose(SIM.run(HOME, control=TARGET, steps=20).q[-1], plain.q[-1], atol=1e-9)


def test_items_get_new_parameters_when_they_are_reset_and_keep_them_otherwise():
    p = drawn()
    state = SIM.step(SIM.start(np.tile(HOME, (ITEMS, 1)), parameters=p), TARGET)
    np.testing.assert_array_equal(SIM.reset(state, [1], HOME).parameters, p)
    np.testing.assert_array_equal(SIM.reset(state, [1], HOME, parameters=p[2]).parameters[:3], p[[0, 2, 2]])


@pytest.mark.parametrize(
    ("name", "wrong"), [("mass:trunk", -1.0), ("servo", -5.0), ("gravity", np.nan), ("inertia:front_left_calf", 1.0)]
)
def test_parameters_that_no_robot_has_freeze_their_item_alone(name, wrong):
    p = drawn()
    p[2, ROBOT.slices[name]] = wrong
    state = SIM.start(np.tile(HOME, (ITEMS, 1)), parameters=p)
    assert state.frozen.tolist() == [False, False, True, False]
    after = SIM.step(state, TARGET)
    assert after.frozen.tolist() == [False, False, True, False]
    np.testing.assert_array_equal(after.q[2], state.q[2])


def test_a_log_has_the_energy_of_its_parameters():
    p = drawn(2)
    log = SIM.run(SIM.start(np.tile(HOME, (2, 1)), parameters=p), steps=2)
    alone = dl.Simulation(ROBOT.with_parameters(p[1]), touching="*_calf_1").run(HOME, steps=2)
    np.testing.assert_allclose(log.energy[:, 1], alone.energy, rtol=1e-9)
    np.testing.assert_array_equal(log[-1].parameters, p)


def test_parameters_take_at_most_half_as_many_operations_more():
    names = ("gravity", "inertia", "armature", "damping", "servo", "force_limit")
    constant, random = (dl.Simulation(robot, touching="*_calf_1") for robot in (SERVED, SERVED.parametric(*names)))
    for name in ("reduced_scene", "scene"):
        assert counted(getattr(random, name)) < 1.5 * counted(getattr(constant, name))


def test_stages_and_problems_are_those_of_the_parameters():
    p = drawn(1)[0]
    state, alone = SIM.start(HOME, parameters=p), dl.Simulation(ROBOT.with_parameters(p), touching="*_calf_1")
    np.testing.assert_allclose(SIM.stages(state).v, alone.stages(alone.start(HOME)).v, atol=1e-12)
    np.testing.assert_allclose(SIM.problem(state).G, alone.problem(alone.start(HOME)).G, atol=1e-9)


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (lambda: SIM.start(HOME, parameters=np.zeros(3)), "wrong-shape"),
        (lambda: dl.Simulation(BARE).start(HOME, parameters=np.zeros(3)), "not-parametric"),
        (lambda: SIM.start(np.tile(HOME, (2, 1)), parameters=drawn(3)), "batch-mismatch"),
        (lambda: dl.Simulation(ROBOT, actuators=position_servos(BARE, 1.0, 1.0)), "conflicting-arguments"),
        (lambda: dl.Simulation(BARE.parametric("placement")), "not-supported"),
        (lambda: BARE.parametric("servo:nose"), "unknown-parameter"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(wrong, code):
    with pytest.raises(DelassusError) as caught:
        wrong()
    assert caught.value.code == code
