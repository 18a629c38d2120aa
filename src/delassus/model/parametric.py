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

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy
from numpy.typing import ArrayLike, NDArray

from delassus.common.names import UnknownName
from delassus.common.types import Traced
from delassus.compiler.graph.parameters import Parametric
from delassus.compiler.tracing.trace import trace_of
from delassus.errors import BadArgument, expect
from delassus.model.model import Model
from delassus.model.of_model import OfModel
from delassus.model.parameter_names import KINDS, Part, parts_named
from delassus.model.placement import Inertia, Placement
from delassus.model.traced import TracedInertia, TracedModel, TracedPlacement
from delassus.spatial.inertias import inertia_from_parameters, inertia_parameters
from delassus.spatial.quaternions import quaternion_from_rotation, quaternion_to_rotation


@dataclass(frozen=True)
class ParametricModel(OfModel, Parametric):
    """A model, and the `names` of those of its constants that are parameters; frozen and compared by content."""

    model: Model
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        expect("what has parameters", self.model, Model, 'delassus.load("robot.urdf")')
        expect("names", self.names, tuple, '("gravity", "inertia:trunk")')
        if not self.names:
            raise BadArgument(
                f"name at least one parameter: {', '.join(KINDS)}, or one of them as 'inertia:trunk'.",
                code="missing-argument",
            )
        chosen = [part.name for part in self.parts]
        bodies = [part.index for part in self.parts if part.kind in ("mass", "inertia")]
        for name, count in Counter(chosen).items():
            if count > 1:
                raise BadArgument(
                    f"the parameter {name!r} is chosen more than once, by {', '.join(self.names)}.",
                    code="duplicate-name",
                )
        for k, count in Counter(bodies).items():
            if count > 1:
                body = self.model.joints[k].name
                raise BadArgument(
                    f"'mass:{body}' and 'inertia:{body}' exclude each other: a mass is an inertia's first.",
                    code="conflicting-arguments",
                )

    def __repr__(self) -> str:
        return f"<ParametricModel {self.model.name!r}: {self.nparameters} parameters: {', '.join(self.names)}>"

    @cached_property
    def nparameters(self) -> int:
        """Number of parameters."""
        return int(self.parts[-1].at.stop)

    # --- numbers ------------------------------------------------------------------------------------------------

    @cached_property
    def _groups(self) -> tuple[tuple[Part, ...], ...]:
        """The parts that each name stands for."""
        groups: list[tuple[Part, ...]] = []
        for name in self.names:
            groups.append(parts_named(self.model, name, start=groups[-1][-1].at.stop if groups else 0))
        return tuple(groups)

    @property
    def parts(self) -> tuple[Part, ...]:
        """All parameters by what they belong to, in their order."""
        return tuple(part for group in self._groups for part in group)

    @property
    def slices(self) -> Mapping[str, slice]:
        """Where the parameters of each name are."""
        # Not kept: a view that cannot be changed cannot be pickled either.
        ends = [(group[0].at.start, group[-1].at.stop) for group in self._groups]
        return MappingProxyType({name: slice(*end) for name, end in zip(self.names, ends, strict=True)})

    def parameters(self) -> NDArray[numpy.float64]:
        """The parameters (nparameters,) that the model has as its constants."""
        return numpy.concatenate([_default(self.model, part.kind, part.index) for part in self.parts])

    def pack(self, values: Mapping[str, ArrayLike]) -> NDArray[numpy.float64]:
        """Parameters (…, nparameters) from arrays by name, which broadcast; those of the model where none are given."""
        arrays = {name: numpy.asarray(value, float) for name, value in values.items()}
        slices = self.slices
        for name, array in arrays.items():
            if name not in slices:
                raise UnknownName("parameter", name, self.names, code="unknown-parameter")
            size = slices[name].stop - slices[name].start
            if array.shape[-1:] != (size,):
                raise BadArgument(
                    f"the parameter {name!r} has shape {array.shape}; it needs (…, {size}).", code="wrong-shape"
                )
        batch = numpy.broadcast_shapes(*(array.shape[:-1] for array in arrays.values()))
        packed = numpy.broadcast_to(self.parameters(), (*batch, self.nparameters)).copy()
        for name, array in arrays.items():
            packed[..., slices[name]] = array
        return packed

    def with_parameters(self, parameters: Traced) -> Model:
        """The model with these parameters (nparameters,) as its constants: of plain numbers, if these are plain."""
        if trace_of(parameters) is not None:
            fields = _replaced(self.model, self.parts, parameters, _TRACED)
            return TracedModel.like(self.sample, self, parameters, **fields)
        given = numpy.asarray(parameters, float)
        if given.shape != (self.nparameters,):
            raise BadArgument(
                f"the parameters have shape {given.shape}; this model needs ({self.nparameters},).", code="wrong-shape"
            )
        return replace(self.model, **_replaced(self.model, self.parts, given, _PLAIN))

    @cached_property
    def sample(self) -> Model:
        """The model, with mass and rotor inertia wherever the parameters may give some and it has none."""
        joints = list(self.model.joints)
        for part in self.parts:
            if part.kind in ("mass", "inertia"):
                joint = joints[part.index]
                joints[part.index] = replace(joint, inertia=_with_inertia(joint.inertia))
            elif part.kind == "armature" and not any(joints[part.index].armature or ()):
                joint = joints[part.index]
                joints[part.index] = replace(joint, armature=(1.0,) * joint.kind.nv)
        return replace(self.model, joints=tuple(joints))


def _with_inertia(body: Inertia) -> Inertia:
    """A body as it is, or one of some size and mass where it has none."""
    mass, rotational = body.mass or 1.0, numpy.array(body.rotational)
    return body if numpy.linalg.eigvalsh(rotational)[0] > 0.0 else Inertia.of(mass, body.com, mass * numpy.eye(3))


def _default(model: Model, kind: str, index: int) -> NDArray[numpy.float64]:
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


_Makers = Mapping[str, Callable[[Any, Any], Any]]
_PLAIN: _Makers = {
    "gravity": lambda x, model: tuple(x.tolist()),
    "mass": lambda x, joint: joint.inertia.with_mass(float(x[0])),
    "inertia": lambda x, joint: Inertia.of(*inertia_from_parameters(x)),
    "placement": lambda x, joint: _placement(x),
    "frame": lambda x, frame: _placement(x),
    "armature": lambda x, joint: tuple(x.tolist()),
}
_TRACED: _Makers = {
    "gravity": lambda x, model: tuple(x),
    "mass": lambda x, joint: TracedInertia.of_mass(x[0], joint.inertia),
    "inertia": lambda x, joint: TracedInertia.of_parameters(x),
    "placement": lambda x, joint: TracedPlacement.of_parameters(x),
    "frame": lambda x, frame: TracedPlacement.of_parameters(x),
    "armature": lambda x, joint: tuple(x),
}
"""How the numbers of each kind, and what they belong to in the model, make what stands there instead."""


def _replaced(model: Model, parts: tuple[Part, ...], parameters: Any, makers: _Makers) -> dict[str, Any]:
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
