"""The expression graph: what is folded and what is not, sharing, dead code, digests and fused operations."""

import dataclasses
import math
import os
import subprocess
import sys
from fractions import Fraction

import numpy
import pytest

import delassus.numpy as np
from delassus.compiler.backends.interpreter import evaluate
from delassus.compiler.functions.lower import flops, lower
from delassus.compiler.graph.graph import FALSE, MINUS_ONE, ONE, TRUE, ZERO, Builder
from delassus.compiler.graph.program import Operand
from delassus.compiler.tracing.record import record

NAN, INF = math.nan, math.inf


def program_of(function, inputs=3):
    """The program of a function of some scalars that returns one value or a tuple of them."""

    def values(*scalars):
        returned = function(*scalars)
        return returned if isinstance(returned, tuple) else (returned,)

    with numpy.errstate(all="ignore"):
        size = len(values(*[numpy.float64(1.5)] * inputs))
    operands = tuple(Operand(f"x{k}", ()) for k in range(inputs))
    return record("f", lambda *scalars: np.stack(values(*scalars)), operands, (Operand("y", (size,)),))


def operations(function, inputs=3):
    return program_of(function, inputs).count()


@pytest.fixture
def g():
    return Builder()


@pytest.fixture
def x(g):
    return g.emit(("input", 0, 0))


@pytest.fixture
def y(g):
    return g.emit(("input", 0, 1))


# --- sharing ----------------------------------------------------------------------------------------------------


SAME = [
    (lambda x, y, z: (x + y, x + y), {"add": 1}),
    (lambda x, y, z: (x + y, y + x), {"add": 1}),
    (lambda x, y, z: (x * y, y * x), {"mul": 1}),
    (lambda x, y, z: (x - y, x - y), {"sub": 1}),
    (lambda x, y, z: (np.sin(x * y) + z, np.sin(y * x) + z), {"add": 1, "mul": 1, "sin": 1}),
    (lambda x, y, z: (np.where(x < y, x, z), np.where(x < y, x, z)), {"lt": 1, "select": 1}),
    (lambda x, y, z: (np.where(x == y, 1.0, z), np.where(y == x, 1.0, z)), {"eq": 1, "select": 1}),
    (lambda x, y, z: (np.where(x > y, 1.0, z), np.where(y < x, 1.0, z)), {"lt": 1, "select": 1}),
    (lambda x, y, z: (abs(x), abs(-x)), {"abs": 1}),
    (lambda x, y, z: (x * 3.0, 3.0 * x), {"mul": 1}),
]


@pytest.mark.parametrize(("function", "expected"), SAME, ids=range(len(SAME)))
def test_the_same_expression_is_one_operation(function, expected):
    assert operations(function) == expected


DIFFERENT = [
    (lambda x, y, z: (x - y, y - x), {"sub": 2}),
    (lambda x, y, z: (x / y, y / x), {"div": 2}),
    (lambda x, y, z: ((x + y) + z, x + (y + z)), {"add": 4}),
    (lambda x, y, z: (np.minimum(x, y), np.maximum(x, y)), {"max": 1, "min": 1}),
]


@pytest.mark.parametrize(("function", "expected"), DIFFERENT, ids=range(len(DIFFERENT)))
def test_expressions_that_round_differently_stay_apart(function, expected):
    assert operations(function) == expected


def test_equal_constants_are_one_value(g):
    assert g.constant(0.1) == g.constant(0.1)


def test_constants_of_different_bits_are_different_values(g):
    assert g.constant(0.1) != g.constant(math.nextafter(0.1, 1.0))


def test_a_truth_value_is_not_the_number_that_equals_it(g):
    assert len({g.constant(True), g.constant(1.0), g.constant(False), g.constant(0.0)}) == 4


# --- folding ----------------------------------------------------------------------------------------------------


def constant_of(g, value):
    assert value <= 0, "not folded"
    return g.constants[-value]


NUMBERS = [0.0, 1.0, -1.0, 0.1, -3.0, 1e300, 1e-300, 2.0**-1022, INF, -INF, NAN]


@pytest.mark.parametrize("a", NUMBERS)
@pytest.mark.parametrize("b", NUMBERS)
@pytest.mark.parametrize(
    ("name", "exact"), [("add", numpy.add), ("sub", numpy.subtract), ("mul", numpy.multiply), ("div", numpy.divide)]
)
def test_arithmetic_of_constants_is_done_once_and_for_all(g, name, exact, a, b):
    with numpy.errstate(all="ignore"):
        expected = float(exact(a, b))
    value = getattr(g, name)(g.constant(a), g.constant(b))
    if name == "div" and b == 0.0:
        assert value > 0, "which infinity this is depends on the sign of zero, so it is left to the machine"
        return
    expected = 0.0 if abs(expected) < sys.float_info.min else expected
    numpy.testing.assert_equal(constant_of(g, value), expected)


@pytest.mark.parametrize("a", NUMBERS)
@pytest.mark.parametrize("b", NUMBERS)
@pytest.mark.parametrize(
    ("name", "exact"), [("lt", numpy.less), ("le", numpy.less_equal), ("eq", numpy.equal), ("ne", numpy.not_equal)]
)
def test_comparisons_of_constants_are_done_once_and_for_all(g, name, exact, a, b):
    assert getattr(g, name)(g.constant(a), g.constant(b)) == (TRUE if exact(a, b) else FALSE)


IDENTITIES = {
    "x + 0": lambda g, x: (g.add(x, ZERO), x),
    "0 + x": lambda g, x: (g.add(ZERO, x), x),
    "x - 0": lambda g, x: (g.sub(x, ZERO), x),
    "0 - x": lambda g, x: (g.sub(ZERO, x), g.neg(x)),
    "x * 0": lambda g, x: (g.mul(x, ZERO), ZERO),
    "0 * x": lambda g, x: (g.mul(ZERO, x), ZERO),
    "x * 1": lambda g, x: (g.mul(x, ONE), x),
    "1 * x": lambda g, x: (g.mul(ONE, x), x),
    "x * -1": lambda g, x: (g.mul(x, MINUS_ONE), g.neg(x)),
    "-1 * x": lambda g, x: (g.mul(MINUS_ONE, x), g.neg(x)),
    "x / 1": lambda g, x: (g.div(x, ONE), x),
    "x / -1": lambda g, x: (g.div(x, MINUS_ONE), g.neg(x)),
    "0 / x": lambda g, x: (g.div(ZERO, x), ZERO),
    "--x": lambda g, x: (g.neg(g.neg(x)), x),
    "min(x, x)": lambda g, x: (g.minimum(x, x), x),
    "max(x, x)": lambda g, x: (g.maximum(x, x), x),
    "sqrt 4": lambda g, x: (g.sqrt(g.constant(4.0)), g.constant(2.0)),
    "abs -3": lambda g, x: (g.abs(g.constant(-3.0)), g.constant(3.0)),
    "where(true)": lambda g, x: (g.select(TRUE, x, ONE), x),
    "where(false)": lambda g, x: (g.select(FALSE, x, ONE), ONE),
    "where(c, x, x)": lambda g, x: (g.select(g.lt(x, ONE), x, x), x),
    "true and c": lambda g, x: (g.logical_and(TRUE, g.lt(x, ONE)), g.lt(x, ONE)),
    "false and c": lambda g, x: (g.logical_and(g.lt(x, ONE), FALSE), FALSE),
    "false or c": lambda g, x: (g.logical_or(FALSE, g.lt(x, ONE)), g.lt(x, ONE)),
    "true or c": lambda g, x: (g.logical_or(g.lt(x, ONE), TRUE), TRUE),
    "true xor c": lambda g, x: (g.logical_xor(TRUE, g.lt(x, ONE)), g.logical_not(g.lt(x, ONE))),
    "false xor c": lambda g, x: (g.logical_xor(g.lt(x, ONE), FALSE), g.lt(x, ONE)),
    "not not c": lambda g, x: (g.logical_not(g.logical_not(g.lt(x, ONE))), g.lt(x, ONE)),
}


@pytest.mark.parametrize("identity", IDENTITIES.values(), ids=IDENTITIES)
def test_identities_of_zero_one_and_minus_one_cost_nothing(g, x, identity):
    got, expected = identity(g, x)
    assert got == expected


UNFOLDED = {
    "1e-300 x": (lambda x: 1e-300 * x, {"mul": 1}),
    "x + 1e-300": (lambda x: x + 1e-300, {"add": 1}),
    "x - x": (lambda x: x - x, {"sub": 1}),
    "x / x": (lambda x: x / x, {"div": 1}),
    "x + x": (lambda x: x + x, {"add": 1}),
    "x - 1": (lambda x: x - 1.0, {"sub": 1}),
    "x / 3": (lambda x: x / 3.0, {"div": 1}),
    "1 / x": (lambda x: 1.0 / x, {"div": 1}),
    "x / 0": (lambda x: x / 0.0, {"div": 1}),
    "0.9999999999999999 x": (lambda x: 0.9999999999999999 * x, {"mul": 1}),
    "x + 1 - 1": (lambda x: (x + 1.0) - 1.0, {"add": 1, "sub": 1}),
    "(x * 3) / 3": (lambda x: (x * 3.0) / 3.0, {"div": 1, "mul": 1}),
    "sqrt(x * x)": (lambda x: np.sqrt(x * x), {"mul": 1, "sqrt": 1}),
    "sqrt(-1)": (lambda x: np.sqrt(np.full((), -1.0)) + x, {"add": 1, "sqrt": 1}),
    "0 / 0": (lambda x: np.zeros(()) / 0.0 + x, {"add": 1, "div": 1}),
    "x < x": (lambda x: np.where(x < x, 1.0, 2.0), {"lt": 1, "select": 1}),  # noqa: PLR0124
    "x == x": (lambda x: np.where(x == x, 1.0, 2.0), {"eq": 1, "select": 1}),  # noqa: PLR0124
    "x != x": (lambda x: np.where(x != x, 1.0, 2.0), {"ne": 1, "select": 1}),  # noqa: PLR0124
}


@pytest.mark.parametrize(("function", "expected"), UNFOLDED.values(), ids=UNFOLDED)
def test_what_depends_on_the_number_is_left_to_the_machine(function, expected):
    program = record("f", function, (Operand("x", ()),), (Operand("y", ()),))
    assert program.count() == expected


SIGNS = {
    "x * -y": (lambda x, y, z: (x * y, x * -y), {"mul": 1, "neg": 1}),
    "-x * -y": (lambda x, y, z: (x * y, -x * -y), {"mul": 1}),
    "x / -y": (lambda x, y, z: (x / y, x / -y, -x / y), {"div": 1, "neg": 1}),
    "-x / -y": (lambda x, y, z: (x / y, -x / -y), {"div": 1}),
    "x + -y": (lambda x, y, z: x + -y, {"sub": 1}),
    "-x + y": (lambda x, y, z: -x + y, {"sub": 1}),
    "x - -y": (lambda x, y, z: x - -y, {"add": 1}),
    "-x - y": (lambda x, y, z: -x - y, {"add": 1, "neg": 1}),
    "z - x * -y": (lambda x, y, z: z - x * -y, {"add": 1, "mul": 1}),
    "x * -3": (lambda x, y, z: (x * 3.0, x * -3.0), {"mul": 1, "neg": 1}),
    "-3 / x": (lambda x, y, z: (3.0 / x, -3.0 / x), {"div": 1, "neg": 1}),
}


@pytest.mark.parametrize(("function", "expected"), SIGNS.values(), ids=SIGNS)
def test_signs_are_pulled_outwards(function, expected):
    assert operations(function) == expected


@pytest.mark.parametrize("function", [f for f, _ in SIGNS.values()], ids=SIGNS)
def test_pulling_a_sign_out_keeps_every_bit(function):
    x = numpy.random.default_rng(0).normal(size=(3, 50))
    (got,) = evaluate(program_of(function), *x, fma=False)
    expected = function(*x)
    numpy.testing.assert_array_equal(got.T, numpy.atleast_2d(expected))


@pytest.mark.parametrize("power", [2.0, 0.5, -4.0, 2.0**1022, 2.0**-1021])
def test_a_division_by_a_power_of_two_is_a_product(g, x, power):
    assert g.div(x, g.constant(power)) == g.mul(x, g.constant(1.0 / power))


@pytest.mark.parametrize("divisor", [3.0, 2.0**1023, INF, NAN, 1.5])
def test_a_division_whose_inverse_is_not_exact_stays_one(g, x, divisor):
    assert g.nodes[g.div(x, g.constant(divisor))][0] == "div"


@pytest.mark.parametrize("number", [5e-324, -5e-324, 1e-310, math.nextafter(sys.float_info.min, 0.0), -0.0])
def test_subnormal_constants_are_zero(g, number):
    assert g.constant(number) == ZERO


def test_the_smallest_normal_constant_is_kept(g):
    assert g.constants[-g.constant(sys.float_info.min)] == sys.float_info.min


# --- the finished program ---------------------------------------------------------------------------------------


def test_what_no_result_needs_is_removed():
    def body(x, y, z):
        _ = np.sin(x) * y / (z + 17.0)
        return x + y

    program = program_of(body)
    assert (program.count(), program.constants) == ({"add": 1}, (0.0,))


def test_an_input_that_is_not_used_keeps_its_place():
    program = program_of(lambda x, y, z: z + 1.0)
    assert [o.name for o in program.inputs] == ["x0", "x1", "x2"]
    (got,) = evaluate(program, 10.0, 20.0, 30.0)
    assert got == [31.0]


def test_arguments_come_before_their_operation():
    program = program_of(lambda x, y, z: (np.sin(x * y) / (z + x), np.sqrt(x) * y))
    assert all(a < value for value, node in enumerate(program.nodes) if node[0] not in ("input",) for a in node[1:])


def test_results_may_be_inputs_and_constants():
    (got,) = evaluate(program_of(lambda x, y, z: (y, np.full((), 2.5), x, np.zeros(()))), 1.0, 2.0, 3.0)
    assert got.tolist() == [2.0, 2.5, 1.0, 0.0]


EXAMPLE = """
import delassus.numpy as np
from delassus.compiler.graph.program import Operand
from delassus.compiler.tracing.record import record

def body(x, y):
    z = np.where(x[0] < y, np.sin(x) * 0.1, x - 2.5)
    return z, (z > 0).any() | True, np.linalg.norm(z)

inputs = (Operand("x", (3,)), Operand("y", ()))
program = record("body", body, inputs, (Operand("z", (3,)), Operand("t", ()), Operand("n", ())))
"""


@pytest.fixture(scope="module")
def example():
    names = {}
    exec(EXAMPLE, names)
    return names["program"]


@pytest.mark.parametrize("seed", ["0", "1", "4242"])
def test_the_digest_is_the_same_in_another_process(example, seed):
    printed = subprocess.run(
        [sys.executable, "-c", EXAMPLE + "print(program.digest)"],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert printed.stdout.strip() == example.digest


def test_the_digest_is_the_same_for_the_same_function_traced_again(example):
    names = {}
    exec(EXAMPLE, names)
    assert names["program"].digest == example.digest


def replaced(sequence, index, value):
    changed = list(sequence)
    changed[index] = value
    return tuple(changed)


def swap_kind(program):
    at = next(i for i, node in enumerate(program.nodes) if node[0] == "sub")
    return replaced(program.nodes, at, ("add", *program.nodes[at][1:]))


def swap_arguments(program):
    at = next(i for i, node in enumerate(program.nodes) if node[0] == "sub")
    kind, a, b = program.nodes[at]
    return replaced(program.nodes, at, (kind, b, a))


CHANGES = {
    "an operation": lambda p: {"nodes": swap_kind(p)},
    "the order of arguments": lambda p: {"nodes": swap_arguments(p)},
    "one operation more": lambda p: {"nodes": (*p.nodes, ("neg", 1))},
    "one bit of a constant": lambda p: {"constants": replaced(p.constants, -1, math.nextafter(p.constants[-1], INF))},
    "a constant that is equal": lambda p: {"constants": tuple(c if c else False for c in p.constants)},
    "one constant more": lambda p: {"constants": (*p.constants, 0.0)},
    "the name of an input": lambda p: {"inputs": replaced(p.inputs, 0, Operand("w", (3,)))},
    "the shape of an input": lambda p: {"inputs": replaced(p.inputs, 0, Operand("x", (3, 1)))},
    "the name of an output": lambda p: {"outputs": replaced(p.outputs, 0, Operand("w", (3,)))},
    "the shape of an output": lambda p: {"outputs": replaced(p.outputs, 0, Operand("z", (1, 3)))},
    "the order of results": lambda p: {"results": replaced(p.results, 0, p.results[0][::-1])},
    "one result": lambda p: {"results": replaced(p.results, 2, (1,))},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_the_digest_tells_programs_apart_that_differ_in(example, change):
    assert dataclasses.replace(example, **change(example)).digest != example.digest


# --- lowering ---------------------------------------------------------------------------------------------------


def fused(function, inputs=3):
    return lower(program_of(function, inputs), fma=True).count()


SUMS = {
    "x y + z": (lambda x, y, z: x * y + z, {"fma": 1}),
    "z + x y": (lambda x, y, z: z + x * y, {"fma": 1}),
    "x y - z": (lambda x, y, z: x * y - z, {"fms": 1}),
    "z - x y": (lambda x, y, z: z - x * y, {"fnma": 1}),
    "two sums of one product": (lambda x, y, z: (x * y + z, x * y - 2.0), {"fma": 1, "fms": 1}),
    "three sums of one product": (lambda x, y, z: (x * y + z, x * y + x, y - x * y), {"fma": 2, "fnma": 1}),
    "a sum of two products": (lambda x, y, z: x * y + y * z, {"fma": 1, "mul": 1}),
    "a dot product": (lambda x, y, z: x * x + y * y + z * z, {"fma": 2, "mul": 1}),
    "a difference of a product and itself": (lambda x, y, z: x * y - x * y, {"mul": 1, "sub": 1}),
    "a product that is a result": (lambda x, y, z: (x * y + z, x * y), {"add": 1, "mul": 1}),
    "a product that is divided, too": (lambda x, y, z: (x * y + z, (x * y) / z), {"add": 1, "div": 1, "mul": 1}),
    "a product in a product": (lambda x, y, z: (x * y) * z + x, {"fma": 1, "mul": 1}),
    "a quotient": (lambda x, y, z: x / y + z, {"add": 1, "div": 1}),
}


@pytest.mark.parametrize(("function", "expected"), SUMS.values(), ids=SUMS)
def test_a_product_is_fused_if_every_use_of_it_is_a_sum(function, expected):
    assert fused(function) == expected


@pytest.mark.parametrize("function", [f for f, _ in SUMS.values()], ids=SUMS)
def test_nothing_is_fused_for_a_machine_without_fused_operations(function):
    program = program_of(function)
    assert lower(program, fma=False).count() == program.count()


def test_elementary_functions_are_not_fused_either_for_such_a_machine():
    lowered = lower(program_of(lambda x, y, z: np.sin(x) * y + np.cos(z)), fma=False)
    assert set(lowered.count()).isdisjoint({"fma", "fms", "fnma"})


def test_elementary_functions_are_expanded_into_operations_of_the_machine():
    def body(x, y, z):
        return np.sin(x), np.cos(y), np.sign(z), np.minimum(x, y), np.maximum(y, z)

    lowered = lower(program_of(body), fma=True)
    assert set(lowered.count()).isdisjoint({"sin", "cos", "sign", "min", "max"})


def test_sin_and_cos_of_one_angle_share_their_polynomials():
    both = flops(lower(program_of(lambda x, y, z: (np.sin(x), np.cos(x))), fma=True))
    assert both == flops(lower(program_of(lambda x, y, z: np.sin(x)), fma=True))


@pytest.mark.parametrize(
    ("function", "exact"),
    [
        (lambda x, y, z: x * y + z, lambda x, y, z: x * y + z),
        (lambda x, y, z: x * y - z, lambda x, y, z: x * y - z),
        (lambda x, y, z: z - x * y, lambda x, y, z: z - x * y),
    ],
    ids=["fma", "fms", "fnma"],
)
def test_a_fused_operation_rounds_once(function, exact):
    x, y, z = numpy.random.default_rng(1).normal(size=(3, 200))
    z[:100] = -(x * y)[:100]
    z[100:150] = (x * y)[100:150]
    (got,) = evaluate(program_of(function), x, y, z)
    expected = [float(exact(*map(Fraction, values))) for values in zip(x, y, z, strict=True)]
    numpy.testing.assert_array_equal(got[:, 0], expected)


@pytest.mark.parametrize("fma", [True, False])
def test_infinities_and_nan_go_through_fused_operations_as_through_plain_ones(fma):
    x, y, z = numpy.meshgrid(*[[0.0, -1.5, 2.0**500, INF, -INF, NAN]] * 3)
    (got,) = evaluate(program_of(lambda x, y, z: x * y + z), x, y, z, fma=fma)
    with numpy.errstate(all="ignore"):
        expected = x * y + z
    numpy.testing.assert_array_equal(got[..., 0], expected)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x, y, z: x * y + z, 2),
        (lambda x, y, z: x * y * z, 2),
        (lambda x, y, z: np.sqrt(x) / y, 2),
        (lambda x, y, z: np.where(x < y, -x, abs(z)), 0),
    ],
    ids=["x y + z", "x y z", "sqrt(x) / y", "where"],
)
def test_flops_count_arithmetic_and_a_fused_operation_twice(function, expected):
    assert flops(lower(program_of(function), fma=True)) == expected
