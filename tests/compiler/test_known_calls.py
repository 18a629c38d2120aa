"""Calls of a form that was seen before take a short way, and mean what they always meant."""

import gc

import numpy as np
import pytest

import delassus as dl

ROBOT = dl.load("double_pendulum")
HELD = dl.Mechanism(ROBOT, [dl.Point("tip", rows="x")])
Q, V, TAU = np.array([[0.3, 0.4], [1.0, -2.0], [0.5, 0.1]])
OTHER = np.array([0.9, -0.4])


@dl.kernel("(n),(n)->(n)", inputs={"more": "(n)"})
def mixed(model, x, y, *, sign=1.0, times=2, axis=(0, 1), more=None):
    result = np.copysign(1.0, sign) * times * (x - 3.0 * y) + axis[0]
    return result if more is None else result + 10.0 * more


class Pair(tuple):
    n = 2


PAIR = Pair()


@pytest.mark.parametrize("again", range(2))
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 2 * (Q - 3 * V)),
        ({"times": 3}, 3 * (Q - 3 * V)),
        ({"times": 3.0}, 3 * (Q - 3 * V)),
        ({"sign": -0.0}, -2 * (Q - 3 * V)),
        ({"sign": 0.0}, 2 * (Q - 3 * V)),
        ({"axis": (5, 6)}, 2 * (Q - 3 * V) + 5),
        ({"axis": np.array([7, 6])}, 2 * (Q - 3 * V) + 7),
        ({"more": TAU}, 2 * (Q - 3 * V) + 10 * TAU),
        ({"more": None}, 2 * (Q - 3 * V)),
        ({"more": 0.5}, 2 * (Q - 3 * V) + 5),
        ({"more": 2}, 2 * (Q - 3 * V) + 20),
        ({"more": TAU, "times": 3}, 3 * (Q - 3 * V) + 10 * TAU),
        ({"times": 3, "more": TAU}, 3 * (Q - 3 * V) + 10 * TAU),
    ],
    ids=str,
)
def test_options_and_optional_inputs(options, expected, again):
    np.testing.assert_allclose(mixed(PAIR, Q, V, **options), expected)


@pytest.mark.parametrize("again", range(2))
def test_arrays_by_name_find_their_places(again):
    expected = dl.caba(HELD, Q, V, TAU)[0]
    np.testing.assert_array_equal(dl.caba(HELD, tau=TAU, v=V, q=Q)[0], expected)
    np.testing.assert_array_equal(dl.caba(HELD, Q, tau=TAU, v=V)[0], expected)
    np.testing.assert_array_equal(dl.caba(HELD, Q, V, tau=TAU)[0], expected)


@pytest.mark.parametrize("again", range(2))
def test_single_precision_is_a_form_of_its_own(again):
    assert dl.prox_pv(HELD, Q, V, TAU, dtype=np.float32, iterations=2)[0].dtype == np.float32
    assert dl.prox_pv(HELD, Q, V, TAU, iterations=2)[0].dtype == np.float64


def test_a_tuple_that_takes_the_place_of_another_is_not_taken_for_it():
    for offset in range(200):
        found = mixed(PAIR, Q, V, axis=(offset % 7, 1))
        np.testing.assert_allclose(found, 2 * (Q - 3 * V) + offset % 7)
        gc.collect(0)


def test_bad_calls_are_refused_however_often():
    for _ in range(3):
        with pytest.raises(TypeError, match="needs the array 'tau'"):
            dl.caba(HELD, Q, v=V)
        with pytest.raises(TypeError, match="no option 'iteration'"):
            dl.caba(HELD, Q, V, TAU, iteration=2)
