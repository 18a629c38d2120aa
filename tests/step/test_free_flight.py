"""Free rigid bodies and articulated robots that fly: orders, invariances, long steps, and what is said of them."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import delassus as dl
from delassus.compiler.host.kernel import kernel
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.step.flags import Mark
from delassus.step.scheme.components import components
from delassus.step.scheme.free_rotation import SUBSTEPS, principal_axes, rotate_freely

STILL = np.array([0.0, 0.0, 0.0, 1.0])
TURN = Rotation.from_rotvec([0.3, -0.8, 0.5]).as_matrix()


def box(a, b, c):
    return np.diag([b * b + c * c, a * a + c * c, a * a + b * b]) / 12


INERTIAS = {
    "rod": box(1, 0.02, 0.02),
    "coin": np.diag([1.0, 1.0, 1.99]),
    "plank": box(1, 0.3, 0.02),
    "brick": box(0.3, 0.2, 0.1),
    "turned": TURN @ box(0.3, 0.2, 0.1) @ TURN.T,
    "ball": np.eye(3),
}


@kernel("(3,3),(4),(3),()->(4),(3),()")
def rotate(_, I, turn, omega, h):
    return rotate_freely(principal_axes(I), turn, omega, h)


def plain(I):
    axes = principal_axes(np.array(I))

    @kernel("(4),(3),()->(4),(3),()")
    def rotate_plain(_, turn, omega, h):
        return rotate_freely(axes, turn, omega, h)

    return rotate_plain


def exact(I, omega, time):
    def rate(_, y):
        q, w = y[:4], y[4:]
        turning = 0.5 * np.array([*(q[3] * w + np.cross(q[:3], w)), -q[:3] @ w])
        return np.concatenate([turning, np.linalg.solve(I, -np.cross(w, I @ w))])

    end = solve_ivp(rate, (0, time), np.concatenate([STILL, omega]), method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    return Rotation.from_quat(end[:4])


@pytest.mark.parametrize("name", INERTIAS)
@pytest.mark.parametrize("angle", [1e-16, 1e-8, 1e-3, 0.5, 1.0, 5.0])
def test_a_step_of_any_angle_keeps_energy_and_angular_momentum(name, angle):
    I, rng = INERTIAS[name], np.random.default_rng(0)
    omega = rng.normal(size=(200, 3))
    omega *= angle / np.linalg.norm(omega, axis=-1, keepdims=True)
    turn, after, _ = rotate(None, I, np.tile(STILL, (200, 1)), omega, 1.0)
    energy, kept = (np.einsum("ni,ij,nj->n", w, I, w) for w in (omega, after))
    np.testing.assert_allclose(kept, energy, rtol=1e-12)
    L = Rotation.from_quat(turn).apply(after @ I)
    size = np.linalg.norm(omega @ I, axis=-1, keepdims=True)
    np.testing.assert_allclose(L / size, omega @ I / size, atol=1e-13)


@pytest.mark.parametrize(
    ("name", "order"), [("rod", None), ("coin", None), ("ball", None), ("brick", 2), ("turned", 2)]
)
def test_attitudes_are_exact_for_symmetric_bodies_and_of_second_order_for_others(name, order):
    I, omega = INERTIAS[name], np.array([8.0, 30.0, 5.0])
    rotation, end, errors = plain(I), exact(INERTIAS[name], omega, 0.2), []
    for h in (4e-3, 2e-3):
        turn, spin = STILL, omega
        for _ in range(round(0.2 / h)):
            turn, spin, _ = rotation(None, turn, spin, h)
        errors.append((Rotation.from_quat(turn).inv() * end).magnitude())
    if order is None:
        assert max(errors) < 1e-10
    else:
        assert errors[0] / errors[1] > 3.5


@pytest.mark.parametrize("name", INERTIAS)
def test_a_flight_backwards_leads_to_where_it_began(name):
    I, omega = INERTIAS[name], np.array([8.0, 30.0, 5.0])
    rotation = plain(I)
    turn, spin, _ = rotation(None, STILL, omega, 5e-3)
    turn, spin, _ = rotation(None, turn, spin, -5e-3)
    np.testing.assert_allclose(turn, STILL, atol=1e-5)  # but for the turns that keep the energy
    np.testing.assert_allclose(spin, omega, rtol=1e-3)


@pytest.mark.parametrize("skewness", [0.0, 1e-16, 1e-13, 1e-11, 1e-8, 1e-4, 1e-2])
def test_a_body_that_is_nearly_symmetric_turns_as_one_that_is(skewness):
    omega = np.array([3.0, 4.0, 20.0])
    turn = plain(np.diag([1.0 + skewness, 1.0, 2.0]))(None, STILL, omega, 0.01)[0]
    symmetric = plain(np.diag([1.0, 1.0, 2.0]))(None, STILL, omega, 0.01)[0]
    assert (Rotation.from_quat(turn).inv() * Rotation.from_quat(symmetric)).magnitude() <= 0.2 * skewness + 1e-15


def test_more_substeps_than_there_may_be_are_told():
    assert plain(INERTIAS["plank"])(None, STILL, np.array([400.0, 300.0, 100.0]), 1.0)[2] > SUBSTEPS


def test_a_body_whose_inertia_comes_at_run_time_flies_as_one_of_plain_numbers():
    model = dl.load(
        """<mujoco><worldbody><body><freejoint name="j"/>
        <inertial pos="0.1 0.02 0.03" mass="2" fullinertia="0.03 0.05 0.07 0.004 0.002 0.001"/>
        </body></worldbody></mujoco>"""
    )
    q, v, tau = model.neutral(), np.array([1.0, 2.0, 3.0, 20.0, -30.0, 10.0]), np.zeros(6)
    step = dl.stepping.compliant_step(model, q, v, tau, time_step=1e-3, alpha=1.0)
    traced = model.parametric("inertia")
    numbers = {"time_step": 1e-3, "alpha": 1.0, "parameters": traced.parameters()}
    other = dl.stepping.compliant_step(traced, q, v, tau, **numbers)
    np.testing.assert_allclose(other.q, step.q, atol=1e-7)  # a and b may change places, which is of third order
    assert dl.kinetic_energy(model, other.q, other.v) == pytest.approx(
        dl.kinetic_energy(model, step.q, step.v), rel=1e-12
    )


# --- what moves on its own ----------------------------------------------------------------------------------------


def test_components_are_bodies_robots_and_what_loops_tie_to_the_world():
    ball = dl.load("<mujoco><worldbody><body><freejoint name='b'/><geom size='.1'/></body></worldbody></mujoco>")
    both = dl.load("quadruped").attach(ball, "world", prefix="ball_")
    robot, alone = components(Mechanism(both, ()), both.neutral())
    assert (robot.rigid, robot.floating) == (False, True) and (alone.rigid, alone.floating) == (True, True)
    held = components(Mechanism(both, (dl.Point("ball_b"),)), both.neutral())[1]
    assert (held.rigid, held.floating) == (False, False)
    bar = dl.load("four_bar")
    assert not any(part.floating for part in components(Mechanism(bar), bar.neutral()))


# --- steps that are too long --------------------------------------------------------------------------------------

CART = dl.load(
    """<mujoco><worldbody><body><joint name="cart" type="slide" axis="1 0 0"/>
    <geom type="box" size=".1 .1 .1" mass="1" contype="0" conaffinity="0"/>
    <body><joint name="pole" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 .5" size=".02" mass=".1" contype="0"
    conaffinity="0"/></body></body></worldbody></mujoco>"""
)


def test_a_joint_that_turns_far_in_a_step_takes_substeps_as_shorter_steps_would():
    v0 = np.array([0.0, 250.0])  # 0.5 rad a step
    log = dl.Simulation(CART, time_step=2e-3).run(np.zeros(2), v0, steps=10)
    finer = dl.Simulation(CART, time_step=2e-3 / 3).run(np.zeros(2), v0, steps=30, every=3)
    np.testing.assert_allclose(log.q, finer.q, rtol=1e-9, atol=1e-9)
    assert not log.status.any()


def test_a_force_that_is_far_too_large_gives_no_more_energy_than_its_work():
    log = dl.Simulation(CART).run(np.array([0.0, 0.1]), control=np.tile([1e6, 0.0], (100, 1)), steps=100)
    work = 1e6 * log.q[:, 0]
    assert np.all(dl.kinetic_energy(CART, log.q, log.v) <= 1.01 * work + 1e3)


def test_a_step_that_is_too_long_even_in_substeps_names_joint_and_remedy():
    log = dl.Simulation(CART, time_step=0.1).run(np.zeros(2), np.array([0.0, 200.0]), steps=2)
    assert (log.status[1:] & Mark.TOO_LONG).all()
    assert "The joint 'pole' turns at 2" in log.describe() and "time_step of 0.001 s" in log.describe()


def test_marks_of_long_steps_do_not_depend_on_others_in_the_batch():
    sim = dl.Simulation(CART, time_step=0.1)
    v = np.array([[0.0, 0.1], [0.0, 200.0], [0.0, 1.0]])
    together = sim.run(np.zeros((3, 2)), v, steps=2)
    for k in range(3):
        alone = sim.run(np.zeros(2), v[k], steps=2)
        np.testing.assert_array_equal(together.status[:, k], alone.status)
        np.testing.assert_array_equal(together.q[:, k], alone.q)


@pytest.mark.parametrize("name", ["quadruped", pytest.param("humanoid", marks=pytest.mark.slow)])
def test_a_robot_in_violent_noise_is_no_faster_than_with_short_steps(name):
    robot, rng = dl.load(name), np.random.default_rng(0)
    q0, speed = np.tile(robot.posture("home"), (16, 1)), []
    noise = rng.normal(0, 40, (100, 16, dl.Simulation(robot).nu))
    for parts in (1, 16):
        sim = dl.Simulation(robot, time_step=2e-3 / parts)
        log = sim.run(q0, control=np.repeat(noise, parts, 0), steps=100 * parts, every=parts)
        speed.append(np.abs(log.v).max((0, 2)))
        assert not (log.status & Mark.FROZEN).any()
    assert np.all(speed[0] <= 2.0 * speed[1])
