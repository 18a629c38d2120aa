"""Generalized reflections: lossless simultaneous impacts of several contacts, in an order determined by the masses.

Newton's law makes all contacts separate at once, each with its approach speed. For three balls in a row, of which the
first arrives with speed 1, it gives (-1/3, 2/3, 2/3), while Newton's cradle gives (0, 0, 1). Reflections propagate the
impact from contact to contact. With the normal velocities u = N v, G = N M⁻¹ Nᵀ, and the set V of approaching contacts,

    repeat while some u_k < 0:   0 ≤ λ ⊥ u_V + G_VV λ ≥ 0,      u ← u + 2 G λ,      Λ ← Λ + 2 λ.

v + M⁻¹ Nᵀ λ is the velocity nearest to v, in the metric of M, at which no contact of V approaches. Twice this change is
a reflection, which preserves the kinetic energy. Contacts that did not approach before may do so in the next round:
this is how an impact travels through a row of balls. The iteration ends after finitely many rounds.

With restitution e, the impulses are interpolated with those of the plastic impact, Λ_e = (1-e) Λ_0 + e Λ. The energy
then decreases, and no contact approaches. This holds if all contacts have the same e; each may have its own.

References: B. Smith, D. Kaufman, E. Vouga, R. Tamstorf, E. Grinspun, Reflections on simultaneous impact (2012); E.
Vouga, B. Smith, D. Kaufman, R. Tamstorf, E. Grinspun, All's well that ends well (2017), for termination.
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
"""Largest number of rounds; a row of n equal balls takes n."""

_UNBOUNDED: Final = 1e150


class ReflectionResult(NamedTuple):
    """Normal impulses (k,), number of rounds, and whether all contacts separate."""

    impulse: Any
    rounds: Any
    settled: Any


class _Round(NamedTuple):
    """Normal velocities (k,) after some rounds, accumulated impulses (k,), and the number of rounds."""

    u: Any
    impulse: Any
    count: Any


def reflect(G: Any, u: Any, on: Any, restitution: Any, rounds: Any = float(MOST)) -> ReflectionResult:
    """Reflect normal velocities u (k,) with G (k, k), for the contacts k where `on` (k,) is true."""
    k = len(u)
    response = np.stack([G[i, i] for i in range(k)])
    unit = 1.0 / np.sqrt(np.where(response > 0.0, response, 1.0))
    A, u = G * (unit[:, None] * unit[None, :]), u * unit
    close = 64.0 * 2.0 ** -computing_in().digits * np.max(np.abs(u))

    def solve_contact_set(u: Any, selected: Any) -> Any:
        """λ (k,) of the selected contacts."""
        upper = np.where(selected, _UNBOUNDED, 0.0)
        return dantzig(A, u, np.zeros(k), upper, close + np.zeros(k), np.array(20.0 * k)).impulse

    def approaching(u: Any) -> Any:
        return on & (u < -close)

    def reflect_once(current: _Round) -> _Round:
        impulse = 2.0 * solve_contact_set(current.u, approaching(current.u))
        return _Round(current.u + A @ impulse, current.impulse + impulse, current.count + 1.0)

    def goes_on(current: _Round) -> Any:
        return np.any(approaching(current.u)) & (current.count < rounds)

    final = while_loop(goes_on, reflect_once, _Round(u, np.zeros(k), np.array(0.0)), MOST)
    plastic = solve_contact_set(u, on)
    blended = plastic + restitution * (final.impulse - plastic)
    return ReflectionResult(unit * np.where(np.any(on), blended, 0.0), final.count, ~np.any(approaching(final.u)))


def constrained_response(G: Any, normals: list[int], ties: list[int]) -> tuple[Any, Any]:
    """G (k, k) of the normals under the constraints, and the constraint impulses per normal impulse (b, k)."""
    inner = G[normals][:, normals]
    if not ties:
        return inner, None
    order = [*ties, *normals]
    reduced = eliminate_rows(G[order][:, order], np.zeros(len(ties)), scaled_least_norm)
    return reduced.S, -reduced.X
