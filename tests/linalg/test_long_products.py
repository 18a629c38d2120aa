"""Products, eliminations and sweeps of many rows, which are made in loops, against dense NumPy and SciPy."""

import numpy as np
import pytest
from scipy.optimize import nnls

import delassus as dl
import delassus.numpy as dnp
from delassus.compiler import while_loop
from delassus.constrained.elimination.tree_factor import eliminate_rows_of
from delassus.contact.cones.kinds import Friction, NonNegative
from delassus.contact.cones.layout import Layout
from delassus.contact.cones.parameters import RowParameters
from delassus.contact.systems.scaled import Scaled
from delassus.dynamics.mass.crba import mass_matrix
from delassus.dynamics.mass.factor import ancestors, factor_tree
from delassus.linalg.products import gram

ROBOT = dl.load("humanoid")


@pytest.mark.parametrize("n", [43, 48])
def test_long_symmetric_products_are_those_of_numpy(n):
    A = np.random.default_rng(n).normal(size=(2, 20, n))

    @dl.kernel(f"(20,{n})->({n},{n})")
    def product(_, A):
        return gram(A, 2.0 * A)

    np.testing.assert_allclose(product(None, A), np.tril(2.0 * A.mT @ A), atol=1e-12)
    assert sum(product.program(None).count().values()) < 20 * n * n / 4


def test_responses_of_many_dense_rows_are_those_of_the_inverse_mass_matrix():
    n, rows = ROBOT.nv, 70
    J = np.random.default_rng(1).normal(size=(rows, n))
    J[-4:] = np.eye(n)[-4:]

    @dl.kernel(f"(nq),({rows},nv)->({rows},{rows})")
    def responses(model, q, J):
        above, friction = ancestors(model), np.eye(n)[-4:]
        U, D = factor_tree(above, mass_matrix(model, q))
        return eliminate_rows_of(above, U, D, dnp.concatenate([J[:-4], dnp.array(friction)]))[1]

    q = ROBOT.posture("home")
    expected = np.tril(J @ np.linalg.solve(dl.crba(ROBOT, q), J.T))
    np.testing.assert_allclose(responses(ROBOT, q, J), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("size", [3, 4, 6])
def test_sweeps_over_many_contacts_without_friction_end_at_the_solution_of_nonnegative_least_squares(size):
    """min ½ λᵀ G λ + gᵀ λ over λ ≥ 0 is that of ‖Lᵀ λ + L⁻¹ g‖."""
    contacts, scalars = 12, 5
    layout = Layout((NonNegative(scalars), *[Friction(size)] * contacts))
    m, rng = layout.m, np.random.default_rng(size)
    A = rng.normal(size=(m, m))
    G, g = A @ A.T / m + 2.0 * np.eye(m), rng.normal(size=m)

    @dl.kernel(f"({m},{m}),({m})->({m})")
    def solve(_, G, g):
        none = dnp.zeros(contacts)
        system = Scaled.of(layout, False, G, g, RowParameters(none, none, none))

        def sweep(carry):
            impulse, response, count = carry
            return *system.sweep(impulse, response), count + 1.0

        start = dnp.zeros(m)
        found = while_loop(lambda carry: carry[2] < 300.0, sweep, (start, system.respond(start), 0.0), 300)[0]
        factors = dnp.ones(m)
        return system.from_scaled(found, factors)

    pushing = [*range(scalars), *layout_normals(layout)]
    L = np.linalg.cholesky(G[np.ix_(pushing, pushing)])
    expected = np.zeros(m)
    expected[pushing] = nnls(L.T, -np.linalg.solve(L, g[pushing]))[0]
    np.testing.assert_allclose(solve(None, G, g), expected, atol=1e-9)


def layout_normals(layout):
    return [rows[2] for rows in layout.friction]
