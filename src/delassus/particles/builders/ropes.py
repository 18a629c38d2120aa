"""Lines of particles: ropes, chains, ribbons."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import check_integer
from delassus.common.types import ArrayLike
from delassus.particles.description.checks import ParticlesError, check_indices, finite, positive
from delassus.particles.description.elements import Elements
from delassus.particles.description.library import bend, stretch
from delassus.particles.description.particles import Particles

Array = NDArray[np.float64]


def line(start: Any, end: Any, segments: int, length: float | None = None) -> Array:
    """Points (segments + 1, 3) from start to end; on a catenary if `length` exceeds their distance."""
    a, b, segments = finite("start", start, (3,)), finite("end", end, (3,)), check_integer("segments", segments)
    if length is not None:
        positive(length=length)
    span = float(np.linalg.norm(b - a))
    share = np.linspace(0.0, 1.0, segments + 1)[:, None]
    straight = a + share * (b - a)
    if length is None or length <= span * (1.0 + 1e-12):
        if length is not None and length < span * (1.0 - 1e-9):
            raise ParticlesError(
                f"the length is {length:g} m, and its ends are {span:g} m apart: it must be at least as long.",
                code="out-of-range",
            )
        return straight
    return _catenary(a, b, share[:, 0], length)


def _catenary(a: Array, b: Array, share: Array, length: float) -> Array:
    """Points at fractions `share` of the length of a catenary from a to b."""
    horizontal = np.array([b[0] - a[0], b[1] - a[1], 0.0])
    wide, rise = float(np.linalg.norm(horizontal)), float(b[2] - a[2])
    direction = horizontal / wide if wide > 0.0 else np.array([1.0, 0.0, 0.0])
    span, wide = wide, max(wide, 1e-3 * length)  # avoids strands that nearly coincide
    target = np.sqrt(length**2 - rise**2) / wide
    low, high = 1e-9, 60.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.sinh(middle) / middle < target else (low, middle)
    scale = wide / (2.0 * low)
    shift = 0.5 * wide - scale * np.arctanh(rise / length)
    s0 = scale * np.sinh(-shift / scale)
    x = shift + scale * np.arcsinh((s0 + share * length) / scale)
    z = scale * (np.cosh((x - shift) / scale) - np.cosh(-shift / scale))
    x -= share * (wide - span)
    return np.asarray(a + x[:, None] * direction + z[:, None] * np.array([0.0, 0.0, 1.0]))


def _masses(lengths: Array, density: float) -> Array:
    """Masses [kg]: half of each segment at either end."""
    m = np.zeros(len(lengths) + 1)
    m[:-1] += 0.5 * density * lengths
    m[1:] += 0.5 * density * lengths
    return m


def pinned_on_line(pinned: Any, n: int) -> NDArray[np.int64]:
    """The pinned particles of a line, by names of ends or by indices."""
    names = {"none": [], "start": [0], "end": [n - 1], "both": [0, n - 1], "clamped": [0, 1]}
    if isinstance(pinned, str):
        if pinned not in names:
            raise ParticlesError(
                f"pinned is {pinned!r}; it must be one of {', '.join(names)}, or numbers of particles.",
                code="unknown-option",
            )
        return np.array(names[pinned], int)
    return check_indices("pinned", pinned, n)


def rope(
    start: ArrayLike = (0.0, 0.0, 0.0),
    end: ArrayLike = (1.0, 0.0, 0.0),
    segments: int = 50,
    *,
    length: float | None = None,
    density: float = 0.1,
    stiffness: float | None = 1e4,
    bending: float = 0.0,
    pinned: str | ArrayLike = "both",
    **others: Any,
) -> Particles:
    """A rope: particles on a line, springs between them.

    Args:
        start: First end [m].
        end: Second end [m].
        segments: Number of springs.
        length: Rest length [m]; by default the distance of the ends.
        density: Mass per length [kg/m].
        stiffness: EA, force per strain [N]; None for an inextensible rope.
        bending: EI [N·m²]; 0 for none.
        pinned: "none", "start", "end", "both", "clamped" (the first two particles), or indices of particles.
        **others: Other arguments of `Particles`: obstacles, friction, gravity, …

    >>> dl.particles.rope(segments=10).n
    11
    """
    x = line(start, end, segments, length)
    edges = np.stack([np.arange(segments), np.arange(1, segments + 1)], 1)
    lengths = np.linalg.norm(np.diff(x, axis=0), axis=1)
    rest_lengths = np.full(segments, (lengths.sum() if length is None else length) / segments)
    positive(density=density, length=float(rest_lengths[0]), stiffness=1.0 if stiffness is None else stiffness)
    finite("bending", bending, (), least=0.0)
    pinned_particles = pinned_on_line(pinned, len(x))
    edges, rest_of = _alive(edges, pinned_particles, len(x), stiffness is None), rest_lengths[0]
    C = None if stiffness is None else rest_of / stiffness
    elements = [Elements(stretch, edges, np.full((len(edges), 1), rest_of), C)]
    if bending > 0.0:
        elements.append(bends(np.arange(len(x)), rest_of, bending))
    options: dict[str, Any] = {"radius": 0.0, "name": "rope"} | others
    return Particles(x, _masses(rest_lengths, density), elements, pinned_particles, **options)


def chain(
    start: ArrayLike = (0.0, 0.0, 0.0),
    end: ArrayLike = (1.0, 0.0, 0.0),
    links: int = 50,
    *,
    length: float | None = None,
    density: float = 1.0,
    pinned: str | ArrayLike = "both",
    **others: Any,
) -> Particles:
    """A chain: an inextensible rope of rigid links; arguments as for `rope`.

    >>> dl.particles.chain(links=4).n
    5
    """
    arguments = {"name": "chain"} | others
    return rope(start, end, links, length=length, density=density, stiffness=None, pinned=pinned, **arguments)


def ribbon(
    start: ArrayLike = (0.0, 0.0, 0.0),
    end: ArrayLike = (1.0, 0.0, 0.0),
    segments: int = 50,
    *,
    width: float = 0.05,
    density: float = 0.2,
    bending: float = 1e-3,
    pinned: str | ArrayLike = "clamped",
    **others: Any,
) -> Particles:
    """An inextensible ribbon: two lines of particles with rigid rods along, across and diagonally; it bends and twists.

    Args:
        start: Center of the first end [m].
        end: Center of the second end [m].
        segments: Number of rectangles.
        width: Width [m], initially horizontal.
        density: Mass per length [kg/m].
        bending: EI of the whole ribbon [N·m²].
        pinned: As for `rope`, by cross-section.
        **others: Other arguments of `Particles`.

    >>> dl.particles.ribbon(segments=4).n
    10
    """
    positive(width=width, density=density)
    finite("bending", bending, (), least=0.0)
    middle = line(start, end, segments)
    axis = middle[-1] - middle[0]
    width_direction = np.cross([0.0, 0.0, 1.0], axis)
    if not np.linalg.norm(axis) > 0.0:
        raise ParticlesError(
            f"a ribbon begins and ends at {start!r}; its length must not be zero.", code="degenerate-element"
        )
    if not np.linalg.norm(width_direction) > 1e-12 * np.linalg.norm(axis):
        width_direction = np.array([0.0, 1.0, 0.0])
    width_direction = 0.5 * width * width_direction / np.linalg.norm(width_direction)
    k = len(middle)
    x = np.concatenate([middle - width_direction, middle + width_direction])
    left, right = np.arange(k), np.arange(k, 2 * k)
    held_sections = pinned_on_line(pinned, k)
    pinned_particles = np.concatenate([left[held_sections], right[held_sections]])
    pairs = [(left[:-1], left[1:]), (right[:-1], right[1:]), (left, right), (left[:-1], right[1:])]
    edges = _alive(np.concatenate([np.stack(pair, 1) for pair in pairs]), pinned_particles, 2 * k, True)
    rest_lengths = np.linalg.norm(x[edges[:, 1]] - x[edges[:, 0]], axis=1)
    step = float(np.linalg.norm(axis)) / segments
    elements = [Elements(stretch, edges, rest_lengths[:, None])]
    if bending > 0.0:
        elements += [bends(side, step, 0.5 * bending) for side in (left, right)]
    m = 0.5 * _masses(np.full(segments, step), density)
    quads = np.stack([left[:-1], left[1:], right[1:], right[:-1]], 1)
    faces = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    options: dict[str, Any] = {"faces": faces, "name": "ribbon"} | others
    return Particles(x, np.concatenate([m, m]), elements, pinned_particles, **options)


def bends(points: ArrayLike, step: float, stiffness: float) -> Elements:
    """Elastic bending elements of stiffness EI [N·m²] along a line of particles with spacing `step` [m]: ½ EI κ² per
    length.

    >>> len(dl.particles.bends(range(6), step=0.2, stiffness=0.1))
    4
    """
    positive(step=step, stiffness=stiffness)
    line_points = np.asarray(points, int)
    threes = np.stack([line_points[:-2], line_points[1:-1], line_points[2:]], 1)
    parameters = np.tile([step, step, 0.0, 0.0, 0.0], (len(threes), 1))
    return Elements(bend, threes, parameters, np.full(len(threes), step / stiffness))


def _alive(edges: NDArray[np.int64], pinned: NDArray[np.int64], n: int, rigid: bool) -> NDArray[np.int64]:
    """Edges with a free particle; the others have no effect."""
    is_fixed = np.zeros(n, bool)
    is_fixed[pinned] = True
    return edges[~is_fixed[edges].all(1)] if rigid else edges
