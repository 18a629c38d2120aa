"""Kernels whose function takes several optional inputs as one object, which calls give one by one or together."""

from typing import Any, NamedTuple

import numpy as np
import pytest

import delassus as dl
from delassus.compiler import Bundle, Group, Input, export_c
from delassus.compiler.host.inputs import SignatureError
from refusals import refuses


class Springs(NamedTuple):
    stiffness: Any = None
    damping: Any = None


class Rows(NamedTuple):
    mask: Any = None
    gain: Any = 2.0
    springs: Springs = Springs()
    force: Any = None


class Other(NamedTuple):
    mask: Any = None


ROWS = Bundle(
    Rows, mask="(3)", gain=Input("()"), springs=Group(Springs, stiffness="(3)", damping="()"), force=Input("(3)")
)
NONE, TRIPLE = Rows(), Rows(gain=3.0)


@dl.kernel("(3)->(3)", inputs={"rows": ROWS, "shift": "()"})
def press(model, x, *, rows=NONE, shift=0.0, sign=1.0):
    y = sign * rows.gain * x + shift
    y = y if rows.mask is None else y * rows.mask
    y = y if rows.springs.stiffness is None else y + 10.0 * rows.springs.stiffness
    return y if rows.force is None else y + rows.force


@dl.kernel("(3)->(3)", inputs={"rows": Bundle(Rows, mask="(3)", gain="()")})
def press_twice(model, x, *, rows=NONE):
    return press(model, press(model, x, rows=rows), mask=rows.mask, gain=rows.gain)


X, MASK, FORCE = np.array([1.0, 2.0, 4.0]), np.array([1.0, 0.0, 1.0]), np.array([0.1, 0.2, 0.3])
WAYS = pytest.mark.parametrize("way", [press, press.python], ids=["call", "python"])


@WAYS
def test_fields_are_given_by_their_names_or_together(way):
    expected = 2.0 * X * MASK + FORCE
    for _ in range(2):
        np.testing.assert_allclose(way(None, X, mask=MASK, force=FORCE), expected)
        np.testing.assert_allclose(way(None, X, rows=Rows(MASK, force=FORCE)), expected)
        np.testing.assert_allclose(way(None, X, rows=Rows(MASK), force=FORCE), expected)


@WAYS
def test_what_is_left_out_has_the_defaults_of_the_class(way):
    for given in ({}, {"rows": None}, {"rows": Rows()}, {"mask": None}):
        np.testing.assert_array_equal(way(None, X, **given), 2.0 * X)


@WAYS
def test_a_structure_can_be_a_field(way):
    for given in ({"springs": Springs(FORCE)}, {"rows": Rows(springs=Springs(FORCE))}):
        np.testing.assert_allclose(way(None, X, **given), 2.0 * X + 10.0 * FORCE)


def test_both_ways_share_one_kernel():
    ufunc = press.specialize(None, inputs=("mask",))
    assert ufunc is press.specialize(None, inputs=press.pack(None, rows=Rows(MASK))[0])
    assert ufunc.signature == "(3),(3)->(3)"
    np.testing.assert_allclose(ufunc(X, MASK), 2.0 * X * MASK)


def test_numbers_by_value_are_compiled_in_both_ways():
    assert press.program(None, rows=Rows(gain=3.0)).digest == press.program(None, gain=3.0).digest


def test_bound_arrays_are_those_of_the_fields():
    mask, out = MASK.copy(), np.zeros(3)
    tick = press.bind(None, X, mask, out, inputs=("mask",))
    mask[:] = 3.0
    tick()
    np.testing.assert_array_equal(out, 6.0 * X)


def test_batches_and_single_precision():
    mask = np.stack([MASK, 1.0 - MASK])
    found = press(None, X, rows=Rows(mask), dtype=np.float32)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, 2.0 * X * mask)


def test_bundles_pass_through_kernels_inside_kernels():
    for way in (press_twice, press_twice.python):
        np.testing.assert_allclose(way(None, X, mask=MASK), 4.0 * X * MASK)


def test_c_names_the_fields(tmp_path):
    header, *_ = export_c(press, None, tmp_path, inputs=("mask", "force"))
    assert "void press(const double *x, const double *mask, const double *force, double *out0);" in header.read_text()


def test_a_field_twice_is_refused():
    for _ in range(2):
        with refuses("conflicting-arguments", "mask", "rows"):
            press(None, X, rows=Rows(MASK), mask=MASK)


def test_a_field_that_the_kernel_does_not_take_is_refused():
    with pytest.raises(TypeError, match=r"does not take rows\.force; .* mask, gain"):
        press_twice(None, X, rows=Rows(force=FORCE))


def test_an_object_of_another_kind_is_refused():
    with pytest.raises(TypeError, match=r"rows is a Rows, not a tuple: give rows=Rows\(mask=…\)"):
        press(None, X, rows=(MASK,))


def test_an_unknown_name_lists_the_bundle_and_its_fields():
    with pytest.raises(TypeError, match=r"no option 'masc'; its options are: sign, rows, mask, gain"):
        press(None, X, masc=MASK)


@pytest.mark.parametrize(
    ("inputs", "names"),
    [
        ({"rows": ROWS, "other": Bundle(Other, mask="(3)")}, ("'mask'",)),
        ({"rows": ROWS, "mask": "(3)"}, ("'mask'",)),
        ({"mask": "(3)", "rows": ROWS}, ("'mask'",)),
    ],
)
def test_a_name_of_two_inputs_is_refused_by_the_definition(inputs, names):
    with refuses("bad-signature", *names, kind=SignatureError):
        dl.kernel("(3)->(3)", inputs=inputs)


def test_a_name_of_a_field_and_a_parameter_is_refused_by_the_definition():
    def clash(model, mask, *, rows=NONE):
        return mask

    def changed(model, x, *, rows=TRIPLE):
        return x

    with refuses("bad-signature", "'mask'", kind=SignatureError):
        dl.kernel("(3)->(3)", inputs={"rows": ROWS})(clash)
    with refuses("bad-signature", "'rows'", "Rows()", kind=SignatureError):
        dl.kernel("(3)->(3)", inputs={"rows": ROWS})(changed)


def test_a_field_without_default_is_refused_by_the_definition():
    class Bare(NamedTuple):
        mask: Any

    with refuses("bad-signature", "Bare", "'mask'", kind=SignatureError):
        Bundle(Bare, mask="(3)")
