"""What must not matter to bodies on the ground: units, mirrors, the order of shapes; and what logs say, recomputed."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import delassus as dl
from bodies import BRICK, G, H, body
from delassus.model import Free, Inertia, Joint, Model, Placement
from delassus.model.parts import Geometry

EGG = body("ellipsoid", (0.1, 0.15, 0.05), 1.0, (0.005, 0.0025, 0.0065))


def thrown(seed: int, n: int = 6):
    rng = np.random.default_rng(seed)
    q = np.concatenate([rng.normal(size=(n, 2)), rng.uniform(0.15, 0.6, (n, 1)), rng.normal(size=(n, 4))], 1)
    q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=-1, keepdims=True)
    return q, rng.normal(size=(n, 6)) * np.array([2, 2, 2, 6, 6, 6.0])


@pytest.mark.parametrize("length", [1e-3, 1e3])
def test_units_of_length_change_nothing(length):
    """And those of mass: shapes, gravity and inertias in other units move by the same multiple."""
    mass, (q, v) = 50.0, thrown(1)
    moments = tuple(np.diagonal(np.asarray(BRICK.joints[0].inertia.rotational)) * mass * length**2)
    size = tuple(length * x for x in BRICK.geometries[0].size)
    other = replace(body("box", size, BRICK.mass * mass, moments), gravity=(0.0, 0.0, -G * length))
    ground = dl.Ground(friction=0.5, restitution=0.3)
    log = dl.Simulation(BRICK, ground, H).run(q, v, steps=150)
    scale_q, scale_v = np.array([length] * 3 + [1.0] * 4), np.array([length] * 3 + [1.0] * 3)
    scaled = dl.Simulation(other, ground, H).run(q * scale_q, v * scale_v, steps=150)
    np.testing.assert_allclose(scaled.q / scale_q, log.q, atol=1e-9)
    np.testing.assert_allclose(scaled.impulse / (mass * length), log.impulse, atol=1e-8)


@pytest.mark.parametrize("model", [BRICK, EGG])
def test_a_mirror_image_moves_as_the_image_of_the_motion(model):
    q, v = thrown(2)
    mirror_q, mirror_v = np.array([-1, 1, 1, 1, -1, -1, 1.0]), np.array([-1, 1, 1, 1, -1, -1.0])
    log, image = (
        dl.Simulation(model, dl.Ground(friction=0.5, restitution=0.3, normal=(x, 0.1, 1.0)), H).run(*start, steps=250)
        for x, start in ((0.2, (q, v)), (-0.2, (q * mirror_q, v * mirror_v)))
    )
    np.testing.assert_allclose(image.q * mirror_q, log.q, atol=1e-9)


def test_the_order_of_shapes_does_not_matter():
    shapes = [
        Geometry(name, 0, Placement.of(p=p), kind, size, "collision")
        for name, kind, size, p in (
            ("a", "sphere", (0.05,), (0.1, 0, 0)),
            ("b", "box", (0.1, 0.05, 0.08), (-0.1, 0.05, 0)),
            ("c", "cylinder", (0.03, 0.1), (0, -0.1, 0.02)),
            ("d", "ellipsoid", (0.03, 0.05, 0.06), (0, 0, -0.05)),
        )
    ]
    base = Joint("base", Free(), inertia=Inertia.of(2.0, (0.01, 0.02, 0), rotational=np.diag((0.01, 0.012, 0.015))))
    q, v = thrown(3)
    log, other = (
        dl.Simulation(Model("body", (base,), geometries=tuple(some)), dl.Ground(), H, max_contacts=5).run(
            q, v, steps=300
        )
        for some in (shapes, shapes[::-1])
    )
    np.testing.assert_allclose(other.q, log.q, atol=1e-9)


@pytest.mark.parametrize("model", [BRICK, EGG])
def test_impulses_of_a_log_are_in_their_cones_and_change_the_momentum(model):
    q, v = thrown(4)
    log = dl.Simulation(model, dl.Ground(friction=0.6), H).run(q, v, steps=500)
    impulse = log.contact_impulse
    assert np.all(impulse[..., 2] >= 0.0)
    assert np.all(np.linalg.norm(impulse[..., :2], axis=-1) <= 0.6 * impulse[..., 2] + 1e-14)
    turns = Rotation.from_quat(log.q[..., 3:].reshape(-1, 4))
    momentum = model.mass * turns.apply(np.array(log.v[..., :3]).reshape(-1, 3)).reshape(*log.q.shape[:-1], 3)
    change = np.diff(momentum, axis=0)
    np.testing.assert_allclose(change[..., 2] + model.mass * G * H, impulse[1:, ..., 2].sum(-1), atol=1e-12)
    slid = np.linalg.norm(impulse[1:, ..., :2].sum(-2), axis=-1)
    np.testing.assert_allclose(np.linalg.norm(change[..., :2], axis=-1), slid, atol=1e-12)
