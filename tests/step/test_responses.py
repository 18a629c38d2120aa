"""How robots answer to forces and impulses: sweeps over the tree and factors of the inertia say what W says."""

import numpy as np
import pytest

import delassus as dl
from delassus.constrained.rows.jacobian import jacobian_in
from delassus.step.actuators.forces import Forces
from delassus.step.compliant.kinematics import RowKinematics
from delassus.step.compliant.response import PrescribedVelocities, free_response, response_matrix
from delassus.step.scene import Scene
from delassus.step.scheme.response import ArticulatedResponse, FactoredResponse

QUADRUPED = dl.load("quadruped")
FEET = tuple(dl.Contact(foot, radius=0.02) for foot in QUADRUPED.frames("*_foot"))
SCENES = {"quadruped": Scene(dl.Mechanism(QUADRUPED), FEET), "four_bar": Scene(dl.Mechanism(dl.load("four_bar")))}


class Case:
    """A robot that moves, with dampers in its joints; a coupling of zeros makes its response one by factors."""

    def __init__(self, name, kind, driven=()):
        rng, scene = np.random.default_rng(0), SCENES[name]
        model, nv = scene.model, scene.nv
        self.v, self.force, self.impulse = rng.normal(size=nv), rng.normal(size=nv), rng.normal(size=scene.m)
        q = dl.integrate(model, model.neutral(), 0.3 * rng.normal(size=nv))
        state = RowKinematics.of(scene, scene.row_mechanism, q, self.v)
        coupling = np.zeros((nv, nv)) if kind is FactoredResponse else None
        forces = Forces(rng.normal(size=nv), np.linspace(0.1, 0.2, nv), coupling=coupling)
        given = PrescribedVelocities(driven, rng.normal(size=nv))
        self.free, self.response = free_response(state.motions, state.rows, self.v, forces, 0.01, given)
        self.W, self.J = response_matrix(state.motions, forces), np.array(jacobian_in(state.rows, state.motions))
        assert isinstance(self.response, kind)


@pytest.fixture(params=SCENES)
def name(request):
    return request.param


@pytest.fixture(params=[ArticulatedResponse, FactoredResponse])
def case(name, request):
    return Case(name, request.param)


def test_forces_are_those_that_the_inertia_takes(case):
    np.testing.assert_allclose(case.W @ case.response.solve(case.force), case.force, atol=1e-9)


def test_impulses_act_by_their_rows(case):
    np.testing.assert_allclose(case.W @ case.response.respond(case.impulse), case.J.T @ case.impulse, atol=1e-9)


def test_rows_move_as_the_jacobian_says(case):
    np.testing.assert_allclose(case.response.velocities(case.v), case.J @ case.v, atol=1e-12)


def test_the_delassus_matrix_is_the_response_of_rows(case):
    moved = case.J @ np.linalg.solve(case.W, case.J.T)
    np.testing.assert_allclose(case.response.delassus(), moved, atol=1e-9 * np.max(np.abs(moved)))


@pytest.mark.parametrize("dofs", [(0,), (1, 2)])
def test_driven_joints_yield_to_no_force(dofs):
    sweeps, factors = (Case("four_bar", kind, dofs) for kind in (ArticulatedResponse, FactoredResponse))
    assert not sweeps.response.solve(sweeps.force)[list(dofs)].any()
    np.testing.assert_allclose(sweeps.free, factors.free, atol=1e-10)
    np.testing.assert_allclose(
        sweeps.response.respond(sweeps.impulse), factors.response.respond(factors.impulse), atol=1e-9
    )
