"""The demo, with few robots for a short time."""

from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_demo_prints_a_table_and_writes_pictures_and_films(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(EXAMPLES)
    demo = __import__("drop")
    monkeypatch.setattr(demo, "ROBOTS", 8)
    monkeypatch.setattr(demo, "SECONDS", 0.12)
    monkeypatch.setattr(demo, "OUTPUT", tmp_path)
    demo.main()
    printed = capsys.readouterr().out
    assert "quadruped" in printed and "biped" in printed and "steps/s" in printed
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {
        f"{name}.{kind}" for name in ("quadruped", "biped") for kind in ("strip.png", "forces.png", "html")
    }
