"""Named tuples through loops and branches: bodies get and give them, errors name their fields."""

from typing import Any, NamedTuple

import numpy as np
import pytest

import delassus as dl
import delassus.numpy as dnp
from delassus.compiler import cond, jvp, scan, while_loop
from delassus.compiler import map as rolled_map
from delassus.compiler.tracing.flow.bodies import LoopError


class Inner(NamedTuple):
    low: Any
    high: Any


class Carry(NamedTuple):
    x: Any
    range: Inner
    count: Any


class Swapped(NamedTuple):
    count: Any
    range: Any
    x: Any


def start(x):
    return Carry(x, Inner(x - 1.0, x + 1.0), dnp.array(0.0))


def advance(c):
    assert isinstance(c, Carry) and isinstance(c.range, Inner)
    return Carry(0.5 * c.x, Inner(c.range.low + 1.0, c.range.high), c.count + 1.0)


def flat(c):
    assert isinstance(c, Carry) and isinstance(c.range, Inner)
    return dnp.concatenate([c.x, c.range.low, c.range.high, dnp.stack([c.count])])


def in_while(x):
    return flat(while_loop(lambda c: c.count < 3.0, advance, start(x), 9))


def in_scan(x):
    def body(c, item):
        assert isinstance(item, Inner)
        return advance(c), Inner(item.low + c.count, item.high)

    last, kept = scan(body, start(x), Inner(x, 2.0 * x))
    assert isinstance(kept, Inner)
    return flat(last) + dnp.sum(kept.low)


def in_map(x):
    found = rolled_map(lambda item: Inner(item.high, item.low), Inner(x, 2.0 * x))
    return flat(Carry(found.low, found, dnp.array(0.0)))


def in_cond(x):
    return flat(cond(dnp.sum(x) > 1.0, advance, lambda c: c, start(x)))


@pytest.mark.parametrize("function", [in_while, in_scan, in_map, in_cond])
def test_a_named_tuple_keeps_its_type_traced_and_on_numbers(function):
    x = np.array([1.0, 2.0, 3.0])
    kernel = dl.kernel("(3)->(10)")(lambda model, x: function(x))
    np.testing.assert_array_equal(kernel(None, x), function(x))


@pytest.mark.parametrize("function", [in_while, in_scan])
def test_names_change_nothing_of_the_program(function):
    def plain(c):
        new = advance(Carry(c[0], Inner(*c[1]), c[2]))
        return new.x, tuple(new.range), new.count

    def unnamed(x):
        first = (x, (x - 1.0, x + 1.0), dnp.array(0.0))
        if function is in_while:
            last = while_loop(lambda c: c[2] < 3.0, plain, first, 9)
            return flat(Carry(last[0], Inner(*last[1]), last[2]))
        last, kept = scan(lambda c, i: (plain(c), (i[0] + c[2], i[1])), first, (x, 2.0 * x))
        return flat(Carry(last[0], Inner(*last[1]), last[2])) + dnp.sum(kept[0])

    def digest(f):
        return dl.kernel("(3)->(10)")(lambda model, x: f(x)).program(None).digest

    assert digest(function) == digest(unnamed)


def test_a_body_may_return_a_plain_tuple():
    def f(model, x):
        return flat(while_loop(lambda c: c.count < 2.0, lambda c: (c.x, tuple(c.range), c.count + 1.0), start(x), 9))

    assert dl.kernel("(3)->(10)")(f)(None, np.zeros(3))[-1] == 2.0


@pytest.mark.parametrize("traced", [True, False], ids=["traced", "on numbers"])
@pytest.mark.parametrize(
    ("body", "text"),
    [
        (lambda c: c._replace(x=c.x[:2]), r"carried `x` has shape \(3,\) before and \(2,\) after"),
        (lambda c: c._replace(range=Inner(c.x > 0.0, c.x)), "carried `range.low` holds numbers before and booleans"),
        (lambda c: Swapped(c.count, c.range, c.x), r"Carry\(x, range, count\) to carry, and returned Swapped\(count, "),
        (lambda c: c._replace(range=c.x), r"Inner\(low, high\) to carry as `range`, and returned one array"),
    ],
    ids=["shape", "kind", "another type", "inside"],
)
def test_what_cannot_be_carried_is_named(body, text, traced):
    def f(model, x):
        return while_loop(lambda c: c.count < 2.0, body, start(x), 9).x

    with pytest.raises(LoopError, match=text):
        if traced:
            dl.kernel("(3)->(3)")(f).program(None)
        else:
            f(None, np.zeros(3))


def test_a_branch_names_what_differs():
    def f(model, x):
        return cond(x[0] > 0.0, lambda: start(x), lambda: start(x)._replace(count=x)).x

    with pytest.raises(LoopError, match="cond: `count` of what the function returned holds numbers of shape"):
        dl.kernel("(3)->(3)")(f).program(None)


def test_derivatives_have_the_type_of_what_they_belong_to():
    value, tangent = jvp(advance, (start(np.ones(3)),), (start(np.ones(3)),))
    assert isinstance(value, Carry) and isinstance(tangent, Carry)
    np.testing.assert_array_equal(tangent.x, 0.5 * np.ones(3))
