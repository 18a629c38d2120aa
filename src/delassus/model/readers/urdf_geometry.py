"""Shapes of a URDF link: <visual> and <collision>, materials, and where the files of meshes are.

A mesh is looked for, and never opened, at

- `package://name/path`: in the folders of `packages`, in those above the model's own file, in `ROS_PACKAGE_PATH`
  and in `share` below `AMENT_PREFIX_PATH`; each may be the package itself or hold it;
- `file://path` and absolute paths: there;
- other paths: relative to the model's own file.

One that is not found keeps its path as written, with one warning per package. Nothing is fetched from the network.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote

from delassus.common.checks import elements
from delassus.errors import BadArgument, short
from delassus.model.parts import Geometry
from delassus.model.placement import Placement
from delassus.model.readers.documents.xml import Element
from delassus.model.readers.urdf_parts import origin

PathName: TypeAlias = str | os.PathLike[str]
Packages: TypeAlias = PathName | Iterable[PathName] | Mapping[str, PathName]
"""Folders that are packages or hold them, or the folder of every package by its name."""

_SIZES = {
    "box": (("size", 3),),
    "sphere": (("radius", 1),),
    "cylinder": (("radius", 1), ("length", 1)),
    "capsule": (("radius", 1), ("length", 1)),
}
_ROLES = ("visual", "collision")


class Shapes:
    """Reads the shapes of one file's links, and remembers which meshes it did not find."""

    def __init__(self, robot: Element, packages: Packages, warnings: list[str]) -> None:
        self.file = robot.file
        self.warnings = warnings
        self.colors = _colors(robot)
        self.meshes = _Meshes(robot.file, packages)

    def of(self, link: Element, joint: int, placement: Placement) -> list[Geometry]:
        """The shapes of a link that is placed on the body of a joint; they are named after it, with a number."""
        shapes = []
        for role in _ROLES:
            for k, element in enumerate(link.all(role)):
                shape = self._shape(element, f"{link.need('name')}_{k}", joint, placement)
                if shape is not None:
                    shapes.append(shape)
        return shapes

    def _shape(self, element: Element, name: str, joint: int, placement: Placement) -> Geometry | None:
        geometry = element.child("geometry")
        shape = next((s for s in geometry.children if s.tag in _SIZES or s.tag == "mesh"), None) if geometry else None
        if shape is None:
            self.warnings.append(
                f"{self.file}:{element.line}: <{element.tag}> {short(name)!r} is left out: it has no box, sphere, "
                "cylinder, capsule or mesh."
            )
            return None
        mesh = ""
        if shape.tag == "mesh":
            mesh, size = self.meshes.find(shape.need("filename")), shape.measures("scale", 3, (1.0, 1.0, 1.0))
        else:
            size = tuple(x for attribute, n in _SIZES[shape.tag] for x in shape.measures(attribute, n))
            if min(size) < 0.0:
                raise shape.error(f"the size {min(size):g} m is negative; lengths are not.", code="out-of-range")
        at, color = placement * origin(element), self._color(element)
        return Geometry(name, joint, at, shape.tag, size, element.tag, mesh, color, conaffinity=1)

    def _color(self, element: Element) -> tuple[float, ...]:
        material = element.child("material")
        if material is None:
            return ()
        color_element, name = material.child("color"), material.attributes.get("name", "")
        if color_element is not None:
            return color_element.numbers("rgba", 4)
        if name not in self.colors and material.child("texture") is None:
            self.colors[name] = ()  # once is enough
            self.warnings.append(f"{self.file}:{material.line}: the material {short(name)!r} has no color anywhere.")
        return self.colors.get(name, ())

    def finish(self) -> None:
        """Adds a warning for every package with meshes that were not found."""
        for package, (first, count) in self.meshes.missing.items():
            owner = f"of the package {short(package)!r} " if package else ""
            remedy = f' Give packages=["folder that holds {short(package)}"].' if package else ""
            number = "1 mesh" if count == 1 else f"{count} meshes"
            self.warnings.append(
                f"{self.file}: {number} {owner}not found, such as {short(first, 120)!r}; the paths stay as written."
                + remedy
            )


def _colors(robot: Element) -> dict[str, tuple[float, ...]]:
    """Colors (red, green, blue, alpha) by the name of their material, wherever in the file it is first given one."""
    colors: dict[str, tuple[float, ...]] = {}
    visuals = [visual for link in robot.all("link") for visual in link.all("visual")]
    for owner in (robot, *visuals):
        for material in owner.all("material"):
            color = material.child("color")
            if color is not None:
                colors.setdefault(material.attributes.get("name", ""), color.numbers("rgba", 4))
    return colors


class _Meshes:
    """Finds the files of meshes."""

    def __init__(self, file: str, packages: Packages) -> None:
        self.named = {name: _folders(p)[0] for name, p in packages.items()} if isinstance(packages, Mapping) else {}
        folders = [] if isinstance(packages, Mapping) else _folders(packages)
        self.base = Path(file).absolute().parent if _is_file(Path(file)) else None
        above = (self.base, *self.base.parents) if self.base else ()
        ros = _environment("ROS_PACKAGE_PATH")
        ament = [folder / "share" for folder in _environment("AMENT_PREFIX_PATH")]
        self.roots = (*folders, *above, *ros, *ament)
        self.found: dict[str, str] = {}
        self.missing: dict[str, tuple[str, int]] = {}

    def find(self, name: str) -> str:
        """The absolute path of a mesh; its name as it was written if there is no such file."""
        if name not in self.found:
            package, candidates = self._candidates(name)
            path = next((str(Path(os.path.normpath(p.absolute()))) for p in candidates if _is_file(p)), None)
            if path is None:
                first, count = self.missing.get(package, (name, 0))
                self.missing[package] = (first, count + 1)
            self.found[name] = path or name
        return self.found[name]

    def _candidates(self, name: str) -> tuple[str, list[Path]]:
        """The package, if any, and the places to look at."""
        scheme, separator, path_part = name.partition("://")
        if not separator:
            return "", [self.base / name] if self.base else [Path(name)] if Path(name).is_absolute() else []
        if scheme == "file":
            return "", [(self.base or Path()) / unquote(path_part)]
        if scheme != "package":
            return "", []
        # Some files have three slashes; the package is the first word in any case.
        package, _, inner = path_part.lstrip("/").partition("/")
        if package in self.named:
            return package, [self.named[package] / inner]
        inside = [root / inner for root in self.roots if root.name == package]
        return package, [*inside, *(root / package / inner for root in self.roots)]


def _folders(packages: PathName | Iterable[PathName]) -> list[Path]:
    entries = [packages] if isinstance(packages, str | os.PathLike) else packages
    folders = elements(entries)
    if not all(isinstance(folder, (str, os.PathLike)) for folder in folders):
        raise BadArgument(
            f"packages is {packages!r}; it has paths of folders, or names and folders.", code="wrong-type"
        )
    return [expanded(folder).absolute() for folder in folders]


def expanded(path: PathName) -> Path:
    """A path with ~ replaced; as it is if there is no such user."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def _environment(variable: str) -> list[Path]:
    return [Path(folder) for folder in os.environ.get(variable, "").split(os.pathsep) if folder]


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name too long, or with characters that the file system does not know
        return False
