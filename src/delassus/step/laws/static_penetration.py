"""Static penetration of robots under MuJoCo's contact law; under the rigid law there is none.

At rest, a contact with the force f has the depth r at which the reference acceleration of the law balances f:

    r = f Â (1 - d(r)) / (k d(r)²),

with the impedance d and the stiffness k of its `solimp` and `solref`, and the inverse mass Â of its body.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from delassus.compiler.host.definition import plainly
from delassus.errors import warn
from delassus.model.joints import Free
from delassus.model.model import Model
from delassus.model.parts import WORLD, Geometry
from delassus.step.laws.impedance import gains, impedances
from delassus.step.laws.softening import mix_impedances
from delassus.step.laws.weights import InverseMass
from delassus.step.scene import Scene

_FEET: Final = 4
"""Number of contacts among which the weight of a robot is assumed to be distributed."""

_SAG: Final = 3e-3
"""Depth [m] above which a warning is given."""

_BISECTIONS: Final = 50


def warn_of_softness(scene: Scene, plane: Geometry | None, time_step: float) -> None:
    """Warn if shapes of a file penetrate its ground deeply at rest in MuJoCo, which a rigid law does not reproduce."""
    model = scene.mechanism.model
    if plane is None or not any(model.gravity):
        return
    shapes = [shape.geometry for shape in scene.shapes if _root(model, shape.geometry) is not None]
    if not shapes:
        return
    with plainly():
        inverse = InverseMass(model)
        depths = {g.name: _sag(model, inverse, g, plane, time_step) for g in dict.fromkeys(shapes)}
    name, deepest = max(depths.items(), key=lambda item: item[1])
    if deepest > _SAG:
        count = sum(depth > _SAG for depth in depths.values())
        warn(
            f"the contacts of {model.name!r} are soft in MuJoCo, and rigid here: with a quarter of the weight on it, "
            f"{name!r} sags by {1e3 * deepest:.1f} mm there ({count} shapes sag by more than {1e3 * _SAG:g} mm). "
            'Pass law="mujoco" for contacts as soft as in the file.'
        )


def _root(model: Model, shape: Geometry) -> int | None:
    """The free joint whose subtree contains a shape; None if that subtree is attached to the world."""
    joint = shape.joint
    while joint != WORLD and model.joints[joint].parent != WORLD:
        joint = model.joints[joint].parent
    return joint if joint != WORLD and isinstance(model.joints[joint].kind, Free) else None


def _sag(model: Model, inverse: InverseMass, shape: Geometry, plane: Geometry, h: float) -> float:
    """The depth [m] of a contact that carries a quarter of the robot's weight."""
    root = _root(model, shape)
    mass = sum(joint.inertia.mass for k, joint in enumerate(model.joints) if _carrier(model, k) == root)
    contact = mix_impedances(shape, plane)
    solimp, solref = np.array([contact.solimp]), np.array(contact.solref)
    k = float(gains(solref, solimp[0, 1], h)[0])
    weight = float(inverse.placed(shape.joint, shape.center)[0])
    push = mass * float(np.linalg.norm(model.gravity)) / _FEET * weight
    shallow, deep = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = 0.5 * (shallow + deep)
        d = float(impedances(solimp, np.array([middle]))[0])
        shallow, deep = (middle, deep) if middle * k * d * d < push * (1.0 - d) else (shallow, middle)
    return deep - contact.margin


def _carrier(model: Model, joint: int) -> int:
    """The root joint of the tree that contains a joint."""
    parent: Any = model.joints[joint].parent
    return joint if parent == WORLD else _carrier(model, parent)
