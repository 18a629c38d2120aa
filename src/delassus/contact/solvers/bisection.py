"""Block Gauss–Seidel in which each contact is solved exactly, by bisection of an angle.

With g̃ the velocity of a contact without its own impulse there are three cases. It opens, g̃_n ≥ 0: the impulse is
zero. It sticks: the impulse -G⁻¹ g̃ that stops it is in the cone. Or it slides with σ_n = 0, and its impulse is λ_n (μ
e, 1) on the boundary of the cone, e a unit vector in the tangent plane, with

    λ_n = -g̃_n/D(e),    D(e) = G_nn + μ G_nt e

Friction must oppose sliding: e⊥ᵀ σ_t = 0, where D e⊥ᵀ σ_t = D e⊥ᵀ g̃_t - g̃_n e⊥ᵀ (μ G_tt e + G_tn) is a trigonometric
polynomial, increasing where friction brakes. Samples around the circle bracket the root nearest to the direction in
which the contact would stick, and bisection refines it. If G couples normal and tangents, this root is not the minimum
of energy on the boundary: the equation includes de Saxcé's correction, without the lag of one iteration.

A sweep costs a thousand operations per contact more than one of Gauss–Seidel, and half as many sweeps suffice where
both converge. Convergence is not guaranteed: contacts that are solved exactly one by one can cycle. So steps are
shortened gradually, and the best iterate is returned.

References: J. Hwangbo, J. Lee, M. Hutter, Per-contact iteration method (2018); Q. Le Lidec et al., Contact models in
robotics (2023).
"""

from __future__ import annotations

from typing import Any, Final

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import scan
from delassus.contact.solvers.progress import Best, Budget, iterate
from delassus.contact.solvers.registry import register_solver
from delassus.contact.systems.protocol import SWEEP, SweptSystem
from delassus.contact.systems.smooth import length
from delassus.contact.systems.sweep import coulomb_step
from delassus.errors import BadArgument
from delassus.linalg.filtered_system import least_norm

_ANGLES: Final = numpy.pi * (numpy.arange(-8, 8) / 8.0) ** 3
"""Sample angles relative to the direction in which the contact would stick, dense where it almost sticks."""

_SAMPLES: Final = list(zip(numpy.cos(_ANGLES).tolist(), numpy.sin(_ANGLES).tolist(), strict=True))
_NEARNESS: Final = 1.0 - numpy.abs(numpy.arange(-8, 8) + 0.5) / 16.0

_HALVINGS: Final = 24
"""Number of bisections, after which a secant step is exact to rounding."""

LEAST_RELAXATION: Final = 0.9
FALL: Final = 0.99
"""In each sweep the distance of the relaxation from its minimum decreases by this factor."""


@register_solver("bisection", needs={SWEEP})
def bisection(system: SweptSystem, best: Best, budget: Budget) -> Best:
    """Improve the best impulses."""
    refuse_bisection(system)

    def step(carry: Any, best: Best) -> tuple[Any, Best]:
        impulse, response, relaxation = carry
        impulse, response = system.sweep(impulse, response, relaxation, one_contact)
        velocity = system.velocity_of(response, impulse)
        candidate = Best(impulse, velocity, system.error(impulse, velocity), best.count + 1.0)
        return (impulse, response, LEAST_RELAXATION + FALL * (relaxation - LEAST_RELAXATION)), best.or_better(candidate)

    return iterate(step, (best.impulse, system.respond(best.impulse, best.velocity), np.array(1.0)), best, budget)


def refuse_bisection(system: Any) -> None:
    """Raise an error unless all contacts have three rows and the law is not convex."""
    if system.convex or system.layout.torsional:
        raise BadArgument(
            "method 'bisection' solves contacts of three rows with law='ncp'; use 'newton', 'admm' or 'pgs' for "
            "law='ccp' and for torsional friction.",
            code="not-supported",
        )


def one_contact(G: Any, impulse: Any, velocity: Any, friction: Any, relaxation: Any) -> Any:
    """The impulse (3,) of a contact, relaxed towards the exact solution."""
    free_velocity = velocity - G @ impulse
    sticking = -least_norm(G, free_velocity[:, None])[:, 0]
    sticks = length(sticking[:2]) <= friction * sticking[2]
    sliding, has_root = _sliding(G, free_velocity, friction, sticking[:2])
    other = coulomb_step(G, impulse, velocity, friction, 1.0)
    new = np.where(sticks, sticking, np.where(has_root, sliding, other))
    new = np.where(free_velocity[2] >= 0.0, 0.0, new)
    return impulse + relaxation * (new - impulse)


def _sliding(G: Any, free_velocity: Any, friction: Any, towards: Any) -> tuple[Any, Any]:
    """The impulse (3,) of a sliding contact, and whether it exists."""

    def D(e: Any) -> Any:
        return G[2, 2] + friction * (G[2, 0] * e[0] + G[2, 1] * e[1])

    def sliding(e: Any) -> Any:
        """The tangential velocity (2,) for the direction e, times D: D(e) σ_t."""
        return D(e) * free_velocity[:2] - free_velocity[2] * (friction * (G[:2, :2] @ e) + G[:2, 2])

    def across(e: Any) -> Any:
        """D e⊥ᵀ σ_t."""
        s = sliding(e)
        return e[0] * s[1] - e[1] * s[0]

    size = length(towards)
    u = np.where(size > 0.0, towards / np.where(size > 0.0, size, 1.0), np.array([1.0, 0.0]))
    samples = np.stack([np.stack([u[0] * c - u[1] * s, u[0] * s + u[1] * c]) for c, s in _SAMPLES])
    values = np.stack([across(e) for e in samples])
    later = np.roll(values, -1)
    # The normal impulse is negative where D < 0.
    possible = np.stack([D(e) for e in samples]) > 0.0
    rising = (values < 0.0) & (later >= 0.0) & (possible | np.roll(possible, -1))
    where = np.argmax(np.where(rising, _NEARNESS, -1.0)) + 0.0
    before, after = np.take(samples, where, axis=0), np.take(np.roll(samples, -1, 0), where, axis=0)
    bracket = (before, after, np.take(values, where), np.take(later, where))

    def halve(carry: Any, _: Any) -> Any:
        a, b, at_a, at_b = carry
        e = (a + b) / length(a + b)
        value = across(e)
        is_low = value < 0.0
        return (
            np.where(is_low, e, a),
            np.where(is_low, b, e),
            np.where(is_low, value, at_a),
            np.where(is_low, at_b, value),
        ), None

    (a, b, at_a, at_b), _ = scan(halve, bracket, length=_HALVINGS)
    e = at_b * a - at_a * b
    size = length(e)
    e = np.where(size > 0.0, e / np.where(size > 0.0, size, 1.0), a)
    reach, s = D(e), sliding(e)
    good = np.any(rising) & (reach > 0.0) & (s @ e <= 0.0)
    normal = -free_velocity[2] / np.where(reach > 0.0, reach, 1.0)
    return normal * np.concatenate([friction * e, np.ones(1)]), good
