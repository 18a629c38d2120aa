"""What all that is made of a model offers as the model itself does: counts, names, limits, configurations."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delassus.model.model import Frame, Joint, Model


class OfModel:
    """Something with a `model`."""

    model: Model

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
        """The largest generalised forces (nv,) [N·m, N], inf where there is no limit."""
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

    def random_configuration(
        self, rng: np.random.Generator, size: int | tuple[int, ...] | None = None
    ) -> NDArray[np.float64]:
        """A random configuration (nq,) of the model, or `size` of them, whatever constrains it."""
        return self.model.random_configuration(rng, size)
