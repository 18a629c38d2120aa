"""`@kernel`: compiled once per content of the model and options, inlined in other kernels, clear about mistakes."""

import math
import operator
import pickle
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

import delassus as dl
import delassus.numpy as dnp
from delassus.compiler.backends import native
from delassus.compiler.backends.target import Target
from delassus.model.generators import chain
from refusals import refuses

TARGET = Target.host().with_opt(0)
X = np.array([1.0, -2.0, 3.5])


@dataclass(frozen=True)
class Model:
    """A model by content."""

    gain: Any = 2.0
    n: Any = 3


def scaling():
    """A new kernel, which has met no model yet, and the models that it was traced for."""
    traced = []

    @dl.kernel("(n)->(n)")
    def scaled(model, x):
        traced.append(model)
        return x * model.gain

    return scaled, traced


@dl.kernel("(3)->(3)")
def powers(model, x, *, exponent=1, offset=0.0):
    return x**exponent + offset


# What is remembered.


def test_nothing_is_traced_before_the_first_use():
    _, traced = scaling()
    assert traced == []


def test_a_second_call_does_not_trace_again():
    scaled, traced = scaling()
    scaled(Model(), X)
    scaled(Model(), X)
    assert traced == [Model()]


def test_equal_models_share_one_ufunc():
    scaled, _ = scaling()
    assert scaled.specialize(Model(3.0)) is scaled.specialize(Model(3.0))


def test_different_models_have_different_ufuncs():
    scaled, _ = scaling()
    assert scaled.specialize(Model(3.0)) is not scaled.specialize(Model(4.0))


def test_many_models_are_kept_apart():
    scaled, _ = scaling()
    models = [Model(float(k)) for k in range(20)]
    for _ in range(2):
        for model in models:
            np.testing.assert_array_equal(scaled(model, X), X * model.gain)


def test_a_model_at_the_address_of_a_dead_one_is_not_taken_for_it():
    scaled, _ = scaling()
    for k in range(300):
        model = Model(float(k % 5))
        np.testing.assert_array_equal(scaled(model, X), X * model.gain)
        del model


@pytest.mark.parametrize("model", [None, "text", 3, 2.5, (1, "a"), frozenset({1}), b"x"], ids=repr)
def test_any_frozen_object_can_be_a_model(model):
    @dl.kernel("(3)->(3)")
    def f(model, x):
        return x + 1.0

    np.testing.assert_array_equal(f(model, X), X + 1.0)


def type_of(gain):
    """A number that tells apart what == does not."""
    return 3.0 + math.copysign(0.5, gain) if type(gain) is float else {bool: 1.0, int: 2.0}[type(gain)]


@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: (x,), Model, lambda x: (Model((x, "a")),)])
def test_equal_numbers_of_different_types_are_different_models(wrap):
    def leaf(model):
        while type(model) not in (bool, int, float):
            model = model.gain if isinstance(model, Model) else model[0]
        return model

    @dl.kernel("()->()")
    def f(model, x):
        return x * type_of(leaf(model))

    results = [f(wrap(gain), 1.0) for gain in (1, 1.0, True, 0, 0.0, -0.0, False)]
    assert results == [2.0, 3.5, 1.0, 2.0, 3.5, 2.5, 1.0]


@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: (x,)])
def test_equal_numbers_of_different_types_are_different_options(wrap):
    @dl.kernel("()->()")
    def f(model, x, *, gain):
        return x * type_of(gain[0] if isinstance(gain, tuple) else gain)

    results = [f(None, 1.0, gain=wrap(gain)) for gain in (1, 1.0, True, 0, 0.0, -0.0, False)]
    assert results == [2.0, 3.5, 1.0, 2.0, 3.5, 2.5, 1.0]


class Pair(NamedTuple):
    """Equal to a plain tuple of the same numbers."""

    a: float
    b: float


def test_a_named_tuple_and_its_plain_twin_are_different_models():
    @dl.kernel("()->()")
    def f(model, x):
        pair = model[0]
        return x * (pair.a if isinstance(pair, Pair) else 10.0)

    assert [f((pair,), 1.0) for pair in (Pair(2.0, 3.0), (2.0, 3.0))] == [2.0, 10.0]


@dataclass(unsafe_hash=True)
class Changing:
    """Hashable by content, and yet it can change."""

    gain: float
    n: int = 3


@pytest.mark.parametrize("wrap", [lambda model: model, lambda model: Model((model,))], ids=["alone", "inside"])
def test_a_model_that_changed_gets_a_kernel_of_its_own(wrap):
    @dl.kernel("(3)->(3)")
    def scaled(model, x):
        return x * (model.gain[0].gain if isinstance(model, Model) else model.gain)

    part = Changing(2.0)
    model = wrap(part)
    scaled(model, X)
    part.gain = 5.0
    np.testing.assert_array_equal(scaled(model, X), X * 5.0)


def test_targets_are_kept_apart():
    ufuncs = {powers.compiled(None, target=TARGET.with_lanes(w)).ufunc for w in (1, *TARGET.widths)}
    assert len(ufuncs) == 1 + len(TARGET.widths)


def test_a_target_that_is_not_this_machine_is_refused():
    foreign = Target(TARGET.triple, TARGET.cpu, "+imaginary", 1)
    with refuses("wrong-machine"):
        powers.compiled(None, target=foreign)


# Options.


def test_options_have_their_defaults():
    np.testing.assert_array_equal(powers(None, X), X)


def test_options_are_part_of_what_is_compiled():
    results = [powers(None, X, exponent=k) for k in (1, 2, 3, 2)]
    np.testing.assert_array_equal(results, [X, X**2, X**3, X**2])


def test_an_option_given_as_its_default_is_the_same_kernel():
    assert powers.specialize(None, exponent=1) is powers.specialize(None)


def test_the_order_of_options_does_not_matter():
    assert powers.specialize(None, exponent=2, offset=1.0) is powers.specialize(None, offset=1.0, exponent=2)


def test_an_unknown_option_is_refused():
    with pytest.raises(TypeError, match=r"no option 'exponemt'; its options are: exponent, offset"):
        powers(None, X, exponemt=2)


def test_an_option_without_default_must_be_given():
    @dl.kernel("()->()")
    def f(model, x, *, gain):
        return x * gain

    with pytest.raises(TypeError, match="needs a value for the option 'gain'"):
        f(None, 1.0)


def test_an_unhashable_option_is_refused():
    with pytest.raises(TypeError, match=r"the option exponent \(set\) cannot be hashed"):
        powers(None, X, exponent={1})


# Models that cannot be.


@pytest.mark.parametrize("model", [[1], {}, np.zeros(3), Model([1])], ids=["list", "dict", "array", "list inside"])
def test_an_unhashable_model_is_refused(model):
    with pytest.raises(TypeError, match="cannot be hashed"):
        powers(model, X)


def test_a_model_that_is_hashed_by_identity_is_refused():
    class Plain:
        n = 3

    with pytest.raises(TypeError, match="compared by identity"):
        powers(Plain(), X)


# Kernels in kernels.


@dl.kernel("(3)->(3),()")
def direction(model, x):
    length = dnp.sqrt(x @ x)
    return x / length, length


def test_a_kernel_inside_a_kernel_has_the_bits_of_code_written_out():
    @dl.kernel("(3)->(3)")
    def calling(model, x):
        d, length = direction(model, 2.0 * x)
        return dnp.cross(d, x) * length

    @dl.kernel("(3)->(3)")
    def written_out(model, x):
        y = 2.0 * x
        length = dnp.sqrt(y @ y)
        return dnp.cross(y / length, x) * length

    x = np.random.default_rng(0).normal(size=(19, 3))
    np.testing.assert_array_equal(calling(None, x), written_out(None, x))
    assert calling.program(None).digest == written_out.program(None).digest


def test_an_inner_kernel_takes_options_and_plain_numbers():
    @dl.kernel("()->(3)")
    def f(model, s):
        return s * powers(model, [1.0, 2.0, 3.0], exponent=2)

    np.testing.assert_array_equal(f(None, 2.0), [2.0, 8.0, 18.0])


def test_an_inner_kernel_may_have_another_model():
    scaled, _ = scaling()

    @dl.kernel("(3)->(3)")
    def f(model, x):
        return scaled(Model(2.0), x) + scaled(Model(3.0), x)

    np.testing.assert_array_equal(f(None, X), 5.0 * X)


def test_a_kernel_may_call_itself_with_a_smaller_model():
    @dl.kernel("()->()")
    def power(model, x):
        return x * power(model - 1, x) if model else x * 0.0 + 1.0

    assert power(5, 2.0) == 32.0


def test_a_kernel_that_calls_itself_with_ever_new_models_is_refused():
    @dl.kernel("()->()")
    def count(model, x):
        return count(model + 1, x)

    with refuses("endless-trace", "count"):
        count(0, 1.0)


def test_a_function_that_calls_itself_for_ever_stays_an_error_of_python():
    def endless(x):
        return endless(x)

    @dl.kernel("()->()")
    def f(model, x):
        return endless(x)

    with pytest.raises(RecursionError):
        f(None, 1.0)


def test_a_kernel_that_calls_itself_for_ever_is_refused():
    @dl.kernel("()->()")
    def f(model, x):
        return f(model, x + 1.0)

    with refuses("endless-trace"):
        f(None, 1.0)


def test_kernels_that_call_each_other_for_ever_are_refused():
    @dl.kernel("()->()")
    def f(model, x):
        return g(model, x)

    @dl.kernel("()->()")
    def g(model, x):
        return f(model, x)

    with refuses("endless-trace"):
        f(None, 1.0)


def test_an_inner_kernel_has_no_batch_axes():
    @dl.kernel("(2,3)->(2,3)")
    def f(model, x):
        return powers(model, x)

    with pytest.raises(ValueError, match="there are no batch axes in a trace"):
        f(None, np.zeros((2, 3)))


def test_an_inner_kernel_has_no_out():
    @dl.kernel("(3)->(3)")
    def f(model, x):
        return powers(model, x, out=np.zeros(3))

    with pytest.raises(TypeError, match="out= has no meaning"):
        f(None, X)


def test_an_inner_kernel_counts_its_arrays():
    @dl.kernel("(3)->(3)")
    def f(model, x):
        return powers(model, x, x)

    with pytest.raises(TypeError, match=r"powers takes 1 arrays \(x\), got 2"):
        f(None, X)


# What a function may return.


@pytest.mark.parametrize(
    ("returned", "refusal"),
    [
        (lambda x: None, ("missing-return",)),
        (lambda x: (x, None), ("missing-return",)),
        (lambda x: x, ("missing-return",)),
        (lambda x: (x, x[0], x), ("missing-return",)),
        (lambda x: (), ("missing-return",)),
        (lambda x: (x[:2], x[0]), ("wrong-shape", "(2,)", "(3,)")),
        (lambda x: (x, x), ("wrong-shape", "(3,)")),
        (lambda x: (x[None], x[0]), ("wrong-shape", "(1, 3)")),
    ],
)
def test_what_does_not_fit_the_signature_is_refused(returned, refusal):
    f = dl.kernel("(3)->(3),()")(lambda model, x: returned(x))
    with refuses(*refusal):
        f.specialize(None)


def test_plain_numbers_may_be_returned():
    f = dl.kernel("()->(2),()")(lambda model, x: ([1.0, 2.0], 3))
    first, second = f(None, np.zeros(5))
    np.testing.assert_array_equal(first, [[1.0, 2.0]] * 5)
    np.testing.assert_array_equal(second, [3.0] * 5)


@pytest.mark.parametrize("returned", ["text", 1j, object()], ids=["text", "complex", "object"])
def test_what_is_not_a_number_cannot_be_returned(returned):
    f = dl.kernel("()->()")(lambda model, x: returned)
    with pytest.raises(TypeError, match="only real numbers"):
        f.specialize(None)


# Signatures.


@pytest.mark.parametrize(
    "text",
    ["", "(n)", "(n)->", "->(n)", "n->n", "(n),->(n)", "(n->(n)", "(n m)->()", "(n)->(n)x", "(-1)->()", "(n?)->(n)",
     "(n)=>(n)", "(n)->(n)->(n)", "(é)->()", "((n))->()"],
)  # fmt: skip
def test_a_signature_that_cannot_be_read_is_refused(text):
    with refuses("bad-signature"):
        dl.kernel(text)


def test_spaces_in_a_signature_do_not_matter():
    f = dl.kernel(" ( n , 2 ) , ( ) -> ( n ) ")(lambda model, A, s: A @ np.ones(2) * s)
    assert f.specialize(Model()).signature == "(3,2),()->(3)"


def test_the_decorator_needs_its_signature():
    with refuses("bad-signature"):

        @dl.kernel
        def f(model, x):
            return x


def test_a_size_that_the_model_lacks_is_refused():
    f = dl.kernel("(links)->()")(lambda model, x: x[0])
    with refuses("bad-signature", "'links'"):
        f.specialize(Model())


@pytest.mark.parametrize("size", [2.5, "3", None, 3.0])
def test_a_size_that_is_no_integer_is_refused(size):
    f = dl.kernel("(n)->()")(lambda model, x: x[0])
    with refuses("bad-signature"):
        f.specialize(Model(n=size))


def test_a_negative_size_is_refused():
    f = dl.kernel("(n)->()")(lambda model, x: x[0])
    with refuses("bad-signature"):
        f.specialize(Model(n=-1))


@pytest.mark.parametrize("signature", ["(n)->(2)", "(2)->(2,n)", "(n)->(n)", "(n,2)->()"])
def test_a_size_of_zero_is_refused(signature):
    f = dl.kernel(signature)(lambda model, x: dnp.sum(x))
    with refuses("wrong-shape"):
        f.specialize(Model(n=0))


@pytest.mark.parametrize(
    "function", [lambda model, *x: x[0], lambda model, x, **options: x, lambda *args: args[1]], ids=["*", "**", "all"]
)
def test_a_varying_number_of_parameters_is_refused(function):
    with refuses("bad-signature"):
        dl.kernel("()->()")(function)


@pytest.mark.parametrize(
    "function", [lambda: 0.0, lambda model: 0.0, lambda model, x, y: x, lambda *, a, x: x], ids=["0", "1", "3", "*"]
)
def test_another_number_of_parameters_than_the_signature_has_is_refused(function):
    with refuses("bad-signature"):
        dl.kernel("()->()")(function)


def test_option_names_of_the_call_itself_are_refused():
    for function in (
        lambda m, x, *, out=None: x,
        lambda m, x, *, target=None: x,
        lambda m, x, *, model=None: x,
        lambda m, x, *, self=None: x,
    ):
        with refuses("bad-signature"):
            dl.kernel("()->()")(function)


# Calls.


def test_out_receives_the_result():
    out = np.empty((19, 3))
    assert powers(None, np.ones((19, 3)), out=out, offset=1.0) is out
    assert np.all(out == 2.0)


def test_several_outputs_come_as_a_tuple():
    results = direction(None, X)
    assert type(results) is tuple
    assert [np.shape(r) for r in results] == [(3,), ()]


def test_the_plain_function_works_on_floats():
    np.testing.assert_array_equal(powers.python(None, [1, 2, 3], exponent=3), [1.0, 8.0, 27.0])


def test_the_plain_function_checks_its_arrays():
    with pytest.raises(ValueError, match=r"powers.python takes one state: x has shape \(2, 3\), not \(3,\)"):
        powers.python(None, np.zeros((2, 3)))


def test_the_plain_function_counts_its_arrays():
    with pytest.raises(TypeError, match=r"powers takes 1 arrays \(x\), got 0"):
        powers.python(None)


def test_the_plain_function_checks_its_results():
    f = dl.kernel("()->(2)")(lambda model, x: x)
    with refuses("wrong-shape"):
        f.python(None, 1.0)


def test_a_kernel_looks_like_its_function():
    @dl.kernel("()->()")
    def same(model, x):
        """Nothing happens."""
        return x

    assert (same.__name__, same.__doc__) == ("same", "Nothing happens.")


def test_a_kernel_shows_its_arrays():
    assert repr(dl.aba) == "<kernel aba(model, q, v, tau)>"


def test_a_kernel_can_be_sent_to_another_process():
    assert pickle.loads(pickle.dumps(dl.aba)) is dl.aba


# Looking inside.


def test_inspection_gives_every_number():
    report = dl.aba.inspect(chain(2), target=TARGET)
    numbers = [report.flops, report.chunks, report.slots, report.code_bytes, *report.seconds.values()]
    numbers += [*report.traced.values(), *report.operations.values()]
    assert all(n > 0 for n in numbers)


def test_inspection_gives_ir_and_assembly():
    report = powers.inspect(None, target=TARGET, exponent=2)
    assert "fmul" in report.ir
    assert "mul" in report.assembly


def test_the_report_of_an_inspection_reads_well():
    text = str(powers.inspect(None, target=TARGET, exponent=3))
    assert "powers for" in text
    assert "machine operations  6 (6 mul)" in text


# Accidents.


def test_a_traced_value_that_leaked_cannot_be_used_later():
    kept = []

    @dl.kernel("()->()")
    def f(model, x):
        kept.append(x)
        return x

    f(None, 1.0)
    for use in (lambda x: x + 1.0, dnp.sin, lambda x: operator.mul(x, x)):
        with refuses("leaked-tracer"):
            use(kept[0])


def test_a_traced_value_that_leaked_cannot_enter_another_kernel():
    kept = []

    @dl.kernel("()->()")
    def f(model, x):
        kept.append(x)
        return kept[0] * x

    f(1, 1.0)
    with refuses("leaked-tracer"):
        f(2, 1.0)


def failing_once(error):
    """A kernel whose function raises at its first trace."""
    left = [error]

    @dl.kernel("(3)->(3)")
    def f(model, x):
        if left:
            raise left.pop()
        return x + 1.0

    return f


@pytest.mark.parametrize("error", [ZeroDivisionError("mine"), KeyboardInterrupt("mine")], ids=repr)
def test_an_exception_in_the_function_reaches_the_caller(error):
    with pytest.raises(type(error), match="mine"):
        failing_once(error)(None, X)


@pytest.mark.parametrize("error", [ZeroDivisionError("mine"), KeyboardInterrupt("mine")], ids=repr)
def test_after_an_exception_in_the_function_the_next_call_works(error):
    f = failing_once(error)
    with pytest.raises(type(error)):
        f(None, X)
    np.testing.assert_array_equal(f(None, X), X + 1.0)


@pytest.mark.parametrize("error", [MemoryError(), KeyboardInterrupt()], ids=repr)
def test_after_an_exception_in_the_compiler_the_next_call_works(error, monkeypatch):
    monkeypatch.setenv("DELASSUS_CACHE", "off")
    f = dl.kernel("(3)->(3)")(lambda model, x: x * 0.372 - 1.0)
    true = native.emit_objects
    left = [error]

    def emit_objects(*args):
        if left:
            raise left.pop()
        return true(*args)

    monkeypatch.setattr(native, "emit_objects", emit_objects)
    with pytest.raises(type(error)):
        f(None, X)
    np.testing.assert_allclose(f(None, X), X * 0.372 - 1.0, rtol=1e-15)


def test_a_kernel_too_large_to_hold_its_values_is_refused():
    f = dl.kernel("(600000)->()")(lambda model, x: dnp.sum(x))
    with refuses("kernel-too-large", "600001"):
        f.specialize(None)


def test_an_array_too_many_is_refused_and_not_written_to():
    @dl.kernel("(2)->(2)")
    def twice(model, x):
        return 2.0 * x

    extra = np.ones(2)
    with pytest.raises(TypeError, match="takes 1 arrays"):
        twice(None, np.ones(2), extra)
    np.testing.assert_array_equal(extra, 1.0)


def test_a_field_that_comparison_leaves_out_still_tells_models_apart():
    @dataclass(frozen=True)
    class Scale:
        by: float = field(compare=False)

    @dl.kernel("()->()")
    def scaled(model, x):
        return model.by * x

    assert [scaled(Scale(2.0), 1.0), scaled(Scale(3.0), 1.0)] == [2.0, 3.0]


def test_inputs_beyond_the_largest_frame_are_refused_before_tracing():
    @dl.kernel("(10000000000000)->()")
    def huge(model, x):
        return x[0]

    with refuses("kernel-too-large", "10000000000001"):
        huge(None, [1.0])
