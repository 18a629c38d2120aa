"""`np.take` with traced indices: NumPy's elements with mode="clip", never outside, and the same bits everywhere."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import delassus as dl
import delassus.numpy as dnp
from delassus.compiler import grad, jvp, vjp
from delassus.compiler import map as rolled_map
from delassus.compiler.backends.interpreter import evaluate
from delassus.compiler.backends.schedule import schedule
from delassus.compiler.backends.steps import Chunk
from delassus.compiler.functions.lower import lower
from delassus.compiler.tracing.operations.gather import FEW
from how_many import examples
from native_bits import FULL, HOST, WIDTHS, check, every_width, numbers
from refusals import refuses

RNG = np.random.default_rng(6)
TABLE = RNG.normal(size=(20, 3))
INDICES = np.array([0.0, 1.0, 2.7, 7.999, 8.0, 11.0, 19.0, 20.0, 1e30, -1.0, -0.5, np.nan, np.inf, -np.inf, 2.0**31])


def clipped(index, size):
    """What an index counts as."""
    return np.where(index > 0.0, np.minimum(np.nan_to_num(index), size - 1), 0.0).astype(int)


# --- what it means --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, FEW, FEW + 1, 20])
@pytest.mark.parametrize("traced", [True, False], ids=["of the state", "constant"])
def test_an_index_finds_the_element_and_stays_inside(count, traced):
    x = RNG.normal(size=count)

    def f(model, i, x):
        return dnp.take(x if traced else x_plain, i)

    x_plain = x
    (got,) = evaluate(dl.kernel(f"(),({count})->()")(f).program(None), INDICES, x)
    np.testing.assert_array_equal(got, x[clipped(INDICES, count)])


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("shape", [(), (2,), (2, 2)])
@pytest.mark.parametrize("plain", [True, False], ids=["constant", "of the state"])
def test_axes_are_those_of_numpy(axis, shape, plain):
    table, index = RNG.normal(size=(11, 3, 10)), RNG.integers(0, 3, shape)
    expected = np.take(table, index, axis=axis)

    def f(model, i, x):
        return dnp.take(table if plain else x, i, axis=axis)

    sizes = [",".join(map(str, s)) for s in (shape, table.shape, expected.shape)]
    got = evaluate(dl.kernel("({}),({})->({})".format(*sizes))(f).program(None), index.astype(float), table)
    np.testing.assert_array_equal(got[0], expected)


def test_plain_code_takes_what_compiled_code_takes():
    f = dl.kernel("(15),(20)->(15),(15,3),(15)")(
        lambda model, i, x: (dnp.take(x, i), dnp.take(TABLE, i, axis=0), dnp.take(x, i, mode="wrap"))
    )
    finite = np.where(np.abs(INDICES) < 1e9, INDICES, 3.0)
    for got, expected in zip(
        f(None, finite, TABLE.ravel()[:20]), f.python(None, finite, TABLE.ravel()[:20]), strict=True
    ):
        np.testing.assert_array_equal(got, expected)


def test_indices_outside_may_be_wrapped():
    f = dl.kernel("(4)->(4)")(lambda model, i: dnp.take(np.arange(10.0), i, mode="wrap"))
    np.testing.assert_array_equal(f(None, [-1.0, 10.0, 23.0, 5.0]), [9.0, 0.0, 3.0, 5.0])


def test_truth_values_can_be_taken():
    def f(model, i, x):
        return dnp.where(dnp.take(x > 0.5, i), 1.0, 2.0), dnp.where(dnp.take(np.arange(20) > 5, i), 1.0, 2.0)

    x = RNG.random(12)
    got = dl.kernel("(),(12)->(),()")(f)(None, np.arange(12.0), x)
    np.testing.assert_array_equal(got[0], np.where(x > 0.5, 1.0, 2.0))
    np.testing.assert_array_equal(got[1], np.where(np.arange(12) > 5, 1.0, 2.0))


@every_width
def test_a_position_that_all_lanes_share_takes_each_lane_its_own_element(lanes):
    pairs = RNG.integers(0, 12, (30, 2)).astype(float)

    def f(model, x, i):
        def product(pair):
            own = dnp.take(x, dnp.clip(i, 0.0, 11.0))  # differs from lane to lane
            return dnp.take(x, pair[0]) * dnp.take(x, 11.0 - pair[1]) + own * dnp.take(TABLE[:, 0], pair[0])

        return rolled_map(product, pairs)

    x, i = numbers(9, 12, seed=3), np.arange(9.0)
    plan = check(dl.kernel("(12),()->(30)")(f), lanes, x, i)
    a, b = pairs.astype(int).T
    expected = x[:, a] * x[:, 11 - b] + x[np.arange(9), np.arange(9)][:, None] * TABLE[a, 0]
    np.testing.assert_allclose(dl.kernel("(12),()->(30)")(f)(None, x, i), expected, rtol=1e-13)
    body = next(step.body for step in plan.steps if not isinstance(step, Chunk))
    taken = [n for n in body.program.nodes if n[0] == "gather"]
    assert [n[1] in body.uniform for n in taken].count(True) == 2


def test_a_height_field_is_interpolated():
    """Bilinear interpolation in a table, as a ground would be."""
    heights = RNG.normal(size=(30, 40))

    def height(model, x, y):
        i, j = dnp.clip(dnp.floor(x), 0.0, 28.0), dnp.clip(dnp.floor(y), 0.0, 38.0)
        s, t = x - i, y - j
        corners = [dnp.take(heights, (i + a) * 40.0 + (j + b)) for a in (0.0, 1.0) for b in (0.0, 1.0)]
        low, high = corners[0] * (1 - t) + corners[1] * t, corners[2] * (1 - t) + corners[3] * t
        return low * (1 - s) + high * s

    x, y = RNG.uniform(0, 29, 100), RNG.uniform(0, 39, 100)
    i, j = x.astype(int), y.astype(int)
    s, t = x - i, y - j
    expected = (heights[i, j] * (1 - t) + heights[i, j + 1] * t) * (1 - s)
    expected += (heights[i + 1, j] * (1 - t) + heights[i + 1, j + 1] * t) * s
    np.testing.assert_allclose(dl.kernel("(),()->()")(height)(None, x, y), expected, rtol=1e-12, atol=1e-12)


def deepest(model, depths, points):
    """The three deepest of some points, the deepest first."""
    order = dnp.argsort(-depths)[:3]
    return dnp.take(points, order, axis=0), dnp.take(depths, order)


@every_width
@pytest.mark.parametrize("chunk", [10, 400])
def test_the_deepest_of_several_points_are_found_by_every_state_for_itself(lanes, chunk):
    kernel = dl.kernel("(12),(12,4)->(3,4),(3)")(deepest)
    depths, points = numbers(19, 12), numbers(19, 12, 4, seed=1)
    check(kernel, lanes, depths, points, chunk=chunk)
    order = np.argsort(np.where(np.abs(depths) < 1e-307, 0.0, -depths), kind="stable")[:, :3]
    got, _ = evaluate(kernel.program(None), depths, points)
    expected = np.take_along_axis(points, order[..., None], 1)
    np.testing.assert_array_equal(got, np.where(np.abs(expected) < 1e-307, 0.0, expected))


@settings(max_examples=examples(200))
@given(st.floats(), st.integers(1, 40))
def test_no_index_leaves_the_array(index, count):
    f = dl.kernel(f"(),({count})->(),()")(lambda model, i, x: (dnp.take(x, i), dnp.take(np.arange(float(count)), i)))
    got = evaluate(f.program(None), index, np.arange(float(count)))
    assert [float(x) for x in got] == [float(clipped(np.float64(index), count))] * 2


# --- the same bits --------------------------------------------------------------------------------------------------


@settings(max_examples=examples(40))
@given(
    rows=st.lists(st.lists(st.integers(-3, 11), min_size=1, max_size=14), min_size=1, max_size=5),
    lanes=st.sampled_from(WIDTHS),
    chunk=st.sampled_from([1, 3, 400]),
    host=st.sampled_from([HOST, FULL]),
    seed=st.integers(0, 99),
)
def test_rows_of_any_values_have_the_bits_of_the_interpreter(rows, lanes, chunk, host, seed):
    """A row is given by what is in it: constants, inputs, values computed from what was taken before."""

    def f(model, x):
        values, taken = [-1.5, 0.0, 7.0, *x, *(2.0 * x + 1.0)], x[0]
        for row in rows:
            taken = dnp.take(dnp.stack([values[k + 3] for k in row]), dnp.abs(taken)) + x[1]
            values[3 + (row[0] % 12)] = taken
        return taken

    check(dl.kernel("(6)->()")(f), lanes, numbers(19, 6, seed=seed), chunk=chunk, host=host)


# --- what it costs --------------------------------------------------------------------------------------------------


def moves(function, signature):
    plan = schedule(lower(dl.kernel(signature)(function).program(None), True))
    return sum(
        len(slots)
        for step in plan.steps
        if isinstance(step, Chunk) and not step.values
        for slots in step.stores.values()
    )


def test_values_are_chosen_from_where_they_lie():
    assert moves(lambda model, x, i: dnp.take(x[::-1], i) + dnp.take(x[1::3], i), "(40),()->()") == 0


def test_computed_values_are_put_where_they_are_chosen_from():
    assert moves(lambda model, x, i: dnp.take(dnp.sin(x), i) + dnp.take(dnp.sin(x), 2.0 * i), "(40),()->()") == 0


def test_a_table_of_constants_is_no_part_of_the_graph():
    program = dl.kernel("()->()")(lambda model, i: dnp.take(np.arange(100_000.0), i)).program(None)
    assert len(program.nodes) == 3
    assert len(program.constants) == 1


def test_tables_tell_programs_apart():
    def digest(table):
        return dl.kernel("()->()")(lambda model, i: dnp.take(table, i)).program(None).digest

    assert digest(TABLE[:, 0]) == digest(TABLE[:, 0].copy()) != digest(TABLE[:, 1])


# --- derivatives ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [5, 12])
def test_the_derivative_belongs_to_the_element_that_is_taken(count):
    x = RNG.normal(size=count)
    slope = grad(lambda x: dnp.take(dnp.sin(x), 3.0 + 0.0 * x[0]))(x)
    expected = np.zeros(count)
    expected[3] = math.cos(x[3])
    np.testing.assert_allclose(slope, expected, rtol=1e-14)


@pytest.mark.parametrize("count", [5, 12])
def test_what_is_not_taken_cannot_spoil_a_derivative(count):
    def f(x):
        return dnp.take(dnp.sqrt(x), x[0])

    x = np.zeros(count)
    x[0], x[2] = 2.0, 4.0
    assert grad(f)(x).tolist() == [0.0, 0.0, 0.25, *[0.0] * (count - 3)]
    assert jvp(f, (x,), (np.ones(count),))[1] == 0.25


def test_second_derivatives_pass_through():
    def f(x):
        return dnp.take(x**3, dnp.floor(x[1])) * x[0]

    x = np.arange(1.0, 13.0)
    _, pullback = vjp(lambda x: grad(f)(x) @ np.arange(12.0), x)
    expected = np.zeros(12)  # f = x₂³ x₀, and the sum is 2·3 x₂² x₀
    expected[0], expected[2] = 6.0 * x[2] ** 2, 12.0 * x[2] * x[0]
    np.testing.assert_allclose(pullback(1.0)[0], expected, rtol=1e-13)


def test_a_table_of_constants_has_the_derivative_zero():
    assert grad(lambda i: dnp.take(TABLE[:, 0], i))(3.0) == 0.0


# --- what is refused ------------------------------------------------------------------------------------------------


def refused(function, error, message):
    with pytest.raises(error, match=message):
        dl.kernel("(3)->()")(lambda model, x: function(x)).program(None)


def test_an_empty_array_has_nothing_to_take():
    refused(lambda x: dnp.take(x[:0], x[0]), IndexError, "no element can be taken")


def test_a_table_holds_real_numbers():
    refused(lambda x: dnp.take(np.ones(20, complex), x[0]), TypeError, "not one of dtype complex128")


def test_modes_are_those_of_numpy():
    refused(lambda x: dnp.take(x, x[0], mode="nearest"), ValueError, "not 'nearest'")


def test_a_table_that_float32_cannot_count_is_refused():
    program = dl.kernel("()->()")(lambda model, i: dnp.take(np.zeros(2**24 + 2), i)).program(None)
    with refuses("kernel-too-large", "16777216"):
        evaluate(program, 0.0, dtype=np.float32)
