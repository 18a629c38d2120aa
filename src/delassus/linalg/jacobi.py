"""Singular value decompositions by one-sided Jacobi rotations, compiled.

One-sided Jacobi: every pair of vectors x, y is rotated in its plane, x' = c x - s y, y' = s x + c y, so that x'ᵀ y' =
0, until all pairs are orthogonal. The norms of the vectors are then the singular values of the matrix with these
columns. Small singular values are as accurate as the columns; as square roots of eigenvalues of XᵀX they would have
half of the digits.

Pairs are processed in rounds, in which every vector is paired with another one, as in a round-robin tournament. A round
is one loop over independent pairs, so the size of the code does not depend on their number. A sweep of n - 1 rounds
covers all pairs; five to nine sweeps are typical.

References: M. Hestenes, Inversion of matrices by biorthogonalization (1958); J. Demmel, K. Veselić, Jacobi's method is
more accurate than QR (1992).
"""

from __future__ import annotations

from typing import Any, Final

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import map, scan, while_loop
from delassus.compiler.tracing.trace import computing_in

_SWEEPS: Final = 30
"""Maximum number of sweeps."""


def orthogonalize(vectors: Any, length: int) -> Any:
    """Rotate vectors (n, l) among each other until their first `length` entries are orthogonal.

    Vectors that are zero stay zero, and NaN and infinity propagate.
    """
    count = len(vectors)
    if count == 1:
        return vectors
    # A tournament needs an even number of teams: add a zero vector if needed.
    odd = count % 2
    teams = np.concatenate([vectors, np.zeros((1, vectors.shape[1]))]) if odd else np.array(vectors)
    half, seats = len(teams) // 2, _next_seats(len(teams))
    digits = 2.0 ** -computing_in().digits
    close = 4.0 * length * digits
    # Vectors that are rounding errors of others have no direction, and there may be more of them than directions.
    nothing = (4.0 * digits) ** 2 * np.max(np.sum(teams[:, :length] * teams[:, :length], 1))

    def rotate(x: Any, y: Any) -> tuple[Any, Any, Any]:
        xx, yy, xy = (np.sum(p[:length] * q[:length]) for p, q in ((x, x), (y, y), (x, y)))
        is_orthogonal = (np.abs(xy) <= close * np.sqrt(xx) * np.sqrt(yy)) | (np.minimum(xx, yy) <= nothing)
        zeta = (yy - xx) / np.where(is_orthogonal, 1.0, 2.0 * xy)
        t = np.where(zeta < 0.0, -1.0, 1.0) / (np.abs(zeta) + np.sqrt(1.0 + zeta * zeta))
        c = np.where(is_orthogonal, 1.0, 1.0 / np.sqrt(1.0 + t * t))
        s = np.where(is_orthogonal, 0.0, c * t)
        return c * x - s * y, s * x + c * y, np.where(is_orthogonal, 0.0, 1.0)

    def play(carry: Any, _: Any) -> tuple[Any, None]:
        teams, counter = carry
        first, second, is_rotated = map(rotate, teams[:half], teams[half:])
        return (np.concatenate([first, second])[seats], counter + np.sum(is_rotated)), None

    def sweep(carry: Any) -> Any:
        return scan(play, (carry[0], np.array(0.0)), length=len(teams) - 1)[0]

    result, _ = while_loop(lambda carry: carry[1] > 0.5, sweep, (teams, np.array(1.0)), _SWEEPS)
    return result[:count] if not odd else _without_zero(result, len(teams))


def _next_seats(teams: int) -> list[int]:
    """The pairs of the next round: pairs are (k, half + k); the first vector stays and the others advance by one."""
    half = teams // 2
    ring = [*range(1, half), *reversed(range(half, teams))]
    rotated_ring = [ring[-1], *ring[:-1]]
    seats = list(range(teams))
    for seat, team in zip(ring, rotated_ring, strict=True):
        seats[seat] = team
    return seats


def _without_zero(teams: Any, count: int) -> Any:
    """The vectors without the added one: after full sweeps, every vector is in its initial position."""
    return teams[: count - 1]
