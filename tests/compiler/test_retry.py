"""Attempts on what is left of a batch."""

import numpy as np
import pytest

from delassus.compiler.host.retry import Attempt, Batch, has_flag, retry, select_where


class Halving:
    """Takes a number of steps towards zero and flags what is not there; remembers how many items it was called for."""

    def __init__(self, steps: int) -> None:
        self.steps, self.items = steps, []

    def __call__(self, inputs, previous):
        x = inputs["x"] - self.steps * inputs["size"]
        self.items.append(np.shape(x))
        return x, np.where(x > 0.0, 1.0, 0.0)


def schedule(*steps):
    attempts = [Halving(n) for n in steps]
    return attempts, [Attempt(attempt, has_flag(1.0)) for attempt in attempts]


def batch(x, size=1.0):
    x = np.asarray(x, float)
    return Batch(x.shape, {"x": x, "size": size}, {"x": 0, "size": 0})


def test_only_what_is_left_is_solved_again():
    calls, attempts = schedule(1, 3, 9)
    x, flag = retry(attempts, batch([1.0, 3.0, 2.0, 8.0]))
    assert [call.items for call in calls] == [[(4,)], [(3,)], [(1,)]]
    np.testing.assert_array_equal(x, [0.0, 0.0, -1.0, -1.0])
    assert not flag.any()


def test_an_attempt_that_nobody_needs_is_not_made():
    calls, attempts = schedule(5, 9)
    retry(attempts, batch([1.0, 2.0]))
    assert calls[1].items == []


def test_batches_have_any_axes_and_inputs_broadcast():
    calls, attempts = schedule(1, 3)
    x, _ = retry(attempts, batch([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], size=np.array([[1.0], [2.0]])))
    np.testing.assert_array_equal(x, [[0.0, -1.0, 0.0], [-2.0, -1.0, 0.0]])
    assert calls[1].items == [(5,)]


def test_one_item_is_solved_again_as_it_is():
    calls, attempts = schedule(1, 3)
    x, _ = retry(attempts, batch(3.0))
    assert (float(x), calls[1].items) == (0.0, [()])


def test_an_empty_batch_has_empty_results():
    x, _ = retry(schedule(1, 3)[1], batch(np.zeros((0, 2))))
    assert x.shape == (0, 2)


def test_an_attempt_knows_the_results_so_far_and_says_what_is_kept():
    def closer(inputs, previous):
        return -previous[0], previous[1] * 0.0

    attempts = [*schedule(1)[1], Attempt(closer, has_flag(1.0), lambda old, new: select_where(old[0] > 2.0, new, old))]
    x, flag = retry(attempts, batch([1.0, 3.0, 5.0]))
    np.testing.assert_array_equal(x, [0.0, 2.0, -4.0])
    np.testing.assert_array_equal(flag, [0.0, 1.0, 0.0])


def test_results_from_before_can_skip_the_first_attempt():
    before = (np.array([7.0, 7.0]), np.array([1.0, 2.0]))
    x, flag = retry(schedule(3)[1], batch([3.0, 3.0]), results=before)
    np.testing.assert_array_equal(x, [0.0, 7.0])
    np.testing.assert_array_equal(flag, [0.0, 2.0])
    np.testing.assert_array_equal(before[0], [7.0, 7.0])


def test_results_are_written_to_given_arrays():
    out = (np.empty(2), np.empty(2))
    assert retry(schedule(1, 3)[1], batch([1.0, 3.0]), out=out) is out
    np.testing.assert_array_equal(out[0], [0.0, 0.0])


def test_an_attempt_that_fails_leaves_given_arrays_as_they_are():
    def fail(inputs, previous):
        raise ArithmeticError

    out = (np.full(2, 5.0), np.full(2, 5.0))
    with pytest.raises(ArithmeticError):
        retry([*schedule(1)[1], Attempt(fail, has_flag(1.0))], batch([1.0, 3.0]), out=out)
    np.testing.assert_array_equal(out, 5.0)


def test_arrays_that_do_not_fit_are_refused_before_any_is_written():
    out = (np.full(2, 5.0), np.empty(3))
    with pytest.raises(ValueError, match=r"the shapes \[\(2,\), \(3,\)\]; the results have \[\(2,\), \(2,\)\]"):
        retry(schedule(1)[1], batch([1.0, 3.0]), out=out)
    np.testing.assert_array_equal(out[0], 5.0)
