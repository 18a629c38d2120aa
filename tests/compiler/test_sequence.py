"""Calls of a kernel in a row, each on the next rows of its arrays."""

import numpy as np
import pytest

import delassus.numpy as dnp
from delassus import kernel


@kernel("(3),()->(3),()")
def walk(model, x, limit):
    """One step, and whether it has gone too far."""
    y = 2.0 * x + 1.0
    return y, dnp.where(y[0] > limit, 1.0, 0.0)


def rows(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States (count + 1, 3), of which the first is zero, a limit that is out of reach, and marks (count,)."""
    return np.zeros((count + 1, 3)), np.array(1e9), np.full(count, np.nan)


def test_each_call_goes_on_from_the_last():
    x, limit, mark = rows(5)
    calls = walk.sequence(None, x[:-1], limit, x[1:], mark, stop=3)
    assert calls(5) == calls.most == 5
    np.testing.assert_array_equal(x[:, 0], 2.0 ** np.arange(6) - 1.0)
    assert not mark.any()


def test_a_mark_ends_the_sequence():
    x, limit, mark = rows(8)
    limit[...] = 6.5
    assert walk.sequence(None, x[:-1], limit, x[1:], mark, stop=3)(8) == 3
    assert mark[2] == 1.0
    assert np.isnan(mark[3:]).all()
    assert not x[4:].any()


def test_a_sequence_begins_anew_with_each_call_of_it():
    x, limit, mark = rows(3)
    calls = walk.sequence(None, x[:-1], limit, x[1:], mark, stop=3)
    calls(2)
    x[0] = 10.0
    calls(1)
    np.testing.assert_array_equal(x[:3, 0], [10.0, 21.0, 3.0])


@pytest.mark.parametrize("count", [0, -1, 4])
def test_more_calls_than_rows_are_refused(count):
    x, limit, mark = rows(3)
    with pytest.raises(ValueError, match=f"{count} calls of a sequence that has rows for 3"):
        walk.sequence(None, x[:-1], limit, x[1:], mark, stop=3)(count)


def test_arrays_of_another_shape_are_refused():
    x, limit, mark = rows(3)
    with pytest.raises(ValueError, match="has shape"):
        walk.sequence(None, x[:-1, :2], limit, x[1:], mark, stop=3)
