"""A mechanism is a model with constraints: every kernel of a model takes it."""

import typing

import numpy as np
import pytest

import delassus as dl
from delassus.compiler.host.kernel import Kernel
from delassus.model.generators import random_tree
from refusals import refuses

TREE = random_tree(3, seed=5)
FRAME = TREE.frame_list[-1].name
HELD = dl.Mechanism(TREE, dl.Point(FRAME))
PUBLIC = [name for room in dl.NAMESPACES for name in getattr(dl, room).__all__]
KERNELS = {name: k for name in PUBLIC if isinstance(k := getattr(dl, name), Kernel)}
KINDS = {name: next(iter(typing.get_type_hints(k.function).values())) for name, k in KERNELS.items()}
OF_MODELS = {name: k for name, k in KERNELS.items() if KINDS[name] is dl.Model}


def states(kernel):
    """One state of random numbers."""
    rng = np.random.default_rng(0)
    return [rng.normal(size=operand.shape) for operand in kernel.operands(TREE)[0]]


def options(kernel):
    return {"frame": FRAME} if "frame" in kernel.options else {}


def test_every_kernel_says_what_it_takes():
    assert set(KINDS.values()) >= {dl.Model, dl.Mechanism}
    assert all(isinstance(kind, type) for kind in KINDS.values())


@pytest.mark.parametrize("kernel", OF_MODELS.values(), ids=OF_MODELS)
def test_a_kernel_of_a_model_takes_a_mechanism(kernel):
    found, expected = (kernel.python(of, *states(kernel), **options(kernel)) for of in (HELD, TREE))
    for one, other in zip(*((x if isinstance(x, tuple) else (x,)) for x in (found, expected)), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kernel", OF_MODELS.values(), ids=OF_MODELS)
def test_a_mechanism_and_its_model_make_one_program(kernel):
    assert kernel.program(HELD, **options(kernel)).digest == kernel.program(TREE, **options(kernel)).digest


def test_a_mechanism_and_its_model_share_one_version():
    assert dl.integrate.specialize(HELD) is dl.integrate.specialize(TREE)


def test_batches_of_a_mechanism_are_those_of_its_model():
    q, v = np.random.default_rng(0).normal(size=(2, 10, TREE.nv))
    np.testing.assert_array_equal(dl.kinetic_energy(HELD, q, v), dl.kinetic_energy(TREE, q, v))
    np.testing.assert_array_equal(dl.frame_jacobian(HELD, q, frame=FRAME), dl.frame_jacobian(TREE, q, frame=FRAME))


def test_a_mechanism_that_was_met_before_is_found_by_its_identity(monkeypatch):
    q = np.zeros(TREE.nq)
    dl.potential_energy(HELD, q)
    expected = dl.potential_energy(HELD, q)
    monkeypatch.setattr(Kernel, "_find", None)  # the way around identities, which would fail now
    assert dl.potential_energy(HELD, q) == expected


def test_a_kernel_of_a_mechanism_may_use_kernels_of_its_model():
    @dl.kernel("(nq),(nv)->()")
    def energy(mechanism, q, v):
        return dl.kinetic_energy(mechanism, q, v) + dl.potential_energy(mechanism, q)

    q, v = np.random.default_rng(0).normal(size=(2, TREE.nv))
    expected = dl.kinetic_energy.python(TREE, q, v) + dl.potential_energy.python(TREE, q)
    np.testing.assert_allclose(energy(HELD, q, v), expected, rtol=1e-12)


def test_arrays_are_bound_for_a_mechanism():
    q, v = np.random.default_rng(0).normal(size=(2, TREE.nv))
    energy = np.zeros(())
    dl.kinetic_energy.bind(HELD, q, v, energy)()
    assert energy == dl.kinetic_energy(TREE, q, v)


def test_a_model_is_no_mechanism():
    with refuses("bad-signature"):
        dl.caba(TREE, *np.zeros((3, TREE.nv)))
