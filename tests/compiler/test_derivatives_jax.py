"""Derivatives of random programs against those of JAX, up to the third order.

A program is written once, as a function of the module that it calls (`delassus.numpy` or `jax.numpy`): a list of
vectors of three numbers that grows by one with each step. Steps keep their values moderate, so that third derivatives
have digits to compare; singular points are avoided by construction, kinks because a random point misses them.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import delassus.numpy as dnp
from delassus.compiler import grad, jacobian, jvp, vjp
from how_many import examples

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what another package deprecates in itself is not ours to answer for
    jax = pytest.importorskip("jax")
    jnp = pytest.importorskip("jax.numpy")

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_disable_jit", True)  # to compile what runs once takes longer than to run it

UNARY: dict[str, Callable[..., Any]] = {
    "sin": lambda np, a: np.sin(a),
    "cos": lambda np, a: np.cos(2.0 * a),
    "tan": lambda np, a: np.tan(0.7 * np.sin(a)),
    "arcsin": lambda np, a: np.arcsin(0.8 * np.sin(a)),
    "arccos": lambda np, a: np.arccos(0.8 * np.cos(a)),
    "arctan": lambda np, a: np.arctan(a),
    "exp": lambda np, a: np.exp(-a * a),
    "expm1": lambda np, a: np.expm1(np.sin(a)),
    "log": lambda np, a: np.log(1.5 + a * a),
    "log1p": lambda np, a: np.log1p(a * a),
    "sinh": lambda np, a: np.sinh(np.sin(a)),
    "cosh": lambda np, a: np.cosh(np.cos(a)),
    "tanh": lambda np, a: np.tanh(a),
    "sqrt": lambda np, a: np.sqrt(0.5 + np.square(a)),
    "reciprocal": lambda np, a: 1.0 / (1.2 + a * a),
    "cube": lambda np, a: np.sin(a) ** 3,
    "inverse square": lambda np, a: (1.3 + np.cos(a)) ** -2,
    "absolute": lambda np, a: abs(a) - np.sign(a) * a * 0.5,
    "clip": lambda np, a: np.clip(a, -0.9, 1.1),
    "norm": lambda np, a: a / np.linalg.norm(a + 0.1),
    "floor": lambda np, a: np.sin(a) * np.floor(1.5 * a) + np.ceil(a) - np.trunc(2.0 * a) * a + np.rint(a),
    "interp": lambda np, a: np.interp(a, numpy.array([-1.2, -0.3, 0.4, 1.5]), numpy.array([0.3, -0.5, 0.8, 0.1])),
    "sort": lambda np, a: np.sort(np.sin(a)) * a,
    "order": lambda np, a: np.roll(a, 1) - np.flip(a) * 0.5,
    "parts": lambda np, a: np.concatenate([a[1:], a[:1] * a[2]]),
    "mean": lambda np, a: a - np.mean(a) + np.max(a),
}
BINARY: dict[str, Callable[..., Any]] = {
    "add": lambda np, a, b: a + b,
    "subtract": lambda np, a, b: 0.5 * a - b,
    "multiply": lambda np, a, b: np.sin(a) * b,
    "divide": lambda np, a, b: a / (2.0 + np.sin(b)),
    "minimum": lambda np, a, b: np.minimum(a, b),
    "maximum": lambda np, a, b: np.maximum(a, 0.3 * b),
    "where": lambda np, a, b: np.where(a > b, np.sin(a * b), np.sqrt(1.0 + b * b)),
    "untaken root": lambda np, a, b: np.where(a > 0.2, np.log(np.where(a > 0.2, a, 1.0)), b),
    "power": lambda np, a, b: (1.1 + np.square(np.sin(a))) ** np.cos(b),
    "arctan2": lambda np, a, b: np.arctan2(a, 1.1 + np.cos(b)) + np.arctan2(1.3 + np.sin(b), np.sin(a)),
    "hypot": lambda np, a, b: np.hypot(a, 0.7 + b * b),
    "remainder": lambda np, a, b: np.remainder(a, 0.7 + 0.2 * np.sin(b)) + 0.3 * np.floor_divide(b, 0.9) * a,
    "interp traced": lambda np, a, b: np.interp(a, np.stack([-1.1 + 0.0 * b[0], 0.2 * np.sin(b[1]), 1.3]), b),
    "cross": lambda np, a, b: np.cross(np.sin(a), b),
    "matrix": lambda np, a, b: (np.outer(np.sin(a), np.cos(b)) + np.eye(3)) @ b,
    "dot": lambda np, a, b: a * np.tanh(a @ b),
    "einsum": lambda np, a, b: np.einsum("i,j,j->i", np.sin(a), np.cos(b), b),
    "stack": lambda np, a, b: np.stack([a[0] * b[2], b[1], np.sum(np.sin(a))]),
    "solve": lambda np, a, b: np.linalg.solve(4.0 * np.eye(3) + np.outer(np.sin(a), np.cos(b)), b),
    "inverse": lambda np, a, b: np.linalg.inv(3.0 * np.eye(3) + np.diag(np.cos(a)) + np.outer(np.sin(b), a / 9.0))[1],
    "cholesky": lambda np, a, b: np.linalg.cholesky(np.outer(np.sin(a), np.sin(a)) + np.diag(1.5 + np.cos(b)))[2],
    "determinant": lambda np, a, b: b * np.linalg.det(2.0 * np.eye(3) + np.outer(np.sin(a), np.cos(b))),
}


@dataclass(frozen=True)
class VectorProgram:
    """Steps that each read one or two of the vectors so far; the last vector is the result."""

    steps: tuple[tuple[str, int, int], ...]

    def __call__(self, np: Any, x: Any) -> Any:
        vectors = [x]
        for name, i, j in self.steps:
            a, b = vectors[i], vectors[j]
            vectors.append(UNARY[name](np, a) if name in UNARY else BINARY[name](np, a, b))
        return vectors[-1]


@st.composite
def vector_programs(draw: st.DrawFn, most: int) -> VectorProgram:
    steps: list[tuple[str, int, int]] = []
    for k in range(draw(st.integers(1, most))):
        recent = st.integers(max(0, k - 2), k)
        steps.append((draw(st.sampled_from([*UNARY, *BINARY])), draw(recent), draw(recent)))
    return VectorProgram(tuple(steps))


def assert_close(got, expected, rtol):
    """Within a fraction of the largest entry: small ones are differences of large terms."""
    expected = numpy.asarray(expected)
    numpy.testing.assert_allclose(got, expected, rtol=0, atol=rtol * max(1.0, abs(expected).max()))


def vectors(seed, count):
    return numpy.random.default_rng(seed).normal(size=(count, 3))


SEEDS = st.integers(0, 2**32 - 1)
MANY = settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
EVERY_STEP = pytest.mark.parametrize("name", [*UNARY, *BINARY])


def check_first_order(program, x, along, back):
    ours, theirs = partial(program, dnp), partial(program, jnp)
    value, tangent = jvp(ours, (x,), (along,))
    expected_value, expected_tangent = jax.jvp(theirs, (x,), (along,))
    assert_close(value, expected_value, 1e-12)
    assert_close(tangent, expected_tangent, 1e-11)
    assert_close(vjp(ours, x)[1](back)[0], jax.vjp(theirs, x)[1](back)[0], 1e-11)
    expected = jax.jacfwd(theirs)(x)
    for mode in ("forward", "reverse"):
        assert_close(jacobian(ours, mode=mode)(x), expected, 1e-11)


@EVERY_STEP
def test_one_step_has_the_derivatives_of_jax(name):
    check_first_order(VectorProgram((("sin", 0, 0), (name, 0, 1))), *vectors(7, 3))


@MANY
@given(vector_programs(10), SEEDS)
def test_a_program_has_the_derivatives_of_jax(program, seed):
    check_first_order(program, *vectors(seed, 3))


@settings(MANY, max_examples=8)
@given(vector_programs(5), SEEDS)
def test_a_program_has_the_second_and_third_derivatives_of_jax(program, seed):
    x, weights, along = vectors(seed, 3)
    ours, theirs = (lambda x, np=np: weights @ program(np, x) for np in (dnp, jnp))
    second, third = jax.jvp(jax.jacfwd(jax.grad(theirs)), (x,), (along,))
    assert_close(jacobian(grad(ours))(x), second, 1e-10)
    assert_close(jacobian(jacobian(grad(ours)))(x) @ along, third, 1e-9)


@settings(MANY, max_examples=8)
@given(vector_programs(4), SEEDS)
def test_third_derivatives_along_directions_are_those_of_jax(program, seed):
    """Forward over forward over forward."""
    x, *along = vectors(seed, 4)

    def third(push, np):
        return reduce(lambda f, d: lambda x: push(f, (x,), (d,))[1], along, partial(program, np))(x)

    assert_close(third(jvp, dnp), third(jax.jvp, jnp), 1e-9)
