"""Loads a robot: from a file, from XML text, or by the name of a description."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from delassus.common.checks import is_one_of
from delassus.errors import BadArgument, DelassusError, short
from delassus.model.bundled import BUNDLED, bundled
from delassus.model.model import Model
from delassus.model.readers.descriptions import find_description
from delassus.model.readers.mjcf import read_mjcf
from delassus.model.readers.urdf import MimicMode, Root, check_options, model_from_urdf
from delassus.model.readers.urdf_geometry import Packages, PathName, expanded
from delassus.model.readers.xml import MAX_BYTES, ModelFileError, read_xml, too_large
from delassus.model.readers.xml_text import root_tag

FORMATS = ("urdf", "mjcf")


def load(
    source: PathName,
    *,
    root: Root = "fixed",
    mimic: MimicMode = "reduce",
    packages: Packages = (),
    format: str | None = None,
) -> Model:
    """The model of a robot.

    `source` is the path of a URDF or MJCF file, its text (it starts with "<"), or the name of a robot: one that comes
    with this package, such as "quadruped" (`delassus.robots()` has them all), or one such as
    "panda_description" or "unitree_go2" if the package robot_descriptions or mujoco_menagerie is installed, which
    fetches it on its first use. MJCF needs the package mujoco. `format` is "urdf", "mjcf" or None, which takes what
    the root element says.

    For URDF, `root="free"` lets the root link move, `mimic="ignore"` makes joints that mimic others independent, and
    `packages` says where meshes are. MJCF says all of that itself.
    """
    check_options(root, mimic)
    if format is not None and not is_one_of(format, FORMATS):
        raise BadArgument(
            f"format is {format!r}; it is None or one of {', '.join(map(repr, FORMATS))}.", code="unknown-option"
        )
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"source is a {type(source).__name__}; it is a path, XML text or the name of a robot.")
    text = os.fspath(source)
    if isinstance(source, str) and text.lstrip("\ufeff \t\r\n").startswith("<"):
        return _read(text, "<string>", format, root, mimic, packages)
    if not text.strip():
        raise BadArgument(
            "the source is empty; give the path of a URDF or MJCF file, its text or the name of a robot.",
            code="missing-argument",
        )
    path = expanded(text)
    if isinstance(source, str) and path.name == text and not path.suffix and not _exists(path):
        if text in BUNDLED:
            if root == "free":
                raise BadArgument(
                    f'{text!r} says itself what moves; root="free" is for URDF.', code="conflicting-arguments"
                )
            return bundled(text)
        path, folders = find_description(text, BUNDLED, _near(path))
        packages = packages or folders
    return _read(_content(path), str(path), format, root, mimic, packages)


def _read(data: str | bytes, file: str, format: str | None, root: Root, mimic: MimicMode, packages: Packages) -> Model:
    if format == "mjcf" or (format is None and root_tag(data) == "mujoco"):
        if root == "free":
            raise ModelFileError(
                'MJCF says itself what moves: write <freejoint/> instead of root="free".',
                file,
                code="conflicting-arguments",
            )
        return read_mjcf(data, file)
    return model_from_urdf(read_xml(data, file), root, mimic, packages)


def _content(path: Path) -> bytes:
    """The bytes of a model's file, if it is one and not too large to be one."""
    if path.suffix.lower() == ".xacro":
        raise ModelFileError(
            f"xacro is not read; run `xacro {path.name} > {path.stem}.urdf` first and load that.",
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
    near = difflib.get_close_matches(path.name, names, n=5, cutoff=0.5)
    near = near or sorted(name for name in names if name.endswith(path.suffix or ".urdf"))[:5]
    return f" Near it are: {', '.join(near)}." if near else ""
