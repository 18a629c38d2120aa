"""Results that are written past the caches: every number in its place, and nothing else written."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import delassus as dl
from delassus.compiler.backends.llvm import streaming
from delassus.compiler.host import runtime
from native_bits import compile_program, every_width

ROW = streaming.SMALLEST_ROW


def doubling(size):
    """A kernel of one number whose output is a long row."""

    def f(model, x):
        return x * np.arange(1.0, size + 1.0)

    return dl.kernel(f"()->({size})")(f)


@pytest.fixture(autouse=True)
def _stream_everything(monkeypatch):
    monkeypatch.setattr(runtime, "STREAM_BYTES", 0)


@every_width
@settings(max_examples=6, deadline=None, database=None)
@given(
    size=st.integers(ROW, ROW + 300),
    states=st.integers(2, 20),
    offset=st.integers(0, 8),
    gap=st.integers(0, 8),
)
def test_rows_of_any_length_and_place_are_filled_and_nothing_around_them(lanes, size, states, offset, gap):
    x = np.random.default_rng(size).normal(size=states)
    memory = np.full(offset + states * (size + gap), np.nan)
    rows = memory[offset:].reshape(states, size + gap)
    compile_program(doubling(size).program(None), lanes)(x, out=rows[:, :size])
    np.testing.assert_array_equal(rows[:, :size], np.outer(x, np.arange(1.0, size + 1.0)))
    assert np.isnan(rows[:, size:]).all()
    assert np.isnan(memory[:offset]).all()


@every_width
@pytest.mark.parametrize("rest", range(1, 20))
def test_short_rests_of_rows_leave_the_next_row_alone(lanes, rest):
    """Rows in an array are at all distances from the boundaries of vectors."""
    x, size = np.arange(1.0, 18.0), ROW + rest
    rows = compile_program(doubling(size).program(None), lanes)(x)
    np.testing.assert_array_equal(rows, np.outer(x, np.arange(1.0, size + 1.0)))


def test_single_precision_is_streamed_as_well():
    x = np.random.default_rng(0).normal(size=21).astype(np.float32)
    made = doubling(ROW + 5).specialize(None, dtype=np.float32)(x)
    np.testing.assert_array_equal(made, np.outer(x, np.arange(1.0, ROW + 6.0, dtype=np.float32)))
