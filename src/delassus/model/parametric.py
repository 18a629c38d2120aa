"""Models with parameters: constants of a robot as inputs of the compiled code, one set per state of a batch.

    model = dl.load("robot.urdf").parametric("gravity", "inertia:trunk")
    p = model.pack({"inertia:trunk": inertias})     (…, nparameters); the rest as in the robot
    dl.aba(model, q, v, tau, parameters=p)

| name | numbers |
|---|---|
| gravity | 3: acceleration [m/s²] in the world's axes |
| mass:body | 1: the mass [kg] of a body that keeps its center and its shape: moments of inertia are in proportion |
| inertia:body | 10: m, m c, then Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the origin of the body's frame, as in Pinocchio |
| placement:joint | 7: translation [m] and unit quaternion (x, y, z, w) of the joint's frame in its parent body's |
| frame:frame | 7: the same, of a named frame in the frame of the body that carries it |
| armature:joint | one per velocity of the joint: rotor inertia [kg·m² or kg] |
| damping:joint | one per velocity of the joint [N·m·s/rad or N·s/m] |
| servo:actuator | 2: stiffness [N·m/rad] and damping [N·m·s/rad] of a position servo |
| force_limit:actuator | 1: its force or torque is at most so much, in either direction [N, N·m] |

A body is named by the joint that carries it, or by its link. A pattern such as "inertia:*_knee" stands for all joints
(frames, actuators) that match, in the model's order; a kind alone ("armature") for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy
from numpy.typing import NDArray

from delassus.model.description import Description
from delassus.model.parameter_names import ACTUATOR_KINDS, Part
from delassus.model.placement import Inertia, Placement
from delassus.model.traced import TracedInertia, TracedPlacement
from delassus.model.transmission import Actuator
from delassus.spatial.inertias import inertia_from_parameters, inertia_parameters
from delassus.spatial.quaternions import quaternion_from_rotation, quaternion_to_rotation


def with_nonzero_inertia(body: Inertia) -> Inertia:
    """A body as it is, or one of some size and mass where it has none."""
    mass, rotational = body.mass or 1.0, numpy.array(body.rotational)
    return body if numpy.linalg.eigvalsh(rotational)[0] > 0.0 else Inertia.of(mass, body.com, mass * numpy.eye(3))


def default_parameters(model: Description, kind: str, index: int) -> NDArray[numpy.float64]:
    """The parameters of one part, as the model has them."""
    if kind == "gravity":
        return numpy.array(model.gravity)
    if kind == "frame":
        return _seven(model.frame_list[index].placement)
    if kind == "servo":
        return numpy.array([model.actuators[index].gain[0], -model.actuators[index].bias[2]])
    if kind == "force_limit":
        return numpy.array([max(map(abs, model.actuators[index].force_range))])
    joint = model.joints[index]
    if kind == "damping":
        return numpy.array(joint.damping or (0.0,) * joint.kind.nv)
    if kind == "placement":
        return _seven(joint.placement)
    if kind == "armature":
        return numpy.array(joint.armature or (0.0,) * joint.kind.nv)
    body = joint.inertia
    if kind == "mass":
        return numpy.array([body.mass])
    return numpy.array(inertia_parameters(body.mass, numpy.array(body.com), numpy.array(body.rotational)))


def _seven(placement: Placement) -> NDArray[numpy.float64]:
    """Translation and unit quaternion of a placement."""
    return numpy.concatenate([placement.p, quaternion_from_rotation(placement.R)])


def _placement(x: NDArray[numpy.float64]) -> Placement:
    return Placement.of(quaternion_to_rotation(x[3:]), x[:3])


def _with_gains(servo: Actuator, stiffness: Any, damping: Any) -> Actuator:
    return replace(servo, gain=(stiffness, 0.0, 0.0), bias=(0.0, -stiffness, -damping))


Makers = Mapping[str, Callable[[Any, Any], Any]]
PLAIN: Makers = {
    "gravity": lambda x, model: tuple(x.tolist()),
    "mass": lambda x, joint: joint.inertia.with_mass(float(x[0])),
    "inertia": lambda x, joint: Inertia.of(*inertia_from_parameters(x)),
    "placement": lambda x, joint: _placement(x),
    "frame": lambda x, frame: _placement(x),
    "armature": lambda x, joint: tuple(x.tolist()),
    "damping": lambda x, joint: tuple(x.tolist()),
    "servo": lambda x, actuator: _with_gains(actuator, *x.tolist()),
    "force_limit": lambda x, actuator: replace(actuator, force_range=(-float(x[0]), float(x[0]))),
}
TRACED: Makers = {
    "gravity": lambda x, model: tuple(x),
    "mass": lambda x, joint: TracedInertia.of_mass(x[0], joint.inertia),
    "inertia": lambda x, joint: TracedInertia.of_parameters(x),
    "placement": lambda x, joint: TracedPlacement.of_parameters(x),
    "frame": lambda x, frame: TracedPlacement.of_parameters(x),
    "armature": lambda x, joint: tuple(x),
    "damping": lambda x, joint: tuple(x),
    "servo": lambda x, actuator: _with_gains(actuator, x[0], x[1]),
    "force_limit": lambda x, actuator: replace(actuator, force_range=(-x[0], x[0])),
}
"""How the numbers of each kind, and what they belong to in the model, make what stands there instead."""


def substitute_parameters(
    model: Description, parts: tuple[Part, ...], parameters: Any, makers: Makers
) -> dict[str, Any]:
    """The fields of a model in which parameters stand."""
    gravity, joints, frames = model.gravity, list(model.joints), list(model.frame_list)
    actuators = list(model.actuators)
    for part in parts:
        make, x = makers[part.kind], parameters[part.at]
        if part.kind == "gravity":
            gravity = make(x, model)
        elif part.kind in ACTUATOR_KINDS:
            actuators[part.index] = make(x, actuators[part.index])
        elif part.kind == "frame":
            frames[part.index] = replace(frames[part.index], placement=make(x, frames[part.index]))
        else:
            field = "inertia" if part.kind == "mass" else part.kind
            joints[part.index] = replace(joints[part.index], **{field: make(x, joints[part.index])})
    return {"gravity": gravity, "joints": tuple(joints), "frame_list": tuple(frames), "actuators": tuple(actuators)}


def are_admissible(parts: tuple[Part, ...], parameters: NDArray[numpy.float64]) -> NDArray[numpy.bool_]:
    """(…) whether parameters (…, nparameters) are those of a robot: all finite, masses positive, inertias positive
    definite, unit quaternions, and what damps, resists or limits not negative."""
    good: Any = numpy.isfinite(parameters).all(-1)
    with numpy.errstate(all="ignore"):
        for part in parts:
            x = parameters[..., part.at]
            if part.kind == "mass":
                good = good & (x[..., 0] > 0.0)
            elif part.kind == "inertia":
                good = good & _is_inertia(numpy.where(good[..., None], x, 1.0))
            elif part.kind in ("placement", "frame"):
                good = good & (numpy.abs(numpy.sum(x[..., 3:] ** 2, -1) - 1.0) < 1e-6)
            elif part.kind != "gravity":
                good = good & (x >= 0.0).all(-1)
    return numpy.asarray(good)


def _is_inertia(x: NDArray[numpy.float64]) -> NDArray[numpy.bool_]:
    """(…) whether ten numbers are those of a body: a mass, and a positive definite inertia about its center."""
    mass, center = x[..., 0], x[..., 1:4] / x[..., :1]
    about = x[..., [4, 5, 7, 5, 6, 8, 7, 8, 9]].reshape(*x.shape[:-1], 3, 3)
    square = numpy.sum(center**2, -1)[..., None, None] * numpy.eye(3) - center[..., :, None] * center[..., None, :]
    lowest = numpy.linalg.eigvalsh(numpy.nan_to_num(about - mass[..., None, None] * square))[..., 0]
    return (mass > 0.0) & (lowest > 0.0)
