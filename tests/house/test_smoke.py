"""Smoke tests: does the package import, compile and move one robot in every way, with NumPy and llvmlite alone?

`make smoke` runs them with a part of the house rules and of the golden kernels, within a minute, before anything else.
Each case is checked against mathematics: equations of motion, weights, free fall.
"""

import importlib
import pkgutil

import numpy as np
import pytest
from typer.testing import CliRunner

import delassus as dl
from delassus.cli import app
from delassus.control import FollowPosture, Nominal, ReactiveControl, Support
from delassus.control.reactive.react import react
from physics_scenes import free_ball

pytestmark = pytest.mark.smoke

G = 9.81
PEERS = {"clarabel", "gymnasium", "jax", "matplotlib", "mpl_toolkits", "mujoco", "pinocchio", "proxsuite", "scipy"}
PEERS |= {"stable_baselines3"}
QUADRUPED, PENDULUM = dl.load("quadruped"), dl.load("double_pendulum")
FEET = [frame.name for frame in QUADRUPED.frames("*_foot")]
HOME = np.asarray(QUADRUPED.posture("home"))
WEIGHT = G * sum(joint.inertia.mass for joint in QUADRUPED.joints)


# --- imports ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("room", sorted(m.name for m in pkgutil.iter_modules(dl.__path__) if m.name != "__main__"))
def test_all_modules_of_a_room_import(room):
    package = importlib.import_module(f"delassus.{room}")
    places = package.__spec__.submodule_search_locations or ()
    for name in [m.name for m in pkgutil.walk_packages(places, f"{package.__name__}.")]:
        try:
            importlib.import_module(name)
        except ImportError as error:
            assert (error.name or "").partition(".")[0] in PEERS, f"{name}: {error}"


def test_all_public_names_are_there():
    rooms = {name: importlib.import_module(f"delassus.{name}") for name in dl.NAMESPACES}
    assert not [
        f"{name}.{public}" for name, room in rooms.items() for public in room.__all__ if not hasattr(room, public)
    ]


def test_all_robots_of_the_package_load():
    assert all(dl.load(name).nv > 0 for name in dl.robots())


@pytest.mark.parametrize("command", ["doctor", "info pendulum"])
def test_a_command_of_the_terminal_works(command):
    assert CliRunner().invoke(app, command.split()).exit_code == 0


def test_a_robot_is_read_from_a_file(tmp_path):
    inertia = '<inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    joint = '<joint name="j" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/></joint>'
    (tmp_path / "robot.urdf").write_text(
        f'<robot name="r"><link name="a"/><link name="b">{inertia}</link>{joint}</robot>'
    )
    assert dl.load(tmp_path / "robot.urdf").nv == 1


# --- dynamics ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def state():
    """A configuration, velocities and forces of the quadruped in the air."""
    rng = np.random.default_rng(0)
    q = dl.integrate.python(QUADRUPED, HOME, 0.2 * rng.normal(size=QUADRUPED.nv))
    return q, rng.normal(size=QUADRUPED.nv), rng.normal(size=QUADRUPED.nv)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_forward_dynamics_undo_inverse_dynamics(state, dtype):
    q, v, tau = state
    a = dl.aba(QUADRUPED, q, v, tau, dtype=dtype)
    assert a.dtype == dtype
    assert np.allclose(dl.rnea.python(QUADRUPED, q, v, a), tau, atol=1e-10 if dtype == "float64" else 1e-2)


def test_a_batch_is_its_states_one_by_one(state):
    q, v, tau = (np.stack([x, x, x]) for x in state)
    v = v * np.array([[1.0], [0.5], [0.0]])
    assert np.array_equal(dl.aba(QUADRUPED, q, v, tau), [dl.aba(QUADRUPED, *x) for x in zip(q, v, tau, strict=True)])


@pytest.mark.parametrize("method", [dl.caba, dl.prox_pv, dl.prox_ltl, dl.prox_ltls], ids=lambda method: method.name)
def test_constrained_dynamics_solve_the_equations_of_motion(method):
    robot = dl.Mechanism(dl.load("five_bar"))
    q, v, tau = robot.model.posture("home"), np.zeros(robot.nv), np.array([0.3, -0.2, 0.0, 0.0])
    a, force = method(robot, q, v, tau)
    J, bias = (kernel.python(robot, *x) for kernel, x in ((dl.constraint_jacobian, (q,)), (dl.constraint_bias, (q, v))))
    assert np.allclose(dl.rnea.python(robot.model, q, v, a), tau + J.T @ force, atol=1e-8)
    assert np.allclose(J @ a + bias, 0.0, atol=1e-8)


def test_constrained_dynamics_tell_that_they_converged():
    robot = dl.Mechanism(dl.load("four_bar"))
    assert dl.constrained_dynamics(robot, robot.model.posture("home"), [0.0] * 3, [0.0] * 3).status == 0


def test_derivatives_are_those_of_differences():
    q, v, tau, h = np.array([0.3, -0.5]), np.array([0.4, 0.1]), np.zeros(2), 1e-6
    found = np.asarray(dl.aba_derivatives(PENDULUM, q, v, tau)[0])
    steps = h * np.eye(2)
    differences = [(dl.aba.python(PENDULUM, q + s, v, tau) - dl.aba.python(PENDULUM, q - s, v, tau)) for s in steps]
    assert np.allclose(found, np.stack(differences, -1) / (2 * h), rtol=1e-6, atol=1e-6)


# --- time -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["rk4", "dopri5", "gauss"])
def test_a_motion_keeps_its_energy(method):
    q, v = [1.0, 0.5], [0.0, 0.0]
    log = dl.simulate_motion(PENDULUM, q, v, times=[0.0, 0.1], method=method, step=None if method == "dopri5" else 1e-3)
    energy = dl.kinetic_energy(PENDULUM, log.q, log.v) + dl.potential_energy(PENDULUM, log.q)
    assert abs(energy[-1] - energy[0]) < 1e-5


def test_feet_carry_the_weight_in_contact_dynamics():
    contacts = [dl.Contact(foot, radius=0.02) for foot in FEET]
    q = _standing()
    step = dl.contact_dynamics(QUADRUPED, q, np.zeros(18), _holding(q), contacts=contacts, friction=0.7, time_step=1e-3)
    assert np.sum(step.impulse[2:12:3]) == pytest.approx(1e-3 * WEIGHT, rel=1e-6)


def test_a_ball_falls_freely_and_stops_in_compliant_steps():
    scene = free_ball(0.1, 1.0)
    falling, resting = np.array([[0, 0, 1.0, 0, 0, 0, 1], [0, 0, 0.1, 0, 0, 0, 1]]), np.zeros((2, 6))
    step = dl.stepping.compliant_step(
        scene.model, falling, resting, np.zeros((2, 6)), contacts=scene.contacts, friction=0.5, time_step=1e-3
    )
    assert np.allclose(step.v[:, 2], [-G * 1e-3, 0.0], atol=1e-9)


def test_a_quadruped_stands_in_a_simulation():
    servos = dl.simulation.position_servos(QUADRUPED, 200.0, 5.0)
    sim = dl.Simulation(QUADRUPED, actuators=servos, touching="*_calf_1", max_limits=0)
    log = sim.run(_standing(), control=HOME[7:], steps=200)
    assert abs(log.q[-1, 2] - HOME[2]) < 0.03
    assert np.abs(log.v[-1]).max() < 0.2


def test_a_ball_bounces_to_the_height_of_its_restitution():
    sim = dl.Simulation(free_ball(0.1, 1.0).model, dl.Ground(restitution=0.5), 1e-3)
    log = sim.run([0.0, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0], steps=350)
    after = log.q[np.argmin(log.q[:, 2]) :, 2]
    assert after.max() - 0.1 == pytest.approx(0.25 * 0.2, abs=2e-3)


def test_reactive_control_holds_a_quadruped():
    control = ReactiveControl(
        QUADRUPED,
        tasks=(FollowPosture(weight=1.0, stiffness=20.0), Nominal(force=1e-4)),
        supports=[Support(foot, 0.6) for foot in FEET],
    )
    q = _standing()
    found = react.python(control, q, np.zeros(18), control.reference(q))
    assert np.sum(found.force[2::3]) == pytest.approx(WEIGHT, rel=1e-3)


def test_particles_fall_freely():
    pytest.importorskip("scipy")
    P = dl.particles
    system = P.Particles([[0.0, 0.0, 1.0]], [1.0])
    log = P.simulate_particles(system, P.initial_state(system), time_step=1e-2, steps=3)
    assert np.allclose(log.v[-1, 0], [0.0, 0.0, -3e-2 * G])


def _standing() -> np.ndarray:
    """The posture "home" with the feet on the ground."""
    q = HOME.copy()
    lowest = min(dl.frame_placement.python(QUADRUPED, q, frame=foot)[1][2] for foot in FEET)
    q[2] -= lowest - 0.02
    return q


def _holding(q: np.ndarray) -> np.ndarray:
    """Forces that hold the joints: those of gravity with the weight on four feet alike."""
    push = np.array([0.0, 0.0, WEIGHT / 4])
    J = [dl.frame_jacobian.python(QUADRUPED, q, frame=f, reference="LOCAL_WORLD_ALIGNED")[:3] for f in FEET]
    tau = dl.rnea.python(QUADRUPED, q, np.zeros(18), np.zeros(18)) - sum(x.T @ push for x in J)
    return np.concatenate([np.zeros(6), tau[6:]])
