"""Base class of contact problems that share the rows of a `Scaled` problem and represent G in another way."""

from __future__ import annotations

from typing import Any

from delassus.contact.cones.layout import Layout
from delassus.contact.systems.scaled import Scaled


class HasRows:
    """A problem with `rows` in scaled units: their cones, laws and residuals."""

    rows: Scaled

    @property
    def layout(self) -> Layout:
        """Which rows belong to which cone."""
        return self.rows.layout

    @property
    def convex(self) -> bool:
        """Whether the law is convex."""
        return self.rows.convex

    @property
    def g(self) -> Any:
        """(m,) free velocities of the rows."""
        return self.rows.g

    @property
    def limit(self) -> Any:
        """(m,) the residual that a row may have at a tolerance of one."""
        return self.rows.limit

    def corrected_velocity(self, velocity: Any) -> Any:
        """σ + Γ(σ) (m,)."""
        return self.rows.corrected_velocity(velocity)

    def project(self, x: Any) -> Any:
        """Project impulses (m,) onto the cones."""
        return self.rows.project(x)

    def smooth(self, x: Any, e: Any) -> tuple[Any, list[Any]]:
        """The smooth projection (m,) and its slopes."""
        return self.rows.smooth(x, e)

    def row_weights(self, e: Any) -> Any:
        """R⁻¹ (m,), or None for ones."""
        return self.rows.row_weights(e)

    def smooth_in_metric(self, x: Any, e: Any) -> tuple[Any, list[Any]]:
        """The projection (m,) in the metric R and its slopes."""
        return self.rows.smooth_in_metric(x, e)

    def error(self, impulse: Any, velocity: Any) -> Any:
        """The largest residual of a row, relative to its limit."""
        return self.rows.error(impulse, velocity)
