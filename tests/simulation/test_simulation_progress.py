"""The line that says how far a run is."""

import io

import numpy as np
import pytest

import delassus as dl
from delassus.common import progress

PENDULUM = dl.Simulation(dl.load("double_pendulum"), max_contacts=0)


class Terminal(io.StringIO):
    """A stream that somebody watches."""

    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(progress, "SILENCE", 0.0)
    monkeypatch.setattr(progress, "_INTERVAL", 0.0)


@pytest.mark.parametrize("items", [(), (3,)])
def test_a_line_counts_the_periods_and_goes_in_the_end(monkeypatch, items):
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    PENDULUM.run(np.zeros((*items, 2)), steps=100)
    assert "100 % of 100 periods" in stream.getvalue() and stream.getvalue().endswith(progress.CLEAR)


def test_nothing_is_written_where_nobody_watches(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    PENDULUM.run(np.zeros(2), steps=100)
    assert not stream.getvalue()
