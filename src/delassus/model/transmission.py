"""Actuators and tendons as model files give them: frozen data, for those who apply them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from delassus.model.placement import ZERO, Vector

STATELESS: Final = "none"
"""The dynamics of an actuator whose force is one of the control itself."""

CARRIED: Final = frozenset({"affine", "integrator", "filter", "filterexact", "muscle"})
"""Words of `Actuator.kind` of which the actuator has all numbers."""


PULLEY: Final = "pulley "
"""What a pulley in the path of a string begins with; its divisor follows."""


@dataclass(frozen=True)
class Obstacle:
    """A "sphere", or a "cylinder" along z, of a radius [m], at the origin of a `frame`, that a string runs around.

    With `side`, a site, it passes on the side of that; through the shape, bent at its surface, if the site is inside.
    """

    frame: str
    shape: str
    radius: float
    side: str = ""

    def with_prefix(self, prefix: str) -> Obstacle:
        """The obstacle of a model whose frames have names with a prefix."""
        return replace(self, frame=prefix + self.frame, side=self.side and prefix + self.side)


@dataclass(frozen=True)
class Actuator:
    """An actuator: a control u becomes a scalar force, and gears turn that into generalized forces.

    The force is gain · u + bias, where gain and bias are affine in the length l of what is driven and its rate:
    `gain` = (g₀, g₁, g₂) stands for g₀ + g₁ l + g₂ dl/dt, `bias` likewise. `drives` is "joint",
    "joint-in-parent" (with the gear in the axes of the parent, of a spherical or free joint), "tendon", "site", "body"
    or "slider-crank", `target` the name of what is driven, `reference` that of a site with respect to which a site
    moves, or along whose z axis a slider does, with a `rod` [m] to the crank pin; `force_gear` and `torque_gear` are
    the components of the gear, of which a joint with one coordinate and a tendon use the first. `control_range` and
    `force_range` are empty without limits. `kind` is "affine" where these numbers say all; otherwise it names what is
    more, such as "filter" or "muscle".

    An actuator may have a state, its activation, which takes the place of the control: `dynamics` names how it follows
    the control, with `dynamics_parameters`, and `activation_range` limits it. The force is that of the activation at
    the beginning of a step, or at its end if the actuator is `early`. `law` names how the force follows from length,
    rate and control or activation, where that is not affine, with `law_parameters`.
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
    dynamics: str = STATELESS
    dynamics_parameters: tuple[float, ...] = ()
    activation_range: tuple[float, ...] = ()
    early: bool = False
    law: str = "affine"
    law_parameters: tuple[float, ...] = ()
    reference: str = ""
    rod: float = 0.0


@dataclass(frozen=True)
class Tendon:
    """A tendon: its length is a sum over joints, or that of a string through sites.

    `terms` are the joints and their coefficients, empty for a string; `path` names the sites that a string
    passes, in order: "pulley 2" is a pulley that divides the branch after it by two, an `Obstacle` a shape between
    the sites before and after it.
    `stiffness` [N/m] pulls beyond the lengths `rest` (shortest, longest), `damping` [N·s/m] against
    the rate, dry `friction` [N] likewise; `range` are the limits of the length, empty without.
    """

    name: str
    terms: tuple[tuple[str, float], ...] = ()
    path: tuple[str | Obstacle, ...] = ()
    stiffness: float = 0.0
    damping: float = 0.0
    rest: tuple[float, ...] = ()
    range: tuple[float, ...] = ()
    friction: float = 0.0


Transmissions: TypeAlias = tuple[tuple[Actuator, ...], tuple[Tendon, ...]]


def prefix_transmissions(actuators: Sequence[Actuator], tendons: Sequence[Tendon], prefix: str) -> Transmissions:
    """Actuators and tendons with a prefix on the names of their parts."""
    return (
        tuple(
            replace(a, name=prefix + a.name, target=prefix + a.target, reference=a.reference and prefix + a.reference)
            for a in actuators
        ),
        tuple(
            replace(
                t,
                name=prefix + t.name,
                terms=tuple((prefix + joint, factor) for joint, factor in t.terms),
                path=tuple(_prefix_location(place, prefix) for place in t.path),
            )
            for t in tendons
        ),
    )


def _prefix_location(place: str | Obstacle, prefix: str) -> str | Obstacle:
    if isinstance(place, Obstacle):
        return place.with_prefix(prefix)
    return place if place.startswith(PULLEY) else prefix + place


def transmissions_without(actuators: Sequence[Actuator], tendons: Sequence[Tendon], locked: set[str]) -> Transmissions:
    """Those that are left once joints are locked: no actuator of theirs, no tendon over them, none of its actuators."""
    kept = tuple(tendon for tendon in tendons if not any(joint in locked for joint, _ in tendon.terms))
    gone = {("joint", name) for name in locked} | {("tendon", tendon.name) for tendon in tendons if tendon not in kept}
    return tuple(actuator for actuator in actuators if (actuator.drives, actuator.target) not in gone), kept
