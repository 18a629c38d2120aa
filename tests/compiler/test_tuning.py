"""Numbers to be tuned: they are what they are on the mechanism, and none of them compiles anything again."""

from dataclasses import replace

import numpy as np
import pytest

import delassus as dl
from delassus.compiler.backends.interpreter import evaluate
from differences import jacobian
from mechanisms import FOUR_BAR, state
from refusals import refuses

ROBOT = dl.load("double_pendulum")
HELD = dl.Mechanism(
    ROBOT, [dl.Point("tip", rows="xz", position=(0.3, 0.0, -0.2)), dl.Point("tip", rows="y", name="free")]
)
Q, V, TAU = np.array([[0.3, 0.4], [1.0, -2.0], [0.5, 0.1]])
KP, KD = np.array([100.0, 30.0, 7.0]), np.array([20.0, 3.0, 0.5])
PULLED = replace(
    HELD,
    constraints=(
        replace(HELD.constraints[0], position_gain=(100.0, 30.0), velocity_gain=(20.0, 3.0)),
        replace(HELD.constraints[1], velocity_gain=0.5),
    ),
)
METHODS = (dl.caba, dl.prox_pv, dl.prox_ltl, dl.prox_ltls, dl.constrained_dynamics)
TUNED = {
    "tolerance": (dl.constrained_dynamics, (Q, V, TAU), (1e-6, 1e-7)),
    "rank": (dl.constrained_dynamics, (Q, V, TAU), (1e-9, 1e-10)),
    "proximal": (dl.prox_ltl, (Q, V, TAU), (1e-5, 1e-6)),
    "velocity_gain": (dl.prox_ltl, (Q, V, TAU), (10.0, 11.0)),
    "position_gain": (dl.prox_ltl, (Q, V, TAU), (100.0, KP)),
    "restitution": (dl.impact, (Q, V), (0.5, {"free": 0.51})),
}


@pytest.mark.parametrize("name", TUNED)
def test_other_numbers_compile_nothing_again(name):
    kernel, arrays, values = TUNED[name]
    kernel(HELD, *arrays, **{name: values[0]})
    before = set(kernel._versions.built)
    kernel(HELD, *arrays, **{name: values[1]})
    assert set(kernel._versions.built) == before


@pytest.mark.parametrize("method", METHODS, ids=lambda kernel: kernel.name)
def test_gains_at_run_time_are_those_of_the_constraints(method):
    ours = method.python(HELD, Q, V, TAU, position_gain=KP, velocity_gain=KD)
    for found, expected in zip(ours[:2], dl.kkt(PULLED, Q, V, TAU), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


def test_compiled_gains_and_weights_have_the_bits_of_the_interpreter():
    names, arrays = ("proximal", "position_gain", "velocity_gain"), (np.full(3, 1e-4), KP, KD)
    found = dl.prox_pv(HELD, Q, V, TAU, **dict(zip(names, arrays, strict=True)))
    for ours, expected in zip(found, evaluate(dl.prox_pv.program(HELD, inputs=names), Q, V, TAU, *arrays), strict=True):
        np.testing.assert_array_equal(ours, expected)


def test_a_gain_on_positions_needs_a_reference_to_pull_to():
    """Rows without one have no error of position."""
    alone = dl.Mechanism(ROBOT, dl.Point("tip", rows="x"))
    expected = dl.prox_ltl.python(alone, Q, V, TAU)
    for found, other in zip(dl.prox_ltl.python(alone, Q, V, TAU, position_gain=50.0), expected, strict=True):
        np.testing.assert_array_equal(found, other)


@pytest.mark.parametrize("name", ["position_gain", "velocity_gain"])
def test_a_negative_gain_is_refused(name):
    with refuses("out-of-range", name, "-1"):
        dl.caba(HELD, Q, V, TAU, **{name: -1.0})


@pytest.mark.parametrize("name", ["mask", "velocity_gain", "proximal"])
def test_what_is_no_number_is_refused(name):
    with refuses("not-a-number", name, "'much'"):
        dl.caba(HELD, Q, V, TAU, **{name: "much"})


def test_derivatives_know_gains_at_run_time():
    given = {"position_gain": KP, "velocity_gain": KD}

    expected = jacobian(lambda x: dl.prox_ltl.python(HELD, Q, V + x, TAU, **given)[0], 2)
    found = dl.constrained_derivatives.python(HELD, Q, V, TAU, **given)[1]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(found).max())


@pytest.mark.parametrize("method", [dl.caba, dl.prox_pv, dl.prox_ltls], ids=lambda kernel: kernel.name)
def test_weights_at_run_time_do_what_compiled_ones_do(method):
    q, v, tau = state(FOUR_BAR.model)
    epsilon = np.geomspace(1e-4, 1e-3, FOUR_BAR.m)
    compiled = evaluate(method.program(FOUR_BAR, proximal=epsilon), q, v, tau)
    for found, expected in zip(method.python(FOUR_BAR, q, v, tau, proximal=epsilon), compiled, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_each_state_of_a_batch_has_its_own_weights():
    epsilon = np.array([[1e-2], [1e-4]]) * np.ones(3)
    both = dl.prox_ltl(HELD, Q, V, TAU, proximal=epsilon, iterations=1)[0]
    for k in range(2):
        np.testing.assert_array_equal(both[k], dl.prox_ltl(HELD, Q, V, TAU, proximal=epsilon[k], iterations=1)[0])
    assert not np.array_equal(both[0], both[1])


@pytest.mark.parametrize("tolerance", [0.0, 1.0, "small", np.array([1e-3, 2.0]), None])
def test_a_tolerance_is_between_0_and_1(tolerance):
    if tolerance is None:
        dl.constrained_dynamics.python(HELD, Q, V, TAU, tolerance=None)
        return
    with refuses("not-a-number" if isinstance(tolerance, str) else "tolerance-out-of-range"):
        dl.constrained_dynamics(HELD, Q, V, TAU, tolerance=tolerance)


def test_a_coarse_tolerance_needs_fewer_iterations():
    coarse, fine = (dl.constrained_dynamics(HELD, Q, V, TAU, proximal=1e-2, tolerance=x) for x in (1e-2, 1e-9))
    assert coarse.iterations < fine.iterations
    assert fine.is_optimal(1e-8)


def test_constrained_dynamics_can_be_specialized_and_bound():
    found = dl.constrained_dynamics(HELD, Q, V, TAU)
    ufunc = dl.constrained_dynamics.specialize(HELD)
    outputs = [np.zeros(np.shape(x)) for x in found]
    dl.constrained_dynamics.bind(HELD, Q, V, TAU, *outputs)()
    for ours, theirs, bound in zip(found, ufunc(Q, V, TAU), outputs, strict=True):
        np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(ours, bound)
