"""Robots among free bodies, stepped by loops over bodies and contacts: against straight-line steps and mechanics."""

import numpy as np
import pytest

import delassus as dl
from delassus.errors import DelassusWarning
from delassus.simulation.checks import SimulationError
from delassus.step.bodies.kernels import simulate_robots
from delassus.step.bodies.robots import scene_parts

TOUCH = 'friction="0.6 0 0" condim="3"'
PLANE = f'<geom type="plane" size="9 9 .1" {TOUCH}/>'
PADDLE = (
    '<body name="paddle" pos="0 0 .3"><joint name="shoulder" axis="0 1 0" damping="0.1" limited="true" range="-2 .4"/>'
    f'<geom type="capsule" fromto="0 0 0 .3 0 0" size=".04" mass="1" {TOUCH}/>'
    '<body pos=".3 0 0"><joint name="elbow" axis="0 1 0" frictionloss="0.05"/>'
    f'<geom type="capsule" fromto="0.1 0 0 .3 0 0" size=".03" mass=".5" {TOUCH}/></body></body>'
)
SERVO = '<actuator><position joint="shoulder" kp="50" kv="2" forcerange="-20 20"/></actuator>'


def body(name, place, shape='type="box" size=".05 .05 .05"', mass=1.0):
    x, y, z = place
    geom = f'<geom name="{name}" {shape} mass="{mass}" {TOUCH}/>'
    return f'<body name="{name}" pos="{x} {y} {z}"><freejoint/>{geom}</body>'


def scene(*parts, gravity="0 0 -9.81", tail=""):
    return dl.load(f'<mujoco><option gravity="{gravity}"/><worldbody>{"".join(parts)}</worldbody>{tail}</mujoco>')


def simulation(model, **options):
    options = {"time_step": 1e-3, "max_contacts": 24, "max_limits": 2} | options
    return dl.Simulation(model, **options)


# --- the same steps as straight-line code -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("restitution", [0.0, 0.5])
def test_loops_move_a_paddle_and_balls_as_straight_code_does(restitution):
    balls = [body(f"b{k}", (0.2 + 0.15 * k, 0, 0.5), 'type="sphere" size=".05"') for k in range(2)]
    model, ground = scene(PLANE, PADDLE, *balls, tail=SERVO), dl.Ground(friction=0.6, restitution=restitution)
    loops, straight = (
        simulation(model, ground=ground, method=method).run(steps=300, control=[0.3]) for method in ("sweeps", "dual")
    )
    np.testing.assert_allclose(loops.q, straight.q, atol=1e-6)
    assert not loops.status.any()


# --- what is chosen, and what is refused ------------------------------------------------------------------------------


def boxes(count, z=0.0505):
    return [body(f"b{k}", (0.35 + 0.12 * k, 0, z)) for k in range(count)]


def test_a_robot_beside_three_bodies_is_stepped_by_loops():
    assert simulation(scene(PLANE, PADDLE, *boxes(3))).scene.many_bodies is not None
    assert simulation(scene(PLANE, PADDLE, *boxes(2))).scene.many_bodies is None


def test_a_welded_body_is_a_part_of_the_robots():
    weld = '<equality><weld body1="b0" body2="paddle"/></equality>'
    parts = scene_parts(simulation(scene(PLANE, PADDLE, *boxes(4), tail=weld)).scene)
    assert len(parts.bodies) == 3


def test_rolling_friction_among_bodies_and_robots_is_refused_by_loops():
    with pytest.raises(SimulationError, match="torsional or rolling friction"):
        simulation(scene(PLANE, PADDLE, *boxes(3)), ground=dl.Ground(friction=0.6, rolling=1e-3), method="sweeps")


def test_a_robot_without_limits_and_friction_pushes_bodies():
    ball = f'<geom type="sphere" size=".04" mass="1" {TOUCH}/>'
    slider = f'<body pos="0 0 .05"><joint type="slide" axis="1 0 0"/>{ball}</body>'
    sim = simulation(scene(PLANE, slider, *boxes(3)), max_contacts=None)
    log = sim.run(v0=np.concatenate([[2.0], np.zeros(18)]), steps=200)
    assert log.q[-1, 1] > 0.36
    assert not log.status.any()


def test_free_bodies_in_straight_line_code_are_warned_of():
    with pytest.warns(DelassusWarning, match="torsional or rolling friction"):
        simulation(scene(PLANE, PADDLE, *boxes(3)), ground=dl.Ground(friction=0.6, rolling=1e-3))


def test_an_arm_beside_twenty_boxes_is_a_short_program():
    scene_of_twenty = dl.Simulation(scene(PLANE, PADDLE, *boxes(20), tail=SERVO)).scene
    assert sum(simulate_robots.program(scene_of_twenty).count().values()) < 100_000


# --- mechanics --------------------------------------------------------------------------------------------------------

FINGER = (
    '<body pos="{x} 0 -.03"><joint name="{name}" type="slide" axis="{axis} 0 0" limited="true" range="-.05 .05"/>'
    f'<geom type="box" size=".01 .02 .05" mass=".05" {TOUCH}/></body>'
)
GRIPPER = (
    '<body name="hand" pos="0 0 .09"><joint name="lift" type="slide" axis="0 0 1" damping="1"/>'
    f'<geom type="box" size=".08 .03 .02" pos="0 0 .05" mass=".5" {TOUCH}/>'
    + FINGER.format(x=-0.05, name="left", axis=1)
    + FINGER.format(x=0.05, name="right", axis=-1)
    + "</body>"
)
GRIPPING = (
    '<actuator><position joint="lift" kp="2000" kv="100"/><position joint="left" kp="400" kv="10" '
    'forcerange="-10 10"/><position joint="right" kp="400" kv="10" forcerange="-10 10"/></actuator>'
)
CUBE = 'type="box" size=".03 .03 .03"'


@pytest.fixture(scope="module")
def lifted():
    """A cube that a gripper lifts by 0.2 m in a second, and cubes that lie beside it."""
    cubes = [body(f"b{k}", (0.4 * k, 0, 0.0301), CUBE, 0.2) for k in range(4)]
    sim = simulation(scene(PLANE, GRIPPER, *cubes, tail=GRIPPING), ground=dl.Ground(friction=1.0), max_contacts=None)
    return sim.run(steps=3000, control=lambda t, q, v: np.array([0.2 * np.clip(t - 0.5, 0.0, 1.0), 0.05, 0.05]))


def test_a_cube_in_a_gripper_does_not_slip(lifted):
    height = lifted.q[-500:, 5]
    assert height[-1] > 0.2
    slip = np.diff(height - lifted.q[-500:, 0]) / 1e-3
    assert np.abs(slip).max() < 1e-9
    assert not (lifted.status & dl.Mark.UNSOLVED).any()


def test_cubes_that_lie_beside_a_robot_do_not_creep(lifted):
    assert np.abs(np.diff(lifted.q[-500:, 10:], axis=0)).max() / 1e-3 < 1e-8


@pytest.fixture(scope="module", params=[0.0, 1.0])
def struck(request):
    """A ball of 10 kg strikes the trunk of a quadruped, without gravity, and then another ball."""
    xml = '<mujoco><worldbody><body name="ball"><freejoint/><geom name="ball" type="sphere" size=".1" mass="10"/>'
    ball, model = dl.load(xml + "</body></worldbody></mujoco>"), dl.load("quadruped").with_gravity([0, 0, 0])
    for k in range(3):
        model = model.attach(ball, "world", prefix=f"{k}_")
    ground = dl.Ground(friction=0.5, restitution=request.param, height=-100.0)
    sim = dl.Simulation(model, ground, 1e-3, colliding=[("*_ball", "trunk_0"), ("*_ball", "*_ball")])
    q, v = np.array(model.neutral()), np.zeros(model.nv)
    q[-21:] = [0.05, 0.02, 0.6, 0, 0, 0, 1, 0.1, 0.02, 1.0, 0, 0, 0, 1, 3, 3, 3, 0, 0, 0, 1]
    v[-16] = -5.0
    return model, sim.run(q, v, steps=300, control=np.zeros(sim.nu))


def test_impacts_between_robots_and_bodies_leave_their_momentum_alone(struck):
    model, log = struck
    P = dl.centroidal_momentum(model, log.q, log.v)[:, :3]
    np.testing.assert_allclose(P, P[:1] + np.zeros_like(P), atol=1e-12 * 50.0)


def test_impacts_between_robots_and_bodies_add_no_energy(struck):
    model, log = struck
    E = dl.kinetic_energy(model, log.q, log.v)
    assert E[-1] < 0.95 * E[0]
    assert np.all(E - np.minimum.accumulate(E) < 1e-12 * E[0])
