"""A contact problem scaled by the responses of its contacts, with the operations that all solvers use.

Rows are put into the solvers' order and divided by √d, d the mean response tr(G_ii)/3 of a contact or the row's own
G_ii: λ' = √d λ and σ' = σ/√d, so that the response of every contact to its own impulse is about one. This makes masses
of 10⁻³ and 10³ kg alike, and lengths in meters and millimeters. The cones do not change, since the rows of a contact
share d.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.tracing.flow.control import map, scan
from delassus.compiler.tracing.trace import computing_in
from delassus.contact.cones.kinds import Free, Interval, NonNegative
from delassus.contact.cones.layout import Layout
from delassus.contact.cones.parameters import RowParameters
from delassus.contact.systems.metric import metric_of, project_in_metric, proximal_slopes, slopes_in_metric
from delassus.contact.systems.protocol import MATRIX, NEWTON, SHIFT, SWEEP, TRACED, Update, natural_residual
from delassus.contact.systems.smooth import RadialProjection, coulomb, length, positive_part, second_order, slopes
from delassus.contact.systems.sweep import contact_update, sweep_rows, sweep_scalars
from delassus.linalg.filtered_system import regularization
from delassus.linalg.lu import solve_without_pivots
from delassus.linalg.products import multiply


def enormous() -> float:
    """Larger bounds are set to this; its square does not overflow."""
    return 1e150 if computing_in().name == "float64" else 1e18


def rounding() -> float:
    """Responses below this fraction of the largest one are squares of rounding errors."""
    return 1e-26 if computing_in().name == "float64" else 1e-12


LARGEST_FRICTION = 1e6
"""Larger coefficients of friction, including infinity, are set to this."""


CAPABILITIES: Final = frozenset({TRACED, MATRIX, SWEEP, SHIFT, NEWTON})
"""Capabilities of a dense matrix."""


class Scaled(NamedTuple):
    """σ = G λ + g with cones, in the solvers' order and units, and √d (m,) to convert back.

    `g` is (m,), `friction` (contacts,), `lower` and `upper` (intervals,); `convex` drops de Saxcé's correction, so that
    sliding contacts open. `limit` (m,) is the residual that a row may have at a tolerance of one. `metric` has R
    (rows,) for contacts of four and six rows and None for others; it is None if there are no such contacts.
    """

    layout: Layout
    convex: bool
    G: Any
    g: Any
    root: Any
    friction: Any
    lower: Any
    upper: Any
    limit: Any
    metric: list[Any] | None = None

    @classmethod
    def of(
        cls,
        layout: Layout,
        convex: bool,
        G: Any,
        g: Any,
        parameters: RowParameters,
    ) -> Scaled:
        """Create from rows in the user's order and units."""
        G = np.tril(G) + np.tril(G, -1).T  # its symmetry has been checked
        if parameters.compliance is not None:
            G = G + np.diag(parameters.compliance)
        order, response = list(layout.order), np.stack([G[r, r] for r in range(layout.m)])
        problem, acts = cls.by_response(layout, convex, response, g, parameters)
        return problem._replace(G=G[order][:, order] * (acts[:, None] * acts[None, :]))

    @classmethod
    def by_response(
        cls,
        layout: Layout,
        convex: bool,
        response: Any,
        g: Any,
        parameters: RowParameters,
    ) -> tuple[Scaled, Any]:
        """Create the problem without G, from the responses (m,) of rows to their own impulses; also return the factors
        (m,), in the solvers' order, that scale the rows of G.
        """
        order = list(layout.order)
        shape, coefficients = _shape(layout, *parameters.coefficients)
        d = np.zeros(layout.m)
        for rows in layout.friction:
            mean = np.sum(response[rows.start : rows.start + 3]) / 3.0
            for row in rows:
                d[row] = mean
        for kind in (Free, NonNegative, Interval):
            for row in layout.rows(kind):
                d[row] = response[row]
        # A row with zero response, or one of the size of rounding errors, is not divided by it.
        most = np.max(d) if layout.m else np.array(0.0)
        moves = d > rounding() * most
        d = np.where(moves, d, np.where(most > 0.0, most, 1.0))
        root = np.sqrt(d)
        factor = (shape / root)[order]
        acts = np.where(moves[order], factor, 0.0)
        g, root = g[order] * factor, root[order]
        lower, upper = parameters.lower, parameters.upper
        if lower is not None:
            interval_root = root[layout.scalars - layout.intervals : layout.scalars]
            lower, upper = (np.clip(b, -enormous(), enormous()) * interval_root for b in (lower, upper))
        limit, metric = _limit(layout, g, root), None
        if layout.torsional and not convex:
            scaled_response = response[order] * acts * acts
            metric = [metric_of(scaled_response[at]) if at.stop - at.start > 3 else None for at in layout.blocks]
        return cls(layout, convex, None, g, root, coefficients, lower, upper, limit, metric), acts

    # --- from and to the user's rows ------------------------------------------------------------------------------

    def to_scaled(self, impulse: Any, factors: Any) -> Any:
        """Impulses (m,) in scaled units, from those of the user; `factors` are those of `shape_of`."""
        order = list(self.layout.order)
        acts = factors[order] > 0.0  # zero coefficient: no impulse
        return np.where(acts, impulse[order] * self.root / np.where(acts, factors[order], 1.0), 0.0)

    def from_scaled(self, scaled: Any, factors: Any) -> Any:
        """Impulses (m,) in the user's order and units."""
        inverse_order = numpy.argsort(self.layout.order)
        return (scaled / self.root)[inverse_order] * factors

    def to_scaled_velocity(self, velocity: Any, factors: Any) -> Any:
        """Velocities (m,) in scaled units, from those of the user."""
        return (velocity * factors)[list(self.layout.order)] / self.root

    def residual_given(self, residual: Any, factors: Any) -> Any:
        """A residual (m,) as velocities in the user's order and units."""
        inverse_order = numpy.argsort(self.layout.order)
        return (residual * self.root)[inverse_order] * factors

    # --- operations of solvers ----------------------------------------------------------------------------------

    def velocity(self, impulse: Any) -> Any:
        """σ = G λ + g (m,)."""
        return multiply(self.G, impulse) + self.g

    def corrected_velocity(self, velocity: Any) -> Any:
        """σ + Γ(σ): adds friction · ‖σ_t‖ to the normals (de Saxcé), unless the problem is convex."""
        if self.convex:
            return velocity
        lifts = self.by_contact(lambda sigma, mu: mu * length(sigma[:-1]), velocity, self.friction)
        result = np.array(velocity)
        for at, lift in zip(self.layout.blocks, lifts, strict=True):
            result[at.stop - 1] = result[at.stop - 1] + lift
        return result

    def project(self, x: Any) -> Any:
        """Project impulses (m,) onto the cones."""
        parts = [self._project_scalars(x, 0.0)[0]] if self.layout.scalars else []
        parts += self.by_contact(lambda x, mu: _apply_projection(second_order, x, mu, 0.0)[0], x, self.friction)
        return np.concatenate(parts)

    def residual(self, impulse: Any, velocity: Any) -> Any:
        """λ - P(λ - σ - Γ(σ)) (m,): zero for a solution."""
        return natural_residual(self, impulse, velocity)

    def error(self, impulse: Any, velocity: Any) -> Any:
        """The largest residual of a row, relative to its limit.

        With large friction, de Saxcé's residual hides the penetration of a contact. So the larger of it and of Alart
        and Curnier's residual counts, which tests the normals first.
        """
        inverse = 1.0 / self.limit
        error = np.max(np.abs(self.residual(impulse, velocity)) * inverse)
        if self.convex:
            return error
        return np.maximum(error, np.max(np.abs(impulse - self.smooth(impulse - velocity, 0.0)[0]) * inverse))

    def smooth(self, x: Any, e: Any) -> tuple[Any, list[Any]]:
        """Smooth projection (m,) of λ - σ, whose fixed points solve the problem for e = 0, and its Jacobian by blocks.

        The first block is the diagonal of the rows before the contacts, the others are those of the contacts.
        """
        parts, jacobians = [], []
        if self.layout.scalars:
            y, diagonal = self._project_scalars(x, e)
            parts.append(y)
            jacobians.append(diagonal)
        kind = second_order if self.convex else coulomb
        result = self.by_contact(lambda x, mu: _apply_projection(kind, x, mu, e), x, self.friction)
        return np.concatenate([*parts, *(y for y, _ in result)]), [*jacobians, *(D for _, D in result)]

    def row_weights(self, e: Any) -> Any:
        """R⁻¹ (m,), the weights of velocities in λ = P(λ - R⁻¹ σ); ones while P is smoothed. None for ones in all
        cases.
        """
        if self.metric is None:
            return None
        weights = np.ones(self.layout.m)
        for at, R in zip(self.layout.blocks, self.metric, strict=True):
            if R is not None:
                weights[at] = np.where(e > 0.0, 1.0, 1.0 / R)
        return weights

    def smooth_in_metric(self, x: Any, e: Any) -> tuple[Any, list[Any]]:
        """As `smooth`, of λ - R⁻¹ σ with the weights of `row_weights`: without smoothing, the projection in the metric
        R.
        """
        y, jacobians = self.smooth(x, e)
        if self.metric is None:
            return y, jacobians

        def exact(x: Any, mu: Any, R: Any) -> tuple[Any, Any]:
            if R is None:
                return x, None
            nearest, tangents = project_in_metric(x, R, mu)
            return nearest, slopes_in_metric(x, R, mu, tangents)

        y, first, rounds = np.array(y), len(jacobians) - self.layout.contacts, e > 0.0
        for k, (nearest, D) in enumerate(self.by_contact(exact, x, self.friction, self.metric)):
            if D is not None:
                at = self.layout.blocks[k]
                y[at] = np.where(rounds, y[at], nearest)
                jacobians[first + k] = np.where(rounds, jacobians[first + k], D)
        return y, jacobians

    # --- operations of a dense matrix -----------------------------------------------------------------------------

    @property
    def capabilities(self) -> frozenset[str]:
        """All capabilities of a dense matrix."""
        return CAPABILITIES

    def respond(self, impulse: Any, velocity: Any = None) -> Any:
        """The velocities (m,) of all rows, which sweeps keep up to date: m² multiplications a sweep."""
        return self.velocity(impulse) if velocity is None else velocity

    def velocity_of(self, response: Any, impulse: Any) -> Any:
        """The velocities σ (m,) of the rows, of a response."""
        return response

    def diagonal_block(self, rows: Any) -> Any:
        """The diagonal block of G of `rows`."""
        return self.G[rows, rows]

    def row_velocities(self, response: Any, impulse: Any, rows: Any) -> Any:
        """σ of `rows`."""
        return response[rows]

    def push(self, response: Any, rows: Any, change: Any) -> Any:
        """Velocities (m,) after a change of the impulses of `rows`."""
        columns = self.G[:, rows]
        return response + (columns * change if isinstance(rows, int) else columns @ change)

    def sweep(self, impulse: Any, response: Any, relaxation: Any = 1.0, update: Update | None = None) -> Any:
        """Impulses and velocities (m,) after one sweep over all rows."""
        if not self._in_loops:
            return sweep_rows(self, impulse, response, relaxation, update)
        impulse, response = sweep_scalars(self, impulse, response, relaxation)
        return self._sweep_contacts(impulse, response, update or contact_update(self.convex), relaxation)

    @property
    def _in_loops(self) -> bool:
        """Whether the compiled code loops over contacts: if they have equally many rows, and unrolled code would be
        long.
        """
        return self.layout.large and len({at.stop - at.start for at in self.layout.blocks}) == 1

    def _sweep_contacts(self, impulse: Any, velocity: Any, update: Update, relaxation: Any) -> tuple[Any, Any]:
        """Sweep over the contacts in a loop that reads and updates the velocities of one contact at a time."""
        start, count = self.layout.scalars, self.layout.contacts
        size = (self.layout.m - start) // count
        offsets = start + float(size) * numpy.arange(count)[:, None] + numpy.arange(float(size))
        rows = self.G[start:].reshape(count, size, -1)
        blocks = np.stack([self.G[at, at] for at in self.layout.blocks])

        def step(velocity: Any, contact: Any) -> tuple[Any, Any]:
            G, G_own, impulses, mu, offset = contact
            new = update(G_own, impulses, np.take(velocity, offset), mu, relaxation)
            return velocity + (new - impulses) @ G, new

        impulses = impulse[start:].reshape(count, size)
        velocity, impulses = scan(step, velocity, (rows, blocks, impulses, self.friction, np.array(offsets)))
        return np.concatenate([impulse[:start], impulses.reshape(-1)]), velocity

    def solve_shifted(self, shift: Any) -> Any:
        """(G + shift)⁻¹ (m, m), for a scalar `shift`; apply it by a product."""
        return np.linalg.inv(self.G + shift * np.eye(self.layout.m), assume_a="pos")

    def newton_direction(self, slopes: list[Any], rho: Any, gap: Any, proximal: Any = None, weights: Any = None) -> Any:
        """(I - D + D (R⁻¹ G + ρ R⁻½))⁻¹ r (m,), from the slopes D of the projection, the gap r (m,), and the weights
        R⁻¹ (m,) of velocities, or None for ones."""
        return solve_without_pivots(self.newton_matrix(slopes, rho, weights), gap)

    def newton_matrix(self, jacobians: list[Any], rho: Any = 0.0, weights: Any = None) -> Any:
        """I - D + D (R⁻¹ G + ρ R⁻½), plus a small multiple of I (m, m)."""
        layout, G, identity_part = self.layout, self.G if weights is None else weights[:, None] * self.G, 1.0 - rho
        rows = []
        if layout.scalars:
            D, *jacobians = jacobians
            rows.append(
                D[:, None] * G[: layout.scalars] + np.diag(1.0 - identity_part * D) @ np.eye(layout.scalars, layout.m)
            )
        rows += self.by_contact(lambda G, D: D @ G, G, jacobians)
        matrix = np.concatenate(rows)
        for at, D in zip(layout.blocks, jacobians, strict=True):
            beside = matrix[at, at] + np.eye(len(D))
            matrix[at, at] = beside - (identity_part * D if weights is None else proximal_slopes(D, rho, weights[at]))
        return matrix + regularization() * np.eye(layout.m)

    def _project_scalars(self, x: Any, e: Any) -> tuple[Any, Any]:
        layout = self.layout
        free, half = len(layout.rows(Free)), len(layout.rows(NonNegative))
        y, slope = np.array(x[: layout.scalars]), np.ones(layout.scalars)
        for k in range(free, free + half):
            y[k], slope[k] = positive_part(x[k], e)
        for j, k in enumerate(range(free + half, layout.scalars)):
            below, below_x = positive_part(self.lower[j] - x[k], e)
            above, above_x = positive_part(x[k] - self.upper[j], e)
            y[k], slope[k] = x[k] + below - above, 1.0 - below_x - above_x
        return y, slope

    def by_contact(self, function: Any, rows: Any, *values: Any) -> list[Any]:
        """The results of a function of a contact's rows, and of one value or array for each contact."""
        layout = self.layout
        if not layout.large or len({at.stop - at.start for at in layout.blocks}) != 1:
            return [function(rows[at], *(x[k] for x in values)) for k, at in enumerate(layout.blocks)]
        stacked = [np.stack(x) if isinstance(x, list) else x for x in values]
        result = map(function, rows[layout.scalars :].reshape(layout.contacts, -1, *rows.shape[1:]), *stacked)
        is_tuple = isinstance(result, tuple)
        return [tuple(x[k] for x in result) if is_tuple else result[k] for k in range(layout.contacts)]


def shape_of(layout: Layout, friction: Any, torsional: Any, rolling: Any) -> Any:
    """Factors (m,) from impulses of circular cones to those of the user."""
    return _shape(layout, friction, torsional, rolling)[0]


def _shape(layout: Layout, friction: Any, torsional: Any, rolling: Any) -> tuple[Any, Any]:
    """The factors (m,) that map circles to ellipses, and the coefficients (contacts,) of the circular cones.

    Contacts of three rows are circular. The others become cones with coefficient one, so that a coefficient may be
    zero: the impulse of its row is then zero.
    """
    factors, coefficients = np.ones(layout.m), np.ones(layout.contacts)
    spins = rolls = 0
    for k, rows in enumerate(layout.friction):
        mu = np.clip(friction[k], 0.0, LARGEST_FRICTION)
        if len(rows) == 3:
            coefficients[k] = mu
            continue
        factors[rows[0]] = factors[rows[1]] = mu
        factors[rows[3]] = np.minimum(torsional[spins], LARGEST_FRICTION)
        spins += 1
        if len(rows) > 4:
            factors[rows[4]] = factors[rows[5]] = np.minimum(rolling[rolls], LARGEST_FRICTION)
            rolls += 1
    return factors, coefficients


def _limit(layout: Layout, g: Any, root: Any) -> Any:
    """The residual (m,) that rows may have at a tolerance of one.

    For contacts it is the largest of their free velocities [m/s]. Other rows may have other units: for them it is the
    largest free velocity of all rows or, if larger, a small fraction of the motion as a whole, in units of √d.
    """
    energy, start = np.max(np.abs(g)), layout.scalars
    energy = np.where(energy > 0.0, energy, 1.0)
    speeds = np.abs(g * root)
    result = []
    if start:
        result.append(np.maximum(np.max(speeds) / root[:start], 1e-4 * energy))
    if layout.contacts:
        speed = np.max(speeds[start:])
        result.append(np.where(speed > 0.0, speed / root[start:], energy))
    return np.concatenate(result)


def _apply_projection(kind: Any, x: Any, friction: Any, e: Any) -> tuple[Any, Any]:
    """A radial projection at x, the normal last, and its Jacobian."""
    t = length(x[:-1])
    projection: RadialProjection = kind(t, x[-1], friction, e)
    y = np.concatenate([projection.share * x[:-1], np.stack([projection.h])])
    direction = x[:-1] * (1.0 / np.where(t > 0.0, t, 1.0))
    return y, slopes(projection, direction)
