"""The base class of elementary joint motions, and their table.

An elementary motion defines its coordinates, the directions of its velocity, and the relation of coordinates and
velocities; algorithms need nothing else. A new one is a subclass and one registration,

    @dataclass(frozen=True)
    class SlideMotion(JointMotion):
        name = "slide"
        directions = (0, 1)

        def moves(self, x, pitch):
            return (Shift(np.stack([x[0], x[1], 0.0])),)

    SLIDE = register_motion(SlideMotion())

Joint types with this motion are defined in `joints`, or by users: a `JointKind` whose elements name it.

The methods of this class are those of a Euclidean motion, q ⊕ v = q + v. Others override `integrate`, `rates`,
`difference`, `normalize` and `stretch`; those with linear velocities in axes that turn with the body (`body_axes`) also
`turning_rates` and `step_straight`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeVar

import numpy
from numpy.typing import NDArray

from delassus.common.types import Traced
from delassus.model.motions.moves import Move


@dataclass(frozen=True)
class JointMotion:
    """An elementary motion, along or about the z axis of its own frame if it has a single direction.

    Attributes:
        name: Name in the table of motions.
        directions: Directions of its velocity in the moving frame, as indices of a spatial velocity, linear first: 0,
            1, 2 along x, y, z and 3, 4, 5 about them.
        has_quaternion: Whether the last four coordinates are a unit quaternion (x, y, z, w).
        is_euclidean: Whether velocities are the rates of the coordinates.
        body_axes: Whether the first velocities are linear, in axes that turn with the body.
        along_axes: Whether the motion subspace consists of unit vectors for any pitch.
        spread: Half the range of random coordinates [rad, m], without those of a quaternion; 1 if empty.

    >>> all(isinstance(motion, dl.model.JointMotion) for motion, _, _ in dl.model.Universal().elements)
    True
    """

    name: ClassVar[str]
    directions: ClassVar[tuple[int, ...]]
    has_quaternion: ClassVar[bool] = False
    is_euclidean: ClassVar[bool] = True
    body_axes: ClassVar[bool] = False
    along_axes: ClassVar[bool] = True
    spread: ClassVar[tuple[float, ...]] = ()

    @property
    def nv(self) -> int:
        """Number of velocities."""
        return len(self.directions)

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return self.nv + self.has_quaternion

    @property
    def is_free(self) -> bool:
        """Whether it has six degrees of freedom."""
        return self.nv == 6

    @property
    def neutral(self) -> tuple[float, ...]:
        """The coordinates (nq,) of zero displacement."""
        return (*(0.0,) * (self.nq - 1), 1.0 if self.has_quaternion else 0.0)

    def moves(self, x: Sequence[Any], pitch: Traced) -> tuple[Move, ...]:
        """The displacement for coordinates x (nq,), from the moved frame to the one at rest; pitch [m/rad]."""
        raise NotImplementedError(
            f"the motion {self.name!r} does not define its displacement; implement its method `moves`."
        )

    def subspace(self, pitch: Traced) -> NDArray[Any]:
        """The motion subspace S (6, nv) in the moving frame: the spatial velocity is S v."""
        return numpy.eye(6)[:, list(self.directions)]

    def integrate(self, q: Traced, v: Traced) -> Traced:
        """q ⊕ v (nq,): the coordinates reached along the tangent vector v (nv,)."""
        return q + v

    def rates(self, q: Traced, v: Traced) -> Traced:
        """q̇ (nq,) at the velocity v (nv,)."""
        return v

    def difference(self, q0: Traced, q1: Traced) -> Traced:
        """q1 ⊖ q0 (nv,): the tangent vector from q0 to q1."""
        return q1 - q0

    def normalize(self, q: Traced) -> Traced:
        """The coordinates (nq,) with a quaternion of unit length."""
        return q

    def stretch(self, rest: Traced, q: Traced) -> Traced:
        """δ (nv,): the deflection of a spring with the rest position `rest` (nq,) at q (nq,)."""
        return q - rest

    def turning_rates(self, v: Traced) -> Traced:
        """-ω × v of linear velocities in turning axes: their rates for a velocity that is constant in the world."""
        return v[:0]

    def step_straight(self, q: Traced, v: Traced, step: Traced) -> tuple[Any, Any]:
        """Position and linear velocity after a displacement `step` (nv,) in the axes at its start.

        The origin moves straight; the velocity v (nv,) is constant in the world, and returned in the axes at the end.
        """
        return q[:0], v[:0]

    def random(self, rng: numpy.random.Generator, batch: tuple[int, ...]) -> NDArray[numpy.float64]:
        """Random coordinates (…, nq)."""
        if self.has_quaternion:
            quaternion = rng.normal(size=(*batch, 4))
            quaternion /= numpy.linalg.norm(quaternion, axis=-1, keepdims=True)
            return numpy.concatenate([rng.uniform(-1, 1, (*batch, self.nq - 4)), quaternion], axis=-1)
        scale = numpy.array(self.spread or (1.0,) * self.nq)
        return rng.uniform(-scale, scale, (*batch, self.nq))


MOTIONS: Final[dict[str, JointMotion]] = {}
"""All elementary motions by name."""

M = TypeVar("M", bound=JointMotion)


def register_motion(motion: M) -> M:
    """Add an elementary motion to the table, so that joints can use it.

    >>> from delassus.model.motions.translation import TRANSLATION
    >>> dl.model.register_motion(TRANSLATION).nv
    3
    """
    name, directions = motion.name, motion.directions
    if MOTIONS.get(name, motion) != motion:
        raise ValueError(f"the motion {name!r} is registered already: choose another name.")
    if not directions or sorted({*directions} & {*range(6)}) != list(directions):
        raise ValueError(
            f"the motion {name!r} has the directions {directions}; they must be some of 0 to 5 (along x, y, z, about "
            "x, y, z), each once and in order."
        )
    if motion.spread and len(motion.spread) != motion.nq - 4 * motion.has_quaternion:
        raise ValueError(f"the motion {name!r} has {motion.nq} coordinates and a spread of {len(motion.spread)}.")
    MOTIONS[name] = motion
    return motion
