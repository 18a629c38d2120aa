"""Bad input of large systems: a sentence each."""

import resource
from pathlib import Path

import numpy as np
import pytest

import delassus as dl
import delassus.particles as P
from delassus.common import memory as free_memory
from delassus.constrained.solvers.status import Status
from delassus.particles.algebra import memory
from delassus.particles.motion.step import Stepper
from delassus.particles.solvers.choice import METHODS
from refusals import refuses

LINE = np.array([[0.0, 0, 0], [1, 0, 0], [2, 0, 0]])


def rods(points, numbers=1.0, **options):
    return P.Elements(P.stretch, points, numbers, **options)


BAD = {
    "a free particle without mass": (lambda: P.Particles(LINE, [1.0, 0.0, 1.0]), ("out-of-range", "1", "0", "mass")),
    "a mass that is no number": (lambda: P.Particles(LINE, [1.0, np.nan, 1.0]), ("out-of-range", "1", "mass")),
    "a particle that is not there": (lambda: P.Particles(LINE, 1.0, rods([[0, 1], [1, 7]])), ("index-out-of-range",)),
    "a negative number of a particle": (lambda: P.Particles(LINE, 1.0, rods([[0, -1]])), ("index-out-of-range",)),
    "a rod from a particle to itself": (lambda: P.Particles(LINE, 1.0, rods([[1, 1]])), ("degenerate-element",)),
    "a rod without length": (lambda: P.Particles(LINE * 0.0, 1.0, rods([[0, 1]])), ("degenerate-element",)),
    "a triangle that is a line": (
        lambda: P.Particles(LINE, 1.0, P.Elements(P.area, [[0, 1, 2]], 1.0)), ("degenerate-element",)),
    "a flat tetrahedron of rubber": (
        lambda: P.Particles(np.zeros((4, 3)), 1.0, P.Elements(P.volume, [[0, 1, 2, 3]], 1.0)), ("degenerate-element",)),
    "a rigid rod between pins": (lambda: P.Particles(LINE, 1.0, rods([[0, 1]]), pins=[0, 1]), ("immovable",)),
    "a pin that is not there": (lambda: P.Particles(LINE, 1.0, pins=[5]), ("index-out-of-range", "5", "pins")),
    "a pin that moves, too": (
        lambda: P.Particles(LINE, 1.0, pins=[1], motions=[P.Motion(np.array([1]), np.zeros(3))]),
            ("conflicting-arguments",)),
    "a negative compliance": (lambda: rods([[0, 1]], compliance=-1.0), ("out-of-range", "-1", "compliance")),
    "a damper on a rigid rod": (lambda: rods([[0, 1]], damping=1.0), ("conflicting-arguments",)),
    "a compliance of an energy": (lambda: P.Elements(P.spring, [[0, 1]], [[1.0, 1.0]], 0.1),
        ("conflicting-arguments",)),
    "too few points": (lambda: P.Elements(P.bend, [[0, 1]], 1.0), ("wrong-shape",)),
    "numbers of the wrong shape": (lambda: P.Elements(P.bend, [[0, 1, 2]], [[1.0, 2.0]]), ("wrong-shape", "(1, 5)")),
    "numbers that are not finite": (lambda: rods([[0, 1]], np.inf), ("not-finite",)),
    "positions that are not finite": (lambda: P.Particles(LINE * np.nan, 1.0), ("not-finite", "0")),
    "nothing": (lambda: P.Particles(np.zeros((0, 3)), 1.0), ("nothing-to-do",)),
    "negative friction": (lambda: P.Particles(LINE, 1.0, friction=-0.1), ("friction-out-of-range", "-0.1", "friction")),
    "negative drag": (lambda: P.Particles(LINE, 1.0, drag=-1.0), ("out-of-range", "-1", "drag")),
    "an obstacle that is none": (lambda: P.Particles(LINE, 1.0, obstacles=["wall"]), ("wrong-type", "'wall'")),
    "a sphere without radius": (lambda: P.Sphere((0, 0, 0), 0.0), ("out-of-range", "radius")),
    "a plane without direction": (lambda: P.Plane((0, 0, 0)), ("zero-direction", "direction")),
    "a box without extent": (lambda: P.Box((0, 0, 0), (1, 0, 1)), ("out-of-range",)),
    "a brick without mass": (lambda: P.Bricks([[0, 0, 0]], 1.0, 0.0), ("out-of-range", "0", "masses")),
    "a quaternion that is none": (lambda: P.Bricks([[0, 0, 0]], 1.0, 1.0, [[0, 0, 0, 2.0]]), ("not-a-rotation",)),
    "a rope that is too short": (lambda: P.rope((0, 0, 0), (1, 0, 0), 4, length=0.5),
        ("out-of-range", "0.5", "length")),
    "a rope of nothing": (lambda: P.rope(segments=0), ("out-of-range", "0", "segments")),
    "a name of pins that is none": (lambda: P.net(pinned="top"), ("unknown-option", "'top'")),
    "an element of nine points": (lambda: P.energy(points=9)(lambda x: x[0, 0]), ("out-of-range",)),
    "a step of no time": (lambda: Stepper(P.rope(), 0.0), ("time-step-out-of-range", "time_step", "0")),
    "an absurd step": (lambda: Stepper(P.rope(), 1e9), ("time-step-out-of-range", "time_step")),
    "a blend beyond one": (lambda: Stepper(P.rope(), 1e-2, alpha=1.5), ("out-of-range", "1.5", "alpha")),
    "an explicit rod": (lambda: Stepper(P.chain(), 1e-2, beta=0.0), ("conflicting-arguments",)),
    "an explicit spring with rows": (lambda: Stepper(P.rope(), 1e-2, beta=0.0), ("conflicting-arguments",)),
    "an end that is no function": (lambda: P.simulate_particles(P.rope(), steps=1, until=3),
        ("wrong-type", "3", "until")),
    "a motion from a state of another size": (
        lambda: P.simulate_particles(P.rope(), P.initial_state(P.rope(segments=3))), ("other-system", "state")),
    "a method that is none": (lambda: Stepper(P.rope(), 1e-2, method=("unknown-method", "magic")),
        ("unknown-method", "magic")),
    "sweeps with energies": (
        lambda: P.particle_step(energetic(), P.initial_state(energetic()), time_step=1e-2, method="gauss_seidel"),
        ("not-supported", "'cholesky'")),
    "a state of another size": (
        lambda: P.initial_state(P.rope(segments=3), x=np.zeros((2, 3))),
        ("wrong-shape", "(4, 3)"),
    ),
    "a state that is not finite": (lambda: P.initial_state(P.rope(segments=3), v=np.nan), ("not-finite",)),
    "no steps": (lambda: P.simulate_particles(P.rope(), steps=0), ("out-of-range", "0", "steps")),
    "a drawing that is none": (
        lambda: P.simulate_particles(P.rope(segments=3), steps=1).plot("taste"), ("unknown-option", "'taste'")),
    "positions in the plane": (lambda: P.Particles(np.zeros((3, 2)), 1.0), ("wrong-shape", "(3, 2)")),
    "positions that are words": (lambda: P.Particles("here", 1.0), ("not-a-number",)),
    "a negative radius": (lambda: P.Particles(LINE, 1.0, radius=-1.0), ("out-of-range", "-1", "radius")),
    "gravity that is no number": (lambda: P.Particles(LINE, 1.0, gravity=(0, 0, np.nan)), ("out-of-range",)),
    "infinite friction": (lambda: P.Particles(LINE, 1.0, friction=np.inf), ("friction-out-of-range", "friction")),
    "friction of each particle": (lambda: P.Particles(LINE, 1.0, friction=[0.1, 0.2, 0.3]),
        ("wrong-shape", "friction")),
    "absurd friction": (lambda: P.Particles(LINE, 1.0, friction=1e8),
        ("friction-out-of-range", "1000", "friction")),
    "half a pin": (lambda: P.Particles(LINE, 1.0, pins=[0.7]), ("not-a-whole-number",)),
    "a mask of pins": (lambda: P.Particles(LINE, 1.0, pins=[False, True, False]),
        ("not-a-whole-number", "np.flatnonzero")),
    "a face that is not there": (lambda: P.Particles(LINE, 1.0, faces=[[0, 1, 9]]),
        ("index-out-of-range", "9", "faces")),
    "bricks that are none": (lambda: P.Particles(LINE, 1.0, bricks="wall"), ("wrong-type", "'wall'", "bricks")),
    "a motion that is none": (lambda: P.Particles(LINE, 1.0, motions=["up"]), ("wrong-type",)),
    "an element that does nothing": (lambda: rods([[0, 1]], compliance=np.inf),
        ("conflicting-arguments", "compliance")),
    "infinite damping": (lambda: rods([[0, 1]], compliance=1.0, damping=np.inf), ("conflicting-arguments", "damping")),
    "a box that is sheared": (
        lambda: P.Box((0, 0, 0), (1, 1, 1), ((2, 0, 0), (0, 1, 0), (0, 0, 1))), ("not-a-rotation", "rows")),
    "a box of two sides": (lambda: P.Box((0, 0, 0), (1, 1)), ("not-finite",)),
    "a sphere that is nowhere": (lambda: P.Sphere((np.nan, 0, 0), 1.0), ("not-finite",)),
    "a plane without height": (lambda: P.Plane(height=np.nan), ("not-finite", "height")),
    "bricks on a line": (lambda: P.Bricks([0.0, 1.0], 1.0, 1.0), ("wrong-shape",)),
    "a step that is no number": (lambda: Stepper(P.rope(), np.nan), ("time-step-out-of-range", "time_step")),
    "a blend that is no number": (lambda: Stepper(P.rope(), 1e-2, alpha=np.nan), ("out-of-range", "alpha")),
    "no iterations": (lambda: Stepper(P.rope(), 1e-2, iterations=0), ("iterations-out-of-range", "0", "iterations")),
    "half a step": (lambda: P.simulate_particles(P.rope(), steps=1.5), ("not-a-whole-number", "1.5", "steps")),
    "a state of another system": (
        lambda: Stepper(P.rope(), 1e-2).step(P.initial_state(P.rope(segments=3))), ("other-system", "state")),
    "forces of another system": (
        lambda: Stepper(P.rope(), 1e-2).step(P.initial_state(P.rope()), np.zeros((2, 3))), ("wrong-shape", "applied")),
    "a rope that resists being straight": (lambda: P.rope(bending=-1.0), ("out-of-range", "-1", "bending")),
    "a rope in the plane": (lambda: P.rope((0, 0), (1, 0)), ("wrong-shape", "(2,)", "start")),
    "a rope of True": (lambda: P.rope(segments=True), ("not-a-whole-number", "segments")),
    "a pin beyond the rope": (lambda: P.rope(pinned=[99]), ("index-out-of-range", "99", "pinned")),
    "half a cell": (lambda: P.cloth(cells=2.5), ("not-a-whole-number", "2.5", "cells")),
    "a cloth of three sides": (lambda: P.cloth(size=(1, 1, 1)), ("wrong-shape", "(3,)", "size")),
    "half a brick": (lambda: P.tower(2.5, 2), ("not-a-whole-number", "2.5", "bricks")),
    "a flat tetrahedron of a mesh": (
        lambda: P.solids([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], [[0, 1, 2, 3]], 1e5, 0.3),
            ("degenerate-element",)),
    "rubber that keeps its volume": (lambda: P.block(poisson=0.5), ("out-of-range", "0.5", "poisson")),
    "a flat block": (lambda: P.block(cells=(2, 2)), ("wrong-shape",)),
    "rest on an obstacle": (lambda: P.at_rest(P.cloth(obstacles=[P.Plane()])), ("not-supported", "at_rest")),
    "a film of infinite speed": (
        lambda: P.simulate_particles(P.rope(segments=3), steps=1).save_html("x.html", np.inf),
            ("out-of-range",)),
    "LU of redundant rods": (
        lambda: P.particle_step(braced(), P.initial_state(braced()), time_step=1e-2, method="superlu"),
            ("singular-matrix", "'cholesky'")),
}  # fmt: skip


def braced():
    """A square with both diagonals: a rod more than it needs."""
    x = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])
    lengths = [[1.0], [1.0], [1.0], [1.0], [2**0.5], [2**0.5]]
    return P.Particles(x, 1.0, rods([[0, 1], [1, 2], [2, 3], [3, 0], [0, 2], [1, 3]], lengths), pins=[0])


def energetic():
    return P.Particles(LINE, 1.0, P.Elements(P.spring, [[0, 1], [1, 2]], [[1.0, 10.0]]))


def test_a_motion_starts_from_a_state():
    with refuses("wrong-type", "state"):
        P.simulate_particles(P.rope(), state="x")


def test_energies_may_be_explicit():
    system = energetic()
    v = np.array([[0.0, 0, 0], [0.1, 0, 0], [0, 0, 0]])
    after = P.particle_step(system, P.initial_state(system, v=v), time_step=1e-2, alpha=0.0, beta=0.0).state
    np.testing.assert_allclose(after.x, system.positions + 1e-2 * v, atol=1e-15)


@pytest.mark.parametrize("method", sorted(set(METHODS) - {"superlu"}))
def test_rods_that_contradict_each_other_end_with_finite_velocities(method):
    line = P.Particles(LINE, 1.0, rods([[0, 1], [1, 2], [0, 2]], [[1.0], [1.0], [3.0]]))
    step = P.particle_step(line, P.initial_state(line), time_step=1e-2, method=method, iterations=50)
    assert step.status is not Status.CONVERGED
    assert np.isfinite(step.state.v).all()


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_told_in_a_sentence(case):
    make, message = BAD[case]
    with refuses(*message) as error:
        make()
    assert str(error.value).endswith(".")


def test_memory_that_will_not_suffice_is_told_beforehand(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 1e5)
    with refuses("out-of-memory", "GB") as error:
        Stepper(P.cloth(), 1e-2)
    assert error.value.needed > error.value.available


def test_a_factor_that_will_not_fit_is_told_beforehand(monkeypatch):
    stepper = Stepper(P.cloth((1, 1), (20, 20)), 1e-2)
    monkeypatch.setattr(memory, "free_memory", lambda: 1e5)
    with refuses("out-of-memory", "factor"):
        stepper.step(P.initial_state(stepper.particles))


def test_a_motion_that_will_not_fit_is_told_beforehand():
    with refuses("out-of-memory"):
        P.simulate_particles(P.rope(), steps=10**12)


def test_the_limit_of_a_container_counts(monkeypatch, tmp_path):
    (tmp_path / "memory.max").write_text("5000000")
    (tmp_path / "memory.current").write_text("4900000")
    (tmp_path / "memory.stat").write_text("anon 4890000\ninactive_file 10000\n")
    monkeypatch.setattr(free_memory, "_groups", lambda: [tmp_path / "not there", tmp_path])
    assert free_memory.free_memory() == 110_000.0
    with pytest.raises(memory.MemoryWillNotSuffice):
        Stepper(P.cloth(), 1e-2)


def test_the_limit_of_the_process_counts():
    """As `ulimit -v` sets it: told, where numpy would raise a MemoryError."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    cloth, now = P.cloth((1, 1), (60, 60)), 4096 * int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (now + 30_000_000, before[1]))
    try:
        with refuses("out-of-memory", "GB"):
            Stepper(cloth, 1e-2)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def test_a_net_in_two_parts_falls_apart_and_is_no_error():
    x = np.array([[0.0, 0, 0], [1, 0, 0], [3, 0, 0], [4, 0, 0]])
    parts = P.Particles(x, 1.0, rods([[0, 1], [2, 3]]), pins=[0])
    log = P.simulate_particles(parts, steps=20)
    assert np.allclose(log.v[-1, 2:, 2], -9.81 * 0.2) and log.v[-1, 1, 2] > -9.81 * 0.2


def test_a_net_with_more_rods_than_it_needs_is_no_error():
    log = P.simulate_particles(braced(), steps=50)
    assert log.describe() == dl.Status.CONVERGED.sentence and np.isfinite(log.x).all()


@pytest.mark.parametrize("method", METHODS)
def test_a_system_all_of_which_is_pinned_stays_where_it_is(method):
    line = P.Particles(LINE, 1.0, rods([[0, 1], [1, 2]], compliance=1e-3), pins=[0, 1, 2], obstacles=P.Plane())
    made = P.particle_step(line, P.initial_state(line), time_step=1e-2, method=method)
    assert np.array_equal(made.state.x, LINE) and made.status is dl.Status.CONVERGED


def test_what_does_not_move_is_at_rest():
    line = P.Particles(LINE, 1.0, rods([[0, 1], [1, 2]], compliance=1e-3), gravity=0.0)
    assert P.at_rest(line).status is dl.Status.CONVERGED


@pytest.mark.parametrize("stabilization", ["none", "pre", "post"])
def test_rods_that_contradict_each_other_are_met_as_nearly_as_they_can_be(stabilization):
    x = np.array([[0.0, 0, 0], [1.0, 0, 0]])
    both = P.Particles(x, 1.0, rods([[0, 1], [1, 0]], [[1.0], [1.2]]), pins=[0], gravity=0.0)
    made = P.particle_step(both, P.initial_state(both), time_step=1e-2, stabilization=stabilization)
    assert made.status is dl.Status.ITERATIONS and (stabilization != "none" or made.residual > 1e-3)
    assert np.isfinite(made.state.x).all() and 1.0 < made.state.x[1, 0] < 1.2


def test_a_state_that_is_not_finite_any_more_ends_the_motion_and_says_so():
    blown = P.Particles(LINE, 1.0, motions=[P.Motion(np.array([0]), lambda t: np.full(3, np.nan if t > 0.03 else 0.0))])
    log = P.simulate_particles(blown, steps=10)
    assert len(log) == 5 and log.status[-1] == dl.Status.NOT_FINITE
    assert np.isfinite(log.x[:-1]).all()


@pytest.mark.parametrize("kind", ["energy", "deformation"])
@pytest.mark.parametrize("method", ["cholesky", "multigrid", "minres"])
def test_particles_that_meet_in_a_point_are_told_and_raise_nothing(kind, method):
    springs = rods([[0, 1], [1, 2]], compliance=1e-3)
    line = energetic() if kind == "energy" else P.Particles(LINE, 1.0, springs, obstacles=P.Plane())
    made = P.particle_step(line, P.initial_state(line, x=0.0), time_step=1e-2, method=method)
    assert made.status is dl.Status.NOT_FINITE and np.array_equal(made.state.x, np.zeros((3, 3)))
