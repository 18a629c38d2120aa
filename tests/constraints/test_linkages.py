"""What other tests of closed loops stand on: linkages are closed and as mobile as textbooks say, oracles are right."""

import numpy as np
import pinocchio as pin
import pytest

import delassus as dl
import differences
from in_pinocchio import Loop, to_pinocchio
from linkages import ladder, random_linkage, textbook
from loop_oracles import bias, constraint_dynamics, dense, gaps, is_depth_first, jacobian, lcaba
from mechanisms import relative

TEXTBOOK = textbook()
KNOWN_TO_PINOCCHIO = [x for x in TEXTBOOK if all(loop.rows is None and loop.kind != "hinge" for loop in x.loops)]
SEEDS = range(20)
each = pytest.mark.parametrize("linkage", TEXTBOOK, ids=lambda linkage: linkage.name)


def in_pinocchio(linkage):
    return to_pinocchio(linkage.model), dl.q_to_pinocchio(linkage.model, linkage.q)


@each
def test_loops_are_closed(linkage):
    theirs, q = in_pinocchio(linkage)
    assert np.max(abs(gaps(theirs, linkage.loops, q))) < 1e-12


@each
def test_the_mobility_is_that_of_the_textbook(linkage):
    theirs, q = in_pinocchio(linkage)
    rank = np.linalg.matrix_rank(jacobian(theirs, linkage.loops, q), tol=1e-9)
    assert theirs.nv - rank == TEXTBOOK[linkage]


def test_a_ladder_moves_and_stays_closed():
    """In one pose after the other: the rank is 2 rows of each loop everywhere but flat."""
    for angle in (0.3, 1.5, 2.9):
        theirs, q = in_pinocchio(ladder(3, angle))
        assert np.max(abs(gaps(theirs, ladder(3, angle).loops, q))) < 1e-12
        assert np.linalg.matrix_rank(jacobian(theirs, ladder(3, angle).loops, q), tol=1e-9) == 6


def moved(theirs, q, x):
    data = theirs.createData()
    pin.framesForwardKinematics(theirs, data, pin.integrate(theirs, q, x))
    return data.oMf


def displacement(theirs, loop: Loop, before, after):
    """How far the first frame of a loop has moved against the second, in the axes that it had before."""
    one, other = theirs.getFrameId(loop.frame1), theirs.getFrameId(loop.frame2)
    inner = before[one].actInv(before[other])
    if loop.kind == "weld":
        steps = [pin.log6(before[k].actInv(after[k])) for k in (one, other)]
        return (steps[0] - inner.act(steps[1])).vector
    steps = [after[k].translation - before[k].translation for k in (one, other)]
    turns = [pin.log3(before[k].rotation.T @ after[k].rotation) for k in (one, other)]
    linear = before[one].rotation.T @ (steps[0] - steps[1])
    return np.concatenate([linear, turns[0] - inner.rotation @ turns[1]])


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_are_derivatives_of_placements(seed):
    linkage = random_linkage(seed)
    theirs, q = in_pinocchio(linkage)
    before = moved(theirs, q, np.zeros(theirs.nv))

    def displacements(x):
        after = moved(theirs, q, x)
        return np.concatenate([displacement(theirs, loop, before, after)[loop.chosen] for loop in linkage.loops])

    expected = differences.jacobian(displacements, theirs.nv)
    np.testing.assert_allclose(jacobian(theirs, linkage.loops, q), expected, atol=1e-11)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_bias_is_the_derivative_of_the_velocity_along_a_motion(seed):
    """Of angular velocities and welds' in the first frame's moving axes, of points' in the axes as they are now."""
    linkage = random_linkage(seed)
    theirs, q = in_pinocchio(linkage)
    v = np.random.default_rng(seed).normal(size=theirs.nv)

    def velocity(t):
        return np.concatenate([loop_velocity(theirs, loop, q, t[0] * v, v) for loop in linkage.loops])

    np.testing.assert_allclose(
        bias(theirs, linkage.loops, q, v), differences.jacobian(velocity, 1)[:, 0], rtol=1e-10, atol=1e-10
    )


def loop_velocity(theirs, loop: Loop, q, x, v):
    complete = loop._replace(rows=None)
    rows = jacobian(theirs, (complete,), pin.integrate(theirs, q, x)) @ v
    if loop.kind != "weld":
        one = theirs.getFrameId(loop.frame1)
        turn = moved(theirs, q, 0.0 * x)[one].rotation.T @ moved(theirs, q, x)[one].rotation
        rows = np.concatenate([turn @ rows[:3], rows[3:]])
    return rows[[complete.chosen.index(row) for row in loop.chosen]]


@pytest.mark.parametrize("linkage", KNOWN_TO_PINOCCHIO, ids=lambda linkage: linkage.name)
@pytest.mark.parametrize("solver", [constraint_dynamics, lcaba], ids=lambda solver: solver.__name__)
def test_pinocchios_solvers_agree_with_singular_values(linkage, solver):
    v, tau = np.random.default_rng(0).normal(size=(2, linkage.model.nv))
    case = (linkage.model, linkage.loops, linkage.q, v, tau)
    expected = dense(*case)
    found = solver(*case, mu=expected.proximal, iterations=expected.iterations)
    a = found[0] if isinstance(found, tuple) else found
    assert relative(a, expected.answer[0]) < 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_lcaba_agrees_with_singular_values_on_random_linkages(seed):
    linkage = random_linkage(seed)
    whole = tuple(loop._replace(kind="point" if loop.kind == "point" else "weld", rows=None) for loop in linkage.loops)
    v, tau = np.random.default_rng(seed).normal(size=(2, linkage.model.nv))
    case = (linkage.model, whole, linkage.q, v, tau)
    expected = dense(*case)
    if not expected.is_clear():
        pytest.skip("the rank of the rows is a matter of rounding")
    a = lcaba(*case, mu=expected.proximal, iterations=expected.iterations)
    assert relative(a, expected.answer[0]) < 1e-7


def test_constraint_dynamics_is_not_asked_about_trees_that_it_gets_wrong():
    linkage = next(x for x in map(random_linkage, SEEDS) if not is_depth_first(x.model))
    rest = np.zeros(linkage.model.nv)
    with pytest.raises(ValueError, match="depth-first"):
        constraint_dynamics(linkage.model, (Loop("point", "at0", "at1"),), linkage.q, rest, rest)
