"""Coulomb's cone ‖t‖ ≤ friction · n of impulses (t1, t2, n), its dual, and the projections onto both.

In the plane of the normal and the tangential part the cone is a wedge whose edge has the direction (c, s), the cosine
and sine of its slope. Its dual ‖t‖ · friction ≤ n, the cone of velocities, is the wedge with c and s exchanged, so one
function serves both. The coefficients are not squared, so friction may be anything from zero (the cone is a ray, the
dual a half-space) to infinity (the reverse).

All functions take batches, `x` (…, 3) and `friction` (…), and traced arrays.
"""

from __future__ import annotations

from typing import Any

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.trace import trace_of
from delassus.contact.cones.kinds import ConeError


def project(x: Any, friction: Any) -> Any:
    """Project impulses (…, 3) onto the cone."""
    return _project_edges(three(x), *edge_of(friction))


def distance(x: Any, friction: Any) -> Any:
    """(…) distance of impulses from the cone, in their units; zero inside."""
    return _distance(three(x), *edge_of(friction))


def contains(x: Any, friction: Any, tolerance: Any = 0.0) -> Any:
    """(…) whether impulses are in the cone, up to a tolerance in their units."""
    return distance(x, friction) <= tolerance


def project_dual(x: Any, friction: Any) -> Any:
    """Project velocities (…, 3) onto the dual cone, friction · ‖t‖ ≤ n."""
    c, s = edge_of(friction)
    return _project_edges(three(x), s, c)


def distance_dual(x: Any, friction: Any) -> Any:
    """(…) distance of velocities from the dual cone, in their units; zero inside."""
    c, s = edge_of(friction)
    return _distance(three(x), s, c)


def contains_dual(x: Any, friction: Any, tolerance: Any = 0.0) -> Any:
    """(…) whether velocities are in the dual cone, up to a tolerance in their units."""
    return distance_dual(x, friction) <= tolerance


def contact_residual(impulse: Any, velocity: Any, friction: Any, response: Any = 1.0, convex: bool = False) -> Any:
    """d (λ - P(λ - (σ + Γ(σ))/d)) (…, 3) [m/s] of contacts, d their response (…) [1/kg]: zero for a solution.

    Γ, de Saxcé's correction, adds friction · ‖σ_t‖ to the normal velocity; with `convex` it is zero.
    """
    d = np.asarray(response)[..., None]
    if not convex:
        lift = friction * np.hypot(velocity[..., 0], velocity[..., 1])
        velocity = velocity + lift[..., None] * np.array([0.0, 0.0, 1.0])
    return d * (impulse - project(impulse - velocity / d, friction))


def _project_edges(x: Any, c: Any, s: Any) -> Any:
    t, z, inside, apex = _regions(x, c, s)
    edge_component = c * t + s * z
    direction = x[..., :2] / np.where(t > 0.0, t, 1.0)[..., None]
    edge = np.concatenate([(c * edge_component)[..., None] * direction, (s * edge_component)[..., None]], -1)
    return np.where(apex[..., None], 0.0, np.where(inside[..., None], x, edge))


def _distance(x: Any, c: Any, s: Any) -> Any:
    t, z, inside, apex = _regions(x, c, s)
    return np.where(apex, np.hypot(t, z), np.where(inside, 0.0, s * t - c * z))


def _regions(x: Any, c: Any, s: Any) -> tuple[Any, Any, Any, Any]:
    """Tangential length, normal part, whether the point is inside, and whether its projection is the apex."""
    t, z = np.hypot(x[..., 0], x[..., 1]), x[..., 2]
    return t, z, s * t <= c * z, (c * t <= -s * z) & (z <= 0.0)


def edge_of(friction: Any, share: float = 1.0) -> tuple[Any, Any]:
    """The direction (c, s) of the ray t = share · friction · n in the plane of t and n."""
    mu = share * check_friction(friction)
    steep = mu > 1.0
    ratio = np.where(steep, 1.0 / np.where(steep, mu, 1.0), mu)
    long = 1.0 / np.sqrt(1.0 + ratio * ratio)
    return np.where(steep, long, ratio * long), np.where(steep, ratio * long, long)


def check_friction(friction: Any) -> Any:
    """Coefficients as an array; raises an error for negative ones outside of kernels."""
    mu = np.asarray(friction)
    if trace_of(mu) is None and numpy.any(mu < 0.0):
        raise ConeError(
            f"friction is {numpy.nanmin(mu):.6g}; a coefficient is zero or more.", code="friction-out-of-range"
        )
    return mu


def three(x: Any) -> Any:
    """`x` as an array; raises an error unless its last axis is t1, t2, n."""
    x = np.asarray(x)
    if x.shape[-1:] != (3,):
        raise ConeError(
            f"the impulse has shape {x.shape}; its last axis must have length 3: t1, t2, n.", code="wrong-shape"
        )
    return x
