"""Constraint forces of motions and simulations: the equation of motion holds with them."""

import numpy as np
import pytest

import delassus as dl

BAR = dl.load("four_bar")
TIMES = np.linspace(0.0, 0.3, 7)


def drive(time, q, v):
    return 0.3 * dl.numpy.sin(5.0 * time) - 0.1 * v


@pytest.mark.parametrize("tau", [None, 0.2 * np.ones(BAR.nv), drive], ids=["none", "array", "function"])
def test_the_equation_of_motion_holds_with_them(tau):
    log = dl.simulate_motion(BAR, BAR.posture("home"), tau=tau, times=TIMES)
    arms = dl.Mechanism(BAR)
    for k, (q, v) in enumerate(zip(log.q, log.v, strict=True)):
        given = drive(TIMES[k], q, v) if callable(tau) else np.zeros(BAR.nv) if tau is None else tau
        given = given + dl.dynamics.passive_forces(BAR, q, v)
        J = dl.constrained.constraint_jacobian(arms, q)
        a = dl.aba(BAR, q, v, given + J.T @ log.constraint_force[k])
        expected = dl.constrained_dynamics(arms, q, v, given).acceleration
        np.testing.assert_allclose(a, expected, atol=1e-8 * np.abs(expected).max())


def test_files_keep_what_they_follow_from(tmp_path):
    log = dl.simulate_motion(BAR, BAR.posture("home"), tau=drive, times=TIMES)
    log.save(tmp_path / "motion.npz")
    loaded = dl.Trajectory.load(tmp_path / "motion.npz", dl.Mechanism(BAR))
    np.testing.assert_allclose(loaded.constraint_force, log.constraint_force, rtol=1e-9)
    np.testing.assert_array_equal(log[2:4].constraint_force, log.constraint_force[2:4])


def test_a_batch_has_them_for_each_item():
    q = np.tile(BAR.posture("home"), (3, 1))
    log = dl.simulate_motion(BAR, q, np.zeros((3, BAR.nv)), times=TIMES[:3])
    assert log.constraint_force.shape == (3, 3, dl.Mechanism(BAR).m)


def test_those_of_a_simulation_are_those_of_its_steps():
    sim = dl.Simulation(BAR, max_contacts=0)
    log = sim.run(BAR.posture("home"), steps=5)
    motion = dl.simulate_motion(BAR, log.q[0], times=[0.0, 1e-3])
    scale = np.abs(motion.constraint_force[0]).max()
    np.testing.assert_allclose(log.constraint_force[1], motion.constraint_force[0], atol=0.05 * scale)
