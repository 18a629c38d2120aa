"""Springs and dampers in joints of every kind: their forces are what their energy and their power say."""

from dataclasses import replace

import numpy as np
import pytest

import delassus as dl
from delassus.model.model import Model
from delassus.model.parts import Joint, Mimic
from delassus.model.transmission import Tendon
from refusals import refuses

BALL = dl.Inertia.of(1.0, rotational=np.eye(3))
KINDS = [
    dl.Revolute(), dl.Prismatic(), dl.Helical(pitch=0.1), dl.Universal(), dl.Cylindrical(), dl.Translation(),
    dl.Planar(), dl.Spherical(), dl.Free(),
]  # fmt: skip


def sprung(kind, rest: bool = True) -> Model:
    joint = Joint("j", kind, inertia=BALL, stiffness=(3.0,) * kind.nv, damping=(0.5,) * kind.nv)
    at = Model("m", (joint,)).random_configuration(np.random.default_rng(1))
    return Model("m", (replace(joint, rest=tuple(at.tolist()) if rest else ()),))


def follower() -> Model:
    """A joint with a spring that follows another one."""
    spring = {"stiffness": (3.0,), "damping": (0.5,), "rest": (0.4,)}
    return Model(
        "m",
        (Joint("a", dl.Revolute(), inertia=BALL), Joint("b", dl.Revolute(), 0, mimic=Mimic(0, -2.0, 0.3), **spring)),
    )


def tied(*rest: float) -> Model:
    """Two joints and a follower that a tendon runs over."""
    hinges = (Joint("a", dl.Revolute(), inertia=BALL), Joint("b", dl.Prismatic(), 0, inertia=BALL))
    joints = (*hinges, Joint("c", dl.Revolute(), 1, inertia=BALL, mimic=Mimic(0, -2.0, 0.3)))
    terms = (("a", 0.7), ("b", -1.2), ("c", 0.4))
    return Model("m", joints, tendons=(Tendon("t", terms, stiffness=3.0, damping=0.5, rest=rest),))


MODELS = [*(sprung(kind) for kind in KINDS), sprung(dl.Free(), rest=False), sprung(dl.Planar(), rest=False), follower()]
TIED = [tied(-0.4, -0.4), tied(-9.0, -8.0), tied(-9.0, 9.0)]
every_model = pytest.mark.parametrize(
    "model", MODELS, ids=lambda m: f"{m.joints[-1].kind.label}-{bool(m.joints[-1].rest)}"
)


every_spring = pytest.mark.parametrize("model", [*MODELS, *TIED], ids=range(len(MODELS) + len(TIED)))


@every_spring
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


@every_spring
def test_compiled_forces_are_those_of_numpy(model):
    rng = np.random.default_rng(0)
    q, v = model.random_configuration(rng), rng.normal(size=model.nv)
    np.testing.assert_allclose(dl.passive_forces(model, q, v), dl.passive_forces.python(model, q, v), rtol=1e-13)


@every_spring
def test_derivatives_are_those_of_differences(model):
    rng, h = np.random.default_rng(0), 1e-6
    q, v = model.random_configuration(rng), rng.normal(size=model.nv)
    force = lambda way, faster: dl.passive_forces.python(model, dl.integrate.python(model, q, way), v + faster)  # noqa: E731
    none, steps = np.zeros(model.nv), h * np.eye(model.nv)
    by_q = np.transpose([(force(e, none) - force(-e, none)) / (2.0 * h) for e in steps])
    by_v = np.transpose([(force(none, e) - force(none, -e)) / (2.0 * h) for e in steps])
    found = dl.derivatives.passive_derivatives(model, q, v)
    np.testing.assert_allclose(found[0], by_q, atol=1e-7)
    np.testing.assert_allclose(found[1], by_v, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.label)
def test_at_rest_the_derivative_is_the_stiffness(kind):
    model = sprung(kind)
    by_q, by_v = dl.derivatives.passive_derivatives(model, np.array(model.joints[0].rest), np.zeros(model.nv))
    np.testing.assert_allclose(by_q, -3.0 * np.eye(model.nv), atol=1e-12)
    np.testing.assert_allclose(by_v, -0.5 * np.eye(model.nv), atol=1e-12)


@pytest.mark.parametrize(
    ("tendon", "refusal"),
    [
        (Tendon("t", (("a", 1.0),), stiffness=3.0), ("not-supported", "'t'")),
        (Tendon("t", (("ball", 1.0),), damping=3.0), ("not-supported", "'t'", "'ball'")),
        (Tendon("t", (("none", 1.0),), damping=3.0), ("unknown-joint", "'none'")),
    ],
)
def test_tendons_that_mean_nothing_are_refused_in_a_sentence(tendon, refusal):
    model = Model("m", (Joint("a", dl.Revolute(), inertia=BALL), Joint("ball", dl.Spherical(), 0, inertia=BALL)))
    model = replace(model, tendons=(tendon,))
    with refuses(*refusal):
        dl.passive_forces.python(model, model.neutral(), np.zeros(4))


def test_a_spring_at_rest_has_neither_force_nor_energy():
    model = sprung(dl.Free())
    rest = np.array(model.joints[0].rest)
    np.testing.assert_allclose(dl.passive_forces(model, rest, np.zeros(6)), 0.0, atol=1e-15)
    assert dl.spring_energy(model, rest) == pytest.approx(0.0, abs=1e-30)


def test_a_robot_without_springs_has_no_passive_forces():
    model = Model("m", (Joint("j", dl.Revolute(), inertia=BALL),))
    np.testing.assert_array_equal(dl.passive_forces(model, [0.3], [1.0]), [0.0])
