"""Bounds on Baumgarte gains for a time step."""

from delassus.constraints.basis.constraint import Constraint, ConstraintError
from delassus.model.model import Model


def check_gains(constraint: Constraint, model: Model, step: float) -> None:
    """Raise an error if the gains of a row make its error grow, or never decay, over time steps of length h.

    With semi-implicit Euler (v⁺ = v + h a, e⁺ = e + h v⁺) the error satisfies z² - (2 - h Kd - h² Kp) z + (1 - h Kd) =
    0, whose roots are inside the unit circle for 0 < h Kd < 2 and 0 < h² Kp < 4 - 2 h Kd. Without a position gain, the
    velocity decays for 0 < h Kd < 2.
    """
    count = constraint.count(model)
    pairs = zip(constraint.per_row("position_gain", count), constraint.per_row("velocity_gain", count), strict=True)
    for Kp, Kd in pairs:
        if step * Kd >= 2.0:
            raise ConstraintError(
                f"the velocity_gain {Kd:g} 1/s of {constraint.label!r} is too large for the step of {step:g} s: its "
                f"velocity would grow from step to step. Stay below 2/step = {2.0 / step:g} 1/s, preferably at or "
                "below 1/step, or use a smaller step.",
                code="unstable-gain",
            )
        if Kp > 0.0 and Kd == 0.0:
            raise ConstraintError(
                f"the position_gain {Kp:g} 1/s² of {constraint.label!r} has no velocity_gain, so its error "
                f"would oscillate forever. Pass velocity_gain = 2·√position_gain = {2.0 * Kp**0.5:g} 1/s.",
                code="unstable-gain",
            )
        limit = (4.0 - 2.0 * step * Kd) / step**2
        if Kp >= limit:
            raise ConstraintError(
                f"the position_gain {Kp:g} 1/s² of {constraint.label!r} is too large for the step of {step:g} s and "
                f"the velocity_gain {Kd:g} 1/s: its error would grow from step to step. Stay below "
                f"(4 - 2·step·velocity_gain)/step² = {limit:g} 1/s², or use a smaller step.",
                code="unstable-gain",
            )
