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


def dropped(n=6, steps=40):
    q = np.tile(HOME, (n, 1))
    q[:, 2] += np.linspace(0.0, 0.02, n)
    return BALL.run(q, steps=steps)


LOG = dropped()


def same(one, other):
    for name in PARTS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def test_a_run_goes_on_from_any_time_of_a_log_to_the_bit():
    again = BALL.run(LOG[25], steps=15)
    same(again[-1], LOG[-1])


def test_an_item_of_a_log_goes_on_as_in_its_batch():
    same(BALL.run(LOG[25, 3], steps=15)[-1], LOG[-1, 3])


def test_items_of_a_state_are_chosen_as_those_of_an_array():
    state = LOG[-1]
    mask = np.array([True, False, False, True, False, False])
    same(state[mask], state[[0, 3]])
    same(state[1:3][1], state[2])


def test_joined_states_have_the_items_of_each():
    state = LOG[-1]
    same(State.join([state[:2], state[2], state[3:]]), state)


def test_a_state_is_read_from_a_file_to_the_bit(tmp_path):
    LOG[-1].save(tmp_path / "state.npz")
    same(State.load(tmp_path / "state.npz"), LOG[-1])


def test_a_log_from_a_file_goes_on_to_the_bit(tmp_path):
    LOG.save(tmp_path / "log.npz")
    same(dl.Trajectory.load(tmp_path / "log.npz", BALL)[20], LOG[20])


def test_items_that_are_reset_start_again_and_the_others_go_on():
    state, q = LOG[-1], np.array([HOME, HOME])
    q[1, 2] += 0.1
    reset = BALL.reset(state, [4, 1], q)
    same(reset[[4, 1]], State(**{**vars(BALL.start(q)), "count": [40, 40], "stream": [4, 1]}))
    same(reset[[0, 2, 3, 5]], state[[0, 2, 3, 5]])


def test_items_with_times_of_their_own_do_what_they_do_alone():
    state = BALL.reset(LOG[-1], np.arange(6) < 2, HOME)
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


def test_controllers_get_the_time_of_each_item():
    times = []
    state = BALL.reset(LOG[-1], [0], HOME)
    BALL.run(state, control=lambda time, q, v: times.append(time) or np.zeros(BALL.nu), steps=1)
    np.testing.assert_allclose(times[0], [0.0] + [0.04] * 5, atol=1e-12)


def test_items_on_grounds_of_their_own_are_reset_onto_them():
    sim = dl.Simulation(BALL.model, dl.Ground(height=np.array([0.0, 0.3])), touching="*_calf_1")
    state = sim.reset(sim.start(HOME), [1], HOME)
    assert state.q[1, 2] - state.q[0, 2] == pytest.approx(0.3, abs=1e-9)


def test_one_item_alone_can_be_reset():
    same(BALL.reset(LOG[-1, 0], True, HOME), State(**{**vars(BALL.start(HOME)), "count": 40}))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: BALL.reset(LOG[-1], [6], HOME),
        lambda: BALL.reset(LOG[-1], [-1], HOME),
        lambda: BALL.reset(LOG[-1], [1, 1], HOME),
        lambda: BALL.reset(LOG[-1], np.ones(5, bool), HOME),
        lambda: BALL.reset(LOG[-1], [0.5], HOME),
        lambda: BALL.reset(LOG[-1], [0, 1], np.tile(HOME, (3, 1))),
        lambda: LOG[-1][6],
        lambda: LOG[-1]["first"],
        lambda: LOG[-1][0][0],
        lambda: State.join([]),
        lambda: State.join([LOG[-1], dl.Simulation(BALL.model, max_contacts=0).start(HOME)]),
    ],
)
def test_items_that_are_not_there_are_refused_with_a_sentence(wrong):
    with pytest.raises(BadArgument, match=r"\.$"):
        wrong()


def test_a_loop_over_a_state_ends():
    assert len(list(LOG[-1])) == 6


def test_an_item_draws_the_same_numbers_in_any_batch():
    state = LOG[-1]
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


def test_a_log_says_what_happened_to_an_item():
    assert "Nothing" in LOG.explain(2)
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


def test_a_small_batch_steps_as_its_items_do_alone():
    state = LOG[5]
    controls = np.random.default_rng(0).normal(size=(20, *state.batch, BALL.nu))
    alone = [state[k] for k in range(len(state.q))]
    for u in controls:
        state = BALL.step(state, u)
        alone = [BALL.step(one, u[k]) for k, one in enumerate(alone)]
    for k, one in enumerate(alone):
        same(state[k], one)


def test_a_state_that_was_stepped_keeps_its_arrays():
    state = LOG[5]
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


def test_a_bound_robot_steps_as_the_simulation_does():
    state = LOG[5, 2]
    robot = BALL.bind(state)
    for k in range(20):
        robot.control[:] = 0.1 * k
        robot.step()
        state = BALL.step(state, np.full(BALL.nu, 0.1 * k))
    same(robot.state, state)
    np.testing.assert_array_equal(robot.q, state.q)
    assert (robot.time, robot.status) == (state.time, state.status)


def test_the_arrays_of_a_bound_robot_are_not_written_to_by_others():
    robot = BALL.bind(LOG[5, 2])
    with pytest.raises(ValueError, match="read-only"):
        robot.q[0] = 1.0


def test_a_batch_cannot_be_bound():
    with refuses("wrong-shape", "sim.step takes batches"):
        BALL.bind(LOG[5])
