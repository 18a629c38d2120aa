"""The robots of example-robot-data, joint by joint against Pinocchio's own reader of URDF."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from delassus.model.joints import Free, Prismatic, Revolute
from delassus.model.readers.load import load
from refusals import refuses

pin = pytest.importorskip("pinocchio")

PREFIX = next((p for p in Path(pin.__file__).parents if p.name == "cmeel.prefix"), Path())
FOLDER = PREFIX / "share" / "example-robot-data" / "robots"
FILES = sorted(FOLDER.rglob("*.urdf"))
if not FILES:
    pytest.skip("example-robot-data is not installed", allow_module_level=True)

REFUSED = {
    "ur3.urdf": ("bad-model-file", "<link>"),  # a robot without name and content, left over from xacro
}
FILES_READ = [file for file in FILES if file.name not in REFUSED]
ROOTS = ("fixed", "free")
# Pinocchio finds a joint to be mimicked only if it comes before; the two others name one that is not there.
MIMIC_READ_BY_BOTH = ("baxter.urdf", "panda.urdf", "panda_collision.urdf", "pr2.urdf", "tiago_pro.urdf")
SHAPES_READ_FAST = (
    "a1.urdf",
    "anymal.urdf",
    "baxter.urdf",
    "hyq_no_sensors.urdf",
    "panda_collision.urdf",
    "pr2.urdf",
    "simple_humanoid.urdf",
    "tiago_dual.urdf",
)

every_robot = pytest.mark.parametrize("file", FILES_READ, ids=lambda file: file.stem)
every_root = pytest.mark.parametrize("root", ROOTS)


@cache
def ours(file: Path, root: str):
    return load(file, root=root, mimic="ignore")


@cache
def theirs(file: Path, root: str):
    return pin.buildModelFromUrdf(str(file), *([pin.JointModelFreeFlyer()] if root == "free" else []))


def test_all_robots_are_here():
    assert len(FILES) >= 69


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_robot_is_refused(name):
    (file,) = (file for file in FILES if file.name == name)
    with refuses(*REFUSED[name]):
        load(file)


@every_root
@every_robot
def test_joints_have_the_same_names_in_the_same_order(file, root):
    assert [joint.name for joint in ours(file, root).joints] == list(theirs(file, root).names)[1:]


@every_root
@every_robot
def test_joints_hang_on_the_same_joints(file, root):
    assert [joint.parent + 1 for joint in ours(file, root).joints] == list(theirs(file, root).parents)[1:]


@every_root
@every_robot
def test_velocities_have_the_same_layout(file, root):
    model, reference = ours(file, root), theirs(file, root)
    assert (model.nv, list(model.v_starts)) == (reference.nv, [j.idx_v for j in reference.joints][1:])


@every_root
@every_robot
def test_joints_have_the_same_axes(file, root):
    for joint, reference in zip(ours(file, root).joints, list(theirs(file, root).joints)[1:], strict=True):
        axis = getattr(joint.kind, "axis", None)
        directions = {Free: np.eye(6), Prismatic: [*(axis or ()), 0, 0, 0], Revolute: [0, 0, 0, *(axis or ())]}
        np.testing.assert_allclose(reference.createData().S, directions[type(joint.kind)], atol=1e-12)


@every_root
@every_robot
def test_joints_have_the_same_placements(file, root):
    for joint, M in zip(ours(file, root).joints, list(theirs(file, root).jointPlacements)[1:], strict=True):
        np.testing.assert_allclose(joint.placement.R, M.rotation, atol=1e-12)
        np.testing.assert_allclose(joint.placement.p, M.translation, atol=1e-12)


@every_root
@every_robot
def test_bodies_have_the_same_inertias(file, root):
    for joint, Y in zip(ours(file, root).joints, list(theirs(file, root).inertias)[1:], strict=True):
        assert joint.inertia.mass == pytest.approx(Y.mass, rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(joint.inertia.com, Y.lever, atol=1e-12)
        np.testing.assert_allclose(joint.inertia.rotational, Y.inertia, rtol=1e-12, atol=1e-12)


def expected_frames(reference):
    """Pinocchio's frames without the world's; a joint's frame with the name of a link has "_joint" appended here.

    A link "world" that moves has "_link" appended, since the world has this name here.
    """
    frames = list(reference.frames)[1:]
    links = {f.name for f in frames if f.type == pin.FrameType.BODY}

    def name(f):
        if f.type != pin.FrameType.BODY:
            return f.name + "_joint" if f.name in links else f.name
        return "world_link" if f.name == "world" and f.parentJoint != 0 else f.name

    return [(name(f), f) for f in frames]


@every_root
@every_robot
def test_frames_have_the_same_names_in_the_same_order(file, root):
    assert [f.name for f in ours(file, root).frame_list] == [name for name, _ in expected_frames(theirs(file, root))]


@every_root
@every_robot
def test_frames_have_the_same_roles(file, root):
    roles = {pin.FrameType.BODY: "link", pin.FrameType.JOINT: "joint", pin.FrameType.FIXED_JOINT: "frame"}
    expected = [roles[frame.type] for _, frame in expected_frames(theirs(file, root))]
    assert [frame.role for frame in ours(file, root).frame_list] == expected


@every_root
@every_robot
def test_frames_are_at_the_same_places(file, root):
    model = ours(file, root)
    for name, reference in expected_frames(theirs(file, root)):
        frame = model.frame(name)
        assert frame.joint == reference.parentJoint - 1
        np.testing.assert_allclose(frame.placement.R, reference.placement.rotation, atol=1e-12)
        np.testing.assert_allclose(frame.placement.p, reference.placement.translation, atol=1e-12)


@every_robot
def test_joints_have_the_same_limits_damping_and_friction(file):
    reference = theirs(file, "fixed")
    for joint, pin_joint in zip(ours(file, "fixed").joints, list(reference.joints)[1:], strict=True):
        q, v = pin_joint.idx_q, pin_joint.idx_v
        if not (isinstance(joint.kind, Revolute) and joint.kind.continuous):
            expected = (reference.lowerPositionLimit[q], reference.upperPositionLimit[q])
            assert (*joint.lower, *joint.upper) == expected
        assert (joint.velocity_limit or (np.inf,)) == (reference.velocityLimit[v],)
        assert (joint.effort_limit or (np.inf,)) == (reference.effortLimit[v],)
        assert (joint.damping or (0.0,)) == (reference.damping[v],)
        assert (joint.friction or (0.0,)) == (reference.friction[v],)


@pytest.mark.parametrize("name", MIMIC_READ_BY_BOTH)
def test_mimicking_joints_share_the_same_coordinates(name):
    (file,) = (file for file in FILES if file.name == name)
    model, reference = load(file), pin.buildModelFromUrdf(str(file), mimic=True)
    assert model.nv == reference.nv
    for joint, start, pin_joint in zip(model.joints, model.v_starts, list(reference.joints)[1:], strict=True):
        assert start == pin_joint.idx_v
        assert (joint.mimic is not None) == ("Mimic" in pin_joint.shortname())


@pytest.mark.parametrize("name", SHAPES_READ_FAST)
def test_shapes_are_at_the_same_places(name):
    file = next(file for file in FILES if file.name == name)
    shapes = {shape.name: shape for shape in ours(file, "fixed").geometries if shape.role == "collision"}
    folder = str(FOLDER.parents[1])
    read = pin.buildGeomFromUrdf(theirs(file, "fixed"), str(file), pin.COLLISION, package_dirs=[folder])
    assert [shape.name for shape in read.geometryObjects] == list(shapes)
    for reference in read.geometryObjects:
        shape, M = shapes[reference.name], reference.placement
        assert shape.joint == reference.parentJoint - 1
        np.testing.assert_allclose(shape.placement.R, M.rotation, atol=1e-12)
        np.testing.assert_allclose(shape.placement.p, M.translation, atol=1e-12)


@pytest.mark.parametrize(
    "file",
    [file for file in FILES_READ if file.name != "romeo_laas_small.urdf"],  # names a folder of its author's machine
    ids=lambda file: file.stem,
)
def test_every_mesh_is_found(file):
    meshes = [shape.mesh for shape in ours(file, "fixed").geometries if shape.shape == "mesh"]
    assert [mesh for mesh in meshes if not Path(mesh).is_file()] == []
