"""Constrained dynamics in any units: a mechanism in other ones has the same motion, the same forces, the same statuses.

Units change by powers of two, so that rounding stays the same and only a hidden unit shows. Answers that are unique are
compared; so are forces of redundant rows and least squares, whose norm has no unit either.
"""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import delassus as dl
from delassus.constrained.delassus.scales import row_mobilities, row_sizes
from delassus.constrained.solvers.choice import SOLVERS
from how_many import examples
from mechanisms import PROXIMAL, held, loop, state
from scaling import Units

exponent = st.integers(-20, 20)
units = st.builds(lambda a, b, c: Units(2.0**a, 2.0**b, 2.0**c), exponent, exponent, exponent)
EXTREME = [Units(**{kind: 2.0**power}) for kind in ("length", "mass", "time") for power in (-20, 20)]


def close(found, expected, factor, share=1e-9):
    """Equal in the old units, each number to a share of the largest of its kind."""
    size = np.max(np.abs(expected), initial=0.0)
    np.testing.assert_allclose(found / factor, expected, rtol=share, atol=share * size)


def in_other_units(units, mechanism, q, v, tau):
    model = mechanism.model
    return units.mechanism(mechanism), units.q(model) * q, units.v(model) * v, units.tau(model) * tau


@pytest.mark.parametrize("method", SOLVERS)
@settings(max_examples=examples(40))
@given(held(), units)
def test_solutions_to_a_tolerance_are_the_same_in_all_units(method, case, units):
    mechanism, q, v, tau = case
    a, force, residual, count, status, _ = dl.constrained_dynamics.python(mechanism, q, v, tau, method=method)
    other = dl.constrained_dynamics.python(*in_other_units(units, mechanism, q, v, tau), method=method)
    assert (other[4], other[3]) == (status, count)
    close(other[0], a, units.a(mechanism.model))
    close(other[1], force, units.row_force(mechanism), 1e-6)
    close(other[2], residual, units.row_acceleration(mechanism))


@pytest.mark.parametrize("method", PROXIMAL, ids=lambda f: f.name)
@settings(max_examples=examples(25))
@given(held(), units)
def test_a_number_of_iterations_is_the_same_in_all_units(method, case, units):
    mechanism, q, v, tau = case
    a, force = method.python(mechanism, q, v, tau)
    found = method.python(*in_other_units(units, mechanism, q, v, tau))
    close(found[0], a, units.a(mechanism.model))
    close(found[1], force, units.row_force(mechanism))


@settings(max_examples=examples(25))
@given(held(), units)
def test_elimination_of_rows_is_the_same_in_all_units(case, units):
    mechanism, q, v, tau = case
    a, force, status = dl.pv_early.python(mechanism, q, v, tau)
    found = dl.pv_early.python(*in_other_units(units, mechanism, q, v, tau))
    assert found[2] == status
    close(found[0], a, units.a(mechanism.model))
    close(found[1], force, units.row_force(mechanism), 1e-6)


@settings(max_examples=examples(40))
@given(held(), units)
def test_what_rows_yield_and_what_their_errors_are_compared_with_have_their_units(case, units):
    mechanism = case[0]
    other = units.mechanism(mechanism)
    np.testing.assert_array_equal(row_mobilities(other) / units.row_compliance(mechanism), row_mobilities(mechanism))
    np.testing.assert_allclose(row_sizes(other) / units.row_position(mechanism), row_sizes(mechanism), rtol=1e-14)


@cache
def in_si(name):
    """A mechanism in a random state: what assembles it, what projects it from a little beside that, and an impact."""
    mechanism = loop(name)
    q, v, _ = state(mechanism.model, 1)
    assembled = dl.assemble.python(mechanism, q)
    beside = dl.integrate.python(mechanism.model, assembled[0], 1e-4 * v)
    projected = dl.project.python(mechanism, beside, v)
    return (
        mechanism,
        q,
        v,
        assembled,
        beside,
        projected,
        dl.impact.python(mechanism, assembled[0], v, restitution=0.5),
    )


@pytest.mark.parametrize("units", EXTREME, ids=str)
@pytest.mark.parametrize("name", ["four_bar", "stewart", "biped"])
def test_assembly_projection_and_impacts_are_the_same_in_all_units(name, units):
    mechanism, q, v, (found, _, count, status), beside, projected, impact = in_si(name)
    model, other = mechanism.model, units.mechanism(mechanism)
    again = dl.assemble.python(other, units.q(model) * q)
    assert again[2:] == (count, status)
    close(again[0], found, units.q(model), 1e-8)
    theirs = dl.project.python(other, units.q(model) * beside, units.v(model) * v)
    close(theirs[0], projected[0], units.q(model))
    close(theirs[1], projected[1], units.v(model))
    theirs = dl.impact.python(other, units.q(model) * found, units.v(model) * v, restitution=0.5)
    close(theirs[0], impact[0], units.v(model))
    close(theirs[1], impact[1], units.row_force(mechanism) * units.time, 1e-6)


@pytest.mark.parametrize("mass", [1e-9, 1e-6, 1e-3, 1e5, 1e6])
@pytest.mark.parametrize("method", PROXIMAL, ids=lambda f: f.name)
def test_three_iterations_are_as_good_for_a_speck_as_for_a_ship(method, mass):
    tree = dl.load("double_pendulum")
    held = Units(mass=mass).mechanism(dl.Mechanism(tree, [dl.Point("tip", rows="x")]))
    q, v, tau = np.array([0.4, 0.7]), np.array([1.0, -2.0]), np.zeros(2)
    expected = dl.kkt(held, q, v, tau)
    a, force = method.python(held, q, v, tau)
    np.testing.assert_allclose(a, expected[0], rtol=1e-8)
    np.testing.assert_allclose(force, expected[1], rtol=1e-8)
