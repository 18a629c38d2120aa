"""`ActuatedMechanism`: a mechanism with actuators, whose forces u act as B u.

B (nv, nu) is the same in all states, so its decomposition is computed once: `reach`, orthonormal directions of the
generalized forces of actuators; `passive`, the directions without actuators, passiveᵀ B = 0; and the map from
generalized forces to forces of actuators.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from delassus.compiler.graph.parameters import ParametricComposite
from delassus.constrained.delassus.scales import length_of
from delassus.constraints.mechanism.mechanism import Mechanism, ParametricMechanism, refuse_unilateral
from delassus.constraints.mechanism.rows import compliance_of
from delassus.control.inverse.actuation import ActuationError, Floats, read_actuation
from delassus.errors import BadArgument, short
from delassus.model.description import HasModel
from delassus.model.links import links_of
from delassus.model.model import Model, ParametricModel
from delassus.model.transmission import Actuator

RANK: Final = 1e-10
"""Singular values of B below this fraction of the largest count as zero."""


@dataclass(frozen=True)
class ActuatedMechanism(HasModel):
    """A mechanism with actuators; the argument of inverse dynamics.

    Attributes:
        mechanism: The robot and its constraints; a model is a mechanism without constraints.
        actuation: A matrix (nv, nu), names or patterns of joints in the order of the torques, or `Actuator`s. By
            default the model's own actuators, or, if it has none, every joint except a free base. Stored as rows of
            numbers.
        names: Names of the actuators.

    >>> dl.control.ActuatedMechanism(dl.load("cart_pole"), "cart*").nu
    1
    """

    mechanism: Mechanism
    actuation: Any = None
    names: tuple[str, ...] = ()

    if TYPE_CHECKING:  # constructor arguments, which are more general than the fields

        def __init__(
            self, mechanism: Mechanism | Model | ParametricModel, actuation: Any = None, names: tuple[str, ...] = ()
        ) -> None: ...

    def __new__(cls, mechanism: Any = None, *_: Any, **__: Any) -> ActuatedMechanism:
        """Create with parameters, if the mechanism has some."""
        parametric = isinstance(mechanism, (ParametricMechanism, ParametricModel))
        return object.__new__(ParametricActuated if parametric else cls)

    def __post_init__(self) -> None:
        mechanism = mechanism_of(self.mechanism)
        B, names = read_actuation(mechanism.model, self.actuation)
        object.__setattr__(self, "mechanism", mechanism)
        object.__setattr__(self, "actuation", tuple(map(tuple, B.tolist())))
        object.__setattr__(self, "names", tuple(self.names) or names)
        if len(self.names) != B.shape[1]:
            raise ActuationError(
                f"names has {len(self.names)} names for {B.shape[1]} actuators; pass one for each.", code="wrong-shape"
            )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.model.name!r}: nv {self.nv}, {self.m} rows, {self.nu} actuators>"

    @property
    def model(self) -> Model:  # type: ignore[override]
        """The model of the mechanism."""
        return self.mechanism.model

    @property
    def __kernel_model__(self) -> Any:
        """The model for kernels of a `Mechanism`."""
        return self.mechanism

    @property
    def m(self) -> int:
        """Number of rows of all constraints."""
        return self.mechanism.m

    @property
    def nu(self) -> int:
        """Number of actuators."""
        return len(self.names)

    @property
    def B(self) -> Floats:
        """(nv, nu): generalized forces per unit of each actuator's force."""
        return np.array(self.actuation, float).reshape(self.nv, self.nu)

    @cached_property
    def _directions(self) -> tuple[tuple[tuple[float, ...], ...], int]:
        """Orthonormal directions of generalized forces, those of actuators first, and the number of these."""
        velocity, one = np.unique(np.nonzero(self.B)[0]), np.count_nonzero(self.B, axis=0)
        if np.all(one <= 1):  # each actuator drives one velocity: exact
            order = [*velocity.tolist(), *(k for k in range(self.nv) if k not in velocity)]
            return tuple(map(tuple, np.eye(self.nv)[order].tolist())), len(velocity)
        U, s, _ = np.linalg.svd(self.B)
        return tuple(map(tuple, U.T.tolist())), int(np.sum(s > RANK * s[0]))

    @property
    def rank(self) -> int:
        """The rank of B."""
        return self._directions[1]

    @property
    def reach(self) -> Floats:
        """(nv, rank): orthonormal directions of the generalized forces of actuators."""
        return np.array(self._directions[0])[: self.rank].T

    @property
    def passive(self) -> Floats:
        """(nv, nv - rank): orthonormal directions without actuators."""
        return np.array(self._directions[0])[self.rank :].T.reshape(self.nv, self.nv - self.rank)

    @property
    def inverse(self) -> Floats:
        """(nu, nv): from generalized forces to forces of actuators, if these are not redundant."""
        B = self.B
        if np.all(np.count_nonzero(B, axis=0) <= 1):  # one velocity each: transpose, divided by gear ratios
            return np.where(B == 0.0, 0.0, 1.0 / np.where(B == 0.0, 1.0, B)).T
        return np.asarray(np.linalg.pinv(B, rcond=RANK), float)

    @property
    def mechanism_compliance(self) -> Floats:
        """C (m,) of the rows."""
        return compliance_of(self.mechanism)

    @property
    def default_weight(self) -> Floats:
        """(nu,): default weights of the squared forces of actuators.

        1 for torques, the square of the robot's length for forces, so that the result is independent of units.
        """
        length = length_of(self.mechanism.plain.model)
        pulling = np.zeros(self.nv, bool)
        for link in links_of(self.mechanism.plain.model).links:
            pulling[list(link.dofs)] = [direction < 3 for direction in link.motion.directions]
        share = np.array([np.all(pulling[column != 0.0]) and np.any(column) for column in self.B.T], bool)
        return np.where(share, length * length, 1.0)


@dataclass(frozen=True, repr=False)
class ParametricActuated(ActuatedMechanism, ParametricComposite):
    """An actuated mechanism whose model has parameters."""

    def with_parameters(self, parameters: Any) -> ActuatedMechanism:
        """The actuated mechanism with these parameters (nparameters,)."""
        return ActuatedMechanism(self.parametric_part.with_parameters(parameters), self.actuation, self.names)

    @property
    def parametric_part(self) -> Any:
        """The part with parameters: the mechanism."""
        return self.mechanism


def mechanism_of(robot: Any) -> Mechanism:
    """A mechanism, or that of a model without user constraints."""
    if isinstance(robot, Mechanism):
        refuse_unilateral(robot, "control")
        return robot
    if isinstance(robot, (Model, ParametricModel)):
        return Mechanism(robot)
    raise BadArgument(f"the mechanism is {short(repr(robot))}; it must be a Mechanism, or a Model.", code="wrong-type")


def actuated(mechanism: Any, actuation: Any = None) -> ActuatedMechanism:
    """The mechanism with its actuators, cached by arguments to keep calls fast."""
    if isinstance(mechanism, ActuatedMechanism):
        if actuation is not None:
            raise ActuationError(
                "an ActuatedMechanism has its own actuation; omit actuation=.",
                code="conflicting-arguments",
            )
        return mechanism
    if type(mechanism).__hash__ is None:
        raise ActuationError(
            f"the mechanism is {short(repr(mechanism))}; it must be a Mechanism or a Model.", code="wrong-type"
        )
    if isinstance(actuation, np.ndarray) and actuation.dtype == float:
        return _of_array(mechanism, actuation.shape, actuation.tobytes())
    is_hashable_list = isinstance(actuation, (list, tuple)) and all(isinstance(x, (str, Actuator)) for x in actuation)
    if actuation is None or isinstance(actuation, str) or is_hashable_list:
        return _cached_actuated(mechanism, tuple(actuation) if isinstance(actuation, list) else actuation)
    return ActuatedMechanism(mechanism, actuation)


@lru_cache(maxsize=64)
def _of_array(mechanism: Any, shape: tuple[int, ...], data: bytes) -> ActuatedMechanism:
    return ActuatedMechanism(mechanism, np.frombuffer(data).reshape(shape))


@lru_cache(maxsize=64)
def _cached_actuated(mechanism: Any, actuation: Any) -> ActuatedMechanism:
    return ActuatedMechanism(mechanism, actuation)
