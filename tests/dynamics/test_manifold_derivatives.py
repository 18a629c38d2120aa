"""Derivatives of `integrate` and `difference`, and `interpolate`, against Pinocchio's and against differences."""

from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import delassus as dl
from differences import jacobian
from joint_cases import EACH, Case, cylindrical, mechanism

# Pinocchio writes angles of continuous joints as cosine and sine, and takes their difference the shorter way round.
KINDS = [kind for kind in EACH if not kind.startswith("continuous")]


@cache
def mixed(seed: int = 4) -> Case:
    kinds = np.random.default_rng(seed).permutation(KINDS).tolist()
    return mechanism(kinds, [*range(len(kinds))], seed)


def other(c: Case) -> np.ndarray:
    return c.model.random_configuration(np.random.default_rng(9))


def assert_close(ours, theirs, bound=1e-10):
    assert np.max(np.abs(ours - theirs)) <= bound * max(np.max(np.abs(theirs)), 1.0)


@pytest.mark.parametrize("length", [0.0, 1e-16, 1e-12, 1e-8, 1e-4, 1e-2, 1.0, 3.0])
def test_derivatives_of_integrate_are_pinocchios(length):
    c = mixed()
    by_q, by_v = dl.integrate_derivatives.python(c.model, c.q, length * c.v)
    assert_close(by_q, pin.dIntegrate(c.theirs, c.pq, length * c.v, pin.ARG0))
    assert_close(by_v, pin.dIntegrate(c.theirs, c.pq, length * c.v, pin.ARG1))


def test_derivatives_of_difference_are_pinocchios():
    c = mixed()
    by_0, by_1 = dl.difference_derivatives.python(c.model, c.q, other(c))
    there = dl.q_to_pinocchio(c.model, other(c))
    assert_close(by_0, pin.dDifference(c.theirs, c.pq, there, pin.ARG0))
    assert_close(by_1, pin.dDifference(c.theirs, c.pq, there, pin.ARG1))


@pytest.mark.parametrize("kind", ["free", "spherical", "planar", "cylindrical"])
@settings(max_examples=6, deadline=None, database=None)
@given(seed=st.integers(0, 1000), length=st.floats(-8, 0).map(lambda x: 10.0**x))
def test_derivatives_of_difference_are_those_of_differences(kind, seed, length):
    c = mechanism([kind], [0], seed) if kind != "cylindrical" else cylindrical()[0]
    moved = dl.integrate.python(c.model, c.q, length * np.random.default_rng(seed).uniform(-1, 1, c.model.nv))

    def along(from_q, to_q):
        return jacobian(lambda x: dl.difference.python(c.model, from_q(x), to_q(x)), c.model.nv)

    def step(q):
        return lambda x: dl.integrate.python(c.model, q, x)

    by_0, by_1 = dl.difference_derivatives.python(c.model, c.q, moved)
    assert_close(by_0, along(step(c.q), lambda x: moved), 1e-8)
    assert_close(by_1, along(lambda x: c.q, step(moved)), 1e-8)


def test_the_derivative_of_integrate_undoes_that_of_difference():
    c = mixed()
    v = dl.difference.python(c.model, c.q, other(c))
    _, by_v = dl.integrate_derivatives.python(c.model, c.q, v)
    _, by_1 = dl.difference_derivatives.python(c.model, c.q, other(c))
    assert_close(by_1 @ by_v, np.eye(c.model.nv), 1e-12)


@pytest.mark.parametrize("kernel", [dl.integrate_derivatives, dl.difference_derivatives], ids=lambda k: k.name)
def test_compiled_derivatives_agree_with_the_plain_function(kernel):
    c = mixed()
    second = c.v if kernel is dl.integrate_derivatives else other(c)
    for ours, plain in zip(kernel(c.model, c.q, second), kernel.python(c.model, c.q, second), strict=True):
        assert_close(ours, plain, 1e-13)


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0, 1.5])
def test_interpolation_is_pinocchios(share):
    c = mixed()
    # Pinocchio's spherical joint turns the way that its quaternions say: both are on the same side here.
    ours = dl.interpolate.python(c.model, c.q, dl.integrate.python(c.model, c.q, 0.3 * c.v), share)
    there = pin.interpolate(c.theirs, c.pq, pin.integrate(c.theirs, c.pq, 0.3 * c.v), share)
    assert_close(dl.q_to_pinocchio(c.model, ours), there)


def test_shares_of_a_batch_broadcast():
    c = mixed()
    way = dl.interpolate(c.model, c.q, other(c), np.linspace(0.0, 1.0, 11))
    assert way.shape == (11, c.model.nq)
    assert_close(way[0], c.q, 1e-14)
    assert_close(dl.difference(c.model, way[-1], other(c)), 0.0, 1e-12)


def test_derivatives_of_a_model_with_followers_have_one_column_a_source():
    by_q, by_v = dl.integrate_derivatives.python(dl.load("gripper"), [0.01], [0.5])
    np.testing.assert_array_equal([by_q, by_v], [[[1.0]], [[1.0]]])
