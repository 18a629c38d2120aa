"""The table of shapes. Each registers itself in its own file.

A shape knows nothing of robots. It has a size, the numbers that describe it, and where it matters a placement: the
rotation R from its axes to the world's, and its center p. The rest of the package reads the table:

    simulation    candidates on the ground, which of them roll, what the checks of a scene have to know
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
"""The gap [m] of touches that were not computed."""


class Touch(NamedTuple):
    """A gap [m], the point (3,) [m] of the body and the normal (3,) of what it touches, in the world.

    `feature` is an integer, equal while the same features of both shapes touch: warm starts are matched by it.
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
    """A shape without its rounding, the radius [m] of the ball that it is the Minkowski sum with.

    A point inside (3,) [m], half its extents (3,) [m] along its own axes, and the least radius of curvature [m] of its
    surface that matters; infinite for points and segments.
    """

    center: Any
    extents: Any
    rounding: Any
    curvature: Any


class Facet(NamedTuple):
    """A face, edge or point of a core: its corners (k, 3) [m] in order, repeated where there are fewer; its outward
    normal (3,), the direction (3,) of its first edge, and its number among the facets of the shape."""

    corners: Any
    normal: Any
    axis: Any
    number: Any


def lengths(size: Any) -> Any:
    """A size as an array: of NumPy where its numbers are known while a kernel is traced, so that they fold."""
    return numpy.array(size) if isinstance(size, tuple) else size


class ShapeKind:
    """A kind of shape, with so many `lengths` in its size. Those that `has_distance` touch balls and particles."""

    name: ClassVar[str] = ""
    has_distance: ClassVar[bool] = False
    lengths: ClassVar[int] = 0

    def ground_points(self, size: Any, on_field: bool) -> int:
        """How many points of it may touch the ground; a height field has several contacts with a ball."""
        raise NotImplementedError

    def rolling(self, size: Any, on_field: bool) -> tuple[bool, ...]:
        """Of each point on the ground, whether it is another point of the body after a turn; empty if none is."""
        return ()

    def ground_touches(self, body: Placed, surface: Surface, on_field: bool) -> list[Touch]:
        """Where its points touch the ground, or would along the normal."""
        raise NotImplementedError

    def distance(self, body: Placed, x: Any) -> tuple[Any, Any]:
        """How far [m] a point (3,) is outside of it, negative inside, and the gradient (3,), the outward normal."""
        raise NotImplementedError

    def support(self, body: Placed, direction: Any) -> Any:
        """Its farthest point (3,) in a direction (3,) of any length."""
        raise NotImplementedError

    def core(self, body: Placed) -> Core:
        """Its core, of which pairs of convex shapes know no more than supports and facets."""
        raise NotImplementedError

    def core_support(self, body: Placed, direction: Any) -> Any:
        """The farthest point (3,) of its core."""
        return self.support(body, direction)

    def facet(self, body: Placed, direction: Any) -> Facet:
        """The facet of its core that looks along a unit vector (3,)."""
        raise NotImplementedError

    def positive_lengths(self, size: Any) -> tuple[float, ...]:
        """The lengths [m] that a body of this shape has to have."""
        return tuple(size)

    def outline(self, size: Any) -> Array:
        """(n, 3) points whose convex hull is the shape, for drawings."""
        raise NotImplementedError

    def faces(self, size: Any) -> Array | None:
        """(faces, corners, 3) against the clock from outside, for drawings; None for round shapes."""
        return None


SHAPES: Final[dict[str, ShapeKind]] = {}
"""All shapes by their names."""

K = TypeVar("K", bound=type[ShapeKind])


def register_shape(name: str) -> Callable[[K], K]:
    """Enter a kind of shape in the table."""

    def register(kind: K) -> K:
        if name in SHAPES:
            raise ValueError(f"the shape {name!r} is registered already: choose another name.")
        kind.name = name
        SHAPES[name] = kind()
        return kind

    return register
