"""Kernels with inputs that may be given or not, and with arrays that have no elements on some models."""

from dataclasses import dataclass

import numpy as np
import pytest

import delassus as dl
from delassus.compiler.host.inputs import Input
from refusals import refuses


@dataclass(frozen=True)
class Model:
    n: int = 3
    k: int = 2


@dl.kernel("(n)->(n)", inputs={"gain": "()", "offset": "(n)"})
def affine(model, x, *, power=1, gain=None, offset=None):
    y = x**power
    y = y if gain is None else gain * y
    return y if offset is None else y + offset


@dl.kernel("(n)->(n),(k)", inputs={"weights": "(k)"})
def split(model, x, *, weights=None):
    return 2.0 * x, np.ones(model.k) * x[0] if weights is None else weights * x[0]


@dl.kernel("(n)->(n)")
def outer(model, x):
    return affine(model, x, offset=x)


def share(model, x):
    """A number, or shares by letters."""
    if isinstance(x, dict):
        return [x.get(letter, 0.0) for letter in "abc"[: model.n]]
    if np.any(np.asarray(x) < 0.0):
        raise ValueError(f"the share is {x}; it is not negative.")
    return x


@dl.kernel("(n)->(n)", inputs={"share": Input("(n)", 0.5, share), "shift": Input("()")})
def part(model, x, *, share, shift=1.0):
    assert np.shape(share) == (model.n,)
    return share * x + shift


X = np.array([1.0, -2.0, 3.0])
OFFSET = np.array([10.0, 20.0, 30.0])


def test_an_input_that_is_not_given_is_not_there():
    np.testing.assert_array_equal(affine(Model(), X), X)


def test_an_input_that_is_given_is_used():
    np.testing.assert_array_equal(affine(Model(), X, offset=OFFSET), X + OFFSET)


def test_none_means_not_given():
    np.testing.assert_array_equal(affine(Model(), X, offset=None), X)


def test_optional_inputs_broadcast_like_the_others():
    gains = np.array([[1.0], [2.0]])
    found = affine(Model(), X, gain=gains)
    np.testing.assert_array_equal(found, gains[..., None] * X)


def test_other_values_of_an_input_do_not_compile_again():
    assert affine.specialize(Model(), inputs=("offset",)) is affine.specialize(Model(), inputs=["offset"])


def test_options_and_optional_inputs_go_together():
    np.testing.assert_array_equal(affine(Model(), X, power=2, offset=OFFSET), X**2 + OFFSET)


def test_a_ufunc_takes_optional_inputs_in_the_kernels_order():
    ufunc = affine.specialize(Model(), inputs=("offset", "gain"))
    np.testing.assert_array_equal(ufunc(X, 2.0, OFFSET), 2.0 * X + OFFSET)


def test_bound_arrays_hold_optional_inputs_before_the_outputs():
    offset, out = OFFSET.copy(), np.zeros(3)
    tick = affine.bind(Model(), X, offset, out, inputs=("offset",))
    offset[:] = 5.0
    tick()
    np.testing.assert_array_equal(out, X + 5.0)


def test_plain_numpy_takes_optional_inputs():
    np.testing.assert_array_equal(affine.python(Model(), X, offset=OFFSET), X + OFFSET)


def test_another_kernel_can_give_an_optional_input():
    np.testing.assert_array_equal(outer(Model(), X), 2.0 * X)


def test_an_optional_input_of_the_wrong_size_is_refused():
    with pytest.raises(ValueError, match="mismatch in its core dimension"):
        affine(Model(), X, offset=np.zeros(4))


def test_an_unknown_optional_input_is_refused():
    with pytest.raises(TypeError, match="each of these at most once: gain, offset"):
        affine.specialize(Model(), inputs=("mass",))


def test_an_optional_input_named_twice_is_refused():
    with pytest.raises(TypeError, match="each of these at most once"):
        affine.specialize(Model(), inputs=("gain", "gain"))


def test_an_optional_input_needs_a_parameter_of_its_name():
    with refuses("bad-signature", "'mass'"):
        dl.kernel("(n)->(n)", inputs={"mass": "()"})(lambda model, x: x)


def test_an_optional_input_needs_a_default():
    def function(model, x, *, mass):
        return x

    with refuses("bad-signature", "'mass'"):
        dl.kernel("(n)->(n)", inputs={"mass": "()"})(function)


def test_an_optional_input_has_one_default():
    def function(model, x, *, mass=1.0):
        return x

    with refuses("bad-signature", "'mass'", "1.0", "2.0"):
        dl.kernel("(n)->(n)", inputs={"mass": Input("()", 2.0)})(function)


def test_the_shape_of_an_optional_input_must_be_readable():
    with refuses("bad-signature", "'n'", "'mass'"):
        dl.kernel("(n)->(n)", inputs={"mass": "n"})


def test_an_output_without_elements_is_an_empty_array():
    doubled, nothing = split(Model(k=0), X)
    np.testing.assert_array_equal(doubled, 2.0 * X)
    assert nothing.shape == (0,)


def test_empty_arrays_have_the_batch_axes_of_the_others():
    batch = np.broadcast_to(X, (4, 1, 3))
    doubled, nothing = split(Model(k=0), batch, weights=np.zeros((5, 0)))
    assert doubled.shape == (4, 5, 3)
    assert nothing.shape == (4, 5, 0)


def test_an_empty_input_of_the_wrong_size_is_refused():
    with pytest.raises(ValueError, match="weights has shape \\(1,\\), its core must be \\(0,\\)"):
        split(Model(k=0), X, weights=np.zeros(1))


def test_a_ufunc_cannot_have_outputs_without_elements():
    with refuses("wrong-shape", "axis"):
        split.specialize(Model(k=0))


# Inputs with defaults.


def inside(model, x, **inputs):
    """A call inside another kernel, of numbers as they are."""
    return dl.kernel("(n)->(n)")(lambda model, x: part(model, x, **inputs))(model, x)


WAYS = {"call": part, "again": part, "python": part.python, "inside": inside}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, 0.5 * X + 1.0),
        ({"share": None}, 0.5 * X + 1.0),
        ({"share": 2.0}, 2.0 * X + 1.0),
        ({"share": OFFSET, "shift": 3.0}, OFFSET * X + 3.0),
        ({"share": {"b": 4.0}}, np.array([0.0, 4.0, 0.0]) * X + 1.0),
    ],
    ids=str,
)
def test_an_input_is_what_is_given_or_its_default(way, given, expected):
    np.testing.assert_array_equal(way(Model(), X, **given), expected)


def test_a_default_is_compiled_in():
    assert part.program(Model()).digest == part.program(Model(), share=0.5, shift=1.0).digest
    assert part.specialize(Model()).nin == 1


def test_what_is_compiled_in_is_read_as_well():
    np.testing.assert_array_equal(part.specialize(Model(), share={"b": 4.0})(X), [1.0, -7.0, 1.0])


@pytest.mark.parametrize("way", [*WAYS.values(), part.specialize], ids=[*WAYS, "specialize"])
def test_what_is_given_is_checked(way):
    arrays = () if way == part.specialize else (X,)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"the share is -1\.0"):
            way(Model(), *arrays, share=-1.0)


def test_other_numbers_do_not_trace_again():
    traced = []

    @dl.kernel("()->()", inputs={"gain": Input("()", 1.0)})
    def scaled(model, x, *, gain):
        traced.append(gain)
        return gain * x

    assert [scaled(None, 3.0, gain=g) for g in (0.5, 0.51, 2, np.float64(4.0))] == [1.5, 1.53, 6.0, 12.0]
    assert len(traced) == 1
