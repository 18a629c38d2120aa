"""Functions of users that change what they are given: controllers, policies, costs, callbacks. Nothing else changes."""

import numpy as np
import pytest

import delassus as dl
from delassus.model.generators import random_tree

CART = dl.load("cart_pole")
SIM = dl.Simulation(CART, max_contacts=0)
BATCHES = [(), (3,)]


@dl.kernel("(),(nq),(nv)->(nv)")
def push(model, time, q, v):
    """A policy."""
    return -3.0 * q - 0.5 * v


@dl.kernel("(),(nq),(nv)->(nv)")
def push_in_place(model, time, q, v):
    """The same, written over its arguments."""
    q *= -3.0
    v *= 0.5
    q -= v
    v[...] = 7.0
    return q


def start(batch):
    return SIM.start(np.tile([0.0, 0.1], (*batch, 1)), np.tile([0.3, -0.2], (*batch, 1)))


@pytest.mark.parametrize("batch", BATCHES, ids=["one", "batch"])
def test_a_controller_that_writes_to_its_arguments_changes_neither_the_run_nor_its_start(batch):
    def control(time, q, v):
        u = -3.0 * q - 0.5 * v
        q[...], v[...] = 5.0, 7.0
        return u

    state = start(batch)
    q, v = state.q.copy(), state.v.copy()
    wanted = SIM.run(start(batch), control=lambda time, q, v: -3.0 * q - 0.5 * v, steps=4)
    found = SIM.run(state, control=control, steps=4)
    np.testing.assert_array_equal(found.q, wanted.q)
    np.testing.assert_array_equal((state.q, state.v), (q, v))


@pytest.mark.parametrize("batch", BATCHES, ids=["one", "batch"])
def test_a_policy_that_writes_to_its_arguments_changes_nothing_else(batch):
    wanted = SIM.run(start(batch), control=push, steps=4)
    found = SIM.run(start(batch), control=push_in_place, steps=4)
    np.testing.assert_allclose(found.q, wanted.q, rtol=1e-12)


@pytest.mark.parametrize("batch", BATCHES, ids=["one", "batch"])
def test_a_callback_that_writes_to_its_state_changes_nothing(batch):
    def spoil(k, state):
        for x in (state.q, state.v, state.impulse, state.contact, state.residual, state.status):
            x[...] = 1

    state = start(batch)
    found = SIM.run(state, steps=4, progress=spoil)
    np.testing.assert_array_equal(found.q, SIM.run(start(batch), steps=4).q)
    assert state.q[..., 0].max() == 0.0 and not found.status.any()


def test_costs_that_write_to_their_arguments_cost_the_same():
    def cost(time, q, v, u):
        return q[..., 1] ** 2 + 0.1 * u[..., 0] ** 2

    def final(time, q, v):
        return time + v[..., 0] ** 2

    def spoil(function):
        def changed(*arguments):
            found = function(*arguments)
            for x in arguments:
                if isinstance(x, np.ndarray):
                    x[...] = 9.0
            return found

        return changed

    state, controls = start(()), np.random.default_rng(0).normal(size=(5, 6, 2))
    plain = dl.control.Sampling(SIM, cost, 6, final=final, noise=1.0).costs(state, controls)
    given = controls.copy()
    spoilt = dl.control.Sampling(SIM, spoil(cost), 6, final=spoil(final), noise=1.0).costs(state, given)
    np.testing.assert_array_equal(spoilt, plain)
    np.testing.assert_array_equal(given, controls)


# --- kernels in kernels -----------------------------------------------------------------------------------------------


@dl.kernel("(3)->(3)")
def doubled_in_place(model, x):
    """Twice x, written over x."""
    x *= 2.0
    return x


def test_a_kernel_inside_another_leaves_the_callers_arrays_as_they_are():
    @dl.kernel("(3)->(3)")
    def outer(model, x):
        return doubled_in_place(model, x) + x

    x = np.array([1.0, -2.0, 3.0])
    for call in (outer, outer.python):
        np.testing.assert_array_equal(call(None, x), 3.0 * np.array([1.0, -2.0, 3.0]))


def test_the_plain_function_of_a_kernel_leaves_numbers_as_they_are():
    x = np.array([1.0, -2.0, 3.0])
    doubled_in_place.python(None, x)
    np.testing.assert_array_equal(x, [1.0, -2.0, 3.0])


def test_forces_of_a_motion_that_write_to_their_arguments_change_nothing_else():
    model = random_tree(2, seed=3)

    def tau(time, q, v):
        found = -2.0 * q - v
        q[...], v[...] = 1.0, 2.0
        return found

    q, times = np.full(model.nq, 0.2), np.linspace(0.0, 0.05, 3)
    found = dl.simulate_motion(model, q, tau=tau, times=times, method="rk4", step=0.01)
    wanted = dl.simulate_motion(model, q, tau=lambda time, q, v: -2.0 * q - v, times=times, method="rk4", step=0.01)
    np.testing.assert_array_equal(found.q, wanted.q)
