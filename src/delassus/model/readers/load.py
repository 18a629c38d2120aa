"""Loads a robot: from a file, from XML text, or by the name of a description."""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import Any, Final

from delassus.errors import BadArgument, DelassusError, WrongType, short
from delassus.model.bundled import BUNDLED, bundled
from delassus.model.bundled.descriptions import find_description
from delassus.model.formats import Format, detect_format, format_named
from delassus.model.model import Model
from delassus.model.readers.documents.xml import MAX_BYTES, ModelFileError, root_tag, too_large
from delassus.model.readers.urdf import MimicMode, Root
from delassus.model.readers.urdf_geometry import Packages, PathName, expanded

_DEFAULTS: Final = {"root": "fixed", "mimic": "reduce", "packages": ()}
"""Options with these values count as omitted, so that formats without them accept them."""


def load(
    source: PathName,
    *,
    root: Root = "fixed",
    mimic: MimicMode = "reduce",
    packages: Packages = (),
    format: str | None = None,
    **options: Any,
) -> Model:
    """Load the model of a robot.

    `source` is the path of a URDF or MJCF file, its text (starting with "<"), or the name of a robot: a bundled one,
    such as "quadruped" (see `delassus.robots()`), or one such as "panda_description" or "unitree_go2" if the package
    robot_descriptions or mujoco_menagerie is installed, which downloads it on its first use. MJCF needs the package
    mujoco. `format` is "urdf", "mjcf" or a format added by `register_format`; None selects it by the root element, else
    by the suffix of the file.

    For URDF, `root="free"` gives the root link a free joint, `mimic="ignore"` makes mimic joints independent, and
    `packages` are the folders of meshes. MJCF defines all of these itself. Other `options` are those of registered
    formats; unsupported options raise an error.

    >>> dl.load("quadruped").nv
    18
    """
    file_format = None if format is None else format_named(format)
    options |= {"root": root, "mimic": mimic, "packages": packages}
    options = {name: value for name, value in options.items() if not _is_default(name, value)}
    if not isinstance(source, str | os.PathLike):
        raise WrongType(f"source is a {type(source).__name__}; it must be a path, XML text or the name of a robot.")
    text = os.fspath(source)
    if isinstance(source, str) and text.lstrip("\ufeff \t\r\n").startswith("<"):
        return _read(text, "<string>", file_format, options)
    if not text.strip():
        raise BadArgument(
            "the source is empty; pass the path of a URDF or MJCF file, its text or the name of a robot.",
            code="missing-argument",
        )
    path, folders = expanded(text), list[str]()
    if isinstance(source, str) and path.name == text and not path.suffix and not _exists(path):
        if text in BUNDLED:
            if options:
                option_text = ", ".join(f"{name}={value!r}" for name, value in options.items())
                raise BadArgument(
                    f"{text!r} defines its own root and joints; {option_text} is for files, so omit it.",
                    code="conflicting-arguments",
                )
            return bundled(text)
        path, folders = find_description(text, BUNDLED, _near(path))
    data = _content(path)
    file_format = file_format or detect_format(root_tag(data), str(path), "urdf")
    if folders and "packages" in file_format.options:
        options.setdefault("packages", folders)
    return _read(data, str(path), file_format, options)


def _read(data: str | bytes, file: str, file_format: Format | None, options: dict[str, Any]) -> Model:
    file_format = file_format or detect_format(root_tag(data), file, "urdf")
    refusal = file_format.refusal(options)
    if refusal is not None:
        raise ModelFileError(refusal, file, code="conflicting-arguments")
    return file_format.read(data, file, **options)


def _is_default(name: str, value: Any) -> bool:
    default = _DEFAULTS.get(name, ...)
    return type(value) is type(default) and bool(value == default)


def _content(path: Path) -> bytes:
    """The bytes of a model's file, if it is one and not too large to be one."""
    if path.suffix.lower() == ".xacro":
        raise ModelFileError(
            f"xacro is not supported; run `xacro {path.name} > {path.stem}.urdf` first and load that.",
            str(path),
            code="not-supported",
        )
    if not _exists(path):
        raise DelassusError(f"there is no file {short(str(path), 200)!r}.{_near(path)}", code="missing-file")
    if not path.is_file():
        raise DelassusError(
            f"{str(path)!r} is not a file; give the path of a URDF or MJCF file.", code="unreadable-file"
        )
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise DelassusError(f"{str(path)!r} cannot be read: {error.strerror}.", code="unreadable-file") from None
    if len(data) > MAX_BYTES:
        raise too_large(str(path), size)
    return data


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name too long, or with characters that the file system does not know
        return False


def _near(path: Path) -> str:
    """A sentence with the names of files nearby that are most like a path's, or on how far the path exists."""
    folder = path.parent
    try:
        names = [entry.name for entry in folder.iterdir()]
    except (OSError, ValueError):
        return f" Nor is there a folder {short(str(folder), 200)!r}."
    similar = difflib.get_close_matches(path.name, names, n=5, cutoff=0.5)
    similar = similar or sorted(name for name in names if name.endswith(path.suffix or ".urdf"))[:5]
    return f" Near it are: {', '.join(similar)}." if similar else ""
