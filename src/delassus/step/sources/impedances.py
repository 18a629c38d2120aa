"""Impedances of the rows of a scene under MuJoCo's contact law, in the order of their sources."""

from __future__ import annotations

from dataclasses import dataclass

from delassus.model.parts import Impedance


@dataclass(frozen=True)
class ContactImpedance(Impedance):
    """Those of a candidate for contact.

    Attributes:
        solreffriction: The reference of its friction; empty for that of its normal.
        margin: The gap [m] from which on it pushes.
    """

    solreffriction: tuple[float, ...] = ()
    margin: float = 0.0


@dataclass(frozen=True)
class SceneImpedances:
    """Those of all rows of a scene.

    Attributes:
        contacts: Of each candidate.
        constraints: Of each bilateral constraint.
        one_sided: Of each one-sided constraint.
        joint_limits: Of each joint limit.
        joint_friction: Of each row of joint friction.
        impratio: By how much friction of contacts is harder than their normals are.
    """

    contacts: tuple[ContactImpedance, ...] = ()
    constraints: tuple[Impedance, ...] = ()
    one_sided: tuple[Impedance, ...] = ()
    joint_limits: tuple[Impedance, ...] = ()
    joint_friction: tuple[Impedance, ...] = ()
    impratio: float = 1.0
