"""XML as text: encodings, comments, the tag of the root element; and that nothing takes longer than its length."""

import time

import pytest

from delassus.errors import DelassusError
from delassus.model.model import Model
from delassus.model.parts import Frame
from delassus.model.readers.documents.xml import MAX_BYTES, ModelFileError, decoded, root_tag, without_comments
from delassus.model.readers.load import load
from delassus.model.readers.mjcf_names import _named
from refusals import refuses
from urdf_samples import arm

LONG = 1_000_000
SECONDS = 5.0  # for what takes some milliseconds


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("<robot/>", "robot"),
        (" \n<?xml version='1.0'?><!-- a > b -- c --><?x?>\n<!----><mujoco model='m'>", "mujoco"),
        ("\ufeff<xacro:robot>", "xacro:robot"),
        ("<!-- <robot/> --><mujoco/>", "mujoco"),
        ("<!-- <robot/>", ""),
        ("<?xml", ""),
        ("<!DOCTYPE mujoco><mujoco/>", ""),
        ("text<robot/>", ""),
        ("", ""),
        ("<", ""),
    ],
)
def test_the_tag_of_the_root_is_the_first_that_is_no_comment_or_instruction(text, tag):
    assert root_tag(text) == tag


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_unicode_is_decoded_by_its_byte_order_mark(encoding):
    text = "<mujoco model='机 Ω'/>"
    assert decoded(("\ufeff" + text).encode(encoding)) == text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
def test_unicode_without_a_mark_is_decoded_by_its_first_character(encoding):
    text = "<mujoco model='机 Ω'/>"
    assert decoded(text.encode(encoding)) == text


@pytest.mark.parametrize("encoding", ["iso-8859-1", "ISO-8859-15", "windows-1252"])
def test_other_encodings_are_decoded_by_the_first_line(encoding):
    text = f"<?xml version='1.0' encoding='{encoding}'?><mujoco model='é'/>"
    assert decoded(text.encode(encoding)) == text


@pytest.mark.parametrize("encoding", ["iso-8859-99", "punycode", "hex", "no-such"])
def test_an_encoding_that_is_not_known_counts_as_utf_8(encoding):
    text = f"<?xml version='1.0' encoding='{encoding}'?><mujoco model='é'/>"
    assert decoded(text.encode()) == text


def test_comments_leave_their_line_breaks():
    assert without_comments("<a>\n<!-- 1 -- \n 2 --><b/><!--->-->\n</a>") == "<a>\n\n<b/>\n</a>"


def test_a_comment_without_end_is_left():
    assert without_comments("<a/><!-- 1 --><!-- <b/>") == "<a/><!-- <b/>"


# --- long texts -------------------------------------------------------------------------------------------------------


def timed(call, *arguments):
    """What a call gives, or the error that it raises, if it does not take long."""
    start = time.perf_counter()
    try:
        return call(*arguments)
    except DelassusError as error:
        return error
    finally:
        assert time.perf_counter() - start < SECONDS


def test_a_document_type_behind_some_comments_is_refused_at_once():
    error = timed(load, "<!---->" * 28 + "<!DOCTYPE robot><robot/>")
    assert "document type definition" in str(error)


REPEATED = {
    "comments": "<!---->",
    "comments with spaces": " <!-- -->\n",
    "instructions": "<?a?>",
    "comments without end": "<!--",
    "half-closed comments": "<!--->",
    "instructions without end": "<?",
    "white space": " ",
    "line breaks": "\n",
    "brackets": "<",
    "dashes": "-->",
    "names": "<a",
    "declarations": "<?xml encoding=",
}


@pytest.mark.parametrize("before", ["", "<?xml encoding='", "<mujoco>"])
@pytest.mark.parametrize("case", REPEATED)
def test_a_long_text_takes_time_in_proportion(case, before):
    text = before + REPEATED[case] * (LONG // len(REPEATED[case]))
    for end in ("", "<!DOCTYPE robot><robot/>"):
        timed(root_tag, text + end)
        timed(decoded, (text + end).encode())
        timed(without_comments, text + end)
        assert isinstance(timed(load, "<!-- -->" + text + end), ModelFileError)


@pytest.mark.parametrize("text", ["<mujoco>" + " " * MAX_BYTES + "</mujoco>", "<mujoco>" + "机" * (MAX_BYTES // 2)])
def test_mjcf_of_more_than_16_mb_is_refused(text):
    with refuses("file-too-large", "16"):
        load(text)


def test_the_size_of_a_text_is_that_of_its_bytes():
    text = arm().replace('"r"', f'"{"机" * (MAX_BYTES // 2)}"')
    with refuses("file-too-large", "16"):
        load(text)


def test_many_parts_without_names_are_named_in_no_long_time():
    assert timed(_named, ["", "body2"] * 20_000, ["body"] * 40_000)[-2] == "body20001"


def test_a_repeated_name_among_many_is_found_in_no_long_time():
    frames = tuple(Frame(f"f{k}", -1) for k in range(30_000))
    assert "more than one frame named 'f7'" in str(timed(Model, "many", (), (*frames, frames[7])))
