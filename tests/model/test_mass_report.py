"""Masses of robots, and what looks wrong about them."""

import numpy as np
import pytest

import delassus as dl
from delassus.model.joints import Revolute
from delassus.model.model import Model
from delassus.model.parts import Geometry, Joint
from delassus.model.placement import Placement


def box(mass: float, sides) -> dl.Inertia:
    """A solid box; Σ of the squares of two sides / 12."""
    squares = np.square(sides)
    return dl.Inertia.of(mass, rotational=np.diag(mass / 12.0 * (squares.sum() - squares)))


def robot(inertia: dl.Inertia, size=(0.2, 0.1, 0.1), at=(0.0, 0.0, 0.0), **fields) -> Model:
    shape = Geometry("box", 0, Placement.of(p=at), "box", size, "collision")
    return Model("robot", (Joint("j", Revolute(), inertia=inertia, **fields),), geometries=(shape,))


def test_a_solid_box_is_sound():
    assert dl.mass_report(robot(box(2.0, (0.2, 0.1, 0.1)))).warnings == ()


def test_the_report_has_mass_moments_and_radii():
    report = dl.mass_report(robot(box(2.0, (0.2, 0.1, 0.1))))
    (body,) = report.bodies
    assert (body.joint, body.mass, report.total) == ("j", 2.0, 2.0)
    np.testing.assert_allclose(body.moments, 2.0 / 12.0 * np.array([0.02, 0.05, 0.05]))
    np.testing.assert_allclose(body.radii, np.sqrt(np.array([0.02, 0.05, 0.05]) / 12.0))
    assert body.reach == pytest.approx(np.sqrt(0.06) / 2.0)


@pytest.mark.parametrize(
    ("inertia", "sentence"),
    [
        (dl.Inertia(), "joint 'j' moves no mass"),
        (dl.Inertia.of(1.0, rotational=np.diag([0.001, 0.001, -0.001])), "none can be negative"),
        (dl.Inertia.of(1.0, rotational=np.diag([0.001, 0.001, 0.003])), "one is at most the sum of the others"),
        (dl.Inertia.of(0.0, rotational=np.diag([0.001, 0.001, 0.001])), "and no mass"),
        (dl.Inertia.of(1.0, rotational=1e-8 * np.eye(3)), "the moments are those of a point"),
        (dl.Inertia.of(1.0, rotational=np.eye(3)), "the moments are too large for its mass"),
        (dl.Inertia.of(1.0, (1.0, 0.0, 0.0), 0.001 * np.eye(3)), "is 1 m from the middle of its shapes"),
    ],
)
def test_what_looks_wrong_is_told(inertia, sentence):
    assert any(sentence in warning for warning in dl.mass_report(robot(inertia)).warnings)


def test_a_body_without_mass_that_carries_one_with_mass_is_sound():
    joints = (Joint("a", Revolute()), Joint("b", Revolute((1.0, 0.0, 0.0)), 0, inertia=box(1.0, (0.1, 0.1, 0.1))))
    assert dl.mass_report(Model("robot", joints)).warnings == ()


def test_a_rotor_is_enough_to_move():
    assert dl.mass_report(robot(dl.Inertia(), armature=(0.1,))).warnings == ()


def test_a_light_body_that_carries_a_heavy_one_is_told():
    light, heavy = (box(mass, (0.1, 0.1, 0.1)) for mass in (0.001, 10.0))
    joints = (Joint("a", Revolute(), inertia=light), Joint("b", Revolute(), 0, inertia=heavy))
    assert "carries 10 kg" in dl.mass_report(Model("robot", joints)).warnings[0]


def test_shapes_are_measured_where_they_are():
    inertia = box(1.0, (0.2, 0.1, 0.1)).transform(Placement.of(p=(3.0, 0.0, 0.0)))
    assert dl.mass_report(robot(inertia, at=(3.0, 0.0, 0.0))).warnings == ()


def test_a_body_with_meshes_alone_tells_no_size():
    mesh = Geometry("mesh", 0, Placement(), "mesh", (1.0, 1.0, 1.0), "visual", mesh="body.stl")
    model = Model("robot", (Joint("j", Revolute(), inertia=box(1.0, (0.1, 0.1, 0.1))),), geometries=(mesh,))
    assert dl.mass_report(model).bodies[0].reach is None
