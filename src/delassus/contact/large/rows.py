"""Contact problems with many rows, scaled by the responses of their contacts: arrays of a batch.

The same scaling, laws and measures as in `Scaled`, which compiled solvers use, in plain NumPy: λ' = √d λ and σ' = σ/√d,
d the mean response of a contact. Contacts with the same number of rows form a group, which is projected by one NumPy
call for all problems of a batch.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from delassus.contact.cones.kinds import Free
from delassus.contact.cones.layout import Layout
from delassus.contact.large.compiled import contact_errors, contact_projection
from delassus.contact.systems.protocol import BATCH, MATRIX, NEWTON, SHIFT, SWEEP, natural_residual
from delassus.contact.systems.scaled import LARGEST_FRICTION, enormous, rounding
from delassus.contact.systems.smooth import coulomb, positive_part, second_order

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


class Group(NamedTuple):
    """Contacts with the same number of rows k: their indices (n,) and rows (n, k), tangents first, the normal last."""

    contacts: Indices
    rows: Indices


@lru_cache(32)
def groups_of(layout: Layout) -> tuple[Group, ...]:
    """The contacts of a layout by their number of rows, in the solvers' order of rows."""
    groups = []
    for size in sorted({at.stop - at.start for at in layout.blocks}):
        contacts = [k for k, at in enumerate(layout.blocks) if at.stop - at.start == size]
        rows = [[*range(layout.blocks[k].start, layout.blocks[k].stop)] for k in contacts]
        groups.append(Group(np.array(contacts), np.array(rows)))
    return tuple(groups)


CAPABILITIES: Final = frozenset({BATCH, MATRIX, SWEEP, SHIFT, NEWTON})
"""Capabilities of batches of dense matrices on the host."""


@dataclass(frozen=True, eq=False)
class Rows:
    """σ = G λ + g with cones for a batch of B problems, in the solvers' order and units.

    Attributes:
        layout: Which rows belong to which cone.
        convex: Whether the correction of de Saxcé is dropped.
        G: (B, m, m) scaled Delassus matrices.
        g: (B, m) scaled free velocities.
        root: (B, m) √d.
        factors: (B, m) factors from impulses of circular cones to those of elliptic ones, in the solvers' order.
        friction: (B, contacts) coefficients of the circular cones.
        lower, upper: (B, intervals) scaled bounds.
        limit: (B, m) the residual that a row may have at a tolerance of one.
    """

    layout: Layout
    convex: bool
    G: Array
    g: Array
    root: Array
    factors: Array
    friction: Array
    lower: Array
    upper: Array
    limit: Array

    def __getitem__(self, problems: Any) -> Rows:
        """Select problems of the batch; selecting all makes no copy."""
        if np.ndim(problems) == 1 and len(problems) == len(self.g):
            return self
        arrays = {f.name: getattr(self, f.name)[problems] for f in fields(self) if f.name not in ("layout", "convex")}
        return replace(self, **arrays)

    # --- from and to the user's rows ------------------------------------------------------------------------------

    def scaled_impulse(self, impulse: Array) -> Array:
        """(B, m) impulses in scaled units; zero for rows whose coefficient is zero."""
        acts = self.factors > 0.0
        return np.where(acts, impulse[:, self.layout.order] * self.root / np.where(acts, self.factors, 1.0), 0.0)

    def user_impulse(self, scaled: Array) -> Array:
        """(B, m) impulses [N·s] in the user's order."""
        return self._user_order(scaled / self.root * self.factors)

    def scaled_velocity(self, velocity: Array) -> Array:
        """(B, m) velocities in scaled units."""
        return velocity[:, self.layout.order] * self.factors / self.root

    def user_residual(self, residual: Array) -> Array:
        """(B, m) a residual as velocities [m/s] in the user's order."""
        return self._user_order(residual * self.root * self.factors)

    def _user_order(self, rows: Array) -> Array:
        result = np.empty_like(rows)
        result[:, self.layout.order] = rows
        return result

    # --- operations of solvers ----------------------------------------------------------------------------------

    def velocity(self, impulse: Array) -> Array:
        """σ = G λ + g (B, m)."""
        return np.asarray((self.G @ impulse[..., None])[..., 0] + self.g)

    def corrected_velocity(self, velocity: Array) -> Array:
        """σ + Γ(σ) (B, m): adds friction · ‖σ_t‖ to the normals, unless the problem is convex."""
        if self.convex:
            return velocity
        result = velocity.copy()
        for contacts, rows in groups_of(self.layout):
            slide = np.linalg.norm(velocity[:, rows[:, :-1]], axis=-1)
            result[:, rows[:, -1]] += self.friction[:, contacts] * slide
        return result

    def project(self, x: Array) -> Array:
        """Project impulses (B, m) onto the cones."""
        y = x.copy()
        self._project_scalars(x, 0.0, y, None)
        for contacts, rows in groups_of(self.layout):
            y[:, rows] = apply_turned(second_order, x[:, rows], self.friction[:, contacts], 0.0)[0]
        return y

    def residual(self, impulse: Array, velocity: Array) -> Array:
        """λ - P(λ - σ - Γ(σ)) (B, m): zero for a solution."""
        return np.asarray(natural_residual(self, impulse, velocity))

    def error(self, impulse: Array, velocity: Array) -> Array:
        """(B,) the largest residual of a row, de Saxcé's or Alart and Curnier's, relative to its limit."""
        groups = groups_of(self.layout)
        if not self.layout.scalars and len(groups) == 1:  # compiled, in one call
            size = groups[0].rows.shape[1]
            shape = (len(impulse), -1, size)
            arrays = (impulse.reshape(shape), velocity.reshape(shape), self.friction, self.limit.reshape(shape))
            return np.asarray(contact_errors(size, self.convex)(*arrays).max(-1))
        error = np.abs(self.residual(impulse, velocity)) / self.limit
        if not self.convex:
            error = np.maximum(error, np.abs(impulse - self.smooth(impulse - velocity, 0.0)[0]) / self.limit)
        return np.asarray(error.max(-1))

    def smooth(self, x: Array, e: Any) -> tuple[Array, list[Array]]:
        """Smooth projection (B, m) of λ - σ with a radius e, (B, 1) or zero, and its Jacobian by blocks.

        The first block is the diagonal (B, scalars) of the rows before the contacts, the others are (B, n, k, k), one
        for each group.
        """
        y, slope = x.copy(), np.ones((len(x), self.layout.scalars))
        self._project_scalars(x, e, y, slope)
        jacobians = [slope]
        for contacts, rows in groups_of(self.layout):
            kind = second_order if self.convex else coulomb
            y[:, rows], D = apply_turned(kind, x[:, rows], self.friction[:, contacts], e)
            jacobians.append(D)
        return y, jacobians

    # --- dense matrices -------------------------------------------------------------------------------------------

    @property
    def capabilities(self) -> frozenset[str]:
        """The capabilities of dense matrices."""
        return CAPABILITIES

    @property
    def selectable(self) -> bool:
        """Whether problems of the batch can be solved separately."""
        return True

    def factor_shifted(self) -> ShiftedInverse:
        """The inverses (G + ρ)⁻¹ for all ρ, by eigendecomposition."""
        return ShiftedInverse.of(self.G)

    def _project_scalars(self, x: Array, e: Any, y: Array, slope: Array | None) -> None:
        """Write the projection of the rows before the contacts to y, and its derivative to slope."""
        if not self.layout.scalars:
            return
        first, last = self.layout.scalars - self.layout.intervals, self.layout.scalars
        half = slice(len(self.layout.rows(Free)), first)
        y[:, half], half_slope = positive_part(x[:, half], e)
        below, below_slope = positive_part(self.lower - x[:, first:last], e)
        above, above_slope = positive_part(x[:, first:last] - self.upper, e)
        y[:, first:last] = x[:, first:last] + below - above
        if slope is not None:
            slope[:, half], slope[:, first:last] = half_slope, 1.0 - below_slope - above_slope


@dataclass(frozen=True, eq=False)
class ShiftedInverse:
    """(G + ρ)⁻¹ = Q (Λ + ρ)⁻¹ Qᵀ of a batch: one eigendecomposition serves all ρ, 4 m² multiplications each.

    `values` are (B, m), in rising order, and `vectors` Q (B, m, m).
    """

    values: Array
    vectors: Array

    @classmethod
    def of(cls, G: Array) -> ShiftedInverse:
        """Of matrices (B, m, m)."""
        values, vectors = np.linalg.eigh(G)
        return cls(np.maximum(values, 0.0), vectors)

    @property
    def largest(self) -> Array:
        """(B, 1) the largest eigenvalues."""
        return self.values[:, -1:]

    def __getitem__(self, problems: Any) -> ShiftedInverse:
        return ShiftedInverse(self.values[problems], self.vectors[problems])

    def solve(self, b: Array, shift: Array) -> Array:
        """(G + shift)⁻¹ b (B, m), for shifts (B, 1)."""
        return np.asarray(((b[:, None] @ self.vectors) / (self.values + shift)[:, None] @ self.vectors.mT)[:, 0])


def apply_turned(kind: Any, x: Array, friction: Array, e: Any) -> tuple[Array, Array]:
    """A radial projection of contacts (B, n, k), and its Jacobian (B, n, k, k)."""
    sharp = isinstance(e, float) and e == 0.0
    return contact_projection(x.shape[-1], kind is second_order, sharp)(x, friction, e)


# --- from the user's rows -------------------------------------------------------------------------------------------


def scale(layout: Layout, convex: bool, G: Array, g: Array, parameters: dict[str, Array]) -> Rows:
    """Rows of a batch, G (B, m, m) and g (B, m), with parameters (B, …) such as friction and compliance."""
    G = np.where(np.tri(layout.m, dtype=bool), G, G.mT)  # its symmetry has been checked
    if "compliance" in parameters:
        G[:, range(layout.m), range(layout.m)] += parameters["compliance"]
    rows, acts = scale_by_response(layout, convex, np.diagonal(G, axis1=-2, axis2=-1), g, parameters)
    order = list(layout.order)
    if order != list(range(layout.m)):
        G = G[:, order][:, :, order]
    G *= acts[:, :, None]
    G *= acts[:, None, :]
    return replace(rows, G=G)


def scale_by_response(
    layout: Layout, convex: bool, response: Array, g: Array, parameters: dict[str, Array]
) -> tuple[Rows, Array]:
    """Rows without G, from the responses (B, m) of rows to their own impulses, compliance included; and the factors (B,
    m), in the solvers' order, that scale the rows of G.
    """
    count, order = len(g), list(layout.order)
    shape, coefficients = _circular(layout, count, parameters)
    d = response.copy()
    for rows in _user_rows(layout):
        d[:, rows] = response[:, rows[:, :3]].mean(-1, keepdims=True)
    # A row with zero response, or one of the size of rounding errors, is not divided by it.
    most = d.max(-1, keepdims=True)
    moves = d > rounding() * most
    root = np.sqrt(np.where(moves, d, np.where(most > 0.0, most, 1.0)))
    shape, root, moves = shape[:, order], root[:, order], moves[:, order]
    acts = np.where(moves, shape / root, 0.0)
    g = g[:, order] * shape / root
    interval_root = root[:, layout.scalars - layout.intervals : layout.scalars]
    bounds = [
        np.clip(parameters.get(name, np.zeros((count, 0))), -enormous(), enormous()) * interval_root
        for name in ("lower", "upper")
    ]
    lower, upper = bounds
    none = np.zeros((count, 0, 0))
    return Rows(layout, convex, none, g, root, shape, coefficients, lower, upper, _limit(layout, g, root)), acts


def _user_rows(layout: Layout) -> list[Indices]:
    """The rows (n, k) of the contacts in the user's order, by their number of rows."""
    sizes = sorted({len(rows) for rows in layout.friction})
    return [np.array([list(rows) for rows in layout.friction if len(rows) == size]) for size in sizes]


def _circular(layout: Layout, count: int, parameters: dict[str, Array]) -> tuple[Array, Array]:
    """The factors (B, m) that map circles to ellipses, and the coefficients (B, contacts) of the circular cones."""
    factors, coefficients = np.ones((count, layout.m)), np.ones((count, layout.contacts))
    bounded = {
        name: np.clip(x, 0.0, LARGEST_FRICTION) for name, x in parameters.items() if name not in ("lower", "upper")
    }
    spins = rolls = 0
    for k, rows in enumerate(layout.friction):
        friction = bounded["friction"][:, k]
        if len(rows) == 3:
            coefficients[:, k] = friction
            continue
        factors[:, rows[:2]] = friction[:, None]
        factors[:, rows[3]] = bounded["torsional"][:, spins]
        spins += 1
        if len(rows) > 4:
            factors[:, rows[4:]] = bounded["rolling"][:, rolls, None]
            rolls += 1
    return factors, coefficients


def _limit(layout: Layout, g: Array, root: Array) -> Array:
    """(B, m) the residual that rows may have at a tolerance of one: see `scaled`."""
    start = layout.scalars
    energy = np.abs(g).max(-1, keepdims=True)
    energy = np.where(energy > 0.0, energy, 1.0)
    speeds = np.abs(g * root)
    limit = np.maximum(speeds.max(-1, keepdims=True) / root, 1e-4 * energy)
    if layout.contacts:
        speed = speeds[:, start:].max(-1, keepdims=True)
        limit[:, start:] = np.where(speed > 0.0, speed / root[:, start:], energy)
    return limit
