"""Steps inside the articulated-body recursion: laws of joints, the recursion, and whole steps against their laws."""

from dataclasses import replace

import numpy as np
import pytest

import delassus as dl
from delassus.dynamics.kinematics.kinematics import world_poses
from delassus.geometry.point_jacobians import PointJacobians
from delassus.model.links import links_of
from delassus.simulation import position_servos
from delassus.step.articulated.joint_laws import JointLaw, ServoLaw, joint_mode
from delassus.step.articulated.tree_solve import factor_supported_tree, world_inertias
from refusals import refuses

H = 2e-3
TOUCHING = ("*_calf_1", "trunk_0")


@pytest.mark.parametrize(
    "law",
    [
        JointLaw(friction=0.3),
        JointLaw(limits=(-0.2, 0.5)),
        JointLaw(servo=ServoLaw(0.4, 2.0, -0.5, 0.7)),
        JointLaw(0.3, (-0.2, 0.5), ServoLaw(0.4, 2.0, -0.5, 0.7)),
        JointLaw(0.3, (0.0, np.inf), ServoLaw(-0.1, 0.0, -0.5, 0.7)),
    ],
)
def test_velocity_and_impulse_of_a_joint_obey_its_laws(law):
    rho = 1.7
    for x in np.linspace(-4.0, 4.0, 401):
        v = float(joint_mode(law, rho, x).v)
        left = x - rho * v  # -p, less what servo and friction have of it
        if law.servo is not None:
            left -= np.clip(law.servo.B * v - law.servo.A, law.servo.lower, law.servo.upper)
        c = law.friction or 0.0
        lo, hi = law.limits or (-np.inf, np.inf)
        assert lo <= v <= hi
        least = c if v > 0.0 else -c
        most = -c if v < 0.0 else c
        least, most = (-np.inf if v == lo else least), (np.inf if v == hi else most)
        assert least - 1e-12 <= left <= most + 1e-12


def test_modes_tell_the_slope_of_the_law():
    law, rho = JointLaw(0.3, (-0.2, 0.5), ServoLaw(0.4, 2.0, -0.5, 0.7)), 1.7
    for x in np.random.default_rng(0).uniform(-3.0, 3.0, 200):
        mode, step = joint_mode(law, rho, x), 1e-7
        slope = float(joint_mode(law, rho, x + step).v - joint_mode(law, rho, x - step).v) / (2.0 * step)
        expected = 0.0 if mode.locked else 1.0 / (rho + mode.slope)
        assert slope == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", ["quadruped", "humanoid"])
def test_the_recursion_solves_the_dense_equations_with_supports_and_locked_joints(name):
    model, rng = dl.load(name), np.random.default_rng(1)
    tree, nv = links_of(model), model.nv
    q = np.asarray(dl.integrate(model, model.neutral(), rng.normal(size=nv)))
    poses = world_poses(tree, q)
    reach = PointJacobians.of(tree, nv, poses)
    V = [np.asarray(column) for column in reach.columns]
    touching = [len(tree.links) - 1, len(tree.links) // 2]
    supports = {link: 1e3 * rng.normal(size=(6, 6)) + 5e3 * np.eye(6) for link in touching}
    locked = [None if k < 6 else bool(rng.integers(2)) for k in range(nv)]
    added, tau = rng.uniform(size=nv), rng.normal(size=nv)
    armature = np.array([x for link in tree.links for x in link.armature])
    factors = factor_supported_tree(
        tree, V, world_inertias(tree, poses, reach.center), supports, added + armature, locked
    )
    dv, force = (np.asarray(x) for x in factors.solve(tau))
    A = dl.crba(model, q) + np.diag(added)
    for link, K in supports.items():
        motion = np.stack([V[k] * reach.carries[link, k] for k in range(nv)], axis=1)
        A = A + motion.T @ K @ motion
    free = [k for k in range(nv) if not locked[k]]
    held = [k for k in range(nv) if locked[k]]
    np.testing.assert_allclose(dv[free], np.linalg.solve(A[np.ix_(free, free)], tau[free]), rtol=1e-8, atol=1e-10)
    assert not dv[held].any()
    np.testing.assert_allclose(force[held], (tau - A @ dv)[held], rtol=1e-7, atol=1e-9)


def rough_quadruped(limit: float = np.inf) -> tuple[dl.Model, dict]:
    """The quadruped with dry friction in all joints and servos, as strong as a limit [N·m]."""
    model = dl.load("quadruped")
    rough = {"friction": (0.3,), "effort_limit": (limit,)}
    joints = (replace(joint, **rough) if joint.kind.nv == 1 else joint for joint in model.joints)
    model = replace(model, joints=tuple(joints))
    servos = position_servos(model, 60.0, 1.5)
    return model, {"actuators": servos, "time_step": H, "ground": dl.Ground(friction=0.6), "touching": TOUCHING}


def thrown(model: dl.Model, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Configurations, velocities and targets of servos of robots that fall, some onto their feet."""
    rng = np.random.default_rng(2)
    q = np.tile(model.posture("home"), (count, 1))
    half = count // 2
    turn = rng.normal(size=(count - half, 4))
    q[half:, 3:7] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
    return q, 0.2 * rng.normal(size=(count, model.nv)), q[:, 7:] + 0.4 * rng.normal(size=(count, model.nv - 6))


def test_the_recursion_and_the_delassus_matrix_lead_to_the_same_velocities():
    model, options = rough_quadruped()
    options |= {"touching": "*_calf_1", "max_limits": 0}  # friction and limit share impulses in more than one way
    tree, dual = (dl.Simulation(model, method=method, **options) for method in ("articulated", "dual"))
    q, v, u = thrown(model, 16)
    state = tree.start(q, v)
    for _ in range(50):
        one, other = tree.step(state, u), dual.step(state, u)
        scale = 1.0 + np.abs(other.v).max(-1)
        assert np.max(np.abs(one.v - other.v).max(-1) / scale) < 1e-6
        assert not (one.status | other.status).any()
        state = one
    assert (state.impulse[:, list(tree.scene.friction_rows)] != 0.0).all()
    assert (state.impulse[:, list(tree.scene.normals)] > 0.0).any(-1).sum() > 5


def test_contacts_between_bodies_join_branches_of_the_tree():
    model, options = rough_quadruped()
    options |= {"max_limits": 0, "touching": (), "max_contacts": 2}
    options["colliding"] = [(f"{end}_left_calf_1", f"{end}_right_calf_1") for end in ("front", "hind")]
    tree, dual = (dl.Simulation(model, method=method, **options) for method in ("articulated", "dual"))
    q = np.tile(model.posture("home"), (8, 1))
    u = q[:, 7:] + 0.1 * np.random.default_rng(3).normal(size=(8, 12))
    u[:, 0::3] += np.array([-1.0, 1.0, -1.0, 1.0])
    state, pressed = tree.start(q), 0
    for _ in range(150):
        one, other = tree.step(state, u), dual.step(state, u)
        assert np.max(np.abs(one.v - other.v).max(-1) / (1.0 + np.abs(other.v).max(-1))) < 1e-6
        state, pressed = one, pressed + (one.impulse[:, 2] > 0.0).sum()
    assert pressed > 100


@pytest.mark.parametrize("turn", [0.8, 0.9])
def test_pairs_in_classes_join_branches_too(turn):
    """The shanks of left and right legs strike each other at 20 rad/s."""
    model, options = rough_quadruped()
    options |= {"max_limits": 0, "touching": (), "max_contacts": 4}
    parts = [f"{end}_{{}}_{part}_0" for end in ("front", "hind") for part in ("thigh", "calf")]
    options["colliding"] = [(part.format("left"), part.format("right")) for part in parts]
    sim = dl.Simulation(model, method="articulated", **options)
    assert sim.scene.pair_classes and not sim.scene.collisions
    inwards = np.array([-1.0, 1.0, -1.0, 1.0])
    q, v = np.array(model.posture("home")), np.zeros(model.nv)
    q[7::3] += turn * inwards
    v[6::3] = 20.0 * inwards
    impulses = sim.stages(sim.start(q, v), q[7:]).impulses
    assert impulses.converged and impulses.iterations <= 20
    assert np.max(impulses.impulse[2 : sim.scene.contact_end : 3]) > 1.0


@pytest.mark.parametrize("seed", [3, 4])
def test_flat_feet_at_the_onset_of_sliding_take_few_iterations(seed):
    """A humanoid on eight redundant points, whose stiff servos are suddenly given other targets."""
    model = dl.load("humanoid")
    rough = {"friction": (0.05,), "effort_limit": (1000.0,)}
    joints = (replace(joint, **rough) if joint.kind.nv == 1 else joint for joint in model.joints)
    model = replace(model, joints=tuple(joints))
    options = {"touching": ("*_foot_0",), "max_limits": 0, "actuators": position_servos(model, 1000.0, 20.0)}
    ground = dl.Ground(friction=0.6, torsional=0.005, rolling=0.0005)
    sim = dl.Simulation(model, method="articulated", ground=ground, time_step=H, **options)
    q = model.posture("home")
    u, state = q[7:] + 0.5 * np.random.default_rng(seed).uniform(-1.0, 1.0, sim.nu), sim.start(q)
    for _ in range(2):
        stages = sim.stages(state, u)
        assert stages.impulses.converged and stages.impulses.iterations <= 10
        rows, places = np.asarray(stages.impulses.impulse), np.asarray(stages.contacts.candidate)
        state = replace(state, q=np.asarray(stages.q), v=np.asarray(stages.v), impulse=rows, contact=places)


def test_impulses_of_a_step_obey_all_laws_of_contacts_and_joints():
    model, options = rough_quadruped(limit=8.0)
    sim = dl.Simulation(model, method="articulated", **options)
    q, v, u = thrown(model, 16)
    state = sim.start(q, v)
    pushed = stuck = saturated = 0
    for k in range(80):
        if k % 20 == 19:
            for i in range(len(q)):
                counts = check_step(sim, state[i], u[i], sim.stages(state[i], u[i]))
                pushed, stuck, saturated = pushed + counts[0], stuck + counts[1], saturated + counts[2]
        state = sim.step(state, u)
    assert pushed > 20 and stuck > 5 and saturated > 20


def check_step(sim: dl.Simulation, state, u, stages) -> tuple[int, int, int]:
    """Check the equation of motion and every law; how many contacts push, joints stick and servos saturate."""
    scene, model, v, impulse = sim.scene, sim.model, np.asarray(stages.velocity), np.asarray(stages.impulses.impulse)
    end, tolerance = scene.contact_end, 1e-6
    J, gap = np.asarray(stages.system.rows.J), np.asarray(stages.contacts.gap)
    raw = 60.0 * (u - state.q[7:] - H * v[6:]) - 1.5 * v[6:]
    torque = np.concatenate([np.zeros(6), np.clip(raw, -8.0, 8.0)])
    damping = np.array([d for joint in model.joints for d in (joint.damping or (0.0,) * joint.kind.nv)])
    momentum = dl.crba(model, state.q) @ (v - state.v) - H * (
        torque - damping * v + np.asarray(stages.system.weight - stages.system.products)
    )
    np.testing.assert_allclose(momentum, J.T @ impulse, atol=tolerance)
    lam, sigma = impulse[:end].reshape(-1, 3), (J[:end] @ v).reshape(-1, 3)
    closing = sigma[:, 2] + np.maximum(gap, 0.0) / H
    assert (lam[:, 2] >= 0.0).all() and (np.hypot(*lam[:, :2].T) <= 0.6 * lam[:, 2] + tolerance).all()
    pushes = lam[:, 2] > tolerance
    assert (closing > -1e-5).all()
    slides = pushes & (np.hypot(*lam[:, :2].T) < 0.6 * lam[:, 2] - tolerance)
    friction = impulse[list(scene.friction_rows)]
    assert (np.abs(friction) <= 0.3 * H + 1e-12).all()
    moving = np.abs(v[6:]) > 1e-6
    np.testing.assert_allclose(friction[moving], -0.3 * H * np.sign(v[6:][moving]), atol=1e-12)
    assert (impulse[list(scene.limit_rows)] >= 0.0).all()
    assert (np.abs(sigma[slides][:, :2]) < 1e-4).all()
    return int(pushes.sum()), int((~moving).sum()), int((np.abs(raw) > 8.0).sum())


def test_a_servo_that_saturates_within_a_step_pushes_with_its_limit():
    """One joint: m v⁺ = m v + h clip(k (u - q - h v⁺) - d v⁺)."""
    joint = dl.model.Joint(
        "slide",
        dl.model.Prismatic((1.0, 0.0, 0.0)),
        inertia=dl.model.Inertia(mass=0.1),
        friction=(0.05,),
        effort_limit=(2.0,),
    )
    model = dl.Model("cart", (joint,))
    sim = dl.Simulation(model, actuators=position_servos(model, 500.0, 1.0), time_step=H, method="articulated")
    state = sim.start([0.0])
    for target in (0.001, 0.0045, 0.0075, 0.3):
        v = np.asarray(sim.step(state, [target]).v)[0]
        push = np.clip(500.0 * (target - H * v) - v, -2.0, 2.0)
        assert 0.1 * v == pytest.approx(H * (push - 0.05), rel=1e-9)


@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize("angle", [0.4, 0.6, 0.8])
def test_a_rod_that_jams_stops(angle, side):
    """Painlevé's rod slides on its lower end. Friction pushes this end into the ground, so the rod cannot slide on: an
    impulse without impact stops it. Its mass matrix is diagonal."""
    rod = f"""<mujoco><option timestep="{H}"/><worldbody><geom type="plane" size="5 5 .1" friction="2 0 0"/><body>
      <joint name="x" type="slide" axis="1 0 0" frictionloss=".01"/><joint name="z" type="slide" axis="0 0 1"/>
      <joint name="turn" axis="0 1 0" frictionloss=".01"/><inertial pos="0 0 0" mass="1" diaginertia=".083 .083 .083"/>
      <geom type="sphere" size=".01" pos="0 0 -.5" friction="2 0 0"/></body></worldbody></mujoco>"""
    sim = dl.Simulation(dl.load(rod), time_step=H, method="articulated", ground=dl.Ground(friction=2.0))
    q = [0.0, 0.5 * np.cos(angle) + 0.01, side * angle]
    stages = sim.stages(sim.start(q, [-2.0 * side, 0.0, 0.0]), np.zeros(sim.nu))
    v, (along, across, normal) = np.asarray(stages.velocity), np.asarray(stages.impulses.impulse)[:3]
    assert stages.impulses.converged and abs(across) < 1e-9
    tip = v[:2] + v[2] * np.array([-0.5 * np.cos(angle) - 0.01, 0.5 * side * np.sin(angle)])
    assert np.abs(tip).max() < 1e-6 and abs(along) < 2.0 * normal
    pushes = v - [-2.0 * side, -9.81 * H, 0.0]
    assert np.abs(np.abs(pushes[:2]) - [abs(along), normal]).max() < 1e-4  # and 2e-5 N s of joint friction


def test_bodies_with_several_joints_are_simulated():
    """The links between the joints of a body have no inertia."""
    ball = """<mujoco><worldbody><geom type="plane" size="5 5 .1"/><body pos="0 0 .5">
      <joint name="z" type="slide" axis="0 0 1"/><joint name="x" type="slide" axis="1 0 0" frictionloss=".01"/>
      <geom type="sphere" size=".1" mass="1"/></body></worldbody></mujoco>"""
    recursion, matrix = (
        dl.Simulation(dl.load(ball), time_step=H, method=method).run([-0.39, 0.0], [0.0, 1.0], steps=80)
        for method in ("articulated", "dual")
    )
    np.testing.assert_allclose(recursion.q, matrix.q, atol=1e-8)
    assert recursion.q[-1, 0] == pytest.approx(-0.4, abs=1e-6)
    assert not recursion.status.any()


def test_active_joint_limits_need_no_full_contact_set():
    """A quadruped stands with its knees pressed against their limits: the slots have the reduced set's candidates."""
    model, options = rough_quadruped()
    sim = dl.Simulation(model, method="articulated", **options)
    q = model.posture("home")
    state, u = sim.start(q), np.array(q[7:])
    u[2::3] -= 3.0
    for _ in range(120):
        state = sim.step(state, u)
    assert (state.impulse[list(sim.scene.limit_rows)] > 0.1).all() and not state.status
    assert state.contact[:4].tolist() == list(sim.reduced_scene.reduced)


def test_limits_that_are_violated_are_corrected_with_the_full_contact_set():
    """Legs start beyond their limits, near contacts outside the reduced set, which the correction must not close."""
    model, options = rough_quadruped()
    colliding = [("*_calf*", "*_calf*"), ("*_calf*", "trunk*")]
    sim = dl.Simulation(model, method="articulated", **options | {"touching": "*", "colliding": colliding})
    assert sim.reduced_scene.reduced is not None
    rng, count = np.random.default_rng(5), 10
    q = np.tile(model.posture("home"), (count, 1))
    turn = rng.normal(size=(count, 4))
    q[:, 2], q[:, 3:7] = 0.25, turn / np.linalg.norm(turn, axis=1, keepdims=True)
    q[:, 7:] += 1.2 * rng.normal(size=(count, 12))
    log = sim.run(q, rng.normal(size=(count, model.nv)), control=q[:, 7:][None], steps=1)
    for k in range(count):
        stages = sim.stages(sim.start(log.q[0, k], log.v[0, k]), q[k, 7:])
        np.testing.assert_allclose(log.q[1, k], stages.q, atol=1e-8)
        np.testing.assert_allclose(log.v[1, k], stages.v, atol=1e-6)


def test_what_the_recursion_cannot_solve_is_refused_in_words():
    with refuses("not-supported", "loops"):
        dl.Simulation(dl.load("four_bar"), method="articulated")


def test_the_cheaper_method_is_chosen():
    model, options = rough_quadruped()
    assert dl.Simulation(model, **options).scene.method == "articulated"
    assert dl.Simulation(dl.load("quadruped"), time_step=H).scene.method == "auto"
    assert dl.Simulation(model, method="dual", **options).scene.method == "auto"


def test_a_robot_in_flight_keeps_its_momentum_whatever_its_joints_and_legs_do():
    """Joints rub, beat against their limits, and legs strike: the step solves for velocities to a tolerance alone."""
    model = dl.load("quadruped")
    joints = tuple(replace(j, friction=(0.4,)) if j.kind.nv == 1 else j for j in model.joints)
    model, rng = replace(model, joints=joints), np.random.default_rng(0)
    q = np.tile(model.posture("home"), (64, 1)) + np.eye(19)[2] * 100.0
    legs = [("*_left_calf_1", "*_right_calf_1"), ("front*_calf_1", "trunk_0")]
    options = {"method": "articulated", "joint_friction": True, "touching": (), "colliding": legs}
    log = dl.Simulation(model, dl.Ground(), H, **options).run(q, rng.normal(0.0, 10.0, (64, model.nv)), steps=200)
    momentum = dl.centroidal_momentum(model, log.q, log.v)[..., :3]
    expected = momentum[0] + log.time[:, None, None] * model.mass * np.array(model.gravity)
    assert np.abs(momentum - expected).max() < 1e-12 * np.abs(momentum).max()
