"""Springs and dampers in joints of every kind: their forces are what their energy and their power say."""

from dataclasses import replace

import numpy as np
import pytest

import delassus as dl
from delassus.model.joints import (
    Cylindrical,
    Free,
    Helical,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Translation,
    Universal,
)
from delassus.model.model import Joint, Mimic, Model

BALL = dl.Inertia.of(1.0, rotational=np.eye(3))
KINDS = [
    Revolute(), Prismatic(), Helical(pitch=0.1), Universal(), Cylindrical(), Translation(), Planar(), Spherical(),
    Free(),
]  # fmt: skip


def sprung(kind, rest: bool = True) -> Model:
    joint = Joint("j", kind, inertia=BALL, stiffness=(3.0,) * kind.nv, damping=(0.5,) * kind.nv)
    at = Model("m", (joint,)).random_configuration(np.random.default_rng(1))
    return Model("m", (replace(joint, rest=tuple(at.tolist()) if rest else ()),))


def follower() -> Model:
    """A joint with a spring that follows another one."""
    spring = {"stiffness": (3.0,), "damping": (0.5,), "rest": (0.4,)}
    return Model(
        "m", (Joint("a", Revolute(), inertia=BALL), Joint("b", Revolute(), 0, mimic=Mimic(0, -2.0, 0.3), **spring))
    )


MODELS = [*(sprung(kind) for kind in KINDS), sprung(Free(), rest=False), sprung(Planar(), rest=False), follower()]
every_model = pytest.mark.parametrize(
    "model", MODELS, ids=lambda m: f"{m.joints[-1].kind.label}-{bool(m.joints[-1].rest)}"
)


@every_model
def test_springs_pull_down_the_slope_of_their_energy(model):
    q, h = model.random_configuration(np.random.default_rng(0)), 1e-6
    steps = h * np.eye(model.nv)
    energy = lambda step: dl.spring_energy.python(model, dl.integrate.python(model, q, step))  # noqa: E731
    slope = [(energy(step) - energy(-step)) / (2.0 * h) for step in steps]
    np.testing.assert_allclose(dl.passive_forces.python(model, q, np.zeros(model.nv)), -np.array(slope), atol=1e-7)


@every_model
def test_dampers_only_take_energy(model):
    rng = np.random.default_rng(0)
    q, v = model.random_configuration(rng), rng.normal(size=model.nv)
    still, moving = (dl.passive_forces.python(model, q, x) for x in (np.zeros(model.nv), v))
    ratio = model.joints[-1].mimic.ratio if model.joints[-1].mimic else 1.0
    np.testing.assert_allclose(moving - still, -0.5 * ratio**2 * v, atol=1e-12)


@every_model
def test_compiled_forces_are_those_of_numpy(model):
    rng = np.random.default_rng(0)
    q, v = model.random_configuration(rng), rng.normal(size=model.nv)
    np.testing.assert_allclose(dl.passive_forces(model, q, v), dl.passive_forces.python(model, q, v), rtol=1e-13)


def test_a_spring_at_rest_has_neither_force_nor_energy():
    model = sprung(Free())
    rest = np.array(model.joints[0].rest)
    np.testing.assert_allclose(dl.passive_forces(model, rest, np.zeros(6)), 0.0, atol=1e-15)
    assert dl.spring_energy(model, rest) == pytest.approx(0.0, abs=1e-30)


def test_a_robot_without_springs_has_no_passive_forces():
    model = Model("m", (Joint("j", Revolute(), inertia=BALL),))
    np.testing.assert_array_equal(dl.passive_forces(model, [0.3], [1.0]), [0.0])
