"""Tendon paths around spheres and cylinders, with MuJoCo's conventions.

A tendon from x₀ to x₁ whose straight line intersects a sphere or a cylinder consists of two tangent lines and an arc on
the surface. The arc is computed on a circle of radius ρ in a plane. For a sphere, this plane passes through its center,
x₀ and x₁. For a cylinder, it is normal to the axis, along which the tendon rises at a constant slope. The arc is the
shorter one, unless there is a side point whose direction is between -x₀ and -x₁. If the side point is inside the
circle, the tendon passes through the shape and has a bend at a point of the circle. O(1).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import while_loop

_LEAST: Final = 1e-15  # mjMINVAL
_ITERATIONS: Final = 20
_START: Final = 1.0 - 1e-7
_TOLERANCE: Final = 1e-12  # [rad] of the angle at which a tendon bends inside a shape


class Wrap(NamedTuple):
    """The contact of a tendon with a shape.

    Attributes:
        touches: () whether the tendon touches the shape; if not, it is straight, and the other values are undefined.
        first: (3,) the point where it meets the shape, in the shape's frame [m].
        second: (3,) the point where it leaves the shape [m].
        length: () the length of the arc on the surface [m].
    """

    touches: Any
    first: Any
    second: Any
    length: Any


class _Arc(NamedTuple):
    """A `Wrap` in the plane of the circle: points are (2,)."""

    touches: Any
    first: Any
    second: Any
    length: Any


def wrap_around(shape: str, radius: float, x0: Any, x1: Any, side: Any = None) -> Wrap:
    """Wrap a tendon between two points (3,) [m] around a "sphere" or a "cylinder" along z, in the shape's frame.

    The tendon passes the shape on the side of the point `side` (3,), or through it if this point is inside.
    """
    if shape == "sphere":
        first_axis, second_axis = _plane_through(x0, x1)
    else:
        first_axis, second_axis = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])

    def project(x: Any) -> Any:
        return np.stack([x @ first_axis, x @ second_axis])

    a, b = project(x0), project(x1)
    if side is None:
        arc = _wrap_circle(radius, a, b, None)
    else:
        aside = project(side)
        outside, inside = _wrap_circle(radius, a, b, aside), _bend_inside(radius, a, b)
        is_inside = aside @ aside < radius * radius
        arc = _Arc(*(np.where(is_inside, x, y) for x, y in zip(inside, outside, strict=True)))
    touches = arc.touches & (x0 @ x0 >= _LEAST * _LEAST) & (x1 @ x1 >= _LEAST * _LEAST)
    first, second = (p[0] * first_axis + p[1] * second_axis for p in (arc.first, arc.second))
    if shape == "sphere":
        return Wrap(touches, first, second, arc.length)
    before, after = _norm(a - arc.first), _norm(b - arc.second)
    slope = (x1[2] - x0[2]) / np.maximum(before + arc.length + after, _LEAST)
    up = np.array([0.0, 0.0, 1.0])
    height = slope * arc.length
    first = first + (x0[2] + slope * before) * up
    second = second + (x0[2] + slope * (before + arc.length)) * up
    return Wrap(touches, first, second, _root(arc.length * arc.length + height * height))


def _plane_through(x0: Any, x1: Any) -> tuple[Any, Any]:
    """Two axes (3,) of the plane through the origin and two points, the first along x0.

    If these are on one line, the plane is one that contains it.
    """
    axis = _direction(x0)
    normal = np.cross(x0, x1)
    size = np.absolute(axis)
    along_y = (size[1] > size[0]) & (size[1] > size[2])
    along_z = (size[2] > size[0]) & (size[2] > size[1])
    x, y, z = (np.where(flag, 0.0, 1.0) for flag in (~(along_y | along_z), along_y & ~along_z, along_z))
    fallback = np.cross(axis, np.stack([x, y, z]))
    normal = _direction(np.where(normal @ normal > _LEAST * _LEAST, normal, fallback))
    return axis, _direction(np.cross(normal, axis))


def _wrap_circle(radius: float, a: Any, b: Any, side: Any) -> _Arc:
    """Wrap around a circle about the origin along the shorter arc, unless the side point is opposite to both points."""
    square, segment = radius * radius, b - a
    squares = a @ a, b @ b
    span = segment @ segment
    share = np.clip(-(segment @ a) / np.maximum(span, _LEAST), 0.0, 1.0)
    nearest = a + share * segment
    passes = nearest @ nearest > square
    turn = a[0] * b[1] - a[1] * b[0]
    is_opposite: Any = False
    if side is not None:
        is_opposite = (turn * (side[0] * b[1] - side[1] * b[0]) < 0.0) & (
            turn * (a[0] * side[1] - a[1] * side[0]) < 0.0
        )
        passes = passes & ~is_opposite
    touches = (squares[0] >= square) & (squares[1] >= square) & (span >= _LEAST) & ~passes & (radius >= _LEAST)
    roots = [_root(x - square) for x in squares]
    lengths = [np.maximum(x, _LEAST) for x in squares]
    tangents, scores, crossings = [], [], []
    for sign in (1.0, -1.0):
        first = (square * a + sign * radius * roots[0] * np.stack([a[1], -a[0]])) / lengths[0]
        second = (square * b - sign * radius * roots[1] * np.stack([b[1], -b[0]])) / lengths[1]
        separation, crossing = first - second, _cross(a, first, b, second)
        tangents.append((first, second))
        scores.append(np.where(crossing, -np.inf, -(separation @ separation)))
        crossings.append(crossing)
    clockwise = scores[0] > scores[1]
    if side is not None:
        clockwise = np.where(is_opposite, turn > 0.0, clockwise)
    first, second = (np.where(clockwise, x, y) for x, y in zip(*tangents, strict=True))
    touches = touches & ~np.where(clockwise, crossings[0], crossings[1])
    return _Arc(touches, first, second, radius * _angle(first, second, clockwise))


def _angle(first: Any, second: Any, clockwise: Any) -> Any:
    """The angle of an arc, between zero and 2π."""
    turn = first[1] * second[0] - first[0] * second[1]
    angle = np.arctan2(np.absolute(turn), first @ second)
    is_long = np.where(clockwise, turn < 0.0, turn > 0.0)
    return np.where(is_long, 2.0 * np.pi - angle, angle)


def _cross(a: Any, first: Any, b: Any, second: Any) -> Any:
    """Whether the segments from a to `first` and from b to `second` intersect."""
    first_edge, second_edge, between = first - a, second - b, a - b
    determinant = second_edge[1] * first_edge[0] - second_edge[0] * first_edge[1]
    is_parallel = np.absolute(determinant) < _LEAST
    divisor = np.where(is_parallel, 1.0, determinant)
    s = (second_edge[0] * between[1] - second_edge[1] * between[0]) / divisor
    t = (first_edge[0] * between[1] - first_edge[1] * between[0]) / divisor
    return ~is_parallel & (s >= 0.0) & (s <= 1.0) & (t >= 0.0) & (t <= 1.0)


def _bend_inside(radius: float, a: Any, b: Any) -> _Arc:
    """Bend at the point of the circle where both segments make the same angle with the radius.

    The sine z of this angle solves arcsin(A z) + arcsin(B z) - 2 arcsin(z) + G = 0, where G is the angle between a and
    b, A = ρ/|a| and B = ρ/|b|. Newton's method starts near z = 1.
    """
    size_a, size_b, segment = _norm(a), _norm(b), b - a
    span = segment @ segment
    share = -(segment @ a) / np.maximum(span, _LEAST)
    nearest = a + share * segment
    meets = (span > _LEAST) & (share > 0.0) & (share < 1.0) & (nearest @ nearest <= radius * radius)
    cosine = (size_a * size_a + size_b * size_b - span) / np.maximum(2.0 * size_a * size_b, _LEAST)
    touches = (size_a > radius) & (size_b > radius) & ~meets & (cosine >= _LEAST - 1.0) & (radius >= _LEAST)
    A, B = (radius / np.maximum(size, max(radius, _LEAST)) for size in (size_a, size_b))
    G = np.arccos(np.clip(cosine, _LEAST - 1.0, 1.0 - _LEAST))

    def residual(z: Any) -> Any:
        return np.arcsin(A * z) + np.arcsin(B * z) - 2.0 * np.arcsin(z) + G

    def improve(state: Any) -> Any:
        z, f, _ = state
        slope = _arcsine_slope(A, z) + _arcsine_slope(B, z) - 2.0 * _arcsine_slope(1.0, z)
        new = np.clip(z - f / np.minimum(slope, -_LEAST), 0.0, z)
        remaining_error = residual(new)
        return new, remaining_error, np.where(remaining_error > _TOLERANCE, 1.0, 0.0)

    z = np.array(_START)
    start = (z, residual(z), np.array(0.0))
    can_start = touches & (start[1] <= 0.0) & (cosine <= 1.0 - _LEAST)

    def goes_on(state: Any) -> Any:
        return can_start & (np.absolute(state[1]) > _TOLERANCE) & (state[2] < 0.5)

    z, f, failed = while_loop(goes_on, improve, start, _ITERATIONS)
    solved = can_start & (np.absolute(f) <= _TOLERANCE) & (failed < 0.5)
    from_a = a[0] * b[1] - a[1] * b[0] > 0.0
    unit = np.where(from_a, a / np.maximum(size_a, _LEAST), b / np.maximum(size_b, _LEAST))
    angle = np.arcsin(z) - np.where(from_a, np.arcsin(A * z), np.arcsin(B * z))
    c, s = np.cos(angle), np.sin(angle)
    bend = radius * np.stack([c * unit[0] - s * unit[1], s * unit[0] + c * unit[1]])
    point = np.where(solved, bend, radius * _direction(0.5 * (a + b)))
    return _Arc(touches, point, point, np.array(0.0))


def _arcsine_slope(factor: Any, z: Any) -> Any:
    """d arcsin(A z)/dz."""
    return factor / np.maximum(_root(1.0 - factor * factor * z * z), _LEAST)


def _root(x: Any) -> Any:
    """√max(x, 0), with a finite derivative for x ≤ 0."""
    positive = x > 0.0
    return np.where(positive, np.sqrt(np.where(positive, x, 1.0)), 0.0)


def _norm(x: Any) -> Any:
    return _root(x @ x)


def _direction(x: Any) -> Any:
    """x/|x|, or zero for x = 0."""
    return x / np.maximum(_norm(x), _LEAST)
