"""One robot: runs that make many periods in a call, and single steps, against each other to the bit."""

import copy
import pickle
import threading

import numpy as np
import pytest

import delassus as dl
from bodies import BALL, BRICK, H
from delassus.model import Free, Inertia, Joint, Model
from delassus.model.parts import Geometry
from delassus.model.placement import Placement

ARM = dl.load("arm7")


START = ([0, 0, 0.3, 0.1, 0.2, 0, 1.0], [1.0, 0, 0, 3.0, 5.0, 0])


def thrown(steps: int) -> tuple[dl.Simulation, dl.Trajectory]:
    """A brick that tumbles on the ground: some of its steps need the whole world."""
    sim = dl.Simulation(BRICK, dl.Ground(friction=0.5), H)
    return sim, sim.run(*START, steps=steps)


def test_a_run_is_its_single_steps():
    sim, log = thrown(700)
    state = sim.start(*START)
    for k in range(1, 701):
        state = sim.step(state)
        np.testing.assert_array_equal(state.q, log.q[k])
        np.testing.assert_array_equal(state.impulse, log.contacts.impulse[k])
    assert state.time == log.time[-1]


@pytest.mark.parametrize("every", [2, 7, 64, 65, 1000])
def test_what_is_kept_of_a_run_is_what_the_whole_run_has(every):
    sim, log = thrown(200)
    some = sim.run(*START, steps=200, every=every)
    kept = [*range(0, 200, every), 200]
    for name in ("time", "q", "v", "residual", "status"):
        np.testing.assert_array_equal(getattr(some, name), getattr(log, name)[kept])


def test_an_array_of_controls_is_a_function_that_gives_its_rows():
    sim, rng = dl.Simulation(ARM, max_contacts=0), np.random.default_rng(0)
    u = rng.normal(size=(150, sim.nu))
    log = sim.run(ARM.neutral(), control=u)
    other = sim.run(ARM.neutral(), control=lambda time, q, v: u[round(time / sim.period)], steps=150)
    np.testing.assert_array_equal(log.q, other.q)


def test_a_controller_that_fails_numerically_freezes_where_it_does():
    sim = dl.Simulation(ARM, max_contacts=0)
    u = np.zeros((100, sim.nu))
    u[40] = np.nan
    log = sim.run(ARM.neutral(), control=u)
    assert not log.status[:41].any()
    assert (log.status[41:] & dl.Mark.FROZEN).all()
    assert (log.q[41:] == log.q[40]).all()


def test_ctrl_c_in_a_run_gives_what_was_simulated(monkeypatch):
    from delassus.simulation.chunked_run import ChunkedRun

    sim, log = thrown(300)
    go, calls = ChunkedRun.go, []

    def interrupted(self, k, periods):
        calls.append(k)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return go(self, k, periods)

    monkeypatch.setattr(ChunkedRun, "go", interrupted)
    part = sim.run(*START, steps=300)
    assert 1 < len(part.time) < 301
    np.testing.assert_array_equal(part.q, log.q[: len(part.time)])


def test_a_step_sees_what_was_changed_in_a_state():
    sim = dl.Simulation(BALL, None, H)
    state = sim.step(sim.start([0, 0, 1.0, 0, 0, 0, 1.0]))
    state.q[2] = 5.0
    assert sim.step(state, np.zeros(0)).q[2] == pytest.approx(5.0, abs=1e-3)


def test_a_step_leaves_its_state_as_it_was():
    sim = dl.Simulation(BALL, None, H)
    state = sim.start([0, 0, 1.0, 0, 0, 0, 1.0])
    first = [sim.step(state, np.zeros(0)) for _ in range(3)]
    assert state.q[2] == 1.0
    np.testing.assert_array_equal(first[0].q, first[2].q)
    assert first[0].q is not first[2].q


def test_threads_may_step_one_simulation_at_once():
    sim = dl.Simulation(ARM, max_contacts=0)
    starts = np.random.default_rng(1).normal(size=(4, ARM.nq))
    wanted = [sim.run(q, steps=50).q[-1] for q in starts]
    found = {}

    def work(k):
        state = sim.start(starts[k])
        for _ in range(50):
            state = sim.step(state, np.zeros(sim.nu))
        found[k] = state.q

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for k in range(4):
        np.testing.assert_array_equal(found[k], wanted[k])


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda sim: pickle.loads(pickle.dumps(sim))])
def test_a_simulation_that_has_stepped_can_be_copied(copied):
    sim = dl.Simulation(BALL, None, H)
    state = sim.step(sim.start([0, 0, 1.0, 0, 0, 0, 1.0]), np.zeros(0))
    np.testing.assert_array_equal(copied(sim).step(state).q, sim.step(state).q)


# --- items that the usual world is not enough for ---------------------------------------------------------------------


def dumbbell() -> dl.Simulation:
    """A rod that stands on a ball at its end, and topples: the others are none of its usual contacts."""
    inertia = Inertia.of(1.0, rotational=np.diag([0.02, 0.02, 0.005]))
    balls = tuple(
        Geometry(f"ball{z}", 0, Placement.of(p=(0, 0, z)), "sphere", (radius,), "collision")
        for z, radius in ((-0.2, 0.05), (0.0, 0.03), (0.2, 0.05))
    )
    model = Model("dumbbell", (Joint("base", Free(), inertia=inertia),), geometries=balls)
    return dl.Simulation(model, None, H, max_contacts=2)


def test_what_has_fallen_does_in_a_batch_what_it_does_alone_and_goes_on_from_any_state():
    sim = dumbbell()
    assert len(sim.reduced_scene.reduced) == 1 < sim.scene.candidates
    q0 = np.tile([0, 0, 0.25, 0, 0, 0, 1.0], (6, 1))
    v0 = np.zeros((6, 6))
    v0[:, 3] = np.linspace(0.0, 4.0, 6)
    log = sim.run(q0, v0, steps=900)
    assert (log.q[-1, 2:, 2] < 0.06).all()  # they lie on both balls
    for k in (0, 3, 5):
        np.testing.assert_array_equal(sim.run(q0[k], v0[k], steps=900).q, log.q[:, k])
    state = sim.start(q0, v0)
    for _ in range(900):
        state = sim.step(state)
    np.testing.assert_array_equal(state.q, log.q[-1])
