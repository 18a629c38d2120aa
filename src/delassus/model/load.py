"""Loads a robot: from a file, from XML text, or by the name of a description."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import os
from pathlib import Path
from types import ModuleType

from delassus.errors import DelassusError
from delassus.model.model import Model
from delassus.model.urdf import MimicMode, Root, check_options, model_from_urdf
from delassus.model.urdf_geometry import Packages, PathName, expanded
from delassus.model.xml import MAX_BYTES, ModelFileError, read_xml, short, too_large

FORMATS = ("urdf",)
_LIBRARY = "robot_descriptions"


def load(
    source: PathName,
    *,
    root: Root = "fixed",
    mimic: MimicMode = "reduce",
    packages: Packages = (),
    format: str | None = None,
) -> Model:
    """The model of a robot.

    `source` is the path of a URDF file, URDF text (it starts with "<"), or the name of a description such as
    "panda_description" if the package robot_descriptions is installed, which fetches it on its first use.
    `root="free"` lets the root link move; `mimic="ignore"` makes joints that mimic others independent; `packages` says
    where meshes are. `format` is "urdf" or None, which takes what the root element says.
    """
    check_options(root, mimic)
    if format is not None and format not in FORMATS:
        raise ValueError(f"format is {format!r}; it is None or one of {', '.join(map(repr, FORMATS))}.")
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"source is a {type(source).__name__}; it is a path, XML text or the name of a description.")
    text = os.fspath(source)
    if isinstance(source, str) and text.lstrip("\ufeff \t\r\n").startswith("<"):
        return _read(text, "<string>", root, mimic, packages)
    if not text.strip():
        raise DelassusError(
            "the source is empty; give the path of a URDF file, URDF text or the name of a description."
        )
    path = expanded(text)
    if isinstance(source, str) and path.name == text and not path.suffix and not _exists(path):
        path, folders = _description(text)
        packages = packages or folders
    return _read(_content(path), str(path), root, mimic, packages)


def _read(data: str | bytes, file: str, root: Root, mimic: MimicMode, packages: Packages) -> Model:
    document = read_xml(data, file)
    if document.tag == "mujoco":
        raise document.error("this is MJCF, which is not read yet; give the robot as URDF.")
    return model_from_urdf(document, root, mimic, packages)


def _content(path: Path) -> bytes:
    """The bytes of a model's file, if it is one and not too large to be one."""
    if path.suffix == ".xacro":
        raise ModelFileError(
            f"xacro is not read; run `xacro {path.name} > {path.stem}.urdf` first and load that.", str(path)
        )
    if not _exists(path):
        raise DelassusError(f"there is no file {short(str(path), 200)!r}.{_near(path)}")
    if not path.is_file():
        raise DelassusError(f"{str(path)!r} is not a file; give the path of a URDF file.")
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise DelassusError(f"{str(path)!r} cannot be read: {error.strerror}.") from None
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


def _description(name: str) -> tuple[Path, list[str]]:
    """The URDF file of a description, and the folders in which its packages are."""
    module = _module(name)
    path = getattr(module, "URDF_PATH", None)
    if path is None:
        other = "MJCF" if hasattr(module, "MJCF_PATH") else "xacro"
        raise DelassusError(f"the description {name!r} is {other}, which is not read yet; choose one with URDF.")
    folders = [str(getattr(module, key)) for key in ("PACKAGE_PATH", "REPOSITORY_PATH") if hasattr(module, key)]
    return Path(path), folders + [str(Path(folder).parent) for folder in folders]


def _module(name: str) -> ModuleType:
    if importlib.util.find_spec(_LIBRARY) is None:
        raise DelassusError(
            f"{short(name)!r} is neither a file nor XML.{_near(Path(name))} To load robots by name, install their "
            "descriptions: pip install robot_descriptions."
        )
    for candidate in (name, f"{name}_description"):
        if candidate.isidentifier() and importlib.util.find_spec(f"{_LIBRARY}.{candidate}") is not None:
            try:
                return importlib.import_module(f"{_LIBRARY}.{candidate}")
            except Exception as error:  # it downloads, with all that may go wrong
                raise DelassusError(f"the description {candidate!r} cannot be fetched: {error}") from error
    known = getattr(importlib.import_module(_LIBRARY), "__path__", [])
    names = sorted(file.stem for folder in known for file in Path(folder).glob("*_description.py"))
    near = difflib.get_close_matches(name, names, n=5, cutoff=0.4)
    hint = f" The nearest are: {', '.join(near)}." if near else ""
    raise DelassusError(f"{short(name)!r} is neither a file nor a description of {_LIBRARY}.{hint}")
