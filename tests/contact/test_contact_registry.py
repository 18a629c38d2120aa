"""Contact solvers by name: what each needs, where it can be reached, and that all of them find the same impulses."""

import numpy as np
import pytest

import delassus as dl
from contact_problems import cones_of, random_problems
from delassus.compiler.backends.interpreter import evaluate
from delassus.compiler.graph.program import Operand
from delassus.compiler.tracing.record import record
from delassus.contact.cones.parameters import RowParameters
from delassus.contact.large.rows import CAPABILITIES as LARGE
from delassus.contact.large.rows import scale
from delassus.contact.solvers.registry import find_solver, solver_names
from delassus.contact.solvers.solve_pyramids import PYRAMID_SYSTEM
from delassus.contact.systems.protocol import BATCH, ENTRIES, SHIFT, SWEEP, TRACED, natural_residual
from delassus.contact.systems.scaled import CAPABILITIES as COMPILED
from delassus.contact.systems.scaled import Scaled
from delassus.model.bundled.build import Assembly, box, rod
from delassus.model.joints import Free, Prismatic

ITERATIVE = ("admm", "bisection", "newton", "pgs", "sequential_impulses")
by_name = pytest.mark.parametrize("method", ITERATIVE)


def standing():
    """A tripod, whose legs are slides, about to touch: model, configuration, contacts."""
    a = Assembly("tripod")
    a.body("trunk", Free(), None, (0, 0, 0.4), [box((0.3, 0.3, 0.1), 5.0)])
    for k, (x, y) in enumerate(((0.2, 0.0), (-0.1, 0.2), (-0.1, -0.2))):
        a.body(f"leg_{k}", Prismatic((0, 0, 1)), "trunk", (x, y, -0.2), [rod((0, 0, 0), (0, 0, -0.2), 1.0)])
        a.frame(f"foot_{k}", f"leg_{k}", dl.Placement.of(p=(0, 0, -0.2)))
    model = a.model()
    q = model.neutral()
    q[2] = 0.4
    return model, q, [dl.Contact(f"foot_{k}", friction=0.6) for k in range(3)]


# --- the registry -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("capabilities", "law", "names"),
    [
        (COMPILED, "ncp", ("auto", *ITERATIVE)),
        (LARGE, "ncp", ("auto", *sorted((*ITERATIVE, "gradient")))),
        ({*COMPILED, ENTRIES}, "ccp", ("auto", *sorted((*ITERATIVE, "clarabel", "proxsuite")))),
        (PYRAMID_SYSTEM, "lcp", ("auto", "dantzig", "lemke")),
        ({BATCH, SHIFT}, "ncp", ("auto", "admm", "gradient")),
        ({BATCH}, "ncp", ("auto", "gradient")),
        ({TRACED, SWEEP}, "ncp", ("bisection", "pgs", "sequential_impulses")),
    ],
)
def test_solvers_fit_systems_by_what_they_need(capabilities, law, names):
    assert solver_names(capabilities, law) == names


def test_a_name_that_does_not_exist_is_refused_with_those_that_fit():
    with pytest.raises(
        dl.DelassusError, match="no method 'magic'; the methods are: auto, admm, bisection, newton, pgs"
    ):
        find_solver("magic", COMPILED)


def test_a_name_that_does_not_fit_is_refused_with_those_that_do():
    with pytest.raises(dl.DelassusError, match=r"'newton' does not solve .*; those that fit are: auto, admm, gradient"):
        find_solver("newton", {BATCH, SHIFT})


def test_the_implementation_for_batches_is_not_the_traced_one():
    assert find_solver("newton", COMPILED).solve is not find_solver("newton", LARGE).solve


# --- by name from everywhere ------------------------------------------------------------------------------------------


@by_name
@pytest.mark.parametrize("contacts", [3, 14])
def test_every_iterative_solver_is_reached_from_a_problem_of_any_size(method, contacts):
    drawn = random_problems(3, 4, contacts, mass_ratio=2.0, friction=(0.3, 0.8))
    problem = dl.ContactProblem(drawn.G, drawn.g, cones_of(contacts), friction=drawn.friction)
    found = problem.solve(method=method, tolerance=1e-3, iterations=20_000)
    assert np.all(found.status == dl.Status.CONVERGED), found.describe()
    assert np.all(found.residual <= 1e-2 * np.abs(drawn.g).max(-1))


@by_name
def test_every_iterative_solver_is_reached_from_contact_dynamics(method):
    model, q, contacts = standing()
    v, tau = np.zeros(model.nv), np.zeros(model.nv)
    options = {"contacts": contacts, "time_step": 1e-3, "tolerance": 1e-9}
    known, found = (dl.contact_dynamics(model, q, v, tau, **options, method=m) for m in ("auto", method))
    assert found.status == dl.Status.CONVERGED
    np.testing.assert_allclose(found.velocity, known.velocity, atol=1e-7)


@by_name
def test_every_iterative_solver_is_reached_from_a_compliant_step(method):
    model, q, contacts = standing()
    v, tau = np.zeros(model.nv), np.zeros(model.nv)
    options = {"contacts": contacts, "time_step": 1e-3, "tolerance": 1e-9}
    known, found = (dl.stepping.compliant_step(model, q, v, tau, **options, method=m) for m in ("auto", method))
    assert found.status == dl.Status.CONVERGED
    np.testing.assert_allclose(found.v, known.v, atol=1e-7)


@by_name
def test_every_iterative_solver_is_reached_from_a_simulation(method):
    model, q, contacts = standing()
    known, found = (dl.Simulation(model, time_step=1e-3, touching=contacts, method=m) for m in ("auto", method))
    state = known.start(q)
    for _ in range(3):
        expected = known.step(state, np.zeros(known.nu))
        made = found.step(state, np.zeros(known.nu))
        np.testing.assert_allclose(made.v, expected.v, atol=1e-6)
        state = expected


def test_a_simulation_refuses_a_solver_that_does_not_exist():
    with pytest.raises(dl.DelassusError, match="no method 'magic'; the methods are: auto"):
        dl.Simulation(dl.load("quadruped"), method="magic")


# --- one law, two kinds of systems ------------------------------------------------------------------------------------


@pytest.mark.parametrize("convex", [False, True])
def test_traced_systems_and_batches_have_the_same_residual_and_error(convex):
    drawn = random_problems(5, 3, 2, friction=(0.2, 1.0))
    layout = dl.ContactProblem(drawn.G, drawn.g, cones_of(2), friction=drawn.friction).layout
    rows = scale(layout, convex, drawn.G, drawn.g, {"friction": drawn.friction})
    impulse = np.random.default_rng(1).normal(size=rows.g.shape)
    velocity = rows.velocity(impulse)

    def measured(G, g, friction, impulse):
        system = Scaled.of(layout, convex, G, g, RowParameters(friction))
        velocity = system.velocity(impulse)
        return natural_residual(system, impulse, velocity), system.error(impulse, velocity)

    inputs = tuple(Operand(n, s) for n, s in (("G", (6, 6)), ("g", (6,)), ("friction", (2,)), ("impulse", (6,))))
    program = record("measured", measured, inputs, (Operand("residual", (6,)), Operand("error", ())))
    residual, error = evaluate(program, drawn.G, drawn.g, drawn.friction, impulse)
    np.testing.assert_allclose(residual, rows.residual(impulse, velocity), atol=1e-12)
    np.testing.assert_allclose(error, rows.error(impulse, velocity), rtol=1e-9)
