"""Functions that bring their tangents along: derivatives of converged iterations by their own linear systems."""

import numpy as np
import pytest

import delassus as dl
import delassus.numpy as dnp
from delassus.compiler import custom_tangent, grad, jacobian, jvp, scan, vjp, while_loop
from delassus.compiler.differentiation.linear_loop import DerivativeError
from delassus.compiler.functions.lower import lower
from delassus.compiler.tracing.flow.bodies import LoopError

RNG = np.random.default_rng(4)
A = RNG.normal(size=(3, 3)) + 4.0 * np.eye(3)


def residual(y, b):
    """A y + y³ - b, whose zero is unique where A is positive definite."""
    return A @ y + y**3 - b


def newton(b, bound=60):
    """Newton's method, to rounding."""

    def step(y):
        return y - dnp.linalg.solve(A + dnp.diag(3.0 * y**2), residual(y, b))

    def is_open(y):
        return dnp.max(dnp.abs(residual(y, b))) > 1e-14

    return while_loop(is_open, step, dnp.zeros(3), bound)


def implicit(y, primals, tangents):
    """F_y dy = -F_b db."""
    (db,) = tangents
    return dnp.linalg.solve(A + dnp.diag(3.0 * y**2), db)


solve = custom_tangent(newton, implicit)


def exact(b):
    """y and dy/db."""
    y = newton(b)
    return y, np.linalg.inv(A + np.diag(3.0 * y**2))


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_the_jacobian_of_a_converged_solve_is_the_implicit_one(mode):
    b = RNG.normal(size=3)
    np.testing.assert_allclose(jacobian(solve, mode=mode)(b), exact(b)[1], rtol=1e-12, atol=1e-14)


def kernel_of(s):
    return dl.kernel("(3)->(3)")(lambda model, b: s(b))


def test_the_value_is_that_of_the_function():
    b = RNG.normal(size=(7, 3))
    np.testing.assert_array_equal(kernel_of(solve)(None, b), kernel_of(newton)(None, b))


def test_nothing_of_a_rule_is_left_in_a_program_without_derivatives():
    plain, ruled = (lower(kernel_of(s).program(None), True) for s in (newton, solve))
    assert plain.digest == ruled.digest


def test_it_nests():
    """d²y/db² db db = -F_y⁻¹ 6 y dy²."""
    b, db = RNG.normal(size=3), RNG.normal(size=3)
    y, inverse = exact(b)
    _, second = jvp(lambda b: jvp(solve, (b,), (db,))[1], (b,), (db,))
    np.testing.assert_allclose(second, -inverse @ (6.0 * y * (inverse @ db) ** 2), rtol=1e-11, atol=1e-13)


def test_a_gradient_passes_where_a_while_loop_has_none():
    b = RNG.normal(size=3)
    np.testing.assert_allclose(grad(lambda b: dnp.sum(solve(b)))(b), exact(b)[1].sum(0), rtol=1e-12)
    with pytest.raises(DerivativeError, match="while_loop"):
        grad(lambda b: dnp.sum(newton(b)))(b)


def test_the_cost_of_a_tangent_does_not_depend_on_the_iterations():
    def fixed_point(count):
        def iterate(x):
            return scan(lambda y, _: (dnp.cos(y) * x, None), x, length=count)[0]

        def tangent(y, primals, tangents):
            return dnp.cos(y) * tangents[0] / (1.0 + dnp.sin(y) * primals[0])

        return custom_tangent(iterate, tangent)

    def operations(count, f):
        kernel = dl.kernel("(),()->()")(lambda model, x, dx: jvp(f, (x,), (dx,))[1])
        return sum(lower(kernel.program(None), True).count().values())

    assert operations(10, fixed_point(10)) == operations(1000, fixed_point(1000))
    kernel, plain, h = (
        dl.kernel("(),()->()")(lambda model, x, dx: jvp(fixed_point(200), (x,), (dx,))[1]),
        fixed_point(200),
        1e-6,
    )
    np.testing.assert_allclose(kernel(None, 0.5, 1.0), (plain(0.5 + h) - plain(0.5 - h)) / (2 * h), rtol=1e-8)
    assert [loop.carry_count for loop in lower(kernel.program(None), True).loops] == [1]  # no tangent is carried


def test_it_is_part_of_loops_that_are_differentiated():
    def f(b):
        return scan(lambda c, _: (solve(c), None), b, length=3)[0]

    b, right = RNG.normal(size=3), np.eye(3)
    y = b
    for _ in range(3):
        y, inverse = exact(y)
        right = inverse @ right
    for mode in ("forward", "reverse"):
        np.testing.assert_allclose(jacobian(f, mode=mode)(b), right, rtol=1e-11, atol=1e-14)


def test_nests_and_truths_come_and_go():
    def function(x, pair):
        return x * pair[0], x > 0.0, pair[1] + 1.0

    def tangent(value, primals, tangents):
        (dx, (da, db)), (x, (a, _)) = tangents, primals
        return dnp.where(value[1], dx * a + x * da, 7.0), value[1], 2.0 * db

    f = custom_tangent(function, tangent)
    value, derived = jvp(f, (2.0, (3.0, 4.0)), (1.0, (10.0, 100.0)))
    assert [float(v) for v in value] == [6.0, 1.0, 5.0]
    assert [float(d) for d in derived] == [23.0, 0.0, 200.0]


def test_a_value_from_around_that_is_differentiated_is_refused():
    def f(x):
        hidden = x * x
        return custom_tangent(lambda y: y * hidden, lambda value, primals, tangents: tangents[0] * hidden)(2.0 * x)

    with pytest.raises(DerivativeError, match="make it an argument"):
        jvp(f, (1.5,), (1.0,))


def test_other_values_from_around_may_be_used():
    def f(model, x, k):
        g = custom_tangent(lambda y: k * y, lambda value, primals, tangents: k * tangents[0])
        return jvp(g, (x,), (1.0,))[1]

    assert dl.kernel("(),()->()")(f)(None, 2.0, 5.0) == 5.0


@pytest.mark.parametrize(
    ("tangent", "text"),
    [(lambda v, p, t: (t[0], t[0]), "one array, and its tangent a tuple of 2"), (lambda v, p, t: t[0][:2], "shape")],
)
def test_a_tangent_that_does_not_fit_is_refused(tangent, text):
    with pytest.raises(LoopError, match=text):
        jvp(custom_tangent(lambda x: 2.0 * x, tangent), (np.ones(3),), (np.ones(3),))


def test_a_pullback_is_the_transpose():
    b, db, c = RNG.normal(size=(3, 3))
    _, tangent = jvp(solve, (b,), (db,))
    (pulled,) = vjp(solve, b)[1](c)
    np.testing.assert_allclose(c @ tangent, pulled @ db, rtol=1e-12)
