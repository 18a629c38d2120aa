"""Sorting networks: the order that NumPy finds, NaN last, and the same bits everywhere."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import delassus as dl
import delassus.numpy as dnp
import single_bits as single
from c_code import check as check_c
from c_code import needs_compiler, normal_numbers
from delassus.compiler import jacobian
from delassus.compiler.backends.interpreter import evaluate
from delassus.compiler.tracing.operations.sorting import network
from how_many import examples
from native_bits import check, every_width, numbers


def orders(n):
    def f(model, x):
        return dnp.sort(x), dnp.argsort(x), dnp.argmin(x), dnp.argmax(x)

    return dl.kernel(f"({n})->({n}),({n}),(),()")(f)


@pytest.mark.parametrize("n", range(1, 13))
def test_the_network_sorts_every_row_of_zeros_and_ones(n):
    """What sorts all of these sorts everything."""
    rows = np.array(list(product([0, 1], repeat=n)))
    for i, j in network(n):
        rows[:, [i, j]] = np.sort(rows[:, [i, j]])
    np.testing.assert_array_equal(rows, np.sort(rows))


FEW = st.sampled_from([0.0, 1.0, 1.0, -1.0, 2.5, np.inf, -np.inf, np.nan, np.nan])


@settings(max_examples=examples(300))
@given(st.lists(FEW | st.floats(-10, 10, allow_subnormal=False), min_size=1, max_size=20).map(np.array))
def test_orders_are_those_of_numpy(x):
    got = evaluate(orders(x.size).program(None), x)
    for g, e in zip(got, (np.sort(x), np.argsort(x, kind="stable"), np.argmin(x), np.argmax(x)), strict=True):
        np.testing.assert_array_equal(g, e)


@every_width
@pytest.mark.parametrize("chunk", [7, 400])
def test_compiled_code_has_the_bits_of_the_interpreter(lanes, chunk):
    check(orders(9), lanes, numbers(37, 9), chunk=chunk)


@pytest.mark.parametrize("lanes", single.WIDTHS)
def test_compiled_code_in_float32_has_the_bits_of_the_interpreter(lanes):
    single.check(orders(9), lanes, single.numbers(37, 9))


@needs_compiler
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_c_has_the_bits_of_the_interpreter(dtype, tmp_path):
    check_c(orders(9), tmp_path, normal_numbers(40, 9).astype(dtype), dtype=np.dtype(dtype))


def test_what_is_not_used_of_the_order_costs_nothing():
    def operations(k):
        program = dl.kernel(f"(16)->({k})")(lambda model, x: dnp.sort(x)[:k]).program(None)
        return sum(program.count().values())

    assert operations(2) < 0.75 * operations(16)


def test_the_derivative_of_a_sorted_row_is_its_permutation():
    J = jacobian(dnp.sort)(np.array([3.0, 1.0, 2.0]))
    np.testing.assert_array_equal(J, [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])


def test_positions_have_the_derivative_zero():
    J = jacobian(lambda x: dnp.argsort(x) + dnp.argmin(x))(np.array([3.0, 1.0, 2.0]))
    np.testing.assert_array_equal(J, 0.0)


@pytest.mark.parametrize("function", [dnp.argmin, dnp.argmax])
def test_no_elements_have_no_extreme(function):
    with pytest.raises(ValueError, match="of no elements"):
        dl.kernel("(2)->()")(lambda model, x: function(x[:0])).program(None)


def test_fields_are_refused():
    with pytest.raises(TypeError, match="they have no fields"):
        dl.kernel("(2)->(2)")(lambda model, x: dnp.sort(x, order="a")).program(None)
