"""Equality constraints of model files, as frozen data.

They name frames and joints of the model that carries them in `Model.constraints`. The stiffness in a file is not used
here: these constraints are rigid.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from delassus.model.parts import WORLD_FRAME


@dataclass(frozen=True)
class Connect:
    """A ball-and-socket: the origins of two frames coincide."""

    name: str
    frame1: str
    frame2: str


@dataclass(frozen=True)
class WeldEquality:
    """A weld: two frames coincide, origins and axes."""

    name: str
    frame1: str
    frame2: str


@dataclass(frozen=True)
class PolynomialCoupling:
    """A coordinate is a polynomial of another: y - r₁ = Σ cₖ (x - r₂)ᵏ. Without a leader, y is fixed at r₁ + c₀.

    Attributes:
        name: Name of the constraint.
        follower: The joint or tendon y.
        leader: The joint or tendon x, or None.
        coefficients: c₀ … c₄ [rad or m per power of rad or m].
        reference1: r₁ [rad, m].
        reference2: r₂ [rad, m].
    """

    name: str
    follower: str
    leader: str | None
    coefficients: tuple[float, ...]
    reference1: float = 0.0
    reference2: float = 0.0


class JointCoupling(PolynomialCoupling):
    """A coupling of two joints, each of one coordinate."""


class TendonCoupling(PolynomialCoupling):
    """A coupling of the lengths of two tendons."""


Equality: TypeAlias = Connect | WeldEquality | JointCoupling | TendonCoupling


def ends(equality: Equality) -> tuple[str, ...]:
    """The frames that it connects."""
    return (equality.frame1, equality.frame2) if isinstance(equality, Connect | WeldEquality) else ()


def prefix_equality(equality: Equality, prefix: str, world: str) -> Equality:
    """The equality with a prefix on the names of frames and joints; the frame "world" is renamed `world`."""
    if isinstance(equality, PolynomialCoupling):
        leader = None if equality.leader is None else prefix + equality.leader
        return replace(equality, name=prefix + equality.name, follower=prefix + equality.follower, leader=leader)
    frame1, frame2 = (world if frame == WORLD_FRAME.name else prefix + frame for frame in ends(equality))
    return replace(equality, name=prefix + equality.name, frame1=frame1, frame2=frame2)


def describe_equality(equality: Equality) -> str:
    """A one-line description."""
    if isinstance(equality, PolynomialCoupling):
        of = "" if equality.leader is None else f" by {equality.leader}"
        coefficients = ", ".join(f"{c:g}" for c in equality.coefficients)
        return f"{equality.name}: {equality.follower} is given{of}, coefficients {coefficients}"
    verb = "is connected to" if isinstance(equality, Connect) else "is welded to"
    return f"{equality.name}: {equality.frame1} {verb} {equality.frame2}"
