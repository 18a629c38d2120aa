"""What makes no sense in a simulation: a sentence each, and nothing that was simulated is lost."""

import gc
import math
import os
import pickle
import subprocess
import weakref
from dataclasses import fields, replace

import numpy as np
import pytest

import delassus as dl
from bodies import BALL, BRICK
from delassus.model import Inertia, Joint, Model, Prismatic
from delassus.simulation import Mark, State, motors, position_servos
from delassus.simulation.runner import Runner
from refusals import refuses

Q = np.array([0, 0, 0.2, 0, 0, 0, 1.0])


def rail(mass: float, **numbers: tuple[float, ...]) -> Model:
    return Model("rail", (Joint("slide", Prismatic((0.0, 0.0, 1.0)), inertia=Inertia(mass=mass), **numbers),))


RAIL = dl.Simulation(rail(2.0))


@pytest.mark.parametrize("step", [0.0, -1e-3, math.nan, math.inf, 1e-300, 2.0])
def test_steps_of_time_that_are_none_are_refused(step):
    with refuses("time-step-out-of-range", "time_step"):
        dl.Simulation(BALL, time_step=step)


@pytest.mark.parametrize(
    "options",
    [
        {"friction": math.nan},
        {"friction": "rough"},
        {"friction": [0.1, 0.2], "restitution": [0.1, 0.2, 0.3]},
        {"normal": (0, 1)},
        {"height": math.inf},
        {"heights": np.full((3, 3), math.nan)},
        {"heights": np.zeros((3, 3)), "spacing": "wide"},
        {"heights": np.zeros((3, 3)), "origin": (1, 2, 3)},
        {"heights": np.zeros((3, 3)), "height": 0.5},
        {"heights": np.zeros((3, 3)), "normal": (0.1, 0, 1)},
    ],
)
def test_grounds_that_are_none_are_refused(options):
    with pytest.raises(dl.DelassusError, match="the ground's"):
        dl.Ground(**options)


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({"q0": "home"}, ("not-a-number",)),
        ({"q0": [[1, 2], [3]]}, ("not-a-number",)),
        ({"q0": Q * 1j}, ("not-a-number",)),
        ({"q0": Q, "v0": "fast"}, ("not-a-number",)),
        ({"q0": 3.0}, ("wrong-shape",)),
        ({"q0": Q, "steps": 2.5}, ("not-a-whole-number",)),
        ({"q0": Q, "steps": -1}, ("out-of-range", "steps")),
        ({"q0": Q, "every": True}, ("not-a-whole-number",)),
        ({"q0": Q, "steps": None}, ("missing-argument", "steps")),
        ({"q0": Q, "control": "hold"}, ("not-a-number",)),
        ({"q0": Q, "progress": 3}, ("wrong-type",)),
        ({"q0": Q, "repair": "no"}, ("not-a-boolean",)),
        ({"q0": np.zeros((2, 7))}, ("batch-mismatch",)),
    ],
)
def test_runs_that_make_no_sense_are_refused(given, refusal):
    sim = dl.Simulation(BALL, dl.Ground(friction=[0.1, 0.2, 0.3]) if refusal[0] == "batch-mismatch" else None)
    with refuses(*refusal):
        sim.run(**{"steps": 2} | given)


def test_one_start_on_several_grounds_is_as_many_items():
    log = dl.Simulation(BRICK, dl.Ground(friction=[0.0, 0.5])).run(
        [0, 0, 0.05, 0, 0, 0, 1], [1.0, 0, 0, 0, 0, 0], steps=50
    )
    np.testing.assert_allclose(log.v[-1, :, 0], [1.0, 1.0 - 0.5 * 9.81 * 0.05], rtol=1e-9)


def test_states_of_other_simulations_are_refused():
    with refuses("other-system"):
        RAIL.step(dl.Simulation(BALL).start(Q))
    with refuses("wrong-type", kind=TypeError):
        RAIL.step(np.zeros(1))


STATE = RAIL.start(np.zeros((2, 1)))


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"q": "home"}, ("not-a-number", "'home'", "q")),
        ({"q": None}, ("not-a-number", "q")),
        ({"q": np.zeros(())}, ("wrong-shape", "q")),
        ({"v": np.zeros((3, 1))}, ("wrong-shape", "(3, 1)", "(2, 1)", "v")),
        ({"v": [[1.0], [1.0, 2.0]]}, ("not-a-number",)),
        ({"impulse": np.zeros(STATE.impulse.shape[1:])}, ("wrong-shape", "impulse")),
        ({"residual": np.zeros((2, 1))}, ("wrong-shape", "(2)")),
        ({"status": np.zeros(2)}, ("not-a-whole-number",)),
        ({"status": np.zeros(3, int)}, ("wrong-shape", "status")),
        ({"time": [0.0, 1.0, 2.0]}, ("wrong-shape", "time")),
        ({"time": 10**400}, ("out-of-range", "1000", "time")),
        ({"count": 0.5}, ("not-a-whole-number", "0.5", "count")),
        ({"seed": -1}, ("out-of-range", "-1", "seed")),
    ],
)
def test_states_that_do_not_fit_together_are_refused(changes, refusal):
    with refuses(*refusal):
        replace(STATE, **changes)


def test_a_state_without_a_time_goes_nowhere():
    with refuses("not-finite"):
        RAIL.run(replace(STATE, time=math.nan), steps=1)


def test_a_state_may_be_put_together_from_lists():
    parts = {name: getattr(STATE, name).tolist() for name in ("q", "v", "impulse", "contact", "residual", "status")}
    found, wanted = RAIL.step(State(time=0.0, **parts)), RAIL.step(STATE)
    np.testing.assert_array_equal(found.q, wanted.q)


@pytest.mark.parametrize("name", ["time_step", "ground", "tolerance", "world", "mechanism", "anything"])
def test_a_simulation_cannot_be_changed(name):
    before = RAIL.time_step
    with refuses("frozen", name, kind=AttributeError) as caught:
        setattr(RAIL, name, 2e-3)
    assert isinstance(caught.value, dl.DelassusError) and RAIL.time_step == before
    with pytest.raises(dl.DelassusError):
        del RAIL.ground
    again = pickle.loads(pickle.dumps(RAIL))
    with pytest.raises(dl.DelassusError):
        again.time_step = 1.0


def test_a_planner_cannot_be_changed():
    planner = dl.control.Sampling(RAIL, lambda time, q, v, u: q[..., 0], 5, noise=1.0)
    with refuses("frozen", "horizon"):
        planner.horizon = 7
    with pytest.raises(ValueError, match="read-only"):
        planner.noise[0] = math.nan


@pytest.mark.parametrize(
    "ground",
    [
        dl.Ground(friction=np.array([0.1, 0.2]), restitution=0.1, torsional=0.1, rolling=[0.1, 0.2], height=0.2),
        dl.Ground(heights=np.zeros((3, 3)), origin=np.zeros(2)),
    ],
    ids=["plane", "field"],
)
def test_arrays_of_a_ground_stay_as_they_were_checked(ground):
    for field in fields(ground):
        array = getattr(ground, field.name)
        assert not isinstance(array, np.ndarray) or not array.flags.writeable


def test_a_ground_has_arrays_of_its_own():
    friction, heights = np.array([0.1, 0.2]), np.zeros((3, 3))
    ground, field = dl.Ground(friction=friction), dl.Ground(heights=heights)
    friction[0] = heights[0, 0] = math.nan
    assert np.isfinite(ground.friction).all() and np.isfinite(field.heights).all()


def test_contact_problems_stay_as_they_were_checked():
    problem = dl.ContactProblem(np.eye(3), np.ones(3), friction=0.5)
    for array in (problem.G, problem.g, problem.friction):
        assert not array.flags.writeable


@pytest.mark.parametrize("at", [-1, slice(None)])
def test_moments_of_a_log_are_no_states(at):
    log = RAIL.run(np.zeros(1), steps=3)
    for go_on in (RAIL.run, RAIL.start, RAIL.step):
        with refuses("wrong-type", "trajectory"):
            go_on(replace(log, simulation=None)[at])


def test_a_robot_without_joints_is_refused():
    with refuses("nothing-to-do", "'rock'"):
        dl.Simulation(Model("rock", ()))


def test_controls_of_a_robot_that_has_none_are_refused():
    with refuses("wrong-shape"):
        dl.Simulation(BALL).run(Q, control=[1.0], steps=2)


def test_a_state_takes_no_other_velocities():
    with refuses("conflicting-arguments"):
        RAIL.run(RAIL.start(np.zeros(1)), np.ones(1), steps=1)


@pytest.mark.parametrize("q0", [np.zeros(7), np.full(7, math.nan), [0, 0, math.inf, 0, 0, 0, 1]])
def test_a_start_that_is_no_configuration_is_frozen_alone(q0):
    log = dl.Simulation(BALL).run(np.stack([Q, q0]), steps=3)
    assert not log.status[:, 0].any() and (log.status[:, 1] == Mark.FROZEN).all()
    np.testing.assert_array_equal(log.q[-1, 1], q0)


@pytest.mark.parametrize(
    ("make", "refusal"),
    [
        (lambda: dl.Simulation(BALL, touching="spere"), ("unknown-shape", "sphere")),
        (lambda: dl.Simulation(BALL, touching=3), ("wrong-type",)),
        (lambda: dl.Simulation(BALL, colliding=None), ("wrong-type",)),
        (lambda: dl.Simulation(BALL, joint_friction="yes"), ("not-a-boolean",)),
        (lambda: dl.Simulation(BALL, actuators=3), ("wrong-type", "position_servos")),
        (lambda: dl.Simulation(BALL, actuators=["motor"]), ("wrong-type",)),
        (lambda: position_servos(rail(1.0), "stiff", 1.0), ("not-a-number", "stiffness")),
        (lambda: motors(rail(1.0), "slid"), ("unknown-joint", "slide")),
        (lambda: RAIL.run(np.zeros(1), steps=1).normal_force("foot"), ("unknown-shape",)),
    ],
)
def test_names_and_gains_that_are_none_are_refused(make, refusal):
    with refuses(*refusal):
        make()


STAIRS = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1" pos="0 0 -0.5"/>
    <geom name="stair" type="box" size="1 1 0.1" contype="2" conaffinity="2"/>
    <body pos="0 0 1"><freejoint/><geom type="sphere" size="0.1" mass="1"/></body>
  </worldbody>
</mujoco>"""


def test_scenery_that_is_not_touched_is_said():
    robot = dl.load(STAIRS)
    with pytest.warns(dl.errors.DelassusWarning, match="nothing can touch 1 shapes .*: stair"):
        dl.Simulation(robot)


# --- controllers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("give", "refusal"),
    [(lambda: 1 / 0, ("function-failed", "ZeroDivisionError")), (lambda: [1.0, 2.0], ("wrong-shape", "(2,)"))],
)
def test_a_controller_that_fails_loses_nothing(give, refusal):
    with refuses(*refusal) as caught:
        RAIL.run(np.zeros(1), control=lambda time, q, v: [0.0] if time < 0.0095 else give(), steps=100)
    assert len(caught.value.log) == 11 and caught.value.time == pytest.approx(0.01)


def test_a_callback_that_fails_loses_nothing():
    def progress(k, state):
        if k == 9:
            raise KeyError("window closed")

    with refuses("function-failed", "'window closed'", "0.01") as caught:
        RAIL.run(np.zeros(1), steps=100, every=4, progress=progress)
    np.testing.assert_allclose(caught.value.log.time, [0.0, 0.004, 0.008, 0.01], atol=1e-15)
    assert "interrupted" in caught.value.log.describe()


def test_torques_beyond_limits_are_clipped_and_counted():
    model = rail(2.0, effort_limit=(30.0,))
    log = dl.Simulation(model).run(np.zeros(1), control=np.array([[10.0], [50.0], [-math.inf]]))
    np.testing.assert_allclose(np.diff(log.v[:, 0]) / 1e-3 + 9.81, [5.0, 15.0, -15.0], rtol=1e-9)
    assert log.status.tolist() == [0, 0, Mark.CLIPPED, Mark.CLIPPED] and "in 2 of 4" in log.describe()


@pytest.mark.parametrize(
    ("batch", "shape"), [((4,), (4, 1)), ((2, 4), (4, 1)), ((2, 4), (2, 4, 1)), ((2, 4), (2, 1, 1))]
)
def test_controls_of_periods_or_of_items_are_not_guessed(batch, shape):
    u, q0 = np.arange(float(math.prod(shape))).reshape(shape), np.zeros((*batch, 1))
    with refuses("conflicting-arguments") as error:
        RAIL.run(q0, control=u, steps=2)
    remedies = [part.partition("pass ")[2] for part in str(error.value)[:-1].split(";")]
    in_time, per_item = (eval(remedy, {"control": u, "np": np}) for remedy in remedies)
    moved = np.diff(RAIL.run(q0, control=in_time, steps=2).v[..., 0], axis=0) * 2e3 + 9.81 * 2.0
    np.testing.assert_allclose(moved[1], np.broadcast_to(u[1, ..., 0], batch), atol=1e-9)
    state = RAIL.start(q0)
    for _ in range(2):
        state = RAIL.step(state, u)
    np.testing.assert_array_equal(RAIL.run(q0, control=per_item, steps=2).q[-1], state.q)


def test_controls_with_one_reading_are_taken():
    u = np.arange(4.0)[:, None]
    assert len(RAIL.run(np.zeros((4, 1)), control=u)) == 5  # without steps, they are those of periods
    assert len(RAIL.run(np.zeros((5, 1)), control=u, steps=3)) == 4
    assert len(RAIL.run(np.zeros((1, 1)), control=u, steps=3)) == 4
    assert len(RAIL.run(np.zeros((4, 1)), control=u[:1], steps=1)) == 2  # both readings are the same
    with refuses("wrong-shape", "(9, 4, 1)", "broadcast_to", "steps"):
        RAIL.run(np.zeros((4, 1)), control=u, steps=9)


def test_a_kernel_that_was_a_control_leaves_nothing_behind():
    def kernel():
        @dl.kernel("(),(nq),(nv)->(nv)")
        def carry(model, time, q, v):
            return dl.rnea(model, q, 0.0 * v, 0.0 * v)

        return carry

    carry = kernel()
    RAIL.run(np.zeros(1), control=carry, steps=3)
    RAIL.run(np.zeros((2, 1)), control=carry, steps=3)
    gone = weakref.ref(carry)
    del carry
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("every", [1, 7])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_a_run_that_ctrl_c_ends_says_so(batch, every):
    def interrupt(k, state):
        if k == 29:
            raise KeyboardInterrupt

    log = RAIL.run(np.zeros((*batch, 1)), steps=100, every=every, progress=interrupt)
    assert log.time[-1] == pytest.approx(0.03) and "interrupted" in log.describe()
    assert (log.status[-1] & Mark.INTERRUPTED).all() and not log.status[:-1].any()
    assert "All went well" in RAIL.run(np.zeros((*batch, 1)), steps=10).describe()


def test_a_log_has_no_state_of_a_period_that_ctrl_c_cut(monkeypatch):
    whole = RAIL.run(np.zeros(1), steps=100, every=7)

    def cut(self):  # after machine code has changed the arrays, before the clock is set
        raise KeyboardInterrupt

    monkeypatch.setattr(Runner, "_look_again", cut)
    controls = np.zeros((100, 1))
    controls[30] = np.nan  # a period that is looked at again
    log = RAIL.run(np.zeros(1), control=controls, steps=100, every=7, progress=lambda k, state: None)
    np.testing.assert_array_equal(log.q, whole.q[: len(log)])
    assert len(log) == 5 and "interrupted" in log.describe()


def test_a_kernel_is_a_control_of_each_robot_that_it_is_given_to():
    @dl.kernel("(),(nq),(nv)->(nv)")
    def carry(model, time, q, v):
        return dl.rnea(model, q, 0.0 * v, 0.0 * v)

    for mass in (1.0, 5.0):
        log = dl.Simulation(rail(mass)).run(np.zeros(1), control=carry, steps=20)
        assert np.abs(log.v).max() < 1e-12


def test_kernels_that_are_no_controls_are_refused():
    @dl.kernel("(),(nq),(nv)->(3)")
    def three(model, time, q, v):
        return np.zeros(3)

    for control, words in ((dl.aba, ("function-failed",)), (three, ("wrong-shape", "(3,)", "(1,)"))):
        with refuses(*words):
            RAIL.run(np.zeros(1), control=control, steps=1)


# --- memory and disk --------------------------------------------------------------------------------------------------


def test_a_log_that_does_not_fit_into_memory_is_refused_before_it_is_begun():
    with refuses("out-of-memory", "every", "GB"):
        dl.Simulation(BALL).run(np.tile(Q, (10_000, 1)), steps=10_000_000)


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 64 kB, where one may mount some."""
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("no disk can be mounted")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.skipif(os.name != "posix" or not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs a mount")
@pytest.mark.parametrize("kind", ["npz", "html"])
def test_a_full_disk_loses_neither_the_log_nor_the_file_that_was_there(small_disk, kind):
    path = small_disk / f"run.{kind}"
    path.write_text("before")
    log = dl.Simulation(BRICK).run(np.tile(Q, (16, 1)), np.random.default_rng(0).normal(size=(16, 6)), steps=200)
    with refuses("unwritable-file"):
        log.save(path) if kind == "npz" else log.save_html(path)
    assert [p.name for p in small_disk.iterdir()] == [path.name] and path.read_text() == "before"
    log.save(small_disk.parent / "elsewhere.npz")


def test_a_disk_that_fails_is_said(monkeypatch, tmp_path):
    log = RAIL.run(np.zeros(1), steps=2)

    def full(*args, **others):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with refuses("unwritable-file"):
        log.save(tmp_path / "run.npz")
    assert not list(tmp_path.iterdir())
