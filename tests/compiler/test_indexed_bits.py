"""`np.take` and `np.add_at` with traced indices, in straight-line code and in loops: the same bits everywhere."""

import numpy as np
import pytest

import delassus as dl
import delassus.numpy as dnp
import single_bits as single
from c_code import check as check_c
from c_code import needs_compiler
from delassus.compiler import map as rolled_map
from delassus.compiler import scan, while_loop
from native_bits import check, every_width

TABLE = np.random.default_rng(6).normal(size=(20, 3))
INDICES = (0.0, 1.0, 2.7, 7.999, 8.0, 11.0, 12.0, 19.0, 20.0, 1e30, -1.0, -0.5, np.nan, np.inf, -np.inf, 2.0**31)


def take_from_state(x, i):
    """Rows of every kind: inputs in place and in steps, constants among them, values twice, results, of loops."""
    y = x * x[::-1] + 0.5
    mixed = dnp.concatenate([y[:5], dnp.array([1.5, 0.0, -2.0]), x[3:7], y[2:4]])
    sums, products = scan(lambda c, item: (c + item, c * item), 0.0, x)
    kept = rolled_map(lambda a: a * 2.0 + i, x)
    found = [dnp.take(row, i) for row in (x, x[::-1], x.reshape(3, 4).T.ravel(), y, mixed, products, kept, TABLE[:, 0])]
    return dnp.stack([*found, dnp.take(y, i + 1.0) * sums])


def take_in_loops(x, i):
    """Rows that a body carries, gets, captures or makes."""
    y = dnp.sin(x)

    def body(carry, item):
        row, place = item
        z = row + carry
        found = [dnp.take(r, place) for r in (carry, row, y, z, TABLE[:, 1])]
        return dnp.roll(carry, 1) + 0.1 * row, dnp.stack(found)

    stacks = (dnp.stack([x, 2.0 * x, y]), dnp.stack([i, i + 1.0, 2.0 * i]))
    carry, kept = scan(body, x, stacks)
    last = while_loop(lambda c: c[1] < 5.0, lambda c: (dnp.take(carry, c[1]) + c[0], c[1] + 1.0), (x[0], i), 9)
    wide = rolled_map(lambda place: dnp.take(TABLE[:, 2], place) + dnp.take(y, place), dnp.arange(7.0) + i)
    return dnp.concatenate([carry, kept.ravel(), dnp.stack(last), wide])


def add_to_state(x, i):
    """Arrays of every kind: inputs, results of arithmetic, constants, one that is needed again, chains."""
    y = x * x[::-1] + 0.5
    first = dnp.add_at(y, i, x[0])
    second = dnp.add_at(first, i + 1.0, first[3])
    third = dnp.add_at(dnp.add_at(np.arange(12.0), i, x[1]), second[2], 2.0)
    mixed = dnp.add_at(dnp.concatenate([y[:5], np.array([1.5, 0.0, -2.0]), x[3:7]]), 2.0 * i, i)
    return dnp.concatenate([first, second, third, mixed, y + dnp.take(second, i)])


def add_in_loops(x, i):
    """Arrays that a body carries and changes in place, captures, keeps, or reads after it has changed them."""
    y = dnp.sin(x).reshape(12, 1) * np.array([1.0, 2.0])

    def body(carry, item):
        table, total, steady = carry
        row = dnp.take(table, item, axis=0)
        table = dnp.add_at(table, item, 0.5 * row + total)
        table = dnp.add_at(table, item + 1.0, dnp.stack([row[1], total]))
        other = dnp.add_at(y, item, row)
        after = dnp.take(table, item, axis=0)
        return (table, total + after[0] * 0.1, dnp.add_at(steady, item, after[1])), (other[3], steady[2])

    (table, total, steady), kept = scan(body, (y, x[0], x), dnp.stack([i, i + 2.0, x[3], 0.5 * i]))

    def shift(c):
        return dnp.add_at(c[0], c[1], 1.0) + 0.0 * c[0][0], c[1] + 1.0

    last = while_loop(lambda c: c[1] < 6.0, shift, (x, i), 9)
    return dnp.concatenate([table.ravel(), dnp.stack([total]), steady, kept[0].ravel(), kept[1], last[0]])


KERNELS = {
    "take": dl.kernel("(12),()->(9)")(lambda model, x, i: take_from_state(x, i)),
    "take in loops": dl.kernel("(12),()->(36)")(lambda model, x, i: take_in_loops(x, i)),
    "add": dl.kernel("(12),()->(60)")(lambda model, x, i: add_to_state(x, i)),
    "add in loops": dl.kernel("(12),()->(61)")(lambda model, x, i: add_in_loops(x, i)),
}


def states(count, dtype=float):
    rng = np.random.default_rng(3)
    return rng.normal(size=(count, 12)).astype(dtype), np.resize([*INDICES, *np.arange(14.0)], count).astype(dtype)


@every_width
@pytest.mark.parametrize("chunk", [1, 7, 400])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_compiled_code_has_the_bits_of_the_interpreter(kernel, lanes, chunk):
    check(kernel, lanes, *states(37), chunk=chunk)


@pytest.mark.parametrize("lanes", single.WIDTHS)
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_compiled_code_in_float32_has_the_bits_of_the_interpreter(kernel, lanes):
    single.check(kernel, lanes, *states(37, np.float32), chunk=20)


@needs_compiler
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("chunk", [7, 400])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_c_has_the_bits_of_the_interpreter(kernel, chunk, dtype, tmp_path):
    check_c(kernel, tmp_path, *states(30, dtype), chunk=chunk, dtype=np.dtype(dtype))
