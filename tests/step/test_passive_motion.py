"""Springs and dampers of joints and tendons, in every algorithm that claims a motion, against MuJoCo."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest
import scipy.linalg

import delassus as dl
from delassus.model import Joint, Model, Prismatic
from delassus.model.bundled.build import Assembly, rod
from delassus.model.joints import Revolute
from delassus.model.parts import Mimic
from delassus.model.transmission import Tendon

C = dl.control
STEP = 1e-7

BALL = '<geom type="box" pos="0.1 0.02 0" size="0.1 0.05 0.03" mass="0.4" contype="0" conaffinity="0"/>'
LINK = '<geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" mass="0.5" contype="0" conaffinity="0"/>'
XML = f"""<mujoco><worldbody>
<body><joint name="slide" type="slide" axis="1 0 0" stiffness="40" springref="0.1" damping="3"/>{LINK}
<body pos="0.3 0 0"><joint name="shoulder" axis="0 1 0" stiffness="5" springref="20" damping="0.4"/>{LINK}
<body pos="0.3 0 0"><joint name="elbow" axis="0 1 0" damping="0.2"/>{LINK}
<body name="hand" pos="0.3 0 0"><joint name="wrist" type="ball" stiffness="2" damping="0.1"/>{BALL}</body></body></body>
</body></worldbody><tendon>
<fixed name="cord" stiffness="50" damping="1" springlength="0.05">
  <joint joint="shoulder" coef="0.7"/><joint joint="elbow" coef="-1.2"/></fixed>
<fixed name="slack" stiffness="80" springlength="-0.1 0.2"><joint joint="slide" coef="0.5"/>
  <joint joint="elbow" coef="0.8"/></fixed></tendon></mujoco>"""
ROBOT = dl.load(XML)
THEIRS = mujoco.MjModel.from_xml_string(XML)
MECHANISM = dl.Mechanism(ROBOT)
POSTURE = C.PostureTask()


def mujoco_data(q, v, tau):
    data = mujoco.MjData(THEIRS)
    data.qpos[:], data.qvel[:] = dl.q_to_mujoco(ROBOT, q), dl.v_to_mujoco(ROBOT, q, v)
    data.qfrc_applied[:] = tau
    mujoco.mj_forward(THEIRS, data)
    return data


def state(seed: int = 0):
    rng = np.random.default_rng(seed)
    q = dl.integrate.python(ROBOT, ROBOT.neutral(), 0.5 * rng.normal(size=ROBOT.nv))
    return q, rng.normal(size=ROBOT.nv), 3.0 * rng.normal(size=ROBOT.nv)


# --- accelerations and torques ----------------------------------------------------------------------------------------

# Each of them takes a state and some numbers (nv,), which it uses as it likes; it gives the velocity, the acceleration
# that it claims, and the motors' torques that it claims it for.


def by_inverse_dynamics(q, v, x):
    return v, x, dl.inverse_dynamics(ROBOT, q, v, x).torque


def by_gravity_compensation(q, v, x):
    found = C.gravity_compensation(ROBOT, q)
    assert found.statuses is C.ControlStatus.REALISED
    return 0.0 * v, 0.0 * v, found.torque


def by_equilibrium(q, v, x):
    limited = replace(ROBOT, joints=tuple(replace(j, lower=(-9.0,), upper=(9.0,)) if j.kind.nv == 1 else j
                                          for j in ROBOT.joints))  # fmt: skip
    found = C.equilibrium(limited, q, limits=True)
    assert found.statuses is C.ControlStatus.REALISED
    return 0.0 * v, 0.0 * v, found.torque


def by_tasks(q, v, x):
    found = C.task_inverse_dynamics(C.Tasks(C.ActuatedMechanism(ROBOT), [POSTURE]), q, v, x)
    np.testing.assert_allclose(found.acceleration, x, atol=1e-9)
    return v, found.acceleration, found.torque


def by_reactive_control(q, v, x):
    control = C.ReactiveControl(ROBOT, tasks=[C.FollowPosture(weight=1.0, stiffness=5.0)], supports=[])
    found = control(q, v, control.reference(ROBOT.neutral()))
    return v, found.acceleration, found.torque


def by_linearization(q, v, x):
    found = C.linearize(ROBOT, q, v, x)
    return v, found.basis @ found.drift[ROBOT.nv :], x


def by_simulation(q, v, x):
    log = dl.Simulation(ROBOT, time_step=STEP, max_contacts=0).run(q, v, control=x, steps=1)
    return v, (log.v[-1] - v) / STEP, x


def by_simulated_motion(q, v, x):
    found = dl.simulate_motion(ROBOT, q, v, x, times=[0.0, STEP], method="explicit_euler", step=STEP)
    return v, (found.v[-1] - v) / STEP, x


def by_compliant_step(q, v, x):
    return v, (dl.stepping.compliant_step(ROBOT, q, v, x, time_step=STEP).v - v) / STEP, x


# The equation of motion itself, M a + c = tau + Jᵀ f, whose tau has all forces in it.


def by_aba(q, v, x):
    return v, dl.aba(ROBOT, q, v, x + dl.dynamics.passive_forces(ROBOT, q, v)), x


def by_rnea(q, v, x):
    return v, x, dl.rnea(ROBOT, q, v, x) - dl.dynamics.passive_forces(ROBOT, q, v)


def by_constrained_dynamics(q, v, x):
    tau = x + dl.dynamics.passive_forces(ROBOT, q, v)
    return v, dl.constrained_dynamics(MECHANISM, q, v, tau).acceleration, x


def by_contact_dynamics(q, v, x):
    tau = x + dl.dynamics.passive_forces(ROBOT, q, v)
    return v, dl.contact_dynamics(ROBOT, q, v, tau, time_step=None).acceleration, x


ALGORITHMS = [
    by_inverse_dynamics, by_gravity_compensation, by_equilibrium, by_tasks, by_reactive_control, by_linearization,
    by_simulation, by_simulated_motion, by_compliant_step, by_aba, by_rnea, by_constrained_dynamics,
    by_contact_dynamics,
]  # fmt: skip


@pytest.mark.parametrize("claimed", ALGORITHMS, ids=lambda f: f.__name__)
def test_a_claimed_motion_is_that_of_mujoco_with_its_springs_and_dampers(claimed):
    q, v, x = state()
    v, a, torque = claimed(q, v, x)
    expected = mujoco_data(q, v, torque).qacc
    np.testing.assert_allclose(a, expected, rtol=1e-4, atol=1e-4 * np.max(np.abs(expected)) + 1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_passive_forces_are_those_of_mujoco(seed):
    q, v, _ = state(seed)
    expected = mujoco_data(q, v, 0.0).qfrc_passive
    np.testing.assert_allclose(dl.dynamics.passive_forces.python(ROBOT, q, v), expected, atol=1e-12)


def test_the_energy_of_springs_is_that_of_mujoco():
    q, v, _ = state()
    data = mujoco_data(q, v, 0.0)
    mujoco.mj_energyPos(THEIRS, data)
    ours = dl.potential_energy.python(ROBOT, q) + dl.dynamics.spring_energy.python(ROBOT, q)
    assert ours == pytest.approx(data.energy[0], rel=1e-12)


# --- linear models ----------------------------------------------------------------------------------------------------


def mujoco_rates(q, v, tau, step=1e-5):
    """∂a/∂q along tangent vectors and ∂a/∂v, by central differences of MuJoCo's forward dynamics."""
    nv = ROBOT.nv

    def acceleration(way, faster):
        data = mujoco_data(q, v + faster, tau)
        mujoco.mj_integratePos(THEIRS, data.qpos, way, 1.0)
        mujoco.mj_forward(THEIRS, data)
        return data.qacc.copy()

    none, eye = np.zeros(nv), step * np.eye(nv)
    by_q = [(acceleration(e, none) - acceleration(-e, none)) / (2.0 * step) for e in eye]
    by_v = [(acceleration(none, e) - acceleration(none, -e)) / (2.0 * step) for e in eye]
    return np.transpose(by_q), np.transpose(by_v)


def test_a_linear_model_has_the_derivatives_of_springs_and_dampers():
    q, v, tau = state()
    found, (by_q, by_v) = C.linearize(ROBOT, q, v, tau), mujoco_rates(q, v, tau)
    n, Z = ROBOT.nv, found.basis
    back = np.linalg.inv(Z)
    np.testing.assert_allclose(Z @ found.A[n:, :n] @ back, by_q, atol=1e-6 * np.max(np.abs(by_q)))
    np.testing.assert_allclose(Z @ found.A[n:, n:] @ back, by_v, atol=1e-6 * np.max(np.abs(by_v)))


def slider(**numbers) -> Model:
    return Model("slider", (Joint("slide", Prismatic((1.0, 0.0, 0.0)), inertia=dl.Inertia(mass=1.0), **numbers),))


def test_a_slider_on_a_spring_is_linear():
    model = slider(stiffness=(100.0,), damping=(5.0,))
    np.testing.assert_allclose(C.linearize(model, [0.1]).A, [[0.0, 1.0], [-100.0, -5.0]], atol=1e-12)
    np.testing.assert_allclose(C.gravity_compensation(model, [0.1]).torque, [10.0], atol=1e-12)


def test_a_regulator_knows_springs_and_dampers():
    linear = C.linearize(slider(stiffness=(100.0,), damping=(5.0,)), [0.0])
    A, B = np.array([[0.0, 1.0], [-100.0, -5.0]]), np.array([[0.0], [1.0]])
    X = scipy.linalg.solve_continuous_are(A, B, np.eye(2), np.eye(1))
    np.testing.assert_allclose(C.lqr(linear).gain, B.T @ X, rtol=1e-9)


def test_parameters_of_a_model_leave_its_springs():
    """Gravity along the rail is a parameter: at 0.1 m the spring pulls with 10 N, the weight with 2 N."""
    model, given = slider(stiffness=(100.0,), damping=(5.0,)).parametric("gravity"), [2.0, 0.0, 0.0]
    assert C.gravity_compensation(model, [0.1], parameters=given).torque[0] == pytest.approx(10.0 - 2.0)
    linear = C.linearize(model, [0.1], parameters=given)
    np.testing.assert_allclose(linear.A, [[0.0, 1.0], [-100.0, -5.0]], atol=1e-12)
    assert linear.drift[1] == pytest.approx(2.0 - 10.0)


def test_a_spring_that_carries_the_weight_needs_no_torque_and_no_actuator():
    model = replace(slider(stiffness=(100.0,)), gravity=(-9.81, 0.0, 0.0))
    found = C.gravity_compensation(model, [-0.0981], actuation=np.zeros((1, 0)))
    assert found.statuses is C.ControlStatus.REALISED
    assert C.gravity_compensation(model, [-0.09], actuation=np.zeros((1, 0))).statuses is C.ControlStatus.NEAREST


def test_an_inverted_double_pendulum_falls_as_fast_as_in_mujoco():
    link = '<geom type="capsule" fromto="0 0 0 0 0 0.5" size="0.02" mass="1"/>'
    hinge = '<joint axis="0 1 0" damping="0.05"/>'
    xml = f"""<mujoco><option timestep="1e-5"/><worldbody><body>{hinge}{link}<body pos="0 0 0.5">{hinge}{link}</body>
    </body></worldbody></mujoco>"""
    theirs = mujoco.MjModel.from_xml_string(xml)
    A = np.zeros((4, 4))
    mujoco.mjd_transitionFD(theirs, mujoco.MjData(theirs), 1e-6, True, A, None, None, None)
    ours = np.linalg.eigvals(C.linearize(dl.load(xml), np.zeros(2)).A)
    expected = np.log(np.linalg.eigvals(A)) / 1e-5
    np.testing.assert_allclose(np.sort(ours.real), np.sort(expected.real), rtol=1e-3)


# --- tendons in simulations -------------------------------------------------------------------------------------------


def chain(stiffness: float, damping: float, extra: str = "", kind: str = 'axis="0 1 0"') -> str:
    """Two joints in a row without gravity, a tendon across both."""
    bodies = f'<body><joint name="first" {kind}/>{LINK}<body pos="0.3 0 0"><joint name="second" {kind}/>{LINK}'
    return f"""<mujoco><option gravity="0 0 0" timestep="1e-3"/><worldbody>{bodies}</body></body></worldbody><tendon>
    <fixed name="cord" stiffness="{stiffness}" damping="{damping}"><joint joint="first" coef="0.7"/>
    <joint joint="second" coef="-1.2"/></fixed></tendon>{extra}</mujoco>"""


ARMS = np.array([0.7, -1.2])


@pytest.mark.parametrize("stiffness", [50.0, 1e9])
def test_tendons_are_implicit_in_simulations(stiffness):
    """M̂ (v⁺ - v) = h (f - h k r rᵀ v), M̂ = M + (h d + h² k) r rᵀ, on two rails, where nothing else acts."""
    model, h, d = dl.load(chain(stiffness, 3.0, kind='type="slide" axis="1 0 0"')), 1e-3, 3.0
    q, v, K = np.array([0.3, 0.5]), np.array([1.0, -2.0]), stiffness * np.outer(ARMS, ARMS)
    log = dl.Simulation(model, time_step=h, max_contacts=0).run(q, v, steps=1)
    D = d * np.outer(ARMS, ARMS)
    M = np.array([[1.0, 0.5], [0.5, 0.5]])
    expected = v + np.linalg.solve(M + h * D + h * h * K, h * (-K @ q - D @ v - h * K @ v))
    np.testing.assert_allclose(log.v[1], expected, rtol=1e-7)


def test_a_tendon_of_any_stiffness_gains_no_energy():
    """k h²/m is some 2e3: explicit springs are lost from 4 on."""
    log = dl.Simulation(dl.load(chain(1e9, 0.0)), time_step=1e-3, max_contacts=0).run([0.3, 0.5], steps=300)
    assert np.max(log.energy) <= log.energy[0] and np.max(np.abs(log.q[-1] @ ARMS)) < 1e-3
    assert not log.status.any()


def test_tendons_in_simulations_and_motions_pull_as_in_mujoco():
    xml = chain(50.0, 1.0)
    q, theirs = np.array([0.3, 0.5]), mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(theirs)
    data.qpos[:] = q
    for _ in range(10):
        mujoco.mj_step(theirs, data)
    model = dl.load(xml)
    exact = dl.simulate_motion(model, q, times=[0.0, 1e-2], tolerance=1e-12).v[-1]
    stepped = dl.Simulation(model, time_step=1e-3, max_contacts=0).run(q, steps=10).v[-1]
    size = np.max(np.abs(exact))
    np.testing.assert_allclose(data.qvel, exact, atol=0.1 * size)
    np.testing.assert_allclose(stepped, exact, atol=0.1 * size)
    finer = dl.Simulation(model, time_step=1e-5, max_contacts=0).run(q, steps=1000).v[-1]
    np.testing.assert_allclose(finer, exact, atol=1e-3 * size)


def test_a_servo_on_a_tendon_is_stable_at_any_stiffness():
    servo = '<actuator><position tendon="cord" kp="1e7" kv="1e4"/></actuator>'
    log = dl.Simulation(dl.load(chain(0.0, 0.0, servo)), time_step=1e-3, max_contacts=0).run(
        [0.3, 0.5], control=np.array([0.2]), steps=200
    )
    assert log.q[-1] @ ARMS == pytest.approx(0.2, abs=1e-6)
    assert np.max(np.abs(log.v[-1] @ ARMS)) < 1e-6 and np.max(np.abs(log.q)) < 3.0


def test_a_servo_on_a_tendon_keeps_its_limit_and_does_not_overshoot_it():
    """50 N would turn the tendon's motion around within a step, again and again, if they were not lowered in time."""
    servo = '<actuator><velocity tendon="cord" kv="1e4" forcerange="-50 50"/></actuator>'
    sim = dl.Simulation(dl.load(chain(0.0, 0.0, servo)), time_step=1e-3, max_contacts=0)
    log = sim.run([0.3, 0.5], [2.0, -4.0], control=np.zeros(1), steps=200)
    speed = log.v @ ARMS
    assert np.abs(speed[100:]).max() < 1e-6 and np.all(np.diff(np.abs(speed)) < 1e-9)
    first = dl.crba.python(sim.mechanism.model, log.q[0]) @ (log.v[1] - log.v[0]) / 1e-3
    np.testing.assert_allclose(first[0] / first[1], 0.7 / -1.2, rtol=0.2)  # it pulls along its moment arms


def test_a_table_stands_on_legs_that_a_stiff_tendon_couples():
    """Two rails carry the weight by the tendon's tension, 0.5 m g each: 1·T on both."""
    leg = '<geom name="foot_{0}" type="sphere" pos="0 0 -0.5" size="0.05" mass="0.1"/>'
    legs = "".join(
        f'<body pos="{x} 0 0"><joint name="{n}" type="slide" axis="0 0 1"/>{leg.format(n)}</body>'
        for n, x in (("left", -0.3), ("right", 0.3))
    )
    xml = f"""<mujoco><worldbody><geom type="plane" size="0 0 1"/><body pos="0 0 0.55">
    <joint type="slide" axis="0 0 1"/><geom type="box" size="0.4 0.1 0.05" mass="4" contype="0" conaffinity="0"/>{legs}
    </body></worldbody>
    <tendon><fixed name="cord" stiffness="1e8" damping="1e5"><joint joint="left" coef="1"/>
    <joint joint="right" coef="1"/></fixed></tendon></mujoco>"""
    log = dl.Simulation(dl.load(xml), time_step=2e-3).run(np.zeros(3), steps=200)
    np.testing.assert_allclose(log.contact_force[-1, :, 2].sum(), 4.2 * 9.81, rtol=1e-6)
    assert log.q[-1, 1] + log.q[-1, 2] == pytest.approx(0.5 * 4.0 * 9.81 / 1e8, rel=1e-3)
    assert np.abs(log.v[-1]).max() < 1e-6 and not log.status.any()


def four_bar(**numbers) -> dl.Mechanism:
    mechanism = dl.Mechanism(dl.load("four_bar"))
    joints = [replace(j, **numbers) if j.name.startswith("crank") else j for j in mechanism.model.joints]
    return dl.Mechanism(replace(mechanism.model, joints=tuple(joints)))


def test_a_sprung_four_bar_at_rest_is_linear_in_its_crank_angle():
    """About the pose that its torque holds: ẍ = ∂ẍ/∂x x + ∂ẍ/∂ẋ ẋ of the crank, by differences of dense dynamics."""
    numbers = {"stiffness": (30.0,), "damping": (2.0,), "rest": (0.5,)}
    loop, start = four_bar(**numbers), four_bar().posture("home")
    crank = C.ActuatedMechanism(loop, "crank*")

    def acceleration(angle, speed):
        q = dl.assemble.python(loop, start + np.array([angle, 0.0, 0.0]), locked=["crank*"], tolerance=1e-14).q
        way = scipy.linalg.null_space(dl.constraint_jacobian.python(loop, q), rcond=1e-9)[:, 0]
        pulled = np.array([-30.0 * (q[0] - 0.5) - 2.0 * speed, 0.0, 0.0])
        return dl.kkt(loop, q, speed * way / way[0], crank.B @ held.torque + pulled)[0][0]

    q = dl.assemble.python(loop, start, locked=["crank*"], tolerance=1e-14).q
    held = C.gravity_compensation(crank, q)
    assert held.statuses is C.ControlStatus.REALISED and abs(acceleration(0.0, 0.0)) < 1e-9
    h, linear = 1e-5, C.linearize(crank, q, torque=held.torque)
    by_angle = (acceleration(h, 0.0) - acceleration(-h, 0.0)) / (2.0 * h)
    by_speed = (acceleration(0.0, h) - acceleration(0.0, -h)) / (2.0 * h)
    np.testing.assert_allclose(linear.A, [[0.0, 1.0], [by_angle, by_speed]], rtol=1e-6, atol=1e-6)


def test_a_tendon_over_one_joint_is_its_spring_also_in_closed_loops():
    sprung, plain = four_bar(stiffness=(200.0,), damping=(3.0,), rest=(0.5,)), four_bar()
    crank = next(j.name for j in plain.model.joints if j.name.startswith("crank"))
    cord = Tendon("cord", ((crank, 0.5),), stiffness=800.0, damping=12.0, rest=(0.25, 0.25))
    tied = dl.Mechanism(replace(plain.model, tendons=(cord,)))
    q = plain.posture("home")
    one, other = (dl.Simulation(m, time_step=1e-3, max_contacts=0).run(q, steps=50) for m in (sprung, tied))
    np.testing.assert_allclose(other.q, one.q, atol=1e-9)
    np.testing.assert_allclose(other.energy, one.energy, rtol=1e-9)


def test_a_string_through_sites_with_a_spring_moves_a_robot_as_in_mujoco():
    """Its length is no sum of coordinates."""
    sites = '<site name="hook" pos="0 0 1"/>', '<site name="tip"/>'
    xml = f"""<mujoco><worldbody>{sites[0]}<body><joint name="hinge" axis="0 1 0"/>{LINK}{sites[1]}</body></worldbody>
    <tendon><spatial name="cord" stiffness="3" damping="0.1"><site site="hook"/><site site="tip"/></spatial></tendon>
    </mujoco>"""
    mj = mujoco.MjModel.from_xml_string(xml)
    mj.opt.integrator, mj.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, 2e-4
    data = mujoco.MjData(mj)
    data.qpos[0] = 0.1
    mujoco.mj_step(mj, data, 2500)
    model = dl.load(xml)
    exact = dl.simulate_motion(model, [0.1], times=[0.0, 0.5])
    assert exact.q[-1, 0] == pytest.approx(data.qpos[0], abs=1e-7)
    stepped = dl.Simulation(model, time_step=1e-4, max_contacts=0).run([0.1], steps=5000)
    assert stepped.q[-1, 0] == pytest.approx(data.qpos[0], abs=2e-4)


# --- followers --------------------------------------------------------------------------------------------------------


def test_a_tendon_over_a_follower_pulls_what_leads_it():
    a = Assembly("pair")
    a.body("first", Revolute((0, 1, 0)), None, (0, 0, 0), [rod((0, 0, 0), (0.5, 0, 0), 1.0)])
    a.body("second", Revolute((0, 1, 0)), "first", (0.5, 0, 0), [rod((0, 0, 0), (0.5, 0, 0), 1.0)])
    model = a.model()
    first, second = model.joints
    follower = replace(second, mimic=Mimic(0, -0.5, 0.1))
    cord = Tendon("cord", ((first.name, 1.0), (second.name, 2.0)), stiffness=10.0, damping=3.0, rest=(0.05, 0.05))
    model = replace(model, joints=(first, follower), tendons=(cord,))
    q, v = np.array([0.4]), np.array([0.7])
    # length = q + 2 (0.1 - q / 2) = 0.2, whatever q
    np.testing.assert_allclose(dl.dynamics.passive_forces.python(model, q, v), [0.0], atol=1e-12)
    cord = replace(cord, terms=((second.name, 2.0),))  # length = 0.2 - q, rate = -v
    model = replace(model, tendons=(cord,))
    force = dl.dynamics.passive_forces.python(model, q, v)
    np.testing.assert_allclose(force, [10.0 * (0.2 - 0.4 - 0.05) + 3.0 * -0.7], atol=1e-12)
