"""Reads a robot from MJCF, with MuJoCo's own reader and compiler.

MuJoCo resolves defaults, includes, nested bodies, units and the inertias of shapes; this takes the result over. Joints
come in MuJoCo's order, with the same coordinates but for the order of quaternions and the axes of free joints'
velocities (see `mujoco`). Frames are those of bodies ("link"), joints ("joint", at the anchor, with the body's axes),
sites ("frame") and anchors of equality constraints ("frame"). What a file switches off by <flag> (gravity, springs,
damping, equality constraints) is left out; what is not carried is in the model's warnings.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import warnings
from typing import Any

from delassus.errors import DelassusError
from delassus.model.mjcf_names import read_names, text_at
from delassus.model.mjcf_parts import actuators, equalities, shapes, tendons
from delassus.model.mjcf_support import unsupported
from delassus.model.mjcf_tree import frames, our_quaternion, read_tree
from delassus.model.model import Model, Posture
from delassus.model.placement import vector
from delassus.model.xml import ModelFileError


def read_mjcf(source: str, file: str = "<string>") -> Model:
    """The robot that an MJCF document describes: text, or that of a file if `file` names one and `source` is empty."""
    mujoco = _mujoco()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            spec = mujoco.MjSpec.from_string(source) if source else mujoco.MjSpec.from_file(file)
            compiled = spec.compile()
        except (ValueError, TypeError, RuntimeError, mujoco.FatalError) as error:
            raise _refused(error, file) from None
    notes = [f"{file}: MuJoCo says: {_one_line(str(warning.message))}" for warning in said]
    return _taken_over(compiled, notes)


def from_mujoco(mj_model: Any) -> Model:
    """The model of a compiled `mujoco.MjModel` in memory."""
    return _taken_over(mj_model, [])


def _taken_over(m: Any, notes: list[str]) -> Model:
    """The model of a compiled one; `notes` are warnings to begin with."""
    mujoco = _mujoco()
    off = mujoco.mjtDisableBit
    flags = int(m.opt.disableflags)
    names = read_names(m)
    tree = read_tree(m, names, springs=not flags & int(off.mjDSBL_SPRING), dampers=not flags & int(off.mjDSBL_DAMPER))
    own = frames(m, tree, names)
    ties = equalities(mujoco, m, tree, names, {frame.name for frame in own})
    if flags & (int(off.mjDSBL_EQUALITY) | int(off.mjDSBL_CONSTRAINT)):
        ties = type(ties)((), (), ())
    driven = actuators(mujoco, m, names)
    return Model(
        text_at(m.names, 0) or "robot",
        tree.joints,
        (*own, *ties.frames),
        (0.0, 0.0, 0.0) if flags & int(off.mjDSBL_GRAVITY) else vector(m.opt.gravity + 0.0),
        tuple(shapes(mujoco, m, tree, names)),
        ties.constraints,
        tree.base_inertia,
        actuators=driven,
        tendons=tendons(m, names),
        postures=_postures(m),
        warnings=(*notes, *unsupported(mujoco, m, names, ties.skipped, driven)),
    )


def _mujoco() -> Any:
    if importlib.util.find_spec("mujoco") is None:
        raise DelassusError("MJCF is read with the package mujoco, which is not here: pip install 'delassus[mujoco]'.")
    try:
        return importlib.import_module("mujoco")
    except ImportError as error:
        raise DelassusError(f"MJCF is read with the package mujoco, which cannot be imported: {error}") from error


def _postures(m: Any) -> tuple[Posture, ...]:
    """The reference configuration "qpos0", in which equality constraints hold, then the keyframes."""
    keys = [text_at(m.names, address) for address in m.name_keyadr]
    rows = [("qpos0", m.qpos0), *((key or f"key{k}", m.key_qpos[k]) for k, key in enumerate(keys))]
    return tuple(Posture(name, _coordinates(m, qpos)) for name, qpos in rows)


def _coordinates(m: Any, qpos: Any) -> tuple[float, ...]:
    q = qpos.copy()
    for kind, start in zip(m.jnt_type, m.jnt_qposadr, strict=True):
        at = start + 3 * (kind == 0)
        if kind <= 1:  # free and ball joints
            q[at : at + 4] = our_quaternion(q[at : at + 4])
    return tuple(q.tolist())


def _refused(error: Exception, file: str) -> ModelFileError:
    """MuJoCo's own message, with the file and the line that it names."""
    text = _one_line(str(error))
    line = re.search(r"\bline (\d+)", text)
    return ModelFileError(f"MuJoCo refuses this: {text}", file, int(line[1]) if line else 0)


def _one_line(text: str) -> str:
    return " ".join(text.split()).rstrip(".") + "."
