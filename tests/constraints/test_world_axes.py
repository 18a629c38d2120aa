"""The world as a frame of constraints, and rows along its axes, against Pinocchio and against mathematics."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

import delassus as dl
import delassus.numpy as dnp
from delassus.compiler.differentiation.derivatives import jvp
from delassus.constrained.rows.references import velocities_asked
from delassus.dynamics.kinematics.manifold import coordinate_rates
from delassus.model.parts import Frame
from differences import jacobian
from in_pinocchio import to_pinocchio
from mechanisms import PROXIMAL, Dense, relative, state, two_bodies
from refusals import refuses

QUADRUPED = dl.load("quadruped")
PLACE = dl.Placement.of(pin.exp3(np.array([0.3, -0.2, 0.5])), (0.1, -0.2, 0.3))
ASIDE = dl.Placement.of(pin.exp3(np.array([-0.4, 0.1, 0.2])), (0.02, 0.03, -0.01))
FOOT, OTHER = "front_left_foot", "hind_right_foot"


def errors(model, constraint, q, time=None):
    given = {} if time is None else {"time": time}
    return dl.constraint_error.python(dl.Mechanism(model, constraint), q, **given)


def rate_of(f, model, q, v, *moving):
    """The derivative of a function of q along a motion, and of the time, where there is one."""
    return jvp(f, (q, *moving), (coordinate_rates(model, q, v), *(np.ones(()) for _ in moving)))[1]


@pytest.mark.parametrize(
    ("by_name", "otherwise"),
    [
        (dl.Point(FOOT, "world", placement2=PLACE), dl.Point(FOOT, position=PLACE.p)),
        (dl.Weld(FOOT, "world", placement2=PLACE), dl.Weld(FOOT, target=PLACE)),
        (dl.Hinge(FOOT, "world", placement2=PLACE, axis="y"), dl.Hinge(FOOT, "wall", axis="y")),
        (dl.Distance(FOOT, "world", placement2=PLACE, length=0.2), dl.Distance(FOOT, "wall", length=0.2)),
    ],
    ids=lambda c: type(c).__name__,
)
def test_the_world_is_a_frame_by_its_name(by_name, otherwise):
    q, v, _ = state(QUADRUPED, seed=3)
    walled = replace(QUADRUPED, frame_list=(*QUADRUPED.frame_list, Frame("wall", -1, PLACE)))
    ours, theirs = dl.Mechanism(walled, by_name), dl.Mechanism(walled, otherwise)
    np.testing.assert_allclose(
        dl.constraint_error.python(ours, q), dl.constraint_error.python(theirs, q), rtol=0, atol=1e-14
    )
    np.testing.assert_array_equal(dl.constraint_jacobian.python(ours, q), dl.constraint_jacobian.python(theirs, q))
    np.testing.assert_array_equal(dl.constraint_bias.python(ours, q, v), dl.constraint_bias.python(theirs, q, v))


def test_what_is_fixed_to_the_world_cannot_be_held_to_it():
    with refuses("immovable"):
        dl.Mechanism(QUADRUPED, dl.Point("world"))


def test_the_error_of_a_vertical_row_is_the_height():
    q, _, _ = state(QUADRUPED)
    height = dl.frame_placement.python(QUADRUPED, q, frame=FOOT)[1][2]
    assert errors(QUADRUPED, dl.Point(FOOT, "world", rows="z", axes="world"), q) == height
    assert errors(QUADRUPED, dl.Weld(FOOT, "world", rows="z", axes="world"), q) == height


UPRIGHT = [
    dl.Point(FOOT, "world", rows="z", axes="world", placement=ASIDE),
    dl.Point(FOOT, OTHER, axes="world", rows="xz", placement=ASIDE, placement2=PLACE),
    dl.Weld(FOOT, "world", axes="world", rows="xz", placement2=PLACE),
]


@pytest.mark.parametrize("constraint", UPRIGHT, ids=lambda c: c.label)
def test_the_rate_of_the_error_is_the_velocity_of_the_row(constraint):
    q, v, _ = state(QUADRUPED, seed=1)
    mechanism = dl.Mechanism(QUADRUPED, constraint)
    assert mechanism.constraints[0].holonomic
    rate = rate_of(lambda q: dl.constraint_error.function(mechanism, q), QUADRUPED, q, v)
    np.testing.assert_allclose(rate, dl.constraint_jacobian.python(mechanism, q) @ v, rtol=0, atol=1e-13)


def test_turns_in_the_worlds_axes_are_the_rate_of_their_error_where_it_vanishes():
    q, v, _ = state(QUADRUPED, seed=2)
    R, p = dl.frame_placement.python(QUADRUPED, q, frame=FOOT)
    mechanism = dl.Mechanism(QUADRUPED, dl.Weld(FOOT, axes="world", target=dl.Placement.of(R, p + 0.3)))
    assert mechanism.constraints[0].holonomic
    rate = rate_of(lambda q: dl.constraint_error.function(mechanism, q), QUADRUPED, q, v)
    np.testing.assert_allclose(rate, dl.constraint_jacobian.python(mechanism, q) @ v, rtol=0, atol=1e-12)


def swinging(t):
    c, s, zero, one = dnp.cos(t), dnp.sin(t), 0.0 * t, 1.0 + 0.0 * t
    R = dnp.stack([dnp.stack([c, -s, zero]), dnp.stack([s, c, zero]), dnp.stack([zero, zero, one])])
    return R, dnp.stack([t * t, s, c])


def led(t):
    return dnp.stack([t * t, dnp.sin(t), 1.0 + t])


@pytest.mark.parametrize(
    "constraint",
    [
        *UPRIGHT,
        dl.Weld(FOOT, OTHER, axes="world", placement2=PLACE),
        dl.Weld(FOOT, axes="world", rows=("z", "rx", "ry")),
        dl.Weld(FOOT, axes="world", target=swinging),
        dl.Point(FOOT, axes="world", position=led),
    ],
    ids=lambda c: f"{type(c).__name__} {c.label} {len(c.rows)}",
)
def test_what_rows_ask_for_is_that_their_velocity_stays(constraint):
    """γ is the derivative of J v less that of the reference, at v̇ = 0: the axes do not turn."""
    q, v, _ = state(QUADRUPED, seed=4)
    mechanism, time = dl.Mechanism(QUADRUPED, constraint), np.array(0.7)

    def velocity(q, t):
        asked = velocities_asked(mechanism, q, t)
        return dl.constraint_jacobian.function(mechanism, q, time=t) @ v - asked

    expected = rate_of(velocity, QUADRUPED, q, v, time)
    found = dl.constraint_bias.python(mechanism, q, v, time=time)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * max(1.0, np.abs(expected).max()))


def in_pinocchio(contacts):
    theirs = to_pinocchio(QUADRUPED)
    models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for kind, name in contacts:
        frame = theirs.frames[theirs.getFrameId(name)]
        models.append(
            pin.RigidConstraintModel(kind, theirs, frame.parentJoint, frame.placement, pin.LOCAL_WORLD_ALIGNED)
        )
        datas.append(models[-1].createData())
    return theirs, models, datas


@pytest.mark.parametrize("kernel", PROXIMAL, ids=lambda k: k.name)
def test_points_in_the_worlds_axes_agree_with_pinocchio(kernel):
    contacts = [(pin.ContactType.CONTACT_3D, FOOT), (pin.ContactType.CONTACT_3D, OTHER)]
    theirs, models, datas = in_pinocchio(contacts)
    mechanism = dl.Mechanism(QUADRUPED, [dl.Point(name, axes="world") for _, name in contacts])
    q, v, tau = state(QUADRUPED, seed=5)
    data, settings = theirs.createData(), pin.ProximalSettings(1e-14, 1e-6, 4)
    pin.initConstraintDynamics(theirs, data, models, datas)
    expected = pin.constraintDynamics(theirs, data, dl.q_to_pinocchio(QUADRUPED, q), v, tau, models, datas, settings)
    a, force = kernel.python(mechanism, q, v, tau, proximal=1e-6, iterations=4)
    assert relative(a, expected) < 1e-8
    assert relative(force, data.lambda_c) < 1e-8


@pytest.mark.parametrize("kernel", PROXIMAL, ids=lambda k: k.name)
def test_a_weld_of_a_foot_that_rests_agrees_with_pinocchio(kernel):
    """Theirs holds the spatial acceleration in these axes as well, which is the classical one of a foot that rests."""
    theirs, models, datas = in_pinocchio([(pin.ContactType.CONTACT_6D, FOOT)])
    mechanism = dl.Mechanism(QUADRUPED, dl.Weld(FOOT, axes="world"))
    q, v, tau = state(QUADRUPED, seed=5)
    J = dl.constraint_jacobian.python(mechanism, q)
    v = v - np.linalg.pinv(J) @ (J @ v)
    data, settings = theirs.createData(), pin.ProximalSettings(1e-14, 1e-6, 10)
    pin.initConstraintDynamics(theirs, data, models, datas)
    expected = pin.constraintDynamics(theirs, data, dl.q_to_pinocchio(QUADRUPED, q), v, tau, models, datas, settings)
    a, force = kernel.python(mechanism, q, v, tau, iterations=6)
    assert relative(a, expected) < 1e-8
    assert relative(force, data.lambda_c) < 1e-8


def pinocchio_system(constraint, chosen, q, v, tau):
    """The dense system of a foot in the world's axes, from Pinocchio's kinematics: rows are rates of its motion."""
    theirs = to_pinocchio(QUADRUPED)
    data, at, x = theirs.createData(), theirs.getFrameId(FOOT), dl.q_to_pinocchio(QUADRUPED, q)
    pin.computeAllTerms(theirs, data, x, v)
    J = pin.computeFrameJacobian(theirs, data, x, at, pin.LOCAL_WORLD_ALIGNED)
    pin.forwardKinematics(theirs, data, x, v, np.zeros(theirs.nv))
    gamma = pin.getFrameClassicalAcceleration(theirs, data, at, pin.LOCAL_WORLD_ALIGNED).vector
    M = np.triu(data.M) + np.triu(data.M, 1).T
    return Dense(M, tau - data.nle, J[chosen], gamma[chosen])


@pytest.mark.parametrize(
    ("constraint", "chosen"),
    [
        (dl.Point(FOOT, rows="z", axes="world"), [2]),
        (dl.Weld(FOOT, axes="world"), [0, 1, 2, 3, 4, 5]),
        (dl.Weld(FOOT, rows=("z", "rx", "ry"), axes="world"), [2, 3, 4]),
    ],
    ids=lambda c: str(getattr(c, "rows", "")),
)
@pytest.mark.parametrize("kernel", PROXIMAL, ids=lambda k: k.name)
def test_a_foot_in_the_worlds_axes_agrees_with_pinocchios_kinematics(kernel, constraint, chosen):
    q, v, tau = state(QUADRUPED, seed=6)
    a, force = kernel.python(dl.Mechanism(QUADRUPED, constraint), q, v, tau, iterations=6)
    expected, forces = pinocchio_system(constraint, chosen, q, v, tau).answer
    assert relative(a, expected) < 1e-8
    assert relative(force, forces) < 1e-8


def test_a_sliding_body_feels_no_friction():
    """A ball on the floor that is thrown along it goes on, and the floor carries its weight alone."""
    model = two_bodies(2.0, 1.0)
    held = dl.Mechanism(model, dl.Point("a", "world", rows="z", axes="world"))
    q, v, _ = state(model, seed=1)
    found = dl.constrained_dynamics(held, q, v, np.zeros(model.nv))
    np.testing.assert_allclose(found.forces["a-world"], [2.0 * 9.81], rtol=1e-10)


def test_derivatives_of_a_sliding_foot_are_those_of_differences():
    model = two_bodies(2.0, 1.0)
    held = dl.Mechanism(
        model,
        [
            dl.Point("a", "world", rows="z", axes="world", placement=ASIDE, position_gain=100.0, velocity_gain=20.0),
            dl.Weld("a", "b", rows=("x", "rx"), axes="world", placement2=PLACE),
        ],
    )
    q, v, tau = state(model, seed=7)
    found = dl.constrained_derivatives(held, q, v, tau)
    by_q = jacobian(lambda d: np.concatenate(dl.prox_pv(held, dl.integrate(model, q, d), v, tau)), model.nv)
    np.testing.assert_allclose(np.concatenate([found[0], found[3]]), by_q, rtol=0, atol=1e-6 * np.abs(by_q).max())


def test_a_hinge_has_axes_of_its_own():
    with refuses("conflicting-arguments"):
        dl.Hinge("a", "b", axes="world")


def test_axes_are_those_of_the_frame_or_of_the_world():
    with refuses("unknown-option", "'frame'", "'world'"):
        dl.Point("a", axes="LOCAL")


@pytest.mark.parametrize("kernel", PROXIMAL, ids=lambda k: k.name)
def test_a_loop_in_the_worlds_axes_moves_as_in_the_frames_and_its_forces_are_turned(kernel):
    model = dl.load("four_bar")
    own, upright = (
        dl.Mechanism(model, dl.Point("coupler_end", "rocker_end", rows="xz", axes=axes), model_constraints=False)
        for axes in ("frame", "world")
    )
    q, v, tau = model.posture("home"), np.array([1.0, -0.5, 0.3]), np.array([0.2, 0.1, -0.4])
    a, force = kernel.python(own, q, v, tau, iterations=6)
    found, turned = kernel.python(upright, q, v, tau, iterations=6)
    R, _ = dl.frame_placement.python(model, q, frame="coupler_end")
    assert relative(found, a) < 1e-8
    assert relative(turned, (R @ [force[0], 0.0, force[1]])[[0, 2]]) < 1e-8
