"""The examples run, on small numbers of robots, and their physics holds."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def example(monkeypatch, tmp_path):
    """Imports an example by its name, with other constants and a folder of its own for pictures."""

    def load(name, **constants):
        monkeypatch.syspath_prepend(EXAMPLES)
        spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for constant, value in {"OUTPUT": tmp_path, **constants}.items():
            monkeypatch.setattr(module, constant, value)
        return module

    return load


@pytest.fixture
def pendulums(example):
    return example("double_pendulum", PENDULUMS=64, SECONDS=1.0)


@pytest.fixture
def loops(example):
    return example("closed_loops", STATES=64, ROBOTS=2, SECONDS=1.0)


def test_pendulums_save_their_picture_and_report_the_drift(pendulums, capsys):
    pendulums.main()
    assert "largest energy drift" in capsys.readouterr().out
    assert (pendulums.OUTPUT / "double_pendulum.png").stat().st_size > 10_000


def test_pendulums_keep_their_energy(pendulums):
    model = pendulums.DoublePendulum()
    x = pendulums.numpy.full((3, 4), 0.7)
    frames, _ = pendulums.roll(model, x)
    energies = pendulums.energy(model, frames)
    assert abs(energies - energies[0]).max() < 1e-9


def test_the_demo_of_loops_prints_a_row_for_each_method_and_saves_its_pictures(loops, capsys):
    loops.main(standing=[loops.standing_quadruped], hanging=[loops.hanging_biped])
    printed = capsys.readouterr().out
    assert all(f"\n  {method} " in printed for method in ("caba", "prox_pv", "prox_ltl", "prox_ltls", "kkt"))
    assert "drift corrected" in printed
    for picture in ("closed_loops_drift.png", "closed_loops_motion.png"):
        assert (loops.OUTPUT / picture).stat().st_size > 10_000


def test_drift_correction_keeps_the_loops_of_a_delta_closed_and_its_energy(loops):
    mechanism, q = loops.hanging_delta()
    motion = loops.roll(mechanism, q, corrected=True)
    assert motion.error.max() < 1e-12
    assert abs(motion.energy - motion.energy[0]).max() < 1e-3 * motion.kinetic.max()


def test_every_way_to_treat_drift_does_what_the_guide_says(example):
    drift = example("drift", SECONDS=1.0)
    motions = {way: drift.simulate(way) for way in drift.WAYS}
    off = {way: log.drift.max() for way, log in motions.items()}
    assert off["no correction"] > off["Baumgarte"] > off["SVD at the last q"] > off["SVD at the estimate"]
    assert off["SVD at the estimate"] < 1e-9 and off["metric of M"] < 1e-12
    assert off["velocities"] > 1e-6 and motions["velocities"].velocity_drift.max() < 1e-12
    drift.draw(motions, drift.OUTPUT / "drift.svg")
    assert (drift.OUTPUT / "drift.svg").stat().st_size > 10_000


def test_the_linkages_of_the_guide_are_drawn(example):
    drawings = example("draw_linkages")
    drawings.main()
    named = {"four_bar", "delta", "stewart", "biped_leg", "hoeken", "linkages"}
    assert {picture.stem for picture in drawings.OUTPUT.glob("*.svg")} == named


def test_a_four_bar_comes_back_to_its_path(example, capsys):
    tracking = example("track_loops", SECONDS=1.0)
    tracking.main([tracking.four_bar])
    assert "off the path at first" in capsys.readouterr().out
    assert (tracking.OUTPUT / "track_loops.svg").stat().st_size > 10_000
    assert_damped(tracking, tracking.four_bar())


@pytest.mark.slow
def test_a_delta_robot_comes_back_to_its_path(example):
    tracking = example("track_loops", SECONDS=0.5)
    assert_damped(tracking, tracking.delta())


def assert_damped(tracking, robot):
    """Errors go as those of a mass on a spring and a damper, which is what was asked for, and loops stay closed."""
    log = tracking.simulate(robot)
    off, rate, t = tracking.errors(robot, log), tracking.RATE, log.time[:, None]
    slip = -robot.path(0.0)[1]
    expected = (off[0] + (slip + rate * off[0]) * t) * np.exp(-rate * t)
    np.testing.assert_allclose(off, expected, atol=1e-7)
    assert log.drift.max() < 1e-10


def test_robots_that_are_pushed_come_to_rest(example):
    balance = example("balance", SECONDS=3.0, ROBOTS=6)
    regulator = balance.cart_pole()
    log = balance.simulate(regulator, *balance.pushed(regulator, 0.3))
    off = balance.distance(regulator, log)
    assert np.all(off[-1] < 0.05 * off[0])
