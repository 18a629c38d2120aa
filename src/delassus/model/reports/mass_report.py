"""A report on the masses of a robot, with warnings about implausible values.

Dynamics believes every inertia that it is given. Files often hold guesses: placeholders, moments in other units, a
point mass where a body should be. This compares what the file says with what a body can have, and with its shapes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from delassus.errors import expect
from delassus.model.model import Model
from delassus.model.moments import negative_moment, principal_moments, violates_triangle
from delassus.model.parts import Geometry
from delassus.model.placement import Inertia, Vector

_SMALL = 0.02  # a solid box of 20 by 1 by 1 has a radius of gyration of 4 % of its half-diagonal about its long axis
_HEAVY_ON_LIGHT = 1000.0


@dataclass(frozen=True)
class BodyMasses:
    """The body that a joint carries: mass [kg], center of mass [m] in its frame, principal moments [kg·m²] about it,
    the radii of gyration [m] that go with them, and the `reach` [m] of its shapes from their middle, if they tell."""

    joint: str
    mass: float
    com: Vector
    moments: Vector
    radii: Vector
    reach: float | None


@dataclass(frozen=True)
class MassReport:
    """The masses of every moving body, their sum [kg], and warnings."""

    bodies: tuple[BodyMasses, ...]
    total: float
    warnings: tuple[str, ...]


def mass_report(model: Model) -> MassReport:
    """Report the masses of a model. Meshes and planes have no size here: a body is measured by its other shapes.

    >>> report = dl.model.mass_report(dl.load("double_pendulum"))
    >>> report is not None
    True
    """
    expect("the model", model, Model, 'delassus.load("robot.urdf")')
    bodies, warnings = [], []
    subtrees = _subtree_masses(model)
    for i, joint in enumerate(model.joints):
        body = joint.inertia
        ball = _bounding_ball([shape for shape in model.geometries if shape.joint == i])
        moments = principal_moments(body)
        radii = tuple(math.sqrt(max(m, 0.0) / body.mass) if body.mass > 0.0 else 0.0 for m in moments)
        reach = ball[1] if ball else None
        bodies.append(BodyMasses(joint.name, body.mass, body.com, moments, (radii[0], radii[1], radii[2]), reach))
        warnings += _moment_warnings(joint.name, body, moments)
        if body.mass == 0.0 and subtrees[i] == 0.0 and not any(joint.armature):
            warnings.append(f"joint {joint.name!r} moves no mass: neither its body nor what that carries has any.")
        if ball and body.mass > 0.0:
            warnings += _size_warnings(joint.name, body, radii[2], *ball)
        if body.mass > 0.0 and subtrees[i] - body.mass > _HEAVY_ON_LIGHT * body.mass:
            warnings.append(
                f"the body of {joint.name!r} has {body.mass:.3g} kg and carries {subtrees[i] - body.mass:.3g} kg, more "
                f"than {_HEAVY_ON_LIGHT:g} times as much; solutions lose as many digits as that ratio has."
            )
    return MassReport(tuple(bodies), model.mass, tuple(warnings))


def _subtree_masses(model: Model) -> list[float]:
    """The mass of every body including its descendants."""
    total = [joint.inertia.mass for joint in model.joints]
    for i in reversed(range(len(total))):
        if model.joints[i].parent >= 0:
            total[model.joints[i].parent] += total[i]
    return total


def _moment_warnings(name: str, body: Inertia, moments: Vector) -> list[str]:
    text = ", ".join(f"{m:.4g}" for m in moments)
    if negative_moment(body) is not None:
        return [f"the body of {name!r} has the principal moments {text} kg·m²; none can be negative."]
    if violates_triangle(body):
        return [f"the body of {name!r} has the principal moments {text} kg·m²; one is at most the sum of the others."]
    if body.mass == 0.0 and moments[2] > 0.0:
        return [f"the body of {name!r} has moments of inertia ({text} kg·m²) and no mass."]
    return []


def _size_warnings(name: str, body: Inertia, radius: float, middle: NDArray[np.float64], reach: float) -> list[str]:
    """A body inside a ball has its center there, and a radius of gyration no larger than the ball's."""
    warnings = []
    away = float(np.linalg.norm(np.array(body.com) - middle))
    if away > reach:
        warnings.append(
            f"the center of mass of {name!r} is {away:.3g} m from the middle of its shapes, which reach {reach:.3g} m."
        )
    if radius > reach:
        warnings.append(
            f"the body of {name!r} has a radius of gyration of {radius:.3g} m, and its shapes reach {reach:.3g} m from "
            "their middle: the moments are too large for its mass."
        )
    if radius < _SMALL * reach:
        warnings.append(
            f"the body of {name!r} has a radius of gyration of {radius:.3g} m, and its shapes reach {reach:.3g} m from "
            "their middle: the moments are those of a point."
        )
    return warnings


def _bounding_ball(shapes: list[Geometry]) -> tuple[NDArray[np.float64], float] | None:
    """Center (3,) and radius [m] of a ball around all shapes, in the body's frame; None if none has a size."""
    balls = [(shape.placement.p, radius) for shape in shapes if (radius := _radius(shape)) is not None]
    if not balls:
        return None
    low = np.min([p - r for p, r in balls], axis=0)
    high = np.max([p + r for p, r in balls], axis=0)
    middle = 0.5 * (low + high)
    return middle, max(float(np.linalg.norm(p - middle)) + r for p, r in balls)


def _radius(shape: Geometry) -> float | None:
    """The radius [m] of a ball around a shape's own origin."""
    size = shape.size
    if shape.shape == "box":
        return 0.5 * math.hypot(*size)
    if shape.shape == "cylinder":
        return math.hypot(size[0], 0.5 * size[1])
    if shape.shape == "capsule":
        return size[0] + 0.5 * size[1]
    return max(size) if shape.shape in ("sphere", "ellipsoid") else None
