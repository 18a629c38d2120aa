"""Policies in the control period: same bits as outside of it, memory that is carried, weights that compile nothing."""

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest

import delassus as dl
import delassus.numpy as dnp
from delassus.compiler.host import build
from delassus.simulation import CompiledPolicy, State
from policies import CART_SIM, CASES, DOG, DOG_SIM, HOME, Sizes, outside
from refusals import refuses


@pytest.mark.parametrize("name", CASES)
def test_a_policy_in_the_period_has_the_bits_of_the_same_policy_between_steps(name):
    sim, q0, policy = CASES[name]
    sizes, weights = Sizes(sim.model, len(policy.memory["last"])), policy.shared["weights"]
    q = np.tile(q0, (5, 1)) + 0.01 * np.arange(5.0)[:, None] * (np.arange(len(q0)) == len(q0) - 1)
    start = sim.start(q, seed=3)
    log = sim.run(start, control=policy, steps=80)
    state, last = start, np.zeros((5, sizes.last))
    for _ in range(80):
        last = outside(sizes, state.q, state.v, last, state.normal(sizes.last, place=1), weights=weights)
        state = sim.step(state, policy.memory["offset"] + last[:, : sim.nu])
    np.testing.assert_array_equal(log.q[-1], state.q)
    np.testing.assert_array_equal(policy.unpack(log.memory)["last"][-1], last)
    assert np.ptp(log.q[-1, :, -1]) > 0.0


def test_the_function_after_the_step_sums_what_the_log_has():
    sim, q0, policy = CASES["dog"]
    log = sim.run(np.tile(q0, (3, 1)), control=policy, steps=50)
    memory = policy.unpack(log.memory)
    np.testing.assert_array_equal(memory["distance"][1:], np.cumsum(log.v[1:, :, 0], axis=0))
    np.testing.assert_array_equal(memory["height"][1:], log.q[1:, :, 0])


@pytest.mark.parametrize("name", CASES)
def test_an_item_is_the_same_alone_and_in_any_batch_on_any_number_of_threads(name):
    sim, q0, policy = CASES[name]
    start = sim.start(np.tile(q0, (300, 1)), seed=1)
    count = dl.threads()
    try:
        log, threaded = (sim.run(start, control=policy, steps=40) for _ in map(dl.threads, (1, 2)))
    finally:
        dl.threads(count)
    np.testing.assert_array_equal(threaded.memory, log.memory)
    for items in ([77], [5, 77, 299]):
        part = sim.run(start[items], control=policy, steps=40)
        np.testing.assert_array_equal(part.q, log.q[:, items])
        np.testing.assert_array_equal(part.memory, log.memory[:, items])
    alone = sim.run(start[77], control=policy, steps=40)  # many periods of one call
    np.testing.assert_array_equal(alone.q, log.q[:, 77])


@pytest.mark.parametrize("batch", [(), (4,)])
def test_memory_is_carried_by_logs_files_steps_and_bound_robots(batch, tmp_path):
    sim, q0, policy = CASES["cart"]
    start = sim.start(np.broadcast_to(q0, (*batch, 2)), seed=2)
    log = sim.run(start, control=policy, steps=100)
    first = sim.run(start, control=policy, steps=70)
    first.save(tmp_path / "log.npz")
    first[-1].save(tmp_path / "state.npz")
    for middle in (first[-1], State.load(tmp_path / "state.npz"), dl.Trajectory.load(tmp_path / "log.npz", sim)[-1]):
        state = middle
        for _ in range(3):
            state = sim.step(state, policy)
        np.testing.assert_array_equal(state.memory, log.memory[73])
        np.testing.assert_array_equal(sim.run(state, control=policy, steps=27).q[-1], log.q[-1])
    if not batch:
        robot = sim.bind(first[-1], policy)
        for _ in range(30):
            robot.step()
        np.testing.assert_array_equal(robot.state.memory, log.memory[-1])


def test_a_run_without_the_policy_keeps_its_memory():
    sim, q0, policy = CASES["cart"]
    state = sim.run(q0, control=policy, steps=10)[-1]
    log = sim.run(state, steps=100)
    np.testing.assert_array_equal(log[-1].memory, state.memory)
    np.testing.assert_array_equal(sim.step(state).memory, state.memory)


def test_items_that_are_reset_begin_with_initial_memory():
    sim, q0, policy = CASES["cart"]
    state = sim.run(np.tile(q0, (3, 1)), control=policy, steps=20)[-1]
    memory = policy.unpack(sim.step(sim.reset(state, [1], q0), policy).memory)
    assert memory["distance"][1] == sim.step(sim.reset(state, [1], q0), policy).v[1, 0]
    np.testing.assert_array_equal(sim.step(state, policy)[[0, 2]].memory, policy.pack(**memory)[[0, 2]])


def test_memory_may_differ_between_items_from_the_start():
    sim, q0, policy = CASES["dog"]
    offsets = np.linspace(-0.2, 0.2, 3)[:, None] + HOME[7:]
    start = sim.start(np.tile(q0, (3, 1)), memory=policy.pack(offset=offsets))
    log = sim.run(start, control=policy, steps=2)
    np.testing.assert_array_equal(policy.unpack(log.memory)["offset"][-1], offsets)
    assert len(np.unique(log.q[-1, :, 7])) == 3


@pytest.mark.parametrize("every", [1, 10])
def test_a_replay_has_the_bits_of_the_run(every):
    sim, q0, policy = CASES["cart"]

    def reset_one(k, state):
        return sim.reset(state, [1], q0) if k == 12 else None

    push = dl.simulation.Push(kick=np.array([0.1, 0.0]))
    log = sim.run(
        np.tile(q0, (3, 1)), control=policy, steps=30, record="replay", every=every, progress=reset_one, push=push
    )
    whole = sim.replayed_log(log, (1,), 0, 30)
    np.testing.assert_array_equal(whole.q[::every], log.q[:, 1])
    np.testing.assert_array_equal(whole.memory[::every], log.memory[:, 1])


def test_a_replay_from_a_file_misses_the_policy(tmp_path):
    sim, q0, policy = CASES["cart"]
    sim.run(q0, control=policy, steps=30, record="replay").save(tmp_path / "log.npz")
    with refuses("not-recorded"):
        sim.replay(dl.Trajectory.load(tmp_path / "log.npz", sim), (), 20)


# --- weights ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [(), (8,), (200,)])
def test_other_weights_act_and_compile_nothing(batch, monkeypatch):
    sim, q0, policy = CASES["cart"]
    start = sim.start(np.broadcast_to(q0, (*batch, 2)))
    sim.step(sim.step(start, policy), policy)
    sim.run(start, control=policy, steps=3)
    monkeypatch.setattr(build.Recipe, "__init__", None)  # whatever is compiled from here on fails
    seen = set()
    for k in range(1000 if not batch else 20):
        other = policy.with_shared(weights=policy.shared["weights"] * (1.0 + 0.01 * k))
        state = sim.step(replace(start, memory=np.broadcast_to(policy.initial, (*batch, policy.size)).copy()), other)
        seen.add(state.v.ravel()[0])
    assert len(seen) == (1000 if not batch else 20)
    np.testing.assert_array_equal(state.v, sim.run(start, control=other, steps=1).v[-1])


def test_a_thousand_policies_leave_no_memory_behind():
    sim, q0, policy = CASES["cart"]
    start = sim.start(np.tile(q0, (4, 1)))
    alive = weakref.WeakSet()
    for k in range(1000):
        other = policy.with_shared(weights=policy.shared["weights"] + k)
        alive.add(other)
        sim.step(start, other)
    del other
    gc.collect()
    assert len(alive) <= 1 and len(sim.with_memory(policy.size + 3).compiled) <= 1


def test_a_policy_that_was_a_control_is_freed_with_its_kernel():
    def damp(now):
        return -now.v

    CART_SIM.run(np.zeros(2), control=CompiledPolicy(damp), steps=300)
    gone = weakref.ref(damp)
    compiled = len(CART_SIM.with_memory(3).compiled)
    del damp
    gc.collect()
    assert gone() is None
    assert len(CART_SIM.with_memory(3).compiled) == compiled - 1


# --- forces -----------------------------------------------------------------------------------------------------------

PENDULUM = (
    "<mujoco><worldbody><body><joint name='hinge' axis='0 1 0' {}/><geom size='0.1' pos='0.3 0 0' mass='1'/></body>"
    "</worldbody></mujoco>"
)


@pytest.mark.parametrize("every", ["period", "step"])
def test_a_spring_of_a_policy_is_a_spring_of_the_model(every):
    springs, bare = (
        dl.Simulation(dl.load(PENDULUM.format(text)), time_step=1e-2, max_contacts=0)
        for text in ("stiffness='30' damping='0.5' springref='20'", "")
    )

    def spring(now):
        k, d = np.array([30.0]), np.array([0.5])
        return {"force": -k * (now.q - np.deg2rad(20.0)) - d * now.v, "stiffness": k, "damping": d}

    log = bare.run([1.0], control=CompiledPolicy(spring, every=every), steps=200)
    np.testing.assert_allclose(log.q, springs.run([1.0], steps=200).q, atol=1e-13)


def test_functions_may_run_in_each_step():
    sim, q0, _ = CASES["cart"]

    def count(now):
        return {"steps": now["steps"] + 1.0, "clock": now["clock"] + now.time}

    policy = CompiledPolicy(after=count, memory={"steps": 0.0, "clock": 0.0}, every="step")
    memory = policy.unpack(sim.run(q0, control=policy, steps=10).memory)
    assert memory["steps"][-1] == 20.0
    np.testing.assert_allclose(memory["clock"][-1], 5e-3 * np.arange(1, 21).sum(), rtol=1e-14)


def test_random_numbers_of_steps_and_functions_differ():
    def draw(now):
        return {"before": dnp.concatenate([now["before"][1:], now.draws.uniform(shape=1)])}

    def draw_after(now):
        return {"after": now.draws.uniform(shape=2)}

    memory = {"before": np.zeros(2), "after": np.zeros(2)}
    policy = CompiledPolicy(draw, after=draw_after, memory=memory, every="step")
    log = CART_SIM.run(np.zeros((3, 2)), control=policy, steps=4)
    numbers = log.memory[1:]
    assert len(np.unique(numbers)) == numbers.size and (0.0 < numbers).all() and (numbers < 1.0).all()


def test_a_step_after_compile_compiles_nothing(monkeypatch):
    policy = CompiledPolicy(lambda now: -now.v, every="step")
    CART_SIM.compile(control=policy)
    CART_SIM.compile(items=3, control=policy)
    monkeypatch.setattr(build.Recipe, "__init__", None)
    CART_SIM.step(CART_SIM.start(np.zeros(2)), policy)
    CART_SIM.step(CART_SIM.start(np.zeros((3, 2))), policy)


def test_a_reference_is_what_the_policy_reads_and_acts_where_it_returns_no_control():
    sim, q0, _ = CASES["cart"]
    u = np.random.default_rng(0).normal(size=(100, sim.nu))
    plain = sim.run(q0, control=u)
    watched = sim.run(q0, control=CompiledPolicy(after=lambda now: None, reference=u))
    np.testing.assert_array_equal(watched.q, plain.q)
    doubled = sim.run(q0, control=CompiledPolicy(lambda now: 2.0 * now.control, reference=u))
    np.testing.assert_array_equal(doubled.q, sim.run(q0, control=2.0 * u).q)


def test_sensors_are_read_inside_the_period():
    def read(now):
        return {"gyro": now["gyro:trunk"], "touch": now["touch:front_left_calf_1"][0]}

    policy = CompiledPolicy(after=read, memory={"gyro": np.zeros(3), "touch": 0.0}, reference=HOME[7:])
    log = DOG_SIM.run(HOME, control=policy, steps=30)
    readings, memory = DOG_SIM.sensors("gyro:trunk", "touch:front_left_calf_1")(log), policy.unpack(log.memory)
    np.testing.assert_array_equal(memory["gyro"][1:], readings["gyro:trunk"][1:])
    np.testing.assert_allclose(memory["touch"][1:], readings["touch:front_left_calf_1"][1:, 0], rtol=1e-14)
    assert memory["touch"][-1] > 5.0


def test_the_stages_of_a_step_with_a_policy_are_those_of_the_step():
    sim, q0, policy = CASES["dog"]
    one = dl.Simulation(DOG, time_step=2e-3, actuators=sim.scene.actuators, touching="*_calf_1")
    state = one.run(q0, control=policy, steps=20)[-1]
    stages = one.stages(state, policy)
    np.testing.assert_allclose(stages.v, one.step(state, policy).v, atol=1e-9)


def test_the_step_in_which_a_policy_failed_is_explained():
    def fail(now):
        return dnp.sqrt(0.02 - now.time) * dnp.ones(2)

    log = CART_SIM.run(np.zeros((2, 2)), control=CompiledPolicy(fail), steps=10, record="replay")
    assert "The control 0" in str(log.explain(1))


def test_robots_among_free_bodies_follow_policies():
    ball = '<body pos="{} 0 .5"><freejoint/><geom type="sphere" size=".05"/></body>'
    joint = '<joint name="j" axis="0 1 0" limited="true" range="-2 2"/>'
    arm = f'<body>{joint}<geom type="capsule" fromto="0 0 1 .3 0 1" size=".03"/></body>'
    bodies = arm + "".join(ball.format(0.2 * k + 1.0) for k in range(7))
    model = dl.load(f"<mujoco><worldbody>{bodies}</worldbody><actuator><motor joint='j'/></actuator></mujoco>")
    sim, gain = dl.Simulation(model, dl.Ground(), method="sweeps"), {"gain": 2.0}
    policy = CompiledPolicy(lambda now, *, gain: -gain * now.q[:1], shared=gain)
    state = sim.start(sim.keyframe.q + 0.1 * (np.arange(model.nq) == 0))
    log = sim.run(state, control=policy, steps=20)
    for _ in range(20):
        state = sim.step(state, -2.0 * state.q[:1])
    np.testing.assert_array_equal(log.q[-1], state.q)
