"""Linear algebra of one state, traced and on NumPy arrays, against LAPACK and SciPy, also near singular matrices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import ldl as scipy_ldl
from scipy.linalg import null_space
from scipy.sparse.linalg import cg, minres

import delassus.numpy as dnp
from delassus.compiler.backends.interpreter import evaluate
from delassus.compiler.graph.program import Operand
from delassus.compiler.tracing.operations.products import TILE
from delassus.compiler.tracing.record import record
from delassus.linalg.cholesky import Cholesky
from delassus.linalg.filtered_system import FilteredSystem, least_norm, scaled_least_norm
from delassus.linalg.jacobi import orthogonalize
from delassus.linalg.krylov import conjugate_gradients, minimal_residuals
from delassus.linalg.ldl import ldl, ldl_regularized, ldl_semidefinite
from delassus.linalg.least_squares import decompose, gram_pseudo_inverse, nearest_solution
from delassus.linalg.lu import solve_without_pivots
from delassus.linalg.products import gram, mirror, multiply, tiles
from delassus.linalg.schur import eliminate_rows
from how_many import examples

SIZES = (1, 2, 3, 4, 7, 12)


def traced(function, shape, *arrays):
    """The result, of this shape, of a function of traced arrays, by the interpreter."""
    inputs = tuple(Operand(f"x{k}", np.shape(a)) for k, a in enumerate(arrays))
    (found,) = evaluate(record("algebra", function, inputs, (Operand("y", shape),)), *(np.asarray(a) for a in arrays))
    return found


def plain(function, shape, *arrays):
    return np.asarray(function(*arrays))


both = pytest.mark.parametrize("run", [traced, plain])


def spectrum(values, seed=0):
    """A symmetric matrix with these eigenvalues."""
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(values), len(values))))[0]
    A = (Q * np.asarray(values)) @ Q.T
    return 0.5 * (A + A.T)


def positive(n, seed=0):
    return spectrum(np.logspace(0.0, -2.0, n), seed)


def side(*shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape)


# --- products ---------------------------------------------------------------------------------------------------------


def test_tiles_cover_every_number_once():
    for n in range(11):
        assert [k for tile in tiles(n) for k in tile] == list(range(n))
        assert all(len(tile) <= TILE for tile in tiles(n))


@both
@pytest.mark.parametrize("n", SIZES)
def test_gram_is_the_lower_triangle_of_a_product(run, n):
    A = side(5, n)
    np.testing.assert_allclose(run(gram, (n, n), A, A), np.tril(A.T @ A), atol=1e-13)


@both
@pytest.mark.parametrize("n", [3, 40])
def test_a_matrix_is_multiplied_by_a_vector(run, n):
    A, x = side(n, n), side(n, seed=2)
    np.testing.assert_allclose(run(multiply, (n,), A, x), A @ x, atol=1e-12)


@both
def test_mirror_reads_the_lower_triangle_alone(run):
    A = positive(5)
    np.testing.assert_array_equal(run(mirror, (5, 5), np.tril(A) + np.triu(np.ones((5, 5)), 1)), A)


# --- factors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", SIZES)
def test_ldl_has_the_factors_of_scipy(n):
    A = positive(n)
    factors = ldl(A)
    L, D, order = scipy_ldl(A + n * np.eye(n), lower=True)  # dominated by its diagonal: SciPy exchanges no rows
    assert (order == np.arange(n)).all()
    ours = ldl(A + n * np.eye(n))
    np.testing.assert_allclose(np.tril(ours.L, -1) + np.eye(n), L, atol=1e-13)
    np.testing.assert_allclose(1.0 / ours.inverse, np.diag(D), rtol=1e-12)
    np.testing.assert_allclose(factors.solve(A), np.eye(n), atol=1e-10)


@both
@pytest.mark.parametrize("shape", [(6,), (6, 3)])
def test_ldl_solves_one_or_several_right_hand_sides(run, shape):
    A, b = positive(6), side(*shape)
    np.testing.assert_allclose(run(lambda A, b: ldl(A).solve(b), shape, A, b), np.linalg.solve(A, b), rtol=1e-10)


@both
def test_ldl_whitens(run):
    A, b = positive(5), side(5)
    white = run(lambda A, b: ldl(A).whiten(b), (5,), A, b)
    assert white @ white == pytest.approx(b @ np.linalg.solve(A, b), rel=1e-12)


@both
def test_ldl_of_a_semidefinite_matrix_leaves_out_rows_that_repeat_others(run):
    J = side(3, 3)
    J = np.stack([J[0], J[1], J[0] + J[1], J[2]])
    A, b = J @ J.T, J @ side(3, seed=3)
    x = run(lambda A, b: ldl_semidefinite(A)[0].solve(b), (4,), A, b)
    assert x[2] == 0.0
    np.testing.assert_allclose(A @ x, b, atol=1e-12)
    assert run(lambda A: dnp.where(ldl_semidefinite(A)[1], 1.0, 0.0), (), A) == 1.0
    assert run(lambda A: dnp.where(ldl_semidefinite(A)[1], 1.0, 0.0), (), positive(4)) == 0.0


@both
def test_regularized_ldl_shares_between_rows_that_repeat_each_other(run):
    A, b = np.array([[2.0, 2.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 0.0]]), np.array([4.0, 4.0, 0.0])
    x = run(lambda A, b: ldl_regularized(A, 1e-9).solve(b), (3,), A, b)
    np.testing.assert_allclose(x, [1.0, 1.0, 0.0], rtol=1e-6)


@both
@pytest.mark.parametrize("n", [*SIZES, 14, 36, 37, 50])
def test_elimination_without_pivots_is_lapacks_solution(run, n):
    A, b = side(n, n) / n + 2.0 * np.eye(n), side(n)
    np.testing.assert_allclose(run(solve_without_pivots, (n,), A, b), np.linalg.solve(A, b), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n", [5, 40])
def test_elimination_without_pivots_takes_several_columns(n):
    A, B = side(n, n) / n + 2.0 * np.eye(n), side(n, 3)
    np.testing.assert_allclose(traced(solve_without_pivots, (n, 3), A, B), np.linalg.solve(A, B), rtol=1e-9)


@both
@pytest.mark.parametrize("n", [*SIZES, pytest.param(65, marks=pytest.mark.slow)])
def test_cholesky_solves_from_the_lower_triangle(run, n):
    K, b = positive(n), side(n)
    found = run(lambda K, b: Cholesky(K).solve(b), (n,), np.tril(K), b)
    np.testing.assert_allclose(found, np.linalg.solve(K, b), rtol=1e-8)


@both
def test_cholesky_of_an_indefinite_matrix_is_not_finite(run):
    assert not np.isfinite(run(lambda K, b: Cholesky(K).solve(b), (2,), np.diag([1.0, -1.0]), np.ones(2))).all()


# --- least squares ----------------------------------------------------------------------------------------------------

DEFICIENT = {
    "one direction lost": [1.0, 0.6, 0.3, 0.2, 0.0],
    "two directions lost": [1.0, 0.8, 0.5, 0.0, 0.0],
    "next to singular": [1.0, 0.7, 0.5, 1e-4, 1e-17],
}
deficient = pytest.mark.parametrize("values", DEFICIENT.values(), ids=DEFICIENT)


def unit_diagonal(values, seed=0):
    """A positive semidefinite matrix of the rank of these values with a diagonal of one."""
    A = spectrum(values, seed)
    unit = 1.0 / np.sqrt(np.diag(A))
    return A * unit[:, None] * unit


@both
@deficient
def test_least_norm_is_the_pseudo_inverse_of_what_can_be_reached(run, values):
    A = unit_diagonal(values)
    B = A @ side(5, 2)
    found, expected = run(least_norm, (5, 2), A, B), np.linalg.pinv(A, rcond=1e-9) @ B
    np.testing.assert_allclose(A @ found, B, atol=1e-12)
    np.testing.assert_allclose(found, expected, atol=1e-3 * np.abs(expected).max())  # rounding over ε


def test_least_norm_takes_batches_of_plain_matrices():
    A = np.stack([unit_diagonal(v) for v in DEFICIENT.values()])
    b = np.matvec(A, side(3, 5))
    found = least_norm(A, b[..., None])[..., 0]
    for one, x, right in zip(A, found, b, strict=True):
        np.testing.assert_allclose(x, least_norm(one, right), atol=1e-3)


@both
def test_scaled_least_norm_does_not_depend_on_units(run):
    unit = np.array([1.0, 1e3, 1e-2, 10.0, 0.1])
    A = unit_diagonal([1.0, 0.6, 0.3, 0.2, 0.1])
    B = side(5, 2)
    found = run(scaled_least_norm, (5, 2), A * unit[:, None] * unit, unit[:, None] * B)
    np.testing.assert_allclose(unit[:, None] * found, np.linalg.solve(A, B), rtol=1e-9)


@both
@deficient
def test_a_filtered_system_has_the_smallest_solution_of_what_can_be_reached(run, values):
    A, b = unit_diagonal(values), side(5)
    found = run(lambda A, b: FilteredSystem.of(A, 1e-11).solve(b), (5,), A, b)
    reached = np.linalg.pinv(A, rcond=1e-9)
    np.testing.assert_allclose(found, reached @ b, rtol=1e-5, atol=1e-5 * np.abs(reached @ b).max())


@both
@deficient
def test_a_filtered_system_tells_the_part_that_cannot_be_reached(run, values):
    A, b = unit_diagonal(values), side(5)
    N = null_space(A, rcond=1e-9)
    found = run(lambda A, b: FilteredSystem.of(A, 1e-11).unreachable(b), (5,), A, b)
    np.testing.assert_allclose(found, N @ (N.T @ b), atol=1e-6)


@both
def test_a_filtered_system_of_full_rank_is_solved_to_all_digits(run):
    A, b = unit_diagonal([1.0, 0.6, 0.3, 0.2, 0.1]), side(5)
    found = run(lambda A, b: FilteredSystem.of(A, 1e-11).solve(b), (5,), A, b)
    np.testing.assert_allclose(found, np.linalg.solve(A, b), rtol=1e-13)
    assert (run(lambda A, b: FilteredSystem.of(A, 1e-11).unreachable(b), (5,), A, b) == 0.0).all()


def wide_or_tall(m, n, rank, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n))


shapes = pytest.mark.parametrize(("m", "n", "rank"), [(3, 5, 3), (3, 5, 2), (5, 3, 3), (5, 3, 1), (4, 4, 3)])


@shapes
def test_the_nearest_solution_is_that_of_lstsq(m, n, rank):
    B, free, gamma = wide_or_tall(m, n, rank), side(n), side(m, seed=2)
    found = nearest_solution(B, free, gamma, 1e-12)
    change = np.linalg.lstsq(B, -(B @ free + gamma), rcond=1e-9)[0]
    np.testing.assert_allclose(found.x, free + change, atol=1e-10)
    np.testing.assert_allclose(found.x, free + B.T @ found.force, atol=1e-10)
    np.testing.assert_allclose(found.force, np.linalg.pinv(B.T, rcond=1e-9) @ change, atol=1e-10)


@shapes
def test_a_decomposition_has_the_pseudo_inverses(m, n, rank):
    B = wide_or_tall(m, n, rank)
    X, Z, squares, mixed, projector = decompose(B)
    np.testing.assert_allclose((X * squares) @ X.T, np.linalg.pinv(B @ B.T, rcond=1e-9), atol=1e-10)
    np.testing.assert_allclose((X * mixed) @ Z, np.linalg.pinv(B @ B.T, rcond=1e-9) @ B, atol=1e-10)
    np.testing.assert_allclose(Z.T @ (projector[:, None] * Z), np.linalg.pinv(B, rcond=1e-9) @ B, atol=1e-10)
    np.testing.assert_allclose(gram_pseudo_inverse(B.T), (X * squares) @ X.T, atol=1e-10)


@settings(max_examples=examples(30))
@given(
    n=st.integers(1, 8),
    more=st.integers(0, 4),
    decades=st.floats(0.0, 12.0),
    seed=st.integers(0, 2**32 - 1),
)
def test_singular_values_have_the_digits_of_columns_of_any_size(n, more, decades, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n + more)) * 10.0 ** -rng.uniform(0.0, decades, size=(n, 1))
    found = orthogonalize(X, n + more)
    lengths = np.linalg.norm(found, axis=1)
    cosines = (found / lengths[:, None]) @ (found / lengths[:, None]).T
    np.testing.assert_allclose(cosines, np.eye(n), atol=1e-13)
    expected = np.linalg.svd(X, compute_uv=False)
    np.testing.assert_allclose(np.sort(lengths)[::-1], expected, atol=1e-14 * expected.max())


def test_vectors_that_depend_on_each_other_leave_zeros():
    X = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    lengths = np.sort(np.linalg.norm(orthogonalize(X, 3), axis=1))
    np.testing.assert_allclose(lengths[:2], 0.0, atol=1e-15)


# --- Schur complements ------------------------------------------------------------------------------------------------


def test_eliminated_rows_solve_the_whole_system():
    S, g, load = positive(7), side(7), side(4, seed=5)
    found = eliminate_rows(S, g[:3], least_norm)
    others = np.linalg.solve(found.S, load - g[3:] - found.shift)
    whole = np.concatenate([found.impulses(others), others])
    np.testing.assert_allclose(S @ whole + g, np.concatenate([np.zeros(3), load]), atol=1e-9)


def test_rows_that_repeat_each_other_are_eliminated_as_one():
    S = positive(6)
    twice = S[[0, 0, 1, 2, 3, 4, 5]][:, [0, 0, 1, 2, 3, 4, 5]]
    once, repeated = (eliminate_rows(A, np.ones(k), scaled_least_norm) for A, k in ((S, 2), (twice, 3)))
    np.testing.assert_allclose(repeated.S, once.S, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(repeated.impulses(np.zeros(4))[:2], once.impulses(np.zeros(4))[0] / 2.0, rtol=1e-3)


# --- iterations -------------------------------------------------------------------------------------------------------

iterations = pytest.mark.parametrize("solver", [conjugate_gradients, minimal_residuals])


@both
@iterations
def test_iterations_on_arrays_and_on_traces_solve_the_same_system(run, solver):
    A, b = positive(6), side(6)
    found = run(lambda A, b: solver(lambda x: A @ x, b, 1e-12, 100.0).x, (6,), A, b)
    np.testing.assert_allclose(found, np.linalg.solve(A, b), rtol=1e-9)


@pytest.mark.parametrize(("solver", "theirs"), [(conjugate_gradients, cg), (minimal_residuals, minres)])
def test_iterations_are_about_as_many_as_those_of_scipy(solver, theirs):
    A, b, count = spectrum(np.logspace(0.0, -3.0, 60)), side(60), []
    theirs(A, b, rtol=1e-8, maxiter=1000, callback=count.append)
    found = solver(lambda x: A @ x, b, 1e-8, 1000.0)
    assert found.residual <= 1e-8 and found.count <= 1.5 * len(count) + 5


@iterations
def test_iterations_from_the_solution_make_none(solver):
    A = positive(6)
    x = side(6)
    found = solver(lambda y: A @ y, A @ x, 1e-10, 100.0, x)
    assert found.count == 0 and found.residual < 1e-14
    np.testing.assert_array_equal(found.x, x)


def test_conjugate_gradients_end_by_the_error_of_the_caller():
    A, b = spectrum(np.logspace(0.0, -3.0, 60)), side(60)
    rough = conjugate_gradients(lambda x: A @ x, b, 1e-2, 1000.0, error=lambda r: np.abs(r).max())
    assert 1e-4 < np.abs(b - A @ rough.x).max() <= 1e-2


def test_minimal_residuals_solve_an_indefinite_system():
    A, b = spectrum([3.0, 1.0, 0.5, -0.5, -1.0, -2.0]), side(6)
    found = minimal_residuals(lambda x: A @ x, b, 1e-12, 100.0)
    np.testing.assert_allclose(found.x, np.linalg.solve(A, b), rtol=1e-9)


@pytest.mark.parametrize("tolerance", [1e-8, 1e-12])
def test_minimal_residuals_end_at_the_least_residual_of_a_singular_system(tolerance):
    A, b = spectrum([3.0, -2.0, 1.0, 0.5, 1e-3, 0.0, 0.0]), side(7)
    found = minimal_residuals(lambda x: A @ x, b, tolerance, 1000.0)
    best = b - A @ np.linalg.lstsq(A, b, rcond=1e-9)[0]
    assert found.stalled and found.residual > 0.1
    np.testing.assert_allclose(np.linalg.norm(found.left), np.linalg.norm(best), rtol=1e-6)
    np.testing.assert_allclose(found.left, b - A @ found.x, atol=1e-12)


@iterations
def test_the_residual_of_iterations_is_the_true_one(solver):
    A, b = spectrum(np.logspace(0.0, -6.0, 12)), side(12)
    found = solver(lambda x: A @ x, b, 1e-10, 1000.0)
    assert found.residual == pytest.approx(np.linalg.norm(b - A @ found.x) / np.linalg.norm(b), rel=1e-6)
    assert found.residual <= 1e-10 and not found.stalled
