"""Quantities that follow from the parts of a model: counts, names and coordinates. `HasModel` forwards them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delassus.common.deprecated import OldName
from delassus.common.names import UnknownName, find_by_pattern
from delassus.errors import BadArgument, expect
from delassus.model.coordinates import Coordinates
from delassus.model.joints import Free
from delassus.model.parts import WORLD, WORLD_FRAME, Frame, Geometry, Joint, Posture
from delassus.model.placement import HERE, Vector
from delassus.model.transmission import STATELESS, Actuator


class Keyframe(NamedTuple):
    """A named state of a model's file.

    Attributes:
        q: (nq,) configuration [rad, m].
        v: (nv,) velocity [rad/s, m/s].
        activation: (na,) activations of actuators with a state.
        control: (nu,) controls of the actuators.
        time: [s].
    """

    q: NDArray[np.float64]
    v: NDArray[np.float64]
    activation: NDArray[np.float64]
    control: NDArray[np.float64]
    time: float


class Description(Coordinates):
    """Access to the joints, frames and postures of a model by name."""

    joints: tuple[Joint, ...]
    frame_list: tuple[Frame, ...]
    postures: tuple[Posture, ...]
    geometries: tuple[Geometry, ...]
    actuators: tuple[Actuator, ...]
    gravity: Vector

    # --- counts -------------------------------------------------------------------------------------------------

    @property
    def njoints(self) -> int:
        """Number of joints, and of bodies."""
        return len(self.joints)

    @property
    def ninertial(self) -> int:
        """Number of inertial parameters, ten for each body."""
        return 10 * len(self.joints)

    @property
    def nframes(self) -> int:
        """Number of named frames."""
        return len(self.frame_list)

    @property
    def nu(self) -> int:
        """Number of controls: of the actuators, or, without any, of the velocities of joints except a free base."""
        return len(self.actuators) or len(self.actuated_velocities)

    @cached_property
    def actuated_velocities(self) -> tuple[int, ...]:
        """The velocities with a torque in a model without actuators: those of all joints except free ones."""
        indices: list[int] = []
        for joint, start in zip(self.joints, self.v_starts, strict=True):
            if joint.mimic is None and not isinstance(joint.kind, Free):
                indices += range(start, start + joint.kind.nv)
        return tuple(indices)

    driven_velocities = OldName("actuated_velocities")

    @property
    def shapes(self) -> tuple[Geometry, ...]:
        """The collision shapes; `geometries` also includes visual ones."""
        return tuple(geometry for geometry in self.geometries if geometry.role == "collision")

    @property
    def mass(self) -> float:
        """The mass [kg] of all moving bodies; `base_inertia.mass` is that of bodies fixed to the world."""
        return sum(joint.inertia.mass for joint in self.joints)

    # --- names --------------------------------------------------------------------------------------------------

    @cached_property
    def _frame_index(self) -> dict[str, int]:
        return {frame.name: k for k, frame in enumerate(self.frame_list)}

    @cached_property
    def _joint_index(self) -> dict[str, int]:
        return {joint.name: k for k, joint in enumerate(self.joints)}

    def frame(self, name: str | Frame) -> Frame:
        """A frame by name; every model has "world"."""
        key = name.name if isinstance(name, Frame) else name
        if isinstance(key, str) and key == WORLD_FRAME.name and key not in self._frame_index:
            return WORLD_FRAME
        return self.frame_list[self.frame_index(name)]

    def frame_index(self, name: str | Frame) -> int:
        """The index of a frame in `frame_list`, which may not contain "world"."""
        key = name.name if isinstance(name, Frame) else str(name)
        if key not in self._frame_index:
            if key == WORLD_FRAME.name:
                raise BadArgument(
                    f"the frame {key!r} is not in frame_list and has no index; use its name.",
                    code="unknown-frame",
                )
            raise UnknownName("frame", key, [*self._frame_index, WORLD_FRAME.name], code="unknown-frame")
        return self._frame_index[key]

    def frames(self, pattern: str = "*") -> tuple[Frame, ...]:
        """The frames whose names match a pattern such as "*_foot", in the model's order; raises an error if there is
        none.

        The frame "world" is included if the model lists it, as those from MJCF do, or if it is requested by name.
        """
        expect("the pattern", pattern, str, '"*_foot"')
        if pattern == WORLD_FRAME.name:
            return (self.frame(pattern),)
        return tuple(find_by_pattern("frame that matches", pattern, self.frame_list, code="unknown-frame"))

    def joint(self, name: str) -> Joint:
        """A joint by its name."""
        return self.joints[self.joint_index(name)]

    def joint_index(self, name: str) -> int:
        """The position of a joint in `joints`."""
        expect("the name of a joint", name, str, f"{self.joints[0].name!r}" if self.joints else '"elbow"')
        if name not in self._joint_index:
            raise UnknownName("joint", name, list(self._joint_index), code="unknown-joint")
        return self._joint_index[name]

    def body_index(self, name: str) -> int:
        """The index of the joint that carries a body, by the name of the joint or of a link with the same frame."""
        expect("the name of a body", name, str, f"{self.joints[0].name!r}" if self.joints else '"trunk"')
        if name in self._joint_index:
            return self._joint_index[name]
        links = {frame.name: frame for frame in self.frame_list if frame.role == "link"}
        if name not in links:
            raise UnknownName("joint or link", name, [*self._joint_index, *links], code="unknown-joint")
        link = links[name]
        if link.joint == WORLD:
            raise BadArgument(
                f"the link {name!r} is fixed to the world, so its inertia has no effect.",
                code="bad-parameter",
            )
        if link.placement != HERE:
            joint = self.joints[link.joint].name
            raise BadArgument(
                f"the link {name!r} is a part of the body of joint {joint!r}, which has another frame; use "
                f"the name {joint!r} for the whole body.",
                code="bad-parameter",
            )
        return link.joint

    def posture(self, name: str) -> NDArray[np.float64]:
        """A configuration (nq,) named in the model's file."""
        return np.array(self._posture(name).q)

    def keyframe(self, name: str) -> Keyframe:
        """A named state of the model's file: configuration, velocity, activation, control, time."""
        posture = self._posture(name)
        activations = sum(actuator.dynamics != STATELESS for actuator in self.actuators)
        return Keyframe(
            np.array(posture.q),
            np.array(posture.v or np.zeros(self.nv)),
            np.array(posture.activation or np.zeros(activations)),
            np.array(posture.control or np.zeros(self.nu)),
            posture.time,
        )

    def _posture(self, name: str) -> Posture:
        expect("the name of a posture", name, str, '"home"')
        matches = [posture for posture in self.postures if posture.name == name]
        if not matches:
            raise UnknownName("posture", name, [posture.name for posture in self.postures], code="unknown-posture")
        return matches[0]


class HasModel:
    """Base class of objects with a `model`."""

    model: Description

    @property
    def nq(self) -> int:
        """Number of configuration variables."""
        return self.model.nq

    @property
    def nv(self) -> int:
        """Number of velocity variables."""
        return self.model.nv

    @property
    def njoints(self) -> int:
        """Number of joints, and of bodies."""
        return self.model.njoints

    @property
    def nframes(self) -> int:
        """Number of named frames."""
        return self.model.nframes

    @property
    def ninertial(self) -> int:
        """Number of inertial parameters, ten for each body."""
        return self.model.ninertial

    @property
    def mass(self) -> float:
        """The mass [kg] of all bodies that the model's joints carry."""
        return self.model.mass

    @property
    def lower(self) -> NDArray[np.float64]:
        """The lower limits (nq,) [rad, m] of the coordinates, -inf where there is none."""
        return self.model.lower

    @property
    def upper(self) -> NDArray[np.float64]:
        """The upper limits (nq,) [rad, m] of the coordinates, inf where there is none."""
        return self.model.upper

    @property
    def velocity_limit(self) -> NDArray[np.float64]:
        """The largest speeds (nv,) [rad/s, m/s], inf where there is no limit."""
        return self.model.velocity_limit

    @property
    def effort_limit(self) -> NDArray[np.float64]:
        """The largest generalized forces (nv,) [N·m, N], inf where there is no limit."""
        return self.model.effort_limit

    def q_slice(self, joint: str) -> slice:
        """Where the coordinates of a joint are in q."""
        return self.model.q_slice(joint)

    def v_slice(self, joint: str) -> slice:
        """Where the velocities of a joint are in v, and its torques in tau."""
        return self.model.v_slice(joint)

    def joint(self, name: str) -> Joint:
        """A joint by its name."""
        return self.model.joint(name)

    def frame(self, name: str | Frame) -> Frame:
        """A frame by its name."""
        return self.model.frame(name)

    def frames(self, pattern: str = "*") -> tuple[Frame, ...]:
        """The frames whose names match a pattern such as "*_foot"."""
        return self.model.frames(pattern)

    def neutral(self) -> NDArray[np.float64]:
        """The model's neutral configuration (nq,), whatever constrains it."""
        return self.model.neutral()

    def configuration(
        self, coordinates: Mapping[str, ArrayLike] | None = None, /, **more: ArrayLike
    ) -> NDArray[np.float64]:
        """The neutral configuration (nq,), but for the coordinates of some joints, given by name."""
        return self.model.configuration(coordinates, **more)

    def posture(self, name: str) -> NDArray[np.float64]:
        """A configuration (nq,) by the name that the model's file gives it."""
        return self.model.posture(name)

    def keyframe(self, name: str) -> Keyframe:
        """All that the model's file says of a posture: configuration, velocity, activation, control, time."""
        return self.model.keyframe(name)

    def random_configuration(
        self, rng: np.random.Generator, size: int | tuple[int, ...] | None = None
    ) -> NDArray[np.float64]:
        """A random configuration (nq,) of the model, or `size` of them, whatever constrains it."""
        return self.model.random_configuration(rng, size)
