"""Shapes on the ground: cylinders that stand, lie and lean, ellipsoids, meshes; curved ground."""

import math
from dataclasses import replace

import numpy as np
import pytest

import delassus as dl
from bodies import BALL, H, body
from delassus.model.parts import Geometry
from delassus.model.placement import HERE
from refusals import refuses

CAN = body("cylinder", (0.05, 0.2), 1.0, (0.004, 0.004, 0.00125))
EGG = body("ellipsoid", (0.1, 0.15, 0.05), 1.0, (0.005, 0.0025, 0.0065))


@pytest.mark.parametrize(("turn", "height"), [(0.0, 0.1), (math.pi / 2, 0.05)])
def test_a_cylinder_stands_and_lies(turn, height):
    q0 = np.array([0, 0, height, math.sin(turn / 2), 0, 0, math.cos(turn / 2)])
    log = dl.Simulation(CAN).run(q0, steps=300)
    assert np.abs(log.v[1:, :3]).max() < 1e-9
    np.testing.assert_allclose(log.contact_force[-1, :, 2].sum(), 9.81, rtol=1e-6)


def test_a_leaning_cylinder_touches_with_the_lowest_point_of_its_rim():
    turn = 0.4
    found = dl.Simulation(CAN).contacts(np.array([0, 0, 0.3, 0, math.sin(turn / 2), 0, math.cos(turn / 2)]))
    assert found.gap.min() == pytest.approx(0.3 - 0.1 * math.cos(turn) - 0.05 * math.sin(turn), abs=1e-15)


def test_the_support_point_of_an_ellipsoid_is_below_all_of_its_points():
    rng = np.random.default_rng(0)
    q = np.array([0.1, 0.2, 0.5, *rng.normal(size=4)])
    q[3:] /= np.linalg.norm(q[3:])
    found = dl.Simulation(EGG).contacts(q)
    x = rng.normal(size=(100_000, 3))
    x = x / np.linalg.norm(x, axis=1)[:, None] * np.array([0.1, 0.15, 0.05])
    R, p = dl.forward_kinematics(EGG, q)
    lowest = (x @ R[0].T + p[0])[:, 2].min()
    assert lowest - 1e-5 < found.gap[0] <= lowest


def test_a_ball_comes_to_rest_in_a_valley():
    x = 0.05 * (np.arange(41) - 20)
    valley = dl.Ground(heights=0.3 * (x[:, None] ** 2 + x[None, :] ** 2), spacing=0.05, friction=0.9)
    damped = replace(BALL, joints=(replace(BALL.joints[0], damping=(5.0,) * 3 + (0.05,) * 3),))
    log = dl.Simulation(damped, valley).run(np.array([0.4, 0.2, 0.3, 0, 0, 0, 1.0]), steps=6000, every=100)
    assert np.hypot(*log.q[-1, :2]) < 0.05 and np.abs(log.v[-1]).max() < 2e-2
    assert log.q[-1, 2] == pytest.approx(0.1, abs=5e-3)


def write_cube(path, side: float) -> None:
    """A binary STL of twelve triangles."""
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)]) * side - side / 2
    faces = [
        (0, 1, 3),
        (0, 3, 2),
        (4, 6, 7),
        (4, 7, 5),
        (0, 4, 5),
        (0, 5, 1),
        (2, 3, 7),
        (2, 7, 6),
        (0, 2, 6),
        (0, 6, 4),
    ]
    faces += [(1, 5, 7), (1, 7, 3)]
    triangles = np.zeros(12, np.dtype([("numbers", "<f4", 12), ("rest", "<u2")]))
    triangles["numbers"][:, 3:] = corners[faces].reshape(12, 9)
    path.write_bytes(b"\0" * 80 + (12).to_bytes(4, "little") + triangles.tobytes())


def meshed(path) -> dl.Model:
    shape = Geometry("hull", 0, HERE, "mesh", (2.0, 1.0, 1.0), "collision", str(path))
    return replace(BALL, geometries=(shape,))


def test_a_mesh_touches_with_the_corners_of_its_hull(tmp_path):
    write_cube(tmp_path / "cube.stl", 0.25)
    found = dl.Simulation(meshed(tmp_path / "cube.stl")).contacts(np.array([0, 0, 1.0, 0, 0, 0, 1.0]))
    near = found.gap < 1.0
    assert near.sum() == 4 and found.gap.min() == 1.0 - 0.125
    assert np.ptp(found.point[near, 0]) == 0.5  # scaled


def test_a_simulation_says_how_far_its_hulls_are_off(tmp_path):
    angle = np.linspace(0.0, 2.0 * np.pi, 100, endpoint=False)
    rim = 0.1 * np.stack([np.cos(angle), np.sin(angle), 0.0 * angle], 1)
    points = np.concatenate([rim, rim + np.array([0.0, 0.0, 0.1])])
    (tmp_path / "disk.obj").write_text("".join("v {} {} {}\n".format(*x) for x in points.tolist()))
    coarse, fine = (dl.Simulation(meshed(tmp_path / "disk.obj"), hull_error=error) for error in (0.02, 0.002))
    assert fine.hull_error <= 0.002 < coarse.hull_error <= 0.02
    assert f"hulls within {1e3 * fine.hull_error:.2g} mm" in repr(fine)
    with refuses("out-of-range", "hull_error"):
        dl.Simulation(meshed(tmp_path / "disk.obj"), hull_error=-1.0)


def test_meshes_that_are_missing_or_unknown_are_named(tmp_path):
    (tmp_path / "cube.dae").write_text("<x/>")
    for path, words in ((tmp_path / "no.stl", ("missing-file",)), (tmp_path / "cube.dae", ("not-supported",))):
        with refuses(*words):
            dl.Simulation(meshed(path))
        assert dl.Simulation(meshed(path), max_contacts=0).scene.m == 0


@pytest.mark.parametrize(
    ("vertices", "code"),
    [
        (["0 0 0"], "bad-mesh"),
        (["0 0 0", "1 0 0", "3 0 0"], "bad-mesh"),
        (["0 0 0", "3e38 0 0", "0 1 0", "0 0 1"], "bad-mesh"),  # scaled by two
        (["0 0 0", "1e400 0 0", "0 1 0", "0 0 1"], "bad-mesh"),
    ],
)
def test_meshes_that_are_no_bodies_are_named(tmp_path, vertices, code):
    (tmp_path / "m.obj").write_text("".join(f"v {vertex}\n" for vertex in vertices))
    with refuses(code):
        dl.Simulation(meshed(tmp_path / "m.obj"))


def test_another_step_compiles_nothing_and_lands_as_well():
    coarse = dl.Simulation(BALL, dl.Ground(), 10 * H).run(np.array([0, 0, 0.3, 0, 0, 0, 1.0]), steps=60)
    assert coarse.q[-1, 2] == pytest.approx(0.1, abs=1e-6) and np.abs(coarse.v[-1]).max() < 1e-9
