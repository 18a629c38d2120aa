"""Creates models from models: attaches one to another, locks joints."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delassus.errors import BadArgument
from delassus.model.equality import JointCoupling, TendonCoupling, ends, prefix_equality
from delassus.model.joints import rotation_to_axis
from delassus.model.model import Model
from delassus.model.motions.motion import JointMotion
from delassus.model.motions.moves import Move, Rotation, Shift
from delassus.model.parts import WORLD, WORLD_FRAME, FileSensor, Frame, Joint, Mimic
from delassus.model.placement import HERE, Inertia, Placement
from delassus.model.transmission import Tendon, prefix_transmissions, transmissions_without


def attach(model: Model, other: Model, frame: Frame, placement: Placement, prefix: str) -> Model:
    """`other` with its world fixed to a frame of `model`."""
    mount, shift = frame.placement * placement, len(model.joints)
    world = _world_name(other, prefix)

    def transform_part(joint: int, placement: Placement) -> tuple[int, Placement]:
        return (joint + shift, placement) if joint != WORLD else (frame.joint, mount * placement)

    joints = list(model.joints)
    base = model.base_inertia
    base_inertia = other.base_inertia.transform(mount)
    if frame.joint == WORLD:
        base = base + base_inertia
    else:
        joints[frame.joint] = replace(joints[frame.joint], inertia=joints[frame.joint].inertia + base_inertia)
    for joint in other.joints:
        parent, placed = transform_part(joint.parent, joint.placement)
        mimic = joint.mimic and replace(joint.mimic, source=joint.mimic.source + shift)
        joints.append(replace(joint, name=prefix + joint.name, parent=parent, placement=placed, mimic=mimic))
    other_frames = [replace(f, name=world if f.name == WORLD_FRAME.name else prefix + f.name) for f in other.frame_list]
    constraints = [prefix_equality(constraint, prefix, world) for constraint in other.constraints]
    if any(world in ends(constraint) for constraint in constraints) and world not in {f.name for f in other_frames}:
        other_frames.append(replace(WORLD_FRAME, name=world))
    _check_names(model, other, "joint", model.joints, [prefix + joint.name for joint in other.joints])
    _check_names(model, other, "frame", model.frame_list, [f.name for f in other_frames])
    frames = list(model.frame_list)
    for f in other_frames:
        on, placed = transform_part(f.joint, f.placement)
        frames.append(replace(f, joint=on, placement=placed))
    shapes = list(model.geometries)
    for g in other.geometries:
        on, placed = transform_part(g.joint, g.placement)
        shapes.append(replace(g, name=prefix + g.name, joint=on, placement=placed))
    immersed = list(model.medium.shapes)
    for shape in other.medium.shapes:
        on, placed = transform_part(shape.joint, shape.placement)
        immersed.append(replace(shape, joint=on, placement=placed))
    medium = replace(model.medium if model.medium.is_felt else other.medium, shapes=tuple(immersed))
    actuators, tendons = prefix_transmissions(other.actuators, other.tendons, prefix)
    return replace(
        model,
        joints=tuple(joints),
        frame_list=tuple(frames),
        geometries=tuple(shapes),
        constraints=(*model.constraints, *constraints),
        base_inertia=base,
        actuators=(*model.actuators, *actuators),
        tendons=(*model.tendons, *tendons),
        medium=medium,
        postures=() if other.nq else model.postures,
        sensors=(*model.sensors, *(_prefix_sensor(one, prefix) for one in other.sensors)),
        warnings=(*model.warnings, *other.warnings),
        omissions=(*model.omissions, *other.omissions),
        contact_rules=model.contact_rules.merge(other.contact_rules.with_prefix(prefix)),
        impedances=model.impedances.merge(other.impedances.with_prefix(prefix)),
    )


def _prefix_sensor(sensor: FileSensor, prefix: str) -> FileSensor:
    target, reference = (name and prefix + name for name in (sensor.target, sensor.reference))
    return replace(sensor, name=prefix + sensor.name, target=target, reference=reference)


def _world_name(other: Model, prefix: str) -> str:
    """The name of the frame of another model's world after attaching that model."""
    return f"{prefix or f'{other.name}_'}{WORLD_FRAME.name}"


def _check_names(model: Model, other: Model, label: str, ours: Sequence[Joint | Frame], theirs: Sequence[str]) -> None:
    used_names = {item.name for item in ours}
    for name in theirs:
        if name in used_names:
            raise BadArgument(
                f"{model.name!r} has a {label} {name!r} already: attach {other.name!r} with a prefix that makes "
                "names differ.",
                code="duplicate-name",
            )


def lock(model: Model, locked: set[int], q: NDArray[np.float64]) -> Model:
    """The model without some joints, which are fixed at the configuration q."""
    if q.shape != (model.nq,):
        raise BadArgument(f"the configuration has shape {q.shape}, the model needs ({model.nq},).", code="wrong-shape")
    for i, joint in enumerate(model.joints):
        if joint.mimic is not None and i in locked and joint.mimic.source not in locked:
            raise BadArgument(
                f"joint {joint.name!r} follows {model.joints[joint.mimic.source].name!r}: lock that joint, or load "
                'the model with mimic="ignore".',
                code="bad-mimicry",
            )
    locked = locked | {i for i, joint in enumerate(model.joints) if joint.mimic and joint.mimic.source in locked}
    where: list[tuple[int, Placement]] = []  # new joint and placement of each old joint's body
    joints: list[Joint] = []
    base = model.base_inertia
    remaining = [i for i in range(len(model.joints)) if i not in locked]
    number = {i: k for k, i in enumerate(remaining)}
    for i, joint in enumerate(model.joints):
        parent, body = (WORLD, HERE) if joint.parent == WORLD else where[joint.parent]
        placement = body * joint.placement
        if i not in locked:
            where.append((len(joints), HERE))
            mimic = joint.mimic and Mimic(number[joint.mimic.source], joint.mimic.ratio, joint.mimic.offset)
            joints.append(replace(joint, parent=parent, placement=placement, mimic=mimic))
            continue
        placement = placement * joint_placement(joint, _coordinates(model, i, q))
        where.append((parent, placement))
        if parent == WORLD:
            base = base + joint.inertia.transform(placement)
        else:
            joints[parent] = replace(
                joints[parent],
                inertia=joints[parent].inertia + joint.inertia.transform(placement),
                gravity_compensation=_merge_compensation(joints[parent], joint, placement),
            )

    def transform_part(item: Any) -> Any:
        if item.joint == WORLD:
            return item
        joint, body = where[item.joint]
        return replace(item, joint=joint, placement=body * item.placement)

    names = {model.joints[i].name for i in locked}
    actuators, tendons = transmissions_without(model.actuators, model.tendons, names)
    return replace(
        model,
        joints=tuple(joints),
        frame_list=tuple(map(transform_part, model.frame_list)),
        geometries=tuple(map(transform_part, model.geometries)),
        constraints=_remaining_constraints(model, names, tendons),
        base_inertia=base,
        actuators=actuators,
        tendons=tendons,
        medium=replace(model.medium, shapes=tuple(map(transform_part, model.medium.shapes))),
        postures=() if locked else model.postures,
    )


def _merge_compensation(parent: Joint, joint: Joint, placement: Placement) -> tuple[float, ...]:
    """The mass and center of gravity compensation of two merged bodies."""
    shares = [Inertia.of(m[0], m[1:]) for m in (parent.gravity_compensation, joint.gravity_compensation) if m]
    if not joint.gravity_compensation:
        return parent.gravity_compensation
    shares[-1] = shares[-1].transform(placement)
    total = shares[0] + shares[1] if len(shares) > 1 else shares[0]
    return (total.mass, *total.com)


def _remaining_constraints(model: Model, locked: set[str], tendons: Sequence[Tendon]) -> tuple[Any, ...]:
    """The remaining constraints, without couplings whose joints or tendons are all locked."""
    remaining = []
    for constraint in model.constraints:
        if isinstance(constraint, JointCoupling):
            joints = {constraint.follower, constraint.leader} - {None}
            if joints <= locked:
                continue
            if joints & locked:
                raise BadArgument(
                    f"the constraint {constraint.name!r} couples joints {' and '.join(sorted(map(str, joints)))}: lock "
                    "both or neither.",
                    code="bad-mimicry",
                )
        if isinstance(constraint, TendonCoupling):
            tendon_names = {tendon.name for tendon in tendons}
            if not {constraint.follower, constraint.leader} - {None} <= tendon_names:
                continue
        remaining.append(constraint)
    return tuple(remaining)


def _coordinates(model: Model, i: int, q: NDArray[np.float64]) -> list[float]:
    joint, start = model.joints[i], model.q_starts[i]
    coordinates = q[start : start + joint.kind.nq].tolist()
    return [joint.mimic.ratio * x + joint.mimic.offset for x in coordinates] if joint.mimic else coordinates


def joint_placement(joint: Joint, coordinates: list[float]) -> Placement:
    """The placement of the body in the joint's frame, for given coordinates."""
    result, at = HERE, 0
    for motion, axis, pitch in joint.kind.elements:
        turn = Placement.of(rotation_to_axis(axis))
        result = result * turn * _elementary(motion, pitch, coordinates[at : at + motion.nq]) * turn.inverse()
        at += motion.nq
    return result


def _elementary(motion: JointMotion, pitch: float, x: list[float]) -> Placement:
    """The displacement of an elementary motion."""
    if motion.has_quaternion and not np.linalg.norm(x[-4:]) > 0.0:
        raise BadArgument("a joint cannot be locked at a quaternion of length zero.", code="zero-direction")
    result = HERE
    for move in motion.moves(list(motion.normalize(np.array(x))), pitch):
        result = _placement(move) * result
    return result


def _placement(move: Move) -> Placement:
    if isinstance(move, Shift):
        return Placement.of(p=move.p)
    if isinstance(move, Rotation):
        return Placement.of(move.R)
    c, s = math.cos(move.angle), math.sin(move.angle)
    return Placement.of([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
