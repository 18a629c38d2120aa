"""Films: one file that has everything, and that a browser draws."""

import base64
import html
import json
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import delassus as dl
from bodies import BALL, BRICK
from delassus.model.parts import Geometry
from delassus.model.placement import HERE
from delassus.output.strip import outline
from refusals import refuses

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


def test_items_and_rates_that_cannot_be_are_refused(log, tmp_path):
    with refuses("index-out-of-range"):
        log.save_html(tmp_path / "run.html", items=[2])
    with refuses("index-out-of-range"):
        log.save_html(tmp_path / "run.html", items=[])
    with refuses("out-of-range"):
        log.save_html(tmp_path / "run.html", frames_per_second=0.0)


HOSTILE = [
    "</script><script>console.log('run')</script>",
    "<!--<script>",
    "/*script*/",
    "\"; console.log('run'); //",
    "${console.log('run')}`",
    "]]><img src=x onerror=console.log('run')>&lt;&#60;\u2028\u2029",
]


@pytest.fixture(scope="module")
def hostile_film(tmp_path_factory):
    """Of a robot whose name, joint and shape are all of these."""
    path, name = tmp_path_factory.mktemp("hostile") / "run.html", "\n".join(HOSTILE)
    model = replace(
        BRICK,
        name=name,
        joints=tuple(replace(joint, name=name) for joint in BRICK.joints),
        geometries=tuple(replace(shape, name=name) for shape in BRICK.geometries),
    )
    dl.Simulation(model).run(Q0[0], steps=5).save_html(path)
    return path, name


class Tags(HTMLParser):
    """The tags of a page, and what is in its scripts, as a browser reads them."""

    def __init__(self):
        super().__init__()
        self.tags, self.script = [], ""

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)

    def handle_data(self, data):
        if self.lasttag == "script":
            self.script += data


def tags_of(path):
    page = Tags()
    page.feed(path.read_text())
    return page


def test_names_of_a_robot_are_text_in_a_film(log, hostile_film, tmp_path):
    log.save_html(tmp_path / "plain.html")
    path, name = hostile_film
    plain, hostile = tags_of(tmp_path / "plain.html"), tags_of(path)
    assert hostile.tags == plain.tags and hostile.tags.count("script") == 1
    assert film_of(path)[1]["name"] == name
    data = hostile.script.partition("const film = ")[2].partition(";\n")[0]
    assert data.isascii() and not set("<>&") & set(data)


def test_a_film_of_a_large_system_has_its_name_as_text(tmp_path):
    rope = replace(dl.particles.rope(segments=3), name="\n".join(HOSTILE))
    dl.particles.simulate_particles(rope, steps=2).save_html(tmp_path / "rope.html")
    assert tags_of(tmp_path / "rope.html").tags.count("script") == 1
    assert film_of(tmp_path / "rope.html")[1]["name"] == rope.name


def test_names_that_look_like_formulas_are_drawn_as_they_are(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    brick = replace(BRICK, geometries=tuple(replace(shape, name="_$\\frac{$<b>") for shape in BRICK.geometries))
    axes = dl.Simulation(brick).run([0, 0, 0.05, 0, 0, 0, 1], steps=3).plot()
    axes.figure.savefig(tmp_path / "force.svg")  # a formula that is none would raise here
    assert len(axes.get_legend().get_texts()) == 1
    assert "<b>" not in (tmp_path / "force.svg").read_text()
    matplotlib.pyplot.close(axes.figure)


BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def browse(path, folder, *options):
    """What a browser says of a film, and what it writes."""
    done = subprocess.run(
        [
            BROWSER, "--headless", "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-sync",
            "--disable-background-networking", "--disable-component-update", f"--user-data-dir={folder / 'profile'}",
            "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--window-size=600,400",
            "--enable-logging=stderr", "--virtual-time-budget=2000", *options, path.as_uri() + "#0.4",
        ],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert not said and done.returncode == 0
    return done.stdout


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")
def test_a_browser_runs_nothing_that_a_name_says(hostile_film, tmp_path):
    page = browse(hostile_film[0], tmp_path, "--dump-dom")
    assert html.escape(HOSTILE[0], quote=False) in page and page.count("<script") == 1


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")
def test_a_browser_draws_robots_ground_and_forces_without_complaint(log, tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    log.save_html(tmp_path / "run.html")
    browse(tmp_path / "run.html", tmp_path, f"--screenshot={tmp_path / 'shot.png'}")
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
