"""The k smallest of n numbers: as a stable sort gives them, with ties, NaN and infinities."""

import numpy
import pytest

import delassus as dl
from delassus.geometry.nearest import nearest, sorting_operations


@dl.kernel("(n)->(k),()")
def _nearest(sizes, x):
    return nearest(x, sizes.k)


class Sizes(tuple):
    n = property(lambda self: self[0])
    k = property(lambda self: self[1])


def expected(x, k):
    """By NumPy's stable sort, which has NaN last; NaN and infinity count as one number."""
    order = numpy.argsort(numpy.where(numpy.isfinite(x), x, 1e30), -1, stable=True)
    return numpy.sort(order[..., :k], -1), numpy.take_along_axis(x, order[..., k : k + 1], -1)[..., 0]


@pytest.mark.parametrize(("n", "k"), [(40, 1), (90, 8), (137, 24), (300, 5)])
@pytest.mark.parametrize("levels", [5, 10**9])
def test_the_smallest_are_those_of_a_stable_sort(n, k, levels):
    x = numpy.random.default_rng(n).integers(0, levels, (50, n)) / 7.0
    places, following = _nearest(Sizes((n, k)), x)
    numpy.testing.assert_array_equal(places, expected(x, k)[0])
    numpy.testing.assert_array_equal(following, expected(x, k)[1])


def test_nan_and_infinity_come_last_in_their_order():
    x = numpy.random.default_rng(0).normal(size=(20, 60))
    x[:, 3:60:2], x[:, 6] = numpy.nan, numpy.inf
    numpy.testing.assert_array_equal(_nearest(Sizes((60, 40)), x)[0], expected(x, 40)[0])


@pytest.mark.parametrize("k", [12, 13, 100])
def test_as_many_as_there_are_are_all(k):
    places, following = nearest(numpy.arange(12.0)[::-1].copy(), k)
    numpy.testing.assert_array_equal(places, numpy.arange(12.0))
    assert following == numpy.inf


def test_all_but_one_can_be_taken():
    x = numpy.random.default_rng(1).integers(0, 4, (30, 50)) * 1.0
    numpy.testing.assert_array_equal(_nearest(Sizes((50, 49)), x)[0], expected(x, 49)[0])


def test_the_code_of_many_numbers_is_a_small_part_of_that_of_sorting():
    program = _nearest.program(Sizes((1138, 16)))
    assert sum(program.count().values()) < 0.1 * sorting_operations(1138)
