"""What is said while a kernel compiles."""

import io
import logging
import time

import numpy as np
import pytest

import delassus as dl
from delassus.compiler.backends import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def opened(monkeypatch):
    """A terminal as the error stream."""
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(progress, "DELAY", 0.01)
    return stream


def test_a_line_says_what_is_compiled_and_goes_again(monkeypatch):
    terminal = opened(monkeypatch)
    with progress.compiling("aba for one state", 50_000):
        while "aba" not in terminal.getvalue():
            time.sleep(0.001)
    assert terminal.getvalue() == "Delassus compiles aba for one state: 50000 operations, about 2 s …\r\x1b[K"


def test_a_line_says_that_a_function_is_traced(monkeypatch):
    terminal = opened(monkeypatch)
    with progress.tracing("aba"):
        while "aba" not in terminal.getvalue():
            time.sleep(0.001)
    assert terminal.getvalue() == "Delassus traces aba …\r\x1b[K"


def test_cores_share_the_time(monkeypatch):
    terminal = opened(monkeypatch)
    with progress.compiling("aba for batches", 250_000, cores=5):
        while "aba" not in terminal.getvalue():
            time.sleep(0.001)
    assert "about 2 s" in terminal.getvalue()


def test_a_terminal_that_is_closed_is_no_problem(monkeypatch):
    terminal = opened(monkeypatch)
    with progress.tracing("aba"):
        terminal.close()
        time.sleep(0.03)
    with progress.tracing("aba"):
        pass


def test_the_line_goes_also_after_an_exception(monkeypatch):
    terminal = opened(monkeypatch)
    with pytest.raises(KeyboardInterrupt), progress.compiling("aba for one state", 50_000):
        while "aba" not in terminal.getvalue():
            time.sleep(0.001)
        raise KeyboardInterrupt
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_what_is_done_at_once_is_not_worth_a_word(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    with progress.compiling("aba for one state", 10):
        pass
    assert stream.getvalue() == ""


def test_nothing_is_written_where_nobody_reads(monkeypatch):
    for stream in (io.StringIO(), None):
        monkeypatch.setattr("sys.stderr", stream)
        monkeypatch.setattr(progress, "DELAY", 0.0)
        with progress.compiling("aba for one state", 50_000):
            time.sleep(0.01)
        assert stream is None or stream.getvalue() == ""


def test_the_log_tells_what_was_compiled(monkeypatch, caplog):
    monkeypatch.setenv("DELASSUS_CACHE", "off")
    tripled = dl.kernel("(3)->(3)")(lambda model, x: 3.0 * x)
    tripled.function.__name__ = tripled.name = "tripled"
    with caplog.at_level(logging.DEBUG, logger="delassus"):
        tripled(None, np.ones(3))
    started, done = caplog.messages
    assert started.startswith("compiling tripled for one state: ")
    assert done.startswith("compiled tripled for one state: ")
    assert [record.levelno for record in caplog.records] == [logging.DEBUG, logging.INFO]
