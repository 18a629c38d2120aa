"""Cones for users: nearest points, membership, duals, pyramids, a foot's wrenches, tangents of a normal."""

import clarabel
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from mpmath import mp, mpf
from scipy import sparse
from scipy.optimize import linprog

import delassus as dl
from contact_problems import rotation
from delassus.contact import cones
from refusals import refuses

EPS = np.finfo(float).eps
COEFFICIENTS = [0.0, 1e-300, 1e-12, 0.1, 0.7, 1.0, 3.0, 1e12, 1e300, np.inf]
KINDS = ["inner", "outer"]

distances = st.sampled_from([0.0, 1e-16, 1e-13, 1e-10, 1e-7, 1e-4, 1e-2, 1.0])
coefficients = st.sampled_from(COEFFICIENTS)
angles = st.floats(0.0, 6.3)


def points(seed=0, count=400):
    """Points of all sizes and directions."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, 3)) * 10.0 ** rng.uniform(-3, 3, (count, 1))


def size(x):
    return np.linalg.norm(x, axis=-1)


def exactly(x, friction):
    """The nearest point of the cone in fifty digits."""
    with mp.workdps(50):
        a, b, z = map(mpf, map(float, x))
        t, mu = mp.sqrt(a * a + b * b), mpf(friction)
        if t <= mu * z:
            return np.array(x)
        if mu * t <= -z:
            return np.zeros(3)
        height = (mu * t + z) / (1 + mu * mu)
        return np.array([float(mu * height * a / t), float(mu * height * b / t), float(height)])


# --- the cone and its dual --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("friction", COEFFICIENTS)
def test_a_point_is_the_sum_of_its_nearest_ones_in_the_cone_and_in_the_polar_one(friction):
    x = points()
    near, rest = cones.project(x, friction), -cones.project_dual(-x, friction)
    assert np.all(size(near + rest - x) <= 4 * EPS * size(x))
    assert np.all(np.abs(np.sum(near * rest, -1)) <= 4 * EPS * size(x) ** 2)
    assert np.all(cones.distance(near, friction) <= 2 * EPS * size(x))
    assert np.all(cones.distance_dual(-rest, friction) <= 2 * EPS * size(x))


@given(coefficients.filter(np.isfinite), angles, distances, distances, st.sampled_from([-1.0, 1.0]))
def test_near_the_apex_the_axis_and_the_edges_all_digits_are_right(friction, angle, off, scale, side):
    slope = np.arctan(friction)
    # Beside the edge, beside the polar cone's edge, and beside the axis, by an angle.
    for at in (slope, slope + np.pi / 2, 0.0, np.pi):
        t, z = scale * np.sin(at + side * off), scale * np.cos(at + side * off)
        x = np.array([abs(t) * np.cos(angle), abs(t) * np.sin(angle), z])
        expected = exactly(x, friction)
        assert size(cones.project(x, friction) - expected) <= 4 * EPS * size(x)
        assert abs(cones.distance(x, friction) - size(x - expected)) <= 4 * EPS * size(x)


@given(coefficients, angles, distances, distances, st.sampled_from([-1.0, 1.0]))
def test_the_nearest_point_of_a_nearest_point_is_itself(friction, angle, off, scale, side):
    at = np.arctan(friction) + side * off
    x = scale * np.array([np.sin(at) * np.cos(angle), np.sin(at) * np.sin(angle), np.cos(at)])
    for kind in (cones.project, cones.project_dual):
        once = kind(x, friction)
        assert size(kind(once, friction) - once) <= 2 * EPS * size(x)


def test_the_nearest_point_is_that_of_a_cone_program():
    for x, mu in zip(points(1, 20), np.linspace(0.05, 2.0, 20), strict=True):
        settings = clarabel.DefaultSettings()
        settings.verbose, settings.tol_gap_abs, settings.tol_feas, settings.tol_gap_rel = False, 1e-12, 1e-12, 1e-12
        rows = sparse.csc_matrix([[0.0, 0.0, -mu], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
        unit = x / size(x)
        solver = clarabel.DefaultSolver(
            sparse.eye(3, format="csc"), -unit, rows, np.zeros(3), [clarabel.SecondOrderConeT(3)], settings
        )
        np.testing.assert_allclose(cones.project(unit, mu), solver.solve().x, atol=1e-6)


def test_without_friction_only_the_normal_is_kept_and_with_infinite_friction_all_but_pulling():
    x = np.array([[1.0, -2.0, 3.0], [1.0, -2.0, -3.0], [0.0, 0.0, 3.0], [0.0, 0.0, -3.0]])
    np.testing.assert_array_equal(cones.project(x, 0.0), [[0, 0, 3], [0, 0, 0], [0, 0, 3], [0, 0, 0]])
    np.testing.assert_array_equal(cones.project(x, np.inf), [[1, -2, 3], [1, -2, 0], [0, 0, 3], [0, 0, 0]])


def test_membership_counts_the_boundary_and_takes_a_tolerance():
    x = np.array([[3.0, 4.0, 10.0], [3.0, 4.0, 9.999], [0.0, 0.0, 0.0], [0.0, 0.0, -1e-9]])
    np.testing.assert_array_equal(cones.contains(x, 0.5), [True, False, True, False])
    np.testing.assert_array_equal(cones.contains(x, 0.5, 1e-3), True)
    np.testing.assert_array_equal(cones.contains_dual(x, 2.0), [True, False, True, False])


def test_a_coefficient_for_each_point():
    x, mu = points(2, 6).reshape(2, 3, 3), np.array([0.0, 0.5, np.inf])
    np.testing.assert_array_equal(cones.project(x, mu)[1, 2], cones.project(x[1, 2], np.inf))


def test_what_is_not_a_number_stays_so_and_spoils_no_other():
    found = cones.project(np.array([[np.nan, 0.0, 1.0], [0.0, 0.0, 1.0]]), np.array([0.5, 0.5]))
    assert np.isnan(found[0]).any()
    np.testing.assert_array_equal(found[1], [0, 0, 1])


# --- pyramids ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("faces", [3, 4, 5, 8])
@pytest.mark.parametrize("friction", [0.0, 1e-300, 0.7, 1e6, np.inf])
def test_a_point_less_its_nearest_one_of_a_pyramid_is_in_the_polar_cone(faces, kind, friction):
    x = points(3)
    near = cones.project_pyramid(x, friction, faces, kind)
    rows, edges = cones.pyramid_rows(friction, faces, kind), cones.pyramid_edges(friction, faces, kind)
    assert np.all(cones.violation(rows, near) <= 4 * EPS * size(x))
    assert np.all((x - near) @ edges.T <= 8 * EPS * size(x)[:, None])
    assert np.all(np.abs(np.sum((x - near) * near, -1)) <= 8 * EPS * size(x) ** 2)


@pytest.mark.parametrize("faces", [3, 4, 7, 16])
def test_inner_pyramids_are_in_the_cone_and_outer_ones_around_it_and_both_touch_it(faces):
    mu = np.array([0.0, 0.3, 1.5])
    inner = cones.pyramid_edges(mu, faces, "inner")
    assert np.all(cones.distance(inner, mu[:, None]) <= 2 * EPS)
    angle = np.linspace(0.0, 2 * np.pi, 40 * faces + 1)
    circle = np.stack([0.3 * np.cos(angle), 0.3 * np.sin(angle), np.ones_like(angle)], -1)
    outer = circle @ cones.pyramid_rows(0.3, faces, "outer").T
    assert outer.max() <= 2 * EPS
    np.testing.assert_allclose(np.where(outer > -1e-12)[0], 40 * np.arange(faces + 1))


def test_four_faces_are_what_they_are_said_to_be():
    x = points(4)
    t, n = np.abs(x[:, :2]), x[:, 2]
    in_inner = cones.violation(cones.pyramid_rows(0.8), x) == 0.0
    np.testing.assert_array_equal(in_inner, t.sum(-1) <= 0.8 * n)
    in_outer = cones.violation(cones.pyramid_rows(0.8, 4, "outer"), x) == 0.0
    np.testing.assert_array_equal(in_outer, t.max(-1) <= 0.8 * n)


@given(st.integers(3, 9), st.sampled_from(KINDS), coefficients, angles, distances, distances)
def test_nearest_points_of_a_pyramid_are_their_own_near_its_edges(faces, kind, friction, angle, off, scale):
    edge = cones.pyramid_edges(friction, faces, kind)[faces // 2]
    away = np.array([np.cos(angle), np.sin(angle), np.cos(3 * angle)])
    x = scale * (edge + off * away)
    once = cones.project_pyramid(x, friction, faces, kind)
    assert size(x - once) <= (1 + 4 * EPS) * size(x - scale * edge) + 8 * EPS * scale
    assert size(cones.project_pyramid(once, friction, faces, kind) - once) <= 8 * EPS * scale


# --- a foot -----------------------------------------------------------------------------------------------------------


def corner_forces(wrench, mu, X, Y):
    """Whether forces in square pyramids at the corners add up to a wrench."""
    corners = [(a, b) for a in (X, -X) for b in (Y, -Y)]
    total = np.hstack([[[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, y], [0, 0, -x], [-y, x, 0]] for x, y in corners])
    square = np.array([[1, 0, -mu], [-1, 0, -mu], [0, 1, -mu], [0, -1, -mu]])
    found = linprog(
        np.zeros(12),
        A_ub=np.kron(np.eye(4), square),
        b_ub=np.zeros(16),
        A_eq=total,
        b_eq=wrench,
        bounds=[(None, None), (None, None), (0, None)] * 4,
    )
    return found.status == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_foot_transmits_what_forces_at_its_corners_add_up_to_and_nothing_else(kind):
    rng = np.random.default_rng(5)
    mu, X, Y = 0.6, 0.11, 0.05
    rows = cones.foot_rows(mu, X, Y, kind)
    square = mu if kind == "outer" else mu / np.sqrt(2)
    others = [0, 1, 3, 4, 5]
    for _ in range(150):
        # In any direction from the cone's axis to its surface, and a little to both sides of it.
        w = rng.normal(size=5) * [0.4, 0.4, 0.05, 0.1, 0.04]
        slopes = rows[:, others] @ w
        share = np.min(-rows[slopes > 0, 2] / slopes[slopes > 0])
        for factor in (1 - 1e-5, 1 + 1e-5):
            wrench = np.insert(share * factor * w, 2, 1.0)
            assert bool(cones.foot_contains(wrench, mu, X, Y, kind)) is (factor < 1)
            assert corner_forces(wrench, square, X, Y) is (factor < 1)


def test_infinite_friction_leaves_the_centre_of_pressure_on_the_sole():
    rows = cones.foot_rows(np.inf, 0.1, 0.05)
    assert np.all(np.isfinite(rows))
    assert cones.foot_contains([50.0, -30.0, 1.0, 0.05, -0.1, 9.0], np.inf, 0.1, 0.05)
    assert not cones.foot_contains([50.0, -30.0, 1.0, 0.051, 0.0, 9.0], np.inf, 0.1, 0.05)
    np.testing.assert_allclose(cones.center_of_pressure([0, 0, 2.0, 0.1, -0.2, 0]), [0.1, 0.05])
    assert np.isnan(cones.center_of_pressure(np.zeros(6))).all()


# --- tangents ---------------------------------------------------------------------------------------------------------


@given(angles, st.sampled_from([0.0, 1e-300, 1e-16, 1e-12, 1e-8, 1e-4, 1e-2]), st.sampled_from([-1.0, 0.0, 1.0]))
def test_tangents_are_a_rotation_near_the_poles_and_the_equator(angle, off, pole):
    flat = np.array([np.cos(angle), np.sin(angle), 0.0])
    n = off * flat + np.array([0, 0, pole]) if pole else flat + np.array([0, 0, off])
    R = cones.contact_axes(n)
    assert np.abs(R.T @ R - np.eye(3)).max() <= 8 * EPS
    assert abs(np.linalg.det(R) - 1.0) <= 8 * EPS
    np.testing.assert_allclose(R[:, 2], n / size(n), atol=2 * EPS)


@given(angles, st.floats(0.0, np.pi - 0.02), angles)
def test_a_small_turn_of_the_normal_is_a_small_turn_of_its_tangents(angle, down, way):
    def at(a, b):
        return np.array([np.sin(a) * np.cos(b), np.sin(a) * np.sin(b), np.cos(a)])

    n, step = at(down, angle), 1e-7
    aside = rotation(np.random.default_rng(int(1e6 * way)))[:, 0]
    turned = n + step * (aside - n * (n @ aside))
    # Near -z the tangents turn twice as often as the normal's direction around it does.
    allowed = 4 * step * (1.0 + 2.0 / (np.pi - down))
    assert np.abs(cones.contact_axes(turned) - cones.contact_axes(n)).max() <= allowed


def test_a_normal_may_have_any_length_but_zero():
    n = np.array([0.3, -0.2, 0.5])
    for scale in (1e-300, 1e300):
        np.testing.assert_allclose(cones.contact_axes(scale * n), cones.contact_axes(n), atol=4 * EPS)
    with refuses("zero-direction"):
        cones.contact_axes([[0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])


# --- in kernels, and bad input ----------------------------------------------------------------------------------------


@dl.kernel("(3),()->(24)")
def _all_of_them(structure, x, mu):
    np_ = dl.numpy
    rows = cones.foot_rows(mu, 0.1, 0.05)
    wrench = np_.concatenate([x, x])
    return np_.concatenate(
        [
            cones.project(x, mu),
            cones.project_dual(x, mu),
            cones.project_pyramid(x, mu, 5),
            cones.contact_axes(x).reshape(9),
            cones.pyramid_edges(mu, 3)[1],
            np_.stack(
                [cones.distance(x, mu), cones.violation(rows, wrench), np_.where(cones.contains(x, mu), 1.0, 0.0)]
            ),
        ]
    )


def test_in_kernels_all_functions_give_what_they_give_on_numbers():
    x, mu = points(6, 50), np.linspace(0.0, 2.0, 50)
    expected = np.array([_all_of_them.python("cones", *at) for at in zip(x, mu, strict=True)])
    np.testing.assert_allclose(_all_of_them("cones", x, mu), expected, rtol=1e-13, atol=1e-15 * size(x).max())


@pytest.mark.parametrize(
    ("call", "refusal"),
    [
        (lambda: cones.project([1.0, 2.0], 0.5), ("wrong-shape",)),
        (lambda: cones.distance([0.0, 0.0, 1.0], -0.1), ("friction-out-of-range", "-0.1")),
        (lambda: cones.pyramid_rows(0.5, 2), ("out-of-range",)),
        (lambda: cones.pyramid_rows(0.5, 4, "round"), ("unknown-option", "'round'")),
        (lambda: cones.foot_rows(0.5, -0.1, 0.1), ("out-of-range", "-0.1")),
        (lambda: cones.foot_contains(np.zeros(5), 0.5, 0.1, 0.1), ("wrong-shape",)),
        (lambda: cones.contact_axes([1.0, 0.0]), ("wrong-shape",)),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(call, refusal):
    with refuses(*refusal):
        call()
