"""Numbers of an MJCF document that no robot has: MuJoCo takes nan and inf for numbers."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from delassus.errors import short
from delassus.model.readers.documents.mjcf_places import Places
from delassus.model.readers.documents.xml import MAX_MAGNITUDE, Element, ModelFileError
from delassus.model.readers.mjcf_names import MjcfNames

_TURN = ("quat", "euler", "axisangle", "xyaxes", "zaxis")
_MASS = ("mass", "density", "size", "fromto")

# What has a number, the attributes that give it (the first names it), the array of MuJoCo that holds it, and whose its
# rows are. What follows from other numbers comes after them.
_NUMBERS: tuple[tuple[str, tuple[str, ...], str, str], ...] = (
    ("option", ("gravity",), "opt.gravity", "options"),
    ("joint", ("axis",), "jnt_axis", "joints"),
    ("joint", ("pos",), "jnt_pos", "joints"),
    ("joint", ("range",), "jnt_range", "joints"),
    ("joint", ("actuatorfrcrange",), "jnt_actfrcrange", "joints"),
    ("joint", ("stiffness",), "jnt_stiffness", "joints"),
    ("joint", ("armature",), "dof_armature", "velocities"),
    ("joint", ("damping",), "dof_damping", "velocities"),
    ("joint", ("frictionloss",), "dof_frictionloss", "velocities"),
    ("geom", ("pos", "fromto"), "geom_pos", "geoms"),
    ("geom", (*_TURN, "fromto"), "geom_quat", "geoms"),
    ("geom", ("size", "fromto"), "geom_size", "geoms"),
    ("geom", ("friction",), "geom_friction", "geoms"),
    ("geom", ("rgba",), "geom_rgba", "geoms"),
    ("mesh", ("scale",), "mesh_scale", "meshes"),
    ("site", ("pos", "fromto"), "site_pos", "sites"),
    ("site", (*_TURN, "fromto"), "site_quat", "sites"),
    ("body", ("pos",), "body_pos", "bodies"),
    ("body", _TURN, "body_quat", "bodies"),
    ("body", _MASS, "body_mass", "bodies"),
    ("body", ("pos",), "body_ipos", "bodies"),
    ("body", (*_TURN, "fullinertia"), "body_iquat", "bodies"),
    ("body", ("diaginertia", "fullinertia", *_MASS), "body_inertia", "bodies"),
    ("joint", ("ref", "pos"), "qpos0", "coordinates"),
    ("joint", ("springref", "ref", "pos"), "qpos_spring", "coordinates"),
    ("equality", ("polycoef", "anchor", "relpose"), "eq_data", "equalities"),
    ("tendon", ("stiffness",), "tendon_stiffness", "tendons"),
    ("tendon", ("damping",), "tendon_damping", "tendons"),
    ("tendon", ("springlength",), "tendon_lengthspring", "tendons"),
    ("tendon", ("range",), "tendon_range", "tendons"),
    ("tendon", ("coef",), "wrap_prm", "wraps"),
    ("actuator", ("gear",), "actuator_gear", "actuators"),
    ("actuator", ("armature",), "actuator_armature", "actuators"),
    ("actuator", ("damping",), "actuator_damping", "actuators"),
    ("actuator", ("gainprm", "kp", "kv"), "actuator_gainprm", "actuators"),
    ("actuator", ("biasprm", "kp", "kv", "dampratio"), "actuator_biasprm", "actuators"),
    ("actuator", ("forcerange",), "actuator_forcerange", "actuators"),
    ("actuator", ("ctrlrange",), "actuator_ctrlrange", "controls"),
    ("key", ("qpos",), "key_qpos", "keys"),
)
_MEASURES = {"pos", "mass", "diaginertia", "gravity", "armature"}  # which are multiplied with each other
_ATTRIBUTES = {attribute for _, attributes, *_ in _NUMBERS for attribute in attributes}


@dataclass(frozen=True)
class BadNumber:
    """A number that is not finite, or too large; `of` is what has it ("joint"), `attributes` those that may give it."""

    of: str
    name: str
    attributes: tuple[str, ...]
    value: float

    @property
    def code(self) -> str:
        """The code of its error."""
        return "out-of-range" if math.isfinite(self.value) else "not-finite"

    def sentence(self, attribute: str = "") -> str:
        """What is wrong with it."""
        subject = f"{attribute or self.attributes[0]}{f' of {self.of} {self.name!r}' if self.name else ''}"
        if math.isfinite(self.value):
            return f"{subject} is {self.value:g}; numbers of a robot in SI units must be within ±{MAX_MAGNITUDE:g}."
        return f"{subject} is {self.value:g}; it must be a finite number."

    def error(self, file: str, places: Places) -> ModelFileError:
        """The error at the element that is to blame: its own, or one that gives it a default."""

        def other(element: Element) -> tuple[bool, bool]:
            return element.attributes.get("name") != self.name, element.tag != self.of

        to_blame = min((e for e in places if _bad_attribute(e, self.attributes)), key=other, default=None)
        if to_blame is not None:
            return to_blame.error(self.sentence(_bad_attribute(to_blame, self.attributes)), code=self.code)
        element_of_name = min((e for e in places if e.attributes.get("name") == self.name), key=other, default=None)
        return (
            element_of_name.error(self.sentence(), code=self.code)
            if element_of_name
            else ModelFileError(self.sentence(), file, code=self.code)
        )


def bad_number(m: Any, names: MjcfNames) -> BadNumber | None:
    """The first number of an `MjModel` that is not finite, or too large, among those that a `Model` takes over."""
    owners = _owners(m, names)
    for of, attributes, field, owned_by in _NUMBERS:
        if not owners[owned_by]:
            continue
        rows = np.reshape(attrgetter(field)(m), (len(owners[owned_by]), -1))
        largest = MAX_MAGNITUDE if attributes[0] in _MEASURES else np.finfo(float).max
        bad = ~(np.abs(rows) <= largest)
        if bad.any():
            i, k = np.argwhere(bad)[0].tolist()
            return BadNumber(of, owners[owned_by][i], attributes, float(rows[i, k]))
    return None


def written_bad_number(places: Places) -> ModelFileError | None:
    """The error for the first number in a document that is not finite, or too large, if there is one."""
    element = places.first(lambda element: bool(_bad_attribute(element, _ATTRIBUTES)))
    if element is None:
        return None
    attribute = _bad_attribute(element, _ATTRIBUTES)
    text = short(element.attributes[attribute])
    return element.error(
        f'{attribute}="{text}": the numbers of a robot are finite and within ±{MAX_MAGNITUDE:g}.', code="out-of-range"
    )


def _owners(m: Any, names: MjcfNames) -> dict[str, Sequence[str]]:
    """The names of those that have numbers, one for each row of MuJoCo's arrays."""
    joints, actuators, tendons = names.joints, names.actuators, names.tendons
    coordinates = np.repeat(np.arange(m.njnt), np.diff(m.jnt_qposadr, append=m.nq))
    driven = dict(zip(m.actuator_ctrladr.tolist(), actuators, strict=True))
    return {
        "options": [""],
        "joints": joints,
        "velocities": [joints[j] for j in m.dof_jntid],
        "coordinates": [joints[j] for j in coordinates],
        "geoms": names.geoms,
        "meshes": [""] * m.nmesh,
        "sites": names.sites,
        "bodies": names.bodies,
        "equalities": names.equalities,
        "tendons": tendons,
        "wraps": [tendons[t] for t in np.repeat(np.arange(m.ntendon), m.tendon_num)],
        "actuators": actuators,
        "controls": [driven.get(k, "") for k in range(len(m.actuator_ctrlrange))],
        "keys": names.keys,
    }


def _bad_attribute(element: Element, attributes: Collection[str]) -> str:
    """The first of some attributes that holds a number that is not finite, or too large; empty if none does."""
    return next((a for a, text in element.attributes.items() if a in attributes and _is_bad(text)), "")


def _is_bad(text: str) -> bool:
    for word in text.split():
        try:
            if not abs(float(word)) <= MAX_MAGNITUDE:
                return True
        except ValueError:
            continue
    return False
