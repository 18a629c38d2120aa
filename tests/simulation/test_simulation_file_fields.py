"""Height fields of MJCF files are the ground."""

import mujoco
import numpy as np
import pytest

import delassus as dl
from delassus.errors import DelassusWarning
from delassus.mujoco import from_mujoco
from refusals import refuses

BALL = '<body pos="0 0 2"><freejoint/><geom name="ball" size=".06" mass="1"/></body>'
FIELD = '<geom name="hills" type="hfield" hfield="f" pos=".2 -.1 .05" friction=".3"/>'
RAFT = '<body><freejoint/><geom size=".1"/><geom name="deck" type="hfield" hfield="f"/></body>'
FLOOR = '<geom type="plane" size="0 0 1" pos="0 0 .1"/>'


def world(*parts, seed=0):
    """MuJoCo's model with hills of 7 × 9 points, 0.1 m apart along x and 0.15 m along y, at most 0.3 m high."""
    asset = '<asset><hfield name="f" nrow="9" ncol="7" size=".3 .6 .3 1"/></asset>'
    m = mujoco.MjModel.from_xml_string(f"<mujoco>{asset}<worldbody>{''.join(parts)}{BALL}</worldbody></mujoco>")
    m.hfield_data[:] = np.random.default_rng(seed).uniform(size=63)
    return m


def depths(m, sim, centers):
    """MuJoCo's distance to the ball at places (n, 3), and the one here."""
    data, there = mujoco.MjData(m), []
    for center in centers:
        data.qpos[:3] = center
        mujoco.mj_forward(m, data)
        there.append(data.contact.dist.min() if data.ncon else np.nan)
    q = np.concatenate([centers, np.tile([0.0, 0.0, 0.0, 1.0], (len(centers), 1))], 1)
    return np.array(there), sim.contacts(q).gap.min(-1)


def test_distances_from_a_field_are_those_of_mujoco():
    m = world(FIELD)
    sim = dl.Simulation(from_mujoco(m))
    centers = np.random.default_rng(1).uniform([0.0, -0.6, 0.15], [0.4, 0.4, 0.42], (300, 3))
    there, here = depths(m, sim, centers)
    shallow = (here > -0.02) & (here < -1e-6)
    assert shallow.sum() > 15
    np.testing.assert_allclose(here[shallow], there[shallow], atol=1e-5)


def test_a_field_and_a_floor_are_one_ground():
    m = world(FIELD, FLOOR)
    sim = dl.Simulation(from_mujoco(m))
    assert not sim.scene.collisions and not sim.scene.pair_classes
    centers = np.random.default_rng(2).uniform([-1.0, -1.5, 0.1], [1.4, 1.3, 0.16], (200, 3))
    beside = (np.abs(centers[:, 0] - 0.2) > 0.5) | (np.abs(centers[:, 1] + 0.1) > 0.85)
    there, here = depths(m, sim, centers[beside])
    below = here < -1e-6
    assert below.sum() > 50
    np.testing.assert_allclose(here[below], there[below], atol=1e-9)


def test_the_field_decides_its_friction():
    rough = FIELD.replace('friction=".3"', 'friction=".3" priority="1"')
    assert dl.Simulation(from_mujoco(world(rough, FLOOR))).scene.own_friction[0][0] == 0.3


def test_a_field_below_the_floor_is_a_plane():
    ground = dl.simulation.ground_of(from_mujoco(world(FIELD, FLOOR.replace(".1", ".4"))))
    assert ground.heights is None and ground.height == 0.4


def test_a_ground_overrides_the_field():
    assert dl.Simulation(from_mujoco(world(FIELD)), dl.Ground()).ground.heights is None


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ((FIELD, FIELD.replace("hills", "more")), "nothing can touch 1 height fields: more"),
        ((FIELD.replace("/>", ' euler="0 0 45"/>'), FLOOR), "nothing can touch 1 height fields: hills"),
        (
            (
                FLOOR,
                '<body name="raft"><freejoint/><geom size=".1"/><geom name="deck" type="hfield" hfield="f"/></body>',
            ),
            r"height fields on bodies that move are left out \(1\): deck",
        ),
    ],
)
def test_fields_that_are_not_the_ground_are_named(parts, sentence):
    with pytest.warns(DelassusWarning, match=sentence):
        dl.Simulation(from_mujoco(world(*parts)))


def test_a_field_that_nothing_touches_is_no_ground():
    robot = from_mujoco(world(FIELD.replace("/>", ' contype="0" conaffinity="0"/>'), FLOOR))
    assert dl.Simulation(robot).ground.heights is None and not robot.omissions


@pytest.mark.parametrize("spacing", [(0.1, 0.1, 0.1), (0.1, -0.1), (0.1, np.nan)])
def test_impossible_spacings_are_refused(spacing):
    with refuses("wrong-shape" if len(spacing) == 3 else "out-of-range", "spacing"):
        dl.Ground(heights=np.zeros((4, 4)), spacing=spacing)
