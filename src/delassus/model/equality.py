"""Equality constraints as model files give them: which frames or joints are tied together, as frozen data.

They name frames and joints of the model that carries them in `Model.constraints`. How stiff a file wants them is not
kept: they are meant exactly.
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
class JointCoupling:
    """A joint that is a polynomial of another: q₁ - r₁ = Σ cₖ (q₂ - r₂)ᵏ.

    `coefficients` are c₀ … c₄, `reference1` and `reference2` the r [rad or m]. Without `joint2` the joint is held at
    r₁ + c₀. Both joints have one coordinate.
    """

    name: str
    joint1: str
    joint2: str | None
    coefficients: tuple[float, ...]
    reference1: float = 0.0
    reference2: float = 0.0


@dataclass(frozen=True)
class TendonCoupling:
    """A tendon whose length is a polynomial of that of another: l₁ - r₁ = Σ cₖ (l₂ - r₂)ᵏ; without, r₁ + c₀ [m]."""

    name: str
    tendon1: str
    tendon2: str | None
    coefficients: tuple[float, ...]
    reference1: float = 0.0
    reference2: float = 0.0


Equality: TypeAlias = Connect | WeldEquality | JointCoupling | TendonCoupling


def ends(equality: Equality) -> tuple[str, ...]:
    """The frames that it ties together."""
    return (equality.frame1, equality.frame2) if isinstance(equality, Connect | WeldEquality) else ()


def prefix_equality(equality: Equality, prefix: str, world: str) -> Equality:
    """The same between frames and joints whose names begin with a prefix; the frame "world" is called `world`."""
    if isinstance(equality, JointCoupling):
        joint2 = None if equality.joint2 is None else prefix + equality.joint2
        return replace(equality, name=prefix + equality.name, joint1=prefix + equality.joint1, joint2=joint2)
    if isinstance(equality, TendonCoupling):
        tendon2 = None if equality.tendon2 is None else prefix + equality.tendon2
        return replace(equality, name=prefix + equality.name, tendon1=prefix + equality.tendon1, tendon2=tendon2)
    frame1, frame2 = (world if frame == WORLD_FRAME.name else prefix + frame for frame in ends(equality))
    return replace(equality, name=prefix + equality.name, frame1=frame1, frame2=frame2)


def describe_equality(equality: Equality) -> str:
    """One line for people."""
    if isinstance(equality, JointCoupling | TendonCoupling):
        if isinstance(equality, JointCoupling):
            one, other = equality.joint1, equality.joint2
        else:
            one, other = equality.tendon1, equality.tendon2
        of = "" if other is None else f" by {other}"
        numbers = ", ".join(f"{c:g}" for c in equality.coefficients)
        return f"{equality.name}: {one} is given{of}, coefficients {numbers}"
    verb = "is connected to" if isinstance(equality, Connect) else "is welded to"
    return f"{equality.name}: {equality.frame1} {verb} {equality.frame2}"
