"""`delassus doctor`."""

from typer.testing import CliRunner

from delassus import doctor
from delassus.cli import app


def test_doctor_says_ok_on_a_sound_machine():
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 0
    assert "interpreter's bits" in " ".join(result.output.split())


def test_doctor_names_a_disagreement(monkeypatch):
    monkeypatch.setattr(doctor, "evaluate", lambda program, x, A, fma: (x + 1.0, x[:, 0]))
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 1
    assert "disagree" in result.output


def test_facts_name_the_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("DELASSUS_CACHE", str(tmp_path))
    assert str(tmp_path) in doctor.facts()["cache"]


def test_doctor_leaves_nothing_in_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("DELASSUS_CACHE", str(tmp_path))
    assert doctor.problem() == ""
    assert list(tmp_path.iterdir()) == []


def test_doctor_names_what_is_wrong_with_the_cache(monkeypatch, tmp_path):
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("DELASSUS_CACHE", str(file))
    assert "is not a folder" in doctor.problem()
