"""Checks of actuators: supported features and targets, and the joints that an actuator drives."""

from __future__ import annotations

from typing import Final

from delassus.dynamics.forces.tendons import tendon_named
from delassus.errors import BadArgument
from delassus.model.joints import Free, Spherical
from delassus.model.model import Model
from delassus.model.transmission import STATELESS, Actuator
from delassus.step.actuators.activation import ACTIVATIONS
from delassus.step.actuators.force_law import LAWS

_DRIVES: Final = ("joint", "joint-in-parent", "tendon", "site", "slider-crank")

ADHESION: Final = "body"
"""The target type of adhesion actuators, MJCF's `adhesion`: they have a control but, here, no force."""


class ActuatorError(BadArgument):
    """An actuator that cannot be simulated."""

    code = "not-supported"


def check_actuators(model: Model, actuators: tuple[Actuator, ...], only_affine: bool = False) -> None:
    """Raise an error if an actuator is not supported; with `only_affine`, if one has a state or another force law."""
    for actuator in actuators:
        if not isinstance(actuator, Actuator):
            raise ActuatorError(
                f"{actuator!r} is not an Actuator; create actuators by position_servos(model, 40.0, 1.0).",
                code="wrong-type",
            )
        known = is_simple(actuator) if only_affine else is_known(actuator)
        if actuator.drives == ADHESION and not only_affine:
            continue
        if not known or actuator.drives not in _DRIVES:
            feature = f"on a {actuator.drives}" if known else f"of the kind {' '.join(sorted(_parts(actuator)))!r}"
            kinds = ", ".join(("affine", *(() if only_affine else sorted({*ACTIVATIONS, *LAWS} - {"affine"}))))
            purpose = "control" if only_affine else "simulation"
            raise ActuatorError(
                f"the actuator {actuator.name!r} is {feature}; {purpose} supports the kinds {kinds}, on a joint, a "
                f"tendon, a site or a slider-crank. {_without(actuator)}"
            )
        if actuator.drives == "site" and not actuator.reference and actuator.law != "affine":
            raise ActuatorError(
                f"the actuator {actuator.name!r} has the force law {actuator.law!r} and drives a site, which has no "
                f"length. {_without(actuator)}"
            )
        if only_affine:
            driving_terms(model, actuator)
        _check_target(model, actuator)


def _check_target(model: Model, actuator: Actuator) -> None:
    """Raise an error if the target of an actuator does not exist or is not supported."""
    if actuator.drives in ("site", "slider-crank"):
        for name in (actuator.target, *([actuator.reference] if actuator.reference else [])):
            model.frame(name)
        return
    if actuator.drives == "tendon":
        tendon = tendon_named(model, actuator.target)
        if tendon is None:
            raise ActuatorError(
                f"the actuator {actuator.name!r} drives the tendon {actuator.target!r}, but the model has no tendon of "
                f"this name. {_without(actuator)}"
            )
        return
    joint = model.joint(actuator.target)
    if joint.mimic is not None or not (joint.kind.nv == 1 or isinstance(joint.kind, Free | Spherical)):
        raise ActuatorError(
            f"the actuator {actuator.name!r} drives {joint.name!r}, a {joint.kind.label} joint"
            f"{' that mimics another' if joint.mimic else ''}; it must drive a spherical or free joint, or one with "
            f"one velocity that does not mimic another. {_without(actuator)}"
        )


def _without(actuator: Actuator) -> str:
    return f"Leave it out: actuators=[a for a in model.actuators if a.name != {actuator.name!r}]."


def driving_terms(model: Model, actuator: Actuator) -> list[tuple[str, float]]:
    """The joints that an actuator drives, and l per coordinate of each."""
    gear = actuator.force_gear[0]
    if actuator.drives == "joint":
        return [(actuator.target, gear)]
    tendon = tendon_named(model, actuator.target) if actuator.drives == "tendon" else None
    if tendon is None or not tendon.terms:
        raise ActuatorError(
            f"the actuator {actuator.name!r} drives {actuator.target!r}, a {actuator.drives} whose moment arms depend "
            f"on the configuration; a controller needs constant moment arms, as those of joints and of tendons over "
            f"joints. {_without(actuator)}"
        )
    return [(name, gear * factor) for name, factor in tendon.terms]


def _parts(actuator: Actuator) -> set[str]:
    """Features of an actuator beyond an affine force without a state, by their names in files and tables."""
    return {*actuator.kind.split(), actuator.dynamics, actuator.law} - {STATELESS, "affine"}


def is_simple(actuator: Actuator) -> bool:
    """Whether an actuator is affine and has no state."""
    return not _parts(actuator)


def is_known(actuator: Actuator) -> bool:
    """Whether the tables contain the force law and the activation dynamics of an actuator and all its features."""
    dynamics = actuator.dynamics == STATELESS or actuator.dynamics in ACTIVATIONS
    return dynamics and actuator.law in LAWS and _parts(actuator) <= {actuator.dynamics, actuator.law}
