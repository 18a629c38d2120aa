"""Kernels whose results have names."""

import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest

import delassus as dl
from delassus.compiler.host.c99 import export_c
from refusals import refuses


class Motion(NamedTuple):
    """Numbers, and their sum."""

    x: Any
    total: Any

    @property
    def mean(self):
        return self.total / self.x.shape[-1]


class _Told(NamedTuple):
    y: Any
    z: Any


class Told(_Told):
    """Results that know what they are of."""

    @classmethod
    def of_call(cls, values, model, given):
        told = cls(*values)
        told.model, told.given = model, given
        return told


class Alone(NamedTuple):
    """One result."""

    y: Any


@dl.kernel("(3)->(3),()", inputs={"gain": "()"}, result=Motion)
def moved(model, x, *, gain=1.0):
    y = gain * x + 1.0
    return Motion(y, y[0] + y[1] + y[2])


@dl.kernel("(3),()->(3),()", inputs={"shift": "(3)"}, result=Told)
def told(model, a, b, *, shift=None):
    return a if shift is None else a + shift, b


@dl.kernel("(2)->(2)", result=Alone)
def alone(model, x):
    return Alone(2.0 * x)


@dl.kernel("(3)->()")
def outer(model, x):
    motion = moved(model, x, gain=2.0)
    return motion.mean + motion.x[0]


X = np.array([1.0, 2.0, 4.0])


@pytest.mark.parametrize("way", [moved, moved.python], ids=["call", "python"])
def test_results_have_names_and_methods(way):
    for _ in range(2):
        found = way(None, X)
        assert type(found) is Motion
        np.testing.assert_array_equal(found.x, X + 1.0)
        assert found.mean == 10.0 / 3.0


@pytest.mark.parametrize("way", [moved, moved.python], ids=["call", "python"])
def test_results_are_chosen_by_their_names_in_any_order(way):
    for _ in range(2):
        total, x = found = way(None, X, outputs=("total", "x"))
        assert (total, found._fields) == (10.0, ("total", "x"))
        np.testing.assert_array_equal(x, X + 1.0)


def test_one_result_can_be_chosen():
    assert moved(None, X, outputs="total").total == moved(None, X, outputs=("total",)).total == 10.0


def test_choosing_all_results_is_choosing_none():
    assert type(moved(None, X, outputs=("x", "total"))) is Motion
    assert moved.specialize(None, outputs=("x", "total")) is moved.specialize(None)


def test_results_that_are_not_chosen_are_not_computed():
    assert moved.program(None, outputs=("x",)).count() == {"add": 3}
    assert moved.program(None).count() == {"add": 5}


def test_inside_another_kernel_results_are_chosen():
    some = dl.kernel("(3)->()")(lambda model, x: moved(model, x, outputs=("total",)).total)
    assert some(None, X) == some.python(None, X) == 10.0


def test_a_ufunc_and_bound_arrays_give_the_chosen_results():
    total = np.zeros(())
    moved.bind(None, X, total, outputs=("total",))()
    assert total == moved.specialize(None, outputs=("total",))(X) == 10.0


def test_chosen_results_can_be_written_to_given_arrays():
    total, x = np.zeros(()), np.zeros(3)
    moved(None, X, outputs=("total", "x"), out=(total, x))
    assert (total, x[2]) == (10.0, 5.0)


def test_chosen_results_of_a_kernel_that_tells_more_are_plain_names():
    found = told("model", X, 3.0, outputs=("z",))
    assert (found.z, found._fields) == (3.0, ("z",))


def test_chosen_results_can_be_pickled():
    found = moved(None, X, outputs=("total",))
    assert pickle.loads(pickle.dumps(found)) == found


def test_c_gives_the_chosen_results(tmp_path):
    header, *_ = export_c(moved, None, tmp_path, states=0, outputs=("total",))
    assert "void moved(const double *x, double *out_total);" in header.read_text()


@pytest.mark.parametrize("outputs", [("y",), ("x", "x")])
def test_results_that_there_are_not_are_refused(outputs):
    with pytest.raises(TypeError, match=r"cannot return the outputs .*; pass each of these at most once: x, total"):
        moved(None, X, outputs=outputs)


def test_results_without_names_cannot_be_chosen():
    with pytest.raises(TypeError, match="none, since its results have no names"):
        outer(None, X, outputs=("y",))


def test_batches_have_names():
    found = moved(None, np.stack([X, 2.0 * X]), gain=2.0)
    np.testing.assert_array_equal(found.total, [17.0, 31.0])


def test_inside_another_kernel_results_have_names():
    assert outer(None, X) == outer.python(None, X) == 17.0 / 3.0 + 3.0


def test_given_outputs_are_what_is_returned():
    x, total = np.zeros(3), np.zeros(())
    found = moved(None, X, out=(x, total))
    assert found.x is x
    assert total == 10.0


def test_one_result_has_a_name():
    np.testing.assert_array_equal(alone(None, X[:2]).y, [2.0, 4.0])
    np.testing.assert_array_equal(alone.python(None, X[:2]).y, [2.0, 4.0])


def test_a_ufunc_and_bound_arrays_have_the_results_in_their_order():
    x, total = np.zeros(3), np.zeros(())
    moved.bind(None, X, x, total)()
    for found, expected in zip((x, total), moved.specialize(None)(X), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("way", [told, told.python], ids=["call", "python"])
def test_results_are_told_what_they_are_of(way):
    for _ in range(2):
        found = way("model", X, shift=2.0, b=3.0)
        assert found.model == "model"
        assert list(found.given) == ["a", "b", "shift"]
        np.testing.assert_array_equal(found.given["shift"], [2.0, 2.0, 2.0])
        np.testing.assert_array_equal(found.y, X + 2.0)


def test_results_that_know_more_can_be_pickled():
    found = pickle.loads(pickle.dumps(told("model", X, 3.0)))
    assert (type(found), found.model, float(found.given["b"])) == (Told, "model", 3.0)


def test_outputs_in_c_have_the_names_of_the_results(tmp_path):
    header, *_ = export_c(moved, None, tmp_path, states=0)
    assert "void moved(const double *x, double *out_x, double *out_total);" in header.read_text()


def test_a_result_of_the_wrong_shape_is_called_by_its_name():
    wrong = dl.kernel("(3)->(3),()", result=Motion)(lambda model, x: (x, x))
    with refuses("wrong-shape", "(3,)"):
        wrong(None, X)


def test_a_result_has_a_field_for_each_output():
    with refuses("bad-signature"):
        dl.kernel("(3)->(3)", result=Motion)(lambda model, x: x)
