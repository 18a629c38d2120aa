"""Kernels that take structures: NamedTuples and frozen dataclasses whose fields are arrays that may be left out."""

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest

import delassus as dl
from delassus.compiler import Group, Input, export_c
from delassus.compiler.host.inputs import InputError, SignatureError
from refusals import refuses


class Contact(NamedTuple):
    friction: Annotated[Any, Input("(c)")] = 0.5
    stiffness: Annotated[Any, Input("(c,2)")] = None
    scale: Annotated[Any, Input("()", 2.0)] = None


@dataclass(frozen=True)
class Ground:
    height: Any = 0.0
    heights: Any = None


@dataclass(frozen=True)
class Model:
    c: int = 3


DEFAULTS = Contact()
GROUND = Group(Ground, height="(c)", heights=Input("(4)", shared=True))


@dl.kernel("(c)->(c)", inputs={"contact": Contact, "shift": "()"})
def push(model, x, *, contact=DEFAULTS, shift=None):
    """What is given, in a sum whose terms can be told apart."""
    y = contact.scale * (contact.friction * x)
    y = y if contact.stiffness is None else y + 10.0 * contact.stiffness[:, 0] + 100.0 * contact.stiffness[:, 1]
    return y if shift is None else y + shift


@dl.kernel("(c)->(c)", inputs={"contact": Contact, "ground": GROUND})
def land(model, x, *, contact, ground):
    pushed = push(model, x, contact=contact._replace(friction=2.0 * contact.friction))
    return pushed + ground.height + (0.0 if ground.heights is None else ground.heights[3])


X = np.array([1.0, 2.0, 4.0])
FRICTION = np.array([0.1, 0.2, 0.3])
STIFFNESS = np.arange(6.0).reshape(3, 2)
STIFF = 10.0 * STIFFNESS[:, 0] + 100.0 * STIFFNESS[:, 1]
WAYS = pytest.mark.parametrize("way", [push, push.python], ids=["call", "python"])


@WAYS
def test_fields_that_are_left_out_have_their_defaults(way):
    for given in ({}, {"contact": None}, {"contact": Contact()}):
        np.testing.assert_array_equal(way(Model(), X, **given), X)


@WAYS
def test_fields_that_are_given_are_used(way):
    for _ in range(2):
        np.testing.assert_allclose(way(Model(), X, contact=Contact(FRICTION, STIFFNESS)), 2 * FRICTION * X + STIFF)


def test_one_number_stands_for_all_elements_of_a_field():
    np.testing.assert_array_equal(push(Model(), X, contact=Contact(stiffness=1.0)), X + 110.0)


def test_other_fields_may_be_given_in_the_next_call():
    np.testing.assert_allclose(push(Model(), X, contact=Contact(FRICTION)), 2 * FRICTION * X)
    np.testing.assert_allclose(push(Model(), X, contact=Contact(scale=3.0)), 1.5 * X)
    np.testing.assert_allclose(push(Model(), X, contact=Contact(FRICTION, scale=3.0)), 3 * FRICTION * X)
    np.testing.assert_allclose(push(Model(), X, shift=1.0, contact=Contact(FRICTION)), 2 * FRICTION * X + 1.0)


def test_batch_axes_of_fields_broadcast():
    friction, scale = np.stack([FRICTION, 2 * FRICTION]), np.array([[1.0], [2.0], [3.0]])
    found = push(Model(), X, contact=Contact(friction, STIFFNESS, scale))
    np.testing.assert_allclose(found, scale[..., None] * friction * X + STIFF)
    assert found.shape == (3, 2, 3)


def test_other_numbers_of_a_field_do_not_compile_again():
    names = ("contact.friction", "contact.scale")
    assert push.specialize(Model(), inputs=names) is push.specialize(Model(), inputs=names[::-1])


def test_a_structure_of_defaults_compiles_what_no_structure_does():
    assert push.program(Model(), contact=Contact()).digest == push.program(Model()).digest


def test_a_ufunc_takes_the_fields_of_a_structure_in_one_operand():
    ufunc = push.specialize(Model(), inputs=("contact.scale", "contact.stiffness"))
    assert ufunc.signature == "(3),(7)->(3)"
    packed = np.append(STIFFNESS.ravel(), 3.0)
    np.testing.assert_allclose(ufunc(X, packed), 1.5 * X + STIFF)


def test_bound_arrays_hold_the_fields_of_a_structure():
    packed, out = FRICTION.copy(), np.zeros(3)
    tick = push.bind(Model(), X, packed, out, inputs=("contact.friction",))
    packed[:] = 2.0
    tick()
    np.testing.assert_array_equal(out, 4.0 * X)


def test_what_is_packed_can_be_bound():
    names, arrays = push.pack(Model(), contact=Contact(FRICTION, scale=3.0), shift=1.0)
    assert names == ("contact.friction", "contact.scale", "shift")
    out = np.zeros(3)
    push.bind(Model(), X, *map(np.array, arrays), out, inputs=names)()
    np.testing.assert_allclose(out, 3 * FRICTION * X + 1.0)


def test_numbers_by_value_are_compiled_in():
    np.testing.assert_allclose(push.specialize(Model(), contact=Contact(FRICTION))(X), 2 * FRICTION * X)


def test_a_field_is_an_input_or_a_value():
    with pytest.raises(TypeError, match=r"'contact\.friction', which is also listed in inputs="):
        push.specialize(Model(), inputs=("contact.friction",), contact=Contact(FRICTION))


def test_structures_pass_through_kernels_inside_kernels():
    contact, ground = Contact(FRICTION, STIFFNESS), Ground(1.0, np.arange(4.0))
    expected = 4 * FRICTION * X + STIFF + 4.0
    np.testing.assert_allclose(land(Model(), X, contact=contact, ground=ground), expected)
    np.testing.assert_allclose(land.python(Model(), X, contact=contact, ground=ground), expected)


def test_a_shared_field_comes_after_all_others():
    ufunc = land.specialize(Model(), inputs=("ground.heights", "ground.height", "contact.friction"))
    assert ufunc.signature == "(3),(3),(3),(4)->(3)"
    np.testing.assert_allclose(ufunc(X, FRICTION, np.ones(3), np.arange(4.0)), 4 * FRICTION * X + 4.0)


def test_single_precision_takes_structures():
    assert push(Model(), X, contact=Contact(FRICTION), dtype=np.float32).dtype == np.float32


def test_c_takes_the_fields_in_one_array_and_says_where(tmp_path):
    header, *_ = export_c(push, Model(), tmp_path, inputs=("contact.scale", "contact.friction"))
    text = header.read_text()
    assert "void push(const double *x, const double *contact, double *out0);" in text
    assert "contact.friction 3, contact.scale 1" in text


@pytest.mark.parametrize("again", range(2))
@pytest.mark.parametrize(
    ("contact", "refusal"),
    [
        (Contact(np.zeros(4)), ("wrong-shape", "push: contact.friction", "(4,)", "(…, 3)")),
        (Contact(stiffness=np.zeros(3)), ("wrong-shape", "contact.stiffness", "(3,)", "(…, 3, 2)")),
        (Contact(scale="nan"), ("not-a-number", "contact.scale", "'nan'")),
        (Contact(1j), ("not-a-number", "contact.friction", "1j")),
        (Contact(np.zeros((2, 3)), scale=np.zeros(5)), ("wrong-shape", "contact.scale", "(5,)")),
    ],
    ids=["shape", "axes", "text", "complex", "batch"],
)
def test_what_does_not_fit_is_refused_by_the_name_of_its_field(contact, refusal, again):
    with refuses(*refusal):
        push(Model(), X, contact=contact)


def test_another_class_is_refused():
    for _ in range(2):
        with pytest.raises(TypeError, match=r"contact is a Contact, not a Ground: give contact=Contact\(friction=…\)"):
            push(Model(), X, contact=Ground())


def test_a_constant_that_does_not_fit_is_refused_by_its_name():
    with pytest.raises(InputError, match=r"contact\.friction has shape \(4,\); it needs \(…, 3\)"):
        push.specialize(Model(), contact=Contact(np.zeros(4)))


def test_a_traced_field_that_does_not_fit_is_refused_by_its_name():
    wrong = dl.kernel("(c)->(c)")(lambda model, x: push(model, x, contact=Contact(x[:2])))
    with pytest.raises(InputError, match=r"contact\.friction has shape \(2,\)"):
        wrong(Model(), X)


def test_fields_by_their_full_names_are_no_arguments():
    with pytest.raises(TypeError, match=r"takes contact\.friction as a field of contact="):
        push(Model(), X, **{"contact.friction": 0.7})


class Bare(NamedTuple):
    friction: Any = None


class Needed(NamedTuple):
    size: Any
    shape: Any = None


@dl.kernel("(c)->(c)", inputs={"ground": Group(Ground, height="(c)")})
def lift(model, x, *, ground):
    return x + ground.height if ground.heights is None else x


def test_a_field_that_a_kernel_does_not_take_is_refused():
    np.testing.assert_array_equal(lift(Model(), X, ground=Ground(1.0)), X + 1.0)
    for _ in range(2):
        with pytest.raises(TypeError, match=r"lift does not take ground\.heights; the fields .* are height"):
            lift(Model(), X, ground=Ground(heights=1.0))


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: Group(Bare), r"Bare\.friction has no core shape"),
        (lambda: Group(Needed, shape="()"), r"Needed\.size has no core shape"),
        (lambda: Group(Bare, mass="()"), "Bare has no field 'mass'; its fields are friction"),
        (lambda: Group(dict), "dict is not a structure of inputs"),
        (lambda: Group(Contact, friction=Input("(c)", 0.7)), r"Contact\.friction has two defaults, 0\.5 and 0\.7"),
    ],
    ids=["core", "needed", "field", "class", "defaults"],
)
def test_a_group_that_says_too_little_or_too_much_is_refused(declare, message):
    with pytest.raises(SignatureError, match=message):
        declare()


def test_the_default_of_a_structure_is_that_of_its_class():
    def function(model, x, *, contact=Contact(0.7)):  # noqa: B008
        return x

    with pytest.raises(SignatureError, match="defaults of their class"):
        dl.kernel("(c)->(c)", inputs={"contact": Contact})(function)
