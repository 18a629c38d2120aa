"""User-defined constraints g(kinematics, q) = 0, written in NumPy; the compiler derives their derivatives."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import delassus.numpy as np
from delassus.common.options import accept_groups
from delassus.common.types import Traced
from delassus.compiler.differentiation.derivatives import jacobian, jvp
from delassus.constraints.basis.function_constraint import FunctionConstraint, Kinematics
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.basis.options import RowResponse
from delassus.dynamics.kinematics.manifold import coordinate_rates, rates_per_velocity
from delassus.model.model import Model


@accept_groups("g * rows pattern turning name", response=RowResponse())
@dataclass(frozen=True)
class Implicit(FunctionConstraint):
    """g(kinematics, q) = 0, of `rows` rows, for a user function in NumPy.

    `g` takes the placements of frames (see `Kinematics`: `position(frame)`, `rotation(frame)`), the configuration q
    (nq,) and, if it has a third argument, the time t [s]; it returns an array (rows,). A third argument with a default
    is ignored, unless it is called t or time. Its Jacobian J and J̇ v are derived by the compiler, and two constraints
    are equal when their traced functions are equal. The force of a row multiplies its row of J; its unit is energy per
    unit of g.

    At a kink of g (abs, maximum) the derivative is that of `delassus.compiler`. Where g is not differentiable (the norm
    of a zero vector), the results of the state are not finite and its status reports it.

    >>> wire = dl.Implicit(lambda kinematics, q: kinematics.position("tip")[2:] + 0.8, rows=1)
    >>> dl.Mechanism(dl.load("double_pendulum"), wire).m
    1
    """

    @property
    def form(self) -> str:
        """The signature: kinematics, configuration and time."""
        return "g(kinematics, q) or g(kinematics, q, t)"

    @property
    def has_reference(self) -> bool:
        """True: g is zero where the constraint is satisfied."""
        return True

    def inputs(self, model: Model) -> dict[str, tuple[int, ...]]:
        """The arguments q and t."""
        return {"q": (model.nq,), "t": ()}

    def call_function(self, model: Model, *arrays: Traced) -> Traced:
        """g, with the time if it takes it."""
        q, t = arrays
        return self.g(Kinematics(model, q), q, *((t,) if takes_time(self.g, after=2) else ()))

    def velocity_product(self, motions: LinkMotions) -> Traced:
        """The second derivative of g along the motion, at v̇ = 0."""
        return self._drift(motions.model, motions.q, motions.v, self.time_of(motions))[1]

    def reference_velocity(self, motions: LinkMotions) -> Traced:
        """The velocity of the reference, -∂g/∂t (rows,)."""
        zero = np.zeros(motions.model.nv)
        return -self._drift(motions.model, motions.q, zero, self.time_of(motions))[0]

    def position_error(self, motions: LinkMotions) -> Traced:
        """The error g (rows,)."""
        return self.g(motions.q, self.time_of(motions))[0]

    def jacobian(self, model: Model, q: Traced, t: Traced) -> Traced:
        """∂g/∂q times the coordinate rates per velocity: (rows, nv)."""
        return jacobian(lambda q: self.g(q, t)[0])(q) @ rates_per_velocity(model, q)

    def check(self, model: Model, extra: dict[str, tuple[int, ...]]) -> None:
        """Raise an error unless second derivatives exist."""

        def product(q: Any, v: Any, t: Any, *parameters: Any) -> Any:
            return self.with_parameters(*parameters)._drift(model, q, v, t)[1]

        self.trace_function(product, {"q": (model.nq,), "v": (model.nv,), "t": ()} | extra, (self.rows,))

    def _drift(self, model: Model, q: Any, v: Any, t: Any) -> tuple[Any, Any]:
        """The first and second derivatives (rows,) of g along the motion with constant v, including time."""
        one = np.ones(())

        def rate(q: Any, t: Any) -> Any:
            return jvp(lambda q, t: self.g(q, t)[0], (q, t), (coordinate_rates(model, q, v), one))[1]

        return jvp(rate, (q, t), (coordinate_rates(model, q, v), one))


def takes_time(g: Callable[..., Any], after: int) -> bool:
    """Whether a function has an argument for the time after `after` others.

    An argument with a default often binds a loop variable, unless it is called t or time.
    """
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [p for p in inspect.signature(g).parameters.values() if p.kind in positional]
    if len(parameters) <= after:
        return False
    return parameters[after].default is inspect.Parameter.empty or parameters[after].name in ("t", "time")
