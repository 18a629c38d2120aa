"""The Coriolis matrix and the centroidal momentum matrix, against Pinocchio's and by what defines them."""

from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings

import delassus as dl
from delassus.model.generators import random_tree
from differences import jacobian
from how_many import examples
from joint_cases import EACH, Case, mass_matrix, mechanism, mechanisms
from refusals import refuses
from robots import file, pinocchio_model

SIMPLE = [kind for kind in EACH if kind != "universal"]  # Pinocchio leaves out how the axes of universal joints move


@cache
def chained() -> Case:
    """Joints of all kinds but one in a row, as Pinocchio needs them, and a branch at the end."""
    kinds = np.random.default_rng(3).permutation(SIMPLE).tolist()
    return mechanism(kinds, [*range(len(kinds) - 1), 4], 4, armature=True)


@cache
def robot(name: str) -> Case:
    theirs = pinocchio_model(file(name), "free")
    model, rng = dl.load(file(name), root="free", mimic="ignore"), np.random.default_rng(0)
    return Case(model, theirs, model.random_configuration(rng), *rng.normal(size=(2, model.nv)))


CASES = [chained, lambda: robot("solo12.urdf"), lambda: robot("talos_reduced.urdf")]
every_case = pytest.mark.parametrize("case", CASES, ids=["all kinds", "solo12", "talos"])


def assert_close(ours, theirs, bound=1e-10, scale=1.0):
    theirs = np.reshape(theirs, np.shape(ours))
    assert np.max(np.abs(ours - theirs)) <= bound * max(np.max(np.abs(theirs)), scale)


@every_case
def test_the_coriolis_matrix_is_pinocchios(case):
    c = case()
    there = pin.computeCoriolisMatrix(c.theirs, c.data, c.pq, c.v)
    assert_close(dl.coriolis_matrix.python(c.model, c.q, c.v), there)


@settings(max_examples=examples(12), deadline=None, database=None)
@given(c=mechanisms())
def test_it_gives_the_torques_of_motion(c):
    bias, gravity = dl.bias_torques.python(c.model, c.q, c.v), dl.gravity_torques.python(c.model, c.q)
    C = dl.coriolis_matrix.python(c.model, c.q, c.v)
    assert_close(C @ c.v, bias - gravity, scale=1 + np.max(np.abs(bias)))


@settings(max_examples=examples(12), deadline=None, database=None)
@given(c=mechanisms())
def test_what_it_leaves_of_the_rate_of_the_mass_matrix_is_skew_symmetric(c):
    def mass(t):
        moved = dl.integrate.python(c.model, c.q, t[0] * c.v)
        return mass_matrix(Case(c.model, c.theirs, moved, c.v, c.a)).ravel()

    rate = jacobian(mass, 1).reshape(c.model.nv, c.model.nv)
    S = rate - 2.0 * dl.coriolis_matrix.python(c.model, c.q, c.v)
    assert_close(S, -S.T, 1e-8, scale=1 + np.max(np.abs(rate)))


def test_followers_count_for_their_source():
    model = dl.load("gripper")
    C = dl.coriolis_matrix.python(model, [0.02], [0.5])
    bias = dl.bias_torques.python(model, [0.02], [0.5]) - dl.gravity_torques.python(model, [0.02])
    np.testing.assert_allclose(C @ [0.5], bias, atol=1e-14)


@every_case
def test_the_centroidal_momentum_matrix_is_pinocchios(case):
    c = case()
    assert_close(dl.centroidal_momentum_matrix.python(c.model, c.q), pin.computeCentroidalMap(c.theirs, c.data, c.pq))


@every_case
def test_its_rate_is_pinocchios(case):
    c = case()
    there = np.array(pin.computeCentroidalMapTimeVariation(c.theirs, c.data, c.pq, c.v))
    # Pinocchio leaves out that the center moves, which adds nothing to Ȧ v: there, the momentum is along its velocity.
    pin.centerOfMass(c.theirs, c.data, c.pq, c.v)
    there[3:] += np.cross(c.data.Ag[:3], c.data.vcom[0], axisa=0, axisc=0)
    assert_close(dl.centroidal_momentum_matrix_rate.python(c.model, c.q, c.v), there)


@settings(max_examples=examples(12), deadline=None, database=None)
@given(c=mechanisms())
def test_it_gives_the_momentum(c):
    A, h = dl.centroidal_momentum_matrix.python(c.model, c.q), dl.centroidal_momentum.python(c.model, c.q, c.v)
    assert_close(A @ c.v, h, scale=1 + np.max(np.abs(A)))


@settings(max_examples=examples(12), deadline=None, database=None)
@given(c=mechanisms())
def test_its_rate_is_how_it_changes(c):
    def matrix(t):
        moved = dl.integrate.python(c.model, c.q, t[0] * c.v)
        return dl.centroidal_momentum_matrix.python(c.model, moved).ravel()

    rate = jacobian(matrix, 1).reshape(6, c.model.nv)
    ours = dl.centroidal_momentum_matrix_rate.python(c.model, c.q, c.v)
    assert_close(ours, rate, 1e-8, scale=1 + np.max(np.abs(rate)))


@pytest.mark.parametrize(
    ("kernel", "arrays"),
    [(dl.coriolis_matrix, 2), (dl.centroidal_momentum_matrix, 1), (dl.centroidal_momentum_matrix_rate, 2)],
    ids=lambda x: getattr(x, "name", ""),
)
def test_compiled_code_agrees_with_the_plain_function(kernel, arrays):
    model, rng = random_tree(5, seed=0), np.random.default_rng(1)
    state = (model.random_configuration(rng), rng.normal(size=model.nv))[:arrays]
    assert_close(kernel(model, *state), kernel.python(model, *state), 1e-13)


def test_followers_count_for_their_source_in_the_momentum():
    model = dl.load("gripper")
    A = dl.centroidal_momentum_matrix.python(model, [0.02])
    np.testing.assert_allclose(A @ [0.5], dl.centroidal_momentum.python(model, [0.02], [0.5]), atol=1e-15)


def test_a_robot_without_mass_has_no_centroidal_momentum_matrix():
    massless = dl.load("pendulum").with_inertia("rod", dl.Inertia())
    with refuses("no-mass"):
        dl.centroidal_momentum_matrix.python(massless, [0.0])
