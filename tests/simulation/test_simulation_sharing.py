"""Contacts that share the motions of their bodies, against rows and matrices written out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import delassus as dl
from bodies import BRICK, H
from delassus.contact.cones.kinds import Friction, NonNegative
from delassus.contact.cones.layout import Layout
from delassus.contact.cones.parameters import RowParameters
from delassus.contact.systems.sweep import coulomb_step
from delassus.step.stages.body_motions import BodyMotions
from delassus.step.stages.body_space import BodySpaceProblem
from delassus.step.stages.solve import PROXIMAL

MASS, MOMENTS = 2.0, np.diag([0.0167, 0.0083, 0.0217])  # of the brick


def skew(r):
    return np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])


@pytest.mark.parametrize("rows", [3, 4, 6])
def test_the_delassus_matrix_of_a_free_box_is_its_closed_form(rows):
    ground = dl.Ground(torsional=0.1 if rows > 3 else None, rolling=0.1 if rows > 4 else None)
    sim = dl.Simulation(BRICK, ground, H)
    q = np.array([0.3, -0.2, 0.05, *np.array([0.1, -0.05, 0.3, 0.9]) / np.linalg.norm([0.1, -0.05, 0.3, 0.9])])
    state = sim.start(q)
    R = Rotation.from_quat(state.q[3:]).as_matrix()
    points = sim.contacts(state.q).point[state.contact.astype(int)]
    J = []
    for x in points:
        arm = x - state.q[:3]
        J += [*np.hstack([np.eye(3), -skew(arm)])]
        J += [np.r_[np.zeros(3), np.eye(3)[k]] for k in (2, 0, 1)[: rows - 3]]
    M = np.zeros((6, 6))
    M[:3, :3], M[3:, 3:] = MASS * np.eye(3), R @ MOMENTS @ R.T
    wanted = np.array(J) @ np.linalg.solve(M, np.array(J).T)
    np.testing.assert_allclose(sim.problem(state).G, wanted, atol=1e-12 * np.abs(wanted).max())


def random_problem(seed: int, stops: int = 0):
    """A problem of four contacts on one body, two on another, and some rows of their own; G is P S Pᵀ."""
    rng = np.random.default_rng(seed)
    layout = Layout((*(Friction(),) * 6, *(NonNegative(1),) * stops))
    arms = [np.hstack([np.eye(3), -skew(rng.normal(size=3))]) for _ in range(6)]
    P = np.zeros((18 + stops, 12 + stops))
    for k, arm in enumerate(arms):
        P[3 * k : 3 * k + 3, 6 * (k > 3) : 6 * (k > 3) + 6] = arm
    P[18:, 12:] = np.eye(stops)
    half = rng.normal(size=(12 + stops,) * 2)
    S = half @ half.T + 0.1 * np.eye(12 + stops)
    sharing = BodyMotions(P, ((slice(0, 6), (0, 1, 2, 3)), (slice(6, 12), (4, 5))))
    parameters = RowParameters(friction=np.full(6, 0.7))
    problem = BodySpaceProblem.of(layout, sharing, S, np.diag(P @ S @ P.T), rng.normal(size=18 + stops), parameters)
    G = problem.P @ S @ problem.P.T
    return rng, problem, G


@given(st.integers(0, 10**6), st.sampled_from([0, 3]))
@settings(max_examples=30, deadline=None)
def test_velocities_go_through_motions(seed, stops):
    rng, problem, G = random_problem(seed, stops)
    impulse = rng.normal(size=len(G))
    wanted = G @ impulse + problem.rows.g
    np.testing.assert_allclose(problem.velocity(impulse), wanted, atol=1e-12 * np.abs(wanted).max())


@given(st.integers(0, 10**6), st.sampled_from([0, 3]))
@settings(max_examples=30, deadline=None)
def test_a_sweep_goes_over_the_contacts_of_each_body_while_the_other_stands_still(seed, stops):
    rng, problem, G = random_problem(seed, stops)
    rows = problem.rows
    start = impulse = np.abs(rng.normal(size=len(G)))
    velocity = G @ impulse + rows.g
    for k in range(stops):
        impulse = np.where(np.arange(len(G)) == k, max(impulse[k] - velocity[k] / G[k, k], 0.0), impulse)
        velocity = G @ impulse + rows.g
    made = impulse.copy()
    for contacts in ((0, 1, 2, 3), (4, 5)):
        own = impulse.copy()
        for at in (rows.layout.blocks[k] for k in contacts):
            own[at] = made[at] = coulomb_step(G[at, at], own[at], (G @ own + rows.g)[at], 0.7, 1.0)
    found, response = problem.sweep(start, problem.respond(start))
    moving = problem.velocity_of(response, found)
    np.testing.assert_allclose(found, made, atol=1e-10 * np.abs(made).max())
    np.testing.assert_allclose(moving, G @ made + rows.g, atol=1e-10 * np.abs(G @ made).max())


@given(st.integers(0, 10**6), st.sampled_from([0, 3]), st.sampled_from([1e-7, 1e-2]))
@settings(max_examples=60, deadline=None)
def test_an_iteration_through_motions_solves_the_system_of_all_rows(seed, stops, rho):
    rng, problem, G = random_problem(seed, stops)
    _, jacobians = problem.rows.smooth(rng.normal(size=len(G)), 0.0)
    D = np.zeros_like(G)
    if stops:
        D[:stops, :stops] = np.diag(jacobians[0])
    for at, block in zip(problem.rows.layout.blocks, jacobians[bool(stops) :], strict=True):
        D[at, at] = block
    # A small ρ is there for the numbers alone: feet have more rows than motions, and what they can do is found without.
    kept = 0.0 if rho == 1e-7 else rho
    matrix = np.eye(len(G)) - (1.0 - kept) * D + D @ G
    asked = matrix @ rng.normal(size=len(G))
    left = matrix @ problem.newton_direction(jacobians, rho, asked, PROXIMAL["float64"]) - asked
    assert np.linalg.norm(left) <= 1e-7 * np.linalg.norm(asked)
