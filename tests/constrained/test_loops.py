"""Closed loops against the dense answer by singular values, built from Pinocchio's kinematics, and against its solvers.

The linkages include what is hard for solvers that need a rank: poses in which rows become dependent, mechanisms whose
rows always are, loops in loops. Plain NumPy runs here unless compiled code is the point.
"""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import delassus as dl
from delassus.constrained.solvers.choice import best_method
from how_many import examples
from linkages import Linkage, bundled, mechanism_of, random_linkage, standing_biped, textbook, two_arms
from loop_oracles import constraint_dynamics, dense, lcaba
from mechanisms import PROXIMAL, Dense, relative

LINKAGES = {linkage.name: linkage for linkage in textbook()}


def state(linkage: Linkage, seed: int = 0):
    rng = np.random.default_rng(seed)
    return linkage.q, rng.normal(size=linkage.model.nv), rng.normal(size=linkage.model.nv)


def check(method, mechanism: dl.Mechanism, q, v, tau, system: Dense):
    """Accelerations to 1e-9, residuals of least squares to 1e-10."""
    a, force = method.python(mechanism, q, v, tau, iterations=system.iterations, proximal=system.proximal)
    assert relative(a, system.answer[0]) < 1e-9
    r = system.J @ a + system.gamma
    assert np.max(np.abs(system.J.T @ r)) <= 1e-10 * (1.0 + np.linalg.norm(system.J, 2) * np.linalg.norm(a))
    assert np.all(np.isfinite(force))


def to_tolerance(mechanism: dl.Mechanism, q, v, tau):
    """What `constrained_dynamics` computes, in plain NumPy."""
    return dl.constrained_dynamics.python(mechanism, q, v, tau, method=best_method(mechanism))


@pytest.mark.parametrize("name", LINKAGES)
def test_jacobian_and_bias_are_those_of_pinocchios_kinematics(name):
    linkage = LINKAGES[name]
    mechanism, (q, v, tau) = mechanism_of(linkage), state(linkage)
    system = dense(linkage.model, linkage.loops, q, v, tau)
    assert relative(dl.constraint_jacobian.python(mechanism, q), system.J) < 1e-12
    assert relative(dl.constraint_bias.python(mechanism, q, v), system.gamma) < 1e-12


@pytest.mark.parametrize("method", PROXIMAL, ids=lambda f: f.name)
@pytest.mark.parametrize("name", LINKAGES)
def test_linkages_have_the_dense_answer(method, name):
    linkage = LINKAGES[name]
    q, v, tau = state(linkage)
    check(method, mechanism_of(linkage), q, v, tau, dense(linkage.model, linkage.loops, q, v, tau))


@pytest.mark.parametrize("method", PROXIMAL, ids=lambda f: f.name)
@settings(max_examples=examples(60))
@given(st.integers(0, 100_000))
def test_random_loops_on_random_trees_have_the_dense_answer(method, seed):
    linkage = random_linkage(seed)
    q, v, tau = state(linkage, seed)
    system = dense(linkage.model, linkage.loops, q, v, tau)
    assume(system.scale > 1e-6 and system.is_clear())
    check(method, mechanism_of(linkage), q, v, tau, system)


@pytest.mark.parametrize(
    "linkage", [bundled("delta"), bundled("stewart"), standing_biped(), two_arms()], ids=lambda x: x.name
)
def test_accelerations_and_forces_are_those_of_pinocchio(linkage):
    q, v, tau = state(linkage)
    ours, our_force, _, _, status, _ = to_tolerance(mechanism_of(linkage), q, v, tau)
    a, force = constraint_dynamics(linkage.model, linkage.loops, q, v, tau)
    assert relative(ours, a) < 1e-8
    if status == dl.Status.CONVERGED:  # where rows contradict each other, theirs drift
        assert relative(our_force, force) < 1e-8


@pytest.mark.parametrize("linkage", [bundled("delta"), bundled("stewart")], ids=lambda x: x.name)
def test_accelerations_are_those_of_pinocchios_lcaba(linkage):
    q, v, tau = state(linkage)
    a, *_ = to_tolerance(mechanism_of(linkage), q, v, tau)
    assert relative(a, lcaba(linkage.model, linkage.loops, q, v, tau)) < 1e-8


@pytest.mark.parametrize("method", ["caba", "prox_pv", "prox_ltl", "prox_ltls"])
@pytest.mark.parametrize("name", ["delta", "Bennett's linkage, hinge"])
def test_compiled_loops_converge_for_a_batch(method, name):
    linkage = LINKAGES[name]
    mechanism = mechanism_of(linkage)
    q, _, tau = state(linkage)
    v = np.zeros((9, mechanism.nv))
    found = dl.constrained_dynamics(mechanism, q, v, tau, method=method)
    expected, _ = dl.kkt(mechanism, q, v[0], tau)
    assert np.all(found.status == int(dl.Status.CONVERGED))
    assert relative(found.acceleration[4], expected) < 1e-9
