"""Simulated motions: closed loops, events, batches, bad input, and trajectories."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ellipk

import delassus as dl
import delassus.numpy as dnp
from delassus.model.bundled.linkages import four_bar, slider_crank
from delassus.model.joints import Prismatic
from linkages import bennett, mechanism_of
from refusals import refuses
from squeezer import REFERENCE, START, forces, squeezer

Event, MotionStatus = dl.stepping.Event, dl.stepping.MotionStatus
PENDULUM = dl.load("pendulum")
FOUR_BAR = dl.Mechanism(dl.load("four_bar"))
HOME = FOUR_BAR.model.posture("home")


def swing(q=1.0, **given):
    return dl.simulate_motion(PENDULUM, [q], **{"times": [0.0, 1.0], **given})


# --- closed loops -----------------------------------------------------------------------------------------------------


def test_andrews_squeezer_is_where_the_test_set_says():
    log = dl.simulate_motion(squeezer(), START, tau=forces, times=[0.0, 0.03], tolerance=1e-11)
    np.testing.assert_allclose(log.q[-1], REFERENCE, rtol=0, atol=1e-8)


@pytest.mark.parametrize("project", ["steps", "stages"])
@pytest.mark.parametrize("robot", ["four_bar", "slider_crank"])
def test_projection_keeps_loops_closed(robot, project):
    model = dl.load(robot)
    log = dl.simulate_motion(
        model,
        model.posture("home"),
        np.ones(model.nv),
        times=np.linspace(0, 4, 21),
        method="rk4",
        step=2e-3,
        project=project,
    )
    assert log.statuses is MotionStatus.DONE
    assert log.drift.max() < 1e-10
    assert abs(log.energy - log.energy[0]).max() < 1e-6


def test_projected_stages_keep_rows_that_repeat_each_other_from_acting_inside_a_step():
    linkage = bennett()
    mechanism = mechanism_of(linkage)
    start = dl.project(mechanism, np.array(linkage.q), np.ones(mechanism.nv))
    exact = dl.simulate_motion(mechanism, *start, times=[0, 1], tolerance=1e-11, project="stages").q[-1]
    ends = {
        project: dl.simulate_motion(mechanism, *start, times=[0, 1], method="rk4", step=5e-3, project=project).q[-1]
        for project in ("steps", "stages")
    }
    assert abs(ends["stages"] - exact).max() < 1e-7
    assert abs(ends["steps"] - exact).max() > 0.1  # what docs/stepping.md warns of


def test_without_projection_loops_open():
    free, held = (
        dl.simulate_motion(FOUR_BAR, HOME, times=[0, 2], method="rk4", step=5e-3, project=p).drift[-1]
        for p in ("none", "velocities")
    )
    assert free > held > 1e-10


def test_a_slider_crank_turns_through_its_dead_centres():
    model = dl.load("slider_crank")
    start, speed = dl.project(dl.Mechanism(model), np.zeros(3), np.array([20.0, 0.0, 0.0]), locked=["crank_joint"])
    log = dl.simulate_motion(model, start, speed, times=np.linspace(0, 1, 51), method="rk4", step=1e-3)
    assert abs(log.q[-1, 0]) > 2 * math.pi
    assert log.drift.max() < 1e-10
    assert abs(log.energy - log.energy[0]).max() < 1e-5 * log.energy[0]


def sprung(robot: str) -> dl.Model:
    """A bundled robot with springs in its sliders, which stand at home, so that a Stewart platform stays up."""
    model = dl.load(robot)
    joints = [
        replace(joint, stiffness=(2000.0,), rest=tuple(model.posture("home")[model.q_slice(joint.name)]))
        if robot == "stewart" and joint.kind.nv == 1 and isinstance(joint.kind, Prismatic)
        else joint
        for joint in model.joints
    ]
    return replace(model, joints=tuple(joints))


@pytest.mark.slow
def test_a_biped_that_hangs_by_its_feet_keeps_its_loops_closed_for_a_minute():
    model = dl.load("biped")
    q = model.posture("home").copy()
    q[2:7] = -q[2], 1.0, 0.0, 0.0, 0.0  # upside down
    soles = [
        dl.Weld(frame, target=dl.Placement.of(*dl.frame_placement(model, q, frame=frame.name)))
        for frame in model.frames("*_sole")
    ]
    biped = dl.Mechanism(model, soles)
    q[:3] += 0.1, 0.03, -0.06
    start = dl.assemble(biped, q, locked=["pelvis_joint"], tolerance=1e-13).q
    times = np.linspace(0, 60, 121)
    log = dl.simulate_motion(biped, start, tau=lambda t, q, v: -0.02 * v, times=times, method="rk4", step=1e-3)
    assert log.statuses is MotionStatus.DONE
    assert log.drift.max() < 1e-10
    assert np.all(np.diff(log.energy) < 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("model", [four_bar(0.3, 0.2, 0.3, 0.2), slider_crank(0.2, 0.2)], ids=lambda model: model.name)
def test_a_minute_through_poses_in_which_rows_depend_on_each_other_leaves_loops_closed(model):
    """A parallelogram that turns 131 times lies flat twice in each turn; a crank as long as its rod folds onto it."""
    mechanism = dl.Mechanism(model)
    start = dl.project(mechanism, model.posture("home"), [10.0, 0.0, 0.0], locked=["crank_joint"])
    log = dl.simulate_motion(model, *start, times=np.linspace(0, 60, 601), method="rk4", step=1e-3)
    rows = np.linalg.svd(dl.constrained.constraint_jacobian(mechanism, log.q), compute_uv=False)
    assert rows[:, -1].min() < 1e-10
    assert log.statuses is MotionStatus.DONE
    assert log.drift.max() < 1e-10
    assert abs(log.energy - log.energy[0]).max() < 1e-4 * log.energy[0]


@pytest.mark.slow
def test_a_delta_that_falls_through_where_its_joints_lock_stays_closed_while_it_is_followed():
    """There accelerations have no bound: a step of fixed length may lead anywhere, and its status says so."""
    model = dl.load("delta")
    log = dl.simulate_motion(model, model.posture("home"), times=np.linspace(0, 60, 601), method="rk4", step=1e-3)
    assert log.statuses in (MotionStatus.DONE, MotionStatus.OPEN) and log.ended > 10.0
    assert log.drift.max() < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("robot", ["four_bar", "slider_crank", "delta", "stewart"])
def test_a_minute_of_motion_leaves_loops_closed(robot):
    model = sprung(robot)
    times = np.linspace(0, 60, 121)
    start, speed = dl.project(dl.Mechanism(model), model.posture("home"), 0.5 * np.ones(model.nv))
    log = dl.simulate_motion(model, start, speed, lambda t, q, v: -0.02 * v, times=times, method="rk4", step=1e-3)
    assert log.statuses is MotionStatus.DONE
    assert log.drift.max() < 1e-10
    assert np.all(log.energy < log.energy[0] + 1e-6)


@pytest.mark.parametrize("method", ["midpoint", "gauss", "implicit_euler"])
def test_implicit_methods_follow_closed_loops(method):
    log = dl.simulate_motion(FOUR_BAR, HOME, times=[0.0, 0.5], method=method, step=1e-2)
    reference = dl.simulate_motion(FOUR_BAR, HOME, times=[0.0, 0.5], tolerance=1e-12)
    errors = {"midpoint": 1e-2, "gauss": 1e-4, "implicit_euler": 0.5}
    assert log.drift.max() < 1e-10
    assert abs(log.q[-1] - reference.q[-1]).max() < errors[method]


def test_a_joint_that_is_led_along_a_curve_in_time_stays_on_it():
    led = dl.JointLock("upper_joint", position=lambda t: dnp.stack([0.3 * dnp.sin(2.0 * t)]), name="led")
    times = np.linspace(0, 2, 9)
    log = dl.simulate_motion(dl.Mechanism(dl.load("double_pendulum"), led), [0, 0.5], [0.6, 0], times=times)
    np.testing.assert_allclose(log.q[:, 0], 0.3 * np.sin(2.0 * times), atol=1e-10)
    assert log.drift.max() < 1e-10 and log.velocity_drift.max() < 1e-10


# --- events -----------------------------------------------------------------------------------------------------------


def quarter_period() -> float:
    """From rest at 1 rad to the lowest point, by the complete elliptic integral."""
    M = dl.crba(PENDULUM, np.zeros(1))[0, 0]
    moment = dl.dynamics.gravity_torques(PENDULUM, np.array([math.pi / 2]))[0]
    return float(ellipk(math.sin(0.5) ** 2) * math.sqrt(M / moment))


def lowest(time, q, v):
    return q[0]


@pytest.mark.parametrize(("method", "step"), [("dopri5", None), ("gauss", 1e-3)])
def test_an_event_is_found_when_it_is(method, step):
    log = swing(times=[0.0, 0.2, 1.0], events=lowest, tolerance=1e-13, method=method, step=step)
    assert log.statuses is MotionStatus.EVENT
    assert log.ended == pytest.approx(quarter_period(), abs=1e-10)
    assert abs(log.q[-1]).max() < 1e-10
    np.testing.assert_array_equal(log.events["lowest"], [np.nan, log.ended])


def test_events_that_do_not_end_a_motion_are_all_met():
    times = np.linspace(0, 3, 16)
    log = swing(times=times, events=Event(lowest, ends=False), tolerance=1e-12)
    found = log.events["lowest"][np.isfinite(log.events["lowest"])]
    np.testing.assert_allclose(found, quarter_period() * np.arange(1, 2 * len(found), 2), atol=1e-9)
    assert len(found) == 4 and log.statuses is MotionStatus.DONE


def test_only_the_direction_that_counts_is_met():
    log = swing(times=[0.0, 3.0], events=Event(lowest, direction=1), tolerance=1e-12)
    assert log.ended == pytest.approx(3 * quarter_period(), abs=1e-9)


def test_of_two_events_in_one_step_the_first_is_met():
    events = [Event(lambda t, q, v: t - 0.0502, "later"), Event(lambda t, q, v: t - 0.0501, "sooner")]
    log = swing(times=[0.0, 1.0], events=events, method="rk4", step=0.01)
    assert log.ended == pytest.approx(0.0501, abs=1e-12)
    assert np.isnan(log.events["later"]).all()


def test_a_motion_whose_event_never_comes_goes_to_its_end():
    log = swing(events=lambda time, q, v: q[0] - 2.0)
    assert log.statuses is MotionStatus.DONE and log.ended == 1.0


# --- batches ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["dopri5", "gauss"])
def test_an_item_of_a_batch_moves_as_it_does_alone(method):
    q = np.linspace(0.1, 3.0, 11)[:, None]
    step = None if method == "dopri5" else 0.01
    together = dl.simulate_motion(PENDULUM, q, times=[0, 0.5, 1], method=method, step=step, events=lowest)
    for k in (0, 4, 10):
        alone = dl.simulate_motion(PENDULUM, q[k], times=[0, 0.5, 1], method=method, step=step, events=lowest)
        for name in ("q", "v"):
            np.testing.assert_array_equal(getattr(together, name)[:, k], getattr(alone, name))
        assert together.steps[k] == alone.steps and together.ended[k] == alone.ended


def test_items_choose_their_own_steps():
    log = dl.simulate_motion(PENDULUM, [[0.01], [3.1]], times=[0, 3])
    assert log.steps[0] != log.steps[1]


def test_what_is_not_a_number_marks_its_own_item():
    q = np.tile(HOME, (3, 1))
    q[1, 0] = np.nan
    log = dl.simulate_motion(FOUR_BAR, q, times=[0.0, 0.1], method="rk4", step=1e-2)
    assert list(log.statuses) == [MotionStatus.DONE, MotionStatus.NOT_FINITE, MotionStatus.DONE]
    assert np.isfinite(log.q[:, [0, 2]]).all()
    assert log.describe() == f"{MotionStatus.NOT_FINITE.sentence[:-1]}, in 1 of 3 items."


def test_a_motion_that_blows_up_stays_at_its_last_finite_state():
    log = swing(tau=lambda time, q, v: 1e3 * v * v * v, times=[0, 1], method="explicit_euler", step=0.1)
    assert log.statuses is MotionStatus.NOT_FINITE and np.isfinite(log.q).all() and log.ended < 1.0


def test_a_force_that_blows_up_ends_the_adaptive_pair():
    log = swing(tau=lambda time, q, v: 50.0 / (0.5 - time) + 0.0 * v, times=[0, 1])
    assert log.statuses in (MotionStatus.STEP_SIZE, MotionStatus.STEPS)
    assert log.ended == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize("how", [{}, {"method": "midpoint", "step": 0.1}])
def test_forces_that_are_no_numbers_are_called_that(how):
    log = swing(tau=lambda time, q, v: v / (0.0 * v), **how)
    assert log.statuses is MotionStatus.NOT_FINITE and log.ended == 0.0


def test_an_implicit_step_that_is_not_solved_says_how_far_it_is_off():
    log = swing(tau=lambda time, q, v: -1e3 * dnp.sign(v), method="implicit_euler", step=0.1)
    assert log.statuses is MotionStatus.NOT_CONVERGED and "best iterate" in log.describe()
    assert log.residual > 1e-6 and np.isfinite(log.q).all()


def test_steps_may_run_out():
    assert swing(max_steps=3).statuses is MotionStatus.STEPS


def test_a_motion_that_no_longer_meets_its_constraints_stays_at_the_last_state_that_does():
    model = dl.load("slider_crank")
    fast = dl.project(dl.Mechanism(model), model.posture("home"), [400.0, 0.0, 0.0], locked=["crank_joint"])
    log = dl.simulate_motion(model, *fast, times=np.linspace(0, 1, 21), method="explicit_euler", step=0.05)
    assert log.statuses is MotionStatus.OPEN and "dopri5" in log.describe()
    assert log.ended < 1.0 and log.drift.max() < 1e-10


# --- forces -----------------------------------------------------------------------------------------------------------

SPANS, PUSHES = [0.0, 0.1, 0.3, 1.0], np.array([[0.5], [-1.0], [2.0]])


def test_forces_may_change_from_each_time_to_the_next():
    log = swing(tau=PUSHES, times=SPANS, tolerance=1e-11)
    q, v = np.array([1.0]), np.zeros(1)
    for push, begin, end in zip(PUSHES, SPANS, SPANS[1:], strict=False):
        q, v = dl.simulate_motion(PENDULUM, q, v, push, times=[begin, end], tolerance=1e-11)[-1][1:]
    np.testing.assert_allclose(log.q[-1], q, atol=1e-11)


def test_forces_that_change_are_those_of_all_items_or_of_each():
    q = np.array([[1.0], [0.5]])
    alike = dl.simulate_motion(PENDULUM, q, tau=PUSHES[:, None], times=SPANS)
    each = dl.simulate_motion(PENDULUM, q, tau=np.stack([PUSHES, -PUSHES], 1), times=SPANS)
    np.testing.assert_array_equal(alike.q[:, 0], each.q[:, 0])
    assert abs(alike.q[-1, 1] - each.q[-1, 1]) > 0.1
    constant = dl.simulate_motion(PENDULUM, q, tau=[[0.5], [0.5]], times=SPANS)
    np.testing.assert_array_equal(constant.q[1], alike.q[1])


def test_a_kernel_gives_forces_as_a_function_does():
    @dl.kernel("(),(nq),(nv)->(nv)")
    def damped(model, time, q, v):
        return dnp.sin(time) - 0.1 * v

    compiled, plain = (swing(tau=tau) for tau in (damped, lambda time, q, v: dnp.sin(time) - 0.1 * v))
    np.testing.assert_array_equal(compiled.q, plain.q)


# --- parameters -------------------------------------------------------------------------------------------------------


def test_items_with_parameters_move_as_models_with_these_constants():
    linkage = dl.Mechanism(dl.load("four_bar").parametric("gravity", "inertia"))
    p = linkage.pack({"gravity": [[0, 0, -9.81], [0, 0, -1.62]]})
    log = dl.simulate_motion(linkage, HOME, times=[0, 0.5], method="rk4", step=5e-3, parameters=p)
    for k in range(2):
        alone = dl.simulate_motion(linkage.with_parameters(p[k]), HOME, times=[0, 0.5], method="rk4", step=5e-3)
        np.testing.assert_allclose(log.q[:, k], alone.q, atol=1e-12)
        np.testing.assert_allclose(log[:, k].energy, alone.energy, atol=1e-12)
    assert log.drift.max() < 1e-11


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({"times": [0.0, 0.0]}, ("not-increasing", "[0]", "[1]")),
        ({"times": [0.0, np.inf]}, ("not-finite", "[1]")),
        ({"times": [0.0]}, ("wrong-shape",)),
        ({"tolerance": -1e-6}, ("tolerance-out-of-range", "-1e-06", "tolerance")),
        ({"tolerance": 1e-17}, ("tolerance-out-of-range",)),
        ({"method": "rk5"}, ("unknown-method", "'rk5'", "explicit_euler")),
        ({"method": "rk4"}, ("missing-argument",)),
        ({"method": "rk4", "step": -1e-3}, ("time-step-out-of-range", "-0.001", "step")),
        ({"method": "rk4", "step": 1e-12}, ("out-of-range", "12")),
        ({"step": math.nan}, ("time-step-out-of-range", "step")),
        ({"method": "rk4", "step": True}, ("not-a-number", "step")),
        ({"times": "soon"}, ("not-a-number", "'soon'", "times")),
        ({"tolerance": [1e-6, math.nan]}, ("tolerance-out-of-range", "tolerance")),
        ({"tolerance": "small"}, ("not-a-number", "'small'", "tolerance")),
        ({"tau": "hard"}, ("not-a-number", "'hard'", "tau")),
        ({"events": 3.0}, ("wrong-type",)),
        ({"project": np.zeros(2)}, ("unknown-option", "project")),
        ({"tau": [1.0, 2.0]}, ("wrong-shape", "tau")),
        ({"tau": [[1.0], [2.0]]}, ("wrong-shape",)),
        ({"parameters": [1.0]}, ("not-parametric",)),
        ({"tau": lambda time, q, v: [q[0], q[0]]}, ("function-failed",)),
        ({"events": lambda time, q, v: v[5]}, ("function-failed",)),
        ({"events": Event(lowest), "max_steps": 0}, ("out-of-range", "max_steps", "0")),
        ({"events": [lowest, lowest]}, ("duplicate-name", "'lowest'")),
        ({"dense": -1}, ("out-of-range", "-1", "dense")),
        ({"dense": 3, "method": "gauss", "step": 0.1}, ("not-supported", "gauss")),
        ({"project": "always"}, ("unknown-option", "'always'", "project")),
        ({"start": "somewhere"}, ("unknown-option", "'somewhere'", "start")),
    ],
)
def test_what_cannot_be_asked_for_is_told_in_a_sentence(given, refusal):
    with refuses(*refusal):
        dl.simulate_motion(
            FOUR_BAR if "project" in given else PENDULUM,
            HOME if "project" in given else [1.0],
            **{"times": [0.0, 1.0], **given},
        )


def test_a_start_off_the_constraints_is_projected_refused_or_kept():
    q = HOME + np.array([0.0, 0.01, 0.0])
    given = {"times": [0.0, 0.01], "method": "rk4", "step": 1e-3}
    assert dl.simulate_motion(FOUR_BAR, q, **given).drift.max() < 1e-12
    with refuses("constraints-violated"):
        dl.simulate_motion(FOUR_BAR, q, start="refuse", **given)
    with refuses("constraints-violated", "1", "velocity"):
        dl.simulate_motion(FOUR_BAR, HOME, [[0, 0, 0], [1, 0, 0]], start="refuse", **given)
    assert dl.simulate_motion(FOUR_BAR, HOME, start="refuse", **given).statuses is MotionStatus.DONE
    assert dl.simulate_motion(FOUR_BAR, q, start="keep", project="none", **given).drift[0] > 1e-3


def test_a_start_that_cannot_be_closed_is_marked():
    model = dl.load("four_bar")
    apart = dl.Point("coupler_end", position=(5.0, 0.0, 0.0))
    log = dl.simulate_motion(dl.Mechanism(model, apart), HOME, times=[0, 1], method="rk4", step=0.1)
    assert log.statuses is MotionStatus.NOT_CLOSED


# --- trajectories -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def log():
    q = np.array([[0.5], [1.0], [1.5]])
    return dl.simulate_motion(
        PENDULUM, q, times=np.linspace(0, 1, 21), tolerance=1e-10, events=Event(lowest, ends=False)
    )


def test_time_is_the_first_axis(log):
    assert log.q.shape == log.v.shape == (21, 3, 1) and log.energy.shape == log.drift.shape == (21, 3)
    assert log.events["lowest"].shape == (20, 3)


def test_parts_of_a_trajectory_are_trajectories(log):
    assert log[5:10].q.shape == (5, 3, 1) and log[:, 1].q.shape == (21, 1) and log[::4, 1:].v.shape == (6, 2, 1)
    assert log[5:10].events["lowest"].shape == (4, 3)
    assert log[-1].time == 1.0 and log[-1, 2].q.shape == (1,)


def test_a_trajectory_cannot_be_changed(log):
    with pytest.raises(ValueError, match="read-only"):
        log.q[0] = 0.0


def test_a_trajectory_is_saved_and_loaded(log, tmp_path):
    log.save(tmp_path / "log.npz")
    again = dl.Trajectory.load(tmp_path / "log.npz", log.mechanism)
    np.testing.assert_array_equal(again.q, log.q)
    np.testing.assert_array_equal(again.events["lowest"], log.events["lowest"])
    np.testing.assert_array_equal(again.energy, log.energy)
    alone = dl.Trajectory.load(tmp_path / "log.npz")
    np.testing.assert_array_equal(alone.energy, log.energy)
    with refuses("not-recorded"):
        alone.at(0.5)
    with refuses("other-system", "3", "mechanism"):
        dl.Trajectory.load(tmp_path / "log.npz", FOUR_BAR)


def test_states_between_the_times_are_of_fourth_order(log):
    wanted = np.linspace(0, 1, 37)
    fine = dl.simulate_motion(PENDULUM, [1.0], times=[*wanted], tolerance=1e-12)
    errors = [abs(part[:, 1].at(wanted).q - fine.q).max() for part in (log[::2], log)]
    assert errors[1] < 1e-5
    assert math.log2(errors[0] / errors[1]) == pytest.approx(4.0, abs=0.5)
    assert log.at(0.5).q.shape == (3, 1)
    with refuses("out-of-range"):
        log.at([0.5, 2.0])


def test_dense_output_is_as_good_as_steps_are():
    coarse = dl.simulate_motion(PENDULUM, [[1.0], [2.5]], times=[0.0, 0.7, 1.0], dense=19, tolerance=1e-9)
    fine = dl.simulate_motion(PENDULUM, [[1.0], [2.5]], times=coarse.time, tolerance=1e-13)
    np.testing.assert_allclose(coarse.time, [*np.linspace(0, 0.7, 21), *np.linspace(0.7, 1.0, 21)[1:]], rtol=1e-14)
    np.testing.assert_allclose(coarse.q, fine.q, rtol=0, atol=1e-6)
    assert coarse.steps.max() < fine.steps.min() / 2


def test_dense_output_stays_where_an_event_ended_the_motion():
    log = swing(times=[0.0, 1.0], dense=9, events=lowest)
    after = log.time >= log.ended
    assert np.all(log.q[after] == log.q[-1]) and np.all(log.q[~after] > 0.0)
    assert np.sum(np.isfinite(log.events["lowest"])) == 1


def test_velocities_between_the_times_are_those_of_the_way():
    from motion_cases import TOP, TOP_SPEED, TOP_START

    motion = dl.simulate_motion(TOP, TOP_START, TOP_SPEED, times=[0.0, 0.05, 0.1])
    t, h = 0.031, 1e-6
    before, at, after = (motion.at(t + d) for d in (-h, 0.0, h))
    rate = dl.difference(TOP, before.q, after.q) / (2 * h)
    np.testing.assert_allclose(at.v, rate, atol=1e-7)


def test_a_trajectory_is_drawn(log):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = log.plot("energy")
    assert len(axes.lines) == 3 and "J" in axes.get_ylabel()
    matplotlib.pyplot.close(axes.figure)
    with refuses("unknown-option", "'colour'"):
        log.plot("colour")
