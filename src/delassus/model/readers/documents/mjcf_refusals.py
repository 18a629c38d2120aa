"""What MuJoCo refuses, in its own words, with the file, the line and the element that it means."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice

from delassus.model.readers.documents.mjcf_places import Places
from delassus.model.readers.documents.xml import Element, ModelFileError

_OF_TAG = re.compile(r" Element '([^']*)', line (\d{1,9})$")
_OF_NAME = re.compile(r" Element name '(.*?)', id (\d{1,9})(?:, line (\d{1,9}))?$")
_OF_PARSER = re.compile(r" Line number=(\d{1,9})")
_QUOTED = re.compile(r"'([^']+)'")


def refused(error: Exception, file: str, places: Places) -> ModelFileError:
    """The error for what MuJoCo raised on a document."""
    text = one_line(str(error)).removesuffix(".")
    by_tag, by_name, by_parser = _OF_TAG.search(text), _OF_NAME.search(text), _OF_PARSER.search(text)
    line, element = 0, None
    if by_tag:
        line, text = int(by_tag[2]), text[: by_tag.start()]
        element = _at(places, line, tag=by_tag[1]) if line else _quoted(places, text, by_tag[1])
    elif by_name:
        name, number, line, text = by_name[1], int(by_name[2]), int(by_name[3] or 0), text[: by_name.start()]
        element = _at(places, line, name=name) if line else _named(places, text, name, number)
        text += f" (name {name!r})" if name else ""
    elif by_parser:
        line = int(by_parser[1])
    else:
        element = _quoted(places, text)
    sentence = f"MuJoCo refuses this: {text}."
    return (
        element.error(sentence, code="mujoco-refused")
        if element
        else ModelFileError(sentence, file, line, by_tag[1] if by_tag else "", code="mujoco-refused")
    )


def one_line(text: str) -> str:
    """A text of several lines as a sentence."""
    return " ".join(text.split()).rstrip(".") + "."


def _at(places: Places, line: int, tag: str = "", name: str = "") -> Element | None:
    """The one element of a line that has a tag or a name; None if several do."""

    def fits(element: Element) -> bool:
        return element.line == line and (element.tag == tag if tag else element.attributes.get("name", "") == name)

    return _only(filter(fits, places.document()))


def _named(places: Places, text: str, name: str, number: int) -> Element | None:
    """The element of a name; that of a keyframe without one by its number."""
    if name:
        return places.first(lambda element: element.attributes.get("name") == name)
    keys = [element for element in places if element.tag == "key"] if " keyframe " in text else []
    return keys[number] if number < len(keys) else None


def _quoted(places: Places, text: str, tag: str = "") -> Element | None:
    """The one element, perhaps of a tag, that has an attribute or a value that MuJoCo quotes; None if several do.

    Of those with one name, the last is the one too many. Files are quoted with their folders.
    """
    quoted = _QUOTED.findall(text)
    words = {*quoted, *(word.rpartition("/")[2] for word in quoted)}

    def fits(element: Element) -> bool:
        return tag in ("", element.tag) and not words.isdisjoint({*element.attributes, *element.attributes.values()})

    found = list(filter(fits, places))
    return found[-1] if found and "repeated name" in text else _only(found)


def _only(elements: Iterable[Element]) -> Element | None:
    found = list(islice(elements, 2))
    return found[0] if len(found) == 1 else None
