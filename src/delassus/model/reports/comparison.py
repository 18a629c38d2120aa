"""Compares two models part by part.

Joints, frames, constraints, actuators and tendons are matched by name; parts of only one model are listed as such.
Values are equal within a tolerance relative to the largest value of the property, so that noise in a rotation is
ignored and a small inertia that differs by a factor of two is not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from delassus.common.checks import NOT_NEGATIVE, number_in_range
from delassus.errors import expect
from delassus.model.model import Model
from delassus.model.parts import WORLD, WORLD_FRAME, Frame, Geometry, Joint
from delassus.model.placement import Inertia, Placement

_NOISE = 1e-12  # lengths [m], angles and the like below this are zero; masses and moments may be as small as they like


@dataclass(frozen=True)
class Difference:
    """A difference: the type of part (`"joint"`, `"frame"`, …), its name, the property, and both values as text.

    `left` or `right` is empty if only the other model has the part.
    """

    part: str
    name: str
    field: str
    left: str
    right: str

    def __str__(self) -> str:
        where = f"{self.part} {self.name!r}" if self.name else self.part
        if not self.field:
            return f"{where} is only in the {'first' if self.left else 'second'}"
        return f"{where}: {self.field} {self.left or 'none'} → {self.right or 'none'}"


def compare(first: Model, second: Model, tolerance: float = 1e-9) -> tuple[Difference, ...]:
    """The differences between two models, in the order of the first; empty if there are none.

    The names of the models, their warnings and postures are not compared, nor the folders of meshes. `tolerance` is
    relative.

    >>> arm = dl.load("pendulum")
    >>> bool(dl.model.compare(arm, arm.with_gravity((0.0, 0.0, -1.62))))
    True
    """
    for model in (first, second):
        expect("a model to compare", model, Model, 'delassus.load("robot.urdf")')
    number_in_range("tolerance", tolerance, NOT_NEGATIVE)
    differences = [
        Difference("model", "", field, _text(left), _text(right))
        for field, left, right in (
            ("nq", first.nq, second.nq),
            ("nv", first.nv, second.nv),
            ("gravity", first.gravity, second.gravity),
            ("mass", first.mass, second.mass),
        )
        if not _same(field, left, right, tolerance)
    ]
    order = ([j.name for j in a.joints if j.name in b._joint_index] for a, b in ((first, second), (second, first)))
    left, right = map(", ".join, order)
    if left != right:
        differences.append(Difference("model", "", "order of joints", left, right))
    for part, first_parts, second_parts in (
        ("joint", first.joints, second.joints),
        ("frame", _frames(first), _frames(second)),
        ("shape", first.geometries, second.geometries),
        ("constraint", first.constraints, second.constraints),
        ("actuator", first.actuators, second.actuators),
        ("tendon", first.tendons, second.tendons),
    ):
        differences += _compare_parts(part, (first, first_parts), (second, second_parts), tolerance)
    return tuple(differences)


def _frames(model: Model) -> list[Frame]:
    """The frames but for the world's, which every model has."""
    return [frame for frame in model.frame_list if frame.name != WORLD_FRAME.name]


def _compare_parts(
    part: str, first: tuple[Model, Sequence[Any]], second: tuple[Model, Sequence[Any]], tolerance: float
) -> Iterator[Difference]:
    second_by_name = {_name(item): item for item in second[1]}
    for item in first[1]:
        other = second_by_name.pop(_name(item), None)
        if other is None:
            yield Difference(part, _name(item), "", "here", "")
            continue
        for field, left, right in _properties((first[0], item), (second[0], other)):
            if not _same(field, left, right, tolerance):
                yield Difference(part, _name(item), field, _text(left), _text(right))
    for name in second_by_name:
        yield Difference(part, name, "", "", "here")


def _name(item: Any) -> str:
    # A shape to be seen and one to collide may share a name.
    return f"{item.name} ({item.role})" if isinstance(item, Geometry) else str(getattr(item, "name", item))


def _properties(ours: tuple[Model, Any], theirs: tuple[Model, Any]) -> Iterator[tuple[str, Any, Any]]:
    """The properties of two parts with the same name; references to joints are compared by name."""
    (model, left), (other, right) = ours, theirs
    if type(left) is not type(right):
        yield "type", type(left).__name__, type(right).__name__
    elif is_dataclass(left):
        first_values, second_values = _flat(model, left), _flat(other, right)
        yield from ((field, first_values[field], second_values[field]) for field in first_values)


def _flat(model: Model, item: Any) -> dict[str, Any]:
    """The properties of a part by their names, placements and inertias taken apart."""
    values: dict[str, Any] = {}
    for field in (f.name for f in fields(item) if f.name != "name"):
        value = getattr(item, field)
        if field == "mimic":
            values[field] = _mimic(model, item)
        elif field in ("parent", "joint"):
            values[field] = _joint_name(model, value)
        elif field == "mesh":
            values[field] = Path(value).name
        elif isinstance(value, Placement):
            values |= {"rotation": value.rotation, "translation": value.translation}
        elif isinstance(value, Inertia):
            values |= {"mass": value.mass, "center of mass": value.com, "rotational inertia": value.rotational}
        else:
            values[field] = value
    return values


def _joint_name(model: Model, index: int) -> str:
    return "the world" if index == WORLD else model.joints[index].name


def _mimic(model: Model, joint: Joint) -> tuple[Any, ...]:
    mimic = joint.mimic
    return (_joint_name(model, mimic.source), mimic.ratio, mimic.offset) if mimic else ()


def _same(field: str, left: Any, right: Any, tolerance: float) -> bool:
    """Whether two values of a property are equal, the numbers in them within the tolerance."""
    pairs = list(zip_longest(_leaves(left), _leaves(right)))
    magnitudes = [abs(x) for pair in pairs for x in pair if isinstance(x, float | int) and math.isfinite(x)]
    noise = 0.0 if field in ("mass", "rotational inertia", "armature") else _NOISE
    largest_difference = max(noise, tolerance * max(magnitudes, default=0.0))
    return all(
        x == y or (isinstance(x, float | int) and isinstance(y, float | int) and abs(x - y) <= largest_difference)
        for x, y in pairs
    )


def _leaves(value: Any) -> Iterator[Any]:
    """The numbers and words in a value, in order."""
    if isinstance(value, tuple):
        for item in value:
            yield from _leaves(item)
    elif is_dataclass(value):
        yield type(value).__name__
        for f in fields(value):
            yield from _leaves(getattr(value, f.name))
    else:
        yield value


def _text(value: Any) -> str:
    """A value in few words."""
    if isinstance(value, float):
        return f"{value:.6g}" if math.isfinite(value) else str(value)
    if isinstance(value, tuple):
        return "(" + ", ".join(map(_text, value)) + ")" if value else "none"
    if is_dataclass(value):
        inner = ", ".join(f"{f.name}={_text(getattr(value, f.name))}" for f in fields(value))
        return f"{type(value).__name__}({inner})"
    return str(value)
