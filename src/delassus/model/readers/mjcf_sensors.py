"""Sensors of a compiled MuJoCo model, and sentences on those that are not carried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from delassus.model.parts import FileSensor, Frame
from delassus.model.readers.mjcf_names import MjcfNames, list_names, text_at
from delassus.model.readers.mjcf_parts import free_name
from delassus.model.readers.mjcf_tree import MjcfTree

_ON: Final = {
    "site": "accelerometer velocimeter gyro magnetometer",
    "joint": "jointpos jointvel jointactfrc ballquat ballangvel",
    "tendon": "tendonpos tendonvel",
    "actuator": "actuatorpos actuatorvel actuatorfrc",
    "frame": "framepos framequat framexaxis frameyaxis framezaxis framelinvel frameangvel framelinacc frameangacc",
    "body": "subtreecom subtreelinvel subtreeangmom",
    "carried": "force torque",
    "touch": "touch",
    "model": "e_potential e_kinetic clock",
}
"""The kinds of sensors that are carried, in MuJoCo's words, by what they are on."""

_SAME: Final = {"ballquat": "jointpos", "ballangvel": "jointvel"}
"""Kinds that have another name here."""

_WRENCHES: Final = {"force": "jointforce", "torque": "jointtorque"}
"""Kinds of what the parent of a body pushes it with, whose names are those of contacts here."""


@dataclass(frozen=True)
class SensorsRead:
    """The sensors of a file in its order, frames for those on shapes and cameras, and what is not carried."""

    sensors: tuple[FileSensor, ...]
    frames: tuple[Frame, ...]
    omissions: tuple[str, ...]


def read_sensors(mujoco: Any, m: Any, tree: MjcfTree, names: MjcfNames, taken: set[str]) -> SensorsRead:
    """The sensors of an `MjModel`; `taken` are the names that frames have already.

    A touch sensor is one of its site's whole body. Sensors on shapes, cameras and inertial frames get frames of their
    own, called after the sensor.
    """
    types, objects = mujoco.mjtSensor, mujoco.mjtObj
    kinds = {
        int(getattr(types, f"mjSENS_{kind.upper()}")): (kind, on)
        for on, type_names in _ON.items()
        for kind in type_names.split()
    }
    readers: dict[int, Callable[[int], tuple[Any, Any, Any]]] = {
        int(objects.mjOBJ_BODY): lambda k: (k, m.body_ipos[k], m.body_iquat[k]),
        int(objects.mjOBJ_GEOM): lambda k: (m.geom_bodyid[k], m.geom_pos[k], m.geom_quat[k]),
        int(objects.mjOBJ_CAMERA): lambda k: (m.cam_bodyid[k], m.cam_pos[k], m.cam_quat[k]),
    }
    frames: list[Frame] = []
    omitted: dict[str, list[str]] = {}

    def frame_of(kind: int, k: int, name: str) -> str:
        """The frame of an object, a new one if it has none."""
        if kind == int(objects.mjOBJ_SITE):
            return names.sites[k]
        if kind == int(objects.mjOBJ_XBODY):
            return names.bodies[k]
        frames.append(Frame(free_name(f"{name}_frame", taken), *tree.placed(*readers[kind](k))))
        return frames[-1].name

    sensors: list[FileSensor] = []
    for k in range(m.nsensor):
        kind, on = kinds.get(int(m.sensor_type[k]), ("", ""))
        word = str(types(int(m.sensor_type[k])).name).removeprefix("mjSENS_").lower()
        name = text_at(m.names, m.name_sensoradr[k])
        at, on_kind = int(m.sensor_objid[k]), int(m.sensor_objtype[k])
        target, reference, values = "", "", ()
        if on == "site":
            target = names.sites[at]
            values = tuple(m.opt.magnetic.tolist()) if kind == "magnetometer" else ()
        elif on in ("joint", "tendon", "actuator"):
            target = {"joint": names.joints, "tendon": names.tendons, "actuator": names.actuators}[on][at]
        elif on == "frame" and on_kind in (int(objects.mjOBJ_SITE), int(objects.mjOBJ_XBODY), *readers):
            target = frame_of(on_kind, at, name or word)
            if m.sensor_refid[k] >= 0:
                reference = frame_of(int(m.sensor_reftype[k]), int(m.sensor_refid[k]), f"{name or word}_reference")
        elif on == "body" and m.body_jntnum[at] > 0:
            target = names.bodies[at]
        elif on == "carried" and m.body_jntnum[m.site_bodyid[at]] > 0:
            target = names.sites[at]
        elif on == "touch":
            target = names.bodies[m.site_bodyid[at]]
        elif on != "model":
            omitted.setdefault(word, []).append(name or word)
            continue
        kind = _SAME.get(kind, _WRENCHES.get(kind, kind))
        sensors.append(FileSensor(name, kind, target, reference, values, float(m.sensor_cutoff[k])))
    return SensorsRead(_named(sensors), tuple(frames), tuple(_sentences(m, omitted)))


def _named(sensors: list[FileSensor]) -> tuple[FileSensor, ...]:
    """Sensors without a name are called by kind and target, with a number where that is taken."""
    taken, renamed = Counter(one.name for one in sensors if one.name), []
    for one in sensors:
        name = one.name
        if not name:
            plain = f"{one.kind}:{one.target}" if one.target else one.kind
            taken[plain] += 1
            name = plain if taken[plain] == 1 else f"{plain}#{taken[plain]}"
        renamed.append(FileSensor(name, one.kind, one.target, one.reference, one.numbers, one.cutoff))
    return tuple(renamed)


def _sentences(m: Any, omitted: dict[str, list[str]]) -> list[str]:
    """A sentence per feature of sensors that is not carried, with names and their number."""
    sentences = []
    if omitted:
        kinds = ", ".join(
            f"{kind} ({len(sensor_names)}: {list_names(sensor_names)})" for kind, sensor_names in omitted.items()
        )
        sentences.append(
            f"sensors of these kinds, or on bodies without a joint of their own, cannot be read: {kinds}. Read another "
            "kind by sim.sensors(…), or compute it from log.q and log.v."
        )
    for field, feature in (
        ("sensor_delay", "delays of sensors are left out"),
        ("sensor_interval", "sensors are read in every state, not at intervals"),
    ):
        values = getattr(m, field, None)
        if values is not None and np.any(values):
            late = [text_at(m.names, m.name_sensoradr[k]) or str(k) for k in _rows(values)]
            sentences.append(f"{feature} ({len(late)}): {list_names(late)}. Keep the readings of some periods.")
    return sentences


def _rows(values: Any) -> list[int]:
    """The rows of an array that are not zero."""
    return np.flatnonzero(np.any(np.reshape(values, (len(values), -1)), axis=1)).tolist()
