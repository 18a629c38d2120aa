"""Joints of simulated robots: limits, dry friction, springs, dampers, servos, motors; and slots for contacts."""

import math
from dataclasses import replace

import numpy as np
import pytest

import delassus as dl
from delassus.model import Free, Inertia, Joint, Model, Placement, Prismatic, Revolute
from delassus.model.parts import Geometry
from delassus.simulation import Mark, motors, position_servos, velocity_servos
from refusals import refuses

G, H = 9.81, 1e-3


def rail(mass: float = 2.0, **numbers: tuple[float, ...]) -> Model:
    """A mass on a vertical rail."""
    return Model("rail", (Joint("slide", Prismatic((0.0, 0.0, 1.0)), inertia=Inertia(mass=mass), **numbers),))


def test_a_joint_rests_on_its_limit():
    log = dl.Simulation(rail(lower=(-0.01,), upper=(1.0,))).run(np.zeros(1), steps=100)
    assert log.q[:, 0].min() > -0.01 - 1e-9
    np.testing.assert_allclose(log.impulse[-1], [2.0 * G * H], rtol=1e-9)
    assert abs(log.v[-1, 0]) < 1e-9


def test_limits_can_be_left_out():
    log = dl.Simulation(rail(lower=(-0.01,), upper=(1.0,)), max_limits=0).run(np.zeros(1), steps=100)
    assert log.q[-1, 0] < -0.04


def test_dry_friction_holds_what_is_lighter_and_brakes_what_is_heavier():
    held = dl.Simulation(rail(friction=(20.0,))).run(np.zeros(1), steps=50)
    assert np.abs(held.v).max() < 1e-9
    sliding = dl.Simulation(rail(friction=(10.0,))).run(np.zeros(1), steps=50)
    np.testing.assert_allclose(sliding.v[-1, 0], -(G - 5.0) * sliding.time[-1], rtol=1e-9)


def test_a_stiff_spring_with_a_damper_settles_where_it_carries_the_weight():
    model = rail(stiffness=(1e8,), damping=(1e5,))
    log = dl.Simulation(model).run(np.zeros(1), steps=200)
    assert log.q[-1, 0] == pytest.approx(-2.0 * G / 1e8, rel=1e-6)
    assert np.abs(log.q).max() < 2 * 2.0 * G / 1e8


def test_a_soft_spring_swings_at_its_frequency():
    log = dl.Simulation(rail(stiffness=(50.0,)), time_step=1e-4).run(np.zeros(1), steps=12567)
    assert log.q[-1, 0] == pytest.approx(0.0, abs=2e-3 * G * 2.0 / 50.0)  # one period, 2π √(m/k)


@pytest.mark.parametrize("stiffness", [1e2, 1e9])
def test_position_servos_of_any_stiffness_are_stable(stiffness):
    model = rail()
    sim = dl.Simulation(model, actuators=position_servos(model, stiffness, 0.2 * stiffness))
    log = sim.run(np.zeros(1), control=np.array([0.3]), steps=4000)
    assert log.q[-1, 0] == pytest.approx(0.3 - 2.0 * G / stiffness, rel=1e-6)
    assert np.abs(log.q).max() < 0.5


def test_velocity_servos_and_motors_within_their_limits():
    model = rail(effort_limit=(30.0,))
    log = dl.Simulation(model, actuators=velocity_servos(model, 1e5)).run(np.zeros(1), control=[1.0], steps=400)
    assert log.v[-1, 0] == pytest.approx(1.0 - 2.0 * G / 1e5, rel=1e-3)
    np.testing.assert_allclose(log.v[1, 0], (30.0 / 2.0 - G) * H, rtol=1e-12)  # at its limit
    assert log.status[1] == Mark.CLIPPED and not log.status[-1]
    pushed = dl.Simulation(model, actuators=motors(model)).run(np.zeros(1), control=[50.0], steps=10)
    plain = dl.Simulation(model).run(np.zeros(1), control=[50.0], steps=10)
    np.testing.assert_array_equal(pushed.v, plain.v)
    np.testing.assert_allclose(plain.v[-1, 0], (15.0 - G) * 10 * H, rtol=1e-12)


def test_names_of_joints_that_are_not_there_list_the_nearest():
    with refuses("unknown-joint", "slide"):
        position_servos(rail(), 1.0, 1.0, joints="slid")


# --- slots ------------------------------------------------------------------------------------------------------------


def two_bricks(second: tuple[str, tuple[float, ...]] = ("box", (0.2, 0.1, 0.1))) -> Model:
    """Two bodies on a hinge: a box, and by default another, with 16 corners."""
    inertia = Inertia.of(1.0, rotational=np.diag((0.01, 0.01, 0.01)))
    return Model(
        "bricks",
        (
            Joint("base", Free(), inertia=inertia),
            Joint("hinge", Revolute((0.0, 1.0, 0.0)), 0, Placement.of(p=(0.25, 0.0, 0.0)), inertia),
        ),
        geometries=tuple(
            Geometry(f"brick_{k}", k, Placement(), *shape, "collision")
            for k, shape in enumerate((("box", (0.2, 0.1, 0.1)), second))
        ),
    )


def test_few_slots_give_what_many_do_as_long_as_they_are_enough():
    model = two_bricks(("sphere", (0.05,)))
    q0 = np.array([0.0, 0.0, 0.08, 0.0, math.sin(0.1), 0.0, math.cos(0.1), -0.1])
    every = dl.Simulation(model, max_contacts=9).run(q0, steps=300)
    some = dl.Simulation(model, max_contacts=6).run(q0, steps=300)
    np.testing.assert_allclose(some.q, every.q, atol=1e-7)
    np.testing.assert_allclose(some.contact_force[-1, :, 2].sum(), every.contact_force[-1, :, 2].sum(), rtol=1e-6)
    assert not some.status.any()


def test_a_state_with_more_contacts_than_slots_is_marked():
    sim = dl.Simulation(two_bricks(), max_contacts=3)
    log = sim.run(np.array([0.0, 0.0, 0.049, 0.0, 0.0, 0.0, 1.0, 0.0]), steps=3)
    assert (log.status[1:] & Mark.MANY_CONTACTS).all()
    assert "slots" in log.describe()


def test_energy_has_that_of_springs_from_the_start():
    model = replace(rail(stiffness=(100.0,)), gravity=(0.0, 0.0, 0.0))
    log = dl.Simulation(model).run(np.array([0.1]), steps=3)
    assert log.energy[0] == pytest.approx(0.5)


def test_what_is_left_out_at_first_counts_as_soon_as_it_matters():
    """A leg falls on its foot, then on its knee, and its joint meets its limit: as if all were solved for always."""
    leg = dl.load(
        """<mujoco><worldbody><geom type="plane" size="0 0 1"/><body pos="0 0 1">
        <joint type="slide" axis="0 0 1"/><joint type="slide" axis="1 0 0"/><joint axis="0 1 0"/>
        <geom name="thigh" type="capsule" fromto="0 0 0 0 0 -0.4" size="0.05" mass="3"/>
        <body pos="0 0 -0.4"><joint axis="0 1 0" limited="true" range="-140 10"/>
        <geom name="shin" type="box" pos="0 0 -0.25" size="0.05 0.05 0.25" mass="2"/>
        </body></body></worldbody></mujoco>"""
    )
    q0 = np.array([0.0, 0.0, 0.3, 0.1])
    sim, whole = (dl.Simulation(leg, dl.Ground(friction=0.5), 2e-3, max_contacts=n) for n in (6, 10))
    assert (
        sim.reduced_scene.reduced is not None
        and len(sim.reduced_scene.reduced) == 4
        and sim.reduced_scene.limit_slots == 0
    )
    object.__setattr__(whole, "reduced_scene", whole.scene)
    log, other = (one.run(q0, steps=500) for one in (sim, whole))
    touched = {sim.contacts(q0).shape[int(k)] for k in log.contacts.contact[log.impulse[:, 2:18:3] > 0.0]}
    assert touched == {"thigh", "shin"} and np.any(log.impulse[:, 18:] > 0.0)
    # Blows on several corners at once have several solutions, of which each finds one.
    np.testing.assert_allclose(log.q, other.q, atol=3e-4)


def driven_by(servo: str, joint: str, shape: str) -> Model:
    return dl.load(
        f"""<mujoco><worldbody><body><joint name="j" {joint}/><geom {shape}/></body></worldbody>
        <actuator><velocity joint="j" {servo} forcerange="-10 10"/></actuator></mujoco>"""
    )


def test_a_servo_keeps_its_limit_through_a_blow():
    """A ball of 1 kg that a servo of 10 N holds at -1 m/s stops: an impulse of 1 N·s, and then 19.81 N."""
    ball = driven_by('kv="1e4"', 'type="slide" axis="0 0 1"', 'type="sphere" size="0.1" mass="1"')
    log = dl.Simulation(ball, dl.Ground(), 1e-3).run([0.101], [-1.0], control=np.array([-1.0]), steps=30)
    force = log.contact_force[..., 0, 2]
    np.testing.assert_allclose(force[force > 25.0], [1019.81])
    np.testing.assert_allclose(force[-20:], 19.81)


@pytest.mark.parametrize("step", [1e-3, 5e-3])
def test_a_servo_whose_limit_would_turn_its_joint_around_brakes_it_instead(step):
    """10 N·m change the speed of this link by 0.7 rad/s in 1 ms: half of a step would be enough to stop it."""
    link = driven_by('kv="1000"', 'axis="0 1 0"', 'type="capsule" fromto="0 0 0 0 0 -0.3" size="0.02" mass="0.5"')
    log = dl.Simulation(link, None, step, touching=[], max_contacts=0).run(
        [0.0], [0.5], control=np.zeros(1), steps=round(0.2 / step)
    )
    assert np.abs(log.v[1:]).max() < 0.01 and np.abs(log.v[-1]).max() < 1e-6


def test_stiff_servos_with_limits_let_a_quadruped_stand_at_steps_of_5_ms():
    robot = dl.load("quadruped")
    home = robot.posture("home")
    servos = position_servos(robot, stiffness=2000.0, damping=100.0)
    sim = dl.Simulation(robot, dl.Ground(), 5e-3, actuators=servos, touching="*_calf_1", max_limits=0)
    log = sim.run(home + 0.1 * (np.arange(19) == 2), control=home[7:], steps=300)
    assert np.abs(log.v[-1]).max() < 1e-9 and log.q[-1, 2] == pytest.approx(home[2], abs=2e-3)
