"""What kernels are called with: arrays by name, options that are arrays, models that stand for others."""

from dataclasses import dataclass

import numpy as np
import pytest

import delassus as dl
from delassus.compiler.host.kernel import Kernel
from delassus.model.generators import random_tree
from refusals import refuses

X, Y = np.array([1.0, -2.0, 3.5]), np.array([0.5, 4.0, -1.0])


@dl.kernel("(3),(3)->(3)", inputs={"offset": "(3)"})
def weighted(model, x, y, *, weight=2.0, offset=None):
    total = x + weight * y
    return total if offset is None else total + offset


@dl.kernel("(3),(3)->(3)")
def by_name(model, x, y):
    return weighted(model, y=y, x=x)


@dl.kernel("(3),(3)->(3)")
def half_by_name(model, x, y):
    return weighted(model=model, x=x, y=y, weight=3.0)


CALLS = {"call": weighted, "python": weighted.python}


# Arrays by name.


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_arrays_may_be_given_by_name(call):
    np.testing.assert_array_equal(call(None, y=Y, x=X), X + 2.0 * Y)
    np.testing.assert_array_equal(call(None, X, y=Y), X + 2.0 * Y)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_model_may_be_given_by_name(call):
    np.testing.assert_array_equal(call(model=None, x=X, y=Y), X + 2.0 * Y)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_arrays_by_name_go_with_options_and_optional_inputs(call):
    np.testing.assert_array_equal(call(None, X, offset=Y, y=Y, weight=3.0), X + 3.0 * Y + Y)


def test_arrays_by_name_go_with_out_and_dtype():
    out = np.zeros((4, 3), np.float32)
    found = weighted(None, y=Y, x=np.tile(X, (4, 1)), out=out, dtype=np.float32)
    assert found is out
    np.testing.assert_array_equal(out, np.tile(X + 2.0 * Y, (4, 1)))


def test_a_kernel_inside_another_takes_arrays_by_name():
    np.testing.assert_array_equal(by_name(None, X, Y), X + 2.0 * Y)
    np.testing.assert_array_equal(half_by_name(None, X, Y), X + 3.0 * Y)


def test_arrays_by_name_find_the_same_version():
    traced = []

    @dl.kernel("(3)->(3)")
    def f(model, x):
        traced.append(model)
        return 2.0 * x

    f(None, X)
    f(None, x=X)
    assert traced == [None]


def test_an_algorithm_takes_its_arrays_by_name():
    tree = random_tree(2, seed=1)
    q, v, tau = np.random.default_rng(0).normal(size=(3, tree.nv))
    np.testing.assert_array_equal(dl.aba(tree, tau=tau, q=q, v=v), dl.aba(tree, q, v, tau))


def inlined(*args, **kwargs):
    """A call inside another kernel."""
    return dl.kernel("()->()")(lambda model, t: t + weighted(*args, **kwargs)[0])(None, 1.0)


@pytest.mark.parametrize("call", [*CALLS.values(), inlined], ids=[*CALLS, "inlined"])
@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((None,), {"x": X}, "weighted needs the array 'y'; its arrays are x, y."),
        ((None, X), {"x": X}, "weighted got the array 'x' twice, by position and by name."),
        ((None, X, Y), {"y": Y}, "weighted got the array 'y' twice, by position and by name."),
        ((None, X), {"model": None, "y": Y}, "weighted got its model twice, by position and by name."),
        ((), {"x": X, "y": Y}, "weighted needs its model, the first argument."),
        ((), {}, "weighted needs its model, the first argument."),
        ((None, X), {"z": Y}, "weighted has no option 'z'; its options are: weight, offset; its arrays are x, y."),
        ((None, X, Y, Y), {}, "weighted takes 2 arrays (x, y), got 3. Pass options by name: weight=."),
        ((None, X), {}, "weighted takes 2 arrays (x, y), got 1."),
    ],
)
def test_wrong_arguments_are_named(call, args, kwargs, message):
    with pytest.raises(TypeError) as caught:
        call(*args, **kwargs)
    assert str(caught.value) == message


@pytest.mark.parametrize("way", ["specialize", "program", "inspect", "compiled"])
def test_ways_without_arrays_say_that_they_take_none(way):
    with pytest.raises(TypeError, match="'x' is an array of weighted, not an option"):
        getattr(weighted, way)(None, x=X)


def test_an_optional_input_that_is_given_where_no_arrays_are_is_compiled_in():
    ufunc = weighted.specialize(None, offset=X)
    assert ufunc.nin == 2
    np.testing.assert_array_equal(ufunc(X, Y), X + 2.0 * Y + X)


def test_an_input_cannot_be_taken_and_compiled_in():
    with pytest.raises(TypeError, match="got a value for 'offset', which is also listed in inputs=; omit one of them"):
        weighted.specialize(None, inputs=("offset",), offset=X)


def test_arrays_are_bound_by_their_places():
    with pytest.raises(TypeError, match="'x' is an array of weighted, not an option"):
        weighted.bind(None, X, Y, np.zeros(3), x=X)


def test_a_kernel_shows_what_its_model_is_called():
    assert repr(dl.caba) == "<kernel caba(mechanism, q, v, tau)>"


# Options that are arrays.


def seen(value):
    """What the function of a kernel gets for an option, compiled and as plain NumPy."""
    found = []

    @dl.kernel("()->()")
    def f(model, x, *, option=None):
        found.append(option)
        return x

    f(None, 1.0, option=value)
    f.python(None, 1.0, option=value)
    assert len(found) == 2
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize(
    ("array", "frozen"),
    [
        (np.array([1.0, 2.5]), (1.0, 2.5)),
        (np.array([[1, 2], [3, 4]]), ((1, 2), (3, 4))),
        (np.array([True, False]), (True, False)),
        (np.array(["a", "b"]), ("a", "b")),
        (np.array(2.5), 2.5),
        (np.zeros((0, 2)), ()),
        (np.array([0.1], np.float32), (float(np.float32(0.1)),)),
        (np.arange(6.0).reshape(2, 3).T, ((0.0, 3.0), (1.0, 4.0), (2.0, 5.0))),
        ((np.array([1.0]), "a"), ((1.0,), "a")),
    ],
    ids=lambda x: type(x).__name__,
)
def test_an_option_that_is_an_array_becomes_a_tuple(array, frozen):
    found = seen(array)
    assert found == frozen
    assert type(found) is type(frozen)


def test_an_array_and_its_tuple_are_one_kernel():
    assert weighted.specialize(None, weight=np.array([1.0, 2.0, 3.0])) is weighted.specialize(
        None, weight=(1.0, 2.0, 3.0)
    )


def test_an_array_that_changes_gets_a_kernel_of_its_own():
    @dl.kernel("(3)->(3)")
    def f(model, x, *, gains=(1.0, 1.0, 1.0)):
        return x * np.array(gains)

    gains = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(f(None, X, gains=gains), X * gains)
    gains[0] = 5.0
    np.testing.assert_array_equal(f(None, X, gains=gains), X * gains)


def test_a_default_that_is_an_array_becomes_a_tuple():
    @dl.kernel("(3)->(3)")
    def f(model, x, *, gains=np.ones(3)):  # noqa: B008
        assert gains == (1.0, 1.0, 1.0)
        return 2.0 * x

    np.testing.assert_array_equal(f(None, X), 2.0 * X)
    np.testing.assert_array_equal(f.python(None, X), 2.0 * X)


def test_an_option_of_a_kernel_inside_another_may_be_an_array():
    @dl.kernel("(3)->(3)")
    def inner(model, x, *, gains):
        return x * np.array(gains)

    @dl.kernel("(3)->(3)")
    def outer(model, x):
        return inner(model, inner(model, x, gains=Y), gains=Y)

    np.testing.assert_array_equal(outer(None, X), X * Y * Y)


@pytest.mark.parametrize(
    "odd",
    [
        np.array([1, None], object),
        np.array([object()]),
        np.array(["2020-01-01"], "datetime64[D]"),
        np.zeros(2, [("a", float)]),
        np.ma.array([1.0, 2.0], mask=[True, False]),
    ],
    ids=["objects", "object", "dates", "records", "masked"],
)
def test_an_array_that_does_not_hold_numbers_or_text_is_refused_as_an_option(odd):
    with pytest.raises(TypeError, match="weighted: the option weight"):
        weighted(None, X, Y, weight=odd)


def test_the_proximal_parameter_may_be_an_array():
    tree = random_tree(3, seed=5)
    held = dl.Mechanism(tree, dl.Point(tree.frame_list[-1].name))
    x = np.random.default_rng(0).normal(size=(3, tree.nv))
    given = np.array([1e-6, 2e-6, 3e-6])
    for array, frozen in zip(dl.caba(held, *x, proximal=given), dl.caba(held, *x, proximal=tuple(given)), strict=True):
        np.testing.assert_array_equal(array, frozen)
    with refuses("wrong-shape", "(4,)", "proximal"):
        dl.caba(held, *x, proximal=np.full(4, 1e-6))


# Models that stand for others.


@dataclass(frozen=True)
class Inner:
    """A model."""

    n: int = 3


@dataclass(frozen=True)
class Outer:
    """A model that holds another."""

    inner: Inner
    label: str = ""

    @property
    def n(self):
        return self.inner.n

    @property
    def __kernel_model__(self):
        return self.inner


def kinds():
    """Kernels of an `Inner`, of an `Outer` and of anything, that remember what they got."""
    got = []

    def function(kind):
        def f(model, x):
            got.append(model)
            return 2.0 * x

        if kind is not None:
            f.__annotations__["model"] = kind
        return Kernel(f, weighted.signature.parse("(n)->(n)"))

    return got, function


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Inner, Inner()),
        (Outer, Outer(Inner())),
        (None, Outer(Inner())),
        (object, Outer(Inner())),
        (str, Outer(Inner())),
    ],
    ids=["inner", "outer", "nothing said", "anything", "something else"],
)
def test_a_kernel_gets_the_kind_of_model_that_it_asks_for(kind, expected):
    got, function = kinds()
    f = function(kind)
    np.testing.assert_array_equal(f(Outer(Inner()), X), 2.0 * X)
    np.testing.assert_array_equal(f.python(Outer(Inner()), X), 2.0 * X)
    dl.kernel("(3)->(3)")(lambda model, x: f(Outer(Inner()), x))(None, X)
    assert got == [expected] * 3


def test_a_model_and_what_stands_for_it_share_one_kernel():
    _, function = kinds()
    f = function(Inner)
    assert f.specialize(Outer(Inner(), "a")) is f.specialize(Outer(Inner(), "b")) is f.specialize(Inner())


def test_an_annotation_that_cannot_be_read_asks_for_nothing():
    got, function = kinds()
    function("Nowhere")(Outer(Inner()), X)
    assert got == [Outer(Inner())]


# Shapes.


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_an_array_of_another_shape_is_refused_by_name(call):
    with refuses("wrong-shape", "weighted", "y", "(2,)", "(3,)"):
        call(None, X, Y[:2])


def test_batch_axes_that_do_not_broadcast_are_refused_by_name():
    with refuses("batch-mismatch", "weighted", "x (2,)", "y (3,)"):
        weighted(None, np.tile(X, (2, 1)), np.tile(Y, (3, 1)))
