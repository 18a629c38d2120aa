"""Reads a robot from MJCF, with MuJoCo's own reader and compiler.

MuJoCo resolves defaults, includes, nested bodies, units and the inertias of shapes; this takes the result over. Joints
come in MuJoCo's order, with the same coordinates but for the order of quaternions and the axes of free joints'
velocities (see `mujoco`). Frames are those of bodies ("link"), joints ("joint", at the anchor, with the body's axes),
sites ("frame") and anchors of equality constraints ("frame"). What a file switches off by <flag> (gravity, springs,
damping, dry friction, limits, equality constraints, actuators) is left out; what is not carried is in the model's
warnings.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from delassus.errors import BadArgument, DelassusError
from delassus.model.formats import register_format
from delassus.model.model import Model
from delassus.model.parts import Posture
from delassus.model.placement import vector
from delassus.model.readers.documents.mjcf_places import Places, check_assets
from delassus.model.readers.documents.mjcf_refusals import one_line, refused
from delassus.model.readers.documents.xml import ModelFileError, check_size, decoded
from delassus.model.readers.mjcf_contact import contact_rules, impedances
from delassus.model.readers.mjcf_medium import read_medium
from delassus.model.readers.mjcf_names import MjcfNames, read_names, text_at
from delassus.model.readers.mjcf_numbers import bad_number, written_bad_number
from delassus.model.readers.mjcf_omissions import unsupported
from delassus.model.readers.mjcf_parts import actuators, equalities, shapes, tendons
from delassus.model.readers.mjcf_sensors import read_sensors
from delassus.model.readers.mjcf_tree import FREE, frames, our_quaternion, read_tree
from delassus.model.transmission import STATELESS, Actuator
from delassus.spatial.quaternions import quaternion_to_rotation

_TEXT = "<string>"
_listening = threading.RLock()  # MuJoCo has one place for what it warns of, and so has Python; a fork waits for it
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_listening.acquire, after_in_parent=_listening.release, after_in_child=_listening.release
    )


@register_format(
    "mjcf",
    suffixes=(".mjcf",),
    root_tag="mujoco",
    remedies={"root": 'MJCF files define how the base moves; write <freejoint/> instead of root="free"'},
)
def read_mjcf(data: str | bytes, file: str = _TEXT) -> Model:
    """The robot that an MJCF document describes. What it includes is looked for beside its `file`."""
    mujoco = _mujoco()
    check_size(data, file)
    text = decoded(data)
    places = Places.of(text, file)
    check_assets(text, file)
    with _warnings_of(mujoco) as said:
        try:
            compiled = _parsed(mujoco, text, file).compile()
        except (ValueError, TypeError, RuntimeError, mujoco.FatalError) as error:
            raise written_bad_number(places) or refused(error, file, places) from None
    names = read_names(compiled)
    bad = bad_number(compiled, names)
    if bad is not None:
        raise bad.error(file, places)
    try:
        return _convert_model(compiled, names, [f"{file}: MuJoCo says: {one_line(text)}" for text in said])
    except DelassusError as error:
        raise ModelFileError(str(error), file, code=error.code) from error


def from_mujoco(mj_model: Any) -> Model:
    """The model of a compiled `mujoco.MjModel` in memory.

    >>> import mujoco
    >>> body = '<body name="ball"><freejoint/><geom size="0.1"/></body>'
    >>> dl.from_mujoco(mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{body}</worldbody></mujoco>")).nv
    6
    """
    names = read_names(mj_model)
    bad = bad_number(mj_model, names)
    if bad is not None:
        raise BadArgument(bad.sentence(), code=bad.code)
    return _convert_model(mj_model, names, [])


def _parsed(mujoco: Any, text: str, file: str) -> Any:
    """MuJoCo's view of a document. It looks for includes and meshes beside a file, which it knows by its suffix."""
    if file == _TEXT:
        return mujoco.MjSpec.from_string(text)
    name = file if file.endswith(".xml") else f"{file}.xml"
    return mujoco.MjSpec.from_file(name, include={name: text.encode(errors="replace")})


@contextmanager
def _warnings_of(mujoco: Any) -> Iterator[list[str]]:
    """What MuJoCo warns of meanwhile. Some of it would else go to a file MUJOCO_LOG.TXT in the working folder."""
    said: list[str] = []
    with _listening, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        before = mujoco.get_mju_user_warning()
        mujoco.set_mju_user_warning(said.append)
        try:
            yield said
        finally:
            mujoco.set_mju_user_warning(before)
            said += [str(warning.message) for warning in caught]


def _convert_model(m: Any, names: MjcfNames, notes: list[str]) -> Model:
    """The model of a compiled one; `notes` are warnings to begin with."""
    mujoco = _mujoco()
    disable_bits = mujoco.mjtDisableBit
    flags = int(m.opt.disableflags)
    left_out = {
        name
        for flag, fields in (
            (disable_bits.mjDSBL_SPRING, ("stiffness", "rest")),
            (disable_bits.mjDSBL_DAMPER, ("damping",)),
            (disable_bits.mjDSBL_FRICTIONLOSS, ("friction",)),
            (disable_bits.mjDSBL_LIMIT, ("lower", "upper", "angle_limit", "range")),
            (disable_bits.mjDSBL_CONSTRAINT, ("friction", "lower", "upper", "angle_limit", "range")),
        )
        if flags & int(flag)
        for name in fields
    }
    tree = read_tree(m, names, left_out)
    model_frames = frames(m, tree, names)
    names_used = {frame.name for frame in model_frames}
    constraints_read = equalities(mujoco, m, tree, names, names_used)
    if flags & (int(disable_bits.mjDSBL_EQUALITY) | int(disable_bits.mjDSBL_CONSTRAINT)):
        constraints_read = type(constraints_read)((), (), ())
    driven, sensed = actuators(mujoco, m, names), read_sensors(mujoco, m, tree, names, names_used)
    strings, at_shapes = tendons(m, tree, names, names_used, left_out)
    omissions = tuple(unsupported(mujoco, m, names, constraints_read.skipped, driven)) + sensed.omissions
    return Model(
        text_at(m.names, 0) or "robot",
        tree.joints,
        (*model_frames, *constraints_read.frames, *sensed.frames, *at_shapes),
        (0.0, 0.0, 0.0) if flags & int(disable_bits.mjDSBL_GRAVITY) else vector(m.opt.gravity + 0.0),
        tuple(shapes(mujoco, m, tree, names)),
        constraints_read.constraints,
        tree.base_inertia,
        actuators=driven,
        tendons=strings,
        medium=read_medium(mujoco, m, tree),
        sensors=sensed.sensors,
        postures=_postures(m, names, driven),
        warnings=(*notes, *omissions),
        omissions=omissions,
        describes_world=True,
        contact_rules=contact_rules(mujoco, m, names),
        time_step=float(m.opt.timestep),
        impedances=impedances(m, tree, names),
    )


def _mujoco() -> Any:
    if importlib.util.find_spec("mujoco") is None:
        raise DelassusError(
            "MJCF is read with the package mujoco, which is not here: pip install 'delassus[mujoco]'.",
            code="missing-package",
        )
    try:
        return importlib.import_module("mujoco")
    except ImportError as error:
        raise DelassusError(
            f"MJCF is read with the package mujoco, which cannot be imported: {error}", code="missing-package"
        ) from error


def _postures(m: Any, names: MjcfNames, driven: Sequence[Actuator]) -> tuple[Posture, ...]:
    """The reference configuration "qpos0", in which equality constraints hold, then the keyframes."""
    postures = [Posture("qpos0", _coordinates(m, m.qpos0))]
    stateful = [i for i, actuator in enumerate(driven) if actuator.dynamics != STATELESS]
    for k, name in enumerate(names.keys):
        activation, control = m.key_act[k][m.actuator_actadr[stateful]], m.key_ctrl[k][m.actuator_ctrladr]
        velocities = _velocities(m, m.key_qpos[k], m.key_qvel[k])
        v, act, ctrl = (tuple(x.tolist()) if np.any(x) else () for x in (velocities, activation, control))
        postures.append(Posture(name, _coordinates(m, m.key_qpos[k]), v, act, ctrl, float(m.key_time[k])))
    return tuple(postures)


def _velocities(m: Any, qpos: Any, qvel: Any) -> Any:
    """Velocities with the linear ones of free joints in the body's axes."""
    v = qvel.copy()
    for j in np.flatnonzero(m.jnt_type == FREE):
        at, start = m.jnt_qposadr[j], m.jnt_dofadr[j]
        v[start : start + 3] = quaternion_to_rotation(our_quaternion(qpos[at + 3 : at + 7])).T @ v[start : start + 3]
    return v


def _coordinates(m: Any, qpos: Any) -> tuple[float, ...]:
    q = qpos.copy()
    for kind, start in zip(m.jnt_type, m.jnt_qposadr, strict=True):
        at = start + 3 * (kind == 0)
        if kind <= 1:  # free and ball joints
            q[at : at + 4] = our_quaternion(q[at : at + 4])
    return tuple(q.tolist())
