"""Impedances of the rows of a scene under MuJoCo's contact law, in the order of their sources."""

from __future__ import annotations

from dataclasses import dataclass

from delassus.model.parts import Impedance


@dataclass(frozen=True)
class ContactImpedance(Impedance):
    """The impedance of a candidate for contact.

    Attributes:
        solreffriction: The solref of its friction; empty for that of its normal.
        margin: The gap [m] below which it exerts a force.
    """

    solreffriction: tuple[float, ...] = ()
    margin: float = 0.0


@dataclass(frozen=True)
class SceneImpedances:
    """The impedances of all rows of a scene.

    Attributes:
        contacts: One for each candidate.
        constraints: One for each bilateral constraint.
        one_sided: One for each one-sided constraint.
        joint_limits: One for each joint limit.
        joint_friction: One for each row of joint friction.
        impratio: The ratio of the impedance of friction to that of normals.
    """

    contacts: tuple[ContactImpedance, ...] = ()
    constraints: tuple[Impedance, ...] = ()
    one_sided: tuple[Impedance, ...] = ()
    joint_limits: tuple[Impedance, ...] = ()
    joint_friction: tuple[Impedance, ...] = ()
    impratio: float = 1.0
