"""Generalized reflections: lossless simultaneous impacts of several contacts, in an order determined by the masses.

Newton's law makes all contacts separate at once, and each by the speed that it had: of three balls in a row, of which
one comes with speed 1, it leaves (-1/3, 2/3, 2/3) where a cradle leaves (0, 0, 1). Reflections go step by step. With
u = N v the velocities of the normals, G = N M⁻¹ Nᵀ, and V the contacts that approach,

    repeat while some u_k < 0:   0 ≤ λ ⊥ u_V + G_VV λ ≥ 0,      u ← u + 2 G λ,      Λ ← Λ + 2 λ.

v + M⁻¹ Nᵀ λ is the nearest velocity, in the metric of M, at which no contact of V approaches; so twice as far is a
reflection, and the kinetic energy stays what it was. Contacts that are only touched are part of the next round: a blow
travels through a row of balls. It ends after finitely many rounds.

With restitution e, impulses are blended with those of the plastic impact, Λ_e = (1-e) Λ_0 + e Λ: then energy is lost,
and nothing approaches. Each contact may have its own e; what is said holds where they are equal.

References: B. Smith, D. Kaufman, E. Vouga, R. Tamstorf, E. Grinspun, Reflections on simultaneous impact (2012); E.
Vouga, B. Smith, D. Kaufman, R. Tamstorf, E. Grinspun, All's well that ends well (2017), for the end.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import while_loop
from delassus.compiler.tracing.trace import computing_in
from delassus.contact.solvers.dantzig import dantzig
from delassus.linalg.filtered_system import scaled_least_norm
from delassus.linalg.schur import eliminate_rows

MOST: Final = 500
"""Rounds at most; a row of n equal balls takes n."""

_FOREVER: Final = 1e150


class ReflectionResult(NamedTuple):
    """Impulses (k,) of the normals, rounds made, and whether all contacts separate."""

    impulse: Any
    rounds: Any
    settled: Any


class _Round(NamedTuple):
    """Velocities (k,) of the normals after some rounds, the impulses (k,) of all of them, and how many they were."""

    u: Any
    impulse: Any
    count: Any


def reflect(G: Any, u: Any, on: Any, restitution: Any, rounds: Any = float(MOST)) -> ReflectionResult:
    """From G (k, k), velocities u (k,) of normals, and which of them touch (k,), a boolean each."""
    k = len(u)
    response = np.stack([G[i, i] for i in range(k)])
    unit = 1.0 / np.sqrt(np.where(response > 0.0, response, 1.0))
    A, u = G * (unit[:, None] * unit[None, :]), u * unit
    close = 64.0 * 2.0 ** -computing_in().digits * np.max(np.abs(u))

    def solve_contact_set(u: Any, who: Any) -> Any:
        """λ (k,) of the contacts in question alone."""
        upper = np.where(who, _FOREVER, 0.0)
        return dantzig(A, u, np.zeros(k), upper, close + np.zeros(k), np.array(20.0 * k)).impulse

    def approaching(u: Any) -> Any:
        return on & (u < -close)

    def play(now: _Round) -> _Round:
        push = 2.0 * solve_contact_set(now.u, approaching(now.u))
        return _Round(now.u + A @ push, now.impulse + push, now.count + 1.0)

    def goes_on(now: _Round) -> Any:
        return np.any(approaching(now.u)) & (now.count < rounds)

    last = while_loop(goes_on, play, _Round(u, np.zeros(k), np.array(0.0)), MOST)
    plastic = solve_contact_set(u, on)
    blended = plastic + restitution * (last.impulse - plastic)
    return ReflectionResult(unit * np.where(np.any(on), blended, 0.0), last.count, ~np.any(approaching(last.u)))


def constrained_response(G: Any, normals: list[int], ties: list[int]) -> tuple[Any, Any]:
    """G of normals under the constraints (k, k), and the response of the constraints to impulses of normals (b, k)."""
    inner = G[normals][:, normals]
    if not ties:
        return inner, None
    order = [*ties, *normals]
    reduced = eliminate_rows(G[order][:, order], np.zeros(len(ties)), scaled_least_norm)
    return reduced.S, -reduced.X
