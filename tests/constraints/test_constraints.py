"""Constraints and mechanisms: rows, names, references, and what is refused."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

import delassus as dl
from delassus.model.equality import Connect
from delassus.model.generators import chain
from delassus.model.joints import Free, Spherical
from delassus.model.model import Model
from delassus.model.parts import Frame, Joint, Mimic
from delassus.model.placement import Inertia
from mechanisms import robot, state
from refusals import refuses
from robots import file, pinocchio_model

ARM = chain(4)
HALF = dl.Placement.from_xyz_rpy((0.1, -0.2, 0.05), (0.3, -0.4, 0.5))


# --- rows -------------------------------------------------------------------------------------------------------------


def test_a_point_has_three_rows_and_a_weld_six():
    assert dl.Mechanism(ARM, [dl.Point("tip"), dl.Weld("tip")]).m == 9


def test_rows_are_chosen_by_number_or_by_name():
    assert dl.Point("tip", rows="xz") == dl.Point("tip", rows=(0, 2))
    assert dl.Weld("tip", rows=("x", "rz")) == dl.Weld("tip", rows=[0, 5])


def test_chosen_rows_are_rows_of_the_whole_jacobian():
    q, _, _ = state(ARM)
    whole = dl.constraint_jacobian.python(dl.Mechanism(ARM, dl.Weld("tip", placement=HALF)), q)
    some = dl.constraint_jacobian.python(dl.Mechanism(ARM, dl.Weld("tip", rows=(4, 1), placement=HALF)), q)
    np.testing.assert_array_equal(some, whole[[4, 1]])


@pytest.mark.parametrize("make", [dl.Point, dl.Weld])
def test_the_jacobian_is_pinocchios(make):
    model, theirs = robot("solo12.urdf"), pinocchio_model(file("solo12.urdf"), "free")
    q, _, _ = state(model)
    kind = {dl.Point: pin.ContactType.CONTACT_3D, dl.Weld: pin.ContactType.CONTACT_6D}[make]
    frame = theirs.frames[theirs.getFrameId("HL_FOOT")]
    placement = frame.placement * pin.SE3(HALF.R, HALF.p)
    contact, data = pin.RigidConstraintModel(kind, theirs, frame.parentJoint, placement, pin.LOCAL), theirs.createData()
    pin.computeJointJacobians(theirs, data, dl.q_to_pinocchio(model, q))
    contact_data = contact.createData()
    contact.calc(theirs, data, contact_data)
    expected = pin.getConstraintJacobian(theirs, data, contact, contact_data)
    found = dl.constraint_jacobian.python(dl.Mechanism(model, make("HL_FOOT", placement=HALF)), q)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_lock_has_a_row_for_each_velocity_of_its_joint():
    model = Model("ball", (Joint("ball", Spherical(), inertia=Inertia.of(1.0, (0, 0, 0.1), np.eye(3))),))
    np.testing.assert_array_equal(
        dl.constraint_jacobian.python(dl.Mechanism(model, dl.JointLock("ball", rows=(2, 0))), model.neutral()),
        np.eye(3)[[2, 0]],
    )


def test_a_lock_of_a_mimicking_joint_counts_with_its_ratio():
    joints = list(chain(2).joints)
    joints[1] = Joint("follower", joints[1].kind, 0, inertia=joints[1].inertia, mimic=Mimic(0, ratio=-2.0))
    model = Model("coupled", tuple(joints))
    J = dl.constraint_jacobian.python(dl.Mechanism(model, dl.JointLock("follower")), model.neutral())
    np.testing.assert_array_equal(J, [[-2.0]])


@pytest.mark.parametrize(
    ("make", "refusal"),
    [
        (lambda: dl.Point("tip", rows="xw"), ("unknown-row", "'w'")),
        (lambda: dl.Point("tip", rows=(3,)), ("unknown-row", "3")),
        (lambda: dl.Point("tip", rows=()), ("nothing-to-do",)),
        (lambda: dl.Point("tip", rows="xx"), ("duplicate-name",)),
        (lambda: dl.Point("tip", acceleration=(1.0, 2.0)), ("wrong-shape", "2")),
        (lambda: dl.Point("tip", compliance=-1.0), ("out-of-range", "'tip'", "-1", "compliance")),
        (lambda: dl.Point("tip", velocity_gain=np.nan), ("not-finite",)),
        (lambda: dl.Point("tip", acceleration="fast"), ("not-a-number",)),
        (lambda: dl.Point("tip", position_gain=1.0), ("missing-argument",)),
        (lambda: dl.Weld("tip", position_gain=1.0), ("missing-argument",)),
        (lambda: dl.JointLock("joint0", position_gain=1.0), ("missing-argument",)),
        (lambda: dl.Point(None), ("wrong-type",)),
        (lambda: dl.Point("tip", placement=np.eye(4)), ("wrong-type",)),
        (lambda: dl.Weld("tip", target=(0, 0, 1)), ("wrong-type",)),
        (lambda: dl.Point("tip", position=(0, 1)), ("wrong-shape",)),
        (lambda: dl.Point("tip", position=(0, 1, np.nan)), ("not-finite",)),
    ],
)
def test_a_constraint_that_makes_no_sense_is_refused(make, refusal):
    with refuses(*refusal):
        make()


def test_a_placement_that_is_none_is_refused():
    with refuses("not-a-rotation"):
        dl.Point("tip", placement=dl.Placement.of(2.0 * np.eye(3)))


# --- references -------------------------------------------------------------------------------------------------------


def moved(make, model, q, v):
    """γ's dependence on the state: its difference to a constraint without gains, which is Kd (J v) + Kp e."""
    with_gains, without = dl.Mechanism(model, make(True)), dl.Mechanism(model, make(False))
    return dl.constraint_bias.python(with_gains, q, v) - dl.constraint_bias.python(without, q, v)


def test_a_point_is_pulled_to_its_position():
    q, v, _ = state(ARM)
    R, p = dl.frame_placement.python(ARM, q, frame="tip")
    here = np.array([0.3, -0.1, 0.2])

    def make(gains):
        return dl.Point("tip", position=here, position_gain=(1, 2, 3) if gains else 0.0)

    np.testing.assert_allclose(moved(make, ARM, q, v), np.array([1, 2, 3]) * (R.T @ (p - here)), atol=1e-12)


def test_a_weld_is_pulled_to_its_target():
    q, v, _ = state(ARM)
    R, p = dl.frame_placement.python(ARM, q, frame="tip")
    there = pin.SE3(HALF.R, HALF.p)

    def make(gains):
        return dl.Weld("tip", target=HALF, position_gain=4.0 if gains else 0.0)

    expected = 4.0 * pin.log6(there.actInv(pin.SE3(R, p))).vector
    np.testing.assert_allclose(moved(make, ARM, q, v), expected, atol=1e-12)


def test_a_joint_is_pulled_to_its_position():
    q, v, _ = state(ARM)

    def make(gains):
        return dl.JointLock("joint2", position=0.5, position_gain=10.0 if gains else 0.0)

    np.testing.assert_allclose(moved(make, ARM, q, v), [10.0 * (q[2] - 0.5)], atol=1e-12)


def test_velocities_are_damped_row_by_row():
    q, v, _ = state(ARM)

    def make(gains):
        return dl.Weld("tip", velocity_gain=tuple(range(6)) if gains else 0.0)

    expected = np.arange(6) * dl.frame_velocity.python(ARM, q, v, frame="tip")
    np.testing.assert_allclose(moved(make, ARM, q, v), expected, atol=1e-12)


def test_a_position_gain_needs_coordinates_whose_rates_are_the_velocities():
    model = Model("body", (Joint("base", Free(), inertia=Inertia.of(1.0, (0, 0, 0), np.eye(3))),))
    mechanism = dl.Mechanism(model, dl.JointLock("base", position=0.0, position_gain=1.0))
    with refuses("not-supported"):
        dl.constraint_bias.python(mechanism, model.neutral(), np.zeros(6))


# --- gains and steps --------------------------------------------------------------------------------------------------


def settles(Kp: float, Kd: float, h: float) -> bool:
    """Whether e⁺ = e + h v⁺, v⁺ = v - h (Kd v + Kp e) comes to rest."""
    roots = np.linalg.eigvals([[1 - h * h * Kp, h * (1 - h * Kd)], [-h * Kp, 1 - h * Kd]])
    return bool(np.max(np.abs(roots)) < 1.0)


@pytest.mark.parametrize("h", [1e-3, 1e-2])
@pytest.mark.parametrize("damped", [0.1, 0.5, 1.0, 1.5, 1.99, 2.01, 3.0])
@pytest.mark.parametrize("pulled", [0.01, 0.5, 0.99, 1.01, 1.99, 2.9, 3.9])
def test_gains_are_refused_exactly_where_a_simulation_would_not_settle(h, damped, pulled):
    Kd, Kp = damped / h, pulled / h**2
    point = dl.Point("tip", position=(0, 0, 0), position_gain=Kp, velocity_gain=Kd)
    if settles(Kp, Kd, h):
        dl.Mechanism(ARM, point, step=h)
    else:
        with refuses("unstable-gain"):
            dl.Mechanism(ARM, point, step=h)


def test_a_spring_without_a_damper_is_refused():
    with refuses("unstable-gain", "velocity_gain", "20"):
        dl.Mechanism(ARM, dl.Point("tip", position=(0, 0, 0), position_gain=100.0), step=1e-3)


def test_gains_are_not_checked_where_the_step_is_not_known():
    assert dl.Mechanism(ARM, dl.Point("tip", velocity_gain=1e9)).step is None


@pytest.mark.parametrize("step", [0.0, -1e-3, np.inf, np.nan])
def test_a_step_must_be_positive_and_finite(step):
    with refuses("time-step-out-of-range"):
        dl.Mechanism(ARM, step=step)


# --- mechanisms -------------------------------------------------------------------------------------------------------


def test_mechanisms_are_equal_by_content():
    one, two = (dl.Mechanism(chain(4), [dl.Point("tip", compliance=x)]) for x in (1e-3, 1e-3))
    assert one == two
    assert hash(one) == hash(two)
    assert one != dl.Mechanism(chain(4), [dl.Point("tip", compliance=2e-3)])


def test_a_frame_stands_for_its_name():
    assert dl.Point(ARM.frame("tip")) == dl.Point("tip")


def test_a_frame_may_be_given_by_its_number():
    q, _, _ = state(ARM)
    by_number, by_name = (dl.Mechanism(ARM, dl.Point(f)) for f in (ARM.frame_index("tip"), "tip"))
    np.testing.assert_array_equal(
        dl.constraint_jacobian.python(by_number, q), dl.constraint_jacobian.python(by_name, q)
    )


def test_repeated_names_get_a_suffix():
    points = [dl.Point("tip"), dl.Point("tip"), dl.Point("tip", rows="x", name="slide"), dl.Point("tip")]
    mechanism = dl.Mechanism(ARM, points)
    assert mechanism.names == ("tip", "tip_2", "slide", "tip_3")
    assert mechanism.slices["slide"] == slice(6, 7)


def test_the_models_own_constraints_come_first():
    own = Model(ARM.name, ARM.joints, ARM.frame_list, constraints=(dl.Point("tip", name="own"),))
    assert dl.Mechanism(own, dl.Point("tip")).names == ("own", "tip")
    assert dl.Mechanism(own, dl.Point("tip"), model_constraints=False).names == ("tip",)


def test_a_missing_frame_lists_the_nearest_names():
    with refuses("unknown-frame", "HL_FOOT"):
        dl.Mechanism(robot("solo12.urdf"), dl.Point("HL_FOT"))


def test_a_missing_joint_lists_the_nearest_names():
    with refuses("unknown-joint", "joint1"):
        dl.Mechanism(ARM, dl.JointLock("joint_1"))


def test_a_frame_number_beyond_the_model_is_refused():
    with refuses("unknown-frame", "99"):
        dl.Mechanism(ARM, dl.Point(99))


def test_a_frame_that_cannot_move_is_refused():
    fixed = Model("arm", ARM.joints, (*ARM.frame_list, Frame("base", -1)))
    with refuses("immovable", "'base'"):
        dl.Mechanism(fixed, dl.Point("base"))


@pytest.mark.parametrize("constraints", ["tip", ["tip"], ARM.frame("tip"), [ARM.frame("tip")]], ids=repr)
def test_a_frame_is_no_constraint_and_how_to_make_one_of_it_is_said(constraints):
    with refuses("wrong-type", "'tip'"):
        dl.Mechanism(ARM, constraints)


def test_a_joint_is_no_constraint_and_how_to_lock_it_is_said():
    with refuses("wrong-type", "'joint1'"):
        dl.Mechanism(ARM, "joint1")


@pytest.mark.parametrize("constraint", [3, b"tip", dl.Point, None], ids=repr)
def test_what_is_no_constraint_is_refused(constraint):
    with refuses("wrong-type"):
        dl.Mechanism(ARM, [constraint])


def test_what_is_no_model_is_refused():
    with refuses("wrong-type"):
        dl.Mechanism("solo12", [])


def test_ties_of_a_model_file_are_part_of_its_mechanism_unless_left_out():
    tie = Connect("knee", "link0", "link2")
    tied = replace(chain(3), constraints=(tie,))
    assert dl.Mechanism(tied).constraints == (dl.Point("link0", "link2", name="knee"),)
    assert dl.Mechanism(tied, model_constraints=False).m == 0
