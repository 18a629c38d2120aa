"""Kernels are compiled before a run: nothing is compiled in its middle."""

from dataclasses import replace

import numpy as np
import pytest

import delassus as dl
from delassus.compiler.host import widths
from delassus.simulation import position_servos

ROBOT = dl.load("quadruped")
HOME = ROBOT.posture("home")


@pytest.fixture
def compilations(monkeypatch):
    """Names of kernels for which machine code is made or loaded."""
    made, make = [], widths.Widths._make
    monkeypatch.setattr(widths.Widths, "_make", lambda self, many: made.append(self._name) or make(self, many))
    return made


def simulation(**options):
    return dl.Simulation(ROBOT, dl.Ground(friction=0.61), actuators=position_servos(ROBOT, 60.0, 3.0), **options)


def counts_of_run(sim, q, compilations):
    counts = []
    log = sim.run(q, control=np.zeros(12), steps=220, progress=lambda k, state: counts.append(len(compilations)))
    assert (log.contacts.contact[-1] != log.contacts.contact[0]).any()
    return counts


def test_a_robot_that_falls_compiles_nothing_on_its_way(compilations):
    counts = counts_of_run(simulation(max_contacts=6), HOME, compilations)
    assert counts[0] >= 2 and counts[0] == counts[-1]


def test_a_batch_of_which_one_falls_compiles_nothing_on_its_way(compilations):
    q = np.tile(HOME, (3, 1))
    q[1, 3:7] = [1.0, 0.0, 0.0, 0.0]
    counts = counts_of_run(simulation(max_contacts=7), q, compilations)
    assert counts[0] == counts[-1]


def test_steps_of_several_items_compile_with_the_first(compilations):
    sim = simulation(max_contacts=5)
    state = sim.step(sim.start(np.tile(HOME, (16, 1))), HOME[7:])
    first = len(compilations)
    for _ in range(150):
        state = sim.step(state, np.zeros(12))
    assert len(compilations) == first


def test_all_that_one_robot_needs_can_be_compiled_before(compilations):
    sim = simulation(max_contacts=4)
    sim.compile()
    first, state = len(compilations), sim.start(HOME)
    for _ in range(150):
        state = sim.step(state, np.zeros(12))
    assert first >= 2 and len(compilations) <= first


def test_robots_with_parameters_compile_with_the_first_step(compilations):
    robot = replace(ROBOT, actuators=position_servos(ROBOT, 60.0, 3.0)).parametric("mass:trunk")
    sim = dl.Simulation(robot, dl.Ground(friction=0.61), max_contacts=4)
    state = sim.step(sim.start(np.tile(HOME, (16, 1))), HOME[7:])
    first = len(compilations)
    for _ in range(60):
        state = sim.step(state, np.zeros(12))
    assert first and len(compilations) == first


def test_bodies_in_one_place_do_not_keep_their_kernels_from_being_compiled():
    ball = '<body><freejoint/><geom name="g{}" size=".05" mass="1"/></body>'
    bodies = ball.format(0) + ball.format(1)
    text = f"<mujoco><worldbody><geom type='plane' size='9 9 .1'/>{bodies}</worldbody></mujoco>"
    sim = dl.Simulation(dl.load(text), dl.Ground(friction=0.5), 1e-3, colliding=[("g*", "g*")])
    sim.compile()
    state = sim.start([0.0, 0.0, 0.05, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.05, 0.0, 0.0, 0.0, 1.0])
    assert not sim.step(state).status
