"""Conversion of models and configurations to and from Pinocchio.

Both order joints the same way and agree on `v`. `q` differs where Pinocchio uses the cosine and sine of an angle
(unbounded revolute joints and planar joints): here that is one coordinate. Angles converted from Pinocchio are in (-π,
π].
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
    """Convert a `pinocchio.Model`: joints, inertias, frames, limits, armature, damping, friction.

    The inertia of Pinocchio's universe becomes that of the base. A frame "world" at another place is renamed
    world_link, world_joint or world_frame, according to its type.

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
    """Limits; Pinocchio's largest float means none."""
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
    if name == "RevoluteUnboundedUnaligned":  # its axis is only available from its motion subspace
        return Revolute(vector(np.asarray(joint.createData().S).ravel()[3:]), continuous=True)
    if name == "PrismaticUnaligned":
        return Prismatic(vector(extracted.axis))
    if name == "HelicalUnaligned":
        return Helical(vector(extracted.axis), extracted.pitch)
    if name == "Universal":
        return Universal(vector(extracted.axis1), vector(extracted.axis2))
    raise BadArgument(f"Pinocchio's joint {joint.shortname()} has no counterpart here.", code="not-supported")


def _angles(kind: JointKind) -> int | None:
    """The coordinate that Pinocchio stores as cosine and sine, if any."""
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
            f"a configuration of {model.name!r} must have {model.nq} values; it has shape {ours.shape}.",
            code="wrong-shape",
        )
    for joint, start in zip(model.joints, model.q_starts, strict=True):
        if joint.mimic is not None:
            continue
        coordinates = ours[..., start : start + joint.kind.nq]
        angle = _angles(joint.kind)
        if angle is not None:
            cos_sin = np.stack([np.cos(coordinates[..., angle]), np.sin(coordinates[..., angle])], -1)
            coordinates = np.concatenate([coordinates[..., :angle], cos_sin], -1)
        parts.append(coordinates)
    return np.concatenate(parts, -1) if parts else ours


def q_from_pinocchio(model: Model, q: ArrayLike) -> NDArray[np.float64]:
    """Configurations in Pinocchio's layout as (…, nq).

    >>> robot = dl.load("quadruped")
    >>> dl.pinocchio.q_from_pinocchio(robot, robot.neutral()).shape
    (19,)
    """
    pin_q, parts, at = np.atleast_1d(np.asarray(q, float)), [], 0
    for joint in model.independent:
        angle = _angles(joint.kind)
        nq = joint.kind.nq + (0 if angle is None else 1)
        coordinates = pin_q[..., at : at + nq]
        at += nq
        if angle is not None:
            angles = np.arctan2(coordinates[..., angle + 1], coordinates[..., angle])[..., None]
            coordinates = np.concatenate([coordinates[..., :angle], angles], -1)
        parts.append(coordinates)
    if at != pin_q.shape[-1]:
        raise BadArgument(
            f"a configuration of {model.name!r} must have {at} values in Pinocchio's layout; it has {pin_q.shape[-1]}.",
            code="wrong-shape",
        )
    return np.concatenate(parts, -1) if parts else pin_q
