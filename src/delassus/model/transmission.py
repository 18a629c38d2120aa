"""Actuators and tendons as model files give them: frozen data that no algorithm reads yet."""

from __future__ import annotations

from dataclasses import dataclass

from delassus.model.placement import ZERO, Vector


@dataclass(frozen=True)
class Actuator:
    """An actuator: a control u becomes a scalar force, and gears turn that into generalised forces.

    The force is gain · u + bias, where gain and bias are affine in the length l of what is driven and its rate:
    `gain` = (g₀, g₁, g₂) stands for g₀ + g₁ l + g₂ dl/dt, `bias` likewise. `drives` is "joint", "tendon", "site",
    "body" or "slider-crank", `target` the name of what is driven; `force_gear` and `torque_gear` are the components
    of the gear, of which a joint with one coordinate and a tendon use the first. `control_range` and `force_range`
    are empty without limits. `kind` is "affine" where these numbers say all; anything else (muscles, filters,
    plugins) names what they leave out.
    """

    name: str
    drives: str
    target: str
    gain: Vector
    bias: Vector = ZERO
    force_gear: Vector = (1.0, 0.0, 0.0)
    torque_gear: Vector = ZERO
    control_range: tuple[float, ...] = ()
    force_range: tuple[float, ...] = ()
    kind: str = "affine"


@dataclass(frozen=True)
class Tendon:
    """A tendon: its length is a sum over joints, or that of a string through sites.

    `terms` are the joints and their coefficients, empty for a string; `path` names the sites and shapes that a string
    passes, in order. `stiffness` [N/m] pulls beyond the lengths `rest` (shortest, longest), `damping` [N·s/m] against
    the rate; `range` are the limits of the length, empty without.
    """

    name: str
    terms: tuple[tuple[str, float], ...] = ()
    path: tuple[str, ...] = ()
    stiffness: float = 0.0
    damping: float = 0.0
    rest: tuple[float, ...] = ()
    range: tuple[float, ...] = ()
