"""Checks of the values of a model: counts, finiteness, rotations, inertias."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from delassus.common.checks import array_of_shape
from delassus.errors import BadArgument, expect, short, warn
from delassus.model.parts import WORLD, Frame, Geometry, Joint, Medium
from delassus.model.placement import Inertia, Placement

_LIMITS = ("lower", "upper", "velocity_limit", "effort_limit", "actuator_force_range")
_FIXED_COUNTS = {"actuator_force_range": 2, "gravity_compensation": 4}


def is_real(x: Any) -> bool:
    """Whether this is a number that fits into a float; NaN is checked elsewhere."""
    try:
        return isinstance(x, (int, float, np.number)) and isinstance(float(x), float)
    except (TypeError, OverflowError):
        return False


def check_parts(model: Any, **kinds: type) -> None:
    """Raise an error unless the parts of a model are tuples of these types, refer to joints by index, and hold
    numbers.
    """
    for label, kind in kinds.items():
        parts = getattr(model, label)
        if not isinstance(parts, (tuple, list)) or not all(isinstance(part, kind) for part in parts):
            raise BadArgument(
                f"{label} of a model is {short(repr(parts))}; it must be a tuple of {kind.__name__}.", code="wrong-type"
            )
    for part in (*model.joints, *model.frame_list, *model.geometries):
        if not isinstance(part.name, str):
            raise BadArgument(
                f"a part of a model has the name {short(repr(part.name))}; it must be a string.", code="wrong-type"
            )
        number = part.parent if hasattr(part, "parent") else part.joint
        if not isinstance(number, (int, np.integer)) or isinstance(number, bool):
            raise BadArgument(
                f"{part.name!r} is on the joint {short(repr(number))}; a joint must be given by its number.",
                code="wrong-type",
            )
        mimic = getattr(part, "mimic", None)
        if mimic is not None and not all(is_real(getattr(mimic, x, None)) for x in ("source", "ratio", "offset")):
            raise BadArgument(
                f"joint {part.name!r} mimics {short(repr(mimic))}; it must be a Mimic, such as Mimic(0).",
                code="bad-mimicry",
            )
    vectors = {"gravity": model.gravity} | {f"the posture {p.name!r}": p.q for p in model.postures}
    for label, values in vectors.items():
        if not isinstance(values, (tuple, list)) or not all(map(is_real, values)):
            raise BadArgument(f"{label} is {short(repr(values))}; it must be a tuple of numbers.", code="wrong-type")


def check_numbers(joint: Joint) -> None:
    """Raise an error unless a joint has the right number of limits and coefficients, or none, and a valid inertia."""
    for name in ("nq", "nv"):
        if not hasattr(joint.kind, name):
            raise BadArgument(
                f"the kind of joint {joint.name!r} is {short(repr(joint.kind))}; it must be a JointKind, such "
                "as Revolute().",
                code="wrong-type",
            )
    nq, nv = joint.kind.nq, joint.kind.nv
    counts = {"lower": nq, "upper": nq, "rest": nq, "velocity_limit": nv, "effort_limit": nv, "armature": nv}
    for name, count in (counts | {"damping": nv, "friction": nv, "stiffness": nv} | _FIXED_COUNTS).items():
        values = getattr(joint, name)
        if not isinstance(values, (tuple, list)) or not all(map(is_real, values)):
            raise BadArgument(
                f"{name} of joint {joint.name!r} is {short(repr(values))}; it must be a tuple of numbers.",
                code="wrong-type",
            )
        if len(values) not in (0, count):
            raise BadArgument(
                f"{name} of joint {joint.name!r} has {len(values)} numbers; it needs {count}, or none.",
                code="wrong-shape",
            )
        if name in _LIMITS and any(map(math.isnan, values)):
            raise BadArgument(
                f"{name} of joint {joint.name!r} is {values}; a limit is a number, or infinite.", code="not-finite"
            )
        if name not in _LIMITS and not all(map(math.isfinite, values)):
            raise BadArgument(f"{name} of joint {joint.name!r} is {values}; it must be finite.", code="not-finite")
    check_inertia(f"the body of joint {joint.name!r}", joint.inertia)


def warn_of_omissions(model: Any) -> None:
    """Warn about each feature of a model's file that is not supported: feature, location and remedy."""
    for sentence in model.omissions:
        warn(f"{model.name!r}: {sentence}")


def check_inertia(label: str, inertia: Inertia) -> None:
    """Raise an error unless an inertia is finite and its mass nonnegative."""
    expect(f"the inertia of {label}", inertia, Inertia, "Inertia(mass=1.0)")
    shapes: dict[str, tuple[int, ...]] = {"mass": (), "com": (3,), "rotational": (3, 3)}
    numbers = [array_of_shape(f"the {name} of {label}", getattr(inertia, name), n) for name, n in shapes.items()]
    if not all(np.isfinite(x).all() for x in numbers):
        raise BadArgument(f"{label} has an inertia that is not finite: {inertia}.", code="not-finite")
    if inertia.mass < 0.0:
        raise BadArgument(f"{label} has the mass {inertia.mass:g} kg; it must not be negative.", code="out-of-range")


def check_medium(medium: Medium, joints: int) -> None:
    """Raise an error unless a medium is finite, its density and viscosity are nonnegative, and its shapes are on the
    joints.
    """
    expect("the medium", medium, Medium, "Medium(density=1000.0, viscosity=1e-3)")
    for label, x in (("density", medium.density), ("viscosity", medium.viscosity)):
        if not (is_real(x) and math.isfinite(x) and x >= 0.0):
            raise BadArgument(f"the medium's {label} is {x}; it must be 0 or more, and finite.", code="out-of-range")
    if len(medium.wind) != 3 or not all(is_real(x) and math.isfinite(x) for x in medium.wind):
        raise BadArgument(f"the wind is {medium.wind}; it must be three finite numbers [m/s].", code="not-finite")
    for shape in medium.shapes:
        values = (*shape.lengths, *shape.coefficients, *shape.added_mass, *shape.added_inertia)
        if not WORLD <= shape.joint < joints or len(shape.lengths) != 3 or len(shape.coefficients) not in (0, 5):
            raise BadArgument(
                f"the medium acts on {short(repr(shape))}; it must be on one of the {joints} joints, with 3 lengths "
                "and 5 coefficients or none.",
                code="wrong-shape",
            )
        if not all(is_real(x) and math.isfinite(x) for x in values) or min(shape.lengths) <= 0.0:
            raise BadArgument(
                f"the medium acts on {short(repr(shape))}; its numbers must be finite, and its lengths positive.",
                code="not-finite",
            )


def check_placements(items: Sequence[Joint | Frame | Geometry]) -> None:
    """Raise an error unless all placements are finite and their matrices rotations, to six digits."""
    if not items:
        return
    for item in items:
        expect(f"the placement of {item.name!r}", item.placement, Placement, "Placement()")
    R = np.array([item.placement.rotation for item in items])
    p = np.array([item.placement.translation for item in items])
    finite = np.isfinite(R).all((1, 2)) & np.isfinite(p).all(1)
    R[~finite] = np.eye(3)
    rotations = (abs(R @ R.mT - np.eye(3)).max((1, 2)) < 1e-6) & (np.linalg.det(R) > 0.0)
    for item, is_finite, is_rotation in zip(items, finite, rotations, strict=True):
        if not is_finite:
            raise BadArgument(f"the placement of {item.name!r} is not finite: {item.placement}.", code="not-finite")
        if not is_rotation:
            raise BadArgument(
                f"the placement of {item.name!r} has a matrix that is not a rotation: {item.placement.rotation}.",
                code="not-a-rotation",
            )
