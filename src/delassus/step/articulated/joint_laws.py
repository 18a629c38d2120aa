"""Laws of single joints as monotone functions: friction, limits, saturating servos.

The impulse p of all laws of a joint at its velocity v satisfies

    -p ∈ f(v) = c Sgn(v) + clip(B v - A, f_min, f_max) + N_[lo, hi](v),

with joint friction c, a servo with slope B ≥ 0 and its limits, and the normal cone of the velocities that joint limits
allow. The graph of f is a monotone polyline, so x = ρ v - p, with any ρ > 0, increases strictly along it. Therefore x
determines both: v = φ(x) and p = ρ φ(x) - x,

    soft(y) = y - clip(y, -c, c)
    w = max(min(soft(x + A) / (ρ + B), soft(x - f_min) / ρ), soft(x - f_max) / ρ)
    φ(x) = clip(w, lo, hi).

Where φ' = 0, the joint is locked: its velocity is known, and p follows from the equation of motion. Elsewhere -dp = b
dv, where the slope b is B or zero. There are no branches, so the states of a vector may be in different modes.

Reference: proximal operators of separable functions, N. Parikh, S. Boyd, Proximal Algorithms (2014), section 6.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import delassus.numpy as np


class ServoLaw(NamedTuple):
    """The impulse -clip(B v - A, lower, upper) [N·m·s, N·s] of a servo with limits."""

    A: Any
    B: Any
    lower: Any
    upper: Any


class JointLaw(NamedTuple):
    """The nonlinear laws that act on one velocity; None for absent ones.

    Attributes:
        friction: c [N·m·s, N·s], the impulse of joint friction in a step.
        limits: Velocities lo and hi [rad/s, m/s] that joint limits allow.
        servo: A servo with limits.
    """

    friction: Any = None
    limits: tuple[Any, Any] | None = None
    servo: ServoLaw | None = None

    @property
    def is_free(self) -> bool:
        """Whether there is no law."""
        return all(part is None for part in self)


class JointMode(NamedTuple):
    """Velocity φ(x), whether it is locked (None for never), and the slope b otherwise (None for zero)."""

    v: Any
    locked: Any = None
    slope: Any = None


def joint_mode(law: JointLaw, rho: Any, x: Any) -> JointMode:
    """The mode of a joint at x = ρ v - p."""
    c, servo = law.friction, law.servo

    def soft(y: Any) -> tuple[Any, Any]:
        """y without friction, and whether friction locks the joint."""
        return (y, None) if c is None else (y - np.clip(y, -c, c), np.abs(y) <= c)

    if servo is None:
        y, locked = soft(x)
        v, slope = y / rho, None
    else:
        parts = [soft(x + servo.A), soft(x - servo.lower), soft(x - servo.upper)]
        linear, low, high = parts[0][0] / (rho + servo.B), parts[1][0] / rho, parts[2][0] / rho
        below, above = low < linear, high > np.minimum(linear, low)
        v = np.where(above, high, np.where(below, low, linear))
        slope = np.where(above | below, 0.0, servo.B)
        locked = None
        if c is not None:
            locked = np.where(above, parts[2][1], np.where(below, parts[1][1], parts[0][1]))
    if law.limits is not None:
        lo, hi = law.limits
        stopped = (v <= lo) | (v >= hi)
        v, locked = np.clip(v, lo, hi), stopped if locked is None else stopped | locked
    return JointMode(v, locked, slope)


class JointLaws(NamedTuple):
    """The laws of all velocities, and ρ (nv,) [kg m², kg]."""

    laws: tuple[JointLaw, ...]
    rho: Any

    def modes(self, x: Any) -> list[JointMode]:
        """The modes of all joints at x (nv,)."""
        return [joint_mode(law, self.rho[k], x[k]) for k, law in enumerate(self.laws)]

    def evaluate(self, x: Any) -> tuple[Any, Any]:
        """Velocities v (nv,) and impulses p (nv,) at x (nv,)."""
        v = np.stack([np.array(mode.v) for mode in self.modes(x)])
        some = [k for k, law in enumerate(self.laws) if not law.is_free]
        p = np.zeros(len(self.laws))
        if some:
            p[some] = self.rho[some] * v[some] - x[some]
        return v, p

    def servo_impulse(self, v: Any) -> Any:
        """The impulses (nv,) of servos with limits at velocities (nv,)."""
        p = np.zeros(len(self.laws))
        for k, law in enumerate(self.laws):
            if law.servo is not None:
                p[k] = -np.clip(law.servo.B * v[k] - law.servo.A, law.servo.lower, law.servo.upper)
        return p

    def split(self, v: Any, p: Any) -> tuple[Any, Any]:
        """The parts (nv,) of impulses p (nv,) at velocities v (nv,) due to joint friction and to joint limits.

        At rest on a limit, the split is not unique: friction takes as much as it can.
        """
        rest = p - self.servo_impulse(v)
        friction, limits = np.zeros(len(self.laws)), np.zeros(len(self.laws))
        for k, law in enumerate(self.laws):
            taken = 0.0
            if law.friction is not None:
                taken = friction[k] = np.clip(rest[k], -law.friction, law.friction) if law.limits else rest[k]
            if law.limits is not None:
                lo, hi = law.limits  # exactly zero elsewhere: what flies has no impulse
                limits[k] = np.where((v[k] <= lo) | (v[k] >= hi), rest[k] - taken, 0.0)
        return friction, limits
