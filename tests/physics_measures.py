"""Energy and momentum along rollouts, as the suite of physics judges them.

Where q⁺ = q ⊕ h v⁺, velocities are those of half a step before, and T + V rises and falls with the height by ½h·vᵀ∇V:

    E = T(q, v) + V(q) - lag ½h vᵀ ∇V.

Energies that rise or drift are told as shares of the largest T so far, of the worst item.
"""

from typing import Any

import numpy as np

import delassus as dl
from physics_rooms import Room

RISE = {1e-3: 1e-3, 5e-3: 1e-2}
"""By how much the energy of a passive system may rise, and that of one in flight may change, by the step [s]."""

_quiet = np.errstate(over="ignore", invalid="ignore")
"""Motions that blow up are told as infinite, not by warnings."""


@_quiet
def energy(room: Room, model: dl.Model, h: float, q: Any, v: Any) -> tuple[np.ndarray, np.ndarray]:
    """E and T (times, …) [J]."""
    T = dl.kinetic_energy(model, q, v)
    V = dl.potential_energy(model, q) + dl.spring_energy(model, q)
    slope = dl.gravity_torques(model, q) - dl.passive_forces(model, q, np.zeros_like(v))
    return T + V - 0.5 * h * room.lag * np.sum(slope * v, -1), T


@_quiet
def largest_rise(E: np.ndarray, T: np.ndarray) -> float:
    """How far E ever rises above its running minimum."""
    return _worst(E - np.minimum.accumulate(E), T)


@_quiet
def largest_drift(E: np.ndarray, T: np.ndarray) -> float:
    """How far E ever is from that of the start, in both directions."""
    return _worst(np.abs(E - E[0]), T)


@_quiet
def momentum_error(model: dl.Model, t: Any, q: Any, v: Any) -> float:
    """How far linear momentum is from P₀ + m g t, as a share of Σ m |v| + m |g| t of the worst time."""
    P = dl.centroidal_momentum(model, q, v)[..., :3]
    t = np.reshape(t, (-1, *[1] * (P.ndim - 1)))
    pull = model.mass * np.asarray(model.gravity) * t
    T = dl.kinetic_energy(model, q, v)[..., None]
    scale = np.maximum.accumulate(np.sqrt(2.0 * model.mass * T)) + np.linalg.norm(pull, axis=-1, keepdims=True)
    return _largest(np.abs(P - P[0] - pull) / np.maximum(scale, 1e-300))


@_quiet
def angular_momentum_error(model: dl.Model, q: Any, v: Any) -> float:
    """How far angular momentum about the centre of mass, in the world, is from that of the start, relative to it."""
    L = dl.centroidal_momentum(model, q, v)[..., 3:]
    return _largest(np.linalg.norm(L - L[0], axis=-1) / np.linalg.norm(L[0], axis=-1))


def _worst(change: np.ndarray, T: np.ndarray) -> float:
    return _largest(change / np.maximum(np.maximum.accumulate(T), 1e-300))


def _largest(values: np.ndarray) -> float:
    """The largest number, infinite where one is none."""
    return float(np.max(np.where(np.isfinite(values), values, np.inf)))
