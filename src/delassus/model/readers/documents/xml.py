"""A reader of XML that keeps line numbers and refuses what a model of a robot never needs.

Document type definitions are refused at their first character, and with them every entity, so a file can neither
unfold into more than it holds nor make the reader open another file or an address. Size, depth and number of elements
have bounds, all far above those of any robot.
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias
from xml.parsers import expat

from delassus.errors import DelassusError, short

MAX_BYTES = 16 * 2**20
MAX_DEPTH = 2_000
MAX_ELEMENTS = 200_000
MAX_MAGNITUDE = 1e30  # squares and products of a mass and two lengths stay finite

_DIGITS = frozenset("0123456789+-.eE")
_NONE: Mapping[str, str] = MappingProxyType({})


class ModelFileError(DelassusError):
    """A file that describes no model, with the `file`, the `line` (from 1; 0: the whole file) and the `element`."""

    code = "bad-model-file"

    def __init__(self, sentence: str, file: str, line: int = 0, element: str = "", *, code: str | None = None) -> None:
        self.file = file
        self.line = line
        self.element = element
        where = f"{file}:{line}: " if line else f"{file}: "
        super().__init__(where + (f"<{short(element)}>: " if element else "") + sentence, code=code)


class NotXml(ModelFileError):
    """A text that is not XML at all."""

    code = "not-xml"


@dataclass(frozen=True, slots=True, eq=False)
class Element:
    """An element: its tag, attributes, child elements, text without surrounding white space, and where it begins."""

    tag: str
    attributes: Mapping[str, str] = field(repr=False)
    children: tuple[Element, ...] = field(repr=False)  # a deep document would else exhaust the stack of repr()
    text: str = field(repr=False)
    line: int
    file: str

    def error(self, sentence: str, *, code: str | None = None) -> ModelFileError:
        """An error that points at this element."""
        return ModelFileError(sentence, self.file, self.line, self.tag, code=code)

    def child(self, tag: str) -> Element | None:
        """The first child with this tag, if any."""
        return next((child for child in self.children if child.tag == tag), None)

    def all(self, tag: str) -> tuple[Element, ...]:
        """The children with this tag."""
        return tuple(child for child in self.children if child.tag == tag)

    def get(self, attribute: str) -> str | None:
        """An attribute, if it is there and not blank."""
        value = self.attributes.get(attribute, "")
        return value if value.strip() else None

    def need(self, attribute: str) -> str:
        """An attribute that must be there and not blank."""
        value = self.get(attribute)
        if value is None:
            raise self.error(
                f'the attribute {attribute!r} is missing or empty; write {attribute}="...".', code="missing-attribute"
            )
        return value

    def numbers(self, attribute: str, count: int, default: tuple[float, ...] | None = None) -> tuple[float, ...]:
        """An attribute of finite numbers between white space; without a default it must be there."""
        value = self.get(attribute) if default is not None else self.need(attribute)
        if value is None:
            return default or ()
        words = value.split()
        if len(words) != count:
            raise self.error(
                f'{attribute}="{short(value)}" has {len(words)} numbers; {count} are needed.', code="wrong-shape"
            )
        return tuple(self._number(attribute, word) for word in words)

    def number(self, attribute: str, default: float | None = None) -> float:
        """An attribute that is one finite number; without a default it must be there."""
        return self.numbers(attribute, 1, None if default is None else (default,))[0]

    def measures(self, attribute: str, count: int, default: tuple[float, ...] | None = None) -> tuple[float, ...]:
        """Numbers as above that are lengths, angles, masses or inertias: their products must stay finite, too."""
        values = self.numbers(attribute, count, default)
        for value in values:
            if abs(value) > MAX_MAGNITUDE:
                raise self.error(
                    f"{attribute} is {value:g}; numbers of a robot in SI units must be within ±{MAX_MAGNITUDE:g}.",
                    code="out-of-range",
                )
        return values

    def _number(self, attribute: str, word: str) -> float:
        # float() reads more than XML means by a number: nan, infinity, 1_000, digits of other scripts.
        try:
            value = float(word) if _DIGITS.issuperset(word) else math.nan
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise self.error(
                f'{attribute}: "{short(word)}" is not a finite decimal number such as -1.5e-3.', code="not-a-number"
            )
        return value + 0.0  # -0 and 0 are the same number, and models compare by their bits


_Open: TypeAlias = tuple[str, Mapping[str, str], list[Element], list[str], int]


class _Reader:
    """Builds elements from expat's events, with a stack of its own because documents may be deeper than Python's."""

    def __init__(self, file: str, encoding: str | None) -> None:
        self.file = file
        self.open: list[_Open] = []
        self.count = 0
        self.root: Element | None = None
        self.parser = parser = expat.ParserCreate(encoding)
        parser.buffer_text = True
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = self.characters
        parser.StartDoctypeDeclHandler = self.doctype
        parser.EntityDeclHandler = self.doctype
        parser.ExternalEntityRefHandler = self.doctype

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        line = self.parser.CurrentLineNumber
        self.count += 1
        if self.count > MAX_ELEMENTS or len(self.open) >= MAX_DEPTH:
            bound = f"{MAX_ELEMENTS} elements" if self.count > MAX_ELEMENTS else f"{MAX_DEPTH} levels of elements"
            raise ModelFileError(
                f"the file has more than {bound}, which no robot needs.", self.file, line, tag, code="file-too-large"
            )
        self.open.append((tag, MappingProxyType(attributes) if attributes else _NONE, [], [], line))

    def end(self, _: str) -> None:
        tag, attributes, children, text, line = self.open.pop()
        element = Element(tag, attributes, tuple(children), "".join(text).strip(), line, self.file)
        if self.open:
            self.open[-1][2].append(element)
        else:
            self.root = element

    def characters(self, text: str) -> None:
        self.open[-1][3].append(text)

    def doctype(self, *_: object) -> int:
        raise ModelFileError(
            "the file has a document type definition or an entity, which may pull in other files or unfold without "
            "end; remove <!DOCTYPE ...> and <!ENTITY ...>.",
            self.file,
            self.parser.CurrentLineNumber,
            code="bad-model-file",
        )


def read_xml(source: str | bytes, file: str = "<string>") -> Element:
    """The root element of an XML document of at most 16 MB. `file` is its name in messages."""
    check_size(source, file)
    try:
        # A text is decoded already, whatever encoding its first line names.
        data, encoding = (source.encode(), "utf-8") if isinstance(source, str) else (source, None)
        reader = _Reader(file, encoding)
        reader.parser.Parse(data, True)
    except expat.ExpatError as error:
        what = expat.ErrorString(error.code) or "unreadable"
        raise NotXml(f"this is not XML: {what}.", file, error.lineno) from None
    except (UnicodeError, LookupError, ValueError) as error:
        raise ModelFileError(
            f"the characters cannot be decoded ({error}); save the file as UTF-8.", file, code="unreadable-file"
        ) from None
    if reader.root is None:
        raise NotXml("this is not XML: no element found.", file)
    return reader.root


def check_size(source: str | bytes, file: str) -> None:
    """Raise if a document has more than `MAX_BYTES`; a text counts as UTF-8."""
    size = len(source)
    if isinstance(source, str) and size <= MAX_BYTES < 4 * size:
        size = len(source.encode(errors="replace"))
    if size > MAX_BYTES:
        raise too_large(file, size)


def too_large(file: str, size: int) -> ModelFileError:
    """The error for a file of more than `MAX_BYTES`."""
    return ModelFileError(
        f"the file has {size / 2**20:.1f} MB; models are read up to {MAX_BYTES // 2**20} MB.",
        file,
        code="file-too-large",
    )


# --- as text, before it is parsed: each function walks it once, from front to back ------------------------------------

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
