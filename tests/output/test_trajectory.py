"""Trajectories: one class for motions and simulations, with files, parts and films; what was not recorded is told."""

import base64
import json

import numpy as np
import pytest

import delassus as dl
from refusals import refuses

PENDULUM = dl.load("pendulum")
SIM = dl.Simulation(PENDULUM, max_contacts=0)


@pytest.fixture(scope="module")
def motion():
    return dl.simulate_motion(PENDULUM, [[1.0], [0.5]], times=np.linspace(0, 0.1, 6), method="rk4", step=1e-2)


@pytest.fixture(scope="module")
def simulated():
    return SIM.run(np.array([[1.0], [0.5], [0.2]]), steps=5)


def test_motions_and_simulations_give_the_same_kind_of_trajectory(motion, simulated):
    assert type(motion) is type(simulated) is dl.Trajectory
    assert motion.energy.shape == (6, 2) and simulated.energy.shape == (6, 3)


def test_files_of_both_are_read_without_saying_which(motion, simulated, tmp_path):
    for log in (motion, simulated):
        log.save(tmp_path / "log.npz")
        again = dl.Trajectory.load(tmp_path / "log.npz")
        for name in ("time", "q", "v", "status", "steps", "energy", "drift", "velocity_drift"):
            np.testing.assert_array_equal(getattr(again, name), getattr(log, name))
        assert again.describe() == log.describe()
    assert again.contacts.time_step == SIM.time_step and again.simulation is None
    assert dl.Trajectory.load(tmp_path / "log.npz", SIM).simulation is SIM


def test_what_was_not_recorded_is_told_in_a_sentence(motion):
    assert not hasattr(motion, "contact_force")
    for ask in (lambda: motion.impulse, lambda: motion.normal_force("foot")):
        with refuses("not-recorded"):
            ask()
    with refuses("unknown-option", "velocity_drift"):
        motion.plot("contact_force")


def test_parts_of_a_simulation_have_their_contacts_and_marks(simulated):
    part = simulated[1:4, 2]
    assert part.q.shape == (3, 1) and part.impulse.shape == (3, simulated.impulse.shape[-1])
    assert part.status.shape == part.residual.shape == part.energy.shape == (3,)
    np.testing.assert_array_equal(part.impulse, simulated.impulse[1:4, 2])
    assert simulated[:, 1].statuses.shape == (6,) and simulated[:, 1].steps == 5


def test_steps_of_a_simulation_are_those_of_time():
    sim = dl.Simulation(PENDULUM, max_contacts=0, substeps=3)
    log = sim.run(np.zeros(1), steps=7, every=2)
    assert log.steps == 21 and len(log) == 5


def test_a_motion_without_ground_is_a_film(motion, tmp_path):
    motion.save_html(tmp_path / "film.html")
    text = (tmp_path / "film.html").read_text()
    data = json.loads(text.partition("const film = ")[2].partition(";\n")[0])
    assert data["ground"] is None and data["slots"] == 0 and data["forces"] == ""
    poses = np.frombuffer(base64.b64decode(data["poses"]), "<f4").reshape(len(data["time"]), 2, 1, 9)
    np.testing.assert_allclose(poses[-1, ..., 3:6], dl.forward_kinematics(PENDULUM, motion.q[-1])[0][..., 0], atol=1e-6)


def test_files_that_are_none_are_refused_with_their_names(tmp_path, motion):
    (tmp_path / "text.npz").write_text("not an archive")
    np.savez(tmp_path / "other.npz", q=np.zeros(3))
    for name, said in (
        ("none.npz", ("unreadable-file",)),
        ("text.npz", ("unreadable-file",)),
        ("other.npz", ("other-file",)),
    ):
        with refuses(*said) as caught:
            dl.Trajectory.load(tmp_path / name)
        assert name in str(caught.value)
    motion.save(tmp_path / "log.npz")
    with refuses("wrong-type", "not"):
        dl.Trajectory.load(tmp_path / "log.npz", "pendulum")


def test_a_run_that_cannot_be_written_is_not_lost(motion, tmp_path):
    with refuses("unwritable-file", kind=OSError):
        motion.save(tmp_path / "no" / "folder.npz")


def test_an_item_that_is_not_there_is_not_drawn(motion):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    with refuses("index-out-of-range", "2", "item"):
        motion.plot("q", item=2)
    axes = motion.plot("drift", item=(1,))
    assert len(axes.lines) == 1
    matplotlib.pyplot.close("all")
