"""Names for what a compiled MuJoCo model holds.

MuJoCo lets parts be without names, and parts of different kinds share one. Here a part without a name is called after
its body, and frames have one name each: bodies keep theirs, a site that shares one is called name_site, the frame of a
joint name_joint; name_joint2, name_joint3 and so on if there is such a frame, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

_SHOWN: Final = 5
"""Names that a sentence lists."""


@dataclass(frozen=True)
class MjcfNames:
    """One name for every part, by MuJoCo's numbers; `joint_frames` are those of the frames of the joints."""

    bodies: tuple[str, ...]
    joints: tuple[str, ...]
    joint_frames: tuple[str, ...]
    sites: tuple[str, ...]
    geoms: tuple[str, ...]
    equalities: tuple[str, ...]
    actuators: tuple[str, ...]
    tendons: tuple[str, ...]
    keys: tuple[str, ...]


def read_names(m: Any) -> MjcfNames:
    """The names of an `MjModel`."""

    def decode_names(addresses: Any) -> list[str]:
        return [text_at(m.names, address) for address in addresses]

    bodies = _named(decode_names(m.name_bodyadr), ["body"] * m.nbody)

    def on(owners: Any, kind: str) -> list[str]:
        return [f"{bodies[body]}_{kind}" for body in owners]

    joints = _named(decode_names(m.name_jntadr), on(m.jnt_bodyid, "joint"))
    sites = _named(decode_names(m.name_siteadr), on(m.site_bodyid, "site"))
    frames = _Names(bodies)
    site_frames = [frames.add(name, f"{name}_site") for name in sites]
    joint_frames = [frames.add(name, f"{name}_joint") for name in joints]
    return MjcfNames(
        bodies=tuple(bodies),
        joints=tuple(joints),
        joint_frames=tuple(joint_frames),
        sites=tuple(site_frames),
        geoms=tuple(_named(decode_names(m.name_geomadr), on(m.geom_bodyid, "geom"))),
        equalities=tuple(_named(decode_names(m.name_eqadr), ["equality"] * m.neq)),
        actuators=tuple(_named(decode_names(m.name_actuatoradr), ["actuator"] * len(m.name_actuatoradr))),
        tendons=tuple(_named(decode_names(m.name_tendonadr), ["tendon"] * m.ntendon)),
        keys=tuple(name or f"key{k}" for k, name in enumerate(decode_names(m.name_keyadr))),
    )


def text_at(names: bytes, address: int) -> str:
    """The text that begins at an address of MuJoCo's names or paths and ends with a zero."""
    return names[address : names.index(b"\0", address)].decode(errors="replace")


def list_names(names: Sequence[str]) -> str:
    """The first of some names, and how many there are more."""
    suffix = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + suffix


def _named(given: list[str], defaults: list[str]) -> list[str]:
    """The given names; a number makes a default one differ from all others."""
    names = _Names(given)
    return [name or names.add(default, default) for name, default in zip(given, defaults, strict=True)]


class _Names:
    """Names that are taken, and the last number that was tried with each: n parts without names take n steps."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.taken = set(taken)
        self.tried: dict[str, int] = {}

    def add(self, name: str, other: str) -> str:
        """A name that is not taken: itself, another, or that with the first number from 2 that makes it so."""
        candidate, k = name, self.tried.get(other, 0)
        while candidate in self.taken:
            k += 1
            candidate = f"{other}{k if k > 1 else ''}"
        self.tried[other] = k
        self.taken.add(candidate)
        return candidate
