"""User-defined constraints on velocities, g(kinematics, q, v) = 0, linear in v: wheels, skates, rolling bodies.

A row A(q) v = 0 need not be the rate of any function: a skate that cannot slip sideways can reach any position. So it
has no position error, and corrections of position (`project`, `assemble`) ignore it; it constrains only the velocity.
Its acceleration is A a + (∂g/∂q) q̇ + ∂g/∂t.

Reference: J. I. Neimark, N. A. Fufaev, Dynamics of nonholonomic systems (1972).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import delassus.numpy as np
from delassus.common.options import accept_groups
from delassus.common.types import Traced
from delassus.compiler.differentiation.derivatives import jacobian, jvp
from delassus.constraints.basis.constraint import ConstraintError
from delassus.constraints.basis.function_constraint import FunctionConstraint, Kinematics
from delassus.constraints.basis.motions import LinkMotions
from delassus.constraints.basis.options import RowResponse
from delassus.constraints.kinds.implicit import takes_time
from delassus.dynamics.kinematics.kinematics import frame_velocity
from delassus.dynamics.kinematics.manifold import coordinate_rates
from delassus.model.model import Model


@dataclass(frozen=True)
class Velocities(Kinematics):
    """Placements and velocities of a model's frames, as arguments of user functions.

    >>> blade = dl.Nonholonomic(lambda kinematics, q, v: kinematics.velocity("tip")[:1], rows=1)     # of a `Velocities`
    >>> dl.Mechanism(dl.load("double_pendulum"), blade).m
    1
    """

    v: Any

    def velocity(self, frame: str) -> Traced:
        """The velocity (3,) [m/s] of a frame's origin, in the world's axes."""
        return self._motion(frame)[:3]

    def angular_velocity(self, frame: str) -> Traced:
        """The angular velocity (3,) [rad/s] of a frame, in the world's axes."""
        return self._motion(frame)[3:]

    def _motion(self, frame: str) -> Any:
        return frame_velocity(self.model, self.q, self.v, frame=frame, reference="LOCAL_WORLD_ALIGNED")


@accept_groups("g * rows pattern turning name", response=RowResponse())
@dataclass(frozen=True)
class Nonholonomic(FunctionConstraint):
    """g(kinematics, q, v) = 0, of `rows` rows, for a user function that is linear in the velocity v (nv,).

    `g` has the arguments of `Implicit`'s, and v after q: g(kinematics, q, v) or g(kinematics, q, v, t). Besides
    `position` and `rotation`, `kinematics` has `velocity(frame)` and `angular_velocity(frame)` (3,), in the world's
    axes. Terms that do not depend on v, such as the speed of a belt, are allowed. A = ∂g/∂v and its derivatives are
    derived by the compiler. The force of a row multiplies its row of A; its unit is power per unit of g.

    There is no position error: use a `velocity_gain` against integration errors, or `project`, which corrects only the
    velocities for such rows. A `position_gain` is refused.

    >>> blade = dl.Nonholonomic(lambda kinematics, q, v: kinematics.velocity("tip")[:1], rows=1)
    >>> dl.Mechanism(dl.load("double_pendulum"), blade).m
    1
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.any(self.position_gain):
            raise ConstraintError(
                f"the constraint {self.label!r} has a position_gain, but constrains velocities only; "
                "use a velocity_gain, or Implicit for a function of the configuration.",
                code="conflicting-arguments",
            )

    @property
    def form(self) -> str:
        """The signature: kinematics, configuration, velocity and time."""
        return "g(kinematics, q, v) or g(kinematics, q, v, t)"

    @property
    def dependency(self) -> str:
        """Every row must depend on the velocity."""
        return "velocity"

    @property
    def holds_positions(self) -> bool:
        """False: it constrains velocities only."""
        return False

    @property
    def holonomic(self) -> bool:
        """False: there is no position error."""
        return False

    def inputs(self, model: Model) -> dict[str, tuple[int, ...]]:
        """The arguments q, v and t."""
        return {"q": (model.nq,), "v": (model.nv,), "t": ()}

    def call_function(self, model: Model, *arrays: Traced) -> Traced:
        """g, with the time if it takes it."""
        q, v, t = arrays
        return self.g(Velocities(model, q, v), q, v, *((t,) if takes_time(self.g, after=3) else ()))

    def check(self, model: Model, extra: dict[str, tuple[int, ...]]) -> None:
        """Raise an error unless g is linear in v."""

        def by_velocity(q: Any, v: Any, t: Any, *parameters: Any) -> Any:
            return self.with_parameters(*parameters)._by_velocity(q, v, t)

        program = self.trace_function(by_velocity, self.inputs(model) | extra, (self.rows, model.nv)).program
        if program.depends_on(1, output=0):
            raise ConstraintError(
                f"the constraint {self.label!r} is not linear in the velocity v: write it as A(q) v, or as "
                "A(q) v + b(q, t).",
                code="not-linear",
            )

    def jacobian(self, model: Model, q: Traced, t: Traced) -> Traced:
        """A = ∂g/∂v (rows, nv)."""
        return self._by_velocity(q, np.zeros(model.nv), t)

    def velocity_product(self, motions: LinkMotions) -> Traced:
        """(∂g/∂q) q̇ + ∂g/∂t: the derivative of g along the motion, at v̇ = 0."""
        q, v, t = motions.q, motions.v, self.time_of(motions)
        rates = (coordinate_rates(motions.model, q, v), np.ones(()))
        return jvp(lambda q, t: self.g(q, v, t)[0], (q, t), rates)[1]

    def reference_velocity(self, motions: LinkMotions) -> Traced:
        """-g at v = 0."""
        return -self.g(motions.q, np.zeros(motions.model.nv), self.time_of(motions))[0]

    def _by_velocity(self, q: Any, v: Any, t: Any) -> Any:
        return jacobian(lambda v: self.g(q, v, t)[0])(v)
