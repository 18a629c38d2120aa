"""The compliant scheme: one step for springs, dampers and rigid rows, against closed forms and stiff solvers."""

from dataclasses import replace
from itertools import pairwise

import mujoco
import numpy as np
import pytest
import scipy.linalg
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import delassus as dl
from delassus.constrained.solvers.status import Status
from delassus.model.bundled.build import Assembly, Free, Prismatic, Revolute, ball, box, rod
from delassus.model.parts import Mimic
from delassus.step.compliant.arguments import StepError
from delassus.step.compliant.forces import Servo
from delassus.step.compliant.inputs import RowSprings, Scheme
from delassus.step.compliant.kernel import compliant_kernel
from delassus.step.points.parameters import scene_for
from refusals import refuses
from stepped import G, governor, length, masses, on_rod, run, slider, sprung

step = dl.stepping.compliant_step
BLENDS = [(1.0, 1.0), (0.5, 0.5), (0.7, 0.2), (0.0, 1.0), (1.0, 0.0), (0.0, 0.0)]
shares = st.floats(0.0, 1.0)


def one_step(model, alpha, beta, h, **options):
    """The matrix (2, 2) that takes (q, v) of a slider to those after a step."""
    q, v = np.eye(2)[:, :1], np.eye(2)[:, 1:]
    found = step(model, q, v, np.zeros((2, 1)), time_step=h, alpha=alpha, beta=beta, **options)
    return np.concatenate([found.q, found.v], 1).T


# --- the equations ----------------------------------------------------------------------------------------------------


@given(shares, shares, st.floats(1e-4, 1.0))
@settings(max_examples=40, deadline=None)
def test_the_step_solves_the_equations_of_the_scheme(alpha, beta, h):
    M, K, D, q, v, tau = 2.0, 50.0, 0.3, 0.3, 0.7, 1.1
    found = step(slider(M, K, D), [q], [v], [tau], time_step=h, alpha=alpha, beta=beta)
    after = found.system_velocity[0]
    terms = q + h * (abs((1 - beta) * v) + abs(beta * after))
    np.testing.assert_allclose(found.q[0], q + h * ((1 - beta) * v + beta * after), rtol=0.0, atol=1e-14 * terms)
    force = (1 - alpha) * (-K * q - D * v) + alpha * (-K * found.q[0] - D * after) + tau
    np.testing.assert_allclose(M * (after - v), h * force, rtol=1e-10, atol=1e-12 * (1 + h * K))


@pytest.mark.parametrize("blend", BLENDS)
def test_a_spring_is_the_same_in_the_joint_and_as_an_elastic_row(blend):
    inside = one_step(slider(2.0, 50.0, 0.3), *blend, 0.1)
    as_row = one_step(sprung(2.0), *blend, 0.1, compliance=1 / 50.0, damping=0.3)
    np.testing.assert_allclose(as_row, inside, atol=1e-12)


def test_a_damper_without_a_spring_is_a_row_of_infinite_compliance():
    inside = one_step(slider(2.0, 0.0, 30.0), 0.8, 0.6, 0.1)
    as_row = one_step(sprung(2.0), 0.8, 0.6, 0.1, compliance=np.inf, damping=30.0)
    np.testing.assert_allclose(as_row, inside, atol=1e-13)


def test_a_servo_is_a_spring_at_its_target():
    found = step(slider(2.0), [0.3], [0.7], [0.0], time_step=0.1, servo_stiffness=50.0, servo_damping=0.3,
                 servo_target=[0.0])  # fmt: skip
    own = step(slider(2.0, 50.0, 0.3), [0.3], [0.7], [0.0], time_step=0.1)
    np.testing.assert_allclose([found.q, found.v], [own.q, own.v], rtol=1e-14)


# --- what α and β do --------------------------------------------------------------------------------------------------


@given(shares, shares, st.floats(1e-3, 1e3))
@settings(max_examples=60, deadline=None)
def test_an_oscillator_shrinks_by_what_the_blends_say(alpha, beta, theta):
    A = one_step(slider(1.0, theta**2), alpha, beta, 1.0)
    expected = (1 + (1 - alpha) * (1 - beta) * theta**2) / (1 + alpha * beta * theta**2)
    np.testing.assert_allclose(np.linalg.det(A), expected, rtol=1e-9, atol=1e-9 * theta**2)


@pytest.mark.parametrize("blend", BLENDS)
def test_the_damping_ratio_is_half_of_alpha_plus_beta_minus_one_times_the_phase_of_a_step(blend):
    theta = 1e-3
    root = np.linalg.eigvals(one_step(slider(1.0, theta**2), *blend, 1.0))[0]
    ratio = -np.log(abs(root)) / abs(np.angle(root))
    np.testing.assert_allclose(ratio, 0.5 * (sum(blend) - 1.0) * theta, atol=1e-8)


@pytest.mark.parametrize("blend", [(1.0, 1.0), (0.7, 0.7), (1.0, 0.5), (0.5, 0.5), (0.0, 1.0)])
def test_the_order_is_two_for_one_half_and_one_half_and_else_one(blend):
    exact = scipy.linalg.expm(np.array([[0.0, 1.0], [-9.0, -0.6]])) @ [1.0, 0.5]
    model = slider(1.0, 9.0, 0.6)
    errors = [
        np.abs(np.linalg.matrix_power(one_step(model, *blend, 1.0 / n), n) @ [1.0, 0.5] - exact).max()
        for n in (100, 200, 400)
    ]
    order = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(order, 2.0 if blend == (0.5, 0.5) else 1.0, atol=0.12)


def energy(model, q, v):
    return np.array([dl.kinetic_energy(model, *x) + dl.spring_energy(model, x[0]) for x in zip(q, v, strict=True)])


def test_the_middle_conserves_the_energy_of_springs_and_the_end_dissipates_it():
    model = slider(2.0, 500.0)
    kept, lost = (energy(model, *run(model, [0.3], [1.0], 300, time_step=0.05, alpha=a, beta=a)) for a in (0.5, 1.0))
    np.testing.assert_allclose(kept, kept[0], rtol=1e-12)
    assert np.all(np.diff(lost) < 0.0) and lost[-1] < 1e-6 * lost[0]


def test_the_middle_conserves_the_energy_of_a_network_of_springs_in_joints_and_rows():
    a = Assembly("network")
    for k in range(3):
        a.body(f"mass{k}", Prismatic((1, 0, 0)), None, (0, 0, 0), [ball(0.1, 1.0 + k)])
    joints = tuple(replace(joint, stiffness=(40.0 * k,)) for k, joint in enumerate(a.model().joints))
    ties = [dl.Coupling(f"mass{k + 1}_joint", f"mass{k}_joint", name=f"tie{k}") for k in range(2)]
    network, K = dl.Mechanism(replace(a.model(), joints=joints), ties), np.array([3e2, 5e4])
    q, v = run(network, [0.1, -0.2, 0.3], [1.0, 0.0, -2.0], 300, time_step=0.02, alpha=0.5, beta=0.5,
               compliance={"tie0": 1 / K[0], "tie1": 1 / K[1]})  # fmt: skip
    total = energy(network.model, q, v) + 0.5 * (np.diff(q) ** 2 @ K)
    np.testing.assert_allclose(total, total[0], rtol=1e-11)


def test_momentum_is_exact():
    pair = dl.Mechanism(masses(2, (0, 0, 0)), [dl.Distance("mass0", "mass1", length=0.5, name="spring")])
    rng = np.random.default_rng(0)
    q, v = rng.normal(size=6), rng.normal(size=6)
    _, after = run(pair, q, v, 200, time_step=0.01, compliance=1e-4, damping=1.0, alpha=0.6, beta=0.7)
    momentum = after[:, :3] + 2.0 * after[:, 3:]
    np.testing.assert_allclose(momentum, momentum[:1] + np.zeros((201, 1)), rtol=1e-11, atol=1e-12)


def test_with_the_middle_of_the_step_a_robot_is_of_second_order():
    mechanism, q, v = governor()
    options = {"compliance": 1e-3, "damping": 5.0, "alpha": 0.5, "beta": 0.5, "midpoint": True}
    ends = [run(mechanism, q, v, n, time_step=0.1 / n, **options)[0][-1] for n in (10, 20, 40, 80)]
    gaps = [np.abs(a - b).max() for a, b in pairwise(ends)]
    np.testing.assert_allclose(np.log2(np.array(gaps[:-1]) / gaps[1:]), 2.0, atol=0.25)


# --- from elastic to rigid --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.5, 0.6, 1.0])
def test_no_stiffness_is_too_much(alpha):
    h, k = 0.01, np.logspace(-6, 12, 19) / 0.01**2
    batch = [np.ones((19, 1)), np.ones((19, 1))]
    q, v = run(sprung(), *batch, 300, time_step=h, alpha=alpha, beta=alpha, compliance=1 / k[:, None])
    assert np.all(np.isfinite(q)) and np.all(np.isfinite(v))
    assert np.all(k[:, None] * q**2 + v**2 <= (1 + 1e-9) * (k[:, None] + 1.0))


def test_no_stiffness_of_a_joint_is_too_much():
    h, k = 0.01, np.logspace(-6, 12, 19)[:, None] / 0.01**2
    q, v = run(slider(), np.ones((19, 1)), np.ones((19, 1)), 300, time_step=h, servo_stiffness=k, servo_target=[0.0])
    assert np.all(np.isfinite(q)) and np.all(k * q**2 + v**2 <= (1 + 1e-9) * (k + 1.0))
    assert np.all(np.abs(q[1, -4:]) < 1e-6)  # where it is as good as rigid, it is there after a step


@pytest.mark.parametrize("alpha", [0.6, 0.8, 1.0])
def test_above_one_half_stiff_rows_become_rigid_ones(alpha):
    mechanism, q, v = on_rod(), [0.6, 0.0, 0.2 - 1e-3], [0.1, 0.0, 0.2]
    rigid, _ = run(mechanism, q, v, 200, time_step=1e-3)
    ends = [run(mechanism, q, v, 200, time_step=1e-3, alpha=alpha, compliance=C)[0][-1] for C in (1e-8, 1e-12)]
    errors = [np.abs(length(end) - 1.0) for end in ends]
    assert errors[1] < 2e-6 and np.abs(ends[1] - rigid[-1]).max() < 2e-4


def test_at_one_half_the_error_of_a_stiff_row_stays_and_alternates():
    q, _ = run(sprung(), [0.01], [0.0], 20, time_step=0.01, alpha=0.5, beta=1.0, compliance=1e-12)
    np.testing.assert_allclose(q[:, 0], 0.01 * (-1.0) ** np.arange(21), rtol=1e-4)
    gone, _ = run(sprung(), [0.01], [0.0], 20, time_step=0.01, alpha=0.5, beta=1.0)  # declared to be rigid
    assert np.abs(gone[1:]).max() < 1e-15


def test_in_the_middle_a_velocity_that_breaks_a_rigid_row_alternates_unless_it_is_stabilised():
    _, v = run(sprung(), [0.0], [0.1], 4, time_step=1e-2, beta=0.5)
    np.testing.assert_allclose(v[:, 0], [0.1, -0.1, 0.1, -0.1, 0.1], rtol=1e-12)
    _, v = run(sprung(), [0.0], [0.1], 4, time_step=1e-2, beta=0.5, stabilization="post")
    np.testing.assert_allclose(v[1:, 0], 0.0, atol=1e-15)


@pytest.mark.parametrize("beta", [0.5, 1.0])
def test_a_kinematic_row_is_met_at_once_but_for_its_curvature(beta):
    mechanism, q, v = on_rod(), np.array([0.6, 0.1, 0.1]), np.array([1.0, -0.5, 0.3])
    found = step(mechanism, q, v, np.zeros(3), time_step=1e-2, alpha=0.3, beta=beta)
    n = (q - [0.0, 0.0, 1.0]) / length(q)
    assert abs(length(q) - 1.0 + n @ (found.q - q)) < 1e-10


def test_what_kinematic_rows_leave_of_errors_is_of_second_order_and_nothing_after_a_projection():
    start, left = (on_rod(), [0.6, 0.0, 0.2], [0.8, 0.3, 0.6]), {}
    for how in ("none", "pre", "post", "project"):
        ends = [run(*start, n, time_step=0.02 / n, stabilization=how)[0][-1] for n in (1, 2)]
        left[how] = [abs(length(end) - 1.0) for end in ends]
    for how in ("none", "pre"):
        np.testing.assert_allclose(left[how][0] / left[how][1], 4.0, rtol=0.05)
    assert max(left["post"]) < 1e-10 and max(left["project"]) < 1e-10


@pytest.mark.parametrize("how", ["pre", "post"])
def test_a_correction_changes_no_velocity(how):
    at_rest = step(sprung(), [0.1], [0.0], [0.0], time_step=1e-3, stabilization=how)
    np.testing.assert_allclose([at_rest.q, at_rest.v], [[0.0], [0.0]], atol=1e-15)
    pulled = step(sprung(), [0.1], [0.0], [0.0], time_step=1e-3)
    np.testing.assert_allclose([pulled.q, pulled.v], [[0.0], [-100.0]], atol=1e-12)


def bushed() -> tuple[dl.Mechanism, np.ndarray, np.ndarray]:
    """A box on a bushing at its edge, and how it begins to turn."""
    a = Assembly("bushed")
    a.body("box", Free(), None, (0, 0, 0), [box((0.2, 0.3, 0.4), 2.0)])
    edge = dl.Placement.of(p=(0.1, 0.0, 0.0))
    weld = dl.Weld("box", "world", placement=edge, placement2=edge, name="bushing")
    mechanism = dl.Mechanism(a.model(), [weld])
    return mechanism, mechanism.neutral(), np.array([0.0, 0.3, -0.2, 1.0, 2.0, 3.0])


TURNING = {"rx": 1e-3, "ry": 2e-3, "rz": 3e-3}


def test_rows_of_one_constraint_may_be_rigid_and_elastic():
    mechanism, q, v = bushed()
    weld = mechanism.constraints[0]
    apart = dl.Mechanism(
        mechanism.model,
        [
            dl.Point("box", "world", placement=weld.placement, placement2=weld.placement2, name="pin"),
            replace(weld, rows=("rx", "ry", "rz"), name="spring"),
        ],
    )
    together = step(mechanism, q, v, np.zeros(6), time_step=1e-2, compliance={"bushing": TURNING},
                    damping={"bushing": {"ry": 5.0}})  # fmt: skip
    expected = step(apart, q, v, np.zeros(6), time_step=1e-2, compliance={"spring": list(TURNING.values())},
                    damping={"spring": [0.0, 5.0, 0.0]})  # fmt: skip
    np.testing.assert_allclose(together.v, expected.v, atol=1e-13)
    np.testing.assert_allclose(together.impulse, expected.impulse, atol=1e-12)


def test_rows_beside_very_soft_ones_stay_rigid():
    mechanism, q, v = bushed()
    found = step(mechanism, q, v, np.zeros(6), time_step=1e-5, compliance={"bushing": {"x": 1e6}})
    np.testing.assert_allclose(found.v[1:], 0.0, atol=1e-10)


@pytest.mark.parametrize("how", ["none", "pre", "post", "project"])
def test_a_bushing_holds_its_place_and_turns(how):
    mechanism, q, v = bushed()
    options = {"compliance": {"bushing": TURNING}, "stabilization": how}
    q, _ = run(mechanism, q, v, 100, time_step=1e-3, **options)
    errors = np.abs([dl.constraint_error(mechanism, x) for x in q[2:]])
    assert errors[:, :3].max() < 1e-5 and errors[:, 3:].max(0).min() > 1e-3
    assert how != "project" or errors[:, :3].max() < 1e-10


# --- mechanisms -------------------------------------------------------------------------------------------------------


def test_a_mass_on_a_soft_rod_hangs_by_what_its_weight_pulls_out():
    q, _ = run(on_rod(), np.zeros(3), np.zeros(3), 400, time_step=0.05, compliance=1e-3, damping=30.0)
    np.testing.assert_allclose(q[-1], [0.0, 0.0, -G * 1e-3], atol=1e-12)


def test_a_mass_on_a_soft_rod_vibrates_at_the_frequency_of_its_spring():
    k, h = 1e4, 1e-4
    rest = -G / k
    q, _ = run(on_rod(), [0.0, 0.0, rest - 1e-4], [0.0, 0.0, 0.0], 628, time_step=h, alpha=0.5, beta=0.5,
               compliance=1 / k)  # fmt: skip
    angle = np.sqrt(k) * h * np.arange(629)
    late = angle * k * h**2 / 12  # the phase that the mid-point rule loses
    np.testing.assert_allclose(q[:, 2] - rest, -1e-4 * np.cos(angle - late), atol=1e-11)


@pytest.mark.parametrize("options", [{}, {"compliance": 1e-9}], ids=["rigid", "stiff"])
def test_a_pendulum_on_a_rod_has_the_period_of_its_elliptic_integral(options):
    start = np.array([np.sin(1.0), 0.0, 1.0 - np.cos(1.0)])
    quarter = scipy.special.ellipk(np.sin(0.5) ** 2) / np.sqrt(G)
    n = 2000
    q, _ = run(on_rod(), start, np.zeros(3), n, time_step=quarter / n, beta=0.5, midpoint=True, **options)
    np.testing.assert_allclose(q[-1], np.zeros(3), atol=1e-5)


def test_a_governor_on_stiff_couplers_follows_a_stiff_solver():
    K, B, T = 8e5, 4e4, 0.3
    mechanism, q, v = governor()

    def rates(_, y):
        J, e = dl.constraint_jacobian(mechanism, y[:4]), dl.constraint_error(mechanism, y[:4])
        return np.concatenate([y[4:], dl.aba(mechanism, y[:4], y[4:], -J.T @ (K * e + B * (J @ y[4:])))])

    exact = solve_ivp(rates, (0, T), np.concatenate([q, v]), method="Radau", rtol=1e-9, atol=1e-11).y[:4, -1]

    def error(h, **options):
        end = run(mechanism, q, v, round(T / h), time_step=h, compliance=1 / K, damping=B, **options)[0][-1]
        return np.abs(end - exact).max()

    errors = [error(h, alpha=1.0, beta=1.0) for h in (5e-3, 2.5e-3, 1e-3)]
    np.testing.assert_allclose(np.array(errors[:-1]) / errors[1:], [2.0, 2.5], rtol=0.1)
    assert error(5e-3) < 1e-3
    assert error(1e-3) < 1e-4


def test_the_default_is_the_middle_of_the_step_where_all_forces_are_smooth():
    mechanism, q, v = governor()
    middle = {"alpha": 1.0, "beta": 0.5, "midpoint": True}

    def same(options, others):
        found, expected = (step(mechanism, q, v, np.zeros(4), time_step=1e-2, **o) for o in (options, others))
        return np.array_equal(found.v, expected.v) and np.array_equal(found.q, expected.q)

    elastic = {"compliance": 1e-6, "damping": 10.0}
    assert same(elastic, elastic | middle)
    for rough in ({}, {"compliance": {"left": 1e-6}}, elastic | {"driven": {"axis_joint": 1.0}}):
        assert same(rough, rough | {"alpha": 1.0, "beta": 1.0})  # rigid rows and driven joints
    assert same(elastic | {"beta": 0.7}, elastic | {"alpha": 1.0, "beta": 0.7, "midpoint": False})


@pytest.mark.parametrize("h", [1e-3, 5e-3])
def test_a_governor_on_stiff_couplers_turns_for_ten_seconds(h):
    K, B, (mechanism, q, v) = 8e5, 4e4, governor()
    numbers = {"beta": 0.5, "compliance": np.full(2, 1 / K), "damping": np.full(2, B)}
    scene = step(mechanism, q, v, np.zeros(4), time_step=h, **numbers, midpoint=True).scene
    options = {"elastic": (0, 1), "midpoint": True, "outputs": ("q", "v")}
    springs = RowSprings(numbers["compliance"], numbers["damping"])
    names, arrays = compliant_kernel.pack(scene, scheme=Scheme(beta=0.5), springs=springs)
    advance = compliant_kernel.specialize(scene, inputs=names, **options)

    def energy(q, v):
        stretch = dl.constraint_error(mechanism, q)
        return dl.kinetic_energy(mechanism, q, v) + dl.potential_energy(mechanism, q) + 0.5 * K * stretch @ stretch

    energies = [energy(q, v)]
    for k in range(round(10.0 / h)):
        q, v = advance(q, v, np.zeros(4), h, *arrays)
        if k % 50 == 0:
            energies.append(energy(q, v))
    np.testing.assert_allclose(energies, energies[0], atol=40.0 * h)  # of 51 J that turn in it


def test_driven_joints_have_the_velocity_that_is_given_and_the_others_feel_it():
    mechanism, q, v = governor()
    v = np.array([0.4, 0.2, -0.1, 0.3])
    for model in (mechanism.model, mechanism):
        found = step(model, q, v, np.zeros(4), time_step=1e-2, driven={"left_joint": 0.7, "axis_joint": 0.0})
        np.testing.assert_allclose(found.v[[1, 0]], [0.7, 0.0], atol=1e-14)
    M, c = dl.crba(mechanism, q), dl.bias_torques(mechanism, q, v)
    free = step(mechanism.model, q, v, np.zeros(4), time_step=1e-2, driven={"left_joint": 0.7, "axis_joint": 0.0})
    np.testing.assert_allclose((M @ (free.v - v) / 1e-2 + c)[2:], 0.0, atol=1e-9)


def test_a_robot_with_a_free_base_and_stiff_servos_solves_the_dense_equations():
    model = dl.load("quadruped")
    rng = np.random.default_rng(5)
    q, v, tau = model.random_configuration(rng), rng.normal(size=model.nv), rng.normal(size=model.nv)
    target, kp, kd, h = model.random_configuration(rng), np.full(model.nv, 3e3), np.full(model.nv, 20.0), 2e-3
    kp[:6] = kd[:6] = 0.0
    scene = scene_for(model, (), False, False)[0]
    found = compliant_kernel.python(scene, q, v, tau, h, servo=Servo(kp, kd, target))
    joints = [joint for joint in model.joints for _ in range(joint.kind.nv)]
    own = [np.array([(getattr(j, name) or (0.0,))[0] for j in joints]) for name in ("stiffness", "damping")]
    K, D = kp + own[0], kd + own[1]
    W = dl.crba.python(model, q) + np.diag(h * D + h * h * K)
    turned = np.concatenate([-np.cross(v[3:6], v[:3]), np.zeros(model.nv - 3)])  # v̇ of a base that flies straight on
    force = tau - dl.rnea.python(model, q, v, turned) + kp * dl.difference.python(model, q, target) - kd * v
    force = force + dl.passive_forces.python(model, q, v) - h * K * v
    after = v + np.linalg.solve(W, h * force)
    np.testing.assert_allclose(found.system_velocity[3:], after[3:], rtol=1e-9, atol=1e-10)
    before = Rotation.from_quat(q[3:7]).as_matrix()
    np.testing.assert_allclose(found.system_velocity[:3], after[:3], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(found.q[:3], q[:3] + h * before @ after[:3], atol=1e-12)
    np.testing.assert_allclose(found.q[3:], dl.integrate.python(model, q, h * after)[3:], atol=1e-12)


def test_a_body_that_is_thrown_and_spins_keeps_its_momentum_and_flies_a_parabola():
    a = Assembly("brick")
    a.body("brick", Free(), None, (0, 0, 0), [box((0.2, 0.3, 0.4), 2.0)])
    h, n, start = 5e-3, 200, np.array([1.0, 2.0, 3.0])
    q, v = run(a.model(), a.model().neutral(), [*start, 3.0, 4.0, 5.0], n, time_step=h, beta=0.5)
    speed = Rotation.from_quat(q[-1, 3:]).as_matrix() @ v[-1, :3]
    np.testing.assert_allclose(speed, start - [0.0, 0.0, G * h * n], atol=1e-11)
    np.testing.assert_allclose(q[-1, :3], start * h * n - [0.0, 0.0, 0.5 * G * (h * n) ** 2], atol=1e-11)


def test_a_base_that_is_driven_has_its_velocity_in_its_own_axes():
    mechanism, q, _ = bushed()
    given = [1.0, 2.0, 3.0, 3.0, 4.0, 5.0]
    found = step(mechanism.model, q, np.ones(6), np.zeros(6), time_step=1e-2, driven={"box_joint": given})
    np.testing.assert_allclose(found.v, given, atol=1e-14)


def with_tendon(tendon: str) -> str:
    """MJCF of two hinges with a tendon."""
    link = '<geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" mass="0.5" contype="0" conaffinity="0"/>'
    joints = [f'<joint name="{name}" axis="0 1 0"/>' for name in ("first", "second")]
    bodies = f'<body>{joints[0]}{link}<body pos="0.3 0 0">{joints[1]}{link}<site name="tip"/></body></body>'
    return f'<mujoco><worldbody><site name="hook" pos="0 0 1"/>{bodies}</worldbody><tendon>{tendon}</tendon></mujoco>'


COEFFICIENTS = '<joint joint="first" coef="0.7"/><joint joint="second" coef="-1.2"/>'


@pytest.mark.parametrize(
    "numbers", ['stiffness="300"', 'stiffness="300" springlength="-0.2 0.3" damping="4"', 'damping="4"']
)
def test_tendons_over_joints_pull_as_in_mujoco(numbers):
    xml = with_tendon(f"<fixed {numbers}>{COEFFICIENTS}</fixed>")
    model = mujoco.MjModel.from_xml_string(xml)
    data, rng = mujoco.MjData(model), np.random.default_rng(3)
    q, v = rng.normal(size=(2, 8, 2)) * 0.5
    found = step(dl.load(xml), q, v, np.zeros((8, 2)), time_step=1e-2, alpha=0.0, beta=0.0)
    for k in range(8):
        data.qpos[:], data.qvel[:] = q[k], v[k]
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose((found.system_velocity[k] - v[k]) / 1e-2, data.qacc, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("stiffness", [30.0, 3e9])
def test_tendons_over_joints_are_implicit(stiffness):
    model = dl.load(with_tendon(f'<fixed stiffness="{stiffness}" damping="2">{COEFFICIENTS}</fixed>'))
    c, q, v, h, alpha, beta = np.array([0.7, -1.2]), np.array([0.3, 0.5]), np.array([1.0, -2.0]), 1e-2, 0.7, 0.6
    found = step(model, q, v, np.zeros(2), time_step=h, alpha=alpha, beta=beta)
    before, after = (-stiffness * (c @ x) - 2.0 * (c @ rate) for x, rate in ((q, v), (found.q, found.system_velocity)))
    pushed = dl.crba(model, q) @ (found.system_velocity - v) + h * dl.bias_torques(model, q, v)
    np.testing.assert_allclose(pushed, h * c * ((1 - alpha) * before + alpha * after), rtol=1e-5)


def test_a_spring_along_a_string_through_sites_pulls_as_in_mujoco():
    numbers = 'stiffness="3" damping=".2" springlength=".1"'
    xml = with_tendon(f'<spatial name="cord" {numbers}><site site="hook"/><site site="tip"/></spatial>')
    model, q, v = dl.load(xml), np.array([0.3, 0.5]), np.array([1.0, -2.0])
    found = step(model, q, v, np.zeros(2), time_step=1e-2, alpha=0.0, beta=0.0)
    theirs = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(theirs)
    data.qpos[:], data.qvel[:] = q, v
    mujoco.mj_forward(theirs, data)
    np.testing.assert_allclose((found.system_velocity - v) / 1e-2, data.qacc, rtol=1e-10)


def test_joints_that_mimic_others_are_stepped_as_well():
    a = Assembly("pair")
    a.body("first", Revolute((0, 1, 0)), None, (0, 0, 0), [rod((0, 0, 0), (0.5, 0, 0), 1.0)])
    a.body("second", Revolute((0, 1, 0)), "first", (0.5, 0, 0), [rod((0, 0, 0), (0.5, 0, 0), 1.0)])
    model = a.model()
    first, second = model.joints
    stiff = {"stiffness": (50.0,), "damping": (1.0,)}
    model = replace(model, joints=(replace(first, **stiff), replace(second, mimic=Mimic(0, -0.5, 0.1), **stiff)))
    q, v, h = np.array([0.4]), np.array([0.7]), 1e-2
    found = step(model, q, v, [0.0], time_step=h, alpha=1.0)
    M, c = dl.crba(model, q)[0, 0], dl.bias_torques(model, q, v)[0]
    K, D = 50.0 * 1.25, 1.0 * 1.25
    force = dl.passive_forces(model, q, v)[0] - c - h * K * v[0]
    np.testing.assert_allclose(found.system_velocity[0], v[0] + h * force / (M + h * D + h * h * K), rtol=1e-12)


def test_a_batch_is_the_same_bits_as_its_states():
    mechanism, q, v = governor()
    rng = np.random.default_rng(1)
    qs, vs = q + 0.01 * rng.normal(size=(11, 4)), v + rng.normal(size=(11, 4))
    options = {"time_step": 1e-3, "compliance": 1e-6, "damping": 10.0, "alpha": 0.7, "beta": 0.5}
    together = step(mechanism, qs, vs, np.zeros((11, 4)), **options)
    for k in range(11):
        alone = step(mechanism, qs[k], vs[k], np.zeros(4), **options)
        assert np.array_equal(alone.q, together.q[k]) and np.array_equal(alone.v, together.v[k])


def test_a_step_is_a_part_of_other_kernels():
    mechanism, q, v = governor()
    scene = step(mechanism, q, v, np.zeros(4), time_step=1e-3).scene
    kernel = dl.stepping.compliant_kernel

    @dl.kernel("(nq),(nv)->(nq),(nv)")
    def two_steps(scene, q, v):
        for _ in range(2):
            q, v = kernel(scene, q, v, 0.0 * v, 1e-3, outputs=("q", "v"))
        return q, v

    expected, bound = run(mechanism, q, v, 2, time_step=1e-3), (np.zeros(4), np.zeros(4))
    np.testing.assert_allclose(two_steps(scene, q, v), [x[-1] for x in expected], rtol=1e-12)
    kernel.bind(scene, q, v, np.zeros(4), np.array(1e-3), *bound, outputs=("q", "v"))()
    np.testing.assert_array_equal(bound[0], expected[0][1])


def test_a_batch_in_contact_is_the_same_bits_as_its_states():
    contact, rng = dl.Contact("mass0", friction=0.5, restitution=0.5), np.random.default_rng(6)
    q, v = 1e-3 * rng.normal(size=(9, 3)), rng.normal(size=(9, 3))
    together = step(masses(1), q, v, np.zeros((9, 3)), time_step=1e-3, contacts=contact)
    for k in range(9):
        alone = step(masses(1), q[k], v[k], np.zeros(3), time_step=1e-3, contacts=contact)
        assert np.array_equal(alone.q, together.q[k]) and np.array_equal(alone.v, together.v[k])


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"compliance": -1.0}, ("out-of-range", "-1", "compliance")),
        ({"compliance": 1e-3, "damping": -2.0}, ("out-of-range", "-2", "damping")),
        ({"damping": 1.0}, ("conflicting-arguments",)),
        ({"compliance": np.inf}, ("conflicting-arguments",)),
        ({"alpha": 1.5}, ("out-of-range", "1.5", "alpha")),
        ({"beta": -0.1}, ("out-of-range", "-0.1", "beta")),
        ({"beta": 0.0}, ("conflicting-arguments", "0", "beta")),
        ({"alpha": 0.0, "compliance": 0.0}, ("conflicting-arguments",)),
        ({"time_step": 0.0}, ("time-step-out-of-range", "time_step", "0", "1e-12")),
        ({"time_step": 1e-300}, ("time-step-out-of-range", "time_step", "1e-300")),
        ({"time_step": None}, ("not-a-number", "time_step")),
        ({"alpha": "half"}, ("not-a-number", "'half'", "alpha")),
        ({"alpha": True}, ("not-a-number", "alpha")),
        ({"beta": 1e-300}, ("conflicting-arguments", "1e-300", "beta")),
        ({"compliance": 0.0, "damping": np.inf}, ("not-finite", "damping")),
        ({"servo_stiffness": np.inf, "servo_target": [0.0]}, ("not-finite", "servo_stiffness")),
        (
            {"servo_stiffness": 1.0, "servo_target": [0.0, 1.0]},
            ("wrong-shape", "servo_target"),
        ),
        ({"servo_stiffness": 1.0, "servo_target": "up"}, ("not-a-number", "'up'", "servo_target")),
        ({"driven": {"mass_joint": "fast"}}, ("not-a-number", "'mass_joint'", "'fast'")),
        ({"geometric_stiffness": [1.0, 2.0]}, ("wrong-shape", "geometric_stiffness")),
        ({"time": "noon"}, ("not-a-number", "'noon'", "time")),
        ({"iterations": 0}, ("iterations-out-of-range", "0", "iterations")),
        ({"tolerance": -1.0}, ("tolerance-out-of-range", "-1", "tolerance")),
        ({"start": [1.0, 2.0]}, ("wrong-shape", "start")),
        ({"time_step": 1e9}, ("time-step-out-of-range", "time_step")),
        ({"time_step": "soon"}, ("not-a-number", "'soon'", "time_step")),
        ({"stabilization": "often"}, ("unknown-option", "'often'")),
        ({"servo_stiffness": 1.0}, ("missing-argument", "servo_target")),
        ({"compliance": {"sprig": 1.0}}, ("unknown-constraint", "sprig")),
        ({"compliance": {"spring": {"x": 1.0}}}, ("unknown-row", "'x'")),
        ({"compliance": {"spring": {0: -1.0}}}, ("out-of-range", "'spring'", "0", "-1", "compliance")),
        ({"compliance": {"spring": {0: "soft"}}}, ("not-a-number", "'spring'", "'soft'", "0", "compliance")),
        ({"compliance": [1.0, 2.0]}, ("wrong-shape",)),
        ({"driven": 1.0}, ("wrong-type",)),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(options, refusal):
    with refuses(*refusal):
        step(sprung(), [0.1], [0.0], [0.0], **({"time_step": 1e-3} | options))


def test_errors_of_steps_are_value_errors():
    with refuses("out-of-range", "alpha"):
        step(sprung(), [0.1], [0.0], [0.0], time_step=1e-3, alpha=2.0)
    assert issubclass(StepError, dl.DelassusError)


def test_a_state_that_is_not_finite_spoils_itself_alone():
    found = step(sprung(), [[0.1], [np.nan], [0.1]], [[0.0]] * 3, [[0.0]] * 3, time_step=1e-3, compliance=1e-3)
    assert found.status.tolist() == [Status.CONVERGED, Status.NOT_FINITE, Status.CONVERGED]
    assert "1 of 3 states" in found.describe()


@pytest.mark.parametrize(
    "given", [{"alpha": [np.nan]}, {"beta": [np.nan]}, {"compliance": np.nan}, {"time_step": [np.nan]},
              {"compliance": 1e-3, "damping": np.nan}, {"contacts": dl.Contact("mass"), "restitution": [np.nan]}]
)  # fmt: skip
def test_a_number_of_a_state_that_is_none_is_not_passed_over(given):
    found = step(sprung(), [[0.1]], [[0.0]], [[0.0]], **({"time_step": 1e-3} | given))
    assert found.status.tolist() == [Status.NOT_FINITE] and np.isnan(found.v).all()


def test_rows_that_contradict_each_other_are_met_in_the_least_squares_sense_and_say_so():
    locks = [dl.JointLock("mass_joint", position=x, name=f"at{x}") for x in (0.0, 1.0)]
    found = step(dl.Mechanism(slider(), locks), [0.2], [0.0], [0.0], time_step=1.0)
    np.testing.assert_allclose(found.q, [0.5], atol=1e-9)
    assert found.statuses is Status.LEAST_SQUARES
