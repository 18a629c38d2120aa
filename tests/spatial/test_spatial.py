"""Rotations, quaternions, placements, motions and inertias: against Pinocchio, power series and their own laws.

What depends on angles is run three ways: on plain numbers, and traced with and without fused operations.
"""

import math
from functools import cache

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delassus.compiler.backends.interpreter import evaluate
from delassus.compiler.graph.program import Operand
from delassus.compiler.tracing.record import record
from delassus.spatial.inertias import inertia_from_parameters, inertia_parameters
from delassus.spatial.motions import (
    adjoint,
    coadjoint,
    force_cross,
    force_to_child,
    force_to_parent,
    motion_cross,
    motion_to_child,
    motion_to_parent,
)
from delassus.spatial.placements import (
    compose,
    inverse,
    placement_exp,
    placement_log,
    placement_right_jacobian,
    placement_right_jacobian_inverse,
)
from delassus.spatial.quaternions import (
    quaternion_conjugate,
    quaternion_exp,
    quaternion_from_rotation,
    quaternion_log,
    quaternion_multiply,
    quaternion_normalize,
    quaternion_rotate,
    quaternion_to_rotation,
)
from delassus.spatial.rotations import (
    rotation_exp,
    rotation_log,
    rotation_right_jacobian,
    rotation_right_jacobian_inverse,
    skew,
)
from how_many import examples

PI = math.pi
WAYS = pytest.mark.parametrize("way", ["plain", "fused", "unfused"])
SMALL = [0.0, 1e-160, 1e-12, 1e-9, 1e-6, 1e-3, 0.1, 0.1993, 0.1994, 0.4999, 0.5001]
LARGE = [1.0, 1.9999, 2.0001, 3.0, PI - 1e-3, PI - 1e-6, PI - 1e-9, PI - 1e-12]
BEYOND = [PI + 1e-9, 4.0, 5.5]
AXES = [(1, 0, 0), (0, -1, 0), (0, 0, 1), (-3, 2, 1), (1e-8, -1, 1e-5)]


# --- running and comparing --------------------------------------------------------------------------------------


def as_tuple(returned):
    return returned if isinstance(returned, tuple) else (returned,)


def run(way, function, *arrays):
    """The outputs of a function for every state of a batch; arrays have one batch axis."""
    states = list(zip(*arrays, strict=True))
    if way == "plain":
        return [np.array(output) for output in zip(*[as_tuple(function(*x)) for x in states], strict=True)]
    shapes = [np.shape(output) for output in as_tuple(function(*states[0]))]
    inputs = tuple(Operand(f"x{k}", x.shape[1:]) for k, x in enumerate(arrays))
    program = record("f", function, inputs, tuple(Operand(f"y{k}", shape) for k, shape in enumerate(shapes)))
    return evaluate(program, *arrays, fma=way == "fused")


def assert_near(got, expected, tolerance=1e-14):
    """Every state of a batch is near, relative to the largest number of that state."""
    got, expected = (np.asarray(x, float).reshape(len(x), -1) for x in (got, expected))
    error = np.abs(got - expected).max(axis=1) / np.maximum(np.abs(expected).max(axis=1), 1e-300)
    assert error.max() <= tolerance, f"{error.max():.1e} in state {error.argmax()}"


@cache
def vectors(*angles):
    """Rotation vectors of some angles about some axes."""
    axes = np.array(AXES) / np.linalg.norm(AXES, axis=1, keepdims=True)
    return (np.array(angles)[:, None, None] * axes).reshape(-1, 3)


@cache
def twists(*angles):
    w = vectors(*angles)
    return np.concatenate([np.random.default_rng(0).normal(size=w.shape), w], axis=1)


def series(A, first):
    """Σ Aᵏ/(k + first)! in high precision: the exponential for `first` = 0, the left Jacobian of ad for 1."""
    with mpmath.workprec(120):
        A = np.array([[mpmath.mpf(x) for x in row] for row in np.asarray(A).tolist()])
        power, total = np.eye(len(A), dtype=int) * mpmath.mpf(1), 0
        for k in range(45):
            total = total + power / mpmath.factorial(k + first)
            power = power @ A
        return total


def hat(twist):
    """The 4×4 matrix of a twist."""
    return np.block([[skew(twist[3:]), twist[:3, None]], [np.zeros((1, 4))]])


def ad(twist):
    """The 6×6 matrix of the cross product of motions."""
    return np.block([[skew(twist[3:]), skew(twist[:3])], [np.zeros((3, 3)), skew(twist[3:])]])


@cache
def exact(function, *angles):
    """A function of high precision, rounded, for all the vectors or twists of some angles."""
    return np.array([function(x) for x in function.of(*angles)], float)


def of(make):
    def set_of(function):
        function.of = make
        return function

    return set_of


@of(vectors)
def exact_rotation(w):
    return series(skew(w), 0)


@of(vectors)
def exact_jacobian(w):
    return series(-skew(w), 1)


@of(vectors)
def exact_quaternion(w):
    """The exponential of the matrix that multiplies by w/2 from the left, applied to 1."""
    return series(np.block([[skew(w), w[:, None]], [-w, np.zeros(1)]]) / 2, 0)[:, 3]


@of(twists)
def exact_placement(twist):
    return series(hat(twist), 0)


@of(twists)
def exact_placement_jacobian(twist):
    return series(-ad(twist), 1)


@pytest.fixture
def pin():
    return pytest.importorskip("pinocchio")


# --- what hypothesis draws --------------------------------------------------------------------------------------

numbers = st.floats(-10.0, 10.0).map(lambda x: x if abs(x) > 1e-100 else 0.0)
masses = st.one_of(st.just(0.0), st.floats(1e-3, 100.0))
angles = st.one_of(st.floats(0.0, 3.14159, allow_subnormal=False), st.sampled_from(SMALL + LARGE))


def arrays(size):
    return st.lists(numbers, min_size=size, max_size=size).map(np.array)


directions = arrays(3).filter(lambda u: np.linalg.norm(u) > 1e-3).map(lambda u: u / np.linalg.norm(u))
rotation_vectors = st.builds(lambda angle, u: angle * u, angles, directions)
quaternions = arrays(4).filter(lambda q: np.linalg.norm(q) > 1e-3).map(quaternion_normalize)
rotations = quaternions.map(quaternion_to_rotation)
placements = st.tuples(rotations, arrays(3))
some_twists = st.builds(lambda v, w: np.concatenate([v, w]), arrays(3), rotation_vectors)
bodies = st.tuples(masses, arrays(3), arrays(9).map(lambda a: a.reshape(3, 3) @ a.reshape(3, 3).T))
few = settings(max_examples=examples(40), deadline=None)


def close(a, b, atol=1e-12):
    np.testing.assert_allclose(a, b, rtol=1e-12, atol=atol)


# --- every function, traced and plain ---------------------------------------------------------------------------


def example(kind, seed):
    rng = np.random.default_rng(seed)
    kinds = {
        "R": lambda: quaternion_to_rotation(quaternion_normalize(rng.normal(size=4))),
        "q": lambda: quaternion_normalize(rng.normal(size=4)),
        "I": lambda: np.cov(rng.normal(size=(3, 5))),
        "m": lambda: rng.uniform(0.1, 5.0),
    }
    return np.asarray(kinds[kind]() if kind in kinds else rng.normal(size=int(kind)))


FUNCTIONS = {
    skew: "3",
    rotation_exp: "3",
    rotation_log: "R",
    rotation_right_jacobian: "3",
    rotation_right_jacobian_inverse: "3",
    quaternion_multiply: "qq",
    quaternion_conjugate: "q",
    quaternion_rotate: "q3",
    quaternion_to_rotation: "q",
    quaternion_from_rotation: "R",
    quaternion_exp: "3",
    quaternion_log: "q",
    quaternion_normalize: "4",
    compose: "R3R3",
    inverse: "R3",
    placement_exp: "6",
    placement_log: "R3",
    placement_right_jacobian: "6",
    placement_right_jacobian_inverse: "6",
    motion_cross: "66",
    force_cross: "66",
    adjoint: "R3",
    coadjoint: "R3",
    motion_to_parent: "R36",
    motion_to_child: "R36",
    force_to_parent: "R36",
    force_to_child: "R36",
    inertia_parameters: "m3I",
    inertia_from_parameters: "p",
}
every_function = pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)


def batch(function, size=9):
    kinds = FUNCTIONS[function]
    if kinds == "p":
        return [run("plain", inertia_parameters, *batch(inertia_parameters, size))[0]]
    return [np.stack([example(kind, 100 * k + j) for j in range(size)]) for k, kind in enumerate(kinds)]


@every_function
@pytest.mark.parametrize("way", ["fused", "unfused"])
def test_traced_values_are_those_of_plain_numpy(function, way):
    x = batch(function)
    for got, expected in zip(run(way, function, *x), run("plain", function, *x), strict=True):
        assert_near(got, expected, 1e-13)


@every_function
def test_plain_numbers_give_plain_arrays(function):
    for output in as_tuple(function(*[x[0] for x in batch(function, 1)])):
        assert isinstance(output, (np.ndarray, np.float64))
        assert np.asarray(output).dtype == np.float64


# --- rotations --------------------------------------------------------------------------------------------------


@WAYS
@pytest.mark.parametrize("angles", [SMALL, LARGE, BEYOND], ids=["near zero", "near a half turn", "beyond"])
def test_the_rotation_of_a_vector_is_the_matrix_exponential(way, angles):
    (got,) = run(way, rotation_exp, vectors(*angles))
    assert_near(got, exact(exact_rotation, *angles))


@WAYS
@pytest.mark.parametrize("angles", [SMALL, LARGE], ids=["near zero", "near a half turn"])
def test_the_logarithm_finds_the_vector_of_a_rotation(way, angles):
    (got,) = run(way, rotation_log, exact(exact_rotation, *angles))
    assert_near(got, vectors(*angles))


@WAYS
def test_the_logarithm_of_half_a_turn_is_an_axis_of_length_pi(way):
    axes = vectors(1.0)
    half_turns = 2.0 * axes[:, :, None] * axes[:, None, :] - np.eye(3)
    (got,) = run(way, rotation_log, half_turns)
    assert_near(np.linalg.norm(got, axis=1), np.full(len(axes), PI))
    assert_near(np.abs(np.sum(got * axes, axis=1)), np.full(len(axes), PI))


@few
@given(directions, st.floats(0.4, PI), st.integers(-16, 0), st.booleans())
def test_logarithms_keep_their_digits_at_any_distance_from_no_turn_and_half_a_turn(axis, digits, power, half):
    """At the last places before half a turn, the sign of the axis is lost."""
    w = axis * (PI - digits * 10.0**power if half else digits * 10.0**power)
    R, q = exact_rotation(w).astype(float), exact_quaternion(w).astype(float)
    w = w if np.linalg.norm(w) <= PI else w * (1.0 - 2.0 * PI / np.linalg.norm(w))
    for found in (rotation_log(R), quaternion_log(q)):
        sign = np.sign(found @ w) if abs(np.linalg.norm(w) - PI) < 1e-15 else 1.0
        np.testing.assert_allclose(sign * found, w, rtol=0, atol=2e-15 * np.linalg.norm(w))


@WAYS
@pytest.mark.parametrize("angles", [SMALL, LARGE, BEYOND], ids=["near zero", "near a half turn", "beyond"])
def test_right_jacobians_are_those_of_their_power_series(way, angles):
    expected = exact(exact_jacobian, *angles)  # far from singular, so that rounding it does not harm its inverse
    (jacobian,) = run(way, rotation_right_jacobian, vectors(*angles))
    (inverted,) = run(way, rotation_right_jacobian_inverse, vectors(*angles))
    assert_near(jacobian, expected)
    assert_near(inverted, np.linalg.inv(expected))


@pytest.mark.parametrize("angle", SMALL + LARGE)
def test_derivatives_of_the_rotation_are_its_right_jacobian(angle):
    """By complex steps, which go through the same formulas and series as any exact differentiation."""
    w = angle * np.array([0.6, 0.0, -0.8])
    R, J = rotation_exp(w), rotation_right_jacobian(w)
    for k, step in enumerate(1e-30j * np.eye(3)):
        close(R.T @ rotation_exp(w + step).imag / 1e-30, skew(J[:, k]), atol=1e-13)


@few
@given(rotation_vectors)
def test_a_rotation_is_orthogonal_and_right_handed(w):
    R = rotation_exp(w)
    close(R @ R.T, np.eye(3), atol=1e-14)
    close(np.linalg.det(R), 1.0)


@few
@given(rotation_vectors)
def test_the_logarithm_undoes_the_exponential(w):
    close(rotation_log(rotation_exp(w)), w, atol=1e-13 * np.linalg.norm(w) + 1e-300)


@few
@given(rotations)
def test_the_exponential_undoes_the_logarithm(R):
    close(rotation_exp(rotation_log(R)), R, atol=1e-14)


@few
@given(rotation_vectors)
def test_a_jacobian_times_its_inverse_is_one(w):
    close(rotation_right_jacobian(w) @ rotation_right_jacobian_inverse(w), np.eye(3), atol=1e-14)


@few
@given(arrays(3), arrays(3))
def test_the_skew_matrix_is_the_cross_product(a, b):
    close(skew(a) @ b, np.cross(a, b))


def test_rotations_are_those_of_pinocchio(pin):
    for w in vectors(1e-9, 0.5, 1.0, 3.0):
        R = pin.exp3(w)
        close(rotation_exp(w), R)
        close(rotation_log(R), pin.log3(R))
        close(rotation_right_jacobian(w), pin.Jexp3(w))
        close(rotation_right_jacobian_inverse(w), pin.Jlog3(R))


# --- quaternions ------------------------------------------------------------------------------------------------


@WAYS
@pytest.mark.parametrize("angles", [SMALL, LARGE, BEYOND], ids=["near zero", "near a half turn", "beyond"])
def test_the_quaternion_of_a_vector_is_half_its_exponential(way, angles):
    (got,) = run(way, quaternion_exp, vectors(*angles))
    assert_near(got, exact(exact_quaternion, *angles))


@WAYS
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("size", [1.0, 1e-3, 700.0])
def test_the_logarithm_of_a_quaternion_is_its_shortest_vector(way, sign, size):
    w = vectors(*SMALL, *LARGE)
    (got,) = run(way, quaternion_log, sign * size * np.array([quaternion_exp(v) for v in w]))
    assert_near(got, w)


def test_beyond_half_a_turn_the_shortest_vector_goes_the_other_way():
    close(quaternion_log(quaternion_exp(np.array([0.0, 4.0, 0.0]))), [0.0, 4.0 - 2 * PI, 0.0])


@WAYS
def test_quaternions_of_all_rotations_keep_their_digits(way):
    rng = np.random.default_rng(0)
    ones = [v for v in np.array(np.meshgrid(*[[-1.0, 0.0, 1.0]] * 4)).reshape(4, -1).T if v.any()]
    q = np.concatenate([ones, rng.normal(size=(300, 4)) * 10.0 ** rng.integers(-9, 1, (300, 4))])
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    (got,) = run(way, quaternion_from_rotation, np.array([quaternion_to_rotation(x) for x in q]))
    assert (got[:, 3] >= 0.0).all()
    assert_near(got * np.sign(np.sum(got * q, axis=1, keepdims=True)), q, 1e-15)


def test_a_drifted_rotation_has_a_quaternion_of_length_one():
    drifted = rotation_exp(np.array([1.0, 2.0, 0.5])) * (1.0 + 1e-6)
    close(np.linalg.norm(quaternion_from_rotation(drifted)), 1.0)


@few
@given(quaternions, quaternions, arrays(3))
def test_quaternions_multiply_and_rotate_as_matrices_do(a, b, v):
    close(quaternion_to_rotation(quaternion_multiply(a, b)), quaternion_to_rotation(a) @ quaternion_to_rotation(b))
    close(quaternion_rotate(a, v), quaternion_to_rotation(a) @ v)


@few
@given(quaternions, quaternions, quaternions)
def test_quaternions_form_a_group(a, b, c):
    one = np.array([0.0, 0.0, 0.0, 1.0])
    close(quaternion_multiply(a, one), a)
    close(quaternion_multiply(quaternion_conjugate(a), a), one)
    left = quaternion_multiply(quaternion_multiply(a, b), c)
    close(left, quaternion_multiply(a, quaternion_multiply(b, c)))


def test_quaternions_are_those_of_pinocchio(pin):
    other = np.array([0.5, -0.5, 0.5, 0.5])
    for w in vectors(1e-9, 0.5, 1.0, 3.0):
        q = pin.Quaternion(rotation_exp(w))
        close(quaternion_exp(w), q.coeffs() * np.sign(q.w))
        close(quaternion_multiply(q.coeffs(), other), (q * pin.Quaternion(other)).coeffs())
        close(quaternion_rotate(q.coeffs(), w[::-1]), q * w[::-1])


# --- placements -------------------------------------------------------------------------------------------------


@WAYS
@pytest.mark.parametrize("angles", [SMALL, LARGE, BEYOND], ids=["near zero", "near a half turn", "beyond"])
def test_the_placement_of_a_twist_is_the_matrix_exponential(way, angles):
    R, p = run(way, placement_exp, twists(*angles))
    expected = exact(exact_placement, *angles)
    assert_near(R, expected[:, :3, :3])
    assert_near(p, expected[:, :3, 3])


@WAYS
@pytest.mark.parametrize("angles", [SMALL, LARGE], ids=["near zero", "near a half turn"])
def test_the_logarithm_finds_the_twist_of_a_placement(way, angles):
    placement = exact(exact_placement, *angles)
    (got,) = run(way, placement_log, placement[:, :3, :3], placement[:, :3, 3])
    assert_near(got[:, :3], twists(*angles)[:, :3])
    assert_near(got[:, 3:], twists(*angles)[:, 3:])


@WAYS
@pytest.mark.parametrize("angles", [SMALL, LARGE, BEYOND], ids=["near zero", "near a half turn", "beyond"])
def test_right_jacobians_of_placements_are_those_of_their_power_series(way, angles):
    expected = exact(exact_placement_jacobian, *angles)
    (jacobian,) = run(way, placement_right_jacobian, twists(*angles))
    (inverted,) = run(way, placement_right_jacobian_inverse, twists(*angles))
    assert_near(jacobian, expected)
    assert_near(inverted, np.linalg.inv(expected), 1e-13)


@pytest.mark.parametrize("angle", SMALL + LARGE)
def test_derivatives_of_the_placement_are_its_right_jacobian(angle):
    twist = np.array([0.3, -2.0, 1.0, 0.6 * angle, 0.0, -0.8 * angle])
    (R, _), J = placement_exp(twist), placement_right_jacobian(twist)
    for k, step in enumerate(1e-30j * np.eye(6)):
        dR, dp = (x.imag / 1e-30 for x in placement_exp(twist + step))
        close(R.T @ dp, J[:3, k], atol=1e-13)
        close(R.T @ dR, skew(J[3:, k]), atol=1e-13)


@few
@given(some_twists)
def test_the_logarithm_undoes_the_exponential_of_a_twist(twist):
    close(placement_log(*placement_exp(twist)), twist, atol=1e-13)


@few
@given(some_twists)
def test_a_jacobian_of_placements_times_its_inverse_is_one(twist):
    close(placement_right_jacobian(twist) @ placement_right_jacobian_inverse(twist), np.eye(6))


@few
@given(placements, placements, arrays(3))
def test_placements_form_a_group_that_acts_on_points(a, b, x):
    (R_a, p_a), (R_b, p_b), (R, p) = a, b, compose(*a, *b)
    close(R @ x + p, R_a @ (R_b @ x + p_b) + p_a)
    R, p = compose(*a, *inverse(*a))
    close(R, np.eye(3))
    close(p, np.zeros(3))


def test_placements_are_those_of_pinocchio(pin):
    for twist in twists(1e-9, 0.5, 1.0, 3.0):
        M = pin.exp6(twist)
        R, p = placement_exp(twist)
        close(R, M.rotation)
        close(p, M.translation)
        close(placement_log(M.rotation, M.translation), pin.log6(M).vector)
        close(placement_right_jacobian(twist), pin.Jexp6(twist))
        close(placement_right_jacobian_inverse(twist), pin.Jlog6(M))


# --- motions and forces -----------------------------------------------------------------------------------------


@few
@given(placements, placements)
def test_the_adjoint_of_a_composition_is_the_product_of_adjoints(a, b):
    close(adjoint(*compose(*a, *b)), adjoint(*a) @ adjoint(*b), atol=1e-11)
    close(coadjoint(*compose(*a, *b)), coadjoint(*a) @ coadjoint(*b), atol=1e-11)
    close(coadjoint(*a), np.linalg.inv(adjoint(*a)).T, atol=1e-11)


@few
@given(placements, arrays(6), arrays(6))
def test_motions_and_forces_are_carried_as_by_the_matrices(placement, m, f):
    close(motion_to_parent(*placement, m), adjoint(*placement) @ m, atol=1e-11)
    close(force_to_parent(*placement, f), coadjoint(*placement) @ f, atol=1e-11)
    close(motion_to_child(*placement, motion_to_parent(*placement, m)), m, atol=1e-11)
    close(force_to_child(*placement, force_to_parent(*placement, f)), f, atol=1e-11)


@few
@given(placements, arrays(6), arrays(6))
def test_power_is_the_same_in_every_frame(placement, m, f):
    close(motion_to_parent(*placement, m) @ force_to_parent(*placement, f), m @ f, atol=1e-9)


@few
@given(arrays(6), arrays(6), arrays(6))
def test_cross_products_of_motions_and_forces_are_dual(v, m, f):
    close(motion_cross(v, m), ad(v) @ m)
    close(motion_cross(v, m) @ f, -(m @ force_cross(v, f)), atol=1e-9)


def test_motions_and_forces_are_those_of_pinocchio(pin):
    m, f = np.random.default_rng(1).normal(size=(2, 6))
    for twist in twists(0.5, 3.0):
        M = pin.exp6(twist)
        placement = M.rotation, M.translation
        close(adjoint(*placement), M.action)
        close(coadjoint(*placement), M.actionInverse.T)
        close(motion_to_parent(*placement, m), M.act(pin.Motion(m)).vector)
        close(motion_to_child(*placement, m), M.actInv(pin.Motion(m)).vector)
        close(force_to_parent(*placement, f), M.act(pin.Force(f)).vector)
        close(force_to_child(*placement, f), M.actInv(pin.Force(f)).vector)
        close(motion_cross(twist, m), pin.Motion(twist).cross(pin.Motion(m)).vector)
        close(force_cross(twist, f), pin.Motion(twist).cross(pin.Force(f)).vector)


# --- inertias ---------------------------------------------------------------------------------------------------


@few
@given(bodies)
def test_inertias_come_back_from_their_parameters(body):
    mass, com, rotational = inertia_from_parameters(inertia_parameters(*body))
    assert mass == body[0]
    close(com, body[1] if mass else np.zeros(3))
    close(rotational, body[2], atol=1e-8)


@WAYS
def test_a_body_without_mass_has_its_centre_at_the_origin(way):
    for part in run(way, inertia_from_parameters, np.zeros((1, 10))):
        np.testing.assert_array_equal(part, np.zeros_like(part))


def test_inertias_are_those_of_pinocchio(pin):
    mass, com, rotational = (x[0] for x in batch(inertia_parameters, 1))
    body = pin.Inertia(float(mass), com, rotational)
    close(inertia_parameters(mass, com, rotational), body.toDynamicParameters())
    for part, name in zip(
        inertia_from_parameters(body.toDynamicParameters()), ("mass", "lever", "inertia"), strict=True
    ):
        close(part, getattr(body, name))
