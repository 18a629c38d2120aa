"""Where the elements of an MJCF document are written, and whether the files that they refer to may be opened.

MuJoCo knows the lines of a document, but not those of the files that it includes. It would wait for ever for the other
end of a named pipe, and read a device without end: files that are not regular, or too large, are refused before MuJoCo
opens them. Its rules for where a file is depend on the kind of the element and on <compiler>; here every place that any
of these rules could mean is looked at, and only what exists there is judged. A file that does not exist is MuJoCo's to
report.
"""

from __future__ import annotations

import html
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from delassus.errors import short
from delassus.model.readers.documents.meshes import MAX_MESH_BYTES
from delassus.model.readers.documents.xml import (
    MAX_BYTES,
    Element,
    ModelFileError,
    NotXml,
    decoded,
    read_xml,
    without_comments,
)

_MAX_DOCUMENTS: Final = 1_000
_DOCUMENTS: Final = ("include", "model")
"""Elements whose files are MJCF documents themselves."""

_FILES: Final = tuple("file" + side for side in ("", "right", "left", "up", "down", "front", "back"))
_FOLDERS: Final = ("assetdir", "meshdir", "texturedir")
_KINDS: Final = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_TAG_OR_ATTRIBUTE: Final = re.compile(r"""<(\w+)|\b(\w+)\s{0,9}=\s{0,9}(?:"([^"<]*)"|'([^'<]*)')""")


@dataclass(frozen=True)
class Places:
    """The elements of a document, and the folder in which it looks for others; no root if it is not quite XML."""

    root: Element | None
    folder: Path

    @classmethod
    def of(cls, text: str, file: str) -> Places:
        """Those of a document. MuJoCo reads more than XML, and says itself what it does not read."""
        try:
            root = _root(text, file)
        except NotXml:
            root = None
        return cls(root, Path(file).parent)

    def first(self, condition: Callable[[Element], bool]) -> Element | None:
        """The first element that meets a condition."""
        return next(filter(condition, self), None)

    def document(self) -> Iterator[Element]:
        """The elements of the document itself."""
        return _walk(self.root) if self.root else iter(())

    def __iter__(self) -> Iterator[Element]:
        """All elements, as they are written; those of included files follow the document."""
        roots, seen = [self.root] if self.root else [], set()
        for root in roots:  # which grows on the way
            for element in _walk(root):
                yield element
                file = element.get("file") if element.tag == "include" else None
                if file is not None and file not in seen:
                    seen.add(file)
                    roots += self._included(file, Path(element.file).parent)

    def _included(self, file: str, beside: Path) -> list[Element]:
        """The root of an included file, looked for as MuJoCo does; none if it cannot be read."""
        for folder in (self.folder, beside):
            try:
                if not (folder / file).is_file():
                    continue
                with (folder / file).open("rb") as opened:
                    return [_root(decoded(opened.read(MAX_BYTES + 1)), str(folder / file))]
            except (OSError, ValueError, ModelFileError):
                continue
        return []


def _root(text: str, file: str) -> Element:
    return read_xml(without_comments(text), file)  # MuJoCo takes comments with -- in them, which XML forbids


def _walk(root: Element) -> Iterator[Element]:
    stack = [root]
    while stack:
        element = stack.pop()
        yield element
        stack.extend(reversed(element.children))


# --- files ------------------------------------------------------------------------------------------------------------


def check_regular(path: Path, most: int = MAX_MESH_BYTES) -> str:
    """What is wrong with a file that exists, as a sentence; empty if it is regular and has at most so many bytes."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return ""
    if not stat.S_ISREG(status.st_mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(status.st_mode)), "no regular file")
        return f"{short(str(path), 200)!r} is {kind}; only regular files are read."
    if status.st_size > most:
        return (
            f"{short(str(path), 200)!r} has {status.st_size / 2**20:.0f} MB; such files are read up to "
            f"{most // 2**20} MB."
        )
    return ""


def check_assets(text: str, file: str) -> None:
    """Raise if a document, or one that it includes, refers to what is not a regular file of a sensible size."""
    main = Path(file).parent
    documents, folders = [(text, file)], {main: None}
    names: dict[tuple[str, bool], Element] = {}
    seen: set[Path] = set()
    subfolders = {"": None}
    for content, where in documents:  # which grows on the way
        folders[Path(where).parent] = None
        for element in _elements(content, where):
            if element.tag == "compiler":
                subfolders |= {element.attributes.get(name, "").strip(): None for name in _FOLDERS}
            for name in filter(None, (element.attributes.get(attribute) for attribute in _FILES)):
                names.setdefault((name, element.tag in _DOCUMENTS), element)
                if element.tag in _DOCUMENTS:
                    documents += _included(element, name, (main, Path(where).parent), seen)
    for (name, is_document), element in names.items():
        if is_document:
            continue
        for folder, subfolder, part in _combinations(folders, subfolders, name):
            problem = check_regular(folder / subfolder / part)
            if problem and not (folder / subfolder / part).is_dir():
                raise element.error(problem, code="unreadable-file")


def _combinations(folders: dict[Path, None], subfolders: dict[str, None], name: str) -> Iterator[tuple[Path, str, str]]:
    """Where MuJoCo may look for a file: with its path, or without it (strippath)."""
    for part in dict.fromkeys((name, Path(name.replace("\\", "/")).name)):
        for folder in folders:
            for subfolder in subfolders:
                yield folder, subfolder, part


def _included(element: Element, name: str, folders: tuple[Path, ...], seen: set[Path]) -> list[tuple[str, str]]:
    """The text and the path of a document that another one refers to, where it exists and was not read before."""
    found = []
    for path in dict.fromkeys(folder / name for folder in folders):
        problem = check_regular(path, MAX_BYTES)
        if problem and not path.is_dir():
            raise element.error(problem, code="unreadable-file")
        try:
            if path in seen or len(seen) >= _MAX_DOCUMENTS or not path.is_file():
                continue
            seen.add(path)
            with path.open("rb") as opened:
                found.append((decoded(opened.read(MAX_BYTES + 1)), str(path)))
        except (OSError, ValueError):
            continue
    return found


def _elements(text: str, file: str) -> Iterator[Element]:
    """The elements of a document; of one that MuJoCo reads and that is not quite XML, its attributes by their look."""
    try:
        yield from _walk(_root(text, file))
    except ModelFileError:
        yield from _by_look(without_comments(text), file)


def _by_look(text: str, file: str) -> Iterator[Element]:
    """An element of one attribute each, wherever a text has one after a tag."""
    tag, line, at = "", 1, 0
    for match in _TAG_OR_ATTRIBUTE.finditer(text):
        line, at = line + text.count("\n", at, match.start()), match.start()
        if match[1]:
            tag = match[1]
        else:
            value = match[3] if match[3] is not None else match[4]
            yield Element(tag, {match[2]: html.unescape(value)}, (), "", line, file)
