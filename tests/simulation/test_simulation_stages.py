"""The stages of a step, looked at from outside: they are those that the kernel is made of."""

import numpy as np
import pytest

import delassus as dl
from refusals import refuses

QUADRUPED = dl.load("quadruped")
HOME = QUADRUPED.posture("home")


def landed(sim, steps=30):
    state = sim.start(HOME)
    for _ in range(steps):
        state = sim.step(state)
    return state


@pytest.fixture(scope="module")
def sim():
    return dl.Simulation(QUADRUPED, touching="*_calf_1")


def test_the_stages_lead_where_the_step_does(sim):
    state = landed(sim)
    stages, after = sim.stages(state), sim.step(state)
    np.testing.assert_allclose(stages.q, after.q, atol=1e-12)
    np.testing.assert_allclose(stages.v, after.v, atol=1e-9)
    np.testing.assert_allclose(stages.impulses.impulse, after.impulse, atol=1e-8)


def test_the_system_of_a_step_is_its_contact_problem(sim):
    state = landed(sim)
    system, problem = sim.stages(state).system, sim.problem(state)
    np.testing.assert_allclose(system.delassus(), problem.G, atol=1e-12)
    np.testing.assert_allclose(system.g, problem.g, atol=1e-12)


def test_impulses_change_the_velocity_as_momentum_says(sim):
    stages = sim.stages(landed(sim))
    system, change = stages.system, stages.velocity - stages.system.free_velocity
    momentum = system.inertia @ change + system.forces.resistance(change)
    np.testing.assert_allclose(momentum, system.rows.joint_impulses(stages.impulses.impulse), atol=1e-12)


def test_contacts_name_their_bodies(sim):
    contacts = sim.stages(landed(sim)).contacts
    assert contacts.gap.shape == (4,)
    assert len(set(contacts.body)) == 4
    np.testing.assert_allclose(contacts.gap, 0.0, atol=1e-3)


def test_a_robot_without_contacts_has_stages(sim):
    arm = dl.Simulation(dl.load("arm7"), touching=())
    state = arm.start(arm.model.neutral())
    np.testing.assert_allclose(arm.stages(state).v, arm.step(state).v, atol=1e-12)


def test_stages_are_those_of_one_item(sim):
    with refuses("wrong-shape"):
        sim.stages(sim.start(np.tile(HOME, (2, 1))))


def test_impulses_move_rows_as_the_delassus_matrix_says(sim):
    system, impulse = sim.stages(landed(sim)).system, np.arange(sim.scene.m, dtype=float)
    moved = system.velocities(system.respond(impulse))
    scale = np.max(np.abs(moved))
    np.testing.assert_allclose(system.delassus() @ impulse, moved, atol=1e-12 * scale)
    np.testing.assert_allclose(system.delassus_times(impulse), moved, atol=1e-12 * scale)
    np.testing.assert_allclose(system.solve(system.rows.joint_impulses(impulse)), system.respond(impulse), atol=1e-9)
