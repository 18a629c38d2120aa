"""Rows that tie joints to each other, and joints to bodies: gears, racks, grippers, classes that users write.

What is a tie is in the rows that a constraint gives, not in its class. The dense system of the classes below is written
down from frames' Jacobians and accelerations and from the ratios that they were made with.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import delassus as dl
import delassus.numpy as dnp
from delassus.compiler.backends.interpreter import evaluate
from delassus.constrained.solvers.choice import best_method
from delassus.constraints.basis.constraint import BodyRows, Constraint, JointRow
from delassus.model.bundled.build import Assembly, box
from delassus.model.generators import chain, random_tree
from delassus.model.joints import Free, Prismatic, Revolute, Spherical, Universal
from how_many import examples
from mechanisms import PROXIMAL, Dense, held, relative, state
from native_bits import FULL
from refusals import refuses

HUMANOID = dl.load("humanoid")


@dataclass(frozen=True)
class Gear(Constraint):
    """Velocities that keep a ratio: Σ factor · v = 0."""

    ratios: tuple[tuple[int, float], ...] = ()

    @property
    def label(self):
        return self.name or "gear"

    def count(self, model):
        return 1

    def joints(self, motions):
        return tuple(JointRow(0, v, factor) for v, factor in self.ratios)


@dataclass(frozen=True)
class Rack(Gear):
    """The same, and points that move with it: the sum of one row of each."""

    points: tuple[dl.Point, ...] = ()

    def bodies(self, motions):
        return tuple(body for point in self.points for body in point.bodies(motions))

    def velocity_product(self, motions):
        return sum((point.velocity_product(motions) for point in self.points), start=dnp.zeros(1))


def point_row(model, point: dl.Point, q, v):
    """J and J̇ v of a point that is held, or tied to a second one, in the axes of its frame."""
    rows, bias, turn = 0.0, 0.0, None
    for sign, frame, placement in ((1.0, point.frame, point.placement), (-1.0, point.frame2, point.placement2)):
        if frame is None:
            continue
        placed, at = model.with_frame("here", frame, placement), {"frame": "here", "reference": "LOCAL_WORLD_ALIGNED"}
        turn = dl.frame_placement.python(placed, q, frame="here")[0].T if turn is None else turn
        still = np.zeros(model.nv)
        rows = rows + sign * turn @ dl.frame_jacobian.python(placed, q, **at)[:3]
        bias = bias + sign * turn @ dl.frame_acceleration.python(placed, q, v, still, classical=True, **at)[:3]
    return rows[list(point.rows)], bias[list(point.rows)]


def rows_of(model, constraint, q, v):
    """J and γ of a constraint."""
    if not isinstance(constraint, Gear):
        alone = dl.Mechanism(model, constraint, model_constraints=False)
        return dl.constraint_jacobian.python(alone, q), dl.constraint_bias.python(alone, q, v)
    J, gamma = np.zeros((1, model.nv)), -constraint.per_row("acceleration", 1)
    for k, factor in constraint.ratios:
        J[0, k] += factor
    for point in getattr(constraint, "points", ()):
        own, bias = point_row(model, point, q, v)
        J, gamma = J + own, gamma + bias
    return J, gamma


def dense(mechanism, q, v, tau) -> Dense:
    """The dense system of a mechanism."""
    model = mechanism.model
    parts = [rows_of(model, constraint, q, v) for constraint in mechanism.constraints]
    h = tau - dl.bias_torques.python(model, q, v)
    J, gamma = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return Dense(dl.crba.python(model, q), h, J, gamma)


def square(system: Dense):
    """J M⁻¹ Jᵀ."""
    return system.whitened @ system.whitened.T


def check(method, mechanism, q, v, tau, system: Dense):
    """Accelerations to 1e-9, every row to 1e-9 of what cancels in it, and where rows agree the smallest forces.

    Where the rows leave no motion, the accelerations without constraints cancel.
    """
    a, force = method.python(mechanism, q, v, tau, iterations=system.iterations, proximal=system.proximal)
    expected, smallest = system.answer
    assert relative(a, expected) < 1e-9
    largest = np.max(np.abs([expected, np.linalg.solve(system.M, system.h)]))
    reach = np.sum(np.abs(system.J), 1) * largest + np.abs(system.gamma)
    assert np.all(np.abs(system.J @ (a - expected)) <= 1e-9 * reach)
    if np.max(np.abs(system.J @ expected + system.gamma)) < 1e-12 * np.max(reach):
        assert relative(force, smallest) < 1e-9


# --- one by one -------------------------------------------------------------------------------------------------------


def gripper() -> dl.Model:
    """An arm of seven joints with two fingers that slide."""
    hand = Assembly("hand")
    for side, sign in (("left", 1.0), ("right", -1.0)):
        finger = [box((0.01, 0.02, 0.04), 0.05)]
        hand.body(side, Prismatic((0.0, sign, 0.0)), None, (0.0, 0.0, 0.05), finger)
        hand.frame(f"{side}_tip", side, (0.0, 0.0, 0.04))
    return dl.load("arm7").attach(hand.model(), "tool")


def with_all_joints() -> dl.Model:
    """A chain of joints of one to six velocities."""
    a, part = Assembly("all joints"), [box((0.1, 0.2, 0.3), 1.0)]
    kinds = {"base": Free(), "hinge": Revolute(), "cross": Universal(), "ball": Spherical(), "slide": Prismatic()}
    before = None
    for name, kind in kinds.items():
        a.body(name, kind, before, (0.1, 0.2, 0.3), part)
        a.frame(f"on {name}", name, (0.2, 0.1, 0.0))
        before = name
    return a.model()


def velocity(model, joint: str) -> int:
    return model.v_starts[model.joint_index(joint)]


def palms(kinematics, q):
    return kinematics.position("left_palm") - 2.0 * kinematics.position("right_palm")


def cases() -> dict[str, dl.Mechanism]:
    hand, legs, every = gripper(), HUMANOID, with_all_joints()
    left, right = (velocity(legs, f"{side}_shin_joint") for side in ("left", "right"))
    fingers = dl.Coupling("left_joint", "right_joint", coefficients=(0.0, 1.0, 0.5))
    knees = Gear(ratios=((left, 1.0), (right, -0.7)), acceleration=0.4)
    soles = [dl.Weld("left_sole"), dl.Weld("right_sole")]
    lever = Rack(ratios=((left, 0.3),), points=(dl.Point("left_palm", rows="z"),))
    return {
        "fingers of a gripper": dl.Mechanism(hand, fingers),
        "fingers and a tool that is held": dl.Mechanism(hand, [fingers, dl.Weld("tool")]),
        "fingers that meet": dl.Mechanism(hand, [fingers, dl.Point("left_tip", "right_tip")]),
        "neighbours": dl.Mechanism(hand, Gear(ratios=((3, 1.0), (4, 2.0)))),
        "ancestor and descendant": dl.Mechanism(hand, Gear(ratios=((1, 1.0), (5, -0.4)))),
        "two ties that share a joint": dl.Mechanism(
            hand, [Gear(ratios=((1, 1.0), (5, -0.4))), Gear(ratios=((5, 1.0), (7, 0.2), (0, 0.1)))]
        ),
        "a tie twice, and their sum": dl.Mechanism(
            hand, [Gear(ratios=((1, 1.0), (5, 0.4)))] * 2 + [Gear(ratios=((1, 2.0), (5, 0.8)))]
        ),
        "joints of different legs": dl.Mechanism(legs, knees),
        "legs that stand": dl.Mechanism(legs, [knees, *soles]),
        "legs that stand and hands that meet": dl.Mechanism(
            legs, [knees, *soles, dl.Point("left_palm", "right_palm"), dl.Point("left_palm", "right_sole")]
        ),
        "base and joints": dl.Mechanism(legs, Gear(ratios=((2, 1.0), (4, 0.3), (left, 0.2), (right, 0.1)))),
        "velocities of one joint": dl.Mechanism(legs, Gear(ratios=((0, 1.0), (5, 0.3)))),
        "one velocity twice": dl.Mechanism(legs, Gear(ratios=((left, 1.0), (left, 0.5)))),
        "joints of all kinds": dl.Mechanism(every, Gear(ratios=tuple((k, 1.0 + 0.1 * k) for k in range(every.nv)))),
        "a body and a joint elsewhere": dl.Mechanism(legs, lever),
        "a body and its own joint": dl.Mechanism(
            every, Rack(ratios=((10, 0.5), (9, 0.2)), points=(dl.Point("on ball", rows="x"),))
        ),
        "a body and the joint that carries it": dl.Mechanism(
            every, [Rack(ratios=((7, 0.5),), points=(dl.Point("on slide", rows="y"),)), dl.Point("on ball")]
        ),
        "a relative motion and a joint": dl.Mechanism(
            legs, Rack(ratios=((right, 0.4),), points=(dl.Point("left_palm", "right_sole", rows="x"),))
        ),
        "two points that fall and joints": dl.Mechanism(
            legs, Rack(ratios=((right, 0.4), (left, 1.0)), points=(lever.points[0], dl.Point("right_palm", rows="z")))
        ),
        "two points that fall": dl.Mechanism(
            legs, Rack(points=(dl.Point("left_palm", rows="z"), dl.Point("right_palm", rows="x")))
        ),
        "two points of one body": dl.Mechanism(
            legs, Rack(points=(dl.Point("left_palm", rows="z"), dl.Point("left_hand", rows="x")))
        ),
        "a function of many joints": dl.Mechanism(legs, [dl.Implicit(palms, rows=3), dl.Weld("left_sole")]),
    }


CASES = cases()
each_case = pytest.mark.parametrize("name", CASES)


def situation(name: str):
    mechanism = CASES[name]
    q, v, tau = state(mechanism.model, seed=3)
    return mechanism, q, v, tau, dense(mechanism, q, v, tau)


@each_case
@pytest.mark.parametrize("method", PROXIMAL, ids=lambda f: f.name)
def test_ties_have_the_dense_answer(method, name):
    mechanism, q, v, tau, system = situation(name)
    assert system.is_clear()
    check(method, mechanism, q, v, tau, system)


@each_case
def test_all_methods_have_the_same_iterates(name):
    mechanism, q, v, tau, system = situation(name)
    first = dl.caba.python(mechanism, q, v, tau, iterations=2, proximal=1e-2 * system.scale)
    for method in PROXIMAL[1:]:
        found = method.python(mechanism, q, v, tau, iterations=2, proximal=1e-2 * system.scale)
        assert all(relative(x, y) < 1e-9 for x, y in zip(found, first, strict=True))


@each_case
def test_the_operators_are_the_dense_ones(name):
    mechanism, q, _, _, system = situation(name)
    G, x = square(system), np.random.default_rng(0).normal(size=mechanism.m)
    epsilon = 1e-3 * system.scale
    damped = G + epsilon * np.eye(len(G))
    assert relative(dl.delassus_matrix.python(mechanism, q), G) < 1e-10
    assert relative(dl.delassus_apply.python(mechanism, q, x), G @ x) < 1e-10
    assert relative(damped @ dl.delassus_solve.python(mechanism, q, x, proximal=epsilon), x) < 1e-10
    inertia = dl.operational_inertia.python(mechanism, q, proximal=epsilon, method="caba_osim")
    assert relative(damped @ inertia, np.eye(len(G))) < 1e-10


def test_a_soft_tie_is_the_first_iterate():
    mechanism, q, v, tau, system = situation("legs that stand and hands that meet")
    G, free = square(system), np.linalg.solve(system.M, system.h)
    a, force = dl.pv_soft.python(mechanism, q, v, tau, proximal=0.1)
    assert relative(force, -np.linalg.solve(G + 0.1 * np.eye(len(G)), system.J @ free + system.gamma)) < 1e-9
    assert relative(a, free + np.linalg.solve(system.M, system.J.T @ force)) < 1e-9


@pytest.mark.parametrize("method", PROXIMAL, ids=lambda f: f.name)
def test_a_tie_that_is_switched_off_does_not_act(method):
    mechanism, q, v, tau, _ = situation("legs that stand and hands that meet")
    without = dl.Mechanism(mechanism.model, mechanism.constraints[1:])
    mask = np.ones(mechanism.m)
    mask[mechanism.slices["gear"]] = 0.0
    a, force = method.python(mechanism, q, v, tau, mask=mask)
    expected, others = method.python(without, q, v, tau)
    assert relative(a, expected) < 1e-8 and force[0] == 0.0
    assert relative(force[1:], others) < 1e-8


def test_a_tie_may_give_way():
    every = with_all_joints()
    mechanism = dl.Mechanism(every, Gear(ratios=((6, 1.0), (9, 0.5)), compliance=0.3))
    q, v, tau = state(every, seed=1)
    system = dense(mechanism, q, v, tau)
    free = np.linalg.solve(system.M, system.h)
    _, force = dl.caba.python(mechanism, q, v, tau, iterations=20, proximal=1e-3)
    assert relative(force, -(system.J @ free + system.gamma) / (square(system)[0] + 0.3)) < 1e-9


def test_compiled_code_has_the_bits_of_the_interpreter():
    mechanism, q, v, tau, _ = situation("fingers and a tool that is held")
    program = dl.caba.program(mechanism)
    compiled = dl.caba.compiled(mechanism, target=FULL)
    for found, expected in zip(compiled.ufunc(q, v, tau), evaluate(program, q, v, tau), strict=True):
        assert np.array_equal(found, expected)


def test_many_rows_of_a_users_class_are_solved_to_the_tolerance():
    mechanism, q, v, tau, system = situation("legs that stand")
    assert best_method(mechanism) == "caba"
    solution = dl.constrained_dynamics(mechanism, q, v, tau)
    assert solution.statuses is dl.Status.CONVERGED
    assert relative(solution.acceleration, system.answer[0]) < 1e-9
    assert relative(solution.force, system.answer[1]) < 1e-8


@pytest.mark.parametrize("name", ["neighbours", "velocities of one joint", "a body and its own joint"])
def test_early_elimination_refuses_ties(name):
    mechanism, q, v, tau, _ = situation(name)
    with refuses("not-supported", "prox_pv"):
        dl.pv_early.python(mechanism, q, v, tau)


# --- random trees -----------------------------------------------------------------------------------------------------


@st.composite
def tied(draw):
    """A tree of joints of any kinds with one to four ties, some with bodies in them, often with other constraints."""
    mechanism, q, v, tau = draw(held())
    model, rng = mechanism.model, np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    constraints = list(mechanism.constraints) if draw(st.booleans()) else []
    for _ in range(draw(st.integers(1, 3))):
        chosen = rng.choice(model.nv, min(draw(st.integers(1, 6)), model.nv), replace=False)
        ratios = tuple((int(k), float(rng.normal())) for k in chosen)
        frames = rng.choice(len(model.joints), draw(st.integers(0, 2)))
        points = tuple(dl.Point(f"frame {k}", rows=(int(rng.integers(3)),)) for k in frames)
        constraints.append(Rack(ratios=ratios, points=points, acceleration=float(rng.normal())))
    constraints += constraints[: draw(st.integers(0, 1))]
    return dl.Mechanism(model, constraints), q, v, tau


@settings(max_examples=examples(100))
@given(tied())
def test_random_ties_have_the_dense_answer(case):
    mechanism, q, v, tau = case
    system = dense(mechanism, q, v, tau)
    assume(system.scale > 1e-6 and system.is_clear())
    for method in PROXIMAL:
        check(method, mechanism, q, v, tau, system)


@settings(max_examples=examples(100))
@given(tied(), st.sampled_from([1e-4, 1e-2, 1.0]))
def test_operators_of_random_ties_are_the_dense_ones(case, share):
    mechanism, q, v, tau = case
    system = dense(mechanism, q, v, tau)
    assume(system.scale > 1e-6)
    G, x = square(system) / system.scale, np.random.default_rng(0).normal(size=mechanism.m)
    damped = G + share * np.eye(len(G))
    proximal = share * system.scale
    assert relative(dl.delassus_apply.python(mechanism, q, x) / system.scale, G @ x) < 1e-10
    found = dl.delassus_solve.python(mechanism, q, x, proximal=proximal) * system.scale
    assert np.max(np.abs(damped @ found - x)) < 1e-11 * (np.max(np.abs(x)) + np.max(np.abs(found)))
    inertia = dl.operational_inertia.python(mechanism, q, proximal=proximal, method="caba_osim") * system.scale
    assert relative(share * inertia, share * np.linalg.inv(damped)) < 1e-9


@settings(max_examples=examples(40))
@given(st.integers(0, 1000), st.integers(1, 4))
def test_ties_in_random_linkages_have_the_dense_answer(seed, many):
    """Loops and ties that share links."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 13))
    model = random_tree(n, seed)
    ends = [rng.choice(n, 2, replace=False) for _ in range(int(rng.integers(1, 3)))]
    constraints: list[Constraint] = [dl.Point(f"link{i}", f"link{j}", rows=(0, 2)) for i, j in ends]
    for _ in range(many):
        chosen = rng.choice(n, int(rng.integers(2, 5)), replace=False)
        constraints.append(Gear(ratios=tuple((int(k), float(rng.normal())) for k in chosen)))
    mechanism = dl.Mechanism(model, constraints)
    q, v, tau = state(model, seed)
    system = dense(mechanism, q, v, tau)
    assume(system.scale > 1e-6 and system.is_clear())
    check(dl.caba, mechanism, q, v, tau, system)


# --- rows that do not fit ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Odd(Gear):
    """Rows as they are given."""

    given: tuple = ()

    def bodies(self, motions):
        return tuple(row for row in self.given if isinstance(row, BodyRows))

    def joints(self, motions):
        return tuple(row for row in self.given if isinstance(row, JointRow))


@pytest.mark.parametrize(
    ("row", "refusal"),
    [
        (JointRow(0, 3), ("index-out-of-range", "0")),
        (JointRow(1, 0), ("index-out-of-range", "1")),
        (JointRow(-1, 0), ("index-out-of-range", "-1")),
        (BodyRows(-1, np.zeros((1, 6))), ("index-out-of-range", "-1")),
        (BodyRows(3, np.zeros((1, 6))), ("index-out-of-range", "3")),
        (BodyRows(0, np.zeros((2, 6))), ("wrong-shape", "(2, 6)", "(1, 6)", "0", "rows")),
        (BodyRows(0, np.zeros(6)), ("wrong-shape", "(6,)", "0", "rows")),
    ],
)
def test_rows_that_do_not_fit_are_named(row, refusal):
    mechanism = dl.Mechanism(chain(3), Odd(given=(row,)))
    with refuses(*refusal):
        dl.caba.python(mechanism, np.zeros(3), np.zeros(3), np.zeros(3))
