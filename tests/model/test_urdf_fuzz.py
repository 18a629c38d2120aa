"""Broken and hostile files: a model or an error of Delassus comes out, quickly, and never anything else."""

import random
import time
from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delassus.errors import DelassusError
from delassus.model.model import Model
from delassus.model.readers.documents.xml import MAX_BYTES, MAX_DEPTH, MAX_ELEMENTS, ModelFileError, read_xml
from delassus.model.readers.load import load
from delassus.model.readers.urdf import read_urdf
from how_many import examples
from refusals import refuses
from urdf_samples import FIXED, MASS, MESH, arm, mimicking, robot

SMALL = ("double_pendulum_simple.urdf", "TwoDofs.urdf", "borinot_flying_arm_2.urdf", "quadrotor_base.urdf")
COLOR = '<material name="m"><color rgba="1 0 0 1"/></material>'


def real_files():
    """Small robots of example-robot-data, where it is installed."""
    try:
        import pinocchio
    except ImportError:
        return []
    prefix = next((p for p in Path(pinocchio.__file__).parents if p.name == "cmeel.prefix"), Path("/nowhere"))
    return [f.read_text() for f in prefix.glob("share/example-robot-data/robots/**/*.urdf") if f.name in SMALL]


SEEDS = [
    FIXED,
    mimicking('<mimic joint="j1" multiplier="2"/>', '<mimic joint="j2" offset="1"/>', "<dynamics damping='1'/>"),
    arm('<origin xyz="1 2 3" quat_xyzw="0 0 0 1"/>', "floating", MASS + MESH.format("package://p/m.stl") + COLOR),
    arm('<origin xyz="1 2 3" rpy="1 2 3"/><axis xyz="0 1 1"/>', "planar"),
    *real_files(),
]
VALUES = [
    "", " ", "0", "-1", "1e-320", "1e308", "-1e308", "1e29 -1e29 1e29", "1e999", "nan", "inf", "0 0 0", "1 2",
    "1 1 1 1", "1e-200 0 0 1e-200", "0x10", "١", "1_0", "\x85", "fixed", "floating", "planar", "root_joint", "a" * 300,
    "package://", "package://p", "file://%00", "package:///../x", "://", "/", "..", "~", "$(find x)", "<", "&",
]  # fmt: skip


def outcome(text, **options):
    """Reads; anything but a model or an error of Delassus fails the test by itself."""
    try:
        model = read_urdf(text, **options)
    except DelassusError as error:
        assert str(error)
        return error
    assert isinstance(model, Model)
    assert model.digest
    return model


def mutated(seed: str, rng: random.Random) -> str:
    """A document with some of its elements deleted, repeated, moved, renamed, or with other values."""
    tree = ElementTree.fromstring(seed)
    for _ in range(rng.randint(1, 4)):
        parents = [e for e in tree.iter() if len(e)]
        parent = rng.choice(parents or [tree])
        child = rng.choice(list(parent) or [tree])
        action = rng.choice(["delete", "repeat", "move", "swap", "value", "value", "value", "drop", "tag"])
        if action == "delete" and child is not tree:
            parent.remove(child)
        elif action == "repeat" and child is not tree:
            parent.append(child)
        elif action == "move" and child is not tree:
            parent.remove(child)
            rng.choice([e for e in tree.iter() if e not in child.iter()]).append(child)
        elif action == "swap":
            parent[:] = rng.sample(list(parent), len(parent))
        elif action == "tag":
            child.tag = rng.choice([e.tag for e in tree.iter()])
        elif child.attrib:
            key = rng.choice(list(child.attrib))
            others = [v for e in tree.iter() for v in e.attrib.values()]
            child.attrib[key] = rng.choice(VALUES + others)
            if action == "drop":
                del child.attrib[key]
    return ElementTree.tostring(tree, "unicode")


@settings(max_examples=examples(600), deadline=None)
@given(
    seed=st.sampled_from(SEEDS),
    rng=st.randoms(use_true_random=False),
    root=st.sampled_from(["fixed", "free"]),
    mimic=st.sampled_from(["reduce", "ignore"]),
)
def test_documents_with_broken_elements_raise_nothing_else(seed, rng, root, mimic):
    outcome(mutated(seed, rng), root=root, mimic=mimic)


@settings(max_examples=examples(200), deadline=None)
@given(seed=st.sampled_from(SEEDS), at=st.floats(0, 1), length=st.integers(0, 40), junk=st.binary(max_size=20))
def test_documents_with_broken_bytes_raise_nothing_else(seed, at, length, junk):
    data = seed.encode()
    k = int(at * len(data))
    outcome(data[:k] + junk + data[k + length :])


@settings(max_examples=examples(100), deadline=None)
@given(seed=st.sampled_from(SEEDS), at=st.floats(0, 0.999))
def test_truncated_documents_are_refused(seed, at):
    text = seed.rstrip()
    assert isinstance(outcome(text[: int(at * len(text))]), ModelFileError)


@settings(max_examples=examples(100), deadline=None)
@given(data=st.binary(max_size=200))
def test_random_bytes_are_refused(data):
    assert isinstance(outcome(data), ModelFileError)


@settings(max_examples=examples(100), deadline=None)
@given(text=st.text(st.characters(codec=None), max_size=50))
def test_random_sources_raise_nothing_else(text):
    with suppress(DelassusError):
        load(text)


@pytest.mark.parametrize("text", ["~no-such-user/r.urdf", "a\0b.urdf", "\ud800.urdf", "x" * 5000, "\0/r.urdf", "", "."])
def test_paths_that_cannot_be_are_refused(text):
    with pytest.raises(DelassusError):
        load(text)


def declared(dtd):
    return f"<?xml version='1.0'?>\n<!DOCTYPE robot {dtd}>\n<robot name='&a;'>&a;</robot>"


BOMB = "".join(f"<!ENTITY {chr(98 + k)} '{f'&{chr(97 + k)};' * 10}'>" for k in range(9))


@pytest.mark.parametrize(
    "dtd",
    [
        "",
        "SYSTEM 'http://localhost/robot.dtd'",
        f"[<!ENTITY a 'lol'>{BOMB}]",
        "[<!ENTITY a SYSTEM 'file:///etc/passwd'>]",
        "[<!ENTITY % a SYSTEM 'http://localhost/a'> %a;]",
        f"[<!ENTITY a '{'a' * 100_000}'>]",
    ],
    ids=["plain", "external", "billion laughs", "external entity", "parameter entity", "quadratic"],
)
def test_document_types_and_entities_are_refused_at_once(dtd):
    with refuses("bad-model-file") as caught:
        read_urdf(declared(dtd))
    assert caught.value.line == 2


def test_a_file_of_100_mb_is_refused_quickly(tmp_path):
    file = tmp_path / "large.urdf"
    with file.open("wb") as f:
        f.write(b"<robot name='r'>")
        f.truncate(100 * 2**20)  # zeros that the disk does not hold
    start = time.perf_counter()
    with refuses("file-too-large", "100.0", MAX_BYTES // 2**20):
        load(file)
    assert time.perf_counter() - start < 1.0


def test_a_text_that_is_too_long_is_refused():
    with refuses("file-too-large"):
        read_xml(" " * (MAX_BYTES + 1))


def test_a_file_without_end_is_refused():
    with refuses("unreadable-file"):
        load("/dev/zero")


def test_elements_nested_100_000_deep_are_refused():
    with refuses("file-too-large", MAX_DEPTH, "levels"):
        read_urdf("<robot>" * 100_000 + "</robot>" * 100_000)


def test_elements_nested_as_deep_as_allowed_are_read():
    assert read_urdf(robot("<a>" * (MAX_DEPTH - 1) + "</a>" * (MAX_DEPTH - 1), "<link name='l'/>")).nv == 0


def test_too_many_elements_are_refused():
    with refuses("file-too-large", MAX_ELEMENTS, "elements"):
        read_xml("<a>" + "<b/>" * MAX_ELEMENTS + "</a>")


@pytest.mark.parametrize("text", [b"\0" * 10, arm().replace("r", "\0").encode(), arm().encode() + b"\0"])
def test_null_bytes_are_refused(text):
    assert isinstance(outcome(text), ModelFileError)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "utf-8"])
def test_unicode_is_read_in_its_encodings(encoding):
    name = "机器人 Ω"
    assert read_urdf(arm().replace('"r"', f'"{name}"').encode(encoding)).name == name


def test_the_encoding_in_the_first_line_counts_for_bytes_only():
    text = "<?xml version='1.0' encoding='iso-8859-1'?>" + arm().replace('"r"', '"é"')
    assert read_urdf(text).name == read_urdf(text.encode("iso-8859-1")).name == "é"


@pytest.mark.parametrize("encoding", ["utf-7", "hex", "no-such", "../x", "big5"])
def test_other_encodings_are_refused(encoding):
    with pytest.raises(ModelFileError, match=r"save the file as UTF-8|not XML"):
        read_urdf(f"<?xml version='1.0' encoding='{encoding}'?>{arm()}".encode())


def test_many_joints_with_the_names_of_links_take_no_long_time():
    names = ["x" + "_joint" * k for k in range(400)]
    links = [f"<link name='{name}'/>" for name in ("a", *names)]
    joints = [f"<joint name='{n}' type='fixed'><parent link='a'/><child link='{n}'/></joint>" for n in names]
    start = time.perf_counter()
    assert len(read_urdf(robot(*links, *joints)).frame_list) == 801
    assert time.perf_counter() - start < 2.0


def test_a_long_number_takes_no_long_time():
    start = time.perf_counter()
    with refuses("not-a-number"):
        read_urdf(arm(f'<limit lower="{"1" * 1_000_000}"/>'))
    assert time.perf_counter() - start < 2.0
