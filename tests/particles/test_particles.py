"""Large systems: elements, assembly, solvers by name, and what the compliant scheme says of them."""

import os
import threading

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from matplotlib import pyplot
from scipy import sparse
from scipy.optimize import brentq
from scipy.sparse.linalg import spsolve

import delassus as dl
import delassus.numpy as dnp
import delassus.particles as P
from delassus.model.bundled.build import Assembly as Robot
from delassus.model.bundled.build import Prismatic, ball
from delassus.model.joints import Translation
from delassus.particles.description.lanes import curvature, deformation_parts, energy_parts
from delassus.particles.solvers.choice import METHODS
from delassus.particles.solvers.multigrid import TwoGrids
from delassus.particles.solvers.superlu import kkt_matrix
from delassus.step.scheme.blend import Blend
from refusals import refuses

mpl.use("agg")

KINDS = {
    "stretch": (P.stretch, [0.7]),
    "bend": (P.bend, [1.0, 0.8, 0.1, 0.0, -0.2]),
    "fold": (P.fold, [0.3]),
    "area": (P.area, [0.6]),
    "strain": (P.strain, [1.0, 0.2, -0.1, 0.9]),
    "volume": (P.volume, [0.2]),
}


def moved(state, **changes):
    return state.at(**changes)


def steps(system, count, state=None, **options):
    stepper = P.Stepper(system, **options)
    state = P.initial_state(system) if state is None else state
    for _ in range(count):
        made = stepper.step(state)
        state = made.state
    return made


# --- elements ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KINDS)
def test_rows_are_the_derivatives_of_deformations(name):
    kind, numbers = KINDS[name]
    x = np.random.default_rng(1).normal(size=(kind.points, 3))
    parts = deformation_parts.python(kind, x, np.array(numbers))
    step = 1e-6
    for k in range(kind.points):
        for axis in range(3):
            shift = np.zeros_like(x)
            shift[k, axis] = step
            up, down = (np.asarray(kind.function(x + s * shift, np.array(numbers))[0]) for s in (1, -1))
            assert np.allclose(parts.rows[:, k, axis], (up - down) / (2 * step), atol=1e-7)


@pytest.mark.parametrize("name", KINDS)
def test_rows_that_are_said_to_be_steady_are_the_same_anywhere(name):
    kind, numbers = KINDS[name]
    x = np.random.default_rng(1).normal(size=(2, kind.points, 3))
    here, there = (deformation_parts.python(kind, at, np.array(numbers)).rows for at in x)
    assert kind.steady == np.array_equal(here, there)
    assert np.array_equal(kind.dependency_pattern, here != 0.0)


def test_an_element_is_ten_lines():
    @P.energy(points=3, numbers=("stiffness", "cosine"))
    def corner(x, stiffness, cosine):
        a, b = x[0] - x[1], x[2] - x[1]
        found = a @ b / dnp.sqrt((a @ a) * (b @ b))
        return 0.5 * stiffness * (found - cosine) ** 2

    x = np.array([[1.0, 0.1, 0.0], [0.0, 0.0, 0.0], [0.3, 1.0, 0.0]])
    bent = P.Particles(x, 1.0, P.Elements(corner, [[0, 1, 2]], [[200.0, 0.0]]), gravity=0.0, pins=[1], drag=40.0)
    end = steps(bent, 400, time_step=0.05).state.x
    a, b = end[0] - end[1], end[2] - end[1]
    assert abs(a @ b) / (np.linalg.norm(a) * np.linalg.norm(b)) < 1e-6


def test_the_stiffness_of_an_energy_is_its_second_derivative():
    x, numbers = np.random.default_rng(3).normal(size=(2, 3)), np.array([0.5, 30.0])
    K = curvature.python(P.spring, x, numbers, np.zeros(1))
    step = 1e-5
    slopes = []
    for k in range(6):
        shift = np.zeros(6)
        shift[k] = step
        up, down = (energy_parts.python(P.spring, x + s * shift.reshape(2, 3), numbers).gradient for s in (1, -1))
        slopes.append((up - down).reshape(-1) / (2 * step))
    assert np.allclose(K, slopes, atol=1e-5)


def test_rubber_at_rest_has_no_force_and_lames_stiffness_along_an_axis():
    edges = np.eye(3)
    numbers = np.array([3.0, 7.0, *edges.reshape(-1)])
    x = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    assert np.allclose(energy_parts.python(P.solid, x, numbers).gradient, 0.0, atol=1e-13)
    small = 1e-4
    stretched = x * [1.0 + small, 1.0, 1.0]
    value = energy_parts.python(P.solid, stretched, numbers).value
    assert value == pytest.approx((0.5 * 7.0 + 3.0) * small**2 / 6.0, rel=1e-3)


# --- the system of a step ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("along", [0, 1, 2])
def test_a_bar_of_rubber_stretches_as_young_says(along):
    """Without lateral contraction a linear field is exact: F L/(E A) in each of the three directions."""
    size = np.full(3, 0.1)
    size[along] = 0.4
    bar = P.block(size, (2, 2, 2), young=1e5, poisson=0.0, gravity=0.0, drag=1.0)
    low, high = (np.flatnonzero(np.isclose(bar.positions[:, along], side * 0.2)) for side in (-1, 1))
    bar = bar.with_(pins=low)
    share = np.bincount(bar.faces[np.isin(bar.faces, high).all(1)].reshape(-1), minlength=bar.n) / 3.0
    force = np.zeros((bar.n, 3))
    force[:, along] = 1.0 * share / share.sum()  # 1 N, by areas
    state, stepper = P.initial_state(bar), P.Stepper(bar, 0.1)
    for _ in range(100):
        state = stepper.step(state, force).state
    longer = (state.x - bar.positions)[high, along]
    assert np.allclose(longer, 1.0 * 0.4 / (1e5 * 0.01), rtol=5e-3)
    assert bar.masses.sum() == pytest.approx(1000.0 * 0.004)


def test_rubber_does_not_care_how_its_points_are_numbered():
    """An odd permutation has a negative determinant, and the same energy."""
    x = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1.2, 0], [0.1, 0.2, 0.9]])
    found = []
    for order in ([0, 1, 2, 3], [0, 2, 1, 3], [3, 0, 1, 2]):
        y = x[order]
        numbers = [1e4, 2e4, *np.linalg.inv((y[1:] - y[0]).T).reshape(-1)]
        block = P.Particles(y, 1.0, P.Elements(P.solid, [[0, 1, 2, 3]], [numbers]))
        found.append(P.total_elastic_energy(block, P.initial_state(block, x=1.1 * y)))
    assert found[0] > 0.0 and np.allclose(found, found[0], rtol=1e-12)


def cases():
    yield "rope", P.rope((0, 0, 0), (1, 0, 0), 12, stiffness=100.0, bending=1e-3), {}
    yield "chain", P.chain((0, 0, 0), (1, 0, 0), 8, length=1.2), {}
    yield "cloth", P.cloth((1, 1), (5, 4), pinned=("left",)), {}
    yield "taut chain", P.chain((0, 0, 0), (1, 0, 0), 8, pinned="start"), {"geometric_stiffness": True}


@pytest.mark.parametrize(("name", "system", "options"), list(cases()), ids=lambda x: x if isinstance(x, str) else "")
def test_a_step_solves_the_whole_matrix_as_spsolve_does(name, system, options):
    stepper = P.Stepper(system, 1e-2, tolerance=1e-12, **options)
    state = stepper.step(stepper.step(P.initial_state(system)).state).state
    force = -state.impulse / 1e-2 if options else None
    v, nothing = np.array(state.v), np.zeros((system.nodes, 3))
    made = stepper.assembly.system(
        state.x, v, stepper.assembly.masses(state.orientations), stepper.blend, force, nothing, False
    )
    free = np.flatnonzero(made.free)
    known = spsolve(kkt_matrix(made), np.concatenate([made.c[free], made.b]))
    after = stepper.step(state).state
    assert np.allclose(after.v.reshape(-1)[free], known[: len(free)], atol=1e-9 * np.abs(known[: len(free)]).max())
    assert np.allclose(after.impulse, known[len(free) :], atol=1e-8 * np.abs(known[len(free) :]).max())


@pytest.mark.parametrize("method", [m for m in METHODS if m != "cholesky"])
def test_solvers_agree(method):
    system = P.rope((0, 0, 0), (1, 0, 0), 8, stiffness=20.0)
    known, found = (steps(system, 3, time_step=1e-2, method=m, tolerance=1e-10) for m in ("cholesky", method))
    assert found.status is dl.Status.CONVERGED
    assert np.allclose(found.state.v, known.state.v, atol=1e-8)
    assert np.allclose(found.state.impulse, known.state.impulse, atol=1e-9)


@pytest.mark.parametrize("method", ["cg", "minres", "gauss_seidel", "sequential_impulses"])
def test_iterations_that_end_too_early_say_so_and_keep_the_best(method):
    made = steps(P.chain((0, 0, 0), (0, 0, -1), 40, pinned="start"), 1, time_step=1e-2, method=method, iterations=3)
    assert made.status is dl.Status.ITERATIONS
    assert np.isfinite(made.residual) and made.residual > 1e-9
    assert np.isfinite(made.state.x).all()


def test_a_particle_on_a_rod_is_the_robot_of_the_same_scheme():
    robot = Robot("pendulum")
    robot.body("mass", Translation(), None, (0, 0, 0), [ball(0.05, 1.0)])
    rod = dl.Distance("mass", placement2=dl.Placement.of(p=(0, 0, 1)), length=1.0, name="rod")
    x, v = np.array([[0.0, 0, 1], [0.6, 0.0, 0.2]]), np.array([[0.0, 0, 0], [0.3, 0.1, 0.4]])
    for compliance in (None, 1e-4):
        ours = P.Particles(x, [1.0, 1.0], P.Elements(P.stretch, [[0, 1]], [[1.0]], compliance), pins=[0])
        kept = {} if compliance is None else {"compliance": {"rod": compliance}}
        for alpha, beta in ((1.0, 1.0), (0.7, 0.6)):
            blend = {"time_step": 5e-3, "alpha": alpha, "beta": beta}
            known = dl.stepping.compliant_step(
                dl.Mechanism(robot.model(), [rod]), x[1], v[1], np.zeros(3), **blend, **kept
            )
            found = P.particle_step(ours, P.initial_state(ours, v=v), **blend)
            assert np.allclose(found.state.v[1], known.v, atol=1e-11)
            assert np.allclose(found.state.x[1], known.q, atol=1e-11)
            assert np.allclose(np.abs(found.state.impulse), np.abs(known.impulse), atol=1e-11)


# --- at rest ----------------------------------------------------------------------------------------------------------


def catenary(width, length):
    """The scale of a level catenary of this length between supports, by SciPy."""
    return brentq(lambda a: 2 * a * np.sinh(width / (2 * a)) - length, 0.05 * width, 100 * width)


def test_a_hanging_chain_is_a_catenary():
    links, length = 1000, 1.3
    chain = P.chain((-0.5, 0, 0), (0.5, 0, 0), links, length=length)
    start = P.initial_state(chain)
    sag = np.array(start.x)
    sag[:, 2] *= 0.9
    rest = P.at_rest(chain, start.at(x=sag))
    a = catenary(1.0, length)
    x = rest.state.x
    assert rest.status is dl.Status.CONVERGED
    assert np.abs(x[:, 2] - a * (np.cosh(x[:, 0] / a) - np.cosh(0.5 / a))).max() < 1e-6


def test_an_inextensible_net_between_two_bars_is_a_catenary_in_each_of_its_cords():
    net = P.net((1.0, 0.2), (600, 3), pinned=("left", "right"))
    length, width = 1.0, 0.8
    x = net.positions * [width, 1.0, 1.0]
    x[:, 2] = -0.3 * (1.0 - (x[:, 0] / (0.5 * width)) ** 2)
    rest = P.at_rest(net.with_(positions=x))
    a = catenary(width, length)
    found = rest.state.x
    assert rest.status is dl.Status.CONVERGED
    assert np.abs(found[:, 2] - a * (np.cosh(found[:, 0] / a) - np.cosh(0.5 * width / a))).max() < 1e-6


def test_a_cantilever_bends_as_euler_and_bernoulli_say():
    length, EI, load, segments = 1.0, 2.0, 1e-3, 200
    beam = P.rope((0, 0, 0), (length, 0, 0), segments, stiffness=1e5, bending=EI, pinned="clamped", gravity=0.0)
    force = np.zeros((beam.nodes, 3))
    force[-1, 2] = -load
    stepper = P.Stepper(beam, 1.0)
    state = P.initial_state(beam)
    for _ in range(5):
        state = stepper.step(state.at(v=np.zeros_like(state.v)), force).state
    sag = -state.x[:, 2]
    assert sag[-1] == pytest.approx(load * length**3 / (3.0 * EI), rel=1e-2)
    # The clamp is in the middle of the first segment: with that, all of the line is as it should be.
    at = np.maximum(state.x[:, 0] - 0.5 * length / segments, 0.0)
    free = length * (1.0 - 0.5 / segments)
    assert np.allclose(sag, load * at**2 * (3 * free - at) / (6.0 * EI), atol=2e-3 * sag[-1])


# --- motion -----------------------------------------------------------------------------------------------------------


def test_the_first_frequencies_of_a_string():
    segments, length, tension, density = 64, 1.0, 100.0, 0.01
    string = P.rope((0, 0, 0), (length, 0, 0), segments, density=density, stiffness=1e5, gravity=0.0)
    stretch = P.Elements(P.stretch, string.elements[0].points, string.elements[0].numbers / (1 + tension / 1e5),
                         string.elements[0].compliance)  # fmt: skip
    string = string.with_(elements=[stretch])
    wave = np.sqrt(tension / density)
    at = string.positions[:, 0]
    for mode in (1, 2, 3):
        omega = mode * np.pi * wave / length
        shape = np.sin(mode * np.pi * at / length)
        v = np.zeros((segments + 1, 3))
        v[:, 2] = 1e-6 * shape
        period = 2.0 * np.pi / omega
        options = {"alpha": 0.5, "beta": 0.5, "geometric_stiffness": True}
        log = P.simulate_particles(string, P.initial_state(string, v=v), time_step=period / 200, steps=400, **options)
        part = log.x[:, :, 2] @ shape
        up = [k for k in range(1, len(part)) if part[k - 1] < 0.0 <= part[k]]
        crossing = log.time[up[0] - 1] - part[up[0] - 1] * (log.time[1] - log.time[0]) / (part[up[0]] - part[up[0] - 1])
        assert crossing == pytest.approx(period, rel=2e-3)


def spinning(alpha, beta, stiffness=50.0):
    """Three particles on springs that turn and vibrate, with nothing that holds them."""
    x = np.array([[0.0, 0, 0], [1, 0, 0], [0.3, 0.8, 0]])
    points = np.array([[0, 1], [1, 2], [2, 0]])
    rest = np.linalg.norm(x[points[:, 1]] - x[points[:, 0]], axis=1)[:, None]
    springs = P.Elements(P.stretch, points, rest, 1.0 / stiffness)
    system = P.Particles(x, [1.0, 2.0, 0.5], springs, gravity=0.0)
    v = np.array([[0.1, 0.2, 0.0], [-0.2, 0.5, 0.1], [0.0, -0.4, 0.3]])
    return P.simulate_particles(system, P.initial_state(system, v=v), time_step=2e-2, steps=200, alpha=alpha, beta=beta)


@pytest.mark.parametrize("blend", [(1.0, 1.0), (0.5, 0.5), (1.0, 0.5), (0.0, 1.0)])
def test_linear_momentum_stays_for_all_blends(blend):
    log = spinning(*blend)
    before, after = (P.total_momentum(log.particles, log[k])[0] for k in (0, -1))
    assert np.allclose(before, after, atol=1e-13)


def test_energy_is_damped_by_the_implicit_blend_and_kept_by_the_midpoint():
    damped, kept = spinning(1.0, 1.0).energy, spinning(0.5, 0.5).energy
    assert np.all(np.diff(damped) < 1e-12) and damped[-1] < 0.9 * damped[0]
    assert np.abs(kept / kept[0] - 1.0).max() < 1e-2


@pytest.mark.parametrize("share", [0.01, 0.5])
def test_a_spring_shrinks_as_alpha_and_beta_say(share):
    h, k, m, alpha, beta = 1e-2, 400.0, 1.0, 0.8, 0.7
    system = P.Particles([[0.0, 0, 0], [1.0, 0, 0]], [m, m], P.Elements(P.stretch, [[0, 1]], [[1.0]], 1 / k), pins=[0],
                         gravity=0.0)  # fmt: skip
    theta2 = h * h * k / m
    v = np.zeros((2, 3))
    v[1, 0] = share
    state = P.initial_state(system, v=v)
    made = P.particle_step(system, state, time_step=h, alpha=alpha, beta=beta).state
    # The map of (x, v) has the determinant (1 + (1-α)(1-β) θ²)/(1 + αβ θ²).
    longer = np.array([[0.0, 0, 0], [1.01, 0, 0]])
    other = P.particle_step(system, state.at(x=longer, v=0 * v), time_step=h, alpha=alpha, beta=beta).state
    A = np.array([[made.x[1, 0] - 1.0, other.x[1, 0] - 1.0], [made.v[1, 0], other.v[1, 0]]]) / [share, 0.01]
    assert -np.linalg.det(A) == pytest.approx((1 + (1 - alpha) * (1 - beta) * theta2) / (1 + alpha * beta * theta2))


def test_from_soft_to_rigid_in_one_table():
    """kh²/m from 1e-6 to 1e12: a mass that hangs from a spring, after a step, against the scheme's own formula."""
    h, m = 1e-2, 2.0
    rigid = None
    for number in (1e-6, 1e-3, 1.0, 1e3, 1e6, 1e9, 1e12, None):
        k = None if number is None else number * m / h**2
        spring = P.Elements(P.stretch, [[0, 1]], [[1.0]], None if k is None else 1.0 / k)
        system = P.Particles([[0.0, 0, 0], [0, 0, -1.0]], [m, m], spring, pins=[0])
        made = P.particle_step(system, P.initial_state(system), time_step=h, tolerance=1e-14)
        assert made.status is dl.Status.CONVERGED
        if number is None:
            rigid = made
            continue
        speed = -9.81 * h / (1.0 + number)
        assert made.state.v[1, 2] == pytest.approx(speed, rel=1e-6, abs=1e-15)
        assert made.force[0] == pytest.approx(-m * 9.81 * number / (1.0 + number), rel=1e-9)
    assert rigid.state.v[1, 2] == pytest.approx(0.0, abs=1e-15)
    assert rigid.force[0] == pytest.approx(-m * 9.81, rel=1e-12)


def test_a_stiff_chain_moves_as_a_rigid_one():
    ends = []
    for stiffness in (1e6, 1e9, 1e12, None):
        chain = P.rope((0, 0, 0), (1, 0, 0), 10, density=1.0, stiffness=stiffness, pinned="start")
        ends.append(steps(chain, 20, time_step=1e-2).state.x[-1])
    apart = [np.abs(end - ends[-1]).max() for end in ends[:-1]]
    assert apart[0] > 5 * apart[1] and apart[1] < 1e-5 and apart[2] < 1e-7


@pytest.mark.parametrize(("stabilization", "most"), [("none", 5e-2), ("pre", 5e-2), ("post", 2e-4)])
def test_stabilisation_takes_errors_of_rods_off(stabilization, most):
    chain = P.chain((0, 0, 0), (1, 0, 0), 6, pinned="start")
    end = steps(chain, 50, time_step=1e-2, stabilization=stabilization).state.x
    assert np.abs(np.linalg.norm(np.diff(end, axis=0), axis=1) * 6 - 1.0).max() < most


@pytest.mark.parametrize("builder", [P.rope, P.chain])
@pytest.mark.parametrize("weight", [1.0, 10.0])
def test_lines_with_weights_come_to_rest_with_the_usual_step(builder, weight):
    """Their tension makes a step of 10 ms unstable unless forces turn implicitly, which it finds by itself."""
    line = builder((0, 0, 0), (2, 0, 0), 20, length=2.2, density=1.0)
    masses = np.array(line.masses)
    masses[[5, 14]] += weight, 2.0 * weight
    line = line.with_(masses=masses)
    log = P.simulate_particles(line, steps=300)
    assert log.energy.max() <= log.energy[0] + 1e-9 and log.speed[-1] < 0.5 * log.speed.max()
    assert np.abs(np.linalg.norm(np.diff(log.x[-1], axis=0), axis=1) / 0.11 - 1.0).max() < 0.05


def test_particles_move_as_they_are_told_and_pull_the_others():
    rope = P.chain((0, 0, 0), (1, 0, 0), 5, pinned="none", gravity=0.0)
    towed = rope.with_(motions=[P.Motion(np.array([5]), lambda time: (0.5 * time, 0.0, 0.0))])
    made = steps(towed, 40, time_step=1e-2)
    assert np.allclose(made.state.v[:, 0], 0.5 * 0.4, atol=1e-6)
    assert np.sum(made.force[-1:]) == pytest.approx(-0.5 * rope.masses[:5].sum(), rel=1e-6)


# --- factors ----------------------------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@example(2, 2, 8, 1)  # no node is free
@given(st.integers(2, 60), st.integers(0, 120), st.integers(0, 2**31), st.integers(1, 12))
def test_sparse_factors_solve_any_definite_matrix(nodes, more, seed, leaf):
    from delassus.particles.algebra.banded import Band, BandedCholesky
    from delassus.particles.algebra.cholesky import Cholesky, Fronts
    from delassus.particles.algebra.pattern import Pattern

    rng = np.random.default_rng(seed)
    edges = rng.integers(0, nodes, size=(more, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    pattern = Pattern(nodes, [edges])
    half = rng.normal(size=(len(edges), 6, 6))
    blocks = pattern.sum_blocks([(0, (half @ half.mT).reshape(-1, 2, 3, 2, 3).transpose(0, 1, 3, 2, 4).copy())])
    blocks[pattern.diagonal] += np.eye(3)
    free = rng.random(nodes) > 0.2
    dense = pattern.matrix(blocks).toarray()
    keep = np.repeat(free, 3)
    b = rng.normal(size=3 * nodes)
    known = np.zeros(3 * nodes)
    known[keep] = np.linalg.solve(dense[np.ix_(keep, keep)], b[keep])
    ways = [Cholesky(Fronts(pattern, rng.normal(size=(nodes, 3)), free, leaf)), BandedCholesky(Band(pattern, free))]
    for factor in ways:
        assert np.allclose(factor.factor(blocks).solve(b), known, atol=1e-9 * max(1.0, np.abs(known).max()))


def test_the_assembled_matrix_is_the_sum_of_its_elements():
    cloth = P.cloth((1, 1), (3, 4))
    stepper = P.Stepper(cloth, 1e-2)
    system = stepper.assembly.system(
        cloth.positions, np.zeros((cloth.nodes, 3)), stepper.assembly.masses(None), stepper.blend, None,
        np.zeros((cloth.nodes, 3)), False,
    )  # fmt: skip
    J = system.J.toarray()
    known = system.W.toarray() + J.T @ np.diag(1.0 / system.E) @ J
    assert np.allclose(stepper.assembly.pattern.matrix(system.A).toarray(), known, rtol=1e-12, atol=1e-12)
    assert sparse.issparse(system.W)


def test_multigrid_takes_no_more_cycles_for_a_larger_cloth(monkeypatch):
    counts, cycle = [], TwoGrids.cycle
    monkeypatch.setattr(TwoGrids, "cycle", lambda self, r: counts.append(len(r)) or cycle(self, r))
    for cells in (40, 80):
        cloth = P.cloth((0.01 * cells, 0.01 * cells), (cells, cells), pinned=("left",))
        made = P.Stepper(cloth, 1e-2, method="multigrid").step(P.initial_state(cloth))
        assert made.status is dl.Status.CONVERGED
    small, large = (counts.count(size) for size in sorted(set(counts)))
    assert 2 < large < 1.2 * small


def test_what_a_factor_reads_is_the_matrix_of_its_own_step():
    cloth = P.cloth((1, 1), (5, 4), bending=1e-2, drag=0.1, pinned=("left",))
    assembly = P.Stepper(cloth, 1e-2).assembly
    rng, rest = np.random.default_rng(3), np.zeros((cloth.nodes, 3))
    for h in (1e-2, 1e-2, 3e-3, 1e-2):
        x = cloth.positions + 0.05 * rng.normal(size=cloth.positions.shape)
        system = assembly.system(x, rest, assembly.masses(None), Blend(h), None, rest, False)
        known = system.W + system.JT @ sparse.diags(1.0 / system.E) @ system.J
        read = np.zeros((assembly.pattern.blocks, 9))
        read[assembly.symbolic.source] = system.lower
        found, known = assembly.pattern.matrix(read.reshape(-1, 3, 3)).toarray(), known.toarray()
        assert np.allclose(np.where(found != 0.0, known, 0.0), found, rtol=1e-12, atol=1e-12)
        free = ~cloth.is_prescribed.repeat(3)
        assert ((known != 0.0) <= (found != 0.0) | (found.T != 0.0))[free][:, free].all()


# --- robots that hold on ----------------------------------------------------------------------------------------------


def trolley(mass=2.0):
    robot = Robot("trolley")
    robot.body("cart", Prismatic((1, 0, 0)), None, (0, 0, 0), [ball(0.1, mass)])
    robot.frame("hook", "cart", dl.Placement.of(p=(0, 0, 0)))
    return robot.model()


@pytest.mark.parametrize("method", ["auto", "cg"])
def test_a_robot_that_holds_a_chain_pulls_its_mass_along(method):
    model = trolley()
    chain = P.chain((0, 0, 0), (-1, 0, 0), 5, pinned="none", gravity=0.0)
    stepper, state, q, v = P.Stepper(chain, 1e-2, method=method), P.initial_state(chain), np.zeros(1), np.zeros(1)
    for _ in range(20):
        made = P.coupled_step(model, q, v, np.array([6.0]), stepper, state, [P.Grip("hook", 0)])
        q, v, state = made.q, made.v, made.particles.state
    carried = chain.masses.sum()
    assert v[0] == pytest.approx(6.0 / (2.0 + carried) * 0.2, rel=1e-6)
    assert made.force[0, 0] == pytest.approx(-carried * 6.0 / (2.0 + carried), rel=1e-6)
    assert np.allclose(state.x[0, 0], q[0], atol=1e-9)


def test_a_robot_on_a_net_sinks_until_the_net_carries_it():
    robot = Robot("weight")
    robot.body("mass", Translation(), None, (0, 0, 0), [ball(0.05, 3.0)])
    robot.frame("foot", "mass", dl.Placement.of(p=(0, 0, 0)))
    model = robot.model()
    net = P.net((1, 1), (8, 8), stiffness=500.0, density=0.1)
    stepper, state = P.Stepper(net, 5e-2, geometric_stiffness=True), P.initial_state(net)
    q, v = np.zeros(3), np.zeros(3)
    for _ in range(150):
        made = P.coupled_step(model, q, v, np.zeros(3), stepper, state, [P.Grip("foot", 40)])
        q, v, state = made.q, made.v, made.particles.state
    assert np.abs(v).max() < 1e-3 and q[2] < -0.05
    assert made.force[0, 2] == pytest.approx(3.0 * 9.81, rel=1e-2)


# --- what is kept of a motion -----------------------------------------------------------------------------------------


def test_a_motion_is_kept_drawn_and_filmed(tmp_path):
    cloth = P.cloth((1, 1), (4, 4), pinned=("left",), obstacles=[P.Sphere((0, 0, -0.6), 0.2), P.Plane(height=-1.0)])
    log = P.simulate_particles(cloth, steps=10, every=2)
    assert len(log) == 6 and log.time[-1] == pytest.approx(0.1) and log.energy.shape == (6,)
    for what in ("energy", "speed", "residual", "contacts"):
        assert log.plot(what).get_ylabel()
    log.draw()
    log.save_html(tmp_path / "film.html")
    text = (tmp_path / "film.html").read_text()
    assert "const film = {" in text and '"name": "cloth"' in text
    log.save(tmp_path / "log.npz")
    assert np.array_equal(np.load(tmp_path / "log.npz")["x"], log.x)
    pyplot.close("all")


def test_a_motion_goes_on_where_it_ended():
    rope = P.rope((0, 0, 0), (1, 0, 0), 6, stiffness=50.0)
    whole = P.simulate_particles(rope, steps=10)
    half = P.simulate_particles(rope, steps=5)
    assert np.array_equal(P.simulate_particles(rope, half.end, steps=5).x[-1], whole.x[-1])


def test_a_motion_that_was_saved_goes_on_where_it_ended(tmp_path):
    """With what warm starts and turning forces need, the same bits."""
    cloth = P.cloth((0.6, 0.6), (4, 4), center=(0, 0, 0.301), obstacles=[P.Sphere((0, 0, 0), 0.3)])
    whole, half = (P.simulate_particles(cloth, steps=k) for k in (10, 5))
    half.save(tmp_path / "half.npz")
    end = P.ParticleTrajectory.load(tmp_path / "half.npz", cloth).end
    assert np.array_equal(P.simulate_particles(cloth, end, steps=5).x[-1], whole.x[-1])
    with refuses("other-file"):
        P.ParticleTrajectory.load(tmp_path / "half.npz", P.cloth())


def test_a_disk_that_is_full_leaves_the_file_that_was_there(tmp_path, monkeypatch):
    log = P.simulate_particles(P.rope(segments=3), steps=2)
    log.save(tmp_path / "log.npz")
    before = (tmp_path / "log.npz").read_bytes()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with refuses("unwritable-file"):
        log.save(tmp_path / "log.npz")
    assert (tmp_path / "log.npz").read_bytes() == before and len(list(tmp_path.iterdir())) == 1


def test_ctrl_c_gives_what_was_simulated_and_says_so(tmp_path):
    def interrupted(time):
        if time > 0.055:
            raise KeyboardInterrupt
        return np.zeros(3)

    line = P.Particles([[0.0, 0, 0], [1, 0, 0]], 1.0, motions=P.Motion([0], interrupted))
    log = P.simulate_particles(line, steps=100, every=3)
    assert len(log) == 3 and log.time[-1] == pytest.approx(0.05)
    log.save(tmp_path / "log.npz")
    for each in (log, P.ParticleTrajectory.load(tmp_path / "log.npz", line)):
        assert "interrupted" in each.describe()


@pytest.mark.parametrize("points", [1, 3, 4])
def test_particles_without_lines_are_filmed_and_drawn(tmp_path, points):
    x = np.eye(4, 3)[:points]
    corner = P.deformation(points=points)(lambda x: dnp.array([x[0, 0] - 1.0]))
    log = P.simulate_particles(P.Particles(x, 1.0, P.Elements(corner, [list(range(points))], 0.0)), steps=3)
    log.save_html(tmp_path / "film.html")
    log.draw()
    pyplot.close("all")
    assert "const film = {" in (tmp_path / "film.html").read_text()


@pytest.mark.parametrize("length", [1.0, 1.2, 5e3])
@pytest.mark.parametrize("end", [(0, 0, 0), (1e-3, 0, 0.2), (0.7, 0.1, -0.2)])
def test_a_rope_begins_and_ends_where_it_is_told(end, length):
    rope = P.rope((0, 0, 0), end, 7, length=length)
    assert np.allclose(rope.positions[[0, -1]], [(0, 0, 0), end], atol=1e-9 * length)


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    """As what is no file: a device, too, would be lost."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    P.simulate_particles(P.rope(segments=3), steps=2).save_html(pipe)
    reader.join(timeout=20.0)
    assert pipe.is_fifo() and b"const film" in got[0]
