"""Coordinates and velocities of a model: indices of joints, limits, neutral and random configurations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delassus.common.checks import MOST_ITERATIONS, check_integer
from delassus.errors import BadArgument, expect
from delassus.model.parts import Joint


class Coordinates:
    """Properties that follow from the joints of a model."""

    joints: tuple[Joint, ...]

    def joint_index(self, name: str) -> int:
        """The position of a joint in `joints`."""
        raise TypeError(f"{type(self).__name__} does not define the index of joint {name!r}.")

    # --- counts and places --------------------------------------------------------------------------------------

    @property
    def independent(self) -> tuple[Joint, ...]:
        """The joints with coordinates of their own."""
        return tuple(joint for joint in self.joints if joint.mimic is None)

    @cached_property
    def nq(self) -> int:
        """Number of configuration variables."""
        return sum(joint.kind.nq for joint in self.independent)

    @cached_property
    def nv(self) -> int:
        """Number of velocity variables."""
        return sum(joint.kind.nv for joint in self.independent)

    @cached_property
    def q_starts(self) -> tuple[int, ...]:
        """The first coordinate of every joint; that of its source for a mimic joint."""
        return self._starts(lambda joint: joint.kind.nq)

    @cached_property
    def v_starts(self) -> tuple[int, ...]:
        """The first velocity of every joint; that of its source for a mimic joint."""
        return self._starts(lambda joint: joint.kind.nv)

    def _starts(self, count: Callable[[Joint], int]) -> tuple[int, ...]:
        starts, total = [], 0
        for joint in self.joints:
            starts.append(total)
            total += 0 if joint.mimic else count(joint)
        return tuple(starts[j.mimic.source] if j.mimic else s for j, s in zip(self.joints, starts, strict=True))

    def q_slice(self, joint: str) -> slice:
        """The slice of a joint in q; that of its source for a mimic joint."""
        i = self.joint_index(joint)
        return slice(self.q_starts[i], self.q_starts[i] + self.joints[i].kind.nq)

    def v_slice(self, joint: str) -> slice:
        """The slice of a joint in v and tau; that of its source for a mimic joint."""
        i = self.joint_index(joint)
        return slice(self.v_starts[i], self.v_starts[i] + self.joints[i].kind.nv)

    # --- limits -------------------------------------------------------------------------------------------------

    @property
    def lower(self) -> NDArray[np.float64]:
        """The lower limits (nq,) [rad, m] of the coordinates, -inf where there is none."""
        return np.array([x for joint in self.independent for x in joint.lower or (-math.inf,) * joint.kind.nq], float)

    @property
    def upper(self) -> NDArray[np.float64]:
        """The upper limits (nq,) [rad, m] of the coordinates, inf where there is none."""
        return np.array([x for joint in self.independent for x in joint.upper or (math.inf,) * joint.kind.nq], float)

    @property
    def velocity_limit(self) -> NDArray[np.float64]:
        """The largest speeds (nv,) [rad/s, m/s], inf where there is no limit."""
        limits = (joint.velocity_limit or (math.inf,) * joint.kind.nv for joint in self.independent)
        return np.array([x for limit in limits for x in limit], float)

    @property
    def effort_limit(self) -> NDArray[np.float64]:
        """The largest generalized forces (nv,) [N·m, N], inf where there is no limit."""
        limits = (joint.effort_limit or (math.inf,) * joint.kind.nv for joint in self.independent)
        return np.array([x for limit in limits for x in limit], float)

    # --- configurations -----------------------------------------------------------------------------------------

    def neutral(self) -> NDArray[np.float64]:
        """The configuration (nq,) with all coordinates zero and all rotations the identity."""
        return np.array([x for joint in self.independent for x in joint.kind.neutral], float)

    def configuration(
        self, coordinates: Mapping[str, ArrayLike] | None = None, /, **more: ArrayLike
    ) -> NDArray[np.float64]:
        """The neutral configuration (nq,) with the coordinates of some joints replaced, by name.

        Names are the keys of a mapping, or keywords: `configuration({"left knee": 0.3}, elbow=0.2)`. A joint of one
        coordinate takes a scalar [rad or m], others an array; a free joint takes x y z and a quaternion x y z w.
        """
        q = self.neutral()
        for name, value in {**(coordinates or {}), **more}.items():
            joint = self.joints[self.joint_index(name)]
            if joint.mimic is not None:
                source = self.joints[joint.mimic.source].name
                raise BadArgument(
                    f"joint {name!r} mimics {source!r} and has no coordinate; pass that of {source!r}.",
                    code="bad-mimicry",
                )
            values = np.asarray(value, float)
            if values.shape != (joint.kind.nq,) and not (values.ndim == 0 and joint.kind.nq == 1):
                raise BadArgument(
                    f"the coordinates of joint {name!r} have shape {values.shape}; a {joint.kind.label} joint has "
                    f"{joint.kind.nq}.",
                    code="wrong-shape",
                )
            q[self.q_slice(name)] = values
        return q

    def random_configuration(
        self, rng: np.random.Generator, size: int | tuple[int, ...] | None = None
    ) -> NDArray[np.float64]:
        """A random configuration (nq,), or `size` of them (size, nq).

        It is within limits, and within ±π [rad] and ±1 [m] if limits are wider than 100.
        """
        expect("rng", rng, np.random.Generator, "numpy.random.default_rng(0)")
        batch = () if size is None else _batch_axes(size)
        q = np.empty((*batch, self.nq))
        for joint, start in zip(self.joints, self.q_starts, strict=True):
            if joint.mimic is not None:
                continue
            for motion, first, _ in joint.kind.parts:
                q[..., start + first : start + first + motion.nq] = motion.random(rng, batch)
            for k in _plain_coordinates(joint):
                low = joint.lower[k] if joint.lower else -math.inf
                high = joint.upper[k] if joint.upper else math.inf
                coordinate = q[..., start + k]
                if high - low < 100.0:
                    q[..., start + k] = rng.uniform(low, high, batch)
                elif not np.all((low <= coordinate) & (coordinate <= high)):
                    nearest = rng.uniform(*_nearest_range(low, high), batch)
                    q[..., start + k] = np.where((low <= coordinate) & (coordinate <= high), coordinate, nearest)
        return q


def _batch_axes(size: Any) -> tuple[int, ...]:
    """Lengths of batch axes, checked."""
    axes = size if isinstance(size, (tuple, list)) else np.atleast_1d(np.asarray(size, object)).tolist()
    return tuple(check_integer("size", n, 0, MOST_ITERATIONS) for n in axes)


def _plain_coordinates(joint: Joint) -> list[int]:
    """The coordinates of a joint that are not part of a quaternion."""
    return [first + k for motion, first, _ in joint.kind.parts for k in range(motion.nq - 4 * motion.has_quaternion)]


def _nearest_range(low: float, high: float) -> tuple[float, float]:
    """The part of a range with at least one finite limit that is within 1 of its point nearest to zero."""
    return (low, low + 1.0) if abs(low) < abs(high) else (high - 1.0, high)
