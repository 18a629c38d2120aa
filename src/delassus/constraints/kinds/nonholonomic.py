"""User-defined constraints on velocities, g(kinematics, q, v) = 0, linear in v: wheels, skates, rolling bodies.

A row A(q) v = 0 need not be the rate of anything: a skate that cannot slip sideways still gets everywhere. So it has no
error of position; corrections of position leave it alone (`project`, `assemble`), and what it holds is the velocity.
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
    """Where the frames of a model are and how they move, for functions that users write.

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
    """g(kinematics, q, v) = 0, of `rows` rows, for a function of the user's that is linear in the velocity v (nv,).

    `g` takes what `Implicit`'s takes, and v after q: g(kinematics, q, v) or g(kinematics, q, v, t). Besides `position`
    and `rotation`, `kinematics` has `velocity(frame)` and `angular_velocity(frame)` (3,), in the world's axes. A part
    that does not depend on v, such as the speed of a belt, may be added. A = ∂g/∂v, and how it changes, are found by
    the compiler. The force of a row is what multiplies its row of A: power per unit of g.

    There is no error of position: a `velocity_gain` takes off what integration does wrong, or `project`, which corrects
    the velocities alone for such rows. A `position_gain` has nothing to pull to.

    >>> blade = dl.Nonholonomic(lambda kinematics, q, v: kinematics.velocity("tip")[:1], rows=1)
    >>> dl.Mechanism(dl.load("double_pendulum"), blade).m
    1
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.any(self.position_gain):
            raise ConstraintError(
                f"the constraint {self.label!r} has a position_gain; it is on velocities alone and has no position to "
                "pull to: take a velocity_gain, or Implicit for a function of the configuration.",
                code="conflicting-arguments",
            )

    @property
    def form(self) -> str:
        """Of places, coordinates, velocities and the time."""
        return "g(kinematics, q, v) or g(kinematics, q, v, t)"

    @property
    def dependency(self) -> str:
        """The name of what every row has to depend on."""
        return "velocity"

    @property
    def holds_positions(self) -> bool:
        """No: what keeps from slipping does not keep a place."""
        return False

    @property
    def holonomic(self) -> bool:
        """There is no error that its velocity could be the rate of."""
        return False

    def inputs(self, model: Model) -> dict[str, tuple[int, ...]]:
        """q, v and t."""
        return {"q": (model.nq,), "v": (model.nv,), "t": ()}

    def call_function(self, model: Model, *arrays: Traced) -> Traced:
        """g, with the time if it takes it."""
        q, v, t = arrays
        return self.g(Velocities(model, q, v), q, v, *((t,) if takes_time(self.g, after=3) else ()))

    def check(self, model: Model, extra: dict[str, tuple[int, ...]]) -> None:
        """Raise unless g is linear in v."""

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
        along = (coordinate_rates(motions.model, q, v), np.ones(()))
        return jvp(lambda q, t: self.g(q, v, t)[0], (q, t), along)[1]

    def reference_velocity(self, motions: LinkMotions) -> Traced:
        """-g at v = 0."""
        return -self.g(motions.q, np.zeros(motions.model.nv), self.time_of(motions))[0]

    def _by_velocity(self, q: Any, v: Any, t: Any) -> Any:
        return jacobian(lambda v: self.g(q, v, t)[0])(v)
