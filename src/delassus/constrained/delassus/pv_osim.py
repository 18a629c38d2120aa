"""The reduced Popov–Vereshchagin algorithm: J M⁻¹ Jᵀ by one sweep inward, in O(n + m²) operations.

Unit forces of the rows are propagated towards the base, K_π = X (K - W u) with u = Sᵀ K. Two rows that pass the same
joint couple there, and the sum of these couplings is

    G_rs = Σ_j u_r(j) D_j⁻¹ u_s(j).

Where more than six forces meet on a link, they are combinations C of six unit forces on that link. These six are
propagated in their place, and at the end Ω = O + C Ω_units Cᵀ, O the couplings accumulated before. So no joint handles
more than six forces, whatever the number of rows. Near the base it is cheaper to propagate all of them (`_NEAR`).

Default choice: it was the fastest on every robot and chain measured, from 3 to 82 velocities.

Reference: A. Sathya, W. Decré, J. Swevers, PV-OSIMr: a lowest order complexity algorithm for computing the Delassus
matrix (2024), here with unit forces only where they are faster.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import delassus.numpy as np
from delassus.constrained.elimination.articulated_tree import ArticulatedTree
from delassus.constrained.elimination.row_forces import Piece
from delassus.dynamics.tree.poses import Pair

_MOST: Final = 6
"""The number of independent forces on a link."""
_NEAR: Final = 3
"""Within this number of joints from the base, more than six forces are propagated individually."""


@dataclass(frozen=True)
class _Traveller:
    """A force propagated inward: its index, its row (None for a unit force), and its value."""

    number: int
    row: int | None
    force: Pair
    driven: Any = None


@dataclass(frozen=True)
class _Exchange:
    """Travelers (indices) replaced from a link on by combinations C (len, 6) of six unit forces (indices)."""

    travellers: list[int]
    C: Any
    units: list[int]


def pv_osim(body: ArticulatedTree, pieces: list[Piece], m: int) -> Any:
    """The lower triangle of J A⁻¹ Jᵀ (m, m), A the matrix that was factored by the elimination of the tree."""
    tree = body.tree
    at: list[list[_Traveller]] = [[] for _ in tree.links]
    indices = count()
    rows: dict[int, int] = {}  # rows of travelers, by index
    for piece in pieces:
        _join(at[piece.link], _Traveller(next(indices), piece.row, piece.force, piece.driven))
        rows.update({t.number: t.row for t in at[piece.link] if t.row is not None})
    couplings: dict[tuple[int, int], Any] = {}
    exchanges: list[_Exchange] = []
    for i, link in reversed(list(enumerate(tree.links))):
        travelers = at[i]
        leaving = [t for t in travelers if t.driven is None]
        if len(leaving) > _MOST and len(tree.path(i)) > _NEAR:
            units = [_Traveller(next(indices), None, (unit[:3], unit[3:])) for unit in np.eye(6)]
            C = np.stack([np.concatenate(t.force) for t in leaving])
            exchanges.append(_Exchange([t.number for t in leaving], C, [t.number for t in units]))
            travelers = units + [t for t in travelers if t.driven is not None]
        D = body.joints[i].D
        halves: list[Any] = []  # L⁻¹ u for D = L diag(D) Lᵀ
        for traveller in travelers:
            u, force = body.inward(i, *traveller.force, traveller.driven)
            halves.append(D.half(u))
            weighted = halves[-1] * D.inverse
            for other, half in zip(travelers, halves, strict=False):  # earlier ones, and itself
                pair = _pair(traveller.number, other.number)
                couplings[pair] = couplings[pair] + weighted @ half if pair in couplings else weighted @ half
            if link.parent >= 0:
                _join(at[link.parent], _Traveller(traveller.number, traveller.row, force))
    G = np.zeros((m, m))
    for (a, b), value in _resolve_exchanges(couplings, exchanges).items():
        if a in rows and b in rows:
            s, r = max(rows[a], rows[b]), min(rows[a], rows[b])
            # Two travelers of one row couple twice in its diagonal element: a with b, and b with a.
            G[s, r] = G[s, r] + (2.0 * value if r == s and a != b else value)
    return G


def _join(travelers: list[_Traveller], new: _Traveller) -> None:
    """Add a traveler to those on a link; travelers of the same row are merged."""
    for k, old in enumerate(travelers):
        if old.row is not None and old.row == new.row:
            driven = [d for d in (old.driven, new.driven) if d is not None]
            force = (old.force[0] + new.force[0], old.force[1] + new.force[1])
            travelers[k] = _Traveller(old.number, old.row, force, sum(driven[1:], driven[0]) if driven else None)
            return
    travelers.append(new)


def _resolve_exchanges(couplings: dict[tuple[int, int], Any], exchanges: list[_Exchange]) -> dict[tuple[int, int], Any]:
    """Ω of all pairs of travelers, from the base outward: Ω = O + C Ω_units Cᵀ where unit forces replaced them."""
    omega = dict(couplings)
    outside = {number for exchange in exchanges for number in exchange.travellers}
    resolved = {number for pair in couplings for number in pair} - outside
    for exchange in reversed(exchanges):
        resolved -= set(exchange.units)
        columns = [*exchange.units, *sorted(resolved)]
        units = np.stack([np.stack([omega.get(_pair(k, x), 0.0) for x in columns]) for k in exchange.units])
        for j, traveller in enumerate(exchange.travellers):
            response = exchange.C[j] @ units  # couplings with the units, then with all resolved travelers
            responses = {x: response[6 + k] for k, x in enumerate(sorted(resolved))}
            responses |= {x: response[:6] @ exchange.C[k] for k, x in enumerate(exchange.travellers[: j + 1])}
            for x, value in responses.items():
                pair = _pair(traveller, x)
                omega[pair] = omega[pair] + value if pair in omega else value
        resolved |= set(exchange.travellers)
    return omega


def _pair(a: int, b: int) -> tuple[int, int]:
    return (a, b) if a >= b else (b, a)
