"""Parameters that are no body's, told apart per item of a batch."""

import numpy as np
import pytest

import delassus as dl
from delassus.model.joints import Free
from delassus.model.parts import Joint
from refusals import refuses

BODY = dl.Model("body", (Joint("free", Free(), inertia=dl.Inertia.of(2.0, (0.1, 0.2, 0.3), np.eye(3))),))
MODEL = BODY.parametric("inertia:free", "placement:free", "armature:free")


def spoilt(index, value):
    p = MODEL.parameters()
    p[index] = value
    return dl.check_parameters(MODEL, p)


@pytest.mark.parametrize("seed", range(20))
def test_masses_that_are_points_make_a_physical_body(seed):
    """The parameters of a few point masses are sums of positive ones, by definition; few points are at the border."""
    rng = np.random.default_rng(seed)
    r, m = rng.normal(size=(seed % 5 + 1, 3)), rng.uniform(0.1, 2.0, seed % 5 + 1)
    I = sum(mass * (x @ x * np.eye(3) - np.outer(x, x)) for x, mass in zip(r, m, strict=True))
    ten = np.array([m.sum(), *(m @ r), I[0, 0], I[0, 1], I[1, 1], I[0, 2], I[1, 2], I[2, 2]])
    assert dl.check_parameters(MODEL, MODEL.pack({"inertia:free": ten})).physical


@pytest.mark.parametrize(
    ("index", "value", "status"),
    [
        (0, -1.0, dl.ParameterStatus.NEGATIVE_MASS),
        (0, 0.0, dl.ParameterStatus.PSEUDO_INERTIA),
        (4, 100.0, dl.ParameterStatus.PSEUDO_INERTIA),
        (5, 10.0, dl.ParameterStatus.PSEUDO_INERTIA),
        (16, 0.5, dl.ParameterStatus.NO_ROTATION),
        (17, -1e-3, dl.ParameterStatus.NEGATIVE_ARMATURE),
        (11, np.nan, dl.ParameterStatus.NOT_FINITE),
    ],
)
def test_what_is_not_physical_has_a_status(index, value, status):
    assert spoilt(index, value).status == status


def test_reasons_name_the_part():
    assert spoilt(0, -1.0).reasons() == ["inertia:free: The mass is negative."]


def test_every_item_of_a_batch_has_its_own_status():
    p = np.tile(MODEL.parameters(), (2, 3, 1))
    p[1, 2, 0] = -1.0
    checked = dl.check_parameters(MODEL, p)
    np.testing.assert_array_equal(checked.physical, [[True, True, True], [True, True, False]])
    assert checked.reasons(0, 0) == []


def test_a_body_without_mass_is_physical():
    model = dl.Model("nothing", (Joint("free", Free()),)).parametric("inertia")
    assert dl.check_parameters(model, model.parameters()).physical


def test_parameters_of_the_wrong_size_cannot_be_checked():
    with refuses("wrong-shape", "(3,)", "23"):
        dl.check_parameters(MODEL, np.zeros(3))


def test_a_negative_mass_alone_is_not_physical():
    model = BODY.parametric("mass")
    np.testing.assert_array_equal(dl.check_parameters(model, [[1.0], [-1.0]]).physical, [True, False])
