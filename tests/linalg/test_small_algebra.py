"""Factorizations, solutions, inverses, determinants and norms of traced matrices against NumPy's (LAPACK's)."""

import numpy
import pytest

import delassus.numpy as np
from delassus.compiler.backends.interpreter import evaluate
from delassus.compiler.graph.program import Operand
from delassus.compiler.tracing.record import record

SIZES = range(1, 8)
BATCH = 6


def run(function, shape, *arrays):
    """The results, each of this shape, of a function of traced matrices for a batch: the first axis of every array."""
    inputs = tuple(Operand(f"x{k}", a.shape[1:]) for k, a in enumerate(arrays))
    (got,) = evaluate(record("algebra", function, inputs, (Operand("y", shape),)), *arrays)
    return got


def assert_gives(expected, function, *arrays, rtol=1e-9, atol=0.0):
    numpy.testing.assert_allclose(run(function, expected.shape[1:], *arrays), expected, rtol=rtol, atol=atol)


def general(n, *lead, seed=0):
    """Random matrices; every second one of a batch has zeros on its diagonal, so that rows must be exchanged."""
    A = numpy.random.default_rng(seed + n).normal(size=(BATCH, *lead, n, n))
    if n > 1:
        A[::2, ..., range(n), range(n)] = 0.0
    return A


def positive(n, *lead, seed=0):
    A = numpy.random.default_rng(seed + n).normal(size=(BATCH, *lead, n, n))
    return A @ A.mT + n * numpy.identity(n)


def right_sides(*shape):
    return numpy.random.default_rng(99).normal(size=(BATCH, *shape))


def solved(A, b):
    """A⁻¹ b for a batch of matrices and vectors."""
    return numpy.linalg.solve(A, b[..., None])[..., 0]


@pytest.mark.parametrize("n", SIZES)
def test_a_general_system_is_solved_with_pivoting(n):
    A, b = general(n), right_sides(n)
    assert_gives(solved(A, b), np.linalg.solve, A, b)


@pytest.mark.parametrize("n", SIZES)
def test_a_positive_definite_system_is_solved_without_pivoting(n):
    A, b = positive(n), right_sides(n)
    assert_gives(solved(A, b), lambda A, b: np.linalg.solve(A, b, assume_a="pos"), A, b, rtol=1e-11)


@pytest.mark.parametrize("assume_a", ["gen", "pos"])
def test_several_right_hand_sides_are_solved_at_once(assume_a):
    A, B = positive(4), right_sides(4, 3)
    assert_gives(numpy.linalg.solve(A, B), lambda A, B: np.linalg.solve(A, B, assume_a=assume_a), A, B, rtol=1e-11)


@pytest.mark.parametrize(
    ("lead_a", "shape_b"),
    [((2,), (2, 3, 2)), ((2,), (3, 2)), ((), (4, 3, 1)), ((2, 1), (5, 3, 2)), ((2, 2), (3,))],
    ids=str,
)
def test_stacks_of_systems_broadcast(lead_a, shape_b):
    A, B = general(3, *lead_a), right_sides(*shape_b)
    expected = numpy.stack([numpy.linalg.solve(a, b) for a, b in zip(A, B, strict=True)])
    assert_gives(expected, np.linalg.solve, A, B)


def test_a_permutation_is_undone_exactly():
    P = numpy.identity(5)[numpy.random.default_rng(1).permuted(numpy.tile(numpy.arange(5), (BATCH, 1)), axis=1)]
    b = right_sides(5)
    assert_gives((P.mT @ b[..., None])[..., 0], np.linalg.solve, P, b, rtol=0.0)


def test_a_tiny_pivot_is_avoided():
    A, b = numpy.array([[[1e-20, 1.0], [1.0, 1.0]]]), numpy.array([[1.0, 2.0]])
    assert_gives(numpy.array([[1.0, 1.0]]), np.linalg.solve, A, b, rtol=1e-15)


def test_the_positive_definite_solver_reads_the_lower_triangle_only():
    A, b = positive(4), right_sides(4)
    assert_gives(solved(A, b), lambda A, b: np.linalg.solve(np.tril(A), b, assume_a="pos"), A, b, rtol=1e-11)


def test_a_plain_matrix_and_a_traced_right_hand_side_mix():
    A, b = general(4)[0], right_sides(4)
    assert_gives(numpy.linalg.solve(A, b.T).T, lambda b: np.linalg.solve(A, b), b)


@pytest.mark.parametrize("n", SIZES)
def test_an_inverse_is_that_of_numpy(n):
    A = general(n)
    assert_gives(numpy.linalg.inv(A), np.linalg.inv, A, atol=1e-12)


@pytest.mark.parametrize("n", SIZES)
def test_an_inverse_of_a_positive_definite_matrix_is_that_of_numpy(n):
    A = positive(n)
    assert_gives(numpy.linalg.inv(A), lambda A: np.linalg.inv(A, assume_a="pos"), A, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("assume_a", ["gen", "pos"])
def test_stacks_of_matrices_are_inverted_one_by_one(assume_a):
    A = positive(3, 2, 2)
    assert_gives(numpy.linalg.inv(A), lambda A: np.linalg.inv(A, assume_a=assume_a), A, atol=1e-13)


@pytest.mark.parametrize("n", SIZES)
def test_a_determinant_is_that_of_numpy(n):
    A = general(n)
    assert_gives(numpy.linalg.det(A), np.linalg.det, A)


def test_a_determinant_has_the_sign_of_the_permutation():
    P = numpy.stack([numpy.identity(3)[list(p)] for p in [(0, 1, 2), (1, 0, 2), (1, 2, 0), (2, 1, 0)]])
    assert_gives(numpy.array([1.0, -1.0, 1.0, -1.0]), np.linalg.det, P, rtol=0.0)


def test_determinants_of_a_stack_are_taken_one_by_one():
    A = general(3, 2, 2)
    assert_gives(numpy.linalg.det(A), np.linalg.det, A)


@pytest.mark.parametrize("n", SIZES)
def test_the_determinant_of_a_singular_matrix_is_zero(n):
    A = general(n)
    A[1], A[2, :, 0], A[3, n - 1] = 0.0, 0.0, 0.0
    expected = numpy.linalg.det(A)
    expected[1:4] = 0.0
    assert_gives(expected, np.linalg.det, A)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_reads_the_triangle_that_numpy_reads(n, upper):
    A = positive(n)
    expected = numpy.linalg.cholesky(A, upper=upper)
    A += numpy.tril(right_sides(n, n), -1) if upper else numpy.triu(right_sides(n, n), 1)
    assert_gives(expected, lambda A: np.linalg.cholesky(A, upper=upper), A, rtol=1e-12)


@pytest.mark.parametrize("upper", [False, True])
def test_stacks_of_cholesky_factors_are_computed_one_by_one(upper):
    A = positive(3, 2, 2)
    assert_gives(numpy.linalg.cholesky(A, upper=upper), lambda A: np.linalg.cholesky(A, upper=upper), A, rtol=1e-12)


GOOD = numpy.arange(BATCH) != 2
"""The states of a batch whose state 2 is spoilt."""


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("assume_a", ["gen", "pos"])
def test_a_singular_matrix_spoils_its_own_state_and_no_other(n, assume_a):
    A, b = positive(n), right_sides(n)
    A[2] = 0.0
    got = run(lambda A, b: np.linalg.solve(A, b, assume_a=assume_a), (n,), A, b)
    assert not numpy.isfinite(got[2]).any()
    numpy.testing.assert_allclose(got[GOOD], solved(A[GOOD], b[GOOD]), rtol=1e-11)


@pytest.mark.parametrize("n", SIZES[1:])
def test_a_matrix_with_a_row_of_zeros_spoils_its_own_inverse_and_no_other(n):
    A = general(n)
    A[2, 1] = 0.0
    got = run(np.linalg.inv, (n, n), A)
    assert not numpy.isfinite(got[2]).all()
    numpy.testing.assert_allclose(got[GOOD], numpy.linalg.inv(A[GOOD]), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n", SIZES)
def test_a_negative_definite_matrix_spoils_its_own_cholesky_factor_and_no_other(n):
    A = positive(n)
    A[2] *= -1.0
    got = run(np.linalg.cholesky, (n, n), A)
    assert numpy.isnan(got[2][numpy.tril_indices(n)]).all()
    numpy.testing.assert_allclose(got[GOOD], numpy.linalg.cholesky(A[GOOD]), rtol=1e-12)


NORMS = [
    ((5,), {}),
    ((5,), {"ord": 2}),
    ((5,), {"ord": 1}),
    ((5,), {"ord": numpy.inf}),
    ((), {}),
    ((3, 4), {}),
    ((3, 4), {"ord": "fro"}),
    ((3, 4), {"keepdims": True}),
    ((2, 3, 4), {}),
    ((2, 3, 4), {"axis": 1}),
    ((2, 3, 4), {"axis": -1, "keepdims": True}),
    ((2, 3, 4), {"axis": (0, 2)}),
    ((2, 3, 4), {"axis": (-2, -1), "ord": "fro", "keepdims": True}),
    ((2, 3, 4), {"axis": 0, "ord": 1}),
    ((2, 3, 4), {"axis": -1, "ord": numpy.inf}),
]


@pytest.mark.parametrize(("shape", "options"), NORMS, ids=str)
def test_a_norm_is_that_of_numpy(shape, options):
    x = right_sides(*shape)
    expected = numpy.stack([numpy.asarray(numpy.linalg.norm(v, **options)) for v in x])
    assert_gives(expected, lambda v: np.linalg.norm(v, **options), x, rtol=1e-14)


WRONG = [
    (
        lambda A, b: np.linalg.solve(A[:2], b),
        ValueError,
        r"linalg\.solve: a square matrix is needed, got shape \(2, 3\)",
    ),
    (lambda A, b: np.linalg.solve(A, b[:2]), ValueError, r"linalg\.solve: a matrix of shape \(3, 3\) does not fit"),
    (lambda A, b: np.linalg.solve(A, b, assume_a="sym"), ValueError, "assume_a is 'gen' or 'pos', not 'sym'"),
    (lambda A, b: np.linalg.inv(A, assume_a="sym"), ValueError, "assume_a is 'gen' or 'pos', not 'sym'"),
    (lambda A, b: np.linalg.inv(b), ValueError, r"linalg\.inv: a square matrix is needed"),
    (lambda A, b: np.linalg.det(A[:, :2]), ValueError, r"linalg\.det: a square matrix is needed"),
    (lambda A, b: np.linalg.cholesky(b), ValueError, r"linalg\.cholesky: a square matrix is needed"),
    (lambda A, b: np.linalg.norm(A, 2), TypeError, r"linalg\.norm met traced values with ord=2"),
    (lambda A, b: np.linalg.norm(A, "nuc"), TypeError, r"linalg\.norm met traced values with ord='nuc'"),
    (lambda A, b: np.linalg.norm(b, 3), TypeError, r"linalg\.norm met traced values with ord=3"),
]


@pytest.mark.parametrize(("function", "error", "message"), WRONG, ids=[w[2] for w in WRONG])
def test_what_does_not_fit_is_refused_by_name(function, error, message):
    with pytest.raises(error, match=message):
        record("wrong", function, (Operand("A", (3, 3)), Operand("b", (3,))), (Operand("y", ()),))


def test_a_system_of_no_equations_has_an_empty_solution():
    assert run(np.linalg.solve, (0,), numpy.zeros((1, 0, 0)), numpy.zeros((1, 0))).shape == (1, 0)
