"""The interface of an integrator: one step of a system on its configuration manifold.

A configuration is updated along tangent vectors, q ⊕ θ. Within a step, a method may work in the chart θ around the
initial q, where the motion is an ordinary differential equation of vectors (Munthe-Kaas):

    θ' = J(θ)⁻¹ v,      v' = a(t, q ⊕ θ, v),      θ = 0 at the start,

J is the right Jacobian of the exponential. Every Runge–Kutta method keeps its order in the chart, and quaternions stay
normalized.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple, Protocol

import numpy
from numpy.typing import NDArray

from delassus.compiler.differentiation.recorded_function import RecordedFunction
from delassus.compiler.host.definition import plainly
from delassus.constrained.delassus.scales import length_of
from delassus.constrained.projection.project import project_by_mass
from delassus.constrained.solvers.dynamics import constrained_dynamics
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.dynamics.derivatives.manifold_derivatives import rates_along
from delassus.dynamics.forces.aba import aba
from delassus.dynamics.forces.passive import passive_forces
from delassus.dynamics.kinematics.manifold import integrate, parts

_CORRECTIONS: Final = 40
"""Maximum number of projection iterations; two are typical, but in a singular pose each one only halves the error."""


@dataclass(frozen=True)
class System:
    """The differential equation: a mechanism under gravity, springs and dampers of its joints and tendons, and forces.

    Attributes:
        mechanism: The robot and its constraints.
        force: Constant generalized forces (nv,) [N·m, N].
        control: Forces as a function of time, q and v; None if there are none.
        stages: Whether states inside a step are also projected onto the constraints.
    """

    mechanism: Mechanism
    force: Any
    control: RecordedFunction | None = None
    stages: bool = False

    @property
    def nv(self) -> int:
        """Number of velocities."""
        return self.mechanism.nv

    def acceleration(self, time: Any, q: Any, v: Any) -> Any:
        """a (nv,) [rad/s², m/s²] at a state."""
        tau = self.force + passive_forces(self.mechanism.model, q, v)
        if self.control is not None:
            tau = tau + self.control(time, q, v)[0]
        if not self.mechanism.m:
            return aba(self.mechanism.model, q, v, tau)
        # A method without penalties, accurate where others would need singular values near the tolerance.
        return constrained_dynamics(self.mechanism, q, v, tau, time=time, method="prox_pv").acceleration

    def integrate(self, q: Any, way: Any) -> Any:
        """q ⊕ way (nq,): move along a tangent vector."""
        return integrate(self.mechanism.model, q, way)

    def rates(self, way: Any, v: Any) -> Any:
        """θ' (nv,) in the chart, at θ = way."""
        return rates_along(self.mechanism.model, way, v)

    def on_stage(self, time: Any, q: Any, v: Any) -> tuple[Any, Any]:
        """A state inside a step, projected if stages are."""
        return self.project(time, q, v)[:2] if self.stages else (q, v)

    def project(self, time: Any, q: Any, v: Any) -> tuple[Any, Any, Any]:
        """The nearest state that satisfies the constraints, and its remaining error relative to the robot's length."""
        return project_by_mass(self.mechanism, q, v, time=time, iterations=_CORRECTIONS)

    @cached_property
    def sizes(self) -> NDArray[numpy.float64]:
        """Scales of coordinate errors (nv,): a radian, or the length of the robot [m]."""
        with plainly():
            length = length_of(self.mechanism.plain.model)
        values = [1.0 if d >= 3 else length for motion, _, _ in parts(self.mechanism.model) for d in motion.directions]
        return numpy.array(values)


class Step(NamedTuple):
    """The result of a step.

    Attributes:
        q: The new configuration (nq,).
        v: The new velocity (nv,).
        error: Estimates (2, nv) of the errors of configuration and velocity; None if the method has none.
        residual: Change by another iteration of an implicit step, in radians or robot lengths, or relative to the
            accelerations, whichever is less; None without iterations.
        between: Maps a fraction of the step to the state (nq,), (nv,) there (dense output); None if the method has
            none.
        last: The acceleration (nv,) at the end, if that is the last stage; the next step gets it as `first`.
    """

    q: Any
    v: Any
    error: Any = None
    residual: Any = None
    between: Callable[[Any], tuple[Any, Any]] | None = None
    last: Any = None


class Integrator(Protocol):
    """An integration method, frozen and compared by content."""

    def __hash__(self) -> int: ...

    @property
    def name(self) -> str:
        """Name of the method."""

    @property
    def order(self) -> int:
        """The order of the error at a fixed time, as a power of the step."""

    @property
    def adaptive(self) -> bool:
        """Whether it estimates its errors and chooses its steps."""

    @property
    def has_dense_output(self) -> bool:
        """Whether it computes states inside its steps."""

    def step(self, system: System, time: Any, q: Any, v: Any, h: Any) -> Step:
        """One step of h [s] from a state at a time; methods with `first_is_last` also take `first`."""
