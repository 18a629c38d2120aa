"""Checks of the arrays of a system."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import positive_number, real_array
from delassus.errors import BadArgument, OutOfRange, WrongShape
from delassus.particles.description.elements import Elements
from delassus.particles.description.lanes import deformation_parts, energy_parts

Array = NDArray[np.float64]

_SAMPLE: Final = 1e-12
"""Smallest derivative of an element, relative to the largest, that is not degenerate."""


class ParticlesError(BadArgument):
    """Invalid arrays of a system."""


def broadcast_to_shape(name: str, value: Any, shape: tuple[int, ...]) -> Array:
    """An array of this shape from one value or all."""
    values = real_array(name, value)
    try:
        return np.array(np.broadcast_to(values, shape))
    except ValueError:
        raise WrongShape(
            f"{name} has shape {values.shape}; it needs {shape}, or a shape that broadcasts to it."
        ) from None


def finite(name: str, value: Any, shape: tuple[int, ...], *, least: float | None = None, above: bool = False) -> Array:
    """Finite values of this shape from one or all, at least `least`, or all above it."""
    values = broadcast_to_shape(name, value, shape)
    invalid = ~np.isfinite(values)
    if least is not None:
        invalid |= values <= least if above else values < least
    if invalid.any():
        bound = "" if least is None else ", positive" if above else f", {least:g} or more"
        index_text = f" {int(np.argwhere(invalid)[0][0])}" if len(shape) == 1 and np.ndim(value) else ""
        raise OutOfRange(f"{name}{index_text} is {values[invalid].flat[0]:g}; it must be a finite number{bound}.")
    return values


def positive(**numbers: Any) -> None:
    """Raise an error unless these are positive, finite values."""
    for name, value in numbers.items():
        positive_number(name, value)


def check_indices(name: str, value: Any, n: int, shape: tuple[int, ...] = (-1,)) -> NDArray[np.int64]:
    """Check indices of particles, from 0 to n - 1."""
    indices = np.asarray(value)
    if indices.size == 0:
        return np.zeros(0, np.int64).reshape((0, *shape[1:]))
    if not np.issubdtype(indices.dtype, np.integer):
        mask = ": of a mask, take np.flatnonzero" if indices.dtype == bool else ""
        raise ParticlesError(
            f"{name} has the type {indices.dtype}; it must hold indices of particles{mask}.", code="not-a-whole-number"
        )
    invalid = (indices < 0) | (indices >= n)
    if invalid.any():
        raise ParticlesError(
            f"{name} has the particle {int(indices[invalid].flat[0])}; there are {n}, numbered from 0 to {n - 1}.",
            code="index-out-of-range",
        )
    try:
        return np.ascontiguousarray(indices.reshape(shape), np.int64)
    except ValueError:
        raise ParticlesError(
            f"{name} has shape {indices.shape}; it needs (any, {shape[-1]}).", code="wrong-shape"
        ) from None


def check_elements(n: int, elements: Sequence[Elements]) -> None:
    """Raise an error unless all points exist, and no element has a point twice."""
    for group in elements:
        if not isinstance(group, Elements):
            raise ParticlesError(f"elements contains {group!r}; it must contain `Elements` only.", code="wrong-type")
        if not len(group):
            continue
        low, high = int(group.points.min()), int(group.points.max())
        if low < 0 or high >= n:
            at = int(np.argmax(((group.points < 0) | (group.points >= n)).any(1)))
            raise ParticlesError(
                f"{group.kind.name} {at} has the points {group.points[at].tolist()}; there are {n} particles, numbered "
                f"from 0 to {n - 1}.",
                code="index-out-of-range",
            )
        ordered = np.sort(group.points, 1)
        twice = (ordered[:, 1:] == ordered[:, :-1]).any(1)
        if twice.any():
            at = int(np.argmax(twice))
            raise ParticlesError(
                f"{group.kind.name} {at} has a point twice: {group.points[at].tolist()}.", code="degenerate-element"
            )


def check_held_once(n: int, groups: Sequence[NDArray[np.int64]]) -> None:
    """Raise an error if a particle is prescribed twice."""
    count = np.zeros(n, int)
    for points in groups:
        np.add.at(count, points, 1)
    if np.any(count > 1):
        raise ParticlesError(
            f"particle {int(np.argmax(count > 1))} is prescribed twice, by pins or motions: use one of them.",
            code="conflicting-arguments",
        )


def check_masses(masses: Array, is_prescribed: NDArray[np.bool_]) -> None:
    """Raise an error unless the masses of free particles are positive."""
    invalid = ~np.isfinite(masses) | (masses < 0.0) | ((masses == 0.0) & ~is_prescribed)
    if invalid.any():
        at = int(np.argmax(invalid))
        raise ParticlesError(
            f"the mass of particle {at} is {masses[at]:g} kg; a free particle must have a positive mass. Pin it, "
            "or use a small mass.",
            code="out-of-range",
        )


def check_degenerate(positions: Array, elements: Sequence[Elements], is_prescribed: NDArray[np.bool_]) -> None:
    """Raise an error for elements without derivative: rods of zero length, flat tetrahedra, collinear triangles.

    Elements between prescribed particles have no effect; rigid ones could be infeasible.
    """
    for group in elements:
        if not len(group):
            continue
        kind, x = group.kind, positions[group.points]
        if kind.rows:
            rows = deformation_parts(kind, x, group.numbers).rows
            size = np.abs(rows).reshape(len(group), kind.rows, -1).max(-1).min(-1)
        else:
            parts = energy_parts(kind, x, group.numbers)
            size = np.where(np.isfinite(parts.gradient).reshape(len(group), -1).all(1) & np.isfinite(parts.value), 1, 0)
        largest = np.max(size, where=np.isfinite(size), initial=0.0)
        degenerate = ~np.isfinite(size) | (size <= _SAMPLE * largest)
        if degenerate.any():
            at = int(np.argmax(degenerate))
            raise ParticlesError(
                f"{kind.name} {at} between the particles {group.points[at].tolist()} is degenerate: its derivative "
                "vanishes or is infinite. Give rods a length, triangles an area, tetrahedra a volume.",
                code="degenerate-element",
            )
        dead = is_prescribed[group.points].all(1)
        if group.rigid and dead.any():
            at = int(np.argmax(dead))
            raise ParticlesError(
                f"{kind.name} {at} is rigid, and all of its particles, {group.points[at].tolist()}, are prescribed: no "
                "motion can satisfy it. Omit it, or free a particle.",
                code="immovable",
            )
