"""Block Jacobi over all contacts of a batch; each contact is solved exactly, by bisection of an angle.

The equations are those of `solvers.bisection`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from delassus.contact.large.rows import Array
from delassus.linalg.filtered_system import least_norm

_ANGLES: Final = np.pi * (np.arange(-8, 8) / 8.0) ** 3
"""Sample angles relative to the direction in which the contact would stick, dense where it almost sticks."""

_NEARNESS: Final = 1.0 - np.abs(np.arange(-8, 8) + 0.5) / 16.0
_HALVINGS: Final = 24


def contact_impulse(G: Array, impulse: Array, velocity: Array, friction: Array, relaxation: Any) -> Array:
    """The impulses (B, n, 3) of contacts, relaxed towards the exact ones."""
    free_velocity = velocity - _product(G, impulse)
    sticking = -least_norm(G, free_velocity[..., None])[..., 0]
    sticks = np.linalg.norm(sticking[..., :2], axis=-1) <= friction * sticking[..., 2]
    sliding, exists = _sliding(G, free_velocity, friction, sticking[..., :2])
    new = np.where(sticks[..., None], sticking, np.where(exists[..., None], sliding, impulse))
    new = np.where(free_velocity[..., 2:] >= 0.0, 0.0, new)
    return np.asarray(impulse + relaxation * (new - impulse))


def _product(G: Array, x: Array) -> Array:
    return np.asarray((G @ x[..., None])[..., 0])


def _sliding(G: Array, free_velocity: Array, friction: Array, towards: Array) -> tuple[Array, Array]:
    """The impulses (B, n, 3) of sliding contacts, and whether they exist."""

    def reach(e: Array) -> Array:
        """D (…) of directions (…, 2), with axes before the last one for samples."""
        broadcast = (slice(None), slice(None), *[None] * (e.ndim - 3))
        return np.asarray(
            G[..., 2, 2][broadcast]
            + friction[broadcast] * (G[..., 2, 0][broadcast] * e[..., 0] + G[..., 2, 1][broadcast] * e[..., 1])
        )

    def slide(e: Array) -> Array:
        """D σ_t (…, 2)."""
        broadcast = (slice(None), slice(None), *[None] * (e.ndim - 3))
        response = friction[broadcast][..., None] * _product(G[..., :2, :2][broadcast], e) + G[..., :2, 2][broadcast]
        return np.asarray(
            reach(e)[..., None] * free_velocity[..., :2][broadcast]
            - free_velocity[..., 2][broadcast][..., None] * response
        )

    def across(e: Array) -> Array:
        """D e⊥ᵀ σ_t (…)."""
        s = slide(e)
        return np.asarray(e[..., 0] * s[..., 1] - e[..., 1] * s[..., 0])

    size = np.linalg.norm(towards, axis=-1, keepdims=True)
    u = np.where(size > 0.0, towards / np.where(size > 0.0, size, 1.0), [1.0, 0.0])[:, :, None]
    cos, sin = np.cos(_ANGLES), np.sin(_ANGLES)
    samples = np.stack([u[..., 0] * cos - u[..., 1] * sin, u[..., 0] * sin + u[..., 1] * cos], -1)
    values = across(samples)
    later = np.roll(values, -1, -1)
    possible = reach(samples) > 0.0  # the normal impulse is negative where D < 0
    rising = (values < 0.0) & (later >= 0.0) & (possible | np.roll(possible, -1, -1))
    at = np.argmax(np.where(rising, _NEARNESS, -1.0), -1)[..., None]
    a, b = (np.take_along_axis(x, at[..., None], -2)[..., 0, :] for x in (samples, np.roll(samples, -1, -2)))
    at_a, at_b = (np.take_along_axis(x, at, -1)[..., 0] for x in (values, later))
    for _ in range(_HALVINGS):
        e = a + b
        e = e / np.linalg.norm(e, axis=-1, keepdims=True)
        value = across(e)
        is_low = value < 0.0
        a, b = np.where(is_low[..., None], e, a), np.where(is_low[..., None], b, e)
        at_a, at_b = np.where(is_low, value, at_a), np.where(is_low, at_b, value)
    e = at_b[..., None] * a - at_a[..., None] * b
    size = np.linalg.norm(e, axis=-1, keepdims=True)
    e = np.where(size > 0.0, e / np.where(size > 0.0, size, 1.0), a)
    D = reach(e)
    exists = rising.any(-1) & (D > 0.0) & ((slide(e) * e).sum(-1) <= 0.0)
    normal = -free_velocity[..., 2] / np.where(D > 0.0, D, 1.0)
    return normal[..., None] * np.concatenate([friction[..., None] * e, np.ones_like(D)[..., None]], -1), exists
