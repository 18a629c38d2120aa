"""States as values: items of them, several in one, in files and from logs; items that start again."""

import numpy as np
import pytest

import delassus as dl
from delassus.errors import BadArgument
from delassus.simulation import Mark, State
from refusals import refuses

BALL = dl.Simulation(dl.load("quadruped"), touching="*_calf_1")
HOME = BALL.model.posture("home")
PARTS = ("q", "v", "time", "impulse", "contact", "residual", "status", "count", "seed", "stream", "activation")


@pytest.fixture(scope="module")
def fall():
    """Six items that drop for 40 steps, each from another height."""
    q = np.tile(HOME, (6, 1))
    q[:, 2] += np.linspace(0.0, 0.02, 6)
    return BALL.run(q, steps=40)


def same(one, other):
    for name in PARTS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def test_a_run_goes_on_from_any_time_of_a_log_to_the_bit(fall):
    again = BALL.run(fall[25], steps=15)
    same(again[-1], fall[-1])


def test_an_item_of_a_log_goes_on_as_in_its_batch(fall):
    same(BALL.run(fall[25, 3], steps=15)[-1], fall[-1, 3])


def test_items_of_a_state_are_chosen_as_those_of_an_array(fall):
    state = fall[-1]
    mask = np.array([True, False, False, True, False, False])
    same(state[mask], state[[0, 3]])
    same(state[1:3][1], state[2])


def test_joined_states_have_the_items_of_each(fall):
    state = fall[-1]
    same(State.join([state[:2], state[2], state[3:]]), state)


def test_a_state_is_read_from_a_file_to_the_bit(fall, tmp_path):
    fall[-1].save(tmp_path / "state.npz")
    same(State.load(tmp_path / "state.npz"), fall[-1])


def test_a_log_from_a_file_goes_on_to_the_bit(fall, tmp_path):
    fall.save(tmp_path / "log.npz")
    same(dl.Trajectory.load(tmp_path / "log.npz", BALL)[20], fall[20])


def test_items_that_are_reset_start_again_and_the_others_go_on(fall):
    state, q = fall[-1], np.array([HOME, HOME])
    q[1, 2] += 0.1
    reset = BALL.reset(state, [4, 1], q)
    same(reset[[4, 1]], State(**{**vars(BALL.start(q)), "count": [40, 40], "stream": [4, 1]}))
    same(reset[[0, 2, 3, 5]], state[[0, 2, 3, 5]])


def test_items_with_times_of_their_own_do_what_they_do_alone(fall):
    state = BALL.reset(fall[-1], np.arange(6) < 2, HOME)
    log = BALL.run(state, steps=10)
    same(log[-1][0], BALL.run(state[0], steps=10)[-1])
    np.testing.assert_allclose(log[-1].time, [0.01] * 2 + [0.05] * 4, atol=1e-12)
    np.testing.assert_allclose(log.time, 1e-3 * np.arange(11), atol=1e-12)
    same(log[::5][1, 1], log[5][1])


def test_a_frozen_item_thaws_when_it_is_reset():
    state = BALL.start(np.where(np.arange(3)[:, None] == 1, np.nan, HOME))
    assert state.frozen.tolist() == [False, True, False]
    after = BALL.step(BALL.reset(state, state.frozen, HOME))
    assert not after.frozen.any() and not np.asarray(after.status & int(Mark.FROZEN)).any()
    same(after[1], State(**{**vars(after[0]), "stream": 1}))


def test_controllers_get_the_time_of_each_item(fall):
    times = []
    state = BALL.reset(fall[-1], [0], HOME)
    BALL.run(state, control=lambda time, q, v: times.append(time) or np.zeros(BALL.nu), steps=1)
    np.testing.assert_allclose(times[0], [0.0] + [0.04] * 5, atol=1e-12)


def test_items_on_grounds_of_their_own_are_reset_onto_them():
    sim = dl.Simulation(BALL.model, dl.Ground(height=np.array([0.0, 0.3])), touching="*_calf_1")
    state = sim.reset(sim.start(HOME), [1], HOME)
    assert state.q[1, 2] - state.q[0, 2] == pytest.approx(0.3, abs=1e-9)


def test_one_item_alone_can_be_reset(fall):
    same(BALL.reset(fall[-1, 0], True, HOME), State(**{**vars(BALL.start(HOME)), "count": 40}))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda fall: BALL.reset(fall[-1], [6], HOME),
        lambda fall: BALL.reset(fall[-1], [-1], HOME),
        lambda fall: BALL.reset(fall[-1], [1, 1], HOME),
        lambda fall: BALL.reset(fall[-1], np.ones(5, bool), HOME),
        lambda fall: BALL.reset(fall[-1], [0.5], HOME),
        lambda fall: BALL.reset(fall[-1], [0, 1], np.tile(HOME, (3, 1))),
        lambda fall: fall[-1][6],
        lambda fall: fall[-1]["first"],
        lambda fall: fall[-1][0][0],
        lambda fall: State.join([]),
        lambda fall: State.join([fall[-1], dl.Simulation(BALL.model, max_contacts=0).start(HOME)]),
    ],
)
def test_items_that_are_not_there_are_refused_with_a_sentence(fall, wrong):
    with pytest.raises(BadArgument, match=r"\.$"):
        wrong(fall)


def test_a_loop_over_a_state_ends(fall):
    assert len(list(fall[-1])) == 6


def test_an_item_draws_the_same_numbers_in_any_batch(fall):
    state = fall[-1]
    np.testing.assert_array_equal(state.normal(5)[3], state[3].normal(5))
    np.testing.assert_array_equal(state.uniform(5)[[4, 1]], state[[4, 1]].uniform(5))


def test_draws_differ_between_items_periods_places_and_seeds():
    state = BALL.start(np.tile(HOME, (2, 1)))
    draws = [
        state,
        BALL.step(state),
        BALL.start(np.tile(HOME, (2, 1)), seed=1),
        BALL.reset(BALL.step(state), [0, 1], HOME),
    ]
    numbers = np.concatenate([one.uniform(4).ravel() for one in draws[:3]] + [state.uniform(4, place=1).ravel()])
    assert len(np.unique(numbers)) == 32
    np.testing.assert_array_equal(draws[3].uniform(4), draws[1].uniform(4))  # a reset goes on in its streams


def test_a_log_says_what_happened_to_an_item(fall):
    assert "Nothing" in fall.explain(2)
    control = np.zeros((5, 2, BALL.nu))
    control[3:, 1] = np.nan
    log = BALL.run(np.tile(HOME, (2, 1)), control=control)
    text = log.explain(1, np.zeros(BALL.nu))
    assert "0.004 s" in text and "calf_1" in text and "condition number" in text
    assert "not recorded" in log.explain(1)


def test_a_state_that_is_no_number_is_explained_by_its_joint():
    v = np.zeros(BALL.model.nv)
    v[-1] = np.nan
    assert BALL.model.joints[-1].name in BALL.explain(BALL.start(HOME, v))


def test_a_small_batch_steps_as_its_items_do_alone(fall):
    state = fall[5]
    controls = np.random.default_rng(0).normal(size=(20, *state.batch, BALL.nu))
    alone = [state[k] for k in range(len(state.q))]
    for u in controls:
        state = BALL.step(state, u)
        alone = [BALL.step(one, u[k]) for k, one in enumerate(alone)]
    for k, one in enumerate(alone):
        same(state[k], one)


def test_a_state_that_was_stepped_keeps_its_arrays(fall):
    state = fall[5]
    u = np.zeros((*state.batch, BALL.nu))
    first = BALL.step(state, u)
    kept = {name: np.array(getattr(first, name)) for name in PARTS}
    BALL.step(first, u)
    BALL.step(state, u + 1.0)
    for name, x in kept.items():
        np.testing.assert_array_equal(getattr(first, name), x, err_msg=name)


def test_items_that_are_frozen_stay_so_in_a_small_batch():
    q = np.tile(HOME, (3, 1))
    q[1, 0] = np.nan
    state = BALL.start(q)
    for _ in range(3):
        state = BALL.step(state, np.zeros((3, BALL.nu)))
    assert state.frozen.tolist() == [False, True, False]


def test_a_bound_robot_steps_as_the_simulation_does(fall):
    state = fall[5, 2]
    robot = BALL.bind(state)
    for k in range(20):
        robot.control[:] = 0.1 * k
        robot.step()
        state = BALL.step(state, np.full(BALL.nu, 0.1 * k))
    same(robot.state, state)
    np.testing.assert_array_equal(robot.q, state.q)
    assert (robot.time, robot.status) == (state.time, state.status)


def test_the_arrays_of_a_bound_robot_are_not_written_to_by_others(fall):
    robot = BALL.bind(fall[5, 2])
    with pytest.raises(ValueError, match="read-only"):
        robot.q[0] = 1.0


def test_a_batch_cannot_be_bound(fall):
    with refuses("wrong-shape", "sim.step takes batches"):
        BALL.bind(fall[5])
