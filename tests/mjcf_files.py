"""The MJCF files of dm_control and gymnasium, found without importing either, and MuJoCo's models of them."""

import warnings
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import mujoco

PACKAGES = ("dm_control", "gymnasium")

# These describe no robot that moves: materials, lights, floors, and bricks that are fixed to the world.
WITHOUT_JOINTS = {
    "dm_control/composer/arena.xml",
    "dm_control/entities/props/duplo/duplo2x4.xml",
    "dm_control/locomotion/walkers/assets/build_fruitfly/assets/drosophila_defaults.xml",
    "dm_control/locomotion/walkers/assets/dog_v2/dog_base.xml",
    "dm_control/mjcf/test_assets/arena.xml",
    "dm_control/mjcf/test_assets/included.xml",
    "dm_control/mjcf/test_assets/lego_brick.xml",
    "dm_control/mjcf/test_assets/model_with_assetdir.xml",
    "dm_control/mjcf/test_assets/model_with_assets.xml",
    "dm_control/mjcf/test_assets/model_with_include.xml",
    "dm_control/mjcf/test_assets/model_with_nameless_assets.xml",
    "dm_control/mjcf/test_assets/model_with_separators.xml",
    "dm_control/mujoco/testing/assets/sphere.xml",
    "dm_control/suite/common/materials.xml",
    "dm_control/suite/common/skybox.xml",
    "dm_control/suite/common/visual.xml",
    "dm_control/suite/lqr.xml",
    "dm_control/third_party/kinova/common.xml",
}

# MuJoCo itself refuses these: parts of models, with files that are not there, and two that are not MJCF at all.
REFUSED = {
    "dm_control/locomotion/walkers/assets/build_fruitfly/assets/drosophila.xml": "head_body.msh",
    "dm_control/locomotion/walkers/assets/build_fruitfly/floor.xml": "head_body.msh",
    "dm_control/locomotion/walkers/assets/build_fruitfly/fruitfly.xml": "head_body.msh",
    "dm_control/locomotion/walkers/assets/dog_v2/scene.xml": "repeated name 'grid'",
    "dm_control/mjcf/test_assets/included_with_invalid_filenames.xml": "invalid_mesh_name.stl",
    "dm_control/mjcf/test_assets/model_with_invalid_filenames.xml": "invalid_included_name.xml",
    "dm_control/mjcf/test_assets/test_model.xml": "mass and inertia of moving bodies",
    "dm_control/mujoco/testing/assets/model_with_assets.xml": "included.xml",
}
NO_MJCF = {"dm_control/mjcf/schema.xml", "dm_control/mjcf/test_assets/attribute_test_schema.xml"}


def _found() -> dict[str, Path]:
    files = {}
    for package in PACKAGES:
        spec = find_spec(package)
        for folder in (spec.submodule_search_locations if spec else None) or ():
            for path in Path(folder).rglob("*.xml"):
                files[f"{package}/{path.relative_to(folder).as_posix()}"] = path
    return dict(sorted(files.items()))


FILES = _found()
ROBOTS = [name for name in FILES if name not in WITHOUT_JOINTS and name not in REFUSED and name not in NO_MJCF]


@cache
def compiled(name: str) -> mujoco.MjModel:
    """MuJoCo's model of a file, without constraints and actuators."""
    with warnings.catch_warnings(action="ignore"):  # of attributes that are on their way out
        m = mujoco.MjSpec.from_file(str(FILES[name])).compile()
    bits = mujoco.mjtDisableBit
    m.opt.disableflags |= int(bits.mjDSBL_CONSTRAINT) | int(bits.mjDSBL_ACTUATION)
    return m
