"""Loops: on numbers, in the interpreter, in machine code; how they treat states apart; what they refuse."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import delassus as dl
import delassus.numpy as dnp
from delassus.compiler import grad, jacobian, jvp, scan, vjp, while_loop
from delassus.compiler import map as rolled_map
from delassus.compiler.backends.frame import Table
from delassus.compiler.backends.interpreter import evaluate
from delassus.compiler.backends.llvm.loop_step import loop_widths
from delassus.compiler.backends.steps import LoopStep
from delassus.compiler.graph.program import Program
from delassus.compiler.tracing.flow.bodies import LoopError
from delassus.compiler.tracing.operations import elimination
from delassus.compiler.tracing.trace import LeakedTracer
from how_many import examples
from loop_programs import ROLLED, SIZE, UNROLLED, nests, run
from native_bits import FULL, HOST, WIDTHS, assert_same_bits, check, compile_program, every_width, numbers
from refusals import refuses

RNG = np.random.default_rng(4)


def kernel_of(function, signature="(3)->(3)"):
    def f(model, x):
        return function(x)

    return dl.kernel(signature)(f)


# --- what the loops mean --------------------------------------------------------------------------------------------


def cumulative(x):
    def body(total, item):
        return total + item, total * item

    total, products = scan(body, 1.0, x)
    return dnp.concatenate([products, total[None]])


def test_scan_carries_and_keeps():
    np.testing.assert_allclose(cumulative(np.array([2.0, 3.0, 4.0])), [2.0, 9.0, 24.0, 10.0])


@every_width
def test_scan_in_a_kernel_is_scan_on_numbers(lanes):
    x = RNG.normal(size=(19, 3))
    ufunc = compile_program(kernel_of(cumulative, "(3)->(4)").program(None), lanes)
    np.testing.assert_allclose(ufunc(x), [cumulative(row) for row in x], rtol=1e-14)


def test_a_reversed_scan_starts_at_the_end_and_keeps_places():
    def body(total, item):
        return total + item, total

    total, before = scan(body, 0.0, np.array([1.0, 2.0, 4.0]), reverse=True)
    assert total == 7.0
    np.testing.assert_array_equal(before, [6.0, 4.0, 0.0])


def test_scan_without_stacks_runs_a_number_of_times():
    assert scan(lambda c, item: (2.0 * c, None), 1.0, length=10)[0] == 1024.0


def test_scan_takes_and_gives_nests_of_tuples():
    def body(carry, item):
        (a, b), (x, y) = carry, item
        return (b, a + x), (x * y, (a, b))

    ones = np.ones((3, 2))
    carry, kept = scan(body, (np.zeros(2), np.ones(2)), (ones, ones))
    assert [x.shape for x in carry] == [(2,), (2,)]
    assert kept[0].shape == kept[1][0].shape == (3, 2)


def test_map_stacks_what_the_function_gives():
    x, y = RNG.normal(size=(5, 2)), RNG.normal(size=5)
    kernel = dl.kernel("(5,2),(5)->(5,2)")(lambda model, x, y: rolled_map(lambda a, b: dnp.sin(a) * b, x, y))
    np.testing.assert_allclose(kernel(None, x, y), np.sin(x) * y[:, None], rtol=1e-14)


def newton(target):
    """√target and the number of iterations it took."""

    def body(carry):
        x, count = carry
        return 0.5 * (x + target / x), count + 1.0

    return while_loop(
        lambda c: dnp.abs(c[0] * c[0] - target) > 1e-13 * target, body, (1.0 + 0.0 * target, 0.0), bound=60
    )


def test_while_ends_when_its_condition_does():
    root, count = newton(2.0)
    assert (float(root), float(count)) == (pytest.approx(np.sqrt(2.0), rel=1e-15), 5.0)


def test_every_state_has_its_own_number_of_iterations():
    targets = 10.0 ** np.linspace(-8.0, 8.0, 77)
    roots, counts = dl.kernel("()->(),()")(lambda model, t: newton(t))(None, targets)
    np.testing.assert_allclose(roots, np.sqrt(targets), rtol=1e-13)
    assert counts.tolist() == [float(newton(t)[1]) for t in targets]
    assert len(set(counts.tolist())) > 8


def test_while_stops_at_its_bound():
    count = dl.kernel("()->()")(lambda model, x: while_loop(lambda c: c > -1.0, lambda c: c + 1.0, 0.0 * x, bound=7))
    np.testing.assert_array_equal(count(None, np.zeros(9)), 7.0)


def test_slots_for_items_without_values_take_no_time_however_many_items_there_may_be():
    began = time.process_time()
    assert Table(0, 0, 0).slots(10**8, 0) == []
    assert time.process_time() - began < 0.5  # a walk through them takes seconds


@pytest.mark.parametrize(
    "condition",
    [lambda x: x < 100.0, lambda x: ~(x >= 100.0), lambda x: x != 100.0, lambda x: (x < 100.0) | (x > 200.0)],
    ids=["less", "not greater", "different", "or"],
)
def test_a_state_with_a_nan_leaves_at_once(condition):
    def f(model, x):
        return while_loop(lambda c: condition(c[0]), lambda c: (c[0] + 1.0, c[1] + 1.0), (x, 0.0), bound=1000)[1]

    assert dl.kernel("()->()")(f)(None, [np.nan, 98.0]).tolist() == [0.0, 2.0]


def test_a_state_that_becomes_nan_leaves_at_once():
    def f(model, x):
        return while_loop(lambda c: ~(c[0] > 9.0), lambda c: (dnp.sqrt(c[0] - 1.0), c[1] + 1.0), (x, 0.0), bound=1000)[
            1
        ]

    assert dl.kernel("()->()")(f)(None, [2.0, 10.0]).tolist() == [3.0, 0.0]


def test_a_body_may_use_arrays_from_around_it():
    A = RNG.normal(size=(3, 3))

    def f(model, x):
        y = x * x
        return scan(lambda c, _: (A @ c + y, None), x, length=3)[0]

    x = RNG.normal(size=3)
    expected = x
    for _ in range(3):
        expected = A @ expected + x * x
    np.testing.assert_allclose(dl.kernel("(3)->(3)")(f)(None, x), expected, rtol=1e-13)


def test_what_does_not_change_in_a_loop_is_computed_around_it():
    def f(model, x):
        return scan(lambda c, _: (c + dnp.sin(x[0]) * x[1], None), 0.0, length=5)[0]

    program: Program = dl.kernel("(2)->()")(f).program(None)
    assert program.loops[0].body.count() == {"add": 1}


@every_width
@pytest.mark.parametrize("count", [2, 3, 5, 8, 13])
def test_rounds_that_run_side_by_side_have_the_bits_of_the_interpreter(lanes, count):
    def f(model, x, y):
        positive = y > 0.0

        def body(item):
            long = dnp.sqrt(dnp.abs(item[0])) / (1.0 + y * y)
            for k in range(50):  # more than a chunk
                long = long * item[k % 3] - y
            return dnp.where(positive, long, item[1]), y, 2.0, item[0] > item[1]

        return rolled_map(body, x.T)

    kernel = dl.kernel(f"(3,{count}),()->({count}),({count}),({count}),({count})")(f)
    plan = check(kernel, lanes, numbers(19, 3, count), numbers(19), chunk=20)
    (step,) = [step for step in plan.steps if isinstance(step, LoopStep)]
    assert (loop_widths(step, HOST.with_lanes(lanes)) is None) == (lanes == 1)


def test_what_is_kept_may_fill_places_that_get_their_values_later():
    def f(model, x):
        doubled, lower = rolled_map(lambda column: (2.0 * column, column * x[0]), x.T)
        return doubled.T, dnp.tril(lower.T) + dnp.tril(lower.T, -1).T

    plan = check(dl.kernel("(4,4)->(4,4),(4,4)")(f), HOST.lanes, numbers(19, 4, 4))
    (step,) = [step for step in plan.steps if isinstance(step, LoopStep)]
    assert step.kept.first == 16, "not kept in the output"


def test_loops_of_different_lengths_nest():
    def table(x):
        return rolled_map(lambda a: scan(lambda c, b: (c + a * b, c), 0.0, x)[1], x[:2])

    x = RNG.normal(size=3)
    total = np.concatenate([[0.0], np.cumsum(x)[:-1]])
    np.testing.assert_allclose(
        dl.kernel("(3)->(2,3)")(lambda model, x: table(x))(None, x), x[:2, None] * total, rtol=1e-13
    )


# --- the same bits --------------------------------------------------------------------------------------------------


@settings(max_examples=examples(30))
@given(nests(), st.sampled_from(WIDTHS), st.sampled_from([3, 400]), st.sampled_from([HOST, FULL]), st.integers(0, 1000))
def test_nests_of_loops_have_the_bits_of_the_interpreter_alone_and_mixed(statements, lanes, chunk, host, seed):
    check(kernel_of(lambda x: run(statements, x)), lanes, numbers(19, SIZE, seed=seed), chunk=chunk, host=host)


@settings(max_examples=examples(100))
@given(nests(depth=2), st.integers(0, 1000))
def test_a_state_in_a_batch_has_the_bits_of_the_state_alone(statements, seed):
    program = kernel_of(lambda x: run(statements, x)).program(None)
    x = numbers(4, SIZE, seed=seed)
    (together,) = evaluate(program, x)
    assert_same_bits(together, np.array([evaluate(program, row)[0] for row in x]))


@settings(max_examples=examples(60))
@given(nests(), st.integers(0, 1000))
def test_loops_on_numbers_are_the_loops_of_the_interpreter(statements, seed):
    x = np.random.default_rng(seed).normal(size=SIZE)
    (expected,) = evaluate(kernel_of(lambda x: run(statements, x)).program(None), x, fma=False)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(run(statements, x), expected, rtol=1e-6, atol=1e-9)


# --- dense algebra in loops -----------------------------------------------------------------------------------------


@every_width
@pytest.mark.parametrize("shapes", [((13, 17), (17, 14)), ((40, 40), (40,)), ((1, 60), (60, 60)), ((9, 200), (200, 3))])
def test_a_large_product_has_the_bits_of_a_small_one(lanes, shapes, monkeypatch):
    left, right = shapes
    result = left[:-1] + right[1:]
    signature = f"({','.join(map(str, left))}),({','.join(map(str, right))})->({','.join(map(str, result))})"
    rolled = dl.kernel(signature)(lambda model, a, b: a @ b).program(None)
    monkeypatch.setattr("delassus.compiler.tracing.operations.products.LARGEST_UNROLLED", 10**9)
    unrolled = dl.kernel(signature)(lambda model, a, b: a @ b).program(None)
    a, b = RNG.normal(size=(5, *left)), RNG.normal(size=(5, *right))
    assert rolled.loops
    assert not unrolled.loops
    assert_same_bits(compile_program(rolled, lanes)(a, b), evaluate(unrolled, a, b, fma=HOST.fma)[0])


@pytest.fixture
def everything_rolled(monkeypatch):
    monkeypatch.setattr(elimination, "LARGEST_FACTOR", 0)
    monkeypatch.setattr(elimination, "LARGEST_SUBSTITUTION", 0)


@pytest.mark.usefixtures("everything_rolled")
@pytest.mark.parametrize("n", [1, 2, 7])
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (dnp.linalg.solve, np.linalg.solve),
        (lambda a, b: dnp.linalg.solve(a @ a.T, b, assume_a="pos"), lambda a, b: np.linalg.solve(a @ a.T, b)),
        (lambda a, b: dnp.linalg.inv(a) + b, lambda a, b: np.linalg.inv(a) + b),
        (lambda a, b: dnp.linalg.cholesky(a @ a.T) + b, lambda a, b: np.linalg.cholesky(a @ a.T) + b),
        (lambda a, b: dnp.linalg.det(a) * b, lambda a, b: np.linalg.det(a) * b),
    ],
    ids=["solve", "solve positive", "inv", "cholesky", "det"],
)
def test_eliminations_in_loops_agree_with_numpy(n, function, expected):
    a, b = RNG.normal(size=(n, n)) + 2.0 * np.eye(n), RNG.normal(size=(n, n))
    program = dl.kernel(f"({n},{n}),({n},{n})->({n},{n})")(lambda model, a, b: function(a, b)).program(None)
    np.testing.assert_allclose(evaluate(program, a, b)[0], expected(a, b), rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("everything_rolled")
def test_a_singular_matrix_spoils_its_own_state_alone():
    solve = dl.kernel("(3,3),(3)->(3)")(lambda model, a, b: dnp.linalg.solve(a, b))
    a = np.stack([np.zeros((3, 3)), np.eye(3)])
    with np.errstate(all="ignore"):
        x = solve(None, a, np.ones(3))
    assert not np.isfinite(x[0]).any()
    np.testing.assert_array_equal(x[1], 1.0)


def test_exact_zeros_of_a_large_product_still_cost_nothing():
    program = dl.kernel("(40)->(40,40)")(lambda model, x: dnp.diag(x) @ dnp.eye(40)).program(None)
    assert not program.count()


# --- derivatives ----------------------------------------------------------------------------------------------------


def assert_derivatives_agree(derivative, statements, x):
    rolled, unrolled = (derivative(lambda x, way=way: run(statements, x, way)) for way in (ROLLED, UNROLLED))
    scale = 1.0 + np.max(np.abs(unrolled))
    np.testing.assert_allclose(rolled / scale, unrolled / scale, rtol=0.0, atol=1e-9)


@settings(max_examples=examples(25))
@given(nests(depth=2), st.integers(0, 1000))
def test_tangents_pass_through_all_loops(statements, seed):
    x, dx = np.random.default_rng(seed).normal(size=(2, SIZE))
    assert_derivatives_agree(lambda f: jvp(f, (x,), (dx,))[1], statements, x)


@settings(max_examples=examples(25))
@given(nests(depth=2, conditional=False), st.integers(0, 1000))
def test_cotangents_pass_through_counted_loops(statements, seed):
    x, g = np.random.default_rng(seed).normal(size=(2, SIZE))
    assert_derivatives_agree(lambda f: vjp(f, x)[1](g)[0], statements, x)


THIRD = {
    "forward": lambda f: jacobian(jacobian(jacobian(f, mode="forward"), mode="forward"), mode="forward"),
    "reverse": lambda f: jacobian(jacobian(jacobian(f, mode="reverse"), mode="reverse"), mode="reverse"),
    "mixed": lambda f: jacobian(jacobian(jacobian(f, mode="forward"), mode="reverse"), mode="forward"),
}


@pytest.mark.parametrize("mode", THIRD)
def test_third_derivatives_pass_through_loops(mode):
    statements = (("scan", 2, False, (("mix", 0.5, 0.7),)), ("scan", 2, True, (("map", 2, (("divide", 1.0),)),)))
    x = np.array([0.3, -0.5, 0.8])
    assert_derivatives_agree(lambda f: THIRD[mode](lambda x: f(x)[0])(x), statements, x)


def test_third_derivatives_pass_forward_through_while():
    statements = (("while", 9, 1.2, (("mix", 0.5, 0.7),)),)
    x = np.array([0.9, -0.8, 0.8])
    assert_derivatives_agree(lambda f: THIRD["forward"](lambda x: f(x)[0])(x), statements, x)


def test_a_branch_not_taken_in_a_loop_contributes_zero():
    def f(x):
        return scan(lambda c, item: (c + dnp.where(item > 0.0, dnp.sqrt(item), item), None), 0.0, x)[0]

    assert grad(f)(np.array([4.0, 0.0, -1.0])).tolist() == [0.25, 1.0, 1.0]


def test_a_gradient_cannot_pass_backwards_through_while():
    with refuses("not-differentiable", "'forward'", "mode"):
        grad(lambda x: newton(x)[0])(2.0)


def test_a_jacobian_passes_forward_through_while_by_itself():
    def f(x):
        return newton(x[0] + x[1])[0]

    np.testing.assert_allclose(jacobian(f)(np.array([1.0, 3.0])), [0.25, 0.25], rtol=1e-12)


def test_the_columns_of_a_large_jacobian_are_made_in_a_loop(monkeypatch):
    A = RNG.normal(size=(4, 4))

    def f(x):
        return dnp.where(x > 0.0, dnp.sin(A @ x), A @ (x * x))

    x = RNG.normal(size=4)
    expected = jacobian(f)(x)
    monkeypatch.setattr("delassus.compiler.differentiation.derivatives.LARGEST_UNROLLED", 0)
    for mode in ("forward", "reverse"):
        program = kernel_of(jacobian(f, mode=mode), "(4)->(4,4)").program(None)
        assert program.loops
        np.testing.assert_allclose(evaluate(program, x)[0], expected, rtol=1e-13)


# --- what is refused ------------------------------------------------------------------------------------------------


def refused(function, error, text):
    with pytest.raises(error, match=text):
        kernel_of(function).program(None)
    if error is LoopError:
        with pytest.raises(error, match=text):
            function(np.ones(3))


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: while_loop(lambda c: c[0] < 1, lambda c: c, x), "no bound"),
        (lambda x: while_loop(lambda c: c[0] < 1, lambda c: c, x, bound=0), "bound is 0; it must be at least 1"),
        (lambda x: while_loop(lambda c: c[0] < 1, lambda c: c, x, bound=2.5), "2.5; it must be an integer"),
        (lambda x: scan(lambda c, i: (c[:2], None), x, length=2)[0], r"shape \(3,\) before and \(2,\) after"),
        (lambda x: scan(lambda c, i: (c > 0.0, None), x, length=2)[0], "numbers before and booleans after"),
        (
            lambda x: scan(lambda c, i: ((c, c), None), x, length=2)[0],
            "got one array to carry, and returned a tuple of 2",
        ),
        (lambda x: scan(lambda c, i: c, x, length=2)[0], "must return a pair"),
        (lambda x: scan(lambda c, i: (c, None), x)[0], "nothing to iterate over"),
        (lambda x: scan(lambda c, i: (c, None), x, (x, x[:2]))[0], "must have the same length"),
        (lambda x: scan(lambda c, i: (c, None), x, x[:0])[0], "must be at least 1"),
    ],
    ids=["no bound", "bound 0", "bound 2.5", "shape", "dtype", "structure", "one thing", "nothing", "lengths", "empty"],
)
def test_a_loop_that_cannot_be_is_refused_with_a_sentence(function, text):
    refused(function, LoopError, text)


def test_a_condition_is_one_truth_value():
    refused(lambda x: while_loop(lambda c: c > 0.0, lambda c: c, x, bound=3), LoopError, r"booleans of shape \(3,\)")


def test_a_counter_is_no_index():
    def f(x):
        return rolled_map(lambda k: x[k], np.arange(3.0))

    refused(f, TypeError, "stack")


def test_an_array_from_around_cannot_be_changed_in_a_body():
    def f(x):
        y = x * 1.0

        def body(c, _):
            y[0] = c[0]
            return c, None

        return scan(body, x, length=2)[0]

    refused(f, LeakedTracer, "carry the array")


def test_a_copy_of_an_array_from_around_can_be_changed():
    def f(model, x):
        def body(c, _):
            y = x.copy()
            y[0] = c[0]
            return c + y, None

        return scan(body, x, length=2)[0]

    assert dl.kernel("(3)->(3)")(f)(None, [1.0, 2.0, 3.0]).tolist() == [4.0, 6.0, 9.0]


def test_a_value_cannot_leave_a_body_secretly():
    def f(x):
        kept = []

        def body(c, _):
            kept.append(c)
            return c, None

        scan(body, x, length=2)
        return x + kept[0]

    refused(f, LeakedTracer, "without being returned|outside")
