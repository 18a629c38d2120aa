"""XML as text, before it is parsed: its encoding, its comments and the tag of its root element.

Each function walks the text once, from front to back: its time is in proportion to the text, whatever that holds.
"""

from __future__ import annotations

import codecs
import re

_MARKS = (  # those of UTF-32 begin as those of UTF-16 do
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (b"<\0", "utf-16-le"),  # no mark, but an ASCII character of two bytes
    (b"\0<", "utf-16-be"),
)
_DECLARED = re.compile(rb"""<\?xml[^>]{0,100}?encoding\s{0,9}=\s{0,9}["'](iso-8859-\d{1,2}|windows-125\d)["']""", re.I)
_NEXT = re.compile(r"\s*(<!--|<\?|<[\w:.-]+)")
_ENDS = {"<!--": "-->", "<?": "?>"}  # of comments and of instructions


def decoded(source: str | bytes) -> str:
    """A document as text: by its byte order mark, by what its first line declares, or as UTF-8.

    What has no meaning in the encoding becomes �: it is for readers that ask for less than `read_xml`.
    """
    if isinstance(source, str):
        return source.removeprefix("\ufeff")
    declared = _DECLARED.match(source)
    encoding = next((name for mark, name in _MARKS if source.startswith(mark)), "utf-8")
    try:
        text = source.decode(declared[1].decode() if declared else encoding, errors="replace")
    except LookupError:  # one of those names that no encoding has
        text = source.decode(errors="replace")
    return text.removeprefix("\ufeff")


def without_comments(text: str) -> str:
    """The text with nothing but the line breaks of its comments, so that lines keep their numbers."""
    parts, at = [], 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        parts += [text[at:start], "\n" * text.count("\n", start, end)]
        at = end + 3
    return "".join((*parts, text[at:]))


def root_tag(source: str | bytes) -> str:
    """The tag of the root element; empty if it is not easily seen.

    It asks for less than `read_xml`: MuJoCo reads comments with -- in them, which XML forbids.
    """
    text, at = decoded(source), 0
    while (found := _NEXT.match(text, at)) is not None:
        end = _ENDS.get(found[1])
        if end is None:
            return found[1][1:]
        past = text.find(end, found.end())
        if past < 0:
            break
        at = past + len(end)
    return ""
