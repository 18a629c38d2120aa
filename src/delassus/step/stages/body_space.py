"""The contact problem of a step in body space, with scaled rows and the operations that its solver uses.

The row velocities are σ = P S Pᵀ λ + g, where S is the response of body motions, so products are computed in the space
of motions. An iteration of Newton's method is (B + D P S Pᵀ) Δλ = r, where B = I - D + ρ D is block diagonal in the
contacts. With y = S Pᵀ Δλ, the change of the motions, it becomes

    (I + S K) y = S Pᵀ B⁻¹ r,   Δλ = B⁻¹ (r - D P y),   K = Pᵀ B⁻¹ D P

so the linear system has one row per motion. Two feet with four corners each have 12 motions and 24 rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, NamedTuple

import delassus.numpy as np
from delassus.contact.cones.layout import Layout
from delassus.contact.cones.parameters import RowParameters
from delassus.contact.solvers.newton import Proximal
from delassus.contact.systems.metric import proximal_slopes
from delassus.contact.systems.protocol import NEWTON, SWEEP, TRACED, Update
from delassus.contact.systems.row_units import HasRows
from delassus.contact.systems.scaled import Scaled
from delassus.contact.systems.sweep import ContactSteps, coulomb_move, row_step, steps_of
from delassus.linalg.filtered_system import regularization
from delassus.linalg.lu import solve_without_pivots
from delassus.step.stages.body_motions import BodyMotions


class Contact(NamedTuple):
    """A contact: its rows, the motions of its body, the rows as functions of the motions (rows, motions), the response
    of the motions to the rows (motions, rows), and that of the rows to themselves (rows, rows)."""

    rows: slice
    body: slice
    arms: Any
    moves: Any
    own: Any
    steps: ContactSteps


@dataclass(frozen=True, eq=False)
class BodySpaceProblem(HasRows):
    """A contact problem with scaled rows, the matrices S (motions, motions) and P (m, motions) in the same scale, and
    the contacts of each body.

    If P is None, each row is a motion, and `rows` contains G.
    """

    rows: Scaled
    S: Any
    P: Any = None
    bodies: tuple[tuple[Contact, ...], ...] = ()

    @classmethod
    def of(
        cls, layout: Layout, sharing: BodyMotions | None, S: Any, response: Any, g: Any, parameters: RowParameters
    ) -> BodySpaceProblem:
        """Create a problem from the rows of a step; `response` (m,) is the diagonal of G."""
        rows, acts = Scaled.by_response(layout, False, response, g, parameters)
        order = list(layout.order)
        if sharing is None:
            G = S[order][:, order] * (acts[:, None] * acts[None, :])
            return cls(rows._replace(G=G), G)
        P = sharing.P[order] * acts[:, None]

        def contact(k: int, body: slice) -> Contact:
            at = layout.blocks[k]
            arms = P[at, body]
            moves = S[body, body] @ arms.T
            own = arms @ moves
            return Contact(at, body, arms, moves, own, steps_of(own))

        return cls(rows, S, P, tuple(tuple(contact(k, body) for k in some) for body, some in sharing.bodies))

    @property
    def capabilities(self) -> frozenset[str]:
        """Sweeps and Newton's method; all operations of a dense matrix if each row is a motion."""
        return self.rows.capabilities if self.P is None else frozenset({TRACED, SWEEP, NEWTON})

    def velocity(self, impulse: Any) -> Any:
        """The velocities σ (m,) of the rows."""
        return self.rows.velocity(impulse) if self.P is None else self.P @ self._moved(impulse) + self.rows.g

    def dense(self) -> Scaled:
        """The problem with its Delassus matrix G = P S Pᵀ, for solvers that need it."""
        return self.rows if self.P is None else self.rows._replace(G=self.P @ self.S @ self.P.T)

    def _moved(self, impulse: Any) -> Any:
        return self.S @ (self.P.T @ impulse)

    def respond(self, impulse: Any, velocity: Any = None) -> Any:
        """Motions (motions,) caused by impulses, or row velocities if each row is a motion."""
        return self.rows.respond(impulse, velocity) if self.P is None else self._moved(impulse)

    def velocity_of(self, response: Any, impulse: Any) -> Any:
        """Row velocities σ (m,) for a response."""
        return response if self.P is None else self.P @ response + self.rows.g

    def sweep(self, impulse: Any, response: Any, relaxation: Any = 1.0, update: Update | None = None) -> Any:
        """Impulses (m,) and the response after one Gauss–Seidel sweep."""
        if self.P is None:
            return self.rows.sweep(impulse, response, relaxation, update)
        return self._sweep(impulse, response)

    def _sweep(self, impulse: Any, moved: Any) -> tuple[Any, Any]:
        """A Gauss–Seidel sweep that updates motions (motions,) instead of rows."""
        rows, P, impulse, moved = self.rows, self.P, np.array(impulse), np.array(moved)
        for k in range(rows.layout.scalars):
            response = P[k] @ self.S @ P[k]
            new = row_step(rows, k, response, impulse[k], P[k] @ moved + rows.g[k], 1.0)
            moved = moved + self.S @ (P[k] * (new - impulse[k]))
            impulse[k] = new
        for pair in (self.bodies[k : k + 2] for k in range(0, len(self.bodies), 2)):
            # A contact updates the motion of its own body at once, and those of other bodies after the last contact.
            # Contacts of two bodies alternate: each depends on the one before, so two chains hide the latency.
            there = [moved[contacts[0].body] for contacts in pair]
            pushed = [np.zeros(len(some)) for some in there]
            for n, contact in ((n, c) for some in zip_longest(*pair) for n, c in enumerate(some) if c is not None):
                at, _, arms, moves, own, steps = contact
                velocity, mu = arms @ there[n] + rows.g[at], rows.friction[rows.layout.blocks.index(at)]
                new = coulomb_move(own, steps, impulse[at], velocity, mu)
                change = new - impulse[at]
                # The order is reversed since the normal impulse, the last one, is computed first.
                there[n], pushed[n] = there[n] + moves[:, ::-1] @ change[::-1], pushed[n] + arms.T @ change
                impulse[at] = new
            for n, contacts in enumerate(pair):
                there = [
                    x if m == n else x + self.S[other[0].body, contacts[0].body] @ pushed[n]
                    for m, (x, other) in enumerate(zip(there, pair, strict=True))
                ]
                moved = moved + self.S[:, contacts[0].body] @ pushed[n]
            for contacts, own_motions in zip(pair, there, strict=True):
                moved[contacts[0].body] = own_motions
        return impulse, moved

    def newton_direction(
        self, jacobians: list[Any], rho: Any, asked: Any, proximal: Proximal | None = None, weights: Any = None
    ) -> Any:
        """(I - D + D (R⁻¹ G + ρ R⁻½))⁻¹ r (m,), with the derivative D of the projection, the residual r (m,), and the
        weights R⁻¹ (m,) of velocities (None for ones).

        The smallest ρ only regularizes the factorization; a step of iterative refinement removes its effect.
        """
        if self.P is None:
            return self.rows.newton_direction(jacobians, rho, asked, weights=weights)
        layout, kept, size = self.rows.layout, 1.0 - rho, 1.0 + regularization()
        parts: list[tuple[slice, Any, Any]] = []  # rows, D, B
        if layout.scalars:
            slopes, *jacobians = jacobians
            for k in range(layout.scalars):
                D = slopes[k : k + 1, None]
                parts.append((slice(k, k + 1), D, size - kept * D))
        for at, D in zip(layout.blocks, jacobians, strict=True):
            less = kept * D if weights is None else proximal_slopes(D, rho, weights[at])
            parts.append((at, D, size * np.eye(len(D)) - less))
        shares = {contact.rows.start: contact.body for some in self.bodies for contact in some}
        beside = len(self.S) - layout.scalars  # rows other than contacts are motions, in the order of the rows
        for k in range(layout.scalars):
            shares[k] = slice(beside + self._rank(k), beside + self._rank(k) + 1)
        own = [shares[at.start] for at, _, _ in parts]
        P = self.P if weights is None else weights[:, None] * self.P
        DP = [solve_without_pivots(B, D) @ P[at, some] for (at, D, B), some in zip(parts, own, strict=True)]
        blocks: dict[tuple[int, int], Any] = {}  # of K, one for each body
        for (at, _, _), some, part in zip(parts, own, DP, strict=True):
            key = some.start, some.stop
            blocks[key] = blocks.get(key, 0.0) + self.P[at, some].T @ part
        A = np.array(np.eye(len(self.S)))
        for (start, stop), K in blocks.items():
            A[:, start:stop] = A[:, start:stop] + self.S[:, start:stop] @ K

        def solve(r: Any) -> Any:
            alone = np.concatenate([solve_without_pivots(B, r[at]) for at, _, B in parts])
            y = solve_without_pivots(A, self._moved(alone))
            return alone - np.concatenate([part @ y[some] for some, part in zip(own, DP, strict=True)])

        first, near = solve(asked), 0.0 if proximal is None else proximal.near
        # A step of iterative refinement with the same factors removes ρ, and the error where B is nearly singular.
        held = P @ self._moved(first) - first
        left = asked - first - np.concatenate([D @ held[at] for at, D, _ in parts])
        return first + np.where(rho <= near, solve(left), 0.0)

    def _rank(self, k: int) -> int:
        """The index of the k-th scalar row of the solver among all scalar rows in the order of the step."""
        order = self.rows.layout.order[: self.rows.layout.scalars]
        return sorted(order).index(order[k])
