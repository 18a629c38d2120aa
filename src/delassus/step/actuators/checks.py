"""Which actuators can be simulated, and which joints they drive."""

from __future__ import annotations

from delassus.errors import BadArgument
from delassus.model.joints import Free
from delassus.model.model import Model
from delassus.model.transmission import STATELESS, Actuator
from delassus.step.actuators.activation import ACTIVATIONS
from delassus.step.actuators.force_law import LAWS


class ActuatorError(BadArgument):
    """An actuator that cannot be simulated."""

    code = "not-supported"


def driven_velocities(model: Model) -> tuple[int, ...]:
    """The velocities that a model without actuators takes a torque for: those of its joints, a free base left out."""
    found: list[int] = []
    for joint, start in zip(model.joints, model.v_starts, strict=True):
        if joint.mimic is None and not isinstance(joint.kind, Free):
            found += range(start, start + joint.kind.nv)
    return tuple(found)


def check_actuators(model: Model, actuators: tuple[Actuator, ...], only_affine: bool = False) -> None:
    """Raise unless all of them can be simulated, or, with `only_affine`, if one has a state or another force law."""
    for actuator in actuators:
        if not isinstance(actuator, Actuator):
            raise ActuatorError(
                f"{actuator!r} is no Actuator; position_servos(model, 40.0, 1.0) makes some.", code="wrong-type"
            )
        known = is_simple(actuator) if only_affine else is_known(actuator)
        if not known or actuator.drives not in ("joint", "tendon", "site"):
            what = f"on a {actuator.drives}" if known else f"of the kind {' '.join(sorted(_parts(actuator)))!r}"
            kinds = ", ".join(("affine", *(() if only_affine else sorted({*ACTIVATIONS, *LAWS} - {"affine"}))))
            verb = "controlled" if only_affine else "simulated"
            raise ActuatorError(
                f"the actuator {actuator.name!r} is {what}; those that can be {verb} are {kinds}, and drive a "
                f"joint, a tendon over joints or a site. {_without(actuator)}"
            )
        if actuator.drives == "site" and actuator.law != "affine":
            raise ActuatorError(
                f"the actuator {actuator.name!r} has the force law {actuator.law!r} and drives a site, which has no "
                f"length. {_without(actuator)}"
            )
        if actuator.drives == "site":
            model.frame(actuator.target)
            continue
        for name, _ in driving_terms(model, actuator):
            joint = model.joint(name)
            if joint.kind.nv != 1 or joint.mimic is not None:
                raise ActuatorError(
                    f"the actuator {actuator.name!r} drives {name!r}, which has {joint.kind.nv} velocities of its own; "
                    f"those that can be simulated drive joints with one. {_without(actuator)}"
                )


def _without(actuator: Actuator) -> str:
    return f"Leave it out: actuators=[a for a in model.actuators if a.name != {actuator.name!r}]."


def driving_terms(model: Model, actuator: Actuator) -> list[tuple[str, float]]:
    """The joints that an actuator drives, and l per coordinate of each."""
    gear = actuator.force_gear[0]
    if actuator.drives == "joint":
        return [(actuator.target, gear)]
    tendon = next((t for t in model.tendons if t.name == actuator.target), None)
    if tendon is None or not tendon.terms:
        raise ActuatorError(
            f"the actuator {actuator.name!r} pulls {actuator.target!r}, which is no tendon over joints: strings "
            f"through sites cannot be simulated. {_without(actuator)}"
        )
    return [(name, gear * factor) for name, factor in tendon.terms]


def _parts(actuator: Actuator) -> set[str]:
    """What an actuator is beyond an affine force without a state, in words of its file or of the tables."""
    return {*actuator.kind.split(), actuator.dynamics, actuator.law} - {STATELESS, "affine"}


def is_simple(actuator: Actuator) -> bool:
    """Whether an actuator is affine and has no state."""
    return not _parts(actuator)


def is_known(actuator: Actuator) -> bool:
    """Whether force law and activation dynamics of an actuator are in the tables, and say all of it."""
    dynamics = actuator.dynamics == STATELESS or actuator.dynamics in ACTIVATIONS
    return dynamics and actuator.law in LAWS and _parts(actuator) <= {actuator.dynamics, actuator.law}
