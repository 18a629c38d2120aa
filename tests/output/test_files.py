"""Files that are written and read: nothing else is written over, and whatever is read is a trajectory or one error."""

import contextlib
import io
import os
import stat
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import delassus as dl
from bodies import BRICK
from delassus.common import archives
from delassus.model import Frame
from delassus.output.errors import TrajectoryFileError
from refusals import refuses

SIM = dl.Simulation(replace(BRICK, frame_list=(Frame("brick", 0),)))


@pytest.fixture(scope="module")
def log():
    return SIM.run([[0, 0, 0.06, 0, 0, 0, 1], [0, 0, 0.05, 0, 0, 0, 1]], steps=6)


@pytest.fixture(scope="module")
def motion():
    falls = dl.stepping.Event(lambda time, q, v: q[2] - 0.999, name="falls", ends=False)
    return dl.simulate_motion(
        BRICK, [0, 0, 1.0, 0, 0, 0, 1], times=[0.0, 0.01, 0.02], events=falls, method="rk4", step=0.01
    )


SAVES = {"npz": "save", "html": "save_html"}


@pytest.fixture(params=SAVES)
def save(request, log):
    return getattr(log, SAVES[request.param])


# --- writing ----------------------------------------------------------------------------------------------------------


def test_saving_writes_to_no_other_file(save, tmp_path):
    others = {tmp_path / f"run{end}": end for end in (".partial", ".x.partial", ".tmp", "~")}
    for path, text in others.items():
        path.write_text(text)
    save(tmp_path / "run")
    assert all(path.read_text() == text for path, text in others.items())
    assert {p.name for p in tmp_path.iterdir()} == {"run", *(p.name for p in others)}


def test_saving_follows_no_link_that_somebody_prepared(save, tmp_path):
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "run.partial").symlink_to(tmp_path / "victim")
    save(tmp_path / "run")
    assert (tmp_path / "victim").read_text() == "precious" and (tmp_path / "run.partial").is_symlink()


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_and_its_target_is_replaced(save, tmp_path, exists):
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" / "run"
    if exists:
        target.write_text("before")
    for link, to in (("inner", "folder/run"), ("outer", "inner")):
        (tmp_path / link).symlink_to(to)
    save(tmp_path / "outer")
    assert (tmp_path / "outer").is_symlink() and (tmp_path / "inner").is_symlink()
    assert target.is_file() and not target.is_symlink() and target.stat().st_size > 100
    assert [p.name for p in target.parent.iterdir()] == ["run"]


def test_links_that_lead_in_a_circle_are_told(save, tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with refuses("unwritable-file"):
        save(tmp_path / "a")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"] and (tmp_path / "a").is_symlink()


def test_a_file_keeps_its_permissions_and_a_new_one_has_those_of_the_process(save, tmp_path):
    (tmp_path / "old").touch(0o640)
    (tmp_path / "plain").touch()
    for name in ("old", "new"):
        save(tmp_path / name)
    modes = {name: stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("old", "new", "plain")}
    assert modes["old"] == 0o640 and modes["new"] == modes["plain"]


@pytest.mark.parametrize("path", ["a\0b", "x" * 300, "no/such/folder"])
def test_paths_that_cannot_be_are_told(save, tmp_path, path):
    with refuses("unwritable-file"):
        save(f"{tmp_path}/{path}")
    assert not list(tmp_path.iterdir())


def test_a_writer_that_is_interrupted_leaves_no_file(tmp_path):
    def fill(file):
        file.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        archives.write("it", tmp_path / "run", fill, TrajectoryFileError)
    assert not list(tmp_path.iterdir())


# --- reading: what is damaged -----------------------------------------------------------------------------------------


def use(log):
    """All that follows from a trajectory without its mechanism."""
    parts = [log.describe(), repr(log), log.statuses, log[0], log[:1], log[-1]]
    if log.contacts is not None:
        parts += [log.contact_force, log.contact_moment, *map(log.normal_force, log.contacts.touching)]
    return parts


def read(path, load=dl.Trajectory.load):
    """Whether a file is read, and can be used; raises nothing but its one error."""
    try:
        found = load(path)
    except TrajectoryFileError:
        return False
    return bool(use(found))


@pytest.fixture(params=["log", "motion"])
def saved(request, tmp_path):
    path = tmp_path / "log.npz"
    request.getfixturevalue(request.param).save(path)
    return path


def test_a_file_that_is_cut_anywhere_is_no_trajectory(saved):
    whole = saved.read_bytes()
    for end in np.unique(np.linspace(0, len(whole) - 1, 100).astype(int)):
        saved.write_bytes(whole[:end])
        assert not read(saved)


def test_a_file_with_flipped_bits_is_a_trajectory_or_one_error(saved):
    whole, rng = saved.read_bytes(), np.random.default_rng(0)
    with zipfile.ZipFile(saved) as archive:
        before = archive.start_dir  # the directory of names and sizes is where flips do most
    places = [*rng.integers(0, len(whole), 300), *rng.integers(before, len(whole), 500)]
    refused = 0
    for place in places:
        flipped = bytearray(whole)
        flipped[place] ^= 1 << rng.integers(8)
        saved.write_bytes(flipped)
        refused += not read(saved)
    assert refused > 300


def test_random_bytes_are_no_trajectory(tmp_path):
    rng = np.random.default_rng(0)
    for size in (0, 1, 22, 100, 10_000):
        (tmp_path / "x.npz").write_bytes(b"PK\x05\x06"[:size] + rng.bytes(max(size - 4, 0)))
        assert not read(tmp_path / "x.npz")


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_no_file_is_not_waited_for(tmp_path, kind):
    path = tmp_path / kind
    path.mkdir() if kind == "folder" else os.mkfifo(path)
    with refuses("unreadable-file"):
        dl.Trajectory.load(path)


# --- reading: what is crafted -----------------------------------------------------------------------------------------


def rewritten(path, **changes):
    """The same file with other arrays; None leaves one out."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files} | {k.replace("__", " "): x for k, x in changes.items()}
    np.savez(path, **{name: x for name, x in arrays.items() if x is not None})
    return path


@pytest.mark.parametrize(
    "changes",
    [
        {"q": np.zeros(())},
        {"q": np.zeros((7, 2))},
        {"q": np.zeros((3, 2, 7))},
        {"q": np.zeros((0, 2, 7)), "time": np.zeros(0)},
        {"q": np.full((7, 2, 7), "x")},
        {"q": np.zeros((7, 2, 7), complex)},
        {"v": np.zeros((7, 3, 6))},
        {"time": np.zeros((7, 1))},
        {"time": np.arange(7.0)[::-1]},
        {"time": np.full(7, np.nan)},
        {"time": None},
        {"status": np.full((7, 2), -1)},
        {"status": np.full((7, 2), 1 << 40)},
        {"status": np.zeros((7, 2))},
        {"status": np.zeros((2, 7), int)},
        {"steps": np.zeros(3, int)},
        {"residual": np.zeros((7, 2, 1))},
        {"energy": np.zeros((7, 3))},
        {"event__x": np.zeros((7, 2))},
        {"parameters": np.zeros((3, 5))},
        {"contacts__impulse": None},
        {"contacts__impulse": np.zeros((7, 2, 3))},
        {"contacts__impulse": np.zeros((6, 2, 24))},
        {"contacts__contact": np.full((7, 2, 8), 99.0)},
        {"contacts__contact": np.full((7, 2, 8), -1.0)},
        {"contacts__contact": np.full((7, 2, 8), np.nan)},
        {"contacts__contact": np.full((7, 2, 8), 0.5)},
        {"contacts__contact": np.zeros((7, 2, 0, 8))},
        {"contacts__rows": np.array(5)},
        {"contacts__rows": np.array(-3)},
        {"contacts__rows": np.array("x")},
        {"contacts__rows": np.array(2**62)},
        {"contacts__rows": np.array(np.nan)},
        {"contacts__rows": np.array(np.inf)},
        {"contacts__time_step": np.array(0.0)},
        {"contacts__time_step": np.zeros(3)},
        {"contacts__shapes": np.zeros(8)},
        {"contacts__shapes": np.array("box")},
        {"contacts__shapes": np.array([], "U1")},
    ],
    ids=lambda changes: ",".join(f"{name} {getattr(x, 'shape', x)}" for name, x in changes.items()),
)
def test_arrays_that_do_not_fit_are_refused_when_they_are_read(log, tmp_path, changes):
    log.save(tmp_path / "log.npz")
    with pytest.raises(TrajectoryFileError, match=r"log\.npz( is not a trajectory|: its part 'q)"):
        dl.Trajectory.load(rewritten(tmp_path / "log.npz", **changes))


@pytest.fixture(scope="module")
def repeatable():
    """A run whose controls, pushes and resets are recorded."""
    start = np.array([[0, 0, 0.06, 0, 0, 0, 1], [0, 0, 0.05, 0, 0, 0, 1]], float)
    push = lambda time, q, v: dl.simulation.Push({"brick": np.ones((2, 6))}, np.zeros((2, 6)))  # noqa: E731
    restart = lambda k, state: SIM.reset(state, [True, False], start[0]) if k == 3 else None  # noqa: E731
    return SIM.run(start, steps=6, push=push, progress=restart, recording="replay")


@pytest.mark.parametrize(
    "changes",
    [
        {"time": np.linspace(0.0, 1e300, 7)},
        {"residual": np.zeros(2)},
        {"activation": np.zeros(3)},
        {"tally": np.zeros((6, 2, 3))},
        {"memory": np.zeros(())},
        {"tau": np.zeros((7, 2, 5))},
        {"run__begin": np.array(1e308)},
        {"replay__control": np.zeros(())},
        {"replay__control": np.zeros((6, 3, 1))},
        {"replay__failures": np.full((5, 2), 99)},
        {"replay__push__1__frames": np.array("brick")},
        {"replay__push__1__frames": None},
        {"replay__push__1__wrench": np.zeros((2, 6))},
        {"replay__push__1__kick": np.zeros((2, 5))},
        {"replay__reset__4__items": np.array([2])},
        {"replay__reset__4__items": np.array(0)},
        {"replay__reset__4__q": np.zeros(7)},
        {"replay__reset__4__residual": None},
    ],
    ids=lambda changes: ",".join(f"{name} {getattr(x, 'shape', x)}" for name, x in changes.items()),
)
def test_inputs_of_a_replay_that_do_not_fit_are_refused_when_they_are_read(repeatable, tmp_path, changes):
    repeatable.save(tmp_path / "log.npz")
    assert {name.replace("__", " ") for name, x in changes.items() if x is None} <= set(np.load(tmp_path / "log.npz"))
    assert dl.Trajectory.load(tmp_path / "log.npz", SIM).replay.resets.keys() == {4}
    with pytest.raises(TrajectoryFileError, match=r"log\.npz is not a trajectory"):
        dl.Trajectory.load(rewritten(tmp_path / "log.npz", **changes), SIM)


def crafted(path, shape, dtype="<f8", data=b"", **fields):
    """An archive with one array whose header says what it likes."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": dtype, "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("q.npy", header.getvalue() + data)
        for name, value in fields.items():
            setattr(archive.infolist()[0], name, value)
    return path


@pytest.mark.parametrize("shape", [(1 << 40,), (1 << 31, 1 << 31), (1 << 62, 4), (-1,), (2, -3), (10**30,)])
def test_sizes_are_compared_before_memory_is_taken(tmp_path, shape):
    with refuses("unreadable-file"):
        dl.Trajectory.load(crafted(tmp_path / "q.npz", shape, data=bytes(64)))


def test_sizes_that_an_archive_only_claims_are_refused(tmp_path):
    size = 1 << 31
    path = crafted(tmp_path / "q.npz", (size // 8,), data=bytes(64), file_size=size)
    with refuses("unreadable-file"):
        dl.Trajectory.load(path)


def test_arrays_that_do_not_fit_into_memory_are_refused(log, tmp_path, monkeypatch):
    log.save(tmp_path / "log.npz")
    monkeypatch.setattr(archives, "free_memory", lambda: 4096.0)
    with refuses("unreadable-file", "GB"):
        dl.Trajectory.load(tmp_path / "log.npz")


@pytest.mark.parametrize("dtype", ["|O", "|V8", [("a", "<f8")], "<M8[s]", "<U0"])
def test_arrays_of_other_things_than_numbers_and_texts_are_refused(tmp_path, dtype):
    with refuses("unreadable-file"):
        dl.Trajectory.load(crafted(tmp_path / "q.npz", (1,), dtype, data=bytes(8)))


def test_a_simulation_with_other_shapes_is_not_what_a_file_is_of(log, tmp_path):
    log.save(tmp_path / "log.npz")
    other = dl.Simulation(BRICK, max_contacts=0)
    with refuses("other-system", "0"):
        dl.Trajectory.load(tmp_path / "log.npz", other)


# --- trajectories by hand ---------------------------------------------------------------------------------------------


def test_a_trajectory_of_ones_own_may_be_of_lists_and_of_a_model():
    q = [[0, 0, 1.0, 0, 0, 0, 1]] * 2
    log = dl.Trajectory([0.0, 0.1], q, np.zeros((2, 6)), mechanism=BRICK)
    np.testing.assert_allclose(log.energy, BRICK.mass * 9.81, rtol=1e-12)


def test_a_trajectory_leaves_the_arrays_of_others_writable():
    q = np.zeros((2, 7))
    log = dl.Trajectory(np.arange(2.0), q, np.zeros((2, 6)))
    q[0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        log.q[0] = 2.0


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"q": "x"}, ("not-a-number",)),
        ({"q": [[1.0], [1.0, 2.0]]}, ("not-a-number",)),
        ({"v": np.zeros((3, 6))}, ("wrong-shape",)),
        ({"time": []}, ("not-increasing",)),
        ({"events": 3}, ("wrong-type",)),
        ({"contacts": 3}, ("wrong-type",)),
        ({"mechanism": "brick"}, ("wrong-type", "not")),
        ({"mechanism": dl.load("pendulum")}, ("other-system", "1", "mechanism")),
    ],
)
def test_parts_that_do_not_make_a_trajectory_are_refused(changes, refusal):
    parts = {"time": np.arange(2.0), "q": np.zeros((2, 7)), "v": np.zeros((2, 6))}
    with refuses(*refusal):
        dl.Trajectory(**parts | changes)


# --- large systems ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"time": np.zeros(0)},
        {"x": np.zeros((3, 2, 3))},
        {"v": np.zeros((3, 4))},
        {"status": np.full(3, 77)},
        {"status": np.zeros(3)},
        {"touched": np.zeros(2)},
        {"impulse": np.zeros(99)},
        {"contact": np.full((0, 3), "x")},
    ],
    ids=str,
)
def test_files_of_large_systems_are_checked(tmp_path, changes):
    rope = dl.particles.rope(segments=3)
    dl.particles.simulate_particles(rope, steps=2).save(tmp_path / "rope.npz")
    with refuses("other-file"):
        dl.particles.ParticleTrajectory.load(rewritten(tmp_path / "rope.npz", **changes), rope)


# --- contact problems -------------------------------------------------------------------------------------------------


def test_files_of_contact_problems_are_read_or_refused(tmp_path):
    path = tmp_path / "problem.npz"
    dl.ContactProblem(np.eye(3), np.ones(3), friction=0.5).save(path)
    whole, rng = path.read_bytes(), np.random.default_rng(1)
    for place in rng.integers(0, len(whole), 300):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << rng.integers(8)
        path.write_bytes(flipped)
        with contextlib.suppress(dl.DelassusError):
            dl.ContactProblem.load(path)
    for cones in ("Friction ²", "Friction " + "9" * 5000, "Free 99999999999"):
        np.savez(path, G=np.eye(3), g=np.ones(3), cones=np.array([cones]), friction=np.array([0.5]))
        with pytest.raises(dl.DelassusError):
            dl.ContactProblem.load(path)
    with refuses("unreadable-file", kind=OSError):
        dl.ContactProblem.load(Path(tmp_path / "none.npz"))
