"""Derivatives against complex steps, central differences and closed forms; their cost; what they refuse."""

import math
from collections.abc import Callable

import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import delassus as dl
import delassus.numpy as np
from delassus.compiler import grad, jacobian, jvp, vjp
from delassus.compiler.backends.interpreter import evaluate
from delassus.compiler.backends.target import Target
from delassus.compiler.differentiation import linearize
from delassus.compiler.functions.registry import FUNCTIONS
from delassus.compiler.graph.program import Operand
from delassus.compiler.tracing.array import Array
from delassus.compiler.tracing.record import record
from delassus.compiler.tracing.trace import LeakedTracer, Trace
from delassus.model.generators import balanced_tree, chain, random_tree
from how_many import examples
from native_bits import FULL
from programs import COMPARISON, OPERATIONS, RandomProgram, programs
from refusals import refuses

STEP = 1e-20


def total(program):
    return sum(program.count().values())


def assert_close(got, expected, rtol=1e-12, atol=1e-12):
    numpy.testing.assert_allclose(got, expected, rtol, atol)


def differences(function, x, h=1e-6):
    """d function / dx by central differences."""
    columns = []
    for k in numpy.ndindex(x.shape):
        e = numpy.zeros(x.shape)
        e[k] = h
        columns.append((numpy.asarray(function(x + e)) - numpy.asarray(function(x - e))) / (2 * h))
    return numpy.moveaxis(numpy.reshape(columns, (*x.shape, *columns[0].shape)), range(x.ndim), range(-x.ndim, 0))


def complex_steps(function, x):
    """d function / dx, exact to rounding, by a function that takes complex numbers."""
    columns = [numpy.imag(function(x + 1j * STEP * e)) / STEP for e in numpy.eye(x.size)]
    return numpy.stack(columns, -1)


# --- each operation ---------------------------------------------------------------------------------------------

UNARY: dict[str, tuple[Callable, Callable, list[float]]] = {
    "neg": (lambda x: -x, lambda x: -1.0, [0.0, 2.0]),
    "abs": (abs, numpy.sign, [-2.0, 0.0, 3.0]),
    "sqrt": (np.sqrt, lambda x: 0.5 / numpy.sqrt(x), [0.3, 4.0]),
    "sin": (np.sin, numpy.cos, [-1.0, 0.0, 30.0]),
    "cos": (np.cos, lambda x: -numpy.sin(x), [-1.0, 0.5, 30.0]),
    "arctan": (np.arctan, lambda x: 1 / (1 + x * x), [-7.0, 0.0, 0.4]),
    "sign": (np.sign, lambda x: 0.0, [-1.0, 2.0]),
    "3 / x": (lambda x: 3.0 / x, lambda x: -3 / x**2, [-0.2, 5.0]),
    "x / 3": (lambda x: x / 3.0, lambda x: 1 / 3, [-0.2, 5.0]),
    "x / x": (lambda x: x / x, lambda x: 0.0, [0.25, 3.0]),
    "x - x": (lambda x: x - x, lambda x: 0.0, [0.3]),
    "x x": (lambda x: x * x, lambda x: 2 * x, [-0.2, 5.0]),
    "x⁻³": (lambda x: x**-3, lambda x: -3 * x**-4, [-0.2, 5.0]),
    "x^2.5": (lambda x: x**2.5, lambda x: 2.5 * x**1.5, [0.2, 5.0]),
    "clip": (lambda x: np.clip(x, -1.0, 1.0), lambda x: float(abs(x) < 1), [-2.0, 0.5, 2.0]),
    "x > 1": (lambda x: (x > 1.0) * 3.0, lambda x: 0.0, [0.5, 1.5]),
    "a constant": (lambda x: 2.5, lambda x: 0.0, [0.5]),
    "itself": (lambda x: x, lambda x: 1.0, [0.5]),
}
CASES = [pytest.param(f, d, x, id=f"{name} at {x}") for name, (f, d, points) in UNARY.items() for x in points]


@pytest.mark.parametrize(("function", "derivative", "x"), CASES)
def test_a_function_of_one_number(function, derivative, x):
    assert_close(grad(function)(x), derivative(x))
    assert_close(jvp(function, (x,), (2.0,))[1], 2 * derivative(x))
    assert_close(jacobian(function, mode="forward")(x), derivative(x))


BINARY = {
    "add": (np.add, lambda a, b: (1, 1)),
    "sub": (np.subtract, lambda a, b: (1, -1)),
    "mul": (np.multiply, lambda a, b: (b, a)),
    "div": (np.divide, lambda a, b: (1 / b, -a / b**2)),
    "min": (np.minimum, lambda a, b: (a <= b, a > b)),
    "max": (np.maximum, lambda a, b: (a >= b, a < b)),
    "arctan2": (np.arctan2, lambda a, b: (b / (a * a + b * b), -a / (a * a + b * b))),
}


@pytest.mark.parametrize(("function", "derivatives"), BINARY.values(), ids=BINARY)
@pytest.mark.parametrize("a", [-1.5, 0.5, 2.0])
@pytest.mark.parametrize("b", [-0.5, 0.5, 3.0])
def test_a_function_of_two_numbers(function, derivatives, a, b):
    expected = numpy.array(derivatives(a, b), float)
    assert_close(grad(function, (0, 1))(a, b), expected)
    assert_close(jvp(function, (a, b), (2.0, -3.0))[1], expected @ [2, -3])


# name: the function by NumPy, points inside its domain; nodes that lowering may know or not
ELEMENTARY = {
    "exp": (numpy.exp, [-1.0, 0.5]),
    "log": (numpy.log, [0.2, 3.0]),
    "tan": (numpy.tan, [-1.0, 0.5]),
    "arcsin": (numpy.arcsin, [-0.9, 0.5]),
    "arccos": (numpy.arccos, [-0.9, 0.5]),
    "expm1": (numpy.expm1, [-1.0, 0.5]),
    "log1p": (numpy.log1p, [-0.5, 2.0]),
    "sinh": (numpy.sinh, [-1.0, 0.5]),
    "cosh": (numpy.cosh, [-1.0, 0.5]),
    "tanh": (numpy.tanh, [-1.0, 0.5]),
    "arctan": (numpy.arctan, [-1.0, 0.5]),
    "sin": (numpy.sin, [-1.0, 0.5]),
    "cos": (numpy.cos, [-1.0, 0.5]),
    "hypot": (lambda a, b: numpy.sqrt(a * a + b * b), [0.5, -2.0]),
    "power": (lambda a, b: a**b, [0.5, 2.0]),
}


def unfolded(g, value, numbers):
    """The number of a value of a builder, by NumPy's own functions, whether or not lowering knows the operation."""
    if value <= 0:
        return g.constants[-value]
    if value in numbers:
        return numbers[value]
    kind, *args = g.nodes[value]
    named = {"add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "neg": "negative", "lt": "less"}
    named |= {"eq": "equal", "select": "where", "and": "logical_and", "power": "power"}
    return getattr(numpy, named.get(kind, kind))(*[unfolded(g, a, numbers) for a in args])


@pytest.mark.parametrize(("name", "x"), [(name, x) for name, (_, points) in ELEMENTARY.items() for x in points])
def test_the_rule_of_an_elementary_function(name, x):
    exact = ELEMENTARY[name][0]
    rules = FUNCTIONS[name].partials if name in FUNCTIONS else linearize._PARTIALS[name]
    arguments = (x, 0.75)[: len(rules)] if x > 0 else (0.75, x)[-len(rules) :]
    trace = Trace()
    with trace.recording():
        g = trace.builder
        inputs = [g.emit(("input", 0, k)) for k in range(len(rules))]
        y = g.emit((name, *inputs))
        values = [rule(g, y, *inputs) for rule in rules]
    numbers = dict(zip(inputs, arguments, strict=True))
    got = [unfolded(g, v, numbers) for v in values]
    assert_close(got, complex_steps(lambda z: exact(*z), numpy.array(arguments)))


@pytest.mark.parametrize("name", sorted(ELEMENTARY))
def test_an_elementary_function_is_differentiated_three_times(name):
    exact, points = ELEMENTARY[name]
    x = abs(numpy.array([points[1], 0.75]))[: FUNCTIONS[name].arity]

    def function(x):
        return getattr(np, name)(*[x[k] for k in range(len(x))])

    gradient = grad(function)
    assert_close(gradient(x), complex_steps(lambda z: exact(*z), x))
    assert_close(jacobian(gradient)(x), differences(gradient, x), 1e-7, 1e-7)
    assert_close(jacobian(jacobian(gradient))(x), differences(jacobian(gradient), x), 1e-7, 1e-7)


def test_derivatives_that_are_tiny_keep_their_digits():
    assert_close(grad(np.tanh)(30.0), 4 * math.exp(-60), 1e-14, 0.0)
    assert_close(grad(np.expm1)(-60.0), math.exp(-60), 1e-14, 0.0)


def test_a_power_of_zero():
    assert [float(g) for g in grad(np.power, (0, 1))(0.0, 2.3)] == [0.0, 0.0]


def test_every_elementary_function_but_minimum_and_maximum_has_partial_derivatives():
    assert {name for name, function in FUNCTIONS.items() if function.partials is None} == {"min", "max"}


def test_equal_arguments_of_minimum_and_maximum_count_for_the_first():
    for function in (np.minimum, np.maximum):
        assert jvp(function, (1.0, 1.0), (2.0, 5.0))[1] == 2.0
        assert [float(g) for g in grad(function, (0, 1))(1.0, 1.0)] == [1.0, 0.0]


# --- where ------------------------------------------------------------------------------------------------------

SAFE = {
    "sqrt": lambda x: np.where(x > 0, np.sqrt(x), 0.0),
    "1 / x": lambda x: np.where(x > 0, 1 / x, 0.0),
    "sin x / x": lambda x: np.where(x == 0, 0.0, np.sin(x) / x),
    "a long branch": lambda x: np.where(x > 0, np.arctan(np.sqrt(np.sin(x) / x) * x) / x, 0.0),
    "x · 1/x": lambda x: np.where(x > 0, x * (1 / x), 0.0),
    "nested": lambda x: np.where(x > -1, np.where(x > 0, np.sqrt(x), 0.0), 1 / x),
    "two conditions": lambda x: np.where(x > 0, np.sqrt(x), 0.0) + np.where(x > 1, np.sqrt(x), 0.0),
    "both branches": lambda x: np.where(x > 0, np.where(x > 0, 1 / x, 0.0), np.where(x > 0, np.sqrt(x), 0.0)),
    "maximum": lambda x: np.maximum(2.0, np.sqrt(x)),
    "minimum": lambda x: np.minimum(-1.0 - 0.0 * x, np.sqrt(x)),
    "a product of choices": lambda x: np.where(x > 0, np.sqrt(x), 0.0) * np.where(x > 0, 1 / x, 0.0),
}
ORDERS = {
    "grad": grad,
    "forward": lambda f: lambda x: jvp(f, (x,), (1.0,))[1],
    "grad of grad": lambda f: grad(grad(f)),
    "forward of grad": lambda f: lambda x: jvp(grad(f), (x,), (1.0,))[1],
    "grad of forward": lambda f: grad(lambda x: jvp(f, (x,), (1.0,))[1]),
    "third": lambda f: grad(grad(grad(f))),
}


@pytest.mark.parametrize("function", SAFE.values(), ids=SAFE)
@pytest.mark.parametrize("derivative", ORDERS.values(), ids=ORDERS)
def test_a_branch_that_is_not_taken_contributes_exactly_zero(function, derivative):
    assert derivative(function)(0.0) == 0.0


@pytest.mark.parametrize("function", SAFE.values(), ids=SAFE)
def test_a_branch_that_is_taken_contributes(function):
    for x in (0.7, 1.7, 9.0):
        assert_close(grad(function)(x), differences(function, numpy.array(x)), 1e-7, 1e-7)


def test_a_row_is_not_spoilt_by_what_only_another_row_uses():
    def function(x):
        return np.stack([np.sqrt(x[0]), np.where(x[0] > 0, np.sqrt(x[0]), x[1]), x[1] * x[2]])

    J = jacobian(function, mode="reverse")(numpy.array([0.0, 1.0, 2.0]))
    numpy.testing.assert_array_equal(J[1:], [[0, 1, 0], [0, 2, 1]])


def test_pivoting_in_a_solution_of_equations_costs_no_masks():
    """Each row goes through both branches of an exchange, so its condition is no condition."""
    n = 4
    inputs = (Operand("A", (n, n)), Operand("b", (n,)))
    primal = record("solve", np.linalg.solve, inputs, inputs[1:])
    pulled = record("pulled", lambda A, b: vjp(np.linalg.solve, A, b)[1](np.ones(n)), inputs, inputs)
    assert "and" not in pulled.count()
    assert total(pulled) < 3.5 * total(primal)
    A, b = numpy.random.default_rng(0).normal(size=(n, n)), numpy.arange(1.0, n + 1)
    to_A, to_b = evaluate(pulled, A, b)
    adjoint = numpy.linalg.solve(A.T, numpy.ones(n))
    assert_close(to_b, adjoint)
    assert_close(to_A, -numpy.outer(adjoint, numpy.linalg.solve(A, b)))


def test_conditions_are_joined_as_truth_values_are():
    trace = Trace()
    with trace.recording():
        g = trace.builder
        x = [g.emit(("input", 0, k)) for k in range(3)]
        r, s, t = (g.lt(v, g.constant(0.5)) for v in x)
        both = g.logical_and
        conditions = [r, s, g.logical_not(r), both(r, s), both(r, g.logical_not(s)), both(s, t), both(both(r, s), t)]
        conditions += [both(both(r, s), g.logical_not(t)), g.logical_or(r, t), g.constant(False), g.constant(True)]
        pairs = [(a, b) for a in conditions for b in conditions]
        joined = tuple(g.number(linearize._either(g, a, b)) for a, b in pairs)
        plain = tuple(g.number(g.logical_or(a, b)) for a, b in pairs)
        size = (len(pairs),)
        program = g.finish((Operand("x", (3,)),), (Operand("a", size), Operand("b", size)), (joined, plain))
    got, expected = evaluate(program, list(numpy.ndindex(2, 2, 2)))
    numpy.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("x", [-0.5, 0.5, 1.5])
def test_a_value_counts_wherever_it_is_used(x):
    def function(x):
        w, zero = np.sin(x) * x, np.zeros(())
        inner = np.where(x > 1, w, zero)
        return np.where(x > 0, w, zero) + np.where(x > 0, inner, zero) + np.where(x > 0, zero, np.where(x > 1, zero, w))

    assert_close(grad(function)(x), differences(function, numpy.array(x)), 1e-8, 1e-8)


# --- random programs --------------------------------------------------------------------------------------------

COMPLEX = OPERATIONS | {
    "min": lambda a, b: a if a.real <= b.real else b,
    "max": lambda a, b: a if a.real >= b.real else b,
    "abs": lambda a: -a if a.real < 0 else a,
    "sqrt": lambda a: numpy.sqrt(a) if a.real >= 0 else complex(math.nan),
    "arctan2": lambda a, b: math.atan2(a.real, b.real) + 1j * numpy.arctan(a / b).imag,
    "where": lambda c, a, b: a if c else b,
} | {name: lambda a, b, f=f: f(a.real, b.real) for name, f in COMPARISON.items()}  # fmt: skip
KINKED = {"min", "max", "abs", *COMPARISON}


def complex_step(program: RandomProgram, x, k):
    """d results / d x[k] by a complex step; None near a kink, or where a value on the way is not finite."""
    values = [numpy.complex128(v) for v in (*x, *program.constants)]
    values[k] += 1j * STEP
    for step in program.steps:
        arguments = [values[a] for a in step.arguments]
        if step.operation in KINKED and len(set(step.arguments)) == len(step.arguments):
            a, b = (complex(v).real for v in (*arguments, 0.0)[:2])
            if abs(a - b) <= 1e-6 * (1e-3 + abs(a) + abs(b)):
                return None
        value = COMPLEX[step.operation](*arguments)
        if not numpy.isfinite(value):
            return None
        values.append(value)
    return numpy.array([numpy.imag(values[r]) / STEP for r in program.results])


def test_random_programs_have_the_derivatives_of_complex_steps():
    columns, judged = 0, 0

    @settings(max_examples=examples(120), deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(programs(max_inputs=4, max_steps=40), st.integers(0, 2**32 - 1))
    def check(program, seed):
        nonlocal columns, judged
        shape = (program.inputs,), (program.outputs,), (program.outputs, program.inputs)
        x = numpy.random.default_rng(seed).normal(size=program.inputs)
        found = []
        for mode in ("forward", "reverse"):
            derived = jacobian(program.function, mode=mode)
            recorded = record("J", derived, (Operand("x", shape[0]),), (Operand("J", shape[2]),))
            found += [evaluate(recorded, x, fma=fma)[0] for fma in (True, False)]
        for k in range(program.inputs):
            columns += program.outputs
            with numpy.errstate(all="ignore"):
                expected = complex_step(program, x, k)
            if expected is None:
                continue
            got = numpy.array([J[:, k] for J in found])
            scale = abs(got[0]) + 1e-6
            # Where rounding alone makes two of them differ, there is nothing to judge.
            clear = numpy.isfinite(expected) & (numpy.ptp(got[:2], axis=0) <= 1e-10 * scale)
            judged += numpy.sum(clear)
            assert numpy.all(abs(got - expected)[:, clear] <= 1e-6 * scale[clear]), f"{got} {expected} at {x}"

    check()
    assert judged > columns / 3, "too few columns could be judged"  # 45 to 60 % of those that hypothesis draws


# --- robots -----------------------------------------------------------------------------------------------------

TREES = [chain(3), balanced_tree(5), random_tree(6, seed=3)]
NAMES = [tree.name for tree in TREES]


def state(tree, seed=0):
    return numpy.random.default_rng(seed).normal(size=(3, tree.nv))


@pytest.mark.parametrize("tree", TREES, ids=NAMES)
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_the_derivative_of_aba_in_its_torques_is_the_inverse_of_the_mass_matrix(tree, mode):
    q, v, tau = state(tree)
    got = jacobian(lambda tau: dl.aba(tree, q, v, tau), mode=mode)(tau)
    assert_close(got, dl.inverse_mass_matrix(tree, q), 1e-9, 1e-9)


@pytest.mark.parametrize("tree", TREES, ids=NAMES)
@pytest.mark.parametrize("kernel", [dl.rnea, dl.aba], ids=["rnea", "aba"])
def test_the_derivatives_of_dynamics_are_those_of_central_differences(tree, kernel):
    arrays = state(tree, 1)
    got = jacobian(kernel, (1, 2, 3))(tree, *arrays)
    for k, J in enumerate(got):
        exact = differences(lambda x, k=k: kernel(tree, *arrays[:k], x, *arrays[k + 1 :]), arrays[k])
        assert_close(J, exact, 1e-6, 1e-6 * abs(exact).max())


def test_the_derivative_of_rnea_in_the_accelerations_is_the_mass_matrix():
    tree = TREES[1]
    q, v, a = state(tree)
    assert_close(jacobian(dl.rnea, 3)(tree, q, v, a), dl.crba(tree, q), 1e-10, 1e-10)


def test_the_gradient_of_the_potential_energy_holds_the_robot():
    tree = TREES[2]
    q, _, _ = state(tree)
    assert_close(grad(dl.potential_energy, 1)(tree, q), dl.gravity_torques(tree, q), 1e-10, 1e-10)


def test_the_second_derivative_of_the_kinetic_energy_is_the_mass_matrix():
    tree = TREES[1]
    q, v, _ = state(tree)
    hessian = jacobian(grad(dl.kinetic_energy, 2), 2)(tree, q, v)
    assert_close(hessian, dl.crba(tree, q), 1e-10, 1e-10)


def test_pulling_back_through_aba_takes_less_than_five_times_its_operations():
    """Measured: 25 197 operations for the algorithm, 56 042 for the cotangents of q, v and tau: 2.2 times."""
    tree = balanced_tree(50)
    inputs = tuple(Operand(name, (50,)) for name in ("q", "v", "tau"))
    pulled = record(
        "pulled",
        lambda q, v, tau, c: vjp(lambda *x: dl.aba(tree, *x), q, v, tau)[1](c),
        (*inputs, Operand("c", (50,))),
        inputs,
    )
    assert total(pulled) <= 2.5 * total(dl.aba.program(tree))


def test_all_derivatives_of_rnea_of_thirty_joints_are_recorded():
    """Measured: 6 155 operations for RNEA, 39 545 for the matrices in q, v and a (6.4 times), recorded in 0.3 s.

    By columns instead of rows it would be 67 639 operations.
    """
    tree, n = balanced_tree(30), 30
    inputs = tuple(Operand(name, (n,)) for name in ("q", "v", "a"))
    outputs = tuple(Operand(f"d{name}", (n, n)) for name in ("q", "v", "a"))
    program = record("J", lambda *x: jacobian(dl.rnea, (1, 2, 3))(tree, *x), inputs, outputs)
    assert total(program) <= 7 * total(dl.rnea.program(tree))
    arrays = state(tree)
    to_q, to_v, to_a = evaluate(program, *arrays)
    assert_close(to_a, dl.crba(tree, arrays[0]), 1e-10, 1e-10)
    # A velocity moves what an acceleration moves: torques at the joints of the same branch.
    assert not numpy.any(to_q[to_a == 0.0]) and not numpy.any(to_v[to_a == 0.0])


# --- higher orders ----------------------------------------------------------------------------------------------


def forward(function):
    return lambda x: jvp(function, (x,), (1.0,))[1]


def backward(function):
    return lambda x: vjp(function, x)[1](1.0)[0]


CLOSED = {
    "sin": (np.sin, lambda x: -numpy.cos(x)),
    "x⁵": (lambda x: x**5, lambda x: 60 * x * x),
    "1/x": (lambda x: 1 / x, lambda x: -6 / x**4),
    "√x": (np.sqrt, lambda x: 0.375 * x**-2.5),
    "x sin x": (lambda x: x * np.sin(x), lambda x: -3 * numpy.sin(x) - x * numpy.cos(x)),
    "sin x cos x": (lambda x: np.sin(x) * np.cos(x), lambda x: -4 * numpy.cos(2 * x)),
    "x/(1+x)": (lambda x: x / (1 + x), lambda x: 6 / (1 + x) ** 4),
    "arctan": (np.arctan, lambda x: (6 * x * x - 2) / (1 + x * x) ** 3),
}
MODES = [(a, b, c) for a in (forward, backward) for b in (forward, backward) for c in (grad, forward, jacobian)]


@pytest.mark.parametrize(("function", "third"), CLOSED.values(), ids=CLOSED)
@pytest.mark.parametrize("modes", MODES, ids=lambda modes: " ".join(m.__name__ for m in modes))
def test_third_derivatives_in_every_mix_of_modes(function, third, modes):
    outer, middle, inner = modes
    assert_close(outer(middle(inner(function)))(0.7), third(0.7), 1e-11)


def test_second_derivatives_of_several_variables():
    def function(x):
        return x[0] * x[0] * x[1] / x[2] + np.sin(x[1] * x[2])

    x = numpy.array([0.5, -1.2, 2.0])
    a, b, c = x
    s, k = numpy.sin(b * c), numpy.cos(b * c)
    mixed = -a * a / c**2 + k - b * c * s
    expected = [
        [2 * b / c, 2 * a / c, -2 * a * b / c**2],
        [2 * a / c, -c * c * s, mixed],
        [-2 * a * b / c**2, mixed, 2 * a * a * b / c**3 - b * b * s],
    ]
    for hessian in (jacobian(grad(function)), jacobian(jacobian(function)), jacobian(grad(function), mode="reverse")):
        assert_close(hessian(x), expected)


def test_an_inner_derivative_does_not_see_the_outer_variable():
    """d/dx of x · d/dy (x + y) at y = x is 1, and d/dx of d/dy (x y) at y = x is 1, not 2 x."""
    assert grad(lambda x: x * grad(lambda y: x + y)(x))(3.0) == 1.0
    assert grad(lambda x: grad(lambda y: x * y)(x))(3.0) == 1.0
    assert grad(lambda x: jvp(lambda y: x * y * y, (x,), (x,))[1])(2.0) == 3 * 2 * 2.0**2


# --- shapes, tuples, constants ----------------------------------------------------------------------------------


def test_the_shape_of_a_jacobian_is_that_of_the_output_and_that_of_the_input():
    A, x = numpy.arange(6.0).reshape(2, 3), numpy.array([1.0, -2.0, 0.5])
    J = jacobian(lambda A: A @ x)(A)
    assert J.shape == (2, 2, 3)
    assert_close(J, numpy.einsum("ik,l->ikl", numpy.eye(2), x))
    assert jacobian(lambda x: np.zeros((0,)))(x).shape == (0, 3)


def test_several_inputs_and_outputs_are_tuples():
    x, y = numpy.array([1.0, 2.0]), 3.0
    (to_x, to_y), (sum_x, sum_y) = jacobian(lambda x, y: (x * y, x.sum()), (0, 1))(x, y)
    assert_close(to_x, 3 * numpy.eye(2))
    assert_close(to_y, x)
    assert_close(sum_x, [1, 1])
    assert sum_y == 0.0 and sum_y.shape == ()


def test_arguments_may_be_tuples():
    def energy(pair):
        x, (y, z) = pair
        return x * y * z

    value, (tangent,) = jvp(lambda p: (energy(p),), ((2.0, (3.0, 4.0)),), ((1.0, (0.0, 0.5)),))
    assert (value[0], tangent) == (24.0, 12.0 + 3.0)
    x, (y, z) = grad(energy)((2.0, (3.0, 4.0)))
    assert (x, y, z) == (12.0, 8.0, 6.0)


def test_a_pullback_can_be_used_again():
    value, pullback = vjp(lambda x, y: (x * y, np.sin(x)), 2.0, 3.0)
    assert_close(value, (6.0, numpy.sin(2.0)))
    assert_close(pullback((1.0, 0.0)), (3.0, 2.0))
    assert_close(pullback((0.0, 1.0)), (numpy.cos(2.0), 0.0))


def test_a_pullback_keeps_its_point():
    x = numpy.array([1.0, 2.0])
    _, pullback = vjp(lambda x: x * x, x)
    x[:] = 7.0
    assert_close(pullback(numpy.ones(2))[0], [2, 4])


def test_a_change_in_place_is_differentiated_and_stays_inside():
    def function(x):
        x[0] = x[1] * x[1]
        return x

    x = numpy.array([1.0, 3.0])
    assert_close(jacobian(function)(x), [[0, 6], [0, 1]])
    assert x.tolist() == [1.0, 3.0]


def test_what_does_not_depend_on_the_input_costs_nothing():
    def function(x, y):
        heavy = np.sin(y) * np.sqrt(y) / (1 + y)
        return vjp(lambda x: heavy + heavy * y + x * y, x)[1](1.0)[0]

    program = record("f", function, (Operand("x", ()), Operand("y", ())), (Operand("g", ()),))
    assert program.count() == {}


def test_a_derivative_shares_the_value_that_was_computed_already():
    def function(x):
        return np.sin(x) / (1 + x * x)

    inputs, output = (Operand("x", ()),), Operand("y", ())
    both = record("both", lambda x: (function(x), grad(function)(x)), inputs, (output, output))
    assert total(both) <= total(record("one", grad(function), inputs, (output,))) + 1


# --- inside kernels ---------------------------------------------------------------------------------------------


@dl.kernel("(nv),(nv)->(nv,nv),(nv),(nv)")
def derived(model, q, v):
    """A Jacobian, a gradient through a choice, and a directional derivative."""
    J = jacobian(lambda q: dl.bias_torques(model, q, v))(q)
    g = grad(lambda q: np.where(q[0] > 0, np.sqrt(abs(q[0])), 0.0) + dl.potential_energy(model, q))(q)
    _, along = jvp(lambda q: dl.gravity_torques(model, q), (q,), (v,))
    return J, g, along


def test_a_compiled_derivative_has_the_bits_of_the_interpreter():
    tree = TREES[1]
    q, v = numpy.random.default_rng(4).normal(size=(2, 7, tree.nv))
    q[0] = 0.0
    got = derived.compiled(tree, target=FULL).ufunc(q, v)
    for a, b in zip(got, evaluate(derived.program(tree), q, v, fma=Target.host().fma), strict=True):
        assert numpy.all(numpy.isfinite(a))
        numpy.testing.assert_array_equal(a, b)


def test_a_compiled_derivative_is_that_of_plain_arrays():
    tree = TREES[1]
    q, v = numpy.random.default_rng(4).normal(size=(2, tree.nv))
    J, g, along = derived(tree, q, v)
    assert_close(J, jacobian(dl.bias_torques, 1)(tree, q, v), 1e-11, 1e-11)
    assert_close(along, jacobian(dl.gravity_torques, 1)(tree, q) @ v, 1e-10, 1e-10)
    assert_close(g[1:], dl.gravity_torques(tree, q)[1:], 1e-10, 1e-10)


def test_the_same_derivative_traced_again_is_the_same_program():
    assert derived.program(TREES[0]).digest == derived.program(TREES[0]).digest


def test_a_value_that_a_function_keeps_is_still_right_in_the_same_kernel():
    def function(x):
        kept = []
        return grad(lambda y: kept.append(y * y) or y * 2.0)(x) + kept[0]

    assert (grad(function)(3.0), jvp(function, (3.0,), (1.0,))[0]) == (6.0, 11.0)


# --- what is refused --------------------------------------------------------------------------------------------

WRONG = {
    "nothing": (lambda: grad(lambda x: None)(1.0), ("missing-return",)),
    "nothing, pulled back": (lambda: vjp(lambda x: None, 1.0), ("missing-return",)),
    "nothing in a tuple": (lambda: jvp(lambda x: (x, None), (1.0,), (1.0,)), ("missing-return",)),
    "a tangent of another shape": (lambda: jvp(np.sin, (numpy.ones(3),), (numpy.ones(2),)), ("wrong-shape", "tangent")),
    "a tangent too few": (lambda: jvp(np.add, (1.0, 2.0), (1.0,)), ("wrong-shape", "tangent")),
    "a cotangent of another shape": (lambda: vjp(np.sin, numpy.ones(3))[1](1.0), ("wrong-shape", "cotangent")),
    "a vector": (lambda: grad(np.sin)(numpy.ones(2)), ("wrong-shape", "(2,)")),
    "two values": (lambda: grad(lambda x: (x, x))(1.0), ("wrong-shape",)),
    "an argument that is not there": (lambda: grad(np.sin, 1)(1.0), ("index-out-of-range", "1", "argnum")),
    "an unknown mode": (lambda: jacobian(np.sin, mode="sideways"), ("unknown-option", "sideways")),
}


@pytest.mark.parametrize(("call", "refusal"), WRONG.values(), ids=WRONG)
def test_an_error_says_what_is_wrong(call, refusal):
    with refuses(*refusal):
        call()


def test_an_operation_without_a_rule_is_named():
    def odd(x):
        return x.origin.map(lambda a: x.origin.builder.emit(("gudermann", a)), x)

    with refuses("not-differentiable", "gudermann"):
        grad(odd)(1.0)


def test_complex_numbers_are_refused():
    with pytest.raises(TypeError, match="complex128"):
        grad(np.sin)(1j)


def test_a_leaked_value_is_refused():
    kept: list[Array] = []
    grad(lambda x: kept.append(x) or x * x)(2.0)
    for use in (lambda: grad(np.sin)(kept[0]), lambda: grad(lambda x: x * kept[0])(1.0), lambda: kept[0] + 1.0):
        with pytest.raises(LeakedTracer):
            use()


def test_a_leaked_pullback_is_refused():
    kept = []
    record("f", lambda x: kept.append(vjp(np.sin, x)[1]) or x, (Operand("x", ()),), (Operand("y", ()),))
    with refuses("leaked-tracer", "pullback"):
        kept[0](1.0)


def test_an_error_inside_the_function_goes_through():
    @dl.kernel("()->()")
    def nothing(model, x):
        """Returns nothing."""

    with refuses("missing-return"):
        grad(nothing, 1)(None, 1.0)
