"""Residuals of impulses and velocities in the contact laws, in plain NumPy over batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delassus.contact.cones.kinds import Free, Interval, NonNegative
from delassus.contact.cones.pyramid import corners, pyramid_rows, violation
from delassus.contact.problems.data import ContactData
from delassus.contact.systems.scaled import LARGEST_FRICTION

Array = NDArray[np.float64]

Pyramid = tuple[int, str]
"""The number of faces of a pyramid, and "inner" or "outer"; None for cones."""


def contacts_of(problem: ContactData, rows: Array) -> Iterator[tuple[Array, Array, Array]]:
    """For each contact the tangential (and torsional) values (…, k), the normal one (…), and coefficients (…, k)."""
    spins = rolls = 0
    for index, places in enumerate(problem.layout.friction):
        mu = _numbers(problem.friction, index)
        coefficients = [mu, mu]
        if len(places) > 3:
            coefficients.append(_numbers(problem.torsional, spins))
            spins += 1
        if len(places) > 4:
            coefficients += [_numbers(problem.rolling, rolls)] * 2
            rolls += 1
        tangents = [*places[:2], *places[3:]]
        coefficient = np.minimum(np.stack(np.broadcast_arrays(*coefficients), -1), LARGEST_FRICTION)
        yield rows[..., tangents], rows[..., places[2]], coefficient


def correction(problem: ContactData, velocity: Array, pyramid: Pyramid | None = None) -> Array:
    """Γ (…, m) [m/s]: friction times sliding speed, in the normal rows (de Saxcé)."""
    result = np.zeros_like(velocity)
    for rows, (sliding, _, c) in zip(problem.layout.friction, contacts_of(problem, velocity), strict=True):
        result[..., rows[2]] = _rubbing(c * sliding, pyramid)
    return result


def _rubbing(sliding: Array, pyramid: Pyramid | None) -> Array:
    """(…) largest dissipation of a sliding velocity (…, k) per unit of friction: its norm, or its support in a
    polygon.
    """
    if pyramid is None:
        return np.asarray(np.linalg.norm(sliding, axis=-1))
    return np.asarray(np.maximum(np.max(-sliding @ corners(*pyramid), axis=-1), 0.0))


def primal(problem: ContactData, impulse: Array, pyramid: Pyramid | None = None) -> Array:
    """(…) primal violation [N·s]: how far impulses are outside their cones and bounds."""
    violations = [np.zeros(impulse.shape[:-1])]
    for tangents, normal, c in contacts_of(problem, impulse):
        mu = c[..., 0]
        if pyramid is not None:
            rows = pyramid_rows(mu, *pyramid)
            violations.append(violation(rows, np.concatenate([tangents, normal[..., None]], -1)))
        elif tangents.shape[-1] == 2:
            violations += [np.linalg.norm(tangents, axis=-1) - np.where(normal > 0.0, mu * normal, 0.0), -normal]
        else:
            share = np.where(c > 0.0, tangents / np.where(c > 0.0, c, 1.0), tangents)
            violations += [np.linalg.norm(share, axis=-1) - normal, -normal]
    violations += [-impulse[..., row] for row in problem.layout.rows(NonNegative)]
    for k, row in enumerate(problem.layout.rows(Interval)):
        violations += [_numbers(problem.lower, k) - impulse[..., row], impulse[..., row] - _numbers(problem.upper, k)]
    return _largest(violations)


def dual(problem: ContactData, corrected: Array, pyramid: Pyramid | None = None) -> Array:
    """(…) dual violation [m/s]: how far velocities σ + Γ are outside the dual cones, by penetration or motion of free
    rows.
    """
    violations = [np.zeros(corrected.shape[:-1])]
    for sliding, normal, c in contacts_of(problem, corrected):
        violations.append(_rubbing(c * sliding, pyramid) - normal)
    violations += [-corrected[..., row] for row in problem.layout.rows(NonNegative)]
    violations += [np.abs(corrected[..., row]) for row in problem.layout.rows(Free)]
    return _largest(violations)


def complementarity(problem: ContactData, impulse: Array, corrected: Array) -> Array:
    """(…) the largest |λᵀ (σ + Γ)| of a cone [J]."""
    violations = [np.zeros(impulse.shape[:-1])]
    violations += [np.abs(np.sum(impulse[..., r] * corrected[..., r], -1)) for r in map(list, problem.layout.friction)]
    violations += [np.abs(impulse[..., row] * corrected[..., row]) for row in problem.layout.rows(NonNegative)]
    for k, row in enumerate(problem.layout.rows(Interval)):
        speed = corrected[..., row]
        room = np.where(speed > 0.0, impulse[..., row] - _numbers(problem.lower, k), 0.0)
        room = np.where(speed < 0.0, _numbers(problem.upper, k) - impulse[..., row], room)
        violations.append(
            np.abs(np.where(np.isinf(room), 0.0, room) * speed) + np.where(np.isinf(room), np.abs(speed), 0.0)
        )
    return _largest(violations)


def dissipation(problem: ContactData, impulse: Array, velocity: Array) -> Array:
    """(…, contacts) energy dissipated by friction, -λ_tᵀ σ_t [J]; nonnegative for a solution."""
    pairs = zip(contacts_of(problem, impulse), contacts_of(problem, velocity), strict=True)
    powers = [-np.sum(impulse_part[0] * velocity_part[0], -1) for impulse_part, velocity_part in pairs]
    return np.stack(powers, -1) if powers else np.zeros((*impulse.shape[:-1], 0))


def _numbers(values: Array | None, k: int) -> Any:
    return 0.0 if values is None else values[..., k]


def _largest(violations: list[Array]) -> Array:
    result: Array = np.max(np.stack(np.broadcast_arrays(*violations)), 0)
    return result
