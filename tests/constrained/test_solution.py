"""What a solution says of itself: in words, whether it is one, and its forces in other axes."""

import pickle

import numpy as np
import pinocchio as pin
import pytest

import delassus as dl
from in_pinocchio import to_pinocchio
from mechanisms import FOUR_BAR, state, two_bodies
from refusals import refuses

BODIES = two_bodies(2.0, 1.0)
TURNED = dl.Placement.of(pin.exp3(np.array([0.4, -0.3, 0.2])), (0.1, 0.2, -0.3))
TIED = dl.Mechanism(BODIES, [dl.Weld("a", "b", placement=TURNED, name="bar"), dl.Point("b", name="pin", rows="xz")])
TWICE = dl.Mechanism(BODIES, [dl.Point("a", name="one"), dl.Point("a", name="two", acceleration=1.0)])


def solved(mechanism, count=None, **options):
    states = [state(mechanism.model, seed=k) for k in range(count or 1)]
    q, v, tau = (np.stack(x) if count else x[0] for x in zip(*states, strict=True))
    return dl.constrained_dynamics(mechanism, q, v, tau, **options)


def test_a_solution_says_how_it_ended():
    assert solved(TIED).describe().startswith("All rows are met to the tolerance. The largest residual is ")
    assert solved(TWICE).describe() == (
        "The rows cannot all be met; they are met in the least-squares sense. "
        "The largest residual is 0.5 (m/s² or rad/s²), of 'one'."
    )


def test_of_several_states_the_worst_is_described():
    found = solved(FOUR_BAR, 3)
    residual = np.zeros_like(found.residual)
    residual[0, 1], residual[2, 2] = 5.0, 0.25
    mixed = found._replace(status=np.array([0, 0, 1]), residual=residual)
    assert mixed.describe() == (
        "The rows cannot all be met; they are met in the least-squares sense, in 1 of 3 states. "
        "The largest residual is 0.25 (m/s² or rad/s²), of 'closure' in state 2."
    )


def test_a_state_that_is_no_number_is_named():
    q, v, tau = (np.stack([x] * 3) for x in state(FOUR_BAR.model))
    v[1, 0] = np.nan
    found = dl.constrained_dynamics(FOUR_BAR, q, v, tau)
    assert found.describe() == "An input or a result is not a finite number in state 1."
    np.testing.assert_array_equal(found.is_optimal(), [True, False, True])


def test_without_rows_there_is_nothing_to_describe_but_the_end():
    found = solved(dl.Mechanism(BODIES))
    assert found.describe() == "All rows are met to the tolerance."
    assert found.is_optimal()


@pytest.mark.parametrize("mechanism", [TIED, TWICE, FOUR_BAR], ids=["met", "least squares", "redundant"])
def test_what_was_found_is_optimal(mechanism):
    assert solved(mechanism).is_optimal() is True


@pytest.mark.parametrize("field", ["acceleration", "force"])
def test_a_solution_that_was_changed_is_not_optimal(field):
    found = solved(TIED, 2)
    changed = getattr(found, field).copy()
    changed[1, 0] += 1e-3 * np.abs(changed).max()
    np.testing.assert_array_equal(found._replace(**{field: changed}).is_optimal(1e-8), [True, False])


def test_least_squares_of_another_norm_are_optimal_in_it_alone():
    """Contradictory rows of unequal ε meet nearer to the one with the smaller ε."""
    found = solved(TWICE, proximal=(1e-6,) * 3 + (4e-6,) * 3)
    np.testing.assert_allclose(found.residual[:3] / -found.residual[3:], 0.25, rtol=1e-6)
    assert found.is_optimal(1e-8)
    other = found._replace().with_inputs(asked=found.asked._replace(rows=found.asked.rows._replace(proximal=None)))
    assert not other.is_optimal(1e-8)


def test_rows_that_are_switched_off_do_not_count():
    mask = np.ones(TWICE.m)
    mask[TWICE.slices["two"]] = 0.0
    assert solved(TWICE, mask=mask).is_optimal()


def test_a_solution_remembers_its_state_as_it_was():
    q, v, tau = state(BODIES)
    found = dl.constrained_dynamics(TIED, q, v, tau)
    v *= 3.0
    assert found.is_optimal()


def test_forces_in_the_worlds_axes_balance_the_bodies():
    """M a + c of Pinocchio, of each body on its own, is what the constraints do to it and what is driven."""
    found = solved(TIED)
    q, v, tau = found.asked.q, found.asked.v, found.asked.tau
    theirs = to_pinocchio(BODIES)
    data = theirs.createData()
    left = pin.rnea(theirs, data, dl.q_to_pinocchio(BODIES, q), v, found.acceleration) - tau
    R, _ = dl.frame_placement(BODIES, q, frame="a")
    wrench = found.force_in("bar")  # about the bar's end, beside the body's origin
    arm = R @ TURNED.p
    np.testing.assert_allclose(R @ left[:3], wrench[:3], rtol=0, atol=1e-9)
    np.testing.assert_allclose(R @ left[3:6], wrench[3:] + np.cross(arm, wrench[:3]), rtol=0, atol=1e-9)


def test_forces_in_the_frames_own_axes_are_those_of_the_rows():
    found = solved(TIED, 4)
    np.testing.assert_allclose(found.force_in("bar", axes="frame"), found.forces["bar"], rtol=0, atol=1e-11)
    pushed = found.force_in("pin", axes="b")
    np.testing.assert_allclose(pushed[:, [0, 2]], found.forces["pin"], rtol=0, atol=1e-11)
    np.testing.assert_allclose(pushed[:, [1, 3, 4, 5]], 0.0, atol=1e-11)


def test_rows_in_the_worlds_axes_have_forces_along_them():
    found = solved(dl.Mechanism(BODIES, dl.Point("a", axes="world")))
    np.testing.assert_allclose(found.force_in("a")[:3], found.forces["a"], rtol=0, atol=1e-12)


def test_the_world_feels_the_opposite():
    """The same bar, named from the other side, acts on the world."""
    on_body, on_world = (
        solved(dl.Mechanism(BODIES, dl.Weld(*frames, name="bar"))) for frames in (("a", "world"), ("world", "a"))
    )
    _, p = dl.frame_placement(BODIES, on_body.asked.q, frame="a")
    wrench, other = on_body.force_in("bar"), on_world.force_in("bar")
    np.testing.assert_allclose(other[:3], -wrench[:3], rtol=0, atol=1e-9)
    np.testing.assert_allclose(other[3:], -(wrench[3:] + np.cross(p, wrench[:3])), rtol=0, atol=1e-9)


def test_constraints_on_joints_have_no_frame():
    found = solved(dl.Mechanism(FOUR_BAR.model, dl.JointLock("crank_joint")))
    with refuses("not-supported"):
        found.force_in("crank_joint")


def test_a_constraint_that_is_not_there_is_named():
    with refuses("unknown-constraint", "'barr'"):
        solved(TIED).force_in("barr")


def test_a_solution_is_frozen():
    found = solved(TIED)
    for name in ("force", "mechanism"):
        with pytest.raises(AttributeError, match=f"{name} cannot be changed"):
            setattr(found, name, None)


def test_inputs_of_rows_are_found_by_their_old_names():
    mask = np.ones(TWICE.m)
    found = solved(TWICE, mask=mask)
    with pytest.warns(DeprecationWarning, match=r"use rows\.mask"):
        np.testing.assert_array_equal(found.asked.mask, mask)


def test_a_solution_can_be_pickled():
    found = solved(TIED)
    again = pickle.loads(pickle.dumps(found))
    assert again.mechanism == found.mechanism
    assert again.describe() == found.describe()
    np.testing.assert_array_equal(again.asked.q, found.asked.q)
