"""The demo runs, on a small number of pendulums, and its physics holds."""

import importlib.util
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent.parent / "examples" / "double_pendulum.py"


@pytest.fixture
def demo(monkeypatch, tmp_path):
    spec = importlib.util.spec_from_file_location("double_pendulum", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "PENDULUMS", 64)
    monkeypatch.setattr(module, "SECONDS", 1.0)
    monkeypatch.setattr(module, "OUTPUT", tmp_path)
    return module


def test_demo_saves_its_picture_and_reports_the_drift(demo, capsys):
    demo.main()
    assert "largest energy drift" in capsys.readouterr().out
    assert (demo.OUTPUT / "double_pendulum.png").stat().st_size > 10_000


def test_pendulums_keep_their_energy(demo):
    model = demo.DoublePendulum()
    x = demo.numpy.full((3, 4), 0.7)
    frames, _ = demo.roll(model, x)
    energies = demo.energy(model, frames)
    assert abs(energies - energies[0]).max() < 1e-9
