"""Scenes that other people wrote, here and in MuJoCo: the table of docs/files.md.

Scenes are those of the folder that DELASSUS_ROBOTS names. With DELASSUS_TABLE=path the rows of the table are appended
to that file as they are found.
"""

import os
import warnings
from pathlib import Path

import mujoco
import numpy as np
import pytest

import delassus as dl
from mujoco_law import (
    differences,
    has_equal_contacts,
    pose_difference,
    reference_model,
    rest_here,
    rest_in_mujoco,
    rollout_states,
    servoed_model,
)

SCENES = (
    "agility_cassie/scene.xml",
    "aloha/scene.xml",
    "anybotics_anymal_c/scene.xml",
    "apptronik_apollo/scene.xml",
    "berkeley_humanoid/scene.xml",
    "booster_t1/scene.xml",
    "franka_emika_panda/scene.xml",
    "google_barkour_vb/scene.xml",
    "kuka_iiwa_14/scene.xml",
    "leap_hand/scene_right.xml",
    "shadow_hand/scene_right.xml",
    "unitree_g1/scene.xml",
    "unitree_g1/scene_mjx.xml",
    "unitree_go1/scene.xml",
    "unitree_go2/scene.xml",
    "unitree_go2/scene_mjx.xml",
    "universal_robots_ur5e/scene.xml",
)
SERVOED = {"apptronik_apollo", "berkeley_humanoid", "booster_t1", "unitree_go2"}
"""Robots whose files do not stand by themselves: they get position servos at the keyframe or qpos0."""

SETTLING = 10.0
"""Time [s] after which robots are compared."""


def scene_file(name: str) -> str:
    path = Path(os.environ.get("DELASSUS_ROBOTS", "/nowhere")) / name
    if not path.exists():
        pytest.skip(f"no {name}: DELASSUS_ROBOTS names no folder that has it")
    return str(path)


def write_row(*cells: object) -> None:
    if "DELASSUS_TABLE" in os.environ:
        with Path(os.environ["DELASSUS_TABLE"]).open("a") as table:
            table.write(f"| {' | '.join(map(str, cells))} |\n")


pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("name", SCENES)
def test_accelerations_and_constraint_forces_where_contacts_are_the_same(name):
    m = reference_model(mujoco.MjModel.from_xml_path(scene_file(name)))
    states = rollout_states(m)
    with warnings.catch_warnings(action="ignore"):
        sim = dl.Simulation.from_file(scene_file(name), law="mujoco", tolerance=1e-10)
    acceleration, constraint = differences(sim, states)
    same = has_equal_contacts(sim, m, states)
    write_row(name, f"{same.sum()} of {len(same)}", f"{acceleration[same].max():.0e}", f"{constraint[same].max():.0e}")
    assert acceleration[same].max() < 2e-6
    assert constraint[same].max() < 2e-6


@pytest.mark.parametrize("name", [name for name in SCENES if "scene_mjx" not in name])
def test_robots_rest_where_those_of_mujoco_do(name):
    servos = name.partition("/")[0] in SERVOED
    m, model, control = servoed_model(scene_file(name), servos)
    there = rest_in_mujoco(m, control, SETTLING)
    soft, rigid = (rest_here(model, m, law, control, SETTLING) for law in ("mujoco", "rigid"))
    height, length, angle = pose_difference(m, there.qpos, soft.qpos)
    sunk = pose_difference(m, there.qpos, rigid.qpos)[0]
    write_row(
        f"{name}{', servos' * servos}",
        f"{there.speed:.0e}",
        f"{1e3 * height:.3f}",
        f"{1e3 * length:.3f}",
        f"{1e3 * angle:.2f}",
        f"{1e3 * sunk:.2f}",
        f"{-1e3 * there.distance:.2f}",
    )
    if max(there.speed, soft.speed) > 1e-3:
        pytest.skip(f"{name} is not at rest after {SETTLING:g} s: {there.speed:.1e} and {soft.speed:.1e}")
    assert length < 0.5e-3
    assert angle < 5e-3
    if model.nq > model.nv and np.isfinite(sunk):
        assert abs(sunk + there.distance) < 0.3e-3
