"""Interpolation between two recorded states."""

from __future__ import annotations

from typing import Any

from delassus.compiler.host.kernel import kernel
from delassus.dynamics.derivatives.manifold_derivatives import integrate_derivatives, rates_along
from delassus.dynamics.kinematics.manifold import difference, integrate
from delassus.model.model import Model


@kernel("(nq),(nv),(nq),(nv),(),()->(nq),(nv)")
def interpolate_state(model: Model, q0: Any, v0: Any, q1: Any, v1: Any, share: Any, span: Any) -> tuple[Any, Any]:
    """The state (nq,), (nv,) at a fraction `share` between two that are `span` [s] apart: a Hermite cubic in a chart.

    In the chart θ around q0, where q = q0 ⊕ θ and v = J(θ) θ', the cubic matches positions and velocities at both ends.
    """
    displacement, s = difference(model, q0, q1), share
    start, end = span * v0, span * rates_along(model, displacement, v1)
    theta = s * s * (3.0 - 2.0 * s) * displacement + s * (1.0 - s) * ((1.0 - s) * start - s * end)
    rate = 6.0 * s * (1.0 - s) * displacement + (1.0 - s) * (1.0 - 3.0 * s) * start + s * (3.0 * s - 2.0) * end
    _, J = integrate_derivatives(model, q0, theta)
    return integrate(model, q0, theta), J @ rate / span
