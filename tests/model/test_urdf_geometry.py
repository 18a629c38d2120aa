"""Shapes of URDF links, and where their meshes are found."""

import pytest

from delassus.model.readers.load import load
from delassus.model.readers.urdf import read_urdf
from urdf_samples import FIXED, MASS, MESH, arm, link, robot


def shapes(inside, **options):
    return read_urdf(arm(tip=MASS + inside), **options).geometries


@pytest.mark.parametrize(
    ("element", "size"),
    [
        ('box size="1 2 3"', (1.0, 2.0, 3.0)),
        ('sphere radius="1"', (1.0,)),
        ('cylinder radius="1" length="2"', (1.0, 2.0)),
        ('capsule length="2" radius="1"', (1.0, 2.0)),
        ('mesh filename="m.stl" scale="1 2 3"', (1.0, 2.0, 3.0)),
        ('mesh filename="m.stl"', (1.0, 1.0, 1.0)),
    ],
)
def test_every_shape_has_its_size(element, size):
    (shape,) = shapes(f"<collision><geometry><{element}/></geometry></collision>")
    assert (shape.shape, shape.size) == (element.split()[0], size)


def test_shapes_are_placed_on_their_body():
    box = '<visual><origin xyz="1 0 0"/><geometry><box size="1 1 1"/></geometry></visual>'
    model = read_urdf(FIXED.replace('<link name="c">', f'<link name="c">{box}'))
    (shape,) = model.geometries
    assert (shape.name, shape.joint, shape.placement.translation, shape.role) == ("c_0", 0, (1.0, 0.0, 3.0), "visual")


def test_materials_are_found_by_their_names():
    visual = '<visual><geometry><sphere radius="1"/></geometry><material name="red"/></visual>'
    red = '<material name="red"><color rgba="1 0 0 1"/></material>'
    (shape,) = read_urdf(robot(link("a", visual), red)).geometries
    assert shape.color == (1.0, 0.0, 0.0, 1.0)


@pytest.fixture
def package(tmp_path):
    """A package "pkg" with a mesh, in a folder of its own."""
    folder = tmp_path / "space" / "pkg"
    (folder / "meshes").mkdir(parents=True)
    (folder / "urdf").mkdir()
    (folder / "meshes" / "m.stl").touch()
    return folder


def test_packages_are_found_in_the_folders_given(package):
    (shape,) = shapes(MESH.format("package://pkg/meshes/m.stl"), packages=[package.parent])
    assert shape.mesh == str(package / "meshes" / "m.stl")


def test_packages_are_found_by_their_names(package):
    (shape,) = shapes(MESH.format("package://other/meshes/m.stl"), packages={"other": package})
    assert shape.mesh == str(package / "meshes" / "m.stl")


@pytest.mark.parametrize("name", ["package://pkg/meshes/m.stl", "../meshes/m.stl", "file://../meshes/m.stl"])
def test_meshes_are_found_from_the_file_of_the_model(package, name):
    file = package / "urdf" / "r.urdf"
    file.write_text(arm(tip=MASS + MESH.format(name)))
    assert load(file).geometries[0].mesh == str(package / "meshes" / "m.stl")


@pytest.mark.parametrize(("variable", "share"), [("ROS_PACKAGE_PATH", ""), ("AMENT_PREFIX_PATH", "share")])
def test_packages_are_found_where_ros_has_them(package, monkeypatch, tmp_path, variable, share):
    (tmp_path / "ros" / share).mkdir(parents=True)
    package.rename(tmp_path / "ros" / share / "pkg")
    monkeypatch.setenv(variable, str(tmp_path / "ros"))
    (shape,) = shapes(MESH.format("package://pkg/meshes/m.stl"))
    assert shape.mesh == str(tmp_path / "ros" / share / "pkg" / "meshes" / "m.stl")


def test_a_file_is_found_by_its_address(package):
    (shape,) = shapes(MESH.format(f"file://{package}/meshes/m.stl"))
    assert shape.mesh == str(package / "meshes" / "m.stl")
