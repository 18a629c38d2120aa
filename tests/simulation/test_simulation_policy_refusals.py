"""Policies that fail, or make no sense: a frozen item, or a sentence."""

import numpy as np
import pytest

import delassus as dl
import delassus.numpy as dnp
from bodies import BRICK
from delassus.simulation import CompiledPolicy, Delayed, Mark
from policies import CART_SIM, CASES, DOG_SIM, HOME, act, judge
from refusals import refuses


@pytest.mark.parametrize("every", ["period", "step"])
@pytest.mark.parametrize(("what", "size"), [("control", CART_SIM.nu), ("force", 2), ("level", 1)])
def test_nan_freezes_its_item_and_no_other(what, size, every):
    def fail(now):
        return {what: (now["huge"] - now["huge"]) * dnp.ones(size)}

    policy = CompiledPolicy(fail, memory={"huge": 1.0, "level": np.zeros(1)}, every=every)
    start = CART_SIM.start(np.full((3, 2), 0.1), memory=policy.pack(huge=np.array([1.0, np.inf, 1.0])))
    log = CART_SIM.run(start, control=policy, steps=5)
    assert (log.status[1:, 1] == Mark.FROZEN).all() and not log.status[:, [0, 2]].any()
    np.testing.assert_array_equal(log.q[-1, 1], log.q[0, 1])
    assert (log.q[-1, [0, 2]] != log.q[0, [0, 2]]).any()


def test_a_function_that_cannot_be_traced_is_refused_with_its_line():
    def branch(now):
        return now.v if now.q[0] > 0.0 else -now.v

    with refuses("function-failed", "now.q[0] > 0.0", f"line {branch.__code__.co_firstlineno + 1} of"):
        CART_SIM.run(np.zeros(2), control=CompiledPolicy(branch), steps=3)


@pytest.mark.parametrize(
    ("result", "refusal"),
    [
        (lambda: np.ones(3), ("wrong-shape", "control", "(3,)", "(2,)")),
        (lambda: {"force": np.ones(1)}, ("wrong-shape", "force", "(1,)", "(2,)")),
        (lambda: {"last": np.ones(3)}, ("wrong-shape", "last", "(3,)", "(2,)")),
        (lambda: {"lost": 0.0}, ("unknown-name", "lost", "last")),
        (lambda: "left", ("wrong-type", "control", "'left'")),
        (lambda: ["left", "right"], ("wrong-type", "control", "'left'")),
        (lambda: np.array([1.0j]), ("wrong-type", "control", "1.j")),
        (lambda: {"force": [np.ones(2), 1.0]}, ("wrong-type", "force")),
        (lambda: {"last": None}, ("wrong-type", "last", "None")),
        (lambda: {"last": object()}, ("wrong-type", "last", "object")),
    ],
)
def test_results_of_the_wrong_type_shape_or_name_are_refused(result, refusal):
    with refuses(*refusal):
        CART_SIM.run(np.zeros(2), control=CompiledPolicy(lambda now: result(), memory={"last": np.zeros(2)}), steps=3)


def test_functions_cannot_change_the_state_in_place():
    def push(now):
        now.q[0], now.v[0], now["last"][0] = 3.0, 4.0, 5.0

    policy = CompiledPolicy(push, after=push, memory={"last": np.zeros(2)})
    log = CART_SIM.run(np.array([0.0, 0.1]), control=policy, steps=3)
    np.testing.assert_array_equal(log.q, CART_SIM.run(np.array([0.0, 0.1]), steps=3).q)
    assert not log.memory[1:].any()


class Unhashable:
    """A function that no dict can find."""

    __hash__ = None

    def __call__(self, now):
        return None


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({}, ("missing-argument", "before")),
        ({"before": 3.0}, ("wrong-type", "3.0")),
        ({"before": act}, ("unknown-name", "weights")),
        ({"before": judge, "shared": {"weights": 1.0}}, ("unknown-name", "weights")),
        ({"before": judge, "memory": {"force": 0.0}}, ("unknown-name", "force")),
        ({"before": judge, "memory": {"last": "zero"}}, ("not-a-number", "last")),
        ({"before": judge, "memory": {"last": []}}, ("wrong-shape", "last")),
        ({"before": judge, "every": "second"}, ("unknown-option", "second")),
        ({"before": np.sin}, ("wrong-type", "before", "sin", "lambda now")),
        ({"after": Unhashable()}, ("wrong-type", "after", "Unhashable", "lambda now")),
    ],
)
def test_policies_that_make_no_sense_are_refused(options, refusal):
    with refuses(*refusal):
        CompiledPolicy(**options)


def test_memory_of_another_policy_is_refused():
    sim, q0, policy = CASES["cart"]
    with refuses("wrong-shape", "3", str(policy.size)):
        sim.step(sim.start(q0, memory=np.zeros(3)), policy)
    with refuses("batch-mismatch", "(5, 3)"):
        sim.start(q0, memory=np.zeros((5, 3)))


def test_memory_that_is_no_numbers_is_refused():
    with refuses("not-a-number", "'first'"):
        CASES["cart"][2].unpack("first")


def test_a_function_without_parameters_is_refused():
    with refuses("function-failed", "before of the policy failed: TypeError", "0 positional arguments"):
        CART_SIM.run(np.zeros(2), control=CompiledPolicy(lambda: 0.0), steps=3)


@pytest.mark.parametrize(
    ("sensor", "refusal"),
    [
        ("gyro:head", ("unknown-sensor", "'head'", "frame")),
        ("actuatorfrc:hip", ("unknown-sensor", "'hip'", "12")),
        ("airtime:front_left_calf_1", ("unknown-sensor", "tracked=")),
        ("heightscan:trunk", ("wrong-shape", "(x, y)")),
        ("touch:*_calf_1", ("unknown-sensor", "4 sensors", "hind_right_calf_1")),
    ],
)
def test_sensors_that_the_robot_lacks_are_refused(sensor, refusal):
    with refuses(*refusal):
        DOG_SIM.run(HOME, control=CompiledPolicy(lambda now: {"sum": now[sensor][0]}, memory={"sum": 0.0}), steps=3)


def test_a_sensor_is_found_by_its_name_alone():
    with refuses("function-failed", "now[0] is neither a memory nor a sensor"):
        CART_SIM.run(np.zeros(2), control=CompiledPolicy(lambda now: now[0]), steps=3)


def test_a_policy_cannot_be_delayed_nor_another_ones_reference():
    sim, q0, policy = CASES["cart"]
    for control in (
        Delayed(policy, 2),
        CompiledPolicy(judge, memory={"distance": 0.0, "height": 0.0}, reference=policy),
    ):
        with refuses("not-supported"):
            sim.run(q0, control=control, steps=3)


def test_accelerations_are_refused_inside_a_period():
    with refuses("not-supported", "accelerometer:trunk"):
        DOG_SIM.run(HOME, control=CompiledPolicy(lambda now: now["accelerometer:trunk"]), steps=3)


def test_many_free_bodies_have_memory_and_no_joint_forces():
    sim = dl.Simulation(BRICK, method="sweeps")
    q0 = np.array([0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 1.0])
    policy = CompiledPolicy(after=lambda now: {"sum": now["sum"] + now.q[2]}, memory={"sum": 0.0})
    log = sim.run(q0, control=policy, steps=20)
    np.testing.assert_array_equal(log.memory[1:, 0], np.cumsum(log.q[1:, 2]))
    with refuses("not-supported"):
        sim.run(q0, control=CompiledPolicy(lambda now: {"force": 0.0 * now.v}), steps=2)
