"""Models of robots: frozen data, compared by content. Values may be constants, parameters or traced.

`Model.parametric` creates a `ParametricModel`, which creates a `TracedModel` while a kernel is traced.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delassus.common.names import UnknownName
from delassus.common.types import Traced
from delassus.compiler.graph.digest import UNREAD, content_digest, exact, is_frozen
from delassus.compiler.graph.parameters import Parametric
from delassus.compiler.tracing.trace import trace_of
from delassus.errors import BadArgument, expect
from delassus.model.checks import check_inertia, check_medium, check_numbers, check_parts, check_placements
from delassus.model.description import Description, HasModel
from delassus.model.parameter_names import KINDS, Part, parts_named
from delassus.model.parametric import PLAIN, TRACED, default_parameters, substitute_parameters, with_nonzero_inertia
from delassus.model.parts import (
    NO_MEDIUM,
    WORLD,
    WORLD_FRAME,
    ContactRules,
    FileSensor,
    Frame,
    Geometry,
    Impedances,
    Joint,
    Medium,
    Posture,
    is_world,
)
from delassus.model.placement import HERE, MASSLESS, Inertia, Placement, Vector, vector
from delassus.model.transmission import Actuator, Tendon


@dataclass(frozen=True, eq=False)
class Model(Description):
    """A robot. Parents come before their children. Models with equal content are equal.

    `base_inertia` is the inertia of bodies fixed to the world, used when the model is attached to another one.
    `constraints`, `actuators`, `tendons`, `postures` and `contact_rules` are those of the model's file.
    `describes_world` is true for files of a whole world, such as MJCF: their planes are the ground, and without one
    there is none. `time_step` [s] is that of the file. `impedances` are the softness parameters of rows in MuJoCo's
    contact law. `medium` is the gas or liquid around the robot. `warnings` are sentences on doubtful values in the
    file, `omissions` on features that are not supported, which simulators of the model report as warnings.

    >>> print(dl.load("pendulum").nv)
    1
    """

    name: str = field(metadata=UNREAD)
    joints: tuple[Joint, ...]
    frame_list: tuple[Frame, ...] = ()
    gravity: Vector = (0.0, 0.0, -9.81)
    geometries: tuple[Geometry, ...] = field(default=(), metadata=UNREAD)
    constraints: tuple[Any, ...] = ()
    base_inertia: Inertia = MASSLESS
    actuators: tuple[Actuator, ...] = ()
    tendons: tuple[Tendon, ...] = ()
    medium: Medium = NO_MEDIUM
    postures: tuple[Posture, ...] = field(default=(), metadata=UNREAD)
    sensors: tuple[FileSensor, ...] = field(default=(), metadata=UNREAD)
    warnings: tuple[str, ...] = field(default=(), compare=False)
    omissions: tuple[str, ...] = field(default=(), compare=False)
    describes_world: bool = field(default=False, metadata=UNREAD)
    contact_rules: ContactRules = field(default=ContactRules(), metadata=UNREAD)
    time_step: float | None = field(default=None, metadata=UNREAD)
    impedances: Impedances = field(default=Impedances(), metadata=UNREAD)

    def __post_init__(self) -> None:
        check_parts(self, joints=Joint, frame_list=Frame, geometries=Geometry, postures=Posture)
        for i, joint in enumerate(self.joints):
            if not WORLD <= joint.parent < i:
                raise BadArgument(
                    f"joint {joint.name!r} (number {i}) has the parent {joint.parent}; a parent must precede its "
                    f"children, so it is between -1 (the world) and {i - 1}.",
                    code="not-a-tree",
                )
            self._check_mimic(joint)
            check_numbers(joint)
        placed: tuple[Frame | Geometry, ...] = (*self.frame_list, *self.geometries)
        for item in placed:
            if not WORLD <= item.joint < len(self.joints):
                raise BadArgument(
                    f"{item.name!r} is on joint number {item.joint}, which does not exist: the model has "
                    f"{len(self.joints)}, and -1 is the world.",
                    code="not-a-tree",
                )
        for frame in self.frame_list:
            if frame.name == WORLD_FRAME.name and not is_world(frame.joint, frame.placement):
                raise BadArgument(
                    f"a frame {frame.name!r} is on joint number {frame.joint}, at {frame.placement.translation} m; but "
                    f"{frame.name!r} is the name of the world; give this frame another name.",
                    code="duplicate-name",
                )
        if not all(map(math.isfinite, self.gravity)):
            raise BadArgument(f"gravity is {self.gravity} m/s²; it must be finite.", code="not-finite")
        for posture in self.postures:
            if not all(map(math.isfinite, posture.q)):
                raise BadArgument(f"the posture {posture.name!r} is {posture.q}; it must be finite.", code="not-finite")
        check_inertia("what is fixed to the world", self.base_inertia)
        check_medium(self.medium, len(self.joints))
        check_placements((*self.joints, *placed))
        for part_type, names in (
            ("joint", [j.name for j in self.joints]),
            ("frame", [f.name for f in self.frame_list]),
        ):
            repeated = sorted(name for name, count in Counter(names).items() if count > 1)
            if repeated:
                raise BadArgument(
                    f"the model has more than one {part_type} named {repeated[0]!r}.", code="duplicate-name"
                )

    def _check_mimic(self, joint: Joint) -> None:
        if joint.mimic is None:
            return
        if not 0 <= joint.mimic.source < len(self.joints):
            raise BadArgument(
                f"joint {joint.name!r} mimics number {joint.mimic.source}, which the model does not have.",
                code="bad-mimicry",
            )
        source = self.joints[joint.mimic.source]
        if source.mimic is not None:
            raise BadArgument(
                f"joint {joint.name!r} mimics {source.name!r}, which itself mimics another joint.", code="bad-mimicry"
            )
        if not (math.isfinite(joint.mimic.ratio) and math.isfinite(joint.mimic.offset)):
            raise BadArgument(
                f"joint {joint.name!r} mimics {source.name!r} with values that are not finite: ratio "
                f"{joint.mimic.ratio:g}, offset {joint.mimic.offset:g}.",
                code="bad-mimicry",
            )
        if joint.kind.nv != 1 or source.kind.nv != 1:
            raise BadArgument(
                f"joint {joint.name!r} has {joint.kind.nv} degrees of freedom and mimics {source.name!r}, which has "
                f"{source.kind.nv}; both need exactly 1.",
                code="bad-mimicry",
            )

    # --- content ------------------------------------------------------------------------------------------------

    @cached_property
    def _identity(self) -> Any:
        """The digest of the content, or the content itself if it has user-defined joint types."""
        content = tuple(getattr(self, part.name) for part in fields(Model) if part.compare)
        digest = content_digest(content)
        if digest is None and not is_frozen(content):
            raise BadArgument(
                f"the model {self.name!r} contains an object that cannot be compared by content.", code="wrong-type"
            )
        return digest or exact(content)

    @property
    def digest(self) -> str:
        """SHA-256 of the content, the same in every process; models with user-defined joint types have none."""
        return self._identity if isinstance(self._identity, str) else ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and bool(self._identity == other._identity)

    def __hash__(self) -> int:
        return hash(self._identity)

    def __repr__(self) -> str:
        return f"<Model {self.name!r}: {len(self.joints)} joints, nq {self.nq}, nv {self.nv}, {self.mass:.4g} kg>"

    # --- editing: each gives a new model ------------------------------------------------------------------------

    def attach(self, other: Model, frame: str | Frame, placement: Placement = HERE, prefix: str = "") -> Model:
        """Attach another model by fixing its world to a frame of this one, such as a hand to a wrist.

        Its joints, frames, constraints, actuators and tendons follow those of this model, with names after `prefix`.
        Postures are dropped, since they lack the new coordinates. Its frame "world", if listed or used by constraints,
        is renamed after the prefix ("hand_world" for "hand_"), or after the other model.
        """
        from delassus.model.editing import attach

        expect("what is attached", other, Model, 'delassus.load("hand.urdf")')
        _expect_placement(placement)
        expect("the prefix", prefix, str, '"left_"')
        return attach(self, other, self.frame(frame), placement, prefix)

    def lock(self, *joints: str, q: ArrayLike | None = None) -> Model:
        """Fix joints at the configuration q (nq,), or at the neutral one.

        Their bodies merge with the parents' bodies; their frames are kept. Mimic joints of a locked one are locked as
        well. Their actuators, tendons over them, and postures are dropped.
        """
        from delassus.model.editing import lock

        return lock(
            self, {self.joint_index(name) for name in joints}, self.neutral() if q is None else np.asarray(q, float)
        )

    def with_frame(self, name: str, on: str | Frame, placement: Placement = HERE) -> Model:
        """Add a frame, placed relative to another one."""
        expect("the name of a frame", name, str, '"tool"')
        _expect_placement(placement)
        base = self.frame(on)
        return replace(self, frame_list=(*self.frame_list, Frame(name, base.joint, base.placement * placement)))

    def with_gravity(self, gravity: ArrayLike) -> Model:
        """Replace the acceleration of gravity (3,) [m/s²], in world axes."""
        g = np.asarray(gravity, float)
        if g.shape != (3,):
            raise BadArgument(
                f"gravity has shape {g.shape}; it must be three numbers [m/s²], such as (0.0, 0.0, -9.81).",
                code="wrong-shape",
            )
        return replace(self, gravity=vector(g))

    def with_inertia(self, body: str, inertia: Inertia) -> Model:
        """Replace the inertia of a body, including everything fixed to it; names as in `body_index`."""
        expect("the inertia", inertia, Inertia, "Inertia(mass=1.0)")
        i = self.body_index(body)
        joints = (*self.joints[:i], replace(self.joints[i], inertia=inertia), *self.joints[i + 1 :])
        return replace(self, joints=joints)

    def parametric(self, *names: str) -> ParametricModel:
        """Turn constants of the model into parameters, inputs of every kernel, one set for each state of a batch.

        Names are "gravity", "inertia:trunk", "placement:hip", "frame:foot", "armature:knee", patterns such as
        "inertia:*_knee", or types alone for all parts; see `delassus.model.parametric`.
        """
        return ParametricModel(self, names)


class TracedModel(Model):
    """A model with traced values, which are not checked.

    `sample` is a model of constants with the same structure, with inertia wherever parameters may add some, for
    decisions at compile time. `origin` is the model with parameters that it comes from, and `parameters` (nparameters,)
    are its values.
    """

    sample: Model
    origin: Any
    parameters: Any

    @classmethod
    def like(cls, sample: Model, origin: Any, parameters: Any, **fields: Any) -> TracedModel:
        """A model with the fields of `sample`, some of them replaced."""
        sample_fields = {name: getattr(sample, name) for name in sample.__dataclass_fields__}
        model = cls(**sample_fields | fields)
        for name, value in (("sample", sample), ("origin", origin), ("parameters", parameters)):
            object.__setattr__(model, name, value)
        return model

    def __post_init__(self) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}: nq {self.nq}, nv {self.nv}>"


def sample_of(model: Model) -> Model:
    """A model of constants: the model itself, unless some of its values are traced."""
    return model.sample if isinstance(model, TracedModel) else model


@dataclass(frozen=True)
class ParametricModel(HasModel, Parametric):
    """A model and the `names` of its constants that are parameters; frozen and compared by content.

    >>> dl.load("pendulum").parametric("gravity").nparameters
    3
    """

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
        selected = [part.name for part in self.parts]
        bodies = [part.index for part in self.parts if part.kind in ("mass", "inertia")]
        for name, count in Counter(selected).items():
            if count > 1:
                raise BadArgument(
                    f"the parameter {name!r} is selected more than once, by {', '.join(self.names)}.",
                    code="duplicate-name",
                )
        for k, count in Counter(bodies).items():
            if count > 1:
                body = self.model.joints[k].name
                raise BadArgument(
                    f"'mass:{body}' and 'inertia:{body}' exclude each other: an inertia includes the mass.",
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
        """The parts of each name."""
        groups: list[tuple[Part, ...]] = []
        for name in self.names:
            groups.append(parts_named(self.model, name, start=groups[-1][-1].at.stop if groups else 0))
        return tuple(groups)

    @property
    def parts(self) -> tuple[Part, ...]:
        """All parts with parameters, in order."""
        return tuple(part for group in self._groups for part in group)

    @property
    def slices(self) -> Mapping[str, slice]:
        """The slice of each name in the parameters."""
        # Not cached: a read-only view cannot be pickled.
        bounds = [(group[0].at.start, group[-1].at.stop) for group in self._groups]
        return MappingProxyType({name: slice(*end) for name, end in zip(self.names, bounds, strict=True)})

    def parameters(self) -> NDArray[np.float64]:
        """The parameters (nparameters,) with the model's constants as values."""
        return np.concatenate([default_parameters(self.model, part.kind, part.index) for part in self.parts])

    def pack(self, values: Mapping[str, ArrayLike]) -> NDArray[np.float64]:
        """Parameters (…, nparameters) from arrays by name, which broadcast; those not given keep the model's values."""
        arrays = {name: np.asarray(value, float) for name, value in values.items()}
        slices = self.slices
        for name, array in arrays.items():
            if name not in slices:
                raise UnknownName("parameter", name, self.names, code="unknown-parameter")
            size = slices[name].stop - slices[name].start
            if array.shape[-1:] != (size,):
                raise BadArgument(
                    f"the parameter {name!r} has shape {array.shape}; it must be (…, {size}).", code="wrong-shape"
                )
        batch = np.broadcast_shapes(*(array.shape[:-1] for array in arrays.values()))
        packed = np.broadcast_to(self.parameters(), (*batch, self.nparameters)).copy()
        for name, array in arrays.items():
            packed[..., slices[name]] = array
        return packed

    def with_parameters(self, parameters: Traced) -> Model:
        """The model with these parameters (nparameters,) as constants; plain if these are plain."""
        if trace_of(parameters) is not None:
            fields = substitute_parameters(self.model, self.parts, parameters, TRACED)
            return TracedModel.like(self.sample, self, parameters, **fields)
        values = np.asarray(parameters, float)
        if values.shape != (self.nparameters,):
            raise BadArgument(
                f"the parameters have shape {values.shape}; they must be ({self.nparameters},).", code="wrong-shape"
            )
        return replace(self.model, **substitute_parameters(self.model, self.parts, values, PLAIN))

    @cached_property
    def sample(self) -> Model:
        """The model with mass and rotor inertia wherever the parameters may add some."""
        joints = list(self.model.joints)
        for part in self.parts:
            if part.kind in ("mass", "inertia"):
                joint = joints[part.index]
                joints[part.index] = replace(joint, inertia=with_nonzero_inertia(joint.inertia))
            elif part.kind == "armature" and not any(joints[part.index].armature or ()):
                joint = joints[part.index]
                joints[part.index] = replace(joint, armature=(1.0,) * joint.kind.nv)
        return replace(self.model, joints=tuple(joints))


def _expect_placement(placement: Placement) -> None:
    expect("the placement", placement, Placement, "Placement.from_xyz_rpy(xyz=(0, 0, 0.1))")
