"""Functions for users, called while a kernel is traced: they become a part of it, or say what to call instead."""

import numpy as np
import pytest

import delassus as dl
import delassus.numpy as dnp
from delassus.compiler.differentiation.recorded_function import RecordedFunction
from delassus.model.generators import random_tree
from refusals import refuses

TREE = random_tree(3, seed=5)
POINT = dl.Point(TREE.frame_list[-1].name, position=(0.4, 0.1, 0.3))
HELD, FREE = dl.Mechanism(TREE, POINT), dl.Mechanism(TREE)
Q, V, TAU = 0.3 * np.random.default_rng(0).normal(size=(3, TREE.nv))


def inside(function, *arrays, shape=(3,)):
    """What a function of one state gives when it is traced, and then evaluated without compiling."""
    return RecordedFunction.of("inside", function, {f"x{k}": x.shape for k, x in enumerate(arrays)}, shape)(*arrays)[0]


@pytest.mark.parametrize("mechanism", [HELD, FREE], ids=["held", "free"])
def test_an_assembly_may_be_part_of_a_kernel(mechanism):
    def parts(found):
        return dnp.concatenate([found.q, dnp.stack([found.status, found.iterations])])

    found = inside(lambda q: parts(dl.assemble(mechanism, q)), Q, shape=(5,))
    np.testing.assert_allclose(found, parts(dl.assemble(mechanism, Q)), rtol=1e-9)


@pytest.mark.parametrize("method", ["mass", "svd"])
@pytest.mark.parametrize("mechanism", [HELD, FREE], ids=["held", "free"])
def test_a_projection_may_be_part_of_a_kernel(mechanism, method):
    np.testing.assert_allclose(
        inside(lambda q, v: dl.project(mechanism, q, v, method=method).v, Q, V),
        dl.project(mechanism, Q, V, method=method).v,
        atol=1e-12,
    )


@pytest.mark.parametrize("mechanism", [HELD, FREE], ids=["held", "free"])
def test_an_impact_may_be_part_of_a_kernel(mechanism):
    np.testing.assert_allclose(
        inside(lambda q, v: dl.impact(mechanism, q, v).v, Q, V), dl.impact(mechanism, Q, V).v, atol=1e-12
    )


def test_constrained_dynamics_may_be_part_of_a_kernel():
    found = inside(lambda q, v, tau: dl.constrained_dynamics(HELD, q, v, tau).acceleration, Q, V, TAU)
    np.testing.assert_allclose(found, dl.constrained_dynamics(HELD, Q, V, TAU).acceleration, rtol=1e-9)


def test_constrained_dynamics_inside_a_kernel_has_its_forces_by_name():
    found = inside(lambda q, v, tau: dl.constrained_dynamics(HELD, q, v, tau).forces[POINT.label], Q, V, TAU)
    np.testing.assert_allclose(found, dl.kkt(HELD, Q, V, TAU)[1], rtol=1e-8)


@pytest.mark.parametrize(
    ("call", "refusal"),
    [
        (lambda q, v, tau: dl.kkt(HELD, q, v, tau)[0], ("not-traceable", "constrained_dynamics", "prox_ltl", "kkt")),
    ],
    ids=["kkt"],
)
def test_what_is_plain_numpy_says_what_to_call_instead(call, refusal):
    with refuses(*refusal):
        inside(call, Q, V, TAU)


# Plain numbers in the middle of a trace.


def test_the_plain_function_of_a_kernel_gives_numbers_in_a_trace():
    def scaled(q):
        M = dl.crba.python(TREE, np.zeros(3))
        assert type(M) is np.ndarray
        return dnp.diagonal(M) * q

    np.testing.assert_array_equal(inside(scaled, Q), np.diagonal(dl.crba.python(TREE, np.zeros(3))) * Q)


def test_the_kernels_that_a_plain_function_calls_run_as_plain_functions():
    seen = []

    @dl.kernel("(3)->(3)")
    def inner(model, x):
        seen.append(type(x))
        return 2.0 * x

    @dl.kernel("(3)->(3)")
    def outer(model, x):
        return inner(model, x) + 1.0

    np.testing.assert_array_equal(outer.python(None, Q), 2.0 * Q + 1.0)
    inside(lambda q: q + outer.python(None, Q), Q)
    assert seen == [np.ndarray, np.ndarray]


def test_the_plain_function_of_a_kernel_says_that_it_takes_numbers():
    with pytest.raises(TypeError, match=r"aba.python computes with numbers, and q is traced: .* call aba itself"):
        inside(lambda q, v, tau: dl.aba.python(TREE, q, v, tau), Q, V, TAU)
