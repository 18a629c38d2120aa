"""Predictive sampling: costs of rollouts, plans that approach the optimum, swing-ups in closed loop, and bad input."""

import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st

import delassus as dl
from delassus.control.sampling.checks import SamplingError
from delassus.control.sampling.methods import SamplingDistribution, best, cross_entropy, mppi
from delassus.control.sampling.splines import SPLINES, shift_matrix, spline_matrix
from delassus.simulation import motors
from delassus.step.stages import tree_problem
from refusals import refuses

PERIOD = 0.1
SLIDER = """<mujoco><worldbody><body name="b"><joint name="x" type="slide" axis="1 0 0"/>
<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></worldbody>
<actuator><motor name="m" joint="x"{range}/></actuator></mujoco>"""
HOPPER = """<mujoco><worldbody><body name="b" pos="0 0 0.3"><joint name="z" type="slide" axis="0 0 1"/>
<geom type="sphere" size="0.1" mass="1"/></body></worldbody><actuator><motor name="m" joint="z"/></actuator></mujoco>"""

# --- a mass on a rail, whose optimum is known -------------------------------------------------------------------------

A, B = np.array([[1.0, PERIOD], [0.0, 1.0]]), np.array([[PERIOD**2], [PERIOD]])
Q, R = PERIOD * np.diag([1.0, 0.1]), PERIOD * np.array([[0.1]])
P = scipy.linalg.solve_discrete_are(A, B, Q, R)
GAIN = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
BEGIN = np.array([1.0, 0.5])
OPTIMUM = BEGIN @ P @ BEGIN


@dl.kernel("(),(nq),(nv),(1)->()")
def effort(model, time, q, v, u):
    return q[0] ** 2 + 0.1 * v[0] ** 2 + 0.1 * u[0] ** 2


@dl.kernel("(),(nq),(nv)->()")
def rest(model, time, q, v):
    x = dl.numpy.concatenate([q, v])
    return x @ (P @ x)


def effort_of_all(time, q, v, u):
    return q[..., 0] ** 2 + 0.1 * v[..., 0] ** 2 + 0.1 * u[..., 0] ** 2


@pytest.fixture(scope="module")
def slider():
    return dl.Simulation(dl.load(SLIDER.format(range="")), time_step=PERIOD, max_contacts=0, max_limits=0)


@pytest.fixture(scope="module")
def planner(slider):
    """With another number of samples or method by `changed`, on the same kernel."""
    return dl.control.Sampling(slider, effort, 10, final=rest, knots=10, noise=1.0, iterations=10, samples=64)


def changed(planner, **values):
    other = object.__new__(dl.control.Sampling)
    _ = planner._kernel, planner._ahead
    vars(other).update(vars(planner) | values)
    return other


def start(slider):
    return slider.start(BEGIN[:1], BEGIN[1:])


def test_rollouts_continue_with_another_method_after_a_step_that_is_not_solved(monkeypatch):
    """The recursion solves no step here; rollouts stood still then, and their costs were those of resting robots."""
    monkeypatch.setattr(tree_problem, "WANTED", (-1.0,) * 5)
    model = dl.load(HOPPER.replace('axis="0 0 1"', 'axis="0 0 1" frictionloss="0.1"'))
    ends = []
    for method in ("articulated", "dual"):
        sim = dl.Simulation(model, dl.Ground(), time_step=0.01, method=method)
        planner = dl.control.Sampling(
            sim, lambda time, q, v, u: 0.0 * q[..., 0], 20, final=lambda time, q, v: q[..., 0], limits=1.0
        )
        ends.append(planner.costs(sim.start([-0.1], [0.0]), np.zeros((2, 20, 1))))
    np.testing.assert_allclose(*ends, atol=1e-8)
    assert (ends[0] < -0.15).all()


@pytest.mark.parametrize(("method", "near"), [("mppi", 1e-3), ("cross_entropy", 2e-3), ("best", 3e-2)])
def test_plans_approach_the_linear_quadratic_optimum(planner, slider, method, near):
    planner = changed(planner, method=method, samples=1024)
    plans = [planner.improve(planner.start(seed), start(slider)) for seed in range(8)]
    assert 0.0 <= np.mean([plan.cost / OPTIMUM - 1.0 for plan in plans]) < near
    assert abs(np.mean([plan.control[0] for plan in plans]) + (GAIN @ BEGIN)[0]) < 0.06 * abs((GAIN @ BEGIN)[0])


@pytest.mark.parametrize("method", ["mppi", "cross_entropy", "best"])
def test_more_samples_are_better_on_average(planner, slider, method):
    costs = []
    for samples in (8, 64, 512):
        own = changed(planner, method=method, samples=samples)
        costs.append(np.mean([own.improve(own.start(seed), start(slider)).cost for seed in range(16)]))
    assert costs == sorted(costs, reverse=True)


@pytest.mark.parametrize("method", ["mppi", "cross_entropy", "best"])
def test_a_plan_never_gets_worse_for_the_same_state(planner, slider, method):
    planner, plan, costs = changed(planner, method=method, iterations=1, samples=8), planner.start(3), []
    for _ in range(20):
        plan = planner.improve(plan, start(slider))
        costs.append(plan.cost)
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < costs[0]


def test_equal_seeds_give_equal_bits_on_any_number_of_threads(planner, slider):
    planner, before, plans = changed(planner, samples=512), dl.threads(), []
    try:
        for count in (1, 1, 2):
            dl.threads(count)
            plan = planner.improve(planner.start(7), start(slider))
            plans.append(planner.improve(plan, start(slider)))
    finally:
        dl.threads(before)
    assert len({plan.knots.tobytes() + plan.controls.tobytes() for plan in plans}) == 1
    assert np.any(planner.improve(planner.start(8), start(slider)).knots != plans[0].knots)


def test_a_cost_of_numpy_is_that_of_the_kernel(planner, slider):
    def left(time, q, v):
        x = np.concatenate([q, v], -1)
        return np.einsum("...i,ij,...j->...", x, P, x)

    slow = dl.control.Sampling(slider, effort_of_all, 10, final=left, knots=10, noise=1.0, samples=64)
    controls = np.random.default_rng(0).normal(size=(20, 10, 1))
    np.testing.assert_allclose(slow.costs(start(slider), controls), planner.costs(start(slider), controls), rtol=1e-13)


def test_the_plan_moves_on_with_the_time_of_the_state(planner, slider):
    plan = planner.start(0)
    plan = replace(plan, knots=np.arange(10.0)[:, None])
    later = changed(planner, noise=np.array([1e-9]), iterations=1).improve(
        plan, replace(start(slider), time=2 * PERIOD)
    )
    np.testing.assert_allclose(later.knots[:, 0], [2, 3, 4, 5, 6, 7, 8, 9, 9, 9], atol=1e-7)
    assert later.time == 2 * PERIOD


# --- rollouts are simulations -----------------------------------------------------------------------------------------


def robot_case(name):
    if name == "hopper":
        return dl.Simulation(dl.load(HOPPER), time_step=0.01), [0.05], 30.0
    robot = dl.load(name)
    joints = {"cart_pole": "cart*", "four_bar": "crank*"}[name]
    q0 = [0.0, 3.0] if name == "cart_pole" else robot.posture("home")
    sim = dl.Simulation(robot, time_step=0.01, substeps=2, max_contacts=0, actuators=motors(robot, joints))
    return sim, q0, 20.0 if name == "cart_pole" else 1.0


@pytest.mark.parametrize("name", ["cart_pole", "four_bar", "hopper"])
def test_rollouts_cost_what_the_simulation_of_their_controls_does(name):
    """Carts reach the ends of their rail, loops are closed, balls strike the ground."""
    sim, q0, force = robot_case(name)

    def cost(time, q, v, u):
        return np.sum(q**2, -1) + 0.1 * np.sum(v**2, -1) + u[..., 0] ** 2 + time

    planner = dl.control.Sampling(sim, cost, 40, final=lambda time, q, v: time + q[..., 0], noise=1.0)
    controls = force * np.random.default_rng(1).uniform(-1.0, 1.0, size=(12, 1, 1)) * np.ones((12, 40, 1))
    log = sim.run(np.tile(q0, (12, 1)), control=np.swapaxes(controls, 0, 1))
    stages = cost(log.time[:-1, None], log.q[:-1], log.v[:-1], np.swapaxes(controls, 0, 1))
    expected = sim.period * stages.sum(0) + log.time[-1] + log.q[-1, :, 0]
    np.testing.assert_allclose(planner.costs(sim.start(q0), controls), expected, rtol=1e-7)


def test_compiled_costs_go_on_where_a_rollout_was_taken_up_again():
    """Carts that reach the ends of their rail are moved to the whole world there."""
    sim, q0, force = robot_case("cart_pole")

    @dl.kernel("(),(nq),(nv),(1)->()")
    def cost(model, time, q, v, u):
        return q @ q + time * u[0]

    def same(time, q, v, u):
        return np.sum(q**2, -1) + time * u[..., 0]

    controls = np.linspace(-force, force, 12)[:, None, None] * np.ones((12, 40, 1))
    compiled, called = (dl.control.Sampling(sim, c, 40, noise=1.0).costs(sim.start(q0), controls) for c in (cost, same))
    np.testing.assert_allclose(compiled, called, rtol=1e-12)


# --- what samples make of a plan --------------------------------------------------------------------------------------

METHODS = {
    "mppi": lambda x, c, d: mppi(x, c, d, 0.1),
    "cross_entropy": lambda x, c, d: cross_entropy(x, c, d, 0.2, d.noise),
    "best": best,
}


@pytest.mark.parametrize("method", METHODS)
@given(seed=st.integers(0, 2**32), scale=st.sampled_from([2.0**-20, 4.0, 2.0**30]))
def test_other_units_of_the_cost_change_nothing(method, seed, scale):
    rng = np.random.default_rng(seed)
    samples, costs = rng.normal(size=(30, 4, 2)), rng.normal(size=30)
    drawn = SamplingDistribution(np.zeros((4, 2)), np.ones((4, 2)))
    one, other = (METHODS[method](samples, c, drawn) for c in (costs, scale * costs))
    np.testing.assert_array_equal(one.mean, other.mean)
    np.testing.assert_array_equal(one.noise, other.noise)


@pytest.mark.parametrize("method", METHODS)
@given(seed=st.integers(0, 2**32), bad=st.sampled_from([math.nan, math.inf, -math.inf]))
def test_samples_without_a_cost_have_no_weight(method, seed, bad):
    rng = np.random.default_rng(seed)
    samples, costs = rng.normal(size=(30, 4, 2)), rng.normal(size=30)
    costs[:7] = bad
    samples[:7] = 1e6
    drawn = SamplingDistribution(np.zeros((4, 2)), np.ones((4, 2)))
    some, others = METHODS[method](samples, costs, drawn), METHODS[method](samples[7:], costs[7:], drawn)
    np.testing.assert_allclose(some.mean, others.mean, rtol=1e-12, atol=1e-12)


@given(
    spline=st.sampled_from(SPLINES),
    knots=st.integers(1, 12),
    more=st.integers(0, 30),
    periods=st.floats(0.0, 60.0),
)
def test_splines_keep_what_is_constant(spline, knots, more, periods):
    for matrix in (spline_matrix(spline, knots, knots + more), shift_matrix(spline, knots, knots + more, periods)):
        np.testing.assert_allclose(matrix.sum(1), 1.0, atol=1e-12)


@pytest.mark.parametrize("spline", ["linear", "cubic"])
@given(knots=st.integers(2, 12), more=st.integers(1, 30))
def test_splines_keep_straight_lines(spline, knots, more):
    horizon = knots + more
    line = np.linspace(0.0, horizon - 1.0, knots)
    np.testing.assert_allclose(spline_matrix(spline, knots, horizon) @ line, np.arange(horizon), atol=1e-10)


def test_held_controls_last_equally_long():
    np.testing.assert_array_equal(spline_matrix("hold", 3, 6) @ [1.0, 2.0, 3.0], [1, 1, 2, 2, 3, 3])


@pytest.mark.parametrize("spline", SPLINES)
def test_a_knot_for_each_period_is_its_control(spline):
    np.testing.assert_allclose(spline_matrix(spline, 7, 7), np.eye(7), atol=1e-12)


# --- in closed loop ---------------------------------------------------------------------------------------------------


@pytest.fixture
def examples():
    """The folder of examples, from which one can import."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
    yield
    sys.path.pop(0)


@pytest.mark.parametrize("seed", range(3))
def test_a_cart_swings_its_pole_up(examples, seed):
    import sampling as example

    run = example.closed_loop(example.cart_pole(256), [0.0, np.pi], 150, seed)
    assert np.cos(run.q[0, 1]) == -1.0
    assert np.cos(run.q[-50:, 1]).min() > 0.97
    assert np.abs(run.q[:, 0]).max() < 2.0
    assert np.abs(run.control).max() <= 15.0


@pytest.mark.parametrize("seed", range(3))
def test_an_acrobot_swings_up(examples, seed):
    import sampling as example

    run = example.closed_loop(example.acrobot(), [0.0, 0.0], 240, seed)
    heights = example.acrobot_points(run.q)[:, -1, 1]
    assert heights[0] == -1.0
    assert heights[-25:].min() > 0.9
    assert np.abs(run.control).max() <= 10.0


@pytest.mark.slow
def test_a_quadruped_stands_up_and_hops(examples):
    import sampling_quadruped as example

    run = example.stand_up_and_hop()
    gap, hopping = example.clearance(run), (run.time > 1.0) & (run.time < 1.3)
    assert run.q[0, 2] < 0.15
    assert run.q[45:50, 2].min() > 0.24
    assert gap[hopping].max() > 0.02
    assert abs(run.q[-1, 2] - example.HOME[2]) < 0.05
    assert np.abs(run.q[-1, 3:5]).max() < 0.12


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({"horizon": 0}, ("out-of-range", "0", "horizon")),
        ({"horizon": 1.5}, ("not-a-whole-number", "1.5", "horizon")),
        ({"samples": 0}, ("out-of-range", "0", "samples")),
        ({"samples": 1}, ("out-of-range", "1", "samples")),
        ({"knots": 11}, ("out-of-range", "11", "10")),
        ({"knots": 0}, ("out-of-range", "0", "knots")),
        ({"method": "ppo"}, ("unknown-method", "'ppo'", "mppi")),
        ({"spline": "quintic"}, ("unknown-option", "'quintic'", "cubic")),
        ({"noise": None}, ("missing-argument", "noise")),
        ({"noise": [1.0, 2.0]}, ("wrong-shape",)),
        ({"noise": math.nan}, ("out-of-range",)),
        ({"noise": 0.0}, ("out-of-range",)),
        ({"narrowest": 2.0}, ("out-of-range", "2.0", "narrowest")),
        ({"temperature": 0.0}, ("out-of-range", "0.0", "temperature")),
        ({"method": "cross_entropy", "elites": 1.5}, ("out-of-range", "1.5", "elites")),
        ({"iterations": 0}, ("iterations-out-of-range", "0", "iterations")),
        ({"limits": (1.0, -1.0)}, ("empty-interval",)),
        ({"limits": [1.0, 2.0]}, ("wrong-shape", "pair")),
        ({"limits": math.nan}, ("empty-interval", "limits")),
        ({"cost": 3.0}, ("wrong-type", "3.0", "cost")),
        ({"final": "none"}, ("wrong-type", "'none'")),
    ],
)
def test_what_cannot_be_is_refused_in_words(slider, given, refusal):
    with refuses(*refusal):
        dl.control.Sampling(slider, **({"cost": effort, "horizon": 10, "noise": 1.0} | given))


def test_costs_of_wrong_shapes_are_refused(slider):
    for cost in (lambda time, q, v, u: np.ones(3), lambda time, q, v, u: q[..., 5], lambda time, q, v, u: "dear"):
        planner = dl.control.Sampling(slider, cost, 10, noise=1.0, samples=4)
        with pytest.raises(SamplingError, match="the cost"):
            planner.improve(planner.start(), start(slider))


def test_kernels_that_are_no_cost_are_refused(slider):
    planner = dl.control.Sampling(slider, rest, 10, noise=1.0, samples=4)
    with refuses("function-failed"):
        planner.improve(planner.start(), start(slider))


def test_plans_and_states_of_others_are_refused(planner, slider):
    other = dl.Simulation(dl.load("cart_pole"), time_step=0.01, max_contacts=0)
    with refuses("other-system"):
        planner.improve(planner.start(), other.start([0.0, 0.0]))
    with refuses("other-system"):
        planner.improve(replace(planner.start(), knots=np.zeros((3, 1))), start(slider))
    with refuses("not-finite"):
        planner.improve(replace(planner.start(), knots=np.full((10, 1), np.nan)), start(slider))
    with refuses("not-finite", "time"):
        planner.improve(planner.start(), replace(start(slider), time=math.nan))
    with refuses("batch-mismatch"):
        planner.improve(planner.start(), slider.start(np.zeros((4, 1))))
    with refuses("wrong-shape", "10"):
        planner.costs(start(slider), np.zeros((3, 9, 1)))


def test_samples_whose_costs_are_nan_are_left_out(slider):
    def cost(time, q, v, u):
        return np.where(u[..., 0] < 0.0, np.nan, u[..., 0])

    planner = dl.control.Sampling(slider, cost, 5, noise=1.0, samples=64, method="best", knots=1)
    plan = planner.improve(planner.start(0, [1.0]), start(slider))
    assert plan.status == dl.control.PlanStatus.IMPROVED
    assert 0 < plan.failed < 64
    assert 0.0 <= plan.control[0] < 1.0
    assert "had no cost" in plan.describe()


def test_without_any_cost_the_plan_is_kept(slider):
    planner = dl.control.Sampling(slider, lambda time, q, v, u: np.nan, 5, noise=1.0, samples=8)
    before = planner.start(0, [0.7])
    plan = planner.improve(before, start(slider))
    assert plan.status == dl.control.PlanStatus.NO_COST
    assert plan.failed == 8
    np.testing.assert_array_equal(plan.controls, before.controls)


def test_a_state_that_is_no_number_keeps_the_plan(planner, slider):
    plan = planner.improve(planner.start(0, [0.7]), slider.start([math.nan]))
    assert plan.status == dl.control.PlanStatus.NO_COST
    np.testing.assert_array_equal(plan.control, [0.7])


def test_controls_stay_within_the_limits_of_actuator_and_planner():
    sim = dl.Simulation(
        dl.load(SLIDER.format(range=' ctrlrange="-2 3"')), time_step=PERIOD, max_contacts=0, max_limits=0
    )
    planner = dl.control.Sampling(
        sim, lambda time, q, v, u: -q[..., 0], 10, limits=(-10.0, 10.0), noise=9.0, spline="cubic"
    )
    plan = planner.improve(planner.start(0, [50.0]), sim.start([0.0]))
    assert (planner.lower, planner.upper) == (-2.0, 3.0)
    assert plan.controls.max() == 3.0
    assert np.all(planner.controls(1e3 * np.random.default_rng(0).normal(size=(99, 8, 1))) >= -2.0)


def test_a_state_of_a_simulation_with_other_contacts_is_taken(planner):
    sim, _, _ = robot_case("hopper")
    bare = dl.Simulation(dl.load(HOPPER), time_step=0.02, max_contacts=0)
    planner = dl.control.Sampling(bare, lambda time, q, v, u: q[..., 0] ** 2, 5, noise=1.0, samples=8)
    assert np.isfinite(planner.improve(planner.start(), sim.start([0.1])).cost)


@pytest.mark.parametrize("costs", [[-1.7e308, 0.0, 1.0, 1.7e308], [0.0, 5e-324, 1e-323, 2e-323]])
def test_costs_at_the_ends_of_the_numbers_give_a_finite_mean(costs):
    samples = np.arange(4.0).reshape(4, 1, 1)
    found = mppi(samples, np.array(costs), SamplingDistribution(np.zeros((1, 1)), np.ones((1, 1))), 0.1)
    assert 0.0 <= found.mean.item() <= 3.0
