"""Bodies that strike the ground in a simulation: the problem that is shown is the one that was solved."""

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.contact.cones.parameters import RowParameters
from delassus.contact.solvers.solve import velocity_and_residual
from delassus.step.flags import Mark, describe_marks

BAR = """
<mujoco><worldbody><body name="bar" pos="0 0 1"><freejoint/>
  <geom type="box" size=".3 .05 .05" mass="1"/></body></worldbody></mujoco>
"""


def thrown_bars(count: int, **ground):
    """Bars that fall in all directions and strike with an end."""
    model = dl.from_mujoco(mujoco.MjModel.from_xml_string(BAR))
    rng = np.random.default_rng(0)
    q, v = np.tile(model.neutral(), (count, 1)), rng.normal(size=(count, 6)) * [1, 1, 1, 3, 3, 3]
    q[:, 2], q[:, 3:] = rng.uniform(0.32, 0.4, count), rng.normal(size=(count, 4))
    q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1)[:, None]
    v[:, 2] -= 4.0
    sim = dl.Simulation(model, ground=dl.Ground(**ground), time_step=1e-3)
    return sim, sim.start(q, v)


@pytest.fixture(scope="module")
def strikes():
    """Of all impacts of bars on the ground: problem, item, impulse and the marks of the step."""
    sim, state = thrown_bars(256, friction=1.0, restitution=0.8)
    found = []
    for _ in range(90):
        problem, after = sim.problem(state), sim.step(state)
        for item in np.flatnonzero(np.abs(after.impulse).max(-1) > 0.0):
            found.append((problem, item, after.impulse[item], int(after.status[item])))
        state = after
    return found


def test_the_problem_of_a_simulation_is_the_one_that_its_step_solved(strikes):
    assert len(strikes) > 50
    for problem, item, impulse, _ in strikes:
        G, g = problem.G[item], problem.g[item]
        friction = np.broadcast_to(problem.friction, (256, problem.layout.contacts))[item]
        _, residual = velocity_and_residual(problem.layout, "ncp", G, g, impulse, RowParameters(friction))
        assert np.abs(residual).max() <= 1e-6 * np.abs(g).max()


def test_the_problem_of_a_robot_with_more_candidates_than_slots_is_solved_by_the_impulses_of_its_candidates():
    quadruped = dl.load("quadruped")
    sim = dl.Simulation(quadruped, dl.Ground(friction=0.9, restitution=0.8))
    state = sim.start(quadruped.posture("home"), np.random.default_rng(1).normal(size=quadruped.nv))
    struck = 0
    for _ in range(60):
        stages, problem, after = sim.stages(state), sim.problem(state), sim.step(state)
        impulse, slots = np.array(after.impulse), len(after.contact)
        of_candidate = dict(zip(after.contact, after.impulse[: 3 * slots].reshape(-1, 3), strict=True))
        own = [of_candidate.get(number, np.zeros(3)) for number in np.asarray(stages.contacts.candidate)]
        impulse[: 3 * slots] = np.ravel(own)
        friction = np.broadcast_to(problem.friction, slots)
        _, residual = velocity_and_residual(
            problem.layout, "ncp", problem.G, problem.g, impulse, RowParameters(friction)
        )
        assert np.abs(residual).max() <= 1e-6 * np.abs(problem.g).max()
        struck, state = struck + np.any(impulse > 0.0), after
    assert struck > 3


def test_strikes_whose_restitution_would_add_energy_are_marked(strikes):
    marks = np.array([status for *_, status in strikes])
    assert 0.0 < np.mean(marks & int(Mark.ENERGY_LIMITED) != 0) < 0.3
    assert "Restitution was lowered" in describe_marks(marks)


def test_bodies_that_strike_without_friction_keep_their_restitution():
    sim, state = thrown_bars(64, friction=0.0, restitution=0.8)
    log = sim.run(state.q, state.v, steps=60)
    assert not np.any(log.status & int(Mark.ENERGY_LIMITED))


def test_restitution_asks_for_nothing_that_may_strike():
    model = dl.load("double_pendulum")
    sim = dl.Simulation(model, dl.Ground(restitution=1.0), touching=(), joint_friction=False)
    without = dl.Simulation(model, dl.Ground(), touching=(), joint_friction=False)
    start = np.full(model.nq, 0.3)
    np.testing.assert_array_equal(sim.run(start, steps=5).q, without.run(start, steps=5).q)
