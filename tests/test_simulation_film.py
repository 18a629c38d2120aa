"""Films: one file that has everything, and that a browser draws."""

import base64
import json
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest

import delassus as dl
from bodies import BALL, BRICK
from delassus.model.model import Geometry
from delassus.model.placement import HERE
from delassus.model.readers.meshes import hull_triangles
from delassus.stepping.trajectories.strip import outline

Q0 = np.array([[0, 0, 0.3, 0.1, 0.2, 0.3, 0.9], [0.5, 0, 0.2, 0.3, 0, 0, 0.9]])


@pytest.fixture(scope="module")
def log():
    return dl.Simulation(BRICK).run(Q0, steps=400, every=5)


def film_of(path):
    text = path.read_text()
    return text, json.loads(text.partition("const film = ")[2].partition(";\n")[0])


def unpacked(text, *shape):
    return np.frombuffer(base64.b64decode(text), "<f4").reshape(shape)


def test_a_film_has_the_poses_of_all_bodies_and_needs_nothing_else(log, tmp_path):
    log.save_html(tmp_path / "run.html", frames_per_second=50.0)
    text, film = film_of(tmp_path / "run.html")
    assert "http" not in text and "/*data*/" not in text and "/*script*/" not in text
    assert len(film["time"]) == 21  # 0.4 s
    poses = unpacked(film["poses"], 21, 2, 1, 9)
    R, p = dl.forward_kinematics(log.simulation.model, log.q[-1])
    np.testing.assert_allclose(poses[-1, ..., :3], p, atol=1e-6)
    np.testing.assert_allclose(poses[-1, ..., 3:6], R[..., 0], atol=1e-6)
    np.testing.assert_allclose(poses[-1, ..., 6:], R[..., 1], atol=1e-6)
    forces = unpacked(film["forces"], 21, 2, 8, 6)
    np.testing.assert_allclose(forces[-1, ..., 5], log.contact_force[-1, ..., 2], rtol=1e-6)


def test_a_film_shows_meshes_by_their_hulls(tmp_path):
    corners = [(x, y, z) for x in (0, 1) for y in (0, 2) for z in (0, 3)] + [(0.5, 0.5, 0.5)]
    (tmp_path / "box.obj").write_text("".join(f"v {x} {y} {z}\n" for x, y, z in corners))
    shape = Geometry("hull", 0, HERE, "mesh", (0.1, 0.1, 0.1), "visual", str(tmp_path / "box.obj"))
    lost = replace(shape, name="lost", mesh="no.obj")
    log = dl.Simulation(replace(BALL, geometries=(*BALL.geometries, shape, lost))).run(Q0[0], steps=2)
    log.save_html(tmp_path / "run.html")
    film = film_of(tmp_path / "run.html")[1]
    assert [s["kind"] for s in film["shapes"]] == ["mesh"]
    triangles = np.reshape(film["shapes"][0]["triangles"], (-1, 3, 3))
    np.testing.assert_allclose(np.ptp(triangles.reshape(-1, 3), axis=0), (0.1, 0.2, 0.3), atol=1e-12)


def test_triangles_of_a_hull_face_outwards_and_close_it():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 3))
    a, b, c = np.moveaxis(hull_triangles(tuple(map(tuple, x))), 1, 0)
    normal = np.cross(b - a, c - a)
    assert np.all(np.einsum("tk,tpk->tp", normal, x[None] - a[:, None]) < 1e-9)
    np.testing.assert_allclose(normal.sum(0), 0.0, atol=1e-9)  # areas of a closed surface


def test_items_and_rates_that_cannot_be_are_refused(log, tmp_path):
    with pytest.raises(dl.DelassusError, match="numbered from 0"):
        log.save_html(tmp_path / "run.html", items=[2])
    with pytest.raises(dl.DelassusError, match="Show one or more"):
        log.save_html(tmp_path / "run.html", items=[])
    with pytest.raises(dl.DelassusError, match="positive"):
        log.save_html(tmp_path / "run.html", frames_per_second=0.0)


BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")
def test_a_browser_draws_robots_ground_and_forces_without_complaint(log, tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    log.save_html(tmp_path / "run.html")
    done = subprocess.run(
        [
            BROWSER, "--headless", "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-sync",
            "--disable-background-networking", "--disable-component-update", f"--user-data-dir={tmp_path / 'profile'}",
            "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--window-size=600,400",
            "--enable-logging=stderr", f"--screenshot={tmp_path / 'shot.png'}", "--virtual-time-budget=2000",
            (tmp_path / "run.html").as_uri() + "#0.4",
        ],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert not said and done.returncode == 0
    red, green, blue = np.moveaxis(pyplot.imread(tmp_path / "shot.png")[..., :3], -1, 0)
    assert np.mean((red > 1.5 * blue) & (red > 1.5 * green)) > 3e-4  # forces
    assert np.mean((blue > 1.5 * red) & (blue > 0.2)) > 1e-2  # bricks
    assert np.mean((red < 0.62) & (np.abs(red - blue) < 0.15)) > 1e-3  # shadows


# --- strips of drawings -----------------------------------------------------------------------------------------------


def test_a_strip_has_a_drawing_for_each_time_with_all_faces_and_forces(log):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = log.draw([0.0, 0.2, 0.4], item=1)
    assert [ax.get_title() for ax in axes] == ["0.00 s", "0.20 s", "0.40 s"]
    for ax, force in zip(axes, log.contact_force[[0, 40, 80], 1, :, 2], strict=True):
        assert len(ax.patches) == 1 + 3  # the ground, three faces of a brick
        assert len(ax.texts) == np.sum(force > 0.02 * BRICK.mass * 9.81)  # arrows
    matplotlib.pyplot.close(axes[0].figure)
    for times in (0, [7.0], []):
        with pytest.raises(dl.DelassusError, match="times"):
            log.draw(times)


def test_an_outline_is_the_hull_of_its_points():
    square = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]])
    inside = np.random.default_rng(0).uniform(0.1, 0.9, (30, 2))
    np.testing.assert_array_equal(outline(np.concatenate([inside, square])), square)
