"""The iterate of the proximal method: x, multipliers, and the residuals of both."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.control.qp.scaled import FAR, Scaled, largest, product

FAR_SCALED: Final = 1e-20 * FAR
"""Scaled bounds beyond are none."""

RHO: Final = (1e-8, 1e-6)
"""ρ, of scaled unknowns: without cones, and with some."""

ROUNDING: Final = 1e-12
"""The share of numbers that is left of their difference by rounding: errors need not be smaller."""

BROKEN: Final = (1e-7, 1e-5)
"""The share of their size that rows miss if they contradict each other: where x̄ rests, and where it does not yet."""

FLAT: Final = 1e-4
"""The slope of what rows miss, as a share of it, where it is as good as least."""

UNBOUNDED: Final = 1e6
"""How many times the size of a program x is, at the least, where the cost falls without end."""

ALONG: Final = 1e-6
"""The share of its length by which such an x may leave the directions in which rows and cost do not end."""

RESTED: Final = 6
"""It has come to rest for good if multipliers were changed so often without moving it."""


class Pushes(NamedTuple):
    """What penalties push with at x: y + (A x - b)/ε, and for rows z + (R x - a bound)/ε, and so on for cones.

    They are carried along x instead of being computed from it, where 1/ε would magnify the rounding of A x - b.
    """

    equal: Any
    high: Any
    low: Any
    cone: Any

    @classmethod
    def of(cls, p: Scaled, Ax: Any, Rx: Any, y: Any, z: Any, epsilon: Any) -> Pushes:
        """The multipliers of the augmented Lagrangian at x, around y and z."""
        m, inverse = p.shape.rows, 1.0 / epsilon
        high, low = z[:m] + (Rx[:m] - p.upper) * inverse, z[:m] + (Rx[:m] - p.lower) * inverse
        return cls(y + (Ax - p.b) * inverse, high, low, z[m:] + Rx[m:] * inverse)

    def along(self, p: Scaled, Ad: Any, Rd: Any) -> Pushes:
        """After a step, of which these are the products, divided by ε."""
        m = p.shape.rows
        return Pushes(self.equal + Ad, self.high + Rd[:m], self.low + Rd[:m], self.cone + Rd[m:])

    def rows(self, p: Scaled) -> Any:
        """Multipliers of all rows but equalities."""
        return np.concatenate([np.maximum(self.high, 0.0) + np.minimum(self.low, 0.0), p.off_cones(self.cone)])


class Iterate(NamedTuple):
    """The iterate of the method.

    Attributes:
        x, center: (n,) x and x̄.
        Hx, Ax, Rx: Products with x, R x with its offset.
        pushes: What penalties push with.
        epsilon: ε.
        last: The rows' error when multipliers were changed last.
        count: Newton steps made.
        resting: How often x̄ has not moved.
        gradient: (n,) that of φ.
        primal, dual: Errors in the program's units.
        apart, wide: The largest error of scaled rows, and how large the numbers are whose difference it is, at least 1.
        steep, high: The same for the scaled gradient of the QP.
    """

    x: Any
    center: Any
    Hx: Any
    Ax: Any
    Rx: Any
    pushes: Pushes
    epsilon: Any
    last: Any
    count: Any
    resting: Any
    gradient: Any
    primal: Any
    dual: Any
    apart: Any
    wide: Any
    steep: Any
    high: Any

    def is_within(self, tolerance: Any) -> Any:
        """Whether errors are below a tolerance, absolutely and relative to the terms that cancel in them.

        As they are, rounding is enough.
        """
        within = np.array(True)
        for error, scaled_error, size in ((self.apart, self.primal, self.wide), (self.steep, self.dual, self.high)):
            within = within & (error <= np.maximum(tolerance, ROUNDING) * size)
            within = within & ((scaled_error <= tolerance) | (error <= ROUNDING * size))
        return within

    def contradiction(self, p: Scaled) -> Any:
        """Whether rows are missed by an amount that is the least there is: x̄ rests, or no step lessens it."""
        off, over = self.Ax - p.b, p.excess(self.Rx)
        violation, slope = largest(off, over), product(p.A.T, off) + product(p.R.T, over)
        rests, flat = self.resting > RESTED - 0.5, largest(slope) < FLAT * violation
        return (rests & (violation > BROKEN[0] * self.wide)) | (flat & (violation > BROKEN[1] * self.wide))

    def is_unbounded(self, p: Scaled) -> Any:
        """Whether the cost has no least value: x is long, no row ends its direction, and the cost falls along it.

        With d = x/‖x‖: A d = 0, R d in the directions in which rows and cones have no bound, gᵀ d < 0, and dᵀ H d so
        small that the least value along d would be a million times farther than x.
        """
        size, m = largest(self.x), p.shape.rows
        along = self.Rx[:m] - p.offset[:m]
        over = np.where(p.upper < FAR_SCALED, np.maximum(along, 0.0), 0.0)
        under = np.where(p.lower > -FAR_SCALED, np.maximum(-along, 0.0), 0.0)
        violation = largest(self.Ax, over, under, p.off_cones(self.Rx[m:] - p.offset[m:]))
        slope, curvature = p.g @ self.x, self.x @ self.Hx
        falls = (slope < 0.0) & (curvature <= ALONG * np.abs(slope))
        return (size > UNBOUNDED) & (violation <= ALONG * size) & falls

    def multipliers(self, p: Scaled) -> tuple[Any, Any]:
        """Those of equalities, and of other rows, that belong to x."""
        pushes = self.pushes
        return pushes.equal, pushes.rows(p)


def update_errors(p: Scaled, now: Iterate) -> Iterate:
    """With gradient and errors of the present x, multipliers and ε."""
    y, z = now.multipliers(p)
    back, push = product(p.A.T, y), product(p.R.T, z)
    steepest = now.Hx + p.g + back + push
    # R x - P(R x + z) is zero where rows are allowed, multipliers push inwards alone, and only at a bound
    off, apart = now.Ax - p.b, p.excess(now.Rx + z) - z
    gradient = steepest + rho_of(p) * (now.x - now.center)
    return now._replace(
        gradient=gradient,
        primal=largest(off * p.equal, apart * p.row),
        dual=largest(steepest * p.slope),
        apart=largest(off, apart),
        wide=np.maximum(largest(now.Ax, p.b, now.Rx, now.Rx - apart), 1.0),
        steep=largest(steepest),
        high=np.maximum(largest(now.Hx, p.g, back, push), 1.0),
    )


def rho_of(p: Scaled) -> float:
    """The proximal weight ρ of the primal variables."""
    return RHO[bool(p.shape.cones)]
