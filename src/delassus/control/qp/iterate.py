"""The iterate of the proximal method: x, multipliers, and the residuals of both."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import delassus.numpy as np
from delassus.control.qp.scaled import FAR, Scaled, largest, product

FAR_SCALED: Final = 1e-20 * FAR
"""Scaled bounds beyond this count as infinite."""

RHO: Final = (1e-8, 1e-6)
"""ρ, for scaled unknowns: without and with cones."""

ROUNDING: Final = 1e-12
"""Rounding error of differences, relative to the terms; errors need not be smaller."""

BROKEN: Final = (1e-7, 1e-5)
"""Relative residual at which rows are infeasible: after x̄ has converged, and before."""

FLAT: Final = 1e-4
"""Relative slope of the residual of rows below which it counts as minimal."""

UNBOUNDED: Final = 1e6
"""Smallest ratio of x to the size of the program for which the cost may be unbounded."""

ALONG: Final = 1e-6
"""Largest relative deviation of such an x from the directions in which rows and cost are unbounded."""

CURVED: Final = 1e-4
"""Largest ratio of curvature to slope of the cost along such an x."""

RESTED: Final = 6
"""x̄ has converged after this many updates of multipliers without a change."""


class Pushes(NamedTuple):
    """Multipliers of the augmented Lagrangian at x: y + (A x - b)/ε, z + (R x - bound)/ε for rows, and likewise for
    cones.

    They are updated along with x; recomputing them would magnify the rounding error of A x - b by 1/ε.
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
        """The multipliers after a step with the products Ad and Rd, divided by ε."""
        m = p.shape.rows
        return Pushes(self.equal + Ad, self.high + Rd[:m], self.low + Rd[:m], self.cone + Rd[m:])

    def rows(self, p: Scaled) -> Any:
        """Multipliers of all rows except equalities."""
        return np.concatenate([np.maximum(self.high, 0.0) + np.minimum(self.low, 0.0), p.off_cones(self.cone)])


class Iterate(NamedTuple):
    """State of the iteration.

    Attributes:
        x, center: (n,) x and x̄.
        Hx, Ax, Rx: Products with x, R x with its offset.
        pushes: Multipliers of the augmented Lagrangian.
        epsilon: ε.
        last: The error of the rows at the last update of multipliers.
        count: Number of Newton steps.
        resting: Number of updates without a change of x̄.
        gradient: (n,) gradient of φ.
        primal, dual: Errors in the program's units.
        apart, wide: The largest error of scaled rows, and the magnitude of the terms that cancel in it, at least 1.
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
        """Whether errors are below a tolerance, both absolute and relative to the terms that cancel in them.

        The absolute errors may also be at the level of rounding.
        """
        within = np.array(True)
        for error, scaled_error, size in ((self.apart, self.primal, self.wide), (self.steep, self.dual, self.high)):
            within = within & (error <= np.maximum(tolerance, ROUNDING) * size)
            within = within & ((scaled_error <= tolerance) | (error <= ROUNDING * size))
        return within

    def contradiction(self, p: Scaled) -> Any:
        """Whether the rows are infeasible: their residual is minimal, since x̄ has converged or no step reduces it."""
        equality_error, excess = self.Ax - p.b, p.excess(self.Rx)
        violation, slope = largest(equality_error, excess), product(p.A.T, equality_error) + product(p.R.T, excess)
        rests, flat = self.resting > RESTED - 0.5, largest(slope) < FLAT * violation
        return (rests & (violation > BROKEN[0] * self.wide)) | (flat & (violation > BROKEN[1] * self.wide))

    def is_unbounded(self, p: Scaled) -> Any:
        """Whether the cost is unbounded: x is long, no row bounds its direction, and the cost decreases along it.

        With d = x/‖x‖: A d = 0, R d in the directions without bounds of rows and cones, gᵀ d < 0, and dᵀ H d so small
        that the minimum along d would be ten thousand times farther than x.
        """
        size, m = largest(self.x), p.shape.rows
        direction = self.Rx[:m] - p.offset[:m]
        upper_excess = np.where(p.upper < FAR_SCALED, np.maximum(direction, 0.0), 0.0)
        lower_excess = np.where(p.lower > -FAR_SCALED, np.maximum(-direction, 0.0), 0.0)
        violation = largest(self.Ax, upper_excess, lower_excess, p.off_cones(self.Rx[m:] - p.offset[m:]))
        slope, curvature = p.g @ self.x, self.x @ self.Hx
        falls = (slope < 0.0) & (curvature <= CURVED * np.abs(slope))
        return (size > UNBOUNDED) & (violation <= ALONG * size) & falls

    def multipliers(self, p: Scaled) -> tuple[Any, Any]:
        """Multipliers of equalities and of other rows at x."""
        pushes = self.pushes
        return pushes.equal, pushes.rows(p)


def update_errors(p: Scaled, now: Iterate) -> Iterate:
    """Compute gradient and errors for the current x, multipliers and ε."""
    y, z = now.multipliers(p)
    equality_gradient, row_gradient = product(p.A.T, y), product(p.R.T, z)
    steepest = now.Hx + p.g + equality_gradient + row_gradient
    # R x - P(R x + z) is zero where rows are feasible and multipliers push inward, only at bounds
    equality_error, row_error = now.Ax - p.b, p.excess(now.Rx + z) - z
    gradient = steepest + rho_of(p) * (now.x - now.center)
    return now._replace(
        gradient=gradient,
        primal=largest(equality_error * p.equal, row_error * p.row),
        dual=largest(steepest * p.slope),
        apart=largest(equality_error, row_error),
        wide=np.maximum(largest(now.Ax, p.b, now.Rx, now.Rx - row_error), 1.0),
        steep=largest(steepest),
        high=np.maximum(largest(now.Hx, p.g, equality_gradient, row_gradient), 1.0),
    )


def rho_of(p: Scaled) -> float:
    """The proximal weight ρ of the primal variables."""
    return RHO[bool(p.shape.cones)]
