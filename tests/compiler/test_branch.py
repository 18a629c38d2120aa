"""Branches: `cond` gives each state its own choice, and leaves out what no state needs."""

import numpy as np
import pytest

import delassus as dl
import delassus.numpy as dnp
import single_bits as single
from c_code import check as check_c
from c_code import needs_compiler, normal_numbers
from delassus.compiler import cond, grad, jacobian, jvp, scan, vjp, while_loop
from delassus.compiler.backends.interpreter import evaluate
from native_bits import check, every_width, numbers
from refusals import refuses

RNG = np.random.default_rng(5)


def slow(x):
    for _ in range(8):
        x = dnp.sin(x) + 0.5
    return x


def both(x):
    """Values, a function, several arrays, booleans, and what lies around."""
    one = cond(x[0] > 0.0, slow, x - 1.0, x)
    two = cond(x[1] > x[2], lambda y: slow(y) * x[0], lambda y: y * y, one)
    three, (four, truth) = cond(
        dnp.any(x > 1.0), lambda a, b: (a + b, (a[0], a > b)), lambda a, b: (b, (b[1], b > 0.0)), one, two
    )
    return three + dnp.where(truth, four, 2.0)


BOTH = dl.kernel("(3)->(3)")(lambda model, x: both(x))


def by_hand(x):
    one = slow(x) if x[0] > 0.0 else x - 1.0
    two = slow(one) * x[0] if x[1] > x[2] else one * one
    large = np.any(x > 1.0)
    three = one + two if large else two
    four = one[0] if large else two[1]
    return three + np.where(one > two if large else two > 0.0, four, 2.0)


def test_each_state_gets_what_its_condition_says():
    x = RNG.normal(size=(77, 3))
    np.testing.assert_allclose(BOTH(None, x), [by_hand(row) for row in x], rtol=1e-12)


def test_numbers_branch_as_in_python():
    for x in RNG.normal(size=(20, 3)):
        np.testing.assert_allclose(both(x), by_hand(x), rtol=1e-15)


def test_what_is_not_chosen_is_not_executed_on_numbers():
    def fails(x):
        raise AssertionError

    assert cond(False, fails, 3.0, 1.0) == 3.0
    assert cond(True, lambda x: x, fails, 1.0) == 1.0


@every_width
@pytest.mark.parametrize("chunk", [1, 7, 400])
def test_compiled_code_has_the_bits_of_the_interpreter(lanes, chunk):
    check(BOTH, lanes, numbers(37, 3), chunk=chunk)


@pytest.mark.parametrize("lanes", single.WIDTHS)
def test_compiled_code_in_float32_has_the_bits_of_the_interpreter(lanes):
    single.check(BOTH, lanes, single.numbers(37, 3))


@needs_compiler
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_c_has_the_bits_of_the_interpreter(dtype, tmp_path):
    check_c(BOTH, tmp_path, normal_numbers(30, 3).astype(dtype), dtype=np.dtype(dtype))


def endless(x):
    """10¹² rounds, which would take an hour."""

    def inner(c):
        return scan(lambda d, _: (dnp.sin(d), None), c, length=10**6)[0]

    return scan(lambda c, _: (inner(c), None), x, length=10**6)[0]


def test_a_block_that_no_state_needs_is_not_executed():
    def f(model, x):
        return cond(x > 0.0, endless, x - 1.0, x)

    kernel = dl.kernel("()->()")(f)
    np.testing.assert_array_equal(kernel(None, -np.ones(100)), -2.0)
    assert kernel(None, -1.0) == -2.0


def test_a_loop_that_no_state_enters_is_not_executed():
    def f(model, x):
        return while_loop(lambda c: c > 0.0, endless, x, 5)

    np.testing.assert_array_equal(dl.kernel("()->()")(f)(None, -np.ones(100)), -1.0)


def test_a_state_that_has_left_a_loop_does_not_need_a_block_in_it():
    def f(model, x):
        def body(carry):
            count, total = carry
            return count - 1.0, cond(count < 1.5, lambda t: t + 100.0, total, total)

        return while_loop(lambda c: c[0] > 0.0, body, (x, 0.0), 20)[1]

    np.testing.assert_array_equal(
        dl.kernel("()->()")(f)(None, np.array([0.0, 1.0, 5.0, -3.0])), [0.0, 100.0, 100.0, 0.0]
    )


def test_a_condition_that_is_known_costs_nothing():
    program = dl.kernel("()->()")(lambda model, x: cond(dnp.array(1.0) > 0.0, lambda y: 2.0 * y, x, x)).program(None)
    assert not program.loops
    program = dl.kernel("()->()")(lambda model, x: cond(False, lambda y: 2.0 * y, x, x)).program(None)
    assert not program.loops


def test_gradients_pass_through_a_branch_in_both_directions():
    def f(x):
        return cond(x[0] > 1.0, lambda y: dnp.sin(y[0]) * y[1] ** 2, lambda y: y[0] * x[1], x)

    for x in (np.array([1.3, 0.4]), np.array([0.3, 0.7])):
        taken = x[0] > 1.0
        expected = [np.cos(x[0]) * x[1] ** 2, 2 * np.sin(x[0]) * x[1]] if taken else [x[1], x[0]]
        np.testing.assert_allclose(grad(f)(x), expected, rtol=1e-13)
        np.testing.assert_allclose(jacobian(f, mode="forward")(x), expected, rtol=1e-13)
        mixed = 2 * np.cos(x[0]) * x[1] if taken else 1.0
        np.testing.assert_allclose(jacobian(grad(f))(x)[0, 1], mixed, rtol=1e-13)


def test_the_branch_that_is_not_taken_contributes_zero():
    def f(x):
        return cond(x > 0.0, dnp.sqrt, 0.0, x) + x

    assert [float(grad(f)(x)) for x in (4.0, 0.0, -1.0)] == [1.25, 1.0, 1.0]
    assert float(jvp(f, (0.0,), (1.0,))[1]) == 1.0


def test_gradients_of_a_batch_belong_to_each_state():
    def slope(model, x):
        return grad(lambda x: cond(x[0] > 0.0, lambda y: slow(y)[0] * y[1], x[2] ** 2, x))(x)

    x = RNG.normal(size=(37, 3))
    kernel = dl.kernel("(3)->(3)")(slope)
    got = kernel(None, x)
    np.testing.assert_array_equal(got, [kernel(None, row) for row in x])
    np.testing.assert_allclose(
        got[x[:, 0] <= 0.0], np.stack([0 * x[:, 2], 0 * x[:, 2], 2 * x[:, 2]], -1)[x[:, 0] <= 0.0]
    )


def test_gradients_pass_backwards_through_a_branch_in_a_loop():
    def f(x):
        return scan(lambda c, item: (cond(item > 0.0, lambda y: c * y, c + item**2, item), None), 1.0, x)[0]

    x = np.array([2.0, -3.0, 0.5])
    _, pullback = vjp(f, x)
    np.testing.assert_allclose(pullback(1.0)[0], [0.5, -3.0, 11.0], rtol=1e-14)


def refused(message, function):
    with refuses(*message):
        dl.kernel("(3)->()")(lambda model, x: function(x)).program(None)


def test_both_choices_are_alike():
    refused(("carry-mismatch",), lambda x: cond(x[0] > 0.0, lambda y: (y, y), x, x)[0])
    refused(
        ("carry-mismatch", "(3,)"),
        lambda x: cond(x[0] > 0, lambda y: y, 0.0, x),
    )
    refused(("carry-mismatch",), lambda x: cond(x[0] > 0.0, lambda y: y[0], x[1] > 0.0, x))


def test_a_condition_is_one_truth_value():
    refused(
        ("bad-loop", "0.0"),
        lambda x: cond(x[0], dnp.sin, 0.0, x[0]),
    )
    refused(("bad-loop", "(3,)"), lambda x: cond(x > 0.0, dnp.sum, 0.0, x))
    with refuses("bad-loop"):
        cond(np.ones(3) > 0.0, np.sum, 0.0, np.ones(3))


def test_the_interpreter_executes_a_block_for_a_batch_that_needs_it_in_part():
    (got,) = evaluate(BOTH.program(None), np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]))
    np.testing.assert_allclose(got, [by_hand(x) for x in np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])], rtol=1e-12)
