"""`Particles`: a large system as arrays, frozen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import FRICTIONS, Range, number_in_range
from delassus.common.deprecated import OldName
from delassus.common.options import Options, accept_groups
from delassus.errors import short
from delassus.particles.description.bodies import Bricks
from delassus.particles.description.checks import (
    ParticlesError,
    broadcast_to_shape,
    check_degenerate,
    check_elements,
    check_held_once,
    check_indices,
    check_masses,
    finite,
)
from delassus.particles.description.elements import Elements
from delassus.particles.description.obstacles import Obstacle, as_obstacle

Array = NDArray[np.float64]

GRAVITY = (0.0, 0.0, -9.81)

MOST_FRICTION = 1e3
"""Largest coefficient of friction: wider cones are half-spaces up to rounding."""

_FRICTIONS = Range(0.0, MOST_FRICTION, f"from 0 to {MOST_FRICTION:g}, which sticks already", FRICTIONS.code)


@dataclass(frozen=True, eq=False)
class Motion:
    """Particles with a prescribed motion.

    Attributes:
        points: (k,) indices of particles.
        velocity: A function of time [s] that returns velocities (k, 3) or (3,) [m/s], or such an array.

    >>> dl.particles.Motion([0], lambda t: (0.0, 0.0, 0.5 * t)).at(2.0)
    array([[0., 0., 1.]])
    """

    points: NDArray[np.int64]
    velocity: Callable[[float], Any] | Any

    def at(self, time: float) -> Array:
        """Velocities (k, 3) [m/s] at a time."""
        value = self.velocity(time) if callable(self.velocity) else self.velocity
        try:
            return np.array(np.broadcast_to(np.asarray(value, float), (len(self.points), 3)))
        except (TypeError, ValueError):
            raise ParticlesError(
                f"a prescribed motion returns shape {np.shape(value)} at {time:g} s; it must return velocities "
                f"({len(self.points)}, 3) or (3,) [m/s].",
                code="wrong-shape",
            ) from None


@dataclass(frozen=True, eq=False)
class Environment(Options):
    """The surroundings of particles: obstacles and forces; None for the defaults of `Particles`.

    Attributes:
        obstacles: `Plane`, `Sphere`, `Box`, or user-defined ones.
        friction: Coefficient of friction at obstacles and between bricks.
        gravity: (3,) [m/s²].
        drag: (n,) viscous drag on each particle [N·s/m].
        motions: Particles with prescribed motion.

    >>> dl.particles.Environment(friction=0.3).friction
    0.3
    """

    obstacles: Any = None
    friction: float | None = None
    gravity: Any = None
    drag: Any = None
    motions: Any = None


@dataclass(frozen=True, eq=False)
class Surface(Options):
    """Collision radius and rendering of particles; None for the defaults of `Particles`.

    Attributes:
        radius: (n,) collision radius of particles with obstacles [m].
        faces: (f, 3) triangles for rendering.

    >>> dl.particles.Surface(radius=0.01).radius
    0.01
    """

    radius: Any = None
    faces: Any = None


@accept_groups("positions masses elements pins * bricks name", environment=Environment(), surface=Surface())
@dataclass(frozen=True, eq=False)
class Particles:
    """Point masses, elements between them, bricks, and obstacles.

    Attributes:
        positions: (n, 3) initial positions [m].
        masses: (n,) [kg], positive for free particles.
        elements: Springs, rods, bends, … between particles.
        pins: (k,) indices of fixed particles.
        motions: Particles with prescribed motion.
        obstacles: `Plane`, `Sphere`, `Box`, or user-defined ones.
        friction: Coefficient of friction at obstacles and between bricks.
        radius: (n,) collision radius of particles with obstacles [m].
        gravity: (3,) [m/s²].
        drag: (n,) viscous drag on each particle [N·s/m].
        bricks: Rigid boxes, or None.
        faces: (f, 3) triangles for rendering only; lines are drawn for elements of two points.
        name: Name of the system.

    >>> dl.particles.Particles(positions=np.zeros((2, 3)), masses=np.ones(2)).n
    2
    """

    positions: Array
    masses: Array
    elements: Sequence[Elements] = ()
    pins: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, int))
    motions: Sequence[Motion] = ()
    obstacles: Sequence[Obstacle] = ()
    friction: float = 0.5
    radius: Any = 0.0
    gravity: Any = GRAVITY
    drag: Any = 0.0
    bricks: Bricks | None = None
    faces: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 3), int))
    name: str = "particles"

    def __post_init__(self) -> None:
        positions = _positions(self.positions)
        n = len(positions)
        motions = (self.motions,) if isinstance(self.motions, Motion) else tuple(self.motions)
        for motion in motions:
            if not isinstance(motion, Motion):
                raise ParticlesError(f"motions has {motion!r}; it must hold `Motion` objects.", code="wrong-type")
        if not (self.bricks is None or isinstance(self.bricks, Bricks)):
            raise ParticlesError(f"bricks is {self.bricks!r}; it must be `Bricks` or None.", code="wrong-type")
        fields: dict[str, Any] = {
            "positions": positions,
            "masses": broadcast_to_shape("masses", self.masses, (n,)),
            "radius": finite("radius", self.radius, (n,), least=0.0),
            "drag": finite("drag", self.drag, (n,), least=0.0),
            "gravity": finite("gravity", self.gravity, (3,)),
            "friction": number_in_range("friction", self.friction, _FRICTIONS),
            "elements": (self.elements,) if isinstance(self.elements, Elements) else tuple(self.elements),
            "motions": tuple(
                Motion(check_indices(f"motion {k}", m.points, n), m.velocity) for k, m in enumerate(motions)
            ),
            "obstacles": tuple(
                as_obstacle(x) for x in (self.obstacles if isinstance(self.obstacles, Sequence) else (self.obstacles,))
            ),
            "pins": np.unique(check_indices("pins", self.pins, n)),
            "faces": check_indices("faces", self.faces, n, (-1, 3)),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        if not n and not self.b:
            raise ParticlesError(
                "there are no particles and no bricks; pass positions or bricks.", code="nothing-to-do"
            )
        for obstacle in self.obstacles:
            if not isinstance(obstacle, Obstacle):
                raise ParticlesError(
                    f"an obstacle is {obstacle!r}; it must be a Plane, Sphere or Box, or have a method "
                    "`gap_and_normal`.",
                    code="wrong-type",
                )
        check_elements(n, self.elements)
        check_held_once(n, [self.pins, *(motion.points for motion in self.motions)])
        check_masses(self.masses, self.is_prescribed)
        check_degenerate(positions, self.elements, self.is_prescribed)
        for value in (*fields.values(),):
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    @property
    def n(self) -> int:
        """The number of particles."""
        return len(self.positions)

    @property
    def b(self) -> int:
        """The number of bricks."""
        return 0 if self.bricks is None else len(self.bricks)

    @property
    def nodes(self) -> int:
        """Number of nodes, vectors of three unknowns: one for a particle, two for a brick (linear and angular)."""
        return self.n + 2 * self.b

    @property
    def unknowns(self) -> int:
        """Number of free velocities."""
        return 3 * (self.nodes - int(self.is_prescribed.sum()))

    @property
    def rows(self) -> int:
        """Number of rows of all elements."""
        return sum(group.rows for group in self.elements)

    @cached_property
    def is_prescribed(self) -> NDArray[np.bool_]:
        """(n,) whether particles are pinned or have a prescribed motion."""
        mask = np.zeros(self.n, bool)
        mask[self.pins] = True
        for motion in self.motions:
            mask[motion.points] = True
        return mask

    held = OldName("is_prescribed")

    def with_(self, **changes: Any) -> Particles:
        """A copy with changed fields: `cloth.with_(obstacles=[dl.particles.Sphere((0, 0, 0), 0.3)])`."""
        return replace(self, **changes)

    def __repr__(self) -> str:
        parts = [f"{self.n} particles"] if self.n else []
        parts += [f"{len(group)} {group.kind.name}" for group in self.elements]
        parts += [f"{self.b} bricks"] if self.b else []
        return f"<{self.name}: {', '.join(parts)}, {self.unknowns} unknowns>"


def _positions(value: Any) -> Array:
    """(n, 3), finite."""
    try:
        values = np.array(value, float)
    except (TypeError, ValueError):
        raise ParticlesError(
            f"positions is {short(repr(value))}; it must be an array (n, 3) [m].", code="not-a-number"
        ) from None
    if not values.size:
        return np.zeros((0, 3))
    if values.ndim != 2 or values.shape[1] != 3:
        raise ParticlesError(
            f"positions has shape {values.shape}; it needs (n, 3), three numbers for each particle [m].",
            code="wrong-shape",
        )
    invalid = ~np.isfinite(values).all(1)
    if invalid.any():
        raise ParticlesError(f"the position of particle {int(np.argmax(invalid))} is not finite.", code="not-finite")
    return values
