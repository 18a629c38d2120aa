"""Torsional and rolling friction against closed forms and MuJoCo, and whose friction counts where two shapes touch."""

import math

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import delassus as dl
from bodies import BALL, BRICK, G, H, body
from delassus.step.flags import Mark
from delassus.step.selection.collision_pairs import combined

STILL = np.array([0, 0, 0.1, 0, 0, 0, 1.0])
"""A ball on the ground."""

MJCF = """
<mujoco>
  <option timestep="0.001" cone="elliptic" impratio="10"/>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1" {floor}/>
    <body name="ball" pos="0 0 0.1">
      <freejoint/>
      <geom name="ball" type="sphere" size="0.1" mass="3" {ball}/>
    </body>
  </worldbody>
</mujoco>"""


def stops(log, speed):
    """When a speed (times,) is zero for the first time [s], but for what the solver leaves."""
    return log.time[np.argmax(np.abs(speed) < 1e-7)]


# --- closed forms -----------------------------------------------------------------------------------------------------


def test_a_spinning_ball_stops_when_torsional_friction_has_used_up_its_spin():
    spin, torsional = 20.0, 0.01
    log = dl.Simulation(BALL, dl.Ground(torsional=torsional), H).run(STILL, np.array([0, 0, 0, 0, 0, spin]), steps=900)
    inertia = BALL.joints[0].inertia.rotational[2][2]
    assert stops(log, log.v[:, 5]) == pytest.approx(inertia * spin / (torsional * BALL.mass * G), rel=5e-3)
    assert np.abs(log.v[-1]).max() < 1e-12
    np.testing.assert_allclose(log.contact_moment[1:500, 0], [[0, 0, -torsional * BALL.mass * G]] * 499, atol=1e-9)


def test_a_spinning_disk_is_stopped_by_sliding_and_torsional_friction_together():
    """Three points of its rim slide and turn: forces and moments share a cone, whose best is a hypotenuse."""
    radius, mass, inertia, spin, friction, torsional = 0.1, 2.0, 0.01, 20.0, 0.2, 0.02
    disk = body("cylinder", (radius, 0.04), mass, (inertia / 2, inertia / 2, inertia))
    sim = dl.Simulation(disk, dl.Ground(friction=friction, torsional=torsional), H, max_contacts=3)
    log = sim.run(np.array([0, 0, 0.02, 0, 0, 0, 1.0]), np.array([0, 0, 0, 0, 0, spin]), steps=400)
    moment = mass * G * math.hypot(friction * radius, torsional)
    assert stops(log, log.v[:, 5]) == pytest.approx(inertia * spin / moment, rel=5e-3)


def test_a_rolling_ball_stops_where_rolling_friction_has_used_up_its_energy():
    radius, speed, rolling = 0.1, 0.5, 0.005
    sim = dl.Simulation(BALL, dl.Ground(friction=1.0, rolling=rolling), H)
    log = sim.run(STILL, np.array([speed, 0, 0, 0, speed / radius, 0]), steps=1500)
    braked = 5.0 / 7.0 * rolling * G / radius
    assert log.q[-1, 0] == pytest.approx(speed**2 / (2.0 * braked), rel=5e-3)
    assert np.abs(log.v[-1]).max() < 1e-9
    assert np.diff(log.energy).max() < 1e-12


def test_a_box_with_all_kinds_of_friction_stays_on_a_slope():
    angle = 0.3
    normal = np.array([-math.sin(angle), 0.0, math.cos(angle)])
    ground = dl.Ground(friction=0.7, torsional=0.01, rolling=0.002, normal=normal)
    sim = dl.Simulation(BRICK, ground, H, max_contacts=4)
    log = sim.run(np.array([*(0.05 * normal), 0, -math.sin(angle / 2), 0, math.cos(angle / 2)]), steps=200)
    assert np.abs(log.v[1:]).max() < 1e-9
    assert not log.status.any()


def test_a_ball_holds_on_a_slope_as_steep_as_rolling_friction_allows():
    """Its weight turns it about the point of contact by m g r sin a, and m g cos a times the coefficient resists."""
    steep = math.atan(0.01 / 0.1)
    angles = np.array([0.98 * steep, 1.02 * steep])
    normal = np.stack([-np.sin(angles), 0.0 * angles, np.cos(angles)], -1)
    q0 = np.concatenate([0.1 * normal, np.tile([0, 0, 0, 1.0], (2, 1))], -1)
    log = dl.Simulation(BALL, dl.Ground(friction=1.0, rolling=0.01, normal=normal), H).run(q0, steps=100)
    assert np.abs(log.v[-1, 0]).max() < 1e-9
    assert log.v[-1, 1, 0] < -1e-4


@pytest.mark.parametrize("model", [BALL, body("capsule", (0.05, 0.2), 1.0, (0.005, 0.005, 0.00125))])
@settings(max_examples=3)
@given(seed=st.integers(0, 2**32 - 1))
def test_bodies_that_tumble_on_rough_ground_gain_no_energy(model, seed):
    rng, n = np.random.default_rng(seed), 16
    q0 = np.concatenate([rng.uniform(0.2, 0.5, (n, 3)), rng.normal(size=(n, 4))], -1)
    v0 = rng.normal(size=(n, 6)) * np.array([1.0, 1, 1, 5, 5, 5])
    friction, torsional, rolling, restitution = rng.uniform(0.0, 1.0, (4, n)) * np.array([[1.2], [0.02], [0.02], [1.0]])
    ground = dl.Ground(friction=friction, torsional=torsional, rolling=rolling, restitution=restitution)
    log = dl.Simulation(model, ground, H).run(q0, v0, steps=700)
    speed = np.linalg.norm(log.v[..., :3], axis=-1).max(0)
    assert np.all(log.energy - np.minimum.accumulate(log.energy) <= model.mass * G * speed * H)
    # Friction may take some of the restitution; cones of six rows converge slowly: some of 10⁴ steps stay unsolved.
    assert not np.any(log.status & ~int(Mark.ENERGY_LIMITED | Mark.UNSOLVED))
    assert np.mean((log.status & int(Mark.UNSOLVED)) > 0) < 1e-3


def test_shapes_that_touch_each_other_have_torsional_friction():
    xml = MJCF.format(floor="", ball="").replace(
        'type="plane" size="0 0 1"', 'type="box" size="1 1 0.1" pos="0 0 -0.1"'
    )
    ground = dl.Ground(friction=0.5, torsional=0.01)
    sim = dl.Simulation(dl.load(xml), ground, H, touching=(), colliding=[("ball", "floor")])
    log = sim.run(STILL, np.array([0, 0, 0, 0, 0, 10.0]), steps=500)
    assert stops(log, log.v[:, 5]) == pytest.approx(0.4 * 0.1**2 * 10.0 / (0.01 * G), rel=5e-3)


# --- numbers of items, and what is kept -------------------------------------------------------------------------------


def test_each_item_has_its_own_torsional_and_rolling_friction():
    torsional, rolling = np.array([0.0, 0.01, 0.02]), np.array([0.01, 0.0, 0.005])
    v0 = np.array([0.5, 0, 0, 0, 5.0, 10.0])
    log = dl.Simulation(BALL, dl.Ground(torsional=torsional, rolling=rolling), H).run(STILL, v0, steps=200)
    for k in range(3):
        alone = dl.Simulation(BALL, dl.Ground(torsional=torsional[k], rolling=rolling[k]), H).run(STILL, v0, steps=200)
        np.testing.assert_allclose(log.v[-1, k], alone.v[-1], atol=1e-7)


def test_forces_and_moments_of_contacts_are_told_apart(tmp_path):
    sim = dl.Simulation(BALL, dl.Ground(torsional=0.01, rolling=0.005), H)
    log = sim.run(STILL, np.array([0.5, 0, 0, 0, 5.0, 10.0]), steps=100)
    np.testing.assert_allclose(log.normal_force("sphere")[1:], BALL.mass * G, rtol=1e-9)
    assert log.contact_force.shape == log.contact_moment.shape == (101, 1, 3)
    log.save(tmp_path / "run.npz")
    kept = dl.Trajectory.load(tmp_path / "run.npz", sim)
    np.testing.assert_array_equal(kept.contact_moment, log.contact_moment)


def test_the_problem_of_a_state_has_the_friction_of_its_contacts():
    xml = MJCF.format(floor="", ball='condim="6" friction="0.4 0.02 0.003"')
    sim = dl.Simulation(dl.load(xml))
    state = sim.step(sim.start(STILL, np.array([0.5, 0, 0, 0, 5.0, 10.0])))
    problem = sim.problem(state)
    assert (problem.friction, problem.torsional, problem.rolling) == (1.0, 0.02, 0.003)
    np.testing.assert_allclose(problem.solve().impulse, sim.step(state).impulse, atol=1e-7)


@pytest.mark.parametrize("options", [{"torsional": -0.1}, {"rolling": math.nan}, {"rolling": [0.1], "torsional": "a"}])
def test_coefficients_that_are_none_are_refused(options):
    with pytest.raises(dl.DelassusError, match=r"the ground's (torsional|rolling) friction"):
        dl.Ground(**options)


# --- MJCF -------------------------------------------------------------------------------------------------------------

RUBBING = st.tuples(
    st.floats(0.0, 2.0), st.floats(0.0, 0.1), st.floats(0.0, 0.1), st.sampled_from([1, 3, 4, 6]), st.integers(-1, 1)
)


@given(floor=RUBBING, ball=RUBBING)
@settings(max_examples=40)
def test_friction_of_two_shapes_is_combined_as_in_mujoco(floor, ball):
    said = {
        name: f'friction="{a} {b} {c}" condim="{condim}" priority="{priority}"'
        for name, (a, b, c, condim, priority) in (("floor", floor), ("ball", ball))
    }
    model = mujoco.MjModel.from_xml_string(MJCF.format(**said).replace('pos="0 0 0.1"', 'pos="0 0 0.0999"'))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    (contact,) = data.contact
    sliding, torsional, rolling, condim = combined(*dl.load(MJCF.format(**said)).geometries)
    assert condim == contact.dim
    found = np.array([sliding, torsional, rolling])
    counts = np.array([condim > 1, condim > 3, condim > 4])
    wanted = np.where(counts, np.array(contact.friction)[[0, 2, 3]], 0.0)
    np.testing.assert_allclose(found, wanted, atol=1.01e-5)  # below 1e-5, MuJoCo takes 1e-5


def test_a_ball_that_spins_and_rolls_comes_to_rest_where_mujocos_does():
    xml = MJCF.format(floor="", ball='condim="6" friction="1 0.01 0.005"')
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    data.qvel[:] = v0 = [0.5, 0, 0, 0, 5.0, 10.0]
    mujoco.mj_step(model, data, 2000)
    log = dl.Simulation(dl.load(xml)).run(STILL, np.array(v0), steps=2000)
    assert log.q[-1, 0] == pytest.approx(data.qpos[0], rel=1e-2)


def test_shapes_of_condim_1_slide_without_friction_on_any_ground():
    sliding = np.array([1.0, 0, 0, 0, 0, 0])
    for floor, kept in (('condim="1"', 1.0), ("", 5.0 / 7.0)):  # the larger condim counts
        robot = dl.load(MJCF.format(floor=floor, ball='condim="1"'))
        log = dl.Simulation(robot, dl.Ground(friction=0.9, torsional=0.01), H).run(STILL, sliding, steps=200)
        assert np.linalg.norm(log.v[-1, [0, 2]]) == pytest.approx(kept, rel=1e-3)


@pytest.mark.parametrize(
    ("ground", "wanted"),
    [(dl.Ground(), 0.3), (dl.Ground(friction=0.1), 0.1)],
)
def test_the_friction_of_a_shape_counts_unless_the_ground_is_given_one(ground, wanted):
    robot = dl.load(MJCF.format(floor='friction="0.05"', ball='friction="0.3"'))
    log = dl.Simulation(robot, ground, H).run(STILL, np.array([3.0, 0, 0, 0, 0, 0]), steps=20)
    assert 3.0 - np.linalg.norm(log.v[-1, [0, 2]]) == pytest.approx(wanted * G * 20 * H, rel=1e-6)


def test_rows_are_made_for_the_friction_that_is_asked_for_alone():
    def rows(ball, ground):
        return dl.Simulation(dl.load(MJCF.format(floor="", ball=ball)), ground).scene.contact_rows

    assert rows("", dl.Ground()) == rows('condim="1"', dl.Ground()) == 3
    assert rows('condim="6"', dl.Ground(torsional=0.0, rolling=0.0)) == 3
    assert rows('condim="4"', dl.Ground()) == rows("", dl.Ground(torsional=[0.0, 0.1])) == 4
    assert rows('condim="6"', dl.Ground()) == rows("", dl.Ground(rolling=0.1)) == 6


def test_slots_that_change_hands_have_the_friction_of_the_shape_that_has_them():
    """Two feet, one of them smooth, and a slot for one contact: the lower foot has it."""
    feet = "".join(
        f'<geom name="{name}" type="sphere" size="0.1" pos="{x} 0 0" mass="1" {more}/>'
        for name, x, more in (("rough", -0.3, 'friction="0.8"'), ("smooth", 0.3, 'friction="0.1" priority="1"'))
    )
    xml = MJCF.format(floor="", ball="").replace('<geom name="ball" type="sphere" size="0.1" mass="3" />', feet)
    sim = dl.Simulation(dl.load(xml), max_contacts=1)
    for tilt, wanted in ((0.1, 0.1), (-0.1, 1.0)):
        low = 0.1 + 0.3 * math.sin(0.1)
        q = np.array([0, 0, low, 0, math.sin(tilt / 2), 0, math.cos(tilt / 2)])
        state = sim.start(q, np.array([0, 5.0, 0, 0, 0, 0]))
        assert sim.problem(state).friction == pytest.approx(wanted)
        t1, t2, n = sim.step(state).impulse
        assert math.hypot(t1, t2) == pytest.approx(wanted * n, rel=1e-6)
