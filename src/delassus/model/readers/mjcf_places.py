"""Where the elements of an MJCF document are written: file and line, in the document itself and in what it includes.

MuJoCo knows the lines of a document, but not those of the files that it includes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from delassus.model.readers.xml import MAX_BYTES, Element, ModelFileError, NotXml, read_xml
from delassus.model.readers.xml_text import decoded, without_comments


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
