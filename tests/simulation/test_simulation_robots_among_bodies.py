"""Robots among free bodies, stepped by loops over bodies and contacts: against straight-line steps and mechanics."""

import numpy as np
import pytest

import delassus as dl
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


def test_an_arm_beside_twenty_boxes_is_a_short_program():
    scene_of_twenty = dl.Simulation(scene(PLANE, PADDLE, *boxes(20), tail=SERVO)).scene
    assert sum(simulate_robots.program(scene_of_twenty).count().values()) < 100_000
