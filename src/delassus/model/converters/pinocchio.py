"""Conversion of models and configurations to and from Pinocchio.

Both order joints the same way and agree on `v`. In `q` they differ where Pinocchio uses the cosine and sine of an
angle (unbounded revolute joints and planar joints): here that is one number. An angle that comes from Pinocchio is
in (-π, π].
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delassus.errors import BadArgument
from delassus.model.joints import (
    Free,
    Helical,
    JointKind,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Translation,
    Universal,
    X,
    Y,
    Z,
)
from delassus.model.model import Model
from delassus.model.parts import WORLD_FRAME, Frame, Joint, is_world
from delassus.model.placement import Inertia, Placement, vector

_AXES = {"X": X, "Y": Y, "Z": Z}


def from_pinocchio(pin_model: Any) -> Model:
    """The model of a `pinocchio.Model` in memory: joints, inertias, frames, limits, armature, damping, friction.

    The inertia of Pinocchio's universe is that of the base. A frame "world" that is elsewhere is called world_link,
    world_joint or world_frame, by what it is of.

    >>> import pinocchio
    >>> dl.from_pinocchio(pinocchio.buildSampleModelManipulator()).nv
    6
    """
    joints = tuple(_joint(pin_model, i) for i in range(1, pin_model.njoints))
    frames: dict[str, Frame] = {}
    for frame in pin_model.frames:
        role = {"JOINT": "joint", "BODY": "link"}.get(str(frame.type), "frame")
        name, on, placement = frame.name, frame.parentJoint - 1, _placement(frame.placement)
        if name == WORLD_FRAME.name and not is_world(on, placement):
            name = f"{name}_{role}"
        name = name if name not in frames else f"{name}:{len(frames)}"
        frames[name] = Frame(name, on, placement, role)
    gravity, base = vector(pin_model.gravity.linear), _inertia(pin_model.inertias[0])
    return Model(pin_model.name, joints, tuple(frames.values()), gravity, base_inertia=base)


def _placement(M: Any) -> Placement:
    return Placement.of(M.rotation, M.translation)


def _inertia(Y: Any) -> Inertia:
    return Inertia.of(Y.mass, Y.lever, Y.inertia)


def _joint(m: Any, i: int) -> Joint:
    kind = _kind(m.joints[i])
    q, v, nv = m.joints[i].idx_q, m.joints[i].idx_v, kind.nv

    def take(values: Any) -> tuple[float, ...]:
        return tuple(np.asarray(values)[v : v + nv].tolist())

    has_limits = kind.nq == m.joints[i].nq and kind.nq == 1
    return Joint(
        name=m.names[i],
        kind=kind,
        parent=m.parents[i] - 1,
        placement=_placement(m.jointPlacements[i]),
        inertia=_inertia(m.inertias[i]),
        lower=_limits(m.lowerPositionLimit[q : q + 1]) if has_limits else (),
        upper=_limits(m.upperPositionLimit[q : q + 1]) if has_limits else (),
        velocity_limit=take(m.velocityLimit),
        effort_limit=take(m.effortLimit),
        armature=take(m.armature) if any(take(m.armature)) else (),
        damping=take(m.damping) if any(take(m.damping)) else (),
        friction=take(m.friction) if any(take(m.friction)) else (),
    )


def _limits(values: Any) -> tuple[float, ...]:
    """Limits; Pinocchio's largest float stands for none."""
    array = np.asarray(values, float)
    return tuple(np.where(abs(array) > 1e300, np.copysign(np.inf, array), array).tolist())


def _kind(joint: Any) -> JointKind:
    name = joint.shortname().removeprefix("JointModel")
    extracted = joint.extract() if hasattr(joint, "extract") else joint
    if name in ("RX", "RY", "RZ", "RUBX", "RUBY", "RUBZ"):
        return Revolute(_AXES[name[-1]], continuous="UB" in name)
    if name in ("PX", "PY", "PZ"):
        return Prismatic(_AXES[name[-1]])
    if name in ("HX", "HY", "HZ"):
        return Helical(_AXES[name[-1]], extracted.pitch)
    simple: dict[str, JointKind] = {
        "FreeFlyer": Free(),
        "Spherical": Spherical(),
        "Translation": Translation(),
        "Planar": Planar(),
    }
    if name in simple:
        return simple[name]
    if name == "RevoluteUnaligned":
        return Revolute(vector(extracted.axis))
    if name == "RevoluteUnboundedUnaligned":  # which does not tell its axis, but its motion subspace has it
        return Revolute(vector(np.asarray(joint.createData().S).ravel()[3:]), continuous=True)
    if name == "PrismaticUnaligned":
        return Prismatic(vector(extracted.axis))
    if name == "HelicalUnaligned":
        return Helical(vector(extracted.axis), extracted.pitch)
    if name == "Universal":
        return Universal(vector(extracted.axis1), vector(extracted.axis2))
    raise BadArgument(f"Pinocchio's joint {joint.shortname()} has no counterpart here.", code="not-supported")


def _angles(kind: JointKind) -> int | None:
    """Which coordinate Pinocchio writes as cosine and sine, if any."""
    if isinstance(kind, Revolute) and kind.continuous:
        return 0
    return 2 if isinstance(kind, Planar) else None


def q_to_pinocchio(model: Model, q: ArrayLike) -> NDArray[np.float64]:
    """Configurations (…, nq) in Pinocchio's layout.

    >>> robot = dl.load("quadruped")
    >>> dl.pinocchio.q_to_pinocchio(robot, robot.neutral()).shape
    (19,)
    """
    ours, parts = np.asarray(q, float), []
    if ours.ndim == 0 or ours.shape[-1] != model.nq:
        raise BadArgument(
            f"a configuration of {model.name!r} has {model.nq} numbers; this has shape {ours.shape}.",
            code="wrong-shape",
        )
    for joint, start in zip(model.joints, model.q_starts, strict=True):
        if joint.mimic is not None:
            continue
        own = ours[..., start : start + joint.kind.nq]
        angle = _angles(joint.kind)
        if angle is not None:
            cos_sin = np.stack([np.cos(own[..., angle]), np.sin(own[..., angle])], -1)
            own = np.concatenate([own[..., :angle], cos_sin], -1)
        parts.append(own)
    return np.concatenate(parts, -1) if parts else ours


def q_from_pinocchio(model: Model, q: ArrayLike) -> NDArray[np.float64]:
    """Configurations in Pinocchio's layout as (…, nq).

    >>> robot = dl.load("quadruped")
    >>> dl.pinocchio.q_from_pinocchio(robot, robot.neutral()).shape
    (19,)
    """
    theirs, parts, at = np.atleast_1d(np.asarray(q, float)), [], 0
    for joint in model.independent:
        angle = _angles(joint.kind)
        nq = joint.kind.nq + (0 if angle is None else 1)
        own = theirs[..., at : at + nq]
        at += nq
        if angle is not None:
            turned = np.arctan2(own[..., angle + 1], own[..., angle])[..., None]
            own = np.concatenate([own[..., :angle], turned], -1)
        parts.append(own)
    if at != theirs.shape[-1]:
        raise BadArgument(
            f"a configuration of {model.name!r} has {at} numbers in Pinocchio's layout, not {theirs.shape[-1]}.",
            code="wrong-shape",
        )
    return np.concatenate(parts, -1) if parts else theirs
