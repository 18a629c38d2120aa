"""The table of shapes. Each shape registers itself in its own file.

A shape does not depend on robots. It has a size, whose values define it, and a placement: the rotation R from its axes
to the world's, and its center p. The rest of the package reads the table:

    simulation    contact points on the ground, whether they roll, properties for checks of a scene
    pairs         distance fields and supports
    particles     distance fields of obstacles
    output        points of the surface, for drawings

A new shape is one file of this folder:

    @register_shape("torus")
    class Torus(ShapeKind): ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final, NamedTuple, TypeVar

import numpy
from numpy.typing import NDArray

from delassus.geometry.surfaces import Surface

Array = NDArray[numpy.float64]


ABSENT: Final = 1e3
"""The gap [m] of contacts that were not computed."""


class Touch(NamedTuple):
    """A contact: gap [m], point (3,) [m] on the body, and normal (3,) of the other surface, in the world.

    `feature` is an integer that is the same as long as the same features of both shapes touch; it matches warm starts.
    """

    gap: Any
    point: Any
    normal: Any
    feature: Any = 0.0


class Placed(NamedTuple):
    """A shape in the world: its rotation (3, 3), its center (3,) [m], and its size.

    Sizes are lengths [m]: the radius of a sphere; the radius and the length of a cylinder or capsule, without its caps;
    the edges of a box; the half-axes of an ellipsoid; the vertices (n, 3) of a mesh. A plane has none.
    """

    R: Any
    p: Any
    size: Any = ()

    def at(self, local: Any) -> Any:
        """A point (3,) of the shape's axes in the world."""
        return self.p + self.R @ local


class Core(NamedTuple):
    """The core of a shape, which is the Minkowski sum of its core and a ball.

    It has an interior point (3,) [m], half extents (3,) [m] along its own axes, the radius [m] of the ball, and the
    smallest relevant radius of curvature [m] of its surface, which is infinite for points and segments.
    """

    center: Any
    extents: Any
    rounding: Any
    curvature: Any


class Facet(NamedTuple):
    """A face, edge or point of a core.

    Attributes:
        corners: (k, 3) [m] in order, with repetitions if there are fewer than k.
        normal: (3,) outward normal.
        axis: (3,) direction of the first edge.
        number: Index among the facets of the shape.
    """

    corners: Any
    normal: Any
    axis: Any
    number: Any


def lengths(size: Any) -> Any:
    """A size as an array; a plain NumPy array if its values are known at compile time, so that they are constants."""
    return numpy.array(size) if isinstance(size, tuple) else size


class ShapeKind:
    """A type of shape, with `lengths` values in its size. Types with `has_distance` may touch balls and particles."""

    name: ClassVar[str] = ""
    has_distance: ClassVar[bool] = False
    lengths: ClassVar[int] = 0

    def ground_points(self, size: Any, on_field: bool) -> int:
        """The number of points that may touch the ground; a ball has several contacts with a height field."""
        raise NotImplementedError

    def rolling(self, size: Any, on_field: bool) -> tuple[bool, ...]:
        """For each contact point, whether it moves on the body when the body rotates; empty if none does."""
        return ()

    def ground_touches(self, body: Placed, surface: Surface, on_field: bool) -> list[Touch]:
        """The contacts with the ground, open ones included."""
        raise NotImplementedError

    def distance(self, body: Placed, x: Any) -> tuple[Any, Any]:
        """The signed distance [m] of a point (3,), negative inside, and its gradient (3,), the outward normal."""
        raise NotImplementedError

    def support(self, body: Placed, direction: Any) -> Any:
        """The support point: the farthest point (3,) in a direction (3,) of any length."""
        raise NotImplementedError

    def core(self, body: Placed) -> Core:
        """The core, from whose support points and facets contacts of convex shapes are computed."""
        raise NotImplementedError

    def core_support(self, body: Placed, direction: Any) -> Any:
        """The support point (3,) of the core in a direction (3,)."""
        return self.support(body, direction)

    def facet(self, body: Placed, direction: Any) -> Facet:
        """The facet of the core whose normal is nearest to a unit vector (3,)."""
        raise NotImplementedError

    def positive_lengths(self, size: Any) -> tuple[float, ...]:
        """The lengths [m] that must be positive."""
        return tuple(size)

    def outline(self, size: Any) -> Array:
        """Points (n, 3) whose convex hull is the shape, for drawings."""
        raise NotImplementedError

    def faces(self, size: Any) -> Array | None:
        """Corners (faces, corners, 3), counterclockwise from outside, for drawings; None for round shapes."""
        return None


SHAPES: Final[dict[str, ShapeKind]] = {}
"""All shapes by their names."""

K = TypeVar("K", bound=type[ShapeKind])


def register_shape(name: str) -> Callable[[K], K]:
    """Register a type of shape in the table."""

    def register(kind: K) -> K:
        if name in SHAPES:
            raise ValueError(f"the shape {name!r} is registered already: choose another name.")
        kind.name = name
        SHAPES[name] = kind()
        return kind

    return register
