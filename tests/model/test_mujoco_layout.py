"""Configurations, velocities and accelerations to MuJoCo's layout and back."""

import numpy as np
import pytest

import delassus as dl
from refusals import refuses

mujoco = pytest.importorskip("mujoco")

BOX = "<geom type='box' size='.1 .2 .3'/>"
TEXT = f"""
<mujoco>
  <worldbody>
    <body><joint type='slide'/>{BOX}<body pos='1 0 0'><joint type='ball'/>{BOX}</body></body>
    <body><freejoint/>{BOX}<body pos='0 0 1'><joint type='hinge'/>{BOX}</body></body>
  </worldbody>
</mujoco>
"""


@pytest.fixture(scope="module")
def model():
    return dl.load(TEXT)


@pytest.fixture
def states(model):
    """Five states (q, v, a)."""
    rng = np.random.default_rng(0)
    q = np.array([model.random_configuration(rng) for _ in range(5)])
    return q, *rng.normal(size=(2, 5, model.nv))


def test_quaternions_have_their_real_part_first(model):
    q = dl.q_to_mujoco(model, np.arange(float(model.nq)))
    np.testing.assert_array_equal(q, [0, 4, 1, 2, 3, 5, 6, 7, 11, 8, 9, 10, 12])


def test_a_way_there_and_back_changes_nothing(model, states):
    q, v, a = states
    np.testing.assert_array_equal(dl.q_from_mujoco(model, dl.q_to_mujoco(model, q)), q)
    np.testing.assert_allclose(dl.v_from_mujoco(model, q, dl.v_to_mujoco(model, q, v)), v, atol=1e-15)
    np.testing.assert_allclose(dl.a_from_mujoco(model, q, v, dl.a_to_mujoco(model, q, v, a)), a, atol=1e-14)


def test_a_batch_is_converted_item_by_item(model, states):
    q, v, a = states
    np.testing.assert_array_equal(dl.v_to_mujoco(model, q, v)[3], dl.v_to_mujoco(model, q[3], v[3]))
    np.testing.assert_array_equal(dl.a_to_mujoco(model, q, v, a)[3], dl.a_to_mujoco(model, q[3], v[3], a[3]))


def test_one_velocity_serves_many_configurations(model, states):
    q, v, a = states
    assert dl.v_to_mujoco(model, q, v[0]).shape == v.shape
    assert dl.a_to_mujoco(model, q, v[0], a[0]).shape == dl.a_from_mujoco(model, q[0], v, a[0]).shape == a.shape


def test_inputs_are_left_as_they_are(model, states):
    q, v, _ = states
    before = q.copy(), v.copy()
    dl.q_to_mujoco(model, q)
    dl.v_to_mujoco(model, q, v)
    np.testing.assert_array_equal(np.concatenate(before, 1), np.concatenate((q, v), 1))


def test_a_small_step_leads_to_the_same_place(model, states):
    q, v, _ = (x[0] for x in states)
    m, h = mujoco.MjModel.from_xml_string(TEXT), 1e-6
    there = dl.q_to_mujoco(model, q)
    mujoco.mj_integratePos(m, there, dl.v_to_mujoco(model, q, v), h)
    np.testing.assert_allclose(dl.q_to_mujoco(model, dl.integrate(model, q, h * v)), there, atol=10.0 * h**2)


def test_accelerations_are_the_rates_of_velocities(model, states):
    q, v, a = (x[0] for x in states)
    h = 1e-6
    ends = [dl.v_to_mujoco(model, dl.integrate(model, q, s * h * v), v + s * h * a) for s in (-1.0, 1.0)]
    np.testing.assert_allclose((ends[1] - ends[0]) / (2.0 * h), dl.a_to_mujoco(model, q, v, a), atol=1e-8)


@pytest.mark.parametrize("count", [0, 12, 14])
def test_a_wrong_number_of_coordinates_is_refused(model, count):
    with refuses("wrong-shape", "13", count):
        dl.q_to_mujoco(model, np.zeros(count))
