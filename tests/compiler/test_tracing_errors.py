"""What a traced value cannot do: every refusal has the right type and names the thing."""

import cmath
import contextvars
import math
import threading

import numpy
import pytest

import delassus.numpy as np
from delassus.compiler.graph.program import Operand
from delassus.compiler.tracing.record import record
from delassus.compiler.tracing.trace import LeakedTracer
from delassus.errors import DelassusError
from refusals import refuses


def trace(function, shape=(3,)):
    """Trace a function of one array that returns one number."""
    return record("f", function, (Operand("x", shape),), (Operand("y", ()),))


def refused(function, error, message, shape=(3,)):
    with pytest.raises(error, match=message):
        trace(function, shape)


UNSUPPORTED = {
    "np.partition": lambda x: np.partition(x, 1),
    "np.exp2": np.exp2,
    "np.log10": np.log10,
    "np.fmod": lambda x: np.fmod(x, 1.0),
    "np.round": np.round,
    "np.cumsum": np.cumsum,
    "np.nonzero": np.nonzero,
    "np.median": np.median,
    "np.std": np.std,
    "np.allclose": lambda x: np.allclose(x, x),
    "np.fill_diagonal": lambda x: np.fill_diagonal(np.zeros((3, 3)), x),
    "np.fft.fft": np.fft.fft,
    "np.linalg.svd": lambda x: np.linalg.svd(np.outer(x, x)),
    "np.linalg.eigh": lambda x: np.linalg.eigh(np.outer(x, x)),
    "np.linalg.lstsq": lambda x: np.linalg.lstsq(np.outer(x, x), x),
    "np.linalg.matrix_power": lambda x: np.linalg.matrix_power(np.outer(x, x), 2),
}


@pytest.mark.parametrize(("name", "function"), UNSUPPORTED.items(), ids=UNSUPPORTED)
def test_a_function_without_a_compiled_form_names_itself(name, function):
    refused(function, TypeError, rf"^{name.replace('.', '[.]')} met traced values and has no compiled form")


def test_a_function_without_a_compiled_form_says_what_to_do():
    refused(np.exp2, TypeError, "Write it with the operations that have one .* or call it outside the kernel")


BY_PROTOCOL = {
    "np.exp2": numpy.exp2,
    "np.partition": lambda x: numpy.partition(x, 1),
    "np.fft.fft": numpy.fft.fft,
    "np.linalg.svd": lambda x: numpy.linalg.svd(np.outer(x, x)),
    "np.left_shift": lambda x: numpy.ones(3, int) << x,
    "np.add.accumulate": numpy.add.accumulate,
    "np.multiply.outer": lambda x: numpy.multiply.outer(x, x),
    "np.add.at": lambda x: numpy.add.at(numpy.zeros(3), [0], x[0]),
}


@pytest.mark.parametrize(("name", "function"), BY_PROTOCOL.items(), ids=BY_PROTOCOL)
def test_a_function_of_plain_numpy_without_a_compiled_form_names_itself(name, function):
    refused(function, TypeError, rf"^{name.replace('.', '[.]')} met traced values and has no compiled form")


TRUTH = {
    "if": lambda x: 1.0 if x[0] > 0 else 2.0,
    "and": lambda x: (x[0] > 0) and (x[1] > 0),
    "or": lambda x: (x[0] > 0) or (x[1] > 0),
    "not": lambda x: not x[0],
    "chained comparison": lambda x: 0 < x[0] < 1,
    "max": lambda x: max(x[0], x[1]),
    "in": lambda x: 1.0 in x,
    "bool": lambda x: bool(x[0]),
    "while": lambda x: next(iter(lambda: x[0] > 0, True)),
}


@pytest.mark.parametrize("function", TRUTH.values(), ids=TRUTH)
def test_the_truth_of_a_traced_value_is_unknown(function):
    refused(
        function, TypeError, r"truth of a traced value is not known .* np\.where\(condition, a, b\) .* np\.logical_and"
    )


NUMBERS = {
    "float": lambda x: float(x[0]),
    "int": lambda x: int(x[0]),
    "complex": lambda x: complex(x[0]),
    "math.sin": lambda x: math.sin(x[0]),
    "cmath.sqrt": lambda x: cmath.sqrt(x[0]),
    "math.floor": lambda x: math.floor(x[0]),
}


@pytest.mark.parametrize("function", NUMBERS.values(), ids=NUMBERS)
def test_a_traced_value_has_no_number(function):
    refused(function, TypeError, r"traced value has no number yet: .*delassus\.numpy.*np\.sin, not math\.sin")


PLAIN_ARRAYS = {
    "numpy.array": numpy.array,
    "numpy.asarray": numpy.asarray,
    "numpy.array of a list": lambda x: numpy.array([x, x]),
    "numpy.array of scalars": lambda x: numpy.array([x[0], 1.0]),
    "numpy.float64": lambda x: numpy.float64(x[0]),
    "slice of a plain array": lambda x: numpy.zeros(3).__setitem__(slice(None), x),
    "numpy.r_": lambda x: numpy.r_[x, 1.0],
}


@pytest.mark.parametrize("function", PLAIN_ARRAYS.values(), ids=PLAIN_ARRAYS)
def test_a_traced_array_cannot_become_a_plain_one(function):
    refused(function, TypeError, "cannot become a plain NumPy array: .*import delassus[.]numpy as np")


def test_an_item_of_a_plain_array_cannot_receive_a_traced_value():
    with pytest.raises(ValueError, match="setting an array element") as caught:
        trace(lambda x: numpy.zeros(3).__setitem__(0, x[0]))
    assert "make arrays that receive it with delassus.numpy.zeros" in str(caught.value.__cause__)


def plus_equals(x):
    plain = numpy.zeros(3)
    plain += x


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("np.add", plus_equals),
        ("np.sqrt", lambda x: numpy.sqrt(x, out=numpy.zeros(3))),
        ("np.sum", lambda x: np.sum(x, out=numpy.zeros(()))),
        ("np.multiply", lambda x: np.multiply(x, 2.0, numpy.zeros(3))),
    ],
)
def test_a_plain_array_cannot_receive_traced_values(name, function):
    refused(function, TypeError, rf"{name} cannot write traced values into a plain array: .*delassus\.numpy\.zeros")


INDICES = {
    "x[i]": lambda x: x[x[0]],
    "x[i, j]": lambda x: np.outer(x, x)[0, x[0]],
    "x[:n]": lambda x: x[: x[0]],
    "x[mask]": lambda x: x[x > 0],
    "x[list]": lambda x: x[[x[0], x[1]]],
    "x[i] = 1": lambda x: x.__setitem__(x[0], 1.0),
    "x[mask] = 1": lambda x: x.__setitem__(x > 0, 1.0),
    "list[i]": lambda x: [1.0, 2.0][x[0]],
    "range(n)": lambda x: range(x[0]),
    "zeros((2, n))": lambda x: np.zeros((2, x[0])),
}


@pytest.mark.parametrize("function", INDICES.values(), ids=INDICES)
def test_a_traced_value_is_no_index(function):
    refused(function, TypeError, r"cannot be indexed by a traced value.* known at run time only\. Use np\.take")


@pytest.mark.parametrize("function", [lambda x: numpy.arange(3.0)[x[0]], lambda x: numpy.arange(3.0)[x > 0]])
def test_a_plain_array_cannot_be_indexed_by_a_traced_value(function):
    refused(function, (TypeError, IndexError), "traced")


@pytest.mark.parametrize(
    ("operand", "dtype"),
    [
        (1j, "complex128"),
        (numpy.ones(3, complex), "complex128"),
        ("a", "<U1"),
        (None, "object"),
        (numpy.array([None, 1, 2]), "object"),
        (numpy.datetime64("2000-01-01"), r"datetime64\[D\]"),
    ],
    ids=str,
)
def test_only_real_numbers_mix_with_traced_values(operand, dtype):
    refused(lambda x: x + operand, TypeError, f"cannot mix traced values with an array of dtype {dtype}: only real")


@pytest.mark.parametrize("other", [2j, "2", None], ids=str)
def test_base_and_exponent_are_real_numbers(other):
    message = "np.power met traced values and .*: base and exponent must be real numbers"
    refused(lambda x: x[0] ** other, TypeError, message)
    refused(lambda x: np.power(other, x), TypeError, message)


def test_where_with_one_argument_is_refused():
    refused(lambda x: np.where(x > 0), TypeError, "np.where met traced values with one argument")


@pytest.mark.parametrize("name", ["min", "max"])
def test_an_extreme_of_nothing_has_no_value(name):
    refused(lambda x: getattr(np, name)(x[:0]), ValueError, f"np.{name} of no elements has no value")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("sum", {"dtype": float}),
        ("sum", {"initial": 1.0}),
        ("prod", {"where": [True, False, True]}),
        ("max", {"initial": 0}),
    ],
)
def test_a_reduction_takes_axis_and_keepdims_only(name, options):
    refused(
        lambda x: getattr(np, name)(x, **options),
        TypeError,
        f"np.{name} .*takes axis and keepdims, not {next(iter(options))}",
    )


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("where", lambda x: np.add(x, x, where=[True, False, True])),
        ("casting", lambda x: np.sqrt(x, casting="no")),
        ("dtype", lambda x: np.mean(x, dtype=float)),
        ("axes", lambda x: np.matmul(x, x, axes=[0, 0, 0])),
        ("dtype", lambda x: np.einsum("i->", x, dtype=float)),
        ("keepdims", lambda x: np.vecdot(x, x, keepdims=True)),
        ("order", lambda x: np.zeros_like(x, order="F")),
    ],
)
def test_an_option_without_a_compiled_form_is_refused_by_name(name, function):
    refused(function, TypeError, name)


@pytest.mark.parametrize("dtype", ["int32", "float32", "complex128", "object"])
@pytest.mark.parametrize(
    "convert",
    [
        lambda x, dtype: x.astype(dtype),
        lambda x, dtype: np.array(x, dtype=dtype),
        lambda x, dtype: np.asarray([x[0], 1.0], dtype=dtype),
        lambda x, dtype: np.full(3, x[0], dtype=dtype),
        lambda x, dtype: np.full_like(x, x[0], dtype=dtype),
        lambda x, dtype: np.full_like(numpy.zeros(3, dtype), x[0]),
        lambda x, dtype: np.concatenate([x, x], dtype=dtype),
        lambda x, dtype: np.stack([x, x], dtype=dtype),
    ],
    ids=["astype", "array", "asarray", "full", "full_like", "full_like a plain array", "concatenate", "stack"],
)
def test_traced_values_are_floats_or_truth_values(convert, dtype):
    refused(
        lambda x: convert(x, dtype),
        TypeError,
        f"float64 or bool, they cannot become {dtype}|cannot mix .* dtype {dtype}",
    )


SHAPES = {
    "x + y": (lambda x: x + x[:2], r"\(3,\).*\(2,\)"),
    "x += y": (lambda x: x.__iadd__(np.outer(x, x)), r"result has shape \(3, 3\), the array \(3,\)"),
    "x @= y": (lambda x: np.outer(x, x).__imatmul__(x), r"result has shape \(3,\), the array \(3, 3\)"),
    "x[:] = y": (lambda x: x.__setitem__(slice(None), x[:2]), r"\(2,\).*\(3,\)"),
    "x[0] = y": (lambda x: x.__setitem__(0, x[:2]), "sequence"),
    "out": (lambda x: np.add(x, 1.0, out=x[:2]), r"\(3,\).*\(2,\)"),
    "matmul": (lambda x: x @ np.ones((2, 2)), r"matmul: shapes \(3,\) and \(2, 2\) do not fit"),
    "matmul of length 1": (lambda x: x @ np.ones((1, 2)), r"matmul: shapes \(3,\) and \(1, 2\) do not fit"),
    "matmul of a scalar": (lambda x: x @ x[0], "matmul: an operand is a scalar"),
    "dot": (lambda x: np.dot(x, x[:1]), r"shapes \(3,\) and \(1,\) do not fit"),
    "vdot": (lambda x: np.vdot(x[:1], x), r"shapes \(1,\) and \(3,\) do not fit"),
    "inner": (lambda x: np.inner(x, x[:1]), r"shapes \(3,\) and \(1,\) do not fit"),
    "vecdot": (lambda x: np.vecdot(x, x[:1]), r"vecdot: shapes \(3,\) and \(1,\) do not fit"),
    "matvec": (lambda x: np.matvec(np.outer(x, x[:1]), x), r"matvec: shapes \(3, 1\) and \(3,\) do not fit"),
    "vecmat": (lambda x: np.vecmat(x, np.outer(x[:1], x)), r"vecmat: shapes \(3,\) and \(1, 3\) do not fit"),
    "tensordot": (lambda x: np.tensordot(x, x[:1], 1), r"tensordot: shapes \(3,\) and \(1,\) do not fit"),
    "tensordot axes": (lambda x: np.tensordot(x, np.outer(x, x), 2), "axis -2 is out of bounds"),
    "linalg.outer": (lambda x: np.linalg.outer(np.outer(x, x), x), "linalg.outer: two vectors are needed"),
    "cross": (lambda x: np.cross(x, x[:2]), "cross: vectors of length 3 expected, got 3 and 2"),
    "einsum lengths": (lambda x: np.einsum("i,i", x, x[:2]), r"\(3,\).*\(2,\)"),
    "einsum rank": (lambda x: np.einsum("ij->i", x), r"einsum: the term 'ij' does not fit an operand of shape \(3,\)"),
    "einsum rank below": (lambda x: np.einsum("i->i", np.outer(x, x)), "einsum: the term 'i' does not fit"),
    "einsum operands": (lambda x: np.einsum("i,i", x), "einsum got 1 operands for the 2 terms of 'i,i'"),
    "einsum new label": (lambda x: np.einsum("i->ij", x), "einsum: 'j' in the result of 'i->ij'"),
    "einsum label twice": (lambda x: np.einsum("i->ii", x), "einsum: 'i' in the result of 'i->ii'"),
    "einsum ellipsis": (lambda x: np.einsum("...->", x), "einsum: the result of '...->' needs an ellipsis"),
    "stack": (lambda x: np.stack([x, x[:2]]), "same shape"),
    "ragged nest": (lambda x: np.array([x, x[0]]), "same shape"),
    "reshape": (lambda x: x.reshape(2, 2), r"cannot reshape array of size 3 into shape \(2,2\)"),
    "broadcast_to": (lambda x: np.broadcast_to(x, (2,)), r"\(3,\).*\(2,\)"),
    "axis": (lambda x: np.sum(x, axis=1), "axis 1 is out of bounds"),
    "axis twice": (lambda x: np.sum(x, axis=(0, 0)), "repeated axis"),
}


if not hasattr(numpy, "matvec"):  # younger than NumPy 2.0
    del SHAPES["matvec"], SHAPES["vecmat"]


@pytest.mark.parametrize(("function", "message"), SHAPES.values(), ids=SHAPES)
def test_shapes_that_do_not_fit_are_named(function, message):
    refused(function, ValueError, message)


@pytest.mark.parametrize("function", [lambda x: np.ravel(x, "K"), lambda x: np.reshape(x, (3, 1), order="A")])
def test_traced_values_have_no_order_in_memory(function):
    refused(function, TypeError, "traced values have no order in memory, only 'C' and 'F' apply")


def test_einsum_takes_its_subscripts_as_a_string():
    refused(lambda x: np.einsum(x, [0], []), TypeError, "np.einsum on traced values takes its subscripts as a string")


@pytest.mark.parametrize("key", [3, -4, (0, 0)], ids=str)
def test_an_index_out_of_bounds_is_an_index_error(key):
    refused(lambda x: x[key], IndexError, "index")


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("np.subtract", lambda x: (x > 0) - (x < 1)),
        ("np.negative", lambda x: -(x > 0)),
        ("np.positive", lambda x: +(x > 0)),
        ("np.sign", lambda x: np.sign(x > 0)),
        ("np.reciprocal", lambda x: np.reciprocal(x > 0)),
    ],
)
def test_arithmetic_that_is_not_defined_for_truth_values_is_refused(name, function):
    refused(function, TypeError, f"{name} of booleans is not defined")


@pytest.mark.parametrize(
    "function",
    [lambda x: x & (x > 0), lambda x: (x > 0) | 2, lambda x: ~x, lambda x: numpy.array([1, 2, 3]) ^ (x > 0)],
    ids=["float & truth", "truth | int", "~float", "ints ^ truth"],
)
def test_bits_of_numbers_are_refused(function):
    refused(function, TypeError, "work on booleans, not on numbers")


@pytest.mark.parametrize("function", [lambda x: (x > 0).__iadd__(1.0), lambda x: np.add(x, 1.0, out=x > 0)])
def test_numbers_are_not_added_into_truth_values(function):
    refused(function, TypeError, "np.add cannot write numbers into an array of booleans")


@pytest.mark.parametrize(
    ("operator", "function"),
    [
        ("round", round),
        ("<<", lambda x: x << 1),
        ("divmod", lambda x: divmod(x, 2)),
    ],
)
def test_an_operator_without_a_compiled_form_is_named(operator, function):
    refused(function, TypeError, {"round": "np.round"}.get(operator, "unsupported operand"))


@pytest.mark.parametrize("name", ["cumsum", "item", "tolist", "std", "sort"])
def test_a_method_without_a_compiled_form_is_named(name):
    refused(lambda x: getattr(x, name)(), AttributeError, name)


def test_a_traced_array_cannot_be_a_key():
    refused(lambda x: {x: 1}, TypeError, "unhashable")


def test_a_view_of_repeated_elements_cannot_be_written_to():
    refused(lambda x: np.broadcast_to(x, (2, 3)).__setitem__(0, 1.0), ValueError, "read-only")


# --- values that outlive their trace ----------------------------------------------------------------------------


def leaked(shape=(3,)):
    """A traced array whose trace has ended."""
    kept = []
    record("f", lambda x: kept.append(x) or 1.0, (Operand("x", shape),), (Operand("y", ()),))
    return kept[0]


USES = {
    "x + 1": lambda x: x + 1.0,
    "1 - x": lambda x: 1.0 - x,
    "x * x": lambda x: x * x,
    "x[0] * x[1]": lambda x: x[0] * x[1],
    "x[0] / 2.0": lambda x: x[0] / 2.0,
    "x[0] + 2.0": lambda x: x[0] + 2.0,
    "2.0 * x[0]": lambda x: 2.0 * x[0],
    "-x": lambda x: -x,
    "x < 1": lambda x: x < 1,
    "x[0] = 1": lambda x: x.__setitem__(0, 1.0),
    "x += 1": lambda x: x.__iadd__(1.0),
    "np.sin(x)": np.sin,
    "numpy.sin(x)": numpy.sin,
    "np.stack": lambda x: np.stack([x, x]),
    "np.array([x[0], 1])": lambda x: np.array([x[0], 1.0]),
    "np.where": lambda x: np.where(True, x, 1.0),
    "np.clip(1, x, 2)": lambda x: np.clip(1.0, x, 2.0),
    "x.sum()": lambda x: x.sum(),
    "ndarray @ x": lambda x: numpy.ones((3, 3)) @ x,
    "x.astype": lambda x: x.astype(float),
    "np.linalg.norm": np.linalg.norm,
    "np.full": lambda x: np.full(2, x[0]),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_value_that_outlives_its_trace_is_refused(use):
    x = leaked()
    with refuses("leaked-tracer"):
        use(x)


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_value_of_an_earlier_trace_is_refused_in_a_later_one(use):
    x = leaked()
    with refuses("leaked-tracer"):
        trace(lambda y: use(x))


MIXTURES = {
    "x + y": lambda x, y: x + y,
    "y + x": lambda x, y: y + x,
    "x[0] * y[0]": lambda x, y: x[0] * y[0],
    "y[0] = x[0]": lambda x, y: y.__setitem__(0, x[0]),
    "y += x": lambda x, y: y.__iadd__(x),
    "np.stack": lambda x, y: np.stack([y, x]),
    "np.where": lambda x, y: np.where(y > 0, x, y),
    "np.einsum": lambda x, y: np.einsum("i,i", y, x),
    "return": lambda x, y: x[0],
}


@pytest.mark.parametrize("mix", MIXTURES.values(), ids=MIXTURES)
def test_a_value_of_an_outer_trace_is_refused_in_an_inner_one(mix):
    with refuses("leaked-tracer"):
        trace(lambda x: trace(lambda y: mix(x, y)) and 1.0)


def test_a_leaked_tracer_is_an_error_of_the_package():
    assert issubclass(LeakedTracer, DelassusError)


def test_a_trace_that_failed_is_closed():
    kept = []
    with pytest.raises(ZeroDivisionError):
        trace(lambda x: kept.append(x) or 1 / 0)
    with refuses("leaked-tracer"):
        kept[0] + 1.0
    assert type(np.zeros(2)) is numpy.ndarray


def outcome_in_thread(function):
    """What a function returns or raises in another thread."""
    outcome = []

    def run():
        try:
            outcome.append(function())
        except Exception as error:
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return outcome[0]


def test_a_value_that_outlives_its_trace_is_refused_in_another_thread():
    x = leaked()
    error = outcome_in_thread(lambda: x + 1.0)
    assert isinstance(error, LeakedTracer)


def test_a_value_is_refused_in_a_trace_of_another_thread():
    errors = []
    trace(lambda x: errors.append(outcome_in_thread(lambda: trace(lambda y: x[0] + y[0]))) or 1.0)
    assert isinstance(errors[0], LeakedTracer)


def test_another_thread_is_not_in_the_trace():
    made = []
    trace(lambda x: made.append(outcome_in_thread(lambda: np.zeros(2))) or 1.0)
    assert type(made[0]) is numpy.ndarray


def test_a_copied_context_does_not_keep_a_trace_open():
    contexts = []
    trace(lambda x: contexts.append((contextvars.copy_context(), x)) or 1.0)
    context, x = contexts[0]
    with refuses("leaked-tracer"):
        context.run(lambda: np.zeros(3) + x)
