"""Robots with legs and loops on the ground: standing, batches, controls, marks, files."""

import numpy as np
import pytest

import delassus as dl
from delassus.simulation import Mark, position_servos
from refusals import refuses

G = 9.81
QUADRUPED = dl.load("quadruped")
HOME = QUADRUPED.posture("home")
FEET = [f"{end}_{side}_calf_1" for end in ("front", "hind") for side in ("left", "right")]


@pytest.fixture(scope="module")
def standing() -> dl.Simulation:
    servos = position_servos(QUADRUPED, stiffness=200.0, damping=10.0)
    return dl.Simulation(QUADRUPED, dl.Ground(friction=0.7), 1e-3, actuators=servos, touching=FEET)


def dropped(height: float) -> np.ndarray:
    q = HOME.copy()
    q[2] += height
    return q


def test_steps_are_tried_first_with_the_balls_that_a_robot_stands_on_and_no_other_shapes_of_their_bodies():
    sim = dl.Simulation(QUADRUPED)
    assert {sim.candidates[k] for k in sim.reduced_scene.reduced} == set(FEET)
    assert len(sim.reduced_scene.reduced) == 4


def test_a_dropped_quadruped_comes_to_rest_on_its_weight(standing):
    log = standing.run(dropped(0.05), control=HOME[7:], steps=3000)
    assert np.abs(log.v[-1]).max() < 1e-6
    forces = np.array([log.normal_force(foot)[-1] for foot in FEET])
    np.testing.assert_allclose(forces.sum(), QUADRUPED.mass * G, rtol=1e-6)
    np.testing.assert_allclose(forces[::2], forces[1::2], rtol=1e-4)  # left and right
    assert not (log.status[-1] & ~Mark.CLIPPED) and log.residual.max() < 1e-6


def test_items_of_a_batch_are_what_they_are_alone(standing):
    heights = np.linspace(0.0, 0.06, 11)
    q0 = np.stack([dropped(height) for height in heights])
    together = standing.run(q0, control=HOME[7:], steps=150)
    for k in (0, 5, 10):
        alone = standing.run(q0[k], control=HOME[7:], steps=150)
        for name in ("q", "v", "impulse", "energy"):
            np.testing.assert_array_equal(getattr(together, name)[:, k], getattr(alone, name))


def test_a_state_goes_on_to_the_bit(standing):
    whole = standing.run(dropped(0.01), control=HOME[7:], steps=120)
    half = standing.start(dropped(0.01))
    for _ in range(60):
        half = standing.step(half, HOME[7:])
    rest = standing.run(half, control=HOME[7:], steps=60)
    np.testing.assert_array_equal(rest.q[-1], whole.q[-1])
    np.testing.assert_array_equal(rest.impulse[-1], whole.impulse[-1])


def test_controls_may_be_arrays_or_functions(standing):
    q0 = np.stack([dropped(0.0), dropped(0.02)])
    wanted = standing.run(q0, control=HOME[7:], steps=30).q
    same = np.tile(HOME[7:], (30, 1))
    for control in (same, np.stack([same, same], 1), lambda time, q, v: HOME[7:] + 0.0 * q[..., 7:]):
        np.testing.assert_array_equal(standing.run(q0, control=control, steps=30).q, wanted)


def test_a_controller_that_gives_no_number_freezes_its_item_alone(standing):
    def policy(time, q, v):
        u = np.tile(HOME[7:], (3, 1))
        u[1, 4] = np.nan if 0.0095 < time[1] < 0.0105 else u[1, 4]
        return u

    q0 = np.stack([dropped(0.01)] * 3)
    log = standing.run(q0, control=policy, steps=30)
    assert (log.status[11:, 1] == Mark.FROZEN).all() and not (log.status[:, [0, 2]] & Mark.FROZEN).any()
    np.testing.assert_array_equal(log.q[-1, 1], log.q[10, 1])
    np.testing.assert_array_equal(log.q[:, 0], log.q[:, 2])
    assert "1 of" in log.describe() or "not a finite" in log.describe()


def test_an_interrupted_run_gives_what_was_simulated(standing):
    def policy(time, q, v):
        if time > 0.0195:
            raise KeyboardInterrupt
        return HOME[7:]

    assert len(standing.run(dropped(0.0), control=policy, steps=1000)) == 21


def test_a_trajectory_is_saved_and_loaded(standing, tmp_path):
    log = standing.run(dropped(0.0), control=HOME[7:], steps=5)
    log.save(tmp_path / "run.npz")
    again = dl.Trajectory.load(tmp_path / "run.npz")
    for name in ("q", "v", "time", "impulse", "contact_force", "energy", "drift", "status"):
        np.testing.assert_array_equal(getattr(again, name), getattr(log, name))
    assert again.contacts.shapes == log.contacts.shapes and again.describe() == log.describe()
    np.testing.assert_array_equal(again.normal_force(FEET[0]), log.normal_force(FEET[0]))
    with refuses("unwritable-file"):
        log.save(tmp_path / "no" / "such" / "folder.npz")


def test_the_problem_of_a_state_has_the_impulses_of_its_step(standing):
    state = standing.run(dropped(0.0), control=HOME[7:], steps=100)
    state = standing.start(state.q[-1], state.v[-1])
    solved = standing.problem(state, HOME[7:]).solve()
    np.testing.assert_allclose(solved.impulse, standing.step(state, HOME[7:]).impulse, atol=1e-9)


def test_substeps_are_steps_with_the_same_control(standing):
    servos = standing.scene.actuators
    coarse = dl.Simulation(QUADRUPED, standing.ground, 1e-3, actuators=servos, touching=FEET, substeps=3)
    u = np.random.default_rng(0).normal(HOME[7:], 0.1, (10, 12))
    whole = coarse.run(dropped(0.0), control=u)
    single = standing.run(dropped(0.0), control=np.repeat(u, 3, 0))
    assert coarse.period == pytest.approx(3e-3)
    np.testing.assert_allclose(whole.q[-1], single.q[-1], atol=1e-12)


def test_a_kernel_is_compiled_into_the_step(standing):
    @dl.kernel("(),(nq),(nv)->(12)")
    def hold(model, time, q, v):
        return HOME[7:] + 0.05 * q[7:] - 0.01 * v[6:]

    traced = standing.run(dropped(0.0), control=hold, steps=20)
    plain = standing.run(
        dropped(0.0), control=lambda time, q, v: HOME[7:] + 0.05 * q[..., 7:] - 0.01 * v[..., 6:], steps=20
    )
    np.testing.assert_allclose(traced.q, plain.q, atol=1e-12)


# --- closed loops -----------------------------------------------------------------------------------------------------


def test_a_biped_whose_knees_are_loops_stands_and_keeps_them_closed():
    robot = dl.load("biped")
    home = robot.posture("home")
    driven = [j.name for j in robot.joints[1:] if "shin" not in j.name and "rod" not in j.name]
    servos = position_servos(robot, 600.0, 30.0, driven)
    sim = dl.Simulation(robot, actuators=servos, touching="*_foot_0", max_limits=0)
    q0 = home.copy()
    q0[2] += 0.01
    log = sim.run(q0, control=np.array([home[robot.q_slice(name)][0] for name in driven]), steps=500)
    assert log.drift.max() < 1e-12
    assert not log.status.any() and log.residual.max() < 10.0 * sim.tolerance * np.abs(log.v).max()
    np.testing.assert_allclose(log.contact_force[-1, :, 2].sum(), robot.mass * G, rtol=2e-2)  # still settling


def test_a_start_with_open_loops_is_closed_or_refused():
    robot = dl.load("four_bar")
    sim = dl.Simulation(robot, max_contacts=0, max_limits=0)
    q0 = robot.posture("home") + 0.05 * np.arange(1, robot.nq + 1)
    assert np.abs(dl.constraint_error(sim.mechanism, sim.start(q0).q)).max() < 1e-10
    with refuses("constraints-violated"):
        sim.start(q0, repair=False)


def test_a_platform_that_loops_hold_below_the_ground_is_not_lifted_off_them():
    delta = dl.load("delta")
    sim = dl.Simulation(delta)
    with pytest.warns(
        dl.DelassusWarning, match="'platform_0' penetrates the ground by 0.217 m, and the joints cannot move it out"
    ):
        q = sim.start(delta.posture("home")).q
    assert np.abs(dl.constraint_error(sim.mechanism, q)).max() < 1e-10  # its legs are stretched: the loops are singular


def test_a_four_bar_swings_without_drift_and_without_gaining_energy():
    robot = dl.load("four_bar")
    sim = dl.Simulation(robot, max_contacts=0, max_limits=0)
    log = sim.run(robot.posture("home"), steps=500)
    assert log.drift.max() < 1e-12
    weight = np.asarray(dl.rnea(robot, log.q, 0.0 * log.v, 0.0 * log.v))
    energy = log.energy - 0.5 * sim.time_step * np.sum(weight * log.v, -1)  # velocities are half a step off
    assert np.abs(energy - energy[0]).max() < 1e-3 * dl.kinetic_energy(robot, log.q, log.v).max()


# --- seeing it --------------------------------------------------------------------------------------------------------


def test_plots_have_a_curve_for_each_foot(standing):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    log = standing.run(np.stack([dropped(0.0)] * 2), control=HOME[7:], steps=20)
    ax = log.plot("contact_force", item=1)
    assert [line.get_label() for line in ax.lines] == FEET
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), log.normal_force(FEET[0])[:, 1])
    with refuses("unknown-option", "contact_force"):
        log.plot("contact_forces")
