"""Models with parameters: constants of a robot as inputs of the compiled code, one set per item of a batch.

    model = dl.load("robot.urdf").parametric("gravity", "inertia:trunk")
    p = model.pack({"inertia:trunk": inertias})     (…, nparameters); the rest as in the robot
    dl.aba(model, q, v, tau, parameters=p)

| name | numbers |
|---|---|
| gravity | 3: acceleration [m/s²] in the world's axes |
| mass:body | 1: the mass [kg] of a body that keeps its centre and its shape: moments of inertia are in proportion |
| inertia:body | 10: m, m c, then Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the origin of the body's frame, as in Pinocchio |
| placement:joint | 7: translation [m] and unit quaternion (x, y, z, w) of the joint's frame in its parent body's |
| frame:frame | 7: the same, of a named frame in the frame of the body that carries it |
| armature:joint | one per velocity of the joint: rotor inertia [kg·m² or kg] |

A body is named by the joint that carries it, or by its link. A pattern such as "inertia:*_knee" stands for all joints
(or frames) that match, in the model's order; a kind alone ("armature") for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy
from numpy.typing import NDArray

from delassus.model.of_model import Description
from delassus.model.parameter_names import Part
from delassus.model.placement import Inertia, Placement
from delassus.model.traced import TracedInertia, TracedPlacement
from delassus.spatial.inertias import inertia_from_parameters, inertia_parameters
from delassus.spatial.quaternions import quaternion_from_rotation, quaternion_to_rotation


def with_some_inertia(body: Inertia) -> Inertia:
    """A body as it is, or one of some size and mass where it has none."""
    mass, rotational = body.mass or 1.0, numpy.array(body.rotational)
    return body if numpy.linalg.eigvalsh(rotational)[0] > 0.0 else Inertia.of(mass, body.com, mass * numpy.eye(3))


def default_parameters(model: Description, kind: str, index: int) -> NDArray[numpy.float64]:
    """The parameters of one part, as the model has them."""
    if kind == "gravity":
        return numpy.array(model.gravity)
    if kind == "frame":
        return _seven(model.frame_list[index].placement)
    joint = model.joints[index]
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


Makers = Mapping[str, Callable[[Any, Any], Any]]
PLAIN: Makers = {
    "gravity": lambda x, model: tuple(x.tolist()),
    "mass": lambda x, joint: joint.inertia.with_mass(float(x[0])),
    "inertia": lambda x, joint: Inertia.of(*inertia_from_parameters(x)),
    "placement": lambda x, joint: _placement(x),
    "frame": lambda x, frame: _placement(x),
    "armature": lambda x, joint: tuple(x.tolist()),
}
TRACED: Makers = {
    "gravity": lambda x, model: tuple(x),
    "mass": lambda x, joint: TracedInertia.of_mass(x[0], joint.inertia),
    "inertia": lambda x, joint: TracedInertia.of_parameters(x),
    "placement": lambda x, joint: TracedPlacement.of_parameters(x),
    "frame": lambda x, frame: TracedPlacement.of_parameters(x),
    "armature": lambda x, joint: tuple(x),
}
"""How the numbers of each kind, and what they belong to in the model, make what stands there instead."""


def replaced_fields(model: Description, parts: tuple[Part, ...], parameters: Any, makers: Makers) -> dict[str, Any]:
    """The fields of a model in which parameters stand."""
    gravity, joints, frames = model.gravity, list(model.joints), list(model.frame_list)
    for part in parts:
        make, x = makers[part.kind], parameters[part.at]
        if part.kind == "gravity":
            gravity = make(x, model)
        elif part.kind == "frame":
            frames[part.index] = replace(frames[part.index], placement=make(x, frames[part.index]))
        else:
            field = "inertia" if part.kind == "mass" else part.kind
            joints[part.index] = replace(joints[part.index], **{field: make(x, joints[part.index])})
    return {"gravity": gravity, "joints": tuple(joints), "frame_list": tuple(frames)}
