"""The displacement of an elementary motion, as a sequence of rotations about z, translations and rotations.

Algorithms convert these to their own steps; see `dynamics/tree/poses`. A final rotation about z merges with the
placement of the joint, so that a revolute joint costs one rotation.

>>> dl.model.moves.Turn(0.5).angle
0.5
"""

from typing import Any, NamedTuple, TypeAlias


class Turn(NamedTuple):
    """A rotation about z by an angle [rad]."""

    angle: Any


class Shift(NamedTuple):
    """A translation by p (3,) [m], in the axes of the outer frame."""

    p: Any


class Rotation(NamedTuple):
    """A rotation by a matrix R (3, 3)."""

    R: Any


Move: TypeAlias = Turn | Shift | Rotation
