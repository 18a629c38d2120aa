"""Robots of mujoco_menagerie and robot_descriptions by name, if these packages are installed.

Both download a robot on its first use and cache it. For an unknown name, the error suggests similar ones, including
bundled robots.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from delassus.errors import BadArgument, DelassusError, short

_MENAGERIE = "mujoco_menagerie"
_DESCRIPTIONS = "robot_descriptions"


def find_description(name: str, bundled: Iterable[str] = (), nearby: str = "") -> tuple[Path, list[str]]:
    """The file of the robot with this name, and the folders of its packages.

    For the error message, `bundled` are the names of bundled robots, and `nearby` is a sentence on files with similar
    names.
    """
    menagerie, descriptions = (_package(package) for package in (_MENAGERIE, _DESCRIPTIONS))
    names = list(menagerie.names()) if menagerie is not None else []
    if name in names:
        return _from_menagerie(menagerie, name), []
    if descriptions is not None:
        module = _description(name)
        if module is not None:
            return _from_description(name, module)
        folders = getattr(descriptions, "__path__", [])
        names += sorted(file.stem for folder in folders for file in Path(folder).glob("*_description.py"))
    packages = {"robot_descriptions": descriptions, "mujoco-menagerie": menagerie}
    missing = [package for package, package_found in packages.items() if package_found is None]
    hint = f" There are more robots in {' and '.join(missing)}: pip install {' '.join(missing)}." if missing else ""
    raise DelassusError(
        f"{short(name)!r} is neither a file nor the name of a robot.{_nearest(name, [*bundled, *names])}{nearby}{hint}",
        code="missing-file",
    )


def _nearest(name: str, known: Iterable[str]) -> str:
    """A sentence with the known names that contain a name or are most similar to it, ignoring case."""
    names = {other.lower(): other for other in known}
    holding = [other for other in names if name.lower() in other]
    similar = list(dict.fromkeys([*holding, *difflib.get_close_matches(name.lower(), names, n=5, cutoff=0.5)]))[:5]
    return f" The nearest are: {', '.join(names[other] for other in similar)}." if similar else ""


def _package(name: str) -> Any:
    return importlib.import_module(name) if importlib.util.find_spec(name) is not None else None


def _from_menagerie(menagerie: Any, name: str) -> Path:
    """The robot itself, without the scene and floor that come with it."""
    robot = menagerie.get(name)
    try:
        return Path(robot.path(progress=None)) / str(robot.entry(robot.default_model).file)
    except Exception as error:  # downloads may fail in any way
        raise DelassusError(f"{name!r} of the menagerie cannot be fetched: {error}", code="not-fetched") from error


def _description(name: str) -> Any:
    """The module of a description; None if it does not exist."""
    for candidate in (name, f"{name}_description"):
        if candidate.isidentifier() and importlib.util.find_spec(f"{_DESCRIPTIONS}.{candidate}") is not None:
            try:
                return importlib.import_module(f"{_DESCRIPTIONS}.{candidate}")
            except Exception as error:  # downloads may fail in any way
                raise DelassusError(
                    f"the description {candidate!r} cannot be fetched: {error}", code="not-fetched"
                ) from error
    return None


def _from_description(name: str, module: Any) -> tuple[Path, list[str]]:
    path = getattr(module, "URDF_PATH", None) or getattr(module, "MJCF_PATH", None)
    if path is None:
        raise BadArgument(
            f"the description {name!r} is xacro, which is not supported; choose one with URDF or MJCF.",
            code="not-supported",
        )
    folders = [str(getattr(module, key)) for key in ("PACKAGE_PATH", "REPOSITORY_PATH") if hasattr(module, key)]
    return Path(path), folders + [str(Path(folder).parent) for folder in folders]
