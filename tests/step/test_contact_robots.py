"""From a robot to a contact problem: gaps, rows, and one step of time, against closed forms and dense algebra."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import delassus as dl
import delassus.numpy as dnp
from delassus.constraints.basis.motions import LinkMotions
from delassus.model.bundled.build import Assembly, ball, box, rod
from delassus.model.generators import random_tree
from delassus.model.joints import Free, Planar, Prismatic, Revolute
from delassus.model.parts import Mimic
from delassus.step.contact.rigid import assemble_contacts
from delassus.step.points.geometry import contact_geometry
from delassus.step.points.parameters import scene_for
from delassus.step.points.response import responding
from refusals import refuses
from stepped import kept_straight

G = 9.81
SIDES = (0.4, 0.3, 0.2)


def free_box(mass: float = 2.0) -> dl.Model:
    a = Assembly("box")
    a.body("box", Free(), None, (0, 0, 0), [box(SIDES, mass)])
    return a.model()


BOX = free_box()
FEET = dl.Contact.foot("box", SIDES[0], SIDES[1], center=(0, 0, -SIDES[2] / 2), friction=0.5)


def two_bodies() -> dl.Model:
    """A plate on an arm, and a ball that is free: bodies that touch each other."""
    a = Assembly("two")
    a.body("arm", Revolute((0, 1, 0)), None, (0, 0, 0.5), [rod((0, 0, 0), (0.5, 0, 0), 1.0)])
    a.body("plate", Revolute((0, 0, 1)), "arm", (0.5, 0, 0), [box((0.3, 0.3, 0.02), 0.7)])
    a.frame("top", "plate", dl.Placement.from_xyz_rpy((0.05, 0.0, 0.01), (0.2, -0.1, 0.4)))
    a.body("ball", Free(), None, (0, 0, 0), [ball(0.1, 0.5)])
    return a.model()


def moved(model: dl.Model, rng: np.random.Generator, size: float = 0.5):
    return dl.integrate.python(model, model.neutral(), size * rng.normal(size=model.nv))


# --- geometry ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "contact",
    [
        replace(FEET, normal=(0.3, -0.2, 1.0), height=0.1),
        dl.Contact("box", corners=[(0.1, 0.2, 0.3)], radius=0.05, normal=(1, 2, -3)),
    ],
    ids=["corners", "ball"],
)
def test_normal_rows_are_the_rates_of_the_gaps(contact):
    rng = np.random.default_rng(0)
    scene, _ = scene_for(BOX, contact, False, False)
    q, v, e = moved(BOX, rng), rng.normal(size=6), 1e-6
    J = contact_geometry.python(scene, q)[1]
    after, before = (contact_geometry.python(scene, dl.integrate.python(BOX, q, s * v))[0] for s in (e, -e))
    np.testing.assert_allclose(J[list(scene.normals)] @ v, (after - before) / (2 * e), atol=1e-8)


def test_rows_between_bodies_are_rates_in_the_frame_of_the_plane():
    model, rng = two_bodies(), np.random.default_rng(1)
    scene, _ = scene_for(model, dl.Contact("ball", "top", radius=0.1), False, False)
    q, v, e = moved(model, rng), rng.normal(size=model.nv), 1e-6

    def seen(q):
        """The ball's centre in the frame, and the rotation of the ball there."""
        (R, p), (_, c) = (dl.frame_placement.python(model, q, frame=f) for f in ("top", "ball"))
        return R.T @ (c - p)

    def turning(q):
        (R, _), (R_b, _) = (dl.frame_placement.python(model, q, frame=f) for f in ("top", "ball"))
        return R.T @ R_b

    plus, minus = (dl.integrate.python(model, q, s * v) for s in (e, -e))
    rate = (seen(plus) - seen(minus)) / (2 * e)
    W = (turning(plus) - turning(minus)) / (2 * e) @ turning(q).T
    w = np.array([W[2, 1], W[0, 2], W[1, 0]])
    gap, J, _, _ = contact_geometry.python(scene, q)
    np.testing.assert_allclose(J @ v, rate + np.cross(w, [0, 0, -0.1]), atol=1e-8)
    np.testing.assert_allclose(gap, seen(q)[2] - 0.1, atol=1e-14)


def test_velocity_products_are_rates_of_the_rows():
    model, rng = two_bodies(), np.random.default_rng(2)
    contact = dl.Contact("ball", "top", radius=0.1, torsional=0.1, rolling=0.1)
    scene, _ = scene_for(model, contact, False, False)
    spot = scene.contact_points[0]
    q, v, a, e = moved(model, rng), rng.normal(size=model.nv), rng.normal(size=model.nv), 1e-6

    def rows(t):
        q_t = dl.integrate.python(model, q, t * v)
        return contact_geometry.python(scene, q_t)[1] @ (v + t * a)

    from delassus.constrained.rows.jacobian import link_values
    from delassus.constraints.mechanism.rows import rows_in

    motions = LinkMotions.of(model, q, v)
    found = link_values(rows_in(scene.row_mechanism, motions), motions, a) + spot.velocity_product(motions)
    np.testing.assert_allclose(found, (rows(e) - rows(-e)) / (2 * e), atol=1e-7)


def test_contact_kinematics_are_those_of_the_points():
    q, v = BOX.neutral(), np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    q[:3] = 1.0, 2.0, 0.5
    found = dl.contact_kinematics(BOX, q, contacts=FEET, height=0.1)
    np.testing.assert_allclose(found.gap, 0.3)
    np.testing.assert_allclose(found.place[0], [1.2, 2.15, 0.4])
    np.testing.assert_allclose(found.axes, np.broadcast_to(np.eye(3), (4, 3, 3)))
    np.testing.assert_allclose((found.jacobian @ v)[:3], [-0.15, 0.2, 0.0], atol=1e-12)


def test_forces_between_bodies_leave_their_momentum_alone():
    a = Assembly("pair")
    for name in ("ball", "plate"):
        a.body(name, Free(), None, (0, 0, 0), [box((0.3, 0.2, 0.1), 0.7)])
    model, rng = a.model(), np.random.default_rng(8)
    contact = dl.Contact("ball", "plate", corners=[(0.1, 0.2, 0.3)], radius=0.1, torsional=0.1, rolling=0.1)
    scene, _ = scene_for(model, contact, False, False)
    q = moved(model, rng)
    jump = responding(scene.row_mechanism, q, None)(rng.normal(size=6))
    assert abs(jump).max() > 0.1
    np.testing.assert_allclose(dl.centroidal_momentum.python(model, q, jump), 0.0, atol=1e-12)


def test_the_problem_is_the_dense_one():
    model, rng = two_bodies(), np.random.default_rng(4)
    contacts = [dl.Contact("ball", "top", radius=0.1), dl.Contact("plate", corners=[(0.1, 0.1, 0), (-0.1, 0, 0)])]
    scene, _ = scene_for(model, contacts, False, False)
    q, v, tau = moved(model, rng), rng.normal(size=model.nv), rng.normal(size=model.nv)
    J = contact_geometry.python(scene, q)[1]
    found, _, _, _, free = assemble_contacts.python(scene, q, v, tau, 1e-3)
    M = dl.crba.python(model, q)
    np.testing.assert_allclose(found, J @ np.linalg.solve(M, J.T), atol=1e-12)
    a = np.linalg.solve(M, tau - dl.bias_torques.python(model, q, v))
    np.testing.assert_allclose(free, kept_straight(v, a, 1e-3, at=2)[0], atol=1e-12)


# --- one step ---------------------------------------------------------------------------------------------------------


def slopes(angle, turn):
    """The normal of a slope that falls along a direction, and a box that lies on it, turned about the normal."""
    n = np.array([math.sin(angle) * math.cos(turn), math.sin(angle) * math.sin(turn), math.cos(angle)])
    axis = np.array([-math.sin(turn), math.cos(turn), 0.0])
    quaternion = np.append(math.sin(angle / 2) * axis, math.cos(angle / 2))
    return n, np.concatenate([n * SIDES[2] / 2, quaternion])


def test_a_box_on_a_slope_sticks_below_the_angle_of_friction_and_slides_above():
    angles, turns = np.radians(np.linspace(2.0, 47.0, 10)), np.linspace(0.0, 6.0, 5)
    states = [[slopes(angle, turn) for turn in turns] for angle in angles]
    normal = np.array([[n for n, _ in row] for row in states])[:, :, None, :]
    q = np.array([[place for _, place in row] for row in states])
    h, none = 1e-3, np.zeros(6)
    step = dl.contact_dynamics(BOX, q, none, none, contacts=FEET, time_step=h, normal=normal)
    assert np.all(step.status == dl.Status.CONVERGED)
    speed = np.linalg.norm(step.velocity[..., :3], axis=-1)
    slide = h * G * (np.sin(angles) - 0.5 * np.cos(angles))
    np.testing.assert_allclose(speed, np.maximum(slide, 0.0)[:, None] * np.ones(5), atol=1e-8 * h * G)
    np.testing.assert_allclose(step.velocity[..., 3:], 0.0, atol=1e-7 * h * G)
    np.testing.assert_allclose(step.impulse[..., 2::3].sum(-1), 2.0 * G * h * np.cos(angles)[:, None] * np.ones(5))
    assert np.all(step.modes[angles < math.atan(0.5)] != "sliding")


def test_other_tangents_change_nothing_but_the_components():
    n, q = slopes(0.7, 0.4)
    straight = dl.contact_problem(BOX, q, np.zeros(6), np.zeros(6), contacts=FEET, time_step=1e-3, normal=n)
    first = straight.solve()
    for angle in (0.3, 1.9, 4.0):
        c, s = math.cos(angle), math.sin(angle)
        T = np.kron(np.eye(4), np.array([[c, s, 0], [-s, c, 0], [0, 0, 1.0]]))
        turned = dl.ContactProblem(T @ straight.G @ T.T, T @ straight.g, friction=0.5).solve()
        np.testing.assert_allclose(T.T @ turned.velocity, first.velocity, atol=1e-9)


def test_a_foot_given_by_its_own_axes_has_the_same_motion():
    # Without a spin: else the motion depends on how four corners share the load, which nothing says.
    q, v = BOX.neutral(), np.array([0.3, 0.1, -0.2, 0.0, 0.0, 0.0])
    q[2] = 0.1
    plain = dl.contact_dynamics(BOX, q, v, np.zeros(6), contacts=FEET, time_step=1e-3)
    other = dl.contact_dynamics(BOX, q, v, np.zeros(6), contacts=replace(FEET, tangent=(0.2, 1.0, 0.3)), time_step=1e-3)
    np.testing.assert_allclose(plain.velocity, other.velocity, atol=1e-7)


def test_a_point_may_close_its_gap_and_not_more():
    q, v, h = BOX.neutral(), np.zeros(6), 1e-2
    q[2], v[2] = 0.1 + 0.004, -1.0
    step = dl.contact_dynamics(BOX, q, v, np.zeros(6), contacts=FEET, time_step=h)
    np.testing.assert_allclose(step.gap, 0.004)
    np.testing.assert_allclose(step.velocity[2], -0.4, atol=1e-8)
    far = dl.contact_dynamics(BOX, q + np.eye(7)[2], v, np.zeros(6), contacts=FEET, time_step=h)
    np.testing.assert_allclose(far.velocity[2], -1.0 - G * h, atol=1e-12)
    np.testing.assert_array_equal(far.impulse, 0.0)


def test_deep_penetration_does_not_throw_a_body_out():
    q, h = BOX.neutral(), 1e-3
    q[2] = -5.0
    step = dl.contact_dynamics(BOX, q, np.zeros(6), np.zeros(6), contacts=FEET, time_step=h)
    np.testing.assert_allclose(step.velocity, 0.0, atol=1e-9)
    back = dl.contact_dynamics(BOX, q, np.zeros(6), np.zeros(6), contacts=FEET, time_step=h, stabilization=0.1)
    np.testing.assert_allclose(back.velocity[2], 0.1 * 5.1 / h, rtol=1e-8)


def test_a_strike_throws_back_by_the_coefficient_of_restitution():
    q, v, h = BOX.neutral(), np.zeros((2, 6)), 1e-3
    q[2], v[:, 2] = 0.1005, (-1.0, -0.001)
    step = dl.contact_dynamics(BOX, q, v, np.zeros(6), contacts=FEET, time_step=h, restitution=0.6)
    before, after = (v[0, 2] ** 2 - G * h * v[0, 2]) / 2, (step.velocity[0, 2] ** 2 - G * h * step.velocity[0, 2]) / 2
    after += G * (0.0005 + h * step.velocity[0, 2])
    rounding = G * G * h * h / 8  # ½ (v - ½ g h)² + g z is what a free fall keeps in steps of h
    np.testing.assert_allclose(after + rounding, 0.36 * (before + rounding + G * 0.0005), rtol=1e-8)
    # too slow to strike: it comes to rest, once the gap is closed
    q[2] = 0.1
    slow = dl.contact_dynamics(BOX, q, v[1], np.zeros(6), contacts=FEET, time_step=h, restitution=0.6)
    np.testing.assert_allclose(slow.velocity, 0.0, atol=1e-9)


def test_a_compliant_contact_is_a_spring_at_the_end_of_the_step():
    q, v, h, C = BOX.neutral(), np.zeros(6), 1e-2, 1e-4
    q[2], v[2] = 0.1 - 0.002, -0.1
    step = dl.contact_dynamics(BOX, q, v, np.zeros(6), contacts=FEET, time_step=h, compliance=C)
    depth = 0.002 - h * step.velocity[2]
    np.testing.assert_allclose(step.impulse[2::3].sum() / h, 4 * depth / C, rtol=1e-7)
    np.testing.assert_allclose(2.0 * (step.velocity[2] + 0.1) / h, 4 * depth / C - 2.0 * G, rtol=1e-7)


def test_closed_contacts_never_add_energy_and_obey_the_laws():
    rng = np.random.default_rng(9)
    q = np.stack([moved(BOX, rng, 0.3) for _ in range(64)])
    q[:, 2] = rng.uniform(-0.2, 0.0, 64)
    v, friction = rng.normal(size=(64, 6)), rng.uniform(0.0, 1.5, (64, 4))
    step = dl.contact_dynamics(BOX, q, v, np.zeros(6), contacts=FEET, time_step=1e-3, friction=friction)
    closed = np.all(step.gap <= 0.0, -1)
    assert closed.sum() > 30
    inertia = np.array(BOX.joints[0].inertia.rotational)
    free, _ = kept_straight(v, dl.aba(BOX, q, v, np.zeros(6)), 1e-3, inertia=inertia)
    before, after = (dl.kinetic_energy(BOX, q, x)[closed] for x in (free, step.velocity))
    assert np.all(after <= before * (1 + 1e-9))
    assert np.all(step.status == dl.Status.CONVERGED)
    speed = abs(step.problem.g).max(-1)
    assert np.all(step.residual <= 1e-8 * speed)
    assert np.all(step.solution.primal_violation <= 1e-8 * speed)
    assert np.all(step.solution.dual_violation <= 2e-8 * speed)


@pytest.mark.parametrize("pyramid", ["inner", "outer"])
def test_pyramids_are_those_of_the_problem(pyramid):
    q, v = BOX.neutral(), np.array([1.0, 0.3, -0.5, 0.0, 0.0, 0.0])
    q[2] = 0.1
    point = dl.Contact("box", corners=[(0.0, 0.0, -0.1)], friction=0.5)
    options = {"law": "lcp", "faces": 6, "pyramid": pyramid}
    step = dl.contact_dynamics(BOX, q, v, np.zeros(6), contacts=point, time_step=1e-3, **options)
    assert step.status == dl.Status.CONVERGED
    np.testing.assert_allclose(step.impulse, step.problem.solve(**options).impulse, atol=1e-9)
    share = np.hypot(*step.impulse[:2]) / (0.5 * step.impulse[2])
    assert math.cos(math.pi / 6) - 1e-9 <= share <= 1.0 + 1e-9 if pyramid == "inner" else share >= 1.0 - 1e-9
    assert step.solution.dissipation[0] > 0.0


def test_joints_stop_at_their_limits_and_dry_friction_holds_them():
    a = Assembly("slides")
    a.body("low", Prismatic((0, 0, 1)), None, (0, 0, 0), [ball(0.1, 2.0)], limits=(-1.0, 1.0))
    a.body("high", Prismatic((0, 0, 1)), None, (0, 0, 0), [ball(0.1, 3.0)], limits=(-1.0, 1.0))
    a.body("stuck", Prismatic((0, 0, 1)), None, (0, 0, 0), [ball(0.1, 1.0)])
    model = a.model()
    joints = list(model.joints)
    joints[2] = replace(joints[2], friction=(8.0,))
    model, h = replace(model, joints=tuple(joints)), 1e-2
    q, v, tau = np.array([-1.0, 0.995, 0.0]), np.array([0.0, 2.0, 0.0]), np.zeros(3)
    step = dl.contact_dynamics(model, q, v, tau, time_step=h, limits=True, joint_friction=True)
    np.testing.assert_allclose(step.velocity, [0.0, 0.5, -(G - 8.0) * h], atol=1e-9)
    np.testing.assert_allclose(step.impulse, [2.0 * G * h, 3.0 * (1.5 - G * h), 8.0 * h], atol=1e-9)
    held = dl.contact_dynamics(model, q, v, tau + np.array([0, 0, 5.0]), time_step=h, limits=True, joint_friction=True)
    np.testing.assert_allclose(held.velocity[2], 0.0, atol=1e-9)


def test_spinning_is_braked_by_torsional_friction():
    a = Assembly("top")
    a.body("top", Free(), None, (0, 0, 0), [ball(0.1, 1.0)])
    model, h = a.model(), 1e-3
    q, v = model.neutral(), np.zeros(6)
    q[2], v[5] = 0.1, 10.0
    contact = dl.Contact("top", radius=0.1, friction=0.5, torsional=0.02)
    step = dl.contact_dynamics(model, q, v, np.zeros(6), contacts=contact, time_step=h)
    brake = 0.02 * 1.0 * G * h / (0.4 * 0.1**2)
    np.testing.assert_allclose(step.velocity[5], 10.0 - brake, rtol=1e-9)


# --- many bodies, loops -----------------------------------------------------------------------------------------------


def test_in_a_stack_of_cubes_each_interface_carries_all_that_is_above():
    n, mass, h = 3, 1.5, 1e-3
    a = Assembly("stack")
    for k in range(n):
        a.body(f"cube{k}", Free(), None, (0, 0, k + 0.5), [box((1, 1, 1), mass)])
        a.frame(f"top{k}", f"cube{k}", (0, 0, 0.5))
    model = a.model()
    on = ["world", *(f"top{k}" for k in range(n - 1))]
    contacts = [dl.Contact.foot(f"cube{k}", 1, 1, center=(0, 0, -0.5), against=on[k]) for k in range(n)]
    problem = dl.contact_problem(model, model.neutral(), *np.zeros((2, model.nv)), contacts=contacts, time_step=h)
    found = problem.solve()
    carried = found.impulse.reshape(n, 4, 3)[:, :, 2].sum(1)
    np.testing.assert_allclose(carried, mass * G * h * np.arange(n, 0, -1), rtol=1e-9)


def four_bar_on_wheels() -> dl.Model:
    """A four-bar on a base that moves in its plane."""
    a = Assembly("cart")
    a.body("cart", Planar((0, 1, 0)), None, (0, 0, 0), [box((0.5, 0.1, 0.1), 1.0)])
    return a.model().attach(dl.load("four_bar"), "cart")


@pytest.mark.parametrize("name", ["fixed", "carried"])
def test_loop_forces_and_impulses_are_found_together(name):
    model = dl.load("four_bar") if name == "fixed" else four_bar_on_wheels()
    loop = dl.Mechanism(model)
    rng = np.random.default_rng(5)
    q, h = np.append(np.zeros(model.nq - 3), dl.load("four_bar").posture("home")), 1e-3
    frame = model.frames("*")[-1].name
    _, p = dl.frame_placement.python(model, q, frame=frame)
    foot = dl.Contact(frame, friction=0.3, height=float(p[2]))
    J = contact_geometry.python(scene_for(loop, foot, False, False)[0], q)[1]
    ways = np.linalg.svd(J[3:])[2][np.linalg.matrix_rank(J[3:]) :]  # in which the loop can move
    v = (-1.0 * J[2] + 2.0 * J[0]) @ ways.T @ ways
    v = -v if J[2] @ v > 0.0 else v
    tau = rng.normal(size=model.nv)
    step = dl.contact_dynamics(loop, q, v, tau, contacts=foot, time_step=h)
    assert step.status == dl.Status.CONVERGED
    # Dense: the modes are those of the answer, impulses follow from them by linear algebra.
    M = dl.crba.python(model, q)
    free = v + h * np.linalg.solve(M, tau - dl.bias_torques.python(model, q, v))
    velocity = step.velocity.copy()
    if name == "carried":  # what flies keeps its direction: velocities of the cart are in the axes of the beginning
        free[:2] += h * v[2] * np.array([-v[1], v[0]])
        c, s = np.cos(h * velocity[2]), np.sin(h * velocity[2])
        velocity[:2] = np.array([[c, -s], [s, c]]) @ velocity[:2]
    slip = (J @ velocity)[:2]
    if name == "fixed":  # its one way to move is blocked
        E, held = J.T, J
    else:
        assert np.hypot(*slip) > 0.1
        push = np.append(-0.3 * slip / np.hypot(*slip), 1.0) @ J[:3]
        E, held = np.column_stack([push, J[3:].T]), J[2:]
    unknown = np.linalg.lstsq(held @ np.linalg.solve(M, E), -held @ free, rcond=1e-10)[0]
    np.testing.assert_allclose(velocity, free + np.linalg.solve(M, E @ unknown), atol=1e-7)
    np.testing.assert_allclose(M @ (velocity - free), J.T @ step.impulse, atol=1e-9)
    assert step.impulse[2] > 0.0
    assert np.hypot(*step.impulse[:2]) <= 0.3 * step.impulse[2] * (1 + 1e-9)


def test_a_ball_on_a_lift_pushes_with_its_weight_and_its_acceleration():
    a = Assembly("lift")
    a.body("lift", Prismatic((0, 0, 1)), None, (0, 0, 0), [box((1, 1, 0.1), 3.0)])
    a.frame("floor", "lift", (0, 0, 0.05))
    a.body("ball", Free(), None, (0, 0, 0.15), [ball(0.1, 0.5)])
    model, h = a.model(), 1e-2
    tau = np.append(50.0, np.zeros(6))
    contact = dl.Contact("ball", "floor", radius=0.1, friction=0.4)
    step = dl.contact_dynamics(model, model.neutral(), np.zeros(7), tau, contacts=contact, time_step=h)
    rising = 50.0 / 3.5 - G
    np.testing.assert_allclose(step.velocity[[0, 3]], h * rising, rtol=1e-9)
    np.testing.assert_allclose(step.impulse, [0.0, 0.0, 0.5 * (G + rising) * h], atol=1e-10)


def test_a_share_of_the_errors_of_loops_is_taken_back():
    model = dl.load("four_bar")
    loop, q, h = dl.Mechanism(model), model.posture("home") + np.array([0.01, 0.0, -0.02]), 1e-3
    step = dl.contact_dynamics(loop, q, np.zeros(3), np.zeros(3), time_step=h, stabilization=0.2)
    J, e = dl.constraint_jacobian.python(loop, q), dl.constraint_error.python(loop, q)
    np.testing.assert_allclose(J @ step.velocity, -0.2 * e / h, atol=1e-7 * abs(e).max() / h)


def test_references_that_move_take_joints_along():
    a = Assembly("slide")
    a.body("slide", Prismatic((1, 0, 0)), None, (0, 0, 0), [ball(0.1, 1.0)])
    model = a.model()
    held = dl.Mechanism(model, dl.JointLock("slide_joint", position=lambda t: dnp.stack([dnp.sin(2.0 * t)])))
    step = dl.contact_dynamics(held, [0.0], [5.0], [0.0], time_step=1e-3, time=0.4)
    np.testing.assert_allclose(step.velocity, 2.0 * math.cos(0.8), rtol=1e-9)


def test_constraints_with_gains_pull_as_in_constrained_dynamics():
    model = dl.load("four_bar")
    tie = model.constraints[0]
    loop = dl.Mechanism(
        replace(model, constraints=()),
        dl.Point(tie.frame1, tie.frame2, rows="xz", position_gain=100.0, velocity_gain=20.0),
    )
    rng = np.random.default_rng(6)
    q, v, tau = model.posture("home") + 0.1 * rng.normal(size=3), rng.normal(size=3), rng.normal(size=3)
    step = dl.contact_dynamics(loop, q, v, tau, time_step=1e-3)
    exact = dl.constrained_dynamics(loop, q, v, tau)
    np.testing.assert_allclose((step.velocity - v) / 1e-3, exact.acceleration, rtol=1e-6)
    np.testing.assert_allclose(step.impulse / 1e-3, exact.force, rtol=1e-6)


# --- batches, bad input -----------------------------------------------------------------------------------------------


def test_a_state_in_a_batch_is_the_state_alone_to_the_bit_and_nan_stays_where_it_is():
    rng = np.random.default_rng(7)
    q = np.stack([moved(BOX, rng, 0.2) for _ in range(5)])
    q[:, 2] = rng.uniform(-0.05, 0.12, 5)
    v, friction = rng.normal(size=(5, 6)), rng.uniform(0, 1, (5, 4))
    q[3, 4] = np.nan
    options = {"contacts": FEET, "time_step": 1e-3}
    batch = dl.contact_dynamics(BOX, q, v, np.zeros(6), friction=friction, **options)
    assert list(batch.status == dl.Status.NOT_FINITE) == [False, False, False, True, False]
    assert "not a finite number" in batch.describe()
    for k in (0, 1, 2, 4):
        alone = dl.contact_dynamics(BOX, q[k], v[k], np.zeros(6), friction=friction[k], **options)
        np.testing.assert_array_equal(alone.velocity, batch.velocity[k])
        np.testing.assert_array_equal(alone.impulse, batch.impulse[k])
    np.testing.assert_array_equal(batch.problem.solve().impulse[0], batch.impulse[0])


def test_bodies_that_cannot_move_against_each_other_have_no_contact():
    model = BOX.with_frame("lid", "box", dl.Placement.of(p=(0, 0, 0.1)))
    with refuses("immovable"):
        dl.contact_dynamics(model, BOX.neutral(), *np.zeros((2, 6)), contacts=dl.Contact("box", "lid"), time_step=1e-3)


def test_contacts_between_welded_bodies_share_their_load_with_the_weld():
    a = Assembly("welded")
    for k in range(2):
        a.body(f"cube{k}", Free(), None, (0, 0, k + 0.5), [box((1, 1, 1), 1.0)])
    a.frame("top", "cube0", (0, 0, 0.5))
    a.frame("bottom", "cube1", (0, 0, -0.5))
    a.weld("glue", "top", "bottom")
    model = a.model()
    contacts = [dl.Contact("bottom", "top"), dl.Contact.foot("cube0", 1, 1, center=(0, 0, -0.5))]
    problem = dl.contact_problem(model, model.neutral(), *np.zeros((2, 12)), contacts=contacts, time_step=1e-3)
    found = problem.solve()
    assert found.status == dl.Status.CONVERGED
    np.testing.assert_allclose(found.impulse[[5, 8, 11, 14]].sum(), 2.0 * G * 1e-3, rtol=1e-8)
    np.testing.assert_allclose(found.impulse[2] - found.impulse[17], 1.0 * G * 1e-3, rtol=1e-8)


def test_a_quadruped_at_rest_pushes_with_its_weight():
    model = dl.load("quadruped")
    q = model.posture("home")
    feet = [f.name for f in model.frames("*_foot")]
    low = [dl.frame_placement.python(model, q, frame=f)[1][2] for f in feet]
    h = 1e-3
    tau = dl.gravity_torques(model, q)
    J = np.concatenate([dl.frame_jacobian(model, q, frame=f, reference="LOCAL_WORLD_ALIGNED")[:3] for f in feet])
    push = np.tile([0.0, 0.0, model.mass * G / 4], 4)
    tau = tau - J.T @ push
    tau[:6] = 0.0
    contacts = [dl.Contact(f, friction=0.8, height=float(z)) for f, z in zip(feet, low, strict=True)]
    step = dl.contact_dynamics(model, q, np.zeros(18), tau, contacts=contacts, time_step=h)
    assert step.status == dl.Status.CONVERGED
    np.testing.assert_allclose(step.impulse[2::3].sum(), model.mass * G * h, rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"friction": -0.1}, ("friction-out-of-range",)),
        ({"restitution": 1.5}, ("restitution-out-of-range",)),
        ({"corners": [(1, 2)]}, ("wrong-shape", "points")),
        ({"normal": (0, 0, 0)}, ("zero-direction",)),
        ({"tangent": (0, 0, 2)}, ("zero-direction",)),
        ({"rolling": 0.1}, ("conflicting-arguments", "torsional")),
        ({"against": "top", "height": 0.2}, ("conflicting-arguments",)),
        ({"friction": "much"}, ("not-a-number",)),
    ],
)
def test_contacts_that_mean_nothing_are_refused(options, refusal):
    with refuses(*refusal):
        dl.Contact("box", **options)


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"time_step": 0.0}, ("time-step-out-of-range",)),
        ({"friction": [0.1, 0.2]}, ("wrong-shape",)),
        ({"stabilization": 2.0}, ("out-of-range", "stabilization")),
        ({"law": "magic"}, ("unknown-law",)),
        ({"normal": np.zeros((2, 3))}, ("wrong-shape",)),
        ({"start": np.zeros(3)}, ("wrong-shape", "12")),
        ({"torsional": 0.1}, ("conflicting-arguments", "torsional")),
    ],
)
def test_numbers_that_do_not_fit_are_refused(options, refusal):
    given = {"contacts": FEET, "time_step": 1e-3} | options
    with refuses(*refusal):
        dl.contact_dynamics(BOX, BOX.neutral(), *np.zeros((2, 6)), **given)


def test_without_contacts_a_step_is_free():
    q, v = BOX.neutral(), np.arange(6.0)
    step = dl.contact_dynamics(BOX, q, v, np.zeros(6), time_step=1e-2)
    inertia = np.array(BOX.joints[0].inertia.rotational)
    expected = kept_straight(v, dl.aba(BOX, q, v, np.zeros(6)), 1e-2, inertia=inertia)[1]
    np.testing.assert_allclose(step.velocity, expected, atol=1e-5)  # a step of second order, and Euler's equations
    np.testing.assert_allclose(step.q[:3], q[:3] + 1e-2 * (v[:3] - [0.0, 0.0, G * 1e-2]))
    assert step.impulse.shape == (0,)
    still = dl.contact_dynamics(BOX, q, v, np.zeros(6), time_step=None)
    np.testing.assert_allclose(still.acceleration, dl.aba(BOX, q, v, np.zeros(6)))


def test_joints_that_mimic_others_feel_contacts_through_them():
    a = Assembly("gripper")
    for side, y in (("left", 1.0), ("right", -1.0)):
        a.body(side, Prismatic((0, 0, y)), None, (0, y, 0), [ball(0.1, 1.0)])
    model = a.model()
    joints = (model.joints[0], replace(model.joints[1], mimic=Mimic(0, ratio=1.0)))
    model, h = replace(model, joints=joints), 1e-2
    # Gravity pulls both fingers equally, so that the pair stays; a push lifts the left one and lowers the right one.
    found = dl.contact_dynamics(model, [0.0], [-1.0], [0.0], contacts=dl.Contact("left", friction=0.0), time_step=h)
    np.testing.assert_allclose(found.velocity, 0.0, atol=1e-9)
    np.testing.assert_allclose(found.impulse[2], 2.0, rtol=1e-9)


@settings(max_examples=20)
@given(st.integers(2, 6), st.integers(0, 1000))
def test_rows_and_responses_of_any_tree_are_the_dense_ones(n, seed):
    model, rng = random_tree(n, seed), np.random.default_rng(seed)
    links = [f"link{i}" for i in rng.permutation(n)[:2]]
    point = {"corners": [rng.normal(size=3)], "radius": float(rng.uniform(0, 0.3)), "torsional": 0.1, "rolling": 0.1}
    contacts = [dl.Contact(*links, **point), dl.Contact(links[0], normal=rng.normal(size=3), height=0.3, **point)]
    scene, _ = scene_for(model, contacts, False, False)
    q, v, e = rng.normal(size=model.nq), rng.normal(size=model.nv), 1e-6
    J = contact_geometry.python(scene, q)[1]
    after, before = (contact_geometry.python(scene, q + s * v)[0] for s in (e, -e))
    np.testing.assert_allclose(J[list(scene.normals)] @ v, (after - before) / (2 * e), atol=1e-7)
    M, x = dl.crba.python(model, q), rng.normal(size=scene.m)
    dense = J @ np.linalg.solve(M, J.T)
    found = assemble_contacts.python(scene, q, v, v, 1e-3)[0]
    np.testing.assert_allclose(found, dense, atol=1e-9 * abs(dense).max())
    answer = responding(scene.row_mechanism, q, None)(x)
    wanted = np.linalg.solve(M, J.T @ x)
    np.testing.assert_allclose(answer, wanted, atol=1e-9 * abs(wanted).max())


def test_parameters_of_the_model_are_those_of_each_state():
    model = BOX.parametric("gravity")
    q = BOX.neutral()
    q[2] = 0.1
    gravity = np.array([[0, 0, -9.81], [0, 0, -1.62]])
    step = dl.contact_dynamics(
        dl.Mechanism(model), q, *np.zeros((2, 6)), contacts=FEET, time_step=1e-3, parameters=gravity
    )
    np.testing.assert_allclose(step.impulse[:, 2::3].sum(-1), 2.0 * 1e-3 * np.array([9.81, 1.62]), rtol=1e-9)


@pytest.mark.parametrize("name", ["height", "restitution", "compliance", "stabilization"])
def test_a_number_of_contacts_that_is_none_marks_the_state(name):
    robot = dl.load("pendulum")
    contact = dl.Contact(robot.frames("*")[-1], height=-10.0)
    rest = np.zeros((2, robot.nv))
    given = {name: np.array([[np.nan], [0.0]]) if name != "stabilization" else np.array([np.nan, 0.5])}
    step = dl.contact_dynamics(robot, np.zeros((2, robot.nq)), rest, rest, contacts=[contact], time_step=1e-3, **given)
    assert step.status[0] == dl.Status.NOT_FINITE
    assert step.status[1] == dl.Status.CONVERGED


def test_pyramids_of_a_step_are_judged_by_their_own_law():
    robot = dl.load("quadruped")
    feet = [dl.Contact(foot, friction=0.3, radius=0.02) for foot in robot.frames("front_*_foot")]
    v = 0.1 * np.random.default_rng(0).normal(size=robot.nv)
    step = dl.contact_dynamics(
        robot, robot.posture("home"), v, 0.0 * v, contacts=feet, time_step=1e-3, law="lcp", pyramid="outer"
    )
    assert step.solution.primal_violation < 1e-12
