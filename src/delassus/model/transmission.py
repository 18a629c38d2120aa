"""Actuators and tendons of model files as frozen data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from delassus.model.placement import ZERO, Vector

STATELESS: Final = "none"
"""The dynamics of an actuator whose force depends on the control itself."""

CARRIED: Final = frozenset({"affine", "integrator", "filter", "filterexact", "muscle"})
"""Values of `Actuator.kind` for which the actuator is described completely."""


PULLEY: Final = "pulley "
"""Prefix of a pulley in the path of a tendon; its divisor follows."""


@dataclass(frozen=True)
class Obstacle:
    """A "sphere", or a "cylinder" along z, of a radius [m], at the origin of a `frame`, around which a tendon wraps.

    With `side`, a site, it passes on the side of that site; if the site is inside the shape, through the shape.
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
    """An actuator: maps a control u to a scalar force, and by its gear to generalized forces.

    The force is gain · u + bias, where gain and bias are affine in the length l of the driven part and its rate: `gain`
    = (g₀, g₁, g₂) stands for g₀ + g₁ l + g₂ dl/dt, `bias` likewise. `drives` is "joint", "joint-in-parent" (with the
    gear in the axes of the parent, for a spherical or free joint), "tendon", "site", "body" or "slider-crank", `target`
    is the name of the driven part, `reference` that of a site relative to which a site moves, or along whose z axis a
    slider moves, with a `rod` [m] to the crank pin. `force_gear` and `torque_gear` are the components of the gear; a
    joint with one coordinate and a tendon use the first. `control_range` and `force_range` are empty without limits.
    `kind` is "affine" if these values describe the actuator completely; otherwise it names the extension, such as
    "filter" or "muscle".

    An actuator may have a state, its activation, which replaces the control in the force: `dynamics` is the name of its
    differential equation, with `dynamics_parameters`, and `activation_range` limits it. The force uses the activation
    at the start of a step, or at its end if the actuator is `early`. `law` is the name of a force law that is not
    affine in length, rate and control or activation, with `law_parameters`.
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
    """A tendon, whose length is a sum over joints, or that of a string through sites.

    `terms` are the joints and their coefficients, empty for a string; `path` names the sites along a string, in order:
    "pulley 2" is a pulley that divides the following branch by two, an `Obstacle` is a shape between the sites before
    and after it. `stiffness` [N/m] acts outside the lengths `rest` (shortest, longest), `damping` [N·s/m] against the
    rate, as does Coulomb `friction` [N]; `range` are the limits of the length, empty without limits.
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


def _prefix_location(location: str | Obstacle, prefix: str) -> str | Obstacle:
    if isinstance(location, Obstacle):
        return location.with_prefix(prefix)
    return location if location.startswith(PULLEY) else prefix + location


def transmissions_without(actuators: Sequence[Actuator], tendons: Sequence[Tendon], locked: set[str]) -> Transmissions:
    """The remaining actuators and tendons after locking joints: without theirs, tendons over them, and their
    actuators.
    """
    remaining = tuple(tendon for tendon in tendons if not any(joint in locked for joint, _ in tendon.terms))
    removed = {("joint", name) for name in locked} | {
        ("tendon", tendon.name) for tendon in tendons if tendon not in remaining
    }
    return tuple(actuator for actuator in actuators if (actuator.drives, actuator.target) not in removed), remaining
