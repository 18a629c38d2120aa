"""Robots with closed loops that touch the ground again and again while they move: loops stay closed for a minute."""

import numpy as np
import pytest

import delassus as dl
import delassus.numpy as dnp
from delassus.simulation import position_servos


def four_bar():
    """Its crank is pushed to and fro, and its coupler beats the ground."""
    robot = dl.load("four_bar")

    @dl.kernel("(),(nq),(nv)->(3)")
    def push(model, time, q, v):
        return dnp.stack([2.0 * dnp.sin(5.0 * time), 0.0 * time, 0.0 * time]) - 0.05 * v

    sim = dl.Simulation(robot, dl.Ground(friction=0.5, height=-0.05), touching="coupler_0", max_limits=0)
    return sim, robot.posture("home"), push


def delta():
    """Servos move its platform along a curve that the ground cuts off."""
    robot = dl.load("delta")
    home = robot.posture("home")
    arms = [j.name for j in robot.joints if "arm" in j.name]
    held = [float(home[robot.q_slice(name)][0]) for name in arms]

    @dl.kernel("(),(nq),(nv)->(3)")
    def wave(model, time, q, v):
        return dnp.stack([held[k] + 0.1 + 0.2 * dnp.sin(3.0 * time + 2.1 * k) for k in range(3)])

    servos = position_servos(robot, 20.0, 0.5, arms)
    ground = dl.Ground(friction=0.5, height=-0.335)
    return dl.Simulation(robot, ground, touching="platform*", actuators=servos, max_limits=0), home, wave


def biped():
    """Servos rock it on its feet."""
    robot = dl.load("biped")
    home = robot.posture("home")
    driven = [j.name for j in robot.joints[1:] if "shin" not in j.name and "rod" not in j.name]
    held = np.array([home[robot.q_slice(name)][0] for name in driven])
    rocked = np.array([0.05 * ("thigh" in name or "crank" in name) for name in driven])

    def rock(seconds):
        """An array, which takes the kernel of every robot that is told what to do."""
        time = np.arange(round(seconds / 1e-3)) * 1e-3
        return held + np.sin(2.0 * time)[:, None] * rocked

    q0 = home.copy()
    q0[2] += 0.02
    servos = position_servos(robot, 600.0, 30.0, driven)
    return dl.Simulation(robot, touching="*_foot_0", actuators=servos, max_limits=0), q0, rock


@pytest.mark.parametrize(
    ("robot", "seconds"),
    [
        (four_bar, 10.0),
        (biped, 0.5),
        *(pytest.param(robot, 60.0, marks=pytest.mark.slow) for robot in (four_bar, delta, biped)),
    ],
)
def test_loops_that_touch_the_ground_stay_closed(robot, seconds):
    sim, q0, control = robot()
    control = control(seconds) if robot is biped else control
    log = sim.run(q0, control=control, steps=round(seconds / sim.period))
    touches = (log.contact_impulse[..., 2] > 0.0).any(-1)
    assert touches.mean() > 0.05
    assert log.drift.max() <= 1e-10
    assert not log.status.any()
    # Rows across the plane of a linkage move nothing: impulses that hold them would be out of all proportion.
    assert np.abs(log.impulse).max() < 1e3 * sim.model.mass * 9.81 * sim.time_step


@pytest.mark.parametrize("name", ["four_bar", "slider_crank", pytest.param("stewart", marks=pytest.mark.slow)])
def test_velocities_meet_loops_at_the_end_of_each_step(name):
    robot = dl.load(name)
    sim = dl.Simulation(robot, max_contacts=0, max_limits=0)
    log = sim.run(robot.posture("home"), steps=300)
    J = dl.constraint_jacobian(sim.mechanism, log.q)
    size = (np.abs(J) @ np.abs(log.v)[..., None]).max()
    assert np.abs(J @ log.v[..., None]).max() < 1e-10 * size
    assert log.drift.max() < 1e-11


def test_a_loop_that_turns_keeps_its_energy():
    """Velocities are half a step off: so is their energy, by ½ h vᵀ∇V."""
    robot = dl.load("four_bar")
    sim = dl.Simulation(robot, max_contacts=0, max_limits=0)
    q, v = dl.project(sim.mechanism, robot.posture("home"), np.full(robot.nv, 8.0))
    log = sim.run(q, v, steps=1000)
    weight = np.asarray(dl.rnea(robot, log.q, 0.0 * log.v, 0.0 * log.v))
    energy = log.energy - 0.5 * sim.time_step * np.sum(weight * log.v, -1)
    moving = 0.5 * v @ np.asarray(dl.crba(robot, q)) @ v
    assert np.abs(energy - energy[0]).max() < 1e-3 * moving
