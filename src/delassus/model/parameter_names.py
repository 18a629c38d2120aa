"""Names of parameters, such as "inertia:trunk", and the parts of a model that they refer to; see `parametric`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from delassus.common.names import NamedPart, UnknownName, matching
from delassus.errors import BadArgument, expect
from delassus.model.description import Description
from delassus.model.parts import WORLD_FRAME
from delassus.model.transmission import Actuator

KINDS: Final = ("gravity", "mass", "inertia", "placement", "frame", "armature", "damping", "servo", "force_limit")
ACTUATOR_KINDS: Final = ("servo", "force_limit")
_SIZES: Final = {"mass": 1, "inertia": 10, "placement": 7, "frame": 7, "servo": 2, "force_limit": 1}
"""Those of armature and damping are the joint's."""


@dataclass(frozen=True)
class Part:
    """Some neighboring parameters: what they are, of which joint (or frame, or actuator), and where they are."""

    kind: str
    index: int
    owner: str
    at: slice

    @property
    def name(self) -> str:
        """Its name, which chooses it alone."""
        return f"{self.kind}:{self.owner}" if self.owner else self.kind


def parts_named(model: Description, name: str, start: int) -> tuple[Part, ...]:
    """The parts that a name stands for, from the parameter number `start` on."""
    expect("the name of a parameter", name, str, '"inertia:trunk"')
    kind, separator, owner = name.partition(":")
    if kind not in KINDS or (kind == "gravity" and separator):
        raise UnknownName("parameter", name, _parameter_names(model), code="unknown-parameter")
    if kind == "gravity":
        return (Part(kind, -1, "", slice(start, start + 3)),)
    items: Sequence[NamedPart] = model.frame_list if kind == "frame" else model.joints
    if kind in ACTUATOR_KINDS:
        items = model.actuators
    owners = [item.name for item in items]
    if kind == "frame" and owner == WORLD_FRAME.name:
        raise BadArgument(
            f"{name!r} is no parameter: the frame {owner!r} is the world itself, which does not move.",
            code="bad-parameter",
        )
    if not separator:
        found = list(range(len(owners)))
    elif owner in owners:
        found = [owners.index(owner)]
    elif kind in ("mass", "inertia") and owner in _links(model):
        found = [model.body_index(owner)]
    else:
        found = [owners.index(item.name) for item in matching(owner, items)]
    if kind == "frame":
        found = [k for k in found if owners[k] != WORLD_FRAME.name]
    if not found:
        raise UnknownName("parameter", name, _parameter_names(model), code="unknown-parameter")
    parts = []
    for k in found:
        if kind in ACTUATOR_KINDS:
            _check_actuator(kind, model.actuators[k])
            parts.append(Part(kind, k, owners[k], slice(start, start + _SIZES[kind])))
            start += _SIZES[kind]
            continue
        if kind == "mass" and model.joints[k].inertia.mass == 0.0:
            raise BadArgument(
                f"the body of joint {owners[k]!r} has no mass and so no known shape: choose 'inertia:{owners[k]}'.",
                code="bad-parameter",
            )
        stop = start + (_SIZES.get(kind) or model.joints[k].kind.nv)
        parts.append(Part(kind, k, owners[k], slice(start, stop)))
        start = stop
    return tuple(parts)


def _check_actuator(kind: str, actuator: Actuator) -> None:
    """Refuse parameters of an actuator that has no such numbers."""
    stiffness, *others = actuator.gain
    if kind == "force_limit" and len(actuator.force_range) != 2:
        raise BadArgument(
            f"the actuator {actuator.name!r} has no force range: 'force_limit:{actuator.name}' is no parameter.",
            code="bad-parameter",
        )
    if kind == "servo" and (any(others) or actuator.bias[0] or actuator.bias[1] != -stiffness):
        raise BadArgument(
            f"the actuator {actuator.name!r} is no position servo, f = stiffness (u - q) - damping v: "
            f"'servo:{actuator.name}' is no parameter.",
            code="bad-parameter",
        )


def _links(model: Description) -> list[str]:
    return [frame.name for frame in model.frame_list if frame.role == "link"]


def _parameter_names(model: Description) -> list[str]:
    """The names of all parameters that a model can have."""
    joints = [joint.name for joint in model.joints]
    return [
        *KINDS,
        *(f"{kind}:{name}" for kind in ("mass", "inertia") for name in dict.fromkeys([*joints, *_links(model)])),
        *(f"{kind}:{name}" for kind in ("placement", "armature", "damping") for name in joints),
        *(f"{kind}:{actuator.name}" for kind in ACTUATOR_KINDS for actuator in model.actuators),
        *(f"frame:{frame.name}" for frame in model.frame_list if frame.name != WORLD_FRAME.name),
    ]
