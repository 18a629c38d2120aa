"""Scenes of gymnasium and dm_control under MuJoCo's law of contact: accelerations and constraint forces."""

import importlib.util
import warnings
from pathlib import Path

import mujoco
import pytest

import delassus as dl
from mujoco_law import differences, has_equal_contacts, reference_model, rollout_states

GYMNASIUM = (
    "ant", "half_cheetah", "hopper", "humanoid", "humanoidstandup", "inverted_double_pendulum", "inverted_pendulum",
    "pusher_v5", "reacher", "swimmer", "walker2d_v5",
)  # fmt: skip
DM_CONTROL = (
    "acrobot", "ball_in_cup", "cartpole", "cheetah", "finger", "fish", "hopper", "humanoid", "manipulator", "pendulum",
    "point_mass", "quadruped", "reacher", "walker",
)  # fmt: skip
SCENES = [("gymnasium", f"envs/mujoco/assets/{name}.xml") for name in GYMNASIUM]
SCENES += [("dm_control", f"suite/{name}.xml") for name in DM_CONTROL]

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize(("package", "name"), SCENES)
def test_accelerations_and_constraint_forces_are_those_of_mujoco(package, name):
    found = importlib.util.find_spec(package)
    if found is None:
        pytest.skip(f"{package} is not installed")
    path = Path(found.origin).parent / name
    m = reference_model(mujoco.MjModel.from_xml_path(str(path)))
    states = rollout_states(m, count=40, seconds=min(1.0, 1600 * m.opt.timestep), noise=0.3)
    with warnings.catch_warnings(action="ignore"):
        sim = dl.Simulation.from_file(path, law="mujoco", tolerance=1e-10)
    assert has_equal_contacts(sim, m, states).all()
    acceleration, constraint = differences(sim, states)
    assert acceleration.max() < 1e-6
    assert constraint.max() < 1e-6
