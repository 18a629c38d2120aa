"""The table of file formats that `load` reads. Each registers itself next to its reader.

    @register_format("sdf", suffixes=(".sdf", ".world"), root_tag="sdf", options=("packages",))
    def read_sdf(data: str | bytes, file: str, *, packages: Packages = ()) -> Model: ...

A format is selected by its name, else by the tag of the root element of an XML document, else by the suffix of the
file. Unsupported options raise an error that lists the supported ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from delassus.errors import UnknownOption, short
from delassus.model.model import Model

Reader: TypeAlias = Callable[..., Model]
"""`read(data, file, **options)` returns the model of a document.

`data` is its text, or the bytes of a file; `file` is the path of that file or "<string>", for messages and for files
relative to it; `options` are those of the format, by name.
"""

R = TypeVar("R", bound=Reader)


@dataclass(frozen=True)
class Format:
    """A file format.

    Attributes:
        name: Name for `load(..., format=name)`.
        read: Its reader.
        suffixes: File suffixes, such as ".urdf", in lower case.
        root_tag: The root element of its documents, if they are XML.
        options: Names of the options of its reader.
        remedies: Remedies for unsupported options, by name.
    """

    name: str
    read: Reader
    suffixes: tuple[str, ...] = ()
    root_tag: str = ""
    options: tuple[str, ...] = ()
    remedies: Mapping[str, str] = field(default_factory=dict)

    def refusal(self, names: Iterable[str]) -> str | None:
        """A sentence on the first unsupported option; None if all are supported."""
        for name in names:
            if name not in self.options:
                remedy = self.remedies.get(name, "leave it out")
                fitting = f"its options are {', '.join(self.options)}" if self.options else "it has no options"
                return f"the format {self.name!r} does not take {name}=; {fitting}: {remedy}."
        return None


FORMATS: Final[dict[str, Format]] = {}
"""All formats by name."""


def register_format(
    name: str,
    *,
    suffixes: Iterable[str] = (),
    root_tag: str = "",
    options: Iterable[str] = (),
    remedies: Mapping[str, str] | None = None,
) -> Callable[[R], R]:
    """Decorate a function as the reader of a file format for `load`.

    Args:
        name: Name of the format, for `load(..., format=name)`.
        suffixes: File suffixes, such as (".sdf", ".world").
        root_tag: The tag of its root element, if its documents are XML; it takes precedence over the suffix.
        options: Names of the reader's keyword arguments, for `load`.
        remedies: Remedies for options that users may expect but that are not supported.

    >>> import pathlib, tempfile
    >>> @dl.model.register_format("rods", suffixes=[".rods"])
    ... def read_rods(text, file, **options):
    ...     return dl.load("pendulum")
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "two.rods"
    >>> size = file.write_text("rod rod")
    >>> dl.load(file).name
    'pendulum'
    """
    endings = tuple(str(suffix).lower() for suffix in suffixes)
    for ending in endings:
        if not ending.startswith("."):
            raise ValueError(f"the suffix {ending!r} of the format {name!r} needs a dot: {'.' + ending!r}.")

    def register(read: R) -> R:
        new = Format(name, read, endings, root_tag, tuple(options), dict(remedies or {}))
        for other in FORMATS.values():
            if other.name == name and _home(other.read) != _home(read):
                raise ValueError(f"the format {name!r} is already registered; choose another name.")
            shared = {*endings} & {*other.suffixes} or ({root_tag} & {other.root_tag} - {""})
            if shared and other.name != name:
                raise ValueError(f"{min(shared)!r} belongs to the format {other.name!r}; choose another for {name!r}.")
        FORMATS[name] = new
        return read

    return register


def _home(read: Reader) -> tuple[str, str]:
    """Where a reader is defined, so that a notebook cell can register its reader again."""
    return read.__module__, read.__qualname__


def format_named(name: object) -> Format:
    """The format with a name."""
    entry = FORMATS.get(name) if isinstance(name, str) else None
    if entry is None:
        valid = ", ".join(map(repr, sorted(FORMATS)))
        raise UnknownOption(f"format is {short(repr(name))}; it must be None or one of {valid}.")
    return entry


def detect_format(tag: str, file: str, default: str) -> Format:
    """The format of a document by its root element, else by the suffix of its file, else the default."""
    suffix = Path(file).suffix.lower()
    by_tag = [f for f in FORMATS.values() if tag and f.root_tag == tag]
    by_suffix = [f for f in FORMATS.values() if suffix in f.suffixes]
    return next(iter(by_tag + by_suffix), FORMATS[default])
